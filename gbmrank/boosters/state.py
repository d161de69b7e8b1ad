"""The callbacks of a booster, and what is kept between them.

Of a data set: its columns, the objectives and metrics bound to it. Of a training: rounds and splits
so far. A booster passes scores and labels to an objective, but neither its parameters nor the
model. Both are one or two frames up the stack, in the booster's method that is waiting for the
gradient. This works in every API of a booster and whatever the data set was used for before. If
the gradient is computed in another thread, the training is not found.
"""

import functools
import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.queries import Groups, RankingData, Subset
from gbmrank.errors import (
    DataError,
    GbmrankWarning,
    NoProgressWarning,
    NumericError,
    WeightError,
    warn,
)
from gbmrank.kernels.jit import compiler, threads
from gbmrank.kernels.layout import GradHess
from gbmrank.objectives import AbstractBound
from gbmrank.types import FloatArray

if TYPE_CHECKING:
    from gbmrank.boosters.base import Booster, Target

_CLAMPED = float(np.float32(1e38))  # LightGBM replaces infinity by this
_INFINITE = 1e300  # a score that was infinite may arrive as this (LightGBM's init_score)
FLOOR_RELATIVE = 1e-3
FLOOR_ABSOLUTE = 1e-10
_ROUNDS = 3  # without a split before a warning: a sample of rows or columns may have none
_MANY_ROWS = 1000  # in one query, before a warning that the data set has no queries
_log = logging.getLogger("gbmrank")


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

    def warn_if_zeros(self) -> None:
        """Warn if labels or weights may be zeros that the booster filled in."""
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
        kept = _kept_with(self.owner)
        weight = self.weight if kept is None or kept.weight is None else kept.weight
        data = RankingData.from_arrays(self.labels, group=self.sizes, weight=weight)
        _check_clamped(data)
        if kept is not None and kept.ids is not None and len(kept.ids) == data.groups.n_queries:
            data = replace(data, groups=replace(data.groups, ids=kept.ids))
        if kept is not None:
            data = replace(data, columns=kept.columns)
        return data if self.subset is None else replace(data, subset=self.subset())


def _check_clamped(data: RankingData) -> None:
    """Reject values that were infinite before LightGBM replaced them by ``_CLAMPED``."""
    columns = (("label", data.labels, DataError), ("weight", data.weight, WeightError))
    for what, values, error in columns:
        bad = np.flatnonzero(np.abs(np.zeros(0) if values is None else values) >= _CLAMPED)
        if len(bad):
            row = int(bad[0])
            raise error(
                f"the {what} of row {row}, query {data.groups.query_of(row)!r}, is infinite; "
                f"{what}s must be below {_CLAMPED:.0e}: drop or repair these rows"
            )


@functools.cache
def _kernels() -> Any:
    return compiler.load("scores")


class _Bound:
    """An objective or metric bound to a data set, and how often it was requested."""

    __slots__ = ("calls", "key", "value")

    def __init__(self, key: Hashable, value: Any) -> None:
        self.key, self.value, self.calls = key, value, 0


class _Kept(NamedTuple):
    """Columns of a data set made by gbmrank that the booster's data set cannot store."""

    ids: npt.NDArray[Any] | None  # of queries, for messages
    weight: FloatArray | None  # if the weights of a query's rows differ
    columns: Mapping[str, FloatArray]


class _Slot:
    """State of one data set: its fingerprint, and the objectives and metrics bound to it."""

    __slots__ = ("bound", "fingerprint", "kept", "latest", "queries", "reference")

    def __init__(self, reference: "weakref.ref[Any]") -> None:
        self.reference = reference
        self.fingerprint: tuple[int, ...] | None = None
        self.kept: _Kept | None = None
        self.queries = 0
        self.bound: dict[Hashable, _Bound] = {}
        self.latest: _Bound | None = None


class Training(NamedTuple):
    """A model that is waiting for a gradient."""

    model: Any
    params: Callable[[], Mapping[str, Any]]  # as given, perhaps by aliases
    splits: Callable[[], float]  # of all trees so far
    positions: Callable[[], bool]  # whether the data set has positions, which are ignored


class _Seen:
    """State of a training between rounds."""

    __slots__ = ("calls", "splits")

    def __init__(self, splits: float) -> None:
        self.calls, self.splits = 0, splits


_slots: dict[int, _Slot] = {}
_seen: "weakref.WeakKeyDictionary[Any, _Seen]" = weakref.WeakKeyDictionary()
_training: "weakref.ref[Any] | None" = None  # the data set of the latest objective
_lock = threading.RLock()
_MAX_BOUND = 16  # objectives and metrics kept per data set; the oldest are dropped first


