"""Regret bounds: how much performance a surrogate regret can cost."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gbmrank.data import Groups, RankingData
from gbmrank.errors import ParameterError
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.base import row_scale
from gbmrank.theory.match import Domain, ratio, sorts_alike
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
    """

    value: float
    constant: float
    c_phi: float
    ratio: float
    scale: float
    n_items: int
    formula: str


def regret_bound(
    objective: Any,
    metric: Any,
    group_sizes: ArrayLike,
    surrogate_regret: float,
    *,
    largest_utility: float | None = None,
) -> Bound:
    """Bound the performance lost by a model from what its surrogate regret is.

    Parameters
    ----------
    objective, metric : objects or text
        A calibrated pair with a known constant.
    group_sizes : array-like of shape (n_queries,)
        Lengths of the queries; the worst one counts.
    surrogate_regret : float
        Mean over queries of the objective's expected loss above its infimum, in the
        objective's own units.
    largest_utility : float, optional
        Bound of the expected utility of an item (of their sum for softmax_ce), when the
        objective does not know one.

    Raises
    ------
    ParameterError
        When the pair is not calibrated, or no constant is known.

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
    preserved, seen, constant = _pieces(template, measure)
    if not surrogate_regret >= 0:
        raise ParameterError(f"a surrogate regret is not negative, got {surrogate_regret}")
    domain = sorts_alike(preserved.utilities, seen.utilities).domain
    bounds = [
        _bound_at(int(n), (template, preserved, seen, constant, domain), largest_utility)
        for n in np.unique(np.asarray(group_sizes, dtype=np.int64))
    ]
    worst = max(bounds, key=lambda bound: bound.value)
    value = worst.value * float(np.sqrt(surrogate_regret))
    pieces = (worst.constant, worst.c_phi, worst.ratio, worst.scale, worst.n_items, worst.formula)
    return Bound(value, *pieces)


def _pieces(
    template: AbstractObjective, measure: AbstractMetric
) -> tuple[Preserved, View, Constant]:
    verdict = calibration(template, measure)
    preserved, seen = preserved_order(template), view(measure)
    if preserved is None or seen is None or verdict.status not in ("calibrated", "conditional"):
        raise ParameterError(f"there is no regret bound: {verdict.sentence}")
    if preserved.constant is None:
        raise ParameterError(
            f"{template.name} is calibrated for {measure.name}, so a regret bound exists, but no "
            "constant is published for this loss; squared, logistic and exponential have one"
        )
    return preserved, seen, preserved.constant


def _bound_at(
    n: int,
    parts: tuple[AbstractObjective, Preserved, View, Constant, Domain | None],
    largest: float | None,
) -> Bound:
    """Return the bound for queries of n items and a surrogate regret of one."""
    template, preserved, seen, constant, domain = parts
    if n < 2 or domain is None:
        return Bound(0.0, constant.value(), 0.0, 1.0, 1.0, n, constant.text)
    bound = largest if largest is not None else utility_bound(template, n)
    if constant.of != "none" and bound is None:
        raise ParameterError(
            f"the constant {constant} needs a bound of the utilities; give largest_utility="
        )
    if constant.of == "sum" and largest is None and bound is not None:
        bound *= n
    eps = getattr(getattr(template, "loss", None), "eps", 0.0)
    c = constant.value(1.0 if bound is None else bound + eps)
    groups = Groups(np.array([0, n], dtype=np.int64))
    scale = float(row_scale(RankingData(np.zeros(n), groups), template.normalize)[0])
    discount = c_phi(seen.discounts(n))
    factor = ratio(preserved.utilities, seen.utilities, domain, n)
    value = factor * c * discount / float(np.sqrt(scale))
    return Bound(value, c, discount, factor, scale, n, constant.text)
