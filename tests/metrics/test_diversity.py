"""Subtopics and overlaps against the mean over all orders of ties."""

import itertools
import math

import numpy as np
import pytest

import gbmrank
from gbmrank import DataError, MetricError
from tests import oracles


def random_topics(rng, n, columns=3):
    return (rng.random((n, columns)) < 0.4).astype(int)


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("alpha", [0.5, 0.0, 1.0, 0.3])
def test_alpha_ndcg_is_the_mean_over_all_orders(alpha, k):
    rng = np.random.default_rng(5)
    metric = gbmrank.metric("alpha_ndcg", alpha=alpha, k=k)
    for _ in range(12):
        topics, scores = random_topics(rng, 6), rng.integers(0, 3, 6).astype(float)
        table = topics.tolist()
        values = [
            oracles.alpha_ndcg(table, o, k, alpha) for o in oracles.orders_of(scores.tolist())
        ]
        found = metric.per_query(np.ones(6), scores, subtopics=topics)[0]
        assert found == pytest.approx(np.mean(values), rel=1e-12, nan_ok=True)
        index = gbmrank.metric("alpha_ndcg", alpha=alpha, k=k, ties="index")
        want = oracles.alpha_ndcg(table, oracles.first_in_row_order(scores.tolist()), k, alpha)
        found = index.per_query(np.ones(6), scores, subtopics=topics)[0]
        assert found == pytest.approx(want, rel=1e-12, nan_ok=True)


def test_alpha_ndcg_of_several_queries_in_any_order():
    rng = np.random.default_rng(6)
    topics, scores, qid = random_topics(rng, 30), rng.normal(size=30), rng.integers(0, 4, 30)
    metric = gbmrank.metric("alpha_ndcg@5")
    whole = metric.per_query(np.ones(30), scores, qid=qid, subtopics=topics)
    for number, query in enumerate(dict.fromkeys(qid.tolist())):
        rows = np.flatnonzero(qid == query)[::-1]
        alone = metric.score(np.ones(len(rows)), scores[rows], subtopics=topics[rows])
        assert whole[number] == pytest.approx(alone, rel=1e-12)
    both = gbmrank.metric("alpha_ndcg@5, ndcg@5")
    found = both.score(np.ones(30), scores, qid=qid, subtopics=topics)
    assert found["alpha_ndcg@5"] == pytest.approx(whole.mean(), rel=1e-12)


def test_alpha_ndcg_without_subtopics():
    with pytest.raises(DataError, match="subtopics="):
        gbmrank.metric("alpha_ndcg").score([1, 0], [1, 0])
    for wrong in ([1, 0], [[2], [0]], np.empty((2, 0))):
        with pytest.raises(DataError, match="matrix of 0 and 1"):
            gbmrank.metric("alpha_ndcg").score([1, 0], [1, 0], subtopics=wrong)
    with pytest.raises(DataError, match="3 entries"):
        gbmrank.metric("alpha_ndcg").score([1, 0], [1, 0], subtopics=[[1], [0], [1]])
    with pytest.raises(MetricError, match="alpha must be between 0 and 1, got 2"):
        gbmrank.metric("alpha_ndcg(alpha=2)")
    found = gbmrank.metric("alpha_ndcg").per_query([1, 0], [1, 0], subtopics=[[0], [0]])
    assert math.isnan(found[0])


def overlap(first, second, depth):
    return len({*first[:depth]} & {*second[:depth]})


def listed_overlap(first, second, k):
    return sum(overlap(first, second, d) / d for d in range(1, k + 1)) / k


def listed_rbo(first, second, k, p):
    """Webber et al. 2010, eq. 30: the lists are compared down to depth k."""
    agreement = [overlap(first, second, d) / d for d in range(1, k + 1)]
    sums = sum(share * p**d for d, share in enumerate(agreement, 1))
    return agreement[-1] * p**k + (1 - p) / p * sums


@pytest.mark.parametrize("k", [None, 1, 3, 9])
def test_overlaps_are_means_over_all_orders_of_both_rankings(k):
    rng = np.random.default_rng(7)
    for _ in range(6):
        one, two = rng.integers(0, 3, (2, 5)).astype(float)
        pairs = list(itertools.product(oracles.orders_of(one), oracles.orders_of(two)))
        depth = min(k or 5, 5)
        want = np.mean([listed_overlap(a, b, depth) for a, b in pairs])
        assert gbmrank.average_overlap(one, two, k=k) == pytest.approx(want, rel=1e-12)
        want = np.mean([listed_rbo(a, b, 5, 0.8) for a, b in pairs])
        assert gbmrank.rbo(one, two, p=0.8) == pytest.approx(want, rel=1e-12)


def test_overlaps_of_queries():
    rng = np.random.default_rng(8)
    one, two, qid = rng.normal(size=20), rng.normal(size=20), rng.integers(0, 3, 20)
    for function in (gbmrank.average_overlap, gbmrank.rbo):
        values = function(one, two, qid=qid, per_query=True)
        assert function(one, two, qid=qid) == pytest.approx(values.mean())
        first = qid == qid[0]
        assert values[0] == pytest.approx(function(one[first], two[first]))
        assert function(one, one) == pytest.approx(1.0)
    with pytest.raises(DataError, match="got 2 and 3"):
        gbmrank.rbo([1, 2], [1, 2, 3])
    with pytest.raises(gbmrank.ParameterError, match="rbo: p"):
        gbmrank.rbo([1, 2], [1, 2], p=1.0)
