r"""The p-norm push with the exponential loss, in one pass.

:math:`\frac1N \sum_j (\frac1P \sum_i e^{-(s_i - s_j)})^p` is
:math:`(\mathrm{mean}_i e^{-s_i})^p \, \mathrm{mean}_j e^{p s_j}`; everything is computed from
its logarithm, which has no overflow.
"""

import numpy as np

from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import GradHess, PushQueries, Span
from gbmrank.types import FloatArray

__all__ = ["gradients", "values"]


@inner
def _log_sum_exp(factor: float, s: FloatArray) -> float:
    largest = factor * s[0]
    for i in range(len(s)):
        largest = max(largest, factor * s[i])
    total = 0.0
    for i in range(len(s)):
        total += np.exp(factor * s[i] - largest)
    return largest + np.log(total)


@inner
def _log_loss(s: FloatArray, positives: int, p: float) -> tuple[float, float, float]:
    """Logarithm of the loss and of its two sums."""
    up = _log_sum_exp(-1.0, s[:positives])
    down = _log_sum_exp(p, s[positives:])
    value = p * (up - np.log(positives)) + down - np.log(len(s) - positives)
    return value, up, down


@entry
def gradients(
    queries: PushQueries, span: Span, scores: FloatArray, p: float, logarithm: bool, out: GradHess
) -> None:
    """Write scaled gradient and Hessian diagonal of every query of a span."""
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        rows = queries.order[begin:end]
        positives, scale = queries.positives[q], queries.scale[q]
        if positives == 0 or positives == len(rows) or scale == 0.0:
            for row in rows:
                out.grad[row] = 0.0
                out.hess[row] = 0.0
            continue
        s = np.empty(len(rows))
        for i in range(len(rows)):
            s[i] = scores[rows[i]]
        value, up, down = _log_loss(s, positives, p)
        size = 1.0 if logarithm else np.exp(value)
        for i in range(len(rows)):
            if i < positives:
                a = np.exp(-s[i] - up)
                grad = -p * a
                hess = p * a * (1.0 - a) if logarithm else p * a + p * (p - 1.0) * a * a
            else:
                b = np.exp(p * s[i] - down)
                grad = p * b
                hess = p * p * b * (1.0 - b) if logarithm else p * p * b
            out.grad[rows[i]] = scale * size * grad
            out.hess[rows[i]] = scale * size * hess


@entry
def values(
    queries: PushQueries, span: Span, scores: FloatArray, p: float, logarithm: bool, out: FloatArray
) -> None:
    """Write the scaled loss of every query of a span, shape (n_queries,)."""
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        positives = queries.positives[q]
        out[q] = 0.0
        if 0 < positives < end - begin and queries.scale[q] != 0.0:
            s = np.empty(end - begin)
            for i in range(len(s)):
                s[i] = scores[queries.order[begin + i]]
            value = _log_loss(s, positives, p)[0]
            out[q] = queries.scale[q] * (value if logarithm else np.exp(value))
