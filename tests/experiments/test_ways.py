"""Systems that are trained in folds, on validation queries too, and models distilled from them."""

import numpy as np
import pytest

import gbmrank
from gbmrank import GBMRanker
from gbmrank.data.demonstration import demo_data
from gbmrank.errors import ConfigError

DATA = demo_data(n_queries=120, seed=0)
FOUR = "crossfit:pairwise(target=ndcg@10)"
ONE = "distilled:pairwise(target=ndcg@10)"


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_folds_use_validation_queries_and_a_student_has_a_quarter_of_the_trees(backend, tmp_path):
    found = gbmrank.compare(
        DATA, objectives=[FOUR, ONE, "ranknet"], metrics=["ndcg@10"], backends=[backend],
        folds=2, rounds=12, early_stopping=None, jobs=1, threads=1,
    )  # fmt: skip
    rounds = {one.system.objective: one.best_round + 1 for one in found.results.runs}
    assert rounds[ONE] == round(rounds[FOUR] / 4)
    assert rounds[FOUR] > 12 >= rounds["ranknet"]
    found.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "crossfit:" in page
    assert "distilled:" in page


def test_a_system_is_what_the_ranker_gives():
    found = gbmrank.compare(
        DATA, objectives=[FOUR, "ranknet"], metrics=["ndcg@10"], backends=["lightgbm"],
        folds=3, rounds=10, early_stopping=4, jobs=1, threads=1,
    )  # fmt: skip
    run = next(one for one in found.results.runs if one.system.objective == FOUR and one.fold == 0)
    learned = np.flatnonzero(~np.isin(DATA.qid, np.unique(DATA.qid)[run.queries]))
    model = GBMRanker(
        "pairwise(target=ndcg@10)", folds=4, n_estimators=10, early_stopping_rounds=4,
        seed=run.seed, n_jobs=1, **{k: v for k, v in run.params.items() if k != "num_threads"},
    )  # fmt: skip
    model.fit(DATA.X[learned], DATA.labels[learned], qid=DATA.qid[learned])
    tested = np.isin(DATA.qid, np.unique(DATA.qid)[run.queries])
    scores = model.predict(DATA.X[tested])
    values = gbmrank.metric("ndcg@10").per_query(DATA.labels[tested], scores, qid=DATA.qid[tested])
    assert np.nanmean(values) == pytest.approx(np.nanmean(run.values["ndcg@10"]), abs=0.02)


def test_folds_are_rejected_on_clicks_and_given_twice():
    rng = np.random.default_rng(0)
    position = np.concatenate([np.arange(1, n + 1) for n in np.bincount(DATA.qid)])
    clicks = (rng.random(len(position)) < 0.3).astype(float)
    with pytest.raises(ConfigError, match="folds are not supported on a log of clicks"):
        gbmrank.compare(
            (DATA.X, clicks, DATA.qid), position=position, objectives=["crossfit:linear"],
            backends=["lightgbm"], position_bias=gbmrank.clicks.PositionBias(1 / np.arange(1, 99)),
        )  # fmt: skip
    with pytest.raises(ConfigError, match="given twice"):
        gbmrank.compare(DATA, objectives=[FOUR, FOUR], backends=["lightgbm"])
