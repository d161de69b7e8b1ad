"""The value of a model on rows that lie on several workers."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.api import MetricList
from gbmrank.dask.columns import Table
from gbmrank.dask.loading import load
from gbmrank.dask.model import DaskTrained
from gbmrank.dask.parcel import Parcel, limit_threads
from gbmrank.dask.parts import Prepared
from gbmrank.dask.sums import bind_all, means, totals
from gbmrank.metrics import Ranked

__all__ = ["evaluate"]


def evaluate(client: Any, model: DaskTrained, table: Table, metrics: MetricList) -> list[float]:
    """Return the value of each metric: sums and counts of all workers, divided once."""
    loaded = load(client, table, model.fitted.backend)
    model.check(loaded.outline, table.name)
    parcel = Parcel.pack({"metrics": metrics, "fitted": model.fitted})
    shared = client.scatter(parcel, broadcast=True)
    parts = client.gather(client.map(_part_totals, loaded.parts, parcel=shared, pure=False))
    return means(metrics.metrics, np.sum(parts, axis=0))


def _part_totals(part: Prepared, parcel: Parcel) -> npt.NDArray[np.float64]:
    limit_threads()
    opened = parcel.open()
    data = part.to_data()
    scores = opened["fitted"].scores(part.features)
    return totals(bind_all(opened["metrics"].metrics, data), Ranked(scores, data.groups))
