"""Metrics that are not positional: what an item is worth depends on the items above it.

Expected reciprocal rank follows a reader who goes down the list and stops when satisfied;
average precision, reciprocal rank, hit rate, R-precision and positives at the top are for
binary labels.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.data.query_order import query_sums
from gbmrank.errors import LabelRangeError, MetricError
from gbmrank.kernels.jit import compiler
from gbmrank.kernels.layout import Items, SwapTerms
from gbmrank.losses.gains import binarise, exp2_gains
from gbmrank.losses.utilities import AbstractUtility, Form, MapUtility
from gbmrank.metrics.base import AbstractBoundMetric, AbstractMetric, BoundKernel, check_choice
from gbmrank.types import FloatArray, IntArray

_LARGEST_GRADE = 1000.0
_ONE_ORDER = (
    "no utility per item gives its best order, except where labels are independent: "
    "target=precision; otherwise "
)
_TOP_INSTEAD = (
    f"{_ONE_ORDER}a push risk (pnorm_push) favours the top, and target=wta or ndcg@1 has a theorem"
)
_NO_UTILITY = "Calauzenes et al. 2013, Thm 3.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class _AbstractOfItems(AbstractMetric):
    """A metric that a kernel computes from values of rows, divisors and cut-offs of queries."""

    kernel: ClassVar[str]

    @abstractmethod
    def _items(self, data: RankingData) -> Items: ...

    def swap_terms(self, data: RankingData) -> SwapTerms:
        """Return what the value is computed from, and ones for ranks."""
        if self.swap_kind is None:
            return AbstractMetric.swap_terms(self, data)
        values, divisor, cuts = self._items(data)
        ones = np.ones(int(data.groups.sizes.max(initial=1)))
        return SwapTerms(values, 1.0 / divisor, cuts, ones)

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Compute what depends on labels."""
        template, _, name = self.kernel.rpartition(".")
        kernel = getattr(compiler.load(template), name)
        return BoundKernel(self, data, kernel, self._items(data), getattr(self, "k", None))


