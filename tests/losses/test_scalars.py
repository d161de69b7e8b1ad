"""Scalar losses against 600-digit arithmetic; links, weights and properness."""

import math

import mpmath
import numpy as np
import pytest

from gbmrank import ParameterError
from gbmrank.losses import (
    BUILTIN_LOSSES,
    AbstractLoss,
    DifferentiableHinge,
    Logistic,
    PClassification,
    SquaredHinge,
)
from gbmrank.losses.convex import BUILTIN_GENERATORS, BUILTIN_REGULARISERS, Expm1, Power, PowerOf
from tests import objective_oracles as oracle

mp = mpmath.mp.clone()
mp.dps = 600  # differences of steps of 1e-60 next to terms of 1e-300

LOSSES: list[AbstractLoss] = [
    cls(**params)
    for cls in BUILTIN_LOSSES
    if cls.pair_form != "difference"
    for params in ({}, *oracle.LOSSES[cls.name].others)
]
PAIRED = [loss for loss in LOSSES if loss.pair_form == "margin"]
PROPER = [loss for loss in LOSSES if oracle.LOSSES[loss.name].link is not None]
POINTS = [0.0, 1e-9, 0.013, 0.31, 0.77, 1.9, 4.2, 11.0, 37.3, 123.0, 699.0, 1e3, 1e4]
POINTS += [-point for point in POINTS[1:]]
LARGEST = 690  # exponents beyond 700 are clipped


def named(loss):
    return "-".join([loss.name, *map(str, oracle.params_of(loss).values())])


def agree(found, exact, noise=0.0):
    """Relative to the exact number; beyond the clipped exponent only the order of size."""
    assert math.isfinite(found)
    if exact == 0 or abs(exact) < mp.exp(-LARGEST):
        assert abs(found) <= max(1e-299, noise)
    elif abs(exact) > mp.exp(LARGEST):
        assert found * exact > 0
        assert abs(found) > 1e299
    else:
        assert abs(found - exact) <= 4e-14 * abs(exact) + noise


def derivatives(function, at):
    """Value and two derivatives; the points are away from kinks."""
    at = mp.mpf(at)
    size = mp.mpf(10) ** -60
    value = function(at)
    ups, downs = function(at + size), function(at - size)
    return value, (ups - downs) / (2 * size), (ups - 2 * value + downs) / size**2


@pytest.mark.parametrize("at", POINTS)
@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_partial_losses_and_their_derivatives(loss, at):
    if at in oracle.LOSSES[loss.name].kinks:
        at = 0.1
    for side, partial in enumerate(loss.partials):
        exact = derivatives(
            lambda v, side=side: oracle.partials(loss.name, v, mp, **oracle.params_of(loss))[side],
            at,
        )
        # A useless item far below zero: 1 + x is formed where x may be tiny.
        for found, wanted in zip(partial(at, *loss.params), exact, strict=True):
            agree(found, wanted, noise=1e-30)


@pytest.mark.parametrize("at", POINTS)
@pytest.mark.parametrize("loss", PAIRED, ids=named)
def test_pair_penalties_and_their_derivatives(loss, at):
    exact = derivatives(lambda d: oracle.kappa(loss.name, d, mp, **oracle.params_of(loss)), at)
    for found, wanted in zip(loss.kappa(at, *loss.params), exact, strict=True):
        agree(found, wanted, noise=1e-30)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_bounded_slopes_stay_bounded(loss):
    params = oracle.params_of(loss)

    def steepest(far):
        """Mean slopes from 1e3 to 1e4 on either side, by the formula."""
        ends = [oracle.partials(loss.name, mp.mpf(v), mp, **params) for v in (far, far / 10)]
        return max(abs(one - two) for one, two in zip(*ends, strict=True)) / 9e3

    most = max(steepest(1e4), steepest(-1e4))
    for at in (-1e4, -1e3, 1e3, 1e4):
        for partial in loss.partials:
            value, first, second = partial(at, *loss.params)
            assert all(map(math.isfinite, (value, first, second)))
            if most < 10:
                assert abs(first) <= most * (1 + 1e-5) + 1e-30
            if loss.convex:
                assert second >= 0


@pytest.mark.parametrize("loss", PROPER, ids=named)
def test_links_are_inverse_to_each_other(loss):
    eta = np.array([1e-6, 0.01, 0.2, 0.5, 0.73, 0.99, 1 - 1e-6])
    np.testing.assert_allclose(loss.inverse_link(loss.link(eta)), eta, rtol=1e-9)
    for v in (-3.0, -0.4, 0.0, 0.6, 2.5):
        exact = oracle.LOSSES[loss.name].link(mp.mpf(v), mp, **oracle.params_of(loss))
        assert loss.inverse_link(np.array([v]))[0] == pytest.approx(float(exact), rel=1e-12)
    far = loss.inverse_link(np.array([-1e4, 1e4]))
    assert 0 <= far[0] < 1e-8
    assert 1 - 1e-8 < far[1] <= 1


