r"""Rankings from pair values, for pairwise disagreement.

A query of n items has a matrix ``u`` of n x n values, ``u[i, j]`` being the weight of "i is
preferred to j"; matrices lie one after the other. *Algorithm 1* keeps the edges with a
positive lead ``u[i, j] - u[j, i]``, deletes the lightest until no cycle is left and reads off
a topological order.
"""

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.graph_layout import PairValues
from gbmrank.kernels.jit import entry, separate
from gbmrank.kernels.layout import Span
from gbmrank.types import FloatArray, IntArray

__all__ = ["graph_orders"]


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
        begin, end = pairs.rows[q], pairs.rows[q + 1]
        n = end - begin
        u = pairs.values[pairs.offsets[q] : pairs.offsets[q + 1]].reshape(n, n)
        _graph_order(u, by_degree, out[begin:end])
