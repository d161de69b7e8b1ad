"""The data sets of boosters: their columns, and what is bound to them between rounds.

A booster passes its data set in every round. Binding is slow, so its result is kept as long as
the data set lives, and made again when its columns change.
"""

import os
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.queries import Groups, RankingData, Subset, warn_if_in_pieces
from gbmrank.errors import DataError, GbmrankWarning, WeightError, warn
from gbmrank.types import FloatArray

_CLAMPED = float(np.float32(1e38))  # LightGBM replaces infinity by this
_MAX_BOUND = 16  # objectives and metrics kept per data set; the oldest are dropped first


@final
@dataclass(frozen=True, slots=True)
class BoosterColumns:
    """The columns of a booster's data set."""

    labels: npt.NDArray[Any]
    sizes: npt.NDArray[Any] | None  # rows per query; None means one query
    weight: npt.NDArray[Any] | None  # per row or per query
    owner: object  # lives as long as the data set; its state is dropped with it
    subset: Callable[[], Subset | None] | None = None  # rows of a larger data set; called once
    queries_in_training: Callable[[], int] | None = None  # called once, if there are no sizes
    zeros_if_missing: tuple[str, ...] = ()  # columns that are 0 if not set, or NaN: labels, weight

    def fingerprint(self) -> tuple[int, ...]:
        """Return a hash of all columns, to detect changes of a data set."""
        found = []
        for column in (self.labels, self.sizes, self.weight):
            found.append(-1 if column is None else hash(np.asarray(column).tobytes()))
        return tuple(found)

    def with_placeholders(self, n_rows: int) -> "BoosterColumns":
        """Return columns for an objective or metric of preferences, which needs no labels."""
        labels = self.labels if len(self.labels) else np.zeros(n_rows)
        unsure = tuple(name for name in self.zeros_if_missing if name != "labels")
        return replace(self, labels=labels, zeros_if_missing=unsure)

    def warn_if_merged(self) -> None:
        """Warn if a validation set without queries is evaluated as one query."""
        queries = 0 if self.queries_in_training is None else self.queries_in_training()
        if queries > 1 and len(self.labels) > 1:
            warn(
                f"a validation set has no group, so its {len(self.labels)} rows count as one "
                f"query, while the training set has {queries}; pass group= (rows per query), or "
                "qid= in XGBoost, when you create the data set",
                GbmrankWarning,
            )

    def warn_if_wrong(self) -> None:
        """Warn if queries are in pieces, or labels or weights zeros that the booster filled in."""
        if self.sizes is not None:
            warn_if_in_pieces(np.asarray(self.sizes))
        unsure = self.zeros_if_missing if len(self.labels) > 1 else ()
        if "labels" in unsure and not np.any(self.labels):
            warn(
                f"all {len(self.labels)} labels of a data set are 0, which is also LightGBM's "
                "default for missing labels: there is nothing to learn, and metrics are "
                "meaningless; pass label= when you create the data set",
                GbmrankWarning,
            )
        weight = np.ones(1) if self.weight is None else self.weight
        if "weight" in unsure and np.any(weight) and not np.all(weight):
            warn(
                "some weights of a data set are 0, to which LightGBM also converts NaN: these "
                "queries or rows do not count; check weight= for NaN, or leave out the queries",
                GbmrankWarning,
            )

    def to_data(self) -> RankingData:
        """Validate the columns and return them as ranking data."""
        sizes, n_rows = self.sizes, len(self.labels)
        groups = None if sizes is None else Groups.from_sizes(sizes, n_rows)
        data = RankingData.from_arrays(self.labels, group=groups, weight=self.weight)
        columns = (("label", data.labels, DataError), ("weight", data.weight, WeightError))
        for what, values, error in columns:
            bad = np.flatnonzero(np.abs(np.zeros(0) if values is None else values) >= _CLAMPED)
            if len(bad):
                row = int(bad[0])
                raise error(
                    f"the {what} of row {row}, query {data.groups.query_of(row)!r}, is infinite; "
                    f"{what}s must be below {_CLAMPED:.0e}: drop or repair these rows"
                )
        return data if self.subset is None else replace(data, subset=self.subset())


