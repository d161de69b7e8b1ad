"""Utilities u(y): what each item of a query is worth to a metric.

A positional metric is the sum over ranks of ``discount(rank) * u(item at that rank)``. The best
ranking sorts items by expected utility, so that is what an objective must learn. A utility
depends on the labels of one query only. Gains, discounts and binary labels, which metrics use
too, are defined here.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import LARGEST, computed_column
from gbmrank.data.queries import DEBIASED, Groups, RankingData
from gbmrank.errors import DataError, LabelRangeError, ParameterError
from gbmrank.kernels.jit import compiler, threads
from gbmrank.types import FloatArray, IntArray

Gain: TypeAlias = str | tuple[float, ...] | Callable[[FloatArray], FloatArray]
"""``"exp2"`` (2^y - 1), ``"linear"`` (y), a table indexed by integer labels, or a function."""

LARGEST_CUTOFF = 2**63 - 1
_LARGEST_EXP2_LABEL = 31
_ROWS_AT_ONCE = 1_000_000


def check_gain(gain: Gain) -> None:
    """Raise ParameterError unless ``gain`` is a known name, a table of gains or a function."""
    if callable(gain):
        return
    if isinstance(gain, str):
        if gain not in ("exp2", "linear"):
            raise ParameterError(
                f"gain={gain!r} is not known; use 'exp2', 'linear', a table such as [0, 1, 3, 7] "
                "or, in Python, a function of labels"
            )
    elif len(gain) == 0 or not all(0 <= value <= LARGEST for value in gain):
        raise ParameterError(
            f"a gain table holds finite gains that are not negative, got {gain}; they are at most "
            f"{LARGEST:g}, beyond which sums overflow"
        )


def check_threshold(owner: str, threshold: object) -> None:
    """Raise ParameterError for a threshold that no label, or every label, reaches."""
    if isinstance(threshold, float) and not math.isfinite(threshold):
        raise ParameterError(
            f"{owner}: threshold is the smallest label that is relevant, a finite number; got "
            f"{threshold}"
        )


def gains(labels: FloatArray, gain: Gain) -> FloatArray:
    """Return the gain of each label.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        Not negative; at most 31 for ``exp2``; indices for a table; anything a function accepts.
    gain : "exp2", "linear", tuple of float or callable
        How labels become gains. A function takes an array of labels and returns one gain per
        label, finite and not negative, that depends on no other label. A function has no text
        form, so objects made with it cannot be saved; those with a table or a registered utility
        can.

    Returns
    -------
    array of shape (n_rows,)
        The gains.

    Raises
    ------
    LabelRangeError
        If a label is outside the range the gain is defined for.
    ParameterError
        If a function returns invalid gains.

    Examples
    --------
    >>> gains(np.array([0.0, 1.0, 2.0]), "exp2")
    array([0., 1., 3.])
    """
    if not len(labels):
        return labels
    if callable(gain):
        return _called(gain, labels)
    smallest, largest = float(labels.min()), float(labels.max())
    if smallest < 0:
        raise LabelRangeError(
            f"gain={gain!r} needs labels that are not negative, got {smallest:g}; shift them, "
            "or use what only compares labels: the objective ranknet, the metric "
            "pairwise_disagreement"
        )
    if isinstance(gain, tuple):
        if largest >= len(gain) or np.any(labels != np.floor(labels)):
            raise LabelRangeError(
                f"the gain table has entries for labels 0..{len(gain) - 1}; the labels go up "
                f"to {largest:g} and must be whole numbers"
            )
        return np.asarray(gain, dtype=np.float64)[labels.astype(np.int64)]
    if gain == "linear":
        return labels
    if largest > _LARGEST_EXP2_LABEL:
        raise LabelRangeError(
            f"the largest label is {largest:g}, and gain='exp2' (2^y - 1) takes labels from 0 to "
            f"{_LARGEST_EXP2_LABEL}; use gain='linear' (a target says it as dcg(gain=linear)), a "
            "gain table (LightGBM calls it label_gain), or rescale the labels"
        )
    return exp2_gains(labels)


def _called(gain: Callable[[FloatArray], FloatArray], labels: FloatArray) -> FloatArray:
    """Call a gain function and validate the gains."""
    found = computed_column(gain(labels.copy()), len(labels), "what the function gain returns")
    bad = np.flatnonzero(~((found >= 0.0) & (found <= LARGEST)))
    if len(bad):
        at = int(bad[0])
        raise ParameterError(
            f"gain is a function with finite values from 0 to {LARGEST:g}, got {found[at]:g} for "
            f"the label {labels[at]:g}"
        )
    for at in {int(labels.argmin()), int(labels.argmax())}:
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = float(np.asarray(gain(labels[at : at + 1].copy())).reshape(-1)[0])
        if alone != found[at]:
            raise ParameterError(
                f"gain must map each label by itself, but it gives {alone:g} for the label "
                f"{labels[at]:g} alone and {found[at]:g} for it among {len(labels)}; use "
                "constants in place of what is read off the labels"
            )
    return found


def exp2_gains(labels: FloatArray) -> FloatArray:
    """Return ``2^y - 1``, accurate for small labels too."""
    if len(labels) and labels.min() >= 0.0 and labels.max() < 64.0:
        whole = labels.astype(np.uint8)
        if np.array_equal(whole, labels):
            return np.asarray((np.exp2(np.arange(64.0)) - 1.0)[whole])
    return np.where(labels < 0.5, np.expm1(labels * math.log(2.0)), np.exp2(labels) - 1.0)


def half_lives(n: int, half_life: float) -> FloatArray:
    """Return the discounts of ranks 1..n that halve every ``half_life - 1`` ranks."""
    return np.exp2(-np.arange(n) / (half_life - 1.0))


def discounts(n: int, k: int | None = None) -> FloatArray:
    """Return ``1 / log2(1 + rank)`` for ranks 1..n, zero beyond rank k.

    Parameters
    ----------
    n : int
        Number of ranks.
    k : int or None, default=None
        Cut-off; ``None`` for none.

    Returns
    -------
    array of shape (n,)
        The discounts of DCG.

    Examples
    --------
    >>> discounts(3, k=1)
    array([1., 0., 0.])
    """
    weights = 1.0 / np.log2(np.arange(2.0, n + 2.0))
    if k is not None:
        weights[k:] = 0.0
    return weights


def binarise(labels: FloatArray, threshold: float | None, groups: Groups) -> FloatArray:
    """Return labels as 0 and 1.

    Without a threshold the labels must be {0, 1} or {-1, +1}; with one, labels of at
    least the threshold are 1.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        Labels in query order.
    threshold : float or None
        Smallest label that is relevant.
    groups : Groups
        Queries, for the error message.

    Returns
    -------
    array of shape (n_rows,)
        1 for relevant items, else 0.

    Raises
    ------
    DataError
        For graded labels without a threshold; the message names the query of the first one.
    """
    if threshold is not None:
        return (labels >= threshold).astype(np.float64)
    positive = labels == 1.0
    negative = (labels == 0.0) | (labels == -1.0)
    bad = np.flatnonzero(~(positive | negative))
    if not len(bad) and np.any(labels == 0.0):
        bad = np.flatnonzero(labels == -1.0)  # -1, 0 and 1 together are three grades
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f"labels must be 0/1 or -1/+1 here, got {labels[row]:g} in query "
            f"{groups.query_of(row)!r}; for graded labels say which count as relevant, for "
            "example threshold=1"
        )
    return positive.astype(np.float64)


def debiased(
    values: Callable[[RankingData], FloatArray], per_item: bool, data: RankingData, what: str
) -> FloatArray:
    """Return utilities of clicks, with every click replaced by its unbiased relevance estimate.

    A utility that depends only on an item's own label is linear in a click of 0 or 1, so its mean
    over clicks is that of relevance. In a utility with a normaliser, which must be 0 without a
    click, only the item's own click is replaced.
    """
    estimates = data.columns[DEBIASED]
    if per_item:
        none, one = values(RankingData.from_arrays([0.0, 1.0], group=[1, 1]))
        if none == one:
            raise ParameterError(
                f"{what} is {none:g} with and without a click; leave out threshold="
            )
        return np.asarray(none + (one - none) * estimates)
    found = values(data)
    clicked = data.labels > 0.0
    if np.any(found[~clicked & ~np.isnan(found)]):
        raise ParameterError(
            f"{what} does not follow from clicks and propensities; use target=identity, dcg or "
            "precision"
        )
    of_click = np.maximum.reduceat(np.where(clicked, found, found * 0.0), data.groups.offsets[:-1])
    return np.asarray(data.groups.spread(of_click) * estimates)


def query_sums(values: FloatArray, groups: Groups) -> FloatArray:
    """Return the sum of each query's values, shape (n_queries,)."""
    if not groups.n_queries:
        return np.zeros(0)
    return np.add.reduceat(values, groups.offsets[:-1])


