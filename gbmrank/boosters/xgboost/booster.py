"""XGBoost: everything that gbmrank needs of it."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from gbmrank.boosters.base import Booster, Peers, Range, Rows, Student, Tuning, plain_name
from gbmrank.boosters.settings import CONSTRAINTS, robust_settings
from gbmrank.boosters.xgboost.call_stack import current_training
from gbmrank.boosters.xgboost.dataset import READS, group_sizes, import_xgboost, read_columns
from gbmrank.boosters.xgboost.parameters import PARAMETERS, needed_settings
from gbmrank.boosters.xgboost.training import bins, load_model, merge, train, unseen_message, wrap
from gbmrank.data.queries import RankingData
from gbmrank.errors import WeightError
from gbmrank.types import FloatArray

_ROBUST: Mapping[str, Any] = {
    "sampled": {"subsample": 0.7, "colsample_bytree": 0.5},
    "small": {"grow_policy": "lossguide", "max_leaves": 15, "max_depth": 0},
    "l2": "lambda",
    "leaf": ("min_child_weight", 20),
}
_SMALL = {"max_depth": 3, "eta": 0.2, "verbosity": 0, "nthread": 1, "seed": 0}


def _try_objective(
    objective: Any, params: Mapping[str, Any], rows: Rows, rounds: int
) -> FloatArray:
    xgb = import_xgboost()
    data = _matrix(xgb, rows)
    booster = xgb.train({**_SMALL, **params}, data, rounds, obj=objective)
    return _scores(booster, data)


def _try_metric(metric: Any, rows: Rows) -> tuple[FloatArray, float]:
    xgb = import_xgboost()
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
    return booster.predict(data, output_margin=True).astype(np.float64)


_TUNING = Tuning(
    space={
        "learning_rate": Range(0.02, 0.3),
        "max_depth": Range(2, 10, whole=True),
        "min_child_weight": Range(1e-3, 10.0),
        "lambda": Range(1e-2, 10.0),
    },
    repeatable={},
    not_repeatable_with=frozenset(),
    demonstration={"max_depth": 3},
    baselines=("rank:ndcg",),
    try_objective=_try_objective,
    try_metric=_try_metric,
)


def _metric_name(text: str, higher_is_better: bool) -> str:
    """Return a name from which XGBoost infers the right direction.

    Early stopping maximises only names that start with ``auc``, ``pre``, ``map`` or ``ndcg``.
    """
    plain = plain_name(text)
    return f"pre_gbmrank_{plain}" if higher_is_better else f"gbmrank_{plain}"


def _report(text: str, value: float, higher_is_better: bool) -> tuple[Any, ...]:
    return _metric_name(text, higher_is_better), value


def _check_weights(data: RankingData, params: Mapping[str, Any]) -> None:
    """Raise WeightError for weights of linear models: XGBoost would read out of bounds."""
    if params.get("booster") == "gblinear" and data.weight is not None:
        raise WeightError(
            "booster='gblinear' needs one weight per row, but with queries XGBoost stores one "
            "per query; leave out the weights, or use a tree booster"
        )


@contextlib.contextmanager
def _network(peers: Peers) -> Iterator[dict[str, Any]]:
    """Connect this task with the others, and yield parameters of the training: none."""
    if peers.size == 1:
        yield {}
        return
    xgb, args = import_xgboost(), None
    if peers.rank == 0:
        from xgboost.tracker import RabitTracker

        tracker = RabitTracker(n_workers=peers.size, host_ip=peers.host, sortby="task")
        tracker.start()
        threading.Thread(target=tracker.wait_for, daemon=True).start()
        args = tracker.worker_args()
    known = peers.gather(args)[0]
    # Ranks are sorted by this text.
    with xgb.collective.CommunicatorContext(**known, dmlc_task_id=f"{peers.rank:08d}"):
        yield {}


_RANKING = ("rank:ndcg", "rank:pairwise", "rank:map")
XGBOOST: Final = Booster(
    name="xgboost",
    title="XGBoost",
    data_set="DMatrix",
    reads=READS,
    parameters=PARAMETERS,
    tuning=_TUNING,
    student=Student(
        {"colsample_bytree": 0.8, "min_child_weight": 20.0},  # 10 rows: each has a Hessian of 2
        frozenset(
            ("max_depth", "max_leaves", "grow_policy", "max_bin", "feature_types", *CONSTRAINTS)
        ),
    ),
    native=_RANKING,
    debiased=_RANKING,
    importance_types=("gain", "weight", "cover", "total_gain", "total_cover"),
    squared_error="reg:squarederror",
    suffixes=(".ubj", ".json"),
    first_bytes=b"{",
    groups_hint="qid= or group= of the DMatrix",
    memory_factor=1.5,  # a worker bins one partition after the other
    weights_on_cluster=False,
    columns=read_columns,
    group_sizes=group_sizes,
    training=current_training,
    metric_name=_metric_name,
    report=_report,
    settings=needed_settings,
    robust=partial(robust_settings, _ROBUST),
    check_weights=_check_weights,
    unseen_message=unseen_message,
    train=train,
    network=_network,
    bins=bins,
    load=load_model,
    wrap=wrap,
    merge=merge,
)