def _renew_lock() -> None:
    """Create a new lock in a forked child, as a thread of the parent may hold the old one."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def keep_rows(owner: object, data: RankingData) -> None:
    """Register a data set made by gbmrank, with the columns that a booster does not store."""
    weight = None if data.split_weight()[1] is None else data.weight
    with _lock:
        _slot_of(owner).kept = _Kept(data.groups.ids, weight, data.columns)


def _kept_with(owner: object) -> _Kept | None:
    slot = _slots.get(id(owner))
    return None if slot is None or slot.reference() is not owner else slot.kept


def latest_training() -> tuple[Any, int]:
    """Return the data set of the last call of an objective, if alive, and its queries."""
    owner = None if _training is None else _training()
    slot = None if owner is None else _slots.get(id(owner))
    return owner, 0 if slot is None else slot.queries


def bound_to(
    columns: BoosterColumns, key: Hashable, bind: Callable[[RankingData], Any]
) -> tuple[Any, int]:
    """Return the cached result of ``bind`` for a data set; it is renewed if columns changed.

    Also returns how many times it was requested; ``key`` is the objective or metric.
    """
    fingerprint = columns.fingerprint()
    with _lock:
        slot = _slot_of(columns.owner)
        slot.queries = 0 if columns.sizes is None else len(columns.sizes)
        if slot.fingerprint != fingerprint:
            slot.fingerprint = fingerprint
            slot.bound.clear()
            slot.latest = None
            columns.warn_if_merged()
            if slot.kept is None:
                columns.warn_if_zeros()
        found = slot.latest
        if found is None or found.key is not key:
            found = slot.bound.get(key)
        if found is None:
            found = slot.bound[key] = _Bound(key, bind(columns.to_data()))
            while len(slot.bound) > _MAX_BOUND:
                del slot.bound[next(iter(slot.bound))]
        slot.latest = found
        found.calls += 1
        return found.value, found.calls


def _slot_of(owner: object) -> _Slot:
    number = id(owner)
    slot = _slots.get(number)
    if slot is None or slot.reference() is not owner:
        slot = _Slot(weakref.ref(owner, lambda _: _slots.pop(number, None)))
        _slots[number] = slot
    return slot


def read_scores(preds: npt.NDArray[Any], groups: Groups) -> FloatArray:
    """Validate a booster's scores; never modifies them."""
    scores = np.require(np.asarray(preds).reshape(-1), np.float64, ["C", "W"])
    n_rows = int(groups.offsets[-1])
    if len(scores) != n_rows:
        raise DataError(
            f"the booster passed {len(scores)} scores for {n_rows} rows; gbmrank needs one score "
            "per row, so num_class and several outputs are not supported"
        )
    row = _first_not_finite(scores)
    if row >= 0:
        raise DataError(
            f"the score of row {row}, query {groups.query_of(row)!r}, is {scores[row]}; check "
            "init_score or base_margin for NaN, and the parameters for a second objective or for "
            "weights with booster='gblinear' (XGBoost), or lower the learning rate"
        )
    return scores


class InTraining(NamedTuple):
    """An objective bound to the training set of a booster."""

    bound: AbstractBound
    usual: FloatArray  # mean Hessian of each query at equal scores; infinite if not positive


def in_training(bound: AbstractBound) -> InTraining:
    """Measure the usual curvature: at equal scores, no loss is saturated."""
    groups = bound.groups
    if not groups.n_rows:
        return InTraining(bound, np.zeros(groups.n_queries))
    _, hess = bound.gradients(np.zeros(groups.n_rows), np.float32, single=True)
    with np.errstate(invalid="ignore", over="ignore"):  # training checks for infinite values
        mean = np.add.reduceat(hess, groups.offsets[:-1], dtype=np.float64) / groups.sizes
    return InTraining(bound, np.where(mean > 0.0, mean, np.inf))


def training_state(columns: BoosterColumns, objective: Any) -> tuple[InTraining, int]:
    """Return an objective bound to a data set, cached, and how many times it was requested."""
    global _training  # noqa: PLW0603
    _training = weakref.ref(columns.owner)
    return bound_to(columns, objective, lambda data: in_training(objective.bind(data)))