def best_sums(values: FloatArray, discount: FloatArray, groups: Groups) -> FloatArray:
    """Return the largest sum of discount times value of each query, shape (n_queries,)."""
    kernel = compiler.load("ranking.measures").best_sums
    counted = discount[: int(np.flatnonzero(discount).max(initial=-1)) + 1]
    sums = np.empty(groups.n_queries)
    threads.run_spans(
        lambda span: kernel(values, groups.offsets, counted, span, sums),
        threads.cut_into_spans(5.0 * groups.sizes),
    )
    for q in np.flatnonzero(np.isnan(sums)):  # of many different values
        worth = np.sort(values[groups.offsets[q] : groups.offsets[q + 1]])[::-1][: len(counted)]
        sums[q] = np.dot(worth, counted[: len(worth)])
    return sums


def rows_by_value(values: FloatArray, groups: Groups) -> npt.NDArray[Any]:
    """Return the rows of each query, largest value first, ties in row order."""
    order = np.empty(len(values), np.int32 if len(values) < 2**31 else np.int64)
    for first, last in _runs(groups):
        begin, end = groups.offsets[first], groups.offsets[last]
        queries = np.repeat(np.arange(last - first), groups.sizes[first:last])
        order[begin:end] = np.lexsort((-values[begin:end], queries)) + begin
    return order


