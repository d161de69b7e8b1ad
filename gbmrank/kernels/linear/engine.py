r"""Sums of a smooth loss over all pairs of long queries, in time linear in their length.

It computes

.. math::
    \sum_{i, j} a_i b_j \varphi(s_i - s_j)

with gradient and Hessian diagonal, where i runs over the better and j over the worse items: all
items of a query (:math:`b = 1`, :math:`i \ne j`), or the items of each level and all of lower ones.

The score axis is cut into cells of one width. Inside a cell a smooth function is known by its
values at ``ORDER`` Chebyshev nodes, so all items of a cell act on all other items through
``ORDER`` numbers: moments of their weights, turned into weights at the nodes. Cells act on each
other through tables of the loss between their nodes, which are evaluated in Python, so that
nothing here is compiled for a loss. What the nodes see becomes one polynomial per cell, which is
evaluated at every item. Cells further apart than the plan's bands see the straight line that the
loss has become there, by running sums. The worse items see the better ones through the mirror
image of the same tables: with both axes reversed, ``s_i - s_j`` is what it was.

An item alone in its cell does not act on itself, so that removing the pair (i, i) never cancels
digits: if a cell has several items, the pairs inside it are about as large as the removed one.
Cell numbers are integers and the width has few bits, so cell borders and positions inside a cell
have no rounding error, however large the scores are.

Very long blocks are cut into runs whose number depends on the data alone, so results do not
depend on the number of threads.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev

from gbmrank.kernels.jit import compiler, threads
from gbmrank.kernels.layout import Engines, GradHess, Span
from gbmrank.kernels.linear.interpolation import NODES, ORDER, LinearPlan
from gbmrank.types import BoolArray, FloatArray, IntArray

_MAX_CELL = 2.0**45
"""Cell numbers up to this leave enough bits for exact positions inside a cell."""

_FEWEST_GAPS = 24
_RUN = 50_000  # items
_RUNS = 16  # of a block
_SQUARE = ORDER * ORDER
_KINDS = 4  # value, first, second and squared first derivative
# Weight at node k from the moment of order m: row m, column k. Odd moments change sign
# when nodes are counted from the upper end of the cell.
_SIGNS: FloatArray = np.where(np.arange(ORDER) % 2 == 0, 1.0, -1.0)
_FIRST_HALF: FloatArray = np.where(np.arange(ORDER) == 0, 0.5, 1.0)
_TO_NODES: FloatArray = np.ascontiguousarray(
    chebyshev.chebvander(NODES, ORDER - 1).T * (2.0 / ORDER) * _FIRST_HALF[:, None], np.float64
)


def _power_basis() -> FloatArray:
    """Row m holds the coefficients of the m-th Chebyshev polynomial by rising power."""
    rows = np.zeros((ORDER, ORDER))
    for m in range(ORDER):
        rows[m, : m + 1] = chebyshev.cheb2poly(np.eye(ORDER)[m, : m + 1])
    return rows


# Coefficient of power m from the value at node k: row k, column m.
_TO_POWERS: FloatArray = np.ascontiguousarray((_power_basis().T @ _TO_NODES).T)


class Tables:
    """A loss between the nodes of two cells, for as many distances as were asked for."""

    def __init__(
        self, phi: Callable[..., tuple[float, float, float]], params: Any, plan: LinearPlan
    ) -> None:
        self.plan = plan
        self._loss = phi, params
        self._made = 0, np.empty((0, _KINDS, _SQUARE))  # for gaps from here on
        self.at_zero: tuple[float, float, float] = phi(0.0, *params)

    def between(self, farthest: int) -> tuple[FloatArray, int, int]:
        """Return tables for cells at most this far apart, and the least and the largest gap."""
        lowest, made = self._made
        wanted = (
            -min(farthest, self.plan.lower.band),
            min(farthest, self.plan.upper.band),
        )
        if wanted[0] < lowest or wanted[1] >= lowest + len(made):
            farthest = max(2 * farthest, _FEWEST_GAPS)
            low = -min(farthest, self.plan.lower.band)
            high = min(farthest, self.plan.upper.band)
            below = self._evaluate(range(low, min(lowest, high + 1)))
            above = self._evaluate(range(lowest + len(made), high + 1))
            self._made = lowest, made = min(low, lowest), np.concatenate([below, made, above])
        return made.ravel(), lowest, lowest + len(made) - 1

    def _evaluate(self, gaps: range) -> FloatArray:
        """Tables by gap and kind; source node, then target node."""
        phi, params = self._loss
        within = 0.5 * self.plan.width * (NODES[None, :] - NODES[:, None]).ravel()
        points = self.plan.width * np.array(gaps, np.float64)[:, None] + within
        rows = np.array([phi(z, *params) for z in points.ravel().tolist()], np.float64)
        value, first, second = rows.reshape(len(gaps), _SQUARE, 3).transpose(2, 0, 1)
        with np.errstate(over="ignore"):  # farther apart than any two items, perhaps
            squared = first**2
        return np.ascontiguousarray(np.stack([value, first, second, squared], axis=1))


class LongItems:
    """Items of long queries, block after block: their rows, and weights as the better ones.

    ``blocks`` says where the items of each block begin, and ``queries`` where its blocks do. With
    ``inside`` a query has one block, all pairs of which count, else one for each level, best first.
    """

    def __init__(
        self,
        rows: npt.NDArray[np.integer[Any]],
        weights: FloatArray,
        blocks: IntArray,
        queries: IntArray,
        *,
        inside: bool,
    ) -> None:
        self.rows, self.weights, self.inside = rows, weights, inside
        self.blocks, self.queries = blocks, queries
        self.ones = np.ones(len(rows))
        self.starts = blocks[queries]  # items of queries
        self.sizes, self.levels = np.diff(self.starts), np.diff(queries)
        sizes = np.diff(blocks)
        runs = np.clip(sizes // _RUN, 1, _RUNS)
        self.block_of_run = np.repeat(np.arange(len(sizes)), runs)
        cuts = [
            np.linspace(begin, end, count + 1).astype(np.int64)[:-1]
            for begin, end, count in zip(blocks[:-1], blocks[1:], runs, strict=True)
        ]
        self.runs = np.concatenate([*cuts, blocks[-1:]]).astype(np.int64)
        self.run_sizes = np.diff(self.runs)
        self.spans = threads.cut_into_spans(20.0 * self.run_sizes)  # of runs
        self.query_of_block = np.repeat(np.arange(len(queries) - 1), self.levels)


class _Grid(NamedTuple):
    """Slots of all blocks: where each block's begin, cell numbers, and the first cell of each."""

    blocks: IntArray
    numbers: IntArray
    first: FloatArray
    sparse: npt.NDArray[np.uint8]
    farthest: int  # between two cells of a query
    width: float


