"""Bound state of the objectives that sum over pairs."""

from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.data import Groups, RankingData
from gbmrank.kernels import pool
from gbmrank.kernels.layout import GradHess, ItemQueries, LevelQueries, PushQueries, Span
from gbmrank.kernels.linear_layout import Side
from gbmrank.kernels.linear_threads import all_pairs_threaded, cross_pairs_threaded
from gbmrank.objectives.base import AbstractBound, run_queries, sum_queries
from gbmrank.objectives.engines import Curvature, PairEngine
from gbmrank.types import FloatArray, IntArray

__all__ = ["BoundPairs", "PairSum", "constant_hessian"]

_LONG = 200_000  # items from which one query is worth the work of all threads
_NO_ROWS = GradHess(np.empty(0, np.float32), np.empty(0, np.float32))


class PairSum(NamedTuple):
    """What is summed, and how."""

    engine: PairEngine
    curvature: Curvature
    params: Any  # as the kernels want them: numbers, or PushParams
    constant: FloatArray | None


@final
class BoundPairs(AbstractBound):
    """Pairs of every query, summed in threads over queries or inside a long one.

    Long queries come first; what the linear-time engine does not serve visits every pair.

    Parameters
    ----------
    groups : Groups
        Query boundaries.
    queries : ItemQueries, LevelQueries or PushQueries
        Items in the order the kernels want them.
    pair_sum : PairSum
        What is summed.
    """

    __slots__ = ("chunks", "in_row_order", "long", "pair_sum", "queries")

    def __init__(
        self,
        groups: Groups,
        queries: ItemQueries | LevelQueries | PushQueries,
        pair_sum: PairSum,
    ) -> None:
        super().__init__(groups)
        self.pair_sum, self.queries = pair_sum, queries
        pairs = (
            4.0 * queries.positives * (groups.sizes - queries.positives)
            if isinstance(queries, PushQueries)
            else groups.sizes.astype(np.float64) ** 2 / 4.0
        )
        self.chunks = pool.cut_into_chunks(pairs + 100.0)
        self.long = _long_queries(groups, queries, pair_sum.engine)
        self.in_row_order = {
            int(query): _in_row_order(queries, int(query))
            for query in self.long
            if isinstance(queries, ItemQueries)
        }

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Sum over pairs."""
        engine, curvature, params, constant = self.pair_sum
        ways, engines = engine.choose(single)
        served = np.zeros(self.groups.n_queries, np.bool_)
        for query in self.long:
            served[query] = self._fill_long(int(query), scores, out)
        unused = np.empty(self.groups.n_queries)

        def fill_span(span: Span) -> None:
            left = served[span.first : span.last]
            call = (self.queries, span, scores, params, engines, served)
            if span.longest >= engines.linear_from and not left.all():
                engine.long_kernels.linear_sums(*call, unused, out)
            for kernels in ways:
                if not left.all():
                    kernels.gradients(*call, kernels is ways[-1], out)

        run_queries(fill_span, self.chunks, self.groups)
        if constant is not None:
            out.hess[:] = constant
        elif curvature.factor != 1.0:
            np.multiply(out.hess, curvature.factor, out=out.hess)

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the loss of each query."""
        engine, _, params, _ = self.pair_sum
        (kernels,), engines = engine.choose(single=False)
        served = np.zeros(self.groups.n_queries, np.bool_)

        def sum_span(span: Span, values: FloatArray) -> None:
            call = (self.queries, span, scores, params, engines, served)
            if span.longest >= engines.linear_from:
                engine.long_kernels.linear_sums(*call, values, _NO_ROWS)
            if not served[span.first : span.last].all():
                kernels.values(*call, values)

        return sum_queries(sum_span, self.chunks, self.groups)

    def _fill_long(self, query: int, scores: FloatArray, out: GradHess) -> bool:
        begin, end = self.groups.offsets[query : query + 2].tolist()
        if isinstance(self.queries, ItemQueries):
            return self._long_pairs(query, scores[begin:end], _part(out, begin, end))
        if isinstance(self.queries, LevelQueries):
            return self._long_levels(self.queries, query, scores, out)
        return False

    def _long_pairs(self, query: int, scores: FloatArray, out: GradHess) -> bool:
        engine, _, params, _ = self.pair_sum
        side = Side(scores, self.in_row_order[query], out.grad, out.hess)
        value = all_pairs_threaded(engine.linear_kernels, side, engine.engines.plan, params)
        return not np.isnan(value)

    def _long_levels(
        self, queries: LevelQueries, query: int, scores: FloatArray, out: GradHess
    ) -> bool:
        engine, _, params, _ = self.pair_sum
        begin, end = self.groups.offsets[query : query + 2].tolist()
        rows, levels = queries.order[begin:end], queries.levels[begin:end]
        column, weights = scores[rows], queries.weights[begin:end] * queries.scale[query]
        grad, hess, ones = np.zeros(end - begin), np.zeros(end - begin), np.ones(end - begin)
        first = 0
        for cut in (np.flatnonzero(levels[1:] != levels[:-1]) + 1).tolist():
            top, rest = slice(first, cut), slice(cut, None)
            better = Side(column[top], weights[top], grad[top], hess[top])
            worse = Side(column[rest], ones[rest], grad[rest], hess[rest])
            plan = engine.engines.plan
            if np.isnan(cross_pairs_threaded(engine.linear_kernels, better, worse, plan, params)):
                return False
            first = cut
        out.grad[rows] = grad
        out.hess[rows] = hess
        return True


def _long_queries(
    groups: Groups, queries: ItemQueries | LevelQueries | PushQueries, engine: PairEngine
) -> IntArray:
    """Queries that are worth all threads; every level costs a pass over the lower ones."""
    if engine.linear_kernels is None or isinstance(queries, PushQueries):
        return np.empty(0, np.int64)
    long = np.flatnonzero((groups.sizes >= _LONG) & (queries.scale != 0.0))
    if isinstance(queries, ItemQueries):
        return long
    levels = [
        1 + np.count_nonzero(np.diff(queries.levels[groups.offsets[q] : groups.offsets[q + 1]]))
        for q in long
    ]
    return long[groups.sizes[long] >= engine.engines.linear_from * np.array(levels, np.int64)]


def _part(out: GradHess, begin: int, end: int) -> GradHess:
    return GradHess(out.grad[begin:end], out.hess[begin:end])


def _in_row_order(queries: ItemQueries, query: int) -> FloatArray:
    """Scaled utilities of a query in the order of its rows."""
    begin, end = queries.offsets[query : query + 2].tolist()
    utilities = np.empty(end - begin)
    utilities[queries.order[begin:end] - begin] = queries.utilities[begin:end]
    return utilities * queries.scale[query]


def constant_hessian(hessian: str, data: RankingData) -> FloatArray | None:
    """Return a Hessian of one per row (times the weight) for ``hessian=constant``, else None."""
    if hessian != "constant":
        return None
    return np.ones(data.groups.n_rows) if data.weight is None else np.array(data.weight)
