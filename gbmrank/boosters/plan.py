"""One training of a ranker: any objective, any metric, either booster.

Estimators and comparisons are built on :func:`train`; nothing else in the package trains a
ranker.

The boosters' own objectives: which booster has which.

Whether a trained model orders anything, and if not, why.

Labels and weights that are not what they were once a booster has stored them.
"""

import difflib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from gbmrank.boosters.base import Fitted, Job, Monitor, Part, Target
from gbmrank.boosters.doors import backend_named
from gbmrank.boosters.lightgbm.training import train_lightgbm
from gbmrank.boosters.settings import (
    THREADS,
    check_once,
    check_params,
    check_seed,
    main_names,
    what_forbids_cutting,
    whole_threads,
    with_bagging,
)
from gbmrank.boosters.xgboost.training import train_xgboost
from gbmrank.data.columns import shared_ids
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.tables import read_table, take_rows
from gbmrank.errors import (
    ConfigError,
    DataError,
    GbmrankWarning,
    LeakageWarning,
    NoProgressWarning,
    NumericError,
    ParameterError,
    UnknownNameError,
    WeightError,
)
from gbmrank.kernels.jit.threads import at_most
from gbmrank.objectives import held_preferences, with_groups
from gbmrank.types import FloatArray, is_whole

__all__ = [
    "NATIVE",
    "PREFIX",
    "Native",
    "Part",
    "Plan",
    "Trained",
    "all_tied",
    "check_native",
    "check_plan",
    "check_weights",
    "likely_cause",
    "native_lists",
    "near_native",
    "train",
    "warn_if_rounded",
]


PREFIX = "native:"
NATIVE: Mapping[str, tuple[str, ...]] = {
    "lightgbm": ("lambdarank", "rank_xendcg"),
    "xgboost": ("rank:ndcg", "rank:pairwise", "rank:map"),
}
"""The boosters' own ranking objectives."""

_NOTHING = ("", "none", "null", "custom", "na")  # LightGBM grows no tree, or takes its default


@final
@dataclass(frozen=True, slots=True)
class Native:
    """One of a booster's own objectives; ``native:lambdarank`` as text."""

    name: str

    def __str__(self) -> str:
        return f"{PREFIX}{self.name}"


def native_lists(*backends: str) -> str:
    """Return what boosters have, for messages; all of them when none is named."""
    return "; ".join(
        f"{backend} has {', '.join(f'{PREFIX}{name}' for name in NATIVE[backend])}"
        for backend in backends or NATIVE
    )


def near_native(name: str, cutoff: float = 0.6) -> str | None:
    """Return the ranking objective of a booster that is spelled most like a name."""
    known = [each for names in NATIVE.values() for each in names]
    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"{PREFIX}{near[0]}" if near else None


def check_native(target: Native, backend: str) -> None:
    """Raise for an objective of the other booster, and for a misspelt one.

    Objectives that do not rank, such as ``native:regression``, are left to the booster.

    Raises
    ------
    ConfigError
        When the other booster has it.
    UnknownNameError
        When it is almost the name of a ranking objective.
    """
    if target.name in NATIVE[backend]:
        return
    if target.name.strip().lower() in _NOTHING:
        raise UnknownNameError(f"{str(target)!r} names no objective; {native_lists(backend)}")
    owner = next((other for other, names in NATIVE.items() if target.name in names), None)
    if owner is not None:
        raise ConfigError(
            f"{target} belongs to {owner}, and backend={backend!r}; {native_lists(backend)}"
        )
    near = near_native(target.name, cutoff=0.8)
    if near is not None:
        raise UnknownNameError(
            f"{backend} has no objective {str(target)!r}; did you mean {near}? {native_lists()}"
        )


_FIRST_LOOK = 20_000  # rows that are scored before all are
_LEAST_CURVATURE = {"lightgbm": "min_sum_hessian_in_leaf", "xgboost": "min_child_weight"}
_LEAST_GAIN = {"lightgbm": "min_gain_to_split", "xgboost": "gamma"}


def all_tied(fitted: Fitted, part: Part) -> bool:
    """Return whether the scores of every query are all equal."""
    groups = part.data.groups
    few = max(1, int(np.searchsorted(groups.offsets, _FIRST_LOOK, side="right")) - 1)
    head = Groups(groups.offsets[: few + 1])
    if not _tied(fitted.scores(take_rows(part.features, np.arange(head.n_rows))), head):
        return False
    return few == groups.n_queries or _tied(fitted.scores(part.features), groups)


def _tied(scores: FloatArray, groups: Groups) -> bool:
    return bool(np.all(scores == groups.spread(scores[groups.offsets[:-1]])))


