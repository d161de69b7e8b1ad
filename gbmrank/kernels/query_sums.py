"""Losses of a whole query that one function computes; a template with the slot ``query``.

``query(labels, scores, at, grad, hess, *params) -> value`` adds to ``grad`` and ``hess``,
which begin as zeros. Weights that count as constants are taken at the scores ``at``: the
same as ``scores``, but for a check of the gradient.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gbmrank.kernels.jit import entry
from gbmrank.kernels.layout import GradHess, Span
from gbmrank.types import FloatArray, IntArray

if TYPE_CHECKING:
    from gbmrank.kernels.slots import query

__all__ = ["LabelQueries", "gradients", "values"]


class LabelQueries(NamedTuple):
    """Labels in query order, which kernels cannot write to; ``scale`` multiplies a query."""

    offsets: IntArray
    labels: FloatArray
    scale: FloatArray


@entry
def gradients(
    queries: LabelQueries, span: Span, scores: FloatArray, params: tuple[float, ...], out: GradHess
) -> None:
    """Write scaled gradient and Hessian of every query of a span."""
    s_buffer = np.empty(span.longest)
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        for i in range(end - begin):  # s[:] = would compile the error of unequal shapes
            s[i] = scores[begin + i]
        g[:] = 0.0
        h[:] = 0.0
        scale = queries.scale[q]
        if scale != 0.0:
            query(queries.labels[begin:end], s, s, g, h, *params)
        for i in range(end - begin):
            out.grad[begin + i] = scale * g[i]
            out.hess[begin + i] = scale * h[i]


@entry
def values(
    queries: LabelQueries,
    span: Span,
    scores: FloatArray,
    at: FloatArray,
    params: tuple[float, ...],
    out: FloatArray,
) -> None:
    """Write the scaled loss of every query of a span, with weights taken at other scores."""
    s_buffer = np.empty(span.longest)
    a_buffer = np.empty(span.longest)
    unused = np.empty((2, span.longest))
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        n = end - begin
        s, a, g, h = s_buffer[:n], a_buffer[:n], unused[0, :n], unused[1, :n]
        for i in range(n):
            s[i], a[i] = scores[begin + i], at[begin + i]
        value = 0.0
        if queries.scale[q] != 0.0:
            g[:] = 0.0
            h[:] = 0.0
            value = query(queries.labels[begin:end], s, a, g, h, *params)
        out[q] = queries.scale[q] * value
