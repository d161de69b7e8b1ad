"""LightGBM: everything that gbmrank needs of it."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from gbmrank.boosters.base import Booster, Range, Rows, Student, Tuning, plain_name
from gbmrank.boosters.lightgbm.call_stack import current_training
from gbmrank.boosters.lightgbm.dataset import (
    READS,
    check_bagging,
    group_sizes,
    ignored_objective,
    import_lightgbm,
    read_columns,
    start_training,
)
from gbmrank.boosters.lightgbm.network import network
from gbmrank.boosters.lightgbm.parameters import PARAMETERS, needed_settings
from gbmrank.boosters.lightgbm.training import bins, load_model, merge, train, wrap
from gbmrank.boosters.settings import CONSTRAINTS, robust_settings
from gbmrank.types import FloatArray

_ROBUST: Mapping[str, Any] = {
    "sampled": {"bagging_fraction": 0.7, "bagging_freq": 1, "feature_fraction": 0.5},
    "small": {"num_leaves": 15, "min_data_in_leaf": 20},
    "l2": "lambda_l2",
}
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
    lgb = import_lightgbm()
    data = lgb.Dataset(rows.features, rows.labels, group=rows.sizes, free_raw_data=False)
    booster = lgb.train({"objective": objective, **_SMALL, **params}, data, rounds)
    return booster.predict(rows.features, raw_score=True)


def _try_metric(metric: Any, rows: Rows) -> tuple[FloatArray, float]:
    lgb = import_lightgbm()
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


_TUNING = Tuning(
    space={
        "learning_rate": Range(0.02, 0.3),
        "num_leaves": Range(4, 128, whole=True),
        "min_data_in_leaf": Range(5, 100, whole=True),
        "lambda_l2": Range(1e-3, 10.0),
    },
    repeatable={"deterministic": True, "force_row_wise": True},  # sums in a fixed order
    not_repeatable_with=frozenset(("force_col_wise", "device_type", "device")),
    demonstration={"num_leaves": 8, "min_data_in_leaf": 100},
    baselines=("lambdarank",),
    try_objective=_try_objective,
    try_metric=_try_metric,
)


def _metric_name(text: str, higher_is_better: bool) -> str:  # noqa: ARG001
    """Return a name that no built-in metric has, or their histories would be mixed."""
    return f"gbmrank_{plain_name(text)}"


def _report(text: str, value: float, higher_is_better: bool) -> tuple[Any, ...]:
    return _metric_name(text, higher_is_better), value, higher_is_better


LIGHTGBM: Final = Booster(
    name="lightgbm",
    title="LightGBM",
    data_set="Dataset",
    reads=READS,
    parameters=PARAMETERS,
    tuning=_TUNING,
    student=Student(
        {"feature_fraction": 0.8, "min_data_in_leaf": 10},
        frozenset(("num_leaves", "max_depth", "max_bin", "categorical_feature", *CONSTRAINTS)),
    ),
    native=("lambdarank", "rank_xendcg"),
    debiased=("lambdarank",),
    importance_types=("gain", "split"),
    squared_error="regression",
    suffixes=(".txt",),
    first_bytes=b"tree",
    groups_hint="group= of the Dataset",
    memory_factor=2.5,  # a worker joins its partitions into one table before it bins them
    weights_on_cluster=True,
    columns=read_columns,
    group_sizes=group_sizes,
    training=current_training,
    check_training=check_bagging,
    start_training=start_training,
    ignored_objective=ignored_objective,
    metric_name=_metric_name,
    report=_report,
    settings=needed_settings,
    robust=partial(robust_settings, _ROBUST),
    train=train,
    network=network,
    bins=bins,
    load=load_model,
    wrap=wrap,
    merge=merge,
)
