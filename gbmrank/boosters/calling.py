"""The training that calls an objective, as far as the call stack tells.

A booster hands scores and labels to an objective, and neither its parameters nor the model. Both
are one or two frames up the stack: in the method of the booster that is waiting for the gradient.
That is the model itself, whatever was done to its data set before, and it is there in every
interface of a booster. Where a caller computes the gradient in another thread, nothing is seen.
"""

import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.errors import GbmrankWarning, NoProgressWarning

if TYPE_CHECKING:
    from gbmrank.boosters.base import Booster, Target

__all__ = ["Round", "Training", "frames_of", "waiting_in", "watch"]

_ROUNDS = 3  # without a split before anybody is warned: a sample of rows or columns may have none
_MANY_ROWS = 1000  # of one query that nobody said is one


class Training(NamedTuple):
    """A model that waits for a gradient."""

    model: Any
    params: Callable[[], Mapping[str, Any]]  # as given, by main names
    splits: Callable[[], float]  # of all trees so far
    positions: Callable[[], bool]  # whether the data set has positions, which nobody reads here


class _Seen:
    """What is known of a training after some of its rounds."""

    __slots__ = ("calls", "splits")

    def __init__(self, splits: float) -> None:
        self.calls, self.splits = 0, splits


_seen: "weakref.WeakKeyDictionary[Any, _Seen]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def frames_of(module: str) -> Iterator[Any]:
    """Yield the frames of a module that are waiting, the innermost one first."""
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


class Round(NamedTuple):
    """What an objective is asked in a round, and what it returns."""

    objective: "Target"
    n_rows: int
    grouped: bool  # whether the data set says which rows are a query
    gradient: Callable[[], tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]


def watch(booster: "Booster", this: Round) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the gradient of a round; raise or warn where its training goes wrong silently.

    Raises
    ------
    ConfigError
        For parameters with which the booster trains a wrong model.
    """
    training = booster.training()
    if training is None:
        return this.gradient()
    booster.check_training(training)
    with _lock:
        seen = _seen.get(training.model)
        if seen is None:
            seen = _seen[training.model] = _Seen(training.splits())
        seen.calls += 1
    if seen.calls == 1:
        _warn_at_start(booster, training, this)
    grad, hess = this.gradient()
    if seen.calls == _ROUNDS + 1 and training.splits() == seen.splits:
        _warn_of_no_split(booster, training, this, hess)
    return grad, hess


def _warn_at_start(booster: "Booster", training: Training, this: Round) -> None:
    ignored = booster.parameters.without_effect(training.params(), training.positions())
    if ignored:
        advice = "; ".join(dict.fromkeys(ignored.values()))
        warnings.warn(
            f"{', '.join(ignored)}: {this.objective} does not read this, as {booster.title}'s own "
            f"ranking objectives would; {advice}",
            GbmrankWarning,
            stacklevel=5,
        )
    if not this.grouped and this.n_rows > _MANY_ROWS and not this.objective.template.separable:
        warnings.warn(
            f"the training set has no queries, so its {this.n_rows} rows are ranked as one; give "
            f"the rows of each query ({booster.groups_hint}), or group=[{this.n_rows}] if one "
            "query is meant",
            GbmrankWarning,
            stacklevel=5,
        )


def _warn_of_no_split(
    booster: "Booster", training: Training, this: Round, hess: npt.NDArray[Any]
) -> None:
    total = float(hess.sum(dtype=np.float64))
    cause = booster.parameters.likely_cause(training.params(), this.n_rows, total)
    warnings.warn(
        f"{this.objective}: no tree has split after {_ROUNDS} rounds, so all rows have the same "
        f"score; {cause}",
        NoProgressWarning,
        stacklevel=5,
    )
