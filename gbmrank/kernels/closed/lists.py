r"""Losses of items and of whole lists, one pass over each query; a template.

:func:`item_gradients` sums :math:`\ell(s_i, v_i)` with the slot ``term(s, v, eta, *params) ->
(value, first, second)``. :func:`query_gradients` calls the slot ``query(labels, scores, at, grad,
hess, *params) -> value``, which adds to ``grad`` and ``hess``; weights that count as constants are
taken at the scores ``at``: the same as ``scores``, but for a check of the gradient.

The softmax and Plackett-Luce likelihoods keep a log-sum-exp in two parts, the largest score and
the logarithm of the rest: scores only enter by their differences, so that no digits are lost
where they lie far from zero.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gbmrank.kernels.jit.decorators import entry, inner
from gbmrank.kernels.layout import GradHess, ItemQueries, ItemTerms, Params, Span
from gbmrank.numerics import exp, sigmoid, softplus
from gbmrank.types import FloatArray, IntArray

if TYPE_CHECKING:
    from gbmrank.kernels.layout import query, term


@entry
def item_gradients(
    items: ItemTerms, span: Span, scores: FloatArray, params: Params, out: GradHess
) -> None:
    """Write scaled gradient and curvature of every item of a span of queries."""
    for q in range(span.first, span.last):
        begin, end = items.offsets[q], items.offsets[q + 1]
        s, v = scores[begin:end], items.utilities[begin:end]
        grad, hess = out.grad[begin:end], out.hess[begin:end]
        eta, scale = items.eta[q], items.scale[q]
        for i in range(len(s)):
            _, slope, bend = term(s[i], v[i], eta, *params)
            grad[i] = scale * slope
            hess[i] = scale * bend
        if len(items.weight):
            weight = items.weight[begin:end]
            for i in range(len(s)):
                grad[i] *= weight[i]
                hess[i] *= weight[i]


@entry
def item_values(
    items: ItemTerms, span: Span, scores: FloatArray, params: Params, out: FloatArray
) -> None:
    """Write the scaled loss of every query of a span, shape (n_queries,)."""
    for q in range(span.first, span.last):
        begin, end = items.offsets[q], items.offsets[q + 1]
        total = 0.0
        if items.scale[q] != 0.0:
            for i in range(begin, end):
                value = term(scores[i], items.utilities[i], items.eta[q], *params)[0]
                total += value * items.weight[i] if len(items.weight) else value
        out[q] = items.scale[q] * total


class LabelQueries(NamedTuple):
    """Labels in query order, which kernels cannot write to; ``scale`` multiplies a query."""

    offsets: IntArray
    labels: FloatArray
    scale: FloatArray


@entry
def query_gradients(
    queries: LabelQueries, span: Span, scores: FloatArray, params: Params, out: GradHess
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
def query_values(
    queries: LabelQueries,
    span: Span,
    scores: FloatArray,
    at: FloatArray,
    params: Params,
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


@inner
def _add_exp(s: FloatArray, anchored: bool, powers: FloatArray) -> tuple[float, float]:
    """Write ``exp(s - largest)``; return the largest score and the sum, perhaps with a score 0."""
    largest = 0.0 if anchored else s[0]
    for i in range(len(s)):
        largest = max(largest, s[i])
    for i in range(len(s)):
        powers[i] = exp(s[i] - largest)
    total = exp(-largest) if anchored else 0.0
    for i in range(len(s)):
        total += powers[i]
    return largest, total


@entry
def softmax_gradients(
    items: ItemTerms, span: Span, scores: FloatArray, majorise: bool, out: GradHess
) -> None:
    """Write ``V p - v`` and ``V p (1 - p)``, or its bound ``V p``, for a span of queries.

    With ``eta`` above 0 there is one more item in the query, of that utility and score 0.
    """
    buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = items.offsets[q], items.offsets[q + 1]
        v, powers = items.utilities[begin:end], buffer[: end - begin]
        scale, anchor = items.scale[q], items.eta[q]
        total, several = np.sum(v) + anchor, len(v) > 1 or anchor > 0.0
        _, divisor = _add_exp(scores[begin:end], anchor > 0.0, powers)
        for i in range(len(v)):
            p = powers[i] / divisor
            out.grad[begin + i] = scale * (total * p - v[i]) if several else 0.0
            rest = 1.0 if majorise else 1.0 - p
            out.hess[begin + i] = scale * total * p * rest if several else 0.0


@entry
def softmax_values(
    items: ItemTerms, span: Span, scores: FloatArray, entropy: bool, out: FloatArray
) -> None:
    """Write ``sum v (LSE(s) - s)``, plus ``sum v log v`` if asked, for a span of queries.

    ``eta`` is as for :func:`softmax_gradients`.
    """
    buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = items.offsets[q], items.offsets[q + 1]
        s, v = scores[begin:end], items.utilities[begin:end]
        anchor = items.eta[q]
        largest, powers = _add_exp(s, anchor > 0.0, buffer)
        rest = np.log(powers)
        total = anchor * (largest + rest) if anchor > 0.0 else 0.0
        for i in range(len(s)):
            if v[i] > 0.0:
                own = np.log(v[i]) if entropy else 0.0
                total += v[i] * ((largest - s[i]) + (rest + own))
        out[q] = items.scale[q] * total if items.scale[q] != 0.0 else 0.0


@entry
def sigmoid_gradients(
    items: ItemTerms, span: Span, scores: FloatArray, exact: bool, out: GradHess
) -> None:
    """Write ``(1 - p)(V q - v)`` and its curvature; q are the shares of ``p = sigmoid(s)``.

    Without ``exact`` the curvature leaves out a part whose mean is zero at the minimum.
    """
    logs, buffer = np.empty(span.longest), np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = items.offsets[q], items.offsets[q + 1]
        s, v, own = scores[begin:end], items.utilities[begin:end], logs[: end - begin]
        for i in range(len(s)):
            own[i] = -softplus(-s[i])
        _, powers = _add_exp(own, False, buffer)
        scale, total = items.scale[q], np.sum(v)
        for i in range(len(s)):
            share, rest = buffer[i] / powers, sigmoid(-s[i])
            slope = total * share - v[i] if len(s) > 1 else 0.0
            bend = total * rest * share * (1.0 - share)
            if exact:
                bend -= sigmoid(s[i]) * slope
            out.grad[begin + i] = scale * rest * slope
            out.hess[begin + i] = scale * rest * bend if len(s) > 1 else 0.0


@entry
def sigmoid_values(items: ItemTerms, span: Span, scores: FloatArray, out: FloatArray) -> None:
    """Write ``sum v (log sum p - log p)`` with ``p = sigmoid(s)`` for a span of queries."""
    logs, buffer = np.empty(span.longest), np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = items.offsets[q], items.offsets[q + 1]
        v, own = items.utilities[begin:end], logs[: end - begin]
        for i in range(len(v)):
            own[i] = -softplus(-scores[begin + i])
        largest, powers = _add_exp(own, False, buffer)
        rest = np.log(powers)
        total = 0.0
        for i in range(len(v)):
            if v[i] > 0.0:
                total += v[i] * ((largest - own[i]) + rest)
        out[q] = items.scale[q] * total if items.scale[q] != 0.0 else 0.0


@inner
def _suffix_levels(s: FloatArray, top: FloatArray, rest: FloatArray) -> None:
    """Write the log-sum-exp ``top + rest`` of every suffix, ``top`` being its largest score."""
    n = len(s)
    top[n - 1], rest[n - 1] = s[n - 1], 0.0
    for k in range(n - 2, -1, -1):
        if s[k] > top[k + 1]:
            top[k] = s[k]
            rest[k] = np.log1p(np.exp((top[k + 1] - s[k]) + rest[k + 1]))
        else:
            top[k] = top[k + 1]
            rest[k] = rest[k + 1] + np.log1p(np.exp((s[k] - top[k + 1]) - rest[k + 1]))


@entry
def listmle_gradients(
    queries: ItemQueries, span: Span, scores: FloatArray, majorise: bool, out: GradHess
) -> None:
    """Write gradient and Hessian diagonal of the weighted Plackett-Luce likelihood.

    ``utilities`` are the factors of the positions of the target ``order``, the last being zero.
    """
    s, top, rest = np.empty(span.longest), np.empty(span.longest), np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        rows, beta = queries.order[begin:end], queries.utilities[begin:end]
        n = end - begin
        for k in range(n):
            s[k] = scores[rows[k]]
        _suffix_levels(s[:n], top[:n], rest[:n])
        scale = queries.scale[q]
        first, second = 0.0, 0.0
        for k in range(n):
            # Sums over p <= k of beta e^{-L_p} and beta e^{-2 L_p}, relative to L_k: the
            # suffix levels fall with k, so every rescaling factor is at most one.
            before = max(k - 1, 0)
            shift = np.exp((top[k] - top[before]) + (rest[k] - rest[before]))
            first = first * shift + beta[k]
            second = second * shift * shift + beta[k]
            p = np.exp((s[k] - top[k]) - rest[k])
            mean, square = first * p, second * p * p
            out.grad[rows[k]] = scale * (mean - beta[k])
            out.hess[rows[k]] = scale * (mean if majorise else max(mean - square, 0.0))


@entry
def listmle_values(queries: ItemQueries, span: Span, scores: FloatArray, out: FloatArray) -> None:
    """Write the weighted negative log-likelihood of every query of a span."""
    s, top, rest = np.empty(span.longest), np.empty(span.longest), np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        n = end - begin
        for k in range(n):
            s[k] = scores[queries.order[begin + k]]
        _suffix_levels(s[:n], top[:n], rest[:n])
        total = 0.0
        for k in range(n):
            total += queries.utilities[begin + k] * ((top[k] - s[k]) + rest[k])
        out[q] = queries.scale[q] * total
