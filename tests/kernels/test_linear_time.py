"""The linear-time engine against double loops over all pairs."""

import math
from typing import Any

import numpy as np
import pytest

from gbmrank.kernels.jit import compiler, threads
from gbmrank.kernels.linear.interpolation import Side, make_plan
from gbmrank.numerics import exp, sigmoid, softplus

CONTRACT = 1e-9  # of the sum of absolute terms
LEFT_OUT = 1e-17  # of the loss's size at zero, per unit of weight: what straight tails drop


def logistic(z, sigma):
    p = sigmoid(-sigma * z)
    return softplus(-sigma * z), -sigma * p, sigma * sigma * p * sigmoid(sigma * z)


def asym_b(z):
    e, t = exp(-0.5 * z), sigmoid(-z)
    return (
        0.5 * (e + softplus(-z)),
        -0.5 * (0.5 * e + t),
        0.5 * (0.25 * e + t * sigmoid(z)),
    )


def asym_a(z):
    e, t, s = exp(-z), sigmoid(-z), sigmoid(z)
    root = math.sqrt(t)
    back = t / math.sqrt(s)
    value = math.log1p(root) + 0.5 * softplus(-z) + e / (math.sqrt(1.0 + e) + 1.0)
    return value, -0.5 * (root + back), 0.25 * s * root + 0.5 * back * (1.0 - 0.5 * t)


def canonical_boosting(z):
    r = math.sqrt(1.0 + 0.25 * z * z)
    large = r + 0.5 * abs(z)
    return (1.0 / large if z > 0.0 else large), 0.25 * z / r - 0.5, 0.25 / (r * r * r)


def brier(z):
    s, t = sigmoid(z), sigmoid(-z)
    return t * t, -2.0 * s * t * t, 2.0 * s * t * t * (2.0 * s - t)


def hinge(z):
    return max(1.0 - z, 0.0), -1.0 if z < 1.0 else 0.0, 0.0


def squared_hinge(z):
    gap = max(1.0 - z, 0.0)
    return gap * gap, -2.0 * gap, 2.0 if z < 1.0 else 0.0


def exponential_clipped(z):
    e = exp(-z)
    return e, -e, e


LOSSES: dict[str, tuple[Any, tuple[float, ...]]] = {
    "logistic": (logistic, (1.0,)),
    "logistic_sharp": (logistic, (37.0,)),
    "logistic_flat": (logistic, (0.3,)),
    "asym_a": (asym_a, ()),
    "asym_b": (asym_b, ()),
    "canonical_boosting": (canonical_boosting, ()),
    "brier": (brier, ()),
}


def vectors():
    rng = np.random.default_rng(7)
    n = 90
    return {
        "normal": 2.0 * rng.normal(size=n),
        "all_equal": np.full(n, 3.3),
        "two_clusters": np.where(rng.random(n) < 0.5, 0.0, 1e3) + rng.normal(size=n),
        "heavy_tails": np.clip(20.0 * rng.standard_cauchy(n), -5e3, 5e3),
        "ties": rng.integers(0, 5, n).astype(float),
        "range_zero": np.array([1.0, 1.0]),
        "far_pair": np.array([0.0, 30.0]),
        "uniform": rng.uniform(-50.0, 50.0, n),
        "large_offset": 1e6 + rng.normal(size=n),
        "isolated": 25.0 * np.arange(30.0),
        "mostly_empty": rng.uniform(-1e3, 1e3, n),
        "enormous": rng.uniform(-1e9, 1e9, n),
        "one_item": np.array([2.5]),
    }


VECTORS = vectors()


def pair_tables(loss, params, better, worse):
    """Value, first and second derivative for every pair, by a double loop."""
    rows = [[loss(float(a - b), *params) for b in worse] for a in better]
    return np.moveaxis(np.array(rows).reshape(len(better), len(worse), 3), 2, 0)


def expected_all_pairs(loss, params, s, v):
    """Gradient, Hessian and value with their sums of absolute terms."""
    value, first, second = pair_tables(loss, params, s, s)
    others = 1.0 - np.eye(len(s))
    value, first, second = value * others, first * others, second * others
    return {
        "grad": (v * first.sum(1) - v @ first, v * abs(first).sum(1) + v @ abs(first)),
        "hess": (v * second.sum(1) + v @ second, v * abs(second).sum(1) + v @ abs(second)),
        "value": (v @ value.sum(1), v @ abs(value).sum(1)),
    }


