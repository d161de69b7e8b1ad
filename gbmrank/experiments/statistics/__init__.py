"""Statistics over queries: intervals, tests, corrections, and limits of what they show."""

from gbmrank.experiments.statistics.analysis import (
    Analysis,
    Comparison,
    Interval,
    MeasureAnalysis,
    Pair,
    Summary,
)
from gbmrank.experiments.statistics.estimates import Paired, Slice, analyse, paired, slices

__all__ = [
    "Analysis",
    "Comparison",
    "Interval",
    "MeasureAnalysis",
    "Pair",
    "Paired",
    "Slice",
    "Summary",
    "analyse",
    "paired",
    "slices",
]
