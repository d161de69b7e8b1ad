"""From what was asked for to what will be run; every mistake is found here.

What the data is like, and what it cannot be used for.

One round on a few queries before the first training, so that mistakes are told at once.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np

from gbmrank.api import Metric, MetricList, Objective
from gbmrank.boosters.doors import booster_named
from gbmrank.boosters.plan import Native, Part, Plan, check_plan, train
from gbmrank.data.columns import read_whole
from gbmrank.data.queries import RankingData
from gbmrank.data.readers.text import quoted
from gbmrank.data.tables import first_infinite
from gbmrank.errors import ConfigError, DataError, GbmrankError
from gbmrank.experiments.design import (
    Design,
    Task,
    check_listed,
    check_params,
    plain_baseline,
    plain_number,
    plain_params,
    plain_params_for,
    plain_path,
)
from gbmrank.experiments.progress import Progress
from gbmrank.experiments.results import Queries, System
from gbmrank.experiments.sources import Source, check_folds, check_parts, judged
from gbmrank.experiments.store import PLAN
from gbmrank.experiments.systems import (
    Chosen,
    choose_systems,
    default_objectives,
    find_baseline,
    installed_backends,
    needs_this_process,
    read_metrics,
)
from gbmrank.experiments.trial import check_tuner, part_of, plan_of, split_of
from gbmrank.kernels.jit.threads import get_num_threads
from gbmrank.metrics import Ranked
from gbmrank.registry.guards import bind_metric
from gbmrank.types import FloatArray

__all__ = [
    "DEMO_METRICS",
    "Prepared",
    "Settings",
    "audit",
    "check_learnable",
    "check_metrics",
    "check_trainings",
    "check_watched",
    "demonstration",
    "doomed",
    "plain_settings",
    "prepare",
    "queries_of",
]


_LEVELS = 12  # label values that are counted one by one


def audit(source: Source, notes: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return facts about the data, for the report."""
    labels, groups = source.data.labels, source.data.groups
    smallest, largest = _ends(source)
    return {
        "rows": groups.n_rows,
        "queries": groups.n_queries,
        "features": int(source.X.shape[1]),
        "label_counts": _label_counts(labels),
        "singletons": int((groups.sizes == 1).sum()),
        "without_relevant": int((largest <= 0).sum()),
        "all_labels_equal": int(((smallest == largest) & (groups.sizes > 1)).sum()),
        "longest": int(groups.sizes.max()),
        "duplicate_rows": _duplicates(source),
        "notes": [*source.notes, *notes],
    }


def queries_of(source: Source) -> Queries:
    """Return the queries that are judged."""
    chosen = judged(source.n_queries, source.parts)
    groups = source.data.groups
    relevant = np.add.reduceat((source.data.labels > 0).astype(np.int64), groups.offsets[:-1])
    return Queries(ids=source.ids[chosen], sizes=groups.sizes[chosen], relevant=relevant[chosen])


def check_learnable(source: Source) -> None:
    """Raise DataError when no query to learn from has two different labels."""
    smallest, largest = _ends(source)
    learned = np.ones(source.n_queries, bool) if source.parts is None else source.parts == 0
    if not (smallest < largest)[learned].any():
        raise DataError(
            f"nothing to learn: none of the {int(learned.sum())} queries to learn from has two "
            "different labels; check the columns of labels and query ids"
        )


def check_metrics(source: Source, metrics: MetricList) -> None:
    """Raise when a metric refuses the labels, or the target is defined for no query."""
    bound = [bind_metric(one.measure, source.data) for one in metrics]
    flat = Ranked(np.zeros(source.data.groups.n_rows), source.data.groups)
    values = bound[0].per_query(flat.prepare(bound[0].depth))
    chosen = judged(source.n_queries, source.parts)
    if np.isnan(values[chosen]).all():
        raise DataError(
            f"{metrics[0]} is undefined for every query that would be judged; put another metric "
            "first"
        )


def check_watched(source: Source, design: Design, target: Metric) -> None:
    """Raise when the target has no value on the watched queries of any run."""
    if target.measure.empty != "skip":
        return
    bound = bind_metric(target.measure, source.data)
    flat = Ranked(np.zeros(source.data.groups.n_rows), source.data.groups)
    known = ~np.isnan(bound.per_query(flat.prepare(bound.depth)))
    for task in design.tasks:
        if known[split_of(source, design, task).valid].any():
            return
    raise DataError(
        f"{target} is undefined for every query that is watched for stopping; give a valid part "
        "that has what it needs, such as relevant rows, or put another metric first"
    )


