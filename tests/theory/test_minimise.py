"""Minima of risks that are convex, that are not, and that are no risks."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

import gbmrank
from gbmrank.losses.base import loss_class
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


# Objective, labels, probabilities, the least risk, and scores that reach it.
KINKED = [
    ("mix(ranksvm, pointwise(loss=squared, target=identity))", [[1, 0, 2]], [1], 0.0, (1, 0, 2)),
    (
        "mix(mix(ranksvm), mix(pointwise(loss=squared, target=identity)))",
        [[1, 0, 2]],
        [1],
        0.0,
        (1, 0, 2),
    ),
    ("push(loss=hinge, p=2)", [[1, 0], [0, 1]], [0.7, 0.3], 1.68, (0.2, -0.2)),
    ("comparison(loss=hinge, margin=0.5)", [[1, 0], [0, 1]], [0.6, 0.4], 1.2, (0.75, -0.75)),
    ("comparison(loss=hinge, margin=3)", [[1, 0], [0, 1]], [0.6, 0.4], 3.2, (2.0, -2.0)),
    ("comparison(loss=hinge, margin=weight)", [[2, 0], [0, 2]], [0.6, 0.4], 2.4, (1.5, -1.5)),
]


@pytest.mark.parametrize(("objective", "labels", "p", "least", "scores"), KINKED)
def test_minima_of_risks_with_kinks(objective, labels, p, least, scores):
    distribution = Distribution(labels, p)
    found = distribution.minimiser(objective)
    value = distribution.inner_risk(objective, scores)
    assert found.attained
    assert found.value <= value + 1e-9
    assert value == pytest.approx(least, abs=1e-9)
    np.testing.assert_allclose(found.scores, scores, atol=1e-5)


def value_of(risk, scores):
    return risk(scores)[0]


@pytest.mark.parametrize(
    "objective",
    [
        "push(loss=hinge, p=2)",
        "comparison(loss=hinge, margin=0.3)",
        "ranksvm",
        *(
            pytest.param(text, marks=pytest.mark.nightly)
            for text in (
                "push(loss=hinge, g=expm1)",
                "mix(ranksvm, ranknet, weights=[0.3, 2])",
                "mix(pairwise(loss=hinge), pointwise(loss=squared, target=identity))",
                "pairwise(loss=hinge, target=dcg)",
            )
        ),
    ],
)
@pytest.mark.parametrize("most", [3, pytest.param(4, marks=pytest.mark.nightly)])
def test_no_scores_have_less_risk_than_a_minimum_with_kinks(objective, most):
    rng = np.random.default_rng(len(objective))
    for n in range(2, most + 1):
        labels = np.concatenate([rng.integers(0, 2, (3, n)), np.eye(n)])
        distribution = Distribution(labels, rng.dirichlet(np.ones(3 + n)))
        found = distribution.minimiser(objective)
        risk = functools.partial(value_of, distribution.risk(objective))
        assert found.attained
        assert risk(found.scores) == distribution.inner_risk(objective, found.scores)
        for start in found.scores + rng.normal(0.0, 0.3, size=(3, n)):
            options = {"xatol": 1e-7, "fatol": 1e-11, "maxiter": 4000}
            other = minimize(risk, start, method="Nelder-Mead", options=options)
            assert found.value <= other.fun + 1e-9


@pytest.mark.parametrize("other", ["ranknet", "rankboost"])
def test_a_risk_with_kinks_that_runs_off_is_noticed(other):
    assert not Distribution([[1, 0]], [1.0]).minimiser(f"mix(ranksvm, {other})").attained


@pytest.mark.parametrize("lead", [0.3, 0.5])
def test_items_that_a_kink_ties_have_equal_scores(lead):
    distribution = Distribution([[0, 0, 1], [1, 0, 0], [1, 1, 0]], [0.2, 0.5, 0.3])
    scores = distribution.minimiser(f"comparison(loss=hinge, margin={lead})").scores
    assert scores[1] == scores[2] < scores[0]


@pytest.mark.parametrize(("at", "attained"), [(20.0, True), (31.0, False)])
def test_a_kink_beyond_what_is_searched_is_no_minimum_that_is_reached(at, attained):
    nature = Nature(shift_invariant=False, smooth=False)
    found = minimise(lambda s: (float(abs(s[0] - at)), np.sign(s - at)), 1, nature)
    assert found.attained == attained


def test_one_of_many_minima_is_near():
    found = Distribution([[1, 0, 0]], [1.0]).minimiser("push(loss=hinge, p=2)")
    assert found.attained
    assert found.value == 0.0
    assert np.ptp(found.scores) < 10


def _ramp(z):
    """A hinge that stays below 2: not convex, with kinks."""
    return min(max(1.0 - z, 0.0), 2.0), (-1.0 if -1.0 < z < 1.0 else 0.0), 0.0


def test_kinks_of_what_is_not_convex_are_not_minimised():
    objective = gbmrank.objective("comparison", loss=loss_class(_ramp)())
    with pytest.raises(gbmrank.LimitError, match="is not computed"):
        Distribution([[1, 0]], [1.0]).minimiser(objective)
    assert "says nothing: the minimiser" in str(gbmrank.theory.search(objective, "dcg"))


def test_slopes_that_are_none_do_not_prove_a_minimum():
    kinked = Nature(shift_invariant=False, smooth=False)
    with pytest.raises(gbmrank.NumericError, match="is it convex"):
        minimise(lambda s: (float(np.abs(s).sum()), np.full_like(s, np.nan)), 2, kinked)


def test_the_least_risk_of_items_apart_in_a_kink():
    # The hinge ties items 1 and 2 at a risk of 0.45; 0.01 apart they cost more.
    distribution = Distribution([[0, 0, 1], [1, 0, 0], [1, 1, 0]], [0.2, 0.5, 0.3])
    risk, nature = distribution.risk("ranksvm"), Nature(True, smooth=False)
    order, start = ((0,), (1,), (2,)), np.zeros(3)
    tied = minimise_in_tiers(risk, order, start, nature)
    assert tied == pytest.approx(0.45, abs=1e-9)
    apart = minimise_in_tiers(risk, order, start, nature, 0.01)
    assert tied + 1e-4 < apart < tied + 1e-2
