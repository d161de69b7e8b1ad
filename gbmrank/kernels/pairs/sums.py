r"""Sums over the pairs of every query; a template.

==========================  =====================================================================
:func:`all_gradients`       :math:`\sum_i v_i \sum_{j \ne i} \varphi(s_i - s_j)`, order-preserving
:func:`level_gradients`     :math:`\sum_{y_i > y_j} w_i \varphi(s_i - s_j)`, different levels
:func:`push_gradients`      :math:`\frac1N \sum_j G(\frac1P \sum_i \varphi(s_i - s_j))`, with i over
                            the P relevant items, which come first, and j over the N others
:func:`edge_gradients`      :math:`\sum_{i \to j} w_{ij} \varphi(s_i - s_j - h_{ij})`, graphs
==========================  =====================================================================

``phi(z, *params) -> (value, first, second)`` is the slot that all need. ``outer``, of the same
kind, is the outer function G. ``closed_pairs`` and ``closed_levels`` are the closed forms behind
:func:`closed_all` and :func:`closed_different`. Queries that another kernel has summed are
skipped.

What a kernel costs to compile grows with its statements and with every function it calls, so
these are flat: buffers come from the caller, ``(scores, weights, gradient, Hessian)`` with room
for ``LANES`` more items than the longest query.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit.decorators import columns, entry, fast_entry, inner
from gbmrank.kernels.layout import (
    LANES,
    EdgeQueries,
    Engines,
    GradHess,
    ItemQueries,
    LevelQueries,
    PairWork,
    Params,
    PushParams,
    PushQueries,
    Span,
)
from gbmrank.kernels.scores import read_levels
from gbmrank.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from gbmrank.kernels.layout import closed_levels, closed_pairs, outer, phi


@fast_entry
def all_gradients(queries: ItemQueries, params: Params, work: PairWork, out: GradHess) -> None:
    """Write scaled gradient and Hessian diagonal of every query of a span not yet served.

    Every pair is visited once, in whole vectors: pairs past the end of a row count nothing.
    """
    span, scores, served, buffers = work
    offsets, order, utilities, useful, scales = columns(queries)
    s, v, g, h = columns(buffers)
    grad, hess, scores, served = columns((out.grad, out.hess, scores, served))
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin, scale = offsets[q], scales[q]
        n = offsets[q + 1] - begin
        helpful = useful[q] if scale != 0.0 else 0
        for i in range(n):
            s[i] = scores[order[begin + i]]
            v[i] = utilities[begin + i]
            g[i] = 0.0
            h[i] = 0.0
        for i in range(n):
            s_i, v_i, g_i, h_i = s[i], v[i], 0.0, 0.0
            stop = i if i < helpful else helpful
            for j in range((stop + LANES - 1) // LANES * LANES):
                margin = s_i - s[j]
                _, slope_i, bend_i = phi(margin, *params)
                _, slope_j, bend_j = phi(-margin, *params)
                pull = v_i * slope_i - v[j] * slope_j
                bend = v_i * bend_i + v[j] * bend_j
                pull = pull if j < stop else 0.0
                bend = bend if j < stop else 0.0
                g_i += pull
                h_i += bend
                g[j] -= pull
                h[j] += bend
            g[i] += g_i
            h[i] += h_i
        for i in range(n):
            grad[order[begin + i]] = scale * g[i]
            hess[order[begin + i]] = scale * h[i]


@fast_entry
def all_values(queries: ItemQueries, params: Params, work: PairWork, out: FloatArray) -> None:
    """Write the scaled loss of every query of a span not yet served, shape (n_queries,)."""
    span, scores, served, buffers = work
    offsets, order, utilities, useful, scales = columns(queries)
    s, scores, served, out = columns((buffers[0], scores, served, out))
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin = offsets[q]
        n = offsets[q + 1] - begin
        for i in range(n):
            s[i] = scores[order[begin + i]]
        total = 0.0
        for i in range(useful[q] if scales[q] != 0.0 else 0):
            s_i, item = s[i], 0.0
            for j in range(i):
                item += phi(s_i - s[j], *params)[0]
            for j in range(i + 1, n):
                item += phi(s_i - s[j], *params)[0]
            total += utilities[begin + i] * item
        out[q] = scales[q] * total


@fast_entry
def level_gradients(queries: LevelQueries, params: Params, work: PairWork, out: GradHess) -> None:
    """Like :func:`all_gradients`, over pairs of different level, weighted by the better item."""
    span, scores, served, buffers = work
    offsets, order, levels, weights, scales = columns(queries)
    s, w, g, h = columns(buffers)
    grad, hess, scores, served = columns((out.grad, out.hess, scores, served))
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin, scale = offsets[q], scales[q]
        n = offsets[q + 1] - begin
        for i in range(n):
            s[i] = scores[order[begin + i]]
            w[i] = weights[begin + i]
            g[i] = 0.0
            h[i] = 0.0
        better = 0  # items of better levels, which come first
        for i in range(n if scale != 0.0 else 0):
            if i > 0 and levels[begin + i] != levels[begin + i - 1]:
                better = i
            s_i, g_i, h_i = s[i], 0.0, 0.0
            for j in range(better):
                _, slope, bend = phi(s[j] - s_i, *params)
                pull = w[j] * slope
                bend *= w[j]
                g_i -= pull
                h_i += bend
                g[j] += pull
                h[j] += bend
            g[i] += g_i
            h[i] += h_i
        for i in range(n):
            grad[order[begin + i]] = scale * g[i]
            hess[order[begin + i]] = scale * h[i]


@fast_entry
def level_values(queries: LevelQueries, params: Params, work: PairWork, out: FloatArray) -> None:
    """Write the scaled loss of every query of a span not yet served, shape (n_queries,)."""
    span, scores, served, buffers = work
    offsets, order, levels, weights, scales = columns(queries)
    s, w, scores, served, out = columns((*buffers[:2], scores, served, out))
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin = offsets[q]
        n = offsets[q + 1] - begin
        for i in range(n):
            s[i] = scores[order[begin + i]]
            w[i] = weights[begin + i]
        total, better = 0.0, 0
        for i in range(n if scales[q] != 0.0 else 0):
            if i > 0 and levels[begin + i] != levels[begin + i - 1]:
                better = i
            item = 0.0
            for j in range(better):
                item += w[j] * phi(s[j] - s[i], *params)[0]
            total += item
        out[q] = scales[q] * total


@inner
def _keep(
    q: int,
    place: tuple[int, int, float],
    order: npt.NDArray[Any],
    sums: tuple[float, FloatArray, FloatArray],
    results: tuple[BoolArray, FloatArray, GradHess],
) -> None:
    """Keep what a closed form gave for a query, and mark it as done, unless it declined."""
    (begin, n, scale), (value, g, h), (served, values, out) = place, sums, results
    if not np.isnan(value):
        values[q] = scale * value
        served[q] = True
        for i in range(n if len(out.grad) else 0):
            out.grad[order[begin + i]] = scale * g[i]
            out.hess[order[begin + i]] = scale * h[i]


@entry
def closed_all(
    queries: ItemQueries,
    params: Params,
    engines: Engines,
    work: PairWork,
    values: FloatArray,
    out: GradHess,
) -> None:
    """Sum the queries of a span in closed form and mark them done; empty ``out``: values only."""
    span, scores, served, (s_buffer, _, g_buffer, h_buffer) = work
    for q in range(span.first, span.last):
        begin, n = queries.offsets[q], queries.offsets[q + 1] - queries.offsets[q]
        if served[q] or n < engines.closed_from:
            continue
        s, g, h = s_buffer[:n], g_buffer[:n], h_buffer[:n]
        for i in range(n):
            s[i], g[i], h[i] = scores[queries.order[begin + i]], 0.0, 0.0
        scale, value = queries.scale[q], 0.0
        if queries.useful[q] > 0 and scale != 0.0:
            v = queries.utilities[begin : begin + n]
            value = closed_pairs(s, v, params, engines.bend, (g, h))
        _keep(q, (begin, n, scale), queries.order, (value, g, h), (served, values, out))


@entry
def closed_different(
    queries: LevelQueries,
    params: Params,
    engines: Engines,
    work: PairWork,
    values: FloatArray,
    out: GradHess,
) -> None:
    """Like :func:`closed_all`, over pairs of different level."""
    span, scores, served, (s_buffer, _, g_buffer, h_buffer) = work
    bounds = np.empty((2, span.longest), np.int64)
    for q in range(span.first, span.last):
        begin, n = queries.offsets[q], queries.offsets[q + 1] - queries.offsets[q]
        if served[q] or n < engines.closed_from:
            continue
        s, g, h = s_buffer[:n], g_buffer[:n], h_buffer[:n]
        for i in range(n):
            s[i], g[i], h[i] = scores[queries.order[begin + i]], 0.0, 0.0
        level = read_levels(queries.levels[begin : begin + n], bounds[0], bounds[1])
        scale, value = queries.scale[q], 0.0
        if level.levels > 1 and scale != 0.0:
            w = queries.weights[begin : begin + n]
            value = closed_levels(s, w, level, params, engines.bend, (g, h))
        _keep(q, (begin, n, scale), queries.order, (value, g, h), (served, values, out))


@inner
def _sums_to_relevant(
    other: float, s: FloatArray, positives: int, params: Params
) -> tuple[float, float, float]:
    """Means of the loss, slope and curvature of one useless item's pairs."""
    value, slope, bend = 0.0, 0.0, 0.0
    for i in range(positives):
        f, d, c = phi(s[i] - other, *params)
        value += f
        slope += d
        bend += c
    return value / positives, slope / positives, bend / positives


