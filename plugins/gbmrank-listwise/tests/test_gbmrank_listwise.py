"""The conformance kit, and the limits the formulas have."""

import numpy as np
import pytest

import gbmrank
from gbmrank.testing import parametrize_checks

LABELS = np.array([3.0, 0, 1, 2, 0, 4, 0, 0, 1])
SIZES = [5, 4]


@parametrize_checks(
    "listnet_top1",
    "xe_ndcg",
    "xe_ndcg(gamma=1)",
    "approx_ndcg",
    "approx_ndcg(temperature=0.3)",
    "approx_mrr",
    "approx_mrr(threshold=2)",
    "approx_ap",
    "approx_ap(threshold=2)",
)
def test_contract(check):
    check()


@pytest.mark.parametrize(
    ("objective", "metric"),
    [
        ("approx_ndcg", "ndcg"),
        ("approx_mrr(threshold=4)", "mrr(threshold=4)"),  # one relevant item at most
        ("approx_ap(threshold=1)", "map(threshold=1)"),
    ],
)
def test_cold_ranks_are_ranks(objective, metric):
    scores = np.random.default_rng(0).normal(size=9)
    smooth = gbmrank.objective(objective, temperature=1e-4)
    values = smooth.loss(LABELS, scores, group=SIZES, per_query=True)
    exact = gbmrank.metric(metric).per_query(LABELS, scores, group=SIZES)
    defined = ~np.isnan(exact) & (values != 0.0)
    assert defined.any()
    np.testing.assert_allclose(values[defined], 1.0 - exact[defined], atol=1e-9)


def test_listnet_by_hand():
    labels, scores = np.array([2.0, 0.0, 1.0]), np.array([0.1, 0.4, -0.2])
    p, q = np.exp(scores) / np.exp(scores).sum(), np.exp(labels) / np.exp(labels).sum()
    grad, hess = gbmrank.objective("listnet_top1").gradients(labels, scores)
    np.testing.assert_allclose(grad, p - q, rtol=1e-12)
    np.testing.assert_allclose(hess, p * (1 - p), rtol=1e-12)
    value = gbmrank.objective("listnet_top1").loss(labels, scores)
    assert value == pytest.approx(-(q * np.log(p)).sum())


def test_xe_ndcg_at_gamma_one_is_softmax_with_gains():
    labels, scores = LABELS[:5], np.linspace(-1, 1, 5)
    found = gbmrank.objective("xe_ndcg(gamma=1)").gradients(labels, scores)[0]
    worth = np.exp2(labels) - 1
    p = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(found, p - worth / worth.sum(), rtol=1e-12)


def test_parameters_are_checked():
    with pytest.raises(gbmrank.ParameterError, match="temperature must be a number above 0"):
        gbmrank.objective("approx_ap(temperature=0)")
    with pytest.raises(gbmrank.ParameterError, match="gamma must be between 0 and 1"):
        gbmrank.objective("xe_ndcg(gamma=2)")
