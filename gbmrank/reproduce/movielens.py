"""MovieLens ratings, and features of a movie for a user that use no held-out rating."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import numpy.typing as npt

from gbmrank.data.readers import Limits
from gbmrank.data.readers.text import fail, quoted, read_blocks, to_number
from gbmrank.reproduce.files import find_files
from gbmrank.types import FloatArray, IntArray

__all__ = ["FEATURES", "NEEDS", "Ratings", "features", "read_movielens", "simulate_ratings"]

NEEDS = (
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
    paths = find_files(folder, ("u.data", "u.item"), NEEDS)
    movies: dict[int, tuple[float, list[float]]] = {}
    for number, cells in _rows(paths["u.item"], "|", 5 + _GENRES):
        date = cells[2].rsplit("-", 1)[-1]
        flags = [_whole(paths["u.item"], number, cell) for cell in cells[5:]]
        movies[_whole(paths["u.item"], number, cells[0])] = (
            float(date) if date.isdecimal() else float("nan"),
            [float(flag) for flag in flags],
        )
    path = paths["u.data"]
    table = np.array(
        [
            [_whole(path, number, cell) for cell in cells[:3]]
            for number, cells in _rows(path, "\t", 4)
        ]
    )
    known = np.array(sorted(movies))
    place = np.minimum(np.searchsorted(known, table[:, 1]), len(known) - 1)
    strangers = np.flatnonzero(known[place] != table[:, 1])
    if len(strangers):
        row = int(strangers[0])
        raise fail(path, row + 1, 1, f"movie {table[row, 1]} is not in {quoted(paths['u.item'])}")
    user = np.unique(table[:, 0], return_inverse=True)[1]
    order = np.lexsort((place, user))
    return Ratings(
        user=user[order].astype(np.int64),
        item=place[order].astype(np.int64),
        rating=table[order, 2].astype(np.float64),
        genres=np.array([movies[one][1] for one in known.tolist()]),
        year=np.array([movies[one][0] for one in known.tolist()]),
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


def _rows(path: Path, delimiter: str, least: int) -> Iterator[tuple[int, list[str]]]:
    """Yield number and cells of each line; the files are in Latin-1."""
    for first, block in read_blocks(path, Limits()):
        for number, line in enumerate(block.decode("latin-1").split("\n")[:-1], first):
            if not line.strip():
                continue
            cells = line.split(delimiter)
            if len(cells) < least:
                raise fail(path, number, 1, f"expected {least} cells, got {len(cells)}")
            yield number, cells


def _whole(path: Path, number: int, cell: str) -> int:
    value = to_number(cell.strip())
    if value is None or not value.is_integer():
        raise fail(path, number, 1, f"expected a whole number, got {quoted(cell)}")
    return int(value)