def mid_ranks(values: FloatArray, groups: Groups) -> FloatArray:
    """Return ranks within each query, 1 for the largest; equal values share the mean rank."""
    order = rows_by_value(values, groups)
    ranked, owner = values[order], groups.spread(np.arange(groups.n_queries))
    new_block = np.ones(len(values), dtype=bool)
    new_block[1:] = (ranked[1:] != ranked[:-1]) | (owner[1:] != owner[:-1])
    block = np.cumsum(new_block) - 1
    first = np.flatnonzero(new_block)
    size = np.diff(np.append(first, len(values)))
    within = first - groups.offsets[owner[first]] if len(first) else first
    ranks = np.empty(len(values))
    ranks[order] = (within + (size + 1) / 2.0)[block]
    return ranks


@final
@dataclass(frozen=True, slots=True)
class Form:
    """Symbolic form of a utility: it computes it, and two can be compared for all labels.

    ``u_i(y) = a(n) gain(y_i) / total(y) + b(y)`` with a > 0: neither a nor b changes the order of
    expected utilities, so only the gain and the total are recorded.

    Parameters
    ----------
    gain : str
        ``linear`` y; ``exp2`` 2^y - 1; ``table`` the entry of ``at``; ``step`` 1 from the label
        ``at`` on (None: labels are 0/1 or -1/+1); ``excess`` max(y - at, 0); ``ranks`` the number
        of smaller labels, equal ones counting half; ``own`` whatever the object ``at`` computes.
    at : object
        Parameter of the gain.
    over : {"one", "sum", "pairs", "differences", "ideal"}
        The total: 1; the sum of gains; the number of (gain 1, gain 0) pairs; the sum of
        ``|y_i - y_j|`` over pairs; the largest discounted sum of gains.
    discount : object
        Discount of the ideal: ``log2`` or the half-life of a geometric one.
    k : int or None
        Cut-off of the ideal.
    low, high : float
        Range of allowed labels, if the gain does not determine it.
    signed : bool
        Whether every query with two labels has a negative u.
    """

    gain: str
    at: Any = None
    over: str = "one"
    discount: Any = None
    k: int | None = None
    low: float = -math.inf
    high: float = math.inf
    signed: bool = False

    @property
    def per_item(self) -> bool:
        """Whether u of an item depends on its own label alone."""
        own = self.gain in ("linear", "exp2", "table", "step", "excess") or callable(self.at)
        return own and self.over == "one" and not self.signed

    def parts(self, data: RankingData) -> tuple[FloatArray, FloatArray]:
        """Return the gain of every row, and the total of every query; NaN where it is not above 0.

        Dividing once, after the gains were summed, loses no digits of whole numbers.
        """
        worth, groups = self._gains(data), data.groups
        if self.over == "differences":  # above the smallest label, so that none is negative
            worth = worth - groups.spread(np.minimum.reduceat(worth, groups.offsets[:-1]))
            order = rows_by_value(worth, groups)
            place = np.arange(groups.n_rows) - groups.spread(groups.offsets[:-1])
            ahead = groups.spread(groups.sizes) - 1.0 - 2.0 * place
            found = query_sums(ahead * worth[order], groups)
            return worth, np.where(found > 0, found, np.nan)
        if self.over == "one":
            return worth, np.ones(groups.n_queries)
        if self.over == "ideal" and self.discount == "log2":
            found = ideal_dcg(worth, groups, self.k)
        elif self.over == "ideal":
            found = best_sums(worth, half_lives(groups.longest, self.discount), groups)
        else:
            found = query_sums(worth, groups)
            found = found * (groups.sizes - found) if self.over == "pairs" else found
        return worth, np.where(found > 0, found, np.nan)

    def values(self, data: RankingData) -> FloatArray:
        """Return u for every row, in query order; NaN for a query where it is undefined."""
        worth, totals = self.parts(data)
        return worth if self.over == "one" else worth / data.groups.spread(totals)

    def _gains(self, data: RankingData) -> FloatArray:
        labels, groups = data.labels, data.groups
        if self.gain == "step":
            return binarise(labels, self.at, groups)
        if self.gain == "excess":
            return np.maximum(labels - self.at, 0.0)
        if self.gain == "ranks":
            return groups.spread(groups.sizes) - mid_ranks(labels, groups)
        free = self.gain == "linear" and self.low < 0.0
        return labels if free else gains(labels, self.gain if self.at is None else self.at)


