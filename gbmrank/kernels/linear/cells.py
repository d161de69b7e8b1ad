"""Cells of the linear-time engine: all that does not depend on the loss.

The score axis is cut into cells of one width. Inside a cell a smooth function is known
by its values at ``ORDER`` Chebyshev nodes, so all items of a cell act on the rest of the
world through ``ORDER`` numbers. This template without slots finds the cell of every item, sums
Chebyshev moments of the items' weights per cell and turns them into weights at the nodes. Sums
at the nodes become one polynomial per cell, which is evaluated at every item. Cells far apart act
on each other through the straight tails of the loss.

Cell numbers are whole and the width has few bits, so cell borders and positions inside a
cell carry no rounding error, however large the scores are. When there are many more
cells than items, only the occupied ones are stored, found through a hash table.
"""

import numpy as np
from numpy.polynomial import chebyshev

from gbmrank.kernels.jit.decorators import entry, exact_inner, inner, merged, separate
from gbmrank.kernels.linear.interpolation import NODES, ORDER, Cells, Grid, LinearPlan, Side, Tail
from gbmrank.kernels.linear.vectors import add_chebyshev, add_product, evaluate_four
from gbmrank.types import FloatArray, IntArray

_MAX_CELL = 2.0**45
"""Cell numbers up to this leave enough bits for exact positions inside a cell."""

_BLOCK = 512  # items whose places are kept at hand
_LANES = 8
_LARGEST = float(np.finfo(np.float64).max)
_HASH = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: spreads neighbouring cells
# Weight at node k from the moment of order m: row m, column k. Odd moments change sign
# when nodes are counted from the upper end of the cell.
_SIGNS: FloatArray = np.where(np.arange(ORDER) % 2 == 0, 1.0, -1.0)
_FIRST_HALF: FloatArray = np.where(np.arange(ORDER) == 0, 0.5, 1.0)
TO_NODES: FloatArray = np.ascontiguousarray(
    chebyshev.chebvander(NODES, ORDER - 1).T * (2.0 / ORDER) * _FIRST_HALF[:, None], np.float64
)
TO_NODES_MIRRORED: FloatArray = TO_NODES * _SIGNS[:, None]


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
    """Lay cells over the scores of one query; ``more`` are further scores, or none.

    No cells when a score is not finite or beyond the plan's reach: the engine cannot serve it.
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
    """Cells of a hash table, rising. A Shell sort: the compiler's own takes longer to compile."""
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
    """Hash table of the cells that hold a score, -1 where it is free."""
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
def place_in_cell(score: float, number: float, width: float, per_width: float) -> float:
    """Place of a score in its cell, from -1 to 1."""
    return (score - (number + 0.5) * width) * (2.0 * per_width)


@separate
def _locate(grid: Grid, scores: FloatArray, slots: IntArray, places: FloatArray) -> None:
    """Write slot and place of every score.

    Called by blocks of items: one call per item would count the arrays' references each time.
    """
    for i in range(len(scores)):
        number = np.floor(scores[i] * grid.per_width)
        places[i] = place_in_cell(scores[i], number, grid.width, grid.per_width)
        slots[i] = np.int64(number - grid.first)
    if len(grid.keys):
        for i in range(len(scores)):
            slots[i] = grid.slots[_probe(grid.keys, slots[i])]


@entry
def add_moments(grid: Grid, scores: FloatArray, weights: FloatArray, moments: FloatArray) -> None:
    """Add ``weight * T_m(place in the cell)`` to ``moments``, shape (n_slots, ORDER)."""
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
    """Add moments of unit weights, then of given ones, in one pass; shape (2, n_slots, ORDER)."""
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

    ``powers``, shape (n_slots, ORDER, 4): slope and curvature as the better, then the worse item.
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
    """Add gradient and Hessian of items that are all better (sign 1.0) or all worse (-1.0)."""
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
    """Evaluate the four fields ``powers``, shape (n_slots, ORDER, 4), at targets; out is (n, 4)."""
    slots, places = np.empty(_BLOCK, np.int64), np.empty(_BLOCK)
    for start in range(0, len(targets), _BLOCK):
        block = targets[start : start + _BLOCK]
        _locate(grid, block, slots, places)
        for k in range(len(block)):
            fields = evaluate_four(powers, slots[k] * (4 * ORDER), places[k])
            i = start + k
            out[i, 0], out[i, 1], out[i, 2], out[i, 3] = fields


def _power_basis() -> FloatArray:
    """Row m holds the coefficients of the m-th Chebyshev polynomial by rising power."""
    rows = np.zeros((ORDER, ORDER))
    for m in range(ORDER):
        rows[m, : m + 1] = chebyshev.cheb2poly(np.eye(ORDER)[m, : m + 1])
    return rows


# Coefficient of power m from the value at node k: row k, column m.
TO_POWERS: FloatArray = np.ascontiguousarray((_power_basis().T @ TO_NODES).T)
TO_POWERS_MIRRORED: FloatArray = TO_POWERS * _SIGNS


