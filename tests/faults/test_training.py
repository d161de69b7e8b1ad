"""Gradients, scores and settings that would spoil a model without a word."""

import logging
import os
import re
from dataclasses import dataclass
from typing import Any, ClassVar

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import gbmrank
from gbmrank.boosters.gradients import in_training, training_gradients
from gbmrank.clicks import PositionBias
from gbmrank.errors import (
    ConfigError,
    DataError,
    GbmrankWarning,
    LabelRangeError,
    LimitError,
    NoProgressWarning,
    NumericError,
    ParameterError,
)
from gbmrank.extend import AbstractBound, AbstractObjective
from tests.faults.interfaces import BACKENDS, OTHER, OTHER_QID, TASK, data_set, fit, ranker, train
from tests.ranking_tasks import Task, run_python

BOTH = pytest.mark.parametrize("backend", BACKENDS)


@pytest.mark.fault(
    "a gradient or Hessian that is not finite",
    promise="`NumericError` with the objective, the call, the row and the query; an estimator "
    "keeps the model so far in `error.model`",
)
@BOTH
def test_gradients_that_are_not_finite(backend):
    with pytest.raises(NumericError) as caught:
        fit(backend, "rankboost", n_estimators=40, learning_rate=2000.0)
    message = str(caught.value)
    assert message.startswith("comparison(loss=exponential): gradient ")
    for part in ("Hessian", "in row", "query", "call", "lower the learning rate"):
        assert part in message
    rounds = int(message.partition("call ")[2].partition(";")[0]) - 1
    so_far = caught.value.model
    assert isinstance(so_far, gbmrank.GBMRanker)
    grown = fit(backend, "rankboost", n_estimators=rounds, learning_rate=2000.0)
    assert so_far.predict(TASK.x).tolist() == grown.predict(TASK.x).tolist()
    with pytest.raises(NumericError, match=r"comparison\(loss=exponential\): gradient"):
        train(backend, "rankboost", data_set(backend), rounds=40, learning_rate=2000.0)