@pytest.mark.parametrize("v", [-0.93, -0.4, -0.11, 0.2, 0.55, 0.97])
@pytest.mark.parametrize("loss", PROPER, ids=named)
def test_weight_function_gives_slopes_and_expected_curvature(loss, v):
    """l1' = -(1 - q) w q', l-1' = q w q', expected curvature = w q'^2 (SPEC 5)."""
    params, given = oracle.params_of(loss), oracle.LOSSES[loss.name]
    q = given.link(mp.mpf(v), mp, **params)
    slope = mp.diff(lambda x: given.link(x, mp, **params), mp.mpf(v))
    exact = given.weight(q, mp, **params)
    w = float(loss.weight_function(np.array([float(q)]))[0])
    assert w == pytest.approx(float(exact), rel=1e-11)
    (_, up, up_bend), (_, down, down_bend) = (part(v, *loss.params) for part in loss.partials)
    assert up == pytest.approx(float(-(1 - q) * exact * slope), rel=1e-11)
    assert down == pytest.approx(float(q * exact * slope), rel=1e-11)
    expected = float(exact * slope**2)
    conditional = float(q) * up_bend + (1 - float(q)) * down_bend
    assert conditional == pytest.approx(expected, rel=1e-10)
    if loss.expected_curvature is not None:
        assert loss.expected_curvature(v, *loss.params) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("loss", PROPER, ids=named)
def test_losses_are_proper(loss):
    """The best score at probability eta is link(eta)."""
    for eta in (0.1, 0.35, 0.5, 0.8):
        best = float(loss.link(np.array([eta]))[0])
        up, down = (part(best, *loss.params) for part in loss.partials)
        assert abs(eta * up[1] + (1 - eta) * down[1]) < 1e-12
        grid = np.linspace(-6, 6, 241)
        risks = [
            eta * loss.partials[0](v, *loss.params)[0]
            + (1 - eta) * loss.partials[1](v, *loss.params)[0]
            for v in grid
        ]
        assert eta * up[0] + (1 - eta) * down[0] <= min(risks) + 1e-12


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_bounds_of_the_curvature_hold(loss):
    if loss.majorant is None:
        pytest.skip("no bound")
    bends = [part(v, *loss.params)[2] for part in loss.partials for v in np.linspace(-9, 9, 3001)]
    assert max(bends) <= loss.majorant * (1 + 1e-12)
    assert max(bends) >= 0.99 * loss.majorant  # and it is not a loose one


@pytest.mark.parametrize("loss", [one for one in LOSSES if one not in PROPER], ids=named)
def test_losses_without_a_link_say_so(loss):
    with pytest.raises(ParameterError, match="has no link"):
        loss.inverse_link(np.zeros(1))


def test_template_minimisers_of_the_hinges():
    """SPEC 3.1: t U / eta, and the two branches of the differentiable hinge."""
    eta, grid = 1.0, np.linspace(-1, 3, 40001)

    def best(loss, u):
        up, down = loss.partials
        risk = [u * up(v, *loss.params)[0] + (eta - u) * down(v, *loss.params)[0] for v in grid]
        return grid[int(np.argmin(risk))]

    assert best(SquaredHinge(t=2.0), 0.3) == pytest.approx(0.6, abs=2e-4)
    alpha = 0.4
    assert best(DifferentiableHinge(alpha), 0.3) == pytest.approx(alpha * 0.3 / 0.7, abs=2e-4)
    assert best(DifferentiableHinge(alpha), 0.8) == pytest.approx(1 - alpha * 0.2 / 0.8, abs=2e-4)


def test_canonical_boosting_and_asymmetric_losses_are_the_corrected_ones():
    """SPEC 9, M 1-4: signs and constants that the paper prints otherwise."""
    by_name = {loss.name: loss for loss in LOSSES}
    assert by_name["canonical_boosting"].link(np.array([0.8]))[0] == pytest.approx(1.5)
    assert PClassification(p=2.0).link(np.array([0.8]))[0] == pytest.approx(0.4621, abs=1e-4)
    for name in ("asymmetric_a", "asymmetric_b"):
        up, down = by_name[name].partials
        assert up(700.0)[0] < 1e-100  # fair: both vanish where they should
        assert down(-700.0)[0] < 1e-100
    left, right = (by_name["asymmetric_b"].partials[0](v) for v in (-1e-12, 1e-12))
    np.testing.assert_allclose(left, right, atol=1e-11)  # twice continuously differentiable
    for d in (-3.0, 0.4, 2.0):
        both = (math.exp(-d / 2) + math.log1p(math.exp(-d))) / 2
        assert by_name["asymmetric_b"].kappa(d)[0] == pytest.approx(both, rel=1e-14)