def gain_form(gain: Gain, **total: Any) -> Form:
    """Return the form of ``gains`` over a total."""
    if isinstance(gain, str):
        return Form(gain, low=0.0, high=31.0 if gain == "exp2" else math.inf, **total)
    return Form("own" if callable(gain) else "table", gain, **total)


@dataclass(frozen=True, slots=True)
class AbstractUtility(ABC):
    """Per-item value of a metric; the fields are its parameters."""

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    formula: ClassVar[str] = ""

    @property
    def form(self) -> Form:
        """Symbolic form; a custom utility is only known to equal itself."""
        return Form("own", self)

    @property
    def per_item(self) -> bool:
        """Whether u of an item depends on its own label alone."""
        return self.form.per_item

    @abstractmethod
    def values(self, data: RankingData) -> FloatArray:
        """Return u for every row, in query order; NaN for a query where it is undefined."""

    @abstractmethod
    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Return an upper bound of u for queries of these sizes, or None if there is none."""

    def parts(self, data: RankingData) -> tuple[FloatArray, FloatArray]:
        """Return values of rows, and of queries what divides them to yield u."""
        return self.values(data), np.ones(data.groups.n_queries)


@dataclass(frozen=True, slots=True)
class _AbstractOfForm(AbstractUtility):
    """A utility that its form computes."""

    def __post_init__(self) -> None:
        k = getattr(self, "k", None)
        if k is not None and not 1 <= k <= LARGEST_CUTOFF:
            raise ParameterError(
                f"{self.name}: a cut-off is a whole number of at least 1 and below 2^63; got {k}"
            )
        check_gain(getattr(self, "gain", "linear"))
        check_threshold(self.name, getattr(self, "threshold", None))

    def values(self, data: RankingData) -> FloatArray:
        """Return u for every row, in query order; NaN for a query where it is undefined."""
        return self.form.values(data)

    def parts(self, data: RankingData) -> tuple[FloatArray, FloatArray]:
        """Return gains of rows, and the totals of queries."""
        return self.form.parts(data)

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """One: a single item earns at most what all can."""
        return np.ones(len(sizes))


@final
@dataclass(frozen=True, slots=True)
class IdentityUtility(_AbstractOfForm):
    """The label is the utility."""

    name: ClassVar[str] = "identity"
    formula: ClassVar[str] = "y"

    @property
    def form(self) -> Form:
        """The label itself; any number."""
        return Form("linear")

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Labels have no bound that is known in advance."""
        return None