def doomed(
    source: Source, design: Design, objectives: Mapping[str, Objective | Native]
) -> dict[System, GbmrankError]:
    """Return the systems that refuse the rows of every run, with the reason.

    Objectives refuse labels, XGBoost refuses infinite features.

    Raises
    ------
    ConfigError
        When no system is left.
    """
    errors = {
        name: error
        for name, one in objectives.items()
        if isinstance(one, Objective) and (error := _refusal(source, design, name, one)) is not None
    }
    found = {one: errors[one.objective] for one in design.systems if one.objective in errors}
    beyond = [one for one in design.systems if one.backend == "xgboost" and one not in found]
    infinite = _infinite(source) if beyond else None
    found |= {} if infinite is None else dict.fromkeys(beyond, infinite)
    if len(found) == len(design.systems):
        first = {str(error): one for one, error in reversed(found.items())}
        told = "; ".join(f"{one}: {text}" for text, one in first.items())
        raise ConfigError(f"nothing can be trained on these rows: {told}")
    return found


def _infinite(source: Source) -> GbmrankError | None:
    """Return why XGBoost reads none of the rows, if it does not: each is in a part of every run."""
    place = first_infinite(source.X)
    if place is None:
        return None
    row, number = place
    called = quoted(source.feature_names[number]) if source.feature_names else str(number + 1)
    return DataError(
        f"feature {called} is infinite, or beyond the largest float32, in query "
        f"{source.data.groups.query_of(row)!r}, and XGBoost reads neither: clip it, or make it "
        "NaN, a missing value"
    )


def _refusal(source: Source, design: Design, name: str, one: Objective) -> GbmrankError | None:
    """Return why an objective refuses every part that it would learn from."""
    try:
        one.bind(source.data)
    except GbmrankError as error:
        refused = error
    else:
        return None
    for seed in design.seeds:
        for fold in range(design.folds):
            split = split_of(source, design, Task(System("", name), seed, fold))
            try:
                one.bind(part_of(source, split.train).data)
            except GbmrankError:
                continue
            return None
    return refused


def _ends(source: Source) -> tuple[FloatArray, FloatArray]:
    starts = source.data.groups.offsets[:-1]
    labels = source.data.labels
    return np.minimum.reduceat(labels, starts), np.maximum.reduceat(labels, starts)


def _label_counts(labels: FloatArray) -> dict[str, int]:
    levels, counts = np.unique(labels, return_counts=True)
    if len(levels) <= _LEVELS:
        return {f"{level:g}": int(count) for level, count in zip(levels, counts, strict=True)}
    counts, ends = np.histogram(labels, bins=_LEVELS)
    return {
        f"{low:.3g} to {high:.3g}": int(count)
        for low, high, count in zip(ends[:-1], ends[1:], counts, strict=True)
    }


def _duplicates(source: Source) -> int:
    """Count rows that repeat all features of another row of their query."""
    rows = np.ascontiguousarray(source.X, dtype=np.float64)
    groups = source.data.groups
    rng = np.random.default_rng(0)
    # Two sums with random factors tell rows apart; equal rows have equal sums.
    factors = rng.standard_normal((rows.shape[1], 2))
    sums = np.nan_to_num(rows, nan=0.5, posinf=1e99, neginf=-1e99) @ factors
    query = groups.spread(np.arange(groups.n_queries))
    order = np.lexsort((sums[:, 1], sums[:, 0], query))
    same = (query[order][1:] == query[order][:-1]) & (sums[order][1:] == sums[order][:-1]).all(1)
    return int(same.sum())


_STAND_IN = {"lightgbm": Native("lambdarank"), "xgboost": Native("rank:pairwise")}
_ROWS = 1000  # so many that a small bagging_fraction leaves some
_LOUD = ("verbosity", "verbose")
_ADVICE = "(params go to every booster, params_for or --param-for to one)"


def check_trainings(source: Source, design: Design) -> None:
    """Raise for parameters that a booster, or an objective in it, refuses in every run.

    What no booster was asked for cannot be refused; then nothing is trained here. Values are
    tried with an objective of the booster's own, which compiles nothing.

    Raises
    ------
    ConfigError
        With the system.
    """
    few = _few(source)
    tried: list[tuple[str, Any]] = []
    for system in design.systems:
        plan = plan_of(design, Task(system, design.seeds[0], 0))
        try:
            check_plan(plan)
        except GbmrankError as error:
            raise ConfigError(f"{system}: {error} {_ADVICE}") from error
        asked = (system.backend, design.fixed_params(system))
        if asked[1] and asked not in tried:
            tried.append(asked)
            _rehearse(system, plan, asked[1], few)


