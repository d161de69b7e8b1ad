r"""Order-preserving sums :math:`\sum_i v_i \sum_{j \ne i} \varphi(s_i - s_j)` per query.

A template with three slots: ``phi(z, *params) -> (value, first, second)``, and two other
ways to sum a query, each of which may decline: ``closed_pairs`` (a closed form) and
``dense_pairs`` (every pair, faster than by calling ``phi``). Long queries that
:mod:`gbmrank.kernels.long_pairs` has served are passed over.
"""

from typing import TYPE_CHECKING

import numpy as np

from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import Engines, GradHess, ItemQueries, Span
from gbmrank.kernels.rows import read_scores, write_scaled
from gbmrank.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.slots import closed_pairs, dense_pairs, phi

__all__ = ["gradients", "values"]


_LANES = 8  # pairs are visited in whole vectors; those past the end count nothing


@inner
def _every_pair(
    s: FloatArray,
    v: FloatArray,
    useful: int,
    params: tuple[float, ...],
    out: tuple[FloatArray, FloatArray],
) -> None:
    """Write gradient and curvature of one query by visiting every pair once.

    Buffers have room for ``_LANES`` more items than the query.
    """
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
def _value_of_pairs(s: FloatArray, v: FloatArray, useful: int, params: tuple[float, ...]) -> float:
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
def gradients(
    queries: ItemQueries,
    span: Span,
    scores: FloatArray,
    params: tuple[float, ...],
    engines: Engines,
    served: BoolArray,
    last: bool,
    out: GradHess,
) -> None:
    """Write scaled gradient and Hessian diagonal of every query of a span not yet served.

    Unless these are the ``last`` kernels, a query whose pairs they would visit by calling
    ``phi`` is left to the next.
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
            _every_pair(s_buffer, v_buffer, useful, params, wide)
        write_scaled(g, h, queries.scale[q], rows, out)
        served[q] = True


@entry
def values(
    queries: ItemQueries,
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
            value = _value_of_pairs(s, v, queries.useful[q], params)
        out[q] = queries.scale[q] * value