@final
@dataclass(frozen=True, slots=True)
class DcgUtility(_AbstractOfForm):
    """Gain of the label, as in DCG; the cut-off of the metric does not change it.

    Parameters
    ----------
    gain : "exp2", "linear", tuple of float or callable, default="exp2"
        How labels become gains; see :func:`gains`. A function must not decrease up to
        ``max_grade``, as the gain of that label bounds the utility.
    k : int or None
        Accepted so that ``target="dcg@10"`` can be written; it has no effect.
    max_grade : float, default=4
        Largest label that can occur; it bounds the utility and is never read off the data.
    """

    gain: Gain = "exp2"
    k: int | None = None
    max_grade: float = 4.0

    name: ClassVar[str] = "dcg"
    formula: ClassVar[str] = "2^y - 1"

    def __post_init__(self) -> None:
        super(DcgUtility, self).__post_init__()
        largest = 31.0 if self.gain == "exp2" else LARGEST  # the largest labels that are taken
        if not 0 < self.max_grade <= largest:
            raise ParameterError(
                f"dcg: max_grade must be above 0 and at most {largest:g}, got {self.max_grade:g}"
            )

    @property
    def form(self) -> Form:
        """The gain."""
        return gain_form(self.gain)

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Gain of the largest grade."""
        if isinstance(self.gain, tuple):
            return np.full(len(sizes), max(self.gain))
        return np.full(len(sizes), float(gains(np.array([self.max_grade]), self.gain)[0]))


@final
@dataclass(frozen=True, slots=True)
class NdcgUtility(_AbstractOfForm):
    """Gain divided by the ideal DCG@k of the query; undefined when that is zero.

    Parameters
    ----------
    gain : "exp2", "linear", tuple of float or callable, default="exp2"
        How labels become gains; see :func:`gains`.
    k : int or None, default=None
        Cut-off of the ideal DCG.
    """

    gain: Gain = "exp2"
    k: int | None = None

    name: ClassVar[str] = "ndcg"
    formula: ClassVar[str] = "(2^y - 1) / ideal DCG@k"

    @property
    def form(self) -> Form:
        """The gain over the ideal."""
        return gain_form(self.gain, over="ideal", discount="log2", k=self.k)


@dataclass(frozen=True, slots=True)
class _AbstractBinaryUtility(_AbstractOfForm):
    """A utility of binary labels.

    Parameters
    ----------
    k : int or None
        Accepted so that a metric's name with a cut-off can be written; it has no effect.
    threshold : float or None
        Labels of at least this count as relevant; needed for graded labels.
    """

    k: int | None = None
    threshold: float | None = None

    over: ClassVar[str] = "one"

    @property
    def form(self) -> Form:
        """A step, over the total."""
        return Form("step", self.threshold, over=self.over)


@final
@dataclass(frozen=True, slots=True)
class PrecisionUtility(_AbstractBinaryUtility):
    """One for a relevant item, else zero."""

    name: ClassVar[str] = "precision"
    aliases: ClassVar[tuple[str, ...]] = ("prec", "p")
    formula: ClassVar[str] = "y"


@final
@dataclass(frozen=True, slots=True)
class WtaUtility(_AbstractBinaryUtility):
    """Winner takes all, which is precision at 1."""

    name: ClassVar[str] = "wta"
    formula: ClassVar[str] = "y"


@final
@dataclass(frozen=True, slots=True)
class RecallUtility(_AbstractBinaryUtility):
    """One over the number of relevant items, for each of them; undefined without one."""

    name: ClassVar[str] = "recall"
    aliases: ClassVar[tuple[str, ...]] = ("rec",)
    formula: ClassVar[str] = "y / P"
    over: ClassVar[str] = "sum"


@final
@dataclass(frozen=True, slots=True)
class MapUtility(_AbstractBinaryUtility):
    """The utility of recall, used as target for average precision.

    Average precision has no utility in general. Losses that preserve the order of this one
    are calibrated for it on distributions with the reinforcement property
    (Ramaswamy, Agarwal and Tewari, "Convex calibrated surrogates for low-rank loss
    matrices with applications to subset ranking losses", NIPS 2013, Cor. 5).
    """

    name: ClassVar[str] = "map"
    aliases: ClassVar[tuple[str, ...]] = ("ap",)
    formula: ClassVar[str] = "y / P"
    over: ClassVar[str] = "sum"


@final
@dataclass(frozen=True, slots=True)
class AucUtility(_AbstractBinaryUtility):
    """One over the number of (relevant, other) pairs; undefined when all labels are alike."""

    name: ClassVar[str] = "auc"
    formula: ClassVar[str] = "y / (P N)"
    over: ClassVar[str] = "pairs"

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Reached by one relevant item: 1 / (n - 1)."""
        return 1.0 / np.maximum(sizes - 1, 1)


@final
@dataclass(frozen=True, slots=True)
class SpearmanUtility(_AbstractOfForm):
    """Number of items below: n minus the rank by label, equal labels sharing mid-ranks."""

    name: ClassVar[str] = "spearman"
    formula: ClassVar[str] = "n - rank of y"

    @property
    def form(self) -> Form:
        """Mid-ranks of the labels."""
        return Form("ranks")

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Number of other items, at least 1 so that a bound is positive."""
        return np.maximum(sizes - 1.0, 1.0)


@final
@dataclass(frozen=True, slots=True)
class EruUtility(_AbstractOfForm):
    """Excess of the label over a neutral grade.

    Parameters
    ----------
    neutral : float, default=0
        Grade that is worth nothing.
    half_life : float, default=5
        Rank at which the metric's discount is one half; it does not change the utility.
    max_grade : float, default=4
        Largest label that can occur; it bounds the utility and is never read off the data.
    """

    neutral: float = 0.0
    half_life: float = 5.0
    max_grade: float = 4.0

    name: ClassVar[str] = "eru"
    formula: ClassVar[str] = "max(y - neutral, 0)"

    def __post_init__(self) -> None:
        if not self.half_life > 1:
            raise ParameterError(f"eru: half_life must be above 1, got {self.half_life}")
        if not -LARGEST <= self.neutral <= LARGEST:
            raise ParameterError(
                f"eru: neutral must be a number between -{LARGEST:g} and {LARGEST:g}, got "
                f"{self.neutral}"
            )
        if not self.neutral < self.max_grade < np.inf:
            raise ParameterError(
                f"eru: max_grade must be above neutral={self.neutral:g}, got {self.max_grade:g}"
            )

    @property
    def form(self) -> Form:
        """The excess; any number."""
        return Form("excess", self.neutral)

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Excess of the largest grade."""
        return np.full(len(sizes), self.max_grade - self.neutral)


@final
@dataclass(frozen=True, slots=True)
class NetDegreeUtility(AbstractUtility):
    """Net degree in the preference graph of the labels: ``n y - sum(y)``.

    It may be negative, so it is only for losses that allow negative utilities: ``squared``.
    """

    name: ClassVar[str] = "net_degree"
    formula: ClassVar[str] = "n y_i - sum_j y_j"

    @property
    def form(self) -> Form:
        """The label times n, up to a constant per query."""
        return Form("linear", signed=True)

    def values(self, data: RankingData) -> FloatArray:
        """Return the net degrees."""
        sizes = data.groups.spread(data.groups.sizes)
        return sizes * data.labels - data.groups.spread(query_sums(data.labels, data.groups))

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Labels have no bound that is known in advance."""
        return None


@final
@dataclass(frozen=True, slots=True)
class DisagreementUtility(_AbstractOfForm):
    """Label over the sum of all differences of labels, as in pairwise disagreement of labels.

    A swap of neighbours changes the disagreement by the difference of their labels over the total,
    so sorting by the expectation of this is best for it.

    Parameters
    ----------
    normalize : bool, default=True
        Whether the metric divides by the total; then labels count above the query's smallest one.
    """

    normalize: bool = True

    name: ClassVar[str] = "pairwise_disagreement"
    aliases: ClassVar[tuple[str, ...]] = ("disagreement",)
    formula: ClassVar[str] = "(y - min y) / sum |y_i - y_j|"

    @property
    def form(self) -> Form:
        """The label over the differences."""
        return Form("linear", over="differences" if self.normalize else "one")

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """With the largest and the smallest label, each other one adds at least their difference.

        So a total is at least n - 1 times that.
        """
        return 1.0 / np.maximum(sizes - 1.0, 1.0) if self.normalize else None


def ideal_dcg(gain: FloatArray, groups: Groups, k: int | None) -> FloatArray:
    """Return the largest DCG@k of each query, shape (n_queries,)."""
    return best_sums(gain, discounts(groups.longest, k), groups)


BUILTIN_UTILITIES: tuple[type[AbstractUtility], ...] = (
    IdentityUtility,
    DcgUtility,
    NdcgUtility,
    PrecisionUtility,
    RecallUtility,
    WtaUtility,
    AucUtility,
    SpearmanUtility,
    EruUtility,
    MapUtility,
    NetDegreeUtility,
    DisagreementUtility,
)


def _runs(groups: Groups) -> Iterator[tuple[int, int]]:
    """Yield runs of queries with about ``_ROWS_AT_ONCE`` rows, at least one query each."""
    first = 0
    while first < groups.n_queries:
        reach = groups.offsets[first] + _ROWS_AT_ONCE
        last = int(np.searchsorted(groups.offsets, reach, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last