def assert_close(actual, expected, floor, rounding=0.0):
    exact, size = expected
    allowed = CONTRACT * size + rounding * np.abs(exact) + floor
    assert np.all(np.abs(actual - exact) <= allowed)


def floor_of(loss, params, weights):
    return LEFT_OUT * max(map(abs, loss(0.0, *params))) * (len(weights) + weights.sum())


def plan_of(loss, params=(), accuracy=1e-10):
    report = make_plan(loss, params, accuracy)
    assert report.plan is not None, report.reason
    assert report.error <= accuracy
    return report.plan


PLANS = {name: plan_of(loss, params) for name, (loss, params) in LOSSES.items()}


@pytest.fixture(scope="module")
def engine():
    """Kernels, plan and parameters of a loss by name."""

    def load(name):
        loss, params = LOSSES[name]
        return compiler.load("linear.engine", phi=loss), PLANS[name], params

    return load


def losses(*every_time: str) -> Any:
    """Losses as the parameter; each compiles for ten seconds, so the others run at night."""
    return pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, marks=() if name in every_time else pytest.mark.nightly)
            for name in LOSSES
        ],
    )


def new_side(s, v, dtype=np.float64):
    return Side(s, v, np.zeros(len(s), dtype), np.zeros(len(s), dtype))


@pytest.mark.parametrize("sparse_weights", [False, True])
@pytest.mark.parametrize("vector", VECTORS)
@losses("logistic", "logistic_sharp", "logistic_flat", "brier")
def test_all_pairs_match_the_double_loop(engine, name, vector, sparse_weights):
    kernels, plan, params = engine(name)
    s = VECTORS[vector]
    rng = np.random.default_rng(3)
    v = rng.random(len(s)) * (rng.random(len(s)) < 0.1 if sparse_weights else 1.0)
    side = new_side(s, v)
    value = kernels.all_pairs(side, plan, params)
    if np.ptp(s) > plan.reach:
        assert math.isnan(value)
        assert not side.grad.any()
        return
    loss = LOSSES[name][0]
    expected = expected_all_pairs(loss, params, s, v)
    floor = floor_of(loss, params, v)
    assert_close(side.grad, expected["grad"], floor)
    assert_close(side.hess, expected["hess"], floor)
    assert_close(value, expected["value"], floor * len(s))


@losses("logistic", "logistic_sharp")
def test_float32_results_are_the_rounded_float64_ones(engine, name):
    kernels, plan, params = engine(name)
    s, v = VECTORS["normal"], np.linspace(0.0, 1.0, 90)
    double, single = new_side(s, v), new_side(s, v, np.float32)
    kernels.all_pairs(double, plan, params)
    kernels.all_pairs(single, plan, params)
    np.testing.assert_array_equal(single.grad, double.grad.astype(np.float32))
    np.testing.assert_array_equal(single.hess, double.hess.astype(np.float32))


@pytest.mark.parametrize("vector", ["normal", "two_clusters", "ties", "heavy_tails", "enormous"])
@losses("logistic", "logistic_sharp", "logistic_flat")
def test_cross_pairs_match_the_double_loop_and_add(engine, name, vector):
    kernels, plan, params = engine(name)
    s = VECTORS[vector]
    rng = np.random.default_rng(4)
    better = new_side(s[::3].copy(), rng.random(len(s[::3])))
    worse = new_side(s[1::3].copy(), rng.random(len(s[1::3])))
    better.grad[:] = 5.0
    value = kernels.cross_pairs(better, worse, plan, params)
    if np.ptp(np.concatenate([better.scores, worse.scores])) > plan.reach:
        assert math.isnan(value)
        return
    loss = LOSSES[name][0]
    tables = pair_tables(loss, params, better.scores, worse.scores)
    a, b = better.weights, worse.weights
    floor = floor_of(loss, params, np.concatenate([a, b]))

    def seen(table, by_better):
        total = a * (table @ b) if by_better else b * (a @ table)
        size = a * (abs(table) @ b) if by_better else b * (a @ abs(table))
        return total, size

    # Adding to 5 rounds to the last place of 5.
    assert_close(better.grad - 5.0, seen(tables[1], True), floor + 1e-15)
    assert_close(better.hess, seen(tables[2], True), floor)
    total, size = seen(tables[1], False)
    assert_close(worse.grad, (-total, size), floor)
    assert_close(worse.hess, seen(tables[2], False), floor)
    assert_close(value, (a @ tables[0] @ b, a @ abs(tables[0]) @ b), floor * len(s))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("vector", ["normal", "two_clusters", "ties", "mostly_empty"])
