"""Documents that were judged relevant and that a ranking does not hold."""

import numpy as np
import numpy.typing as npt

from gbmrank.errors import MetricError
from gbmrank.metrics.base import AbstractBoundMetric, AbstractMetric, BoundKernel
from gbmrank.metrics.cascade import ERR
from gbmrank.metrics.positional import AbstractPositional
from gbmrank.metrics.precision import MAP, MRR, PTop
from gbmrank.types import IntArray

__all__ = ["withhold"]


def withhold(
    measure: AbstractMetric,
    bound: AbstractBoundMetric,
    hidden: npt.NDArray[np.bool_],
    ranked_rows: IntArray,
) -> None:
    """Give rows that were not retrieved no credit at the ranks where they would stand.

    Their value is zero in measures that go down the list (the (u, phi) family with a discount
    of the rank, AP, RR, ERR, positives at the top), while they keep counting in the number of
    relevant documents and in the ideal. Measures of the whole order (AUC, Spearman,
    disagreement) see them tied at the end.

    Parameters
    ----------
    measure : AbstractMetric
        The metric.
    bound : AbstractBoundMetric
        The metric with its labels; changed.
    hidden : array of bool of shape (n_rows,)
        Rows that were not retrieved.
    ranked_rows : array of shape (n_queries,)
        Number of rows that were.

    Raises
    ------
    MetricError
        For a metric that cannot be told.
    """
    if not isinstance(bound, BoundKernel):
        raise MetricError(
            f"{measure.name} cannot be told which documents were judged and not retrieved; "
            "leave it out"
        )
    if isinstance(measure, AbstractPositional) and not measure.upwards:
        bound.items = bound.items._replace(scale=measure.factors(np.maximum(ranked_rows, 1)))
    elif not isinstance(measure, MAP | MRR | ERR | PTop):
        return
    values = bound.items.values
    bound.items = bound.items._replace(values=np.where(hidden & ~np.isnan(values), 0.0, values))
