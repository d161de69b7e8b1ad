"""Utilities u(y): what each item of a query is worth to a metric.

A positional metric is the sum over ranks of ``discount(rank) * u(item at that rank)``. The best
ranking sorts items by expected utility, so that is what an objective must learn. A utility
depends on the labels of one query only. Gains, discounts and binary labels, which metrics use
too, are defined here.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from gbmrank.data.columns import LARGEST
from gbmrank.data.queries import DEBIASED, Groups, RankingData
from gbmrank.data.query_order import mid_ranks, query_sums, rows_by_value
from gbmrank.errors import ParameterError
from gbmrank.losses.gains import (
    Gain,
    best_sums,
    binarise,
    check_gain,
    check_threshold,
    discounts,
    gains,
    half_lives,
)
from gbmrank.types import FloatArray, IntArray

LARGEST_CUTOFF = 2**63 - 1


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
        Whether it is the net degree ``n y - sum(y)``, negative in every query with two labels.
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
        if self.over == "one":
            return worth, np.ones(groups.n_queries)
        if self.over == "differences":  # above the smallest label, so that none is negative
            worth = worth - groups.spread(np.minimum.reduceat(worth, groups.offsets[:-1]))
            order = rows_by_value(worth, groups)
            place = np.arange(groups.n_rows) - groups.spread(groups.offsets[:-1])
            ahead = groups.spread(groups.sizes) - 1.0 - 2.0 * place
            found = query_sums(ahead * worth[order], groups)
        elif self.over == "ideal" and self.discount == "log2":
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
        if self.signed:
            n = groups.spread(groups.sizes)
            return n * labels - groups.spread(query_sums(labels, groups))
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
    """A utility that its form computes: values, totals, and what one item can earn at most."""

    def __post_init__(self) -> None:
        k = getattr(self, "k", None)
        if k is not None and not 1 <= k <= LARGEST_CUTOFF:
            raise ParameterError(
                f"{self.name}: a cut-off is a whole number of at least 1 and below 2^63; got {k}"
            )
        check_gain(getattr(self, "gain", "linear"))
        check_threshold(self.name, getattr(self, "threshold", None))

    def values(self, data: RankingData) -> FloatArray:
        return self.form.values(data)

    def parts(self, data: RankingData) -> tuple[FloatArray, FloatArray]:
        return self.form.parts(data)

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        form, others = self.form, np.maximum(sizes - 1.0, 1.0)
        if form.over in ("pairs", "differences"):  # each other item adds at least as much to it
            return 1.0 / others
        if form.gain == "ranks":
            return others
        return None if (form.gain, form.over) == ("linear", "one") else np.ones(len(sizes))


@final
@dataclass(frozen=True, slots=True)
class IdentityUtility(_AbstractOfForm):
    """The label is the utility."""

    name: ClassVar[str] = "identity"
    formula: ClassVar[str] = "y"
    form: ClassVar[Form] = Form("linear")


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


@final
@dataclass(frozen=True, slots=True)
class SpearmanUtility(_AbstractOfForm):
    """Number of items below: n minus the rank by label, equal labels sharing mid-ranks."""

    name: ClassVar[str] = "spearman"
    formula: ClassVar[str] = "n - rank of y"
    form: ClassVar[Form] = Form("ranks")


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
class NetDegreeUtility(_AbstractOfForm):
    """Net degree in the preference graph of the labels: ``n y - sum(y)``.

    It may be negative, so it is only for losses that allow negative utilities: ``squared``.
    """

    name: ClassVar[str] = "net_degree"
    formula: ClassVar[str] = "n y_i - sum_j y_j"
    form: ClassVar[Form] = Form("linear", signed=True)


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
