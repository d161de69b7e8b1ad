"""Menon and Williamson: Bayes-optimal scorers on finite supports."""

import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.losses import (
    AsymmetricA,
    AsymmetricB,
    BrierSigmoid,
    CanonicalBoosting,
    Exponential,
    Logistic,
    PClassification,
    SquaredHingeMargin,
    SquaredMargin,
)
from gbmrank.losses.convex import Expm1, Power
from gbmrank.registry import LOSSES
from gbmrank.registry.composition import build
from gbmrank.theory import FiniteBipartite

RATES = {
    "logistic": 1.0,
    "logistic(sigma=2)": 2.0,
    "exponential": 2.0,
    "p_classification(p=2)": 3.0,
    "p_classification(p=4)": 5.0,
    "asymmetric_a": 1.0,
    "asymmetric_b": 1.0,
    "brier_sigmoid": 1.0,
}
OTHERS = ("squared_margin", "squared_hinge_margin", "canonical_boosting")


@pytest.fixture(params=range(3))
def population(request):
    return FiniteBipartite.random(8, np.random.default_rng(request.param))


def _centred(values):
    return values - values.mean()


def _log_odds(population):
    return np.log(population.eta / (1 - population.eta))


@pytest.mark.parametrize("loss", [*RATES, *OTHERS])
def test_proper_losses_lead_to_their_link(population, loss):
    expected = build(LOSSES, loss).link(population.eta)
    np.testing.assert_allclose(population.proper_scorer(loss).scores, expected, atol=1e-6)


@pytest.mark.parametrize("loss", RATES)
def test_proposition_8_and_corollary_9(population, loss):
    """A link sigmoid(a v) makes the bipartite scorer logit(eta) / a, whatever the masses."""
    found = population.bipartite_scorer(loss)
    assert found.attained
    expected = _centred(_log_odds(population)) / RATES[loss]
    np.testing.assert_allclose(_centred(found.scores), expected, atol=1e-6)
    pairs = population.pair_scorer(loss)
    np.testing.assert_allclose(pairs, expected[:, None] - expected[None, :], atol=1e-9)


@pytest.mark.parametrize("loss", OTHERS)
def test_corollary_12_the_link_depends_on_the_distribution(population, loss):
    scores = population.bipartite_scorer(loss).scores
    by_eta = np.argsort(population.eta)
    assert np.all(np.diff(scores[by_eta]) > 0)
    np.testing.assert_allclose(population.fixed_point(loss, scores), population.eta, atol=1e-7)
    # The best pair scores are not differences of scores, so the risk over scores is larger.
    pairs = population.pair_scorer(loss)
    assert np.abs(pairs - (scores[:, None] - scores[None, :])).max() > 1e-2
    other = FiniteBipartite(population.mass[::-1], population.eta)
    changed = other.bipartite_scorer(loss).scores
    assert np.abs(_centred(changed) - _centred(scores)).max() > 1e-3


def test_the_squared_scorer_in_closed_form(population):
    found = population.bipartite_scorer("squared_margin").scores
    np.testing.assert_allclose(_centred(found), population.squared_scorer(), atol=1e-9)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_propositions_14_and_16(population, p):
    """The exponential push leads to logit(eta) / (p + 1) for every power."""
    found = population.push_scorer("exponential", p)
    expected = _centred(_log_odds(population)) / (p + 1)
    np.testing.assert_allclose(_centred(found.scores), expected, atol=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "asymmetric_a", "asymmetric_b"])
def test_other_pushes_increase_with_eta(population, loss):
    scores = population.push_scorer(loss, 4.0).scores
    assert np.all(np.diff(scores[np.argsort(population.eta)]) > 0)


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
def test_proposition_17_four_risks_have_one_minimiser(population, p):
    found = theory.four_risks(population, p)
    assert found.largest_difference < 1e-6
    np.testing.assert_allclose(found.log_odds, _centred(_log_odds(population)) / (p + 1))


