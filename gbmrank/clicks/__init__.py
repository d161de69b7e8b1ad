"""Learn from clicks: position bias, simulated clicks, and the value of a ranking from logs."""

from gbmrank.clicks.bias import PositionBias

__all__ = ["PositionBias"]
