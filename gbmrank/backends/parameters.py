"""Parameters of the boosters: their spellings, and what cannot go with an objective.

LightGBM takes the main name when a parameter is given under two; what an objective asks for
would silently win over what a user wrote under another spelling.
"""

import difflib
import math
from collections.abc import Mapping
from typing import Any

from gbmrank.backends.lightgbm_names import check_files, mains_of_lightgbm
from gbmrank.backends.xgboost_names import TWINS, known_to_xgboost
from gbmrank.errors import ConfigError, DataError

__all__ = [
    "OTHER_NAMES",
    "THREADS",
    "check_known",
    "check_native_only",
    "check_once",
    "check_params",
    "is_on",
    "main_names",
    "what_forbids_cutting",
]

_LIGHTGBM: Mapping[str, tuple[str, ...]] = {
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
    "verbosity": ("verbose",),
}
_XGBOOST: Mapping[str, tuple[str, ...]] = {
    "num_boost_round": ("n_estimators", "num_round", "num_iterations", "num_trees"),
    "early_stopping_rounds": (),
    "seed": ("random_state",),
    "nthread": ("n_jobs",),
    "learning_rate": ("eta",),
    "gamma": ("min_split_loss",),
    "lambda": ("reg_lambda",),
    "alpha": ("reg_alpha",),
}
OTHER_NAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "lightgbm": _LIGHTGBM,
    "xgboost": _XGBOOST,
}

THREADS: Mapping[str, str] = {"lightgbm": "num_threads", "xgboost": "nthread"}

_ROUNDS = "the number of rounds is given as {rounds}"
_STOPPING = "give {early_stopping}"
_CALLED = {
    "rounds": "n_estimators= (rounds= of a Plan)",
    "early_stopping": "early_stopping_rounds= (early_stopping= of a Plan)",
}
_METRIC = "what is watched is given as metric=, with its cut-off: ndcg@10"
_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "lightgbm": {
        "objective": "give objective=; one of LightGBM's own is native:lambdarank",
        "metric": _METRIC,
        "eval_at": _METRIC,
        "num_iterations": _ROUNDS,
        "early_stopping_round": _STOPPING,
        "task": "gbmrank only trains; LightGBM cannot refit trees without its own objective",
    },
    "xgboost": {
        "objective": "give objective=; one of XGBoost's own is native:rank:ndcg",
        "eval_metric": _METRIC,
        "num_boost_round": _ROUNDS,
        "early_stopping_rounds": _STOPPING,
        "maximize": "every metric knows its direction",
        "missing": "missing values are NaN: give them so",
        "enable_categorical": "columns of categories are always read as such; leave it out",
    },
}
_NATIVE_ONLY: Mapping[str, tuple[str, ...]] = {
    "lightgbm": (
        "label_gain",
        "lambdarank_truncation_level",
        "lambdarank_norm",
        "lambdarank_position_bias_regularization",
        "objective_seed",
        "is_unbalance",
        "scale_pos_weight",
        "sigmoid",
        "reg_sqrt",
    ),
    "xgboost": (
        "lambdarank_pair_method",
        "lambdarank_num_pair_per_sample",
        "lambdarank_normalization",
        "lambdarank_score_normalization",
        "lambdarank_unbiased",
        "lambdarank_bias_norm",
        "ndcg_exp_gain",
        "scale_pos_weight",
    ),
}
_INSTEAD: Mapping[str, str] = {
    "label_gain": "the gain is part of the target, such as target=dcg(gain=linear)",
    "ndcg_exp_gain": "the gain is part of the target, such as target=dcg(gain=linear)",
    "sigmoid": "the slope is part of the loss: loss=logistic(sigma=2)",
    "scale_pos_weight": "give weights",
    "is_unbalance": "give weights",
}
_BAGGING = ("bagging_by_query", "bagging_fraction", "bagging_freq", "bagging_seed")
_TRUTH: Mapping[str, bool] = {
    **dict.fromkeys(("true", "+", "1"), True),
    **dict.fromkeys(("false", "-", "0", ""), False),
}


