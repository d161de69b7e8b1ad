"""Objectives and metrics for boosted rankers, with the theory attached."""

from gbmrank.api import (
    BoosterParams,
    Metric,
    MetricList,
    Objective,
    booster_params,
    metric,
    metrics_callback,
    mix,
    objective,
    query_folds,
)
from gbmrank.catalogue import (
    list_losses,
    list_metrics,
    list_objectives,
    list_utilities,
    register_loss,
    register_metric,
    register_objective,
    register_utility,
)
from gbmrank.data import Groups, RankingData
from gbmrank.errors import *  # noqa: F403  (the error tree is public as a whole)
from gbmrank.errors import __all__ as _errors
from gbmrank.estimators import PairRanker
from gbmrank.kernels.pool import get_num_threads, set_num_threads
from gbmrank.preferences import PreferenceGraphs

__all__ = [
    "BoosterParams",
    "Groups",
    "Metric",
    "MetricList",
    "Objective",
    "PairRanker",
    "PreferenceGraphs",
    "RankingData",
    "booster_params",
    "get_num_threads",
    "list_losses",
    "list_metrics",
    "list_objectives",
    "list_utilities",
    "metric",
    "metrics_callback",
    "mix",
    "objective",
    "query_folds",
    "register_loss",
    "register_metric",
    "register_objective",
    "register_utility",
    "set_num_threads",
]
__all__ += list(_errors)
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import ``gbmrank.theory`` when it is first used; scipy comes with its solvers."""
    if name != "theory":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return importlib.import_module("gbmrank.theory")
