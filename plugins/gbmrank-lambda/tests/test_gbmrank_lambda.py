"""The conformance kit, slow twins, and the gradients of the boosters themselves."""

import itertools
import math

import lightgbm
import numpy as np
import pytest
import xgboost

import gbmrank
from gbmrank.testing import parametrize_checks

RNG = np.random.default_rng(1)
SIZES = [9, 7, 12]
LABELS = RNG.integers(0, 5, sum(SIZES)).astype(float)
SCORES = RNG.normal(size=sum(SIZES))


@parametrize_checks(
    "lambdarank",
    "lambdarank@3",
    "lambdarank(loss=exponential)",
    "lambdarank(loss=brier_sigmoid)",
    "ndcg_loss2",
    "ndcg_loss2@3",
    "ndcg_loss2pp",
    "ndcg_loss2pp(mu=2)@3",
)
def test_contract(check):
    check()


def discount(rank):
    return 1.0 / math.log2(1.0 + rank)


def twin(labels, scores, weight, k=math.inf):
    """Gradient of one query without ties, pair by pair."""
    ranks = np.empty(len(scores), dtype=int)
    ranks[np.argsort(-scores)] = np.arange(1, len(scores) + 1)
    gains = np.exp2(labels) - 1.0
    ideal = sum(
        gain * discount(r) for r, gain in enumerate(sorted(gains, reverse=True), 1) if r <= k
    )
    grad = np.zeros(len(scores))
    for i, j in itertools.permutations(range(len(scores)), 2):
        if labels[i] > labels[j] and min(ranks[i], ranks[j]) <= k:
            slope = -1.0 / (1.0 + math.exp(scores[i] - scores[j]))
            pull = (gains[i] - gains[j]) / ideal * weight(ranks[i], ranks[j]) * slope
            grad[i] += pull
            grad[j] -= pull
    return grad


def rho(a, b):
    return abs(discount(a) - discount(b))


def delta(a, b):
    return abs(discount(abs(a - b)) - discount(abs(a - b) + 1))


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("lambdarank", rho),
        ("ndcg_loss2", delta),
        ("ndcg_loss2pp", lambda a, b: rho(a, b) + 10.0 * delta(a, b)),
    ],
)
def test_slow_twins(name, weight, k):
    grad, _ = gbmrank.objective(name, k=k).gradients(LABELS, SCORES, group=SIZES)
    begin = 0
    for n in SIZES:
        part = slice(begin, begin + n)
        expected = twin(LABELS[part], SCORES[part], weight, k or math.inf)
        np.testing.assert_allclose(grad[part], expected, rtol=1e-10, atol=1e-12)
        begin += n


def test_tied_items_have_the_mean_weight_over_their_orders():
    labels, scores = np.array([2.0, 0.0, 1.0, 3.0]), np.array([1.0, 0.0, 0.0, 0.0])
    total = np.zeros(4)
    for order in itertools.permutations(range(3)):
        nearly = scores + 1e-9 * np.array([0, *order])
        total += twin(labels, nearly, rho) / 6.0
    found, _ = gbmrank.objective("lambdarank").gradients(labels, scores)
    np.testing.assert_allclose(found, total, rtol=1e-7, atol=1e-9)


# The boosters do not show their gradients, but their first tree does: the leaf of the rows R is
# -sum g / (sum h + L), with a penalty L. A penalty tells gradient and Hessian apart.
ROWS = np.arange(len(LABELS), dtype=float)[:, None]
PENALTIES = (0.0, 0.05, 1.0)


def lightgbm_leaves(penalty, k):
    params = {
        "objective": "lambdarank",
        "lambdarank_norm": False,
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
    data = lightgbm.Dataset(ROWS, LABELS, group=SIZES, init_score=SCORES)
    booster = lightgbm.train(params, data, 1)
    return booster.predict(ROWS, raw_score=True), booster.predict(ROWS, pred_leaf=True)[:, 0]


def xgboost_leaves(penalty, k):
    params = {
        "objective": "rank:ndcg",
        "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": k,
        "lambdarank_normalization": False,
        "lambdarank_score_normalization": False,
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


@pytest.mark.parametrize("k", [30, 3])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_lightgbm_has_the_same_gradients(k, penalty):
    grad, hess = gbmrank.objective("lambdarank", k=k).gradients(LABELS, SCORES, group=SIZES)
    found, leaves = lightgbm_leaves(penalty, k)
    assert len(np.unique(leaves)) > 3
    expected = leaves_of(grad, hess, penalty, leaves)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-4)  # its sigmoid is a table


@pytest.mark.parametrize("penalty", PENALTIES)
def test_xgboost_has_the_same_gradients_and_twice_the_hessian(penalty):
    grad, hess = gbmrank.objective("lambdarank").gradients(LABELS, SCORES, group=SIZES)
    found, leaves = xgboost_leaves(penalty, max(SIZES))
    assert len(np.unique(leaves)) > 3
    expected = leaves_of(grad, 2.0 * hess, penalty, leaves)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-4)


def test_parameters_are_checked():
    with pytest.raises(gbmrank.ParameterError, match="the cut-off k must be at least 1"):
        gbmrank.objective("lambdarank", k=0)
    with pytest.raises(gbmrank.ParameterError, match="squared has no margin form"):
        gbmrank.objective("lambdarank(loss=squared)")
    with pytest.raises(gbmrank.ParameterError, match="mu is not negative"):
        gbmrank.objective("ndcg_loss2pp(mu=-1)")