def _rehearse(system: System, plan: Plan, asked: Mapping[str, Any], few: Part) -> None:
    """Raise when one round fails with the parameters asked for and goes well without them."""
    target = plan.objective if isinstance(plan.objective, Native) else _STAND_IN[plan.backend]
    params = {name: value for name, value in plan.params.items() if name not in _LOUD}
    plan = replace(plan, objective=target, rounds=1, early_stopping=None, params=params)
    failure = _failure(plan, few)
    if failure is None:
        return
    rest = {name: value for name, value in params.items() if name not in asked}
    if _failure(replace(plan, params=rest), few) is None:
        told = " ".join(str(failure).partition("\nStack trace:")[0].split())
        given = ", ".join(f"{name}={value!r}" for name, value in asked.items())
        raise ConfigError(f"{system} cannot be trained with {given}: {told} {_ADVICE}") from failure


def _failure(plan: Plan, few: Part) -> Exception | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            train(plan, few, {"valid": few})
        except Exception as error:
            return error
    return None


def _few(source: Source) -> Part:
    """Return the longest queries, the first row of each relevant: labels are not what is tried."""
    groups = source.data.groups
    longest = np.argsort(-groups.sizes, kind="stable")
    enough = int(np.searchsorted(np.cumsum(groups.sizes[longest]), _ROWS)) + 1
    chosen = longest[: max(enough, 2)]
    rows = np.concatenate([np.arange(*groups.offsets[one : one + 2]) for one in chosen])
    sizes = groups.sizes[chosen]
    labels = np.zeros(len(rows))
    labels[np.cumsum(sizes) - sizes] = 1.0
    data = RankingData.from_arrays(labels, group=sizes)
    return Part(np.ascontiguousarray(source.X[rows]), data)