class RowColumns(NamedTuple):
    """Columns of a data set made by gbmrank that the booster's data set cannot store."""

    ids: npt.NDArray[Any] | None  # of queries, for messages
    weight: FloatArray | None  # if the weights of a query's rows differ
    columns: Mapping[str, FloatArray]

    def added_to(self, columns: BoosterColumns) -> RankingData:
        """Return the booster's columns as ranking data, with these columns."""
        weight = columns.weight if self.weight is None else self.weight
        data = replace(columns, weight=weight, subset=None).to_data()
        if self.ids is not None and len(self.ids) == data.groups.n_queries:
            data = replace(data, groups=replace(data.groups, ids=self.ids))
        return replace(data, columns=self.columns)


@dataclass(slots=True, eq=False)
class Binding:
    """An objective or metric bound to a data set, and how often it was requested."""

    key: Hashable
    value: Any
    calls: int = 0


@dataclass(slots=True, eq=False)
class DataSetState:
    """What is kept of one data set: its fingerprint, and what is bound to it."""

    reference: "weakref.ref[Any]"
    fingerprint: tuple[int, ...] | None = None
    rows: RowColumns | None = None  # None for a data set of the user
    queries: int = 0
    bound: dict[Hashable, Binding] = field(default_factory=dict)
    latest: Binding | None = None

    def bound_to(
        self,
        columns: BoosterColumns,
        key: Hashable,
        bind: Callable[[RankingData], Any],
        training: bool = False,
    ) -> tuple[Any, int]:
        """Return the cached result of ``bind``, which is renewed if columns changed.

        Also returns how many times it was requested; ``key`` is the objective or metric.
        """
        global _training  # noqa: PLW0603
        fingerprint = columns.fingerprint()
        with lock:  # also while it binds: a second thread waits instead of binding again
            if training:
                _training = self.reference
            self.queries = 0 if columns.sizes is None else len(columns.sizes)
            if self.fingerprint != fingerprint:
                self.fingerprint = fingerprint
                self.bound.clear()
                self.latest = None
                columns.warn_if_merged()
                if self.rows is None:
                    columns.warn_if_wrong()
            found = self.latest
            if found is None or found.key is not key:  # ``is`` is faster than to compare values
                found = self.bound.get(key)
            if found is None:
                rows = self.rows
                data = columns.to_data() if rows is None else rows.added_to(columns)
                found = self.bound[key] = Binding(key, bind(data))
                while len(self.bound) > _MAX_BOUND:
                    del self.bound[next(iter(self.bound))]
            self.latest = found
            found.calls += 1
            return found.value, found.calls


# By id, with a weak reference: a data set may be hashed by its values, or not at all.
states: dict[int, DataSetState] = {}
_training: "weakref.ref[Any] | None" = None  # the data set of the latest objective
lock = threading.RLock()


def _renew_lock() -> None:
    """Create a new lock in a forked child, as a thread of the parent may hold the old one."""
    global lock  # noqa: PLW0603
    lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def state_of(owner: object) -> DataSetState:
    """Return what is kept of a data set, which may be nothing yet."""
    number = id(owner)
    with lock:
        found = states.get(number)
        if found is None or found.reference() is not owner:  # the address has been reused
            reference = weakref.ref(owner, lambda _: states.pop(number, None))
            found = states[number] = DataSetState(reference)
        return found


def keep_rows(owner: object, data: RankingData) -> None:
    """Register a data set made by gbmrank, with the columns that a booster does not store."""
    weight = None if data.split_weight()[1] is None else data.weight
    state_of(owner).rows = RowColumns(data.groups.ids, weight, data.columns)


def latest_training() -> tuple[Any, int]:
    """Return the data set of the last call of an objective, if alive, and its queries."""
    owner = None if _training is None else _training()
    return owner, 0 if owner is None else state_of(owner).queries
