"""Pointwise objectives, and other sums over items: their utilities and the range of these."""

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import ClassVar, NamedTuple, final

import numpy as np

from gbmrank.data.columns import computed_column
from gbmrank.data.queries import DEBIASED, RankingData
from gbmrank.errors import LabelRangeError, ParameterError, PluginContractError
from gbmrank.kernels.jit import compiler
from gbmrank.kernels.layout import ItemTerms
from gbmrank.losses import AbstractLoss, Logistic
from gbmrank.losses.base import ScalarFunction, always
from gbmrank.losses.convex import SquaredGenerator
from gbmrank.losses.utilities import (
    AbstractUtility,
    IdentityUtility,
    NdcgUtility,
    PrecisionUtility,
    debiased,
)
from gbmrank.objectives.base import (
    AbstractBound,
    AbstractObjective,
    BoundSums,
    HessianTrait,
    constant_hessian,
    row_scale,
)
from gbmrank.types import FloatArray

_TAKES = {"max_grade": "dcg or eru", "threshold": "precision, recall, wta, auc, map or identity"}


class ItemColumns(NamedTuple):
    """Utilities per row; the upper bound eta and the factor of each query."""

    utilities: FloatArray
    eta: FloatArray
    scale: FloatArray


def bind_items(
    data: RankingData,
    columns: ItemColumns,
    term: ScalarFunction,
    params: tuple[float, ...],
    constant: FloatArray | None,
) -> AbstractBound:
    """Bind a sum over items; item weights are supported."""
    weight = np.empty(0) if data.weight is None else data.weight
    undefined = np.isnan(columns.utilities[data.groups.offsets[:-1]])
    scale = np.where(undefined, 0.0, columns.scale)
    utilities = np.nan_to_num(columns.utilities, nan=0.0)
    items = ItemTerms(data.groups.offsets, utilities, columns.eta, scale, weight)
    kernels = compiler.load("closed.lists", term=term)
    return BoundSums(
        data.groups,
        5.0 * data.groups.sizes + 20.0,
        lambda span, scores, out: kernels.item_gradients(items, span, scores, params, out),
        lambda span, scores, out: kernels.item_values(items, span, scores, params, out),
        constant,
    )


def read_eta(
    owner: str, eta: float | None, target: AbstractUtility, data: RankingData
) -> FloatArray:
    """Return the upper bound of utilities of each query: ``eta``, or that of the target."""
    if eta is not None:
        return np.full(data.groups.n_queries, eta)
    bounds = target.upper_bounds(data.groups.sizes)
    if bounds is None and DEBIASED in data.columns:  # a click is at most one, and so is its mean
        return np.ones(data.groups.n_queries)
    if bounds is None:
        raise ParameterError(
            f"{owner}: target={target.name} has no upper bound that is known in advance; give it "
            "as eta= (it must not be read off the data, or a fold would train another loss)"
        )
    return computed_column(bounds, data.groups.n_queries, f"upper_bounds of target={target.name}")


def read_utilities(target: AbstractUtility, data: RankingData) -> FloatArray:
    """Return the utility of every row; NaN in all rows of a query where it is undefined.

    For clicks with a position bias it is the unbiased estimate, which may exceed every bound.
    """
    groups, what = data.groups, f"values of target={target.name}"
    given = (
        debiased(target.values, target.per_item, data, what)
        if DEBIASED in data.columns
        else target.values(data)
    )
    values = computed_column(given, groups.n_rows, what)
    missing = np.isnan(values)
    bad = np.isinf(values) | (missing != groups.spread(missing[groups.offsets[:-1]]))
    if bad.any():
        row = int(np.argmax(bad))
        raise PluginContractError(
            f"values of target={target.name} are finite, or NaN in all rows of a query; got "
            f"{values[row]} in row {row} of query {groups.query_of(row)!r}"
        )
    return values


