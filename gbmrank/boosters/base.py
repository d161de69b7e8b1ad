"""What every booster hands over, and the state kept between its calls.

Training one ranker with either booster: the data, what is watched, and when to stop.

Stopping is decided here and not by the boosters: XGBoost guesses from a metric's name whether
to maximise and rounds values to six decimals, LightGBM needs a name of its own for each set.
"""

import importlib
import logging
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.queries import Groups, RankingData, Subset
from gbmrank.data.tables import Reads, is_before
from gbmrank.errors import DataError, GbmrankWarning, MissingBackendError, NumericError, WeightError
from gbmrank.kernels.jit import compiler
from gbmrank.objectives import AbstractBound, AbstractObjective
from gbmrank.types import FloatArray

__all__ = [
    "Backend",
    "Columns",
    "Fitted",
    "InTraining",
    "Job",
    "Monitor",
    "Part",
    "Setting",
    "Target",
    "answer_booster",
    "bound_to",
    "import_booster",
    "in_training",
    "latest_with_queries",
    "read_scores",
    "training_gradients",
    "training_state",
]


_CLAMPED = float(np.float32(1e38))  # what LightGBM makes of infinity
_INFINITE = 1e300  # a score that was infinite may arrive as this (LightGBM's init_score)
FLOOR_RELATIVE = 1e-3
FLOOR_ABSOLUTE = 1e-10
_log = logging.getLogger("gbmrank")


@final
@dataclass(frozen=True, slots=True)
class Columns:
    """One data set as a booster gives it.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        As the booster stores them.
    sizes : array of shape (n_queries,) or None
        Rows per query; None means one query.
    weight : array of shape (n_rows,) or (n_queries,), or None
        As the booster stores it.
    owner : object
        Lives as long as the data set; state is kept with it and dies with it.
    subset : callable or None
        Tells which rows of a larger data set these are; asked once per data set.
    queries_in_training : callable or None
        Tells how many queries the training set has that this set is watched beside; asked once
        per data set without sizes.
    zeros_if_missing : tuple of {"labels", "weight"}, default=()
        Which columns are zeros where they were never given, or were NaN.
    """

    labels: npt.NDArray[Any]
    sizes: npt.NDArray[Any] | None
    weight: npt.NDArray[Any] | None
    owner: object
    subset: Callable[[], Subset | None] | None = None
    queries_in_training: Callable[[], int] | None = None
    zeros_if_missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if np.ndim(self.labels) != 1:
            raise DataError(
                f"a ranker needs one label per row, and the data set has labels of shape "
                f"{np.shape(self.labels)}; give one column"
            )

    def fingerprint(self) -> tuple[int, ...]:
        """Return a hash of all columns, to notice that a data set was changed."""
        kernels = compiler.load("scores")
        return tuple(
            -1 if column is None else int(kernels.fingerprint(_words(column)))
            for column in (self.labels, self.sizes, self.weight)
        )

    def warn_if_merged(self) -> None:
        """Warn where rows count as one query only because nobody said which queries they are."""
        queries = 0 if self.queries_in_training is None else self.queries_in_training()
        if queries > 1 and len(self.labels) > 1:
            warnings.warn(
                f"a validation set has no group, so its {len(self.labels)} rows count as one "
                f"query, while the training set has {queries}; give group= (rows per query), or "
                "qid= in XGBoost, when the set is made",
                GbmrankWarning,
                stacklevel=5,
            )

    def warn_if_zeros(self) -> None:
        """Warn where labels or weights may be zeros of the booster: it does not tell."""
        unsure = self.zeros_if_missing if len(self.labels) > 1 else ()
        if "labels" in unsure and not np.any(self.labels):
            warnings.warn(
                f"all {len(self.labels)} labels of a data set are 0, which is also what LightGBM "
                "stores where none are given: nothing can be learned from it, and metrics of it "
                "mean nothing; give label= when the set is made",
                GbmrankWarning,
                stacklevel=5,
            )
        weight = np.ones(1) if self.weight is None else self.weight
        if "weight" in unsure and np.any(weight) and not np.all(weight):
            warnings.warn(
                "some weights of a data set are 0, which is also what LightGBM makes of NaN: these "
                "queries or rows do not count; look for NaN in weight=, or leave out the queries",
                GbmrankWarning,
                stacklevel=5,
            )

    def to_data(self) -> RankingData:
        """Check the columns."""
        data = RankingData.from_arrays(self.labels, group=self.sizes, weight=self.weight)
        _check_clamped(data)
        ids = _ids_of(self.owner)
        if ids is not None and len(ids) == data.groups.n_queries:
            data = replace(data, groups=replace(data.groups, ids=ids))
        return data if self.subset is None else replace(data, subset=self.subset())


