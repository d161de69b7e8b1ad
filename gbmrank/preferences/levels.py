"""Levels that stand for all pairs of a query, without listing them."""

from typing import Any

import numpy as np

from gbmrank.columns import check_digits
from gbmrank.data import Groups
from gbmrank.errors import DataError, LimitError
from gbmrank.preferences.edges import Edges, merged
from gbmrank.types import ArrayLike, FloatArray, IntArray

__all__ = [
    "MOST_EDGES",
    "count_pairs",
    "level_degrees",
    "pairs_of_levels",
    "rank_table",
    "ranked_levels",
]

MOST_EDGES = 200_000_000  # 4.8 GB


def count_pairs(levels: FloatArray, groups: Groups) -> int:
    """Return the number of pairs of different level."""
    _, _, first, last = _blocks(levels, groups)
    sizes, same = groups.sizes.astype(np.float64), (last - first).astype(np.float64)
    return int((sizes * sizes).sum() - (same * same).sum()) // 2


def level_degrees(levels: FloatArray, groups: Groups, by_difference: bool) -> FloatArray:
    """Return net degrees in query order: ``n y - sum of y``, or worse less better rows."""
    if not groups.n_queries:
        return np.zeros(0)
    if by_difference:
        # Centred first: n y - sum of y would lose digits of labels far from zero.
        means = np.add.reduceat(levels, groups.offsets[:-1]) / groups.sizes
        centred = levels - groups.spread(means)
        sums = groups.spread(np.add.reduceat(centred, groups.offsets[:-1]))
        return np.asarray(groups.spread(groups.sizes) * centred - sums, np.float64)
    order, queries, first, last = _blocks(levels, groups)
    sizes = last - first
    worse = np.repeat(first, sizes) - groups.offsets[queries]
    better = groups.offsets[queries + 1] - np.repeat(last, sizes)
    degrees = np.empty(len(order))
    degrees[order] = worse - better
    return degrees


def pairs_of_levels(levels: FloatArray, groups: Groups, by_difference: bool) -> Edges:
    """Return an edge for every pair of different level, of weight 1 or of their difference.

    Raises
    ------
    LimitError
        When there are more pairs than a stated cap.
    """
    pairs = float((groups.sizes * (groups.sizes - 1.0) / 2.0).sum())
    if pairs > MOST_EDGES:
        raise LimitError(
            f"listing all pairs needs up to {pairs:.3g} edges, the cap is {MOST_EDGES:,}; use "
            "objective('linear') or pairwise_disagreement, which need no list, or sample pairs "
            "with from_edges"
        )
    winners, losers = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for begin, end in zip(groups.offsets[:-1].tolist(), groups.offsets[1:].tolist(), strict=True):
        own = levels[begin:end]
        better, worse = np.nonzero(own[:, None] > own[None, :])
        winners.append(better + begin)
        losers.append(worse + begin)
    winner, loser = np.concatenate(winners), np.concatenate(losers)
    weight = levels[winner] - levels[loser] if by_difference else np.ones(len(winner))
    return merged(winner, loser, weight, groups)


def rank_table(ranks: ArrayLike) -> FloatArray:
    """Read the ranks of one or more judges, shape (n_rows, n_judges); NaN where there is none."""
    try:
        given: Any = np.ma.asanyarray(ranks)
        if given.dtype.kind in "cmM":
            raise TypeError(f"{given.dtype} is not a real number")
        table = np.ma.filled(given.astype(np.float64), np.nan)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            "ranks must be numbers, one row per item and one column per judge (NaN where a judge "
            f"did not rank a row): {error}"
        ) from error
    if table.ndim not in (1, 2):
        raise DataError(
            "ranks are one row per item and one column per judge, got an array of shape "
            f"{table.shape}"
        )
    check_digits(given.compressed(), "ranks")
    return table[:, None] if table.ndim == 1 else table


def ranked_levels(ranks: FloatArray, groups: Groups, last: bool) -> FloatArray:
    """Turn ranks of one judge into levels; NaN stays unless it means the last place."""
    bad = np.flatnonzero(np.isinf(ranks) | (ranks < 1))
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f"ranks count from 1 (the best), got {ranks[row]} in query {groups.query_of(row)!r}; "
            "for scores where larger is better use from_labels"
        )
    if last and groups.n_queries:
        worst = np.fmax.reduceat(np.nan_to_num(ranks, nan=0.0), groups.offsets[:-1])
        ranks = np.where(np.isnan(ranks), groups.spread(worst) + 1.0, ranks)
    levels = -ranks
    levels.flags.writeable = False
    return levels


def _blocks(levels: FloatArray, groups: Groups) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return rows by query and level, the query of each, and where blocks of equals begin and end.

    Lower levels come first.
    """
    queries = groups.spread(np.arange(groups.n_queries))
    order = np.lexsort((levels, queries))
    sorted_levels, sorted_queries = levels[order], queries[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (sorted_levels[1:] != sorted_levels[:-1]) | (
        sorted_queries[1:] != sorted_queries[:-1]
    )
    first = np.flatnonzero(new)
    return order, sorted_queries, first, np.append(first[1:], len(order))
