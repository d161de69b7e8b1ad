"""Parameters of the boosters: their spellings, and what cannot go with an objective.

LightGBM takes the main name when a parameter is given under two; what an objective asks for
would silently win over what a user wrote under another spelling.

Growing each tree on some of the queries.

Seeds and numbers of threads that boosters would change without a word, or not survive.

Constraints on features by the names of the user, in the form that both boosters read.
"""

import difflib
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from gbmrank.boosters.lightgbm.parameters import check_files, mains_of_lightgbm
from gbmrank.boosters.xgboost.parameters import TWINS, known_to_xgboost
from gbmrank.data.schema import Schema
from gbmrank.errors import ConfigError, DataError, ParameterError
from gbmrank.types import IntArray, is_whole

__all__ = [
    "OTHER_NAMES",
    "THREADS",
    "QueryBagging",
    "check_known",
    "check_native_only",
    "check_once",
    "check_params",
    "check_seed",
    "is_on",
    "main_names",
    "placed_constraints",
    "what_forbids_cutting",
    "whole_threads",
    "with_bagging",
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


@final
class QueryBagging:
    """An objective whose gradient is zero for queries left out of the round.

    LightGBM's own ``bagging_by_query`` trains a wrong model with custom objectives. Rows of a
    query that is left out still count for ``min_data_in_leaf``.

    Parameters
    ----------
    objective : callable
        ``(scores, data set) -> (grad, hess)``.
    sizes : array of shape (n_queries,)
        Rows per query.
    fraction : float
        Share of the queries of a round.
    every : int
        Draw queries anew after so many rounds.
    seed : int
        Of the draws.
    """

    def __init__(
        self,
        objective: Callable[[Any, Any], Any],
        sizes: IntArray,
        fraction: float,
        every: int,
        seed: int,
    ) -> None:
        self._objective, self._sizes = objective, sizes
        self._kept = max(1, round(fraction * len(sizes)))
        self._every, self._seed = every, seed
        self._calls = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> "QueryBagging":
        return self  # LightGBM copies its parameters

    def __call__(self, scores: Any, data: Any) -> Any:
        """Answer a booster."""
        grad, hess = self._objective(scores, data)
        rng = np.random.default_rng([self._seed, self._calls // self._every])
        self._calls += 1
        out = np.ones(len(self._sizes), np.bool_)
        out[rng.choice(len(out), self._kept, replace=False, shuffle=False)] = False
        rows = np.repeat(out, self._sizes)
        grad[rows] = hess[rows] = 0.0
        return grad, hess


def with_bagging(
    objective: Callable[[Any, Any], Any], params: Mapping[str, Any], sizes: IntArray, backend: str
) -> tuple[Callable[[Any, Any], Any], dict[str, Any]]:
    """Return an objective that draws queries where parameters ask for it, and the other ones.

    Parameters
    ----------
    objective : callable
        What the booster calls.
    params : mapping
        Of LightGBM, by main names; ``bagging_by_query``, ``bagging_fraction``, ``bagging_freq``
        and ``bagging_seed`` are read as LightGBM reads them.
    sizes : array of shape (n_queries,)
        Rows per query.
    backend : {"lightgbm", "xgboost"}
        The booster; XGBoost gets none of these parameters where queries are drawn.

    Raises
    ------
    ConfigError
        For a share, a number of rounds or a seed that is none.
    """
    used = dict(params)
    if "bagging_by_query" not in used:
        return objective, used
    asked = is_on(used, "bagging_by_query")
    if backend == "lightgbm":
        used["bagging_by_query"] = False
    else:
        del used["bagging_by_query"]
    if not asked:
        return objective, used
    fraction = _read(used, "bagging_fraction", 1.0, float)
    every = _read(used, "bagging_freq", 0, int)
    if every < 1 or fraction >= 1.0:
        return objective, used
    if not fraction > 0.0:
        raise ConfigError(f"bagging_fraction must be above 0, got {fraction}")
    called = "seed" if used.get("bagging_seed") is None else "bagging_seed"
    seed = _read({called: used.get(called)}, called, -1, int)
    used.pop("bagging_seed", None)
    if seed < 0:
        raise ConfigError(
            f"{called}={params.get(called)!r}: queries are drawn with a whole number of at least "
            "0; give bagging_seed="
        )
    return QueryBagging(objective, sizes, fraction, every, seed), used


def _read(params: dict[str, Any], name: str, default: Any, kind: type) -> Any:
    """Take a number out of parameters; LightGBM takes None for not given, and texts."""
    value = params.pop(name, None)
    try:
        made = default if value is None else kind(value)
        if made != (default if value is None else float(value)):
            raise ValueError(value)
    except (TypeError, ValueError):
        noun = "a whole number" if kind is int else "a number"
        raise ConfigError(f"{name} must be {noun}, got {value!r}") from None
    return made


_MOST_THREADS = 1024
_LARGEST_SEED = 2**31 - 1


def check_seed(seed: object, least: int = -_LARGEST_SEED) -> None:
    """Refuse what is no seed of a booster; None is left to it.

    Parameters
    ----------
    seed : object
        As it was given.
    least : int, default=-2147483647
        Smallest one.

    Raises
    ------
    ConfigError
        For a source of random numbers, since a model is to be made again from its parameters,
        and for numbers beyond 32 bits: boosters keep no more, so different seeds become one.
    """
    if seed is None:
        return
    if isinstance(seed, np.random.RandomState | np.random.Generator):
        raise ConfigError(
            f"seed must be a whole number, got a {type(seed).__name__}; draw one from it, such as "
            "int(np.random.RandomState(0).randint(2**31 - 1))"
        )
    if not is_whole(seed) or not least <= seed <= _LARGEST_SEED:  # type: ignore[operator]  # whole
        raise ConfigError(
            f"seed must be a whole number from {least} to {_LARGEST_SEED}, got {seed!r}"
        )


def whole_threads(name: str, threads: Any) -> Any:
    """Return a number of threads as Python has it; None is left to the booster.

    Raises
    ------
    ParameterError
        For what is no whole number, and for more threads than LightGBM survives.
    """
    if threads is None:
        return threads
    if not is_whole(threads):
        raise ParameterError(f"{name} must be a whole number or None, got {threads!r}")
    most = max(_MOST_THREADS, os.cpu_count() or 1)
    if threads > most:
        raise ParameterError(
            f"{name}={threads} is more than {most}, and too many threads end the process; give the "
            "number of processors, or None"
        )
    return int(threads)


_MONOTONE, _TOGETHER = "monotone_constraints", "interaction_constraints"


def placed_constraints(
    params: Mapping[str, Any], columns: Schema, backend: str, what: str = "X"
) -> dict[str, Any]:
    """Return parameters whose constraints go by the place of a column.

    Names of columns are not always those in the booster, and XGBoost reads no list.

    Parameters
    ----------
    params : mapping
        Of the booster; constraints that are texts are left as they are.
    columns : Schema
        Of the training.
    backend : {"lightgbm", "xgboost"}
        The booster.
    what : str, default="X"
        What has these columns, for messages.

    Raises
    ------
    ConfigError
        For a column that there is not, a number of constraints that is not that of columns, and
        for constraints that are none.

    Examples
    --------
    >>> columns = Schema(3, ["a", "b", "c d"])
    >>> placed_constraints({"monotone_constraints": {"c d": -1}}, columns, "xgboost")
    {'monotone_constraints': (0, 0, -1)}
    >>> placed_constraints({"interaction_constraints": [["a", "c d"], [1]]}, columns, "lightgbm")
    {'interaction_constraints': [[0, 2], [1]]}
    """
    made = dict(params)
    signs, sets = made.get(_MONOTONE), made.get(_TOGETHER)
    try:
        if signs is not None and not isinstance(signs, str):
            made[_MONOTONE] = _signs(signs, columns, what)
        if sets is not None and not isinstance(sets, str):
            placed = [[_place(one, columns, _TOGETHER, what) for one in each] for each in sets]
            made[_TOGETHER] = str(placed) if backend == "xgboost" else placed
    except TypeError as error:  # something that is no list
        raise ConfigError(
            f"{_MONOTONE} is one of -1, 0 and 1 per column, or a dict by name; {_TOGETHER} is a "
            f"list of lists of columns; got {signs!r} and {sets!r}"
        ) from error
    return made


def _signs(given: Any, columns: Schema, what: str) -> tuple[int, ...]:
    if isinstance(given, Mapping):
        signs = {_place(column, columns, _MONOTONE, what): sign for column, sign in given.items()}
        made = [signs.get(number, 0) for number in range(columns.count)]
    else:
        made = [*np.asarray(given).tolist()]  # XGBoost writes numbers of numpy as it cannot read
    if len(made) != columns.count:
        raise ConfigError(
            f"{_MONOTONE} has {len(made)} entries, but {what} has {columns.count} columns; give "
            "one entry per column, 0 for those that are free, or a dict by name"
        )
    wrong = next((sign for sign in made if sign not in (-1, 0, 1)), None)
    if wrong is not None:
        raise ConfigError(
            f"{_MONOTONE} holds {wrong!r}; an entry is 1 (more is better), -1 or 0 (free)"
        )
    return tuple(map(int, made))


def _place(column: Any, columns: Schema, constraint: str, what: str) -> int:
    names = columns.names or []
    if str(column) in names:
        return names.index(str(column))
    if constraint == _TOGETHER and is_whole(column) and 0 <= column < columns.count:
        return int(column)
    known = f"are {', '.join(names)}" if names else f"have no names, and there are {columns.count}"
    remedy = "one entry per column" if constraint == _MONOTONE else "numbers of columns, from 0"
    raise ConfigError(
        f"{constraint} names the column {column!r}, but the columns of {what} {known}; give "
        f"{'one of these, or ' if names else ''}{remedy}"
    )
