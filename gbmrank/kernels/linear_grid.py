"""Cells for the linear-time engine: binning, spreading and reading back.

The score axis is cut into cells of one width. Inside a cell a smooth function is known
by its values at ``ORDER`` Chebyshev nodes, so all items of a cell act on the rest of the
world through ``ORDER`` numbers. This module holds what does not depend on the loss: it
finds the cell of every item, sums Chebyshev moments of the items' weights per cell, and
evaluates one polynomial per cell at every item.

Cell numbers are whole and the width has few bits, so cell borders and positions inside a
cell carry no rounding error, however large the scores are. When there are many more
cells than items, only the occupied ones are stored, found through a hash table.
"""

import numpy as np

from gbmrank.kernels.jit import entry, exact_inner, inner, merged, separate
from gbmrank.kernels.linear_layout import Grid, Side
from gbmrank.kernels.linear_plan import ORDER, LinearPlan
from gbmrank.kernels.linear_vectors import add_chebyshev, evaluate_four
from gbmrank.types import FloatArray, IntArray

__all__ = [
    "add_moments",
    "add_pair_moments",
    "build_grid",
    "read_fields",
    "read_pairs",
    "read_side",
]

_MAX_CELL = 2.0**45
"""Cell numbers up to this leave enough bits for exact positions inside a cell."""

_BLOCK = 512  # items whose places are kept at hand
_LANES = 8
_LARGEST = float(np.finfo(np.float64).max)
_HASH = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: spreads neighbouring cells


@separate
def _bounds(scores: FloatArray) -> tuple[float, float]:
    """Smallest and largest score, both NaN when a score is not finite."""
    lows, highs = np.empty(_LANES), np.empty(_LANES)
    for lane in range(_LANES):
        lows[lane], highs[lane] = np.inf, -np.inf
    finite = 0
    whole = len(scores) - len(scores) % _LANES
    for start in range(0, whole, _LANES):
        for lane in range(_LANES):
            score = scores[start + lane]
            lows[lane] = score if score < lows[lane] else lows[lane]
            highs[lane] = score if score > highs[lane] else highs[lane]
            finite += abs(score) <= _LARGEST
    for i in range(whole, len(scores)):
        lows[0] = scores[i] if scores[i] < lows[0] else lows[0]
        highs[0] = scores[i] if scores[i] > highs[0] else highs[0]
        finite += abs(scores[i]) <= _LARGEST
    low, high = lows[0], highs[0]
    for lane in range(1, _LANES):
        low = lows[lane] if lows[lane] < low else low
        high = highs[lane] if highs[lane] > high else high
    return (low, high) if finite == len(scores) else (np.nan, np.nan)


@merged
def build_grid(scores: FloatArray, more: FloatArray, plan: LinearPlan) -> Grid:
    """Lay cells over the scores of one query.

    Parameters
    ----------
    scores, more : arrays of shape (n,) and (m,)
        Scores of all items; ``more`` may be empty.
    plan : LinearPlan
        Cell width and reach.

    Returns
    -------
    Grid
        Without cells when a score is not finite or the plan does not reach that far: the
        engine cannot serve this query.
    """
    low, high = _bounds(scores)
    if len(more):
        low_more, high_more = _bounds(more)
        low = low_more if low_more < low or np.isnan(low_more) else low  # either NaN stays
        high = high_more if high_more > high else high
    nothing = np.empty(0, np.int64)
    per_width = 1.0 / plan.width
    first = np.floor(low * per_width)
    # Written so that NaN fails.
    farthest = _MAX_CELL * plan.width
    if not (high - low <= plan.reach and low >= -farthest and high <= farthest):
        return Grid(plan.width, per_width, 0.0, nothing, nothing, nothing)
    count = int(np.floor(high * per_width) - first) + 1
    items = len(scores) + len(more)
    if count <= items // 4 + 256:
        every = np.empty(count, np.int64)
        for cell in range(count):
            every[cell] = cell
        return Grid(plan.width, per_width, first, every, nothing, nothing)
    keys = _occupied_cells(scores, more, per_width, first)
    cells = _sorted_cells(keys)
    slots = np.empty(len(keys), np.int64)
    for slot in range(len(cells)):
        slots[_probe(keys, cells[slot])] = slot
    return Grid(plan.width, per_width, first, cells, keys, slots)


@separate
def _sorted_cells(keys: IntArray) -> IntArray:
    """Cells of a hash table in rising order.

    A Shell sort: the compiler's own sort takes longer to compile than this whole module.
    """
    cells = np.empty(len(keys), np.int64)
    count = 0
    for key in keys:
        if key >= 0:
            cells[count] = key
            count += 1
    gap = count // 2
    while gap > 0:
        for i in range(gap, count):
            cell, place = cells[i], i
            while place >= gap and cells[place - gap] > cell:
                cells[place] = cells[place - gap]
                place -= gap
            cells[place] = cell
        gap = 1 if gap == 2 else gap * 5 // 11
    return cells[:count]


@separate
def _occupied_cells(
    scores: FloatArray, more: FloatArray, per_width: float, first: float
) -> IntArray:
    """Hash table of the cells that hold an item; free places hold -1."""
    size = 16
    while size < 2 * (len(scores) + len(more)):
        size *= 2
    keys = np.empty(size, np.int64)
    for place in range(size):
        keys[place] = -1
    for score in scores:
        cell = np.int64(np.floor(score * per_width) - first)
        keys[_probe(keys, cell)] = cell
    for score in more:
        cell = np.int64(np.floor(score * per_width) - first)
        keys[_probe(keys, cell)] = cell
    return keys