class _Work(NamedTuple):
    """What the steps of one call share."""

    items: LongItems
    scores: FloatArray
    grid: _Grid
    slots: npt.NDArray[np.int32]  # of the items
    kernels: Any


def sum_pairs(
    items: LongItems,
    scores: FloatArray,
    tables: Tables,
    engines: Engines,
    scale: FloatArray,
    out: GradHess,
) -> FloatArray:
    """Return the sums of queries, NaN where they are too short or scores lie too far apart.

    Writes their gradient and Hessian unless ``out`` is empty; all times ``scale``.
    """
    work, served = _begin(items, scores, tables.plan, engines)
    if not served.any():
        return np.full(len(served), np.nan)
    grid, same = work.grid, items.inside
    unit, own = _spread(work, (items.ones, items.weights))
    worse = unit if same else _over_levels(work, unit, lower=True)
    lonely = (unit[:, 0] == 1.0) & same
    better_nodes = own * _SIGNS @ _TO_NODES
    ahead = _interact(work, tables, (0, 3), worse @ _TO_NODES, lonely, 1)
    value = np.einsum("sk,sk->s", ahead[:, 0], better_nodes[:, ::-1])
    paired = np.where(lonely, 0.0, 1.0 if same else 0.0)
    value -= paired * tables.at_zero[0] * own[:, 0]
    sums = np.full(len(served), np.nan)
    sums[served] = np.add.reduceat(value, grid.blocks[items.queries[:-1][served]])
    if len(out.grad):
        behind = _interact(work, tables, (1, 3), better_nodes, lonely, -1)
        if not same:
            behind = _over_levels(work, behind, lower=False)
        powers = _powers([ahead[:, 1], ahead[:, 2]], [behind[:, 1], behind[:, 2]])
        powers[:, 0, 1] -= paired * 2.0 * tables.at_zero[2]
        _read(work, powers, scale, out)
    return sums * scale