def round_gradients(
    objective: Any, columns: BoosterColumns, preds: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return gradient and Hessian of a round in the form boosters expect."""
    _advise_on_waiting()
    state, call = training_state(columns, objective)
    return training_gradients(state, read_scores(preds, state.bound.groups), objective, call)


def watched_gradients(
    booster: "Booster", objective: "Target", columns: BoosterColumns, preds: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return gradient and Hessian; raise or warn if training would silently go wrong.

    Trainings that gbmrank runs itself were validated before.

    Raises
    ------
    ConfigError
        For parameters with which the booster trains a wrong model.
    """
    training = None if _kept_with(columns.owner) is not None else booster.training()
    if training is None:
        return round_gradients(objective, columns, preds)
    booster.check_training(training)
    with _lock:
        seen = _seen.get(training.model)
        if seen is None:
            seen = _seen[training.model] = _Seen(training.splits())
        seen.calls += 1
    if seen.calls == 1:
        booster.start_training(training)
        _warn_at_start(booster, training, objective, columns)
    grad, hess = round_gradients(objective, columns, preds)
    if seen.calls == _ROUNDS + 1 and training.splits() == seen.splits:
        total = float(hess.sum(dtype=np.float64))
        params = booster.parameters.read(training.params())
        warn(
            f"{objective}: no tree has split after {_ROUNDS} rounds, so all rows have the same "
            f"score; {booster.parameters.likely_cause(params, len(hess), total)}",
            NoProgressWarning,
        )
    return grad, hess


def _warn_at_start(
    booster: "Booster", training: Training, objective: "Target", columns: BoosterColumns
) -> None:
    params = booster.parameters.read(training.params())
    ignored = booster.parameters.without_effect(params, training.positions())
    if ignored:
        advice = "; ".join(dict.fromkeys(ignored.values()))
        warn(
            f"{', '.join(ignored)}: {objective} ignores this, unlike {booster.title}'s own "
            f"ranking objectives; {advice}",
            GbmrankWarning,
        )
    n_rows, template = len(columns.labels), objective.template
    grouped = columns.sizes is not None or getattr(template, "preferences", None) is not None
    if not grouped and n_rows > _MANY_ROWS and not template.separable:
        warn(
            f"the training set has no queries, so its {n_rows} rows are ranked as one; pass "
            f"the rows of each query ({booster.groups_hint}), or group=[{n_rows}] if it is "
            "one query",
            GbmrankWarning,
        )


def frames_of(module: str) -> Iterator[Any]:
    """Yield the frames of a module on the call stack, innermost first."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == module:
            yield frame
        frame = frame.f_back


def waiting_in(module: str, kind: type) -> Any:
    """Return the innermost object of a class whose method in a module is waiting, or None."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == module:
            owner = frame.f_locals.get("self")
            if isinstance(owner, kind):
                return owner
        frame = frame.f_back
    return None


@functools.cache
def _advise_on_waiting() -> None:
    """Log once that waiting threads of a booster need not keep processors busy."""
    if "OMP_WAIT_POLICY" not in os.environ and threads.get_num_threads() > 1:
        _log.info(
            "the threads of a booster keep processors busy while they wait; set "
            "OMP_WAIT_POLICY=PASSIVE before Python starts to leave the processors to the objective"
        )


def training_gradients(
    state: InTraining, scores: FloatArray, objective: object, call: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return gradient and floored Hessian as float32; raise NumericError if not finite.

    The number of rows that the floor raised is logged by ``gbmrank`` at level DEBUG.
    """
    bound = state.bound
    grad, hess = out = GradHess(
        np.empty(len(scores), np.float32), np.empty(len(scores), np.float32)
    )
    if len(scores):
        bound.fill(scores, out, single=True)
    floors = FLOOR_RELATIVE, FLOOR_ABSOLUTE
    query, raised = _kernels().finish(grad, hess, bound.groups.offsets, state.usual, floors)
    if query >= 0:
        begin, end = bound.groups.offsets[query : query + 2].tolist()
        row = begin + max(_first_not_finite(grad[begin:end]), _first_not_finite(hess[begin:end]))
        raise NumericError(
            f"{objective}: gradient {grad[row]} and Hessian {hess[row]} in row {row}, query "
            f"{bound.groups.query_of(row)!r}, call {call}; the scores range from "
            f"{scores.min():g} to {scores.max():g}: lower the learning rate or choose a loss with "
            "bounded slope"
        )
    if raised and _log.isEnabledFor(logging.DEBUG):
        message = "%s: call %d: the Hessian of %d of %d rows was raised to the floor of its query"
        _log.debug(message, objective, call, raised, len(hess))
    return grad, hess


def _first_not_finite(values: npt.NDArray[Any]) -> int:
    """Return the first index whose value is NaN or infinite (``_INFINITE`` or more), or -1."""
    with np.errstate(invalid="ignore"):
        if not len(values) or -_INFINITE < float(values.min()) <= float(values.max()) < _INFINITE:
            return -1
    return int(np.argmin(np.abs(values.astype(np.float64)) < _INFINITE))
