"""Metrics: one value per query, then one mean."""

from gbmrank.metrics.base import AbstractBoundMetric, AbstractMetric
from gbmrank.metrics.positional import NDCG

__all__ = ["BUILTIN_METRICS", "NDCG", "AbstractBoundMetric", "AbstractMetric"]

BUILTIN_METRICS: tuple[type[AbstractMetric], ...] = (NDCG,)
