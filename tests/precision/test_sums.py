"""How sums over many items and queries add up: a stated bound, measured against exact sums.

Means over queries are numpy's pairwise sums: relative error below 1e-14 for a million queries
and below 1e-12 for ten million. Gradients of a pair objective sum to zero within a query, to
1e-12 of the sum of their absolute values.
"""

import math

import numpy as np
import pytest

import gbmrank
from gbmrank.metrics import mean_over_queries

RNG_SEED = 5


def check_means(n, bound):
    rng = np.random.default_rng(RNG_SEED)
    values = rng.random(n) ** 3  # uneven, as metrics are
    weight = 10.0 ** rng.uniform(-6, 6, n)
    plain = math.fsum(values) / n
    assert abs(mean_over_queries(values, None, "skip") - plain) <= bound * plain
    exact = math.fsum(values * weight) / math.fsum(weight)
    assert abs(mean_over_queries(values, weight, "skip") - exact) <= bound * exact
    values[::7] = np.nan
    kept = values[~np.isnan(values)]
    exact = math.fsum(kept) / len(kept)
    assert abs(mean_over_queries(values, None, "skip") - exact) <= bound * exact


def test_means_of_a_million_queries():
    check_means(1_000_000, 1e-14)


@pytest.mark.nightly
def test_means_of_ten_million_queries():
    check_means(10_000_000, 1e-12)


def check_metric(n, bound):
    """Two rows per query: NDCG is 1 or 1 / log2(3), so the mean is known exactly."""
    rng = np.random.default_rng(RNG_SEED)
    scores = rng.normal(size=2 * n)
    labels = np.tile([1.0, 0.0], n)
    right = int(np.sum(scores[::2] > scores[1::2]))
    exact = math.fsum([right / n, (n - right) / n / math.log2(3)])
    found = gbmrank.metric("ndcg").score(labels, scores, group=np.full(n, 2))
    assert abs(found - exact) <= bound * exact


def test_a_metric_of_many_queries():
    check_metric(300_000, 1e-13)


@pytest.mark.nightly
def test_a_metric_of_ten_million_rows():
    check_metric(5_000_000, 1e-12)


def check_one_query(n):
    """Losses of one long query: float64 sums, and slopes that cancel."""
    rng = np.random.default_rng(RNG_SEED)
    scores, labels = rng.normal(size=n), (rng.random(n) < 0.3).astype(float)
    for name in ("comparison(loss=squared_margin)", "rankboost", "ranknet"):
        grad, _ = gbmrank.objective(name, normalize="none").gradients(labels, scores, group=[n])
        assert abs(math.fsum(grad)) <= 1e-12 * math.fsum(np.abs(grad))
    pointwise = gbmrank.objective("pointwise(loss=squared, target=identity, eta=1)")
    exact = math.fsum((labels - scores) ** 2)
    assert abs(pointwise.loss(labels, scores) - exact) <= 1e-12 * exact


def test_sums_over_one_long_query():
    check_one_query(200_000)


@pytest.mark.nightly
def test_sums_over_one_query_of_ten_million_rows():
    check_one_query(10_000_000)


def check_total_loss(n):
    """The loss of a data set is the sum over its queries."""
    rng = np.random.default_rng(RNG_SEED)
    scores, labels = rng.normal(size=2 * n), np.tile([1.0, 0.0], n)
    exact = math.fsum(np.logaddexp(0.0, scores[1::2] - scores[::2]))
    found = gbmrank.objective("ranknet").loss(labels, scores, group=np.full(n, 2))
    assert abs(found - exact) <= 1e-13 * exact


def test_the_loss_of_many_queries():
    check_total_loss(300_000)


@pytest.mark.nightly
def test_the_loss_of_ten_million_rows():
    check_total_loss(5_000_000)
