r"""Sums over the pairs of different level of long queries, in linear time.

A template with the slot ``linear_cross``, the linear-time engine between one level and all
lower ones, which may decline; apart for the reason of :mod:`gbmrank.kernels.long_pairs`.
"""

from typing import TYPE_CHECKING

import numpy as np

from gbmrank.kernels.jit import entry, merged
from gbmrank.kernels.layout import Engines, GradHess, Level, LevelQueries, Span
from gbmrank.kernels.linear_layout import Side
from gbmrank.kernels.linear_plan import LinearPlan
from gbmrank.kernels.rows import mark_served, read_levels, read_scores, write_scaled
from gbmrank.kernels.score_range import middle_and_range
from gbmrank.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.slots import linear_cross

__all__ = ["linear_sums"]


@merged
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


@entry
def linear_sums(
    queries: LevelQueries,
    span: Span,
    scores: FloatArray,
    params: tuple[float, ...],
    engines: Engines,
    served: BoolArray,
    values: FloatArray,
    out: GradHess,
) -> None:
    """Sum the long queries of a span; mark those that are done.

    With an empty ``out`` only values are written.
    """
    s_buffer = np.empty(span.longest)
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    begins = np.empty(span.longest, np.int64)
    ends = np.empty(span.longest, np.int64)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        if served[q] or end - begin < engines.linear_from or queries.scale[q] == 0.0:
            continue
        rows = queries.order[begin:end]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        read_scores(scores, rows, s)
        level = read_levels(queries.levels[begin:end], begins, ends)
        cost = max(float(engines.linear_from), engines.linear_range * middle_and_range(s)[1])
        if len(s) < cost * level.levels:  # every level is a pass over all lower ones
            continue
        w = queries.weights[begin:end]
        scale, value = queries.scale[q], _linear_levels(s, w, level, params, engines.plan, (g, h))
        if mark_served(q, scale * value, values, served) and len(out.grad):
            write_scaled(g, h, scale, rows, out)
