"""Pairs of rows of a user, sampled at random, the better rated one preferred."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from gbmrank.api import metric
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.data.queries import Groups
from gbmrank.errors import DataError
from gbmrank.types import FloatArray, IntArray

__all__ = ["Pairs", "sample_pairs"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Sampled pairs of rows.

    Parameters
    ----------
    winner, loser : arrays of shape (n_pairs,)
        Rows.
    weight : array of shape (n_pairs,)
        Difference of the ratings, above 0.
    sizes : array of shape (n_users,)
        Rows per user.
    """

    winner: IntArray
    loser: IntArray
    weight: FloatArray
    sizes: IntArray

    def __len__(self) -> int:
        return len(self.weight)

    def first(self, n: int) -> "Pairs":
        """Return the first n pairs."""
        return Pairs(self.winner[:n], self.loser[:n], self.weight[:n], self.sizes)

    def by_user(self) -> PreferenceGraphs:
        """Return one graph per user, over all its rows."""
        return PreferenceGraphs.from_edges(self.winner, self.loser, self.weight, group=self.sizes)

    def by_pair(self) -> tuple[IntArray, PreferenceGraphs]:
        """Return one graph of two rows per pair, and which rows these are."""
        rows = np.column_stack([self.winner, self.loser]).ravel()
        first = np.arange(0, 2 * len(self), 2)
        sizes = np.full(len(self), 2)
        return rows, PreferenceGraphs.from_edges(first, first + 1, self.weight, group=sizes)

    def judge(self) -> Callable[[FloatArray], float]:
        """Return a function of the scores of all rows: the mean of loss (7) over the pairs.

        It is the mean weight of pairs in the wrong order. A tie counts in full where the
        better row comes first in the data, and not at all otherwise.
        """
        measure = metric(
            "pairwise_disagreement(normalize=false, ties=duchi)", preferences=self.by_user()
        )

        def mean_loss(scores: FloatArray) -> float:
            return float(measure.per_query(None, scores).sum()) / len(self)

        return mean_loss


def sample_pairs(rng: np.random.Generator, user: IntArray, rating: FloatArray, n: int) -> Pairs:
    """Draw pairs with replacement: a user, then two of its rows; equal ratings are drawn again.

    Every user is as likely as every other, and so are the pairs of a user. A pair of equal
    ratings says nothing, so that leaving it out does not favour any movie.

    Parameters
    ----------
    rng : numpy.random.Generator
        Of the draws.
    user, rating : arrays of shape (n_rows,)
        Rows of a user are together.
    n : int
        Number of pairs.

    Returns
    -------
    Pairs
        In the order they were drawn.
    """
    groups = Groups.from_qid(user, len(user))
    sizes, starts = groups.sizes, groups.offsets[:-1]
    differ = np.maximum.reduceat(rating, starts) > np.minimum.reduceat(rating, starts)
    users = np.flatnonzero(differ)
    if not len(users):
        raise DataError("no user gave two different ratings, so there is no pair to draw")
    drawn: list[IntArray] = []
    while sum(map(len, drawn)) < n:
        q = rng.choice(users, n)
        two = starts[q, None] + (rng.random((n, 2)) * sizes[q, None]).astype(np.int64)
        drawn.append(two[rating[two[:, 0]] != rating[two[:, 1]]])
    pairs = np.concatenate(drawn)[:n]
    swap = rating[pairs[:, 0]] < rating[pairs[:, 1]]
    pairs[swap] = pairs[swap, ::-1]
    winner, loser = pairs.T.copy()
    return Pairs(winner, loser, rating[winner] - rating[loser], sizes)