@losses("logistic", "logistic_sharp", "logistic_flat")
def test_cross_fields_match_the_double_loop(engine, name, vector, sign):
    kernels, plan, params = engine(name)
    s = VECTORS[vector]
    targets, sources = s[::2].copy(), s[1::2].copy()
    weights = np.random.default_rng(5).random(len(sources))
    out = np.full((len(targets), 4), np.nan)
    done = kernels.cross_fields(targets, (sources, weights), sign, plan, params, out)
    if np.ptp(s) > plan.reach + 1.0:
        assert not done
        return
    assert done
    loss = LOSSES[name][0]
    tables = pair_tables(loss, params, sign * targets, sign * sources)
    floor = floor_of(loss, params, weights)
    for column, table in enumerate([*tables, tables[1] ** 2]):
        assert_close(out[:, column], (table @ weights, abs(table) @ weights), floor)


def test_empty_sides_have_no_pairs(engine):
    kernels, plan, params = engine("logistic")
    one, none = new_side(np.ones(1), np.ones(1)), new_side(np.empty(0), np.empty(0))
    assert kernels.cross_pairs(one, none, plan, params) == 0.0
    assert kernels.all_pairs(none, plan, params) == 0.0
    assert kernels.all_pairs_threaded(none, plan, params) == 0.0
    assert kernels.all_pairs(new_side(np.ones(1), np.ones(1)), plan, params) == 0.0
    out = np.full((1, 4), np.nan)
    assert kernels.cross_fields(one.scores, (none.scores, none.weights), 1.0, plan, params, out)
    assert not out.any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 5, 16])
def test_scores_that_are_not_finite_are_rejected(engine, bad, place):
    kernels, plan, params = engine("logistic")
    s = np.arange(17.0)
    s[place] = bad
    side = new_side(s, np.ones(17))
    assert math.isnan(kernels.all_pairs(side, plan, params))
    assert not side.grad.any()


def exactly_summed(loss, params, s, v, i):
    """Gradient and Hessian of one item with correctly rounded sums."""
    slopes, curves = [], []
    for j in range(len(s)):
        if j != i:
            _, ahead, ahead_curve = loss(float(s[i] - s[j]), *params)
            _, behind, behind_curve = loss(float(s[j] - s[i]), *params)
            slopes += [v[i] * ahead, -v[j] * behind]
            curves += [v[i] * ahead_curve, v[j] * behind_curve]
    return (
        (math.fsum(slopes), math.fsum(map(abs, slopes))),
        (math.fsum(curves), math.fsum(map(abs, curves))),
    )


@losses("logistic", "logistic_sharp", "logistic_flat", "brier")
def test_sampled_items_of_a_long_query(engine, name):
    kernels, plan, params = engine(name)
    rng = np.random.default_rng(11)
    s = np.clip(rng.standard_t(3, size=20_000), -60.0, 60.0)
    v = rng.random(20_000) ** 4
    side = new_side(s, v)
    kernels.all_pairs(side, plan, params)
    floor = floor_of(LOSSES[name][0], params, v)
    for i in [int(np.argmin(s)), int(np.argmax(s)), *range(4)]:
        grad, hess = exactly_summed(LOSSES[name][0], params, s, v, i)
        assert_close(side.grad[i], grad, floor)
        assert_close(side.hess[i], hess, floor)


