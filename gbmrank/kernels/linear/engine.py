r"""Sums of a smooth loss over all pairs of a long query, in time linear in its length.

A template with the slot ``phi(z, *params) -> (value, first, second)``. It computes

.. math::
    \sum_{i, j} a_i b_j \varphi(s_i - s_j)

with gradient and Hessian diagonal, where i runs over the better and j over the worse
items: two disjoint sets (:func:`cross_pairs`), or the same items with :math:`b = 1` and
:math:`i \ne j` (:func:`all_pairs`).

Items act on each other through the Chebyshev nodes of their cells
(:mod:`gbmrank.kernels.linear.cells`), and the loss is evaluated once per pair of nodes
and distance of cells. Cells further apart than the plan's bands see the straight line
that the loss has become there, by running sums. The worse items see the better ones
through the mirror image of the same tables: with both axes reversed, ``s_i - s_j`` is
what it was.

An item alone in its cell does not act on itself, so that taking the pair (i, i) out
never cancels digits: where an item has company, the pairs inside the cell are about as
large as the one taken out.

:func:`all_pairs_threaded` and :func:`cross_pairs_threaded` share one very long query among
threads. Its items are cut into runs whose number depends on the query alone, so results do not
depend on the number of threads; they may differ in rounding from those of one thread.

Arrays come in few kinds, flat or of three axes, and the smaller of two numbers is chosen by
hand: every other kind of ``np.empty``, and every ``min``, is a function more to compile.
"""

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gbmrank.kernels.jit import compiler, threads
from gbmrank.kernels.jit.decorators import merged, separate
from gbmrank.kernels.layout import Params
from gbmrank.kernels.linear.interpolation import NODES, ORDER, Cells, Grid, LinearPlan, Side
from gbmrank.kernels.linear.vectors import add_product
from gbmrank.types import FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.layout import phi

# Through the compiler, so that their disk cache follows every change of the sources.
_kernels = compiler.load("linear.cells")
add_moments = _kernels.add_moments
add_pair_moments = _kernels.add_pair_moments
build_grid = _kernels.build_grid
read_fields = _kernels.read_fields
read_pairs = _kernels.read_pairs
read_side = _kernels.read_side
TO_NODES = _kernels.TO_NODES
TO_NODES_MIRRORED = _kernels.TO_NODES_MIRRORED
TO_POWERS = _kernels.TO_POWERS
TO_POWERS_MIRRORED = _kernels.TO_POWERS_MIRRORED
add_tails = _kernels.add_tails
all_slots = _kernels.all_slots
match_cells = _kernels.match_cells
to_node_weights = _kernels.to_node_weights
to_powers = _kernels.to_powers
used_slots = _kernels.used_slots

_SQUARE = ORDER * ORDER
_ITEM_CHUNKS = 16
# Target node minus source node, by source and target, in half widths.
_NODE_GAPS: FloatArray = (NODES[None, :] - NODES[:, None]).ravel()


@separate
def _fill_tables(distance: float, width: float, params: Params, tables: FloatArray) -> None:
    """Evaluate the loss between the nodes of two cells: kind, source node, target node."""
    half = 0.5 * width
    for k in range(_SQUARE):
        value, first, second = phi(distance + half * _NODE_GAPS[k], *params)
        tables[k] = value
        tables[_SQUARE + k] = first
        tables[2 * _SQUARE + k] = second
        tables[3 * _SQUARE + k] = first * first


@merged
def _interact(cells: Cells, plan: LinearPlan, params: Params, kinds: int, both: bool) -> None:
    """Let all cells within the plan's bands act on each other."""
    targets = used_slots(cells.better_mirrored) if both else all_slots(cells.worse)
    sources = used_slots(cells.worse)
    if len(targets) == 0 or len(sources) == 0:
        return
    tables = np.empty(4 * _SQUARE)
    pairs = np.empty(2 * len(targets), np.int64)
    numbers = cells.cells
    lowest = numbers[targets[0]] - numbers[sources[-1]]
    highest = numbers[targets[-1]] - numbers[sources[0]]
    first = lowest if lowest > -plan.lower.band else -plan.lower.band
    last = highest if highest < plan.upper.band else plan.upper.band
    for gap in range(first, last + 1):
        count = match_cells(cells, targets, sources, gap, pairs)
        if count > 0:
            _fill_tables(gap * cells.width, cells.width, params, tables)
        for k in range(count):
            target, source = pairs[2 * k], pairs[2 * k + 1]
            for kind in range(kinds):
                worse = (cells.worse, source * ORDER)
                seen = (cells.seen, (4 * target + kind) * ORDER)
                add_product(tables, kind * _SQUARE, worse, seen)
                if both:
                    better = (cells.better_mirrored, target * ORDER)
                    back = (cells.seen_mirrored, (4 * source + kind) * ORDER)
                    add_product(tables, kind * _SQUARE, better, back)


