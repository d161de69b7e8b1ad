"""LightGBM in comparisons and in the conformance kit."""

from collections.abc import Mapping
from typing import Any

from gbmrank.boosters.base import import_booster
from gbmrank.boosters.tuning import Range, Rows, Tuning
from gbmrank.types import FloatArray

__all__ = ["TUNING"]

_SMALL = {
    "num_leaves": 7,
    "min_data_in_leaf": 5,
    "learning_rate": 0.2,
    "verbose": -1,
    "num_threads": 1,
    "deterministic": True,
    "seed": 0,
}


def _try_objective(
    objective: Any, params: Mapping[str, Any], rows: Rows, rounds: int
) -> FloatArray:
    lgb = import_booster("lightgbm")
    data = lgb.Dataset(rows.features, rows.labels, group=rows.sizes, free_raw_data=False)
    booster = lgb.train({"objective": objective, **_SMALL, **params}, data, rounds)
    scores: FloatArray = booster.predict(rows.features, raw_score=True)
    return scores


def _try_metric(metric: Any, rows: Rows) -> tuple[FloatArray, float]:
    lgb = import_booster("lightgbm")
    data = lgb.Dataset(rows.features, rows.labels, group=rows.sizes, free_raw_data=False)
    shown: dict[str, Any] = {}
    booster = lgb.train(
        {"objective": "regression", "metric": "None", **_SMALL},
        data,
        3,
        valid_sets=[data],
        valid_names=["here"],
        feval=metric,
        callbacks=[lgb.record_evaluation(shown)],
    )
    reported = shown["here"][metric.name_in("lightgbm")][-1]
    return booster.predict(rows.features, raw_score=True), reported


TUNING = Tuning(
    space={
        "learning_rate": Range(0.02, 0.3),
        "num_leaves": Range(4, 128, whole=True),
        "min_data_in_leaf": Range(5, 100, whole=True),
        "lambda_l2": Range(1e-3, 10.0),
    },
    aliases={
        "learning_rate": ("eta", "shrinkage_rate"),
        "num_leaves": ("num_leaf", "max_leaves", "max_leaf", "max_leaf_nodes"),
        "min_data_in_leaf": (
            *("min_child_samples", "min_data", "min_data_per_leaf", "min_samples_leaf"),
        ),
        "lambda_l2": ("reg_lambda", "lambda", "l2_regularization"),
    },
    repeatable={"deterministic": True, "force_row_wise": True},  # sums in a fixed order
    not_repeatable_with=frozenset(("force_col_wise", "device_type", "device")),
    demonstration={"num_leaves": 8, "min_data_in_leaf": 100},
    baselines=("lambdarank",),
    try_objective=_try_objective,
    try_metric=_try_metric,
)
