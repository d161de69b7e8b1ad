"""Losses of a whole list: softmax and Plackett-Luce likelihoods."""

import numpy as np

from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import GradHess, ItemQueries, ItemTerms, Span
from gbmrank.types import FloatArray

__all__ = ["listmle_gradients", "listmle_values", "softmax_gradients", "softmax_values"]


@inner
def _log_sum_exp(s: FloatArray) -> float:
    largest = s[0]
    for i in range(len(s)):
        largest = max(largest, s[i])
    total = 0.0
    for i in range(len(s)):
        total += np.exp(s[i] - largest)
    return largest + np.log(total)


@entry
def softmax_gradients(
    items: ItemTerms, span: Span, scores: FloatArray, majorise: bool, out: GradHess
) -> None:
    """Write ``V p - v`` and ``V p (1 - p)``, or its bound ``V p``, for a span of queries."""
    for q in range(span.first, span.last):
        begin, end = items.offsets[q], items.offsets[q + 1]
        s, v = scores[begin:end], items.utilities[begin:end]
        scale = items.scale[q]
        total = np.sum(v)
        level = _log_sum_exp(s)
        for i in range(len(s)):
            p = np.exp(s[i] - level)
            out.grad[begin + i] = scale * (total * p - v[i]) if len(s) > 1 else 0.0
            rest = 1.0 if majorise else 1.0 - p
            out.hess[begin + i] = scale * total * p * rest if len(s) > 1 else 0.0


@entry
def softmax_values(
    items: ItemTerms, span: Span, scores: FloatArray, entropy: bool, out: FloatArray
) -> None:
    """Write ``sum v (LSE(s) - s)``, plus ``sum v log v`` if asked, for a span of queries."""
    for q in range(span.first, span.last):
        begin, end = items.offsets[q], items.offsets[q + 1]
        s, v = scores[begin:end], items.utilities[begin:end]
        level = _log_sum_exp(s)
        total = 0.0
        for i in range(len(s)):
            if v[i] > 0.0:
                total += v[i] * (level - s[i]) + (v[i] * np.log(v[i]) if entropy else 0.0)
        out[q] = items.scale[q] * total if items.scale[q] != 0.0 else 0.0


@inner
def _suffix_levels(s: FloatArray, level: FloatArray) -> None:
    """Write the log-sum-exp of every suffix."""
    n = len(s)
    level[n - 1] = s[n - 1]
    for k in range(n - 2, -1, -1):
        high, low = max(s[k], level[k + 1]), min(s[k], level[k + 1])
        level[k] = high + np.log1p(np.exp(low - high))


@entry
def listmle_gradients(
    queries: ItemQueries, span: Span, scores: FloatArray, majorise: bool, out: GradHess
) -> None:
    """Write gradient and Hessian diagonal of the weighted Plackett-Luce likelihood.

    ``order`` is the target permutation and ``utilities`` the factor of each of its
    positions, the last one being zero.
    """
    s = np.empty(span.longest)
    level = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        rows, beta = queries.order[begin:end], queries.utilities[begin:end]
        n = end - begin
        for k in range(n):
            s[k] = scores[rows[k]]
        _suffix_levels(s[:n], level[:n])
        scale = queries.scale[q]
        first, second, reference = 0.0, 0.0, level[0]
        for k in range(n):
            # Sums over p <= k of beta e^{-L_p} and beta e^{-2 L_p}, relative to L_k: the
            # suffix levels fall with k, so every rescaling factor is at most one.
            shift = np.exp(level[k] - reference)
            first = first * shift + beta[k]
            second = second * shift * shift + beta[k]
            reference = level[k]
            p = np.exp(s[k] - level[k])
            mean, square = first * p, second * p * p
            out.grad[rows[k]] = scale * (mean - beta[k])
            out.hess[rows[k]] = scale * (mean if majorise else max(mean - square, 0.0))


@entry
def listmle_values(queries: ItemQueries, span: Span, scores: FloatArray, out: FloatArray) -> None:
    """Write the weighted negative log-likelihood of every query of a span."""
    s = np.empty(span.longest)
    level = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        n = end - begin
        for k in range(n):
            s[k] = scores[queries.order[begin + k]]
        _suffix_levels(s[:n], level[:n])
        total = 0.0
        for k in range(n):
            total += queries.utilities[begin + k] * (level[k] - s[k])
        out[q] = queries.scale[q] * total
