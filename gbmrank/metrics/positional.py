"""Positional metrics: sums over ranks of a discount times the utility of the item there.

DCG, NDCG, RBP, ERU and Spearman take graded labels; precision, recall, winner takes all and AUC
take binary labels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeAlias, final

import numpy as np

from gbmrank.data.columns import LARGEST, computed_column
from gbmrank.data.queries import DEBIASED, RankingData
from gbmrank.data.query_order import query_sums
from gbmrank.errors import MetricError, PluginContractError
from gbmrank.kernels.jit import compiler
from gbmrank.kernels.layout import Positions, SwapTerms
from gbmrank.losses.gains import Gain, check_gain, discounts, half_lives
from gbmrank.losses.utilities import (
    AbstractUtility,
    AucUtility,
    DcgUtility,
    EruUtility,
    Form,
    NdcgUtility,
    PrecisionUtility,
    RecallUtility,
    SpearmanUtility,
    WtaUtility,
    debiased,
)
from gbmrank.metrics.base import AbstractBoundMetric, AbstractMetric, BoundKernel, check_choice
from gbmrank.types import FloatArray, IntArray

Discount: TypeAlias = str | tuple[float, ...] | Callable[[FloatArray], FloatArray]
"""A name, a table for the ranks 1, 2, ... (zero beyond it), or a function of ranks."""

_DISCOUNTS = ("log2", "reciprocal", "constant")
_RANKS = 1000  # at which a function of ranks is checked when the metric is made


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractPositional(AbstractMetric):
    r"""A positional metric: one of the (u, phi) family.

    .. math::
        r(y, o) = b(y) + \sum_{k=1}^n \phi(k)\, u_{o_k}(y)

    with a non-increasing discount :math:`\phi \ge 0`. Tied items at the ranks a+1..a+m
    contribute the mean of their discounts times the sum of their utilities. The best
    ranking sorts by utility, so an objective that learns the order of expected utilities is
    calibrated for every metric with that utility.

    References
    ----------
    Calauzenes, Usunier and Gallinari, "Calibration and regret bounds for order-preserving
    surrogate losses in learning to rank", Machine Learning 93, 2013, Def. 2.1.
    """

    upwards: ClassVar[bool] = False
    """Whether the discount is a function of the number of items below, not of the rank."""
    utility_class: ClassVar[type[AbstractUtility] | None] = None
    """What an item is worth; it gets the fields that it shares with the metric."""
    swap_kind: ClassVar[str | None] = "positional"

    def __init_subclass__(cls) -> None:
        base = AbstractPositional
        own = (cls.utility_class, cls.utility, cls.utilities)
        worth = own != (None, base.utility, base.utilities)
        declared: object = cls.discount
        ranks = declared in _DISCOUNTS or cls.upwards
        if hasattr(cls, "name") and not (
            worth and (ranks or cls.rank_discounts is not base.rank_discounts)
        ):
            raise PluginContractError(
                f"the positional metric {cls.name!r} needs a utility and a discount. Declare "
                "utility, or define utilities(data). Declare discount as one of "
                f"{', '.join(_DISCOUNTS)}, or define rank_discounts(n)"
            )

    @property
    def utility(self) -> AbstractUtility:
        """What an item is worth, and so the target of an objective that learns this metric."""
        if self.utility_class is None:
            return MetricUtility(self)
        own, shared = fields(self), {each.name for each in fields(self.utility_class)}
        return self.utility_class(
            **{each.name: getattr(self, each.name) for each in own if each.name in shared}
        )

    @property
    def discount(self) -> Discount:
        """What a rank is worth: a name, or "falling" if ``rank_discounts`` never rises."""
        return "unknown"

    @property
    def form(self) -> Form:
        """Symbolic form of the utility; a custom one is only known to equal itself."""
        return self.utility.form

    @property
    def fall(self) -> str:
        """Whether the discount is "constant" in every query, "not rising", or "unknown"."""
        if self.upwards or type(self).rank_discounts is not AbstractPositional.rank_discounts:
            return "not rising" if self.discount == "falling" else "unknown"
        even = self.discount == "constant" and getattr(self, "k", None) is None
        return "constant" if even else "not rising"

    @property
    def constant(self) -> bool:
        """Whether every ranking of a query has the same value."""
        return self.fall == "constant"

    @property
    def linear(self) -> bool:
        """Whether the utility depends only on the item's own label, without normalisation."""
        return self.form.per_item

    def parts(self, data: RankingData) -> tuple[FloatArray, FloatArray]:
        """Return values of rows, and of queries what divides them to yield the utility."""
        return self.utility.parts(data)

    def utilities(self, data: RankingData) -> FloatArray:
        """Return u for every row, in query order; NaN for a query where it is undefined."""
        worth, totals = self.parts(data)
        return worth / data.groups.spread(totals)

    def rank_discounts(self, n: int) -> FloatArray:
        """Return the discounts of the ranks 1..n (or of 0..n-1 items below) up to a factor."""
        table = np.arange(float(n)) if self.upwards else _by_rank(self.discount, n)
        return cut(table, getattr(self, "k", None))

    def factors(self, sizes: IntArray) -> FloatArray:
        """Return what multiplies the discounts in queries of these sizes."""
        return np.ones(len(sizes))

    def divisors(self, sizes: IntArray) -> FloatArray:
        """Return one over the factors; override it if it is known exactly."""
        return 1.0 / self.factors(sizes)

    def offsets(self, data: RankingData) -> FloatArray:
        """Return b(y) for every query."""
        return np.zeros(data.groups.n_queries)

    def discounts(self, n: int) -> FloatArray:
        """Return phi(1), ..., phi(n) for a query of n items."""
        table = self.rank_discounts(n)
        return (table[::-1] if self.upwards else table) / self.divisors(np.array([n]))

    def summed(self, data: RankingData) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the values to sum, the offset of each query, and the divisor of each query.

        The value of a query is ``(offset + sum of discount * value) / divisor``. Whole numbers that
        are divided only once, at the end, lose no digits: three hits out of five are 0.6.
        """
        worth, totals = self.parts(data)
        divisors = self.divisors(data.groups.sizes) * totals
        return worth, self.offsets(data) * divisors, divisors

    def swap_terms(self, data: RankingData) -> SwapTerms:
        """Return utilities and discounts."""
        sizes = data.groups.sizes
        table = np.array(self.rank_discounts(int(sizes.max(initial=1))))
        scale, cuts = 1.0 / self.divisors(sizes), np.minimum(sizes, self._counted(table))
        return SwapTerms(self.utilities(data), scale, cuts, table, self.upwards)

    def _counted(self, table: FloatArray) -> int:
        """Return the last rank with a discount."""
        return len(table) if self.upwards else int(np.flatnonzero(table)[-1:].max(initial=0)) + 1

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Compute utilities, discounts and their running sums."""
        groups, longest = data.groups, int(data.groups.sizes.max(initial=1))
        given = self.rank_discounts(longest)
        table = computed_column(given, longest, f"rank_discounts of {self.name}")
        # Extended precision where the machine has it: differences of these sums are used.
        cumulative = np.concatenate([[0.0], np.cumsum(table, dtype=np.longdouble)])
        counted = self._counted(table)
        utilities, offsets, divisors = self.summed(data)
        if DEBIASED in data.columns and self.linear:
            what = f"what {self.name} counts"
            utilities = debiased(lambda rows: self.summed(rows)[0], True, data, what)
        items = Positions(
            np.array(computed_column(utilities, groups.n_rows, f"utilities of {self.name}")),
            computed_column(divisors, groups.n_queries, f"divisors of {self.name}"),
            counted,
            computed_column(offsets, groups.n_queries, f"offsets of {self.name}"),
            table,
            cumulative.astype(np.float64),
            self.upwards,
        )
        depth = counted if counted < longest else None
        return BoundKernel(
            self, data, compiler.load("ranking.measures").positional_per_query, items, depth
        )


