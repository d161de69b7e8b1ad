"""Parameters of a booster: aliases, settings that an objective needs, and invalid combinations.

If a parameter is set under two names, LightGBM uses the main name, so a setting of the objective
would silently override a user's setting under an alias. So parameters are converted to main names
first, and those without effect are rejected.
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

METRIC_HINT = "pass metrics as metric=, with their cut-off: ndcg@10"
BAGGING = ("bagging_by_query", "bagging_fraction", "bagging_freq", "bagging_seed")
_ROUNDS_HINT = "pass the number of rounds as {rounds}"
_STOPPING_HINT = "pass {early_stopping}"
_CALLED = {
    "rounds": "n_estimators= (rounds= of a Plan)",
    "early_stopping": "early_stopping_rounds= (early_stopping= of a Plan)",
}
_GAIN = "the gain is part of the target, such as target=dcg(gain=linear)"
_CUTOFF = "the cut-off is part of the target, such as target=ndcg@10, and all pairs count"
_SCALE = "the scale is normalize= of the objective"
_BIAS = (
    "pass positions to GBMRanker.fit(position=, position_bias=), or to the objective: "
    "bind_rows(position=, position_bias=)"
)
_INSTEAD: Mapping[str, str] = {
    "label_gain": _GAIN,
    "ndcg_exp_gain": _GAIN,
    "sigmoid": "the slope is part of the loss: loss=logistic(sigma=2)",
    "scale_pos_weight": "pass weights",
    "is_unbalance": "pass weights",
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
_MANY_LEAVES = 16  # more are not expected of every tree
_ROOM = 4  # times the smallest curvature that the leaves of a tree need to be free
_FEW_LEAVES = 4  # with at most this many leaves, trees hardly split
_MOST_THREADS = 1024
_LARGEST_SEED = 2**31 - 1
CONSTRAINTS = _MONOTONE, _TOGETHER = "monotone_constraints", "interaction_constraints"
_CATEGORICAL = "categorical_feature"


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """A booster parameter that an objective needs, and why."""

    name: str
    value: object
    reason: str


L2_ROWS = 5  # the L2 term of robust settings equals the curvature of this many rows
_SAMPLED = "trees grown on samples differ, so their sum fits less noise"
_SMALL = "small trees overfit less; use more of them"


def robust_settings(names: Mapping[str, Any], curvature: float | None) -> tuple[Setting, ...]:
    """Return tree parameters that rarely overfit, under the names of a booster.

    Those under ``"sampled"`` sample rows and columns, those under ``"small"`` limit trees; ``"l2"``
    and ``"leaf"`` are in units of the mean Hessian of a row, and left out if it is None.
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
    """The training that parameters of a booster are for."""

    objective: str  # for messages
    native: str | None = None  # name of the booster's own objective; None for one of gbmrank
    ranks: bool = True  # False for regression
    names: Mapping[str, str] = MappingProxyType({})  # the caller's for rounds and early_stopping
    hints: Mapping[str, str] = MappingProxyType({})  # why a parameter is rejected


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Parameters:
    """What gbmrank knows about the parameters of one booster, by main names.

    ``unknown`` returns the first parameter that has no effect, and names to suggest;
    ``check_more`` raises for invalid combinations.
    """

    booster: str
    aliases: Mapping[str, tuple[str, ...]]  # of the parameters that gbmrank reads or sets
    rounds: str
    early_stopping: str
    threads: str
    elsewhere: Mapping[str, str]  # parameters that are arguments of gbmrank, with advice
    native_only: tuple[str, ...]  # of the booster's own ranking objectives
    least_curvature: tuple[str, float]  # with its default; these can prevent splits
    least_gain: str
    least_slope: str  # summed over a leaf
    unknown: Callable[[Mapping[str, Any]], tuple[str | None, set[str]]]
    check_more: Callable[[Mapping[str, Any], str, bool], None]  # (params, objective, custom)
    most_leaves: Callable[[Mapping[str, Any]], float]  # of a tree, as parameters allow
    is_random: Callable[[Mapping[str, Any], str | None], bool]  # (params, own objective): by seed
    sampled: Mapping[str, Any]  # make a training random: queries or rows are drawn in each round
    all_names: Callable[[], Mapping[str, str]] = dict  # to main names; may be empty
    unread: Callable[[Mapping[str, Any]], list[str]] = lambda params: []  # beside native_only
    least_rows: tuple[str, int] | None = None  # with its default
    interactions_as_text: bool = False  # whether interaction constraints must be text
    twins: Mapping[str, str] = field(default_factory=dict)
    implied: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict)  # always the case
    of_data_set: tuple[str, ...] = ()  # passed to the data set; on one machine only

    @property
    def _main_names(self) -> dict[str, str]:
        return {other: main for main, others in self.aliases.items() for other in others}

    def by_main_names(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Convert parameters to main names; raise ConfigError for one set under two names."""
        known = self._main_names
        same = {**self.all_names(), **known}
        spelled: dict[str, str] = {}
        for name in params:
            main = same.get(name, name)
            if main in spelled:
                raise ConfigError(
                    f"{spelled[main]} and {name} are two names of one {self.booster} parameter; "
                    "set only one"
                )
            spelled[main] = name
        return {
            known.get(name, name): params[name]
            for name in spelled.values()
            if name not in self.implied or not self.implied[name](params[name])
        }

    def read(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Convert parameters to main names as the booster does: the main name wins."""
        same = {**self.all_names(), **self._main_names}
        others = {same.get(name, name): value for name, value in params.items()}
        return {**others, **{name: params[name] for name in others if name in params}}

    def without_effect(self, params: Mapping[str, Any], positions: bool) -> dict[str, str]:
        """Return parameters that have no effect on a custom objective, with alternatives."""
        names = [name for name in self.native_only if params.get(name) is not None]
        names += [*self.unread(params), *(["position"] if positions else [])]
        return {name: _INSTEAD.get(name, "leave it out") for name in names}

    def check_once(self, params: Mapping[str, Any], main: str, called: str, value: object) -> None:
        """Raise ConfigError if ``params`` has a setting that the caller also set as ``called``."""
        for name in (main, *self.aliases[main]):
            if name in params:
                raise ConfigError(
                    f"{called}={value!r} and {name}={params[name]!r} set the same parameter of "
                    f"{self.booster}; leave out {name}"
                )

    def check(self, params: Mapping[str, Any], purpose: "Purpose") -> None:
        """Raise ConfigError for parameters that have no effect, or not the expected one."""
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
                    f"{name}={params[name]!r} is for {self.booster}'s own objectives and has no "
                    f"effect with {objective}; {_INSTEAD.get(name, 'leave it out')}"
                )

    def check_known(self, params: Mapping[str, Any]) -> None:
        """Raise ConfigError for an unknown parameter, and suggest a similar name."""
        unknown, known = self.unknown(params)
        if unknown is None:
            return
        likely = sorted(known.union(self.aliases, *self.aliases.values()))
        near = difflib.get_close_matches(unknown, [*likely, *self.twins], n=1, cutoff=0.75)
        meant = self.twins.get(unknown) or next(iter(near), None)
        meant = self.twins.get(str(meant)) or self.all_names().get(str(meant), meant)
        hint = f"did you mean {meant}?" if meant else "leave it out, or look it up in its manual"
        raise ConfigError(f"{self.booster} has no parameter {unknown!r}; {hint}")

    def whole_threads(self, called: str, threads: Any) -> Any:
        """Validate a number of threads; None leaves it to the booster."""
        if threads is None:
            return threads
        if not is_whole(threads):
            raise ParameterError(f"{called} must be a whole number or None, got {threads!r}")
        most = max(_MOST_THREADS, os.cpu_count() or 1)
        if threads > most:
            raise ParameterError(
                f"{called}={threads} is more than {most}, and too many threads abort the process; "
                "use the number of processors, or None"
            )
        return int(threads)

    def is_tight(self, params: Mapping[str, Any], curvature: float) -> bool:
        """Whether the limit on the Hessian of a leaf may keep trees from their allowed leaves."""
        least = number_of(params, *self.least_curvature)
        return curvature < _ROOM * least * min(self.most_leaves(params), _MANY_LEAVES)

    def is_short(self, params: Mapping[str, Any], leaves: float) -> bool:
        """Whether trees have far fewer leaves than allowed, in the mean."""
        return leaves < min(self.most_leaves(params), _MANY_LEAVES) / 2

    def tight_limit(self, params: Mapping[str, Any], curvature: float) -> str:
        """Return the limit on the Hessian of a leaf, its effect, and a value that fits."""
        name, least = self.least_curvature[0], number_of(params, *self.least_curvature)
        return (
            f"{name}={least:g} is large for this loss, whose Hessian sums to {curvature:.3g}. "
            f"{self._smaller(params, curvature)}"
        )

    def _smaller(self, params: Mapping[str, Any], curvature: float) -> str:
        fit = curvature / (_ROOM * min(self.most_leaves(params), _MANY_LEAVES))
        return f"Set it to {fit:.1g} or less, or multiply the loss (docs/boosters.md has factors)"

    def likely_cause(self, params: Mapping[str, Any], n_rows: int, curvature: float | None) -> str:
        """Return the likely reason why no tree separates rows of a query.

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
                f"{curvature / n_rows:.3g} per row and sums to {curvature:.3g}. "
                f"{self._smaller(params, curvature)}"
            )
        for name in (self.least_gain, self.least_slope):
            value = number_of(params, name, 0.0)
            if value > 0:
                scale = (
                    "" if curvature is None else f" ({curvature / n_rows:.3g} of Hessian per row)"
                )
                return f"{name}={value:g} may exceed the gain of every split with this loss{scale}"
        return (
            "check for features that are constant within a query, and the size of leaves "
            f"(min_data_in_leaf, {self.least_curvature[0]}, max_depth)"
        )


def is_on(params: Mapping[str, Any], name: str) -> bool:
    """Parse a boolean parameter in the spellings LightGBM accepts; False if not set.

    >>> is_on({"bagging_by_query": "false"}, "bagging_by_query")
    False
    """
    value = params.get(name)
    found = _TRUTH.get("" if value is None else str(value).strip().lower())
    if found is None:
        raise ConfigError(f"{name} must be True or False, or text of these; got {value!r}")
    return found


def number_of(params: Mapping[str, Any], name: str, default: float) -> float:
    """Return a parameter as a number, or the default if it is not one; the booster rejects it."""
    try:
        return float(params.get(name, default))
    except (TypeError, ValueError):
        return default


def truncation_obstacle(params: Mapping[str, Any]) -> str | None:
    """Return the setting that prevents truncating the model after a round, or None.

    Later rounds change earlier ones: dart drops and rescales trees, linear models sum
    coefficients. Since version 3.4 XGBoost drops trees if only ``rate_drop`` or ``one_drop`` is
    set.

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
    """Validate a 32-bit seed, which may be text or None; raise ConfigError otherwise.

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
    """An objective whose gradient is zero for queries that are not sampled in a round.

    LightGBM's own ``bagging_by_query`` trains a wrong model with custom objectives. Rows of
    queries that are not sampled still count for ``min_data_in_leaf``. A new ``fraction`` of the
    queries is sampled every ``every`` rounds.
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
        """Return gradient and Hessian, zero for queries not sampled in this round."""
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
    """Return an objective that samples queries if parameters say so, and the other parameters.

    ``bagging_by_query``, ``bagging_fraction``, ``bagging_freq`` and ``bagging_seed`` have the same
    meaning as in LightGBM.
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
            f"{called}={params.get(called)!r}: sampling queries needs a seed of at least 0; set "
            "bagging_seed="
        )
    return QueryBagging(objective, sizes, fraction, every, seed), used


def _take(params: dict[str, Any], name: str, default: Any, kind: type) -> Any:
    """Remove a number from parameters; as in LightGBM it may be text, and None is not set."""
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
    """Convert column names in constraints to column numbers; constraints as text are kept.

    The booster may use other column names, and XGBoost does not accept lists.

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
            f"{_MONOTONE} must be -1, 0 or 1 per column, or a dict by name, and {_TOGETHER} a "
            f"list of lists of columns; got {signs!r} and {sets!r}"
        ) from error
    return made


def _categorical(given: Any, columns: Schema, what: str) -> list[int]:
    """Return the numbers of categorical columns, given by name or number, or by their type."""
    texts = given.removeprefix("name:").split(",") if isinstance(given, str) else given
    try:
        places = {_place(one, columns, _CATEGORICAL, what) for one in texts}
    except TypeError as error:
        raise ConfigError(
            f"{_CATEGORICAL} must be a list of names or numbers of columns, got {given!r}"
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
            f"{_MONOTONE} has {len(made)} entries, but {what} has {columns.count} columns; pass "
            "one entry per column, 0 for unconstrained ones, or a dict by name"
        )
    if (wrong := next((sign for sign in made if sign not in (-1, 0, 1)), None)) is not None:
        raise ConfigError(
            f"{_MONOTONE} contains {wrong!r}; an entry must be 1 (increasing), -1 (decreasing) or "
            "0 (unconstrained)"
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
        f"{constraint} names the column {column!r}, but the columns of {what} {known}; pass "
        f"{'one of these, or ' if names else ''}{remedy}"
    )