def main_names(backend: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Spell parameters by their main names, where gbmrank reads or sets them.

    Raises
    ------
    ConfigError
        When one parameter is given under two names, any of LightGBM's included.
    """
    known = {other: main for main, others in OTHER_NAMES[backend].items() for other in others}
    same = {**mains_of_lightgbm(), **known} if backend == "lightgbm" else known
    spelled: dict[str, str] = {}
    for name in params:
        main = same.get(name, name)
        if main in spelled:
            raise ConfigError(
                f"{spelled[main]} and {name} are two names of one {backend} parameter; give one"
            )
        spelled[main] = name
    return {known.get(name, name): params[name] for name in spelled.values()}


def check_once(
    backend: str, params: Mapping[str, Any], main: str, called: str, value: object
) -> None:
    """Raise when a setting that is given as ``called`` is among the parameters too.

    Parameters
    ----------
    backend : {"lightgbm", "xgboost"}
        The booster.
    params : mapping
        Of the booster, by any names.
    main : str
        The booster's main name of the setting.
    called : str
        What the caller calls it.
    value : object
        What the caller gave.

    Raises
    ------
    ConfigError
        With both names and values.
    """
    for name in (main, *OTHER_NAMES[backend][main]):
        if name in params:
            raise ConfigError(
                f"{called}={value!r} and {name}={params[name]!r} are one setting of {backend}, "
                f"given twice; leave out {name}"
            )


def is_on(params: Mapping[str, Any], name: str) -> bool:
    """Read a parameter that is on or off, in the ways LightGBM writes it; not given is off.

    Raises
    ------
    ConfigError
        For anything else than a truth value and its texts.

    Examples
    --------
    >>> is_on({"bagging_by_query": "false"}, "bagging_by_query")
    False
    """
    value = params.get(name)
    found = _TRUTH.get("" if value is None else str(value).strip().lower())
    if found is None:
        raise ConfigError(f"{name} must be True or False, or a text of these; got {value!r}")
    return found


def what_forbids_cutting(params: Mapping[str, Any]) -> str | None:
    """Return the setting by which later rounds change what earlier ones gave, or None.

    That is dart, by which trees are dropped and scaled, and linear models. Since version 3.4
    XGBoost drops trees by ``rate_drop`` or ``one_drop`` alone, without ``booster="dart"``.

    Examples
    --------
    >>> what_forbids_cutting({"booster": "dart"})
    "booster='dart'"
    >>> what_forbids_cutting({"rate_drop": 0.0})
    """
    for name, values in (("boosting", ("dart",)), ("booster", ("dart", "gblinear"))):
        if params.get(name) in values:
            return f"{name}={params[name]!r}"
    for name in ("rate_drop", "one_drop"):
        if str(params.get(name, 0)).strip().lower() not in ("0", "0.0", "false", "none"):
            return f"{name}={params[name]!r}"
    return None


def check_known(backend: str, params: Mapping[str, Any]) -> None:
    """Raise for a parameter that the booster does not know: it would do nothing.

    Raises
    ------
    ConfigError
        With the name that was meant, where there is one that is like it, or one of XGBoost for
        one of LightGBM.
    """
    known = _known_to_lightgbm() if backend == "lightgbm" else _known_to_xgboost(params)
    unknown = next((name for name in params if known and name not in known), None)
    if unknown is None:
        return
    likely = sorted(known.union(OTHER_NAMES[backend], *OTHER_NAMES[backend].values()))
    near = difflib.get_close_matches(unknown, likely, n=1, cutoff=0.75)
    meant = TWINS.get(mains_of_lightgbm().get(unknown, unknown)) if backend == "xgboost" else None
    meant = meant or next(iter(near), None)
    hint = f"did you mean {meant}?" if meant else "leave it out, or look it up in its manual"
    raise ConfigError(f"{backend} has no parameter {unknown!r}; {hint}")


def _known_to_xgboost(params: Mapping[str, Any]) -> frozenset[str]:
    """Return all names of XGBoost's parameters, and those by which gbmrank draws queries."""
    theirs = known_to_xgboost(params)
    return theirs | set(_BAGGING) if theirs and _BAGGING[0] in params else theirs


def _known_to_lightgbm() -> frozenset[str]:
    """Return all names of LightGBM's parameters; none where it does not tell."""
    theirs = mains_of_lightgbm()
    if not theirs:
        return frozenset()
    ours = {name for main, others in _LIGHTGBM.items() for name in (main, *others)}
    return frozenset({*theirs, *ours, *_NATIVE_ONLY["lightgbm"], "bagging_by_query"})


def check_params(
    backend: str,
    params: Mapping[str, Any],
    objective: str,
    custom: bool,
    names: Mapping[str, str] | None = None,
) -> None:
    """Refuse parameters that would do nothing, or something else than they say.

    Parameters
    ----------
    backend : {"lightgbm", "xgboost"}
        The booster.
    params : mapping
        By main names.
    objective : str
        For messages.
    custom : bool
        Whether the objective is gbmrank's and not the booster's own.
    names : mapping of str to str, optional
        What the caller calls ``rounds`` and ``early_stopping``.

    Raises
    ------
    ConfigError
        With the reason, and what to do.
    """
    called = {**_CALLED, **{name: f"{own}=" for name, own in (names or {}).items()}}
    for name, advice in _ELSEWHERE[backend].items():
        if name in params:
            raise ConfigError(
                f"{name}={params[name]!r} cannot be a parameter of the booster: "
                f"{advice.format(**called)}"
            )
    if custom:
        check_native_only(backend, params, objective)
    check_known(backend, params)
    _check_one_score(backend, params)
    if backend == "lightgbm":
        _check_lightgbm(params, objective, custom)
    else:
        _check_xgboost(params)


def check_native_only(backend: str, params: Mapping[str, Any], objective: str) -> None:
    """Refuse parameters of the booster's own ranking objectives, for any other one.

    Raises
    ------
    ConfigError
        With what to give instead.
    """
    for name in _NATIVE_ONLY[backend]:
        if name in params:
            raise ConfigError(
                f"{name}={params[name]!r} belongs to {backend}'s own objectives and does nothing "
                f"with {objective}; {_INSTEAD.get(name, 'leave it out')}"
            )


def _check_one_score(backend: str, params: Mapping[str, Any]) -> None:
    if _number(params, "num_class", 1) > 1:
        raise ConfigError(
            f"num_class={params['num_class']!r}: a ranker has one score per row; leave it out"
        )
    strategy = params.get("multi_strategy", "one_output_per_tree")
    if backend == "xgboost" and strategy != "one_output_per_tree":
        raise ConfigError(
            f"multi_strategy={strategy!r}: a ranker has one score per row; leave it out"
        )


def _check_lightgbm(params: Mapping[str, Any], objective: str, custom: bool) -> None:
    if custom and params.get("boosting") in ("rf", "random_forest"):
        raise ConfigError(
            f"boosting={params['boosting']!r} does not go with {objective}: LightGBM grows random "
            "forests for its own objectives alone; use boosting='gbdt', 'dart' or goss"
        )
    check_files(params)
    goss = params.get("data_sample_strategy") == "goss"
    if custom and is_on(params, "bagging_by_query") and goss:
        raise ConfigError("bagging_by_query and data_sample_strategy='goss' exclude each other")


def _check_xgboost(params: Mapping[str, Any]) -> None:
    if not math.isfinite(_number(params, "base_score", 0.0)):
        raise DataError(f"base_score must be a finite number, got {params['base_score']!r}")
    if _number(params, "disable_default_eval_metric", 1) == 0:
        raise ConfigError(
            f"disable_default_eval_metric={params['disable_default_eval_metric']!r}: what is "
            "watched is given as metric=; with weights of queries XGBoost's own default, rmse, "
            "ends the whole process; leave it out"
        )


def _number(params: Mapping[str, Any], name: str, default: float) -> float:
    try:
        return float(params.get(name, default))
    except (TypeError, ValueError):
        return default  # the booster says what it thinks of it
