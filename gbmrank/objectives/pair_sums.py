"""Objectives that sum over pairs: curvature, the choice of engine, bound state.

A query is summed by the first of these ways that serves it: the linear-time engine (long
queries), a closed form or a sort (losses that have one), a shortcut over every pair (logistic),
or the loss of every pair. Each way is a kernel of its own, which is compiled when a query first
needs it. The *kind* of pairs, ``PAIRS``, ``LEVELS`` or ``PUSH``, names the kernels of each way.
"""

import functools
import math
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, Final, NamedTuple, final

import numpy as np

from gbmrank.data.queries import Groups
from gbmrank.errors import LimitError, ParameterError
from gbmrank.kernels.jit import compiler, threads
from gbmrank.kernels.layout import (
    LANES,
    Buffers,
    Engines,
    GradHess,
    ItemQueries,
    LevelQueries,
    PushQueries,
    Span,
)
from gbmrank.kernels.linear.interpolation import LinearPlan, PlanReport, Side, Tail, make_plan
from gbmrank.losses import BUILTIN_LOSSES, AbstractLoss
from gbmrank.losses.base import ScalarFunction, with_curvature
from gbmrank.objectives.base import (
    AbstractBound,
    HessianTrait,
    check_choice,
    run_queries,
    scale_hessian,
    sum_queries,
)
from gbmrank.types import BoolArray, FloatArray, IntArray

__all__ = [
    "LEVELS",
    "PAIRS",
    "PUSH",
    "BoundPairs",
    "PairSum",
    "check_engine",
    "linear_accuracy",
    "pair_curvature",
    "pair_engine",
]

ENGINES = ("auto", "pairs", "closed", "sorted", "linear")
ACCURACY = 1e-10
_NEVER = 2**62
_PATIENCE = 60.0  # seconds a round for one query
_SORTED = ("hinge", "squared_hinge")
_CLOSED = MappingProxyType(  # templates of closed forms
    {
        "exponential": "closed.exponential",
        "p_classification": "closed.exponential",
        "squared_margin": "closed.polynomial",
        "hinge": "closed.polynomial",
        "squared_hinge": "closed.polynomial",
    }
)
_NO_PLAN = LinearPlan(1.0, 0.0, Tail(0, 0.0, 0.0), Tail(0, 0.0, 0.0))
_LONG = 200_000  # items from which one query is worth the work of all threads
_NO_ROWS = GradHess(np.empty(0, np.float32), np.empty(0, np.float32))


class _Kind(NamedTuple):
    """One kind of pairs: the names of the kernels that sum them."""

    gradients: str  # in pairs.sums
    values: str
    long: str  # in linear.long
    linear: str  # in linear.engine
    linear_slot: str  # and what linear.long calls it
    dense: str = ""  # in pairs.dense
    closed: str = ""  # in pairs.sums
    closed_end: str = ""  # how closed forms end: exponential_pairs, exponential_levels
    narrow: str = ""  # in linear.narrow


PAIRS: Final = _Kind(
    "all_gradients",
    "all_values",
    "long_all",
    "all_pairs",
    "linear_pairs",
    "dense_all",
    "closed_all",
    "_pairs",
    "narrow_all",
)
"""All ordered pairs of a query, weighted by the utility of the first item."""

LEVELS: Final = _Kind(
    "level_gradients",
    "level_values",
    "long_levels",
    "cross_pairs",
    "linear_cross",
    "dense_different",
    "closed_different",
    "_levels",
    "narrow_levels",
)
"""Pairs of different level, weighted by the better item."""

PUSH: Final = _Kind("push_gradients", "push_values", "long_push", "cross_fields", "linear_fields")
"""Pairs of a relevant and another item, with a price around the sum of each other item."""


class Curvature(NamedTuple):
    """How second derivatives enter: the loss with its bend, a factor, and what that is."""

    phi: ScalarFunction
    bend: float
    factor: float
    trait: HessianTrait


