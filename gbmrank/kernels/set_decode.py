r"""The best ranking of few items, by dynamic programming over sets, :math:`O(2^n n^2)`.

What an item adds depends on the set S in front of it and not on the order of S. For
disagreement, item i costs ``sum of u[i, j], j in S``: those it is preferred to and comes
after. For average precision it earns ``(u[i, i] + sum of u[i, j], j in S) / (|S| + 1)``.
"""

import numpy as np

from gbmrank.kernels.graph_layout import PairValues
from gbmrank.kernels.jit import entry, separate
from gbmrank.kernels.layout import Span
from gbmrank.types import FloatArray, IntArray

__all__ = ["exact_orders"]


@separate
def _gain(u: FloatArray, item: int, placed: int, precision: bool) -> float:
    """Return what an item adds to the value when the set ``placed`` is in front of it."""
    total, rank = 0.0, 1
    for j in range(len(u)):
        if placed >> j & 1:
            total += u[item, j]
            rank += 1
    return (u[item, item] + total) / rank if precision else -total


@separate
def _best_next(u: FloatArray, to_go: FloatArray, placed: int, precision: bool) -> int:
    """Return the item to put next, the first of equally good ones; write what is to be had."""
    best, chosen = -np.inf, -1
    for i in range(len(u)):
        if not placed >> i & 1:
            value = _gain(u, i, placed, precision) + to_go[placed | 1 << i]
            if value > best:
                best, chosen = value, i
    to_go[placed] = best
    return chosen


@separate
def _exact_order(u: FloatArray, precision: bool, order: IntArray) -> None:
    everything = (1 << len(u)) - 1
    to_go = np.zeros(everything + 1)
    for placed in range(everything - 1, -1, -1):
        _best_next(u, to_go, placed, precision)
    placed = 0
    for position in range(len(u)):
        order[position] = _best_next(u, to_go, placed, precision)
        placed |= 1 << order[position]


@entry
def exact_orders(pairs: PairValues, precision: bool, span: Span, out: IntArray) -> None:
    """Write the items of every query of a span, best first."""
    for q in range(span.first, span.last):
        begin, end = pairs.rows[q], pairs.rows[q + 1]
        n = end - begin
        u = pairs.values[pairs.offsets[q] : pairs.offsets[q + 1]].reshape(n, n)
        _exact_order(u, precision, out[begin:end])
