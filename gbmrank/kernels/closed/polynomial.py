r"""Hinge, squared hinge and squared margin over pairs: sums of powers of the scores.

The hinges sort: going down the sorted scores, the sums :math:`\sum_{j \ge k} (x_j - x_k)^m` for
m = 0, 1, 2 follow from one another by adding positive terms only, so nothing cancels however
far apart the scores are. More than 64 label levels are declined: each costs a sort.

The squared margin ``(1 - d)^2`` needs moments of the scores around their mean, so that sums of
squares do not cancel. The mean is rounded, so the sum of what is left is not zero and stays in
the formula.
"""

import numpy as np

from gbmrank.kernels.jit.decorators import entry, inner, separate
from gbmrank.kernels.layout import Level, Out, Params
from gbmrank.types import FloatArray, IntArray

_MANY_LEVELS = 64


@separate
def _excess_above(x: FloatArray) -> FloatArray:
    """Row m, column k: sum over j >= k of (x_j - x_k)^m for sorted x, m = 0, 1, 2."""
    n = len(x)
    sums = np.empty((3, n))
    sums[0, n - 1] = 1.0
    sums[1, n - 1] = 0.0
    sums[2, n - 1] = 0.0
    for i in range(1, n):
        k = n - 1 - i
        gap = x[k + 1] - x[k]
        sums[0, k] = sums[0, k + 1] + 1.0
        sums[1, k] = sums[1, k + 1] + gap * sums[0, k + 1]
        sums[2, k] = sums[2, k + 1] + gap * (2.0 * sums[1, k + 1] + gap * sums[0, k + 1])
    return sums


@separate
def _shortfall_below(x: FloatArray, w: FloatArray) -> FloatArray:
    """Row m, column k: sum over i <= k of w_i (x_k - x_i)^m for sorted x, m = 0, 1."""
    sums = np.empty((2, len(x)))
    sums[0, 0] = w[0]
    sums[1, 0] = 0.0
    for k in range(1, len(x)):
        gap = x[k] - x[k - 1]
        sums[0, k] = sums[0, k - 1] + w[k]
        sums[1, k] = sums[1, k - 1] + gap * sums[0, k - 1]
    return sums


@inner
def _shortfall(better: float, worse: float) -> float:
    """One minus the margin; an item against itself gives exactly one, so it cancels."""
    return 1.0 - (better - worse)


@separate
def _add_cross(
    better: tuple[FloatArray, FloatArray, IntArray],
    worse: tuple[FloatArray, IntArray],
    square: bool,
    out: Out,
) -> float:
    """Add the loss of every (better, worse) pair; both sides sorted by score, with positions."""
    x, w, at = better
    z, to = worse
    g, h = out
    above = _excess_above(z)
    below = _shortfall_below(x, w)
    value = 0.0
    k = 0
    for i in range(len(x)):
        while k < len(z) and _shortfall(x[i], z[k]) <= 0.0:
            k += 1
        if k == len(z):
            break
        lead = _shortfall(x[i], z[k])
        count, first, second = above[0, k], above[1, k], above[2, k]
        linear = count * lead + first
        if square:
            value += w[i] * (lead * (count * lead + 2.0 * first) + second)
            g[at[i]] -= 2.0 * w[i] * linear
            h[at[i]] += 2.0 * w[i] * count
        else:
            value += w[i] * linear
            g[at[i]] -= w[i] * count
    k = -1
    for j in range(len(z)):
        while k + 1 < len(x) and _shortfall(x[k + 1], z[j]) > 0.0:
            k += 1
        if k >= 0:
            lead = _shortfall(x[k], z[j])
            weight = below[0, k]
            g[to[j]] += 2.0 * (weight * lead + below[1, k]) if square else weight
            h[to[j]] += 2.0 * weight if square else 0.0
    return value


@separate
def _pairs(s: FloatArray, v: FloatArray, bend: float, square: bool, out: Out) -> float:
    g, h = out
    n = len(s)
    order = np.argsort(s)
    x = s[order]
    w = v[order]
    g[:] = 0.0
    h[:] = 0.0
    value = _add_cross((x, w, order), (x, order), square, out)
    slope = 2.0 if square else 1.0  # every item was paired with itself: value 1 each
    total = np.sum(v)
    for i in range(n):
        value -= v[i]
        if not np.isnan(bend):
            h[i] = bend * (v[i] * (n - 2.0) + total)
        elif square:
            h[i] -= 2.0 * slope * v[i]
    return value


