"""Statistics over queries: intervals, tests, corrections, and what they do not establish."""

from gbmrank.experiments.statistics.analysis import (
    Analysis,
    Comparison,
    Interval,
    MeasureAnalysis,
    Pair,
    Summary,
)
from gbmrank.experiments.statistics.paired import Paired, paired
from gbmrank.experiments.statistics.slices import Slice, slices
from gbmrank.experiments.statistics.summaries import analyse

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
