r"""Sums :math:`\sum_{y_i > y_j} w_i \varphi(s_i - s_j)` over pairs of different level.

A template with three slots: ``phi(z, *params) -> (value, first, second)``, and two other
ways to sum a query, each of which may decline: ``closed_levels`` and ``dense_levels``. Long
queries that :mod:`gbmrank.kernels.long_levels` has served are passed over.
"""

from typing import TYPE_CHECKING

import numpy as np

from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import Engines, GradHess, Level, LevelQueries, Span
from gbmrank.kernels.rows import read_levels, read_scores, write_scaled
from gbmrank.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.slots import closed_levels, dense_levels, phi

__all__ = ["gradients", "values"]


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


@entry
def gradients(
    queries: LevelQueries,
    span: Span,
    scores: FloatArray,
    params: tuple[float, ...],
    engines: Engines,
    served: BoolArray,
    last: bool,
    out: GradHess,
) -> None:
    """Like :func:`gbmrank.kernels.all_pairs.gradients`."""
    s_buffer = np.empty(span.longest)
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    begins = np.empty(span.longest, np.int64)
    ends = np.empty(span.longest, np.int64)
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        rows = queries.order[begin:end]
        w = queries.weights[begin:end]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        read_scores(scores, rows, s)
        level = read_levels(queries.levels[begin:end], begins, ends)
        scale, value = queries.scale[q], np.nan
        if level.levels < 2 or scale == 0.0:
            g[:] = 0.0
            h[:] = 0.0
            value = 0.0
        elif len(s) >= engines.closed_from:
            value = closed_levels(s, w, level, params, engines.bend, (g, h))
        if np.isnan(value) and not dense_levels(s, w, level, params, (g, h)):
            if not last:
                continue
            _every_pair(s, w, level, params, (g, h))
        write_scaled(g, h, scale, rows, out)
        served[q] = True


@entry
def values(
    queries: LevelQueries,
    span: Span,
    scores: FloatArray,
    params: tuple[float, ...],
    engines: Engines,
    served: BoolArray,
    out: FloatArray,
) -> None:
    """Write the scaled loss of every query of a span not yet served, shape (n_queries,)."""
    s_buffer = np.empty(span.longest)
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    begins = np.empty(span.longest, np.int64)
    ends = np.empty(span.longest, np.int64)
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        w = queries.weights[begin:end]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        read_scores(scores, queries.order[begin:end], s)
        level = read_levels(queries.levels[begin:end], begins, ends)
        value = np.nan
        if level.levels < 2 or queries.scale[q] == 0.0:
            value = 0.0
        elif len(s) >= engines.closed_from:
            value = closed_levels(s, w, level, params, engines.bend, (g, h))
        if np.isnan(value):
            value = _value_of_pairs(s, w, level, params)
        out[q] = queries.scale[q] * value
