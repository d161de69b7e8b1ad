"""Metrics of a file: one value per query, a mean, and why a query has no value."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, final

import numpy as np
import numpy.typing as npt

from gbmrank.api import Metric
from gbmrank.cli.inputs import Input
from gbmrank.data.queries import Groups, RankingData
from gbmrank.metrics import Ranked, mean_over_queries
from gbmrank.metrics.conventions import withhold
from gbmrank.registry.guards import bind_metric
from gbmrank.types import FloatArray, IntArray

__all__ = ["Evaluation", "Measured", "Ties", "evaluate"]


@final
@dataclass(frozen=True, slots=True)
class Ties:
    """How often scores tie within a query."""

    rows: int
    queries: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One metric: its values (NaN where undefined), their mean, and the undefined queries."""

    metric: Metric
    values: FloatArray
    mean: float
    undefined: int
    reason: str

    @property
    def conventions(self) -> dict[str, Any]:
        """Options of the metric that change its value, except the cut-off."""
        measure = self.metric.measure
        options = {field.name: getattr(measure, field.name) for field in fields(measure)}
        own = {
            key: value for key, value in options.items() if key not in ("ties", "empty", "dtype")
        }
        shared = {key: options[key] for key in ("ties", "empty", "dtype")}
        return {key: value for key, value in {**own, **shared}.items() if key != "k"}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Everything that is printed; ``rows`` counts the ranked rows of each query."""

    groups: Groups
    rows: IntArray
    labels: FloatArray
    ties: Ties
    measured: tuple[Measured, ...]
    notes: tuple[str, ...]

    @property
    def qid(self) -> list[str]:
        """One id per query; numbers from 0 where the queries have no name."""
        ids = self.groups.ids
        return [str(one) for one in (range(self.groups.n_queries) if ids is None else ids)]


def evaluate(given: Input, metrics: Sequence[Metric]) -> Evaluation:
    """Evaluate metrics on a file, sorting the scores once.

    Rows that were judged and not retrieved get no credit; see
    :func:`gbmrank.metrics.conventions.withhold`.
    """
    columns = {"qid": given.file.qid} if given.sizes is None else {"group": given.sizes}
    data = RankingData.from_arrays(given.file.labels, **columns)
    scores = data.read_scores(given.scores)
    unranked = given.file.unranked
    hidden = np.zeros(len(scores), bool) if unranked is None else data.groups.arrange(unranked)
    bound = [bind_metric(item.measure, data) for item in metrics]
    ranked_rows = data.groups.sizes - _counts(hidden, data.groups)
    if hidden.any():
        for item, one in zip(metrics, bound, strict=True):
            withhold(item.measure, one, hidden, ranked_rows)
    ranked = Ranked(scores, data.groups).prepare(*(one.depth for one in bound))
    notes = list(given.file.notes)
    if data.groups.row_order is not None:
        notes.append("rows of a query are not all adjacent; they were put together by their id")
    return Evaluation(
        data.groups,
        ranked_rows,
        data.labels,
        _ties(scores, hidden, data.groups),
        tuple(
            _measure(item, one.per_query(ranked), data)
            for item, one in zip(metrics, bound, strict=True)
        ),
        tuple(notes),
    )


def _measure(item: Metric, values: FloatArray, data: RankingData) -> Measured:
    undefined = np.isnan(values)
    mean = mean_over_queries(values, None, item.measure.empty)
    return Measured(item, values, mean, int(undefined.sum()), _reason(item, undefined, data))


def _counts(chosen: npt.NDArray[np.bool_], groups: Groups) -> IntArray:
    return np.add.reduceat(chosen.astype(np.int64), groups.offsets[:-1])


def _reason(item: Metric, undefined: npt.NDArray[np.bool_], data: RankingData) -> str:
    """Say what the undefined queries have in common."""
    if not undefined.any():
        return ""
    starts = data.groups.offsets[:-1]
    largest = np.maximum.reduceat(data.labels, starts)[undefined]
    smallest = np.minimum.reduceat(data.labels, starts)[undefined]
    threshold = getattr(item.measure, "threshold", None)
    relevant = largest > 0 if threshold is None else largest >= threshold
    if not relevant.any():
        return "no relevant row"
    if (data.groups.sizes[undefined] == 1).all():
        return "one row only"
    same_side = smallest >= threshold if threshold is not None else smallest == largest
    return "all labels alike" if (same_side | ~relevant).all() else "the measure is not defined"


def _ties(scores: FloatArray, hidden: npt.NDArray[np.bool_], groups: Groups) -> Ties:
    queries = groups.spread(np.arange(groups.n_queries))[~hidden]
    shown = scores[~hidden]
    order = np.lexsort((shown, queries))
    queries, shown = queries[order], shown[order]
    same = (queries[1:] == queries[:-1]) & (shown[1:] == shown[:-1])
    tied = np.zeros(len(shown), dtype=bool)
    tied[1:] |= same
    tied[:-1] |= same
    return Ties(int(tied.sum()), len(np.unique(queries[tied])))
