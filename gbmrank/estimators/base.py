"""Base of all estimators: scikit-learn's protocol, and validation of the rows they are given.

Deriving from ``sklearn.base.BaseEstimator`` would make scikit-learn a requirement of gbmrank, and
it does not allow ``**booster_params``. The protocol is small: parameters by name, tags, and the
metadata that each method requests.
"""

import functools
import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from gbmrank.api import Metric, MetricList, Objective
from gbmrank.api.metrics import any_preferences, metric
from gbmrank.api.splitters import metadata_request
from gbmrank.boosters.base import Part
from gbmrank.data.columns import as_floats, read_wholes
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.schema import Schema, renamed
from gbmrank.data.tables import Reads, read_table, split_column, take_rows, with_zeros
from gbmrank.errors import (
    DataError,
    GbmrankWarning,
    GroupError,
    MetricError,
    NotFittedError,
    ParameterError,
    warn,
)
from gbmrank.registry.guards import bind_metric
from gbmrank.types import FloatArray, IntArray, is_whole


@functools.cache
def _both(theirs: type[Exception]) -> type[NotFittedError]:
    def plain(error: NotFittedError) -> Any:  # a class made here cannot be pickled by name
        return NotFittedError, error.args

    return type("NotFittedError", (NotFittedError, theirs), {"__reduce__": plain})


class AbstractEstimator:
    """Base class of the estimators: named parameters, and others that go to the booster.

    A subclass stores every named parameter under its name and the rest in
    ``_booster_params``; learned attributes end in an underscore. ``_requests`` says which
    arguments scikit-learn passes to which method when it routes metadata.
    """

    _booster_params: dict[str, Any]
    _requests: ClassVar[Mapping[str, Mapping[str, bool | None]]] = {
        "fit": {"qid": True},
        "score": {"qid": True},
    }

    @classmethod
    def _names(cls) -> list[str]:
        parameters = inspect.signature(cls).parameters.values()
        return [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters, including those of the booster.

        Parameters
        ----------
        deep : bool, default=True
            Include nested parameters, such as ``objective__loss``.
        """
        own = {name: getattr(self, name) for name in self._names()} | self._booster_params
        return own | self._nested_params() if deep else own

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; unknown names go to the booster."""
        names = self._names()
        for name in sorted(params, key=lambda one: "__" in one):  # parts after the whole
            outer, _, path = name.partition("__")
            if path:
                self._set_nested(outer, path, params[name])
            elif name in names:
                setattr(self, name, params[name])
            else:  # copies share the dictionary
                self._booster_params = {**self._booster_params, name: params[name]}
        return self

    def _nested_params(self) -> dict[str, Any]:
        return {}

    def _set_nested(self, outer: str, path: str, value: Any) -> None:
        raise ParameterError(f"{type(self).__name__} has no nested parameter '{outer}__{path}'")

    def get_metadata_routing(self) -> Any:
        """Return the metadata that each method requests, for scikit-learn."""
        made = vars(self).get("_metadata_request")
        return metadata_request(self, self._requests) if made is None else made

    def set_fit_request(self, **wanted: bool | str | None) -> Self:
        """Request metadata for ``fit`` from scikit-learn's routing, such as ``qid=True``."""
        return self._set_request("fit", wanted)

    def set_score_request(self, **wanted: bool | str | None) -> Self:
        """Request metadata for ``score`` from scikit-learn's routing."""
        return self._set_request("score", wanted)

    def _set_request(self, method: str, wanted: Mapping[str, bool | str | None]) -> Self:
        made = self.get_metadata_routing()
        for name, alias in wanted.items():
            if name not in self._requests[method]:
                known = ", ".join(self._requests[method])
                raise TypeError(f"{method} takes no metadata {name!r}; it takes {known}")
            getattr(made, method).add_request(param=name, alias=alias)
        self._metadata_request = made  # scikit-learn's clone copies it under this name
        return self

    def _check_fitted(self, attribute: str) -> None:
        if attribute not in vars(self):
            theirs = sys.modules.get("sklearn.exceptions")
            error = NotFittedError if theirs is None else _both(theirs.NotFittedError)
            raise error(f"this {type(self).__name__} is not trained yet; call fit first")

    def _keep_names(self, names: list[str] | None) -> None:
        """Store the column names of the training data, if there are any."""
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        given = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in defaults or defaults[name].default is not value
        }
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})"

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags; only called by scikit-learn."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(allow_nan=True),
        )


TRAINING = "the training set"


def read_queries(qid: Any, n_rows: int, what: str = "X", single: bool = False) -> Groups:
    """Read one query id per row; without ids, all rows are one query if ``single`` is True.

    Otherwise ids are required: nothing else says which rows are ranked together.
    """
    if qid is None and single:
        return Groups.single(n_rows)
    own = what in ("X", TRAINING)
    if qid is None:
        how = (
            "qid= (one id per row); inside scikit-learn's cross-validation, "
            "sklearn.set_config(enable_metadata_routing=True) passes it on"
            if own
            else "eval_qid= (a list with one array of ids per evaluation set)"
        )
        raise GroupError(f"say which query each row of {what} belongs to: {how}")
    try:
        return Groups.from_qid(qid, n_rows)
    except GroupError as error:
        if own:
            raise
        raise GroupError(f"eval_qid of {what}: {error}") from error


