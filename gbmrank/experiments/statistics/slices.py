"""Differences on parts of the queries: short and long, few relevant rows and many."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.experiments.statistics.analysis import Interval
from gbmrank.experiments.statistics.resampling import bootstrap_means
from gbmrank.types import FloatArray, IntArray

__all__ = ["Slice", "slices"]

_PARTS = 4
_RESAMPLES = 2_000


class Slice(NamedTuple):
    """Mean difference over the queries of one part; the interval is NaN below two queries."""

    label: str
    n_queries: int
    difference: float
    interval: Interval


def slices(
    differences: FloatArray, sizes: IntArray, *, level: float = 0.95, seed: int = 0
) -> tuple[Slice, ...]:
    """Cut queries into at most four parts of similar count, and average differences in each.

    Intervals are not corrected for the number of parts: they are for looking, not for deciding.

    Parameters
    ----------
    differences : array of shape (n_queries,)
        One system minus another, per query.
    sizes : array of shape (n_queries,)
        Whole numbers to cut by.
    level : float, default=0.95
        Of the intervals.
    seed : int, default=0
        Of the resampling.

    Examples
    --------
    >>> parts = slices(np.array([0.5, 0.25, 0.0]), np.array([1, 1, 7]))
    >>> [(part.label, part.n_queries, part.difference) for part in parts]
    [('1', 2, 0.375), ('7', 1, 0.0)]
    """
    rng = np.random.default_rng([seed, len(differences)])
    found = []
    for label, inside in _parts(np.asarray(sizes)):
        values = differences[inside]
        ends = Interval(float("nan"), float("nan"))
        if len(values) > 1:
            draws = bootstrap_means(values[None, :], _RESAMPLES, rng)
            low, high = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
            ends = Interval(float(low), float(high))
        found.append(Slice(label, len(values), float(values.mean()), ends))
    return tuple(found)


def _parts(sizes: IntArray) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    distinct = np.unique(sizes)
    if len(distinct) > _PARTS:
        cuts = np.quantile(sizes, np.linspace(0.0, 1.0, _PARTS + 1)[1:-1], method="lower")
        lasts = np.unique(np.append(cuts, distinct[-1]))
    else:
        lasts = distinct
    first = -np.inf
    for last in lasts:
        inside = (sizes > first) & (sizes <= last)
        low, high = sizes[inside].min(), sizes[inside].max()
        yield (f"{low}" if low == high else f"{low} to {high}"), inside
        first = last
