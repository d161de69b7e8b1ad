"""Reading the rows an estimator is given: one id per row, in any order."""

import importlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gbmrank.api import Metric, MetricList, Objective
from gbmrank.api.metrics import any_preferences
from gbmrank.backends.tables import read_table, take_rows
from gbmrank.data.queries import Groups, RankingData, as_floats
from gbmrank.errors import DataError, GbmrankWarning, GroupError
from gbmrank.estimators.columns import Columns, renamed
from gbmrank.estimators.zeros import with_zeros
from gbmrank.registry.guards import bind_metric
from gbmrank.training import Part

__all__ = [
    "check_count",
    "check_labels",
    "named_sets",
    "read_part",
    "read_queries",
    "read_valid",
    "refuse",
    "warn_about_stopping",
]

TRAINING = "the training set"
_WANTED = {
    "eval_qid": "one array of ids",
    "eval_sample_weight": "one array of weights, or None,",
    "eval_names": "one name",
}


def read_queries(qid: Any, n_rows: int, what: str = "X") -> Groups:
    """Read one query id per row; without them there is no way to know what is ranked together.

    Parameters
    ----------
    qid : array-like of shape (n_rows,)
        In any order.
    n_rows : int
        Rows of the table.
    what : str, default="X"
        Name of the table, for messages.
    """
    if qid is None and what not in ("X", TRAINING):
        raise GroupError(
            f"say which query each row of {what} belongs to: eval_qid= (a list with one array of "
            "ids per evaluation set)"
        )
    if qid is None:
        raise GroupError(
            f"say which query each row of {what} belongs to: qid= (one id per row); inside "
            "scikit-learn's cross-validation, sklearn.set_config(enable_metadata_routing=True) "
            "hands it on"
        )
    try:
        return Groups.from_qid(qid, n_rows)
    except GroupError as error:
        if what in ("X", TRAINING):
            raise
        raise GroupError(f"eval_qid of {what}: {error}") from error


def refuse(unknown: Mapping[str, Any], who: str) -> None:
    """Raise for arguments that no method has; those of other rankers are explained.

    Raises
    ------
    GroupError
        For sizes of queries, with the ids to give in their place.
    TypeError
        For anything else, as Python does.
    """
    for name in unknown:
        if name in ("group", "eval_group"):
            ids = name.replace("group", "qid")
            made = "np.repeat(np.arange(len(sizes)), sizes)"
            raise GroupError(
                f"{who} takes one query id per row and no sizes ({name}=): "
                f"{ids}={made if ids == 'qid' else f'[{made}]'}"
            )
        raise TypeError(f"{who} got an unexpected keyword argument {name!r}")


def check_labels(metrics: MetricList, parts: Mapping[str, Part]) -> None:
    """Raise, before training, for labels that a metric is not defined for.

    Raises
    ------
    DataError
        With the metric and the set.
    """
    for metric in metrics:
        if any_preferences([metric]):
            continue  # it does not read labels
        for name, part in parts.items():
            try:
                bind_metric(metric.measure, replace(part.data, weight=None))
            except DataError as error:
                raise type(error)(f"metric={metric}, {name}: {error}") from error


def check_count(labels: Any, n_rows: int) -> None:
    """Raise unless there is one label per row of X."""
    if labels is None:
        raise DataError("the target y is None: give one label per row of X")
    found = len(as_floats(labels, "y"))
    if found != n_rows:
        raise DataError(f"y has {found} entries, but X has {n_rows} rows")


def warn_about_stopping(target: Any, metric: Metric, parts: Mapping[str, Part]) -> None:
    """Warn about a metric that decides about a model and cannot, or is not what is learned.

    Warns
    -----
    CalibrationWarning
        When the loss is known to be wrong for the metric.
    GbmrankWarning
        When no query of the last set has two different labels: the first round would be kept.
    """
    if isinstance(target, Objective):
        theory = importlib.import_module("gbmrank.theory")  # scipy comes with its solvers
        theory.warn_if_not_calibrated(target, metric, stacklevel=3)
    if not parts or any_preferences([metric]):
        return
    name, part = list(parts.items())[-1]
    groups, labels = part.data.groups, part.data.labels
    if np.array_equal(labels, groups.spread(labels[groups.offsets[:-1]])):
        warnings.warn(
            f"in no query of {name} do labels differ, so {metric} is the same for every model and "
            "training stops at its first round; give a set with queries of two rows or more whose "
            "labels differ, or leave out early_stopping_rounds",
            GbmrankWarning,
            stacklevel=3,
        )


