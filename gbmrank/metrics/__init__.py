"""Metrics: one value per query, exact under ties, then one mean."""

from gbmrank.metrics.base import AbstractBoundMetric, AbstractMetric, Ranked, mean_over_queries
from gbmrank.metrics.conventions import TOOLS, conventions
from gbmrank.metrics.disagreement import PairwiseDisagreement
from gbmrank.metrics.positional import (
    AUC,
    DCG,
    ERU,
    NDCG,
    RBP,
    WTA,
    AbstractPositional,
    Positional,
    Precision,
    Recall,
    Spearman,
)
from gbmrank.metrics.precision import ERR, MAP, MRR, PTop

__all__ = [
    "AUC",
    "BUILTIN_METRICS",
    "DCG",
    "ERR",
    "ERU",
    "MAP",
    "MRR",
    "NDCG",
    "RBP",
    "TOOLS",
    "WTA",
    "AbstractBoundMetric",
    "AbstractMetric",
    "AbstractPositional",
    "PTop",
    "PairwiseDisagreement",
    "Positional",
    "Precision",
    "Ranked",
    "Recall",
    "Spearman",
    "conventions",
    "mean_over_queries",
]

BUILTIN_METRICS: tuple[type[AbstractMetric], ...] = (
    DCG,
    NDCG,
    Precision,
    Recall,
    WTA,
    AUC,
    Spearman,
    ERU,
    RBP,
    ERR,
    MAP,
    MRR,
    PTop,
    PairwiseDisagreement,
    Positional,
)
