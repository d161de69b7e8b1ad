"""Listwise objectives: softmax cross entropies, and metrics with smooth ranks.

Each objective is one function of a query, ``(labels, scores, grad, hess, ...) -> loss``,
which gbmrank compiles and runs over queries in threads.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from gbmrank.errors import ParameterError
from gbmrank.extend import (
    AbstractBound,
    AbstractObjective,
    FloatArray,
    HessianTrait,
    RankingData,
    binarise,
    bind_queries,
    gains,
)
from gbmrank.numerics import sigmoid

__all__ = ["XENDCG", "ApproxAP", "ApproxMRR", "ApproxNDCG", "ListNet"]

gbmrank_api = 1


def softmax_entropy(
    labels: FloatArray, scores: FloatArray, grad: FloatArray, hess: FloatArray
) -> float:
    """Cross entropy of shares (given as labels, of any positive sum) and the softmax."""
    total, level = labels.sum(), scores.max()
    if total <= 0.0 or len(scores) < 2:
        return 0.0
    mass = np.exp(scores - level).sum()
    value = 0.0
    for i in range(len(scores)):
        p = np.exp(scores[i] - level) / mass
        share = labels[i] / total
        value += share * (level + np.log(mass) - scores[i])
        grad[i] += p - share
        hess[i] += p * (1.0 - p)
    return value


def smooth_ranks(scores: FloatArray, temperature: float) -> FloatArray:
    """Return one plus the softened number of items above each item."""
    ranks = np.ones(len(scores))
    for i in range(len(scores)):
        for j in range(len(scores)):
            if j != i:
                ranks[i] += sigmoid((scores[j] - scores[i]) / temperature)
    return ranks


def add_rank_slopes(
    slopes: FloatArray,
    scores: FloatArray,
    grad: FloatArray,
    hess: FloatArray,
    temperature: float,
) -> None:
    """Apply the chain rule from ranks to scores; the Hessian sums absolute terms."""
    for i in range(len(scores)):
        for j in range(len(scores)):
            if j != i:
                s = sigmoid((scores[j] - scores[i]) / temperature)
                bend = s * (1.0 - s) / temperature
                grad[i] -= slopes[i] * bend
                grad[j] += slopes[i] * bend
                hess[i] += abs(slopes[i]) * bend / temperature
                hess[j] += abs(slopes[i]) * bend / temperature


def approx_ndcg(
    labels: FloatArray,
    scores: FloatArray,
    grad: FloatArray,
    hess: FloatArray,
    temperature: float,
) -> float:
    """One minus NDCG with smooth ranks; labels are gains."""
    ideal = 0.0
    best = np.sort(labels)[::-1]
    for i in range(len(best)):
        ideal += best[i] / np.log2(i + 2.0)
    if ideal <= 0.0 or len(scores) < 2:
        return 0.0
    ranks = smooth_ranks(scores, temperature)
    slopes = np.empty(len(scores))
    value = 1.0
    for i in range(len(scores)):
        log = np.log2(1.0 + ranks[i])
        value -= labels[i] / (ideal * log)
        slopes[i] = labels[i] / (ideal * log * log * (1.0 + ranks[i]) * math.log(2.0))
    add_rank_slopes(slopes, scores, grad, hess, temperature)
    return value


def approx_mrr(
    labels: FloatArray,
    scores: FloatArray,
    grad: FloatArray,
    hess: FloatArray,
    temperature: float,
) -> float:
    """One minus the mean reciprocal smooth rank of the relevant items."""
    relevant = labels.sum()
    if relevant <= 0.0 or relevant == len(scores) or len(scores) < 2:
        return 0.0
    ranks = smooth_ranks(scores, temperature)
    slopes = labels / (relevant * ranks * ranks)
    add_rank_slopes(slopes, scores, grad, hess, temperature)
    return 1.0 - (labels / ranks).sum() / relevant


def approx_ap(
    labels: FloatArray,
    scores: FloatArray,
    grad: FloatArray,
    hess: FloatArray,
    temperature: float,
) -> float:
    """One minus average precision with smooth ranks among all and among relevant items."""
    relevant = labels.sum()
    if relevant <= 0.0 or relevant == len(scores) or len(scores) < 2:
        return 0.0
    ranks = smooth_ranks(scores, temperature)
    value = 1.0
    slopes = np.zeros(len(scores))
    for i in range(len(scores)):
        if labels[i] == 0.0:
            continue
        above = 1.0
        for j in range(len(scores)):
            if j != i and labels[j] > 0.0:
                above += sigmoid((scores[j] - scores[i]) / temperature)
        value -= above / (ranks[i] * relevant)
        slopes[i] = above / (ranks[i] * ranks[i] * relevant)
        for j in range(len(scores)):
            if j != i and labels[j] > 0.0:
                s = sigmoid((scores[j] - scores[i]) / temperature)
                pull = s * (1.0 - s) / (temperature * ranks[i] * relevant)
                grad[i] += pull
                grad[j] -= pull
                hess[i] += pull / temperature
                hess[j] += pull / temperature
    add_rank_slopes(slopes, scores, grad, hess, temperature)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractSoftmax(AbstractObjective):
    """Softmax cross entropy; subclasses define the target share of each label."""

    cost: ClassVar[str] = "O(n)"
    shift_invariant: ClassVar[bool] = True

    @property
    def hessian_trait(self) -> HessianTrait:
        """Exact, or constant on request."""
        return "constant" if self.hessian == "constant" else "exact"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListNet(AbstractSoftmax):
    r"""ListNet with top-one probabilities.

    .. math:: L = -\sum_i \frac{e^{y_i}}{\sum_j e^{y_j}} \log \frac{e^{s_i}}{\sum_j e^{s_j}}

    References
    ----------
    Cao, Qin, Liu, Tsai and Li, "Learning to rank: from pairwise approach to listwise
    approach", ICML 2007.
    """

    name: ClassVar[str] = "listnet_top1"
    formula: ClassVar[str] = "-sum_i softmax(y)_i log softmax(s)_i"
    reference: ClassVar[str] = "Cao et al. 2007"

    def bind(self, data: RankingData) -> AbstractBound:
        """Compute the shares."""
        tops = np.maximum.reduceat(data.labels, data.groups.offsets[:-1])
        shares = np.exp(data.labels - data.groups.spread(tops))
        return bind_queries(self, data, softmax_entropy, labels=shares)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class XENDCG(AbstractSoftmax):
    r"""Cross entropy with shares in proportion to :math:`2^{y_i} - \gamma`.

    Bruch draws a new gamma for every item in each round; here it is fixed, by default at its
    mean of one half, so training needs no random numbers.

    Parameters
    ----------
    gamma : float, default=0.5
        Between 0 and 1; at 1 items of label 0 have no share.

    References
    ----------
    Bruch, "An alternative cross entropy loss for learning-to-rank", WWW 2021.
    """

    gamma: float = 0.5

    name: ClassVar[str] = "xe_ndcg"
    formula: ClassVar[str] = "-sum_i (2^y_i - gamma) / sum_j (2^y_j - gamma) log softmax(s)_i"
    reference: ClassVar[str] = "Bruch 2021, with gamma at its mean"

    def __post_init__(self) -> None:
        super(XENDCG, self).__post_init__()
        if not 0.0 <= self.gamma <= 1.0:
            raise ParameterError(f"xe_ndcg: gamma must be between 0 and 1, got {self.gamma}")

    def bind(self, data: RankingData) -> AbstractBound:
        """Compute the shares."""
        shares = gains(data.labels, "exp2") + 1.0 - self.gamma
        return bind_queries(self, data, softmax_entropy, labels=shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractSmoothRanks(AbstractObjective):
    r"""One minus a metric in which the rank of an item is smooth.

    .. math:: r_i = 1 + \sum_{j \ne i} \frac{1}{1 + e^{(s_i - s_j) / T}}

    Not convex; the Hessian sums the absolute terms of the chain rule, a positive scale.
    """

    temperature: float = 1.0

    cost: ClassVar[str] = "O(n^2)"
    shift_invariant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super(AbstractSmoothRanks, self).__post_init__()
        if not 0.0 < self.temperature < math.inf:
            raise ParameterError(
                f"{self.name}: temperature must be a number above 0, got {self.temperature}"
            )

    @property
    def hessian_trait(self) -> HessianTrait:
        """A scale, or constant on request."""
        return "constant" if self.hessian == "constant" else "heuristic"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ApproxNDCG(AbstractSmoothRanks):
    r"""One minus NDCG with smooth ranks.

    Parameters
    ----------
    temperature : float, default=1
        Smaller values are closer to NDCG and harder to train.

    References
    ----------
    Qin, Liu and Li, "A general approximation framework for direct optimization of information
    retrieval measures", Information Retrieval 13, 2010.
    """

    name: ClassVar[str] = "approx_ndcg"
    formula: ClassVar[str] = "1 - sum_i (2^y_i - 1) / log2(1 + r_i) / ideal, smooth ranks r"
    reference: ClassVar[str] = "Qin et al. 2010"

    def bind(self, data: RankingData) -> AbstractBound:
        """Compute gains."""
        worth = gains(data.labels, "exp2")
        return bind_queries(self, data, approx_ndcg, (self.temperature,), labels=worth)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ApproxMRR(AbstractSmoothRanks):
    """One minus the mean reciprocal smooth rank of relevant items.

    Parameters
    ----------
    temperature : float, default=1
        Smaller values are closer to ranks and harder to train.
    threshold : float or None, default=None
        Labels of at least this are relevant; needed for graded labels.

    References
    ----------
    Qin, Liu and Li, Information Retrieval 13, 2010; Bruch et al., SIGIR 2019.
    """

    threshold: float | None = None

    name: ClassVar[str] = "approx_mrr"
    formula: ClassVar[str] = "1 - mean over relevant i of 1 / r_i, smooth ranks r"
    reference: ClassVar[str] = "Qin et al. 2010"

    def bind(self, data: RankingData) -> AbstractBound:
        """Read relevance."""
        worth = binarise(data.labels, self.threshold, data.groups)
        return bind_queries(self, data, approx_mrr, (self.temperature,), labels=worth)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ApproxAP(AbstractSmoothRanks):
    """One minus average precision with smooth ranks.

    Parameters
    ----------
    temperature : float, default=1
        Smaller values are closer to average precision and harder to train.
    threshold : float or None, default=None
        Labels of at least this are relevant; needed for graded labels.

    References
    ----------
    Qin, Liu and Li, Information Retrieval 13, 2010, sec. 4.
    """

    threshold: float | None = None

    name: ClassVar[str] = "approx_ap"
    formula: ClassVar[str] = "1 - mean over relevant i of (relevant above i + 1) / r_i, smooth"
    reference: ClassVar[str] = "Qin et al. 2010"

    def bind(self, data: RankingData) -> AbstractBound:
        """Read relevance."""
        worth = binarise(data.labels, self.threshold, data.groups)
        return bind_queries(self, data, approx_ap, (self.temperature,), labels=worth)
