"""Compile and import before the clock starts, so that times are those of training."""

import contextlib
import warnings
from dataclasses import replace

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.errors import GbmrankWarning
from gbmrank.experiments.design import Design, Task
from gbmrank.training import Part, Plan, ranking_objective, train

__all__ = ["plan_of", "warm_up"]

_QUERIES = 2
_warm: set[tuple[str, ...]] = set()


def plan_of(design: Design, task: Task) -> Plan:
    """Return how a run is trained, before tuning."""
    return Plan(
        objective=ranking_objective(task.system.objective),
        metric=list(design.metrics),
        backend=task.system.backend,
        rounds=design.rounds,
        early_stopping=design.early_stopping,
        params=design.params_of(task.system),
        seed=task.seed,
        threads=design.threads,
    )


def warm_up(design: Design, task: Task, part: Part) -> None:
    """Train one round on two queries; once in a process for each system and its metrics.

    Parameters
    ----------
    design : Design
        The settings.
    task : Task
        Which run.
    part : Part
        What it learns from; the longest queries whose labels differ are taken.
    """
    key = (*task.system, *design.metrics)
    if key in _warm:
        return
    _warm.add(key)
    plan = replace(plan_of(design, task), rounds=1, early_stopping=None)
    few = _few(part)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with contextlib.suppress(Exception):  # the run itself tells what is wrong
            train(plan, few, {"valid": few})
    for one in heard:
        if one.category is GbmrankWarning:  # said once in a process: about slow plugins
            warnings.warn(str(one.message), GbmrankWarning, stacklevel=2)


def _few(part: Part) -> Part:
    """Return the longest queries of a part, those with different labels first."""
    groups, labels = part.data.groups, part.data.labels
    first = groups.offsets[:-1]
    differ = np.maximum.reduceat(labels, first) > np.minimum.reduceat(labels, first)
    chosen = np.lexsort((-groups.sizes, ~differ))[:_QUERIES]
    rows = np.concatenate([np.arange(*groups.offsets[one : one + 2]) for one in chosen])
    data = RankingData.from_arrays(labels[rows], group=groups.sizes[chosen])
    return Part(np.ascontiguousarray(part.features[rows]), data)