def test_constants_inside_a_push_matter():
    """SPEC 9: the fair version of loss A has this centred optimum for p = 8."""
    population = FiniteBipartite([0.3, 0.2, 0.3, 0.2], [0.15, 0.35, 0.6, 0.8])
    scores = population.push_scorer("asymmetric_a", 8.0).scores
    np.testing.assert_allclose(_centred(scores), [-0.329, -0.100, 0.112, 0.317], atol=6e-4)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "p_classification(p=3)"])
def test_proposition_10_bounds_the_auc_regret(population, loss):
    rng = np.random.default_rng(5)
    risk, least = population.bipartite_risk(loss), population.bipartite_scorer(loss)
    best = population.auc(population.eta)
    for _ in range(100):
        scores = least.scores + rng.normal(size=len(least.scores)) * rng.choice([0.1, 0.5, 1.0])
        lost = best - population.auc(scores)
        assert theory.auc_regret_bound(loss, lost) <= risk(scores)[0] - least.value + 1e-9


def test_closed_forms_of_that_bound():
    x = 0.37
    h = -((1 + x) / 2 * np.log((1 + x) / 2) + (1 - x) / 2 * np.log((1 - x) / 2))
    assert theory.auc_regret_bound("logistic", x) == pytest.approx(np.log(2) - h, rel=1e-9)
    assert theory.auc_regret_bound("exponential", x) == pytest.approx(1 - (1 - x * x) ** 0.5)
    with pytest.raises(gbmrank.ParameterError, match="no bound is known"):
        theory.auc_regret_bound("squared_margin", x)


def test_only_sigmoid_links_decompose():
    for loss in (Logistic(), Exponential(), PClassification(), AsymmetricA(), BrierSigmoid()):
        assert theory.decomposable_rate(loss) is not None
    for other in (SquaredMargin(), SquaredHingeMargin(), CanonicalBoosting()):
        assert theory.decomposable_rate(other) is None


def test_populations_are_checked():
    with pytest.raises(gbmrank.DataError, match="between 0 and 1"):
        FiniteBipartite([1, 1], [0.0, 0.5])
    steep = theory.four_risks(FiniteBipartite([1, 1], [0.2, 0.5]), 400.0)
    assert steep.largest_difference < 1e-12


@pytest.mark.parametrize(
    "loss", [Logistic(), Exponential(), PClassification(p=3.0), AsymmetricA(), BrierSigmoid()]
)
def test_losses_come_back_from_their_weight(loss):
    rate = theory.decomposable_rate(loss)
    built = theory.loss_from_weight(loss.weight_function, rate=rate)
    for v in np.linspace(-9, 9, 61) / rate:
        for ours, theirs in zip(built.partials, loss.partials, strict=True):
            expected = theirs(float(v), *loss.params)
            np.testing.assert_allclose(ours(float(v)), expected, rtol=2e-6, atol=2e-6)
    q = np.array([0.2, 0.5, 0.7])
    np.testing.assert_allclose(built.inverse_link(built.link(q)), q)
    np.testing.assert_allclose(built.weight_function(q), loss.weight_function(q))
    assert built.convex == loss.convex
    assert theory.decomposable_rate(built, tolerance=1e-5) == pytest.approx(rate, rel=1e-5)


def test_a_kink_in_the_weight_costs_little():
    built = theory.loss_from_weight(AsymmetricB().weight_function)
    for v in (-3.0, -0.1, 0.0, 0.1, 3.0):
        for ours, theirs in zip(built.partials, AsymmetricB().partials, strict=True):
            np.testing.assert_allclose(ours(v)[:2], theirs(v)[:2], rtol=1e-4)


def test_value_and_derivatives_of_a_table_belong_together():
    built = theory.loss_from_weight(lambda c: 1 + c**2, rate=1.5)
    for partial in built.partials:
        for v in (-20.0, -12.0, -3.3, 0.01, 5.0, 11.99, 14.0):
            width = 1e-4
            ahead, behind = partial(v + width), partial(v - width)
            value, slope, bend = partial(v)
            assert (ahead[0] - behind[0]) / (2 * width) == pytest.approx(slope, rel=1e-5, abs=1e-9)
            assert (ahead[1] - behind[1]) / (2 * width) == pytest.approx(bend, rel=1e-4, abs=1e-9)
            assert value >= 0


