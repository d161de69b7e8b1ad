"""Scores in order: sorted at most once, however many metrics look at them."""

from collections.abc import Callable
from typing import final

import numpy as np

from gbmrank.data import Groups
from gbmrank.errors import DataError
from gbmrank.kernels import compiler, pool
from gbmrank.kernels.layout import Span
from gbmrank.kernels.rankings import Ranking
from gbmrank.types import FloatArray

__all__ = ["Ranked", "run_queries"]

_DEEPEST_SELECTION = 100  # beyond this cut-off a sort is as fast as keeping the best


@final
class Ranked:
    """Scores of a data set and, once somebody asks, their order within each query.

    Make one per score vector and hand it to every metric. A metric with a cut-off needs
    only the best few items, which are found without sorting the rest; as soon as a second
    depth is asked for, everything is sorted, once. :meth:`prepare` says in advance how deep
    it will go.

    Parameters
    ----------
    scores : array of shape (n_rows,)
        Finite, in query order; not changed.
    groups : Groups
        Query boundaries.

    Examples
    --------
    >>> ranked = Ranked(np.array([1.0, 3.0, 3.0]), Groups.single(3))
    >>> ranking = ranked.ranking()
    >>> ranking.order, ranking.tied
    (array([1, 2, 0], dtype=int32), array([0, 1, 0], dtype=uint8))
    """

    __slots__ = ("_depth", "_ranking", "_rounded", "groups", "scores")

    def __init__(self, scores: FloatArray, groups: Groups) -> None:
        if len(scores) != groups.n_rows:
            raise DataError(
                f"there are {len(scores)} scores for {groups.n_rows} rows; give one score per row"
            )
        # The compiler has another type for arrays that cannot be written to.
        self.scores = scores if scores.flags.writeable else scores.copy()
        self.groups = groups
        self._ranking: Ranking | None = None
        self._depth = 0
        self._rounded: Ranked | None = None

    def prepare(self, *depths: int | None) -> "Ranked":
        """Rank as deep as the deepest of several metrics needs, and return self.

        Parameters
        ----------
        *depths : int or None
            The ``depth`` of each bound metric; ``None`` is every rank.
        """
        self.ranking(None if None in depths else max(filter(None, depths), default=1))
        return self

    def ranking(self, depth: int | None = None) -> Ranking:
        """Return the order and the ties of at least the first ``depth`` ranks."""
        wanted = self._rounded_depth(depth)
        if self._ranking is None or self._depth < wanted:
            if self._ranking is not None:
                wanted = self._whole_depth
            self._ranking, self._depth = self._sorted(wanted), wanted
        return self._ranking

    def settled(self, ties: str, values: FloatArray, depth: int | None = None) -> Ranking:
        """Return an order in which no items tie any more.

        Parameters
        ----------
        ties : {"index", "best", "worst"}
            Tied items in the order of their rows, or by decreasing or increasing value.
        values : array of shape (n_rows,)
            What items are worth to the measure.
        depth : int or None
            Last rank that has to be right.
        """
        ranking = self.ranking(depth)
        untied = Ranking(ranking.offsets, ranking.order, np.zeros_like(ranking.tied))
        if ties == "index":
            return untied
        untied = untied._replace(order=np.empty_like(ranking.order))
        usefulness = values if ties == "best" else -values
        kernels = compiler.load("order")
        run_queries(
            lambda span: kernels.settle(ranking, usefulness, self._depth, span, untied),
            self.groups,
        )
        return untied

    def rounded(self) -> "Ranked":
        """Return the ranking of the scores rounded to float32, as XGBoost sees them."""
        if self._rounded is None:
            with np.errstate(over="ignore"):
                single = self.scores.astype(np.float32).astype(np.float64)
            largest = float(np.finfo(np.float32).max)
            self._rounded = Ranked(np.clip(single, -2.0 * largest, 2.0 * largest), self.groups)
        return self._rounded

    @property
    def _whole_depth(self) -> int:
        return max(self.groups.n_rows, 1)

    def _rounded_depth(self, depth: int | None) -> int:
        return self._whole_depth if depth is None or depth > _DEEPEST_SELECTION else depth

    def _sorted(self, depth: int) -> Ranking:
        kernels = compiler.load("order")
        n_rows = self.groups.n_rows
        ranking = Ranking(
            self.groups.offsets, np.empty(n_rows, np.int32), np.empty(n_rows, np.uint8)
        )
        run_queries(lambda span: kernels.rank_best(self.scores, depth, span, ranking), self.groups)
        return ranking


def run_queries(task: Callable[[Span], None], groups: Groups) -> None:
    """Run a kernel over all queries in threads; each query is computed by one thread."""
    sizes = groups.sizes
    longest = int(sizes.max(initial=0))
    chunks = pool.cut_into_chunks(10.0 * sizes.astype(np.float64) + 50.0)
    pool.run_chunks(lambda first, last: task(Span(first, last, longest)), chunks)
