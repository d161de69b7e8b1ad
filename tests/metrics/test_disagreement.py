"""Pairwise disagreement on weighted graphs, by enumeration of the orders of ties."""

import math

import numpy as np
import pytest

import gbmrank
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.errors import DataError, MetricError
from tests.oracles import first_in_row_order, orders_of


def contradicted(a, order):
    return math.fsum(a[j][i] for above, i in enumerate(order) for j in order[above + 1 :])


def duchi(a, scores):
    """Equation 7: a tied pair is charged to the smaller index."""
    n = len(scores)
    return math.fsum(
        a[i][j]
        for i in range(n)
        for j in range(n)
        if scores[i] < scores[j] or (scores[i] == scores[j] and i < j)
    )


def random_case(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, 4)
    blocks = [rng.random((n, n)) * (rng.random((n, n)) < 0.6) for n in sizes]
    winner, loser, weight = [], [], []
    begin = 0
    for block in blocks:
        np.fill_diagonal(block, 0.0)
        for i, j in np.argwhere(block > 0):
            winner.append(begin + i)
            loser.append(begin + j)
            weight.append(block[i, j])
        begin += len(block)
    graphs = PreferenceGraphs.from_edges(winner, loser, weight, group=sizes)
    scores = rng.integers(0, 3, begin).astype(float)  # many ties
    return blocks, graphs, scores, np.split(scores, np.cumsum(sizes)[:-1])


@pytest.mark.parametrize("seed", range(60))
def test_ties_are_the_mean_over_orders_or_as_the_rule_says(seed):
    blocks, graphs, scores, parts = random_case(seed)

    def per_query(**options):
        metric = gbmrank.metric("pairwise_disagreement", preferences=graphs, **options)
        return metric.per_query(None, scores)

    for query, (a, s) in enumerate(zip(blocks, parts, strict=True)):
        values = [contradicted(a.tolist(), order) for order in orders_of(s.tolist())]
        mean, total = math.fsum(values) / len(values), a.sum()
        raw = per_query(normalize=False)[query]
        assert raw == pytest.approx(mean, abs=1e-12)
        share = per_query()[query]
        assert share == pytest.approx(mean / total) if total else math.isnan(share)
        by_row = contradicted(a.tolist(), first_in_row_order(s.tolist()))
        assert per_query(normalize=False, ties="index")[query] == pytest.approx(by_row, abs=1e-12)
        printed = duchi(a.tolist(), s.tolist())
        assert per_query(normalize=False, ties="duchi")[query] == pytest.approx(printed, abs=1e-12)


@pytest.mark.parametrize("ties", ["mean", "index", "duchi"])
@pytest.mark.parametrize("weights", ["difference", "unit"])
def test_graphs_from_labels_are_read_without_labels(weights, ties):
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 4, 30), rng.integers(0, 5, 30)
    graphs = PreferenceGraphs.from_labels(labels, group=[10] * 3, weights=weights)
    edges = graphs.to_edges()
    listed = PreferenceGraphs.from_edges(edges.winner, edges.loser, edges.weight, group=[10] * 3)
    one, two = (
        gbmrank.metric("pairwise_disagreement", preferences=g, ties=ties).per_query(None, scores)
        for g in (graphs, listed)
    )
    np.testing.assert_allclose(one, two, rtol=1e-12)
    if weights == "difference":
        plain = gbmrank.metric("pairwise_disagreement", ties=ties)
        np.testing.assert_allclose(plain.per_query(labels, scores, group=[10] * 3), one)


def test_float32_scores_tie_where_they_do_in_xgboost():
    graphs = PreferenceGraphs.from_edges([0], [1], group=[2])
    scores = [1.0, 1.0 + 1e-12]
    metric = gbmrank.metric("pairwise_disagreement", preferences=graphs)
    assert metric.score(None, scores) == 1.0
    single = gbmrank.metric("pairwise_disagreement", preferences=graphs, dtype="float32")
    assert single.score(None, scores) == 0.5


def test_the_best_order_of_a_graph_is_not_searched():
    graphs = PreferenceGraphs.from_edges([0], [1], group=[2])
    with pytest.raises(MetricError, match="use ties=mean, index or duchi"):
        gbmrank.metric("pairwise_disagreement", preferences=graphs, ties="best").score(None, [0, 1])


def test_weights_of_queries_and_other_shapes():
    graphs = PreferenceGraphs.from_edges([0, 2], [1, 3], group=[2, 2])
    metric = gbmrank.metric("pairwise_disagreement", preferences=graphs)
    assert metric.score(None, [1, 0, 0, 1], weight=[3, 1]) == 0.25
    assert metric.score([0, 0, 0, 0], [1, 0, 0, 1], group=[2, 2]) == 0.5
    with pytest.raises(DataError, match=r"4 rows in 2 queries.*3 rows in 1"):
        metric.score([0, 0, 0], [1, 0, 0])


@pytest.mark.parametrize("size", [1e-3, 0.25, 1.0, 4.0])
def test_the_normalised_value_does_not_depend_on_the_size_of_labels(size):
    metric = gbmrank.metric("pairwise_disagreement(normalize=true)")
    assert metric.score([size, 0.0], [0.0, 1.0]) == 1.0
    labels, scores = size * np.array([2.0, 0.0, 1.0]), [1.0, 2.0, 0.0]
    assert metric.score(labels, scores) == pytest.approx(3 / 4)  # of 2 + 1 + 1, 2 and 1 are wrong
