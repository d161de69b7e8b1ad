"""Scores and metrics of a ranker on a cluster.

Sums and counts of the workers are added, and divided once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt

from gbmrank.api import MetricList
from gbmrank.boosters.base import Fitted, Member
from gbmrank.boosters.supported import booster_named
from gbmrank.dask.loading import Loaded, Prepared, load
from gbmrank.dask.partitions import Table, array_of, blocks, is_frame
from gbmrank.dask.workers import Parcel, limit_threads
from gbmrank.data.schema import Schema
from gbmrank.distributed.summed_metrics import means, totals
from gbmrank.errors import DataError
from gbmrank.metrics import Ranked
from gbmrank.registry.guards import bind_metric
from gbmrank.types import FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class DaskTrained:
    """A ranker trained on Dask, with the columns of its training data.

    Parameters
    ----------
    fitted : Fitted
        The booster.
    history : mapping of str to mapping of str to list of float
        Value of each metric after every round, by validation set and metric text.
    best_round : int
        Number of the best round, from 0; the last one without a validation set.
    columns : Schema
        Columns of the training data.
    committee : tuple of Member
        Members of a committee; empty for one objective.
    """

    fitted: Fitted
    history: Mapping[str, Mapping[str, list[float]]]
    best_round: int
    columns: Schema
    committee: tuple[Member, ...] = ()

    def scores(self, features: Any, what: str = "X") -> FloatArray:
        """Return one raw score per row of a table in memory, of the trees up to the best round."""
        return self.columns.scores(self.fitted, features, what, "the model")


def evaluate(client: Any, model: DaskTrained, table: Table, metrics: MetricList) -> list[float]:
    """Return the value of each metric, from sums and counts of all workers."""
    loaded = load(client, table, booster_named(model.fitted.backend))
    model.columns.check_count(loaded.outline, table.name, "the model")
    model.columns.check(loaded.outline, table.name)
    return values_on(client, model.fitted, loaded, metrics)


def values_on(client: Any, fitted: Fitted, loaded: Loaded, metrics: MetricList) -> list[float]:
    """Return the value of each metric on rows that the workers hold."""
    parcel = Parcel.pack({"metrics": metrics, "fitted": fitted})
    shared = client.scatter(parcel, broadcast=True)
    parts = client.gather(client.map(_part_totals, loaded.parts, parcel=shared, pure=False))
    return means(metrics.metrics, np.sum(parts, axis=0))


def _part_totals(part: Prepared, parcel: Parcel) -> npt.NDArray[np.float64]:
    limit_threads()
    opened = parcel.open()
    data = part.to_data()
    scores = opened["fitted"].scores(part.features)
    bound = [bind_metric(item.measure, data) for item in opened["metrics"]]
    return totals(bound, Ranked(scores, data.groups))


def predict(trained: DaskTrained, features: Any) -> Any:
    """Return one raw score per row.

    Parameters
    ----------
    trained : DaskTrained
        Result of :func:`gbmrank.dask.train`.
    features : dask array, dask frame, or a table in memory
        Rows to score, with the columns of the training data.

    Returns
    -------
    dask array or array of shape (n_rows,)
        Scores; a lazy dask array for a dask collection.

    Raises
    ------
    DataError
        If the columns are not those of the training data: immediately if the collection's
        metadata shows it, otherwise when its partitions are computed.
    """
    if not isinstance(features, da.Array) and not is_frame(features):
        return trained.scores(features)
    if len(features.shape) != 2:
        raise DataError(f"X must be a table of rows and columns, got shape {features.shape}")
    trained.columns.check_count(features, "X", "the model")
    trained.columns.check(features._meta, "X")
    model = dask.delayed(trained, traverse=False)
    if isinstance(features, da.Array):
        features = features.rechunk({1: -1})
        parts, rows = blocks(features), features.chunks[0]
    else:
        parts = features.to_delayed()
        rows = (np.nan,) * len(parts)
    scored = [dask.delayed(_scores)(model, part, i) for i, part in enumerate(parts)]
    return array_of(scored, rows, np.float64)


def _scores(trained: DaskTrained, features: Any, number: int) -> FloatArray:
    if not features.shape[0]:
        return np.empty(0)
    return trained.scores(features, f"X, partition {number}")
