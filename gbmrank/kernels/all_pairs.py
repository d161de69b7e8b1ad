r"""Order-preserving sums :math:`\sum_i v_i \sum_{j \ne i} \varphi(s_i - s_j)` per query.

A template with four slots: ``phi(z, *params) -> (value, first, second)``, and three other
ways to sum a query, each of which may decline: ``closed_pairs`` (a closed form),
``linear_pairs`` (the linear-time engine) and ``dense_pairs`` (every pair, faster than by
calling ``phi``).
"""

from typing import TYPE_CHECKING

import numpy as np

from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import Engines, GradHess, ItemQueries, Span
from gbmrank.kernels.linear_layout import Side
from gbmrank.types import FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.slots import closed_pairs, dense_pairs, linear_pairs, phi

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


@inner
def _shortcut(
    s: FloatArray,
    v: FloatArray,
    params: tuple[float, ...],
    engines: Engines,
    out: tuple[FloatArray, FloatArray],
) -> float:
    """Sum a query without visiting pairs; NaN when no such way applies."""
    value = np.nan
    if len(s) >= engines.closed_from:
        value = closed_pairs(s, v, params, engines.bend, out)
    if np.isnan(value) and len(s) >= engines.linear_from:
        width = np.max(s) - np.min(s)
        if len(s) >= engines.linear_range * width:
            value = linear_pairs(Side(s, v, out[0], out[1]), engines.plan, params)
    return value


@entry
def gradients(
    queries: ItemQueries,
    span: Span,
    scores: FloatArray,
    params: tuple[float, ...],
    engines: Engines,
    out: GradHess,
) -> None:
    """Write scaled gradient and Hessian diagonal of every query of a span."""
    room = span.longest + _LANES
    s_buffer, v_buffer = np.zeros(room), np.zeros(room)
    g_buffer, h_buffer = np.empty(room), np.empty(room)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        n = end - begin
        rows = queries.order[begin:end]
        v = queries.utilities[begin:end]
        s, g, h = s_buffer[:n], g_buffer[:n], h_buffer[:n]
        for i in range(n):
            s[i] = scores[rows[i]]
        useful = queries.useful[q]
        if useful == 0 or queries.scale[q] == 0.0:
            g[:] = 0.0
            h[:] = 0.0
        elif np.isnan(_shortcut(s, v, params, engines, (g, h))) and not dense_pairs(
            s, v, useful, params, engines.single, (g, h)
        ):
            v_buffer[:n] = v
            wide = g_buffer[: n + _LANES], h_buffer[: n + _LANES]
            _every_pair(s_buffer, v_buffer, useful, params, wide)
        scale = queries.scale[q]
        for i in range(n):
            out.grad[rows[i]] = scale * g[i]
            out.hess[rows[i]] = scale * h[i]


@entry
def values(
    queries: ItemQueries,
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
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        v = queries.utilities[begin:end]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        for i in range(len(s)):
            s[i] = scores[queries.order[begin + i]]
        value = 0.0
        if queries.useful[q] > 0 and queries.scale[q] != 0.0:
            value = _shortcut(s, v, params, engines, (g, h))
            if np.isnan(value):
                value = _value_of_pairs(s, v, queries.useful[q], params)
        out[q] = queries.scale[q] * value
