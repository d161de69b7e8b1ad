"""Learning from clicks: position bias, simulated clicks, and off-policy evaluation."""

from gbmrank.clicks.diagnosis import ClickDiagnosis, diagnose
from gbmrank.clicks.estimation import estimate_bias
from gbmrank.clicks.pooling import PooledLabels, pooled_labels
from gbmrank.clicks.simulation import ClickLog, simulate_clicks
from gbmrank.clicks.value import OfflineValue, offline_value
from gbmrank.data.position_bias import PositionBias

__all__ = [
    "ClickDiagnosis",
    "ClickLog",
    "OfflineValue",
    "PooledLabels",
    "PositionBias",
    "diagnose",
    "estimate_bias",
    "offline_value",
    "pooled_labels",
    "simulate_clicks",
]
