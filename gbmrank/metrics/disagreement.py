"""Pairwise disagreement: the weight of preferences that a ranking contradicts."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from gbmrank.data import Groups, RankingData
from gbmrank.kernels import compiler
from gbmrank.kernels.rankings import Levels
from gbmrank.metrics.base import AbstractBoundMetric, AbstractMetric, BoundKernel
from gbmrank.ranking import query_sums
from gbmrank.types import FloatArray

__all__ = ["PairwiseDisagreement"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairwiseDisagreement(AbstractMetric):
    r"""Weight of the preferences that the order of the scores contradicts; smaller is better.

    .. math:: \sum_{i \ne j} A_{ij}\, \mathbf 1[\mathrm{rank}_i > \mathrm{rank}_j],
              \qquad A_{ij} = (y_i - y_j)_+

    Ties: a tied pair counts one half, which is the mean over all orders. ``"best"`` is the
    smallest value. Normalised, it is undefined where all labels are alike. The cost is
    :math:`O(n \log n)`.

    Parameters
    ----------
    normalize : bool, default=True
        Divide by the total weight, so that 0 is a perfect order and 1 a reversed one.

    References
    ----------
    Duchi, Mackey and Jordan, "On the consistency of ranking algorithms", ICML 2010, eq. 7,
    with ties counted one half instead of by item number.

    Examples
    --------
    >>> from gbmrank.metrics import Ranked
    >>> data = RankingData.from_arrays([2, 0, 1])
    >>> PairwiseDisagreement().bind(data).score(Ranked(np.array([3.0, 2.0, 1.0]), data.groups))
    0.25
    """

    normalize: bool = True

    name: ClassVar[str] = "pairwise_disagreement"
    aliases: ClassVar[tuple[str, ...]] = ("disagreement",)
    formula: ClassVar[str] = "sum of (y_i - y_j)_+ over pairs with i ranked after j / total"
    reference: ClassVar[str] = "Duchi et al. 2010, eq. 7"
    higher_is_better: ClassVar[bool] = False

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Number the different labels of each query and sum all their differences."""
        levels, total = _label_levels(data)
        if self.normalize:
            levels = levels._replace(scale=1.0 / np.where(total > 0, total, np.nan))
        return BoundKernel(self, data, compiler.load("disagreement").per_query, levels)


def _label_levels(data: RankingData) -> tuple[Levels, FloatArray]:
    """Return labels with their levels, and the sum of all differences of each query."""
    groups = data.groups
    queries = groups.spread(np.arange(groups.n_queries))
    order = np.lexsort((data.labels, queries))
    ordered = data.labels[order] - groups.spread(_smallest(data.labels, groups))
    place = np.arange(groups.n_rows) - groups.spread(groups.offsets[:-1])
    higher = np.zeros(groups.n_rows, dtype=np.int64)
    higher[1:] = (ordered[1:] > ordered[:-1]) & (place[1:] > 0)
    steps = np.cumsum(higher)
    steps -= groups.spread(steps[groups.offsets[:-1]])
    values, levels = np.empty(groups.n_rows), np.empty(groups.n_rows, dtype=np.int32)
    values[order], levels[order] = ordered, steps
    total = query_sums((2.0 * place + 1.0 - groups.spread(groups.sizes)) * ordered, groups)
    n_levels = steps[groups.offsets[1:] - 1] + 1
    return Levels(values, levels, n_levels, np.ones(groups.n_queries)), total


def _smallest(labels: FloatArray, groups: Groups) -> FloatArray:
    if not groups.n_queries:
        return np.zeros(0)
    return np.minimum.reduceat(labels, groups.offsets[:-1])
