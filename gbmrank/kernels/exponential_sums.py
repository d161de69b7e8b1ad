r"""Sums of exponentials over pairs in one pass.

:math:`\sum_{ij} a_i b_j e^{-r (s_i - s_j)}` is a product of two sums. Scores are taken
around the middle of their range, so that nothing overflows while ``r * range`` stays
below 600; wider queries are declined and summed pair by pair with clipped exponents.
"""

import numpy as np

from gbmrank.kernels.jit import entry, inner, separate
from gbmrank.kernels.layout import Level
from gbmrank.kernels.score_range import middle_and_range
from gbmrank.types import FloatArray

__all__ = [
    "exponential_levels",
    "exponential_pairs",
    "p_classification_levels",
    "p_classification_pairs",
]

_WIDEST = 600.0


@separate
def _add_pairs(
    s: FloatArray,
    v: FloatArray,
    term: tuple[float, float, float],
    out: tuple[FloatArray, FloatArray],
) -> float:
    """Add ``c e^{-r d}`` over all ordered pairs weighted by v; term is (r, c, middle).

    The others of an item are those before and those after it: taking the item out of the
    sum of all would leave rounding errors where it outweighs the rest.
    """
    rate, factor, middle = term
    g, h = out
    n = len(s)
    e = np.empty(n)
    rising, falling = np.empty(n + 1), np.empty(n + 1)
    rising[n] = 0.0
    falling[n] = 0.0
    for i in range(n - 1, -1, -1):
        e[i] = np.exp(rate * (s[i] - middle))
        rising[i] = rising[i + 1] + e[i]
        falling[i] = falling[i + 1] + v[i] / e[i]
    value, risen, fallen = 0.0, 0.0, 0.0
    for i in range(n):
        down = v[i] / e[i] * (risen + rising[i + 1])
        up = e[i] * (fallen + falling[i + 1])
        value += down
        g[i] += factor * rate * (up - down)
        h[i] += factor * rate * rate * (up + down)
        risen += e[i]
        fallen += v[i] / e[i]
    return factor * value


@separate
def _add_levels(
    s: FloatArray,
    w: FloatArray,
    level: Level,
    term: tuple[float, float, float],
    out: tuple[FloatArray, FloatArray],
) -> float:
    """Add ``w_i c e^{-r d}`` over pairs whose better item is i; term is (r, c, middle)."""
    rate, factor, middle = term
    g, h = out
    n = len(s)
    below = np.empty(n + 1)
    above = np.empty(n + 1)
    below[n] = 0.0
    above[0] = 0.0
    for i in range(n):
        above[i + 1] = above[i] + w[i] * np.exp(-rate * (s[i] - middle))
        k = n - 1 - i
        below[k] = below[k + 1] + np.exp(rate * (s[k] - middle))
    value = 0.0
    for i in range(n):
        e = np.exp(rate * (s[i] - middle))
        down = w[i] / e * below[level.end[i]]
        up = e * above[level.begin[i]]
        value += down
        g[i] += factor * rate * (up - down)
        h[i] += factor * rate * rate * (up + down)
    return factor * value


@inner
def _clear(out: tuple[FloatArray, FloatArray]) -> None:
    out[0][:] = 0.0
    out[1][:] = 0.0


@entry
def exponential_pairs(
    s: FloatArray,
    v: FloatArray,
    params: tuple[float, ...],
    bend: float,
    out: tuple[FloatArray, FloatArray],
) -> float:
    """Exponential loss over all pairs; NaN when it declines."""
    middle, width = middle_and_range(s)
    if width > _WIDEST or not np.isnan(bend):
        return np.nan
    _clear(out)
    return _add_pairs(s, v, (1.0, 1.0, middle), out)


@entry
def p_classification_pairs(
    s: FloatArray,
    v: FloatArray,
    params: tuple[float, ...],
    bend: float,
    out: tuple[FloatArray, FloatArray],
) -> float:
    """Pair form of the p-classification loss over all pairs; NaN when it declines."""
    p = params[0]
    middle, width = middle_and_range(s)
    if width * max(p, 1.0) > _WIDEST or not np.isnan(bend):
        return np.nan
    _clear(out)
    value = _add_pairs(s, v, (1.0, 0.5, middle), out)
    return value + _add_pairs(s, v, (p, 0.5 / p, middle), out)


@entry
def exponential_levels(
    s: FloatArray,
    w: FloatArray,
    level: Level,
    params: tuple[float, ...],
    bend: float,
    out: tuple[FloatArray, FloatArray],
) -> float:
    """Exponential loss over pairs of different level; NaN when it declines."""
    middle, width = middle_and_range(s)
    if width > _WIDEST or not np.isnan(bend):
        return np.nan
    _clear(out)
    return _add_levels(s, w, level, (1.0, 1.0, middle), out)


@entry
def p_classification_levels(
    s: FloatArray,
    w: FloatArray,
    level: Level,
    params: tuple[float, ...],
    bend: float,
    out: tuple[FloatArray, FloatArray],
) -> float:
    """Pair form of the p-classification loss over levels; NaN when it declines."""
    p = params[0]
    middle, width = middle_and_range(s)
    if width * max(p, 1.0) > _WIDEST or not np.isnan(bend):
        return np.nan
    _clear(out)
    value = _add_levels(s, w, level, (1.0, 0.5, middle), out)
    return value + _add_levels(s, w, level, (p, 0.5 / p, middle), out)
