"""Learn from clicks: position bias, simulated clicks, and the value of a ranking from logs."""

from gbmrank.clicks.bias import PositionBias
from gbmrank.clicks.estimation import estimate_bias
from gbmrank.clicks.simulation import ClickLog, simulate_clicks

__all__ = ["ClickLog", "PositionBias", "estimate_bias", "simulate_clicks"]