@final
@dataclass(frozen=True, slots=True)
class MetricUtility(AbstractUtility):
    """Utility of a positional metric that defines its own; its text is that of the metric."""

    metric: AbstractPositional

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the metric."""
        return self.metric.name

    def values(self, data: RankingData) -> FloatArray:
        """Return u for every row, in query order; NaN for a query where it is undefined."""
        return self.metric.utilities(data)

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """No bound is known in advance."""
        return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Positional(AbstractPositional):
    r"""A custom positional metric: any utility with any non-increasing discount.

    .. math:: \sum_{k=1}^{n} \phi(k)\, u_{o_k}(y)

    Ties: the exact mean over all orderings of tied items. Undefined: where the utility is.

    Parameters
    ----------
    utility : utility, default=dcg
        What an item is worth; a registered utility or any subclass of AbstractUtility.
    discount : str, tuple of float or callable, default="log2"
        ``"log2"`` is 1/log2(1+k), ``"reciprocal"`` is 1/k, ``"constant"`` is 1; a table
        contains the discounts of the ranks 1, 2, ... and is zero beyond its end; a
        callable takes an array of ranks. It must not increase and not be negative.

    References
    ----------
    Calauzenes, Usunier and Gallinari, "Calibration and regret bounds for order-preserving
    surrogate losses in learning to rank", Machine Learning 93, 2013, Def. 2.1.

    Examples
    --------
    Rank-biased precision with persistence 0.8:

    >>> from gbmrank.metrics import Ranked
    >>> from gbmrank.losses.utilities import PrecisionUtility
    >>> rbp = Positional(utility=PrecisionUtility(), discount=lambda k: 0.2 * 0.8 ** (k - 1))
    >>> data = RankingData.from_arrays([0, 1])
    >>> float(rbp.bind(data).score(Ranked(np.array([2.0, 1.0]), data.groups)).__round__(12))
    0.16
    """

    utility: AbstractUtility = field(
        default=DcgUtility(), metadata={"kind": "utility", "shown": True}
    )
    discount: Discount = "log2"
    k: int | None = None

    name: ClassVar[str] = "positional"
    formula: ClassVar[str] = "sum_k discount(k) u(item at rank k)"
    reference: ClassVar[str] = "Calauzenes et al. 2013, Def. 2.1"

    def check(self) -> None:
        """Check the discount."""
        if isinstance(self.discount, list):
            object.__setattr__(self, "discount", tuple(self.discount))
        if isinstance(self.discount, str):
            check_choice(self.name, "discount", self.discount, _DISCOUNTS)
        elif self.discount == () or not (
            isinstance(self.discount, tuple) or callable(self.discount)
        ):
            raise MetricError(
                f"positional: discount must be one of {', '.join(_DISCOUNTS)}, a table such as "
                f"[1, 0.5, 0.25] or a function of ranks; got {self.discount!r}"
            )
        else:  # a whole table; of a function, ranks beyond these are checked where data has them
            self.rank_discounts(len(self.discount) if isinstance(self.discount, tuple) else _RANKS)

    @property
    def fall(self) -> str:
        """Constant for that name or a table of zeros; increasing discounts are rejected."""
        zeros = isinstance(self.discount, tuple) and not any(self.discount)
        even = self.discount == "constant" and self.k is None
        return "constant" if zeros or even else "not rising"

    def rank_discounts(self, n: int) -> FloatArray:
        """Return the discounts of the ranks 1..n, zero beyond k."""
        table = _by_rank(self.discount, n)
        with np.errstate(invalid="ignore"):  # NaN is between no two numbers
            allowed = (table >= 0) & (table <= LARGEST)
            allowed[1:] &= np.diff(table) <= 0
        if not allowed.all():
            at = int(allowed.argmin())
            before = f", after {table[at - 1]:g}" if at else ""
            raise MetricError(
                "positional: a discount is finite, not negative and does not increase with the "
                f"rank; got {table[at]:g} at rank {at + 1}{before}, and {LARGEST:g} is the largest "
                "that is taken"
            )
        return cut(table, self.k)


def _by_rank(discount: Discount, n: int) -> FloatArray:
    ranks = np.arange(1.0, n + 1.0)
    if callable(discount):
        return np.broadcast_to(np.asarray(discount(ranks), dtype=np.float64), (n,))
    if isinstance(discount, tuple):
        table = np.zeros(max(n, len(discount)))
        table[: len(discount)] = discount
        return table[:n]
    known = {"log2": discounts(n), "reciprocal": 1.0 / ranks, "constant": np.ones(n)}
    return known[discount]


def cut(table: FloatArray, k: int | None) -> FloatArray:
    """Set discounts to zero beyond rank k.

    Parameters
    ----------
    table : array of shape (n,)
        Discounts of the ranks 1..n.
    k : int or None
        Cut-off; ``None`` for none.

    Returns
    -------
    array of shape (n,)
        The discounts.

    Examples
    --------
    >>> cut(np.array([1.0, 0.5, 0.25]), 2)
    array([1. , 0.5, 0. ])
    """
    return table if k is None else np.where(np.arange(len(table)) < k, table, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _AbstractGain(AbstractPositional):
    gain: Gain = "exp2"
    k: int | None = None

    discount: ClassVar[str] = "log2"

    def check(self) -> None:
        """Check the gain."""
        _check_gain(self)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DCG(_AbstractGain):
    r"""Discounted cumulative gain.

    .. math:: \mathrm{DCG@}k = \sum_{r \le k} \frac{2^{y_{o_r}} - 1}{\log_2(1 + r)}

    Ties: the exact mean over all orderings of tied items. Never undefined; 0 without a relevant
    item.

    References
    ----------
    Jarvelin and Kekalainen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS
    20(4), 2002. McSherry and Najork, "Computing information retrieval performance measures
    efficiently in the presence of tied scores", ECIR 2008.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("dcg@1").score([0, 2], [1.0, 1.0])
    1.5
    """

    name: ClassVar[str] = "dcg"
    formula: ClassVar[str] = "sum_{r<=k} (2^y - 1) / log2(1 + r)"
    reference: ClassVar[str] = "Jarvelin and Kekalainen 2002"
    value_range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    utility_class: ClassVar[type[AbstractUtility]] = DcgUtility


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NDCG(_AbstractGain):
    r"""Normalised discounted cumulative gain.

    .. math:: \mathrm{NDCG@}k = \frac{\mathrm{DCG@}k}{\max_o \mathrm{DCG@}k(o)}

    Ties: the exact mean over all orderings of tied items. No relevant item: undefined.

    Parameters
    ----------
    k : int or None, default=None
        Last rank that counts, also in the ideal; ``None`` counts every rank.

    References
    ----------
    Jarvelin and Kekalainen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS
    20(4), 2002. McSherry and Najork, "Computing information retrieval performance measures
    efficiently in the presence of tied scores", ECIR 2008.

    Examples
    --------
    Two documents tie for the only counted rank and one of them is relevant:

    >>> import gbmrank
    >>> gbmrank.metric("ndcg@1").per_query([1, 0], [1.0, 1.0])
    array([0.5])
    """

    name: ClassVar[str] = "ndcg"
    aliases: ClassVar[tuple[str, ...]] = ("ndcg_cut",)
    formula: ClassVar[str] = "DCG@k / largest DCG@k"
    reference: ClassVar[str] = "Jarvelin and Kekalainen 2002"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    utility_class: ClassVar[type[AbstractUtility]] = NdcgUtility


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RBP(AbstractPositional):
    r"""Rank-biased precision: a reader continues to the next rank with probability p.

    .. math:: \mathrm{RBP} = (1 - p) \sum_{r \le k} p^{r - 1}\, g(y_{o_r})

    Ties: the exact mean over all orderings of tied items. Never undefined. At most 1 if gains are
    at most 1; use a table of such gains for graded labels.

    Parameters
    ----------
    p : float, default=0.8
        Persistence, between 0 and 1.
    gain : "linear", "exp2" or tuple of float, default="linear"
        The label itself, ``2^y - 1``, or a table indexed by whole labels.
    threshold : float or None, default=None
        Labels of at least this are relevant: gain 1, others 0.

    References
    ----------
    Moffat and Zobel, "Rank-biased precision for measurement of retrieval effectiveness", ACM
    TOIS 27(1), 2008.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("rbp(p=0.5)").score([0, 1], [2.0, 1.0])
    0.25
    """

    p: float = 0.8
    gain: Gain = "linear"
    threshold: float | None = None
    k: int | None = None

    name: ClassVar[str] = "rbp"
    aliases: ClassVar[tuple[str, ...]] = ("rank_biased_precision",)
    formula: ClassVar[str] = "(1 - p) sum_{r<=k} p^(r-1) gain(item at rank r)"
    reference: ClassVar[str] = "Moffat and Zobel 2008"
    value_range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    discount: ClassVar[str] = "falling"

    def check(self) -> None:
        """Check the persistence and the gain."""
        if not 0.0 < self.p < 1.0:
            raise MetricError(f"rbp: the persistence p lies between 0 and 1, got {self.p!r}")
        _check_gain(self)

    @property
    def utility(self) -> AbstractUtility:
        """The gain, or 0 and 1."""
        if self.threshold is not None:
            return PrecisionUtility(threshold=self.threshold)
        return DcgUtility(gain=self.gain)

    def rank_discounts(self, n: int) -> FloatArray:
        """Return the probability that a reader stops at a rank."""
        return cut((1.0 - self.p) * np.power(self.p, np.arange(n, dtype=np.float64)), self.k)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ERU(AbstractPositional):
    r"""Expected rank utility, with a discount that halves every ``half_life - 1`` ranks.

    .. math:: \sum_i (y_i - v)_+ \, 2^{(1 - \mathrm{rank}_i) / (w - 1)}

    Ties: the exact mean over all orderings of tied items. Never undefined, except if normalised,
    for a query where no label exceeds the neutral grade.

    Parameters
    ----------
    neutral : float, default=0
        Grade v that is worth nothing.
    half_life : float, default=5
        Rank w at which the discount is one half; above 1.
    normalize : bool, default=False
        Divide by the largest value over all rankings.

    References
    ----------
    Breese, Heckerman and Kadie, "Empirical analysis of predictive algorithms for
    collaborative filtering", UAI 1998; Ramaswamy, Agarwal and Tewari, "Convex calibrated
    surrogates for low-rank loss matrices", NIPS 2013, sec. 5.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("eru(half_life=3)").score([0, 0, 3], [3.0, 2.0, 1.0])
    1.5
    """

    neutral: float = 0.0
    half_life: float = 5.0
    normalize: bool = False

    name: ClassVar[str] = "eru"
    formula: ClassVar[str] = "sum_i max(y_i - neutral, 0) 2^((1 - rank_i) / (half_life - 1))"
    reference: ClassVar[str] = "Ramaswamy et al. 2013, sec. 5"
    value_range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    utility_class: ClassVar[type[AbstractUtility]] = EruUtility
    discount: ClassVar[str] = "falling"

    def check(self) -> None:
        """Check the neutral grade and the half-life; grades may be of any size."""
        EruUtility(self.neutral, self.half_life, max_grade=2.0 * LARGEST)

    @property
    def form(self) -> Form:
        """The excess, over the ideal where normalised."""
        return Form("excess", self.neutral, *(("ideal", self.half_life) if self.normalize else ()))

    def parts(self, data: RankingData) -> tuple[FloatArray, FloatArray]:
        """Return the excess, and the largest sum if normalised."""
        return self.form.parts(data)

    def rank_discounts(self, n: int) -> FloatArray:
        """Return the powers of one half."""
        return half_lives(n, self.half_life)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spearman(AbstractPositional):
    r"""Spearman's rank correlation of scores and labels.

    .. math:: 1 - \frac{6}{n (n^2 - 1)} \sum_i (\mathrm{rank}_i - \mathrm{rank}(y_i))^2

    Ties: the exact mean over all orderings of tied items. Equal labels share mid-ranks, which is
    the mean over all orderings of equal labels. The denominator is not renormalised, so with
    ties the value differs from ``scipy.stats.spearmanr``; it is 0 if all scores tie. One item:
    undefined.

    References
    ----------
    Calauzenes, Usunier and Gallinari, "Calibration and regret bounds for order-preserving
    surrogate losses in learning to rank", Machine Learning 93, 2013, Table 1.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("spearman").score([3, 1, 2], [3.0, 1.0, 2.0])
    1.0
    """

    name: ClassVar[str] = "spearman"
    formula: ClassVar[str] = "1 - 6 sum_i (rank_i - label rank_i)^2 / (n (n^2 - 1))"
    reference: ClassVar[str] = "Calauzenes et al. 2013, Table 1"
    value_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    utility_class: ClassVar[type[AbstractUtility]] = SpearmanUtility
    upwards: ClassVar[bool] = True
    discount: ClassVar[str] = "falling"

    def divisors(self, sizes: IntArray) -> FloatArray:
        """Return ``n (n^2 - 1) / 12``."""
        n = sizes.astype(np.float64)
        return np.where(sizes > 1, n * (n * n - 1.0), np.nan) / 12.0

    def offsets(self, data: RankingData) -> FloatArray:
        """Return ``-3 (n - 1) / (n + 1)``."""
        n = data.groups.sizes
        return -3.0 * (n - 1.0) / (n + 1.0)

    def summed(self, data: RankingData) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Subtract ``n (n - 1)^2 / 4`` before the division."""
        n = data.groups.sizes.astype(np.float64)
        return self.utilities(data), -n * (n - 1.0) ** 2 / 4.0, self.divisors(data.groups.sizes)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Precision(AbstractPositional):
    r"""Share of relevant items among the first k ranks.

    .. math:: \mathrm{Prec@}k = \frac{1}{k} \sum_{r \le k} y_{o_r}

    Ties: the exact mean over all orderings of tied items. Never undefined.

    Parameters
    ----------
    k : int or None, default=None
        Last rank that counts; ``None`` is the number of items of the query.
    divisor : {"k", "min"}, default="k"
        Divide by k, or, as XGBoost does, by the number of items where that is smaller.

    References
    ----------
    Manning, Raghavan and Schutze, "Introduction to information retrieval", Cambridge
    University Press 2008, sec. 8.4.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("precision@4").score([0, 1], [2.0, 1.0])
    0.25
    """

    k: int | None = None
    threshold: float | None = None
    divisor: str = "k"

    name: ClassVar[str] = "precision"
    aliases: ClassVar[tuple[str, ...]] = ("prec", "p", "pre")
    formula: ClassVar[str] = "relevant items among the first k / k"
    reference: ClassVar[str] = "Manning et al. 2008, sec. 8.4"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    utility_class: ClassVar[type[AbstractUtility]] = PrecisionUtility
    discount: ClassVar[str] = "constant"

    def check(self) -> None:
        """Check the divisor."""
        check_choice(self.name, "divisor", self.divisor, ("k", "min"))

    def divisors(self, sizes: IntArray) -> FloatArray:
        """Return k, or the number of items."""
        counts = sizes.astype(np.float64)
        if self.k is None:
            return counts
        return np.minimum(counts, self.k) if self.divisor == "min" else np.full(len(sizes), self.k)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(AbstractPositional):
    r"""Share of the relevant items that are among the first k ranks.

    .. math:: \mathrm{Rec@}k = \frac{1}{P} \sum_{r \le k} y_{o_r}

    Ties: the exact mean over all orderings of tied items. No relevant item: undefined.

    Parameters
    ----------
    k : int or None, default=None
        Last rank that counts; ``None`` counts every rank, which gives 1.

    References
    ----------
    Manning, Raghavan and Schutze, "Introduction to information retrieval", Cambridge
    University Press 2008, sec. 8.4.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("recall@1").score([1, 0, 1], [2.0, 1.0, 0.0])
    0.5
    """

    k: int | None = None
    threshold: float | None = None

    name: ClassVar[str] = "recall"
    aliases: ClassVar[tuple[str, ...]] = ("rec", "r")
    formula: ClassVar[str] = "relevant items among the first k / relevant items"
    reference: ClassVar[str] = "Manning et al. 2008, sec. 8.4"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    utility_class: ClassVar[type[AbstractUtility]] = RecallUtility
    discount: ClassVar[str] = "constant"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WTA(AbstractPositional):
    r"""Winner takes all: 1 when the first item is relevant, else 0; precision at 1.

    .. math:: \mathrm{WTA} = y_{o_1}

    Ties: the share of relevant items in the block at the top. Never undefined.

    References
    ----------
    Ramaswamy, Agarwal and Tewari, "Convex calibrated surrogates for low-rank loss matrices
    with applications to subset ranking losses", NIPS 2013, sec. 4.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("wta").score([1, 0, 1], [2.0, 2.0, 0.0])
    0.5
    """

    threshold: float | None = None

    name: ClassVar[str] = "wta"
    aliases: ClassVar[tuple[str, ...]] = ("winner_takes_all",)
    formula: ClassVar[str] = "1 if the first item is relevant"
    reference: ClassVar[str] = "Ramaswamy et al. 2013, sec. 4"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    utility_class: ClassVar[type[AbstractUtility]] = WtaUtility
    discount: ClassVar[str] = "falling"

    def rank_discounts(self, n: int) -> FloatArray:
        """Return 1 for rank 1."""
        return cut(np.ones(n), 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AUC(AbstractPositional):
    r"""Share of (relevant, other) pairs of a query in the right order.

    .. math:: \frac{1}{P N} \#\{(i, j) : y_i = 1,\ y_j = 0,\ \mathrm{rank}_i < \mathrm{rank}_j\}

    Ties: a tied pair counts one half, which is the mean over all orderings of tied items. All
    labels equal: undefined.

    References
    ----------
    Agarwal et al., "Generalization bounds for the area under the ROC curve", JMLR 6, 2005.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("auc").score([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0])
    0.75
    """

    threshold: float | None = None

    name: ClassVar[str] = "auc"
    aliases: ClassVar[tuple[str, ...]] = ("roc_auc",)
    formula: ClassVar[str] = "pairs (relevant, other) in the right order / all such pairs"
    reference: ClassVar[str] = "Agarwal et al. 2005"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    utility_class: ClassVar[type[AbstractUtility]] = AucUtility
    upwards: ClassVar[bool] = True
    discount: ClassVar[str] = "falling"

    def offsets(self, data: RankingData) -> FloatArray:
        """Return ``-(P - 1) / (2 N)``, the pairs of two relevant items."""
        binary, pairs = self.parts(data)
        positives = query_sums(binary, data.groups)
        return -positives * (positives - 1.0) / (2.0 * pairs)

    def summed(self, data: RankingData) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sum the ranks of the smaller class, so that the subtraction does not cancel digits.

        With ranks counted from below, the number of pairs in the right order is the sum over
        relevant items minus P (P - 1) / 2, or P N + N (N - 1) / 2 minus the sum over the others.
        """
        binary, pairs = self.parts(data)
        positives = query_sums(binary, data.groups)
        others = data.groups.sizes - positives
        few, fewer = others < positives, np.minimum(positives, others)
        inside = 0.5 * fewer * (fewer - 1.0)
        values = np.where(data.groups.spread(few), binary - 1.0, binary)
        return values, np.where(few, positives * others + inside, -inside), pairs


def _check_gain(metric: Any) -> None:
    """Check the field ``gain``, and turn a list into a table."""
    if isinstance(metric.gain, list):
        object.__setattr__(metric, "gain", tuple(metric.gain))
    check_gain(metric.gain)