def sum_push(
    items: LongItems,
    scores: FloatArray,
    tables: Tables,
    engines: Engines,
    positives: IntArray,
    price: Callable[..., None],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return sums, and gradient and Hessian by item, of queries whose relevant items come first.

    The weights of items are one over the number of ``positives`` for these, 0 for others.
    ``price(starts, positives, span, seen, results, sums)`` computes what the other items pay:
    ``push_prices`` of :mod:`gbmrank.kernels.pairs.sums`. Sums are NaN as for :func:`sum_pairs`.
    """
    work, served = _begin(items, scores, tables.plan, engines)
    sums = np.where(served, 0.0, np.nan)
    results = tuple(np.zeros(len(items.rows)) for _ in range(4))
    grad, hess, prices, steeps = results
    if not served.any():
        return sums, grad, hess
    lonely = np.zeros(len(work.grid.numbers), np.bool_)
    seen = np.zeros(4 * len(items.rows))  # queries that are not served stay at zero
    equal, _ = _spread(work, (items.weights, items.weights))
    behind = _interact(work, tables, (0, 3), equal * _SIGNS @ _TO_NODES, lonely, -1)
    _read_fields(work, _powers([], [behind[:, 0], behind[:, 1], behind[:, 2]]), seen)
    price(items.starts, positives, Span(0, len(served), 0), seen, results, sums)
    paid, steep = _spread(work, (prices, steeps))
    ahead = _interact(work, tables, (1, 3), paid @ _TO_NODES, lonely, 1)
    extra = _interact(work, tables, (3, 4), steep @ _TO_NODES, lonely, 1)
    _read_fields(work, _powers([ahead[:, 1], ahead[:, 2], extra[:, 3]], []), seen)
    relevant = items.weights > 0.0
    grad[relevant] = seen[0::4][relevant]
    hess[relevant] = seen[1::4][relevant] + seen[2::4][relevant]
    return sums, grad, hess


def _begin(
    items: LongItems, scores: FloatArray, plan: LinearPlan, engines: Engines
) -> tuple[_Work, BoolArray]:
    """Lay cells over the scores of the queries that the engine can sum, and return which."""
    s = scores[items.rows]
    low, high = (
        np.minimum.reduceat(s, items.starts[:-1]),
        np.maximum.reduceat(s, items.starts[:-1]),
    )
    per_width, farthest = 1.0 / plan.width, _MAX_CELL * plan.width
    with np.errstate(invalid="ignore", over="ignore"):  # NaN is not served
        least = np.maximum(engines.linear_from, engines.linear_range * (high - low))
        served = items.sizes >= least * items.levels
        served &= (high - low <= plan.reach) & (low >= -farthest) & (high <= farthest)
    first = np.floor(np.where(served, low, 0.0) * per_width)
    last = np.floor(np.where(served, high, 0.0) * per_width)
    counts = np.where(served, last - first + 1.0, 0.0).astype(np.int64)
    sparse = counts > items.sizes // 4 + 256
    numbers = {}
    for q in np.flatnonzero(sparse).tolist():
        own = np.floor(s[items.starts[q] : items.starts[q + 1]] * per_width) - first[q]
        numbers[q] = np.unique(own).astype(np.int64)
        counts[q] = len(numbers[q])
    of = items.query_of_block
    blocks = np.concatenate([[0], np.cumsum(counts[of])]).astype(np.int64)
    every = np.arange(blocks[-1]) - np.repeat(blocks[:-1], counts[of])
    for b in np.flatnonzero(sparse[of]).tolist():
        every[blocks[b] : blocks[b + 1]] = numbers[of[b]]
    reach = int(every.max(initial=0))
    grid = _Grid(blocks, every, first[of], sparse[of].astype(np.uint8), reach, plan.width)
    slots = np.empty(len(s), np.int32)
    return _Work(items, s, grid, slots, compiler.load("linear.cells")), served


def _runs(work: _Work) -> tuple[Any, BoolArray]:
    """Runs of items with the slots of their blocks, and whether each has moments of its own."""
    items, grid = work.items, work.grid
    of = items.block_of_run
    counts = np.diff(grid.blocks)[of]
    runs = work.kernels.Runs(items.runs, grid.first[of], grid.blocks[of], counts, grid.sparse[of])
    return runs, 4 * counts <= items.run_sizes


def _spread(work: _Work, weights: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return Chebyshev moments of two kinds of weights by slot; write the slots of the items."""
    runs, apart = _runs(work)
    grid, of = work.grid, work.items.block_of_run
    several = np.append(False, of[1:] == of[:-1])  # not the first of its block
    more = np.where(several & apart, runs.cells, 0)
    size = int(grid.blocks[-1])
    begins = np.where(more > 0, size + np.cumsum(more) - more, runs.begin)
    moments = np.zeros((size + int(more.sum()), 2, ORDER))
    numbers = grid.numbers
    if more.any():
        extra = [numbers[b : b + n] for b, n in zip(runs.begin, more, strict=True) if n > 0]
        numbers = np.concatenate([numbers, *extra])
    flat, split = moments.ravel(), runs._replace(begin=begins)

    at = work.kernels.Cells(work.scores, work.slots, numbers, grid.width)

    def spread(span: Span) -> None:
        work.kernels.spread(split, span, at, weights, flat)

    together = (several & ~apart).any()  # moments that threads would share
    threads.run_spans(spread, [Span(0, len(of), 0)] if together else work.items.spans)
    for r in np.flatnonzero(more).tolist():
        block = slice(runs.begin[r], runs.begin[r] + runs.cells[r])
        moments[block] += moments[begins[r] : begins[r] + runs.cells[r]]
    return moments[:size, 0], moments[:size, 1]


def _interact(
    work: _Work,
    tables: Tables,
    kinds: tuple[int, int],
    weights: FloatArray,
    lonely: BoolArray,
    direction: int,
) -> FloatArray:
    """Return what the nodes of each cell see of some kinds, shape (slots, kinds, ORDER)."""
    grid = work.grid
    seen = np.zeros((len(grid.numbers), _KINDS, ORDER))
    made, lowest, highest = tables.between(grid.farthest)
    flat, gaps, alone = seen.ravel(), (lowest, highest, direction), lonely.view(np.uint8)
    weights = np.ascontiguousarray(weights)

    def interact(span: Span) -> None:
        rows = weights.ravel()
        work.kernels.interact(grid.blocks, span, grid.numbers, made, gaps, kinds, rows, alone, flat)

    cells = np.diff(grid.blocks)
    costs = 60.0 * cells * np.minimum(cells, highest - lowest + 1)
    threads.run_spans(interact, threads.cut_into_spans(costs))
    plan = tables.plan
    if grid.farthest > min(plan.lower.band, plan.upper.band):
        for begin, end in itertools.pairwise(grid.blocks.tolist()):
            if end > begin:
                part = slice(begin, end)
                _add_tails(plan, grid.numbers[part], weights[part], seen[part], direction)
    return seen


def _add_tails(
    plan: LinearPlan, numbers: IntArray, weights: FloatArray, seen: FloatArray, direction: int
) -> None:
    """Add the straight lines over all cells that lie further away than the bands."""
    places = (numbers - numbers[len(numbers) // 2])[:, None] * plan.width
    places = places + 0.5 * plan.width * direction * NODES
    total, moment = weights.sum(axis=1), (weights * places).sum(axis=1)
    below, above = (plan.upper, plan.lower) if direction > 0 else (plan.lower, plan.upper)
    for tail, columns, far in (
        (below, (total, moment), np.searchsorted(numbers, numbers - below.band, "left")),
        (
            above,
            (total[::-1], moment[::-1]),
            len(numbers) - np.searchsorted(numbers, numbers + above.band, "right"),
        ),
    ):
        sums, firsts = (np.concatenate([[0.0], np.cumsum(one)])[far] for one in columns)
        distance = direction * (places * sums[:, None] - firsts[:, None])
        seen[:, 0] += tail.value * sums[:, None] + tail.slope * distance
        seen[:, 1] += tail.slope * sums[:, None]
        seen[:, 3] += tail.slope**2 * sums[:, None]


def _over_levels(work: _Work, by_block: FloatArray, *, lower: bool) -> FloatArray:
    """Sum over all lower levels of the same query, or over all better ones."""
    sums = np.zeros_like(by_block)
    queries, blocks = work.items.queries, work.grid.blocks
    for first, last in itertools.pairwise(queries.tolist()):
        begin, end = blocks[first], blocks[last]
        if end > begin:
            levels = by_block[begin:end].reshape(last - first, -1)
            own = sums[begin:end].reshape(last - first, -1)
            if lower:
                own[:-1] = np.cumsum(levels[:0:-1], axis=0)[::-1]
            else:
                own[1:] = np.cumsum(levels[:-1], axis=0)
    return sums


def _powers(ahead: list[FloatArray], behind: list[FloatArray]) -> FloatArray:
    """Polynomials by rising power through what nodes see, shape (slots, ORDER, 4)."""
    seen = [*ahead, *behind]
    powers = np.zeros((len(seen[0]), ORDER, 4))
    for field, values in enumerate(seen):
        powers[:, :, field] = values @ _TO_POWERS
        if field >= len(ahead):
            powers[:, :, field] *= _SIGNS
    return powers


def _read(work: _Work, powers: FloatArray, scale: FloatArray, out: GradHess) -> None:
    runs, _ = _runs(work)
    items, grid = work.items, work.grid
    scales, flat = scale[items.query_of_block[items.block_of_run]], powers.ravel()

    at = work.kernels.Cells(work.scores, work.slots, grid.numbers, grid.width)

    def read(span: Span) -> None:
        work.kernels.read(runs, span, at, items.weights, flat, scales, items.rows, out)

    threads.run_spans(read, items.spans)


def _read_fields(work: _Work, powers: FloatArray, out: FloatArray) -> None:
    runs, _ = _runs(work)
    flat = powers.ravel()
    at = work.kernels.Cells(work.scores, work.slots, work.grid.numbers, work.grid.width)

    def read(span: Span) -> None:
        work.kernels.read_fields(runs, span, at, flat, out)

    threads.run_spans(read, work.items.spans)
