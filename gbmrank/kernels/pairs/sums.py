r"""Sums over the pairs of every query; a template.

==========================  =====================================================================
:func:`all_gradients`       :math:`\sum_i v_i \sum_{j \ne i} \varphi(s_i - s_j)`, order-preserving
:func:`level_gradients`     :math:`\sum_{y_i > y_j} w_i \varphi(s_i - s_j)`, different levels
:func:`push_gradients`      :math:`\frac1N \sum_j G(\frac1P \sum_i \varphi(s_i - s_j))`, with i over
                            the P relevant items, which come first, and j over the N others
:func:`edge_gradients`      :math:`\sum_{i \to j} w_{ij} \varphi(s_i - s_j - h_{ij})`, graphs
==========================  =====================================================================

``phi(z, *params) -> (value, first, second)`` is the slot that all need. ``outer``, of the same
kind, is the price G. Two other ways to sum a query may decline it: ``closed_pairs`` and
``closed_levels`` (a closed form), ``dense_pairs`` and ``dense_levels`` (every pair, faster than
by calling ``phi``). Long queries that :mod:`gbmrank.kernels.linear.long` has served are passed
over.
"""

from typing import TYPE_CHECKING

import numpy as np

from gbmrank.kernels.jit.decorators import entry, inner
from gbmrank.kernels.layout import (
    EdgeQueries,
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
from gbmrank.kernels.scores import read_levels, read_scores, write_scaled
from gbmrank.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.layout import (
        closed_levels,
        closed_pairs,
        dense_levels,
        dense_pairs,
        outer,
        phi,
    )

_LANES = 8  # pairs are visited in whole vectors; those past the end count nothing


@inner
def _visit_all(s: FloatArray, v: FloatArray, useful: int, params: Params, out: Out) -> None:
    """Visit every pair of one query once; buffers have room for ``_LANES`` more items than it."""
    g, h = out
    g[:] = 0.0
    h[:] = 0.0
    for i in range(len(g) - _LANES):
        s_i, v_i, g_i, h_i = s[i], v[i], 0.0, 0.0
        stop = min(i, useful)
        for j in range((stop + _LANES - 1) // _LANES * _LANES):
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


@inner
def _value_of_all(s: FloatArray, v: FloatArray, useful: int, params: Params) -> float:
    total = 0.0
    for i in range(useful):
        s_i, item = s[i], 0.0
        for j in range(i):
            item += phi(s_i - s[j], *params)[0]
        rest = s[i + 1 :]
        for j in range(len(rest)):
            item += phi(s_i - rest[j], *params)[0]
        total += v[i] * item
    return total


@entry
def all_gradients(
    queries: ItemQueries,
    span: Span,
    scores: FloatArray,
    params: Params,
    engines: Engines,
    served: BoolArray,
    last: bool,
    out: GradHess,
) -> None:
    """Write scaled gradient and Hessian diagonal of every query of a span not yet served.

    Unless ``last``, a query whose pairs would be visited by calling ``phi`` is left to the next.
    """
    room = span.longest + _LANES
    s_buffer, v_buffer = np.zeros(room), np.zeros(room)
    g_buffer, h_buffer = np.empty(room), np.empty(room)
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        n = end - begin
        rows = queries.order[begin:end]
        v = queries.utilities[begin:end]
        s, g, h = s_buffer[:n], g_buffer[:n], h_buffer[:n]
        read_scores(scores, rows, s)
        useful, value = queries.useful[q], np.nan
        if useful == 0 or queries.scale[q] == 0.0:
            g[:] = 0.0
            h[:] = 0.0
            value = 0.0
        elif n >= engines.closed_from:
            value = closed_pairs(s, v, params, engines.bend, (g, h))
        if np.isnan(value) and not dense_pairs(s, v, useful, params, (g, h)):
            if not last:
                continue
            for i in range(n):  # v_buffer[:n] = v would compile the error of unequal shapes
                v_buffer[i] = v[i]
            wide = g_buffer[: n + _LANES], h_buffer[: n + _LANES]
            _visit_all(s_buffer, v_buffer, useful, params, wide)
        write_scaled(g, h, queries.scale[q], rows, out)
        served[q] = True


@entry
def all_values(
    queries: ItemQueries,
    span: Span,
    scores: FloatArray,
    params: Params,
    engines: Engines,
    served: BoolArray,
    out: FloatArray,
) -> None:
    """Write the scaled loss of every query of a span not yet served, shape (n_queries,)."""
    s_buffer = np.empty(span.longest)
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        v = queries.utilities[begin:end]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        read_scores(scores, queries.order[begin:end], s)
        value = np.nan
        if queries.useful[q] == 0 or queries.scale[q] == 0.0:
            value = 0.0
        elif len(s) >= engines.closed_from:
            value = closed_pairs(s, v, params, engines.bend, (g, h))
        if np.isnan(value):
            value = _value_of_all(s, v, queries.useful[q], params)
        out[q] = queries.scale[q] * value


@inner
def _visit_levels(s: FloatArray, w: FloatArray, level: Level, params: Params, out: Out) -> None:
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
def _value_of_levels(s: FloatArray, w: FloatArray, level: Level, params: Params) -> float:
    total = 0.0
    for i in range(len(s)):
        s_i, item = s[i], 0.0
        lower = s[level.end[i] :]
        for j in range(len(lower)):
            item += phi(s_i - lower[j], *params)[0]
        total += w[i] * item
    return total


@entry
def level_gradients(
    queries: LevelQueries,
    span: Span,
    scores: FloatArray,
    params: Params,
    engines: Engines,
    served: BoolArray,
    last: bool,
    out: GradHess,
) -> None:
    """Like :func:`all_gradients`, over pairs of different level."""
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
            _visit_levels(s, w, level, params, (g, h))
        write_scaled(g, h, scale, rows, out)
        served[q] = True


@entry
def level_values(
    queries: LevelQueries,
    span: Span,
    scores: FloatArray,
    params: Params,
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
            value = _value_of_levels(s, w, level, params)
        out[q] = queries.scale[q] * value


@inner
def _sums_to_relevant(
    other: float, relevant: FloatArray, params: Params
) -> tuple[float, float, float]:
    """Means of the loss, slope and curvature of one useless item's pairs."""
    value, slope, bend = 0.0, 0.0, 0.0
    for i in range(len(relevant)):
        f, d, c = phi(relevant[i] - other, *params)
        value += f
        slope += d
        bend += c
    return value / len(relevant), slope / len(relevant), bend / len(relevant)


@inner
def _visit_push(s: FloatArray, positives: int, params: PushParams, out: Out) -> None:
    """Write gradient and Hessian diagonal of one query by visiting every pair twice."""
    g, h = out
    g[:] = 0.0
    h[:] = 0.0
    relevant, others = s[:positives], s[positives:]
    g_relevant, h_relevant = g[:positives], h[:positives]
    for j in range(len(others)):
        value, slope, bend = _sums_to_relevant(others[j], relevant, params.inner)
        _, price, steep = outer(value, *params.outer)
        g[positives + j] = -price * slope / len(others)
        h[positives + j] = (price * bend + steep * slope * slope) / len(others)
        share = price / (len(others) * positives)
        extra = steep / (len(others) * positives * positives)
        for i in range(positives):
            _, d, c = phi(relevant[i] - others[j], *params.inner)
            g_relevant[i] += share * d
            h_relevant[i] += share * c + extra * d * d


@entry
def push_gradients(
    queries: PushQueries,
    span: Span,
    scores: FloatArray,
    params: PushParams,
    _engines: Engines,  # here and below, because all templates are called alike
    served: BoolArray,
    _last: bool,
    out: GradHess,
) -> None:
    """Write scaled gradient and Hessian diagonal of every query of a span not yet served."""
    s_buffer = np.empty(span.longest)
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        rows = queries.order[begin:end]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        read_scores(scores, rows, s)
        positives, scale = queries.positives[q], queries.scale[q]
        if positives == 0 or positives == len(s) or scale == 0.0:
            g[:] = 0.0
            h[:] = 0.0
        else:
            _visit_push(s, positives, params, (g, h))
        write_scaled(g, h, scale, rows, out)
        served[q] = True


@entry
def push_values(
    queries: PushQueries,
    span: Span,
    scores: FloatArray,
    params: PushParams,
    _engines: Engines,
    served: BoolArray,
    out: FloatArray,
) -> None:
    """Write the scaled loss of every query of a span not yet served, shape (n_queries,)."""
    s_buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        s = s_buffer[: end - begin]
        read_scores(scores, queries.order[begin:end], s)
        positives = queries.positives[q]
        out[q] = 0.0
        if 0 < positives < len(s) and queries.scale[q] != 0.0:
            relevant, others, total = s[:positives], s[positives:], 0.0
            for j in range(len(others)):
                value = _sums_to_relevant(others[j], relevant, params.inner)[0]
                total += outer(value, *params.outer)[0]
            out[q] = queries.scale[q] * total / len(others)


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


@entry
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
