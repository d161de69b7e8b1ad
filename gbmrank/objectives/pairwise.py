"""Order-preserving pairwise objectives."""

from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from gbmrank.data import RankingData
from gbmrank.errors import LabelRangeError
from gbmrank.kernels import compiler, pool
from gbmrank.kernels.layout import GradHess, ItemQueries
from gbmrank.losses import AbstractLoss, Logistic
from gbmrank.objectives.base import (
    AbstractBound,
    AbstractObjective,
    HessianTrait,
    query_scale,
    rows_by_value,
    run_queries,
)
from gbmrank.types import FloatArray
from gbmrank.utilities import AbstractUtility, NdcgUtility

__all__ = ["Pairwise"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pairwise(AbstractObjective):
    r"""Every pair of items, each side weighted by its utility.

    For one query with utilities v and scores s,

    .. math::
        L = \sum_i v_i \sum_{j \ne i} \varphi(s_i - s_j), \qquad
        g_i = \sum_{j \ne i} v_i \varphi'(s_i - s_j) - v_j \varphi'(s_j - s_i), \qquad
        h_i = \sum_{j \ne i} v_i \varphi''(s_i - s_j) + v_j \varphi''(s_j - s_i).

    With a differentiable, non-increasing loss of negative slope at zero, minimising it
    orders items by expected utility, so it is calibrated for every metric with that
    utility. It pulls equal labels together. One item, or no useful item: zero.

    Parameters
    ----------
    loss : loss, default=logistic
        Penalty of a margin.
    target : utility, default=ndcg
        What an item is worth: the utility of the metric to optimise.

    References
    ----------
    Calauzenes, Usunier and Gallinari, "Calibration and regret bounds for order-preserving
    surrogate losses in learning to rank", Machine Learning 93, 2013, sec. 3.
    """

    loss: AbstractLoss = field(default=Logistic(), metadata={"kind": "loss", "shown": True})
    target: AbstractUtility = field(
        default=NdcgUtility(), metadata={"kind": "utility", "shown": True}
    )
    normalize: str = "items"

    name: ClassVar[str] = "pairwise"
    formula: ClassVar[str] = "sum_i u_i sum_j phi(s_i - s_j)"
    cost: ClassVar[str] = "O(n^2)"
    reference: ClassVar[str] = "Calauzenes et al. 2013, sec. 3"
    shift_invariant: ClassVar[bool] = True

    @property
    def hessian_trait(self) -> HessianTrait:
        """Exact diagonal; twice that, which bounds the Laplacian; or one."""
        traits: dict[str, HessianTrait] = {"majorise": "bound", "constant": "constant"}
        return traits.get(self.hessian, "exact")

    def bind(self, data: RankingData) -> AbstractBound:
        """Sort each query by utility."""
        return _BoundPairwise(self, data)


class _BoundPairwise(AbstractBound):
    __slots__ = ("chunks", "constant", "curvature", "kernels", "params", "queries")

    def __init__(self, objective: Pairwise, data: RankingData) -> None:
        super().__init__(data.groups)
        from gbmrank.kernels.logistic import fast_pairs

        utilities = objective.target.values(data)
        scale = query_scale(data, objective.normalize)
        undefined = np.isnan(utilities)
        utilities = np.where(undefined, 0.0, utilities)
        _check_not_negative(utilities, objective, data)
        order = rows_by_value(utilities, data.groups)
        arranged = utilities[order]
        useful = np.add.reduceat(arranged > 0, data.groups.offsets[:-1], dtype=np.int64)
        self.queries = ItemQueries(data.groups.offsets, order, arranged, useful, scale)
        self.chunks = pool.cut_into_chunks(data.groups.sizes.astype(np.float64) * useful + 100.0)
        self.curvature = 2.0 if objective.hessian == "majorise" else 1.0
        weight = data.query_weight()
        ones = np.ones(data.groups.n_queries) if weight is None else weight
        self.constant = data.groups.spread(ones) if objective.hessian == "constant" else None
        self.params = objective.loss.params
        self.kernels = compiler.load("all_pairs", phi=objective.loss.kappa, fast_pairs=fast_pairs)

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Visit every pair with a useful item once."""
        run_queries(
            lambda span: self.kernels.gradients(
                self.queries, span, scores, self.params, single, out
            ),
            self.chunks,
            self.groups,
        )
        if self.constant is not None:
            out.hess[:] = self.constant
        elif self.curvature != 1.0:
            out.hess *= self.curvature  # type: ignore[misc]

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the loss of each query."""
        values = np.empty(self.groups.n_queries)
        run_queries(
            lambda span: self.kernels.values(self.queries, span, scores, self.params, values),
            self.chunks,
            self.groups,
        )
        return values


def _check_not_negative(utilities: FloatArray, objective: Pairwise, data: RankingData) -> None:
    negative = np.flatnonzero(utilities < 0)
    if len(negative):
        row = int(negative[0])
        raise LabelRangeError(
            f"pairwise(loss={objective.loss.name}) weighs items by their utility, which cannot be "
            f"negative; target={objective.target.name} gives {utilities[row]:g} in query "
            f"{data.groups.query_of(row)!r}; shift the labels or use loss=squared"
        )
