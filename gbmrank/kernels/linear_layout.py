"""Named tuples of the linear-time engine."""

from typing import Any, NamedTuple

import numpy.typing as npt

from gbmrank.types import FloatArray, IntArray

__all__ = ["Cells", "Grid", "Side"]


class Side(NamedTuple):
    """One set of items: what goes in and where results are written.

    Attributes
    ----------
    scores, weights : arrays of shape (n,)
        Finite float64 values.
    grad, hess : arrays of shape (n,)
        Results, float32 or float64.
    """

    scores: FloatArray
    weights: FloatArray
    grad: npt.NDArray[Any]
    hess: npt.NDArray[Any]


class Grid(NamedTuple):
    """Cells of one query.

    Attributes
    ----------
    width, per_width : float
        Cell width and its inverse.
    first : float
        Number of the lowest cell; cells are counted from it.
    cells : array of shape (n_slots,)
        Rising cell numbers of the rows ("slots") of every per-cell array; empty when the
        scores are out of the plan's reach or not finite.
    keys, slots : arrays of a length that is a power of two, or empty
        Hash table from cell to slot; empty when slot and cell are the same.
    """

    width: float
    per_width: float
    first: float
    cells: IntArray
    keys: IntArray
    slots: IntArray


class Cells(NamedTuple):
    """Per-cell arrays; "mirrored" ones count nodes from the upper end of the cell.

    Attributes
    ----------
    cells : array of shape (n_slots,)
        Rising cell numbers.
    width : float
        Cell width.
    worse, better_mirrored : arrays of shape (n_slots, ORDER)
        Node weights of the worse and of the better items.
    seen, seen_mirrored : arrays of shape (n_slots, 4, ORDER)
        Sums of value, first, second and squared first derivative at the nodes, as seen
        by better items (over worse ones), and by worse items (over better ones).
    lonely : array of shape (n_slots,)
        1 for cells that do not act on themselves, else 0.
    """

    cells: IntArray
    width: float
    worse: FloatArray
    better_mirrored: FloatArray
    seen: FloatArray
    seen_mirrored: FloatArray
    lonely: IntArray
