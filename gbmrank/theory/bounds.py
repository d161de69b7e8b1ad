"""Regret bounds: how much performance a surrogate regret can cost."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.data import Groups, RankingData
from gbmrank.errors import ParameterError
from gbmrank.matrices import read_number, read_wholes
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.base import row_scale
from gbmrank.theory.conditions import AbstractCondition, BinaryLabels, MaxItems
from gbmrank.theory.match import DOMAINS, Domain, ratio, sorts_alike
from gbmrank.theory.order import Preserved, preserved_order, utility_bound
from gbmrank.theory.parts import as_metric, as_objective
from gbmrank.theory.verdict import Constant
from gbmrank.theory.verdicts import calibration
from gbmrank.theory.views import View, c_phi, view
from gbmrank.types import ArrayLike

__all__ = ["Bound", "regret_bound"]


@final
@dataclass(frozen=True, slots=True)
class Bound:
    r"""A regret bound with its pieces, for the query length where it is largest.

    .. math:: R^* - R \le a\, c\, C_\phi(2) \sqrt{(L - L^*) / \nu}

    Parameters
    ----------
    value : float
        The bound.
    constant : float
        c, for the objective's own utility without normalisation.
    c_phi : float
        :math:`C_\phi(2)` of the metric's discounts.
    ratio : float
        a: the metric's utility over the objective's.
    scale : float
        nu: the factor with which the objective normalises a query.
    n_items : int
        Length of the query that decides.
    formula : str
        c in words.
    condition : AbstractCondition or None
        What has to hold for the bound, as for the verdict; None where it always holds.

    Examples
    --------
    >>> print(regret_bound("pointwise(loss=squared, target=dcg)", "dcg(gain=linear)@1", [2], 0.01))
    at most 0.141421, when labels are 0 and 1
    """

    value: float
    constant: float
    c_phi: float
    ratio: float
    scale: float
    n_items: int
    formula: str
    condition: AbstractCondition | None = None

    def __str__(self) -> str:
        when = "" if self.condition is None else f", when {self.condition}"
        return f"at most {self.value:.6g}{when}"


def regret_bound(
    objective: Any,
    metric: Any,
    group_sizes: ArrayLike,
    surrogate_regret: float,
    *,
    largest_utility: float | None = None,
) -> Bound:
    """Bound the performance lost by a model from what its surrogate regret is.

    Performance is the mean over all queries, where those on which the metric is undefined
    count alike whatever their order. A metric with ``empty=skip`` leaves them out: divide
    the bound by the share of the others.

    Parameters
    ----------
    objective, metric : objects or text
        A pair with a known constant that is calibrated, or is so under a condition on the
        labels or on the lengths of queries; the bound then holds under it alone.
    group_sizes : array-like of shape (n_queries,)
        Lengths of the queries; the worst one counts.
    surrogate_regret : float
        Mean over queries of the objective's expected loss above its infimum, in the
        objective's own units.
    largest_utility : float, optional
        Bound of the expected utility of an item (of their sum for softmax_ce), when the
        objective does not know one, or a lower one. It takes the place of ``max U`` in the
        constant; ``eta`` is part of the loss and stays. Without it, utilities that are gains
        are those of labels up to ``max_grade``, which is 4 unless the target has another.

    Raises
    ------
    ParameterError
        When the pair is not calibrated, no constant is known, or a query is longer than the
        condition of the verdict allows.

    References
    ----------
    Calauzenes, Usunier and Gallinari, Machine Learning 93, 2013, eq. 9 and Thms 5.2-5.4.

    Examples
    --------
    >>> bound = regret_bound("pairwise(loss=squared, target=dcg)", "dcg@10", [10], 0.01)
    >>> round(bound.c_phi, 6), bound.constant, round(bound.value, 4)
    (0.811622, 1.0, 0.2435)
    """
    template, measure = as_objective(objective), as_metric(metric)
    pieces = _pieces(template, measure)
    sizes = np.unique(read_wholes(group_sizes, "group_sizes", 1))
    regret = read_number(surrogate_regret, "surrogate_regret", 0.0)
    if largest_utility is not None:
        largest_utility = read_number(largest_utility, "largest_utility", 0.0)
    if not len(sizes):
        raise ParameterError("group_sizes are the lengths of the queries, got none")
    if isinstance(pieces.condition, MaxItems) and sizes[-1] > pieces.condition.n:
        raise ParameterError(
            f"there is no regret bound for queries of {sizes[-1]} items: {template.name} is "
            f"calibrated for {measure.name} when {pieces.condition}"
        )
    bounds = [_bound_at(int(n), template, pieces, largest_utility) for n in sizes]
    worst = max(bounds, key=lambda bound: bound.value)
    return replace(worst, value=worst.value * float(np.sqrt(regret)))


class _Pieces(NamedTuple):
    preserved: Preserved
    seen: View
    constant: Constant
    domain: Domain | None
    condition: AbstractCondition | None


def _pieces(template: AbstractObjective, measure: AbstractMetric) -> _Pieces:
    """Return what a bound is made of, on the labels for which the verdict holds."""
    verdict = calibration(template, measure)
    preserved, seen = preserved_order(template), view(measure)
    if preserved is None or seen is None or verdict.status not in ("calibrated", "conditional"):
        raise ParameterError(f"there is no regret bound: {verdict.sentence}")
    if not isinstance(verdict.condition, BinaryLabels | MaxItems | None):
        raise ParameterError(
            f"no regret bound is known where calibration needs that {verdict.condition}"
        )
    if preserved.constant is None:
        raise ParameterError(
            f"{template.name} is calibrated for {measure.name}, so a regret bound exists, but no "
            "constant is published for this loss; squared, logistic and exponential have one"
        )
    domain = sorts_alike(preserved.utilities, seen.utilities).domain
    if isinstance(verdict.condition, BinaryLabels):
        domain = DOMAINS[-1]
    return _Pieces(preserved, seen, preserved.constant, domain, verdict.condition)


def _bound_at(n: int, template: AbstractObjective, pieces: _Pieces, largest: float | None) -> Bound:
    """Return the bound for queries of n items and a surrogate regret of one."""
    preserved, seen, constant, domain, condition = pieces
    discount = c_phi(seen.discounts(n))
    if n < 2 or domain is None or discount == 0.0:
        return Bound(0.0, constant.value(), 0.0, 1.0, 1.0, n, constant.text, condition)
    factor = ratio(preserved.utilities, seen.utilities, domain, n)
    if factor is None:
        raise ParameterError(
            f"there is no regret bound for queries of {n} items: there {template.name} sorts "
            "another utility than the metric asks for"
        )
    c = constant.value(_utility_bound(n, template, constant, largest))
    groups = Groups(np.array([0, n], dtype=np.int64))
    scale = float(row_scale(RankingData(np.zeros(n), groups), template.normalize)[0])
    value = factor * c * discount / float(np.sqrt(scale))
    return Bound(value, c, discount, factor, scale, n, constant.text, condition)


def _utility_bound(
    n: int, template: AbstractObjective, constant: Constant, largest: float | None
) -> float:
    known = utility_bound(template, n)
    bound = known if largest is None or constant.of == "eta" else largest
    if bound is None:
        if constant.of == "none":
            return 1.0
        raise ParameterError(
            f"the constant {constant} needs a bound of the utilities; give largest_utility="
        )
    if constant.of == "sum" and largest is None:
        bound *= n
    return bound + float(getattr(getattr(template, "loss", None), "eps", 0.0))