def read_part(table: Any, labels: Any, qid: Any, weight: Any, what: str = TRAINING) -> Part:
    """Read rows and put them into query order.

    Parameters
    ----------
    table : table
        As :func:`gbmrank.backends.tables.read_table` returns it.
    labels : array-like of shape (n_rows,)
        Larger is better.
    qid : array-like of shape (n_rows,)
        One query id per row.
    weight : array-like or None
        One per row or one per query, queries in order of their first row.
    what : str, default="the training set"
        Its name, for messages.
    """
    if labels is None:
        raise DataError(f"{what} requires y to be passed, but the target y is None: give labels")
    groups = read_queries(qid, table.shape[0], what)
    try:
        values = as_floats(labels, "y", exact=True)
        if len(values) != groups.n_rows:
            raise DataError(f"y has {len(values)} entries, but there are {groups.n_rows} rows")
        data = RankingData.from_arrays(values, qid=qid, weight=weight)
    except DataError as error:
        raise type(error)(f"{what}: {error}") from error
    order = groups.row_order
    return Part(table if order is None else take_rows(table, order), data)


def read_valid(
    name: str, rows: tuple[Any, ...], columns: Columns, backend: str | None = None
) -> Part:
    """Read an evaluation set for a booster; its columns must be those of the training.

    Its zeros are to XGBoost what those of the training are, in whatever form they come.
    """
    (features, labels), qid, weight = rows
    table = read_table(features, name, backend)
    columns.check(table, name)
    table = renamed(with_zeros(table, columns.zeros, name))
    return read_part(table, labels, qid, weight, name)


def named_sets(
    sets: Any, qids: Any, weights: Any, names: Sequence[str] | None
) -> dict[str, tuple[Any, Any, Any]]:
    """Return evaluation sets by name; one set may be given without a list around it."""
    if sets is None:
        _refuse_without_set(qids, weights, names)
        return {}
    if isinstance(sets, tuple) and len(sets) == 2 and not isinstance(sets[0], tuple):
        sets, qids = [sets], [qids]
        weights = None if weights is None else [weights]
    if not isinstance(sets, list | tuple) or not all(map(_is_pair, sets)):
        raise DataError("eval_set must be (X, y) or a list of (X, y)")
    count = len(sets)
    qids, weights = _listed("eval_qid", qids, count), _listed("eval_sample_weight", weights, count)
    names = [f"valid_{number}" for number in range(count)] if names is None else _texts(names)
    for what, entries in zip(_WANTED, (qids, weights, names), strict=True):
        if len(entries) != count:
            raise DataError(
                f"{what} has {len(entries)} entries for {count} evaluation sets; give a list with "
                f"{_WANTED[what]} per set"
            )
    if len(set(names)) != count:
        raise DataError(f"evaluation sets need different names, got {', '.join(names)}")
    return dict(zip(names, zip(sets, qids, weights, strict=True), strict=True))


def _refuse_without_set(*given: Any) -> None:
    for what, one in zip(_WANTED, given, strict=True):
        if one is not None:
            raise DataError(f"{what} is given without an evaluation set; give eval_set= too")


def _listed(what: str, given: Any, count: int) -> list[Any]:
    if given is None:
        return [None] * count
    try:
        return list(given)
    except TypeError as error:
        raise DataError(f"{what} must list {_WANTED[what]} per set; got {given!r}") from error


def _texts(names: Any) -> list[str]:
    listed = [*names] if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    if isinstance(names, str) or not all(isinstance(name, str) for name in listed):
        raise DataError(f"eval_names must be a list of texts, one per set; got {names!r}")
    return listed


def _is_pair(given: Any) -> bool:
    return isinstance(given, tuple | list) and len(given) == 2
