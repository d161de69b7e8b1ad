"""Objectives that sum over pairs: curvature, choice of engine, bound state.

A query is summed by the first engine that supports it: the linear-time engine (long queries), a
closed form or a sort (losses that have one), a fast loop over all pairs (logistic), or the
generic loop over all pairs. Each engine is a separate kernel, which is compiled when a query
first needs it. The *kind* of pairs, ``PAIRS``, ``LEVELS`` or ``PUSH``, selects its kernels.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple, final

import numpy as np

from gbmrank.data.queries import Groups, RankingData
from gbmrank.errors import LimitError, ParameterError
from gbmrank.kernels.jit import compiler, threads
from gbmrank.kernels.layout import (
    LANES,
    Engines,
    GradHess,
    ItemQueries,
    LevelQueries,
    PairWork,
    PushParams,
    PushQueries,
    Span,
)
from gbmrank.kernels.linear.engine import LongItems, Tables, sum_pairs, sum_push
from gbmrank.kernels.linear.interpolation import PlanReport, make_plan
from gbmrank.losses import BUILTIN_LOSSES, AbstractLoss
from gbmrank.losses.base import ScalarFunction, with_curvature
from gbmrank.losses.convex import AbstractOuter
from gbmrank.objectives.base import (
    AbstractBound,
    HessianTrait,
    check_choice,
    constant_hessian,
    scale_hessian,
    sum_queries,
)
from gbmrank.types import BoolArray, FloatArray, IntArray

ENGINES = ("auto", "pairs", "closed", "sorted", "linear")
ACCURACY = 1e-10
_NEVER = 2**62
_PATIENCE = 60.0  # largest allowed seconds per round for one query
_SORTED = {"hinge", "squared_hinge"}


# Templates of closed forms. Their kernels are named after the loss: hinge_pairs and hinge_levels.
_CLOSED = {
    "exponential": "closed.exponential",
    "p_classification": "closed.exponential",
    "squared_margin": "closed.polynomial",
    "hinge": "closed.polynomial",
    "squared_hinge": "closed.polynomial",
}
_NO_ROWS = GradHess(np.empty(0, np.float32), np.empty(0, np.float32))


class _Kind(NamedTuple):
    """One kind of pairs: the names of the kernels that sum them."""

    gradients: str  # in pairs.sums
    values: str
    dense: str = ""  # in pairs.dense
    closed: str = ""  # in pairs.sums
    sums: str = ""  # what closed forms and their slot there are named after


PAIRS: Final = _Kind("all_gradients", "all_values", "dense_all", "closed_all", "pairs")
"""All ordered pairs of a query, weighted by the utility of the first item."""

LEVELS: Final = _Kind(
    "level_gradients", "level_values", "dense_different", "closed_different", "levels"
)
"""Pairs of different level, weighted by the better item."""

PUSH: Final = _Kind("push_gradients", "push_values")
"""Pairs of a relevant and another item, with an outer function of the sum of each other item."""


class Curvature(NamedTuple):
    """How second derivatives are computed: the loss with its curvature, a factor, the trait."""

    phi: ScalarFunction
    bend: float
    factor: float
    trait: HessianTrait


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


def _engines(
    kind: _Kind, loss: AbstractLoss, curvature: Curvature, engine: str, longest: int
) -> tuple[Engines, Tables | None]:
    """Decide which engine sums which queries; tables are made if the linear-time engine has any."""
    linear_from = _linear_from(kind, loss, curvature, engine)
    soonest = {"auto": 350 if loss.closed_form in _SORTED else 1, "closed": 1, "sorted": 1}
    plan = _linear_report(loss, curvature).plan if longest >= linear_from else None
    tables = None if plan is None else _tables(curvature.phi, loss.params)
    if engine == "auto" and tables is None and (kind is PUSH or loss.closed_form is None):
        _check_affordable(loss, longest)
    engines = Engines(
        closed_from=soonest.get(engine, _NEVER),
        linear_from=linear_from if tables is not None else _NEVER,
        linear_range=(0.0 if engine == "linear" else 30.0 if _is_fast(loss) else 8.0),
        bend=curvature.bend,
    )
    return engines, tables


def linear_accuracy(kind: _Kind, loss: AbstractLoss, hessian: str, engine: str) -> float | None:
    """Return the largest relative error of the linear-time engine, or None if it is never used."""
    curvature = pair_curvature("pairs", loss, hessian)
    if _linear_from(kind, loss, curvature, engine) == _NEVER:
        return None
    report = _linear_report(loss, curvature)
    return None if report.plan is None else report.error


def check_engine(owner: str, loss: AbstractLoss, hessian: str, engine: str) -> None:
    """Raise ParameterError unless an engine supports a loss."""
    check_choice(owner, "engine", engine, ENGINES)
    allowed = {"closed": _CLOSED.keys() - _SORTED, "sorted": _SORTED}.get(engine)
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
                f"{owner}: engine=linear does not support {loss.name}: {report.reason}"
            )


class _LongQueries(NamedTuple):
    """The queries that the linear-time engine may sum."""

    numbers: IntArray
    items: LongItems
    tables: Tables


@final
class BoundPairs(AbstractBound):
    """Pairs of every query, summed in threads.

    Long queries are summed first, together, by the linear-time engine; the threads sum the
    others in spans of queries.
    """

    __slots__ = (
        "closed",
        "constant",
        "engines",
        "exact",
        "factor",
        "long",
        "params",
        "queries",
        "spans",
        "sums",
        "values",
        "ways",
    )

    def __init__(
        self,
        objective: Any,  # with a loss and an engine
        kind: _Kind,
        data: RankingData,
        queries: ItemQueries | LevelQueries | PushQueries,
        outer: AbstractOuter | None = None,
    ) -> None:
        groups, loss, engine = data.groups, objective.loss, objective.engine
        super().__init__(groups)
        curvature = pair_curvature(objective.name, loss, objective.hessian)
        self.engines, tables = _engines(kind, loss, curvature, engine, groups.longest)
        # Outside of training, queries of moderate length are summed exactly.
        moderate = 0 if engine == "linear" else 4096 if _is_fast(loss) else 1024
        linear_from = max(self.engines.linear_from, moderate)
        self.exact = self.engines._replace(linear_from=linear_from)
        slots = {} if outer is None else {"outer": type(outer).function}
        self.sums = compiler.load("pairs.sums", phi=curvature.phi, **slots)
        self.values = getattr(self.sums, kind.values)
        # Precision, kernel and settings of the loops over all pairs, in order of use; the first
        # one, if it is in float32, is for training.
        self.ways: list[tuple[Any, Callable[..., None], tuple[float, ...]]] = []
        if kind.dense and is_logistic(loss, curvature):
            dense = compiler.load("pairs.dense")
            kernel = getattr(dense, kind.dense)
            self.ways.append((np.float32, kernel, (dense.SINGLE_RANGE,)))
            self.ways.append((np.float64, kernel, (dense.DOUBLE_RANGE,)))
        self.ways.append((np.float64, getattr(self.sums, kind.gradients), ()))
        needed = groups.longest >= self.engines.closed_from
        self.closed = _closed_queries(kind, loss) if needed else None
        self.params = loss.params if outer is None else PushParams(loss.params, outer.params)
        self.constant = constant_hessian(objective.hessian, data)
        self.factor, self.queries = curvature.factor, queries
        pairs = (
            4.0 * queries.positives * (groups.sizes - queries.positives)
            if isinstance(queries, PushQueries)
            else groups.sizes.astype(np.float64) ** 2 / 4.0
        )
        self.spans = threads.cut_into_spans(pairs + 100.0, groups.longest)
        self.long = _long_queries(groups, queries, self.engines, tables)

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Sum over pairs."""
        params, engines = self.params, self.engines if single else self.exact
        ways = self.ways if single or len(self.ways) == 1 else self.ways[1:]
        served = np.zeros(len(self.queries.scale), np.bool_)
        unused = np.empty(len(served))
        if self.long is not None:
            self._sum_long(self.long, scores, engines, served, unused, out)

        def fill_span(span: Span) -> None:
            left = served[span.first : span.last]
            if self.closed is not None and not left.all():
                work = _work(span, scores, served)
                self.closed(self.queries, params, engines, work, unused, out)
            for precision, kernel, more in ways:
                if not left.all():
                    given = (params[0], *more) if more else (params,)
                    kernel(self.queries, *given, _work(span, scores, served, precision), out)

        threads.run_spans(fill_span, self.spans)
        if self.constant is not None or self.factor != 1.0:
            scale_hessian(out, self.constant, self.factor)

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the loss of each query."""
        params, engines = self.params, self.exact
        served = np.zeros(len(self.queries.scale), np.bool_)
        long = np.empty(len(served))
        if self.long is not None:
            self._sum_long(self.long, scores, engines, served, long, _NO_ROWS)

        def sum_span(span: Span, values: FloatArray) -> None:
            own, work = slice(span.first, span.last), _work(span, scores, served)
            values[own] = long[own]
            if self.closed is not None and not served[own].all():
                self.closed(self.queries, params, engines, work, values, _NO_ROWS)
            if not served[own].all():
                self.values(self.queries, params, work, values)

        return sum_queries(sum_span, self.spans, self.groups)

    def _sum_long(
        self,
        long: _LongQueries,
        scores: FloatArray,
        engines: Engines,
        served: BoolArray,
        values: FloatArray,
        out: GradHess,
    ) -> None:
        """Sum the queries that are long relative to the range of their scores, and mark them."""
        numbers, items, tables = long
        scale = self.queries.scale[numbers]
        if isinstance(self.queries, PushQueries):
            price = functools.partial(self.sums.push_prices, self.params)
            positives = self.queries.positives[numbers]
            sums, *found = sum_push(items, scores, tables, engines, positives, price)
            sums *= scale
            if len(out.grad):
                factor = np.repeat(scale, items.sizes)
                rows = np.repeat(~np.isnan(sums), items.sizes)
                for column, part in zip(out, found, strict=True):
                    column[items.rows[rows]] = (factor * part)[rows]
        else:
            sums = sum_pairs(items, scores, tables, engines, scale, out)
        done = ~np.isnan(sums)
        values[numbers[done]] = sums[done]
        served[numbers[done]] = True


def _work(
    span: Span, scores: FloatArray, served: BoolArray, precision: Any = np.float64
) -> PairWork:
    """Return a span with buffers for its longest query, padded to whole vectors."""
    s, v, g, h = np.zeros((4, span.longest + LANES), precision)
    return PairWork(span, scores, served, (s, v, g, h))


def _linear_from(kind: _Kind, loss: AbstractLoss, curvature: Curvature, engine: str) -> int:
    """Number of items from which a query uses the linear-time engine, if the loss allows it."""
    # A closed form sums all queries, except those with a very wide range of scores.
    bends = math.isnan(curvature.bend) or loss.closed_form == "squared_margin"
    closed = bends and loss.closed_form in _CLOSED.keys() - _SORTED
    if engine == "auto" and kind is not PUSH and closed:
        return _NEVER
    short = 400 if _is_fast(loss) else 250
    return {"auto": short, "linear": 2}.get(engine, _NEVER)


def _check_affordable(loss: AbstractLoss, longest: int) -> None:
    """Raise LimitError if visiting every pair of the longest query takes minutes per round."""
    seconds = 1.5e-9 * longest**2
    if seconds > _PATIENCE:
        most = int(math.sqrt(_PATIENCE / 1.5e-9))
        raise LimitError(
            f"the loss {loss.name} has no fast sum, and visiting every pair of a query of "
            f"{longest:,} items takes about {seconds:,.0f} s per round; the limit is {most:,} "
            "items. Truncate the query, use a smooth loss such as logistic, or force it with "
            "engine=pairs"
        )


@functools.lru_cache(maxsize=256)
def _plan(phi: ScalarFunction, params: tuple[float, ...]) -> PlanReport:
    return make_plan(phi, params, ACCURACY)


@functools.lru_cache(maxsize=64)
def _tables(phi: ScalarFunction, params: tuple[float, ...]) -> Tables | None:
    plan = _plan(phi, params).plan
    return None if plan is None else Tables(phi, params, plan)


def _linear_report(loss: AbstractLoss, curvature: Curvature) -> PlanReport:
    if not loss.smooth:
        return PlanReport(None, math.inf, "the loss is not twice differentiable; use engine=auto")
    return _plan(curvature.phi, loss.params)


def _is_fast(loss: AbstractLoss) -> bool:
    return loss.closed_form == "logistic"


def is_logistic(loss: AbstractLoss, curvature: Curvature) -> bool:
    """Whether pairs need no exponential of their own, as in ``kernels.pairs.dense``."""
    return _is_fast(loss) and math.isnan(curvature.bend)


def _closed_queries(kind: _Kind, loss: AbstractLoss) -> Any:
    """Return the kernel of the closed form, or None if there is none."""
    if loss.closed_form not in _CLOSED or not kind.closed:
        return None
    one = getattr(compiler.load(_CLOSED[loss.closed_form]), f"{loss.closed_form}_{kind.sums}")
    return getattr(compiler.load("pairs.sums", **{f"closed_{kind.sums}": one}), kind.closed)


def _long_queries(
    groups: Groups,
    queries: ItemQueries | LevelQueries | PushQueries,
    engines: Engines,
    tables: Tables | None,
) -> _LongQueries | None:
    """Return the queries that are long enough for linear time, with their items, if any.

    Every level is a separate block, which makes its query effectively shorter.
    """
    levels = np.ones(groups.n_queries, np.int64)
    if isinstance(queries, LevelQueries):
        changes = np.append(True, queries.levels[1:] != queries.levels[:-1])
        changes[groups.offsets[:-1]] = True
        levels = np.add.reduceat(changes, groups.offsets[:-1], dtype=np.int64)
    long = (queries.scale != 0.0) & (groups.sizes // engines.linear_from >= levels)
    if isinstance(queries, ItemQueries):
        long &= queries.useful > 0
    numbers = np.flatnonzero(long)
    if tables is None or not len(numbers):
        return None
    kept = groups.spread(long)
    rows, blocks = queries.order[kept].astype(np.int64), groups.sizes[long]
    if isinstance(queries, ItemQueries):
        weights = queries.utilities[kept]
    elif isinstance(queries, PushQueries):
        place = np.arange(groups.n_rows) - groups.spread(groups.offsets[:-1])
        relevant = place < groups.spread(queries.positives)
        weights = (relevant / groups.spread(np.maximum(queries.positives, 1)))[kept]
    else:
        weights = queries.weights[kept]
        blocks = np.diff(np.append(np.flatnonzero(changes[kept]), len(rows)))
    starts = [np.concatenate([[0], np.cumsum(sizes)]) for sizes in (blocks, levels[long])]
    blocks, parts = (one.astype(np.int64) for one in starts)
    inside = isinstance(queries, ItemQueries)
    items = LongItems(rows, weights, blocks, parts, inside=inside)
    return _LongQueries(numbers, items, tables)