def test_a_weight_makes_a_usable_objective():
    loss = theory.loss_from_weight(lambda c: 1 / (c * (1 - c)), name="of_weight")
    labels, scores = np.array([1, 0, 0, 1.0]), np.array([0.3, 0.2, -0.4, 1.0])
    for template, params in (
        ("pointwise", {"target": "identity", "eta": 1.0}),
        ("bipartite", {}),
        ("push", {"p": 2.0}),
    ):
        ours = gbmrank.objective(template, loss=loss, **params)
        theirs = gbmrank.objective(template, loss="logistic", **params)
        assert ours.loss(labels, scores) == pytest.approx(theirs.loss(labels, scores), rel=1e-6)
        np.testing.assert_allclose(
            ours.gradients(labels, scores), theirs.gradients(labels, scores), rtol=1e-5
        )
    verdict = theory.calibration(
        gbmrank.objective("pointwise", loss=loss, target="precision"), "precision@3"
    )
    assert verdict.status == "calibrated"  # every positive weight makes a strictly proper loss
    assert verdict.constant.value(1.0) == pytest.approx(1.0, rel=1e-5)  # 2 / sqrt(inf w)
    assert "as declared by of_weight" in verdict.reference


@pytest.mark.parametrize(
    ("weight", "rate", "words"),
    [(lambda c: c - 0.5, 1.0, "positive"), (lambda c: 1 + c, -1.0, "rate must be above 0")],
)
def test_what_is_no_weight_is_refused(weight, rate, words):
    with pytest.raises(gbmrank.ParameterError, match=words):
        theory.loss_from_weight(weight, rate=rate)


def test_losses_can_be_given_by_name():
    assert theory.decomposable_rate("squared_margin") is None
    assert theory.decomposable_rate("p_classification(p=4)") == 5.0
    assert theory.item_shape("logistic") == theory.item_shape(Logistic())
    assert theory.pair_shape("exponential").rate == 2.0
    with pytest.raises(gbmrank.UnknownNameError, match="no loss is called 'nothing'"):
        theory.decomposable_rate("nothing")


@pytest.mark.parametrize("loss", ["exponential", "logistic", "asymmetric_a"])
@pytest.mark.parametrize("outer", [Power(1.0), Power(4.0), Expm1()], ids=str)
def test_pair_scores_of_a_push_are_the_link_of_weighted_odds(loss, outer):
    """Prop. 13, with the costs at the scores found; the exponential p-norm push has a formula."""
    population = FiniteBipartite.random(5, np.random.default_rng(4))
    chosen, pairs = build(LOSSES, loss), population.pair_scorer(loss, outer)
    relevant, _ = population.classes
    partial = [np.vectorize(lambda v, f=f: f(v, *chosen.params)[0]) for f in chosen.partials]
    costs = 0.5 * (relevant @ partial[0](pairs) + partial[1](pairs) @ relevant)
    slopes = np.array([type(outer).function(float(f), *outer.params)[1] for f in costs])
    shifted = np.log(population.eta / (1.0 - population.eta)) - np.log(slopes)
    odds = np.exp(shifted[:, None] - shifted[None, :])
    np.testing.assert_allclose(pairs, chosen.link(odds / (1.0 + odds)), atol=1e-6)
    np.testing.assert_array_equal(
        np.sign(np.round(pairs, 6)), np.sign(population.eta[:, None] - population.eta[None, :])
    )
    if loss == "exponential" and isinstance(outer, Power):
        log_odds = np.log(population.eta / (1.0 - population.eta)) / (outer.p + 1.0)
        np.testing.assert_allclose(pairs, log_odds[:, None] - log_odds[None, :], atol=1e-6)