def _check_clamped(data: RankingData) -> None:
    """Refuse what was infinite before LightGBM made it ``_CLAMPED``."""
    columns = (("label", data.labels, DataError), ("weight", data.weight, WeightError))
    for what, values, error in columns:
        bad = np.flatnonzero(np.abs(np.zeros(0) if values is None else values) >= _CLAMPED)
        if len(bad):
            row = int(bad[0])
            raise error(
                f"the {what} of row {row}, query {data.groups.query_of(row)!r}, is infinite: "
                f"{what}s below {_CLAMPED:.0e} are taken; drop or repair these rows"
            )


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """A booster parameter that an objective needs, and why."""

    name: str
    value: object
    reason: str


class Backend(Protocol):
    """What a booster's module offers."""

    name: str
    reads: Reads

    def accepts(self, data: object) -> bool:
        """Whether this is a data set of the booster; never imports it."""
        ...

    def columns(self, data: Any) -> Columns:
        """Read a data set."""
        ...

    def check_training(self, data: Any) -> None:
        """Raise where a training set tells of a parameter that spoils custom objectives."""
        ...

    def metric_name(self, text: str, higher_is_better: bool) -> str:
        """Return the name under which the booster shows a metric."""
        ...

    def settings(self, shift_invariant: bool) -> tuple[Setting, ...]:
        """Return the parameters that a custom objective needs."""
        ...


class Target(Protocol):
    """An objective of ours, as training sees it."""

    @property
    def template(self) -> AbstractObjective:
        """The composition of template, loss and target."""
        ...

    def bind(self, data: RankingData) -> AbstractBound:
        """Compute what depends on labels alone."""
        ...

    def with_template(self, template: AbstractObjective) -> "Target":
        """Return an objective around another composition."""
        ...

    def __call__(self, a: Any, b: Any) -> Any:
        """Return gradient and Hessian to a booster."""
        ...


class _Slot:
    """State of one data set: its fingerprint and what was bound to it."""

    __slots__ = ("bound", "calls", "fingerprint", "ids", "reference")

    def __init__(self, reference: "weakref.ref[Any]") -> None:
        self.reference = reference
        self.fingerprint: tuple[int, ...] | None = None
        self.ids: npt.NDArray[Any] | None = None
        self.bound: dict[Hashable, Any] = {}
        self.calls: dict[Hashable, int] = {}


class _Latest(threading.local):
    """The data set with queries that this thread used last."""

    owner: "weakref.ref[Any] | None" = None
    queries: int = 0


_slots: dict[int, _Slot] = {}
_latest = _Latest()
_lock = threading.RLock()
_MAX_BOUND = 16  # objectives and metrics kept per data set; the oldest go first


def _renew_lock() -> None:
    """Give a forked child a lock that no vanished thread holds."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def keep_ids(owner: object, ids: npt.NDArray[Any] | None) -> None:
    """Remember the query ids of a booster's data set, which knows sizes alone, for messages."""
    with _lock:
        _slot_of(owner).ids = ids


def _ids_of(owner: object) -> npt.NDArray[Any] | None:
    slot = _slots.get(id(owner))
    return None if slot is None or slot.reference() is not owner else slot.ids


def latest_with_queries() -> tuple[Any, int]:
    """Return the data set with queries that this thread used last, and how many it has.

    It stands for the training set, of which XGBoost tells a metric nothing: objectives are called
    before metrics. It is None when there was none or it is gone.
    """
    return None if _latest.owner is None else _latest.owner(), _latest.queries


def bound_to(
    columns: Columns, key: Hashable, bind: Callable[[RankingData], Any]
) -> tuple[Any, int]:
    """Return what ``bind`` makes of a data set, made anew only when its columns changed.

    Parameters
    ----------
    columns : Columns
        The data set.
    key : hashable
        The objective or metric.
    bind : callable
        Makes the bound state from checked data.

    Returns
    -------
    tuple
        The bound state, and how many times it was asked for.
    """
    fingerprint = columns.fingerprint()
    with _lock:
        slot = _slot_of(columns.owner)
        if columns.sizes is not None:
            _latest.owner, _latest.queries = slot.reference, len(columns.sizes)
        if slot.fingerprint != fingerprint:
            slot.fingerprint = fingerprint
            slot.bound.clear()
            columns.warn_if_merged()
            if slot.ids is None:  # gbmrank made and checked the others
                columns.warn_if_zeros()
        if key not in slot.bound:
            slot.bound[key] = bind(columns.to_data())
            slot.calls[key] = 0
            while len(slot.bound) > _MAX_BOUND:
                oldest = next(iter(slot.bound))
                del slot.bound[oldest], slot.calls[oldest]
        slot.calls[key] += 1
        return slot.bound[key], slot.calls[key]


