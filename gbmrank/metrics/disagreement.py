"""Pairwise disagreement: the weight of preferences that a ranking contradicts."""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, final

import numpy as np

from gbmrank.data.preferences import PreferenceGraphs, preferences_for
from gbmrank.data.queries import RankingData
from gbmrank.data.query_order import query_sums
from gbmrank.errors import MetricError
from gbmrank.kernels.jit import compiler
from gbmrank.kernels.layout import EdgeWeights, Levels
from gbmrank.metrics.base import (
    AbstractBoundMetric,
    AbstractMetric,
    BoundKernel,
    Ranked,
    check_same_rows,
    run_queries,
)
from gbmrank.types import FloatArray

# Share of a tied edge's weight that counts when the preferred row is the first, or the second.
_TIED = {"mean": (0.5, 0.5), "index": (0.0, 1.0), "duchi": (1.0, 0.0)}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairwiseDisagreement(AbstractMetric):
    r"""Weight of the preferences that the order of the scores contradicts; smaller is better.

    .. math:: \sum_{i \ne j} A_{ij}\, \mathbf 1[\mathrm{rank}_i > \mathrm{rank}_j],
              \qquad A_{ij} = (y_i - y_j)_+ \text{ or that of preferences}

    Ties: a tied pair counts one half, which is the mean over all orderings of tied items.
    ``"best"`` is the smallest value, for labels only. ``"duchi"`` counts the whole weight of a
    tied pair if the preferred row comes first in the data and nothing otherwise, as in eq. 7 of
    the paper. If normalised, it is undefined where all labels are equal or there are no
    preferences. The cost is :math:`O(n \log n)`, or linear in the number of edges.

    Parameters
    ----------
    normalize : bool, default=True
        Divide by the total weight, so that 0 is a perfect order and 1 a reversed one.
    preferences : PreferenceGraphs or None, default=None
        Preferences between the evaluated rows, instead of labels; not part of the text form.

    References
    ----------
    Duchi, Mackey and Jordan, "On the consistency of ranking algorithms", ICML 2010, eq. 7,
    with ties counted one half instead of by item number.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.metric("pairwise_disagreement").score([2, 0, 1], [3.0, 2.0, 1.0])
    0.25
    """

    normalize: bool = True
    preferences: PreferenceGraphs | None = field(default=None, metadata={"data": True})

    name: ClassVar[str] = "pairwise_disagreement"
    aliases: ClassVar[tuple[str, ...]] = ("disagreement",)
    formula: ClassVar[str] = "sum of (y_i - y_j)_+ over pairs with i ranked after j / total"
    reference: ClassVar[str] = "Duchi et al. 2010, eq. 7"
    value_range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    higher_is_better: ClassVar[bool] = False
    no_utility: ClassVar[str] = (
        "preferences have no utility per item; use the linear template (right under low noise)"
    )
    tie_rules: ClassVar[tuple[str, ...]] = ("mean", "worst", "best", "index", "duchi")

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Number the different labels of each query, or list edges, and sum all weights."""
        graphs = preferences_for(self.preferences, data)
        if graphs is None:
            graphs = PreferenceGraphs(data.groups, None, data.labels)
        if graphs.levels is None or not graphs.by_difference or self.ties == "duchi":
            return _BoundEdges(self, data, graphs)
        levels, total = _label_levels(replace(data, labels=graphs.levels))
        if self.normalize:
            levels = levels._replace(divisor=np.where(total > 0, total, np.nan))
        return BoundKernel(
            self, data, compiler.load("ranking.measures").disagreement_per_query, levels
        )


@final
class _BoundEdges(AbstractBoundMetric):
    """Pairwise disagreement over a list of edges."""

    __slots__ = ("dtype", "edges")

    def __init__(
        self, metric: PairwiseDisagreement, data: RankingData, graphs: PreferenceGraphs
    ) -> None:
        super().__init__(metric, data)
        if metric.ties not in _TIED:
            raise MetricError(
                f"pairwise_disagreement: ties={metric.ties} is the search for the {metric.ties} "
                "order of a graph, which no short way finds; use ties=mean, index or duchi"
            )
        edges, queries = graphs.to_edges(), graphs.groups.n_queries
        divisor = np.ones(queries)
        if metric.normalize:
            owner = np.repeat(np.arange(queries), np.diff(edges.offsets))
            total = np.bincount(owner, edges.weight, queries)
            divisor = np.where(total > 0, total, np.nan)
        columns = np.array(edges.offsets), np.array(edges.winner), np.array(edges.loser)
        self.edges = EdgeWeights(*columns, np.array(edges.weight), divisor, *_TIED[metric.ties])
        self.dtype = metric.dtype

    def per_query(self, ranked: Ranked) -> FloatArray:
        check_same_rows(self.groups, ranked.groups)
        scores = (ranked.rounded() if self.dtype == "float32" else ranked).scores
        values = np.empty(self.groups.n_queries)
        kernel = compiler.load("ranking.measures").edge_disagreement_per_query
        run_queries(lambda span: kernel(scores, self.edges, span, values), self.groups)
        return values


def _label_levels(data: RankingData) -> tuple[Levels, FloatArray]:
    """Return labels with their levels, and the sum of all differences of each query."""
    groups = data.groups
    queries = groups.spread(np.arange(groups.n_queries))
    order = np.lexsort((data.labels, queries))
    ordered = data.labels[order] - groups.spread(
        np.minimum.reduceat(data.labels, groups.offsets[:-1])
    )
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
