"""Which booster is calling, and with what."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.boosters.base import Backend, Columns
from gbmrank.boosters.lightgbm.dataset import LIGHTGBM
from gbmrank.boosters.xgboost.dataset import XGBOOST
from gbmrank.data.queries import as_floats
from gbmrank.errors import ConfigError, DataError

__all__ = ["array_columns", "backend_named", "backend_of", "check_no_scores", "labelled"]

_BACKENDS: tuple[Backend, ...] = (LIGHTGBM, XGBOOST)


def backend_of(data: object) -> Backend | None:
    """Return the booster whose data set this is, or None."""
    return next((backend for backend in _BACKENDS if backend.accepts(data)), None)


def backend_named(name: str) -> Backend:
    """Return the booster of this name."""
    for backend in _BACKENDS:
        if backend.name == name:
            return backend
    known = ", ".join(backend.name for backend in _BACKENDS)
    raise ConfigError(f"backend must be one of {known}; got {name!r}")


def array_columns(labels: Any, weight: Any, group: Any) -> Columns:
    """Wrap the arrays LightGBM's scikit-learn interface passes; labels are kept by LightGBM."""
    if not isinstance(labels, np.ndarray):
        raise DataError(
            "expected (scores, lightgbm.Dataset), (scores, xgboost.DMatrix) or numpy arrays "
            f"(labels, scores, weight, group), got {type(labels).__name__}; for other columns use "
            "gradients(), loss() or score()"
        )
    return Columns(
        _numbers(labels, "labels"), _array(group, "group"), _array(weight, "weight"), labels
    )


def check_no_scores(preds: npt.NDArray[Any]) -> None:
    """Raise unless a data set without rows comes without scores."""
    if np.size(preds):
        raise DataError(
            f"the data set has no labels, but there are {np.size(preds)} scores; "
            "give the labels when the data set is made"
        )


def labelled(columns: Columns, preds: npt.NDArray[Any]) -> Columns:
    """Give a data set that has preferences and no labels labels that say nothing."""
    labels = columns.labels if len(columns.labels) else np.zeros(np.size(preds))
    unsure = tuple(name for name in columns.zeros_if_missing if name != "labels")
    return replace(columns, labels=labels, zeros_if_missing=unsure)


def _array(column: Any, what: str) -> npt.NDArray[Any] | None:
    return None if column is None else _numbers(np.asanyarray(column), what)


def _numbers(column: npt.NDArray[Any], what: str) -> npt.NDArray[Any]:
    """Return a column of numbers as it is; read objects and masks as array calls do."""
    ready = column.dtype.kind in "biuf" and not isinstance(column, np.ma.MaskedArray)
    return column if ready else as_floats(column, what, exact=what == "labels")
