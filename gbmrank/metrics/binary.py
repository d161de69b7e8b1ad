"""Positional measures of binary labels: precision, recall, winner takes all, AUC."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from gbmrank.data import RankingData
from gbmrank.metrics.base import check_choice, check_cutoff
from gbmrank.metrics.positional import AbstractPositional, cut
from gbmrank.ranking import binarise, query_sums
from gbmrank.types import FloatArray, IntArray
from gbmrank.utilities import AucUtility, PrecisionUtility, RecallUtility, WtaUtility

__all__ = ["AUC", "WTA", "Precision", "Recall"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Precision(AbstractPositional):
    r"""Share of relevant items among the first k ranks.

    .. math:: \mathrm{Prec@}k = \frac{1}{k} \sum_{r \le k} y_{o_r}

    Ties: the exact mean over all orders. Never undefined.

    Parameters
    ----------
    k : int or None, default=None
        Last rank that counts; ``None`` is the number of items of the query.
    threshold : float or None, default=None
        Labels of at least this are relevant; needed for labels other than 0/1 and -1/+1.
    divisor : {"k", "min"}, default="k"
        Divide by k, or, as XGBoost does, by the number of items where that is smaller.

    References
    ----------
    Manning, Raghavan and Schutze, "Introduction to information retrieval", Cambridge
    University Press 2008, sec. 8.4.

    Examples
    --------
    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([0, 1])
    >>> Precision(k=4).bind(data).score(Ranked(np.array([2.0, 1.0]), data.groups))
    0.25
    """

    k: int | None = None
    threshold: float | None = None
    divisor: str = "k"

    name: ClassVar[str] = "precision"
    aliases: ClassVar[tuple[str, ...]] = ("prec", "p", "pre")
    formula: ClassVar[str] = "relevant items among the first k / k"
    reference: ClassVar[str] = "Manning et al. 2008, sec. 8.4"

    def check(self) -> None:
        """Accept the known divisors."""
        check_cutoff(self.name, self.k)
        check_choice(self.name, "divisor", self.divisor, ("k", "min"))

    def utilities(self, data: RankingData) -> FloatArray:
        """Return 0 and 1."""
        return PrecisionUtility(threshold=self.threshold).values(data)

    def rank_discounts(self, n: int) -> FloatArray:
        """Return 1 up to rank k."""
        return cut(np.ones(n), self.k)

    def factors(self, sizes: IntArray) -> FloatArray:
        """Return one over the divisor."""
        if self.k is None:
            return 1.0 / sizes
        return 1.0 / (np.minimum(sizes, self.k) if self.divisor == "min" else 0 * sizes + self.k)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(AbstractPositional):
    r"""Share of the relevant items that are among the first k ranks.

    .. math:: \mathrm{Rec@}k = \frac{1}{P} \sum_{r \le k} y_{o_r}

    Ties: the exact mean over all orders. No relevant item: undefined.

    Parameters
    ----------
    k : int or None, default=None
        Last rank that counts; ``None`` counts every rank, which gives 1.
    threshold : float or None, default=None
        Labels of at least this are relevant; needed for labels other than 0/1 and -1/+1.

    References
    ----------
    Manning, Raghavan and Schutze, "Introduction to information retrieval", Cambridge
    University Press 2008, sec. 8.4.

    Examples
    --------
    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([1, 0, 1])
    >>> Recall(k=1).bind(data).score(Ranked(np.array([2.0, 1.0, 0.0]), data.groups))
    0.5
    """

    k: int | None = None
    threshold: float | None = None

    name: ClassVar[str] = "recall"
    aliases: ClassVar[tuple[str, ...]] = ("rec", "r")
    formula: ClassVar[str] = "relevant items among the first k / relevant items"
    reference: ClassVar[str] = "Manning et al. 2008, sec. 8.4"

    def check(self) -> None:
        """Accept whole cut-offs."""
        check_cutoff(self.name, self.k)

    def utilities(self, data: RankingData) -> FloatArray:
        """Return y / P."""
        return RecallUtility(threshold=self.threshold).values(data)

    def rank_discounts(self, n: int) -> FloatArray:
        """Return 1 up to rank k."""
        return cut(np.ones(n), self.k)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WTA(AbstractPositional):
    r"""Winner takes all: 1 when the first item is relevant, else 0; precision at 1.

    .. math:: \mathrm{WTA} = y_{o_1}

    Ties: the share of relevant items in the block at the top. Never undefined.

    Parameters
    ----------
    threshold : float or None, default=None
        Labels of at least this are relevant; needed for labels other than 0/1 and -1/+1.

    References
    ----------
    Ramaswamy, Agarwal and Tewari, "Convex calibrated surrogates for low-rank loss matrices
    with applications to subset ranking losses", NIPS 2013, sec. 4.

    Examples
    --------
    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([1, 0, 1])
    >>> WTA().bind(data).score(Ranked(np.array([2.0, 2.0, 0.0]), data.groups))
    0.5
    """

    threshold: float | None = None

    name: ClassVar[str] = "wta"
    aliases: ClassVar[tuple[str, ...]] = ("winner_takes_all",)
    formula: ClassVar[str] = "1 if the first item is relevant"
    reference: ClassVar[str] = "Ramaswamy et al. 2013, sec. 4"

    def utilities(self, data: RankingData) -> FloatArray:
        """Return 0 and 1."""
        return WtaUtility(threshold=self.threshold).values(data)

    def rank_discounts(self, n: int) -> FloatArray:
        """Return 1 for rank 1."""
        return cut(np.ones(n), 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AUC(AbstractPositional):
    r"""Share of (relevant, other) pairs of a query in the right order.

    .. math:: \frac{1}{P N} \#\{(i, j) : y_i = 1,\ y_j = 0,\ \mathrm{rank}_i < \mathrm{rank}_j\}

    Ties: a tied pair counts one half, which is the mean over all orders. All labels alike:
    undefined.

    Parameters
    ----------
    threshold : float or None, default=None
        Labels of at least this are relevant; needed for labels other than 0/1 and -1/+1.

    References
    ----------
    Agarwal et al., "Generalization bounds for the area under the ROC curve", JMLR 6, 2005.

    Examples
    --------
    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([1, 0, 1, 0])
    >>> AUC().bind(data).score(Ranked(np.array([4.0, 3.0, 2.0, 1.0]), data.groups))
    0.75
    """

    threshold: float | None = None

    name: ClassVar[str] = "auc"
    aliases: ClassVar[tuple[str, ...]] = ("roc_auc",)
    formula: ClassVar[str] = "pairs (relevant, other) in the right order / all such pairs"
    reference: ClassVar[str] = "Agarwal et al. 2005"
    upwards: ClassVar[bool] = True

    def utilities(self, data: RankingData) -> FloatArray:
        """Return y / (P N)."""
        return AucUtility(threshold=self.threshold).values(data)

    def rank_discounts(self, n: int) -> FloatArray:
        """Return the number of items below."""
        return np.arange(float(n))

    def offsets(self, data: RankingData) -> FloatArray:
        """Return ``-(P - 1) / (2 N)``, the pairs of two relevant items."""
        positives, others = self._counts(data)
        return -(positives - 1.0) / np.where(others > 0, 2.0 * others, np.nan)

    def summed(self, data: RankingData) -> tuple[FloatArray, FloatArray]:
        """Add up ranks of the fewer items, which do not cancel with what is taken off.

        With fewer others than relevant items, -(1 - y) / (P N) and 1 + (N - 1) / (2 P) give
        the same value as the utilities and offsets.
        """
        utilities, offsets = self.utilities(data), self.offsets(data)
        positives, others = self._counts(data)
        few = (others > 0) & (others < positives)
        pairs = np.where(few, positives * others, np.inf)
        instead = 1.0 + (others - 1.0) / np.where(few, 2.0 * positives, np.inf)
        return utilities - 1.0 / data.groups.spread(pairs), np.where(few, instead, offsets)

    def _counts(self, data: RankingData) -> tuple[FloatArray, FloatArray]:
        """Return the relevant items of each query, and the others."""
        positives = query_sums(binarise(data.labels, self.threshold, data.groups), data.groups)
        return positives, data.groups.sizes - positives