@separate
def _levels(
    s: FloatArray, w: FloatArray, level: Level, shape: tuple[float, bool], out: Out
) -> float:
    bend, square = shape
    g, h = out
    n = len(s)
    if level.levels > _MANY_LEVELS:
        return np.nan
    g[:] = 0.0
    h[:] = 0.0
    value = 0.0
    begin = 0
    while level.end[begin] < n:
        end = level.end[begin]
        top = np.argsort(s[begin:end]) + begin
        rest = np.argsort(s[end:]) + end
        value += _add_cross((s[top], w[top], top), (s[rest], rest), square, out)
        begin = end
    if not np.isnan(bend):
        weight = np.zeros(n + 1)
        for i in range(n):
            weight[i + 1] = weight[i] + w[i]
        for i in range(n):
            h[i] = bend * (w[i] * (n - level.end[i]) + weight[level.begin[i]])
    return value


@entry
def hinge_pairs(s: FloatArray, v: FloatArray, params: Params, bend: float, out: Out) -> float:
    """Hinge over all pairs; NaN when it declines."""
    return _pairs(s, v, bend, False, out)


@entry
def squared_hinge_pairs(
    s: FloatArray, v: FloatArray, params: Params, bend: float, out: Out
) -> float:
    """Squared hinge over all pairs; NaN when it declines."""
    return _pairs(s, v, bend, True, out)


@entry
def hinge_levels(
    s: FloatArray, w: FloatArray, level: Level, params: Params, bend: float, out: Out
) -> float:
    """Hinge over pairs of different level; NaN when it declines."""
    return _levels(s, w, level, (bend, False), out)


@entry
def squared_hinge_levels(
    s: FloatArray, w: FloatArray, level: Level, params: Params, bend: float, out: Out
) -> float:
    """Squared hinge over pairs of different level; NaN when it declines."""
    return _levels(s, w, level, (bend, True), out)


@entry
def squared_margin_pairs(
    s: FloatArray, v: FloatArray, params: Params, bend: float, out: Out
) -> float:
    """Squared margin loss over all ordered pairs weighted by v."""
    g, h = out
    n = len(s)
    mean = np.mean(s)
    rest, squares, weight, moment = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        x = s[i] - mean
        rest += x
        squares += x * x
        weight += v[i]
        moment += v[i] * x
    value = 0.0
    each = 2.0 if np.isnan(bend) else bend
    for i in range(n):
        x = s[i] - mean
        low = 1.0 - x
        value += v[i] * ((n * low + 2.0 * rest) * low + squares - 1.0)
        g[i] = -2.0 * v[i] * (n * low + rest - 1.0) + 2.0 * (weight * (1.0 + x) - moment - v[i])
        h[i] = each * (v[i] * (n - 2.0) + weight)
    return value


@entry
def squared_margin_levels(
    s: FloatArray, w: FloatArray, level: Level, params: Params, bend: float, out: Out
) -> float:
    """Squared margin loss over pairs of different level."""
    g, h = out
    n = len(s)
    mean = np.mean(s)
    below = np.zeros((2, n + 1))
    above = np.zeros((2, n + 1))
    for i in range(n):
        x = s[i] - mean
        above[0, i + 1] = above[0, i] + w[i]
        above[1, i + 1] = above[1, i] + w[i] * x
        k = n - 1 - i
        x = s[k] - mean
        below[0, k] = below[0, k + 1] + x
        below[1, k] = below[1, k + 1] + x * x
    value = 0.0
    each = 2.0 if np.isnan(bend) else bend
    for i in range(n):
        x = s[i] - mean
        low = 1.0 - x
        first, last = level.begin[i], level.end[i]
        count = n - last
        value += w[i] * (count * low * low + 2.0 * low * below[0, last] + below[1, last])
        pull = -2.0 * w[i] * (count * low + below[0, last])
        push = 2.0 * ((1.0 + x) * above[0, first] - above[1, first])
        g[i] = pull + push
        h[i] = each * (w[i] * count + above[0, first])
    return value
