"""The gradient of a round: scores are checked, Hessians get a floor, values are finite."""

import functools
import logging
import os
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from gbmrank.boosters.bindings import BoosterColumns, DataSetState, state_of
from gbmrank.data.queries import Groups
from gbmrank.errors import DataError, NumericError
from gbmrank.kernels.jit import compiler, threads
from gbmrank.kernels.layout import GradHess
from gbmrank.objectives import AbstractBound
from gbmrank.types import FloatArray

_INFINITE = 1e300  # a score that was infinite may arrive as this (LightGBM's init_score)
FLOOR_RELATIVE = 1e-3
FLOOR_ABSOLUTE = 1e-10
_log = logging.getLogger("gbmrank")


@functools.cache
def _kernels() -> Any:
    return compiler.load("scores")


def read_scores(preds: npt.NDArray[Any], groups: Groups) -> FloatArray:
    """Validate a booster's scores; never modifies them."""
    scores = np.require(np.asarray(preds).reshape(-1), np.float64, ["C", "W"])
    n_rows = int(groups.offsets[-1])
    if len(scores) != n_rows:
        raise DataError(
            f"the booster passed {len(scores)} scores for {n_rows} rows; gbmrank needs one score "
            "per row, so num_class and several outputs are not supported"
        )
    with np.errstate(invalid="ignore"):  # NaN fails the comparisons, whichever end it is at
        finite = not n_rows or -_INFINITE < scores.min() <= scores.max() < _INFINITE
    if not finite:
        row = _first_not_finite(scores)
        raise DataError(
            f"the score of row {row}, query {groups.query_of(row)!r}, is {scores[row]}; check "
            "init_score or base_margin for NaN, and the parameters for a second objective or for "
            "weights with booster='gblinear' (XGBoost), or lower the learning rate"
        )
    return scores


@final
@dataclass(slots=True, eq=False)
class InTraining:
    """An objective bound to the training set of a booster."""

    bound: AbstractBound
    tied_curvature: FloatArray  # mean Hessian by query at equal scores; infinite if not positive
    at_zero: GradHess | None = None  # until the first call, whose scores are usually zero


def in_training(bound: AbstractBound) -> InTraining:
    """Measure the curvature at equal scores, where no loss is saturated."""
    groups = bound.groups
    if not groups.n_rows:
        return InTraining(bound, np.zeros(groups.n_queries))
    at_zero = GradHess(*bound.gradients(np.zeros(groups.n_rows), np.float32, single=True))
    with np.errstate(invalid="ignore", over="ignore"):  # training checks for infinite values
        mean = np.add.reduceat(at_zero.hess, groups.offsets[:-1], dtype=np.float64) / groups.sizes
    return InTraining(bound, np.where(mean > 0.0, mean, np.inf), at_zero)


def round_gradients(
    objective: Any,
    columns: BoosterColumns,
    preds: npt.NDArray[Any],
    state: DataSetState | None = None,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return gradient and Hessian of a round in the form boosters expect."""
    _advise_on_waiting()
    kept = state_of(columns.owner) if state is None else state
    bound, call = kept.bound_to(
        columns, objective, lambda data: in_training(objective.bind(data)), training=True
    )
    return training_gradients(bound, read_scores(preds, bound.bound.groups), objective, call)


def training_gradients(
    state: InTraining, scores: FloatArray, objective: object, call: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return gradient and floored Hessian as float32; raise NumericError if not finite.

    The number of rows that the floor raised is logged by ``gbmrank`` at level DEBUG.
    """
    bound, out = state.bound, state.at_zero if call == 1 else None
    state.at_zero = None  # handed over to one call, as a booster may write into the arrays
    if out is None or np.any(scores):
        out = GradHess(np.empty(len(scores), np.float32), np.empty(len(scores), np.float32))
        if len(scores):
            bound.fill(scores, out, single=True)
    grad, hess = out
    offsets, floors = bound.groups.offsets, (FLOOR_RELATIVE, FLOOR_ABSOLUTE)
    query, raised = _kernels().finish(grad, hess, offsets, state.tied_curvature, floors)
    if query >= 0:
        begin, end = offsets[query : query + 2].tolist()
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


@functools.cache
def _advise_on_waiting() -> None:
    """Log once that waiting threads of a booster need not keep processors busy."""
    if "OMP_WAIT_POLICY" not in os.environ and threads.get_num_threads() > 1:
        _log.info(
            "the threads of a booster keep processors busy while they wait; set "
            "OMP_WAIT_POLICY=PASSIVE before Python starts to leave the processors to the objective"
        )


def _first_not_finite(values: npt.NDArray[Any]) -> int:
    """Return the first index whose value is NaN or infinite (``_INFINITE`` or more), or -1."""
    bad = np.flatnonzero(~(np.abs(values.astype(np.float64)) < _INFINITE))
    return int(bad[0]) if len(bad) else -1
