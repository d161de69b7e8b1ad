"""From what was asked for to what will be run; every mistake is found here."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

from gbmrank.api import MetricList, Objective
from gbmrank.backends.parameters import check_known
from gbmrank.data.columns import read_whole
from gbmrank.errors import ConfigError, GbmrankError
from gbmrank.experiments import audit
from gbmrank.experiments.design import Design, check_params
from gbmrank.experiments.options import (
    check_listed,
    plain_baseline,
    plain_number,
    plain_params,
    plain_params_for,
    plain_path,
)
from gbmrank.experiments.progress import Progress
from gbmrank.experiments.rehearsal import check_trainings
from gbmrank.experiments.results import System
from gbmrank.experiments.sources import Source
from gbmrank.experiments.splits import check_folds, check_parts
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
from gbmrank.experiments.tuning import check_tuner
from gbmrank.kernels.jit.threads import get_num_threads
from gbmrank.training import Native

__all__ = ["DEMO_METRICS", "Prepared", "Settings", "demonstration", "plain_settings", "prepare"]

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
    audit.check_learnable(source)
    audit.check_metrics(source, metrics)
    here = not settings.isolate or any(
        map(needs_this_process, (*chosen.objectives.values(), metrics))
    )
    jobs, threads = _shares(source, settings, len(chosen.systems), here)
    design = _design(source, settings, chosen.systems, (metrics, threads))
    _check_names(design)
    audit.check_watched(source, design, metrics[0])
    refused = audit.doomed(source, design, chosen.objectives)
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
            check_known(system.backend, design.fixed_params(system))
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