@merged
def solve_pairs(
    grid: Grid, moments: FloatArray, plan: LinearPlan, params: Params, same_items: bool
) -> tuple[float, FloatArray]:
    """Turn moments into the value and the fields that :func:`read_pairs` evaluates.

    ``moments`` has shape (2, n_slots, ORDER): those of the worse, then of the better items. With
    ``same_items`` these are the same, with unit weights as worse ones, and pairs of an item with
    itself are left out. The fields have shape (n_slots, ORDER, 4): polynomials of slope and
    curvature as seen by better, then by worse items.
    """
    count = len(grid.cells)
    lonely = np.empty(count, np.int64)
    for slot in range(count):
        lonely[slot] = same_items and moments[0, slot, 0] == 1.0
    weights = np.zeros((2, count, ORDER))
    to_node_weights(moments[0], TO_NODES, weights[0], False)
    to_node_weights(moments[1], TO_NODES_MIRRORED, weights[1], False)
    seen, seen_mirrored = np.zeros((count, 4, ORDER)), np.zeros((count, 4, ORDER))
    cells = Cells(grid.cells, grid.width, weights[0], weights[1], seen, seen_mirrored, lonely)
    _interact(cells, plan, params, 3, True)
    add_tails(cells, plan, True)
    powers = np.zeros((count, ORDER, 4))
    for kind in range(2):
        to_powers(seen, kind + 1, TO_POWERS, powers, kind, False)
        to_powers(seen_mirrored, kind + 1, TO_POWERS_MIRRORED, powers, kind + 2, False)
    value = 0.0
    value_here, _, second_here = phi(0.0, *params)
    for slot in range(count):
        for k in range(ORDER):
            value += seen[slot, 0, k] * weights[1, slot, ORDER - 1 - k]
        if same_items and not lonely[slot]:
            value -= value_here * moments[1, slot, 0]
            powers[slot, 0, 1] -= 2.0 * second_here
    return value, powers


@merged
def solve_fields(
    grid: Grid, moments: FloatArray, plan: LinearPlan, params: Params, sign: float
) -> FloatArray:
    """Turn moments of sources into the fields that :func:`read_fields` evaluates.

    ``sign`` is 1.0 for differences target minus source, -1.0 for source minus target. The fields
    have shape (n_slots, ORDER, 4): polynomials of the sums of value, first, second and squared
    first derivative.
    """
    count = len(grid.cells)
    # The mirror image turns "source minus target" into "target minus source".
    mirrored = sign < 0
    numbers, lonely = np.empty(count, np.int64), np.empty(count, np.int64)
    for slot in range(count):
        numbers[slot] = -grid.cells[count - 1 - slot] if mirrored else grid.cells[slot]
        lonely[slot] = 0
    weights = np.zeros((1, count, ORDER))[0]
    to_node_weights(moments, TO_NODES_MIRRORED if mirrored else TO_NODES, weights, mirrored)
    seen = np.zeros((count, 4, ORDER))
    cells = Cells(numbers, grid.width, weights, weights, seen, seen, lonely)
    _interact(cells, plan, params, 4, False)
    add_tails(cells, plan, False)
    powers = np.zeros((count, ORDER, 4))
    matrix = TO_POWERS_MIRRORED if mirrored else TO_POWERS
    for kind in range(4):
        to_powers(seen, kind, matrix, powers, kind, mirrored)
    return powers


@merged
def all_pairs(side: Side, plan: LinearPlan, params: Params) -> float:
    r"""Return :math:`\sum_i v_i \sum_{j \ne i} \varphi(s_i - s_j)`; overwrite its derivatives.

    NaN, with nothing written, when a score is not finite or the range of the scores is beyond
    the plan's reach.
    """
    if len(side.scores) == 0:
        return 0.0
    grid = build_grid(side.scores, side.scores[:0], plan)
    if len(grid.cells) == 0:
        return np.nan
    moments = np.zeros((2, len(grid.cells), ORDER))
    add_pair_moments(grid, side.scores, side.weights, moments)
    value, powers = solve_pairs(grid, moments, plan, params, True)
    read_pairs(grid, side, powers)
    return value


