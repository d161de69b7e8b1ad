"""One round on a few queries before the first training, so that mistakes are told at once."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.errors import ConfigError, GbmrankError
from gbmrank.experiments.design import Design, Task
from gbmrank.experiments.results import System
from gbmrank.experiments.sources import Source
from gbmrank.experiments.warming import plan_of
from gbmrank.training import Native, Part, Plan, check_plan, train

__all__ = ["check_trainings"]

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
