"""Least squares on rows with either booster, for models that gbmrank builds on top."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, final

import numpy as np
import numpy.typing as npt

from gbmrank.backends.parameters import check_known
from gbmrank.backends.trainer import import_booster
from gbmrank.errors import ConfigError
from gbmrank.types import FloatArray

__all__ = ["Regressor", "Rows", "train_regressor"]


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


def train_regressor(
    backend: str, rows: Rows, rounds: int, params: Mapping[str, object]
) -> Regressor:
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
        Parameters of the booster.

    Raises
    ------
    ConfigError
        For an unknown booster, or parameters that would do nothing or change what is minimised.
    MissingBackendError
        When the booster is not installed.
    """
    if backend not in _TRAIN:
        raise ConfigError(f"backend must be one of {', '.join(_TRAIN)}; got {backend!r}")
    if "objective" in params:
        raise ConfigError(
            f"objective={params['objective']!r} cannot be set: pair values are conditional means, "
            "which only squared error estimates"
        )
    check_known(backend, params)
    return _TRAIN[backend](rows, rounds, params)


@final
class _LightGBMRegressor:
    def __init__(self, rows: Rows, rounds: int, params: Mapping[str, object]) -> None:
        lgb = import_booster("lightgbm")
        settings = {"objective": "regression", "metric": "None", "verbosity": -1, **params}
        data = lgb.Dataset(rows.features, rows.targets, weight=rows.weight, params=settings)
        self.booster = lgb.train(settings, data, rounds)

    def predict(self, features: npt.NDArray[np.float32]) -> FloatArray:
        """Return one value per row."""
        return np.asarray(self.booster.predict(features), np.float64)


@final
class _XGBoostRegressor:
    def __init__(self, rows: Rows, rounds: int, params: Mapping[str, object]) -> None:
        xgb = import_booster("xgboost")
        settings = {"objective": "reg:squarederror", "verbosity": 1, **params}
        data = xgb.QuantileDMatrix(rows.features, rows.targets, weight=rows.weight)
        self.booster = xgb.train(settings, data, rounds)

    def predict(self, features: npt.NDArray[np.float32]) -> FloatArray:
        """Return one value per row."""
        return np.asarray(self.booster.inplace_predict(features), np.float64)


_TRAIN: Mapping[str, Any] = {"lightgbm": _LightGBMRegressor, "xgboost": _XGBoostRegressor}
