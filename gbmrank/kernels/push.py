r"""Push risks :math:`\frac1N \sum_j G(F_j)`, :math:`F_j = \frac1P \sum_i \kappa(s_i - s_j)`.

A template with two slots: ``phi``, the pair penalty; and ``outer(x, *params) -> (value,
first, second)``, the price G of a useless item's mean loss. i runs over the P relevant items
of a query, which come first in its order, j over the N others. Long queries that
:mod:`gbmrank.kernels.long_push` has served are passed over.
"""

from typing import TYPE_CHECKING

import numpy as np

from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import Engines, GradHess, PushParams, PushQueries, Span
from gbmrank.kernels.rows import read_scores, write_scaled
from gbmrank.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.slots import outer, phi

__all__ = ["gradients", "values"]


@inner
def _sums_to_relevant(
    other: float, relevant: FloatArray, params: tuple[float, ...]
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
def _every_pair(
    s: FloatArray, positives: int, params: PushParams, out: tuple[FloatArray, FloatArray]
) -> None:
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
def gradients(
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
            _every_pair(s, positives, params, (g, h))
        write_scaled(g, h, scale, rows, out)
        served[q] = True


@entry
def values(
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