def likely_cause(
    backend: str, params: Mapping[str, Any], n_rows: int, curvature: float | None
) -> str:
    """Return the likely reason why no tree splits a query.

    Parameters
    ----------
    backend : {"lightgbm", "xgboost"}
        The booster.
    params : mapping
        Its parameters, by main names.
    n_rows : int
        Rows of the training set.
    curvature : float or None
        Summed Hessian of the first round; None for the booster's own objectives.
    """
    if params.get("learning_rate") == 0:
        return "the learning rate is 0"
    leaf = int(params.get("min_data_in_leaf", 20))
    if backend == "lightgbm" and n_rows < 2 * leaf:
        return f"{n_rows} rows cannot be split into leaves of min_data_in_leaf={leaf}"
    name = _LEAST_CURVATURE[backend]
    least = float(params.get(name, 0.0))
    if curvature is not None and curvature < 2 * least:
        return (
            f"{name}={least:g} is too large for the scale of this loss, whose Hessian sums to "
            f"{curvature:.3g}; lower it"
        )
    gain = float(params.get(_LEAST_GAIN[backend], 0.0))
    if gain > 0:
        return f"{_LEAST_GAIN[backend]}={gain:g} may be more than any split gains"
    return (
        "look for features that do not differ within a query, and at the size of leaves "
        f"(min_data_in_leaf, {name}, max_depth)"
    )


_VANISHED = float(np.finfo(np.float32).smallest_subnormal) / 2.0  # and below is 0 in float32
_SHARE = 1e-3  # of the neighbouring labels of a query that differ; fewer go without a word


def warn_if_rounded(data: RankingData, what: str) -> None:
    """Warn where labels of a query become equal in float32, in which both boosters keep them.

    Parameters
    ----------
    data : RankingData
        The rows.
    what : str
        What they are called in the message.
    """
    with np.errstate(over="ignore"):  # what float32 cannot hold at all is refused elsewhere
        if np.array_equal(data.labels.astype(np.float32), data.labels):
            return
    queries = data.groups.spread(np.arange(data.groups.n_queries))
    labels = data.labels[np.lexsort((data.labels, queries))]
    differ = (labels[1:] != labels[:-1]) & (queries[1:] == queries[:-1])
    with np.errstate(over="ignore"):
        stored = labels.astype(np.float32)
    merged = np.flatnonzero(differ & (stored[1:] == stored[:-1]))
    if len(merged) <= _SHARE * np.count_nonzero(differ):
        return
    at = int(merged[0])
    share = len(merged) / np.count_nonzero(differ)
    warnings.warn(
        f"boosters keep labels in float32, and there {share:.1%} of the neighbouring labels that "
        f"differ within a query of {what} become equal, such as {labels[at]:.17g} and "
        f"{labels[at + 1]:.17g}; subtract an offset from the labels, divide them, or use their "
        "ranks within the query",
        GbmrankWarning,
        stacklevel=4,  # the caller of train
    )


def check_weights(data: RankingData, what: str) -> None:
    """Raise WeightError where all weights are zero in float32, in which boosters keep them.

    Parameters
    ----------
    data : RankingData
        The rows.
    what : str
        What they are called in the message.
    """
    largest = np.inf if data.weight is None else float(data.weight.max(initial=0.0))
    if largest <= _VANISHED:
        raise WeightError(
            f"the largest weight of {what} is {largest:g}, and boosters keep weights in "
            "float32, where all of them are zero; multiply them all by one number"
        )


