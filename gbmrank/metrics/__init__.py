"""Metrics: one value per query, exact under ties, then a mean over queries."""

from gbmrank.metrics.base import AbstractBoundMetric, AbstractMetric, Ranked, mean_over_queries
from gbmrank.metrics.conventions import TOOLS, conventions
from gbmrank.metrics.disagreement import PairwiseDisagreement
from gbmrank.metrics.diversity import AlphaNDCG, average_overlap, rbo, subtopic_columns
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
from gbmrank.metrics.precision import ERR, MAP, MRR, HitRate, PTop, RPrecision

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
    "AlphaNDCG",
    "HitRate",
    "PTop",
    "PairwiseDisagreement",
    "Positional",
    "Precision",
    "RPrecision",
    "Ranked",
    "Recall",
    "Spearman",
    "average_overlap",
    "conventions",
    "mean_over_queries",
    "rbo",
    "subtopic_columns",
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
    HitRate,
    RPrecision,
    PTop,
    AlphaNDCG,
    PairwiseDisagreement,
    Positional,
)