def _slot_of(owner: object) -> _Slot:
    number = id(owner)
    slot = _slots.get(number)
    if slot is None or slot.reference() is not owner:
        slot = _Slot(weakref.ref(owner, lambda _: _slots.pop(number, None)))
        _slots[number] = slot
    return slot


def read_scores(preds: npt.NDArray[Any], groups: Groups) -> FloatArray:
    """Check a booster's scores; never writes to them."""
    scores = np.require(np.asarray(preds).reshape(-1), np.float64, ["C", "W"])
    if len(scores) != groups.n_rows:
        raise DataError(
            f"the booster gave {len(scores)} scores for {groups.n_rows} rows; gbmrank ranks with "
            "one score per row (num_class or several outputs are not for ranking)"
        )
    row = _first_not_finite(scores)
    if row >= 0:
        raise DataError(
            f"the score of row {row}, query {groups.query_of(row)!r}, is {scores[row]}; look for "
            "NaN in init_score or base_margin, for an objective in the parameters beside this one "
            "or weights beside booster='gblinear' (XGBoost), or lower the learning rate"
        )
    return scores


class InTraining(NamedTuple):
    """An objective on the data of a booster.

    Parameters
    ----------
    bound : AbstractBound
        The objective.
    usual : array of shape (n_queries,)
        Mean Hessian of each query where all scores are equal; infinite where it is not positive.
    """

    bound: AbstractBound
    usual: FloatArray


def in_training(bound: AbstractBound) -> InTraining:
    """Find out what curvature is usual: where all scores are equal, no loss is saturated."""
    groups = bound.groups
    if not groups.n_rows:
        return InTraining(bound, np.zeros(groups.n_queries))
    _, hess = bound.gradients(np.zeros(groups.n_rows), np.float32, single=True)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is found in training
        mean = np.add.reduceat(hess, groups.offsets[:-1], dtype=np.float64) / groups.sizes
    return InTraining(bound, np.where(mean > 0.0, mean, np.inf))


def training_state(columns: Columns, objective: Any) -> tuple[InTraining, int]:
    """Return an objective on a data set, made once, and how many times it was asked for."""
    _latest.owner = None  # a training set without queries stands beside no other
    return bound_to(columns, objective, lambda data: in_training(objective.bind(data)))