_TRAIN: Mapping[str, Callable[[Job], Fitted]] = {
    "lightgbm": train_lightgbm,
    "xgboost": train_xgboost,
}


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Plan:
    """How to train.

    Parameters
    ----------
    objective : Objective or Native
        What is minimised.
    metric : MetricList
        What is watched; the first one decides about stopping.
    backend : {"lightgbm", "xgboost"}
        The booster.
    rounds : int, default=100
        Most trees to grow.
    early_stopping : int or None, default=None
        Stop after so many rounds without improvement on the last watched set.
    params : mapping, default={}
        Of the booster; they win over those an objective asks for.
    seed : int, default=0
        Of the booster.
    threads : int or None, default=None
        Of the booster, and at most as many of ours; None leaves it to the booster.
    keep_best : bool, default=True
        Cut the model after its best round on the last watched set; False keeps all rounds.
        Models that change or sum up earlier rounds (dart, gblinear) are never cut.
    names : mapping of str to str, default={}
        What the caller calls ``rounds``, ``early_stopping``, ``threads`` and ``valid``, for
        messages.
    """

    objective: Any
    metric: Any
    backend: str = "lightgbm"
    rounds: int = 100
    early_stopping: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    threads: int | None = None
    keep_best: bool = True
    names: Mapping[str, str] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A trained ranker.

    Parameters
    ----------
    fitted : Fitted
        The booster.
    history : mapping of str to mapping of str to list of float
        Value of each metric after every round, by watched set and metric text.
    best_round : int
        Number of the best round, from 0; the last one when nothing was watched.
    """

    fitted: Fitted
    history: Mapping[str, Mapping[str, list[float]]]
    best_round: int

    def scores(self, features: Any) -> FloatArray:
        """Return one raw score per row, of the trees up to the best round."""
        return self.fitted.scores(features)


def train(
    plan: Plan,
    data: Part,
    valid: Mapping[str, Part] | None = None,
    on_round: Callable[[int], None] | None = None,
) -> Trained:
    """Train a ranker.

    Parameters
    ----------
    plan : Plan
        How.
    data : Part
        What is learned from.
    valid : mapping of str to Part, optional
        What is watched, in order; the last one decides about stopping.
    on_round : callable, optional
        Called after every round with the number of rounds done.

    Raises
    ------
    ConfigError
        For parameters that cannot go with the objective, or would do nothing.
    DataError
        When there is nothing to learn from, or tables do not fit together.
    NumericError
        When a gradient is not finite; its ``model`` is that of the rounds before.

    Warns
    -----
    GbmrankWarning
        When labels of a query become equal in float32, in which the boosters keep them.
    LeakageWarning
        When a query is in the training set and in a watched set.
    NoProgressWarning
        When the trained model orders nothing, with the likely cause.
    """
    valid = valid or {}
    target, watched = plan.objective, plan.metric
    params = _checked(plan, target, bool(valid))
    _check_parts(data, valid, target)
    _check_linear(params, data.data)
    monitor = Monitor(
        watched,
        [str(item) for item in watched],
        watched[0].higher_is_better,
        plan.early_stopping,
        on_round,
    )
    called, used = _called(_in_query_order(target, data.data), params, data.data, plan.backend)
    job = Job(
        train=data,
        valid=valid,
        objective=called,
        params=used,
        rounds=plan.rounds,
        monitor=monitor,
        keep_best=plan.keep_best and what_forbids_cutting(params) is None,
    )
    try:
        with at_most(plan.threads):
            fitted = _TRAIN[plan.backend](job)
    except NumericError as error:
        error.add_note(f"in round {monitor.rounds_done + 1} of {plan.rounds}, {plan.backend}")
        raise
    if all_tied(fitted, data):
        cause = likely_cause(
            plan.backend, params, data.data.groups.n_rows, _curvature(target, data)
        )
        message = f"{target}: all scores of every query are tied after training; {cause}"
        warnings.warn(message, NoProgressWarning, stacklevel=2)
    best = monitor.best_round if monitor.best_round >= 0 else fitted.n_rounds - 1
    return Trained(fitted, monitor.history, best)


def check_plan(plan: Plan) -> None:
    """Raise for what :func:`train` would refuse whatever the rows are.

    Parameters
    ----------
    plan : Plan
        How; something is watched.

    Raises
    ------
    ConfigError
        For parameters that cannot go with the objective, or would do nothing.
    """
    _checked(plan, plan.objective, watched=True)


def _checked(plan: Plan, target: Target | Native, watched: bool) -> dict[str, Any]:
    """Return the parameters of the booster, once nothing speaks against them."""
    params = _params(plan, target)
    _check_plan(plan, params, watched)
    return params


def _params(plan: Plan, target: Target | Native) -> dict[str, Any]:
    if plan.backend not in list(_TRAIN):
        raise ConfigError(f"backend must be one of {', '.join(_TRAIN)}; got {plan.backend!r}")
    given = main_names(plan.backend, plan.params)
    own = not isinstance(target, Native)
    check_params(plan.backend, given, str(target), own, plan.names)
    if isinstance(target, Native):
        check_native(target, plan.backend)
    _check_once(plan)
    for seed in (plan.seed, given.get("seed")):
        check_seed(seed)
    needed = _needed(target, plan.backend)
    if given.get("booster") == "gblinear":
        needed.pop("min_child_weight", None)  # it has no leaves
    name = THREADS[plan.backend]
    threads = {} if plan.threads is None else {name: plan.threads}
    made = {**needed, "seed": plan.seed, **threads, **given}
    called = plan.names.get("threads", "threads") if threads else name
    return {**made, name: whole_threads(called, made[name])} if name in made else made


def _needed(target: Target | Native, backend: str) -> dict[str, Any]:
    if isinstance(target, Native):
        return {}
    settings = backend_named(backend).settings(target.template.shift_invariant)
    return {setting.name: setting.value for setting in settings}


def _check_once(plan: Plan) -> None:
    """Refuse a seed or a number of threads that is given to the plan and to the booster."""
    if plan.seed != 0:  # the default gives way
        check_once(plan.backend, plan.params, "seed", "seed", plan.seed)
    if plan.threads is not None:
        called = plan.names.get("threads", "threads")
        check_once(plan.backend, plan.params, THREADS[plan.backend], called, plan.threads)


def _check_plan(plan: Plan, params: Mapping[str, Any], watched: bool) -> None:
    called = plan.names.get
    _check_count(called("rounds", "rounds"), plan.rounds)
    if plan.early_stopping is not None:
        _check_count(called("early_stopping", "early_stopping"), plan.early_stopping)
    if plan.early_stopping is not None and not watched:
        raise ConfigError(
            f"early stopping needs a validation set to watch: give {called('valid', 'valid=')}"
        )
    obstacle = what_forbids_cutting(params)
    if plan.early_stopping is not None and obstacle is not None:
        raise ConfigError(
            f"early stopping does not go with {obstacle}: later rounds change what earlier ones "
            "gave, so the best round cannot be gone back to; leave one of the two out"
        )


def _check_count(name: str, value: object) -> None:
    if not is_whole(value) or value < 1:  # type: ignore[operator]  # a number by now
        raise ParameterError(f"{name} must be a whole number of at least 1, got {value!r}")


def _check_parts(data: Part, valid: Mapping[str, Part], target: Target | Native) -> None:
    width = _width(data, "the training set")
    _check_preferences(data.data, target)
    check_weights(data.data, "the training set")
    warn_if_rounded(data.data, "the training set")
    for name, part in valid.items():
        if part is data:
            continue
        if _width(part, name) != width:
            raise DataError(
                f"{name} has {_width(part, name)} features, the training set has {width}"
            )
        check_weights(part.data, name)
        warn_if_rounded(part.data, name)
        _warn_if_shared(data.data, part.data, name)


def _check_linear(params: Mapping[str, Any], data: RankingData) -> None:
    if params.get("booster") == "gblinear" and data.weight is not None:
        raise WeightError(
            "booster='gblinear' takes one weight per row, and XGBoost keeps one per query where "
            "there are queries, so it would read beyond them: leave out the weights, or grow trees"
        )


def _width(part: Part, what: str) -> int:
    rows, width = read_table(part.features, what).shape
    if rows != part.data.groups.n_rows:
        raise DataError(
            f"{what} has {rows} rows of features and {part.data.groups.n_rows} labels; both need "
            "one entry per row"
        )
    return int(width)


def _check_preferences(data: RankingData, target: Target | Native) -> None:
    held = () if isinstance(target, Native) else held_preferences(target.template)
    for own in held:
        own.check_rows(data.groups)
    if held:
        if not any(own.n_edges for own in held):
            raise DataError("there is nothing to learn: the preferences hold no edge")
        return
    first = data.groups.spread(data.labels[data.groups.offsets[:-1]])
    if np.array_equal(data.labels, first):
        raise DataError(
            f"there is nothing to learn: in none of the {data.groups.n_queries} queries "
            f"({data.groups.n_rows} samples) do labels differ; give queries of two rows or more "
            "with different labels (qid= says which rows belong together)"
        )


def _warn_if_shared(train: RankingData, valid: RankingData, name: str) -> None:
    if train.groups.ids is None or valid.groups.ids is None:
        return
    both = shared_ids(train.groups.ids, valid.groups.ids)
    if both:
        warnings.warn(
            f"{len(both)} queries are in the training set and in {name}, such as "
            f"{both[0]!r}: its values will look too good; leave them out of one set, or "
            "give each set ids of its own when they are different queries",
            LeakageWarning,
            stacklevel=4,
        )


def _in_query_order(target: Target | Native, data: RankingData) -> Target | Native:
    """Return an objective whose preferences speak of rows as the booster gets them."""
    if isinstance(target, Native) or data.groups.row_order is None:
        return target
    return target.with_template(with_groups(target.template, Groups(data.groups.offsets)))


def _called(
    target: Target | Native, params: Mapping[str, Any], data: RankingData, backend: str
) -> tuple[Any, dict[str, Any]]:
    """Return what the booster is given as its objective, and the parameters that go with it."""
    if isinstance(target, Native):
        return target.name, dict(params)
    return with_bagging(target, params, data.groups.sizes, backend)


def _curvature(target: Target | Native, part: Part) -> float | None:
    if isinstance(target, Native):
        return None
    scores = np.zeros(part.data.groups.n_rows)
    bound = target.bind(part.data)
    return float(bound.gradients(scores, np.float32, single=True)[1].sum(dtype=np.float64))
