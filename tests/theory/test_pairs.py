"""Verdicts of least-squares surrogates with a decoder, against enumeration."""

import numpy as np
import pytest

import gbmrank
from gbmrank import LowRankRanker, PairRanker, decoders, theory
from gbmrank.errors import ParameterError

RAW = "pairwise_disagreement(normalize=false)"
DRAWS = [150, pytest.param(3000, marks=pytest.mark.nightly)]


def graphs_at_random(rng):
    """Return a distribution of preference graphs, often with zeros and equal weights."""
    m, n = int(rng.integers(1, 5)), int(rng.integers(2, 6))
    weights = rng.integers(0, 4, (m, n, n)) * (rng.random((m, n, n)) < rng.choice([0.3, 0.8]))
    weights[:, np.arange(n), np.arange(n)] = 0
    if rng.random() < 0.5:  # without cycles, before the mean
        weights = np.triu(weights)
        for graph in weights:
            order = rng.permutation(n)
            graph[:] = graph[np.ix_(order, order)]
    return theory.Distribution(weights, rng.integers(1, 6, m))


def labels_at_random(rng, grades):
    m, n = int(rng.integers(1, 5)), int(rng.integers(2, 6))
    return theory.Distribution(rng.integers(0, grades, (m, n)), rng.integers(1, 6, m))


def scores_of(order):
    return -np.argsort(order).astype(float)


def decoded(ranker, mean):
    """Return the order that the decoder of a ranker makes of expected pair values."""
    if ranker.surrogate == "map":
        made = {"diagonal": decoders.diagonal, "exact": decoders.exact_map}[ranker.decoder]
        return np.asarray(made(mean))
    if ranker.decoder == "exact":
        return np.asarray(decoders.exact_disagreement(mean - mean.T))
    return np.asarray(decoders.graph_order(mean - mean.T))


@pytest.mark.parametrize("count", DRAWS)
@pytest.mark.parametrize("metric", [RAW, "pairwise_disagreement"])
@pytest.mark.parametrize("decoder", ["exact", "graph"])
def test_pair_values_of_graphs_are_right_where_the_verdict_says_so(decoder, metric, count):
    rng, ranker = np.random.default_rng(0), PairRanker(decoder=decoder)
    verdict = theory.calibration(ranker, metric, graphs=True)
    assert verdict.status == (
        "calibrated" if (decoder, metric) == ("exact", RAW) else "conditional"
    )
    held, wrong = 0, 0
    for _ in range(count):
        one = graphs_at_random(rng)
        regret = one.regret(metric, scores_of(decoded(ranker, one.mean_graph())))
        holds = verdict.condition is None or verdict.condition.holds(one)
        assert not holds or np.isnan(regret) or regret < 1e-9
        held, wrong = held + holds, wrong + (regret > 1e-9)
    assert held > count // 4
    assert wrong > 0 or verdict.condition is None  # the condition is needed


@pytest.mark.parametrize("count", DRAWS)
def test_an_own_f_of_graphs_is_right_where_its_expectation_orders_pairs(count):
    rng = np.random.default_rng(1)

    def wins(graph):
        return (graph > graph.T).sum(axis=1) - (graph < graph.T).sum(axis=1)

    pair = theory.Decoded("f", "sort", f=wins)
    for metric in (RAW, "pairwise_disagreement"):
        verdict = theory.calibration(pair, metric, graphs=True)
        assert verdict.status == "conditional"
        assert "Thm 6" in verdict.reference
        held, wrong = 0, 0
        for _ in range(count):
            one = graphs_at_random(rng)
            f = one.probabilities @ np.array([wins(graph) for graph in one.labels])
            regret = one.regret(metric, f)
            holds = verdict.condition.holds(one)
            assert not holds or np.isnan(regret) or regret < 1e-9
            held, wrong = held + holds, wrong + (regret > 1e-9)
        assert held > count // 10
        assert wrong > 0
    assert theory.calibration(pair, "ndcg").status == "unknown"
    broken = theory.calibration(pair._replace(f=np.sum), RAW, graphs=True).condition
    with pytest.raises(ParameterError, match="one value per item"):
        broken.holds(graphs_at_random(rng))


