"""The positional family: a discount of the rank times a utility of the item there."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias, final

import numpy as np

from gbmrank.columns import computed_column
from gbmrank.data import LARGEST, RankingData
from gbmrank.errors import MetricError
from gbmrank.kernels import compiler
from gbmrank.kernels.rankings import Positions
from gbmrank.metrics.base import (
    AbstractBoundMetric,
    AbstractMetric,
    BoundKernel,
    check_choice,
    check_cutoff,
)
from gbmrank.ranking import discounts
from gbmrank.types import FloatArray, IntArray
from gbmrank.utilities import AbstractUtility, DcgUtility

__all__ = ["AbstractPositional", "Discount", "Positional", "cut"]

Discount: TypeAlias = str | tuple[float, ...] | Callable[[FloatArray], FloatArray]
"""A name, a table for the ranks 1, 2, ... (zero beyond it), or a function of ranks."""

_DISCOUNTS = ("log2", "reciprocal", "constant")


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractPositional(AbstractMetric):
    r"""A measure of the (u, phi) family.

    .. math::
        r(y, o) = b(y) + \sum_{k=1}^n \phi(k)\, u_{o_k}(y)

    with a non-increasing discount :math:`\phi \ge 0`. Tied items at the ranks a+1..a+m
    contribute the mean of their discounts times the sum of their utilities. The best
    order sorts the utility; so an objective that learns the order of its expectation is
    calibrated for every measure with that utility.

    References
    ----------
    Calauzenes, Usunier and Gallinari, "Calibration and regret bounds for order-preserving
    surrogate losses in learning to rank", Machine Learning 93, 2013, Def. 2.1.
    """

    upwards: ClassVar[bool] = False
    """Whether the discount is a function of the number of items below, not of the rank."""

    @abstractmethod
    def utilities(self, data: RankingData) -> FloatArray:
        """Return u for every row, in query order; NaN for a query where it is undefined."""

    @abstractmethod
    def rank_discounts(self, n: int) -> FloatArray:
        """Return the discounts of the ranks 1..n (or of 0..n-1 items below) up to a factor."""

    def factors(self, sizes: IntArray) -> FloatArray:
        """Return what multiplies the discounts in queries of these sizes."""
        return np.ones(len(sizes))

    def offsets(self, data: RankingData) -> FloatArray:
        """Return b(y) for every query."""
        return np.zeros(data.groups.n_queries)

    def discounts(self, n: int) -> FloatArray:
        """Return phi(1), ..., phi(n) for a query of n items."""
        table = self.rank_discounts(n)
        factor = self.factors(np.array([n]))
        return factor * (table[::-1] if self.upwards else table)

    def summed(self, data: RankingData) -> tuple[FloatArray, FloatArray]:
        """Return utilities and offsets in a form that loses few digits when added up."""
        return self.utilities(data), self.offsets(data)

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Compute utilities, discounts and their running sums."""
        groups, longest = data.groups, int(data.groups.sizes.max(initial=1))
        given = self.rank_discounts(longest)
        table = computed_column(given, longest, f"rank_discounts of {self.name}")
        # Extended precision where the machine has it: differences of these sums are used.
        cumulative = np.concatenate([[0.0], np.cumsum(table, dtype=np.longdouble)])
        counted = longest if self.upwards else int(np.flatnonzero(table)[-1:].max(initial=0)) + 1
        utilities, offsets = self.summed(data)
        items = Positions(
            np.array(computed_column(utilities, groups.n_rows, f"utilities of {self.name}")),
            computed_column(
                self.factors(groups.sizes), groups.n_queries, f"factors of {self.name}"
            ),
            counted,
            computed_column(offsets, groups.n_queries, f"offsets of {self.name}"),
            table,
            cumulative.astype(np.float64),
            self.upwards,
        )
        depth = counted if counted < longest else None
        return BoundKernel(self, data, compiler.load("positional").per_query, items, depth)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Positional(AbstractPositional):
    r"""A measure of your own: any utility with any non-increasing discount.

    .. math:: \sum_{k=1}^{n} \phi(k)\, u_{o_k}(y)

    Ties: the exact mean over all orders. Undefined: where the utility is.

    Parameters
    ----------
    utility : utility, default=dcg
        What an item is worth; a registered utility or any subclass of AbstractUtility.
    discount : str, tuple of float or callable, default="log2"
        ``"log2"`` is 1/log2(1+k), ``"reciprocal"`` is 1/k, ``"constant"`` is 1; a table
        holds the discounts of the ranks 1, 2, ... and is zero beyond its end; a
        callable takes an array of ranks. It must not increase and not be negative.
    k : int or None, default=None
        Last rank that counts; ``None`` counts every rank.

    References
    ----------
    Calauzenes, Usunier and Gallinari, "Calibration and regret bounds for order-preserving
    surrogate losses in learning to rank", Machine Learning 93, 2013, Def. 2.1.

    Examples
    --------
    Rank-biased precision with persistence 0.8:

    >>> from gbmrank.metrics import Ranked
    >>> from gbmrank.utilities import PrecisionUtility
    >>> rbp = Positional(utility=PrecisionUtility(), discount=lambda k: 0.2 * 0.8 ** (k - 1))
    >>> data = RankingData.from_arrays([0, 1])
    >>> float(rbp.bind(data).score(Ranked(np.array([2.0, 1.0]), data.groups)).__round__(12))
    0.16
    """

    utility: AbstractUtility = field(
        default=DcgUtility(), metadata={"kind": "utility", "shown": True}
    )
    discount: Discount = "log2"
    k: int | None = None

    name: ClassVar[str] = "positional"
    formula: ClassVar[str] = "sum_k discount(k) u(item at rank k)"
    reference: ClassVar[str] = "Calauzenes et al. 2013, Def. 2.1"

    def check(self) -> None:
        """Accept known names, tables and callables."""
        check_cutoff(self.name, self.k)
        if isinstance(self.discount, list):
            object.__setattr__(self, "discount", tuple(self.discount))
        if isinstance(self.discount, str):
            check_choice(self.name, "discount", self.discount, _DISCOUNTS)
        elif self.discount == () or not (
            isinstance(self.discount, tuple) or callable(self.discount)
        ):
            raise MetricError(
                f"positional: discount must be one of {', '.join(_DISCOUNTS)}, a table such as "
                f"[1, 0.5, 0.25] or a function of ranks; got {self.discount!r}"
            )

    def utilities(self, data: RankingData) -> FloatArray:
        """Return the values of the utility."""
        return self.utility.values(data)

    def rank_discounts(self, n: int) -> FloatArray:
        """Return the discounts of the ranks 1..n, zero beyond k."""
        table = self._table(n)
        with np.errstate(invalid="ignore"):  # NaN is between no two numbers
            allowed = np.all((table >= 0) & (table <= LARGEST)) and not np.any(np.diff(table) > 0)
        if not allowed:
            raise MetricError(
                "positional: a discount is finite, not negative and does not increase with the "
                f"rank; got {np.array2string(table[:5], precision=4)} for the first ranks, and "
                f"{LARGEST:g} is the largest that is taken"
            )
        return cut(table, self.k)

    def _table(self, n: int) -> FloatArray:
        ranks = np.arange(1.0, n + 1.0)
        if callable(self.discount):
            return np.broadcast_to(np.asarray(self.discount(ranks), dtype=np.float64), (n,))
        if isinstance(self.discount, tuple):
            table = np.zeros(max(n, len(self.discount)))
            table[: len(self.discount)] = self.discount
            return table[:n]
        known = {"log2": discounts(n), "reciprocal": 1.0 / ranks, "constant": np.ones(n)}
        return known[self.discount]


def cut(table: FloatArray, k: int | None) -> FloatArray:
    """Return discounts that are zero beyond rank k.

    Examples
    --------
    >>> cut(np.array([1.0, 0.5, 0.25]), 2)
    array([1. , 0.5, 0. ])
    """
    return table if k is None else np.where(np.arange(len(table)) < k, table, 0.0)