class _Bent(AbstractBound):
    """Gradient one; Hessian 1, 0, -1 by turns."""

    def fill(self, scores, out, *, single):
        out.grad[:] = 1.0
        out.hess[:] = 1.0 - np.arange(len(scores)) % 3

    def losses(self, scores):
        return np.zeros(self.groups.n_queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bent(AbstractObjective):
    name: ClassVar[str] = "bent_hessian"
    hessian_trait: ClassVar[str] = "heuristic"  # type: ignore[assignment]

    def bind(self, data):
        return _Bent(data.groups)


@pytest.mark.fault(
    "a Hessian of zero or below",
    promise="raised to a floor per query, a thousandth of its mean curvature, or of its mean slope "
    "where that is less than its curvature at equal scores; the number of rows is logged by "
    "`gbmrank` at level DEBUG",
)
def test_hessians_below_the_floor(caplog):
    bound = Bent().bind(gbmrank.RankingData.from_arrays(np.zeros(6), group=[6]))
    with caplog.at_level(logging.DEBUG, logger="gbmrank"):
        _, hess = training_gradients(in_training(bound), np.zeros(6), "bent_hessian", 3)
    assert hess.tolist() == pytest.approx([1.0, 1e-3, 1e-3] * 2)
    assert "bent_hessian: call 3: the Hessian of 4 of 6 rows was raised" in caplog.text


@pytest.mark.fault(
    "a model without a split, or scores that are all tied after training",
    promise="`NoProgressWarning` with the likely cause, after training and never at round 0",
)
@BOTH
def test_a_constant_model(backend):
    flat = Task(np.ones_like(TASK.x), TASK.y, TASK.sizes)
    with pytest.warns(NoProgressWarning, match="features that are constant within a query") as w:
        model = fit(backend, task=flat, n_estimators=3)
    assert len(w) == 1
    scores = model.predict(flat.x)
    assert len(set(scores.tolist())) == 1
    few = {"lightgbm": "min_sum_hessian_in_leaf", "xgboost": "min_child_weight"}[backend]
    with pytest.warns(NoProgressWarning, match=rf"{few}=1e\+06 is too large"):
        ranker(backend, **{few: 1e6}).fit(TASK.x, TASK.y, qid=TASK.qid)


@pytest.mark.fault(
    "features that are all 0",
    promise="`NoProgressWarning`, or in LightGBM `DataError`: no feature differs",
)
@BOTH
def test_features_that_are_all_zero(backend):
    flat = Task(np.zeros_like(TASK.x), TASK.y, TASK.sizes)
    if backend == "lightgbm":
        with pytest.raises(DataError, match="nothing to learn: LightGBM finds every feature"):
            fit(backend, task=flat)
    else:
        with pytest.warns(NoProgressWarning, match="features that are constant within a query"):
            fit(backend, task=flat)


@pytest.mark.fault(
    "scores as large as 10,000",
    promise="losses with bounded slope are right; exponential ones raise `NumericError` in "
    "training; on arrays they are clipped at `exp(700)`, or raise it too (push), never infinite",
)
@BOTH
def test_huge_scores(backend):
    start = np.where(np.arange(TASK.n) % 2, 1e4, -1e4)
    rows = data_set(backend, start=start)
    if backend == "lightgbm":
        rows.construct()
    for name in ("ranknet", "ranksvm", "pairwise(target=ndcg@10)", "softmax", "listmle"):
        for column in gbmrank.objective(name)(start, rows):
            assert np.isfinite(column).all()
    with pytest.raises(NumericError, match="scores range from -10000 to 10000"):
        gbmrank.objective("rankboost")(start, rows)
    grad, _ = gbmrank.objective("ranknet(normalize=none)").gradients([1, 0], [-1e4, 1e4])
    assert grad.tolist() == [-1.0, 1.0]
    grad, _ = gbmrank.objective("rankboost(normalize=none)").gradients([1, 0], [-1e4, 1e4])
    assert grad.tolist() == [-np.exp(700.0), np.exp(700.0)]


@pytest.mark.fault(
    "`eta` below the utilities of long queries, such as `pointwise(target=spearman, eta=4)`",
    promise="`LabelRangeError` with the query, the utility and `eta`; shorter queries train",
)
@BOTH
def test_utilities_beyond_eta(backend):
    made = ranker(backend, "pointwise(target=spearman, eta=4)", metric="spearman")
    made.set_params(early_stopping_rounds=2)
    watched: Any = {"eval_set": [(OTHER.x, OTHER.y)], "eval_qid": [OTHER_QID]}
    with pytest.raises(LabelRangeError, match=r"target=spearman in query .* outside 0..eta=4"):
        made.fit(TASK.x, TASK.y, qid=TASK.qid, **watched)
    short = np.repeat(np.arange(TASK.n // 4), 4)
    x, y = TASK.x[: len(short)], TASK.y[: len(short)]
    assert made.fit(x, y, qid=short, **watched).best_iteration_ >= 0


@pytest.mark.fault(
    "`bagging_by_query` with a custom objective in LightGBM",
    promise="the estimator draws queries itself; LightGBM's own would train a wrong model, and "
    "`booster_params` switches it off and says why",
)
def test_bagging_by_query():
    bagged: Any = {"bagging_by_query": True, "bagging_fraction": 0.5, "bagging_freq": 1}
    model = fit("lightgbm", n_estimators=30, min_data_in_leaf=2, **bagged)
    assert model.score(TASK.x, TASK.y, qid=TASK.qid) > 0.9
    again = fit("lightgbm", n_estimators=30, min_data_in_leaf=2, **bagged)
    assert again.predict(TASK.x).tolist() == model.predict(TASK.x).tolist()
    whole = fit("lightgbm", n_estimators=30, min_data_in_leaf=2)
    assert whole.predict(TASK.x).tolist() != model.predict(TASK.x).tolist()
    params = gbmrank.booster_params("ranknet", "lightgbm")
    assert params["bagging_by_query"] is False
    assert "wrong model" in str(params)
    table = {"verbose": -1}
    rows = lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes, params=table)
    with pytest.raises(ConfigError, match="trains a wrong model when bagging_by_query is on"):
        lgb.train({**table, "objective": gbmrank.objective("ranknet"), **bagged}, rows, 1)
    bagged["bagging_freq"] = 0  # nothing is drawn
    rows = lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes, params=table)
    lgb.train({**table, "objective": gbmrank.objective("ranknet"), **bagged}, rows, 1)


@pytest.mark.fault(
    "`boosting=rf`, or `refit`, with a custom objective in LightGBM",
    promise="`ConfigError` with the reason",
)
def test_random_forests_and_refit():
    for name in ("boosting", "boosting_type"):
        with pytest.raises(ConfigError, match="random forests only for its own objectives"):
            ranker("lightgbm", **{name: "rf"}).fit(TASK.x, TASK.y, qid=TASK.qid)
    with pytest.raises(ConfigError, match="cannot refit"):
        ranker("lightgbm", task="refit").fit(TASK.x, TASK.y, qid=TASK.qid)


@pytest.mark.fault(
    "a parameter that the booster does not have, for `GBMRanker`, `PairRanker` or `compare`",
    promise="`ConfigError` before training, with the name that was meant",
)
@pytest.mark.parametrize("made", [gbmrank.GBMRanker, gbmrank.PairRanker])
@pytest.mark.parametrize(("backend", "name"), [("lightgbm", "numleaves"), ("xgboost", "maxleaves")])
def test_parameters_that_do_not_exist(made, backend, name):
    words = f"{backend} has no parameter '{name}'; did you mean {name[:3]}_leaves?"
    with pytest.raises(ConfigError, match=re.escape(words)):
        made(backend=backend, **{name: 3}).fit(TASK.x, TASK.y, qid=TASK.qid)
    with pytest.raises(ConfigError, match=re.escape(words)):
        gbmrank.compare(
            (TASK.x, TASK.y, TASK.qid),
            objectives=["ranknet"],
            metrics="ndcg@10",
            backends=[backend],
            params={name: 3},
        )


@pytest.mark.fault(
    "a query of 50,000 rows and more",
    promise="summed in linear time, or by a formula, in both boosters",
)
@pytest.mark.parametrize(
    ("backend", "name"),
    [
        ("lightgbm", "ranknet"),
        ("xgboost", "rankboost"),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (("xgboost", "ranknet"), ("lightgbm", "rankboost"), ("lightgbm", "ranksvm"))
        ),
    ],
)
def test_a_long_query(backend, name):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50_000, 2))
    labels = (x[:, 0] + rng.normal(size=len(x)) > 1).astype(float)
    if backend == "lightgbm":
        rows = lgb.Dataset(x, labels, group=[len(x)])
    else:
        rows = xgb.DMatrix(x, labels, qid=np.zeros(len(x), int))
    scores = train(backend, name, rows, rounds=2).predict(
        x if backend == "lightgbm" else xgb.DMatrix(x)
    )
    assert gbmrank.metric("auc").score(labels, scores, group=[50_000]) > 0.6


