"""Positional metrics: a discount of the rank times a utility of the item there."""

import itertools
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from gbmrank.data import RankingData
from gbmrank.metrics.base import AbstractBoundMetric, AbstractMetric
from gbmrank.ranking import Gain, check_gain, discounts
from gbmrank.types import FloatArray
from gbmrank.utilities import NdcgUtility

__all__ = ["NDCG"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NDCG(AbstractMetric):
    """Interim."""

    k: int | None = None
    gain: Gain = "exp2"

    name: ClassVar[str] = "ndcg"

    def __post_init__(self) -> None:
        super(NDCG, self).__post_init__()
        check_gain(self.gain)

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        return _BoundNDCG(self, data)


class _BoundNDCG(AbstractBoundMetric):
    __slots__ = ("data", "k", "u")

    def __init__(self, metric: NDCG, data: RankingData) -> None:
        super().__init__(metric, data)
        self.data, self.k = data, metric.k
        self.u = NdcgUtility(gain=metric.gain, k=metric.k).values(data)

    def per_query(self, scores: FloatArray) -> FloatArray:
        out = []
        off = self.data.groups.offsets
        for a, b in itertools.pairwise(off):
            s, u = scores[a:b], self.u[a:b]
            phi = discounts(b - a, self.k)
            _, inv = np.unique(-s, return_inverse=True)
            size = np.bincount(inv)
            end = np.cumsum(size)
            c = np.concatenate([[0], np.cumsum(phi)])
            mean_phi = (c[end] - c[end - size]) / size
            out.append(float(np.dot(mean_phi[inv], u)))
        return np.array(out)
