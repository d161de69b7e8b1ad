"""Minima of risks that are convex, that are not, and that are no risks."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

import gbmrank
from gbmrank.losses.functional import loss_class
from gbmrank.theory import Distribution, FiniteBipartite
from gbmrank.theory.minimise import Nature, minimise, minimise_in_tiers

NOT_CONVEX = Nature(shift_invariant=False, convex=False)


def _bounded(z, power=0.7):
    """``(1 - sigmoid(z)^power) / power``: bounded and not convex; the link is sigmoid(0.3 z)."""
    p, rest = 1.0 / (1.0 + math.exp(-z)), 1.0 / (1.0 + math.exp(z))
    slope = -(p**power) * rest
    return (1.0 - p**power) / power, slope, slope * (power * rest - p)


def _step(z):
    """A soft count of mistakes: bounded, and lowest at infinity whatever the labels."""
    p = 1.0 / (1.0 + math.exp(4.0 * z))
    return p, -4.0 * p * (1.0 - p), 16.0 * p * (1.0 - p) * (1.0 - 2.0 * p)


BOUNDED, STEP = loss_class(_bounded)(), loss_class(_step)()


@pytest.mark.parametrize(("loss", "rate"), [("brier_sigmoid", 1.0), (BOUNDED, 0.3)])
def test_proper_losses_that_are_not_convex_lead_to_the_log_odds(loss, rate):
    distribution = Distribution([[1, 0], [0, 1]], [0.6, 0.4])
    found = distribution.minimiser(gbmrank.objective("pointwise", loss=loss, target="dcg"))
    useful = np.array([0.6, 0.4]) / 15.0  # gains up to 2^4 - 1
    assert found.attained
    np.testing.assert_allclose(found.scores, np.log(useful / (1 - useful)) / rate, atol=1e-4)


@pytest.mark.parametrize("template", ["pairwise", "comparison", "bipartite"])
def test_pairs_that_are_not_convex_lead_to_the_log_odds(template):
    distribution = Distribution([[1, 0], [0, 1]], [0.6, 0.4])
    scores = distribution.minimiser(f"{template}(loss=brier_sigmoid)").scores
    assert scores[0] - scores[1] == pytest.approx(np.log(1.5), abs=1e-7)


def test_a_bounded_loss_that_runs_off_is_noticed():
    distribution = Distribution([[1, 0], [0, 1]], [0.6, 0.4])
    objective = gbmrank.objective("pointwise", loss=STEP, target="dcg")
    assert not distribution.minimiser(objective).attained


@pytest.mark.parametrize("loss", ["brier_sigmoid", BOUNDED])
def test_bayes_scorers_of_losses_that_are_not_convex(loss):
    population = FiniteBipartite([1, 2, 1], [0.2, 0.5, 0.9])
    log_odds = np.log(population.eta / (1 - population.eta))
    for found in (population.proper_scorer(loss), population.bipartite_scorer(loss)):
        scores = found.scores - found.scores[1]
        np.testing.assert_allclose(scores / scores[2], log_odds / log_odds[2], atol=1e-5)


def _two_valleys(scores):
    """Every score has a shallow valley near -2 and a deep one near 2."""
    value = np.sum((scores**2 - 4.0) ** 2 - 4.0 * scores)
    return float(value), 4.0 * scores * (scores**2 - 4.0) - 4.0


def test_every_score_reaches_its_deep_valley():
    found = minimise(_two_valleys, 6, NOT_CONVEX)
    assert found.attained
    assert found.scores.min() > 2.0
    np.testing.assert_allclose(found.scores, found.scores[0], atol=1e-7)


@pytest.mark.parametrize(
    "risk",
    [
        lambda s: (float(np.sum(s**2)), np.ones_like(s)),  # not its gradient
        lambda s: (float(np.sum(s**2)) + 1.0, -2.0 * s + 1.0),
        lambda s: (float(np.sum(s)), np.full_like(s, np.nan)),
    ],
)
def test_what_cannot_be_minimised_is_a_numeric_error(risk):
    with pytest.raises(gbmrank.NumericError, match="was not minimised"):
        minimise(risk, 2, Nature(shift_invariant=False))


@pytest.mark.parametrize(
    "tiers", [((2,), (0,), (1,), (3,)), ((1, 3), (0, 2)), ((1, 3), (0,), (2,)), ((3,), (0, 1, 2))]
)
def test_the_least_risk_in_an_order_of_tiers(tiers):
    centre = np.array([0.7, -0.4, 1.1, -0.9])
    curvature = np.array([[2, 0.3, 0, 0], [0.3, 1, 0.2, 0], [0, 0.2, 3, 0.5], [0, 0, 0.5, 1]])

    def risk(scores):
        lead = scores - centre
        return float(0.5 * lead @ curvature @ lead), curvature @ lead

    rules = [
        {"type": "ineq", "fun": lambda s, i=i, j=j: s[i] - s[j]}
        for above, below in itertools.pairwise(tiers)
        for i in above
        for j in below
    ]
    expected = minimize(
        lambda s: risk(s)[0], np.zeros(4), constraints=rules, method="SLSQP", tol=1e-12
    )
    found = minimise_in_tiers(risk, tiers, centre, Nature(shift_invariant=False))
    assert found == pytest.approx(expected.fun, abs=1e-7)
