"""The user API: objectives and metrics that work in every LightGBM and XGBoost API."""

from gbmrank.api.booster_parameters import BoosterParams, booster_params
from gbmrank.api.metrics import Metric, MetricList, metric, metrics_callback
from gbmrank.api.objectives import Objective, mix, objective
from gbmrank.api.splitters import QueryKFold, QueryTimeSplit, query_folds

__all__ = [
    "BoosterParams",
    "Metric",
    "MetricList",
    "Objective",
    "QueryKFold",
    "QueryTimeSplit",
    "booster_params",
    "metric",
    "metrics_callback",
    "mix",
    "objective",
    "query_folds",
]
