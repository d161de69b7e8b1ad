"""Find the training that calls an objective by inspecting the call stack.

A booster passes scores and labels to an objective, but neither its parameters nor the model. Both
are one or two frames up the stack, in the booster's method that is waiting for the gradient. This
works in every API of a booster and whatever the data set was used for before. If the gradient is
computed in another thread, the training is not found.
"""

import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.errors import GbmrankWarning, NoProgressWarning, warn

if TYPE_CHECKING:
    from gbmrank.boosters.base import Booster, Target

__all__ = ["Round", "Training", "frames_of", "waiting_in", "watch"]

_ROUNDS = 3  # without a split before a warning: a sample of rows or columns may have none
_MANY_ROWS = 1000  # in one query, before a warning that the data set has no queries


class Training(NamedTuple):
    """A model that is waiting for a gradient."""

    model: Any
    params: Callable[[], Mapping[str, Any]]  # by main names
    splits: Callable[[], float]  # of all trees so far
    positions: Callable[[], bool]  # whether the data set has positions, which are ignored


class _Seen:
    """State of a training between rounds."""

    __slots__ = ("calls", "splits")

    def __init__(self, splits: float) -> None:
        self.calls, self.splits = 0, splits


_seen: "weakref.WeakKeyDictionary[Any, _Seen]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def frames_of(module: str) -> Iterator[Any]:
    """Yield the frames of a module on the call stack, innermost first."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == module:
            yield frame
        frame = frame.f_back


def waiting_in(module: str, kind: type) -> Any:
    """Return the innermost object of a class whose method in a module is waiting, or None."""
    for frame in frames_of(module):
        owner = frame.f_locals.get("self")
        if isinstance(owner, kind):
            return owner
    return None


class Round(NamedTuple):
    """One call of an objective, and what it returns."""

    objective: "Target"
    n_rows: int
    grouped: bool  # whether the data set says which rows are a query
    gradient: Callable[[], tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]


def watch(booster: "Booster", this: Round) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the gradient of a round; raise or warn if training would silently go wrong.

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
        warn(
            f"{', '.join(ignored)}: {this.objective} ignores this, unlike {booster.title}'s own "
            f"ranking objectives; {advice}",
            GbmrankWarning,
        )
    if not this.grouped and this.n_rows > _MANY_ROWS and not this.objective.template.separable:
        warn(
            f"the training set has no queries, so its {this.n_rows} rows are ranked as one; pass "
            f"the rows of each query ({booster.groups_hint}), or group=[{this.n_rows}] if it is "
            "one query",
            GbmrankWarning,
        )


def _warn_of_no_split(
    booster: "Booster", training: Training, this: Round, hess: npt.NDArray[Any]
) -> None:
    total = float(hess.sum(dtype=np.float64))
    cause = booster.parameters.likely_cause(training.params(), this.n_rows, total)
    warn(
        f"{this.objective}: no tree has split after {_ROUNDS} rounds, so all rows have the same "
        f"score; {cause}",
        NoProgressWarning,
    )