@fast_entry
def push_gradients(queries: PushQueries, params: PushParams, work: PairWork, out: GradHess) -> None:
    """Write scaled gradient and Hessian diagonal of every query of a span not yet served."""
    span, scores, served, buffers = work
    offsets, order, relevant, scales = columns(queries)
    s, _, g, h = columns(buffers)
    grad, hess, scores, served = columns((out.grad, out.hess, scores, served))
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin, positives, scale = offsets[q], relevant[q], scales[q]
        n = offsets[q + 1] - begin
        others = n - positives
        for i in range(n):
            s[i] = scores[order[begin + i]]
            g[i] = 0.0
            h[i] = 0.0
        for j in range(positives, n if positives > 0 and scale != 0.0 else 0):
            value, slope, bend = _sums_to_relevant(s[j], s, positives, params.inner)
            _, price, steep = outer(value, *params.outer)
            g[j] = -price * slope / others
            h[j] = (price * bend + steep * slope * slope) / others
            share = price / (others * positives)
            extra = steep / (others * positives * positives)
            for i in range(positives):
                _, d, c = phi(s[i] - s[j], *params.inner)
                g[i] += share * d
                h[i] += share * c + extra * d * d
        for i in range(n):
            grad[order[begin + i]] = scale * g[i]
            hess[order[begin + i]] = scale * h[i]


