"""Expected reciprocal rank: a reader who goes down the list and stops when satisfied."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from gbmrank.data import RankingData
from gbmrank.errors import LabelRangeError, MetricError
from gbmrank.kernels import compiler
from gbmrank.kernels.rankings import Items
from gbmrank.metrics.base import AbstractBoundMetric, AbstractMetric, BoundKernel, check_cutoff
from gbmrank.ranking import exp2_gains

__all__ = ["ERR"]

_LARGEST_GRADE = 1000.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ERR(AbstractMetric):
    r"""Expected reciprocal rank.

    .. math:: \mathrm{ERR@}k = \sum_{r \le k} \frac{R_{o_r}}{r} \prod_{l < r} (1 - R_{o_l}),
              \qquad R_i = \frac{2^{y_i} - 1}{2^{p}}

    where p is the largest grade of the scale, a parameter that is never read from the data.
    Ties: the exact mean over all orders, through the mean product of 1 - R over random
    subsets of a block; terms below 1e-18 are left out, and very long blocks go through an
    integral with an error below 1e-12. No order-preserving loss is calibrated for this
    measure. Never undefined; 0 without a relevant item.

    Parameters
    ----------
    max_grade : float, default=4
        Largest grade p of the scale; labels above it are refused.
    k : int or None, default=None
        Last rank that counts; ``None`` counts every rank.

    References
    ----------
    Chapelle, Metzler, Zhang and Grinspan, "Expected reciprocal rank for graded relevance",
    CIKM 2009.

    Examples
    --------
    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([0, 1])
    >>> ERR(max_grade=1).bind(data).score(Ranked(np.array([2.0, 1.0]), data.groups))
    0.25
    """

    max_grade: float = 4.0
    k: int | None = None

    name: ClassVar[str] = "err"
    formula: ClassVar[str] = "sum_{r<=k} R_r / r prod_{l<r} (1 - R_l), R = (2^y - 1) / 2^max_grade"
    reference: ClassVar[str] = "Chapelle et al. 2009"

    def check(self) -> None:
        """Accept positive grades whose power of two is finite."""
        check_cutoff(self.name, self.k)
        if not 0 < self.max_grade <= _LARGEST_GRADE:
            raise MetricError(
                "err: max_grade is the largest grade of the scale, above 0 and at most "
                f"{_LARGEST_GRADE:g}; got {self.max_grade!r}"
            )

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Turn labels into the probabilities of stopping."""
        _check_grades(data, self.max_grade)
        stops = exp2_gains(data.labels) * np.exp2(-self.max_grade)
        longest = int(data.groups.sizes.max(initial=1))
        k = longest if self.k is None else min(int(self.k), longest)
        items = Items(stops, np.ones(data.groups.n_queries), k)
        return BoundKernel(self, data, compiler.load("cascade").per_query, items, self.k)


def _check_grades(data: RankingData, max_grade: float) -> None:
    outside = np.flatnonzero((data.labels < 0) | (data.labels > max_grade))
    if len(outside):
        row = int(outside[0])
        raise LabelRangeError(
            f"err takes labels from 0 to max_grade={max_grade:g}, got {data.labels[row]:g} in query"
            f" {data.groups.query_of(row)!r}; set max_grade to the largest grade of your scale, "
            "the same for every data set"
        )
