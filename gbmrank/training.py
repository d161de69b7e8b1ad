"""One training of a ranker: any objective, any metric, either booster.

Estimators and comparisons are built on :func:`train`; nothing else in the package trains a
ranker.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from gbmrank.api import Metric, MetricList, Objective, booster_params, metric, objective
from gbmrank.backends.lightgbm_trainer import train_lightgbm
from gbmrank.backends.trainer import Fitted, Job, Monitor, Part
from gbmrank.backends.xgboost_trainer import train_xgboost
from gbmrank.errors import ConfigError, NoProgressWarning, ParameterError
from gbmrank.types import FloatArray

__all__ = ["Native", "Part", "Plan", "Trained", "ranking_objective", "train"]

_TRAIN: Mapping[str, Callable[[Job], Fitted]] = {
    "lightgbm": train_lightgbm,
    "xgboost": train_xgboost,
}
_NATIVE = "native:"


@final
@dataclass(frozen=True, slots=True)
class Native:
    """One of a booster's own objectives; ``native:lambdarank`` as text."""

    name: str

    def __str__(self) -> str:
        return f"{_NATIVE}{self.name}"


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
        Of the booster; None leaves it to the booster.
    """

    objective: Any
    metric: Any
    backend: str = "lightgbm"
    rounds: int = 100
    early_stopping: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    threads: int | None = None


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
    if isinstance(given, str) and given.strip().startswith(_NATIVE):
        return Native(given.strip().removeprefix(_NATIVE))
    return objective(given)


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
    """
    if plan.backend not in _TRAIN:
        raise ConfigError(f"backend must be one of {', '.join(_TRAIN)}; got {plan.backend!r}")
    if plan.rounds < 1:
        raise ParameterError(f"rounds must be at least 1, got {plan.rounds}")
    if plan.early_stopping is not None and not valid:
        raise ConfigError("early stopping needs a validation set to watch")
    target = ranking_objective(plan.objective)
    watched = _metric_list(plan.metric)
    monitor = Monitor(
        watched,
        [str(item) for item in watched],
        watched[0].higher_is_better,
        plan.early_stopping,
        on_round,
    )
    job = Job(
        train=data,
        valid=valid or {},
        objective=target.name if isinstance(target, Native) else target,
        params=_params(plan, target),
        rounds=plan.rounds,
        monitor=monitor,
    )
    fitted = _TRAIN[plan.backend](job)
    if fitted.n_rounds == 0:
        warnings.warn(f"{target}: no tree was grown", NoProgressWarning, stacklevel=2)
    best = monitor.best_round if monitor.best_round >= 0 else fitted.n_rounds - 1
    return Trained(fitted, monitor.history, best)


def _params(plan: Plan, target: Objective | Native) -> dict[str, Any]:
    needed = {} if isinstance(target, Native) else dict(booster_params(target, plan.backend))
    threads = {} if plan.threads is None else {_THREADS[plan.backend]: plan.threads}
    return {**needed, "seed": plan.seed, **threads, **plan.params}


_THREADS = {"lightgbm": "num_threads", "xgboost": "nthread"}


def _metric_list(given: Any) -> MetricList:
    made = metric(given)
    return MetricList([made]) if isinstance(made, Metric) else made
