"""One distributed training, as both boosters take it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from gbmrank.api import MetricList
from gbmrank.dask.loading import Loaded

__all__ = ["DaskJob"]


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DaskJob:
    """What to train.

    Parameters
    ----------
    train : Loaded
        What is learned from.
    valid : mapping of str to Loaded
        What is watched, in order; the last one decides about stopping.
    objective : Objective or str
        Ours, or the name of one of the booster's own.
    metrics : MetricList
        The first one decides about stopping.
    params : mapping
        Of the booster.
    rounds : int
        Most trees to grow.
    patience : int or None
        Rounds without improvement after which to stop.
    keep_best : bool
        Cut the model after its best round, where something was watched.
    """

    train: Loaded
    valid: Mapping[str, Loaded]
    objective: Any
    metrics: MetricList
    params: Mapping[str, Any]
    rounds: int
    patience: int | None
    keep_best: bool
