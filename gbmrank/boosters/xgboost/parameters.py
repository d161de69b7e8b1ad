"""The parameters of XGBoost.

XGBoost does not list them. A model reports parameters that it does not use in a warning that is
easily missed; here it is an error.
"""

import json
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from gbmrank.boosters.settings import BAGGING, METRIC_HINT, Parameters, Setting, number_of
from gbmrank.boosters.xgboost.dataset import import_xgboost
from gbmrank.errors import ConfigError, DataError, MissingBackendError

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "num_boost_round": ("n_estimators", "num_round", "num_iterations", "num_trees"),
    "early_stopping_rounds": (),
    "seed": ("random_state",),
    "nthread": ("n_jobs",),
    "learning_rate": ("eta",),
    "gamma": ("min_split_loss",),
    "lambda": ("reg_lambda",),
    "alpha": ("reg_alpha",),
}
_TWINS: Mapping[str, str] = {  # of LightGBM's parameters and their usual aliases
    "num_leaves": "max_leaves",
    "bagging_fraction": "subsample",
    "feature_fraction": "colsample_bytree",
    "feature_fraction_bynode": "colsample_bynode",
    "lambda_l1": "alpha",
    "lambda_l2": "lambda",
    "min_gain_to_split": "gamma",
    "min_split_gain": "gamma",
    "min_sum_hessian_in_leaf": "min_child_weight",
    "min_sum_hessian": "min_child_weight",
    "boosting": "booster",
    "boosting_type": "booster",
    "num_threads": "nthread",
    "verbose": "verbosity",
    "categorical_feature": "feature_types",
}
_NOT_USED = re.compile(r"Parameters: \{ (.*?) \} are not used", re.DOTALL)
OF_DATA_SET = ("feature_types", "feature_weights")
_PASSED = frozenset(  # always used, or given in another form
    {
        *OF_DATA_SET,
        "eval_metric",
        "interaction_constraints",
        "monotone_constraints",
        "nthread",
        "validate_parameters",
        "verbosity",
    }
)


def needed_settings(shift_invariant: bool) -> tuple[Setting, ...]:
    """Return the parameters a custom objective needs."""
    start = (
        "XGBoost starts custom objectives at 0.5; this one does not change when all scores "
        "shift, so it only makes raw scores easier to read"
        if shift_invariant
        else "XGBoost starts custom objectives at 0.5, a wrong start for this one"
    )
    return (
        Setting("base_score", 0.0, start),
        Setting(
            "disable_default_eval_metric",
            1,
            "XGBoost would report rmse, and early stopping might follow it; with query weights, "
            "rmse aborts the process",
        ),
        Setting(
            "min_child_weight",
            1e-3,
            "the Hessian has the scale of the utilities, often far below XGBoost's 1, so that no "
            "tree would split",
        ),
    )


def _unknown(params: Mapping[str, Any]) -> tuple[str | None, set[str]]:
    """Return the first parameter that a model does not use, and the parameters it uses."""
    drawn = BAGGING if BAGGING[0] in params else ()
    asked = {key: value for key, value in params.items() if key not in _PASSED and key not in drawn}
    try:
        xgb = import_xgboost()
    except MissingBackendError:
        return None, set()  # raised where it is needed
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            row = xgb.DMatrix(np.zeros((1, 1)), label=np.ones(1), nthread=1)
            checked = {"nthread": 1, "verbosity": 1, "validate_parameters": True}
            config = xgb.Booster({**asked, **checked}, [row]).save_config()
        except (xgb.core.XGBoostError, TypeError, ValueError):
            return None, set()  # raised by the training, with its reason
    found = _NOT_USED.search(" ".join(str(one.message) for one in said))
    unused = set() if found is None else set(re.findall(r'"(.*?)"', found.group(1)))
    known = _names(json.loads(config)) | _PASSED
    return next((name for name in asked if name in unused), None), known


def _names(config: Any) -> set[str]:
    found: set[str] = set()
    for name, value in config.items():
        if name.endswith("_param"):
            found.update(value)
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                found |= _names(part)
    return found


def _check_more(params: Mapping[str, Any], objective: str, custom: bool) -> None:  # noqa: ARG001
    strategy = params.get("multi_strategy", "one_output_per_tree")
    if strategy != "one_output_per_tree":
        raise ConfigError(
            f"multi_strategy={strategy!r}: a ranker has one score per row; leave it out"
        )
    if not math.isfinite(number_of(params, "base_score", 0.0)):
        raise DataError(f"base_score must be a finite number, got {params['base_score']!r}")
    if number_of(params, "disable_default_eval_metric", 1) == 0:
        raise ConfigError(
            f"disable_default_eval_metric={params['disable_default_eval_metric']!r}: with query "
            "weights XGBoost's default metric, rmse, aborts the process; leave it out, and pass "
            "metrics as metric="
        )


def _most_leaves(params: Mapping[str, Any]) -> float:
    if params.get("booster") == "gblinear":
        return 0.0
    depth, leaves = number_of(params, "max_depth", 6.0), number_of(params, "max_leaves", 0.0)
    return min(leaves if leaves > 0 else 2**30, 2.0 ** min(depth, 30) if depth > 0 else 2**30)


def _is_random(params: Mapping[str, Any], native: str | None) -> bool:  # noqa: ARG001
    """Whether a training depends on the seed."""
    shares = ("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode")
    drawn = BAGGING[0] in params and number_of(params, "bagging_fraction", 1.0) < 1.0
    return (
        drawn
        or any(number_of(params, name, 1.0) < 1.0 for name in shares)
        or params.get("booster") == "dart"
    )


PARAMETERS = Parameters(
    booster="xgboost",
    aliases=_ALIASES,
    rounds="num_boost_round",
    early_stopping="early_stopping_rounds",
    threads="nthread",
    elsewhere={
        "objective": "give objective=; one of XGBoost's own is native:rank:ndcg",
        "eval_metric": METRIC_HINT,
        "maximize": "every metric knows its direction",
        "missing": "missing values must be NaN",
        "enable_categorical": "categorical columns are always supported; leave it out",
    },
    implied={
        "missing": lambda value: isinstance(value, float) and math.isnan(value),
        "enable_categorical": lambda value: value is True,
    },
    of_data_set=OF_DATA_SET,
    native_only=(
        "lambdarank_pair_method",
        "lambdarank_num_pair_per_sample",
        "lambdarank_normalization",
        "lambdarank_score_normalization",
        "lambdarank_unbiased",
        "lambdarank_bias_norm",
        "ndcg_exp_gain",
        "scale_pos_weight",
    ),
    least_curvature=("min_child_weight", 1.0),
    least_gain="gamma",
    least_slope="alpha",
    unknown=_unknown,
    check_more=_check_more,
    most_leaves=_most_leaves,
    is_random=_is_random,
    sampled={"subsample": 0.7},
    interactions_as_text=True,
    twins=_TWINS,
)
