"""From runs to one value per system and query, on queries that every system has."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from gbmrank.experiments.results import Results, System
from gbmrank.types import FloatArray, IntArray

__all__ = ["Paired", "paired"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """Values of one measure that can be compared query by query.

    Parameters
    ----------
    systems : tuple of System
        Those with values.
    excluded : tuple of System
        Those without: every run failed, or the measure is undefined everywhere.
    table : array of shape (n_systems, n_queries)
        Mean over seeds, without NaN.
    queries : array of shape (n_queries,)
        Numbers of the queries, in ``Results.queries``.
    left_out : int
        Queries that only some of the systems have a value for.
    undefined : int
        Queries that no system has a value for.
    by_seed : array of shape (n_systems, n_seeds)
        Mean over the same queries of each seed alone; NaN where a seed lacks one of them.
    """

    systems: tuple[System, ...]
    excluded: tuple[System, ...]
    table: FloatArray
    queries: IntArray
    left_out: int
    undefined: int
    by_seed: FloatArray

    def row(self, system: System) -> FloatArray:
        """Return the values of one system, per query."""
        return self.table[self.systems.index(system)]


def paired(results: Results, measure: str) -> Paired:
    """Average over seeds within each query, and keep the queries that every system has.

    A system without any value is excluded; it would empty the table. Values that are not
    finite count as undefined.

    Parameters
    ----------
    results : Results
        What was measured.
    measure : str
        Name of a measure.

    Returns
    -------
    Paired
    """
    values = results.values(measure)
    finite = np.isfinite(values)
    present: npt.NDArray[np.bool_] = np.asarray(finite.any(axis=(1, 2)))
    known = np.where(finite, values, 0.0)[present]
    count = finite[present].sum(axis=1)
    complete = (count > 0).all(axis=0) & present.any()
    some = (count > 0).any(axis=0)
    table = known.sum(axis=1)[:, complete] / count[:, complete]
    whole = finite[present][:, :, complete].all(axis=2)
    n_queries = max(int(complete.sum()), 1)
    by_seed = np.where(whole, known[:, :, complete].sum(axis=2) / n_queries, np.nan)
    return Paired(
        tuple(system for system, there in zip(results.systems, present, strict=True) if there),
        tuple(system for system, there in zip(results.systems, present, strict=True) if not there),
        np.ascontiguousarray(table),
        np.flatnonzero(complete),
        int((some & ~complete).sum()),
        int((~some).sum()),
        by_seed,
    )
