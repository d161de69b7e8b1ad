"""One training of a ranker: any objective, any metric, either booster.

Estimators and comparisons are built on :func:`train`; nothing else in the package trains a
ranker.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from gbmrank.api import Metric, MetricList, Objective, booster_params, metric, objective
from gbmrank.backends.bagging import with_bagging
from gbmrank.backends.lightgbm_trainer import train_lightgbm
from gbmrank.backends.native import NATIVE, PREFIX, Native, check_native, near_native
from gbmrank.backends.parameters import (
    THREADS,
    check_once,
    check_params,
    main_names,
    what_forbids_cutting,
)
from gbmrank.backends.progress import all_tied, likely_cause
from gbmrank.backends.ranges import check_seed, whole_threads
from gbmrank.backends.rounding import check_weights, warn_if_rounded
from gbmrank.backends.tables import read_table
from gbmrank.backends.trainer import Fitted, Job, Monitor, Part
from gbmrank.backends.xgboost_trainer import train_xgboost
from gbmrank.data.columns import shared_ids
from gbmrank.data.queries import Groups, RankingData
from gbmrank.errors import (
    ConfigError,
    DataError,
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
    "Native",
    "Part",
    "Plan",
    "Trained",
    "check_plan",
    "metric_list",
    "ranking_objective",
    "train",
]

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
    objective : Objective, Native or str
        What is minimised.
    metric : Metric, MetricList or str
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


def ranking_objective(given: Any) -> Objective | Native:
    """Read an objective: ours by text or object, or ``native:NAME``."""
    if isinstance(given, Native):
        return given
    if isinstance(given, str) and given.strip().startswith(PREFIX):
        return Native(given.strip().removeprefix(PREFIX))
    try:
        return objective(given)
    except UnknownNameError as error:
        near = near_native(given.strip(), cutoff=1.0) if isinstance(given, str) else None
        if near is None:
            raise
        message = f"no objective is called {given!r}; did you mean {near}, the booster's own?"
        raise UnknownNameError(message) from error


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
    target, watched = ranking_objective(plan.objective), metric_list(plan.metric)
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
    _checked(plan, ranking_objective(plan.objective), watched=True)


def metric_list(given: Any) -> MetricList:
    """Read one or several metrics, as text or as objects; the first one counts most."""
    made = metric(given)
    return MetricList([made]) if isinstance(made, Metric) else made


def _checked(plan: Plan, target: Objective | Native, watched: bool) -> dict[str, Any]:
    """Return the parameters of the booster, once nothing speaks against them."""
    params = _params(plan, target)
    _check_plan(plan, params, watched)
    return params


def _params(plan: Plan, target: Objective | Native) -> dict[str, Any]:
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
    needed = dict(booster_params(target, plan.backend)) if own else {}
    if given.get("booster") == "gblinear":
        needed.pop("min_child_weight", None)  # it has no leaves
    name = THREADS[plan.backend]
    threads = {} if plan.threads is None else {name: plan.threads}
    made = {**needed, "seed": plan.seed, **threads, **given}
    called = plan.names.get("threads", "threads") if threads else name
    return {**made, name: whole_threads(called, made[name])} if name in made else made


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


def _check_parts(data: Part, valid: Mapping[str, Part], target: Objective | Native) -> None:
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


def _check_preferences(data: RankingData, target: Objective | Native) -> None:
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


def _in_query_order(target: Objective | Native, data: RankingData) -> Objective | Native:
    """Return an objective whose preferences speak of rows as the booster gets them."""
    if isinstance(target, Native) or data.groups.row_order is None:
        return target
    return objective(with_groups(target.template, Groups(data.groups.offsets)))


def _called(
    target: Objective | Native, params: Mapping[str, Any], data: RankingData, backend: str
) -> tuple[Any, dict[str, Any]]:
    """Return what the booster is given as its objective, and the parameters that go with it."""
    if isinstance(target, Native):
        return target.name, dict(params)
    return with_bagging(target, params, data.groups.sizes, backend)


def _curvature(target: Objective | Native, part: Part) -> float | None:
    if isinstance(target, Native):
        return None
    scores = np.zeros(part.data.groups.n_rows)
    bound = target.bind(part.data)
    return float(bound.gradients(scores, np.float32, single=True)[1].sum(dtype=np.float64))
