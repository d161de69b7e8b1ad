"""The parameters of LightGBM."""

import importlib
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from gbmrank.boosters.settings import METRIC_HINT, Parameters, Setting, is_on, number_of
from gbmrank.errors import ConfigError

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "objective": ("objective_type", "app", "application", "loss"),
    "metric": ("metrics", "metric_types"),
    "boosting": ("boosting_type", "boost"),
    "num_class": ("num_classes",),
    "num_iterations": (
        "num_iteration",
        "n_iter",
        "num_tree",
        "num_trees",
        "num_round",
        "num_rounds",
        "nrounds",
        "num_boost_round",
        "n_estimators",
        "max_iter",
    ),
    "early_stopping_round": ("early_stopping_rounds", "early_stopping", "n_iter_no_change"),
    "seed": ("random_seed", "random_state"),
    "num_threads": ("num_thread", "nthread", "nthreads", "n_jobs"),
    "bagging_fraction": ("sub_row", "subsample", "bagging"),
    "bagging_freq": ("subsample_freq",),
    "bagging_seed": ("bagging_fraction_seed",),
    "min_sum_hessian_in_leaf": (
        "min_sum_hessian_per_leaf",
        "min_sum_hessian",
        "min_hessian",
        "min_child_weight",
    ),
    "min_data_in_leaf": ("min_data_per_leaf", "min_data", "min_child_samples", "min_samples_leaf"),
    "learning_rate": ("shrinkage_rate", "eta"),
    "min_gain_to_split": ("min_split_gain",),
    "is_unbalance": ("unbalance", "unbalanced_sets"),
    "eval_at": ("ndcg_eval_at", "ndcg_at", "map_eval_at", "map_at"),
    "task": ("task_type",),
    "categorical_feature": (
        *("cat_feature", "categorical_column", "cat_column", "categorical_features"),
    ),
    "verbosity": ("verbose",),
}
_NATIVE_ONLY = (
    "label_gain",
    "lambdarank_truncation_level",
    "lambdarank_norm",
    "lambdarank_position_bias_regularization",
    "objective_seed",
    "is_unbalance",
    "scale_pos_weight",
    "sigmoid",
    "reg_sqrt",
)
_OF_FILES = frozenset(  # of LightGBM's command line, which reads files
    {
        "config",
        "data",
        "group_column",
        "header",
        "ignore_column",
        "input_model",
        "label_column",
        "num_iteration_predict",
        "pred_early_stop",
        "predict_contrib",
        "predict_leaf_index",
        "predict_raw_score",
        "start_iteration_predict",
        "valid",
        "weight_column",
    }
)
_USUAL_EVAL_AT = (1, 2, 3, 4, 5)  # the default of LGBMRanker
_FILES = ("forcedsplits_filename", "forcedbins_filename")


def needed_settings(shift_invariant: bool) -> tuple[Setting, ...]:  # noqa: ARG001
    """Return the parameters a custom objective needs."""
    return (
        Setting(
            "metric",
            "None",
            "LGBMRanker adds ndcg@1..5 and puts it first, so early stopping would follow it; "
            "it also rejects queries above 10,000 rows and labels that are not whole numbers",
        ),
        Setting(
            "min_sum_hessian_in_leaf",
            1e-6,
            "the Hessian has the scale of the utilities, which can be far below LightGBM's "
            "1e-3; min_data_in_leaf limits the leaves",
        ),
        Setting(
            "bagging_by_query",
            False,
            "with a custom objective LightGBM trains a wrong model when this is on",
        ),
    )


@cache
def _all_names() -> Mapping[str, str]:
    """Map every name of LightGBM's parameters to the main name; empty if unavailable."""
    try:
        basic = importlib.import_module("lightgbm.basic")
        table = basic._ConfigAliases._get_all_param_aliases()
        return {str(name): main for main, others in table.items() for name in (main, *others)}
    except (ImportError, AttributeError, TypeError):  # a private table may disappear
        return {}


def _unknown(params: Mapping[str, Any]) -> tuple[str | None, set[str]]:
    theirs = _all_names()
    if not theirs:
        return None, set()
    ours = {name for main, others in _ALIASES.items() for name in (main, *others)}
    known = {*theirs, *ours, *_NATIVE_ONLY, "bagging_by_query"}
    return next((name for name in params if name not in known), None), known


def _check_more(params: Mapping[str, Any], objective: str, custom: bool) -> None:
    if custom and params.get("boosting") in ("rf", "random_forest"):
        raise ConfigError(
            f"boosting={params['boosting']!r} does not work with {objective}: LightGBM grows "
            "random forests only for its own objectives; use boosting='gbdt', 'dart' or goss"
        )
    for name, value in params.items():
        main = _all_names().get(name, name)
        if main in _OF_FILES:
            raise ConfigError(
                f"{name}={value!r} is for files read by LightGBM's command line and has no effect "
                "here; leave it out"
            )
        if main in _FILES and value and not os.path.isfile(str(value)):
            raise ConfigError(f"{name}={value!r}: there is no such file")
    goss = params.get("data_sample_strategy") == "goss"
    if custom and is_on(params, "bagging_by_query") and goss:
        raise ConfigError("bagging_by_query and data_sample_strategy='goss' cannot be combined")


def _unread(params: Mapping[str, Any]) -> list[str]:
    """Return ``eval_at`` if LightGBM evaluates no built-in metric that uses it."""
    given = params.get("eval_at")
    if given is None or tuple(np.ravel(given)) == _USUAL_EVAL_AT:
        return []
    metric = params.get("metric")
    shown = [metric] if isinstance(metric, str) else metric or []
    reads = any(one in str(name).lower() for name in shown for one in ("ndcg", "map", "rank"))
    return [] if reads else ["eval_at"]


def _most_leaves(params: Mapping[str, Any]) -> float:
    depth = number_of(params, "max_depth", -1.0)
    return min(number_of(params, "num_leaves", 31.0), 2.0 ** min(depth, 30) if depth > 0 else 2**30)


def _is_random(params: Mapping[str, Any], native: str | None) -> bool:
    """Whether a training depends on the seed."""
    shares = ["feature_fraction", "feature_fraction_bynode"]
    if number_of(params, "bagging_freq", 0.0) > 0:
        shares += ["bagging_fraction", "pos_bagging_fraction", "neg_bagging_fraction"]
    return (
        any(number_of(params, name, 1.0) < 1.0 for name in shares)
        or params.get("boosting") in ("dart", "rf", "random_forest", "goss")
        or params.get("data_sample_strategy") == "goss"
        or is_on(params, "extra_trees")
        or native == "rank_xendcg"
    )


PARAMETERS = Parameters(
    booster="lightgbm",
    aliases=_ALIASES,
    rounds="num_iterations",
    early_stopping="early_stopping_round",
    threads="num_threads",
    elsewhere={
        "objective": "give objective=; one of LightGBM's own is native:lambdarank",
        "metric": METRIC_HINT,
        "eval_at": METRIC_HINT,
        "task": "gbmrank only trains; LightGBM cannot refit trees without its own objective",
    },
    native_only=_NATIVE_ONLY,
    least_curvature=("min_sum_hessian_in_leaf", 1e-3),
    least_gain="min_gain_to_split",
    least_slope="lambda_l1",
    least_rows=("min_data_in_leaf", 20),
    all_names=_all_names,
    unread=_unread,
    unknown=_unknown,
    check_more=_check_more,
    most_leaves=_most_leaves,
    is_random=_is_random,
    sampled={"bagging_by_query": True, "bagging_fraction": 0.7, "bagging_freq": 1},
)
