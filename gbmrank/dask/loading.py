"""Bringing a table onto the workers: checked, spread evenly, no query in two partitions."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import dask
import numpy as np

from gbmrank.dask.columns import Table, array_of, features_of, row_chunks
from gbmrank.dask.features import agreed, fits, known_by
from gbmrank.dask.parts import Limit, Prepared, Summary, column_of, conform, prepare, summary_of
from gbmrank.dask.queries import check_whole
from gbmrank.errors import DataError
from gbmrank.estimators.columns import renamed

__all__ = ["Loaded", "load", "moves", "smallest_memory"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A table in the memory of the workers; partitions without rows are left out.

    Parameters
    ----------
    table : Table
        As the user gave it.
    parts : list of Future
        Of :class:`~gbmrank.dask.parts.Prepared`.
    summaries : list of Summary
        One per part.
    numbers : list of int
        Of the partitions, one per part.
    outline : table
        The columns of all parts as the user has them, without rows.
    """

    table: Table
    parts: list[Any]
    summaries: list[Summary]
    numbers: list[int]
    outline: Any

    @property
    def rows(self) -> list[int]:
        """Rows of each partition."""
        return [summary.n_rows for summary in self.summaries]

    @property
    def features(self) -> Any:
        """Collection of the features, of the kind the user gave."""
        return features_of(renamed(self.outline), self._delayed("features"), self.rows)

    def column(self, name: str) -> Any:
        """Return labels, weight or codes as a dask array; codes number the queries."""
        dtype = np.int64 if name == "codes" else np.float32
        return array_of(self._delayed(name), self.rows, dtype)

    def sizes(self) -> Any:
        """Return rows per query as a dask array, with as many blocks as partitions."""
        counts = [len(summary.ids) for summary in self.summaries]
        return array_of(self._delayed("sizes"), counts, np.int64)

    def _delayed(self, name: str) -> list[Any]:
        take = dask.delayed(column_of, pure=False)
        counts = np.cumsum([0] + [len(summary.ids) for summary in self.summaries]).tolist()
        return [take(part, name, first) for part, first in zip(self.parts, counts, strict=False)]


def load(client: Any, table: Table, backend: str, factor: float = 1.0, known: Any = None) -> Loaded:
    """Compute a table on the workers and check it.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    table : Table
        What the user gave.
    backend : {"lightgbm", "xgboost"}
        The booster.
    factor : float, default=1
        How many times the rows the booster needs in memory.
    known : table, optional
        Outline of the training, whose categories these rows are given.

    Raises
    ------
    DataError
        When there are no rows, labels, ids or weights cannot be used, features are not what the
        booster reads, or partitions differ in their columns.
    GroupError
        When a query lies in more than one partition.
    LimitError
        When a partition, or the share of a worker, does not fit into its memory.
    """
    limit = smallest_memory(client, factor)
    if limit is not None:
        _check_known_sizes(table, limit)
    task = dask.delayed(prepare, pure=False)
    tasks = [task(part, i, table.name, limit) for i, part in enumerate(table.parts())]
    futures = client.compute(tasks)
    summaries = client.gather(client.map(summary_of, futures, pure=False))
    check_whole([summary.ids for summary in summaries], table.name)
    filled = [i for i, summary in enumerate(summaries) if summary.n_rows]
    if not filled:
        raise DataError(f"{table.name}: no rows in {table.n_partitions} partitions")
    outline = agreed({i: summaries[i].outline for i in filled}, table.name, backend)
    if known is not None:
        outline = known_by(known, outline, table.name, backend)
    kept = [summaries[i] for i in filled]
    parts = [
        futures[i]
        if fits(summaries[i].outline, outline)
        else client.submit(conform, futures[i], outline, pure=False)
        for i in filled
    ]
    return Loaded(table, _spread(client, parts, kept, limit), kept, filled, outline)


def smallest_memory(client: Any, factor: float) -> Limit | None:
    """Return the memory of the smallest worker, or None where none has a limit."""
    given = client.run(_memory_limit).values()
    sizes = [n for n in given if n]
    return Limit(float(min(sizes)), factor) if sizes else None


def moves(holders: Sequence[str], rows: Sequence[int], workers: Sequence[str]) -> dict[int, str]:
    """Return which parts to move where, so that the largest share of a worker gets smaller.

    Parameters
    ----------
    holders : sequence of str
        Worker of each part.
    rows : sequence of int
        Rows of each part.
    workers : sequence of str
        All workers.

    Examples
    --------
    >>> moves(["a", "a", "a"], [10, 20, 30], ["a", "b"])
    {2: 'b'}
    """
    place = dict(enumerate(holders))
    load_of = dict.fromkeys(workers, 0)
    for i, worker in place.items():
        load_of[worker] = load_of.get(worker, 0) + rows[i]
    moved: dict[int, str] = {}
    for _ in range(len(rows)):
        least = min(load_of, key=lambda w: load_of[w])
        gaps = {i: load_of[worker] - load_of[least] for i, worker in place.items()}
        useful = [i for i in place if 0 < rows[i] < gaps[i]]
        if not useful:
            break
        best = max(useful, key=lambda i: (gaps[i], -abs(2 * rows[i] - gaps[i])))
        load_of[place[best]] -= rows[best]
        load_of[least] += rows[best]
        place[best] = moved[best] = least
    return {i: worker for i, worker in moved.items() if worker != holders[i]}


def _spread(
    client: Any, parts: list[Any], summaries: Sequence[Summary], limit: Limit | None
) -> list[Any]:
    """Move parts between workers so that all have about as many rows."""
    workers = sorted(client.nthreads())
    has: Mapping[str, Sequence[str]] = client.who_has(parts)
    holders = [next(iter(has[part.key]), workers[0]) for part in parts]
    moved = moves(holders, [summary.n_rows for summary in summaries], workers)
    share: dict[str, int] = defaultdict(int)
    for i, holder in enumerate(holders):
        share[moved.get(i, holder)] += summaries[i].n_bytes
    if limit is not None:
        limit.check(max(share.values()), "the largest share of a worker", "add workers or memory")
    made = [
        client.submit(_same, part, workers=[moved[i]], allow_other_workers=False, pure=False)
        if i in moved
        else part
        for i, part in enumerate(parts)
    ]
    client.gather(client.map(_nothing, made, pure=False))
    return made


def _check_known_sizes(table: Table, limit: Limit) -> None:
    """Refuse a block that is too large before anything is computed."""
    rows = row_chunks(table.features)
    if rows is None or not isinstance(table.features._meta, np.ndarray):
        return
    width = table.features.shape[1] * table.features.dtype.itemsize
    for number, n in enumerate(rows):
        limit.check(n * width, f"{table.name}, partition {number}")


def _memory_limit(dask_worker: Any) -> Any:
    return dask_worker.memory_manager.memory_limit


def _same(part: Prepared) -> Prepared:
    return part


def _nothing(part: Prepared) -> None:
    del part
