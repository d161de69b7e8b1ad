"""Per-cell arrays of the linear-time engine and what happens to them without the loss.

Moments become weights at the Chebyshev nodes, sums at the nodes become polynomials, and
cells far apart act on each other through the straight tails of the loss.
"""

import numpy as np
from numpy.polynomial import chebyshev

from gbmrank.kernels.jit import merged, separate
from gbmrank.kernels.linear_layout import Cells
from gbmrank.kernels.linear_plan import NODES, ORDER, LinearPlan, Tail
from gbmrank.kernels.linear_vectors import add_product
from gbmrank.types import FloatArray, IntArray

__all__ = [
    "TO_NODES",
    "TO_NODES_MIRRORED",
    "TO_POWERS",
    "TO_POWERS_MIRRORED",
    "add_tails",
    "all_slots",
    "match_cells",
    "to_node_weights",
    "to_powers",
    "used_slots",
]


def _power_basis() -> FloatArray:
    """Row m holds the coefficients of the m-th Chebyshev polynomial by rising power."""
    rows = np.zeros((ORDER, ORDER))
    for m in range(ORDER):
        rows[m, : m + 1] = chebyshev.cheb2poly(np.eye(ORDER)[m, : m + 1])
    return rows


# Weight at node k from the moment of order m: row m, column k. Odd moments change sign
# when nodes are counted from the upper end of the cell.
_SIGNS: FloatArray = np.where(np.arange(ORDER) % 2 == 0, 1.0, -1.0)
TO_NODES: FloatArray = np.asarray(
    chebyshev.chebvander(NODES, ORDER - 1).T * (2.0 / ORDER), np.float64
)
TO_NODES[0] /= 2.0
TO_NODES_MIRRORED: FloatArray = TO_NODES * _SIGNS[:, None]
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
    """List targets and sources that lie a given number of cells apart.

    Parameters
    ----------
    cells : Cells
        Their numbers; lonely ones are not paired with themselves.
    targets, sources : arrays of shape (n_targets,) and (n_sources,)
        Rising slots.
    gap : int
        Number of the target's cell minus number of the source's cell.
    pairs : array of shape (2 * n_targets,)
        Receives target and source, target and source.

    Returns
    -------
    int
        How many there are.
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

    Parameters
    ----------
    moments : array of shape (n_slots, ORDER)
        Chebyshev moments per cell.
    matrix : array of shape (ORDER, ORDER)
        ``TO_NODES`` or ``TO_NODES_MIRRORED``.
    weights : array of shape (n_slots, ORDER)
        What they are added to.
    backwards : bool
        Whether the last slot comes first among the weights.
    """
    for slot in range(len(moments)):
        place = len(moments) - 1 - slot if backwards else slot
        add_product(matrix, 0, (moments, slot * ORDER), (weights, place * ORDER))


@separate
def to_powers(
    seen: FloatArray, kind: int, matrix: FloatArray, powers: FloatArray, field: int, backwards: bool
) -> None:
    """Write coefficients by rising power of the polynomials through values at the nodes.

    Parameters
    ----------
    seen : array of shape (n_slots, 4, ORDER)
        Values at the nodes.
    kind : int
        Which of the four is meant.
    matrix : array of shape (ORDER, ORDER)
        ``TO_POWERS`` or ``TO_POWERS_MIRRORED``.
    powers : array of shape (n_slots, ORDER, 4)
        Receives the coefficients.
    field : int
        Which of the four columns of ``powers`` they belong to.
    backwards : bool
        Whether the last slot comes first among the coefficients.
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
    """Add the contributions of cells outside the plan's bands.

    Parameters
    ----------
    cells : Cells
        Weights and sums at the nodes.
    plan : LinearPlan
        Its tails.
    both : bool
        Whether worse items see better ones, too.
    """
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