def check_not_negative(
    owner: str, utilities: FloatArray, target: AbstractUtility, data: RankingData, instead: str
) -> None:
    """Raise LabelRangeError if a utility is negative."""
    negative = np.flatnonzero(utilities < 0)
    if len(negative):
        row = int(negative[0])
        raise LabelRangeError(
            f"{owner} needs utilities that are not negative; target={target.name} gives "
            f"{utilities[row]:g} in query {data.groups.query_of(row)!r}; shift the labels or use "
            f"{instead}"
        )


def read_signs(utilities: FloatArray, target: AbstractUtility, eta: float | None) -> FloatArray:
    """Convert labels -1 and +1 to 0 and 1 for ``target=identity`` and ``eta=1``."""
    signs = eta == 1.0 and isinstance(target, IdentityUtility) and np.all(np.abs(utilities) == 1.0)
    return (utilities + 1.0) / 2.0 if signs else utilities


def check_range(
    owner: str, columns: ItemColumns, target: AbstractUtility, data: RankingData
) -> None:
    """Raise LabelRangeError unless every utility lies between 0 and eta."""
    utilities, bound = columns.utilities, data.groups.spread(columns.eta)
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero((utilities < 0) | (utilities > bound * (1.0 + 1e-12)))
    if len(bad):
        row = int(bad[0])
        raise LabelRangeError(
            f"{owner}: the utility {utilities[row]:g} of target={target.name} in query "
            f"{data.groups.query_of(row)!r} lies outside 0..eta={bound[row]:g}, where the loss is "
            f"bounded; {_range_advice(target, utilities[row] < 0, bound[row])}"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pointwise(AbstractObjective):
    r"""Loss of each item, as useful with weight u and as useless with weight eta - u.

    .. math::
        L = \sum_i u_i\, \ell_1(s_i) + (\eta - u_i)\, \ell_{-1}(s_i),

    or :math:`\sum_i (u_i - s_i)^2` for the squared loss. With a strictly proper composite
    loss the best score is an increasing function of the expected utility. Item weights are
    supported.

    Parameters
    ----------
    loss : loss, default=logistic
        Partial losses.
    eta : float or None, default=None
        Upper bound of the utility; by default that of the target. With ``target=identity`` and
        ``eta=1`` labels that are all -1 or +1 are read as 0 and 1. ``loss=squared`` needs no
        bound: ``eta`` and ``max_grade`` have no effect, and larger labels are allowed.

    References
    ----------
    Calauzenes, Usunier and Gallinari, Machine Learning 93, 2013, Table 2; Menon and
    Williamson, "Bayes-optimal scorers for bipartite ranking", COLT 2014.
    """

    loss: AbstractLoss = field(default=Logistic(), metadata={"kind": "loss", "shown": True})
    target: AbstractUtility = field(
        default=NdcgUtility(), metadata={"kind": "utility", "shown": True}
    )
    eta: float | None = None
    max_grade: float | None = None
    threshold: float | None = None

    name: ClassVar[str] = "pointwise"
    formula: ClassVar[str] = "sum_i u_i l1(s_i) + (eta - u_i) l-1(s_i)"
    cost: ClassVar[str] = "O(n)"
    reference: ClassVar[str] = "Calauzenes et al. 2013, Table 2; Menon and Williamson 2014"
    item_weights: ClassVar[bool] = True
    linear_in_utility: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super(Pointwise, self).__post_init__()
        if not self.loss.differentiable:
            raise ParameterError(
                f"pointwise: the loss {self.loss.name} has a kink and does not order items; use "
                "squared_hinge or differentiable_hinge"
            )
        if self.eta is not None and not 0 < self.eta < float("inf"):
            raise ParameterError(f"pointwise: eta must be above 0, got {self.eta}")
        with_options(self.target, self.max_grade, self.threshold)
        self._resolved()

    @property
    def hessian_trait(self) -> HessianTrait:
        """What the returned Hessian is."""
        return self._resolved()[1]

    def _resolved(self) -> tuple[ScalarFunction, HessianTrait]:
        """Return the term with its curvature, and the trait of that curvature."""
        if self.loss.pair_form == "difference":
            return SquaredGenerator.term, "constant" if self.hessian == "constant" else "exact"
        exact = item_penalty(*self.loss.partials)
        bound, expected = self.loss.majorant, self.loss.expected_curvature
        mode = self.hessian
        if mode == "auto":
            flat = not self.loss.smooth and bound is not None
            bent = "exact" if self.loss.exact_curvature else "expected"
            mode = "majorise" if flat else bent
        if mode == "majorise":
            if bound is None:
                raise ParameterError(
                    f"pointwise: the curvature of {self.loss.name} has no bound; use hessian=auto"
                )
            return with_expected(exact, always(bound)), "bound"
        if mode == "expected" and expected is not None:
            return with_expected(exact, expected), "expected"
        return exact, "constant" if mode == "constant" else "exact"

    def bind(self, data: RankingData) -> AbstractBound:
        """Compute utilities and their bound."""
        target = with_options(self.target, self.max_grade, self.threshold)
        squared = self.loss.pair_form == "difference"
        utilities = read_utilities(target, data)
        scale = row_scale(data, self.normalize)
        eta = scale if squared else read_eta(self.name, self.eta, target, data)
        columns = ItemColumns(utilities, eta, scale)
        if not squared and DEBIASED not in data.columns:
            columns = columns._replace(utilities=read_signs(utilities, target, self.eta))
            check_range(self.name, columns, target, data)
        constant = constant_hessian(self.hessian, data)
        return bind_items(data, columns, self._resolved()[0], self.loss.params, constant)

    @property
    def separable(self) -> bool:
        """Whether the target is, and no query is divided by its size."""
        return self.target.per_item and self.normalize == "none"

    def inverse_link(self, scores: FloatArray) -> FloatArray:
        """Return the probability that a score stands for."""
        return self.loss.inverse_link(scores)


def with_options(
    target: AbstractUtility, max_grade: float | None, threshold: float | None
) -> AbstractUtility:
    """Pass options to a target that has them; ``identity`` with a threshold is ``precision``."""
    if max_grade is None and threshold is None:
        return target
    if threshold is not None and isinstance(target, IdentityUtility):
        target = PrecisionUtility()
    known = {field.name for field in dataclasses.fields(target)}
    options = {"max_grade": max_grade, "threshold": threshold}
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in known:
            raise ParameterError(
                f"target={target.name} takes no {name}; leave it out, or use a target that has "
                f"it: {_TAKES[name]}"
            )
    return dataclasses.replace(target, **given)


@functools.cache
def item_penalty(positive: ScalarFunction, negative: ScalarFunction) -> ScalarFunction:
    """Return ``v positive(s) + (eta - v) negative(s)`` with its derivatives."""

    def term(s: float, v: float, eta: float, *params: float) -> tuple[float, float, float]:
        value_1, first_1, second_1 = positive(s, *params)
        value_2, first_2, second_2 = negative(s, *params)
        rest = eta - v
        return (
            v * value_1 + rest * value_2,
            v * first_1 + rest * first_2,
            v * second_1 + rest * second_2,
        )

    return term


@functools.cache
def with_expected(term: ScalarFunction, curvature: Callable[..., float]) -> ScalarFunction:
    """Return a term whose curvature is ``eta * curvature(s)``."""

    def curved(s: float, v: float, eta: float, *params: float) -> tuple[float, float, float]:
        value, first, _ = term(s, v, eta, *params)
        return value, first, eta * curvature(s, *params)

    return curved


def _range_advice(target: AbstractUtility, negative: bool, bound: float) -> str:
    if isinstance(target, IdentityUtility):
        binary = "give labels 0/1 or -1/+1, or " if bound == 1.0 else ""
        moved = "shift the labels" if negative else "raise eta"
        return f"{binary}say with threshold= which labels are relevant, or {moved}"
    if negative:
        return "shift the labels, or use loss=squared"
    graded = "max_grade" in {field.name for field in fields(target)}
    raised = "eta (or max_grade)" if graded else "eta"
    return f"raise {raised}, or rescale the labels"
