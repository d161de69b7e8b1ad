"""Verdicts against the falsifier, over everything built in."""

import functools

import numpy as np
import pytest

from gbmrank import theory
from gbmrank.registry.composition import as_metric, as_objective, text_of
from gbmrank.theory.counterexamples import stored_counterexamples
from gbmrank.theory.falsifier import adversarial, settings_for
from gbmrank.theory.minimise import MOST_WITH_KINKS
from studies.counterexamples import TABLE_METRICS, table_objectives
from tests.formulas import each

STORED = {(e.objective, e.metric): e for e in stored_counterexamples() if not e.on_graphs}
ON_GRAPHS = [each for each in stored_counterexamples() if each.on_graphs]
OBJECTIVES = table_objectives()


@functools.cache
def _minimum(objective, labels, probabilities):
    return theory.Distribution(labels, probabilities).minimiser(objective)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_not_calibrated_verdict_has_a_stored_counterexample(objective):
    for metric in TABLE_METRICS:
        verdict = theory.calibration(objective, metric)
        assert verdict.sentence
        assert verdict.reference
        if verdict.status == "not calibrated":
            example = STORED[objective, text_of(as_metric(metric))]
            assert example.regret > 0
            assert verdict.counterexample is not None


@pytest.mark.parametrize("most", [4, pytest.param(99, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("objective", each(3, OBJECTIVES))
def test_stored_counterexamples_hold(objective, most):
    """Minimise again, rank, and compare with the best order of all."""
    mine = [each for (name, _), each in STORED.items() if name == objective]
    assert mine
    for example in mine:
        distribution = example.distribution
        if distribution.n_items > most:
            continue  # thousands of orders
        if distribution.n_items > MOST_WITH_KINKS and "loss=hinge" in objective:
            continue  # a linear programme does it in test_conditions
        found = _minimum(objective, example.labels, example.probabilities)
        assert found.attained
        reached, stored = (_settled(objective, s) for s in (found.scores, example.scores))
        np.testing.assert_allclose(reached, stored, atol=2e-5)
        best = distribution.best(example.metric)
        lost = abs(best.value - distribution.value(example.metric, example.scores))
        assert lost == pytest.approx(example.regret, rel=1e-6)
        assert lost >= 1e-3 * abs(best.value) * (1 - 1e-9)
        assert example.best_order in best.orders
        # What the best order costs at least: its own minimiser is no minimiser.
        in_order = distribution.inner_risk(objective, _in_order(found.scores, best.orders[0]))
        assert in_order >= found.value - 1e-9


def _settled(objective, scores):
    """What all minimisers have in common: their scores, or the shares of their probabilities."""
    if not objective.startswith("sigmoid_softmax"):
        return scores
    p = 1.0 / (1.0 + np.exp(-np.asarray(scores)))
    return p / p.sum()


def _in_order(scores, order):
    rearranged = np.empty(len(order))
    rearranged[list(order)] = np.sort(scores)[::-1]
    return rearranged


@pytest.mark.parametrize("example", ON_GRAPHS, ids=lambda example: example.objective)
def test_counterexamples_on_low_noise_graphs_hold(example):
    distribution = example.distribution
    assert theory.is_low_noise(distribution.mean_graph())
    assert theory.DegreeCondition().holds(distribution)
    found = distribution.minimiser(example.objective)
    assert distribution.regret(example.metric, found.scores) == pytest.approx(example.regret)
    assert theory.calibration(example.objective, example.metric, graphs=True).counterexample


@pytest.mark.compiled  # thousands of minima
@pytest.mark.parametrize("objective", each(8, OBJECTIVES, start=3))
def test_no_calibrated_verdict_is_falsified(objective):
    """The distributions that break other losses, and random ones, break none of these."""
    protected = [
        m for m in TABLE_METRICS if theory.calibration(objective, m).status == "calibrated"
    ]
    for metric in protected:
        if metric in ("precision", "recall"):
            continue  # every order is best
        assert theory.falsify(objective, metric, budget=30, seed=5) is None


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.nightly)])
def test_calibrated_losses_survive_the_counterexamples_of_others(step):
    objective, metric = "pairwise(loss=logistic, target=ndcg)", as_metric("ndcg")
    template = as_objective(objective)
    for example in list(STORED.values())[::step]:
        if np.max(example.labels) > 4 or (step > 1 and len(example.labels[0]) > 4):
            continue
        found = _minimum(objective, example.labels, example.probabilities)
        if found.attained:
            assert example.distribution.regret(metric, found.scores) < 1e-9
    assert settings_for(template, metric) == (0.0, 1.0, 2.0)
    assert len(list(adversarial(4, (0.0, 1.0, 2.0)))) > 10


def test_independent_labels_make_the_bipartite_risk_right():
    """The condition of its verdict, tested where it holds and where it does not."""
    verdict = theory.calibration("bipartite(loss=logistic)", "auc")
    assert verdict.status == "conditional"
    vectors = np.array(np.meshgrid(*[[0.0, 1.0]] * 3)).reshape(3, -1).T
    rng = np.random.default_rng(0)
    for _ in range(10):
        eta = rng.uniform(0.05, 0.95, 3)
        p = np.prod(np.where(vectors == 1, eta, 1 - eta), axis=1)
        distribution = theory.Distribution(vectors, p)
        assert verdict.condition.holds(distribution)
        scores = distribution.minimiser("bipartite(loss=logistic)").scores
        log_odds = np.log(eta / (1 - eta))
        np.testing.assert_allclose(scores, log_odds - log_odds.mean(), atol=1e-6)
        for metric in ("auc", "dcg", "ndcg", "precision@1"):
            assert distribution.regret(metric, scores) < 1e-9
    broken = STORED["bipartite(loss=logistic)", "auc"].distribution
    assert not verdict.condition.holds(broken)


def test_reinforcement_makes_sorting_shares_right_for_average_precision():
    verdict = theory.calibration("map_diagonal", "map")
    assert verdict.status == "conditional"
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(150):
        m = int(rng.integers(2, 4))
        labels = rng.integers(0, 2, size=(m, 4))
        if not labels.any(axis=1).all():
            continue
        distribution = theory.Distribution(labels, rng.dirichlet(np.ones(m)))
        if verdict.condition.holds(distribution):
            held += 1
            scores = distribution.expected_utilities("recall")
            assert distribution.regret("map", scores.round(12)) < 1e-9
    assert held > 10
    outside = theory.Distribution([[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1]], [0.3, 0.2, 0.5])
    assert not verdict.condition.holds(outside)
    scores = outside.minimiser("map_diagonal").scores
    assert outside.regret("map", scores) == pytest.approx(1 / 30)
