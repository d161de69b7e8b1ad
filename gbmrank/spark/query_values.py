"""Exact values of metrics on Spark tables, with intervals over queries."""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import stdtr

from gbmrank.api import MetricList
from gbmrank.api.metrics import any_preferences, metric_list
from gbmrank.data.columns import read_number
from gbmrank.data.queries import Groups, RankingData
from gbmrank.errors import ConfigError, DataError
from gbmrank.metrics.base import mean_over_queries
from gbmrank.spark.failures import own_error
from gbmrank.spark.selection import array, collected, selected
from gbmrank.types import FloatArray


class Estimate(NamedTuple):
    """Value of a metric with its interval over queries; ``queries`` are those it is defined for."""

    value: float
    low: float
    high: float
    queries: int


class Difference(NamedTuple):
    """Difference of two rankings, ``second - first``, with a paired t test over queries."""

    value: float
    low: float
    high: float
    p_value: float
    queries: int


def evaluate(
    df: Any,
    metrics: Any,
    *,
    label: str,
    score: str,
    qid: str,
    weight: str | None = None,
    level: float = 0.95,
) -> dict[str, Estimate]:
    """Evaluate the scores of any model, with the values that :meth:`Metric.score` has.

    Rows are repartitioned by query. One number per query and metric goes to the driver.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        One row per item.
    metrics : Metric, MetricList or str
        What to evaluate; ties count with their mean over all orders.
    label, score, qid : str
        Columns; query ids may be numbers or strings.
    weight : str, optional
        Column with one weight per query, repeated in its rows.
    level : float, default=0.95
        Level of the intervals, which are those of a normal mean over queries.

    Returns
    -------
    dict of str to Estimate
        By the text of the metric; NaN where no query has a value.
    """
    found = metric_list(metrics)
    weights, values = _per_query(df, found, (label, qid, weight), (score,))
    z = NormalDist().inv_cdf((1.0 + read_number(level, "level", 0.5, 1.0)) / 2.0)
    return {
        str(one): Estimate(*_mean(column[0], weights, one.measure.empty, z))
        for one, column in zip(found, values, strict=True)
    }


def compare(
    df: Any,
    metrics: Any,
    *,
    label: str,
    first: str,
    second: str,
    qid: str,
    weight: str | None = None,
    level: float = 0.95,
) -> dict[str, Difference]:
    """Compare two columns of scores query by query.

    Parameters
    ----------
    df, metrics, label, qid, weight, level
        As for :func:`evaluate`.
    first, second : str
        Columns of scores.

    Returns
    -------
    dict of str to Difference
        By the text of the metric; the p value is that of a paired t test.
    """
    found = metric_list(metrics)
    weights, values = _per_query(df, found, (label, qid, weight), (first, second))
    z = NormalDist().inv_cdf((1.0 + read_number(level, "level", 0.5, 1.0)) / 2.0)
    made = {}
    for one, (before, after) in zip(found, values, strict=True):
        value, low, high, queries = _mean(after - before, weights, one.measure.empty, z)
        error = (high - low) / (2.0 * z)
        t = abs(value) / error if error > 0.0 else math.inf if value else 0.0
        p = 2.0 * float(stdtr(max(queries - 1, 1), -t)) if queries > 1 else math.nan
        made[str(one)] = Difference(value, low, high, p, queries)
    return made


def _mean(
    values: FloatArray, weights: FloatArray | None, empty: str, z: float
) -> tuple[float, float, float, int]:
    """Return a weighted mean over queries, its interval and how many queries it counts."""
    mean = mean_over_queries(values, weights, empty)
    filled = (
        values if empty == "skip" else np.nan_to_num(values, nan=1.0 if empty == "one" else 0.0)
    )
    each = np.ones(len(values)) if weights is None else weights
    counted = ~np.isnan(filled) & (each > 0.0)
    n, each = int(counted.sum()), each[counted]
    if n < 2:
        return mean, math.nan, math.nan, n
    spread = math.sqrt(float(((each * (filled[counted] - mean)) ** 2).sum()) * n / (n - 1))
    half = z * spread / float(each.sum())
    return mean, mean - half, mean + half, n


def _per_query(
    df: Any, metrics: MetricList, columns: tuple[str, str, str | None], scores: Sequence[str]
) -> tuple[FloatArray | None, FloatArray]:
    """Return the weights of all queries, and their values, shape (n_metrics, n_scores, n_queries).

    Queries are in the order of their ids, so that sums do not depend on the partitions.
    """
    if any_preferences(metrics):
        raise ConfigError("preferences are not supported on Spark; give metrics of labels")
    label, qid, weight = columns
    names = {f"s{at}": one for at, one in enumerate(scores)}
    rows = selected(df, {"label": label, "qid": qid, "weight": weight, **names})
    kind = rows.schema["qid"].dataType.simpleString()
    made = rows.repartition("qid").mapInArrow(
        lambda batches: _values_of(batches, metrics, list(names)),
        f"qid {kind}, weight double, value array<double>",
    )
    try:
        found = collected(made.orderBy("qid"))
    except Exception as error:
        raise own_error(str(error)) from error
    if not len(found):
        raise DataError("the table has no rows; give at least one query")
    values = np.array(found["value"].combine_chunks().flatten())
    weights = None if weight is None else np.asarray(found["weight"])
    return weights, values.reshape(len(found), len(metrics), len(scores)).transpose(1, 2, 0)


def _values_of(
    batches: Iterator[pa.RecordBatch], metrics: MetricList, scores: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Return one row per query of a partition; runs in a task."""
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    table = pa.Table.from_batches(held)
    labels, ids, weight = (array(table, name) for name in ("label", "qid", "weight"))
    groups = Groups.from_qid(ids, len(ids))
    counted = np.zeros(groups.n_queries)
    if weight is None or np.any(weight):  # those of other partitions may be above zero
        own = RankingData.from_arrays(labels, qid=ids, weight=weight).query_weight()
        counted = np.ones(groups.n_queries) if own is None else own
    found = [metrics.per_query(labels, array(table, one), qid=ids) for one in scores]
    values = np.stack([np.stack(list(one.values())) for one in found], axis=1)
    each = values.transpose(2, 0, 1).reshape(groups.n_queries, -1)
    made = {
        "qid": pa.array(groups.ids, table.schema.field("qid").type),
        "weight": pa.array(counted, pa.float64()),
        "value": pa.array(list(each), pa.list_(pa.float64())),
    }
    yield pa.RecordBatch.from_pydict(made)
