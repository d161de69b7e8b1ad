"""Parameters of a booster: their names, what an objective needs, and what cannot be combined.

LightGBM takes the main name when a parameter is given under two; what an objective needs would
silently win over what a user wrote under another spelling. So parameters are read by main names
first, and what would have no effect is rejected.
"""

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.data.schema import Schema
from gbmrank.errors import ConfigError, ParameterError
from gbmrank.types import IntArray, is_whole

__all__ = [
    "METRIC_HINT",
    "Parameters",
    "Purpose",
    "QueryBagging",
    "Setting",
    "check_count",
    "check_seed",
    "is_on",
    "number_of",
    "place_constraints",
    "robust_settings",
    "truncation_obstacle",
    "with_bagging",
]

METRIC_HINT = "metrics are given as metric=, with their cut-off: ndcg@10"
BAGGING = ("bagging_by_query", "bagging_fraction", "bagging_freq", "bagging_seed")
_ROUNDS_HINT = "the number of rounds is given as {rounds}"
_STOPPING_HINT = "give {early_stopping}"
_CALLED = {
    "rounds": "n_estimators= (rounds= of a Plan)",
    "early_stopping": "early_stopping_rounds= (early_stopping= of a Plan)",
}
_GAIN = "the gain is part of the target, such as target=dcg(gain=linear)"
_CUTOFF = "the cut-off is part of the target, such as target=ndcg@10, and all pairs count"
_SCALE = "the scale is normalize= of the objective"
_BIAS = (
    "positions go with GBMRanker.fit(position=, position_bias=), or with the objective: "
    "bind_rows(position=, position_bias=)"
)
_INSTEAD: Mapping[str, str] = {
    "label_gain": _GAIN,
    "ndcg_exp_gain": _GAIN,
    "sigmoid": "the slope is part of the loss: loss=logistic(sigma=2)",
    "scale_pos_weight": "give weights",
    "is_unbalance": "give weights",
    "lambdarank_truncation_level": _CUTOFF,
    "lambdarank_pair_method": _CUTOFF,
    "lambdarank_num_pair_per_sample": _CUTOFF,
    "lambdarank_norm": _SCALE,
    "lambdarank_normalization": _SCALE,
    "lambdarank_score_normalization": _SCALE,
    "lambdarank_position_bias_regularization": _BIAS,
    "lambdarank_unbiased": _BIAS,
    "lambdarank_bias_norm": _BIAS,
    "eval_at": "the cut-off is part of the metric: gbmrank.metric('ndcg@5,10')",
    "position": _BIAS,
}
_TRUTH: Mapping[str, bool] = {
    **dict.fromkeys(("true", "+", "1"), True),
    **dict.fromkeys(("false", "-", "0", ""), False),
}
_FEW_LEAVES = 4  # a tree that may have no more leaves than this is hardly grown
_MOST_THREADS = 1024
_LARGEST_SEED = 2**31 - 1
_MONOTONE, _TOGETHER = "monotone_constraints", "interaction_constraints"
_CATEGORICAL = "categorical_feature"


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """A booster parameter that an objective needs, and why."""

    name: str
    value: object
    reason: str


L2_ROWS = 5  # rows whose curvature the L2 term of robust settings weighs as much as
_SAMPLED = "trees of samples differ, and their sum is less sure of noise"
_SMALL = "small trees; more of them learn what is there to learn"


def robust_settings(names: Mapping[str, Any], curvature: float | None) -> tuple[Setting, ...]:
    """Return parameters of trees that seldom overfit, under the names of a booster.

    Parameters
    ----------
    names : mapping
        Values by name: those under ``"sampled"`` draw rows and columns, those under ``"small"``
        limit trees; ``"l2"`` names the L2 term, and ``"leaf"`` the least curvature of a leaf.
    curvature : float or None
        Mean Hessian of a row; None leaves out what is in its units.
    """
    made = [Setting(name, value, _SAMPLED) for name, value in names["sampled"].items()]
    made += [Setting(name, value, _SMALL) for name, value in names["small"].items()]
    if curvature is not None:
        unit = f"the curvature of {{}} rows of this objective, {curvature:.3g} each"
        made.append(Setting(names["l2"], L2_ROWS * curvature, unit.format(L2_ROWS)))
        if "leaf" in names:
            name, rows = names["leaf"]
            made.append(Setting(name, rows * curvature, unit.format(rows)))
    return tuple(made)


