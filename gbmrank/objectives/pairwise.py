"""Order-preserving pairwise objectives, and squared error up to a shift per query."""

from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from gbmrank.data.queries import DEBIASED, Groups, RankingData
from gbmrank.data.query_order import query_sums, rows_by_value
from gbmrank.errors import ParameterError
from gbmrank.kernels.layout import GradHess, ItemQueries
from gbmrank.losses import AbstractLoss, Logistic
from gbmrank.losses.utilities import AbstractUtility, IdentityUtility, NdcgUtility
from gbmrank.objectives.base import (
    AbstractBound,
    AbstractObjective,
    HessianTrait,
    check_choice,
    check_losses,
    constant_hessian,
    query_scale,
    row_scale,
)
from gbmrank.objectives.pair_sums import (
    PAIRS,
    BoundPairs,
    check_engine,
    linear_accuracy,
    pair_curvature,
)
from gbmrank.objectives.pointwise import check_not_negative, read_utilities, with_options
from gbmrank.types import FloatArray


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pairwise(AbstractObjective):
    r"""Loss over all ordered pairs of items, weighted by the utility of the first item.

    For one query with utilities v and scores s,

    .. math::
        L = \sum_i v_i \sum_{j \ne i} \varphi(s_i - s_j), \qquad
        g_i = \sum_{j \ne i} v_i \varphi'(s_i - s_j) - v_j \varphi'(s_j - s_i), \qquad
        h_i = \sum_{j \ne i} v_i \varphi''(s_i - s_j) + v_j \varphi''(s_j - s_i).

    With a differentiable, non-increasing loss of negative slope at zero, minimising it
    orders items by expected utility, so it is calibrated for every metric with that
    utility. It pulls the scores of equal labels together. Zero for a query with one item, or
    without a useful item.

    Item weights are supported: a weight multiplies the utility of its item, and so the terms in
    which that item is preferred. With the squared loss the mean weight of a query multiplies the
    query, and the weights divided by that mean multiply the utilities.

    Parameters
    ----------
    target : utility, default=ndcg
        What an item is worth: the utility of the metric to optimise.
    threshold : float or None, default=None
        Labels of at least this are relevant, for binary targets on graded labels; it is
        passed to the target, as in ``target=map(threshold=1)``.

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
    engine: str = "auto"
    threshold: float | None = None

    name: ClassVar[str] = "pairwise"
    formula: ClassVar[str] = "sum_i u_i sum_j phi(s_i - s_j)"
    cost: ClassVar[str] = "O(n^2), O(n) for long queries"
    reference: ClassVar[str] = "Calauzenes et al. 2013, sec. 3"
    shift_invariant: ClassVar[bool] = True
    item_weights: ClassVar[bool] = True
    linear_in_utility: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super(Pairwise, self).__post_init__()
        target = with_options(self.target, None, self.threshold)
        object.__setattr__(self, "target", target)  # one text, however it was written
        object.__setattr__(self, "threshold", None)
        if self.loss.pair_form == "none":
            raise ParameterError(
                f"pairwise: the loss {self.loss.name} is for items, not for pairs; use it in "
                "pointwise, or squared_hinge here"
            )
        if self.loss.pair_form == "margin":
            pair_curvature(self.name, self.loss, self.hessian)
            check_engine(self.name, self.loss, self.hessian, self.engine)
        else:
            check_choice(self.name, "engine", self.engine, ("auto", "closed"))

    @property
    def why_unsorted(self) -> str:
        """The loss has a kink."""
        return f"the kink of {self.loss.name} makes it tie items of different expected utility"

    @property
    def hessian_trait(self) -> HessianTrait:
        """What the returned Hessian is."""
        if self.loss.pair_form == "difference":
            traits: dict[str, HessianTrait] = {"majorise": "bound", "constant": "constant"}
            return traits.get(self.hessian, "exact")
        return pair_curvature(self.name, self.loss, self.hessian).trait

    @property
    def accuracy(self) -> float | None:
        """Largest relative error of the linear-time engine."""
        if self.loss.pair_form == "difference":
            return None
        return linear_accuracy(PAIRS, self.loss, self.hessian, self.engine)

    def bind(self, data: RankingData) -> AbstractBound:
        """Sort each query by utility."""
        data, items = data.split_weight()
        utilities = read_utilities(self.target, data)
        scale = query_scale(data, self.normalize)
        scale[np.isnan(utilities[data.groups.offsets[:-1]])] = 0.0
        utilities = np.nan_to_num(utilities, nan=0.0) * (1.0 if items is None else items)
        if self.loss.pair_form == "difference":
            return self._bind_differences(data, utilities, scale)
        if DEBIASED not in data.columns:  # estimates may be negative where their mean is not
            owner = f"pairwise(loss={self.loss.name})"
            check_not_negative(owner, utilities, self.target, data, "loss=squared")
        order = rows_by_value(np.abs(utilities), data.groups)
        arranged = utilities[order]
        useful = np.add.reduceat(arranged != 0, data.groups.offsets[:-1], dtype=np.int64)
        queries = ItemQueries(data.groups.offsets, order, arranged, useful, scale)
        return BoundPairs(self, PAIRS, data, queries)

    def _bind_differences(
        self, data: RankingData, utilities: FloatArray, scale: FloatArray
    ) -> AbstractBound:
        sizes, constant = data.groups.sizes.astype(np.float64), constant_hessian(self.hessian, data)
        bound = _BoundCentred(data.groups, utilities, np.ones(len(utilities)), sizes * scale)
        twice = 4.0 if self.hessian == "majorise" else 2.0
        curvature = data.groups.spread(twice * (sizes - 1.0) * scale)
        bound.curvature = curvature if constant is None else constant
        return bound


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRMSE(AbstractObjective):
    r"""Squared error of the scores after the best shift per query.

    .. math::
        L = \min_b \sum_i (s_i - u_i - b)^2, \qquad g_i = 2 (r_i - \bar r), \quad r = s - u

    It equals ``pairwise(loss=squared)`` divided by the number of items, so it also orders items
    by expected utility, but takes linear time. Item weights are supported: they multiply the
    squares, and the best shift is the weighted mean of r. Zero for a query with one item, or
    where the utility is undefined.

    Parameters
    ----------
    hessian : {"auto", "exact", "majorise", "constant"}, default="auto"
        ``auto`` means ``majorise``: the constant 2, since the Hessian is at most 2 times the
        identity. ``exact`` is the diagonal, 2 (1 - 1/n).

    References
    ----------
    Calauzenes, Usunier and Gallinari, Machine Learning 93, 2013, Table 2, for the squared loss.
    """

    target: AbstractUtility = field(
        default=IdentityUtility(), metadata={"kind": "utility", "shown": True}
    )
    threshold: float | None = None

    name: ClassVar[str] = "query_rmse"
    formula: ClassVar[str] = "min_b sum_i (s_i - u_i - b)^2"
    cost: ClassVar[str] = "O(n)"
    reference: ClassVar[str] = "Calauzenes et al. 2013, Table 2"
    shift_invariant: ClassVar[bool] = True
    item_weights: ClassVar[bool] = True
    linear_in_utility: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super(QueryRMSE, self).__post_init__()
        object.__setattr__(self, "target", with_options(self.target, None, self.threshold))
        object.__setattr__(self, "threshold", None)
        if self.hessian == "expected":
            raise ParameterError("query_rmse: hessian is exact, majorise or constant")

    @property
    def hessian_trait(self) -> HessianTrait:
        """What the returned Hessian is."""
        traits: dict[str, HessianTrait] = {"exact": "exact", "constant": "constant"}
        return traits.get(self.hessian, "bound")

    def bind(self, data: RankingData) -> AbstractBound:
        """Compute utilities."""
        groups, utilities = data.groups, read_utilities(self.target, data)
        undefined = np.isnan(utilities[groups.offsets[:-1]])
        scale = np.where(undefined, 0.0, row_scale(data, self.normalize))
        utilities = np.nan_to_num(utilities, nan=0.0)
        weight = groups.spread(scale) * (1.0 if data.weight is None else data.weight)
        bound = _BoundCentred(groups, utilities, weight, np.ones(groups.n_queries))
        share = weight / groups.spread(bound.totals)
        exact = 2.0 * weight * (1.0 - share)
        above = np.where(groups.spread(groups.sizes) > 1, 2.0 * weight, 0.0)
        constant = constant_hessian(self.hessian, data)
        bound.curvature = exact if self.hessian == "exact" else above
        bound.curvature = bound.curvature if constant is None else constant
        return bound


@final
class _BoundCentred(AbstractBound):
    r"""Weighted squares of residuals ``s - u`` about their mean in the query, times a factor.

    With :math:`r = s - u`, :math:`\sum_{i<j} (r_i - r_j)^2 = n \sum_i (r_i - \bar r)^2`: squared
    errors of differences are such a sum, too.
    """

    __slots__ = ("curvature", "factor", "totals", "utilities", "weight")

    def __init__(
        self, groups: Groups, utilities: FloatArray, weight: FloatArray, factor: FloatArray
    ) -> None:
        super().__init__(groups)
        self.utilities, self.weight, self.factor = utilities, weight, factor
        totals = query_sums(weight, groups)
        self.totals = np.where(totals > 0.0, totals, 1.0)
        self.curvature = np.empty(0)

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Centre the residuals of each query."""
        weight = self.groups.spread(2.0 * self.factor) * self.weight
        with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for infinity
            out.grad[:] = weight * self._centred(scores)
        out.hess[:] = self.curvature

    def losses(self, scores: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):  # check_losses looks for infinity
            squares = query_sums(self.weight * self._centred(scores) ** 2, self.groups)
            return check_losses(self.factor * squares, self.groups)

    def _centred(self, scores: FloatArray) -> FloatArray:
        # Differences of scores first: far from zero, utilities would be lost in their digits.
        residuals = scores - self.groups.spread(scores[self.groups.offsets[:-1]]) - self.utilities
        means = query_sums(self.weight * residuals, self.groups) / self.totals
        return residuals - self.groups.spread(means)
