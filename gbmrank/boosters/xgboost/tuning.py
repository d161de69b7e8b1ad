"""XGBoost in comparisons and in the conformance kit."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gbmrank.boosters.base import import_booster
from gbmrank.boosters.tuning import Range, Rows, Tuning
from gbmrank.types import FloatArray

__all__ = ["TUNING"]

_SMALL = {"max_depth": 3, "eta": 0.2, "verbosity": 0, "nthread": 1, "seed": 0}


def _try_objective(
    objective: Any, params: Mapping[str, Any], rows: Rows, rounds: int
) -> FloatArray:
    xgb = import_booster("xgboost")
    data = _matrix(xgb, rows)
    booster = xgb.train({**_SMALL, **params}, data, rounds, obj=objective)
    return _scores(booster, data)


def _try_metric(metric: Any, rows: Rows) -> tuple[FloatArray, float]:
    xgb = import_booster("xgboost")
    data = _matrix(xgb, rows)
    shown: dict[str, Any] = {}
    booster = xgb.train(
        {"objective": "reg:squarederror", "disable_default_eval_metric": True, **_SMALL},
        data,
        3,
        evals=[(data, "here")],
        custom_metric=metric,
        evals_result=shown,
        verbose_eval=False,
    )
    return _scores(booster, data), shown["here"][metric.name_in("xgboost")][-1]


def _matrix(xgb: Any, rows: Rows) -> Any:
    data = xgb.DMatrix(rows.features, rows.labels)
    data.set_group(rows.sizes)
    return data


def _scores(booster: Any, data: Any) -> FloatArray:
    scores: FloatArray = booster.predict(data, output_margin=True).astype(np.float64)
    return scores


TUNING = Tuning(
    space={
        "learning_rate": Range(0.02, 0.3),
        "max_depth": Range(2, 10, whole=True),
        "min_child_weight": Range(1e-3, 10.0),
        "reg_lambda": Range(1e-2, 10.0),
    },
    aliases={"learning_rate": ("eta",), "reg_lambda": ("lambda",)},
    repeatable={},
    not_repeatable_with=frozenset(),
    demonstration={"max_depth": 3},
    baselines=("rank:ndcg", "rank:pairwise"),
    try_objective=_try_objective,
    try_metric=_try_metric,
)