_REGRET_K = 10
# The truth of the demonstration is about DCG, and simple enough for small trees.
DEMO_METRICS = "dcg@10, ndcg@10"
"""What is measured on the demonstration data where nothing else is asked for."""
_DEMO_PARAMS = MappingProxyType(
    {
        "lightgbm": {"num_leaves": 8, "min_data_in_leaf": 100},
        "xgboost": {"max_depth": 3},
    }
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is asked for; :func:`gbmrank.compare` describes every option."""

    objectives: Any = None
    metrics: Any = None
    backends: Sequence[str] | None = None
    folds: int = 5
    seeds: tuple[int, ...] = (0,)
    rounds: int = 300
    early_stopping: int | None = 30
    valid_share: float = 0.2
    params: Mapping[str, Any] | None = None
    params_for: Mapping[str, Mapping[str, Any]] | None = None
    tune: int = 0
    tuner: str = "random"
    baseline: str | None = None
    margin: float = 0.0
    out: str | Path | None = None
    resume: bool = False
    force: bool = False
    jobs: int | None = None
    threads: int | None = None
    isolate: bool = True
    progress: Progress | None = None
    command: str = "gbmrank.compare(...)"


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Prepared:
    """A comparison that can begin.

    Parameters
    ----------
    source : Source
        The rows.
    design : Design
        Every run follows from it.
    chosen : Chosen
        Systems and objectives.
    metrics : MetricList
        The target first.
    baseline : System
        What differences are taken to.
    refused : mapping of System to error
        Systems that cannot be trained on these rows.
    jobs : int
        Processes; 0 runs everything in this one.
    """

    source: Source
    design: Design
    chosen: Chosen
    metrics: MetricList
    baseline: System
    refused: Mapping[System, GbmrankError]
    jobs: int


def demonstration(settings: Settings) -> Settings:
    """Fill in what suits the demonstration data, where nothing else is asked for."""
    asked = settings.params is not None or settings.params_for is not None
    backends = settings.backends or installed_backends()
    small = {who: what for who, what in _DEMO_PARAMS.items() if who in backends}
    return replace(
        settings,
        metrics=DEMO_METRICS if settings.metrics is None else settings.metrics,
        params_for=settings.params_for if asked else small,
    )


def prepare(source: Source, settings: Settings) -> Prepared:
    """Check everything that can be checked before the first training."""
    metrics = read_metrics(settings.metrics)
    given = settings.objectives
    objectives = default_objectives(metrics[0]) if given is None else given
    chosen = choose_systems(objectives, settings.backends)
    baseline = find_baseline(chosen.systems, settings.baseline)
    check_tuner(settings.tuner if settings.tune else "random")
    for params in (settings.params or {}, *(settings.params_for or {}).values()):
        check_params(params, "params")
    if source.parts is None:
        check_folds(source.n_queries, settings.folds, settings.valid_share)
    else:
        check_parts(source.parts)
    check_learnable(source)
    check_metrics(source, metrics)
    here = not settings.isolate or any(
        map(needs_this_process, (*chosen.objectives.values(), metrics))
    )
    jobs, threads = _shares(source, settings, len(chosen.systems), here)
    design = _design(source, settings, chosen.systems, (metrics, threads))
    _check_names(design)
    check_watched(source, design, metrics[0])
    refused = doomed(source, design, chosen.objectives)
    check_trainings(source, design)
    return Prepared(
        source=source,
        design=design,
        chosen=chosen,
        metrics=metrics,
        baseline=baseline,
        refused=refused,
        jobs=0 if here else jobs,
    )


def plain_settings(settings: Settings) -> Settings:
    """Return settings in plain values, or say which one is none."""
    given = settings
    patience, share = given.early_stopping, "a number between 0 and 1"
    if given.objectives is not None and not isinstance(given.objectives, Objective | Native):
        check_listed("objectives", given.objectives, ("ranknet", "pairwise"))
    if given.backends is not None:
        check_listed("backends", given.backends, ("lightgbm",))
    return replace(
        given,
        folds=read_whole(given.folds, "folds", 1),
        rounds=read_whole(given.rounds, "rounds", 1),
        early_stopping=None if patience is None else _patience(patience),
        valid_share=plain_number("valid_share", given.valid_share, share),
        params=plain_params(given.params or {}, "params"),
        params_for=plain_params_for(given.params_for or {}),
        tune=read_whole(given.tune, "tune", 0),
        baseline=plain_baseline(given.baseline),
        margin=plain_number("margin", given.margin, "zero or a positive number"),
        out=None if given.out is None else plain_path("out", given.out),
        jobs=None if given.jobs is None else read_whole(given.jobs, "jobs", 1),
        threads=None if given.threads is None else read_whole(given.threads, "threads", 1),
    )


def _patience(value: Any) -> int:
    return read_whole(value, "early_stopping (None to grow every tree)", 1)


def _check_names(design: Design) -> None:
    """Stop before the first run at a parameter that a booster does not have."""
    for system in design.systems:
        try:
            booster_named(system.backend).parameters.check_known(design.fixed_params(system))
        except ConfigError as error:
            raise ConfigError(
                f"{error} (params go to every booster, params_for or --param-for to one)"
            ) from None


def _design(
    source: Source,
    settings: Settings,
    systems: tuple[System, ...],
    watched: tuple[MetricList, int],
) -> Design:
    metrics, threads = watched
    cut_off = metrics[0].spec.k or _REGRET_K
    return Design(
        systems=systems,
        metrics=tuple(str(one) for one in metrics),
        regret_k=None if source.gain is None else cut_off,
        folds=settings.folds if source.parts is None else 1,
        seeds=settings.seeds,
        rounds=settings.rounds,
        early_stopping=settings.early_stopping,
        valid_share=settings.valid_share,
        params=dict(settings.params or {}),
        params_for={who: dict(what) for who, what in (settings.params_for or {}).items()},
        tune=settings.tune,
        tuner=settings.tuner,
        threads=threads,
    )


def _shares(source: Source, settings: Settings, systems: int, here: bool) -> tuple[int, int]:
    """Return the number of processes and the threads of each, within one budget."""
    folds = settings.folds if source.parts is None else 1
    tasks = max(systems * folds * len(settings.seeds), 1)  # no seeds: the design says so
    budget = settings.threads or get_num_threads()
    jobs = 1 if here else min(settings.jobs or budget, tasks)
    threads = max(budget // jobs, 1)
    if settings.resume and settings.jobs is None and settings.threads is None:
        # Another machine, the same sums: threads change the last digits in XGBoost.
        threads = _threads_before(settings) or threads
        jobs = max(budget // threads, 1)
    return jobs, threads


def _threads_before(settings: Settings) -> int | None:
    try:
        text = (Path(settings.out or ".") / PLAN).read_text(encoding="utf-8")
        threads = json.loads(text)["design"]["threads"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return threads if isinstance(threads, int) else None