@losses("logistic", "brier")
def test_gradient_is_the_slope_of_the_value(engine, name):
    kernels, plan, params = engine(name)
    rng = np.random.default_rng(12)
    s, v, step = rng.normal(size=400), rng.random(400), 1e-4
    side = new_side(s, v)
    kernels.all_pairs(side, plan, params)
    direction = rng.normal(size=400)
    values = [
        kernels.all_pairs(new_side(s + shift * direction, v), plan, params)
        for shift in (-step, step)
    ]
    slope = (values[1] - values[0]) / (2.0 * step)
    assert slope == pytest.approx(side.grad @ direction, rel=1e-6)
    assert abs(side.grad.sum()) <= 1e-10 * abs(side.grad).sum()


@pytest.fixture
def restore_threads():
    yield
    threads.set_num_threads(None)


@pytest.mark.parametrize("vector", ["dense", "mostly_empty"])
def test_results_do_not_depend_on_the_number_of_threads(engine, vector, restore_threads):
    kernels, plan, params = engine("logistic")
    rng = np.random.default_rng(13)
    n = 30_001
    s = rng.normal(size=n) if vector == "dense" else rng.uniform(-1e6, 1e6, n)
    v = rng.random(n)
    results = []
    for count in (1, 2):
        threads.set_num_threads(count)
        side = new_side(s, v, np.float32)
        better, worse = new_side(s[: n // 3], v[: n // 3]), new_side(s[n // 3 :], v[n // 3 :])
        value = kernels.all_pairs_threaded(side, plan, params)
        cross = kernels.cross_pairs_threaded(better, worse, plan, params)
        results.append((value, cross, *side[2:], *better[2:], *worse[2:]))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
    alone = new_side(s, v)
    value = kernels.all_pairs(alone, plan, params)
    assert results[0][0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(results[0][2], alone.grad, rtol=1e-6, atol=1e-6 * v.sum())


def test_threaded_calls_reject_what_the_kernels_reject(engine):
    kernels, plan, params = engine("logistic")
    side = new_side(np.array([0.0, np.nan]), np.ones(2))
    other = new_side(np.zeros(1), np.ones(1))
    empty = new_side(np.empty(0), np.empty(0))
    assert math.isnan(kernels.all_pairs_threaded(side, plan, params))
    assert math.isnan(kernels.cross_pairs_threaded(side, other, plan, params))
    assert kernels.cross_pairs_threaded(side, empty, plan, params) == 0.0


@pytest.mark.parametrize("loss", [hinge, squared_hinge])
def test_losses_with_kinks_are_rejected_with_the_place(loss):
    report = make_plan(loss)
    assert report.plan is None
    assert loss.__name__ in report.reason
    assert "near 1 " in report.reason


def test_plans_know_the_tails():
    logistic_plan = plan_of(logistic, (2.0,))
    assert logistic_plan.reach == math.inf
    assert logistic_plan.lower[1:] == (0.0, -2.0)
    assert logistic_plan.upper[1:] == (0.0, 0.0)
    assert plan_of(brier).lower[1:] == (1.0, 0.0)


@pytest.mark.parametrize("loss", [asym_a, asym_b, exponential_clipped])
def test_reach_ends_before_exponents_are_clipped(loss):
    plan = plan_of(loss)
    steepest = 1.0 if loss is exponential_clipped else 0.5
    assert 300.0 < plan.reach < 700.0 / steepest


def test_wider_cells_for_less_accuracy():
    fine, coarse = plan_of(logistic, (1.0,), 1e-12), plan_of(logistic, (1.0,), 1e-6)
    assert fine.width < coarse.width


def test_cells_are_laid_where_range_and_distance_allow_it():
    plan, build = plan_of(asym_b), compiler.load("linear.cells").build_grid
    for scores in (
        np.array([0.0, 1.5 * plan.reach]),  # a narrow place, a wide range
        np.array([0.0, 1.0]) + 2.0**46 * plan.width,  # the other way round
        np.array([0.0, np.nan]),
        np.array([np.nan, 0.0]),
    ):
        assert len(build(scores, scores[:0], plan).cells) == 0
        assert len(build(scores[:1], scores[1:], plan).cells) == 0
    assert len(build(np.array([0.0, 1.0]), np.array([2.0]), plan).cells) > 0