@pytest.mark.parametrize("count", DRAWS)
def test_pair_values_of_labels_order_items_by_their_mean_label(count):
    rng, ranker = np.random.default_rng(2), PairRanker(decoder="graph")
    for metric in (RAW, "dcg(gain=linear)@2", "spearman"):
        assert theory.calibration(ranker, RAW).status == "calibrated"
        verdict = theory.calibration(ranker, metric)
        for _ in range(count // 3):
            one = labels_at_random(rng, 4)
            regret = one.regret(metric, scores_of(decoded(ranker, one.mean_graph())))
            right = verdict.status == "calibrated" or (
                verdict.condition is not None and verdict.condition.holds(one)
            )
            assert not right or np.isnan(regret) or regret < 1e-9
    assert theory.calibration(ranker, "ndcg").status == "not calibrated"


@pytest.mark.parametrize("count", DRAWS)
@pytest.mark.parametrize("decoder", ["exact", "diagonal"])
def test_pair_values_of_average_precision(decoder, count):
    rng, ranker = np.random.default_rng(3), PairRanker("map", decoder=decoder)
    verdict = theory.calibration(ranker, "map")
    assert verdict.status == ("calibrated" if decoder == "exact" else "conditional")
    held, wrong = 0, 0
    for _ in range(count):
        one = labels_at_random(rng, 2)
        mean = theory.Reinforcement().mean(one)
        regret = one.regret("map", scores_of(decoded(ranker, mean)))
        holds = verdict.condition is None or verdict.condition.holds(one)
        assert not holds or np.isnan(regret) or regret < 1e-9
        held, wrong = held + holds, wrong + (regret > 1e-9)
    assert held > count // 4
    assert wrong > 0 or decoder == "exact"


def test_what_is_known_of_the_other_pairs():
    auto = theory.calibration(PairRanker("map", threshold=2), "map(threshold=2)")
    assert auto.condition == theory.MaxItems(12)
    assert theory.calibration(PairRanker("map", threshold=2), "map").status == "unknown"
    assert theory.calibration(PairRanker("map", decoder="greedy"), "map").status == "unknown"
    assert theory.calibration(PairRanker(), "pairwise_disagreement(ties=worst)").status == "unknown"
    assert theory.calibration(PairRanker(), RAW, graphs=True).condition.up_to == 12
    assert theory.calibration(PairRanker(), "ndcg", graphs=True).status == "unknown"
    diagonal = theory.calibration(PairRanker("map", decoder="diagonal"), "recall@3")
    assert diagonal.status == "calibrated"
    assert diagonal.constant is None
    assert theory.calibration(LowRankRanker("err"), "err(empty=zero)").status == "calibrated"
    assert theory.calibration(LowRankRanker("err"), "mrr").status == "unknown"
    graphs = gbmrank.PreferenceGraphs.from_edges([0], [1], group=[2])
    held = gbmrank.metric(RAW, preferences=graphs)
    assert theory.calibration(PairRanker(decoder="exact"), held).status == "calibrated"
    costs = LowRankRanker(loss_matrix=[[0, 1], [9, 0]])
    assert theory.calibration(costs).status == "calibrated"
    assert theory.calibration(costs, "ndcg").status == "unknown"
    with pytest.raises(ParameterError, match="needs a metric"):
        theory.calibration(PairRanker())


def test_any_loss_matrix_is_decided_best_from_its_factors():
    rng = np.random.default_rng(4)
    for _ in range(100):
        outcomes, decisions, rank = rng.integers(1, 6, 3)
        alpha = rng.integers(-2, 3, (outcomes, rank)).astype(float)
        beta = rng.integers(-2, 3, (decisions, rank)).astype(float)
        p = rng.dirichlet(np.ones(outcomes))
        for made in (theory.LowRank.of(alpha, beta), theory.low_rank(alpha @ beta.T)):
            chosen = made.decode(made.minimiser(p)) if made.dimension else 0
            losses = p @ alpha @ beta.T
            assert losses[chosen] == pytest.approx(losses.min(), abs=1e-9)
            u = made.minimiser(p) + rng.normal(size=made.dimension)
            excess = made.risk(p, u) - made.risk(p, made.minimiser(p))
            regret = losses[made.decode(u) if made.dimension else 0] - losses.min()
            assert regret <= made.bound(max(excess, 0.0)) + 1e-9
    with pytest.raises(gbmrank.DataError, match="as many columns"):
        theory.LowRank.of([[1, 2]], [[1]])
