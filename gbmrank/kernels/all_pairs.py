r"""Order-preserving sums :math:`\sum_i v_i \sum_{j \ne i} \varphi(s_i - s_j)` per query.

A template with two slots: ``phi(z, *params) -> (value, first, second)``, and
``fast_pairs``, a faster way for a query that some losses have and that may decline.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import GradHess, ItemQueries, Span
from gbmrank.types import FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.slots import fast_pairs, phi

__all__ = ["gradients", "values"]


@inner
def _pairs(
    s: FloatArray,
    v: FloatArray,
    useful: int,
    params: tuple[float, ...],
    out: tuple[FloatArray, FloatArray],
) -> None:
    """Write gradient and curvature of one query by visiting every pair once."""
    g, h = out
    g[:] = 0.0
    h[:] = 0.0
    for i in range(len(s)):
        s_i, v_i, g_i, h_i = s[i], v[i], 0.0, 0.0
        for j in range(min(i, useful)):
            margin = s_i - s[j]
            _, slope_i, bend_i = phi(margin, *params)
            _, slope_j, bend_j = phi(-margin, *params)
            pull = v_i * slope_i - v[j] * slope_j
            bend = v_i * bend_i + v[j] * bend_j
            g_i += pull
            h_i += bend
            g[j] -= pull
            h[j] += bend
        g[i] += g_i
        h[i] += h_i


@entry
def gradients(
    queries: ItemQueries,
    span: Span,
    scores: FloatArray,
    params: tuple[float, ...],
    single: bool,
    out: GradHess,
) -> None:
    """Write scaled gradient and exact Hessian diagonal of every query of a span."""
    s_buffer = np.empty(span.longest)
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        rows = queries.order[begin:end]
        v = queries.utilities[begin:end]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        for i in range(len(s)):
            s[i] = scores[rows[i]]
        if not fast_pairs(s, v, queries.useful[q], params, single, (g, h)):
            _pairs(s, v, queries.useful[q], params, (g, h))
        scale = queries.scale[q]
        for i in range(len(s)):
            out.grad[rows[i]] = scale * g[i]
            out.hess[rows[i]] = scale * h[i]


@entry
def values(
    queries: ItemQueries, span: Span, scores: FloatArray, params: tuple[float, ...], out: Any
) -> None:
    """Write the scaled loss of every query of a span, shape (n_queries,)."""
    s_buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        v = queries.utilities[begin:end]
        s = s_buffer[: end - begin]
        for i in range(len(s)):
            s[i] = scores[queries.order[begin + i]]
        total = 0.0
        for i in range(queries.useful[q]):
            s_i, item = s[i], 0.0
            for j in range(len(s)):
                item += phi(s_i - s[j], *params)[0]
            total += v[i] * (item - phi(0.0, *params)[0])
        out[q] = queries.scale[q] * total
