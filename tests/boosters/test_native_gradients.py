"""Our swap objectives against the gradients that the boosters' own objectives have.

The boosters do not show their gradients, but their first tree does: the leaf of the rows R is
``-sum g / (sum h + L)`` with a penalty L, and several penalties tell gradient and Hessian apart.
"""

import lightgbm
import numpy as np
import pytest
import xgboost

import gbmrank
from gbmrank.demo_data import demo_data

RNG = np.random.default_rng(1)
SIZES = [9, 7, 12]
LABELS = RNG.integers(0, 5, sum(SIZES)).astype(float)
SCORES = RNG.normal(size=sum(SIZES))
ROWS = np.arange(len(LABELS), dtype=float)[:, None]
PENALTIES = (0.0, 0.05, 1.0)


def lightgbm_leaves(penalty, k, norm, scores):
    params = {
        "objective": "lambdarank",
        "lambdarank_norm": norm,
        "lambdarank_truncation_level": k,
        "num_leaves": 10,
        "min_data_in_leaf": 2,  # it estimates counts from Hessians
        "min_data_in_bin": 1,
        "min_sum_hessian_in_leaf": 1e-2,
        "lambda_l2": penalty,
        "learning_rate": 1.0,
        "verbose": -1,
        "num_threads": 1,
    }
    data = lightgbm.Dataset(ROWS, LABELS, group=SIZES, init_score=scores)
    booster = lightgbm.train(params, data, 1)
    return booster.predict(ROWS, raw_score=True), booster.predict(ROWS, pred_leaf=True)[:, 0]


def xgboost_leaves(penalty, norm):
    params = {
        "objective": "rank:ndcg",
        "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": max(SIZES),
        "lambdarank_normalization": norm,
        "lambdarank_score_normalization": norm,
        "tree_method": "exact",
        "max_depth": 40,
        "min_child_weight": 0.0,
        "reg_lambda": penalty,
        "eta": 1.0,
        "base_score": 0.0,
        "verbosity": 0,
        "nthread": 1,
    }
    data = xgboost.DMatrix(ROWS, LABELS, base_margin=SCORES)
    data.set_group(SIZES)
    booster = xgboost.train(params, data, 1)
    rows = xgboost.DMatrix(ROWS)
    return booster.predict(rows, output_margin=True), booster.predict(rows, pred_leaf=True)


def leaves_of(grad, hess, penalty, leaves):
    """The value that each row's leaf has when the boosters sum these gradients."""
    values = np.empty(len(grad))
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        values[rows] = -grad[rows].sum() / (hess[rows].sum() + penalty)
    return values


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("k", [30, 3])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_lightgbm_has_the_same_gradients(k, penalty, norm):
    made = gbmrank.objective("lambdarank", k=k, norm=norm)
    grad, hess = made.gradients(LABELS, SCORES, group=SIZES)
    found, leaves = lightgbm_leaves(penalty, k, norm, SCORES)
    assert len(np.unique(leaves)) > 3
    expected = leaves_of(grad, hess, penalty, leaves)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-4)  # its sigmoid is a table


@pytest.mark.parametrize("norm", [False, True])
def test_lightgbm_has_the_same_gradients_where_scores_tie(norm):
    """It sorts stably: ties=index."""
    tied = np.round(SCORES)
    tied[SIZES[0] : SIZES[0] + SIZES[1]] = 0.5  # one query of equal scores
    metric = "positional(utility=ndcg@5, ties=index)"
    made = gbmrank.objective("swap", metric=metric, truncation=5, norm=norm)
    grad, hess = made.gradients(LABELS, tied, group=SIZES)
    found, leaves = lightgbm_leaves(0.05, 5, norm, tied)
    expected = leaves_of(grad, hess, 0.05, leaves)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_xgboost_has_the_same_gradients_and_twice_the_hessian(penalty, norm):
    made = gbmrank.objective("lambdarank", norm=norm)
    grad, hess = made.gradients(LABELS, SCORES, group=SIZES)
    found, leaves = xgboost_leaves(penalty, norm)
    assert len(np.unique(leaves)) > 3
    expected = leaves_of(grad, 2.0 * hess, penalty, leaves)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-4)


def test_lightgbm_trains_the_same_trees():
    """Round by round, with the parameters of its lambdarank; its sigmoid is a table."""
    data = demo_data(100, seed=0)
    metric = "positional(utility=ndcg@30, ties=index)"
    ours = gbmrank.objective("swap", metric=metric, truncation=30, norm=True)
    params = {"num_leaves": 8, "seed": 0, "deterministic": True, "num_threads": 1, "verbose": -1}
    first, second = (
        lightgbm.train(
            {**params, "objective": one},
            lightgbm.Dataset(data.X, data.labels, group=data.sizes),
            8,
        )
        for one in ("lambdarank", ours)
    )
    for rounds in range(1, 9):
        native, found = (
            one.predict(data.X, num_iteration=rounds, raw_score=True) for one in (first, second)
        )
        # Most rows agree to the table's accuracy; two splits of equal gain may trade places.
        assert np.quantile(np.abs(found - native), 0.9) < 1e-3 * native.std()
        assert np.corrcoef(native, found)[0, 1] > 0.99
