r"""Sums :math:`\sum_{i \to j} w_{ij}\, \varphi(s_i - s_j - h_{ij})` over the edges of graphs.

A template with the slot ``phi(z, *params) -> (value, first, second)``.
"""

from typing import TYPE_CHECKING

import numpy as np

from gbmrank.kernels.graph_layout import EdgeQueries
from gbmrank.kernels.jit import entry
from gbmrank.kernels.layout import GradHess, Span
from gbmrank.types import FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.slots import phi

__all__ = ["gradients", "values"]


@entry
def gradients(
    graphs: EdgeQueries, span: Span, scores: FloatArray, params: tuple[float, ...], out: GradHess
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
def values(
    graphs: EdgeQueries, span: Span, scores: FloatArray, params: tuple[float, ...], out: FloatArray
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
