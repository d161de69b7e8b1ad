"""A pytest plugin: trainings of the upstream tests minimise objectives of gbmrank.

Native ranking objectives become ``pairwise(target=ndcg@10)``, squared error and the tests' own
custom objectives their counterparts of gbmrank. How often that happened is written to the file
that ``GBMRANK_PEERS_COUNT`` names, so that a run in which nothing was replaced cannot pass.
"""

import functools
import os
from pathlib import Path
from typing import Any

import lightgbm as lgb
import xgboost as xgb

import gbmrank

RANKING = gbmrank.mix("pairwise(target=ndcg@10)", weights=[3])
SQUARED = gbmrank.mix("pointwise(loss=squared, target=identity)", weights=[0.5])
LOGISTIC = gbmrank.objective("pointwise(loss=logistic, target=identity, eta=1)")
_OWN = {
    "mse_obj": SQUARED,
    "objective_ls": SQUARED,
    "_objective_least_squares": SQUARED,
    "_objective_logistic_regression": LOGISTIC,
    "logregobj": LOGISTIC,
    "logloss_obj": LOGISTIC,
}  # custom objectives of the tests, by name
_NATIVE = {"lambdarank": RANKING, "rank_xendcg": RANKING, "xendcg": RANKING}
_SQUARES = (None, "reg:squarederror", "regression", "l2", "mse")
_ALIASES = ("objective", "objective_type", "app", "application", "loss")
_replaced = 0


def _count(objective: Any) -> Any:
    global _replaced  # noqa: PLW0603
    _replaced += 1
    return objective


def _ours(given: Any) -> Any:
    """Return what stands for an objective of LightGBM; itself where nothing does."""
    name = getattr(given, "__name__", given)
    found = {**_NATIVE, **_OWN}.get(name) if isinstance(name, str) else None
    return given if found is None else _count(found)


def _lightgbm(function: Any) -> Any:
    @functools.wraps(function)
    def call(params: Any, *args: Any, **options: Any) -> Any:
        made = dict(params)
        for name in _ALIASES:
            if name in made:
                made[name] = _ours(made[name])
        return function(made, *args, **options)

    return call


def _fit(method: Any) -> Any:
    @functools.wraps(method)
    def fit(self: Any, *args: Any, **options: Any) -> Any:
        before = self.objective
        self.objective = _ours("lambdarank" if before is None else before)
        try:
            return method(self, *args, **options)
        finally:
            self.objective = before

    return fit


def _xgboost(function: Any) -> Any:
    @functools.wraps(function)
    def call(params: Any, *args: Any, **options: Any) -> Any:
        given = dict(params)
        name, own = given.get("objective"), options.get("obj")
        found = _OWN.get(getattr(own, "__name__", "")) if own is not None else None
        if own is None and str(name).startswith("rank:"):
            found = RANKING
        elif own is None and name in _SQUARES and given.get("booster") != "gblinear":
            found = SQUARED
        if found is not None:
            if found is not RANKING:  # its name gives the metric by default, and not rmse
                given.pop("objective", None)
            options["obj"] = _count(found)
        return function(given, *args, **options)

    return call


def pytest_configure(config: Any) -> None:
    """Replace the functions that train."""
    for module in (lgb, lgb.engine, lgb.sklearn):
        for name in ("train", "cv"):
            if hasattr(module, name):
                setattr(module, name, _lightgbm(getattr(module, name)))
    lgb.LGBMRanker.fit = _fit(lgb.LGBMRanker.fit)
    if hasattr(lgb, "DaskLGBMRanker"):
        lgb.DaskLGBMRanker.fit = _fit(lgb.DaskLGBMRanker.fit)
    for module in (xgb, xgb.training, xgb.sklearn):
        for name in ("train", "cv"):
            if hasattr(module, name):
                setattr(module, name, _xgboost(getattr(module, name)))


def pytest_collection_modifyitems(items: Any) -> None:
    """Put gbmrank's objectives in the place of the tests' own."""
    for module in {item.module for item in items}:
        for name, made in _OWN.items():
            if callable(getattr(module, name, None)):
                setattr(module, name, _count(made))


def pytest_sessionfinish(session: Any) -> None:
    """Say how often something was replaced."""
    path = os.environ.get("GBMRANK_PEERS_COUNT")
    if path:
        Path(path).write_text(str(_replaced))
