"""Average precision, reciprocal rank, positives at the top: binary, and not positional."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

import numpy as np

from gbmrank.data import RankingData
from gbmrank.kernels import compiler
from gbmrank.kernels.layout import Span
from gbmrank.kernels.rankings import Items, Ranking
from gbmrank.metrics.base import (
    AbstractBoundMetric,
    AbstractMetric,
    BoundKernel,
    check_choice,
    check_cutoff,
)
from gbmrank.ranking import binarise, query_sums
from gbmrank.types import FloatArray

__all__ = ["MAP", "MRR", "PTop"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MAP(AbstractMetric):
    r"""Average precision; its mean over queries is MAP.

    .. math:: \mathrm{AP@}k = \frac{1}{P} \sum_{i:\ y_i = 1,\ \mathrm{rank}_i \le k}
              \mathrm{Prec@rank}_i

    Ties: the exact mean over all orders. A block of m items with p relevant ones, behind
    a items of which c are relevant, adds
    :math:`\sum_{j \le m} \frac{p}{m} \bigl(c + 1 + (j-1)\frac{p-1}{m-1}\bigr) / (a+j)`.
    No relevant item: undefined.

    Parameters
    ----------
    k : int or None, default=None
        Last rank that counts; ``None`` counts every rank.
    threshold : float or None, default=None
        Labels of at least this are relevant; needed for labels other than 0/1 and -1/+1.
    denominator : {"relevant", "min"}, default="relevant"
        Divide by the number P of relevant items (trec_eval), or by min(P, k) (LightGBM,
        XGBoost), which makes 1 reachable.
    ties : {"mean", "worst", "best", "index", "block"}, default="mean"
        ``"block"`` is scikit-learn's rule: tied items are retrieved in one step, each
        relevant one with the precision at the end of the block. It is no mean over orders.

    References
    ----------
    McSherry and Najork, "Computing information retrieval performance measures efficiently
    in the presence of tied scores", ECIR 2008.

    Examples
    --------
    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([1, 0, 1, 0])
    >>> MAP().bind(data).score(Ranked(np.array([4.0, 3.0, 2.0, 1.0]), data.groups)) * 6
    5.0
    """

    k: int | None = None
    threshold: float | None = None
    denominator: str = "relevant"

    name: ClassVar[str] = "map"
    aliases: ClassVar[tuple[str, ...]] = ("ap", "map_cut", "average_precision")
    formula: ClassVar[str] = "sum over relevant items of precision at their rank / P"
    reference: ClassVar[str] = "McSherry and Najork 2008"
    tie_rules: ClassVar[tuple[str, ...]] = ("mean", "worst", "best", "index", "block")

    def check(self) -> None:
        """Accept the known denominators."""
        check_cutoff(self.name, self.k)
        check_choice(self.name, "denominator", self.denominator, ("relevant", "min"))

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Count the relevant items."""
        binary, positives = _relevant(data, self.threshold)
        if self.denominator == "min" and self.k is not None:
            positives = np.minimum(positives, self.k)
        kernels = compiler.load("average_precision")
        kernel = partial(_in_blocks, kernels.average_precision, self.ties == "block")
        items = _items(data, binary, _reciprocal(positives), self.k)
        return BoundKernel(self, data, kernel, items, self.k)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MRR(AbstractMetric):
    r"""Reciprocal rank of the first relevant item; its mean over queries is MRR.

    .. math:: \mathrm{RR@}k = \frac{1}{\min\{\mathrm{rank}_i : y_i = 1\}}, \quad
              0 \text{ when that rank exceeds } k

    Ties: the exact mean over all orders; the first relevant item of a block with p among m
    is its j-th with probability :math:`\binom{m-j}{p-1} / \binom{m}{p}`. No relevant item:
    undefined; trec_eval counts 0 (``empty="zero"``).

    Parameters
    ----------
    k : int or None, default=None
        Last rank that counts; ``None`` counts every rank.
    threshold : float or None, default=None
        Labels of at least this are relevant; needed for labels other than 0/1 and -1/+1.

    References
    ----------
    McSherry and Najork, "Computing information retrieval performance measures efficiently
    in the presence of tied scores", ECIR 2008.

    Examples
    --------
    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([0, 1, 1])
    >>> MRR().bind(data).score(Ranked(np.array([2.0, 1.0, 0.0]), data.groups))
    0.5
    """

    k: int | None = None
    threshold: float | None = None

    name: ClassVar[str] = "mrr"
    aliases: ClassVar[tuple[str, ...]] = ("rr", "recip_rank", "reciprocal_rank")
    formula: ClassVar[str] = "1 / rank of the first relevant item"
    reference: ClassVar[str] = "McSherry and Najork 2008"

    def check(self) -> None:
        """Accept whole cut-offs."""
        check_cutoff(self.name, self.k)

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Find the relevant items."""
        binary, positives = _relevant(data, self.threshold)
        scale = np.where(positives > 0, 1.0, np.nan)
        kernels = compiler.load("average_precision")
        items = _items(data, binary, scale, self.k)
        return BoundKernel(self, data, kernels.reciprocal_rank, items, self.k)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PTop(AbstractMetric):
    r"""Positives at the top: how many relevant items come before the first other one.

    .. math:: \#\{i : y_i = 1,\ \mathrm{rank}_i < \min_{j:\ y_j = 0} \mathrm{rank}_j\}

    Ties: the exact mean over all orders; the first block that holds b > 0 others adds
    p/(b+1). ``ties="strict"`` counts only scores strictly above every other item's, which
    is the same as ``"worst"``. No relevant item: 0; all relevant: P. Never undefined, unless
    normalised: then without a relevant item.

    Parameters
    ----------
    threshold : float or None, default=None
        Labels of at least this are relevant; needed for labels other than 0/1 and -1/+1.
    normalize : bool, default=False
        Divide by the number P of relevant items.
    ties : {"mean", "worst", "best", "index", "strict"}, default="mean"
        What happens to items with equal scores.

    References
    ----------
    Menon and Williamson, "Bipartite ranking: a risk-theoretic perspective", JMLR 17, 2016;
    Agarwal, "The infinite push", SDM 2011.

    Examples
    --------
    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([1, 1, 0])
    >>> PTop().bind(data).score(Ranked(np.array([2.0, 1.0, 1.0]), data.groups))
    1.5
    """

    threshold: float | None = None
    normalize: bool = False

    name: ClassVar[str] = "ptop"
    aliases: ClassVar[tuple[str, ...]] = ("positives_at_top",)
    formula: ClassVar[str] = "relevant items before the first other one"
    reference: ClassVar[str] = "Agarwal 2011"
    tie_rules: ClassVar[tuple[str, ...]] = ("mean", "worst", "best", "index", "strict")

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Count the relevant items."""
        binary, positives = _relevant(data, self.threshold)
        scale = _reciprocal(positives) if self.normalize else np.ones(len(positives))
        kernels = compiler.load("average_precision")
        return BoundKernel(self, data, kernels.positives_at_top, _items(data, binary, scale, None))


def _relevant(data: RankingData, threshold: float | None) -> tuple[FloatArray, FloatArray]:
    """Return 0 and 1 per row, and the number of ones per query."""
    binary = binarise(data.labels, threshold, data.groups)
    return binary, query_sums(binary, data.groups)


def _reciprocal(counts: FloatArray) -> FloatArray:
    return 1.0 / np.where(counts > 0, counts, np.nan)


def _items(data: RankingData, values: FloatArray, scale: FloatArray, k: int | None) -> Items:
    longest = int(data.groups.sizes.max(initial=1))
    return Items(values, scale, longest if k is None else min(int(k), longest))


def _in_blocks(
    kernel: "compiler.Scalar",
    whole: bool,
    ranking: Ranking,
    items: Items,
    span: Span,
    out: FloatArray,
) -> None:
    kernel(ranking, items, whole, span, out)
