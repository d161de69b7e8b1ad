"""Cross-fitting: every query trains and every query is scored by a model that did not see it."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

import gbmrank
from gbmrank import GBMRanker
from gbmrank.data.demonstration import demo_data
from gbmrank.data.queries import Groups
from gbmrank.errors import (
    ConfigError,
    DataError,
    GbmrankWarning,
    LeakageWarning,
    NumericError,
    ParameterError,
)
from gbmrank.estimators import committee, crossfit
from gbmrank.estimators.crossfit import debiased_value, drawn_folds
from tests.ranking_tasks import make_task

TASK, OTHER = make_task(seed=0, queries=60), make_task(seed=1)
FILES = {"lightgbm": "model.txt", "xgboost": "model.json"}
NATIVE = {"lightgbm": "native:lambdarank", "xgboost": "native:rank:ndcg"}
NDCG = gbmrank.metric("ndcg@10")
BOTH = pytest.mark.parametrize("backend", FILES)


def ranker(objective="pairwise(target=ndcg@10)", backend="lightgbm", **options):
    given = {"folds": 4, "n_estimators": 8, "max_depth": 3, "n_jobs": 1, **options}
    return GBMRanker(objective, backend, **given)


def fitted(*args, x=TASK.x, y=TASK.y, qid=TASK.qid, fit=None, **options):
    return ranker(*args, **options).fit(x, y, qid=qid, **(fit or {}))


def folds_of(seed=0, count=4):
    first = np.cumsum([0, *TASK.sizes[:-1]])
    different = np.maximum.reduceat(TASK.y, first) > np.minimum.reduceat(TASK.y, first)
    return drawn_folds(Groups.from_qid(TASK.qid, TASK.n), different, count, seed)


def spread(scores, qid):
    frame = pd.Series(scores).groupby(qid)
    return np.sqrt(np.mean((scores - frame.transform("mean")) ** 2))


@BOTH
def test_a_row_is_never_scored_by_a_model_that_saw_it(backend):
    """A unique feature per row lets trees learn labels by heart; out of fold they know nothing."""
    rng = np.random.default_rng(0)
    x = rng.permutation(TASK.n).astype(float)[:, None]
    y = rng.integers(0, 5, TASK.n).astype(float)
    model = fitted(backend=backend, x=x, y=y, n_estimators=60, max_depth=8,
                   **({"min_data_in_leaf": 1} if backend == "lightgbm" else {}))  # fmt: skip
    chance = np.mean([NDCG.score(y, rng.normal(size=TASK.n), qid=TASK.qid) for _ in range(50)])
    assert model.score(x, y, qid=TASK.qid) > chance + 0.15
    unseen = NDCG.score(y, model.oof_scores_, qid=TASK.qid)
    assert abs(unseen - chance) < 0.05
    assert model.oof_value_ == pytest.approx(unseen)  # without early stopping nothing is chosen


@pytest.mark.filterwarnings("ignore:.*is not calibrated:gbmrank.CalibrationWarning")
@BOTH
@pytest.mark.parametrize("objective", ["native", "pairwise(target=ndcg@10)", "committee"])
def test_members_are_trained_on_the_other_folds_stopped_on_their_own_and_merged(backend, objective):
    """The oracle trains each member by itself; features have few values, so bins are equal."""
    name = NATIVE[backend] if objective == "native" else objective
    model = fitted(name, backend, early_stopping_rounds=3, n_estimators=30)
    assert len({one.objective for one in model.committee_}) == (
        4 if objective == "committee" else 1
    )
    total, unseen = np.zeros(OTHER.n), np.full(TASK.n, np.nan)
    for (learned, held), member in zip(folds_of(), model.committee_, strict=True):
        alone = ranker(member.objective, backend, early_stopping_rounds=3, n_estimators=30,
                       folds=None, seed=member.seed)  # fmt: skip
        alone.fit(TASK.x[learned], TASK.y[learned], qid=TASK.qid[learned],
                  eval_set=(TASK.x[held], TASK.y[held]), eval_qid=TASK.qid[held])  # fmt: skip
        assert alone.best_iteration_ + 1 == member.rounds
        scores = alone.predict(TASK.x[held])
        assert spread(scores, TASK.qid[held]) == pytest.approx(member.spread, rel=1e-5)
        unseen[held] = scores / member.spread
        total += alone.predict(OTHER.x) * member.weight / member.spread
        value = member.values["out of fold"]["ndcg@10"]
        assert value == pytest.approx(
            NDCG.score(TASK.y[held], scores, qid=TASK.qid[held]), rel=1e-5
        )
    np.testing.assert_allclose(model.oof_scores_, unseen, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.predict(OTHER.x), total, rtol=1e-4, atol=1e-5)
    assert sum(one.weight for one in model.committee_) == pytest.approx(1.0)
    assert model.best_iteration_ + 1 == sum(one.rounds for one in model.committee_)


def test_objectives_take_turns_and_keep_their_weight():
    model = fitted("committee(query_rmse, pairwise(target=ndcg@10), weights=[3, 1])", folds=5)
    texts = [one.objective.partition("(")[0] for one in model.committee_]
    assert texts == ["query_rmse", "pairwise", "query_rmse", "pairwise", "query_rmse"]
    assert [one.weight for one in model.committee_] == pytest.approx([0.25, 0.125] * 2 + [0.25])
    with pytest.raises(ParameterError, match=r"folds=2.*4 models"):
        fitted("committee(query_rmse, pairwise(target=ndcg@10), seeds=2)", folds=2)


def test_a_committee_that_stops_early_has_folds_unless_it_is_validated():
    model = fitted("committee", folds=None, early_stopping_rounds=3)
    assert len(model.oof_scores_) == TASK.n
    assert model.folds is None
    valid = {"eval_set": (OTHER.x, OTHER.y), "eval_qid": OTHER.qid + 1000}
    model.fit(TASK.x, TASK.y, qid=TASK.qid, **valid)
    assert not hasattr(model, "oof_scores_")
    with pytest.raises(ConfigError, match="early stopping needs a validation set"):
        fitted(folds=None, early_stopping_rounds=3)


def test_the_value_is_not_raised_by_stopping():
    """Curves of folds wander about a true curve; the best round of a fold is best by chance."""
    rng, naive, honest = np.random.default_rng(0), [], []
    rounds = np.arange(80)
    true = 0.6 - 0.2 * np.exp(-rounds / 15) - 0.0005 * rounds
    for _ in range(2000):
        noise = rng.normal(0, 0.03, (4, 1)) + rng.normal(0, 0.004, (4, 80)).cumsum(axis=1)
        curves = true + noise
        naive.append(np.mean([one.max() - true[one.argmax()] for one in curves]))
        others = [(curves.sum(axis=0) - one).argmax() for one in curves]
        value = debiased_value(curves.tolist(), ["one"] * 4, [1.0] * 4, 1.0)
        honest.append(value - np.mean(true[others]))
    error = np.std(honest) / np.sqrt(len(honest))
    assert np.mean(naive) > 0.02 > 10 * error
    assert abs(np.mean(honest)) < 4 * error


def test_evaluation_sets_are_a_report_unless_they_are_pooled():
    valid = {"eval_set": (OTHER.x, OTHER.y), "eval_qid": OTHER.qid + 1000}
    plain, shown = fitted(early_stopping_rounds=3), fitted(early_stopping_rounds=3, fit=valid)
    np.testing.assert_array_equal(plain.predict(TASK.x), shown.predict(TASK.x))
    value = shown.score(OTHER.x, OTHER.y, qid=OTHER.qid)
    assert shown.evals_result_ == {"valid_0": {"ndcg@10": [pytest.approx(value)]}}
    more = fitted(early_stopping_rounds=3, pool_eval_set=True, fit=valid)
    assert len(more.oof_scores_) == TASK.n + OTHER.n
    assert np.isfinite(more.oof_scores_).all()
    x, y = np.concatenate([TASK.x, OTHER.x]), np.concatenate([TASK.y, OTHER.y])
    qid = np.concatenate([TASK.qid, OTHER.qid + 1000])
    whole = fitted(early_stopping_rounds=3, x=x, y=y, qid=qid)
    np.testing.assert_allclose(sorted(spread_of(more)), sorted(spread_of(whole)), rtol=0.5)
    with pytest.raises(ParameterError, match="needs eval_set"):
        fitted(pool_eval_set=True)


def spread_of(model):
    return [one.spread for one in model.committee_]


@pytest.mark.parametrize("form", ["pandas", "polars", "sparse"])
def test_pooling_joins_tables_of_every_kind(form):
    polars = pytest.importorskip("polars")
    names = [f"f{at}" for at in range(5)]
    make = {
        "pandas": lambda x: pd.DataFrame(x, columns=names).astype({"f0": "category"}),
        "polars": lambda x: polars.DataFrame(x, schema=names),
        "sparse": csr_matrix,
    }[form]
    valid = {"eval_set": (make(OTHER.x), OTHER.y), "eval_qid": OTHER.qid}  # ids of other queries
    model = fitted(x=make(TASK.x), pool_eval_set=True, fit=valid)
    assert np.isfinite(model.oof_scores_).all()
    assert len(model.oof_scores_) == TASK.n + OTHER.n


@BOTH
def test_rows_may_be_in_any_order(backend):
    model = fitted(backend=backend)
    order = np.random.default_rng(0).permutation(TASK.n)
    again = fitted(backend=backend, x=TASK.x[order], y=TASK.y[order], qid=TASK.qid[order])
    for one in (model, again):
        assert NDCG.score(TASK.y, one.predict(TASK.x), qid=TASK.qid) > 0.7
    mixed = NDCG.score(TASK.y[order], again.oof_scores_, qid=TASK.qid[order])
    assert mixed == pytest.approx(again.oof_value_, abs=1e-6)


@BOTH
def test_weights_clicks_categories_and_preferences_work(backend):
    weight = np.random.default_rng(0).integers(1, 4, len(TASK.sizes)).astype(float)
    rows = np.random.default_rng(1).integers(1, 4, TASK.n).astype(float)
    frame = pd.DataFrame(TASK.x, columns=list("abcde"))
    frame["a"] = frame["a"].astype(int).astype(str).astype("category")
    clicks = (TASK.y > 1).astype(float)
    place = np.concatenate([np.arange(1, size + 1) for size in TASK.sizes])
    bias = gbmrank.clicks.PositionBias(1.0 / np.arange(1, 15))
    graphs = gbmrank.PreferenceGraphs.from_labels(TASK.y, qid=TASK.qid)
    order = np.random.default_rng(2).permutation(TASK.n)
    mixed = gbmrank.PreferenceGraphs.from_labels(TASK.y[order], qid=TASK.qid[order])
    made = {
        "weights": fitted(backend=backend, fit={"sample_weight": weight}),
        "weights of items": fitted(backend=backend, fit={"sample_weight": rows}),
        "categories": fitted(backend=backend, x=frame),
        "preferences": fitted(gbmrank.objective("linear", preferences=graphs), backend),
    }
    where = {"position": place, "position_bias": bias}
    made["clicks"] = fitted(
        "pairwise(target=identity)", backend, metric="dcg@10", y=clicks, fit=where
    )
    for what, model in made.items():
        assert np.isfinite(model.oof_scores_).all(), what
        assert NDCG.score(TASK.y, model.oof_scores_, qid=TASK.qid) > 0.7, what
    apart = fitted(gbmrank.objective("linear", preferences=mixed), backend,
                   x=TASK.x[order], y=TASK.y[order], qid=TASK.qid[order])  # fmt: skip
    assert NDCG.score(TASK.y[order], apart.oof_scores_, qid=TASK.qid[order]) > 0.7


def test_folds_keep_groups_together_and_spread_informative_queries():
    rng = np.random.default_rng(0)
    user = rng.integers(0, 12, len(TASK.sizes))
    groups = Groups.from_qid(TASK.qid, TASK.n)
    told = rng.random(len(TASK.sizes)) < 0.6
    folds = drawn_folds(groups, told, 3, 0, np.repeat(user, TASK.sizes))
    where = [set(np.repeat(user, TASK.sizes)[held]) for _, held in folds]
    assert not where[0] & where[1]
    assert not where[1] & where[2]
    assert not where[0] & where[2]
    plain = drawn_folds(groups, told, 3, 0)
    assert sorted(np.concatenate([held for _, held in plain])) == list(range(TASK.n))
    counts = [told[np.unique(TASK.qid[held])].sum() for _, held in plain]
    assert max(counts) - min(counts) <= 1
    other = drawn_folds(groups, told, 3, 1)
    assert not np.array_equal(plain[0].held_out, other[0].held_out)


def test_copies_in_another_fold_are_found():
    twice = np.concatenate([TASK.x, TASK.x[::-1]])
    y, qid = (
        np.concatenate([TASK.y, TASK.y[::-1]]),
        np.concatenate([TASK.qid, 1000 + TASK.qid[::-1]]),
    )
    with pytest.warns(LeakageWarning, match="features of a query in another fold"):
        fitted(x=twice, y=y, qid=qid, n_estimators=1)
    fitted(x=twice, y=y, qid=qid, n_estimators=1, fit={"fold_groups": qid % 1000})


def test_splitters_cut_the_rows():
    model = fitted(folds=3, fit={"splitter": GroupKFold(3)})
    assert np.isfinite(model.oof_scores_).all()
    half = TASK.n // 2
    start = int(TASK.qid[half])
    late = np.flatnonzero(TASK.qid >= start)
    early = np.flatnonzero(TASK.qid < start)
    ends = [np.flatnonzero(TASK.qid < start + more) for more in (0, 10)]
    pairs = [(ends[0], np.setdiff1d(ends[1], ends[0])), (ends[1], np.setdiff1d(late, ends[1]))]
    ordered = fitted(folds=2, fit={"splitter": pairs})
    assert np.isnan(ordered.oof_scores_[early]).all()
    assert np.isfinite(ordered.oof_scores_[late]).all()
    with pytest.raises(ParameterError, match="yields 3 folds, but folds=4"):
        fitted(fit={"splitter": GroupKFold(3)})
    odd = [(np.arange(0, TASK.n, 2), np.arange(1, TASK.n, 2)), (np.arange(1, TASK.n, 2),
           np.arange(0, TASK.n, 2))]  # fmt: skip
    with pytest.warns(LeakageWarning, match=r"both parts of a fold, such as \d+, so"):
        fitted(folds=2, fit={"splitter": odd})


@pytest.mark.parametrize(
    ("options", "fit", "error", "says"),
    [
        ({"folds": 1}, {}, ParameterError, "at least 2"),
        ({"folds": 2.0}, {}, ParameterError, "at least 2"),
        ({"folds": None}, {"fold_groups": TASK.qid}, ParameterError, "needs folds="),
        ({"folds": None, "pool_eval_set": True}, {}, ParameterError, "needs folds="),
        ({}, {"init_model": fitted(folds=None, n_estimators=1)}, ConfigError, "init_model="),
        ({}, {"fold_groups": np.arange(TASK.n)}, DataError, "different groups"),
        ({}, {"fold_groups": [1, 2]}, DataError, "2 entries"),
        ({}, {"splitter": [([0], [1]), ([0], [TASK.n])]}, DataError, "row numbers"),
        ({}, {"splitter": [0, 1]}, DataError, "two separate parts"),
        ({}, {"splitter": "GroupKFold"}, ParameterError, "got 'GroupKFold'"),
        ({}, {"splitter": 4}, ParameterError, "got 4"),
        ({"boosting": "dart", "early_stopping_rounds": 3}, {}, ConfigError, "dart"),
    ],
)
def test_what_does_not_fit_folds_is_rejected(options, fit, error, says):
    with pytest.raises(error, match=says):
        fitted(fit=fit, **options)


def test_few_queries_are_rejected_or_warned_of():
    few, some = TASK.rows(0, 4), TASK.rows(0, 30)
    with pytest.raises(DataError, match=r"only . queries"):
        fitted(x=few.x, y=few.y, qid=few.qid)
    with pytest.warns(GbmrankWarning, match="rounds are chosen by chance"):
        fitted(x=some.x, y=some.y, qid=some.qid)


def test_metrics_of_preferences_and_of_clicks_are_rejected():
    graphs = gbmrank.PreferenceGraphs.from_labels(TASK.y, qid=TASK.qid)
    with pytest.raises(ParameterError, match="preferences between given rows"):
        fitted(metric=gbmrank.metric("pairwise_disagreement", preferences=graphs))
    place = np.concatenate([np.arange(1, size + 1) for size in TASK.sizes])
    bias = gbmrank.clicks.PositionBias(1.0 / np.arange(1, 15))
    with pytest.raises(ParameterError, match="cannot be estimated from clicks"):
        fitted("linear", y=(TASK.y > 1) * 1.0, fit={"position": place, "position_bias": bias})


@BOTH
def test_saving_cloning_and_fitting_again(backend, tmp_path):
    model = fitted(backend=backend, early_stopping_rounds=3)
    model.save(tmp_path / FILES[backend])
    again = gbmrank.load(tmp_path / FILES[backend])
    np.testing.assert_array_equal(again.predict(TASK.x), model.predict(TASK.x))
    assert again.folds == 4
    assert again.committee_ == model.committee_
    assert not hasattr(again, "oof_scores_")
    assert clone(model).get_params() == model.get_params()
    model.set_params(folds=None, early_stopping_rounds=None).fit(TASK.x, TASK.y, qid=TASK.qid)
    assert not hasattr(model, "oof_scores_")
    assert not hasattr(model, "committee_")


def test_the_error_of_a_gradient_has_no_model_of_one_member():
    with pytest.raises(NumericError) as found:
        fitted("comparison(loss=exponential)", learning_rate=1e6, n_estimators=50)
    assert found.value.model is None


def test_dask_says_why_it_has_no_folds():
    pytest.importorskip("distributed")
    from gbmrank.api.training_plans import training_plan
    from gbmrank.distributed.rules import check_for_cluster

    plan = training_plan("pairwise", "ndcg@10", params={"folds": 4})
    with pytest.raises(ConfigError, match="folds= is not supported on Dask"):
        check_for_cluster(plan, "Dask", weighted=False)
    with pytest.raises(ParameterError, match="only GBMRanker does"):
        gbmrank.dask.DaskGBMRanker().fit(TASK.x, TASK.y, qid=TASK.qid, fold_groups=TASK.qid)


@pytest.mark.nightly
@pytest.mark.parametrize("objective", ["native:lambdarank", "committee"])
def test_the_value_out_of_fold_is_that_of_the_members_on_new_queries(objective, monkeypatch):
    """With 25 queries a fold, the best round of each fold overrates a member by 0.02."""
    members: list[Any] = []
    fresh = demo_data(n_queries=1500, seed=999)
    merge = committee.combined

    def recorded(plan, each, trained, spreads):
        members[:] = trained
        return merge(plan, each, trained, spreads)

    monkeypatch.setattr(crossfit, "combined", recorded)
    naive, honest = [], []
    for seed in range(24):
        data = demo_data(n_queries=100, seed=seed)
        model = GBMRanker(
            objective, folds=4, n_estimators=100, early_stopping_rounds=20, n_jobs=1, seed=seed
        ).fit(data.X, data.labels, qid=data.qid)
        scores = [one.fitted.scores(fresh.X) for one in members]
        true = np.mean([NDCG.score(fresh.labels, one, qid=fresh.qid) for one in scores])
        best = [one.values["out of fold"]["ndcg@10"] for one in model.committee_]
        naive.append(np.mean(best) - true)
        honest.append(model.oof_value_ - true)
    error = np.std(honest) / np.sqrt(len(honest))
    assert np.mean(naive) > 2 * error
    assert abs(np.mean(honest)) < 3 * error
