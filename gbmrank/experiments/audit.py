"""What the data is like, and what it cannot be used for."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gbmrank.api import Metric, MetricList, Objective
from gbmrank.backends.tables import first_beyond
from gbmrank.data.readers.text import quoted
from gbmrank.errors import ConfigError, DataError, GbmrankError
from gbmrank.experiments.design import Design, Task
from gbmrank.experiments.results import Queries, System
from gbmrank.experiments.sources import Source
from gbmrank.experiments.splits import judged
from gbmrank.experiments.trial import part_of, split_of
from gbmrank.metrics import Ranked
from gbmrank.registry.guards import bind_metric
from gbmrank.training import Native
from gbmrank.types import FloatArray

__all__ = ["audit", "check_learnable", "check_metrics", "check_watched", "doomed", "queries_of"]

_LEVELS = 12  # label values that are counted one by one


def audit(source: Source, notes: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return facts about the data, for the report."""
    labels, groups = source.data.labels, source.data.groups
    smallest, largest = _ends(source)
    return {
        "rows": groups.n_rows,
        "queries": groups.n_queries,
        "features": int(source.X.shape[1]),
        "label_counts": _label_counts(labels),
        "singletons": int((groups.sizes == 1).sum()),
        "without_relevant": int((largest <= 0).sum()),
        "all_labels_equal": int(((smallest == largest) & (groups.sizes > 1)).sum()),
        "longest": int(groups.sizes.max()),
        "duplicate_rows": _duplicates(source),
        "notes": [*source.notes, *notes],
    }


def queries_of(source: Source) -> Queries:
    """Return the queries that are judged."""
    chosen = judged(source.n_queries, source.parts)
    groups = source.data.groups
    relevant = np.add.reduceat((source.data.labels > 0).astype(np.int64), groups.offsets[:-1])
    return Queries(ids=source.ids[chosen], sizes=groups.sizes[chosen], relevant=relevant[chosen])


def check_learnable(source: Source) -> None:
    """Raise DataError when no query to learn from has two different labels."""
    smallest, largest = _ends(source)
    learned = np.ones(source.n_queries, bool) if source.parts is None else source.parts == 0
    if not (smallest < largest)[learned].any():
        raise DataError(
            f"nothing to learn: none of the {int(learned.sum())} queries to learn from has two "
            "different labels; check the columns of labels and query ids"
        )


def check_metrics(source: Source, metrics: MetricList) -> None:
    """Raise when a metric refuses the labels, or the target is defined for no query."""
    bound = [bind_metric(one.measure, source.data) for one in metrics]
    flat = Ranked(np.zeros(source.data.groups.n_rows), source.data.groups)
    values = bound[0].per_query(flat.prepare(bound[0].depth))
    chosen = judged(source.n_queries, source.parts)
    if np.isnan(values[chosen]).all():
        raise DataError(
            f"{metrics[0]} is undefined for every query that would be judged; put another metric "
            "first"
        )


def check_watched(source: Source, design: Design, target: Metric) -> None:
    """Raise when the target has no value on the watched queries of any run."""
    if target.measure.empty != "skip":
        return
    bound = bind_metric(target.measure, source.data)
    flat = Ranked(np.zeros(source.data.groups.n_rows), source.data.groups)
    known = ~np.isnan(bound.per_query(flat.prepare(bound.depth)))
    for task in design.tasks:
        if known[split_of(source, design, task).valid].any():
            return
    raise DataError(
        f"{target} is undefined for every query that is watched for stopping; give a valid part "
        "that has what it needs, such as relevant rows, or put another metric first"
    )


def doomed(
    source: Source, design: Design, objectives: Mapping[str, Objective | Native]
) -> dict[System, GbmrankError]:
    """Return the systems that refuse the rows of every run, with the reason.

    Objectives refuse labels, XGBoost refuses infinite features.

    Raises
    ------
    ConfigError
        When no system is left.
    """
    errors = {
        name: error
        for name, one in objectives.items()
        if isinstance(one, Objective) and (error := _refusal(source, design, name, one)) is not None
    }
    found = {one: errors[one.objective] for one in design.systems if one.objective in errors}
    beyond = [one for one in design.systems if one.backend == "xgboost" and one not in found]
    infinite = _infinite(source) if beyond else None
    found |= {} if infinite is None else dict.fromkeys(beyond, infinite)
    if len(found) == len(design.systems):
        first = {str(error): one for one, error in reversed(found.items())}
        told = "; ".join(f"{one}: {text}" for text, one in first.items())
        raise ConfigError(f"nothing can be trained on these rows: {told}")
    return found


def _infinite(source: Source) -> GbmrankError | None:
    """Return why XGBoost reads none of the rows, if it does not: each is in a part of every run."""
    place = first_beyond(source.X)
    if place is None:
        return None
    row, number = place
    called = quoted(source.feature_names[number]) if source.feature_names else str(number + 1)
    return DataError(
        f"feature {called} is infinite, or beyond the largest float32, in query "
        f"{source.data.groups.query_of(row)!r}, and XGBoost reads neither: clip it, or make it "
        "NaN, a missing value"
    )


def _refusal(source: Source, design: Design, name: str, one: Objective) -> GbmrankError | None:
    """Return why an objective refuses every part that it would learn from."""
    try:
        one.bind(source.data)
    except GbmrankError as error:
        refused = error
    else:
        return None
    for seed in design.seeds:
        for fold in range(design.folds):
            split = split_of(source, design, Task(System("", name), seed, fold))
            try:
                one.bind(part_of(source, split.train).data)
            except GbmrankError:
                continue
            return None
    return refused


def _ends(source: Source) -> tuple[FloatArray, FloatArray]:
    starts = source.data.groups.offsets[:-1]
    labels = source.data.labels
    return np.minimum.reduceat(labels, starts), np.maximum.reduceat(labels, starts)


def _label_counts(labels: FloatArray) -> dict[str, int]:
    levels, counts = np.unique(labels, return_counts=True)
    if len(levels) <= _LEVELS:
        return {f"{level:g}": int(count) for level, count in zip(levels, counts, strict=True)}
    counts, ends = np.histogram(labels, bins=_LEVELS)
    return {
        f"{low:.3g} to {high:.3g}": int(count)
        for low, high, count in zip(ends[:-1], ends[1:], counts, strict=True)
    }


def _duplicates(source: Source) -> int:
    """Count rows that repeat all features of another row of their query."""
    rows = np.ascontiguousarray(source.X, dtype=np.float64)
    groups = source.data.groups
    rng = np.random.default_rng(0)
    # Two sums with random factors tell rows apart; equal rows have equal sums.
    factors = rng.standard_normal((rows.shape[1], 2))
    sums = np.nan_to_num(rows, nan=0.5, posinf=1e99, neginf=-1e99) @ factors
    query = groups.spread(np.arange(groups.n_queries))
    order = np.lexsort((sums[:, 1], sums[:, 0], query))
    same = (query[order][1:] == query[order][:-1]) & (sums[order][1:] == sums[order][:-1]).all(1)
    return int(same.sum())
