"""Trainings that a user runs with a booster, as an objective sees them from within.

A booster passes scores and labels to an objective, but neither its parameters nor the model. Both
are found by ``call_stack.py`` of each booster, in every API of a booster and whatever the data set
was used for before. A training that is not found, for example since the gradient is computed in
another thread, is neither checked nor warned about; the gradient is the same.
"""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.boosters import bindings
from gbmrank.boosters.bindings import BoosterColumns
from gbmrank.boosters.gradients import round_gradients
from gbmrank.boosters.settings import number_of
from gbmrank.data.queries import MANY_ROWS
from gbmrank.errors import GbmrankWarning, NoProgressWarning, warn

if TYPE_CHECKING:
    from gbmrank.boosters.base import Booster, Target

_ROUNDS = 3  # without a split before a warning: a sample of rows or columns may have none


class Training(NamedTuple):
    """A model that is waiting for a gradient."""

    model: Any
    params: Callable[[], Mapping[str, Any]]  # as given, perhaps by aliases
    splits: Callable[[], float]  # of all trees so far
    positions: Callable[[], bool]  # whether the data set has positions, which are ignored
    changeable: bool = False  # whether parameters may have become wrong since the first round


@dataclass(slots=True, eq=False)
class _Progress:
    """How far a training has come: calls of its objective, and splits before the first one."""

    splits: float
    calls: int = 0
    ends_below: float = 0.0  # a sum of Hessians with which no tree can split, if it may come


_progress: "weakref.WeakKeyDictionary[Any, _Progress]" = weakref.WeakKeyDictionary()


def checked_gradients(
    booster: "Booster", objective: "Target", columns: BoosterColumns, preds: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return gradient and Hessian; raise or warn if training would silently go wrong.

    Trainings that gbmrank runs itself were validated before.

    Raises
    ------
    ConfigError
        For parameters with which the booster trains a wrong model.
    """
    state = bindings.state_of(columns.owner)
    training = None if state.rows is not None else booster.training()
    if training is None:
        return round_gradients(objective, columns, preds, state)
    progress = _progress.get(training.model)
    if progress is None or training.changeable:
        booster.check_training(training)
    if progress is None:
        booster.start_training(training)  # before it is registered: what it rejects has not begun
        with bindings.lock:
            progress = _progress[training.model] = _Progress(training.splits())
        _warn_at_start(booster, training, objective, columns)
    progress.calls += 1
    grad, hess = round_gradients(objective, columns, preds, state)
    ends = progress.ends_below and hess.sum(dtype=np.float64) < progress.ends_below
    if ends or progress.calls in (1, _ROUNDS + 1):
        _check_progress(booster, objective, training, progress, hess)
    return grad, hess


def _check_progress(
    booster: "Booster",
    objective: "Target",
    training: Training,
    progress: _Progress,
    hess: npt.NDArray[np.float32],
) -> None:
    """Warn if no tree has split, or if a limit on the Hessian keeps trees small or ends them."""
    known, params = booster.parameters, booster.parameters.read(training.params())
    total = float(hess.sum(dtype=np.float64))
    if progress.calls == 1:
        if known.is_tight(params, total):
            progress.ends_below = 2.0 * number_of(params, *known.least_curvature)
        return
    if progress.calls <= _ROUNDS:
        return
    splits, leaves = training.splits() - progress.splits, known.most_leaves(params)
    if splits == 0:
        problem = f"no tree has split after {_ROUNDS} rounds, so all rows have the same score"
        cause = known.likely_cause(params, len(hess), total)
    elif total < progress.ends_below:
        problem = f"from round {progress.calls} no tree can split"
        cause = known.tight_limit(params, total)
    elif progress.ends_below and known.is_short(params, splits / _ROUNDS + 1):
        problem = f"trees have {splits / _ROUNDS + 1:.1f} of {leaves:.0f} leaves"
        cause = known.tight_limit(params, total)
    else:
        return
    progress.ends_below = 0.0
    warn(f"{objective}: {problem}; {cause}", NoProgressWarning)


def _warn_at_start(
    booster: "Booster", training: Training, objective: "Target", columns: BoosterColumns
) -> None:
    params = booster.parameters.read(training.params())
    ignored = booster.parameters.without_effect(params, training.positions())
    if "eval_at" in ignored:
        given = "map" if any(name.startswith("map_") for name in training.params()) else "ndcg"
        cutoffs = ",".join(map(str, np.ravel(params["eval_at"]).tolist()))
        ignored["eval_at"] = f"use gbmrank.metric('{given}@{cutoffs}')"
    if ignored:
        advice = "; ".join(dict.fromkeys(ignored.values()))
        warn(
            f"{', '.join(ignored)}: {objective} ignores this, unlike {booster.title}'s own "
            f"ranking objectives; {advice}",
            GbmrankWarning,
        )
    n_rows, template = len(columns.labels), objective.template
    grouped = columns.sizes is not None or getattr(template, "preferences", None) is not None
    if not grouped and n_rows >= MANY_ROWS and not template.separable:
        warn(
            f"the training set has no queries, so its {n_rows} rows are ranked as one; pass "
            f"the rows of each query ({booster.groups_hint}), or group=[{n_rows}] if it is "
            "one query",
            GbmrankWarning,
        )