class PairEngine(NamedTuple):
    """Compiled kernels and the choice among them."""

    gradients: Callable[..., None]  # every pair by the loss
    values: Callable[..., None]
    dense: Any  # the template of the shortcut over every pair, or None
    dense_kernel: str  # its name there
    closed_queries: Any  # the kernel of the closed form, or None
    long_queries: Any  # the kernel that hands long queries to the linear-time engine, or None
    narrow: Any  # the template that sums most of them, or None
    narrow_kernel: str  # its name there
    tables: FloatArray  # of the loss, for it
    linear_kernels: Any  # that engine, or None where no query needs it
    engines: Engines
    report: PlanReport | None
    exact_up_to: int  # items up to which calls outside of training visit every pair

    def settings(self, single: bool) -> Engines:
        """Return the choice for one call.

        ``single`` is training: interpolation where it is safe and faster. Otherwise queries of
        moderate length are summed exactly.
        """
        if single:
            return self.engines
        linear_from = max(self.engines.linear_from, self.exact_up_to)
        return self.engines._replace(linear_from=linear_from)

    def sum_span(
        self,
        columns: tuple[Any, Span, FloatArray],
        params: Any,
        engines: Engines,
        served: BoolArray,
        results: tuple[FloatArray, GradHess],
    ) -> None:
        """Sum what visits no pair: long queries, the widest of them last, and closed forms."""
        span, call = columns[1], (*columns, params, engines, served, *results)
        if self.long_queries is not None and span.longest >= engines.linear_from:
            too_wide = self.narrow is None
            if not too_wide:
                work = self.narrow.workspace(self.tables, span.longest)
                kernel, (values, out) = getattr(self.narrow, self.narrow_kernel), results
                room = _buffers(span, np.float64)
                too_wide = kernel(*columns, engines, served, values, room, *work, out) > 0
            if too_wide:
                self.long_queries(*call)
        if self.closed_queries is not None and not served[span.first : span.last].all():
            self.closed_queries(*call)

    def visits(self, single: bool) -> Iterator[tuple[Any, Callable[..., None], tuple[float, ...]]]:
        """Yield precision, kernel and settings of what visits every pair, the first one first."""
        if self.dense is not None:
            kernel = getattr(self.dense, self.dense_kernel)
            if single:
                yield np.float32, kernel, (self.dense.SINGLE_RANGE,)
            yield np.float64, kernel, (self.dense.DOUBLE_RANGE,)
        yield np.float64, self.gradients, ()


def pair_curvature(owner: str, loss: AbstractLoss, hessian: str) -> Curvature:
    """Resolve ``hessian=`` for the pairs of a loss."""
    exact = Curvature(loss.kappa, math.nan, 1.0, "exact")
    if hessian == "constant":
        return exact._replace(trait="constant")
    if hessian == "majorise":
        if not (loss.convex and loss.exact_curvature):
            raise ParameterError(
                f"{owner}: hessian=majorise needs a convex loss with curvature, and {loss.name} is "
                "not one; use hessian=auto"
            )
        return exact._replace(factor=2.0, trait="bound")
    expected = loss.expected_curvature
    wanted = hessian == "expected" or (hessian == "auto" and not loss.exact_curvature)
    if expected is None or not wanted:
        return exact
    constant = loss.constant_curvature
    trait: HessianTrait = "heuristic" if loss.curvature_trait == "heuristic" else "expected"
    bend = math.inf if constant is None else constant
    return Curvature(with_curvature(loss.kappa, expected), bend, 1.0, trait)


def pair_engine(
    kind: _Kind,
    loss: AbstractLoss,
    curvature: Curvature,
    engine: str,
    sizes: IntArray,
    **more: Callable[..., Any],
) -> PairEngine:
    """Load the kernels for a kind of pairs and decide which queries take which way.

    ``more`` are further slots of the template; the linear-time engine is only compiled where
    ``sizes``, the items per query, has long ones.
    """
    fast = loss.closed_form == "logistic"
    linear_from = _linear_from(kind, loss, curvature, engine)
    soonest = {"auto": 350 if loss.closed_form in _SORTED else 1, "closed": 1, "sorted": 1}
    closed_from = soonest.get(engine, _NEVER)
    longest = int(sizes.max(initial=0))
    report = _linear_report(loss, curvature) if longest >= linear_from else None
    served = report is not None and report.plan is not None
    linear = compiler.load("linear.engine", phi=curvature.phi) if served else None
    if linear is not None and compiler.is_plain(linear):
        linear, served = None, False  # vector code has no form in plain Python
    engines = Engines(
        closed_from=closed_from,
        linear_from=linear_from if served else _NEVER,
        linear_range=(0.0 if engine == "linear" else 30.0 if fast else 8.0),
        bend=curvature.bend,
        plan=report.plan if report is not None and report.plan is not None else _NO_PLAN,
    )
    if engine == "auto" and not served and (kind is PUSH or loss.closed_form is None):
        _check_affordable(loss, longest)
    sums = compiler.load("pairs.sums", phi=curvature.phi, **more)
    narrow = compiler.load("linear.narrow") if linear is not None and kind.narrow else None
    return PairEngine(
        gradients=getattr(sums, kind.gradients),
        values=getattr(sums, kind.values),
        dense=_dense(kind, loss, curvature),
        dense_kernel=kind.dense,
        closed_queries=_closed_queries(kind, loss) if longest >= closed_from else None,
        long_queries=_long_kernel(kind, linear, more),
        narrow=narrow,
        narrow_kernel=kind.narrow,
        tables=np.empty(0) if narrow is None else _tables(curvature.phi, loss.params, engines.plan),
        linear_kernels=linear,
        engines=engines,
        report=report,
        exact_up_to=0 if engine == "linear" else 4096 if fast else 1024,
    )


