"""Objectives and metrics for boosted rankers, with calibration proofs."""

import importlib as _importlib
import sys as _sys
import types as _types
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from gbmrank.api import (
    BoosterParams,
    Metric,
    MetricList,
    Objective,
    QueryKFold,
    QueryTimeSplit,
    booster_params,
    metric,
    metrics_callback,
    mix,
    objective,
    query_folds,
)
from gbmrank.boosters.xgboost.dataset import data_iterator
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.data.queries import Groups, RankingData
from gbmrank.errors import *  # noqa: F403  (the error tree is public as a whole)
from gbmrank.errors import __all__ as _errors
from gbmrank.kernels.jit.threads import get_num_threads, set_num_threads
from gbmrank.metrics import average_overlap, rbo
from gbmrank.registry.catalogue import (
    list_losses,
    list_metrics,
    list_objectives,
    list_utilities,
    register_loss,
    register_metric,
    register_objective,
    register_utility,
)

if _TYPE_CHECKING:
    from gbmrank.estimators import (
        GBMRanker,
        GoalRanker,
        LowRankRanker,
        PairRanker,
        distil,
        load,
    )

__all__ = [
    "BoosterParams",
    "GBMRanker",
    "GoalRanker",
    "Groups",
    "LowRankRanker",
    "Metric",
    "MetricList",
    "Objective",
    "PairRanker",
    "PreferenceGraphs",
    "QueryKFold",
    "QueryTimeSplit",
    "RankingData",
    "average_overlap",
    "booster_params",
    "data_iterator",
    "get_num_threads",
    "list_losses",
    "list_metrics",
    "list_objectives",
    "list_utilities",
    "load",
    "metric",
    "metrics_callback",
    "mix",
    "objective",
    "query_folds",
    "rbo",
    "register_loss",
    "register_metric",
    "register_objective",
    "register_utility",
    "set_num_threads",
]
__all__ += list(_errors)
# Imported on first use, below.
__all__ += ["Comparison", "Explanation", "Front", "Ledger"]  # noqa: F405
__all__ += ["compare", "distil", "explain", "metric_ledger"]  # noqa: F405
__version__ = "0.3.0"


_LATER = {
    "clicks": "gbmrank.clicks",
    "Explanation": "gbmrank.explanations",
    "Ledger": "gbmrank.explanations",
    "explain": "gbmrank.explanations",
    "metric_ledger": "gbmrank.explanations",
    "plots": "gbmrank.metrics.plots",
    "theory": "gbmrank.theory",
    "testing": "gbmrank.testing",
    "dask": "gbmrank.dask",
    "DaskGBMRanker": "gbmrank.dask",
    "spark": "gbmrank.spark",
    "Front": "gbmrank.estimators",
    "GBMRanker": "gbmrank.estimators",
    "GoalRanker": "gbmrank.estimators",
    "LowRankRanker": "gbmrank.estimators",
    "PairRanker": "gbmrank.estimators",
    "distil": "gbmrank.estimators",
    "load": "gbmrank.estimators",
    "Comparison": "gbmrank.experiments.comparison",
    "compare": "gbmrank.experiments.comparison",
}


def __getattr__(name: str) -> _Any:
    """Import what training with an objective does not need when it is first used."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _importlib.import_module(_LATER[name])
    return module if module.__name__.endswith(f".{name}") else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_LATER})


class _Plots(_types.ModuleType):
    """``import gbmrank.plots``, too, works without loading the room that has the plots."""

    def __getattr__(self, name: str) -> _Any:
        return getattr(_importlib.import_module("gbmrank.metrics.plots"), name)


_sys.modules["gbmrank.plots"] = _Plots("gbmrank.plots")
