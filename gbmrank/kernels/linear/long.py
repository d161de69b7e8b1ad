"""Sums over the pairs of the long queries of a span, in linear time; a template.

The slots are ways into :mod:`gbmrank.kernels.linear.engine`, which may decline a query:
``linear_pairs`` (all pairs), ``linear_cross`` (one level and all lower ones) and
``linear_fields`` (sums over one side, for push risks, with ``outer`` as in
:mod:`gbmrank.kernels.pairs.sums`). This file stands apart from the sums over all pairs so that
short queries do not wait until the engine is compiled.
"""

from typing import TYPE_CHECKING

import numpy as np

from gbmrank.kernels.jit.decorators import entry, merged
from gbmrank.kernels.layout import (
    Engines,
    GradHess,
    ItemQueries,
    Level,
    LevelQueries,
    Out,
    Params,
    PushParams,
    PushQueries,
    Span,
)
from gbmrank.kernels.linear.interpolation import LinearPlan, Side
from gbmrank.kernels.scores import (
    mark_served,
    middle_and_range,
    read_levels,
    read_scores,
    write_scaled,
)
from gbmrank.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.layout import linear_cross, linear_fields, linear_pairs, outer


@entry
def long_all(
    queries: ItemQueries,
    span: Span,
    scores: FloatArray,
    params: Params,
    engines: Engines,
    served: BoolArray,
    values: FloatArray,
    out: GradHess,
) -> None:
    """Sum the long queries of a span and mark them done; with an empty ``out``, values only."""
    s_buffer = np.empty(span.longest)
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        if served[q] or end - begin < engines.linear_from:
            continue
        if queries.scale[q] == 0.0 or queries.useful[q] == 0:
            continue
        rows = queries.order[begin:end]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        read_scores(scores, rows, s)
        if len(s) < engines.linear_range * middle_and_range(s)[1]:
            continue
        side = Side(s, queries.utilities[begin:end], g, h)
        scale, value = queries.scale[q], linear_pairs(side, engines.plan, params)
        if mark_served(q, scale * value, values, served) and len(out.grad):
            write_scaled(g, h, scale, rows, out)


@merged
def _linear_levels(
    s: FloatArray, w: FloatArray, level: Level, params: Params, plan: LinearPlan, out: Out
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
def long_levels(
    queries: LevelQueries,
    span: Span,
    scores: FloatArray,
    params: Params,
    engines: Engines,
    served: BoolArray,
    values: FloatArray,
    out: GradHess,
) -> None:
    """Sum the long queries of a span and mark them done; with an empty ``out``, values only."""
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


@merged
def _pay(
    seen: FloatArray, params: PushParams, out: Out, prices: FloatArray, steeps: FloatArray
) -> float:
    """Return what all other items pay; write their derivatives, and what relevant ones owe them."""
    (g, h), n, total = out, len(seen), 0.0
    positives = len(g) - n
    for j in range(n):
        value, slope, bend = seen[j, 0], seen[j, 1], seen[j, 2]
        paid, price, steep = outer(max(value, 0.0), *params.outer)
        total += paid
        g[positives + j] = -price * slope / n
        h[positives + j] = (price * bend + steep * slope * slope) / n
        prices[j] = price / (n * positives)
        steeps[j] = steep / (n * positives * positives)
    return total


@merged
def _linear(
    s: FloatArray, positives: int, params: PushParams, plan: LinearPlan, out: Out, slopes: bool
) -> float:
    """Return the mean price, with ``slopes`` write its derivatives; NaN when it declines."""
    g, h = out
    relevant, others = s[:positives], s[positives:]
    seen = np.empty((len(others), 4))
    equal = np.full(positives, 1.0 / positives)
    prices, steeps = np.empty(len(others)), np.empty(len(others))
    back, extra = np.empty((positives, 4)), np.empty((positives, 4))
    total = 0.0
    # One call in a loop of three: each further one would be compiled again.
    targets, sources, weights, sign, fields = others, relevant, equal, -1.0, seen
    for step in range(3 if slopes else 1):
        if not linear_fields(targets, (sources, weights), sign, plan, params.inner, fields):
            return np.nan
        if step == 0:
            total = _pay(seen, params, out, prices, steeps)
        targets, sources, sign = relevant, others, 1.0
        weights, fields = (prices, back) if step == 0 else (steeps, extra)
    if slopes:
        for i in range(positives):
            g[i] = back[i, 1]
            h[i] = back[i, 2] + extra[i, 3]
    return total / len(others)


@entry
def long_push(
    queries: PushQueries,
    span: Span,
    scores: FloatArray,
    params: PushParams,
    engines: Engines,
    served: BoolArray,
    values: FloatArray,
    out: GradHess,
) -> None:
    """Sum the long queries of a span and mark them done; with an empty ``out``, values only."""
    s_buffer = np.empty(span.longest)
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        positives = queries.positives[q]
        if served[q] or end - begin < engines.linear_from or queries.scale[q] == 0.0:
            continue
        rows = queries.order[begin:end]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        read_scores(scores, rows, s)
        if len(s) < engines.linear_range * middle_and_range(s)[1]:
            continue
        slopes = len(out.grad) > 0
        value = _linear(s, positives, params, engines.plan, (g, h), slopes)
        scale = queries.scale[q]
        if mark_served(q, scale * value, values, served) and slopes:
            write_scaled(g, h, scale, rows, out)
