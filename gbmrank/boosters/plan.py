"""Training: validation that all boosters and engines share.

:func:`train` takes a :class:`Plan`, validates parameters and data, and passes a job to an engine.
An engine reports facts about the rows and runs the job: on this machine (:class:`LocalEngine`)
or on a cluster (``gbmrank.dask``). Rankers, comparisons and pair models all train through here.
"""

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, final

import numpy as np
import numpy.typing as npt

from gbmrank.boosters.base import Booster, Fitted, Job, Part, PooledPart, Report, Target, Trained
from gbmrank.boosters.settings import (
    Purpose,
    check_count,
    check_seed,
    place_constraints,
    truncation_obstacle,
    with_bagging,
)
from gbmrank.boosters.supported import BOOSTERS, booster_named
from gbmrank.data.columns import shared_ids
from gbmrank.data.leakage import SeenQueries
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.schema import Schema
from gbmrank.data.tables import read_table, take_rows
from gbmrank.errors import (
    ConfigError,
    DataError,
    GbmrankWarning,
    LeakageWarning,
    NoProgressWarning,
    UnknownNameError,
    WeightError,
    warn,
)
from gbmrank.kernels.jit.threads import at_most
from gbmrank.objectives import held_preferences, with_preferences
from gbmrank.types import FloatArray

PREFIX = "native:"
TRAINING = "the training set"
_NOTHING = ("", "none", "null", "custom", "na")  # LightGBM grows no tree, or takes its default
_FIRST_LOOK = 20_000  # rows that are scored first, before all others
_VANISHED = float(np.finfo(np.float32).smallest_subnormal) / 2.0  # and below is 0 in float32
_SHARE = 1e-3  # of the neighbouring labels of a query that differ; no warning below this


@final
@dataclass(frozen=True, slots=True)
class Native:
    """One of a booster's own objectives; ``native:lambdarank`` as text."""

    name: str

    def __str__(self) -> str:
        return f"{PREFIX}{self.name}"


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Plan:
    """Options of a training."""

    objective: Any  # Objective or Native
    metric: Any  # a MetricList, may be empty; early stopping uses the first one
    backend: str = "lightgbm"
    rounds: int = 100
    early_stopping: int | None = None  # rounds without improvement on the last validation set
    params: Mapping[str, Any] = field(default_factory=dict)  # override those an objective needs
    seed: int = 0
    threads: int | None = None  # of the booster, and at most as many of ours; None: its default
    keep_best: bool = True  # truncate after the best round; never for dart and gblinear
    ranks: bool = True  # False for plain regression
    columns: Schema | None = None  # to convert column names in constraints to numbers
    names: Mapping[str, str] = field(default_factory=dict)  # the caller's names of arguments
    hints: Mapping[str, str] = field(default_factory=dict)  # why a parameter is rejected
    callbacks: tuple[Any, ...] = ()  # the booster's own kind, called as in its own training
    start: Any = None  # a model of the booster to continue; None starts a new one
    report: Report | None = None


class Facts(NamedTuple):
    """Facts about the rows of a data set that validation needs."""

    n_rows: int
    width: int  # number of features
    ids: npt.NDArray[Any] | None  # query ids, if the user passed them
    learnable: bool  # whether the labels of some query differ
    largest_weight: float  # infinite without weights
    merged: tuple[float, float, float] | None  # the result of merged_labels
    part: Part | None = None  # the rows, if they are on this machine


