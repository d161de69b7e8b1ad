"""Diversity of a ranking by subtopics, and the overlap of two rankings."""

import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import as_floats, read_number
from gbmrank.data.queries import Groups, RankingData, check_finite
from gbmrank.data.query_order import mid_ranks
from gbmrank.errors import DataError, MetricError
from gbmrank.kernels.jit import compiler
from gbmrank.kernels.layout import TopicItems
from gbmrank.losses.gains import discounts
from gbmrank.metrics.base import (
    AbstractBoundMetric,
    AbstractMetric,
    BoundKernel,
    check_cutoff,
    run_queries,
)
from gbmrank.types import ArrayLike, FloatArray

_COLUMN = "subtopic "


def subtopic_columns(subtopics: ArrayLike) -> dict[str, FloatArray]:
    """Split a matrix of subtopics into the columns of a data set, one per subtopic.

    Examples
    --------
    >>> subtopic_columns([[1, 0], [1, 1]])
    {'subtopic 0': array([1., 1.]), 'subtopic 1': array([0., 1.])}
    """
    table = np.asarray(subtopics)
    if table.ndim != 2 or not table.shape[1] or not np.isin(table, (0, 1)).all():
        raise DataError(
            "subtopics must be a matrix of 0 and 1 with one row per item and one column per "
            f"subtopic; got shape {table.shape}"
        )
    return {f"{_COLUMN}{t}": table[:, t].astype(np.float64) for t in range(table.shape[1])}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaNDCG(AbstractMetric):
    r"""Novelty-biased NDCG: a subtopic is worth less each time it is repeated.

    .. math:: \frac{1}{Z} \sum_{r \le k} \frac{1}{\log_2(1 + r)}
              \sum_t J_{o_r t}\, (1 - \alpha)^{c_{r t}}

    where J is 1 if an item has a subtopic, and c counts the items above rank r that have subtopic
    t. Z is the value of the greedy list, as in ndeval, since the best list is hard to find. Pass
    J as ``subtopics=``, a matrix of 0 and 1 with one row per item; labels are ignored. Ties: the
    exact mean over all orderings of tied items. No item with a subtopic: undefined.

    Parameters
    ----------
    alpha : float, default=0.5
        Fraction of its value that a subtopic loses each time, from 0 to 1.
    k : int or None, default=None
        Last rank that counts; ``None`` counts every rank.
    ties : {"mean", "index"}, default="mean"
        How to treat items with equal scores.

    References
    ----------
    Clarke et al., "Novelty and diversity in information retrieval evaluation", SIGIR 2008.

    Examples
    --------
    >>> import gbmrank
    >>> topics = [[1, 0], [1, 0], [0, 1]]
    >>> metric = gbmrank.metric("alpha_ndcg@2")
    >>> metric.score([1, 1, 1], [3, 1, 2], subtopics=topics)
    1.0
    """

    alpha: float = 0.5
    k: int | None = None

    name: ClassVar[str] = "alpha_ndcg"
    formula: ClassVar[str] = "sum_{r<=k} sum_t J (1 - alpha)^(seen before) / log2(1 + r) / greedy"
    reference: ClassVar[str] = "Clarke et al. 2008"
    value_range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    no_utility: ClassVar[str] = (
        "what an item is worth depends on the subtopics above it, which labels do not tell"
    )
    tie_rules: ClassVar[tuple[str, ...]] = ("mean", "index")

    def check(self) -> None:
        """Check that alpha is between 0 and 1."""
        if not 0.0 <= self.alpha <= 1.0:
            raise MetricError(f"alpha_ndcg: alpha must be between 0 and 1, got {self.alpha!r}")

    def bind(self, data: RankingData) -> AbstractBoundMetric:
        """Find the greedy list of each query."""
        groups, topics = data.groups, _topics(data)
        longest = int(groups.sizes.max(initial=1))
        k = longest if self.k is None else min(int(self.k), longest)
        values, keeps = topics.sum(axis=1, dtype=np.float64), 1.0 - float(self.alpha)
        weights, ones = discounts(longest), np.ones(groups.n_queries)
        items = TopicItems(values, topics, keeps, weights, ones, k)
        kernels, greedy = compiler.load("ranking.sets"), np.empty(groups.n_queries)
        # An order of the rows of each query that depends only on their subtopics.
        queries = groups.spread(np.arange(groups.n_queries))
        rows = np.lexsort((*(-topics.T.astype(np.int64))[::-1], queries))
        arranged = items._replace(topics=topics[rows])
        run_queries(
            lambda span: kernels.greedy_gains(arranged, groups.offsets, span, greedy), groups
        )
        divisor = np.where(greedy > 0.0, greedy, np.nan)
        return BoundKernel(self, data, kernels.topic_gains, items._replace(divisor=divisor), self.k)


def _topics(data: RankingData) -> npt.NDArray[np.uint8]:
    """Return the matrix of subtopics, in query order."""
    names = [name for name in data.columns if name.startswith(_COLUMN)]
    if not names:
        raise DataError(
            "alpha_ndcg needs subtopics=, a matrix of 0 and 1 with one row per item and one column "
            "per subtopic; pass it to score or per_query, as a booster's data set cannot store it"
        )
    return np.column_stack([data.columns[name] for name in names]).astype(np.uint8)


