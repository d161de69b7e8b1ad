"""Metrics that are not positional: what an item is worth depends on the items above it.

Expected reciprocal rank follows a reader who goes down the list and stops when satisfied;
average precision, reciprocal rank, hit rate, R-precision and positives at the top are for
binary labels.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.data.query_order import query_sums
from gbmrank.errors import LabelRangeError, MetricError
from gbmrank.kernels.jit import compiler
from gbmrank.kernels.layout import CutItems, Items, Ranking, Span, SwapTerms
from gbmrank.losses.gains import binarise, exp2_gains
from gbmrank.losses.utilities import AbstractUtility, Form, MapUtility
from gbmrank.metrics.base import (
    AbstractBoundMetric,
    AbstractMetric,
    BoundKernel,
    check_choice,
)
from gbmrank.types import FloatArray

_LARGEST_GRADE = 1000.0
_ONE_ORDER = (
    "no utility per item gives its best order, except where labels are independent: "
    "target=precision; otherwise "
)
_TOP_INSTEAD = (
    f"{_ONE_ORDER}a push risk (pnorm_push) favours the top, and target=wta or ndcg@1 has a theorem"
)
_NO_UTILITY = "Calauzenes et al. 2013, Thm 3.3"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ERR(AbstractMetric):
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
        stops = np.minimum(self._stops(data), 1.0 - 2.0**-53)
        return _swap_terms(data, stops, np.ones(data.groups.n_queries), self.k)

    def _stops(self, data: RankingData) -> FloatArray:
        _check_grades(data, self.max_grade)
        return exp2_gains(data.labels) * np.exp2(-self.max_grade)

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Turn labels into the probabilities of stopping."""
        stops = self._stops(data)
        longest = int(data.groups.sizes.max(initial=1))
        k = longest if self.k is None else min(int(self.k), longest)
        items = Items(stops, np.ones(data.groups.n_queries), k)
        return BoundKernel(
            self, data, compiler.load("ranking.measures").cascade_per_query, items, self.k
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MAP(AbstractMetric):
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
    def form(self) -> Form:
        """The probability of relevance sorts independent labels."""
        return Form("step", self.threshold)

    @property
    def top_form(self) -> Form | None:
        """Relevance, over the relevant items unless at most one counts."""
        return Form("step", self.threshold, over="one" if self.denominator == "min" else "sum")

    def swap_terms(self, data: RankingData) -> SwapTerms:
        """Return 0 and 1, and one over the divisor."""
        binary, counts = self._counts(data)
        return _swap_terms(data, binary, 1.0 / counts, self.k)

    def _counts(self, data: RankingData) -> tuple[FloatArray, FloatArray]:
        binary, positives = _relevant(data, self.threshold)
        if self.denominator == "min" and self.k is not None:
            positives = np.minimum(positives, self.k)
        return binary, _above_zero(positives)

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Count the relevant items."""
        binary, counts = self._counts(data)
        kernels = compiler.load("ranking.measures")
        kernel = partial(_in_blocks, kernels.average_precision, self.ties == "block")
        items = _items(data, binary, counts, self.k)
        return BoundKernel(self, data, kernel, items, self.k)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MRR(AbstractMetric):
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
    reference: ClassVar[str] = "McSherry and Najork 2008"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    swap_kind: ClassVar[str | None] = "first_relevant"
    no_utility: ClassVar[str] = _TOP_INSTEAD

    @property
    def form(self) -> Form:
        """The probability of relevance sorts independent labels."""
        return Form("step", self.threshold)

    @property
    def top_form(self) -> Form | None:
        """Relevance."""
        return self.form

    def swap_terms(self, data: RankingData) -> SwapTerms:
        """Return 0 and 1, and the reciprocals of ranks."""
        binary, positives = _relevant(data, self.threshold)
        terms = _swap_terms(data, binary, np.where(positives > 0, 1.0, np.nan), self.k)
        return terms._replace(table=1.0 / np.arange(1.0, len(terms.table) + 1.0))

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Find the relevant items."""
        binary, positives = _relevant(data, self.threshold)
        defined = np.where(positives > 0, 1.0, np.nan)
        kernels = compiler.load("ranking.measures")
        items = _items(data, binary, defined, self.k)
        return BoundKernel(self, data, kernels.reciprocal_rank, items, self.k)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HitRate(AbstractMetric):
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
    reference: ClassVar[str] = "Deshpande and Karypis 2004"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    swap_kind: ClassVar[str | None] = "first_relevant"
    no_utility: ClassVar[str] = _TOP_INSTEAD

    @property
    def constant(self) -> bool:
        """Without a cut-off every item is retrieved."""
        return self.k is None

    @property
    def form(self) -> Form:
        """The probability of relevance sorts independent labels."""
        return Form("step", self.threshold)

    def swap_terms(self, data: RankingData) -> SwapTerms:
        """Return 0 and 1, and ones for ranks."""
        binary, positives = _relevant(data, self.threshold)
        return _swap_terms(data, binary, np.where(positives > 0, 1.0, np.nan), self.k)

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Find the relevant items."""
        terms = self.swap_terms(data)
        items = CutItems(terms.values, 1.0 / terms.scale, np.array(terms.cuts))
        return BoundKernel(self, data, compiler.load("ranking.sets").any_within, items, self.k)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RPrecision(AbstractMetric):
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
    reference: ClassVar[str] = "Manning et al. 2008, sec. 8.4"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    swap_kind: ClassVar[str | None] = "positional"
    no_utility: ClassVar[str] = (
        f"{_ONE_ORDER}target=precision has a theorem for every fixed number of ranks"
    )

    @property
    def form(self) -> Form:
        """The probability of relevance sorts independent labels."""
        return Form("step", self.threshold)

    def swap_terms(self, data: RankingData) -> SwapTerms:
        """Return 0 and 1, one over P, and ones for the first P ranks."""
        binary, positives = _relevant(data, self.threshold)
        terms = _swap_terms(data, binary, 1.0 / _above_zero(positives), None)
        return terms._replace(cuts=positives.astype(np.int64))

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Count the relevant items."""
        binary, positives = _relevant(data, self.threshold)
        items = CutItems(binary, _above_zero(positives), positives.astype(np.int64))
        return BoundKernel(self, data, compiler.load("ranking.sets").share_within, items)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PTop(AbstractMetric):
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
    reference: ClassVar[str] = "Agarwal 2011"
    value_range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    tie_rules: ClassVar[tuple[str, ...]] = ("mean", "worst", "best", "index", "strict")
    no_utility: ClassVar[str] = _TOP_INSTEAD

    @property
    def form(self) -> Form:
        """The probability of relevance sorts independent labels."""
        return Form("step", self.threshold)

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Count the relevant items."""
        binary, positives = _relevant(data, self.threshold)
        divisor = _above_zero(positives) if self.normalize else np.ones(len(positives))
        kernels = compiler.load("ranking.measures")
        items = _items(data, binary, divisor, None)
        return BoundKernel(self, data, kernels.positives_at_top, items)


def _check_grades(data: RankingData, max_grade: float) -> None:
    outside = np.flatnonzero((data.labels < 0) | (data.labels > max_grade))
    if len(outside):
        row = int(outside[0])
        raise LabelRangeError(
            f"err takes labels from 0 to max_grade={max_grade:g}, got {data.labels[row]:g} in query"
            f" {data.groups.query_of(row)!r}; set max_grade to the largest grade of your scale, "
            "the same for every data set"
        )


def _relevant(data: RankingData, threshold: float | None) -> tuple[FloatArray, FloatArray]:
    """Return 0 and 1 per row, and the number of ones per query."""
    binary = binarise(data.labels, threshold, data.groups)
    return binary, query_sums(binary, data.groups)


def _above_zero(counts: FloatArray) -> FloatArray:
    return np.where(counts > 0, counts, np.nan)


def _items(data: RankingData, values: FloatArray, divisor: FloatArray, k: int | None) -> Items:
    longest = int(data.groups.sizes.max(initial=1))
    return Items(values, divisor, longest if k is None else min(int(k), longest))


def _swap_terms(
    data: RankingData, values: FloatArray, scale: FloatArray, k: int | None
) -> SwapTerms:
    """Return terms with a table of ones."""
    sizes = data.groups.sizes
    cuts = sizes if k is None else np.minimum(sizes, k)
    return SwapTerms(values, scale, cuts, np.ones(int(sizes.max(initial=1))))


def _in_blocks(
    kernel: "compiler.Scalar",
    whole: bool,
    ranking: Ranking,
    items: Items,
    span: Span,
    out: FloatArray,
) -> None:
    kernel(ranking, items, whole, span, out)
