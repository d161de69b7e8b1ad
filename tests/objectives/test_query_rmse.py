"""Squared error up to a shift: the pairwise squared loss over the number of items."""

import numpy as np
import pytest

import gbmrank

RNG = np.random.default_rng(3)
SIZES = [4, 1, 6]
LABELS = RNG.integers(0, 5, 11).astype(float)
SCORES = RNG.normal(size=11) + 1e6 * np.repeat([0, 1, 2], SIZES)
ROWS = RNG.uniform(0.0, 2.0, 11)


@pytest.mark.parametrize("target", ["identity", "dcg", "ndcg@3", "precision(threshold=2)"])
def test_it_is_the_pairwise_squared_loss_over_the_number_of_items(target):
    ours = gbmrank.objective("query_rmse", target=target, hessian="exact")
    pairs = gbmrank.objective("pairwise", loss="squared", target=target, normalize="none")
    n = np.repeat(SIZES, SIZES)
    for found, whole in zip(
        ours.gradients(LABELS, SCORES, group=SIZES),
        pairs.gradients(LABELS, SCORES, group=SIZES),
        strict=True,
    ):
        np.testing.assert_allclose(found, whole / n, rtol=1e-9, atol=1e-9)
    values = ours.loss(LABELS, SCORES, group=SIZES, per_query=True)
    whole = pairs.loss(LABELS, SCORES, group=SIZES, per_query=True)
    np.testing.assert_allclose(values, whole / SIZES, rtol=1e-9)


def test_the_default_curvature_is_two():
    _, hess = gbmrank.objective("query_rmse").gradients(LABELS, SCORES, group=SIZES)
    assert hess.tolist() == [2.0] * 4 + [0.0] + [2.0] * 6  # one item has nothing to learn


def test_rows_may_have_weights():
    made = gbmrank.objective("query_rmse(hessian=exact)")
    grad, hess = made.gradients(LABELS, SCORES, group=SIZES, weight=ROWS)
    values = made.loss(LABELS, SCORES, group=SIZES, weight=ROWS, per_query=True)
    begin = 0
    for query, n in enumerate(SIZES):
        part = slice(begin, begin + n)
        w, gap = ROWS[part], SCORES[part] - LABELS[part]
        shift = (w * gap).sum() / w.sum()
        np.testing.assert_allclose(grad[part], 2 * w * (gap - shift), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(hess[part], 2 * w * (1 - w / w.sum()), rtol=1e-12)
        assert values[query] == pytest.approx((w * (gap - shift) ** 2).sum(), rel=1e-6, abs=1e-12)
        begin += n


@pytest.mark.parametrize("target", ["identity", "dcg", "ndcg@10"])
def test_it_sorts_expected_utilities(target):
    for metric in ("ndcg@10", "dcg", "spearman", "pairwise_disagreement(normalize=false)"):
        ours = gbmrank.theory.calibration(gbmrank.objective("query_rmse", target=target), metric)
        pairs = gbmrank.objective("pairwise", loss="squared", target=target)
        assert ours.status == gbmrank.theory.calibration(pairs, metric).status


def test_options():
    assert gbmrank.objective("query_rmse(threshold=2)") == gbmrank.objective(
        "query_rmse(target=precision(threshold=2))"
    )
    with pytest.raises(gbmrank.ParameterError, match="exact, majorise or constant"):
        gbmrank.objective("query_rmse(hessian=expected)")
