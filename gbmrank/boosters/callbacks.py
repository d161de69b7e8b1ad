"""The arguments with which boosters call objectives and metrics."""

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.boosters.base import Booster
from gbmrank.boosters.bindings import BoosterColumns
from gbmrank.boosters.lightgbm.booster import LIGHTGBM
from gbmrank.boosters.supported import booster_of
from gbmrank.boosters.xgboost.booster import XGBOOST
from gbmrank.boosters.xgboost.call_stack import averaged_sizes
from gbmrank.data.columns import as_floats
from gbmrank.errors import DataError, GbmrankWarning, warn


def callable_name(text: str, higher_is_better: bool) -> str:
    """Return ``__name__`` of a metric, which XGBRanker shows and infers the direction from."""
    return XGBOOST.metric_name(text, higher_is_better)


def read_call(
    a: Any, b: Any, weight: Any, group: Any, preferences: bool
) -> tuple[Booster, BoosterColumns, npt.NDArray[Any]]:
    """Parse the arguments of a callback: which booster calls, the data set, the scores.

    Either ``(scores, data set)`` or the arrays ``(labels, scores, weight, group)`` of LightGBM's
    scikit-learn interface, which keeps the array of labels alive. With ``preferences`` labels may
    be missing.
    """
    if (booster := booster_of(b)) is not None:
        columns, scores = booster.columns(b), a if type(a) is np.ndarray else _on_host(a)
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
    if preferences:
        columns = columns.with_placeholders(np.size(scores))
    elif not len(columns.labels) and np.size(scores):
        raise DataError(
            f"the data set has no labels, but there are {np.size(scores)} scores; "
            "pass the labels when you create the data set"
        )
    return booster or LIGHTGBM, columns, scores


_warned: "dict[int, weakref.ref[Any]]" = {}  # metrics by identity


def warn_if_weighted(metric: Any) -> None:
    """Warn once if XGBRanker averages the values of queries with their sizes as weights."""
    number = id(metric)
    known = _warned.get(number)
    if known is not None and known() is metric:
        return
    sizes = averaged_sizes()
    if sizes is None or np.all(sizes == sizes[0]):
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


def xgbranker_advice(metric: Any) -> str | None:
    """Return what to do about a query without a value if ``XGBRanker`` calls, else None."""
    if averaged_sizes() is None:
        return None
    return (
        f"{metric} is undefined for one of the queries, for example without a relevant row, and "
        "XGBRanker calls a metric query by query and averages all of them. Train with "
        "gbmrank.GBMRanker(backend='xgboost', metric=...) or xgboost.train(custom_metric=...), "
        "which leave out such queries, or choose empty='zero' or empty='one'"
    )


def _on_host(values: Any) -> Any:
    """Copy a GPU array, such as one of CuPy or Numba, to the host; return others unchanged."""
    if getattr(values, "__cuda_array_interface__", None) is None:
        return values
    for name in ("get", "copy_to_host"):
        if (copy := getattr(values, name, None)) is not None:
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
