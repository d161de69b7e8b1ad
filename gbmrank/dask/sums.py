"""Metrics of rows that lie on several workers: sums and counts, added, then divided."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gbmrank.api import Metric
from gbmrank.data import RankingData
from gbmrank.errors import DataError
from gbmrank.guards import bind_metric
from gbmrank.metrics import AbstractBoundMetric, Ranked
from gbmrank.types import FloatArray

__all__ = ["bind_all", "means", "totals", "weighted_sum"]


def weighted_sum(values: FloatArray, weight: FloatArray | None, empty: str) -> tuple[float, float]:
    """Return the weighted sum of per-query values and the sum of the weights.

    Parameters
    ----------
    values : array of shape (n_queries,)
        NaN where the measure is undefined.
    weight : array of shape (n_queries,) or None
        Weight of each query.
    empty : {"skip", "zero", "one"}
        Leave undefined queries out, or let them count as 0 or 1.

    Examples
    --------
    >>> weighted_sum(np.array([0.5, np.nan]), None, "one")
    (1.5, 2.0)
    """
    undefined = np.isnan(values)
    weights = np.ones(len(values)) if weight is None else weight
    if empty == "skip":
        weights = np.where(undefined, 0.0, weights)
    filled = np.where(undefined, 1.0 if empty == "one" else 0.0, values)
    return float((weights * filled).sum()), float(weights.sum())


def bind_all(metrics: Sequence[Metric], data: RankingData) -> list[AbstractBoundMetric]:
    """Bind metrics to one data set."""
    return [bind_metric(item.measure, data) for item in metrics]


def totals(bound: Sequence[AbstractBoundMetric], ranked: Ranked) -> npt.NDArray[np.float64]:
    """Return a row of sum and weight for each metric, shape (n_metrics, 2)."""
    ranked.prepare(*(one.depth for one in bound))
    return np.array(
        [weighted_sum(one.per_query(ranked), one.weight, one.empty) for one in bound]
    ).reshape(-1, 2)


def means(metrics: Sequence[Metric], summed: npt.NDArray[np.float64]) -> list[float]:
    """Divide sums by weights.

    Raises
    ------
    DataError
        When no query on any worker has a value.
    """
    for item, (_, weight) in zip(metrics, summed, strict=True):
        if not weight > 0.0:
            raise DataError(
                f"{item} is undefined for every query of this data set, on all workers; leave the "
                "data set out of the evaluation or choose empty='zero' or empty='one'"
            )
    return [float(total / weight) for total, weight in summed]