@inner
def _probe(keys: IntArray, cell: np.int64) -> np.uint64:
    """Place of a cell in the hash table, or the free place where it belongs."""
    mask = np.uint64(len(keys) - 1)
    mixed = np.uint64(cell) * np.uint64(_HASH)
    place = (mixed ^ (mixed >> np.uint64(32))) & mask
    while keys[place] != cell and keys[place] != -1:
        place = (place + np.uint64(1)) & mask
    return place


@exact_inner
def _place_in_cell(score: float, number: float, width: float, per_width: float) -> float:
    """Place of a score in its cell, from -1 to 1."""
    return (score - (number + 0.5) * width) * (2.0 * per_width)


@separate
def _locate(grid: Grid, scores: FloatArray, slots: IntArray, places: FloatArray) -> None:
    """Write slot and place of every score.

    Item loops call this by blocks: with the grid's arrays in scope, a function called
    for every item would count references for every item.
    """
    for i in range(len(scores)):
        number = np.floor(scores[i] * grid.per_width)
        places[i] = _place_in_cell(scores[i], number, grid.width, grid.per_width)
        slots[i] = np.int64(number - grid.first)
    if len(grid.keys):
        for i in range(len(scores)):
            slots[i] = grid.slots[_probe(grid.keys, slots[i])]


@entry
def add_moments(grid: Grid, scores: FloatArray, weights: FloatArray, moments: FloatArray) -> None:
    """Add the Chebyshev moments of weighted items.

    Parameters
    ----------
    grid : Grid
        Cells that cover the scores.
    scores, weights : arrays of shape (n,)
        The items.
    moments : array of shape (n_slots, ORDER)
        Receives ``weight * T_m(place in the cell)``.
    """
    slots, places = np.empty(_BLOCK, np.int64), np.empty(_BLOCK)
    for start in range(0, len(scores), _BLOCK):
        block = scores[start : start + _BLOCK]
        _locate(grid, block, slots, places)
        for i in range(len(block)):
            add_chebyshev(moments, slots[i] * ORDER, weights[start + i], places[i])


@merged
def add_pair_moments(
    grid: Grid, scores: FloatArray, weights: FloatArray, moments: FloatArray
) -> None:
    """Add moments of unit weights and of given weights in one pass.

    Parameters
    ----------
    grid : Grid
        Cells that cover the scores.
    scores, weights : arrays of shape (n,)
        The items.
    moments : array of shape (2, n_slots, ORDER)
        First unit weights, then the given ones.
    """
    slots, places = np.empty(_BLOCK, np.int64), np.empty(_BLOCK)
    second = len(grid.cells) * ORDER
    for start in range(0, len(scores), _BLOCK):
        block = scores[start : start + _BLOCK]
        _locate(grid, block, slots, places)
        for i in range(len(block)):
            offset = slots[i] * ORDER
            add_chebyshev(moments, offset, 1.0, places[i])
            add_chebyshev(moments, second + offset, weights[start + i], places[i])


@merged
def read_pairs(grid: Grid, side: Side, powers: FloatArray) -> None:
    """Write gradient and Hessian of items that are both better and worse ones.

    Parameters
    ----------
    grid : Grid
        Cells that cover the scores.
    side : Side
        The items.
    powers : array of shape (n_slots, ORDER, 4)
        Slope and curvature fields seen as the better, then as the worse item.
    """
    slots, places = np.empty(_BLOCK, np.int64), np.empty(_BLOCK)
    scores, weights, grad, hess = side
    for start in range(0, len(scores), _BLOCK):
        block = scores[start : start + _BLOCK]
        _locate(grid, block, slots, places)
        for k in range(len(block)):
            fields = evaluate_four(powers, slots[k] * (4 * ORDER), places[k])
            slope, curve, back_slope, back_curve = fields
            i = start + k
            grad[i] = weights[i] * slope - back_slope
            hess[i] = weights[i] * curve + back_curve


@entry
def read_side(grid: Grid, side: Side, powers: FloatArray, sign: float) -> None:
    """Add gradient and Hessian of items that are all better (sign 1) or all worse (-1).

    Parameters
    ----------
    grid : Grid
        Cells that cover the scores.
    side : Side
        The items.
    powers : array of shape (n_slots, ORDER, 4)
        As for :func:`read_pairs`.
    sign : float
        1.0 or -1.0.
    """
    slots, places = np.empty(_BLOCK, np.int64), np.empty(_BLOCK)
    scores, weights, grad, hess = side
    for start in range(0, len(scores), _BLOCK):
        block = scores[start : start + _BLOCK]
        _locate(grid, block, slots, places)
        for k in range(len(block)):
            fields = evaluate_four(powers, slots[k] * (4 * ORDER), places[k])
            slope, curve, back_slope, back_curve = fields
            i = start + k
            grad[i] += weights[i] * (slope if sign > 0.0 else -back_slope)
            hess[i] += weights[i] * (curve if sign > 0.0 else back_curve)


@entry
def read_fields(grid: Grid, targets: FloatArray, powers: FloatArray, out: FloatArray) -> None:
    """Evaluate four fields at every target.

    Parameters
    ----------
    grid : Grid
        Cells that cover the targets.
    targets : array of shape (n,)
        Scores.
    powers : array of shape (n_slots, ORDER, 4)
        Coefficients of the fields.
    out : array of shape (n, 4)
        Receives the values.
    """
    slots, places = np.empty(_BLOCK, np.int64), np.empty(_BLOCK)
    for start in range(0, len(targets), _BLOCK):
        block = targets[start : start + _BLOCK]
        _locate(grid, block, slots, places)
        for k in range(len(block)):
            fields = evaluate_four(powers, slots[k] * (4 * ORDER), places[k])
            i = start + k
            out[i, 0], out[i, 1], out[i, 2], out[i, 3] = fields
