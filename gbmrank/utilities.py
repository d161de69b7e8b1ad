"""Utilities u(y): what each item of a query is worth to a metric.

A metric of the positional family is ``sum over ranks of discount(rank) * u(item there)``;
the best order sorts the expected utility, so that is what an objective must learn. Every
utility depends on one query alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, final

import numpy as np

from gbmrank.data import LARGEST, Groups, RankingData
from gbmrank.errors import LabelRangeError, ParameterError
from gbmrank.ranking import (
    Gain,
    best_sums,
    binarise,
    check_gain,
    check_rank_utility,
    check_threshold,
    discounts,
    excess,
    gains,
    mid_ranks,
    query_sums,
)
from gbmrank.types import FloatArray, IntArray

__all__ = [
    "BUILTIN_UTILITIES",
    "WITHOUT_UTILITY",
    "AbstractUtility",
    "AucUtility",
    "DcgUtility",
    "EruUtility",
    "IdentityUtility",
    "MapUtility",
    "NdcgUtility",
    "NetDegreeUtility",
    "PrecisionUtility",
    "RecallUtility",
    "SpearmanUtility",
    "WtaUtility",
    "ideal_dcg",
]


@dataclass(frozen=True, slots=True)
class AbstractUtility(ABC):
    """Per-item value of a metric; the fields are its parameters."""

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    formula: ClassVar[str] = ""

    @abstractmethod
    def values(self, data: RankingData) -> FloatArray:
        """Return u for every row, in query order; NaN for a query where it is undefined."""

    @abstractmethod
    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Return a bound of u for queries of these sizes, or None when there is none."""


