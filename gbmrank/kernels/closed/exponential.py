r"""Sums of exponentials over pairs in one pass.

:math:`\sum_{ij} a_i b_j e^{-r (s_i - s_j)}` is a product of two sums. Scores are taken
around the middle of their range, so that nothing overflows while ``r * range`` stays
below 600; wider queries are declined and summed pair by pair with clipped exponents.

The p-norm push, :math:`\frac1N \sum_j (\frac1P \sum_i e^{-(s_i - s_j)})^p`, is
:math:`(\mathrm{mean}_i e^{-s_i})^p \, \mathrm{mean}_j e^{p s_j}`; it is computed from its
logarithm, which has no overflow, and from differences of scores, which keep their digits
where scores lie far from zero.
"""

from typing import NamedTuple

import numpy as np

from gbmrank.kernels.jit.decorators import entry, inner, separate
from gbmrank.kernels.layout import GradHess, Level, Out, Params, PushQueries, Span
from gbmrank.kernels.scores import middle_and_range
from gbmrank.types import FloatArray

_WIDEST = 600.0


@separate
def _add_pairs(s: FloatArray, v: FloatArray, term: tuple[float, float, float], out: Out) -> float:
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
    s: FloatArray, w: FloatArray, level: Level, term: tuple[float, float, float], out: Out
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
def _clear(out: Out) -> None:
    out[0][:] = 0.0
    out[1][:] = 0.0


@entry
def exponential_pairs(s: FloatArray, v: FloatArray, params: Params, bend: float, out: Out) -> float:
    """Exponential loss over all pairs; NaN when it declines."""
    middle, width = middle_and_range(s)
    if width > _WIDEST or not np.isnan(bend):
        return np.nan
    _clear(out)
    return _add_pairs(s, v, (1.0, 1.0, middle), out)


@entry
def p_classification_pairs(
    s: FloatArray, v: FloatArray, params: Params, bend: float, out: Out
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
    s: FloatArray, w: FloatArray, level: Level, params: Params, bend: float, out: Out
) -> float:
    """Exponential loss over pairs of different level; NaN when it declines."""
    middle, width = middle_and_range(s)
    if width > _WIDEST or not np.isnan(bend):
        return np.nan
    _clear(out)
    return _add_levels(s, w, level, (1.0, 1.0, middle), out)


@entry
def p_classification_levels(
    s: FloatArray, w: FloatArray, level: Level, params: Params, bend: float, out: Out
) -> float:
    """Pair form of the p-classification loss over levels; NaN when it declines."""
    p = params[0]
    middle, width = middle_and_range(s)
    if width * max(p, 1.0) > _WIDEST or not np.isnan(bend):
        return np.nan
    _clear(out)
    value = _add_levels(s, w, level, (1.0, 0.5, middle), out)
    return value + _add_levels(s, w, level, (p, 0.5 / p, middle), out)


class _Sums(NamedTuple):
    """Sums of ``exp(lowest - s_i)`` over relevant, ``exp(p (s_j - highest))`` over other items."""

    lowest: float
    relevant: float
    highest: float
    others: float


@inner
def _sums(s: FloatArray, positives: int, p: float) -> _Sums:
    lowest, highest = s[0], s[positives]
    for i in range(positives):
        lowest = min(lowest, s[i])
    for j in range(positives, len(s)):
        highest = max(highest, s[j])
    relevant, others = 0.0, 0.0
    for i in range(positives):
        relevant += np.exp(lowest - s[i])
    for j in range(positives, len(s)):
        others += np.exp(p * (s[j] - highest))
    return _Sums(lowest, relevant, highest, others)


@inner
def _log_loss(sums: _Sums, positives: int, n: int, p: float) -> float:
    means = p * np.log(sums.relevant / positives) + np.log(sums.others / (n - positives))
    return means + p * (sums.highest - sums.lowest)


@entry
def push_gradients(
    queries: PushQueries, span: Span, scores: FloatArray, p: float, logarithm: bool, out: GradHess
) -> None:
    """Write scaled gradient and Hessian diagonal of every query of a span."""
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        rows = queries.order[begin:end]
        positives, scale = queries.positives[q], queries.scale[q]
        if positives == 0 or positives == len(rows) or scale == 0.0:
            for row in rows:
                out.grad[row] = 0.0
                out.hess[row] = 0.0
            continue
        s = np.empty(len(rows))
        for i in range(len(rows)):
            s[i] = scores[rows[i]]
        sums = _sums(s, positives, p)
        size = 1.0 if logarithm else np.exp(_log_loss(sums, positives, len(s), p))
        for i in range(len(rows)):
            if i < positives:
                a = np.exp(sums.lowest - s[i]) / sums.relevant
                grad = -p * a
                hess = p * a * (1.0 - a) if logarithm else p * a + p * (p - 1.0) * a * a
            else:
                b = np.exp(p * (s[i] - sums.highest)) / sums.others
                grad = p * b
                hess = p * p * b * (1.0 - b) if logarithm else p * p * b
            out.grad[rows[i]] = scale * size * grad
            out.hess[rows[i]] = scale * size * hess


@entry
def push_values(
    queries: PushQueries, span: Span, scores: FloatArray, p: float, logarithm: bool, out: FloatArray
) -> None:
    """Write the scaled loss of every query of a span, shape (n_queries,)."""
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        positives = queries.positives[q]
        out[q] = 0.0
        if 0 < positives < end - begin and queries.scale[q] != 0.0:
            s = np.empty(end - begin)
            for i in range(len(s)):
                s[i] = scores[queries.order[begin + i]]
            value = _log_loss(_sums(s, positives, p), positives, len(s), p)
            out[q] = queries.scale[q] * (value if logarithm else np.exp(value))