class Engine(Protocol):
    """Runs a validated plan: on this machine or on a cluster."""

    def facts(self, part: Any, name: str, ranks: bool = True) -> Facts:
        """Return facts about a data set; regression needs only some of them."""

    def callback(
        self, target: Target | Native, params: Mapping[str, Any], part: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Return the objective to pass to the booster, and the remaining parameters."""

    def run(self, booster: Booster, job: Job) -> Trained:
        """Train."""

    def all_tied(self, fitted: Fitted, part: Any) -> bool:
        """Whether the scores of every query are all equal."""

    def curvature(self, target: Target | Native, part: Any) -> float | None:
        """Return the summed Hessian of the first round, or None if unknown."""

    def spread(self, fitted: Fitted, part: Any) -> float:
        """Return the standard deviation of scores within queries."""

    def values(self, fitted: Fitted, part: Any, metrics: Any) -> list[float]:
        """Return the value of each metric."""


@final
class LocalEngine:
    """Trains on this machine, on rows in memory."""

    def facts(self, part: Part, name: str, ranks: bool = True) -> Facts:
        """Return facts about a data set; regression needs only some of them."""
        rows, width = part.features.shape
        if not rows * width:
            read_table(part.features, name)  # raises
        data = part.data
        if rows != data.groups.n_rows:
            raise DataError(
                f"{name} has {rows} rows of features and {data.groups.n_rows} labels; both need "
                "one entry per row"
            )
        return Facts(
            rows,
            int(width),
            data.groups.ids,
            not is_tied(data.labels, data.groups.sizes),
            np.inf if data.weight is None else float(data.weight.max(initial=0.0)),
            merged_labels(data) if ranks else None,
            part,
        )

    def callback(
        self, target: Target | Native, params: Mapping[str, Any], part: Part
    ) -> tuple[Any, dict[str, Any]]:
        """Return an objective for rows in query order, which samples queries if requested."""
        if isinstance(target, Native):
            return target.name, dict(params)
        groups = part.data.groups
        if groups.row_order is not None:
            plain = Groups(groups.offsets)
            target = target.with_template(
                with_preferences(target.template, lambda one: replace(one, groups=plain))
            )
        return with_bagging(target, params, groups.sizes)

    def run(self, booster: Booster, job: Job) -> Trained:
        """Train."""
        return booster.train(job)

    def all_tied(self, fitted: Fitted, part: Part) -> bool:
        """Whether the scores of every query are all equal; a few rows are scored first."""
        groups = part.data.groups
        few = max(1, int(np.searchsorted(groups.offsets, _FIRST_LOOK, side="right")) - 1)
        head = Groups(groups.offsets[: few + 1])
        first = fitted.scores(take_rows(part.features, np.arange(head.n_rows)))
        tied = is_tied(first, head.sizes)
        if few == groups.n_queries or not tied:
            return tied
        return is_tied(fitted.scores(part.features), groups.sizes)

    def curvature(self, target: Target | Native, part: Part) -> float | None:
        """Return the summed Hessian of the first round; None for the booster's own objectives."""
        if isinstance(target, Native):
            return None
        bound = target.bind(part.data)
        hess = bound.gradients(np.zeros(part.data.groups.n_rows), np.float32, single=True)[1]
        return float(hess.sum(dtype=np.float64))

    def spread(self, fitted: Fitted, part: Part) -> float:
        """Return the standard deviation of scores within queries."""
        groups = part.data.groups
        scores = fitted.scores(part.features)
        return math.sqrt(squared_deviations(scores, groups.sizes) / groups.n_rows)

    def values(self, fitted: Fitted, part: Part, metrics: Any) -> list[float]:
        """Return the value of each metric."""
        data, scores = part.data, fitted.scores(part.features)
        try:
            weight = data.query_weight()
        except WeightError:  # metrics weigh whole queries; training has warned about it
            weight = None
        columns = {"group": data.groups.sizes, "weight": weight}
        return [float(one.score(data.labels, scores, **columns)) for one in metrics]


def train(
    plan: Plan,
    data: Any,
    valid: Mapping[str, Any] | None = None,
    on_round: Callable[[int], None] | None = None,
    engine: Engine | None = None,
) -> Trained:
    """Train a ranker with an engine, by default on this machine.

    Early stopping uses the last validation set. The ``model`` of a NumericError is the model
    before the round with a gradient that was not finite.
    """
    valid, engine = valid or {}, engine or LocalEngine()
    # Options before rows: facts about rows cost a pass over them, on a cluster a computation.
    params = check_plan(plan, bool(valid))
    check_rows(plan, data, valid, engine)
    trained = run(plan, data, valid, on_round, engine, params)
    warn_if_tied(plan, trained.fitted, data, engine)
    return trained


def check_rows(plan: Plan, data: Any, valid: Mapping[str, Any], engine: Engine) -> None:
    """Raise for rows from which nothing can be learned, and for sets that do not fit together."""
    facts = engine.facts(data, TRAINING, plan.ranks)
    if plan.ranks:
        _check_target(plan.objective, data, facts)
        _check_sets(facts, {n: engine.facts(p, n) for n, p in valid.items() if p is not data})


def run(
    plan: Plan,
    data: Any,
    valid: Mapping[str, Any],
    on_round: Callable[[int], None] | None,
    engine: Engine,
    params: Mapping[str, Any] | None = None,
) -> Trained:
    """Train on rows that were checked, with parameters that were checked if they are given."""
    booster = booster_named(plan.backend)
    params = check_plan(plan, bool(valid)) if params is None else params
    if plan.ranks and isinstance(data, Part | PooledPart):
        booster.check_weights(data.data, params)
    objective, used = engine.callback(plan.objective, params, data)
    job = Job(
        train=data,
        valid=valid,
        objective=objective,
        metrics=plan.metric,
        params=used,
        rounds=plan.rounds,
        patience=plan.early_stopping,
        keep_best=plan.keep_best and truncation_obstacle(params) is None,
        on_round=on_round,
        ranks=plan.ranks,
        callbacks=plan.callbacks,
        start=plan.start,
        report=plan.report,
    )
    with at_most(plan.threads):
        return engine.run(booster, job)


def warn_if_tied(plan: Plan, fitted: Fitted, data: Any, engine: Engine) -> None:
    """Warn if no tree separates the rows of a query, and say why."""
    if engine.all_tied(fitted, data):
        booster, target = booster_named(plan.backend), plan.objective
        params, n_rows = check_plan(plan), engine.facts(data, TRAINING).n_rows
        cause = booster.parameters.likely_cause(params, n_rows, engine.curvature(target, data))
        message = f"{target}: all scores of every query are tied after training; {cause}"
        warn(message, NoProgressWarning)
    elif plan.params:
        _warn_if_starved(plan, fitted, data, engine)


def _warn_if_starved(plan: Plan, fitted: Fitted, data: Any, engine: Engine) -> None:
    """Warn if a limit on the Hessian that the user set kept trees small or ended the training."""
    known = booster_named(plan.backend).parameters
    params, kinds = known.read(plan.params), booster_named(plan.backend).importance_types
    if known.least_curvature[0] not in params:
        return
    total = engine.curvature(plan.objective, data)
    if total is None or not known.is_tight(params, total):
        return
    rounds, most = fitted.n_rounds, known.most_leaves(params)
    leaves = 1.0 + fitted.importances("split" if "split" in kinds else "weight").sum() / rounds
    ended = rounds < plan.rounds and plan.early_stopping is None and not plan.callbacks
    if ended or known.is_short(params, leaves):
        short = f" and training ended after {rounds} of {plan.rounds} rounds" if ended else ""
        warn(
            f"{plan.objective}: trees have {leaves:.1f} of {most:.0f} leaves{short}; "
            f"{known.tight_limit(params, total)}",
            NoProgressWarning,
        )


def is_tied(scores: npt.NDArray[Any], sizes: npt.NDArray[np.int64]) -> bool:
    """Whether the scores of every query are all equal."""
    starts = np.cumsum(sizes) - sizes
    return bool(np.all(scores == np.repeat(scores[starts], sizes)))


def squared_deviations(scores: FloatArray, sizes: npt.NDArray[np.int64]) -> float:
    """Return the sum of squared differences of scores from the mean of their query.

    >>> squared_deviations(np.array([1.0, 3.0, 8.0]), np.array([2, 1]))
    2.0
    """
    means = np.add.reduceat(scores, np.cumsum(sizes) - sizes) / sizes
    return float(((scores - np.repeat(means, sizes)) ** 2).sum())


def native_lists(*backends: str) -> str:
    """Return the boosters' own ranking objectives, for messages; of all boosters by default."""
    return "; ".join(
        f"{booster.name} has {', '.join(f'{PREFIX}{name}' for name in booster.native)}"
        for booster in BOOSTERS
        if not backends or booster.name in backends
    )


def near_native(name: str, cutoff: float = 0.6) -> str | None:
    """Return the booster's own ranking objective with the most similar name, or None."""
    known = [each for booster in BOOSTERS for each in booster.native]
    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"{PREFIX}{near[0]}" if near else None


def merged_labels(data: RankingData) -> tuple[float, float, float] | None:
    """Find labels of a query that become equal in float32, in which boosters store them.

    Returns the share of neighbouring labels that become equal and an example of two, or None if
    the share is small.
    """
    with np.errstate(over="ignore"):  # labels that overflow float32 are rejected elsewhere
        if np.array_equal(data.labels.astype(np.float32), data.labels):
            return None
        queries = data.groups.spread(np.arange(data.groups.n_queries))
        labels = data.labels[np.lexsort((data.labels, queries))]
        differ = (labels[1:] != labels[:-1]) & (queries[1:] == queries[:-1])
        stored = labels.astype(np.float32)
    merged = np.flatnonzero(differ & (stored[1:] == stored[:-1]))
    if len(merged) <= _SHARE * np.count_nonzero(differ):
        return None
    at = int(merged[0])
    return len(merged) / np.count_nonzero(differ), float(labels[at]), float(labels[at + 1])


def check_plan(plan: Plan, validated: bool = True) -> dict[str, Any]:
    """Return the parameters of the booster; raise ConfigError for options wrong for any data."""
    booster = booster_named(plan.backend)
    target, known = plan.objective, booster.parameters
    # First of all checks, as those after it look for main names.
    given = known.by_main_names(plan.params)
    native = target.name if isinstance(target, Native) else None
    if native is not None and plan.ranks:
        _check_native(target, booster)
    called = str(target) if plan.ranks else "squared error"
    known.check(given, Purpose(called, native, plan.ranks, plan.names, plan.hints))
    _check_rounds(plan, given, validated)
    made = {**_needed(target, booster, given), **_seed_and_threads(plan, booster, given)}
    if plan.columns is None:
        return made
    what = plan.names.get("features", "X")
    return place_constraints(made, plan.columns, known.interactions_as_text, what)


def _needed(
    target: Target | Native, booster: Booster, given: Mapping[str, Any]
) -> dict[str, object]:
    """Return the parameters that an objective needs."""
    if isinstance(target, Native):
        return {}
    settings = booster.settings(target.template.shift_invariant)
    linear = given.get("booster") == "gblinear"  # which has no leaves
    leafless = booster.parameters.least_curvature[0] if linear else None
    return {setting.name: setting.value for setting in settings if setting.name != leafless}


def _seed_and_threads(plan: Plan, booster: Booster, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters with one seed and one number of threads."""
    known, called = booster.parameters, plan.names.get("threads", "threads")
    if plan.seed != 0:  # the default may be overridden
        known.check_once(plan.params, "seed", "seed", plan.seed)
    made = {"seed": plan.seed, **given}
    check_seed(plan.seed)
    made["seed"] = check_seed(made["seed"])
    if plan.threads is not None:
        known.check_once(plan.params, known.threads, called, plan.threads)
        made[known.threads] = known.whole_threads(called, plan.threads)
    elif known.threads in made:
        made[known.threads] = known.whole_threads(known.threads, made[known.threads])
    return made


def _check_native(target: Native, booster: Booster) -> None:
    """Raise for an objective of another booster, or a misspelt one.

    Objectives that do not rank, such as ``native:regression``, are left to the booster.
    """
    if target.name in booster.native:
        return
    if target.name.strip().lower() in _NOTHING:
        raise UnknownNameError(f"{str(target)!r} is not an objective; {native_lists(booster.name)}")
    owner = next((other.name for other in BOOSTERS if target.name in other.native), None)
    if owner is not None:
        raise ConfigError(
            f"{target} is an objective of {owner}, but backend={booster.name!r}; "
            f"{native_lists(booster.name)}"
        )
    if (near := near_native(target.name, cutoff=0.8)) is not None:
        raise UnknownNameError(
            f"{booster.name} has no objective {str(target)!r}; did you mean {near}? "
            f"{native_lists()}"
        )


def _check_rounds(plan: Plan, params: Mapping[str, Any], validated: bool) -> None:
    called = plan.names.get
    check_count(called("rounds", "rounds"), plan.rounds)
    if plan.early_stopping is None:
        return
    check_count(called("early_stopping", "early_stopping"), plan.early_stopping)
    if not validated:
        raise ConfigError(
            f"early stopping needs a validation set; pass {called('valid', 'valid=')}"
        )
    if (obstacle := truncation_obstacle(params)) is not None:
        raise ConfigError(
            f"early stopping does not work with {obstacle}: later rounds change earlier trees, so "
            "the model cannot be truncated after its best round; leave out one of the two"
        )


def _check_target(target: Target | Native, data: Any, facts: Facts) -> None:
    held = () if isinstance(target, Native) else held_preferences(target.template)
    for own in held:  # which clusters do not support
        own.check_rows(data.data.groups)
    if held and not any(own.n_edges for own in held):
        raise DataError("there is nothing to learn: the preferences contain no edge")
    if not held and not facts.learnable:
        raise DataError(
            f"there is nothing to learn: the labels of {facts.n_rows} samples are equal within "
            "every query; at least one query needs two different labels (qid= defines the queries)"
        )


def _check_sets(train: Facts, valid: Mapping[str, Facts]) -> None:
    """Check widths, weights, labels and queries; a validation set may be the training set."""
    deciding = next(reversed(list(valid)), None)
    queries = 0 if train.ids is None else len(train.ids)
    for name, facts in {TRAINING: train, **valid}.items():
        if facts.width != train.width:
            raise DataError(
                f"{name} has {facts.width} features, the training set has {train.width}"
            )
        if facts.largest_weight <= _VANISHED:
            raise WeightError(
                f"the largest weight of {name} is {facts.largest_weight:g}, but boosters store "
                "weights in float32, where all of them are zero; multiply them by a constant"
            )
        if facts.merged is not None:
            share, one, other = facts.merged
            warn(
                f"boosters store labels in float32, where {share:.1%} of the neighbouring labels "
                f"that differ within a query of {name} become equal, such as {one:.17g} and "
                f"{other:.17g}; subtract an offset from the labels, or use their ranks within the "
                "query",
                GbmrankWarning,
            )
        both = [] if facts is train else _same_queries(train, facts)
        same = (len(both), facts.n_rows) == (queries, train.n_rows)
        if len(both) and (name == deciding or not same):
            warn(
                f"{len(both)} queries are in the training set and in {name}, such as "
                f"{both[0]!r}, so its metrics are too optimistic; leave them out of one set, or "
                "use different ids if they are different queries",
                LeakageWarning,
            )


def _same_queries(train: Facts, other: Facts) -> list[Any]:
    """Return the ids of shared queries; on this machine, rows are compared as well as ids."""
    if train.ids is None or other.ids is None:
        return []
    both = shared_ids(train.ids, other.ids)
    if not both or train.part is None or other.part is None:
        return both
    seen = SeenQueries(train.part.features, train.part.data.groups)
    found = seen.shared(other.part.features, other.part.data.groups).known
    return both if found.sum() == len(both) else [one.item() for one in other.ids[found]]