@fast_entry
def push_values(queries: PushQueries, params: PushParams, work: PairWork, out: FloatArray) -> None:
    """Write the scaled loss of every query of a span not yet served, shape (n_queries,)."""
    span, scores, served, buffers = work
    offsets, order, relevant, scales = columns(queries)
    s, scores, served, out = columns((buffers[0], scores, served, out))
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin, positives, total = offsets[q], relevant[q], 0.0
        n = offsets[q + 1] - begin
        for i in range(n):
            s[i] = scores[order[begin + i]]
        for j in range(positives, n if positives > 0 and scales[q] != 0.0 else 0):
            value = _sums_to_relevant(s[j], s, positives, params.inner)[0]
            total += outer(value, *params.outer)[0]
        out[q] = scales[q] * total / (n - positives) if positives < n else 0.0


@entry
def edge_gradients(
    graphs: EdgeQueries, span: Span, scores: FloatArray, params: Params, out: GradHess
) -> None:
    """Write scaled gradient and curvature of every row of a span of queries."""
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = graphs.rows[q], graphs.rows[q + 1]
        g, h = g_buffer[: end - begin], h_buffer[: end - begin]
        g[:] = 0.0
        h[:] = 0.0
        for e in range(graphs.offsets[q], graphs.offsets[q + 1]):
            i, j = graphs.winner[e], graphs.loser[e]
            lead = scores[i] - scores[j]
            if len(graphs.margin):
                lead -= graphs.margin[e]
            _, slope, bend = phi(lead, *params)
            slope *= graphs.weight[e]
            bend *= graphs.weight[e]
            g[i - begin] += slope
            g[j - begin] -= slope
            h[i - begin] += bend
            h[j - begin] += bend
        scale = graphs.scale[q]
        for k in range(len(g)):
            out.grad[begin + k] = scale * g[k]
            out.hess[begin + k] = scale * h[k]


@fast_entry
def push_prices(
    params: PushParams,
    starts: IntArray,
    positives: IntArray,
    span: Span,
    seen: FloatArray,
    results: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    sums: FloatArray,
) -> None:
    """Apply the outer function to the irrelevant items of long queries, from their mean losses.

    ``seen``, shape (items, 4): mean loss, slope and curvature. ``results`` are gradient, Hessian,
    and the weights with which the slopes and their squares enter those of relevant items.
    """
    starts, positives, seen, sums = columns((starts, positives, seen, sums))
    g, h, prices, steeps = columns(results)
    for q in range(span.first, span.last):
        first = starts[q] + positives[q]
        n, total = starts[q + 1] - first, 0.0
        for j in range(first, starts[q + 1] if sums[q] == 0.0 else first):  # else NaN: declined
            value, slope, bend = seen[4 * j], seen[4 * j + 1], seen[4 * j + 2]
            paid, price, steep = outer(value if value > 0.0 else 0.0, *params.outer)
            total += paid
            g[j] = -price * slope / n
            h[j] = (price * bend + steep * slope * slope) / n
            prices[j] = price / (n * positives[q])
            steeps[j] = steep / (n * positives[q] * positives[q])
        sums[q] += total / n


@fast_entry
def edge_values(
    graphs: EdgeQueries, span: Span, scores: FloatArray, params: Params, out: FloatArray
) -> None:
    """Write the scaled loss of every query of a span, shape (n_queries,)."""
    for q in range(span.first, span.last):
        total = 0.0
        for e in range(graphs.offsets[q], graphs.offsets[q + 1]):
            lead = scores[graphs.winner[e]] - scores[graphs.loser[e]]
            if len(graphs.margin):
                lead -= graphs.margin[e]
            total += graphs.weight[e] * phi(lead, *params)[0]
        out[q] = graphs.scale[q] * total
