"""Losses of a whole list: softmax and Plackett-Luce likelihoods.

A log-sum-exp is kept in two parts, the largest score and the logarithm of the rest: scores
only enter by their differences, so that no digits are lost where they lie far from zero.
"""

import numpy as np

from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import GradHess, ItemQueries, ItemTerms, Span
from gbmrank.kernels.score_range import apart
from gbmrank.types import FloatArray

__all__ = ["listmle_gradients", "listmle_values", "softmax_gradients", "softmax_values"]


@inner
def _sum_exp(s: FloatArray) -> tuple[float, float]:
    """Return the largest score and the sum of ``exp(s - largest)``."""
    largest = s[0]
    for i in range(len(s)):
        largest = max(largest, s[i])
    total = 0.0
    for i in range(len(s)):
        total += np.exp(apart(s[i], largest, 0.0))
    return largest, total


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
        largest, powers = _sum_exp(s)
        for i in range(len(s)):
            p = np.exp(apart(s[i], largest, 0.0)) / powers
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
        largest, powers = _sum_exp(s)
        rest = np.log(powers)
        total = 0.0
        for i in range(len(s)):
            if v[i] > 0.0:
                own = np.log(v[i]) if entropy else 0.0
                total += v[i] * apart(largest, s[i], rest + own)
        out[q] = items.scale[q] * total if items.scale[q] != 0.0 else 0.0


@inner
def _suffix_levels(s: FloatArray, top: FloatArray, rest: FloatArray) -> None:
    """Write the log-sum-exp ``top + rest`` of every suffix, ``top`` being its largest score."""
    n = len(s)
    top[n - 1], rest[n - 1] = s[n - 1], 0.0
    for k in range(n - 2, -1, -1):
        if s[k] > top[k + 1]:
            top[k] = s[k]
            rest[k] = np.log1p(np.exp(apart(top[k + 1], s[k], rest[k + 1])))
        else:
            top[k] = top[k + 1]
            rest[k] = rest[k + 1] + np.log1p(np.exp(apart(s[k], top[k + 1], -rest[k + 1])))


@entry
def listmle_gradients(
    queries: ItemQueries, span: Span, scores: FloatArray, majorise: bool, out: GradHess
) -> None:
    """Write gradient and Hessian diagonal of the weighted Plackett-Luce likelihood.

    ``order`` is the target permutation and ``utilities`` the factor of each of its
    positions, the last one being zero.
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
            shift = np.exp(apart(top[k], top[before], rest[k] - rest[before]))
            first = first * shift + beta[k]
            second = second * shift * shift + beta[k]
            p = np.exp(apart(s[k], top[k], -rest[k]))
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
            total += queries.utilities[begin + k] * apart(top[k], s[k], rest[k])
        out[q] = queries.scale[q] * total