@separate
def all_slots(weights: FloatArray) -> IntArray:
    """Every slot."""
    slots = np.empty(len(weights), np.int64)
    for slot in range(len(weights)):
        slots[slot] = slot
    return slots


@separate
def used_slots(weights: FloatArray) -> IntArray:
    """Slots with a weight that is not zero."""
    slots = np.empty(len(weights), np.int64)
    count = 0
    for slot in range(len(weights)):
        used = False
        for k in range(ORDER):
            used |= weights[slot, k] != 0.0
        if used:
            slots[count] = slot
            count += 1
    return slots[:count]


@separate
def match_cells(
    cells: Cells, targets: IntArray, sources: IntArray, gap: int, pairs: IntArray
) -> int:
    """List targets and sources that lie ``gap`` cells apart (target minus source); return how many.

    Both are rising slots, written to ``pairs`` by turns; lonely cells are not their own partners.
    """
    numbers = cells.cells
    count, place = 0, 0
    for target in targets:
        wanted = numbers[target] - gap
        while place < len(sources) and numbers[sources[place]] < wanted:
            place += 1
        if place == len(sources):
            break
        alone = gap == 0 and cells.lonely[target] != 0
        if numbers[sources[place]] == wanted and not alone:
            pairs[2 * count], pairs[2 * count + 1] = target, sources[place]
            count += 1
    return count


@separate
def to_node_weights(
    moments: FloatArray, matrix: FloatArray, weights: FloatArray, backwards: bool
) -> None:
    """Add weights at the nodes that act on smooth functions as the items do.

    ``matrix`` is ``TO_NODES`` or ``TO_NODES_MIRRORED``; ``backwards`` writes the last slot first.
    """
    for slot in range(len(moments)):
        place = len(moments) - 1 - slot if backwards else slot
        add_product(matrix, 0, (moments, slot * ORDER), (weights, place * ORDER))


@separate
def to_powers(
    seen: FloatArray, kind: int, matrix: FloatArray, powers: FloatArray, field: int, backwards: bool
) -> None:
    """Write coefficients by rising power of the polynomials through values at the nodes.

    From one ``kind`` of values, shape (n_slots, 4, ORDER), to column ``field`` of ``powers``, shape
    (n_slots, ORDER, 4). ``matrix`` is ``TO_POWERS`` or ``TO_POWERS_MIRRORED``; ``backwards`` writes
    the last slot first.
    """
    row = np.empty(ORDER)
    for slot in range(len(seen)):
        for m in range(ORDER):
            row[m] = 0.0
        add_product(matrix, 0, (seen, (4 * slot + kind) * ORDER), (row, 0))
        place = len(seen) - 1 - slot if backwards else slot
        for m in range(ORDER):
            powers[place, m, field] = row[m]


@separate
def _add_tail(
    cells: Cells, weights: FloatArray, seen: FloatArray, tail: Tail, facing: int, turn: int
) -> None:
    """Add the straight line over all cells that lie further behind than the tail's band.

    ``facing`` tells in which direction the nodes are stored, ``turn`` whether the sweep
    goes along (1: positive differences) or against it (-1: negative differences).
    """
    numbers, half = cells.cells, 0.5 * cells.width
    count, heading = len(numbers), facing * turn
    middle = numbers[count // 2]
    total, first_moment, behind = 0.0, 0.0, 0
    for step in range(count):
        slot = step if heading > 0 else count - 1 - step
        other = behind if heading > 0 else count - 1 - behind
        while heading * (numbers[slot] - numbers[other]) > tail.band:
            center = heading * (numbers[other] - middle) * cells.width
            for k in range(ORDER):
                total += weights[other, k]
                first_moment += weights[other, k] * (center + turn * half * NODES[k])
            behind += 1
            other = behind if heading > 0 else count - 1 - behind
        if behind:
            center = heading * (numbers[slot] - middle) * cells.width
            for k in range(ORDER):
                distance = (center + turn * half * NODES[k]) * total - first_moment
                seen[slot, 0, k] += tail.value * total + turn * tail.slope * distance
                seen[slot, 1, k] += tail.slope * total
                seen[slot, 3, k] += tail.slope * tail.slope * total


@merged
def add_tails(cells: Cells, plan: LinearPlan, both: bool) -> None:
    """Add what cells outside the plan's bands contribute; with ``both``, to worse items as well."""
    span = cells.cells[-1] - cells.cells[0]
    for turn in (1, -1):
        tail = plan.upper if turn > 0 else plan.lower
        if span <= tail.band:
            continue
        for facing in (1, -1):
            if facing > 0:
                _add_tail(cells, cells.worse, cells.seen, tail, facing, turn)
            elif both:
                weights, seen = cells.better_mirrored, cells.seen_mirrored
                _add_tail(cells, weights, seen, tail, facing, turn)
