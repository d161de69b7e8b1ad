"""LightGBM as an implementation of the ``Booster`` protocol."""

from collections.abc import Mapping
from typing import Any, Final, final

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
from gbmrank.boosters.settings import Setting, robust_settings
from gbmrank.data.queries import RankingData
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
    scores: FloatArray = booster.predict(rows.features, raw_score=True)
    return scores


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


@final
class _LightGBM:
    name = "lightgbm"
    title = "LightGBM"
    data_set = "Dataset"
    reads = READS
    parameters = PARAMETERS
    tuning = _TUNING
    student = Student(
        {"feature_fraction": 0.8, "min_data_in_leaf": 10},
        frozenset(
            (
                *("num_leaves", "max_depth", "max_bin", "categorical_feature"),
                *("monotone_constraints", "interaction_constraints"),
            )
        ),
    )
    native: tuple[str, ...] = ("lambdarank", "rank_xendcg")
    debiased: tuple[str, ...] = ("lambdarank",)
    importance_types: tuple[str, ...] = ("gain", "split")
    squared_error = "regression"
    suffixes: tuple[str, ...] = (".txt",)
    first_bytes = b"tree"  # of a model file, whatever its suffix
    groups_hint = "group= of the Dataset"
    memory_factor = 2.5  # a worker joins its partitions into one table before it bins them
    weights_on_cluster = True  # together with queries, for its own objectives

    columns = staticmethod(read_columns)
    group_sizes = staticmethod(group_sizes)
    train = staticmethod(train)
    network = staticmethod(network)
    bins = staticmethod(bins)
    load = staticmethod(load_model)
    wrap = staticmethod(wrap)
    merge = staticmethod(merge)
    training = staticmethod(current_training)
    check_training = staticmethod(check_bagging)
    start_training = staticmethod(start_training)
    ignored_objective = staticmethod(ignored_objective)

    def metric_name(self, text: str, higher_is_better: bool) -> str:
        """Return a name that no built-in metric has, or their histories would be mixed."""
        return f"gbmrank_{plain_name(text)}"

    def report(self, text: str, value: float, higher_is_better: bool) -> tuple[Any, ...]:
        """Return name, value and direction."""
        return self.metric_name(text, higher_is_better), value, higher_is_better

    def settings(self, shift_invariant: bool) -> tuple[Setting, ...]:
        """Return the parameters that a custom objective needs."""
        return needed_settings()

    def robust(self, curvature: float | None) -> tuple[Setting, ...]:
        """Return tree parameters that rarely overfit, for a mean Hessian per row."""
        return robust_settings(_ROBUST, curvature)

    def check_weights(self, data: RankingData, params: Mapping[str, Any]) -> None:
        """Accept all weights: LightGBM has one weight per row."""

    def unseen_message(self, column: Any, what: str, category: str) -> str | None:
        """Return None: LightGBM treats such a category as missing."""
        return None


LIGHTGBM: Final[Booster] = _LightGBM()
