"""Base classes of metrics: one value per query, exact under ties, then a mean over queries.

:class:`Ranked` sorts scores at most once, however many metrics use them.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from gbmrank.data.queries import Groups, RankingData
from gbmrank.errors import DataError, MetricError
from gbmrank.kernels.jit import compiler, threads
from gbmrank.kernels.layout import Ranking, Span, SwapTerms
from gbmrank.losses.gains import check_threshold
from gbmrank.losses.utilities import LARGEST_CUTOFF, AbstractUtility, Form
from gbmrank.types import FloatArray

_DEEPEST_SELECTION = 30  # beyond this cut-off a full sort is as fast
Kernel = Callable[[Ranking, Any, Span, FloatArray], None]


@final
class Ranked:
    """Scores of a data set and their order within each query, computed on demand.

    Make one per score vector and pass it to every metric. A metric with a cut-off needs
    only the best few items, which are found without sorting the rest; if another depth is
    needed later, everything is sorted, once. Call :meth:`prepare` to announce the depths in
    advance.

    Parameters
    ----------
    scores : array of shape (n_rows,)
        Finite, in query order; not changed.
    groups : Groups
        Query boundaries.

    Examples
    --------
    >>> ranked = Ranked(np.array([1.0, 3.0, 3.0]), Groups.single(3))
    >>> ranking = ranked.ranking()
    >>> ranking.order, ranking.tied
    (array([1, 2, 0], dtype=int32), array([0, 1, 0], dtype=uint8))
    """

    __slots__ = ("_depth", "_ranking", "_rounded", "groups", "scores")

    def __init__(self, scores: FloatArray, groups: Groups) -> None:
        if len(scores) != groups.n_rows:
            raise DataError(
                f"there are {len(scores)} scores for {groups.n_rows} rows; pass one score per row"
            )
        # For the compiler, read-only arrays are a different type.
        self.scores = scores if scores.flags.writeable else scores.copy()
        self.groups = groups
        self._ranking: Ranking | None = None
        self._depth = 0
        self._rounded: Ranked | None = None

    def prepare(self, *depths: int | None) -> "Ranked":
        """Rank to the largest depth that several metrics need, and return self.

        Parameters
        ----------
        *depths : int or None
            The ``depth`` of each bound metric; ``None`` is every rank.

        Returns
        -------
        Ranked
            The object itself.
        """
        self.ranking(None if None in depths else max(filter(None, depths), default=1))
        return self

    def ranking(self, depth: int | None = None) -> Ranking:
        """Return the order and the ties of at least the first ``depth`` ranks."""
        whole = max(self.groups.n_rows, 1)
        wanted = whole if depth is None or depth > _DEEPEST_SELECTION else depth
        if self._ranking is None or self._depth < wanted:
            self._depth = wanted if self._ranking is None else whole
            self._ranking = self._sorted(self._depth)
        return self._ranking

    def settled(self, ties: str, values: FloatArray, depth: int | None = None) -> Ranking:
        """Return a ranking in which all ties are broken.

        Parameters
        ----------
        ties : {"index", "best", "worst"}
            Order tied items by row, or by decreasing or increasing value.
        values : array of shape (n_rows,)
            What items are worth to the metric.
        depth : int or None
            Last rank that has to be correct.

        Returns
        -------
        Ranking
            The order, without ties.
        """
        ranking = self.ranking(depth)
        untied = Ranking(ranking.offsets, ranking.order, np.zeros_like(ranking.tied))
        if ties == "index":
            return untied
        untied = untied._replace(order=np.empty_like(ranking.order))
        usefulness = values if ties == "best" else -values
        kernels = compiler.load("ranking.sorting")
        run_queries(
            lambda span: kernels.settle(
                ranking, usefulness, self._depth, span, kernels.workspace(span.longest), untied
            ),
            self.groups,
        )
        return untied

    def rounded(self) -> "Ranked":
        """Return the ranking of the scores rounded to float32, as XGBoost sees them."""
        if self._rounded is None:
            with np.errstate(over="ignore"):
                single = self.scores.astype(np.float32).astype(np.float64)
            largest = float(np.finfo(np.float32).max)
            self._rounded = Ranked(np.clip(single, -2.0 * largest, 2.0 * largest), self.groups)
        return self._rounded

    def _sorted(self, depth: int) -> Ranking:
        kernels = compiler.load("ranking.sorting")
        order, tied = np.empty(len(self.scores), np.int32), np.empty(len(self.scores), np.uint8)
        ranking = Ranking(self.groups.offsets, order, tied)

        def rank(span: Span) -> None:
            if depth <= _DEEPEST_SELECTION:
                work = kernels.best_workspace(span.longest)
                kernels.rank_best(self.scores, depth, span, work, ranking)
            else:
                kernels.rank_all(self.scores, span, kernels.workspace(span.longest), ranking)

        run_queries(rank, self.groups)
        return ranking


def run_queries(task: Callable[[Span], None], groups: Groups) -> None:
    """Run a kernel over all queries in threads; each query is computed by one thread."""
    costs = 10.0 * groups.sizes.astype(np.float64) + 50.0
    threads.run_spans(task, threads.cut_into_spans(costs, groups.longest))


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractMetric(ABC):
    """A metric of how well scores order the items of a query.

    By default ties are not broken at random or by row number: the value of a query is the
    mean over all orderings of tied items, in closed form. Scores tie if they are the same
    number; 0.0 and -0.0 tie.

    Parameters
    ----------
    ties : {"mean", "worst", "best", "index"}, default="mean"
        How to treat items with equal scores. ``"mean"``: the mean over all orderings of tied
        items. ``"worst"`` and ``"best"``: the ordering that is worst or best for this
        metric, which for every built-in metric is the one by increasing or decreasing
        usefulness of the tied items. ``"index"``: the order of the rows, as in LightGBM
        and XGBoost.
    empty : {"skip", "zero", "one"}, default="skip"
        How the mean counts a query where the metric is undefined.
    dtype : {"float64", "float32"}, default="float64"
        Precision in which scores are compared; XGBoost's is ``"float32"``.

    Notes
    -----
    Fields of several metrics: ``k`` is the last rank that counts, None for every rank.
    ``threshold`` is the smallest relevant label; labels other than 0/1 and -1/+1 need it.
    ``gain`` is ``"exp2"`` (2^y - 1, labels 0..31), ``"linear"`` (y), a table indexed by whole
    labels, or a function of an array of labels, such as ``lambda y: y**2``. A function has no text
    form: such a metric evaluates, but cannot be saved or compared.
    """

    ties: str = "mean"
    empty: str = "skip"
    dtype: str = "float64"

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    formula: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    higher_is_better: ClassVar[bool] = True
    tie_rules: ClassVar[tuple[str, ...]] = ("mean", "worst", "best", "index")
    value_range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    """Smallest and largest value of any ranking of any query."""
    no_utility: ClassVar[str] = "its value is no sum of utilities times discounts of ranks"
    """Why it cannot be a target, and what to use; ``{k}`` is its cut-off, such as ``@10``."""
    no_utility_theorem: ClassVar[str] = ""
    """Where it is proven that its best order is that of no expected utility."""
    swap_kind: ClassVar[str | None] = None
    """Form of its change when two items swap ranks: a kind of ``pairs.changes``, if it has one."""

    def __post_init__(self) -> None:
        check_choice(self.name, "ties", self.ties, self.tie_rules)
        check_choice(self.name, "empty", self.empty, ("skip", "zero", "one"))
        check_choice(self.name, "dtype", self.dtype, ("float64", "float32"))
        check_threshold(self.name, getattr(self, "threshold", None))
        k = type(self).__dataclass_fields__.get("k")
        if k is not None and k.type not in (float, "float"):  # a float is no cut-off
            check_cutoff(self.name, getattr(self, "k", None))
        self.check()

    def check(self) -> None:  # noqa: B027  (a hook: most metrics have nothing more to check)
        """Raise MetricError if another field has an invalid value."""

    @property
    def utility(self) -> AbstractUtility | None:
        """What ``target=`` this metric stands for, if anything."""
        return None

    @property
    def form(self) -> Form:
        """Symbolic utility whose expectation sorts best where labels of items are independent.

        For positional metrics it does so for every distribution. A custom one is only known to
        equal itself.
        """
        return Form("own", self)

    @property
    def top_form(self) -> Form | None:
        """Symbolic utility of the item at rank 1, if with k=1 the value is that alone."""
        return None

    @property
    def constant(self) -> bool:
        """Whether every ranking of a query has the same value."""
        return False

    @property
    def linear(self) -> bool:
        """Whether the value is linear in utilities that depend only on the item's own label.

        Then clicks divided by propensities yield an unbiased estimate of it.
        """
        return False

    @abstractmethod
    def bind(self, data: RankingData) -> "AbstractBoundMetric":
        """Bind the metric to a data set: compute everything that depends only on labels.

        Parameters
        ----------
        data : RankingData
            Labels, groups and weights.

        Returns
        -------
        AbstractBoundMetric
            Evaluates scores.

        Raises
        ------
        DataError
            If the metric is not defined for these labels.
        """

    def swap_terms(self, data: RankingData) -> SwapTerms:
        """Return the terms of the change under a swap, for a metric with a ``swap_kind``."""
        raise MetricError(
            f"{self.name}: its change under a swap of {data.groups.n_rows} rows has no closed form"
        )


class AbstractBoundMetric(ABC):
    """A metric that is bound to the labels of one data set."""

    __slots__ = ("empty", "groups", "weight")

    def __init__(self, metric: AbstractMetric, data: RankingData) -> None:
        self.empty = metric.empty
        self.groups = data.groups
        self.weight = data.query_weight()

    @property
    def depth(self) -> int | None:
        """Last rank the measure looks at; ``None`` is every rank."""
        return None

    @abstractmethod
    def per_query(self, ranked: Ranked) -> FloatArray:
        """Return one value per query; NaN where undefined.

        Parameters
        ----------
        ranked : Ranked
            Scores in query order. Metrics that get the same object share its sort.

        Returns
        -------
        array of shape (n_queries,)
            The value of each query.
        """

    def score(self, ranked: Ranked) -> float:
        """Return the weighted mean over queries."""
        return mean_over_queries(self.per_query(ranked), self.weight, self.empty)


@final
class BoundKernel(AbstractBoundMetric):
    """A bound metric whose value is computed by ``kernel(ranking, items, span, out)``.

    ``items.values`` are the values of the rows, larger for items that should come first.
    """

    __slots__ = ("_depth", "dtype", "items", "kernel", "ties")

    def __init__(
        self,
        metric: AbstractMetric,
        data: RankingData,
        kernel: Kernel,
        items: Any,
        depth: int | None = None,
    ) -> None:
        super().__init__(metric, data)
        self.kernel = kernel
        self.items = items
        # An item strictly above the others is above them in the worst ordering.
        self.ties = "worst" if metric.ties == "strict" else metric.ties
        self.dtype = metric.dtype
        self._depth = depth

    @property
    def depth(self) -> int | None:
        """Last rank the measure looks at; ``None`` is every rank."""
        return self._depth

    def per_query(self, ranked: Ranked) -> FloatArray:
        """Return one value per query; NaN where undefined."""
        check_same_rows(self.groups, ranked.groups)
        values = np.empty(self.groups.n_queries)
        ranked = ranked.rounded() if self.dtype == "float32" else ranked
        if self.ties in ("index", "best", "worst"):
            ranking = ranked.settled(self.ties, self.items.values, self.depth)
        else:
            ranking = ranked.ranking(self.depth)
        run_queries(lambda span: self.kernel(ranking, self.items, span, values), self.groups)
        return values


def mean_over_queries(values: FloatArray, weight: FloatArray | None, empty: str) -> float:
    """Return the mean of per-query values, which are NaN where undefined; NaN if all are."""
    total, weights = weighted_sum(values, weight, empty)
    return total / weights if weights > 0 else float("nan")


def weighted_sum(values: FloatArray, weight: FloatArray | None, empty: str) -> tuple[float, float]:
    """Return the weighted sum of per-query values and the sum of the weights."""
    undefined = np.isnan(values)
    weights = np.ones(len(values)) if weight is None else weight
    if empty == "skip":
        weights = np.where(undefined, 0.0, weights)
    filled = np.where(undefined, 1.0 if empty == "one" else 0.0, values)
    return float((weights * filled).sum()), float(weights.sum())


def check_choice(owner: str, parameter: str, value: object, allowed: Sequence[str]) -> None:
    """Raise MetricError unless a parameter is one of the allowed names."""
    if value not in allowed:
        raise MetricError(
            f"{owner}: {parameter} must be one of {', '.join(allowed)}; got {value!r}"
        )


def check_cutoff(owner: str, k: object) -> None:
    """Raise MetricError unless a cut-off is None or a whole number from 1 to 2^63 - 1."""
    whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
    if k is None or (whole and 1 <= int(k) <= LARGEST_CUTOFF):  # type: ignore[call-overload]
        return
    raise MetricError(
        f"{owner}: the cut-off k must be a whole number of at least 1 and below 2^63, or None to "
        f"count every rank; got {k!r}"
    )


def check_same_rows(bound: Groups, given: Groups) -> None:
    """Raise DataError unless scores belong to the rows a metric is bound to."""
    if bound is not given and not np.array_equal(bound.offsets, given.offsets):
        raise DataError(
            f"the metric is bound to {bound.n_queries} queries with {bound.n_rows} rows, but the "
            f"scores have {given.n_queries} queries with {given.n_rows} rows; bind the metric to "
            "the data set of the scores"
        )
