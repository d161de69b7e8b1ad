"""Metrics over several tasks: sums and weights are added, and divided once."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.api import Metric, MetricList
from gbmrank.api.metrics import bound_in_training
from gbmrank.boosters.base import Booster
from gbmrank.boosters.bindings import BoosterColumns
from gbmrank.errors import DataError
from gbmrank.metrics import AbstractBoundMetric, Ranked
from gbmrank.metrics.base import weighted_sum

Sums = npt.NDArray[np.float64]  # shape (n_metrics, 2): sum and weight


def totals(bound: Sequence[AbstractBoundMetric], ranked: Ranked) -> Sums:
    """Return a row of sum and weight for each metric."""
    ranked.prepare(*(one.depth for one in bound))
    return np.array(
        [weighted_sum(one.per_query(ranked), one.weight, one.empty) for one in bound]
    ).reshape(-1, 2)


def means(metrics: Sequence[Metric], summed: Sums) -> list[float]:
    """Divide sums by weights; raise DataError when no query on any worker has a value."""
    for item, (_, weight) in zip(metrics, summed, strict=True):
        if not weight > 0.0:
            raise DataError(
                f"{item} is undefined for every query of this data set, on all workers; leave the "
                "data set out of the evaluation or choose empty='zero' or empty='one'"
            )
    return [float(total / weight) for total, weight in summed]


def report_in_training(
    metrics: MetricList,
    booster: Booster,
    columns: BoosterColumns | None,
    preds: object,
    add: Callable[[Sums], Sums],
) -> list[tuple[Any, ...]]:
    """Return what a booster expects of each metric; ``columns`` is None in a task without rows."""
    own = np.zeros((len(metrics), 2))
    if columns is not None:
        own = totals(*bound_in_training(metrics.metrics, columns, preds))
    pairs = zip(metrics, means(metrics.metrics, add(own)), strict=True)
    return [booster.report(str(item), value, item.higher_is_better) for item, value in pairs]
