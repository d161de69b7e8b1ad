r"""The p-norm push with the exponential loss, in one pass.

:math:`\frac1N \sum_j (\frac1P \sum_i e^{-(s_i - s_j)})^p` is
:math:`(\mathrm{mean}_i e^{-s_i})^p \, \mathrm{mean}_j e^{p s_j}`; everything is computed from
its logarithm, which has no overflow, and from differences of scores, which keep their digits
where scores lie far from zero.
"""

from typing import NamedTuple

import numpy as np

from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import GradHess, PushQueries, Span
from gbmrank.kernels.score_range import apart
from gbmrank.types import FloatArray

__all__ = ["gradients", "values"]


class _Sums(NamedTuple):
    """Sums of ``exp(lowest - s_i)`` over relevant, of ``exp(p (s_j - highest))`` over other items.

    ``lowest`` is the lowest score of a relevant item, ``highest`` the highest of the others.
    """

    lowest: float
    relevant: float
    highest: float
    others: float


@inner
def _sums(s: FloatArray, positives: int, p: float) -> _Sums:
    lowest, highest = s[0], s[positives]
    for i in range(positives):
        lowest = min(lowest, s[i])
    for j in range(positives, len(s)):
        highest = max(highest, s[j])
    relevant, others = 0.0, 0.0
    for i in range(positives):
        relevant += np.exp(apart(lowest, s[i], 0.0))
    for j in range(positives, len(s)):
        others += np.exp(p * apart(s[j], highest, 0.0))
    return _Sums(lowest, relevant, highest, others)


@inner
def _log_loss(sums: _Sums, positives: int, n: int, p: float) -> float:
    means = p * np.log(sums.relevant / positives) + np.log(sums.others / (n - positives))
    return means + p * apart(sums.highest, sums.lowest, 0.0)


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
        sums = _sums(s, positives, p)
        size = 1.0 if logarithm else np.exp(_log_loss(sums, positives, len(s), p))
        for i in range(len(rows)):
            if i < positives:
                a = np.exp(apart(sums.lowest, s[i], 0.0)) / sums.relevant
                grad = -p * a
                hess = p * a * (1.0 - a) if logarithm else p * a + p * (p - 1.0) * a * a
            else:
                b = np.exp(p * apart(s[i], sums.highest, 0.0)) / sums.others
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
            value = _log_loss(_sums(s, positives, p), positives, len(s), p)
            out[q] = queries.scale[q] * (value if logarithm else np.exp(value))