@merged
def cross_pairs(better: Side, worse: Side, plan: LinearPlan, params: Params) -> float:
    r"""Return :math:`\sum_{i, j} a_i b_j \varphi(s_i - s_j)` over better i and worse j.

    Derivatives are added to what is there. NaN, with nothing written, as for :func:`all_pairs`.
    """
    if len(better.scores) == 0 or len(worse.scores) == 0:
        return 0.0
    grid = build_grid(better.scores, worse.scores, plan)
    if len(grid.cells) == 0:
        return np.nan
    moments = np.zeros((2, len(grid.cells), ORDER))
    add_moments(grid, worse.scores, worse.weights, moments[0])
    add_moments(grid, better.scores, better.weights, moments[1])
    value, powers = solve_pairs(grid, moments, plan, params, False)
    read_side(grid, better, powers, 1.0)
    read_side(grid, worse, powers, -1.0)
    return value


@merged
def cross_fields(
    targets: FloatArray,
    sources: tuple[FloatArray, FloatArray],
    sign: float,
    plan: LinearPlan,
    params: Params,
    out: FloatArray,
) -> bool:
    """Write weighted sums of value, first, second and squared first derivative for every target.

    ``sources`` are scores and weights; ``sign`` is 1.0 for differences target minus source, -1.0
    for source minus target; ``out`` has shape (n, 4). False, with nothing written, where
    :func:`all_pairs` returns NaN.
    """
    scores, weights = sources
    if len(targets) == 0 or len(scores) == 0:
        out[:] = 0.0
        return True
    grid = build_grid(targets, scores, plan)
    if len(grid.cells) == 0:
        return False
    moments = np.zeros((1, len(grid.cells), ORDER))[0]
    add_moments(grid, scores, weights, moments)
    read_fields(grid, targets, solve_fields(grid, moments, plan, params, sign), out)
    return True


def all_pairs_threaded(side: Side, plan: LinearPlan, params: Params) -> float:
    """Do what :func:`all_pairs` does, with the items of one query shared by threads."""
    if len(side.scores) == 0:
        return 0.0
    grid = build_grid(side.scores, side.scores[:0], plan)
    if len(grid.cells) == 0:
        return math.nan
    runs = _item_runs(len(side.scores), len(grid.cells))
    moments = np.zeros((len(runs), 2, len(grid.cells), ORDER))

    # Sums grow in an array of their own: neighbours in memory would slow each other down.
    def spread(number: int) -> None:
        part, own = _part(side, runs[number]), np.zeros(moments.shape[1:])
        add_pair_moments(grid, part.scores, part.weights, own)
        moments[number] = own

    _run_numbered(spread, len(runs))
    value, powers = solve_pairs(grid, moments.sum(axis=0), plan, params, True)
    _run_numbered(lambda number: read_pairs(grid, _part(side, runs[number]), powers), len(runs))
    return float(value)


def cross_pairs_threaded(better: Side, worse: Side, plan: LinearPlan, params: Params) -> float:
    """Do what :func:`cross_pairs` does, with the items of one query shared by threads."""
    if len(better.scores) == 0 or len(worse.scores) == 0:
        return 0.0
    grid = build_grid(better.scores, worse.scores, plan)
    if len(grid.cells) == 0:
        return math.nan
    tasks = [
        (row, side, run)
        for row, side in enumerate((worse, better))
        for run in _item_runs(len(side.scores), len(grid.cells))
    ]
    moments = np.zeros((len(tasks), 2, len(grid.cells), ORDER))

    def spread(number: int) -> None:
        row, side, run = tasks[number]
        part, own = _part(side, run), np.zeros(moments.shape[2:])
        add_moments(grid, part.scores, part.weights, own)
        moments[number, row] = own

    _run_numbered(spread, len(tasks))
    value, powers = solve_pairs(grid, moments.sum(axis=0), plan, params, False)

    def read(number: int) -> None:
        row, side, run = tasks[number]
        read_side(grid, _part(side, run), powers, 2.0 * row - 1.0)

    _run_numbered(read, len(tasks))
    return float(value)


def _item_runs(items: int, slots: int) -> list[slice]:
    """Cut items into runs; the moments of all runs together must not outgrow the items."""
    chunks = min(max(items // (4 * slots), 1), _ITEM_CHUNKS)
    ends = np.linspace(0, items, chunks + 1).astype(np.int64).tolist()
    return [slice(first, last) for first, last in itertools.pairwise(ends)]


def _run_numbered(task: Callable[[int], None], count: int) -> None:
    threads.run_chunks(lambda number, _: task(number), np.arange(count + 1))


def _part(side: Side, run: slice) -> Side:
    return Side(*(array[run] for array in side))
