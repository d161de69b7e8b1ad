"""What a metric is: one value per query, exact under ties, then one mean."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gbmrank.data import RankingData
from gbmrank.errors import MetricError
from gbmrank.types import FloatArray

__all__ = ["AbstractBoundMetric", "AbstractMetric", "mean_over_queries"]

_EMPTY = ("skip", "zero", "one")


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractMetric(ABC):
    """A measure of how well scores order a query.

    Equal scores are not broken by chance or by row number: the value of a query is the
    mean over all orders of its tied items.

    Parameters
    ----------
    empty : {"skip", "zero", "one"}, default="skip"
        What the mean does with a query where the measure is undefined.
    """

    empty: str = "skip"

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    formula: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.empty not in _EMPTY:
            raise MetricError(
                f"{self.name}: empty must be one of {', '.join(_EMPTY)}; got {self.empty!r}"
            )

    @abstractmethod
    def bind(self, data: RankingData) -> "AbstractBoundMetric":
        """Compute what depends on labels alone."""


class AbstractBoundMetric(ABC):
    """A metric bound to the labels of one data set."""

    __slots__ = ("empty", "weight")

    def __init__(self, metric: AbstractMetric, data: RankingData) -> None:
        self.empty = metric.empty
        self.weight = data.query_weight()

    @abstractmethod
    def per_query(self, scores: FloatArray) -> FloatArray:
        """Return one value per query for scores in query order; NaN where undefined."""

    def score(self, scores: FloatArray) -> float:
        """Return the weighted mean over queries."""
        return mean_over_queries(self.per_query(scores), self.weight, self.empty)


def mean_over_queries(values: FloatArray, weight: FloatArray | None, empty: str) -> float:
    """Return the mean of per-query values; NaN when no query has one.

    Examples
    --------
    >>> mean_over_queries(np.array([1.0, np.nan]), None, "skip")
    1.0
    >>> mean_over_queries(np.array([1.0, np.nan]), None, "zero")
    0.5
    """
    if empty != "skip":
        values = np.where(np.isnan(values), 0.0 if empty == "zero" else 1.0, values)
    defined = ~np.isnan(values)
    weights = np.ones(len(values)) if weight is None else weight
    total = float(weights[defined].sum())
    return float(np.dot(weights[defined], values[defined]) / total) if total > 0 else float("nan")