@final
@dataclass(frozen=True, slots=True)
class IdentityUtility(AbstractUtility):
    """The label is the utility."""

    name: ClassVar[str] = "identity"
    formula: ClassVar[str] = "y"

    def values(self, data: RankingData) -> FloatArray:
        """Return the labels."""
        return data.labels

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Labels have no bound that is known in advance."""
        return None


@final
@dataclass(frozen=True, slots=True)
class DcgUtility(AbstractUtility):
    """Gain of the label, as in DCG; the cut-off of the metric does not change it.

    Parameters
    ----------
    gain : "exp2", "linear" or tuple of float, default="exp2"
        How labels become gains.
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
        check_gain(self.gain)
        _check_cut_off(self.name, self.k)
        largest = 31.0 if self.gain == "exp2" else LARGEST  # the largest labels that are taken
        if not 0 < self.max_grade <= largest:
            raise ParameterError(
                f"dcg: max_grade must be above 0 and at most {largest:g}, got {self.max_grade:g}"
            )

    def values(self, data: RankingData) -> FloatArray:
        """Return the gains."""
        return _gains(self.name, data.labels, self.gain)

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Gain of the largest grade."""
        if isinstance(self.gain, tuple):
            return np.full(len(sizes), max(self.gain))
        return np.full(len(sizes), float(gains(np.array([self.max_grade]), self.gain)[0]))


@final
@dataclass(frozen=True, slots=True)
class NdcgUtility(AbstractUtility):
    """Gain divided by the ideal DCG@k of the query; undefined when that is zero.

    Parameters
    ----------
    gain : "exp2", "linear" or tuple of float, default="exp2"
        How labels become gains.
    k : int or None, default=None
        Cut-off of the ideal DCG.
    """

    gain: Gain = "exp2"
    k: int | None = None

    name: ClassVar[str] = "ndcg"
    formula: ClassVar[str] = "(2^y - 1) / ideal DCG@k"

    def __post_init__(self) -> None:
        check_gain(self.gain)
        _check_cut_off(self.name, self.k)

    def values(self, data: RankingData) -> FloatArray:
        """Return the normalised gains."""
        gain = _gains(self.name, data.labels, self.gain)
        ideal = ideal_dcg(gain, data.groups, self.k)
        with np.errstate(invalid="ignore", divide="ignore"):
            return gain / data.groups.spread(np.where(ideal > 0, ideal, np.nan))

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """One: the best item alone earns at most the ideal."""
        return np.ones(len(sizes))


@dataclass(frozen=True, slots=True)
class _AbstractBinaryUtility(AbstractUtility):
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

    def __post_init__(self) -> None:
        _check_cut_off(self.name, self.k)
        check_threshold(self.name, self.threshold)

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """One."""
        return np.ones(len(sizes))


@final
@dataclass(frozen=True, slots=True)
class PrecisionUtility(_AbstractBinaryUtility):
    """One for a relevant item, else zero."""

    name: ClassVar[str] = "precision"
    aliases: ClassVar[tuple[str, ...]] = ("prec", "p")
    formula: ClassVar[str] = "y"

    def values(self, data: RankingData) -> FloatArray:
        """Return 0 and 1."""
        return binarise(data.labels, self.threshold, data.groups)


@final
@dataclass(frozen=True, slots=True)
class WtaUtility(_AbstractBinaryUtility):
    """Winner takes all, which is precision at 1."""

    name: ClassVar[str] = "wta"
    formula: ClassVar[str] = "y"

    def values(self, data: RankingData) -> FloatArray:
        """Return 0 and 1."""
        return binarise(data.labels, self.threshold, data.groups)


@final
@dataclass(frozen=True, slots=True)
class RecallUtility(_AbstractBinaryUtility):
    """One over the number of relevant items, for each of them."""

    name: ClassVar[str] = "recall"
    aliases: ClassVar[tuple[str, ...]] = ("rec",)
    formula: ClassVar[str] = "y / P"

    def values(self, data: RankingData) -> FloatArray:
        """Return y / P; undefined without a relevant item."""
        return _shared_out(data, self.threshold)


@final
@dataclass(frozen=True, slots=True)
class MapUtility(_AbstractBinaryUtility):
    """The same vector as for recall: the standardisation of average precision.

    Average precision has no utility in general. Losses that preserve the order of this one
    are calibrated for it on distributions with the reinforcement property
    (Ramaswamy, Agarwal and Tewari, "Convex calibrated surrogates for low-rank loss
    matrices with applications to subset ranking losses", NIPS 2013, Cor. 5).
    """

    name: ClassVar[str] = "map"
    aliases: ClassVar[tuple[str, ...]] = ("ap",)
    formula: ClassVar[str] = "y / P"

    def values(self, data: RankingData) -> FloatArray:
        """Return y / P; undefined without a relevant item."""
        return _shared_out(data, self.threshold)


@final
@dataclass(frozen=True, slots=True)
class AucUtility(_AbstractBinaryUtility):
    """One over the number of (relevant, other) pairs, for each relevant item."""

    name: ClassVar[str] = "auc"
    formula: ClassVar[str] = "y / (P N)"

    def values(self, data: RankingData) -> FloatArray:
        """Return y / (P N); undefined when all labels are alike."""
        binary = binarise(data.labels, self.threshold, data.groups)
        positives = query_sums(binary, data.groups)
        pairs = positives * (data.groups.sizes - positives)
        return binary / data.groups.spread(np.where(pairs > 0, pairs, np.nan))

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Reached by one relevant item: 1 / (n - 1)."""
        return 1.0 / np.maximum(sizes - 1, 1)


@final
@dataclass(frozen=True, slots=True)
class SpearmanUtility(AbstractUtility):
    """Number of items below: n minus the rank by label, equal labels sharing mid-ranks."""

    name: ClassVar[str] = "spearman"
    formula: ClassVar[str] = "n - rank of y"

    def values(self, data: RankingData) -> FloatArray:
        """Return n - rank; zero for a single item."""
        return data.groups.spread(data.groups.sizes) - mid_ranks(data.labels, data.groups)

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Number of other items, at least 1 so that a bound is positive."""
        return np.maximum(sizes - 1.0, 1.0)


@final
@dataclass(frozen=True, slots=True)
class EruUtility(AbstractUtility):
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
        check_rank_utility(self.neutral, self.half_life)
        if not self.neutral < self.max_grade < np.inf:
            raise ParameterError(
                f"eru: max_grade must be above neutral={self.neutral:g}, got {self.max_grade:g}"
            )

    def values(self, data: RankingData) -> FloatArray:
        """Return the positive part of y - neutral."""
        return excess(data.labels, self.neutral)

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Excess of the largest grade."""
        return np.full(len(sizes), self.max_grade - self.neutral)


@final
@dataclass(frozen=True, slots=True)
class NetDegreeUtility(AbstractUtility):
    """Net degree in the preference graph of the labels: ``n y - sum of y``.

    It may be negative, so it is for losses that need no sign: ``squared``.
    """

    name: ClassVar[str] = "net_degree"
    formula: ClassVar[str] = "n y_i - sum_j y_j"

    def values(self, data: RankingData) -> FloatArray:
        """Return the net degrees."""
        sizes = data.groups.spread(data.groups.sizes)
        return sizes * data.labels - data.groups.spread(query_sums(data.labels, data.groups))

    def upper_bounds(self, sizes: IntArray) -> FloatArray | None:
        """Labels have no bound that is known in advance."""
        return None


def ideal_dcg(gain: FloatArray, groups: Groups, k: int | None) -> FloatArray:
    """Return the largest DCG@k of each query, shape (n_queries,)."""
    return best_sums(gain, discounts(int(groups.sizes.max(initial=0)), k), groups)


def _gains(name: str, labels: FloatArray, gain: Gain) -> FloatArray:
    """Return gains; a refusal gives advice that holds for a target and for a metric."""
    if len(labels) and labels.min() < 0:
        raise LabelRangeError(
            f"gain={gain!r} needs labels that are not negative, got {labels.min():g}; shift them, "
            "or use what only compares labels: the objective ranknet, the metric "
            "pairwise_disagreement"
        )
    try:
        return gains(labels, gain)
    except LabelRangeError as error:
        raise LabelRangeError(f"{error}; a target says it as {name}(gain=linear)") from None


def _check_cut_off(name: str, k: int | None) -> None:
    if k is not None and k < 1:
        raise ParameterError(f"{name}: a cut-off is a whole number of at least 1, got {k}")


def _shared_out(data: RankingData, threshold: float | None) -> FloatArray:
    binary = binarise(data.labels, threshold, data.groups)
    positives = query_sums(binary, data.groups)
    return binary / data.groups.spread(np.where(positives > 0, positives, np.nan))


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
)

_TOP_INSTEAD = "a push risk (pnorm_push) favours the top; target=wta or ndcg@1 has a theorem"
WITHOUT_UTILITY: Mapping[str, str] = MappingProxyType(
    {
        "err": "no loss that orders items by expected utility is calibrated for ERR, whatever "
        "the utility (Calauzenes, Usunier and Gallinari 2013, Theorem 3.3); use target=ndcg "
        "(or dcg), whose utility is graded and discounted too, and watch err as a metric",
        "mrr": "no calibration result is known for the reciprocal rank; " + _TOP_INSTEAD,
        "ptop": "no calibration result is known for positives at the top; " + _TOP_INSTEAD,
        "pairwise_disagreement": "it is a loss on pairs; use target=net_degree with loss=squared, "
        "or the linear template (calibrated under low noise)",
    }
)
"""Metrics that are not of the positional family, with the reason and what to use instead."""
