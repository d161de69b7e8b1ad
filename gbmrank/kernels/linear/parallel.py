"""Run the linear-time engine on one long query with several threads.

The items are cut into runs whose number depends on the query alone, so results do not
depend on the number of threads.
"""

import itertools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from gbmrank.kernels.jit import compiler, threads
from gbmrank.kernels.linear.interpolation import ORDER, LinearPlan, Side

__all__ = ["all_pairs_threaded", "cross_pairs_threaded"]

_ITEM_CHUNKS = 16


def _cell_kernels() -> Any:
    return compiler.load("linear.cells")


def _item_chunks(items: int, slots: int) -> list[slice]:
    """Cut items into runs; their number depends on the query, not on the threads.

    Every run has moments of its own, which together must not outgrow the items.
    """
    chunks = min(max(items // (4 * slots), 1), _ITEM_CHUNKS)
    ends = np.linspace(0, items, chunks + 1).astype(np.int64).tolist()
    return [slice(first, last) for first, last in itertools.pairwise(ends)]


def _run_numbered(task: Callable[[int], None], count: int) -> None:
    def run(first: int, last: int) -> None:
        for number in range(first, last):
            task(number)

    threads.run_chunks(run, np.arange(count + 1))


def _part(side: Side, run: slice) -> Side:
    return Side(*(array[run] for array in side))


def all_pairs_threaded(
    kernels: ModuleType, side: Side, plan: LinearPlan, params: tuple[float, ...]
) -> float:
    """Do what ``kernels.all_pairs`` does, with the items of one query shared by threads.

    Results do not depend on the number of threads; they may differ in rounding from
    those of ``kernels.all_pairs``.

    Parameters
    ----------
    kernels : module
        ``compiler.load("linear.engine", phi=...)``.
    side : Side
        Scores, weights, and the arrays that receive gradient and Hessian diagonal.
    plan : LinearPlan
        From :func:`gbmrank.kernels.linear.interpolation.make_plan`.
    params : tuple of float
        Parameters of the loss.

    Returns
    -------
    float
        The sum over all pairs; NaN, with nothing written, when the engine cannot serve.
    """
    if len(side.scores) == 0:
        return 0.0
    grid = _cell_kernels().build_grid(side.scores, side.scores[:0], plan)
    if len(grid.cells) == 0:
        return math.nan
    runs = _item_chunks(len(side.scores), len(grid.cells))
    moments = np.zeros((len(runs), 2, len(grid.cells), ORDER))

    # Sums grow in an array of their own: neighbours in memory would slow each other down.
    def spread(number: int) -> None:
        part, own = _part(side, runs[number]), np.zeros(moments.shape[1:])
        _cell_kernels().add_pair_moments(grid, part.scores, part.weights, own)
        moments[number] = own

    _run_numbered(spread, len(runs))
    value, powers = kernels.solve_pairs(grid, moments.sum(axis=0), plan, params, True)
    _run_numbered(
        lambda number: _cell_kernels().read_pairs(grid, _part(side, runs[number]), powers),
        len(runs),
    )
    return float(value)


def cross_pairs_threaded(
    kernels: ModuleType,
    better: Side,
    worse: Side,
    plan: LinearPlan,
    params: tuple[float, ...],
) -> float:
    """Do what ``kernels.cross_pairs`` does, with the items of one query shared by threads.

    Parameters
    ----------
    kernels : module
        ``compiler.load("linear.engine", phi=...)``.
    better, worse : Side
        The two sets; gradient and Hessian diagonal are added to what is there.
    plan : LinearPlan
        From :func:`gbmrank.kernels.linear.interpolation.make_plan`.
    params : tuple of float
        Parameters of the loss.

    Returns
    -------
    float
        The sum over all pairs; NaN, with nothing written, when the engine cannot serve.
    """
    if len(better.scores) == 0 or len(worse.scores) == 0:
        return 0.0
    grid = _cell_kernels().build_grid(better.scores, worse.scores, plan)
    if len(grid.cells) == 0:
        return math.nan
    tasks = [
        (row, side, run)
        for row, side in enumerate((worse, better))
        for run in _item_chunks(len(side.scores), len(grid.cells))
    ]
    moments = np.zeros((len(tasks), 2, len(grid.cells), ORDER))

    def spread(number: int) -> None:
        row, side, run = tasks[number]
        part, own = _part(side, run), np.zeros(moments.shape[2:])
        _cell_kernels().add_moments(grid, part.scores, part.weights, own)
        moments[number, row] = own

    _run_numbered(spread, len(tasks))
    value, powers = kernels.solve_pairs(grid, moments.sum(axis=0), plan, params, False)

    def read(number: int) -> None:
        row, side, run = tasks[number]
        _cell_kernels().read_side(grid, _part(side, run), powers, 2.0 * row - 1.0)

    _run_numbered(read, len(tasks))
    return float(value)
