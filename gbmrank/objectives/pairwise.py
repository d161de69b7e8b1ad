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
    PairSum,
    check_engine,
    linear_accuracy,
    pair_curvature,
    pair_engine,
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
    loss : loss, default=logistic
        Penalty of a margin.
    target : utility, default=ndcg
        What an item is worth: the utility of the metric to optimise.
    threshold : float or None, default=None
        Labels of at least this are relevant, for binary targets on graded labels; it is
        passed to the target, as in ``target=map(threshold=1)``.
    engine : {"auto", "pairs", "closed", "sorted", "linear"}, default="auto"
        How pairs are summed.

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
        constant = constant_hessian(self.hessian, data)
        if self.loss.pair_form == "difference":
            factor = 2.0 if self.hessian == "majorise" else 1.0
            return BoundDifferences(data.groups, (utilities, scale), factor, constant)
        if DEBIASED not in data.columns:  # estimates may be negative where their mean is not
            owner = f"pairwise(loss={self.loss.name})"
            check_not_negative(owner, utilities, self.target, data, "loss=squared")
        order = rows_by_value(np.abs(utilities), data.groups)
        arranged = utilities[order]
        useful = np.add.reduceat(arranged != 0, data.groups.offsets[:-1], dtype=np.int64)
        queries = ItemQueries(data.groups.offsets, order, arranged, useful, scale)
        curvature = pair_curvature(self.name, self.loss, self.hessian)
        engine = pair_engine(PAIRS, self.loss, curvature, self.engine, data.groups.sizes)
        pair_sum = PairSum(engine, curvature, self.loss.params, constant)
        return BoundPairs(data.groups, queries, pair_sum)


@final
class BoundDifferences(AbstractBound):
    r"""Squared error of score differences, in closed form.

    With :math:`r = s - u`, :math:`\sum_{i<j} (r_i - r_j)^2 = n \sum_i (r_i - \bar r)^2`, with
    gradient :math:`2 n (r_i - \bar r)` and Hessian diagonal :math:`2 (n - 1)`.
    """

    __slots__ = ("constant", "curvature", "scale", "sizes", "utilities")

    def __init__(
        self,
        groups: Groups,
        columns: tuple[FloatArray, FloatArray],
        factor: float,
        constant: FloatArray | None,
    ) -> None:
        super().__init__(groups)
        self.utilities, self.scale = columns
        self.sizes = groups.sizes.astype(np.float64)
        per_row = groups.spread(2.0 * factor * (self.sizes - 1.0) * self.scale)
        self.curvature = per_row if constant is None else constant

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Centre the residuals of each query."""
        factor = self.groups.spread(2.0 * self.sizes * self.scale)
        with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for infinity
            out.grad[:] = factor * self._centred(scores)
        out.hess[:] = self.curvature

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the loss of each query."""
        with np.errstate(over="ignore", invalid="ignore"):  # check_losses looks for infinity
            squares = query_sums(self._centred(scores) ** 2, self.groups)
            return check_losses(self.scale * self.sizes * squares, self.groups)

    def _centred(self, scores: FloatArray) -> FloatArray:
        # Differences of scores first: far from zero, utilities would be lost in their digits.
        residuals = scores - self.groups.spread(scores[self.groups.offsets[:-1]]) - self.utilities
        means = query_sums(residuals, self.groups) / self.sizes
        return residuals - self.groups.spread(means)


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
    target : utility, default=identity
        What an item is worth.
    hessian : {"auto", "exact", "majorise", "constant"}, default="auto"
        ``auto`` means ``majorise``: the constant 2, since the Hessian is at most 2 times the
        identity. ``exact`` is the diagonal, 2 (1 - 1/n).
    threshold : float or None, default=None
        Labels of at least this are relevant, for binary targets (and ``identity``) on
        graded labels.

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
        return _BoundShifts(self, data)


@final
class _BoundShifts(AbstractBound):
    __slots__ = ("curvature", "totals", "utilities", "weight")

    def __init__(self, objective: QueryRMSE, data: RankingData) -> None:
        super().__init__(data.groups)
        groups = data.groups
        utilities = read_utilities(objective.target, data)
        undefined = np.isnan(utilities[groups.offsets[:-1]])
        scale = np.where(undefined, 0.0, row_scale(data, objective.normalize))
        self.utilities = np.nan_to_num(utilities, nan=0.0)
        self.weight = groups.spread(scale) * (1.0 if data.weight is None else data.weight)
        totals = query_sums(self.weight, groups)
        self.totals = np.where(totals > 0.0, totals, 1.0)
        share = self.weight / groups.spread(self.totals)
        exact = 2.0 * self.weight * (1.0 - share)
        bound = np.where(groups.spread(groups.sizes) > 1, 2.0 * self.weight, 0.0)
        constant = constant_hessian(objective.hessian, data)
        self.curvature = exact if objective.hessian == "exact" else bound
        self.curvature = self.curvature if constant is None else constant

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Centre the residuals of each query."""
        with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for infinity
            out.grad[:] = 2.0 * self.weight * self._centred(scores)
        out.hess[:] = self.curvature

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the loss of each query."""
        with np.errstate(over="ignore", invalid="ignore"):  # check_losses looks for infinity
            squares = query_sums(self.weight * self._centred(scores) ** 2, self.groups)
            return check_losses(squares, self.groups)

    def _centred(self, scores: FloatArray) -> FloatArray:
        # Differences of scores first: far from zero, utilities would be lost in their digits.
        residuals = scores - self.groups.spread(scores[self.groups.offsets[:-1]]) - self.utilities
        means = query_sums(self.weight * residuals, self.groups) / self.totals
        return residuals - self.groups.spread(means)