def places_within(keys: FloatArray, groups: Groups) -> IntArray:
    """Return the place of each row in its query, 0 for the smallest key, in query order."""
    query = groups.spread(np.arange(groups.n_queries))
    places = np.empty(groups.n_rows, np.int64)
    places[np.lexsort((keys, query))] = np.arange(groups.n_rows)
    return places - groups.spread(groups.offsets[:-1])


def ranks_within(keys: FloatArray, groups: Groups) -> IntArray:
    """Return the rank of each row within its query, 1 for the smallest key, in the user's order."""
    return np.asarray(groups.restore(places_within(keys, groups) + 1), np.int64)


def top_rows(ranks: IntArray, groups: Groups, k: Any) -> IntArray:
    """Return the rows of ranks up to k, query after query, best first."""
    if not is_whole(k) or k < 1:
        raise ParameterError(f"k must be a whole number of at least 1, got {k!r}")
    queries = groups.restore(groups.spread(np.arange(groups.n_queries)))
    rows = np.flatnonzero(ranks <= k)
    return rows[np.lexsort((ranks[rows], queries[rows]))]


def reject_unknown(unknown: Mapping[str, Any], who: str) -> None:
    """Raise for unknown arguments; for query sizes, the error shows the ids to give instead."""
    for name in unknown:
        if name in ("group", "eval_group"):
            ids = name.replace("group", "qid")
            made = "np.repeat(np.arange(len(sizes)), sizes)"
            raise GroupError(
                f"{who} takes one query id per row, not sizes ({name}=): "
                f"{ids}={made if ids == 'qid' else f'[{made}]'}"
            )
        if name in ("position", "position_bias", "clip", "eval_position"):
            raise ParameterError(
                f"{who} does not support {name}=, only GBMRanker on one machine does: give "
                "PositionBias.utilities(clicks, position) as labels, with pairwise(target=identity)"
            )
        if name in ("fold_groups", "splitter"):
            raise ParameterError(f"{who} does not support {name}=, only GBMRanker does")
        if name == "eval_metric" and who != "PairRanker":
            raise ParameterError(
                f"fit does not take eval_metric=. Pass the metric to the constructor: "
                f"{who}(metric='ndcg@10')"
            )
        raise TypeError(f"{who} got an unexpected keyword argument {name!r}")


def reject_column_names(who: str, y: Any, qid: Any) -> None:
    """Raise DataError for labels or ids given by a column's name, as in ``DaskGBMRanker.fit``."""
    if isinstance(y, str) or isinstance(qid, str):
        label = y if isinstance(y, str) else "label"
        query = qid if isinstance(qid, str) else "query"
        raise DataError(
            f"{who} takes arrays, not column names: fit(df[features], df[{label!r}], "
            f"qid=df[{query!r}])"
        )


def check_labels(metrics: MetricList, parts: Mapping[str, Part]) -> None:
    """Raise DataError, before training, for labels that a metric is not defined for."""
    for one in metrics:
        if any_preferences([one]):
            continue  # it does not read labels
        for name, part in parts.items():
            try:
                bind_metric(one.measure, replace(part.data, weight=None))
            except DataError as error:
                raise type(error)(f"metric={one}, {name}: {error}") from error


def check_count(labels: Any, n_rows: int) -> None:
    """Raise unless there is one label per row of X."""
    if labels is None:
        raise DataError("the target y is None: give one label per row of X")
    found = len(as_floats(labels, "y"))
    if found != n_rows:
        raise DataError(f"y has {found} entries, but X has {n_rows} rows")


def warn_about_stopping(target: Any, metric: Metric, parts: Mapping[str, Part]) -> None:
    """Warn if the metric of early stopping is constant, or does not suit the objective."""
    if isinstance(target, Objective):
        theory = importlib.import_module("gbmrank.theory")  # scipy comes with its solvers
        theory.warn_if_not_calibrated(target, metric)
    if not parts or any_preferences([metric]):
        return
    name, part = list(parts.items())[-1]
    groups, labels = part.data.groups, part.data.labels
    if np.array_equal(labels, groups.spread(labels[groups.offsets[:-1]])):
        warn(
            f"labels do not differ within any query of {name}, so {metric} is the same for every "
            "model and training stops at its first round; give a validation set with different "
            "labels within queries, or leave out early_stopping_rounds",
            GbmrankWarning,
        )


