"""Which expected utility the minimiser of an objective sorts, derived from its parts.

A loss is order-preserving with respect to u when, for every distribution of labels, scores
that are not sorted like ``E u`` cost more than the infimum by a fixed amount. Proofs of
the rules below, where the papers have none:

* *items*: with ``l1`` and ``l-1`` differentiable, the derivative of the conditional risk is
  ``(l-1' - l1')(q(s) - q)``. When the first factor is positive and q(s) is continuous, does
  not decrease and reaches from 0 to 1, the minimisers for different q are separated.
* *pairs, convex*: for ``U_i > U_j`` a swap of ``s_i < s_j`` gains, and a tie can be improved
  because ``phi'(0) < 0``; convexity keeps items with positive U together, so a limit exists.
* *pairs, link sigmoid(a d)*: every pair is minimised at ``log(U_i / U_j) / a``, so all agree.
* *pairs, parabola*: the minimiser is ``1 - (2V - T) / (n U_i + V)``, increasing in U_i.
* *sums*: swaps and ties argue for sums of such losses too. With bounded curvature the gain
  at a tie is bounded below wherever the other scores are, so no limit is needed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from gbmrank.data import RankingData
from gbmrank.losses.bregman import (
    AbstractGenerator,
    BinaryEntropy,
    ItakuraSaito,
    Poisson,
    Softmax,
    SoftmaxCE,
    SquaredGenerator,
)
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.bregman import Bregman
from gbmrank.objectives.linear import Linear
from gbmrank.objectives.mix import Mix
from gbmrank.objectives.pairwise import Pairwise
from gbmrank.objectives.pointwise import Pointwise, with_options
from gbmrank.ranking import query_sums
from gbmrank.theory.match import sorts_alike
from gbmrank.theory.shapes import item_shape, pair_shape
from gbmrank.theory.verdict import Constant
from gbmrank.types import FloatArray
from gbmrank.utilities import AbstractUtility, NetDegreeUtility

__all__ = ["Preserved", "preserved_order", "utility_bound"]

Utilities = Callable[[RankingData], FloatArray]
_THEOREM = "Calauzenes et al. 2013, Thm 3.2"


@final
@dataclass(frozen=True, slots=True)
class Preserved:
    """The order an objective preserves.

    Parameters
    ----------
    utilities : callable
        ``RankingData -> u``: minimisers are sorted like its expectation.
    constant : Constant or None
        Of the regret bound.
    reference : str
        Where it is proven.
    bounded_curvature : bool
        Whether the second derivatives along a swap are bounded.
    """

    utilities: Utilities
    constant: Constant | None
    reference: str
    bounded_curvature: bool = False


def preserved_order(objective: AbstractObjective) -> Preserved | None:
    """Return what an objective is order-preserving for, or None when nothing is proven."""
    if isinstance(objective, Pointwise):
        return _pointwise(objective)
    if isinstance(objective, Pairwise):
        return _pairwise(objective)
    if isinstance(objective, Bregman):
        return _bregman(objective)
    if isinstance(objective, Linear):
        return _linear(objective)
    return _mix(objective) if isinstance(objective, Mix) else None


def utility_bound(objective: AbstractObjective, n: int) -> float | None:
    """Return the bound of an objective's utilities in queries of n items, if it is known."""
    eta = getattr(objective, "eta", None)
    if eta is not None:
        return float(eta)
    target = getattr(objective, "target", None)
    if target is None:
        return None
    options = (getattr(objective, "max_grade", None), getattr(objective, "threshold", None))
    bounds = with_options(target, *options).upper_bounds(np.array([n]))
    return None if bounds is None else float(bounds[0])


def _pointwise(objective: Pointwise) -> Preserved | None:
    target = with_options(objective.target, objective.max_grade, objective.threshold)
    if objective.loss.pair_form == "difference":
        constant = Constant("sqrt(2)", math.sqrt(2.0))
        return Preserved(target.values, constant, f"{_THEOREM}, Table 2", True)
    shape = item_shape(objective.loss)
    if not (objective.loss.differentiable and shape.proper):
        return None
    factor = 2.0 / math.sqrt(shape.least_weight)
    bounded = _bounded(target, objective.eta)
    constant = Constant(f"{_number(factor)}sqrt(eta)", factor, 0.5, "eta")
    reference = f"{_THEOREM} and 5.3; Menon and Williamson 2014"
    known = factor < 1e3  # a weight that vanishes somewhere has no such bound
    return Preserved(bounded, constant if known else None, reference, shape.bounded_curvature)