class _AbstractOfRelevance(_AbstractOfItems):
    """One that depends on which items are relevant; if independent, their probability sorts."""

    __slots__ = ()

    k: int | None  # fields of the metrics: in their text, inherited ones would come last
    threshold: float | None

    @property
    def form(self) -> Form:
        return Form("step", self.threshold)

    def _items(self, data: RankingData) -> Items:
        binary, positives = _relevant(data, self.threshold)
        return Items(binary, np.where(positives > 0, 1.0, np.nan), _cuts(data, self.k))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ERR(_AbstractOfItems):
    r"""Expected reciprocal rank.

    .. math:: \mathrm{ERR@}k = \sum_{r \le k} \frac{R_{o_r}}{r} \prod_{l < r} (1 - R_{o_l}),
              \qquad R_i = \frac{2^{y_i} - 1}{2^{p}}

    where p is the largest grade of the scale, a parameter that is never read from the data.
    Ties: the exact mean over all orderings of tied items, through the mean product of 1 - R
    over random subsets of a block; terms below 1e-18 are left out, and very long blocks use an
    integral with an error below 1e-12. No order-preserving loss is calibrated for this
    metric. Never undefined; 0 without a relevant item.

    Parameters
    ----------
    max_grade : float, default=4
        Largest grade p of the scale; labels above it are rejected.

    References
    ----------
    Chapelle, Metzler, Zhang and Grinspan, "Expected reciprocal rank for graded relevance",
    CIKM 2009.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("err(max_grade=1)").score([0, 1], [2.0, 1.0])
    0.25
    """

    max_grade: float = 4.0
    k: int | None = None

    name: ClassVar[str] = "err"
    formula: ClassVar[str] = "sum_{r<=k} R_r / r prod_{l<r} (1 - R_l), R = (2^y - 1) / 2^max_grade"
    reference: ClassVar[str] = "Chapelle et al. 2009"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    swap_kind: ClassVar[str | None] = "cascade"
    kernel: ClassVar[str] = "ranking.measures.cascade_per_query"
    no_utility_theorem: ClassVar[str] = _NO_UTILITY
    no_utility: ClassVar[str] = (
        "no utility per item gives its best order, except where labels are independent: "
        "target=dcg; otherwise use swap(metric=err{k}) or target=ndcg{k}"
    )

    def check(self) -> None:
        """Check the largest grade."""
        if not 0 < self.max_grade <= _LARGEST_GRADE:
            raise MetricError(
                "err: max_grade is the largest grade of the scale, above 0 and at most "
                f"{_LARGEST_GRADE:g}; got {self.max_grade!r}"
            )

    @property
    def form(self) -> Form:
        """The expected probability of stopping sorts independent labels."""
        return Form("exp2", low=0.0, high=self.max_grade)

    @property
    def top_form(self) -> Form | None:
        """The probability of stopping."""
        return self.form

    def swap_terms(self, data: RankingData) -> SwapTerms:
        """Return the probabilities of stopping, below 1."""
        terms = _AbstractOfItems.swap_terms(self, data)
        return terms._replace(values=np.minimum(terms.values, 1.0 - 2.0**-53))

    def _items(self, data: RankingData) -> Items:
        outside = np.flatnonzero((data.labels < 0) | (data.labels > self.max_grade))
        if len(outside):
            row = int(outside[0])
            raise LabelRangeError(
                f"err takes labels from 0 to max_grade={self.max_grade:g}, got "
                f"{data.labels[row]:g} in query {data.groups.query_of(row)!r}; set max_grade to "
                "the largest grade of your scale, the same for every data set"
            )
        stops = exp2_gains(data.labels) * np.exp2(-self.max_grade)
        return Items(stops, np.ones(data.groups.n_queries), _cuts(data, self.k))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MAP(_AbstractOfRelevance):
    r"""Average precision; its mean over queries is MAP.

    .. math:: \mathrm{AP@}k = \frac{1}{P} \sum_{i:\ y_i = 1,\ \mathrm{rank}_i \le k}
              \mathrm{Prec@rank}_i

    Ties: the exact mean over all orderings of tied items. A block of m items with p relevant
    ones, below a items of which c are relevant, adds
    :math:`\sum_{j \le m} \frac{p}{m} \bigl(c + 1 + (j-1)\frac{p-1}{m-1}\bigr) / (a+j)`.
    No relevant item: undefined.

    Parameters
    ----------
    denominator : {"relevant", "min"}, default="relevant"
        Divide by the number P of relevant items (trec_eval), or by min(P, k) (LightGBM,
        XGBoost), which makes 1 reachable.
    ties : {"mean", "worst", "best", "index", "block"}, default="mean"
        ``"block"`` is scikit-learn's rule: tied items are retrieved in one step, each
        relevant one with the precision at the end of the block. It is not a mean over orderings.

    References
    ----------
    McSherry and Najork, "Computing information retrieval performance measures efficiently
    in the presence of tied scores", ECIR 2008.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("map").score([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0]) * 6
    5.0
    """

    k: int | None = None
    threshold: float | None = None
    denominator: str = "relevant"

    name: ClassVar[str] = "map"
    aliases: ClassVar[tuple[str, ...]] = ("ap", "map_cut", "average_precision")
    formula: ClassVar[str] = "sum over relevant items of precision at their rank / P"
    reference: ClassVar[str] = "McSherry and Najork 2008"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    no_utility_theorem: ClassVar[str] = _NO_UTILITY
    tie_rules: ClassVar[tuple[str, ...]] = ("mean", "worst", "best", "index", "block")
    swap_kind: ClassVar[str | None] = "precision"

    @property
    def utility(self) -> AbstractUtility:
        """That of recall, which is right under reinforcement."""
        return MapUtility(k=self.k, threshold=self.threshold)

    def check(self) -> None:
        """Check the denominator."""
        check_choice(self.name, "denominator", self.denominator, ("relevant", "min"))

    @property
    def top_form(self) -> Form | None:
        """Relevance, over the relevant items unless at most one counts."""
        return Form("step", self.threshold, over="one" if self.denominator == "min" else "sum")

    def _items(self, data: RankingData) -> Items:
        binary, positives = _relevant(data, self.threshold)
        if self.denominator == "min" and self.k is not None:
            positives = np.minimum(positives, self.k)
        return Items(binary, _above_zero(positives), _cuts(data, self.k))

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Count the relevant items."""
        kernel = partial(compiler.load("ranking.measures").average_precision, self.ties == "block")
        return BoundKernel(self, data, kernel, self._items(data), self.k)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MRR(_AbstractOfRelevance):
    r"""Reciprocal rank of the first relevant item; its mean over queries is MRR.

    .. math:: \mathrm{RR@}k = \frac{1}{\min\{\mathrm{rank}_i : y_i = 1\}}, \quad
              0 \text{ when that rank exceeds } k

    Ties: the exact mean over all orderings of tied items; the first relevant item of a block
    with p relevant items among m is its j-th with probability
    :math:`\binom{m-j}{p-1} / \binom{m}{p}`. No relevant item: undefined; trec_eval counts 0
    (``empty="zero"``).

    References
    ----------
    McSherry and Najork, "Computing information retrieval performance measures efficiently
    in the presence of tied scores", ECIR 2008.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("mrr").score([0, 1, 1], [2.0, 1.0, 0.0])
    0.5
    """

    k: int | None = None
    threshold: float | None = None

    name: ClassVar[str] = "mrr"
    aliases: ClassVar[tuple[str, ...]] = ("rr", "recip_rank", "reciprocal_rank")
    formula: ClassVar[str] = "1 / rank of the first relevant item"
    kernel: ClassVar[str] = "ranking.measures.reciprocal_rank"
    reference: ClassVar[str] = "McSherry and Najork 2008"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    swap_kind: ClassVar[str | None] = "first_relevant"
    no_utility: ClassVar[str] = _TOP_INSTEAD

    @property
    def top_form(self) -> Form | None:
        """Relevance."""
        return self.form

    def swap_terms(self, data: RankingData) -> SwapTerms:
        """Return 0 and 1, and the reciprocals of ranks."""
        terms = _AbstractOfItems.swap_terms(self, data)
        return terms._replace(table=1.0 / np.arange(1.0, len(terms.table) + 1.0))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HitRate(_AbstractOfRelevance):
    r"""Whether a relevant item is among the first k ranks; its mean is the share of such queries.

    .. math:: \mathrm{Hit@}k = 1 \text{ if } \min\{\mathrm{rank}_i : y_i = 1\} \le k,
              \text{ else } 0

    Ties: the exact mean over all orderings of tied items. No relevant item: undefined;
    trec_eval, which calls it success, counts 0 (``empty="zero"``).

    Parameters
    ----------
    k : int or None, default=None
        Last rank that counts; ``None`` counts every rank, which gives 1.

    References
    ----------
    Deshpande and Karypis, "Item-based top-N recommendation algorithms", ACM TOIS 22(1), 2004.

    Examples
    --------
    Three items tie for two ranks, and one of them is relevant:

    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([0, 1, 0])
    >>> round(HitRate(k=2).bind(data).score(Ranked(np.zeros(3), data.groups)), 6)
    0.666667
    """

    k: int | None = None
    threshold: float | None = None

    name: ClassVar[str] = "hit_rate"
    aliases: ClassVar[tuple[str, ...]] = ("success", "hit", "hr")
    formula: ClassVar[str] = "1 if a relevant item is among the first k"
    kernel: ClassVar[str] = "ranking.sets.any_within"
    reference: ClassVar[str] = "Deshpande and Karypis 2004"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    swap_kind: ClassVar[str | None] = "first_relevant"
    no_utility: ClassVar[str] = _TOP_INSTEAD

    @property
    def constant(self) -> bool:
        """Without a cut-off every item is retrieved."""
        return self.k is None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RPrecision(_AbstractOfRelevance):
    r"""Precision at the number P of relevant items of the query.

    .. math:: \frac{1}{P} \#\{i : y_i = 1,\ \mathrm{rank}_i \le P\}

    Ties: the exact mean over all orderings of tied items. No relevant item: undefined.

    References
    ----------
    Manning, Raghavan and Schutze, "Introduction to information retrieval", Cambridge
    University Press 2008, sec. 8.4.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("r_precision").score([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0])
    0.5
    """

    threshold: float | None = None

    name: ClassVar[str] = "r_precision"
    aliases: ClassVar[tuple[str, ...]] = ("rprec", "r_prec")
    formula: ClassVar[str] = "relevant items among the first P / P"
    kernel: ClassVar[str] = "ranking.sets.share_within"
    reference: ClassVar[str] = "Manning et al. 2008, sec. 8.4"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    swap_kind: ClassVar[str | None] = "positional"
    no_utility: ClassVar[str] = (
        f"{_ONE_ORDER}target=precision has a theorem for every fixed number of ranks"
    )

    def _items(self, data: RankingData) -> Items:
        binary, positives = _relevant(data, self.threshold)
        return Items(binary, _above_zero(positives), positives.astype(np.int64))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PTop(_AbstractOfRelevance):
    r"""Positives at the top: how many relevant items come before the first other one.

    .. math:: \#\{i : y_i = 1,\ \mathrm{rank}_i < \min_{j:\ y_j = 0} \mathrm{rank}_j\}

    Ties: the exact mean over all orderings of tied items; the first block with b > 0 others adds
    p/(b+1). ``ties="strict"`` counts only scores strictly above every other item's, which
    is the same as ``"worst"``. No relevant item: 0; all relevant: P. Never undefined, unless
    normalised: then without a relevant item.

    Parameters
    ----------
    normalize : bool, default=False
        Divide by the number P of relevant items.
    ties : {"mean", "worst", "best", "index", "strict"}, default="mean"
        How to treat items with equal scores.

    References
    ----------
    Menon and Williamson, "Bipartite ranking: a risk-theoretic perspective", JMLR 17, 2016;
    Agarwal, "The infinite push", SDM 2011.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("ptop").score([1, 1, 0], [2.0, 1.0, 1.0])
    1.5
    """

    threshold: float | None = None
    normalize: bool = False

    name: ClassVar[str] = "ptop"
    aliases: ClassVar[tuple[str, ...]] = ("positives_at_top",)
    formula: ClassVar[str] = "relevant items before the first other one"
    kernel: ClassVar[str] = "ranking.measures.positives_at_top"
    reference: ClassVar[str] = "Agarwal 2011"
    value_range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    tie_rules: ClassVar[tuple[str, ...]] = ("mean", "worst", "best", "index", "strict")
    no_utility: ClassVar[str] = _TOP_INSTEAD

    def _items(self, data: RankingData) -> Items:
        binary, positives = _relevant(data, self.threshold)
        divisor = _above_zero(positives) if self.normalize else np.ones(len(positives))
        return Items(binary, divisor, _cuts(data, None))


def _relevant(data: RankingData, threshold: float | None) -> tuple[FloatArray, FloatArray]:
    """Return 0 and 1 per row, and the number of ones per query."""
    binary = binarise(data.labels, threshold, data.groups)
    return binary, query_sums(binary, data.groups)


def _above_zero(counts: FloatArray) -> FloatArray:
    return np.where(counts > 0, counts, np.nan)


def _cuts(data: RankingData, k: int | None) -> IntArray:
    sizes = np.array(data.groups.sizes)
    return sizes if k is None else np.minimum(sizes, k)
