"""Metrics: one value per query, exact under ties, then one mean."""

from gbmrank.metrics.base import AbstractBoundMetric, AbstractMetric, mean_over_queries
from gbmrank.metrics.binary import AUC, WTA, Precision, Recall
from gbmrank.metrics.cascade import ERR
from gbmrank.metrics.conventions import TOOLS, conventions
from gbmrank.metrics.disagreement import PairwiseDisagreement
from gbmrank.metrics.graded import DCG, ERU, NDCG, Spearman
from gbmrank.metrics.positional import AbstractPositional, Positional
from gbmrank.metrics.precision import MAP, MRR, PTop
from gbmrank.metrics.ranked import Ranked

__all__ = [
    "AUC",
    "BUILTIN_METRICS",
    "DCG",
    "ERR",
    "ERU",
    "MAP",
    "MRR",
    "NDCG",
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
    ERR,
    MAP,
    MRR,
    PTop,
    PairwiseDisagreement,
    Positional,
)
