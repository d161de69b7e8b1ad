"""MovieLens ratings, features that use no held-out rating, and pairs sampled for training."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import numpy.typing as npt

from gbmrank import Groups, PreferenceGraphs, metric
from gbmrank.errors import DataError
from gbmrank.types import FloatArray, IntArray
from studies.files import find_files

SOURCE = (
    "MovieLens 100k: u.data and u.item, from https://grouplens.org/datasets/movielens/100k/, in "
    "the folder or in a folder below it"
)
_GENRES = 19
FEATURES = (
    "age",
    *(f"genre_{number}" for number in range(_GENRES)),
    "own_mean_of_genres",
    "mean_of_movie",
    "similar_users",
    "dissimilar_users",
)
"""Names of the columns that :func:`features` returns."""

_THIS_YEAR = 1998.0  # the ratings end in April 1998
_SHRINK = 5.0  # ratings at the mean that a mean is given to begin with
_SHRINK_CORRELATION = 10.0  # movies in common at which a correlation counts half

Mask = npt.NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """Ratings by users, sorted by user, then by movie.

    Parameters
    ----------
    user, item : arrays of shape (n_ratings,)
        Numbers from 0.
    rating : array of shape (n_ratings,)
        1 to 5.
    genres : array of shape (n_items, 19)
        0 or 1.
    year : array of shape (n_items,)
        Of release; NaN where unknown.
    """

    user: IntArray
    item: IntArray
    rating: FloatArray
    genres: FloatArray
    year: FloatArray


def read_movielens(folder: Path | None) -> Ratings:
    """Read ``u.data`` and ``u.item``, plain or compressed."""
    paths = find_files(folder, ("u.data", "u.item"), SOURCE)
    movies = np.loadtxt(
        paths["u.item"], dtype=str, delimiter="|", encoding="latin-1", comments=None, ndmin=2
    )
    movies = movies[np.argsort(movies[:, 0].astype(np.int64))]
    table = np.loadtxt(paths["u.data"], dtype=np.int64, usecols=(0, 1, 2), ndmin=2)
    place = {int(number): at for at, number in enumerate(movies[:, 0])}
    user = np.unique(table[:, 0], return_inverse=True)[1]
    item = np.array([place[number] for number in table[:, 1].tolist()])
    order = np.lexsort((item, user))
    dates = [date.rsplit("-", 1)[-1] for date in movies[:, 2].tolist()]
    return Ratings(
        user=user[order].astype(np.int64),
        item=item[order],
        rating=table[order, 2].astype(np.float64),
        genres=movies[:, 5 : 5 + _GENRES].astype(np.float64),
        year=np.array([float(year) if year.isdecimal() else np.nan for year in dates]),
    )


def simulate_ratings(rng: np.random.Generator, n_users: int = 60, n_items: int = 80) -> Ratings:
    """Draw ratings of a small made-up cinema: tastes by genre, good and bad movies, noise."""
    genres = (rng.random((n_items, _GENRES)) < 0.12).astype(np.float64)
    genres[np.arange(n_items), rng.integers(_GENRES, size=n_items)] = 1.0
    quality = rng.normal(size=n_items)
    taste = rng.normal(size=(n_users, _GENRES)) @ genres.T / np.sqrt(genres.sum(axis=1))
    mood = rng.normal(scale=0.4, size=(n_users, 1))
    appeal = 3.5 + mood + 0.7 * quality + 0.5 * taste + rng.normal(scale=0.6, size=taste.shape)
    seen = rng.random(appeal.shape) < 0.5
    user, item = np.nonzero(seen)
    return Ratings(
        user=user.astype(np.int64),
        item=item.astype(np.int64),
        rating=np.clip(np.rint(appeal[user, item]), 1.0, 5.0),
        genres=genres,
        year=rng.integers(1930, 1999, size=n_items).astype(np.float64),
    )


def features(ratings: Ratings, reference: Mask, rows: Mask) -> FloatArray:
    r"""Return the features of some ratings, computed from other ones alone.

    With :math:`c_{vi}` the rating of movie i by user v less that user's mean, all over the
    reference: age and genres of the movie; mean of c over the user's other movies of its
    genres; mean rating of the movie; mean of :math:`c_{vi}` over the users v who are similar to
    this one, weighted by the correlation of their ratings, and over those who are dissimilar.
    Means are shrunk towards the mean of all by five ratings, correlations by the number of
    common movies.

    Parameters
    ----------
    ratings : Ratings
        All of them.
    reference, rows : arrays of bool of shape (n_ratings,)
        What may be looked at, and what features are wanted of; no rating may be in both.

    Returns
    -------
    array of shape (number of rows, 24)
        Columns as in ``FEATURES``.
    """
    if np.any(reference & rows):
        raise ValueError("a rating must not be a part of its own features")
    shape = int(ratings.user.max()) + 1, len(ratings.year)
    seen, given = np.zeros(shape), np.zeros(shape)
    at = ratings.user[reference], ratings.item[reference]
    seen[at], given[at] = 1.0, ratings.rating[reference]
    overall = ratings.rating[reference].mean()
    own_mean = _shrunk(given.sum(axis=1), seen.sum(axis=1), overall)
    movie_mean = _shrunk(given.sum(axis=0), seen.sum(axis=0), overall)
    centred = (given - own_mean[:, None]) * seen
    by_genre = (centred @ ratings.genres) / (seen @ ratings.genres + _SHRINK)
    u, i = ratings.user[rows], ratings.item[rows]
    genres = ratings.genres[i]
    own = (by_genre[u] * genres).sum(axis=1) / np.maximum(genres.sum(axis=1), 1.0)
    alike = _correlations(centred, seen)
    similar, dissimilar = (
        (weight @ centred)[u, i] / (weight @ seen + 1.0)[u, i]
        for weight in (np.maximum(alike, 0.0), np.maximum(-alike, 0.0))
    )
    age = _THIS_YEAR - ratings.year[i]
    return np.column_stack([age, genres, own, movie_mean[i], similar, dissimilar])


def _shrunk(total: FloatArray, count: FloatArray, towards: float) -> FloatArray:
    return (total + _SHRINK * towards) / (count + _SHRINK)


def _correlations(centred: FloatArray, seen: FloatArray) -> FloatArray:
    """Return correlations of users over the movies they have in common, shrunk; 0 with itself."""
    common = seen @ seen.T
    squares = centred**2 @ seen.T
    norm = np.sqrt(squares * squares.T)
    value = (centred @ centred.T) / np.where(norm > 0.0, norm, 1.0)
    value *= common / (common + _SHRINK_CORRELATION)
    np.fill_diagonal(value, 0.0)
    return value


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
