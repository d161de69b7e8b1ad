r"""Sums over items, :math:`\sum_i \ell(s_i, v_i)`.

A template with the slot ``term(s, v, eta, *params) -> (value, first, second)``.
"""

from typing import TYPE_CHECKING

from gbmrank.kernels.jit import entry
from gbmrank.kernels.layout import GradHess, ItemTerms, Span
from gbmrank.types import FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.slots import term

__all__ = ["gradients", "values"]


@entry
def gradients(
    items: ItemTerms, span: Span, scores: FloatArray, params: tuple[float, ...], out: GradHess
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
def values(
    items: ItemTerms, span: Span, scores: FloatArray, params: tuple[float, ...], out: FloatArray
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