def answer_booster(
    objective: Any, columns: Columns, preds: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return what a booster asks an objective for after every round."""
    state, call = training_state(columns, objective)
    return training_gradients(state, read_scores(preds, state.bound.groups), objective, call)


def training_gradients(
    state: InTraining, scores: FloatArray, objective: object, call: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return float32 gradient and floored Hessian for a booster.

    How many rows the floor raised is logged by ``gbmrank`` at level DEBUG.

    Raises
    ------
    NumericError
        When one is not finite; it names the objective, the call and the query.
    """
    bound = state.bound
    grad, hess = bound.gradients(scores, np.float32, single=True)
    floors = FLOOR_RELATIVE, FLOOR_ABSOLUTE
    query, raised = compiler.load("scores").finish(
        grad, hess, bound.groups.offsets, state.usual, floors
    )
    if query >= 0:
        begin, end = bound.groups.offsets[query : query + 2].tolist()
        row = begin + max(_first_not_finite(grad[begin:end]), _first_not_finite(hess[begin:end]))
        raise NumericError(
            f"{objective}: gradient {grad[row]} and Hessian {hess[row]} in row {row}, query "
            f"{bound.groups.query_of(row)!r}, call {call}; the scores go from {scores.min():g} to "
            f"{scores.max():g}: lower the learning rate or choose a loss with bounded slope"
        )
    if raised and _log.isEnabledFor(logging.DEBUG):
        told = "%s: call %d: the Hessian of %d of %d rows was raised to the floor of its query"
        _log.debug(told, objective, call, raised, len(hess))
    return grad, hess


def _first_not_finite(values: npt.NDArray[Any]) -> int:
    """Return the first index whose value is NaN or infinite (``_INFINITE`` or more), or -1."""
    with np.errstate(invalid="ignore"):
        if not len(values) or -_INFINITE < float(values.min()) <= float(values.max()) < _INFINITE:
            return -1
    return int(np.argmin(np.abs(values.astype(np.float64)) < _INFINITE))


def _words(column: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    flat = np.ascontiguousarray(column)
    if flat.dtype.itemsize % 4:
        flat = flat.astype(np.float64)
    return flat.view(np.uint32)


_OLDEST = {"lightgbm": (4, 6), "xgboost": (3, 1)}  # as in pyproject.toml


def import_booster(backend: str) -> Any:
    """Import a booster, or say what to install.

    Raises
    ------
    MissingBackendError
        When it is not installed, or older than gbmrank can use.
    """
    try:
        module = importlib.import_module(backend)
    except ImportError as error:
        raise MissingBackendError(
            f"backend={backend} needs {backend}: pip install 'gbmrank[{backend}]'"
        ) from error
    if is_before(module.__version__, _OLDEST[backend]):
        oldest = ".".join(map(str, _OLDEST[backend]))
        raise MissingBackendError(
            f"backend={backend} needs {backend} {oldest} or later, and {module.__version__} is "
            f"installed: pip install '{backend}>={oldest}'"
        )
    return module


@final
@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows to train or to judge on.

    Parameters
    ----------
    features : table
        Anything the booster reads; rows in query order, as ``data`` has them.
    data : RankingData
        Labels, queries and weights.
    """

    features: Any
    data: RankingData


@final
class Monitor:
    """Values of the metrics after every round, and the round to stop at.

    The first metric on the last data set decides.

    Parameters
    ----------
    evaluate : callable
        ``(scores, data set) -> list of (name, value, ...)``, one entry per metric.
    names : sequence of str
        Of the metrics.
    higher_is_better : bool
        Direction of the first metric.
    patience : int or None
        Stop after so many rounds without improvement; None never stops.
    on_round : callable or None
        Called after every round with the number of rounds done.
    """

    def __init__(
        self,
        evaluate: Callable[[Any, Any], Sequence[Any]],
        names: Sequence[str],
        higher_is_better: bool,
        patience: int | None = None,
        on_round: Callable[[int], None] | None = None,
    ) -> None:
        self.names = tuple(names)
        self.history: dict[str, dict[str, list[float]]] = {}
        self.best_round = -1
        self.best_value = float("nan")
        self._evaluate, self._sign = evaluate, 1.0 if higher_is_better else -1.0
        self._patience, self._on_round = patience, on_round
        self._names_of: dict[int, str] = {}
        self.rounds_done = 0

    def watch(self, name: str, data: object) -> None:
        """Say under which name the values of a data set are kept."""
        self._names_of[id(data)] = name
        self.history[name] = {metric: [] for metric in self.names}

    def __call__(self, scores: Any, data: Any) -> Sequence[Any]:
        """Answer a booster as its custom metric, and remember the answer."""
        answers = self._evaluate(scores, data)
        kept = self.history[self._names_of[id(data)]]
        for name, answer in zip(self.names, answers, strict=True):
            kept[name].append(float(answer[1]))
        return answers

    def end_round(self) -> bool:
        """Count a round; return whether to stop."""
        if self.history:
            value = next(reversed(self.history.values()))[self.names[0]][-1]
            if self.best_round < 0 or self._sign * (value - self.best_value) > 0.0:
                self.best_round, self.best_value = self.rounds_done, value
        self.rounds_done += 1
        if self._on_round is not None:
            self._on_round(self.rounds_done)
        waited = self.rounds_done - 1 - self.best_round
        return self._patience is not None and bool(self.history) and waited >= self._patience


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Job:
    """One training.

    Parameters
    ----------
    train : Part
        What is learned from.
    valid : mapping of str to Part
        What is watched, in order; the last one decides about stopping.
    objective : callable or str
        Ours, or the name of one of the booster's own.
    params : mapping
        Of the booster.
    rounds : int
        Most trees to grow.
    monitor : Monitor
        Sees every round.
    keep_best : bool, default=True
        Cut the model after its best round, where something was watched.
    """

    train: Part
    objective: Any
    params: Mapping[str, Any]
    rounds: int
    monitor: Monitor
    valid: Mapping[str, Part] = field(default_factory=dict)
    keep_best: bool = True

    @property
    def rounds_to_keep(self) -> int:
        """Number of rounds up to the best one; 0 for all of them."""
        return self.monitor.best_round + 1 if self.keep_best else 0


class Fitted(Protocol):
    """A trained booster."""

    backend: str
    reads: Reads
    booster: Any

    @property
    def n_rounds(self) -> int:
        """Number of trees that count: up to the best round."""
        ...

    def scores(self, features: Any) -> FloatArray:
        """Return one raw score per row."""
        ...

    def importances(self) -> FloatArray:
        """Return the summed gain of the splits on each feature."""
        ...

    def stamp(self, identity: str) -> None:
        """Keep a text in the model; files carry it, and the booster reads past it."""
        ...

    def save(self, path: str) -> None:
        """Write the model in the booster's own format."""
        ...
