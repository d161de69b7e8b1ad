r"""Push risks :math:`\frac1N \sum_j G(F_j)`, :math:`F_j = \frac1P \sum_i \kappa(s_i - s_j)`.

A template with three slots: ``phi``, the pair penalty; ``outer(x, *params) -> (value,
first, second)``, the price G of a useless item's mean loss; and ``linear_fields``, which
sums over one side in linear time and may decline. i runs over the P relevant items of a
query, which come first in its order, j over the N others.
"""

from typing import TYPE_CHECKING

import numpy as np

from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import Engines, GradHess, PushParams, PushQueries, Span
from gbmrank.kernels.linear_plan import LinearPlan
from gbmrank.types import FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.slots import linear_fields, outer, phi

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


@inner
def _linear(
    s: FloatArray,
    positives: int,
    params: PushParams,
    plan: LinearPlan,
    out: tuple[FloatArray, FloatArray],
) -> bool:
    """The same in linear time; False when the engine declines."""
    g, h = out
    relevant, others = s[:positives], s[positives:]
    seen = np.empty((len(others), 4))
    equal = np.full(positives, 1.0 / positives)
    if not linear_fields(others, (relevant, equal), -1, plan, params.inner, seen):
        return False
    prices = np.empty(len(others))
    steeps = np.empty(len(others))
    for j in range(len(others)):
        value, slope, bend = seen[j, 0], seen[j, 1], seen[j, 2]
        _, price, steep = outer(max(value, 0.0), *params.outer)
        g[positives + j] = -price * slope / len(others)
        h[positives + j] = (price * bend + steep * slope * slope) / len(others)
        prices[j] = price / (len(others) * positives)
        steeps[j] = steep / (len(others) * positives * positives)
    back = np.empty((positives, 4))
    extra = np.empty((positives, 4))
    linear_fields(relevant, (others, prices), 1, plan, params.inner, back)
    linear_fields(relevant, (others, steeps), 1, plan, params.inner, extra)
    for i in range(positives):
        g[i] = back[i, 1]
        h[i] = back[i, 2] + extra[i, 3]
    return True


@inner
def _is_long(s: FloatArray, engines: Engines) -> bool:
    """Whether the linear-time engine pays: many items for their range of scores."""
    if len(s) < engines.linear_from:
        return False
    return bool(len(s) >= engines.linear_range * (np.max(s) - np.min(s)))


@inner
def _losses_of_others(
    s: FloatArray, positives: int, params: PushParams, engines: Engines
) -> FloatArray:
    """Mean loss F_j of every useless item."""
    relevant, others = s[:positives], s[positives:]
    losses = np.empty(len(others))
    if _is_long(s, engines):
        seen = np.empty((len(others), 4))
        equal = np.full(positives, 1.0 / positives)
        if linear_fields(others, (relevant, equal), -1, engines.plan, params.inner, seen):
            for j in range(len(others)):
                losses[j] = max(seen[j, 0], 0.0)
            return losses
    for j in range(len(others)):
        losses[j] = _sums_to_relevant(others[j], relevant, params.inner)[0]
    return losses


@entry
def gradients(
    queries: PushQueries,
    span: Span,
    scores: FloatArray,
    params: PushParams,
    engines: Engines,
    out: GradHess,
) -> None:
    """Write scaled gradient and Hessian diagonal of every query of a span."""
    s_buffer = np.empty(span.longest)
    g_buffer = np.empty(span.longest)
    h_buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        rows = queries.order[begin:end]
        s, g, h = s_buffer[: end - begin], g_buffer[: end - begin], h_buffer[: end - begin]
        for i in range(len(s)):
            s[i] = scores[rows[i]]
        positives, scale = queries.positives[q], queries.scale[q]
        if positives == 0 or positives == len(s) or scale == 0.0:
            g[:] = 0.0
            h[:] = 0.0
        elif not _is_long(s, engines) or not _linear(s, positives, params, engines.plan, (g, h)):
            _every_pair(s, positives, params, (g, h))
        for i in range(len(s)):
            out.grad[rows[i]] = scale * g[i]
            out.hess[rows[i]] = scale * h[i]


@entry
def values(
    queries: PushQueries,
    span: Span,
    scores: FloatArray,
    params: PushParams,
    engines: Engines,
    out: FloatArray,
) -> None:
    """Write the scaled loss of every query of a span, shape (n_queries,)."""
    s_buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        s = s_buffer[: end - begin]
        for i in range(len(s)):
            s[i] = scores[queries.order[begin + i]]
        positives = queries.positives[q]
        out[q] = 0.0
        if 0 < positives < len(s) and queries.scale[q] != 0.0:
            losses = _losses_of_others(s, positives, params, engines)
            total = 0.0
            for j in range(len(losses)):
                total += outer(losses[j], *params.outer)[0]
            out[q] = queries.scale[q] * total / len(losses)