@pytest.mark.parametrize(
    "generator", [cls() for cls in BUILTIN_GENERATORS if cls.term], ids=lambda g: g.name
)
def test_generators_have_the_derivatives_of_their_value(generator):
    for s in (-3.0, -0.2, 0.9, 4.0):
        for u in (0.0, 0.3, 1.0):
            term = type(generator).term
            step, params = 1e-5, (u, 1.0, *generator.params)
            value, first, second = term(s, *params)
            up, down = term(s + step, *params), term(s - step, *params)
            assert first == pytest.approx((up[0] - down[0]) / (2 * step), abs=1e-8, rel=1e-8)
            assert second == pytest.approx((up[1] - down[1]) / (2 * step), abs=1e-8, rel=1e-8)
            assert value >= -1e-15  # a divergence
            if type(generator).expected is not None:
                assert type(generator).expected(s, *params)[2] == 1.0


@pytest.mark.parametrize(
    "regulariser", [*(cls() for cls in BUILTIN_REGULARISERS), PowerOf(1.5)], ids=str
)
def test_regularisers_have_the_derivatives_of_their_value_and_an_inverse(regulariser):
    function, params = type(regulariser).function, regulariser.params
    for x in (-2.0, -0.3, 0.5, 3.0):
        value, first, second = function(x, *params)
        assert value == pytest.approx(oracle.regulariser(regulariser, x), rel=1e-13)
        step = 1e-5
        up, down = function(x + step, *params), function(x - step, *params)
        assert first == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-7)
        assert second == pytest.approx((up[1] - down[1]) / (2 * step), rel=1e-7)
        assert regulariser.inverse_slope(np.array([first]))[0] == pytest.approx(x, rel=1e-12)
        assert type(regulariser).inverse(first, *params) == pytest.approx(x, rel=1e-12)
    assert function(0.0, *params)[1] == 0.0


def test_outer_functions_have_the_derivatives_of_their_value():
    for outer in (Power(1.0), Power(2.5), Power(4.0), Expm1()):
        function = type(outer).function
        for x in (0.2, 1.0, 2.7):
            step = 1e-5
            value, first, second = function(x, *outer.params)
            exact = math.expm1(x) if outer.name == "expm1" else x ** outer.params[0]
            up, down = function(x + step, *outer.params), function(x - step, *outer.params)
            assert value == pytest.approx(exact, rel=1e-14)
            assert first == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-8)
            assert second == pytest.approx((up[1] - down[1]) / (2 * step), rel=1e-7, abs=1e-9)
    assert Power.function(0.0, 1.0) == (0.0, 1.0, 0.0)
    assert Power.function(0.0, 4.0) == (0.0, 0.0, 0.0)
    assert Power.function(1e-300, 1.0) == (1e-300, 1.0, 0.0)
    assert PowerOf.function(1e-200, 3.0)[2] == pytest.approx(0.0, abs=1e-199)


@pytest.mark.parametrize(
    ("cls", "params"),
    [
        (SquaredHinge, {"t": 0.0}),
        (DifferentiableHinge, {"alpha": 0.51}),
        (DifferentiableHinge, {"alpha": 0.0}),
        (PClassification, {"p": -1.0}),
        (PClassification, {"p": math.inf}),
        (Logistic, {"sigma": 0.0}),
        (PowerOf, {"q": 1.0}),
        (Power, {"p": 0.0}),
    ],
)
def test_parameters_outside_their_range_are_rejected(cls, params):
    with pytest.raises(ParameterError, match=f"{next(iter(params))} must be .*, got"):
        cls(**params)


@pytest.mark.parametrize("x", [1e-300, 1e-17, 1e-9, 0.3, 0.999, 1.0, 3.0, 600.0])
def test_the_exponential_price_keeps_its_digits(x):
    assert Expm1().function(x)[0] == pytest.approx(math.expm1(x), rel=1e-14)


def test_powers_below_two_are_stiff_at_zero():
    """The curvature has a pole there: q (q - 1) |x|^(q - 2)."""
    at_zero, beside = (PowerOf(q=1.5).function(x, 1.5)[2] for x in (0.0, 1e-12))
    assert at_zero == pytest.approx(beside, rel=1e-12)
    assert at_zero == pytest.approx(0.75e6, rel=1e-12)
    assert PowerOf(q=3.0).function(0.0, 3.0)[2] == 0.0
    assert PowerOf(q=2.0).function(0.0, 2.0)[2] == 2.0
