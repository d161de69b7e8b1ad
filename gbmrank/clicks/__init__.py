"""Learning from clicks: position bias, simulated clicks, and off-policy evaluation."""

from gbmrank.clicks.estimation import estimate_bias
from gbmrank.clicks.simulation import ClickLog, simulate_clicks
from gbmrank.clicks.value import OfflineValue, offline_value
from gbmrank.data.position_bias import PositionBias

__all__ = [
    "ClickLog",
    "OfflineValue",
    "PositionBias",
    "estimate_bias",
    "offline_value",
    "simulate_clicks",
]
