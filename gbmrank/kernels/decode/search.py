"""Rankings from pair values: kernels that decode a span of queries.

A query of n items has a matrix ``u`` of n x n values; matrices are stored one after the other.

*Algorithm 1*, for pairwise disagreement, where ``u[i, j]`` is the weight of "i is preferred to
j": keep the edges with a positive lead ``u[i, j] - u[j, i]``, delete the lightest until no cycle
is left and read off a topological order.

*Greedy*, for average precision, where ``u`` is symmetric: with the set S in front, putting item i
at rank ``|S| + 1`` earns ``(u[i, i] + sum of u[i, j], j in S) / (|S| + 1)``. The largest gain is
taken at each rank, and then single items are moved as long as the sum grows. (Exchanging
neighbours would not help: after a greedy choice the gain of the next item is never larger.)

*Exact*, for few items: dynamic programming over sets, :math:`O(2^n n^2)`. What an item adds depends
on the set S in front of it and not on the order of S: for disagreement item i costs ``sum of
u[i, j], j in S``, the weight of its preferences over items ranked above it.
"""

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit.decorators import entry, inner, separate
from gbmrank.kernels.layout import PairValues, Span
from gbmrank.types import FloatArray, IntArray

_MOST_PASSES = 100


@inner
def _query(pairs: PairValues, q: int, out: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the matrix of a query, and its part of the output."""
    begin, end = pairs.rows[q], pairs.rows[q + 1]
    n = end - begin
    return pairs.values[pairs.offsets[q] : pairs.offsets[q + 1]].reshape(n, n), out[begin:end]


@separate
def _edge_places(u: FloatArray) -> tuple[npt.NDArray[np.int32], int]:
    """Return the place of each edge by ascending (lead, i, j), -1 without one, and their number."""
    n = len(u)
    place = np.full((n, n), -1, np.int32)
    edges = np.empty(n * (n - 1) // 2, np.int64)
    leads = np.empty(len(edges))
    count = 0
    for i in range(n):
        for j in range(n):
            if i != j and u[i, j] > u[j, i]:
                edges[count] = i * n + j
                leads[count] = u[i, j] - u[j, i]
                count += 1
    order = np.argsort(leads[:count], kind="mergesort")  # stable: ties stay by (i, j)
    for k in range(count):
        edge = edges[order[k]]
        place[edge // n, edge % n] = k
    return place, count


@separate
def _next(before: IntArray, worth: FloatArray) -> int:
    """Return the item of largest worth, and of equal ones the first, that nothing precedes."""
    chosen = -1
    for i in range(len(before)):
        if before[i] == 0 and (chosen < 0 or worth[i] > worth[chosen]):
            chosen = i
    return chosen


@separate
def _topological(
    place: npt.NDArray[np.int32], deleted: int, worth: FloatArray, order: IntArray
) -> bool:
    """Write a topological order of the edges that are left; False when they have a cycle."""
    n = len(place)
    before = np.zeros(n, np.int64)
    for i in range(n):
        for j in range(n):
            before[j] += place[i, j] >= deleted
    for position in range(n):
        chosen = _next(before, worth)
        if chosen < 0:
            return False
        order[position] = chosen
        before[chosen] = -1
        for j in range(n):
            before[j] -= place[chosen, j] >= deleted
    return True


@separate
def _graph_order(u: FloatArray, by_degree: bool, order: IntArray) -> None:
    """Algorithm 1: search the number of deletions by bisection, as fewer keep more cycles."""
    place, count = _edge_places(u)
    worth = np.zeros(len(u))
    if by_degree:
        for i in range(len(u)):
            for j in range(len(u)):
                worth[i] += u[i, j] - u[j, i]
    fewest, enough = 0, count
    while fewest < enough:
        deleted = (fewest + enough) // 2
        if _topological(place, deleted, worth, order):
            enough = deleted
        else:
            fewest = deleted + 1
    _topological(place, fewest, worth, order)


@entry
def graph_orders(pairs: PairValues, by_degree: bool, span: Span, out: IntArray) -> None:
    """Write the items of every query of a span, best first, by Algorithm 1."""
    for q in range(span.first, span.last):
        u, order = _query(pairs, q, out)
        _graph_order(u, by_degree, order)


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
    """Move the item at a place behind all others, and subtract its part of their gains."""
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
def greedy_orders(pairs: PairValues, span: Span, out: IntArray) -> None:
    """Write the items of every query of a span, best first, by gain and then by moves."""
    for q in range(span.first, span.last):
        u, order = _query(pairs, q, out)
        _greedy_order(u, order)
        _move_items(u, order)


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
    """Return the item to put next, the first of equally good ones; write the best value."""
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
        u, order = _query(pairs, q, out)
        _exact_order(u, precision, order)
