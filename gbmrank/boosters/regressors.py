"""Least squares on rows with either booster, for models that gbmrank builds on top."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, final

import numpy as np
import numpy.typing as npt

from gbmrank.boosters.base import import_booster
from gbmrank.boosters.settings import (
    THREADS,
    check_native_only,
    check_once,
    check_params,
    check_seed,
    main_names,
    whole_threads,
)
from gbmrank.boosters.xgboost.training import needs_all_values, without_stack
from gbmrank.errors import ConfigError
from gbmrank.types import FloatArray

__all__ = ["Regressor", "Rows", "regressor_params", "train_regressor"]

_NOT_WATCHED = "nothing is watched while values of pairs are learned; leave it out"
_ROUNDS = "the number of trees is given as n_estimators="
_ELSEWHERE: Mapping[str, str] = {
    "objective": "pair values are conditional means, which only squared error estimates",
    "num_iterations": _ROUNDS,
    "num_boost_round": _ROUNDS,
    **dict.fromkeys(
        (
            "metric",
            "eval_at",
            "eval_metric",
            "early_stopping_round",
            "early_stopping_rounds",
            "maximize",
        ),
        _NOT_WATCHED,
    ),
}


class Rows(NamedTuple):
    """Training rows: features, targets and one weight per row, or None."""

    features: npt.NDArray[np.float32]
    targets: FloatArray
    weight: FloatArray | None


class Regressor(Protocol):
    """A trained model."""

    def predict(self, features: npt.NDArray[np.float32]) -> FloatArray:
        """Return one value per row."""
        ...


def regressor_params(backend: str, params: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return parameters of the booster by their main names, with a seed.

    Parameters
    ----------
    backend : {"lightgbm", "xgboost"}
        The booster.
    params : mapping
        Of the booster, as they were given.
    seed : int
        Of the booster; 0, the default, gives way to one among the parameters.

    Raises
    ------
    ConfigError
        For an unknown booster, a parameter under two names, and parameters that would do nothing
        or change what is minimised.
    """
    if backend not in list(_TRAIN):
        raise ConfigError(f"backend must be one of {', '.join(_TRAIN)}; got {backend!r}")
    given = main_names(backend, params)
    for name, advice in _ELSEWHERE.items():
        if name in given:
            raise ConfigError(f"{name}={given[name]!r} cannot be set: {advice}")
    check_native_only(backend, given, "squared error")
    check_params(backend, given, "squared error", custom=False)
    check_seed(seed, least=0)  # pairs are drawn with it too
    check_seed(given.get("seed"))
    if seed != 0:
        check_once(backend, params, "seed", "seed", seed)
    name = THREADS[backend]
    threads = {name: whole_threads(name, given[name])} if name in given else {}
    return {"seed": seed, **given, **threads}


def train_regressor(backend: str, rows: Rows, rounds: int, params: Mapping[str, Any]) -> Regressor:
    """Minimise squared error.

    Parameters
    ----------
    backend : {"lightgbm", "xgboost"}
        The booster.
    rows : Rows
        What to fit.
    rounds : int
        Number of trees.
    params : mapping
        Of the booster, as :func:`regressor_params` returns them.

    Raises
    ------
    ConfigError
        When the booster refuses a parameter.
    MissingBackendError
        When the booster is not installed.
    """
    return _TRAIN[backend](rows, rounds, params)


@final
class _LightGBMRegressor:
    def __init__(self, rows: Rows, rounds: int, params: Mapping[str, object]) -> None:
        lgb = import_booster("lightgbm")
        settings = {"objective": "regression", "metric": "None", "verbosity": -1, **params}
        data = lgb.Dataset(rows.features, rows.targets, weight=rows.weight, params=settings)
        try:
            self.booster = lgb.train(settings, data, rounds)
        except lgb.basic.LightGBMError as error:
            raise ConfigError(f"LightGBM: {error}") from error

    def predict(self, features: npt.NDArray[np.float32]) -> FloatArray:
        """Return one value per row."""
        return np.asarray(self.booster.predict(features), np.float64)


@final
class _XGBoostRegressor:
    def __init__(self, rows: Rows, rounds: int, params: Mapping[str, object]) -> None:
        xgb = import_booster("xgboost")
        settings = {"objective": "reg:squarederror", "verbosity": 1, **params}
        columns = {"weight": rows.weight, "nthread": params.get("nthread")}
        try:
            if needs_all_values(params):
                data = xgb.DMatrix(rows.features, rows.targets, **columns)
            else:
                bins = params.get("max_bin")
                data = xgb.QuantileDMatrix(rows.features, rows.targets, max_bin=bins, **columns)
            self.booster = xgb.train(settings, data, rounds)
        except xgb.core.XGBoostError as error:
            raise ConfigError(f"XGBoost: {without_stack(error)}") from error
        self._linear = params.get("booster") == "gblinear"  # which predicts for a data set alone

    def predict(self, features: npt.NDArray[np.float32]) -> FloatArray:
        """Return one value per row."""
        if self._linear:
            made = import_booster("xgboost").DMatrix(features)
            return np.asarray(self.booster.predict(made), np.float64)
        return np.asarray(self.booster.inplace_predict(features), np.float64)


_TRAIN: Mapping[str, Any] = {"lightgbm": _LightGBMRegressor, "xgboost": _XGBoostRegressor}
