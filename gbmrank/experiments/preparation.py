"""Validation of settings and data before the first training."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from gbmrank.api import MetricList
from gbmrank.api.metrics import metric_list
from gbmrank.api.training_plans import check_texts
from gbmrank.boosters.plan import check_plan
from gbmrank.boosters.supported import booster_named
from gbmrank.data.columns import read_number, read_whole
from gbmrank.errors import ConfigError, DataError, GbmrankError
from gbmrank.estimators.committee import member_plans
from gbmrank.experiments.click_logs import click_objectives, read_log
from gbmrank.experiments.design import Design, Options, Task
from gbmrank.experiments.progress import Progress
from gbmrank.experiments.provenance import needs_this_process
from gbmrank.experiments.results import DEBIASED, GIVEN, System, split_name
from gbmrank.experiments.sources import Source
from gbmrank.experiments.splits import check_split, judged
from gbmrank.experiments.store import PLAN
from gbmrank.experiments.systems import (
    Chosen,
    choose_systems,
    default_objectives,
    find_baseline,
    installed_backends,
)
from gbmrank.experiments.trial import check_tuner, plan_of, split_of
from gbmrank.experiments.ways import folds_of, is_folded
from gbmrank.kernels.jit.threads import get_num_threads
from gbmrank.metrics import Ranked
from gbmrank.registry.guards import bind_metric

DEFAULT_METRICS = "ndcg@10, ndcg@5, ndcg@1"
"""Default metrics."""
DEMO_METRICS = "dcg@10, ndcg@10"
"""Default metrics on the demonstration data, whose exact regret is that of DCG."""
CLICK_METRICS = "dcg@10, dcg@5, dcg@1"
"""Default metrics on clicks, from which NDCG cannot be estimated."""
TRUTH_METRICS = "dcg@10, ndcg@10"
"""Default metrics on clicks with known truth; early stopping estimates the first from clicks."""
_REGRET_K = 10


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Options):
    """Settings of the user; :func:`gbmrank.compare` describes every option."""

    objectives: Any = None
    quick: bool = False
    metrics: Any = None
    backends: Sequence[str] | None = None
    baseline: str | None = None
    margin: float = 0.0
    position_bias: Any = None
    clip: float | None = None
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
    """A validated comparison, ready to run."""

    source: Source
    design: Design
    chosen: Chosen
    metrics: MetricList  # the target first
    baseline: System
    margin: float
    jobs: int  # processes; 0 runs everything in this one


def demonstration(settings: Settings) -> Settings:
    """Fill in defaults for the demonstration data."""
    metrics = DEMO_METRICS if settings.metrics is None else settings.metrics
    if settings.params is not None or settings.params_for is not None:
        return replace(settings, metrics=metrics)
    backends = settings.backends or installed_backends()
    usual = {name: booster_named(name).tuning.demonstration for name in backends}
    return replace(settings, metrics=metrics, params_for=usual)


def prepare(source: Source, settings: Settings) -> Prepared:
    """Validate everything that can be validated before the first training."""
    usual = DEFAULT_METRICS
    if "position" in source.data.columns:  # those that can be estimated from clicks
        usual = TRUTH_METRICS if "truth" in source.data.columns else CLICK_METRICS
    metrics = metric_list(usual if settings.metrics is None else settings.metrics)
    chosen = choose_systems(_objectives(source, settings, metrics), settings.backends)
    chosen = _with_given(chosen, list(source.scores))
    for one in chosen.objectives.values():
        check_texts(one, metrics)
    baseline = find_baseline(chosen.systems, settings.baseline)
    margin = read_number(settings.margin, "margin", 0.0)
    if settings.tune:
        check_tuner(settings.tuner)
    parts = (*chosen.objectives.values(), metrics)
    here = not settings.isolate or any(map(needs_this_process, parts))
    options = {one.name: getattr(settings, one.name) for one in fields(Options)}
    design = Design(
        **{**options, "folds": settings.folds if source.parts is None else 1},
        systems=chosen.systems,
        metrics=tuple(str(one) for one in metrics),
        regret_k=None if source.gain is None else metrics[0].spec.k or _REGRET_K,
    )
    jobs, threads = shares(settings, len(design.tasks), here)
    design = replace(design, threads=threads)
    check_split(source.scheme, design.folds)
    design, notes = _with_clicks(source, design, settings, metrics)
    chosen = chosen._replace(notes=(*chosen.notes, *notes))
    _check_rows(source, design.folds)
    _check_metrics(source, design, metrics)
    check_plans(design)
    return Prepared(
        source=source,
        design=design,
        chosen=chosen,
        metrics=metrics,
        baseline=baseline,
        margin=margin,
        jobs=0 if here else jobs,
    )


def _objectives(source: Source, settings: Settings, metrics: MetricList) -> Any:
    """Return the objectives, given or default."""
    if settings.objectives is not None:
        if settings.quick:
            raise ConfigError(
                "quick (--quick) is about the default objectives, but objectives are given; give "
                "only one of them"
            )
        return settings.objectives
    if "position" in source.data.columns:
        return click_objectives()
    return default_objectives(metrics[0], quick=settings.quick)


def _with_clicks(
    source: Source, design: Design, settings: Settings, metrics: MetricList
) -> tuple[Design, tuple[str, ...]]:
    """Add the position bias to the design, if rows have positions."""
    trained = [one for one in design.systems if not one.is_given]
    how = settings.position_bias, settings.clip, trained[0].backend
    clicks, notes = read_log(source, design.folds, design.valid_share, *how)
    if clicks is None:
        debiased = [one for one in trained if split_name(one.objective)[0] == DEBIASED]
        if debiased:
            raise ConfigError(
                f"{debiased[0]} corrects clicks for positions, but none are given; name their "
                "column (position, --position)"
            )
        return design, ()
    clicks.check_metrics(metrics)
    folded = [one for one in trained if is_folded(one.objective)]
    if folded:
        raise ConfigError(
            f"{folded[0]}: folds are not supported on a log of clicks, whose bias belongs to the "
            "training queries; leave it out"
        )
    return replace(design, clicks=clicks), notes


def _with_given(chosen: Chosen, names: Sequence[str]) -> Chosen:
    """Add the existing models, whose scores are given."""
    for name in names:
        if name in chosen.objectives or not name.strip():
            what = "is an objective" if name.strip() else "is empty"
            raise ConfigError(f"scores are given under the name {name!r}, which {what}; rename it")
    systems = (*chosen.systems, *(System(GIVEN, name) for name in names))
    return chosen._replace(systems=systems)


def _check_rows(source: Source, folds: int) -> None:
    """Raise if no training query has two different labels, or if test queries lack scores."""
    smallest, largest = source.label_ends()
    learned = np.ones(source.n_queries, bool) if source.parts is None else source.parts == 0
    if not (smallest < largest)[learned].any():
        raise DataError(
            f"nothing to learn: none of the {int(learned.sum())} training queries has two "
            "different labels; check the columns of labels and query ids"
        )
    groups = source.data.groups
    tested = np.zeros(source.n_queries, dtype=bool)
    tested[judged(source.scheme, folds)] = True
    for name, scores in source.scores.items():
        bad = np.flatnonzero(groups.spread(tested) & ~np.isfinite(scores))
        if len(bad):
            raise DataError(
                f"{len(bad)} rows of test queries have no finite score of {name!r}, first one of "
                f"query {groups.query_of(int(bad[0]))!r}; leave these queries out, or give rows "
                "that were not ranked the lowest score"
            )


def _check_metrics(source: Source, design: Design, metrics: MetricList) -> None:
    """Raise when a metric rejects the labels, or the first one is undefined for all queries."""
    data = replace(source.data, weight=None)
    if design.clicks is not None:
        data = design.clicks.judged(data)
    bound = [bind_metric(one.measure, data) for one in metrics]
    flat = Ranked(np.zeros(source.data.groups.n_rows), source.data.groups)
    known = ~np.isnan(bound[0].per_query(flat.prepare(bound[0].depth)))
    splits = (split_of(source, design, task) for task in design.tasks)
    needed = {
        "is judged": known[judged(source.scheme, design.folds)].any(),
        "validates": metrics[0].measure.empty != "skip"
        or any(known[split.valid].any() for split in splits),
    }
    for what, is_known in needed.items():
        if not is_known:
            raise DataError(
                f"{metrics[0]} is undefined for every query that {what}; give queries that have "
                "what it needs, such as relevant rows, or put another metric first"
            )


def check_plans(design: Design) -> None:
    """Raise for parameters that are invalid for any rows."""
    for system in design.systems:
        if system.is_given:
            continue
        plan = plan_of(design, Task(system, design.seeds[0], 0))
        try:
            # A seed other than the default, so that a seed among the parameters is a conflict.
            plan = replace(plan, seed=plan.seed or 1)
            for one in member_plans(plan, folds_of(system.objective, plan)):
                check_plan(one)
        except GbmrankError as error:
            raise ConfigError(
                f"{system}: {error} (params go to every booster, params_for or --param-for to one)"
            ) from error


def shares(settings: Settings, tasks: int, here: bool) -> tuple[int, int]:
    """Return the number of processes and the threads of each, within the limit."""
    for name in ("jobs", "threads"):
        if (value := getattr(settings, name)) is not None:
            read_whole(value, name, 1)
    budget = int(settings.threads or get_num_threads())
    jobs = 1 if here else min(int(settings.jobs or budget), tasks)
    threads = max(budget // jobs, 1)
    if settings.resume and settings.jobs is None and settings.threads is None:
        # Keep the number of threads on another machine: it changes the last digits in XGBoost.
        threads = _threads_before(settings) or threads
        jobs = max(budget // threads, 1)
    return jobs, threads


def _threads_before(settings: Settings) -> int | None:
    try:
        text = (Path(settings.out or ".") / PLAN).read_text(encoding="utf-8")
        return int(json.loads(text)["design"]["threads"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # raised where the plan is read
