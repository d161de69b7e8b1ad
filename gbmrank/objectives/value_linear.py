"""The value-regularised linear objective."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, final

import numpy as np

from gbmrank.data.preferences import PreferenceGraphs, preferences_for
from gbmrank.data.queries import DEBIASED, RankingData
from gbmrank.errors import NumericError, ParameterError
from gbmrank.losses.base import ScalarFunction
from gbmrank.losses.convex import AbstractRegulariser, Square
from gbmrank.losses.utilities import NetDegreeUtility
from gbmrank.objectives.base import (
    AbstractBound,
    AbstractObjective,
    HessianTrait,
    constant_hessian,
    query_scale,
)
from gbmrank.objectives.pointwise import ItemColumns, bind_items
from gbmrank.types import FloatArray


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Linear(AbstractObjective):
    r"""Linear loss on preferences with a regulariser on the scores.

    .. math::
        L = \sum_{ij} A_{ij} (s_j - s_i) + \nu \sum_i r(s_i)
          = -\sum_i f_i s_i + \nu \sum_i r(s_i), \qquad f_i = \sum_j (A_{ij} - A_{ji})

    With labels, :math:`A_{ij} = (y_i - y_j)_+`, so :math:`f_i = n y_i - \sum_j y_j`. Consistent
    for pairwise disagreement exactly where ordering by expected net degree f is optimal, in
    particular under low noise. A query without preferences only shrinks scores towards zero.

    The local curvature of ``power`` and ``cosh`` is a poor scale for Newton steps (at zero it is
    zero, infinite or far too small). ``hessian=auto`` uses the mean curvature between the score
    and the best score, so that one Newton step of an item ends at its best score.

    Parameters
    ----------
    regulariser : regulariser, default=square
        ``square``, ``power(q=3)`` or ``cosh``.
    nu : float, default=0.5
        Strength of the regulariser, above 0.
    normalize : {"none", "items", "pairs"}, default="items"
        What divides the loss of a query, including the regulariser.

    References
    ----------
    Duchi, Mackey and Jordan, "On the consistency of ranking algorithms", ICML 2010, eq. 14.
    """

    regulariser: AbstractRegulariser = field(default=Square(), metadata={"kind": "regulariser"})
    nu: float = 0.5
    normalize: str = "items"
    preferences: PreferenceGraphs | None = field(default=None, metadata={"data": True})

    name: ClassVar[str] = "linear"
    formula: ClassVar[str] = "-sum_i f_i s_i + nu sum_i r(s_i)"
    cost: ClassVar[str] = "O(n)"
    reference: ClassVar[str] = "Duchi et al. 2010, eq. 14"
    linear_in_utility: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super(Linear, self).__post_init__()
        if not 0 < self.nu < float("inf"):
            raise ParameterError(f"linear: nu must be above 0, got {self.nu}")
        if self.hessian in ("majorise", "expected"):
            raise ParameterError("linear: the Hessian is exact or constant; use hessian=auto")

    @property
    def hessian_trait(self) -> HessianTrait:
        """Exact for the square; otherwise the mean curvature up to the best score."""
        if self.hessian == "constant":
            return "constant"
        return "exact" if self.hessian == "exact" or self.regulariser.even else "heuristic"

    def bind(self, data: RankingData) -> AbstractBound:
        """Compute net degrees."""
        scale = query_scale(data, self.normalize)
        columns = ItemColumns(self._net_degrees(data), scale, scale)
        params = (self.nu, *self.regulariser.params)
        constant = constant_hessian(self.hessian, data)
        whole_query = RankingData(data.labels, data.groups)  # the weight is in the scale
        term = linear_term(type(self.regulariser).function)
        if self.hessian_trait == "heuristic":
            term = with_secant(term, type(self.regulariser).inverse)
        return bind_items(whole_query, columns, term, params, constant)

    def minimiser(self, data: RankingData) -> FloatArray:
        """Return the scores that minimise the loss, one per row in query order.

        Raises
        ------
        NumericError
            If a score overflows float64; the message names the query.
        """
        with np.errstate(over="ignore"):
            scores = self.regulariser.inverse_slope(self._net_degrees(data) / self.nu)
        bad = np.flatnonzero(~np.isfinite(scores))
        if len(bad):
            query = data.groups.query_of(int(bad[0]))
            raise NumericError(
                f"linear: a score that minimises the loss of query {query!r} is {scores[bad[0]]}; "
                "raise nu, divide labels or weights, or use regulariser=square"
            )
        return scores

    def _net_degrees(self, data: RankingData) -> FloatArray:
        graphs = preferences_for(self.preferences, data)
        if DEBIASED in data.columns:
            if graphs is not None:
                raise ParameterError("linear: preferences stand for clicks; leave out one of them")
            data = replace(data, labels=data.columns[DEBIASED])
        if graphs is None:
            return NetDegreeUtility().values(data)
        return graphs.net_degree(in_query_order=True)


@functools.cache
def linear_term(regulariser: ScalarFunction) -> ScalarFunction:
    """Return ``-v s + nu r(s)`` with its derivatives."""

    def term(
        s: float,
        v: float,
        eta: float,  # noqa: ARG001
        nu: float,
        *params: float,
    ) -> tuple[float, float, float]:
        value, first, second = regulariser(s, *params)
        return nu * value - v * s, nu * first - v, nu * second

    return term


@functools.cache
def with_secant(term: ScalarFunction, inverse: Callable[..., float]) -> ScalarFunction:
    """Return a term whose curvature is the mean between the score and the best score."""

    def secant(
        s: float, v: float, eta: float, nu: float, *params: float
    ) -> tuple[float, float, float]:
        value, first, second = term(s, v, eta, nu, *params)
        way = s - inverse(v / nu, *params)
        near = abs(way) <= 1e-6 * abs(s)
        return value, first, (second if near or way == 0.0 else first / way)

    return secant