def read_part(table: Any, labels: Any, qid: Any, weight: Any, what: str = TRAINING) -> Part:
    """Read rows and put them into query order; ``what`` is their name in messages."""
    if labels is None:
        raise DataError(f"{what} requires y to be passed, but the target y is None: give labels")
    groups = read_queries(qid, table.shape[0], what)
    try:
        values = as_floats(labels, "y", exact=True)
        if len(values) != table.shape[0]:
            raise DataError(f"y has {len(values)} entries, but there are {table.shape[0]} rows")
        data = RankingData.from_arrays(values, group=groups, weight=weight)
    except DataError as error:
        raise type(error)(f"{what}: {error}") from error
    order = groups.row_order
    return Part(table if order is None else take_rows(table, order), data)


def read_valid(
    name: str, rows: tuple[Any, ...], columns: Schema, reads: Reads | None = None
) -> Part:
    """Read an evaluation set for a booster; its columns must be those of the training data.

    XGBoost treats its zeros (as numbers or as missing) like those of the training data, whether
    the set is dense or sparse.
    """
    (features, labels), qid, weight, *_ = rows
    table = read_table(features, name, reads)
    columns.check(table, name)
    table = renamed(with_zeros(table, columns.zeros, name))
    return read_part(table, labels, qid, weight, name)


def named_sets(
    sets: Any, qids: Any, weights: Any, names: Sequence[str] | None, positions: Any = None
) -> dict[str, tuple[Any, Any, Any, Any]]:
    """Return evaluation sets by name; a single set need not be in a list."""
    if sets is None:
        return {}
    if isinstance(sets, tuple) and len(sets) == 2 and not isinstance(sets[0], tuple):
        sets, qids = [sets], [qids]
        weights = None if weights is None else [weights]
        none = isinstance(positions, list) and len(positions) == 1 and positions[0] is None
        positions = positions if positions is None or none else [positions]
    if not isinstance(sets, list | tuple) or not all(
        isinstance(one, tuple | list) and len(one) == 2 for one in sets
    ):
        raise DataError("eval_set must be (X, y) or a list of (X, y)")
    count = len(sets)
    if names is None:
        names = [f"valid_{i}" for i in range(count)]
    columns = {"qid": qids, "sample_weight": weights, "position": positions, "names": names}
    given: dict[str, list[Any]] = {
        f"eval_{what}": [None] * count if one is None else list(one)
        for what, one in columns.items()
    }
    for what, entries in given.items():
        if len(entries) != count:
            raise DataError(
                f"{what} has {len(entries)} entries for {count} evaluation sets; give a list with "
                "one entry per set"
            )
    qids, weights, positions, called = given.values()
    if len(set(called)) != count:
        raise DataError(f"evaluation sets need different names, got {', '.join(called)}")
    return dict(zip(called, zip(sets, qids, weights, positions, strict=True), strict=True))


def ids_of_sizes(sizes: Any, qid: Any, name: str) -> Any:
    """Return query ids for rows per query, or the ids if these are given."""
    if sizes is None:
        return qid
    if qid is not None:
        ids = name.replace("group", "qid")
        raise GroupError(f"{name}= (rows per query) and {ids}= (ids) are both given; leave out one")
    total = float(np.nan_to_num(as_floats(sizes, name)).sum())
    groups = Groups.read(int(total), sizes, None)
    return groups.spread(np.arange(groups.n_queries))


def ids_of_column(table: Any, qid: Any) -> tuple[Any, Any]:
    """Return a table and its query ids; those of its column ``qid`` if none are given."""
    return (table, qid) if qid is not None else split_column(table, "qid")


def ids_of_sets(sets: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Return evaluation sets by name, with ids of their columns ``qid`` if none are given."""
    made = {}
    for name, ((table, labels), qid, *rest) in sets.items():
        features, ids = ids_of_column(table, qid)
        made[name] = ((features, labels), ids, *rest)
    return made


def eval_ids(sets: Any, sizes: Any, qids: Any) -> Any:
    """Return the query ids of evaluation sets for their rows per query, if these are given."""
    if sizes is None:
        return qids
    if sets is None:
        raise DataError("eval_group= is given without eval_set=; give both or neither")
    single = isinstance(sets, tuple) and len(sets) == 2 and not isinstance(sets[0], tuple)
    if single and (len(sizes) != 1 or np.ndim(sizes[0]) == 0):
        return ids_of_sizes(sizes, qids, "eval_group")
    made = [
        ids_of_sizes(one, None if qids is None else qids[at], "eval_group")
        for at, one in enumerate(sizes)
    ]
    return made[0] if single else made


def at_cutoffs(metrics: MetricList, cutoffs: Any) -> MetricList:
    """Return metrics at these cut-offs instead of their own; those without one stay.

    >>> at_cutoffs(MetricList([metric("ndcg@10"), metric("auc")]), [1, 5])
    gbmrank.metric('ndcg@1, ndcg@5, auc')
    """
    made = []
    for one in metrics:
        if not hasattr(one.measure, "k"):
            made.append(one)
            continue
        for k in read_wholes(np.ravel(cutoffs), "eval_at", 1).tolist():
            made.append(metric(one, k=k))
    if not made:
        raise MetricError("eval_at is empty; give at least one cut-off, or leave it out")
    unique = {str(one): one for one in made}
    return MetricList(unique.values())