def _pairwise(objective: Pairwise) -> Preserved | None:
    values = objective.target.values
    if objective.loss.pair_form == "difference":
        return Preserved(values, Constant("1", 1.0), f"{_THEOREM}, Table 2", True)
    if not objective.loss.differentiable:
        return None
    shape = pair_shape(objective.loss)
    monotone = shape.convex and shape.decreasing and shape.bounded_below and shape.slope < 0
    parabola = shape.quadratic and shape.slope < 0
    if not (monotone or parabola or shape.rate is not None):
        return None
    constant = None
    if shape.rate is not None and 0 < shape.least_weight < math.inf:
        factor = 4.0 / math.sqrt(shape.least_weight)
        constant = Constant(f"{_number(factor)}sqrt(max U)", factor, 0.5, "largest")
    reference = f"{_THEOREM} and sec. 3.1"
    return Preserved(_not_negative(values), constant, reference, shape.bounded_curvature)


def _bregman(objective: Bregman) -> Preserved | None:
    target = with_options(objective.target, objective.max_grade, objective.threshold)
    values: Utilities = target.values
    if isinstance(objective.loss, Softmax):
        values = _shares_of(_not_negative(values))
    elif isinstance(objective.loss, BinaryEntropy):
        values = _bounded(target, objective.eta)
    elif not isinstance(objective.loss, SquaredGenerator):
        values = _not_negative(values)
    constant = _generator_constant(objective.loss)
    if constant is None:
        return None
    smooth = isinstance(objective.loss, SquaredGenerator | Softmax | SoftmaxCE | BinaryEntropy)
    return Preserved(values, constant, f"{_THEOREM} and 5.3", smooth)


def _generator_constant(generator: AbstractGenerator) -> Constant | None:
    if isinstance(generator, SquaredGenerator | Softmax):
        return Constant("sqrt(2)", math.sqrt(2.0))
    if isinstance(generator, SoftmaxCE):
        return Constant("sqrt(2 sum U)", math.sqrt(2.0), 0.5, "sum")
    if isinstance(generator, Poisson):
        return Constant("2 sqrt(max U)", 2.0, 0.5, "largest")
    if isinstance(generator, BinaryEntropy):
        return Constant("sqrt(eta)", 1.0, 0.5, "eta")
    if isinstance(generator, ItakuraSaito):
        return Constant("2 (max U + eps)", 2.0, 1.0, "largest")
    return None


def _linear(objective: Linear) -> Preserved | None:
    if getattr(objective, "preferences", None) is not None:
        return None
    square = getattr(type(objective.regulariser), "even", objective.regulariser.name == "square")
    reference = "Duchi et al. 2010, Thm 13 and Cor. 15; Calauzenes et al. 2013, Thm 3.2"
    return Preserved(NetDegreeUtility().values, None, reference, bool(square))


def _mix(objective: Mix) -> Preserved | None:
    parts = [preserved_order(part) for part in objective.parts]
    first = parts[0]
    for part in parts:
        if first is None or part is None or not part.bounded_curvature:
            return None
        if not sorts_alike(first.utilities, part.utilities).alike:
            return None
    assert first is not None  # noqa: S101  (a mix has at least one part)
    return Preserved(first.utilities, None, f"{_THEOREM}, for sums of losses", True)


def _number(factor: float) -> str:
    return "" if abs(factor - 1.0) < 1e-9 else f"{factor:.5g} "


def _shares_of(values: Utilities) -> Utilities:
    def shares(data: RankingData) -> FloatArray:
        utilities = np.nan_to_num(values(data), nan=0.0)
        totals = query_sums(utilities, data.groups)
        return utilities / data.groups.spread(np.where(totals > 0, totals, np.nan))

    return shares


def _not_negative(values: Utilities) -> Utilities:
    """Refuse labels that the objective would refuse, so that they are not compared on."""

    def checked(data: RankingData) -> FloatArray:
        utilities = values(data)
        if np.any(utilities < 0):
            raise ValueError("utilities of this objective are not negative")
        return utilities

    return checked


def _bounded(target: AbstractUtility, eta: float | None) -> Utilities:
    def checked(data: RankingData) -> FloatArray:
        utilities = target.values(data)
        bounds = target.upper_bounds(data.groups.sizes)
        bounds = np.full(data.groups.n_queries, np.inf) if bounds is None else bounds
        limit = data.groups.spread(bounds if eta is None else np.full(len(bounds), eta))
        if np.any(utilities < 0) or np.any(utilities > limit * (1.0 + 1e-12)):
            raise ValueError("utilities of this objective lie between 0 and eta")
        return utilities

    return checked