class Purpose(NamedTuple):
    """What the parameters of a booster are for."""

    objective: str  # for messages
    native: str | None = None  # name of the booster's own objective; None for one of gbmrank
    ranks: bool = True  # False for regression
    names: Mapping[str, str] = MappingProxyType({})  # the caller's, of rounds and early_stopping
    hints: Mapping[str, str] = MappingProxyType({})  # why a parameter is rejected


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Parameters:
    """What gbmrank knows about the parameters of one booster, by their main names.

    ``unknown`` gives the first parameter that has no effect, and names to suggest; ``check_more``
    raises for combinations of this booster.
    """

    booster: str
    aliases: Mapping[str, tuple[str, ...]]  # of what gbmrank reads or sets
    rounds: str
    early_stopping: str
    threads: str
    elsewhere: Mapping[str, str]  # arguments of gbmrank, with what to give
    native_only: tuple[str, ...]  # of the booster's own ranking objectives
    least_curvature: tuple[str, float]  # with its default; these can keep trees from splitting
    least_gain: str
    least_slope: str  # summed over a leaf
    unknown: Callable[[Mapping[str, Any]], tuple[str | None, set[str]]]
    check_more: Callable[[Mapping[str, Any], str, bool], None]  # (params, objective, custom)
    all_names: Callable[[], Mapping[str, str]] = dict  # to main names; may be empty
    unread: Callable[[Mapping[str, Any]], list[str]] = lambda params: []  # beside native_only
    least_rows: tuple[str, int] | None = None  # with its default
    interactions_as_text: bool = False  # interaction constraints, that is
    twins: Mapping[str, str] = field(default_factory=dict)
    implied: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict)  # what is so anyway
    of_data_set: tuple[str, ...] = ()  # given to the data set; on one machine alone

    def by_main_names(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Spell parameters by their main names; one that is given under two is a ConfigError."""
        known = {other: main for main, others in self.aliases.items() for other in others}
        same = {**self.all_names(), **known}
        spelled: dict[str, str] = {}
        for name in params:
            main = same.get(name, name)
            if main in spelled:
                raise ConfigError(
                    f"{spelled[main]} and {name} are two names of one {self.booster} parameter; "
                    "give one"
                )
            spelled[main] = name
        return {
            known.get(name, name): params[name]
            for name in spelled.values()
            if name not in self.implied or not self.implied[name](params[name])
        }

    def read(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Spell parameters by their main names as the booster does: the main name wins."""
        known = {other: main for main, others in self.aliases.items() for other in others}
        same = {**self.all_names(), **known}
        others = {same.get(name, name): value for name, value in params.items()}
        return {**others, **{name: params[name] for name in others if name in params}}

    def without_effect(self, params: Mapping[str, Any], positions: bool) -> dict[str, str]:
        """Return parameters that a custom objective does not read, with what to use instead."""
        names = [name for name in self.native_only if params.get(name) is not None]
        names += [*self.unread(params), *(["position"] if positions else [])]
        return {name: _INSTEAD.get(name, "leave it out") for name in names}

    def check_once(self, params: Mapping[str, Any], main: str, called: str, value: object) -> None:
        """Raise ConfigError when a setting that the caller gave as ``called`` is in ``params``."""
        for name in (main, *self.aliases[main]):
            if name in params:
                raise ConfigError(
                    f"{called}={value!r} and {name}={params[name]!r} are one setting of "
                    f"{self.booster}, given twice; leave out {name}"
                )

    def check(self, params: Mapping[str, Any], purpose: "Purpose") -> None:
        """Raise ConfigError for parameters that have no effect, or another than they say."""
        called = {**_CALLED, **{name: f"{own}=" for name, own in purpose.names.items()}}
        hints = {self.rounds: _ROUNDS_HINT, self.early_stopping: _STOPPING_HINT, **self.elsewhere}
        for name, hint in {**hints, **purpose.hints}.items():
            if name in params:
                raise ConfigError(
                    f"{name}={params[name]!r} cannot be a parameter of the booster: "
                    f"{hint.format(**called)}"
                )
        if purpose.native is None or not purpose.ranks:
            self._check_native_only(params, purpose.objective)
        if number_of(params, "num_class", 1) > 1:
            raise ConfigError(
                f"num_class={params['num_class']!r}: a ranker has one score per row; leave it out"
            )
        self.check_more(params, purpose.objective, purpose.native is None)
        asked = {} if purpose.native is None else {"objective": purpose.native}
        self.check_known({**params, **asked})

    def _check_native_only(self, params: Mapping[str, Any], objective: str) -> None:
        """Raise ConfigError for parameters of the booster's own ranking objectives."""
        for name in self.native_only:
            if name in params:
                raise ConfigError(
                    f"{name}={params[name]!r} belongs to {self.booster}'s own objectives and does "
                    f"nothing with {objective}; {_INSTEAD.get(name, 'leave it out')}"
                )

    def check_known(self, params: Mapping[str, Any]) -> None:
        """Raise ConfigError for a parameter without effect, with the name that was meant."""
        unknown, known = self.unknown(params)
        if unknown is None:
            return
        likely = sorted(known.union(self.aliases, *self.aliases.values()))
        near = difflib.get_close_matches(unknown, likely, n=1, cutoff=0.75)
        meant = self.twins.get(unknown) or next(iter(near), None)
        hint = f"did you mean {meant}?" if meant else "leave it out, or look it up in its manual"
        raise ConfigError(f"{self.booster} has no parameter {unknown!r}; {hint}")

    def whole_threads(self, called: str, threads: Any) -> Any:
        """Return a number of threads a process can start; None is left to the booster."""
        if threads is None:
            return threads
        if not is_whole(threads):
            raise ParameterError(f"{called} must be a whole number or None, got {threads!r}")
        most = max(_MOST_THREADS, os.cpu_count() or 1)
        if threads > most:
            raise ParameterError(
                f"{called}={threads} is more than {most}, and too many threads end the process; "
                "give the number of processors, or None"
            )
        return int(threads)

    def likely_cause(self, params: Mapping[str, Any], n_rows: int, curvature: float | None) -> str:
        """Return the likely reason why no tree splits a query.

        ``curvature`` is the summed Hessian of a round; None for native objectives.
        """
        if params.get("learning_rate") == 0:
            return "the learning rate is 0"
        name, rows = self.least_rows or ("min_data_in_leaf", 0)
        leaf = int(params.get(name, rows))
        if n_rows < 2 * leaf:
            return f"{n_rows} rows cannot be split into leaves of {name}={leaf}"
        name, default = self.least_curvature
        least = number_of(params, name, default)
        if curvature is not None and curvature < _FEW_LEAVES * least:
            return (
                f"{name}={least:g} is too large for the scale of this loss, whose Hessian is "
                f"{curvature / n_rows:.3g} per row and sums to {curvature:.3g}; lower it, or "
                "multiply the loss (docs/boosters.md has factors)"
            )
        for name in (self.least_gain, self.least_slope):
            value = number_of(params, name, 0.0)
            if value > 0:
                scale = (
                    "" if curvature is None else f" ({curvature / n_rows:.3g} of Hessian per row)"
                )
                return f"{name}={value:g} may be more than any split gains of this loss{scale}"
        return (
            "look for features that do not differ within a query, and at the size of leaves "
            f"(min_data_in_leaf, {self.least_curvature[0]}, max_depth)"
        )


def is_on(params: Mapping[str, Any], name: str) -> bool:
    """Read a parameter that is on or off, in the ways LightGBM writes it; not given is off.

    >>> is_on({"bagging_by_query": "false"}, "bagging_by_query")
    False
    """
    value = params.get(name)
    found = _TRUTH.get("" if value is None else str(value).strip().lower())
    if found is None:
        raise ConfigError(f"{name} must be True or False, or a text of these; got {value!r}")
    return found


def number_of(params: Mapping[str, Any], name: str, default: float) -> float:
    """Return a parameter as a number; the default where it is none, of which the booster tells."""
    try:
        return float(params.get(name, default))
    except (TypeError, ValueError):
        return default


def truncation_obstacle(params: Mapping[str, Any]) -> str | None:
    """Return the setting by which later rounds change what earlier ones gave, or None.

    Such models cannot be truncated after a round: dart drops and scales trees, linear models add
    up. Since version 3.4 XGBoost drops trees by ``rate_drop`` or ``one_drop`` alone.

    >>> truncation_obstacle({"booster": "dart"})
    "booster='dart'"
    >>> truncation_obstacle({"rate_drop": 0.0})
    """
    for name, values in (("boosting", ("dart",)), ("booster", ("dart", "gblinear"))):
        if params.get(name) in values:
            return f"{name}={params[name]!r}"
    for name in ("rate_drop", "one_drop"):
        if str(params.get(name, 0)).strip().lower() not in ("0", "0.0", "false", "none"):
            return f"{name}={params[name]!r}"
    return None


def check_count(name: str, value: object) -> None:
    """Raise ParameterError unless a value is a whole number of at least 1."""
    if not is_whole(value) or value < 1:  # type: ignore[operator]  # a number by now
        raise ParameterError(f"{name} must be a whole number of at least 1, got {value!r}")


def check_seed(seed: object, least: int = -_LARGEST_SEED) -> int | None:
    """Return a seed of 32 bits, also from text, or None; ConfigError for anything else.

    >>> check_seed("3"), check_seed(None)
    (3, None)
    """
    if seed is None:
        return None
    if isinstance(seed, str) and seed.strip().removeprefix("-").isdecimal():
        seed = int(seed)
    if isinstance(seed, np.random.RandomState | np.random.Generator):
        raise ConfigError(
            f"seed must be a whole number, got a {type(seed).__name__}; draw one from it, such as "
            "int(np.random.RandomState(0).randint(2**31 - 1))"
        )
    if not is_whole(seed) or not least <= seed <= _LARGEST_SEED:  # type: ignore[operator]  # whole
        raise ConfigError(
            f"seed must be a whole number from {least} to {_LARGEST_SEED}, got {seed!r}"
        )
    return int(seed)  # type: ignore[call-overload]  # whole


@final
class QueryBagging:
    """An objective whose gradient is zero for queries left out of the round.

    LightGBM's own ``bagging_by_query`` trains a wrong model with custom objectives. Rows of a
    query that is left out still count for ``min_data_in_leaf``. A ``fraction`` of the queries is
    drawn anew after ``every`` rounds.
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
        """Return gradient and Hessian of the queries of this round."""
        grad, hess = self._objective(scores, data)
        rng = np.random.default_rng([self._seed, self._calls // self._every])
        self._calls += 1
        out = np.ones(len(self._sizes), np.bool_)
        out[rng.choice(len(out), self._kept, replace=False, shuffle=False)] = False
        rows = np.repeat(out, self._sizes)
        grad[rows] = hess[rows] = 0.0
        return grad, hess


def with_bagging(
    objective: Callable[[Any, Any], Any], params: Mapping[str, Any], sizes: IntArray
) -> tuple[Callable[[Any, Any], Any], dict[str, Any]]:
    """Return an objective that draws queries where parameters ask for it, and the other ones.

    ``bagging_by_query``, ``bagging_fraction``, ``bagging_freq`` and ``bagging_seed`` are read as
    LightGBM reads them.
    """
    used = dict(params)
    asked = is_on(used, "bagging_by_query")
    used.pop("bagging_by_query", None)
    if not asked:
        return objective, used
    fraction = _take(used, "bagging_fraction", 1.0, float)
    every = _take(used, "bagging_freq", 0, int)
    if every < 1 or fraction >= 1.0:
        return objective, used
    if not fraction > 0.0:
        raise ConfigError(f"bagging_fraction must be above 0, got {fraction}")
    called = "seed" if used.get("bagging_seed") is None else "bagging_seed"
    seed = _take({called: used.get(called)}, called, -1, int)
    used.pop("bagging_seed", None)
    if seed < 0:
        raise ConfigError(
            f"{called}={params.get(called)!r}: queries are drawn with a whole number of at least "
            "0; give bagging_seed="
        )
    return QueryBagging(objective, sizes, fraction, every, seed), used


def _take(params: dict[str, Any], name: str, default: Any, kind: type) -> Any:
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


def place_constraints(
    params: Mapping[str, Any], columns: Schema, as_text: bool, what: str = "X"
) -> dict[str, Any]:
    """Return parameters that go by the place of a column; texts of constraints stay as they are.

    Names of columns are not always those in the booster, and XGBoost reads no list.

    >>> columns = Schema(3, ["a", "b", "c d"])
    >>> place_constraints({"monotone_constraints": {"c d": -1}}, columns, True)
    {'monotone_constraints': (0, 0, -1)}
    >>> place_constraints({"interaction_constraints": [["a", "c d"], [1]]}, columns, False)
    {'interaction_constraints': [[0, 2], [1]]}
    >>> place_constraints({"categorical_feature": "name:b,c d"}, columns, False)
    {'categorical_feature': [1, 2]}
    """
    made = dict(params)
    if made.get(_CATEGORICAL) not in (None, "auto"):
        made[_CATEGORICAL] = _categorical(made[_CATEGORICAL], columns, what)
    signs, sets = made.get(_MONOTONE), made.get(_TOGETHER)
    try:
        if signs is not None and not isinstance(signs, str):
            made[_MONOTONE] = _signs(signs, columns, what)
        if sets is not None and not isinstance(sets, str):
            placed = [[_place(one, columns, _TOGETHER, what) for one in each] for each in sets]
            made[_TOGETHER] = str(placed) if as_text else placed
    except TypeError as error:
        raise ConfigError(
            f"{_MONOTONE} is one of -1, 0 and 1 per column, or a dict by name; {_TOGETHER} is a "
            f"list of lists of columns; got {signs!r} and {sets!r}"
        ) from error
    return made


def _categorical(given: Any, columns: Schema, what: str) -> list[int]:
    """Return the numbers of columns that hold categories, by name or number, or by their type."""
    texts = given.removeprefix("name:").split(",") if isinstance(given, str) else given
    try:
        places = {_place(one, columns, _CATEGORICAL, what) for one in texts}
    except TypeError as error:
        raise ConfigError(
            f"{_CATEGORICAL} is a list of names or numbers of columns, got {given!r}"
        ) from error
    return sorted(places.union(columns.categorical or ()))


def _signs(given: Any, columns: Schema, what: str) -> tuple[int, ...]:
    if isinstance(given, Mapping):
        signs = {_place(column, columns, _MONOTONE, what): sign for column, sign in given.items()}
        made = [signs.get(number, 0) for number in range(columns.count)]
    else:
        made = [*np.asarray(given).tolist()]  # XGBoost cannot read numbers of numpy
    if len(made) != columns.count:
        raise ConfigError(
            f"{_MONOTONE} has {len(made)} entries, but {what} has {columns.count} columns; give "
            "one entry per column, 0 for those that are free, or a dict by name"
        )
    wrong = next((sign for sign in made if sign not in (-1, 0, 1)), None)
    if wrong is not None:
        raise ConfigError(
            f"{_MONOTONE} contains {wrong!r}; an entry is 1 (more is better), -1 or 0 (free)"
        )
    return tuple(map(int, made))


def _place(column: Any, columns: Schema, constraint: str, what: str) -> int:
    names = columns.names or []
    if str(column) in names:
        return names.index(str(column))
    number = int(column) if isinstance(column, str) and column.isdecimal() else column
    if constraint != _MONOTONE and is_whole(number) and 0 <= number < columns.count:
        return int(number)
    known = f"are {', '.join(names)}" if names else f"have no names, and there are {columns.count}"
    remedy = "one entry per column" if constraint == _MONOTONE else "numbers of columns, from 0"
    raise ConfigError(
        f"{constraint} names the column {column!r}, but the columns of {what} {known}; give "
        f"{'one of these, or ' if names else ''}{remedy}"
    )
