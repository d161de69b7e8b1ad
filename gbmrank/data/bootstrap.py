"""Bootstrap means over queries or sessions."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gbmrank.data.columns import read_number, read_whole
from gbmrank.types import FloatArray, IntArray

_BLOCK = 65_536  # numbers in memory at a time: they fit into the cache of a core
_POOLS = 2_000


class Draws(NamedTuple):
    """How many replicates to draw, and for intervals of which level."""

    level: float
    resamples: int
    rng: np.random.Generator

    @classmethod
    def read(cls, level: float, resamples: int, seed: int, fewest: int) -> "Draws":
        """Validate the options of an interval."""
        return cls(
            read_number(level, "level", 0.5, 1.0),
            read_whole(resamples, "resamples", fewest),
            np.random.default_rng(read_whole(seed, "seed", 0)),
        )


def tails(level: float) -> list[float]:
    """Return the two shares at which an interval of a level cuts its replicates."""
    return [(1.0 - level) / 2.0, (1.0 + level) / 2.0]


def sums_by(at: IntArray, values: FloatArray, width: int = 0) -> FloatArray:
    """Return sums of values by a whole number from 0, of which there are ``width`` or more."""
    return np.bincount(at, values, minlength=width).astype(np.float64)


def bootstrap_means(table: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return means over resampled queries, with the same resample for every system."""
    n_queries = table.shape[1]
    rows = table.T
    means = np.empty((resamples, len(table)))
    for start, size in blocks(n_queries, resamples):
        drawn = rng.integers(n_queries, size=(size, n_queries), dtype=np.int64)
        drawn += np.arange(size)[:, None] * n_queries
        times = np.bincount(drawn.ravel(), minlength=size * n_queries)
        means[start : start + size] = times.reshape(size, n_queries).astype(float) @ rows
    return means / n_queries


def blocks(width: int, resamples: int) -> Iterator[tuple[int, int]]:
    """Yield start and size of blocks of resamples that fit into the cache."""
    step = max(1, _BLOCK // max(width, 1))
    for start in range(0, resamples, step):
        yield start, min(step, resamples - start)


def pools(count: int, rng: np.random.Generator) -> IntArray:
    """Assign many units to random pools of nearly equal size.

    A sum over resampled pools of independent units has the same variance as a sum over
    resampled units, so 2,000 pools can stand for millions of units.
    """
    return rng.permutation(count) % min(count, _POOLS)