def linear_accuracy(kind: _Kind, loss: AbstractLoss, hessian: str, engine: str) -> float | None:
    """Return the largest relative error of the linear-time engine, or None if it never serves."""
    curvature = pair_curvature("pairs", loss, hessian)
    if _linear_from(kind, loss, curvature, engine) == _NEVER:
        return None
    report = _linear_report(loss, curvature)
    return None if report.plan is None else report.error


def check_engine(owner: str, loss: AbstractLoss, hessian: str, engine: str) -> None:
    """Raise ParameterError unless an engine can sum the pairs of a loss."""
    check_choice(owner, "engine", engine, ENGINES)
    allowed = {"closed": set(_CLOSED) - set(_SORTED), "sorted": set(_SORTED)}.get(engine)
    if allowed is not None and loss.closed_form not in allowed:
        served = [cls.name for cls in BUILTIN_LOSSES if cls.closed_form in allowed]
        raise ParameterError(
            f"{owner}: engine={engine} is for {', '.join(sorted(served))}; for {loss.name} use "
            "engine=auto"
        )
    if engine == "linear":
        report = _linear_report(loss, pair_curvature(owner, loss, hessian))
        if report.plan is None:
            raise ParameterError(
                f"{owner}: engine=linear cannot serve {loss.name}: {report.reason}"
            )


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
    """

    __slots__ = ("chunks", "in_row_order", "long", "pair_sum", "queries")

    def __init__(
        self, groups: Groups, queries: ItemQueries | LevelQueries | PushQueries, pair_sum: PairSum
    ) -> None:
        super().__init__(groups)
        self.pair_sum, self.queries = pair_sum, queries
        pairs = (
            4.0 * queries.positives * (groups.sizes - queries.positives)
            if isinstance(queries, PushQueries)
            else groups.sizes.astype(np.float64) ** 2 / 4.0
        )
        self.chunks = threads.cut_into_chunks(pairs + 100.0)
        self.long = _long_queries(groups, queries, pair_sum.engine)
        self.in_row_order = {
            int(query): _in_row_order(queries, int(query))
            for query in self.long
            if isinstance(queries, ItemQueries)
        }

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Sum over pairs."""
        engine, curvature, params, constant = self.pair_sum
        engines = engine.settings(single)
        served = np.zeros(self.groups.n_queries, np.bool_)
        for query in self.long:
            served[query] = self._fill_long(int(query), scores, out)
        unused = np.empty(self.groups.n_queries)

        def fill_span(span: Span) -> None:
            left, columns = served[span.first : span.last], (self.queries, span, scores)
            if not left.all():
                engine.sum_span(columns, params, engines, served, (unused, out))
            for precision, kernel, more in engine.visits(single):
                if not left.all():
                    given = (params[0], *more) if more else (params,)
                    kernel(*columns, *given, served, _buffers(span, precision), out)

        run_queries(fill_span, self.chunks, self.groups)
        scale_hessian(out, constant, curvature.factor)

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the loss of each query."""
        engine, _, params, _ = self.pair_sum
        engines = engine.settings(single=False)
        served = np.zeros(self.groups.n_queries, np.bool_)

        def sum_span(span: Span, values: FloatArray) -> None:
            left, columns = served[span.first : span.last], (self.queries, span, scores)
            engine.sum_span(columns, params, engines, served, (values, _NO_ROWS))
            if not left.all():
                engine.values(*columns, params, served, _buffers(span, np.float64), values)

        return sum_queries(sum_span, self.chunks, self.groups)

    def _fill_long(self, query: int, scores: FloatArray, out: GradHess) -> bool:
        begin, end = self.groups.offsets[query : query + 2].tolist()
        if isinstance(self.queries, ItemQueries):
            part = GradHess(out.grad[begin:end], out.hess[begin:end])
            return self._long_pairs(query, scores[begin:end], part)
        if isinstance(self.queries, LevelQueries):
            return self._long_levels(self.queries, query, scores, out)
        return False

    def _long_pairs(self, query: int, scores: FloatArray, out: GradHess) -> bool:
        engine, _, params, _ = self.pair_sum
        side = Side(scores, self.in_row_order[query], out.grad, out.hess)
        value = engine.linear_kernels.all_pairs_threaded(side, engine.engines.plan, params)
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
            sides, plan = (better, worse), engine.engines.plan
            if np.isnan(engine.linear_kernels.cross_pairs_threaded(*sides, plan, params)):
                return False
            first = cut
        out.grad[rows] = grad
        out.hess[rows] = hess
        return True


def _buffers(span: Span, precision: Any) -> Buffers:
    """Return room for the longest query of a span, and for whole vectors."""
    room = span.longest + LANES
    s, v, g, h = (np.zeros(room, precision) for _ in range(4))
    return s, v, g, h


def _linear_from(kind: _Kind, loss: AbstractLoss, curvature: Curvature, engine: str) -> int:
    """Items from which a query is left to the linear-time engine, where the loss allows it."""
    if engine == "auto" and kind is not PUSH and _has_closed_form(loss, curvature):
        return _NEVER
    short = 400 if loss.closed_form == "logistic" else 250
    return {"auto": short, "linear": 2}.get(engine, _NEVER)


def _check_affordable(loss: AbstractLoss, longest: int) -> None:
    """Raise LimitError when visiting every pair of the longest query takes minutes a round."""
    seconds = 1.5e-9 * longest**2
    if seconds > _PATIENCE:
        most = int(math.sqrt(_PATIENCE / 1.5e-9))
        raise LimitError(
            f"the loss {loss.name} has no fast sum, and visiting every pair of a query of "
            f"{longest:,} items takes about {seconds:,.0f} s a round; the cap is {most:,} items. "
            "Truncate the query, use a smooth loss such as logistic, or insist with engine=pairs"
        )


def _has_closed_form(loss: AbstractLoss, curvature: Curvature) -> bool:
    """Whether a sum that visits no pair serves every query, but for the widest ones."""
    summed = loss.closed_form in _CLOSED and loss.closed_form not in _SORTED
    return summed and (math.isnan(curvature.bend) or loss.closed_form == "squared_margin")


@functools.lru_cache(maxsize=256)
def _plan(phi: ScalarFunction, params: tuple[float, ...]) -> PlanReport:
    return make_plan(phi, params, ACCURACY)


@functools.lru_cache(maxsize=64)
def _tables(phi: ScalarFunction, params: tuple[float, ...], plan: LinearPlan) -> FloatArray:
    tables: FloatArray = compiler.load("linear.narrow").make_tables(phi, params, plan)
    return tables


def _linear_report(loss: AbstractLoss, curvature: Curvature) -> PlanReport:
    if not loss.smooth:
        return PlanReport(None, math.inf, "the loss is not twice differentiable; use engine=auto")
    return _plan(curvature.phi, loss.params)


def _dense(kind: _Kind, loss: AbstractLoss, curvature: Curvature) -> Any:
    """Return the template that visits every pair of a logistic loss, or None for others."""
    fast = loss.closed_form == "logistic" and math.isnan(curvature.bend)
    return compiler.load("pairs.dense") if fast and kind.dense else None


def _closed_queries(kind: _Kind, loss: AbstractLoss) -> Any:
    """Return the kernel of the closed form, or None where there is none."""
    form = loss.closed_form or ""
    if form not in _CLOSED or not kind.closed:
        return None
    slot = {
        f"closed{kind.closed_end}": getattr(compiler.load(_CLOSED[form]), form + kind.closed_end)
    }
    return getattr(compiler.load("pairs.sums", **slot), kind.closed)


def _long_kernel(kind: _Kind, linear: Any, more: dict[str, Callable[..., Any]]) -> Any:
    """Return the kernel that hands long queries to the linear-time engine."""
    if linear is None:
        return None
    slot = {kind.linear_slot: getattr(linear, kind.linear)}
    return getattr(compiler.load("linear.long", **more, **slot), kind.long)


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


def _in_row_order(queries: ItemQueries, query: int) -> FloatArray:
    """Scaled utilities of a query in the order of its rows."""
    begin, end = queries.offsets[query : query + 2].tolist()
    utilities = np.empty(end - begin)
    utilities[queries.order[begin:end] - begin] = queries.utilities[begin:end]
    return utilities * queries.scale[query]
