"""Which queries are learned from, watched and judged in each run."""

from typing import NamedTuple

import numpy as np

from gbmrank.errors import DataError, ParameterError
from gbmrank.experiments.sources import PARTS
from gbmrank.types import IntArray

__all__ = ["Split", "check_folds", "check_parts", "cut", "judged"]

_TRAIN, _VALID, _TEST = range(len(PARTS))
_FOLDS, _WATCHED = 0, 1  # streams of random numbers


class Split(NamedTuple):
    """Numbers of the queries of each part, sorted."""

    train: IntArray
    valid: IntArray
    test: IntArray


def check_folds(n_queries: int, folds: int, share: float) -> None:
    """Raise when queries cannot be cut so that every part has one."""
    if folds < 2:
        raise ParameterError(f"folds must be at least 2, got {folds}")
    if not 0.0 < share < 1.0:
        raise ParameterError(f"valid_share must be between 0 and 1, got {share}")
    if folds > n_queries or n_queries - -(-n_queries // folds) < 2:
        raise DataError(
            f"{n_queries} queries cannot be cut into {folds} folds with queries left to learn from "
            "and to watch; give more queries, or splits of your own"
        )


def check_parts(parts: IntArray) -> None:
    """Raise when given parts leave nothing to watch."""
    learned = int((parts == _TRAIN).sum())
    if not (parts == _VALID).any() and learned < 2:
        raise DataError(
            f"train has {learned} query, and one at least is watched for stopping; give a valid "
            "part too, or more queries"
        )


def cut(
    n_queries: int, parts: IntArray | None, *, folds: int, share: float, at: tuple[int, int]
) -> Split:
    """Return the queries of one run.

    A fold is judged; a share of the other queries, drawn anew for every seed, is watched for
    early stopping. Given parts stay as they are; without a given ``valid`` a share of
    ``train`` is watched. All systems get the same queries.

    Parameters
    ----------
    n_queries : int
        Number of queries.
    parts : array of shape (n_queries,) or None
        Given parts, as numbers in ``PARTS``.
    folds : int
        Number of folds, without given parts.
    share : float
        Of the queries that are not judged, how many are watched.
    at : tuple of int
        Seed and number of the fold.

    Examples
    --------
    >>> cut(6, None, folds=3, share=0.25, at=(0, 1)).test
    array([4, 5])
    """
    seed, fold = at
    if parts is None:
        order = np.random.default_rng(_FOLDS).permutation(n_queries)
        number = np.empty(n_queries, dtype=np.int64)
        number[order] = np.arange(n_queries) * folds // n_queries
        rest, test = np.flatnonzero(number != fold), np.flatnonzero(number == fold)
    else:
        test = np.flatnonzero(parts == _TEST)
        rest = np.flatnonzero(parts == _TRAIN)
        valid = np.flatnonzero(parts == _VALID)
        if len(valid):
            return Split(rest, valid, test)
    drawn = np.random.default_rng([seed, fold, _WATCHED]).permutation(rest)
    n_valid = min(max(round(share * len(rest)), 1), len(rest) - 1)
    return Split(np.sort(drawn[n_valid:]), np.sort(drawn[:n_valid]), test)


def judged(n_queries: int, parts: IntArray | None) -> IntArray:
    """Return the numbers of all queries that some run judges."""
    return np.arange(n_queries) if parts is None else np.flatnonzero(parts == _TEST)
