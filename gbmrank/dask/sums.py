"""Metrics of rows that lie on several workers: sums and counts, added, then divided."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gbmrank.api import Metric
from gbmrank.data.queries import RankingData
from gbmrank.errors import DataError
from gbmrank.metrics import AbstractBoundMetric, Ranked
from gbmrank.metrics.base import weighted_sum
from gbmrank.registry.guards import bind_metric

__all__ = ["bind_all", "means", "totals"]


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
