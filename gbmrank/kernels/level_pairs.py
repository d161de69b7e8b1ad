r"""Sums :math:`\sum_{y_i > y_j} w_i \varphi(s_i - s_j)` over pairs of different level.

A template with four slots: ``phi(z, *params) -> (value, first, second)``, and three other
ways to sum a query, each of which may decline: ``closed_levels``, ``linear_cross`` (the
linear-time engine, once per level) and ``dense_levels``.
"""

from typing import TYPE_CHECKING

import numpy as np

from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import Engines, GradHess, Level, LevelQueries, Span
from gbmrank.kernels.linear_layout import Side
from gbmrank.kernels.linear_plan import LinearPlan
from gbmrank.types import FloatArray, IntArray

if TYPE_CHECKING:
    from gbmrank.kernels.slots import closed_levels, dense_levels, linear_cross, phi

__all__ = ["gradients", "values"]


@inner
def _read_levels(labels: FloatArray, begin: IntArray, end: IntArray) -> Level:
    """Find where each item's level begins and ends among labels sorted best first."""
    count = 0
    first = 0
    for i in range(len(labels)):
        if i + 1 == len(labels) or labels[i + 1] != labels[i]:
            for k in range(first, i + 1):
                begin[k] = first
                end[k] = i + 1
            first = i + 1
            count += 1
    return Level(begin[: len(labels)], end[: len(labels)], count)


@inner
def _every_pair(
    s: FloatArray,
    w: FloatArray,
    level: Level,
    params: tuple[float, ...],
    out: tuple[FloatArray, FloatArray],
) -> None:
    """Write gradient and curvature of one query by visiting every pair once."""
    g, h = out
    g[:] = 0.0
    h[:] = 0.0
    for i in range(len(s)):
        s_i, w_i, g_i, h_i = s[i], w[i], 0.0, 0.0
        lower, g_lower, h_lower = s[level.end[i] :], g[level.end[i] :], h[level.end[i] :]
        for j in range(len(lower)):
            _, slope, bend = phi(s_i - lower[j], *params)
            pull = w_i * slope
            bend *= w_i
            g_i += pull
            h_i += bend
            g_lower[j] -= pull
            h_lower[j] += bend
        g[i] += g_i
        h[i] += h_i


@inner
def _value_of_pairs(s: FloatArray, w: FloatArray, level: Level, params: tuple[float, ...]) -> float:
    total = 0.0
    for i in range(len(s)):
        s_i, item = s[i], 0.0
        lower = s[level.end[i] :]
        for j in range(len(lower)):
            item += phi(s_i - lower[j], *params)[0]
        total += w[i] * item
    return total


@inner
def _linear_levels(
    s: FloatArray,
    w: FloatArray,
    level: Level,
    params: tuple[float, ...],
    plan: LinearPlan,
    out: tuple[FloatArray, FloatArray],
) -> float:
    """Each level against all lower ones in linear time; NaN when it declines."""
    g, h = out
    g[:] = 0.0
    h[:] = 0.0
    ones = np.ones(len(s))
    value = 0.0
    first = 0
    while level.end[first] < len(s):
        last = level.end[first]
        better = Side(s[first:last], w[first:last], g[first:last], h[first:last])
        value += linear_cross(better, Side(s[last:], ones[last:], g[last:], h[last:]), plan, params)
        first = last
    return value


@inner
def _shortcut(
    s: FloatArray,
    w: FloatArray,
    level: Level,
    params: tuple[float, ...],
    engines: Engines,
    out: tuple[FloatArray, FloatArray],
) -> float:
    """Sum a query without visiting pairs; NaN when no such way applies."""
    value = np.nan
    if len(s) >= engines.closed_from:
        value = closed_levels(s, w, level, params, engines.bend, out)
    if np.isnan(value) and len(s) >= engines.linear_from * level.levels:
        width = np.max(s) - np.min(s)
        if len(s) >= engines.linear_range * width * level.levels:
            value = _linear_levels(s, w, level, params, engines.plan, out)
    return value


@entry
def gradients(
    queries: LevelQueries,
    span: Span,
    scores: FloatArray,
    params: tuple[float, ...],
    engines: Engines,
    out: GradHess,
) -> None:
    """Write scaled gradient and Hessian diagonal of every query of a span."""
    s_buffer = np.empty(span.longest)
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    begins = np.empty(span.longest, np.int64)
    ends = np.empty(span.longest, np.int64)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        rows = queries.order[begin:end]
        w = queries.weights[begin:end]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        for i in range(len(s)):
            s[i] = scores[rows[i]]
        level = _read_levels(queries.levels[begin:end], begins, ends)
        scale = queries.scale[q]
        if level.levels < 2 or scale == 0.0:
            g[:] = 0.0
            h[:] = 0.0
        elif np.isnan(_shortcut(s, w, level, params, engines, (g, h))) and not dense_levels(
            s, w, level, params, engines.single, (g, h)
        ):
            _every_pair(s, w, level, params, (g, h))
        for i in range(len(s)):
            out.grad[rows[i]] = scale * g[i]
            out.hess[rows[i]] = scale * h[i]


@entry
def values(
    queries: LevelQueries,
    span: Span,
    scores: FloatArray,
    params: tuple[float, ...],
    engines: Engines,
    out: FloatArray,
) -> None:
    """Write the scaled loss of every query of a span, shape (n_queries,)."""
    s_buffer = np.empty(span.longest)
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    begins = np.empty(span.longest, np.int64)
    ends = np.empty(span.longest, np.int64)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        w = queries.weights[begin:end]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        for i in range(len(s)):
            s[i] = scores[queries.order[begin + i]]
        level = _read_levels(queries.levels[begin:end], begins, ends)
        value = 0.0
        if level.levels > 1 and queries.scale[q] != 0.0:
            value = _shortcut(s, w, level, params, engines, (g, h))
            if np.isnan(value):
                value = _value_of_pairs(s, w, level, params)
        out[q] = queries.scale[q] * value
