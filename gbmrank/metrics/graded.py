"""Positional measures of graded labels: DCG, NDCG, ERU, Spearman."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from gbmrank.data import RankingData
from gbmrank.metrics.base import check_cutoff
from gbmrank.metrics.positional import AbstractPositional
from gbmrank.ranking import (
    Gain,
    best_sums,
    check_gain,
    check_rank_utility,
    discounts,
    excess,
)
from gbmrank.types import FloatArray, IntArray
from gbmrank.utilities import DcgUtility, NdcgUtility, SpearmanUtility

__all__ = ["DCG", "ERU", "NDCG", "Spearman"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _AbstractGain(AbstractPositional):
    gain: Gain = "exp2"
    k: int | None = None

    def check(self) -> None:
        """Accept the names of gains and tables."""
        check_cutoff(self.name, self.k)
        if isinstance(self.gain, list):
            object.__setattr__(self, "gain", tuple(self.gain))
        check_gain(self.gain)

    def rank_discounts(self, n: int) -> FloatArray:
        """Return ``1 / log2(1 + rank)``, zero beyond k."""
        return discounts(n, self.k)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DCG(_AbstractGain):
    r"""Discounted cumulative gain.

    .. math:: \mathrm{DCG@}k = \sum_{r \le k} \frac{2^{y_{o_r}} - 1}{\log_2(1 + r)}

    Ties: the exact mean over all orders. Never undefined; 0 without a relevant item.

    Parameters
    ----------
    gain : "exp2", "linear" or tuple of float, default="exp2"
        ``2^y - 1`` (labels 0..31), ``y``, or a table indexed by whole labels.
    k : int or None, default=None
        Last rank that counts; ``None`` counts every rank.

    References
    ----------
    Jarvelin and Kekalainen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS
    20(4), 2002. McSherry and Najork, "Computing information retrieval performance measures
    efficiently in the presence of tied scores", ECIR 2008.

    Examples
    --------
    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([0, 2])
    >>> DCG(k=1).bind(data).score(Ranked(np.array([1.0, 1.0]), data.groups))
    1.5
    """

    name: ClassVar[str] = "dcg"
    formula: ClassVar[str] = "sum_{r<=k} (2^y - 1) / log2(1 + r)"
    reference: ClassVar[str] = "Jarvelin and Kekalainen 2002"

    def utilities(self, data: RankingData) -> FloatArray:
        """Return the gains."""
        return DcgUtility(gain=self.gain).values(data)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NDCG(_AbstractGain):
    r"""Normalised discounted cumulative gain.

    .. math:: \mathrm{NDCG@}k = \frac{\mathrm{DCG@}k}{\max_o \mathrm{DCG@}k(o)}

    Ties: the exact mean over all orders. No relevant item: undefined.

    Parameters
    ----------
    gain : "exp2", "linear" or tuple of float, default="exp2"
        ``2^y - 1`` (labels 0..31), ``y``, or a table indexed by whole labels.
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

    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([1, 0])
    >>> NDCG(k=1).bind(data).per_query(Ranked(np.array([1.0, 1.0]), data.groups))
    array([0.5])
    """

    name: ClassVar[str] = "ndcg"
    aliases: ClassVar[tuple[str, ...]] = ("ndcg_cut",)
    formula: ClassVar[str] = "DCG@k / largest DCG@k"
    reference: ClassVar[str] = "Jarvelin and Kekalainen 2002"

    def utilities(self, data: RankingData) -> FloatArray:
        """Return the gains over the ideal DCG."""
        return NdcgUtility(gain=self.gain, k=self.k).values(data)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ERU(AbstractPositional):
    r"""Expected rank utility, with a discount that halves every ``half_life - 1`` ranks.

    .. math:: \sum_i (y_i - v)_+ \, 2^{(1 - \mathrm{rank}_i) / (w - 1)}

    Ties: the exact mean over all orders. Never undefined, unless normalised: then where no
    label exceeds the neutral grade.

    Parameters
    ----------
    neutral : float, default=0
        Grade v that is worth nothing.
    half_life : float, default=5
        Rank w at which the discount is one half; above 1.
    normalize : bool, default=False
        Divide by the largest value of any order.

    References
    ----------
    Breese, Heckerman and Kadie, "Empirical analysis of predictive algorithms for
    collaborative filtering", UAI 1998; Ramaswamy, Agarwal and Tewari, "Convex calibrated
    surrogates for low-rank loss matrices", NIPS 2013, sec. 5.

    Examples
    --------
    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([0, 0, 3])
    >>> ERU(half_life=3).bind(data).score(Ranked(np.array([3.0, 2.0, 1.0]), data.groups))
    1.5
    """

    neutral: float = 0.0
    half_life: float = 5.0
    normalize: bool = False

    name: ClassVar[str] = "eru"
    formula: ClassVar[str] = "sum_i max(y_i - neutral, 0) 2^((1 - rank_i) / (half_life - 1))"
    reference: ClassVar[str] = "Ramaswamy et al. 2013, sec. 5"

    def check(self) -> None:
        """Check the neutral grade and the half-life; grades may be of any size."""
        check_rank_utility(self.neutral, self.half_life)

    def utilities(self, data: RankingData) -> FloatArray:
        """Return the excess over the neutral grade."""
        worth = excess(data.labels, self.neutral)
        if not self.normalize:
            return worth
        table = self.rank_discounts(int(data.groups.sizes.max(initial=0)))
        best = best_sums(worth, table, data.groups)
        return worth / data.groups.spread(np.where(best > 0, best, np.nan))

    def rank_discounts(self, n: int) -> FloatArray:
        """Return the powers of one half."""
        return np.exp2(-np.arange(n) / (self.half_life - 1.0))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spearman(AbstractPositional):
    r"""Spearman's rank correlation of scores and labels.

    .. math:: 1 - \frac{6}{n (n^2 - 1)} \sum_i (\mathrm{rank}_i - \mathrm{rank}(y_i))^2

    Ties of scores: the exact mean over all orders. Equal labels share mid-ranks, which is
    the mean over all orders of the labels. The denominator is not renormalised, so the
    value differs from ``scipy.stats.spearmanr`` where something ties; all scores tied
    give 0. One item: undefined.

    References
    ----------
    Calauzenes, Usunier and Gallinari, "Calibration and regret bounds for order-preserving
    surrogate losses in learning to rank", Machine Learning 93, 2013, Table 1.

    Examples
    --------
    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([3, 1, 2])
    >>> Spearman().bind(data).score(Ranked(np.array([3.0, 1.0, 2.0]), data.groups))
    1.0
    """

    name: ClassVar[str] = "spearman"
    formula: ClassVar[str] = "1 - 6 sum_i (rank_i - label rank_i)^2 / (n (n^2 - 1))"
    reference: ClassVar[str] = "Calauzenes et al. 2013, Table 1"
    upwards: ClassVar[bool] = True

    def utilities(self, data: RankingData) -> FloatArray:
        """Return the number of items with smaller labels."""
        return SpearmanUtility().values(data)

    def rank_discounts(self, n: int) -> FloatArray:
        """Return the number of items below."""
        return np.arange(float(n))

    def factors(self, sizes: IntArray) -> FloatArray:
        """Return ``12 / (n (n^2 - 1))``."""
        n = sizes.astype(np.float64)
        return 12.0 / np.where(sizes > 1, n * (n * n - 1.0), np.nan)

    def offsets(self, data: RankingData) -> FloatArray:
        """Return ``-3 (n - 1) / (n + 1)``."""
        n = data.groups.sizes
        return -3.0 * (n - 1.0) / (n + 1.0)
