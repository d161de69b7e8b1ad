"""Columns of the training rows that come with an objective."""

import copy
import pickle

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import gbmrank
from gbmrank.errors import ConfigError, ParameterError, WeightError
from tests.ranking_tasks import make_task

TASK = make_task(seed=0)
WEIGHT = np.random.default_rng(1).uniform(0.0, 2.0, TASK.n)
PAIRWISE = gbmrank.objective("pairwise")
XGB = {**gbmrank.booster_params(PAIRWISE, "xgboost"), "max_depth": 3, "nthread": 1}
LGB = {**gbmrank.booster_params(PAIRWISE, "lightgbm"), "verbose": -1, "num_threads": 1}


def matrix(**more):
    return xgb.DMatrix(TASK.x, TASK.y, group=TASK.sizes, **more)


def test_xgboost_trains_with_weights_of_items():
    made = xgb.train(XGB, matrix(), 5, obj=PAIRWISE.bind_rows(weight=WEIGHT))
    ranker = gbmrank.GBMRanker(
        "pairwise", "xgboost", n_estimators=5, n_jobs=1, max_depth=3, tree_method="exact"
    ).fit(TASK.x, TASK.y, qid=TASK.qid, sample_weight=WEIGHT)
    exact = xgb.train(
        {**XGB, "tree_method": "exact"}, matrix(), 5, obj=PAIRWISE.bind_rows(weight=WEIGHT)
    )
    np.testing.assert_allclose(exact.predict(matrix()), ranker.predict(TASK.x), rtol=1e-5)
    plain = xgb.train(XGB, matrix(), 5, obj=PAIRWISE)
    assert not np.allclose(made.predict(matrix()), plain.predict(matrix()))


def test_lightgbm_trains_as_with_weights_of_the_data_set():
    rows = lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes, weight=WEIGHT.astype(np.float32))
    own = lgb.train({**LGB, "objective": PAIRWISE}, rows, 5)
    bound = PAIRWISE.bind_rows(weight=WEIGHT.astype(np.float32))
    rows = lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes)
    made = lgb.train({**LGB, "objective": bound}, rows, 5)
    assert made.predict(TASK.x).tolist() == own.predict(TASK.x).tolist()


def test_folds_of_lightgbm_have_their_own_rows():
    rows = lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes, free_raw_data=False)
    objective = PAIRWISE.bind_rows(weight=WEIGHT)
    taken = np.flatnonzero(TASK.qid % 2 == 0)
    subset = rows.construct().subset(taken).construct()
    scores = np.linspace(0.0, 1.0, subset.num_data())
    grad, _ = objective(scores, subset)
    expected, _ = PAIRWISE.gradients(
        TASK.y[taken], scores, qid=TASK.qid[taken], weight=WEIGHT[taken]
    )
    np.testing.assert_allclose(grad, expected, rtol=1e-4, atol=1e-6)


def test_weights_of_queries_are_taken_too():
    weight = np.linspace(0.5, 2.0, len(TASK.sizes))
    scores = np.linspace(0.0, 1.0, TASK.n)
    bound = PAIRWISE.bind_rows(weight=weight).gradients(TASK.y, scores, qid=TASK.qid)
    given = PAIRWISE.gradients(TASK.y, scores, qid=TASK.qid, weight=weight)
    assert bound[0].tolist() == given[0].tolist()


def test_it_is_a_value_like_other_objectives():
    bound = PAIRWISE.bind_rows(weight=WEIGHT)
    assert str(bound) == str(PAIRWISE)
    assert bound != PAIRWISE
    assert copy.deepcopy(bound) is bound
    again = pickle.loads(pickle.dumps(bound))  # noqa: S301
    scores = np.linspace(0.0, 1.0, TASK.n)
    for one, other in zip(
        again.gradients(TASK.y, scores, qid=TASK.qid),
        bound.gradients(TASK.y, scores, qid=TASK.qid),
        strict=True,
    ):
        assert one.tolist() == other.tolist()
    whole = gbmrank.objective(bound, normalize="none")  # keeps its rows
    assert whole.gradients(TASK.y, scores, qid=TASK.qid)[0].tolist() != (
        gbmrank.objective(PAIRWISE, normalize="none")
        .gradients(TASK.y, scores, qid=TASK.qid)[0]
        .tolist()
    )


def test_what_is_wrong_is_said():
    with pytest.raises(ParameterError, match="no column"):
        PAIRWISE.bind_rows()
    for bad in (-1.0, np.nan, np.inf, 1e200):
        with pytest.raises(WeightError, match="at index 3"):
            PAIRWISE.bind_rows(weight=np.where(np.arange(TASK.n) == 3, bad, 1.0))
    with pytest.raises(WeightError, match="all weights are zero"):
        PAIRWISE.bind_rows(weight=np.zeros(TASK.n))
    with pytest.raises(WeightError, match=rf"7 entries.*{TASK.n}"):
        PAIRWISE.bind_rows(weight=np.ones(7))(np.zeros(TASK.n), matrix())
    with pytest.raises(WeightError, match="set twice"):
        PAIRWISE.bind_rows(weight=WEIGHT)(np.zeros(TASK.n), matrix(weight=np.ones(len(TASK.sizes))))
    with pytest.raises(ConfigError, match="sample_weight"):
        gbmrank.GBMRanker(PAIRWISE.bind_rows(weight=WEIGHT)).fit(TASK.x, TASK.y, qid=TASK.qid)
    with pytest.raises(ParameterError, match="bind rows to the mix"):
        gbmrank.mix(PAIRWISE.bind_rows(weight=WEIGHT), "ranknet")
