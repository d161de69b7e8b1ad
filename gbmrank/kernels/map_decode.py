r"""Rankings from symmetric pair values, for average precision.

With the set S in front, putting item i at rank ``|S| + 1`` earns
``(u[i, i] + sum of u[i, j], j in S) / (|S| + 1)``. The largest gain is taken at each rank, and
then single items are moved as long as the sum grows. (Exchanging neighbours would be idle:
after a greedy choice the gain of the next item is never larger.)
"""

import numpy as np

from gbmrank.kernels.graph_layout import PairValues
from gbmrank.kernels.jit import entry, separate
from gbmrank.kernels.layout import Span
from gbmrank.types import FloatArray, IntArray

__all__ = ["greedy_orders"]

_MOST_PASSES = 100


@separate
def _greedy_order(u: FloatArray, order: IntArray) -> None:
    n = len(u)
    gain = np.empty(n)
    free = np.ones(n, np.bool_)
    for i in range(n):
        gain[i] = u[i, i]
    for position in range(n):
        chosen = -1
        for i in range(n):
            if free[i] and (chosen < 0 or gain[i] > gain[chosen]):
                chosen = i
        order[position] = chosen
        free[chosen] = False
        for i in range(n):
            gain[i] += u[i, chosen]


@separate
def _gains(u: FloatArray, order: IntArray, gain: FloatArray) -> None:
    """Write ``u[i, i] + sum of u[i, j] over the items j in front of i`` for every item."""
    for position in range(len(order)):
        i = order[position]
        gain[i] = u[i, i]
        for k in range(position):
            gain[i] += u[i, order[k]]


@separate
def _take_out(u: FloatArray, order: IntArray, place: int, gain: FloatArray) -> None:
    """Move the item at a place behind all others, which lose what it gave them."""
    item = order[place]
    for k in range(place + 1, len(order)):
        order[k - 1] = order[k]
        gain[order[k]] -= u[order[k], item]
    order[-1] = item


@separate
def _put_in(u: FloatArray, order: IntArray, place: int, gain: FloatArray) -> None:
    """Move the last item to a place."""
    item = order[-1]
    for k in range(len(order) - 1, place, -1):
        order[k] = order[k - 1]
        gain[order[k]] += u[order[k], item]
    order[place] = item
    gain[item] = u[item, item]
    for k in range(place):
        gain[item] += u[item, order[k]]


@separate
def _best_place(u: FloatArray, order: IntArray, gain: FloatArray, values: FloatArray) -> int:
    """Write the sum for every place of the last item, and return the best place."""
    n, item = len(order), order[-1]
    after = 0.0
    for k in range(n - 1):
        after += (gain[order[k]] + u[order[k], item]) / (k + 2)
    before, own = 0.0, u[item, item]
    best = 0
    for place in range(n):
        values[place] = before + own / (place + 1) + after
        if values[place] > values[best]:
            best = place
        if place < n - 1:
            i = order[place]
            before += gain[i] / (place + 1)
            after -= (gain[i] + u[i, item]) / (place + 2)
            own += u[item, i]
    return best


@separate
def _move_items(u: FloatArray, order: IntArray) -> None:
    n = len(u)
    gain, values = np.empty(n), np.empty(n)
    enough = 1e-12 * n * np.abs(u).max()
    for _ in range(_MOST_PASSES):
        _gains(u, order, gain)
        moved = False
        for place in range(n):
            _take_out(u, order, place, gain)
            best = _best_place(u, order, gain, values)
            better = values[best] > values[place] + enough
            _put_in(u, order, best if better else place, gain)
            moved = moved or better
        if not moved:
            return


@entry
def greedy_orders(pairs: PairValues, moves: bool, span: Span, out: IntArray) -> None:
    """Write the items of every query of a span, best first, by gain and, if asked, by moves."""
    for q in range(span.first, span.last):
        begin, end = pairs.rows[q], pairs.rows[q + 1]
        n = end - begin
        u = pairs.values[pairs.offsets[q] : pairs.offsets[q + 1]].reshape(n, n)
        _greedy_order(u, out[begin:end])
        if moves:
            _move_items(u, out[begin:end])
