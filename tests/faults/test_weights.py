"""Weights of the wrong number or kind."""

import numpy as np
import pytest
from xgboost.core import XGBoostError

import gbmrank
from gbmrank.errors import DataError, GbmrankWarning, WeightError
from tests.faults.interfaces import BACKENDS, TASK, data_set, fit, ranker, train

BOTH = pytest.mark.parametrize("backend", BACKENDS)
QUERIES = len(TASK.sizes)


def weighted(backend, weight, objective="ranknet"):
    return ranker(backend, objective).fit(TASK.x, TASK.y, qid=TASK.qid, sample_weight=weight)


@pytest.mark.fault(
    "one weight per query, or one per row", promise="both are taken, and mean the same"
)
@BOTH
def test_weights_of_both_kinds(backend):
    weight = np.linspace(0.5, 2.0, QUERIES)
    one = weighted(backend, weight).predict(TASK.x)
    other = weighted(backend, np.repeat(weight, TASK.sizes)).predict(TASK.x)
    assert one.tolist() == other.tolist()
    assert one.tolist() != fit(backend).predict(TASK.x).tolist()


@pytest.mark.fault(
    "weights of another length", promise="`WeightError` with both lengths that would do"
)
@BOTH
def test_weights_of_another_length(backend):
    with pytest.raises(WeightError, match=rf"7 entries; .* \({QUERIES}\) or .* \({TASK.n}\)"):
        weighted(backend, np.ones(7))


@pytest.mark.fault(
    "a weight that is negative, NaN or infinite, or all weights zero", promise="`WeightError`"
)
@BOTH
@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_weights_that_are_none(backend, bad):
    weight = np.ones(QUERIES)
    weight[3] = bad
    with pytest.raises(WeightError, match=rf"at least 0; got {bad} at index 3"):
        weighted(backend, weight)
    with pytest.raises(WeightError, match="all weights are zero"):
        weighted(backend, np.zeros(QUERIES))
    with pytest.raises(WeightError, match="at least 0"):
        gbmrank.metric("ndcg").score(TASK.y, TASK.y, group=TASK.sizes, weight=weight)


@pytest.mark.fault(
    "weights that are all zero in float32, in which boosters keep them",
    promise="`WeightError` with the largest one: multiply them",
)
@BOTH
def test_weights_that_vanish(backend):
    with pytest.raises(WeightError, match=r"1e-50.*float32"):
        weighted(backend, np.full(QUERIES, 1e-50))


@pytest.mark.fault(
    "a weight that is NaN for a whole query of a `lightgbm.Dataset`, of which LightGBM makes 0",
    promise="a warning that some weights are 0; `GBMRanker` rejects NaN, and takes 0",
)
def test_nan_as_the_weight_of_a_query():
    weight = np.ones(QUERIES)
    weight[3] = np.nan
    stored = data_set("lightgbm", weight=weight).construct()
    assert not stored.get_weight()[TASK.qid == 3].any()
    assert not np.isnan(stored.weight).any()  # what was given is nowhere to be seen
    with pytest.warns(GbmrankWarning, match=r"weights.*\b0\b.*NaN"):
        train("lightgbm", "ranknet", data_set("lightgbm", weight=weight))
    with pytest.raises((WeightError, XGBoostError), match=r"at least 0|must be positive"):
        train("xgboost", "ranknet", data_set("xgboost", weight=weight))
    weight[3] = 0.0
    weighted("lightgbm", weight)


@pytest.mark.fault(
    "a negative weight in the booster's own data set",
    promise="`WeightError` in the first round, unless the booster rejects it first",
)
@BOTH
def test_bad_weights_in_the_data_sets_of_boosters(backend):
    weight = np.ones(QUERIES)
    weight[3] = -1.0
    with pytest.raises((WeightError, XGBoostError), match=r"at least 0|must be positive"):
        train(backend, "ranknet", data_set(backend, weight=weight))


@pytest.mark.fault(
    "an infinite weight in LightGBM's own data set",
    promise="`WeightError` with the row and its query, though LightGBM stores 1e38 for it",
)
def test_infinite_weights_in_lightgbm():
    weight = np.ones(QUERIES)
    weight[3] = np.inf
    row = int(TASK.sizes[:3].sum())
    with pytest.raises(WeightError, match=rf"row {row}, query 3"):
        train("lightgbm", "ranknet", data_set("lightgbm", weight=weight))


@pytest.mark.fault(
    "weights beside `booster='gblinear'` in XGBoost, which reads beyond them",
    promise="`WeightError` in `GBMRanker`; in XGBoost's own API scores that are NaN stop the "
    "training with an error that names the cause, others give no sign",
)
@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning")  # gblinear, from 3.4 on
def test_weights_of_linear_models():
    with pytest.raises(WeightError, match="gblinear"):
        ranker("xgboost", booster="gblinear").fit(
            TASK.x, TASK.y, qid=TASK.qid, sample_weight=np.ones(QUERIES)
        )
    fit("xgboost", booster="gblinear")
    objective, rows = gbmrank.objective("ranknet"), data_set("xgboost")
    with pytest.raises(DataError, match=r"nan.*gblinear"):
        objective(np.full(TASK.n, np.nan), rows)


@pytest.mark.fault(
    "weights that differ within a query",
    promise="weights of items in `pairwise`, `comparison`, `swap`, `pointwise`, `query_rmse`; else "
    "`WeightError` that names the query and these",
)
def test_weights_that_differ_within_a_query():
    weight = np.linspace(1, 2, TASK.n)
    for backend in ("lightgbm", "xgboost"):
        weighted(backend, weight)
        with pytest.raises(WeightError, match="rows of query 0 have different weights"):
            weighted(backend, weight, "softmax")
    with pytest.raises(WeightError, match="rows of query 0 have different weights"):
        gbmrank.metric("ndcg").score(TASK.y, np.zeros(TASK.n), qid=TASK.qid, weight=weight)
    grad, _ = gbmrank.objective("pointwise(loss=squared, target=dcg)").gradients(
        [1, 0], [0.0, 1.0], weight=[3.0, 5.0]
    )
    assert grad.tolist() == [2 * 3 * (0 - 1), 2 * 5 * (1 - 0)]
