"""The linear-time engine against double loops over all pairs."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from gbmrank.kernels.jit import threads
from gbmrank.kernels.layout import Engines, GradHess
from gbmrank.kernels.linear import engine
from gbmrank.kernels.linear.engine import LongItems, Tables, sum_pairs
from gbmrank.kernels.linear.interpolation import make_plan
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


TABLES = {name: Tables(loss, params, PLANS[name]) for name, (loss, params) in LOSSES.items()}
ALWAYS = Engines(closed_from=0, linear_from=0, linear_range=0.0, bend=math.nan)


def all_pairs(name, s, v, dtype=np.float64):
    """Value, gradient and Hessian over all pairs of one query."""
    items = LongItems(np.arange(len(s)), v, np.array([0, len(s)]), np.array([0, 1]), inside=True)
    out = GradHess(np.zeros(len(s), dtype), np.zeros(len(s), dtype))
    return sum_pairs(items, s, TABLES[name], ALWAYS, np.ones(1), out)[0], out


def by_level(name, s, v, sizes):
    """Value, gradient and Hessian over pairs of different level; the best level comes first."""
    blocks = np.cumsum([0, *sizes])
    items = LongItems(np.arange(len(s)), v, blocks, np.array([0, len(sizes)]), inside=False)
    out = GradHess(np.zeros(len(s)), np.zeros(len(s)))
    return sum_pairs(items, s, TABLES[name], ALWAYS, np.ones(1), out)[0], out


@pytest.mark.parametrize("sparse_weights", [False, True])
@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("name", LOSSES)
def test_all_pairs_match_the_double_loop(name, vector, sparse_weights):
    s, plan = VECTORS[vector], PLANS[name]
    rng = np.random.default_rng(3)
    v = rng.random(len(s)) * (rng.random(len(s)) < 0.1 if sparse_weights else 1.0)
    value, out = all_pairs(name, s, v)
    if np.ptp(s) > plan.reach:
        assert math.isnan(value)
        assert not out.grad.any()
        return
    loss, params = LOSSES[name]
    expected = expected_all_pairs(loss, params, s, v)
    floor = floor_of(loss, params, v)
    assert_close(out.grad, expected["grad"], floor)
    assert_close(out.hess, expected["hess"], floor)
    assert_close(value, expected["value"], floor * len(s))


@pytest.mark.parametrize("vector", ["normal", "two_clusters", "ties", "uniform"])
def test_runs_of_a_query_add_up(vector, monkeypatch):
    """A query of so many items that its moments are summed in several runs."""
    monkeypatch.setattr(engine, "_RUN", 20)
    rng = np.random.default_rng(8)
    s, v = np.concatenate([VECTORS[vector], 0.1 * rng.normal(size=90)]), rng.random(180)
    value, out = all_pairs("logistic", s, v)
    expected = expected_all_pairs(logistic, (1.0,), s, v)
    floor = floor_of(logistic, (1.0,), v)
    assert_close(out.grad, expected["grad"], floor)
    assert_close(out.hess, expected["hess"], floor)
    assert_close(value, expected["value"], floor * len(s))


def test_float32_results_are_the_rounded_float64_ones():
    s, v = VECTORS["normal"], np.linspace(0.0, 1.0, 90)
    _, double = all_pairs("logistic_sharp", s, v)
    _, single = all_pairs("logistic_sharp", s, v, np.float32)
    np.testing.assert_array_equal(single.grad, double.grad.astype(np.float32))
    np.testing.assert_array_equal(single.hess, double.hess.astype(np.float32))


@pytest.mark.parametrize("sizes", [(30, 60), (10, 20, 60), (90,)])
@pytest.mark.parametrize("vector", ["normal", "two_clusters", "ties", "heavy_tails", "enormous"])
@pytest.mark.parametrize("name", LOSSES)
def test_pairs_of_different_level_match_the_double_loop(name, vector, sizes):
    s, v = VECTORS[vector], np.random.default_rng(4).random(90)
    value, out = by_level(name, s, v, sizes)
    if np.ptp(s) > PLANS[name].reach:
        assert math.isnan(value)
        return
    loss, params = LOSSES[name]
    level = np.repeat(np.arange(len(sizes)), sizes)
    pairs = np.where(level[:, None] < level[None, :], v[:, None], 0.0)
    tables = pair_tables(loss, params, s, s) * pairs
    floor = floor_of(loss, params, v)
    size = np.abs(tables)
    for found, table, absolute, sign in zip(out, tables[1:], size[1:], (-1, 1), strict=True):
        expected = table.sum(1) + sign * table.sum(0)
        assert_close(found, (expected, absolute.sum(1) + absolute.sum(0)), floor)
    assert_close(value, (tables[0].sum(), size[0].sum()), floor * len(s))


def test_queries_do_not_see_each_other():
    rng = np.random.default_rng(5)
    parts = [rng.normal(size=50), 1e3 + 400.0 * rng.normal(size=300), np.array([3.0, np.nan])]
    s, v = np.concatenate(parts), rng.random(352)
    starts = np.cumsum([0, *map(len, parts)])
    items = LongItems(np.arange(352)[::-1].copy(), v, starts, np.arange(4), inside=True)
    out = GradHess(np.zeros(352), np.zeros(352))
    scale = np.array([1.0, 2.0, 3.0])
    values = sum_pairs(items, s[::-1].copy(), TABLES["logistic"], ALWAYS, scale, out)
    assert np.isnan(values).tolist() == [False, False, True]
    assert not out.grad[:2].any()
    for q, (first, last) in enumerate(itertools.pairwise(starts[:3])):
        value, alone = all_pairs("logistic", parts[q], v[first:last])
        assert values[q] == pytest.approx(scale[q] * value, rel=1e-14)
        np.testing.assert_allclose(out.grad[::-1][first:last], scale[q] * alone.grad, rtol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 5, 16])
def test_scores_that_are_not_finite_are_rejected(bad, place):
    s = np.arange(17.0)
    s[place] = bad
    value, out = all_pairs("logistic", s, np.ones(17))
    assert math.isnan(value)
    assert not out.grad.any()


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


@pytest.mark.parametrize("name", ["logistic", "logistic_flat", "brier"])
def test_sampled_items_of_a_long_query(name):
    rng = np.random.default_rng(11)
    s = np.clip(rng.standard_t(3, size=20_000), -60.0, 60.0)
    v = rng.random(20_000) ** 4
    loss, params = LOSSES[name]
    _, out = all_pairs(name, s, v)
    floor = floor_of(loss, params, v)
    for i in [int(np.argmin(s)), int(np.argmax(s)), *range(2)]:
        grad, hess = exactly_summed(loss, params, s, v, i)
        assert_close(out.grad[i], grad, floor)
        assert_close(out.hess[i], hess, floor)


@pytest.mark.parametrize("name", ["logistic", "brier", "asym_b"])
def test_gradient_is_the_slope_of_the_value(name):
    rng = np.random.default_rng(12)
    s, v, step = rng.normal(size=400), rng.random(400), 1e-4
    _, out = all_pairs(name, s, v)
    direction = rng.normal(size=400)
    values = [all_pairs(name, s + shift * direction, v)[0] for shift in (-step, step)]
    slope = (values[1] - values[0]) / (2.0 * step)
    assert slope == pytest.approx(out.grad @ direction, rel=1e-6)
    assert abs(out.grad.sum()) <= 1e-10 * abs(out.grad).sum()


@pytest.fixture
def restore_threads():
    yield
    threads.set_num_threads(None)


@pytest.mark.parametrize("width", [1.0, pytest.param(1e6, marks=pytest.mark.nightly)])
def test_results_do_not_depend_on_the_number_of_threads(width, restore_threads):
    rng = np.random.default_rng(13)
    n = 120_001  # two runs of items, which have most cells to themselves when they lie far apart
    s, v = width * rng.uniform(-1.0, 1.0, n), rng.random(n)
    results = []
    for count in (1, 2):
        threads.set_num_threads(count)
        value, out = all_pairs("logistic", s, v, np.float32)
        cross, other = by_level("logistic", s, v, (n // 3, n - n // 3))
        results.append((value, cross, *out, *other))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
    far, near = int(np.argmax(s)), int(np.argmin(np.abs(s)))
    for i in (far, near):
        ahead, behind = softplus_slopes(s[i] - s), softplus_slopes(s - s[i])
        ahead[i] = behind[i] = 0.0
        expected, size = v[i] * ahead - v * behind, v[i] * np.abs(ahead) + v * np.abs(behind)
        assert abs(results[0][2][i] - expected.sum()) <= 1e-6 * size.sum()


def softplus_slopes(z):
    return -1.0 / (1.0 + np.exp(np.clip(z, -700.0, 700.0)))


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
    plan = PLANS["asym_b"]
    for scores in (
        np.array([0.0, 1.5 * plan.reach]),  # a narrow place, a wide range
        np.array([0.0, 1.0]) + 2.0**46 * plan.width,  # the other way round
    ):
        assert math.isnan(all_pairs("asym_b", scores, np.ones(2))[0])
    assert all_pairs("asym_b", np.array([0.0, 1.0]), np.ones(2))[0] > 0.0


def test_tables_grow_with_the_distance_and_end_at_the_bands():
    calls = []

    def counted(z):
        calls.append(z)
        return logistic(z, 1.0)

    plan = PLANS["logistic"]
    tables = Tables(counted, (), plan)
    near, lowest, highest = tables.between(3)
    assert (lowest, highest) == (-min(24, plan.lower.band), min(24, plan.upper.band))
    made = len(calls)
    assert tables.between(10)[0] is not None
    assert len(calls) == made
    far, lowest, highest = tables.between(10**9)
    assert (lowest, highest) == (-plan.lower.band, plan.upper.band)
    start = (far.size - near.size) // 2 if -lowest == highest else None
    if start is not None:
        np.testing.assert_array_equal(far[start : start + near.size], near)