def average_overlap(
    scores: ArrayLike,
    others: ArrayLike,
    *,
    k: int | None = None,
    group: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    per_query: bool = False,
) -> Any:
    r"""Return the average overlap of two rankings of the same items.

    .. math:: \mathrm{AO@}k = \frac1k \sum_{d \le k} \frac{|A_{1:d} \cap B_{1:d}|}{d}

    Ties: the exact mean over all orderings of tied items in either ranking.

    Parameters
    ----------
    scores, others : array-like of shape (n_rows,)
        Scores of the two rankings; larger is ranked first.
    k : int or None, default=None
        Cut-off, at most the number of items of the query, which is also the default.
    group, qid : array-like, optional
        Queries as sizes, or as one id per row; with neither, all rows are one query.
    per_query : bool, default=False
        Return one value per query instead of their mean.

    Returns
    -------
    float or array of shape (n_queries,)
        From 0 to 1, for equal rankings.

    References
    ----------
    Webber, Moffat and Zobel, "A similarity measure for indefinite rankings", ACM TOIS 28(4), 2010.

    Examples
    --------
    >>> import gbmrank
    >>> gbmrank.average_overlap([3, 2, 1], [3, 1, 2], k=2)
    0.75
    """
    check_cutoff("average_overlap", k)
    values = [
        float(shares[: min(k or len(shares), len(shares))].mean())
        for shares in _overlaps(scores, others, group, qid)
    ]
    return np.array(values) if per_query else float(np.mean(values))


def rbo(
    scores: ArrayLike,
    others: ArrayLike,
    *,
    p: float = 0.9,
    group: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    per_query: bool = False,
) -> Any:
    r"""Return the rank-biased overlap of two rankings of the same n items.

    .. math:: \mathrm{RBO} = p^n + \frac{1-p}{p} \sum_{d \le n} \frac{X_d}{d} p^d,
              \qquad X_d = |A_{1:d} \cap B_{1:d}|

    extrapolated beyond the last item, where the lists agree. Ties: the exact mean over all
    orderings of tied items in either ranking.

    Parameters
    ----------
    scores, others : array-like of shape (n_rows,)
        Scores of the two rankings; larger is ranked first.
    p : float, default=0.9
        Persistence, between 0 and 1: the probability that a reader continues to the next rank.
    group, qid : array-like, optional
        Queries as sizes, or as one id per row; with neither, all rows are one query.
    per_query : bool, default=False
        Return one value per query instead of their mean.

    Returns
    -------
    float or array of shape (n_queries,)
        From 0 to 1, for equal rankings.

    References
    ----------
    Webber, Moffat and Zobel, "A similarity measure for indefinite rankings", ACM TOIS 28(4),
    2010, eq. 30.

    Examples
    --------
    >>> import gbmrank
    >>> round(gbmrank.rbo([3, 2, 1], [3, 1, 2], p=0.5), 6)
    0.875
    """
    read_number(p, "rbo: p", math.ulp(0.0), 1.0 - 2.0**-53)
    values = []
    for shares in _overlaps(scores, others, group, qid):
        powers = np.power(p, np.arange(1.0, len(shares) + 1.0))
        values.append(float(powers[-1] + (1.0 - p) / p * (shares @ powers)))
    return np.array(values) if per_query else float(np.mean(values))


def _overlaps(
    scores: ArrayLike, others: ArrayLike, group: ArrayLike | None, qid: ArrayLike | None
) -> list[FloatArray]:
    """Return the expected share of common items among the first d, for each d of each query.

    An item of a block at the ranks a+1..a+m is among the first d with probability (d-a)/m, between
    0 and 1, whatever happens in the other ranking.
    """
    columns = [as_floats(each, "scores", exact=True) for each in (scores, others)]
    if len(columns[0]) != len(columns[1]) or not len(columns[0]):
        raise DataError(
            "two rankings of the same items need equally many scores, at least one; got "
            f"{len(columns[0])} and {len(columns[1])}"
        )
    groups = Groups.read(len(columns[0]), group, qid)
    places = []
    for column in columns:
        arranged = np.array(groups.arrange(column))
        check_finite(arranged, "score", groups)
        places.append((mid_ranks(arranged, groups), _block_sizes(arranged, groups)))
    return [_shares(places, *ends) for ends in itertools.pairwise(groups.offsets.tolist())]


def _block_sizes(values: FloatArray, groups: Groups) -> FloatArray:
    """Return how many items of its query tie with each item."""
    places = np.column_stack([groups.spread(np.arange(groups.n_queries)), values + 0.0])
    _, block, sizes = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    return sizes[block.ravel()].astype(np.float64)


def _shares(places: list[tuple[FloatArray, FloatArray]], begin: int, end: int) -> FloatArray:
    shares = np.empty(end - begin)
    for d in range(1, end - begin + 1):
        chances = np.ones(end - begin)
        for ranks, sizes in places:
            m = sizes[begin:end]
            above = ranks[begin:end] - (m + 1.0) / 2.0
            chances = chances * np.clip((d - above) / m, 0.0, 1.0)
        shares[d - 1] = np.sum(chances) / d
    return shares