@pytest.mark.fault(
    "a query too long for a loss that has no fast sum",
    promise="`LimitError` with the estimated time of a round and the limit",
)
def test_a_query_that_is_too_long():
    @gbmrank.register_loss
    def bent_at_zero(z):
        return abs(z) - z, (-2.0 if z < 0 else 0.0), 0.0

    made = gbmrank.objective("pairwise", loss="bent_at_zero", target="dcg")
    with pytest.raises(LimitError, match=r"about 135 s per round; the limit is 200,000 items"):
        made.gradients(np.ones(300_000), np.zeros(300_000), group=[300_000])


@pytest.mark.fault(
    "more trainings at once than processors",
    promise="`n_jobs` bounds the booster's threads and ours, `set_num_threads` (or "
    "`GBMRANK_NUM_THREADS`) ours; models do not depend on how many of ours there are",
)
@BOTH
def test_threads_do_not_change_results(backend):
    found = []
    for threads in (1, 2):
        gbmrank.set_num_threads(threads)
        assert gbmrank.get_num_threads() == threads
        found.append(fit(backend).predict(TASK.x).tolist())
    assert found[0] == found[1]


FORKED = """
import multiprocessing, warnings
from tests.faults.interfaces import TASK, fit
warnings.simplefilter("ignore", DeprecationWarning)  # about threads and fork, later than 3.11
here = fit({backend!r}).predict(TASK.x)

def child():
    assert fit({backend!r}).predict(TASK.x).tolist() == here.tolist()

process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join(60)
print(process.exitcode)
process.kill()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.fault(
    "a training in a forked process, after one in its parent",
    promise="works with `n_jobs=1` in LightGBM, and in XGBoost where `OMP_NUM_THREADS=1`; OpenMP's "
    "threads do not survive a fork, so spawn processes otherwise",
)
@pytest.mark.parametrize(
    ("backend", "threads"),
    [("lightgbm", "2"), pytest.param("xgboost", "1", marks=pytest.mark.nightly)],
)
def test_a_forked_process(backend, threads):
    assert run_python(FORKED.format(backend=backend), OMP_NUM_THREADS=threads) == "0"


@pytest.mark.fault(
    "the same training twice", promise="the same model, bit by bit, for the same seed and threads"
)
@BOTH
def test_the_same_model_again(backend):
    sampling: Any = {
        "lightgbm": {"bagging_fraction": 0.7, "bagging_freq": 1, "deterministic": True},
        "xgboost": {"subsample": 0.7},
    }[backend]
    one, same, other = (
        fit(backend, n_estimators=5, seed=seed, **sampling).predict(TASK.x).tolist()
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


@pytest.mark.fault(
    "early stopping without an evaluation set", promise="`ConfigError` before training"
)
@BOTH
def test_early_stopping_with_nothing_to_watch(backend):
    with pytest.raises(ConfigError, match="needs a validation set"):
        fit(backend, "pairwise", early_stopping_rounds=3)
    model = ranker(backend, "pairwise", early_stopping_rounds=2, n_estimators=4).fit(
        TASK.x, TASK.y, qid=TASK.qid, eval_set=(OTHER.x, OTHER.y), eval_qid=OTHER_QID
    )
    assert 0 <= model.best_iteration_ < 4


CLICKS = (TASK.y > TASK.y.mean()).astype(float)
PLACES = np.arange(TASK.n) % 5 + 1
BIAS = PositionBias.decaying(5)


@pytest.mark.fault(
    "positions of clicks that are missing, fractional, below 1 or beyond the bias, in training",
    promise="`DataError` with row and value, before any tree",
)
@pytest.mark.parametrize("bad", [0, -3, 2.5, np.nan, 6])
def test_wrong_positions_in_training(bad):
    places = PLACES.astype(float)
    places[7] = bad
    given: dict[str, Any] = {"position": places, "position_bias": BIAS}
    model = ranker("lightgbm", "query_rmse")
    with pytest.raises(DataError, match=r"\b7\b"):
        model.fit(TASK.x, CLICKS, qid=TASK.qid, **given)
    with pytest.raises(DataError, match=r"\b7\b"):
        gbmrank.objective("query_rmse").bind_rows(**given)


@pytest.mark.fault(
    "a position bias with an objective that is not linear in relevance, or positions without it",
    promise="`ParameterError` that names `pairwise(target=identity)`, or what is missing",
)
@BOTH
def test_a_position_bias_that_cannot_be_used(backend):
    both: dict[str, Any] = {"position": PLACES, "position_bias": BIAS}
    for objective in ("ranknet", "lambdarank", "softmax"):
        with pytest.raises(ParameterError, match=r"pairwise\(target=identity\)"):
            ranker(backend, objective).fit(TASK.x, CLICKS, qid=TASK.qid, **both)
    with pytest.raises(ParameterError, match="go together"):
        ranker(backend, "query_rmse").fit(TASK.x, CLICKS, qid=TASK.qid, position=PLACES)


@pytest.mark.fault(
    "a target that divides by what was clicked (`ndcg`, `recall`, `map`, `auc`), with positions",
    promise="one warning that it is not exact, and which targets are",
)
def test_a_target_with_a_normaliser_of_clicks():
    both: dict[str, Any] = {"position": PLACES, "position_bias": BIAS}
    with pytest.warns(GbmrankWarning, match="target=ndcg is normalised by the clicks"):
        ranker("lightgbm", "pairwise").fit(TASK.x, CLICKS, qid=TASK.qid, **both)
