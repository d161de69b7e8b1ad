"""The compiled twins of the stable functions, against many digits."""

import math

import mpmath
import numba
import numpy as np
import pytest

from gbmrank import numerics
from gbmrank.kernels.jit import decorators

assert decorators is not None  # importing it gives the compiler its own versions

_POINTS = np.concatenate(
    [
        np.linspace(-699.9, 699.9, 1_501),
        np.linspace(-2.0, 2.0, 401),
        np.array([s * 10.0**e for e in range(-320, 3, 7) for s in (-1, 1)]),
        np.array([0.0, -0.0, math.log(2.0), -math.log(2.0), 0.5 * math.log(2.0)]),
    ]
)


@numba.njit
def over_exp(x, out):
    for i in range(len(x)):
        out[i] = numerics.exp(x[i])


@numba.njit
def over_log1p_unit(x, out):
    for i in range(len(x)):
        out[i] = numerics.log1p_unit(x[i])


@numba.njit
def over_sigmoid(x, out):
    for i in range(len(x)):
        out[i] = numerics.sigmoid(x[i])


@numba.njit
def over_softplus(x, out):
    for i in range(len(x)):
        out[i] = numerics.softplus(x[i])


def compiled(loop, x):
    out = np.empty(len(x))
    loop(np.asarray(x, dtype=np.float64), out)
    return out


def ulps(values, exact):
    """Distance in units in the last place of the exact value."""
    return [
        abs(float(mpmath.mpf(float(value)) - true)) / math.ulp(float(true))
        for value, true in zip(values, exact, strict=True)
    ]


def exact_of(function, x):
    with mpmath.workdps(60):
        return [function(mpmath.mpf(float(value))) for value in x]


CASES = {
    "exp": (over_exp, mpmath.exp, _POINTS),
    "log1p_unit": (
        over_log1p_unit,
        mpmath.log1p,
        np.concatenate([np.linspace(0.0, 1.0, 2_001), 10.0 ** np.arange(-300, 0, 5.0)]),
    ),
    "sigmoid": (over_sigmoid, lambda x: 1 / (1 + mpmath.exp(-x)), _POINTS),
    "softplus": (over_softplus, lambda x: mpmath.log1p(mpmath.exp(x)), _POINTS),
}


@pytest.mark.parametrize("name", CASES)
def test_compiled_functions_are_accurate_to_a_few_units_in_the_last_place(name):
    loop, exact, x = CASES[name]
    x = x[x != 0.0] if name == "log1p_unit" else x
    assert max(ulps(compiled(loop, x), exact_of(exact, x))) <= 4.0


@pytest.mark.parametrize("name", CASES)
def test_plain_functions_are_accurate_too(name):
    _, exact, x = CASES[name]
    x = x[x != 0.0] if name == "log1p_unit" else x
    plain = [getattr(numerics, name)(float(value)) for value in x]
    assert max(ulps(plain, exact_of(exact, x))) <= 4.0


def test_zero_is_exact():
    assert compiled(over_exp, [0.0])[0] == 1.0
    assert compiled(over_log1p_unit, [0.0])[0] == 0.0
    assert compiled(over_sigmoid, [0.0])[0] == 0.5


def test_extremes_are_clipped_and_finite():
    huge = [700.0, 701.0, 1e5, 1e300, np.inf]
    np.testing.assert_array_equal(compiled(over_exp, huge), [compiled(over_exp, [700.0])[0]] * 5)
    tiny = compiled(over_exp, [-x for x in huge])
    np.testing.assert_array_equal(tiny, [tiny[0]] * 5)
    assert tiny[0] > 0.0
    assert compiled(over_exp, [700.0])[0] == pytest.approx(math.exp(700.0), rel=1e-14)
    np.testing.assert_array_equal(compiled(over_sigmoid, [800.0, 1e308]), [1.0, 1.0])
    assert (compiled(over_sigmoid, [-800.0, -1e308]) > 0.0).all()
    np.testing.assert_array_equal(compiled(over_softplus, [1e4, 1e308]), [1e4, 1e308])
    assert (compiled(over_softplus, [-1e4, -1e308]) < 1e-300).all()


def test_compiled_and_plain_agree_at_the_extremes():
    x = np.array([-1e308, -701.0, -700.0, -37.0, 37.0, 700.0, 701.0, 1e308])
    for name, (loop, _, _) in CASES.items():
        if name != "log1p_unit":
            plain = [getattr(numerics, name)(float(value)) for value in x]
            np.testing.assert_allclose(compiled(loop, x), plain, rtol=1e-14)


def test_not_a_number_stays_visible():
    """A bad score must not turn into an ordinary gradient."""
    for loop in (over_exp, over_sigmoid, over_softplus):
        assert not np.isfinite(compiled(loop, [np.nan])[0])


def test_sigmoids_of_both_signs_sum_to_one():
    x = np.linspace(-40.0, 40.0, 1_001)
    both = compiled(over_sigmoid, x) + compiled(over_sigmoid, -x)
    np.testing.assert_allclose(both, 1.0, rtol=3e-16)
