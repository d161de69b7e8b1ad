"""LambdaRank and LambdaLoss: any pair loss, weighted by what swapping the pair would change.

The weights depend on the ranks that the scores give at the moment, and count as constants when
the gradient is taken: the trait ``gradient = "frozen_weights"``. Items with equal scores share
their ranks: a pair has the mean weight over all orders of tied items, so the order of rows
never matters, and the first round, where all scores are equal, treats all items alike.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, final

import numpy as np

from gbmrank.errors import ParameterError
from gbmrank.extend import (
    AbstractBound,
    AbstractLoss,
    AbstractObjective,
    FloatArray,
    HessianTrait,
    Logistic,
    RankingData,
    bind_queries,
    gains,
    pair_curvature,
)

__all__ = ["LambdaRank", "NDCGLoss2", "NDCGLoss2PP"]

gbmrank_api = 1
Block: TypeAlias = tuple[int, int, int, int]  # first and last + 1 of two runs of positions


def swap_discounts(discounts: FloatArray, a: int, b: int, mu: float) -> float:  # noqa: ARG001
    """Difference of the discounts of two positions, a before b: LambdaRank."""
    return discounts[a] - discounts[b]


def swap_distance(discounts: FloatArray, a: int, b: int, mu: float) -> float:  # noqa: ARG001
    """Difference of the discounts at ranks equal to the distance and one more: NDCG-Loss2."""
    return discounts[b - a - 1] - discounts[b - a]


def swap_both(discounts: FloatArray, a: int, b: int, mu: float) -> float:
    """Sum of the other two, with a factor: NDCG-Loss2++."""
    return discounts[a] - discounts[b] + mu * (discounts[b - a - 1] - discounts[b - a])


def ideal_gain(gains: FloatArray, discounts: FloatArray, k: float) -> float:
    """Return the largest DCG at cut-off k."""
    best = np.sort(gains)[::-1]
    total = 0.0
    for i in range(len(best)):
        if i < k:
            total += best[i] * discounts[i]
    return total


def block_ends(ordered: FloatArray) -> Any:
    """Return for each position of sorted scores where its block of ties ends."""
    ends = np.empty(len(ordered), np.int64)
    last = len(ordered)
    for i in range(len(ordered) - 1, -1, -1):
        if i + 1 < len(ordered) and ordered[i] != ordered[i + 1]:
            last = i + 1
        ends[i] = last
    return ends


@functools.cache
def mean_weight_of(swap: Callable[..., float]) -> Callable[..., float]:
    """Return the mean weight of two items over the positions that their blocks hold."""

    def mean_weight(discounts: FloatArray, block: Block, k: float, mu: float) -> float:
        total, count = 0.0, 0
        for i in range(block[0], block[1]):
            for j in range(max(block[2], i + 1), block[3]):
                count += 1
                if i < k:
                    total += swap(discounts, i, j, mu)
        return total / max(count, 1)

    return mean_weight


@functools.cache
def pairs_of(phi: Callable[..., Any]) -> Callable[..., float]:
    """Return the sum over the pairs of two blocks (or within one) for a pair loss."""

    def add_pairs(
        gains: FloatArray,
        scores: FloatArray,
        out: tuple[FloatArray, FloatArray],
        order: Any,
        block: Block,
        weight: float,
        *params: float,
    ) -> float:
        value = 0.0
        for p in range(block[0], block[1]):
            for q in range(max(block[2], p + 1), block[3]):
                i, j = order[p], order[q]
                if gains[i] < gains[j]:
                    i, j = j, i
                w = weight * (gains[i] - gains[j])
                if w > 0.0:
                    each, slope, bend = phi(scores[i] - scores[j], *params)
                    value += w * each
                    out[0][i] += w * slope
                    out[0][j] -= w * slope
                    out[1][i] += w * bend
                    out[1][j] += w * bend
        return value

    return add_pairs


@functools.cache
def lambda_query(phi: Callable[..., Any], swap: Callable[..., float]) -> Callable[..., float]:
    """Return the function of a query for a pair loss and a swap weight."""
    mean_weight, add_pairs = mean_weight_of(swap), pairs_of(phi)

    def query(
        labels: FloatArray,
        scores: FloatArray,
        at: FloatArray,
        grad: FloatArray,
        hess: FloatArray,
        k: float,
        mu: float,
        factor: float,
        *params: float,
    ) -> float:
        """Labels are gains; a pair counts when one of its items is among the first k."""
        n = len(scores)
        discounts = 1.0 / np.log2(np.arange(2, n + 3))
        ideal = ideal_gain(labels, discounts, k)
        if ideal <= 0.0 or n < 2:
            return 0.0
        order = np.argsort(-at)
        ends = block_ends(at[order])
        value, a = 0.0, 0
        while a < n and a < k:
            b = a
            while b < n:
                block = (a, ends[a], b, ends[b])
                weight = mean_weight(discounts, block, k, mu) / ideal
                value += add_pairs(labels, scores, (grad, hess), order, block, weight, *params)
                b = ends[b]
            a = ends[a]
        for i in range(n):
            hess[i] *= factor
        return value

    return query


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractLambda(AbstractObjective):
    r"""A pair loss times a swap weight.

    .. math::
        L = \frac{1}{\mathrm{DCG}^*@k} \sum_{y_i > y_j} (2^{y_i} - 2^{y_j})\, w_{ij}\,
            \varphi(s_i - s_j)

    over the pairs of which at least one item is among the first k.
    """

    loss: AbstractLoss = field(default=Logistic(), metadata={"kind": "loss", "shown": True})
    k: int | None = None

    cost: ClassVar[str] = "O(n min(n, k))"
    shift_invariant: ClassVar[bool] = True
    gradient: ClassVar[Literal["exact", "frozen_weights"]] = "frozen_weights"
    swap: ClassVar[Any]

    def __post_init__(self) -> None:
        super(AbstractLambda, self).__post_init__()
        if self.k is not None and self.k < 1:
            raise ParameterError(f"{self.name}: the cut-off k must be at least 1, got {self.k}")
        if self.loss.pair_form != "margin":
            raise ParameterError(f"{self.name}: the loss {self.loss.name} has no margin form")
        pair_curvature(self.name, self.loss, self.hessian)

    @property
    def hessian_trait(self) -> HessianTrait:
        """What the Hessian of the pair loss is."""
        return pair_curvature(self.name, self.loss, self.hessian).trait

    def bind(self, data: RankingData) -> AbstractBound:
        """Compute gains."""
        curvature = pair_curvature(self.name, self.loss, self.hessian)
        query = lambda_query(curvature.phi, type(self).swap)
        k = math.inf if self.k is None else float(self.k)
        params = (k, float(getattr(self, "mu", 0.0)), curvature.factor, *self.loss.params)
        return bind_queries(self, data, query, params, labels=gains(data.labels, "exp2"))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LambdaRank(AbstractLambda):
    r"""LambdaRank: the weight of a pair is the change of NDCG when it is swapped.

    .. math:: w_{ij} = |d(r_i) - d(r_j)|, \qquad d(r) = 1 / \log_2(1 + r)

    Parameters
    ----------
    loss : loss, default=logistic
        Penalty of a margin.
    k : int or None, default=None
        Truncation: one item of a pair is among the first k, and DCG is normalised at k.

    References
    ----------
    Burges, "From RankNet to LambdaRank to LambdaMART: an overview", MSR-TR-2010-82.
    """

    name: ClassVar[str] = "lambdarank"
    formula: ClassVar[str] = (
        "sum over y_i > y_j of |change of NDCG by swapping i, j| phi(s_i - s_j)"
    )
    reference: ClassVar[str] = "Burges 2010"
    swap: ClassVar[Any] = staticmethod(swap_discounts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NDCGLoss2(AbstractLambda):
    r"""LambdaLoss with the bound NDCG-Loss2.

    .. math:: w_{ij} = |d(|r_i - r_j|) - d(|r_i - r_j| + 1)|

    Parameters are those of :class:`LambdaRank`.

    References
    ----------
    Wang, Li, Golbandi, Bendersky and Najork, "The LambdaLoss framework for ranking metric
    optimization", CIKM 2018, sec. 5.2.
    """

    name: ClassVar[str] = "ndcg_loss2"
    formula: ClassVar[str] = "sum over y_i > y_j of (G_i - G_j) (d(gap) - d(gap+1)) phi(s_i - s_j)"
    reference: ClassVar[str] = "Wang et al. 2018"
    swap: ClassVar[Any] = staticmethod(swap_distance)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NDCGLoss2PP(AbstractLambda):
    r"""LambdaLoss with NDCG-Loss2++: LambdaRank plus mu times NDCG-Loss2.

    Parameters
    ----------
    loss, k
        Those of :class:`LambdaRank`.
    mu : float, default=10
        Factor of the second part.

    References
    ----------
    Wang, Li, Golbandi, Bendersky and Najork, "The LambdaLoss framework for ranking metric
    optimization", CIKM 2018, sec. 5.3.
    """

    mu: float = 10.0

    name: ClassVar[str] = "ndcg_loss2pp"
    formula: ClassVar[str] = "lambdarank + mu ndcg_loss2"
    reference: ClassVar[str] = "Wang et al. 2018"
    swap: ClassVar[Any] = staticmethod(swap_both)

    def __post_init__(self) -> None:
        super(NDCGLoss2PP, self).__post_init__()
        if not 0.0 <= self.mu < math.inf:
            raise ParameterError(f"ndcg_loss2pp: mu is not negative, got {self.mu}")
