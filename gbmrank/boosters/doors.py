"""The supported boosters, and the arguments of their callbacks."""

import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.boosters.base import Booster
from gbmrank.boosters.lightgbm.booster import LIGHTGBM
from gbmrank.boosters.state import BoosterColumns
from gbmrank.boosters.xgboost.booster import XGBOOST
from gbmrank.boosters.xgboost.dataset import weighs_by_size
from gbmrank.data.columns import as_floats
from gbmrank.errors import ConfigError, DataError, GbmrankWarning, warn

BOOSTERS: tuple[Booster, ...] = (LIGHTGBM, XGBOOST)
BACKENDS = tuple(booster.name for booster in BOOSTERS)


def booster_of(data: object) -> Booster | None:
    """Return the booster whose data set this is, or None."""
    for booster in BOOSTERS:
        if booster.accepts(data):
            return booster
    return None


def booster_named(name: str) -> Booster:
    """Return the booster of this name."""
    for booster in BOOSTERS:
        if booster.name == name:
            return booster
    raise ConfigError(f"backend must be one of {', '.join(BACKENDS)}; got {name!r}")


def callable_name(text: str, higher_is_better: bool) -> str:
    """Return ``__name__`` of a metric, which XGBRanker shows and infers the direction from."""
    return XGBOOST.metric_name(text, higher_is_better)


def read_call(
    a: Any, b: Any, weight: Any, group: Any
) -> tuple[Booster, BoosterColumns, npt.NDArray[Any]]:
    """Parse the arguments of a callback: which booster calls, the data set, the scores.

    Either ``(scores, data set)`` or the arrays ``(labels, scores, weight, group)`` of LightGBM's
    scikit-learn interface, which keeps the array of labels alive.
    """
    booster = booster_of(b)
    if booster is not None:
        columns, scores = booster.columns(b), _on_host(a)
    else:
        labels, scores = _on_host(a), _on_host(b)
        if not isinstance(labels, np.ndarray):
            raise DataError(
                "expected (scores, lightgbm.Dataset), (scores, xgboost.DMatrix) or numpy arrays "
                f"(labels, scores, weight, group), got {type(labels).__name__}; for other columns "
                "use gradients(), loss() or score()"
            )
        columns = BoosterColumns(
            _numbers(labels, "labels"), _array(group, "group"), _array(weight, "weight"), labels
        )
    if columns.labels.ndim != 1:
        raise DataError(
            "a ranker needs one label per row, but the data set has labels of shape "
            f"{columns.labels.shape}; pass one column"
        )
    return booster or LIGHTGBM, columns, scores


_warned: "dict[int, weakref.ref[Any]]" = {}  # metrics by identity


def warn_if_weighted(metric: Any) -> None:
    """Warn once if XGBRanker averages the values of queries with their sizes as weights."""
    number = id(metric)
    known = _warned.get(number)
    if (known is not None and known() is metric) or not weighs_by_size():
        return
    mine = weakref.ref(metric, lambda _: _warned.pop(number, None))
    if _warned.setdefault(number, mine) is not mine:  # another thread was first
        return
    warn(
        f"XGBRanker averages {metric} over queries with their sizes as weights, so the value it "
        "reports is not the mean over queries; use gbmrank.GBMRanker(backend='xgboost'), or "
        "xgboost.train with custom_metric=",
        GbmrankWarning,
    )


def unlabelled(
    columns: BoosterColumns, preds: npt.NDArray[Any], preferences: bool
) -> BoosterColumns:
    """Return a data set with placeholder labels if preferences replace them.

    Raises DataError if there are neither labels nor preferences.
    """
    if not preferences:
        if not len(columns.labels) and np.size(preds):
            raise DataError(
                f"the data set has no labels, but there are {np.size(preds)} scores; "
                "pass the labels when you create the data set"
            )
        return columns
    labels = columns.labels if len(columns.labels) else np.zeros(np.size(preds))
    unsure = tuple(name for name in columns.zeros_if_missing if name != "labels")
    return replace(columns, labels=labels, zeros_if_missing=unsure)


def _on_host(values: Any) -> Any:
    """Copy a GPU array, such as one of CuPy or Numba, to the host; return others unchanged."""
    if getattr(values, "__cuda_array_interface__", None) is None:
        return values
    for name in ("get", "copy_to_host"):
        copy = getattr(values, name, None)
        if copy is not None:
            return np.asarray(copy())
    raise DataError(
        f"the booster passes a {type(values).__name__} on a GPU, but gbmrank computes on the CPU "
        "and can only copy CuPy arrays; use device='cpu'"
    )


def _array(column: Any, what: str) -> npt.NDArray[Any] | None:
    return None if column is None else _numbers(np.asanyarray(column), what)


def _numbers(column: npt.NDArray[Any], what: str) -> npt.NDArray[Any]:
    """Return a numeric column unchanged; convert objects and masks as for array calls."""
    ready = column.dtype.kind in "biuf" and not isinstance(column, np.ma.MaskedArray)
    return column if ready else as_floats(column, what, exact=what == "labels")
