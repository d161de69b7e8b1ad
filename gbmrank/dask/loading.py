"""Load a table on the workers: validate partitions, sort them by query, spread them evenly."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import dask
import numpy as np
import numpy.typing as npt

from gbmrank.boosters.base import Booster
from gbmrank.boosters.plan import is_tied, merged_labels
from gbmrank.dask.partitions import Table, array_of, check_whole, features_of, row_chunks
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.schema import (
    Schema,
    agreed,
    blank_columns,
    check_zeros,
    conformed,
    fits,
    outline_of,
    renamed,
    with_types,
)
from gbmrank.data.tables import categorical_columns, is_sparse, read_table, take_rows
from gbmrank.errors import DataError, GbmrankError, LimitError


class Limit(NamedTuple):
    """Memory of a worker, and the multiple of the rows' size that the booster needs."""

    n_bytes: float
    factor: float

    def check(self, n_bytes: int, what: str, advice: str = "") -> None:
        """Raise LimitError when rows of this size do not fit on a worker."""
        need = n_bytes * self.factor
        if need > self.n_bytes:
            pieces = math.ceil(need / self.n_bytes)
            raise LimitError(
                f"{what}: {n_bytes / 1e6:,.1f} MB, and the booster needs about {self.factor:g} "
                f"times that, but a worker has {self.n_bytes / 1e6:,.1f} MB; "
                + (advice or f"split it into {pieces} or more partitions of whole queries")
            )


class Summary(NamedTuple):
    """Facts about a partition that are sent to the client; the defaults are those without rows.

    ``outline`` has the columns as the user gave them, without rows; ``largest_weight`` is taken
    before the conversion to float32, and ``merged`` are labels that float32 makes equal.
    """

    n_rows: int = 0
    n_bytes: int = 0
    ids: npt.NDArray[Any] = np.empty(0)
    informative: bool = False  # whether the labels of some query differ
    outline: Any = None
    blank: frozenset[int] = frozenset()  # columns of categories without any
    largest_weight: float = 0.0
    merged: tuple[float, float, float] | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """One partition in query order; labels and weights are float32, as both boosters keep them."""

    features: Any
    labels: npt.NDArray[np.float32]
    sizes: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float32] | None
    summary: Summary

    def to_data(self) -> RankingData:
        """Return labels, queries and weights."""
        groups = Groups.from_sizes(self.sizes, len(self.labels))
        return RankingData.from_arrays(self.labels, group=groups, weight=self.weight)


def prepare(
    part: tuple[Any, Any, Any, Any], number: int, name: str, limit: Limit | None
) -> Prepared:
    """Validate a partition and sort its rows by query; runs on a worker."""
    features, *columns = part  # a string names a column
    labels, qid, weight = (features[c] if isinstance(c, str) else c for c in columns)
    names = [c for c in columns if isinstance(c, str)]
    features = features.drop(columns=names) if names else features
    n_rows, where = features.shape[0], f"{name}, partition {number}"
    lengths = [len(c) for c in (labels, qid, weight) if c is not None]
    if any(n != n_rows for n in lengths):
        raise DataError(
            f"{where}: {n_rows} rows of features, but {lengths} labels, query ids (and weights); "
            "all columns need the same rows in the same partitions"
        )
    if not n_rows:
        nothing = np.empty(0, np.float32), np.empty(0, np.int64)
        return Prepared(features, *nothing, None, Summary())
    table = read_table(features, where)
    if limit is not None:
        limit.check(_size_of(table), where)
    try:
        groups = Groups.from_qid(qid, n_rows)
        data = RankingData.from_arrays(labels, qid=qid, weight=weight)
    except GbmrankError as error:
        raise type(error)(f"{where}: {error}") from error
    named, single = renamed(table), data.labels.astype(np.float32)
    arranged = named if groups.row_order is None else take_rows(named, groups.row_order)
    summary = Summary(
        n_rows,
        _size_of(arranged),
        np.empty(0) if groups.ids is None else groups.ids,
        not is_tied(single, groups.sizes),
        outline_of(table),
        blank_columns(table),
        np.inf if data.weight is None else float(data.weight.max()),
        merged_labels(data),
    )
    weights = None if data.weight is None else data.weight.astype(np.float32)
    return Prepared(arranged, single, groups.sizes, weights, summary)


def conform(part: Prepared, outline: Any) -> Prepared:
    """Give a partition the columns that all partitions share; runs on a worker."""
    return replace(part, features=conformed(part.features, outline))


def summary_of(part: Prepared) -> Summary:
    """Return the summary of a partition; runs on a worker."""
    return part.summary


def column_of(part: Prepared, name: str, first_code: int = 0) -> Any:
    """Return a column of a partition; ``codes`` are query numbers that go up from the first."""
    if name == "codes":
        queries = np.arange(first_code, first_code + len(part.sizes), dtype=np.int64)
        return np.repeat(queries, part.sizes)
    return getattr(part, name)


def _size_of(features: Any) -> int:
    if hasattr(features, "memory_usage"):
        return int(features.memory_usage(index=False).sum())
    if is_sparse(features):
        return int(features.data.nbytes + features.indices.nbytes + features.indptr.nbytes)
    return int(features.nbytes)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A table in the memory of the workers; partitions without rows are left out.

    ``parts`` are futures of :class:`Prepared`, ``numbers`` are the numbers of their partitions,
    and ``outline`` has the columns of all parts as the user gave them, without rows.
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


def load(
    client: Any, table: Table, booster: Booster, factor: float = 1.0, known: Any = None
) -> Loaded:
    """Compute a table on the workers and check it.

    The booster needs ``factor`` times the rows in memory; ``known`` is the outline of the
    training set, whose categories are applied to these rows.
    """
    sizes = [n for n in client.run(_memory_limit).values() if n]
    limit = Limit(float(min(sizes)), factor) if sizes else None
    rows = row_chunks(table.features)
    # A block that is too large is rejected before anything is computed.
    if limit is not None and rows is not None and isinstance(table.features._meta, np.ndarray):
        width = table.features.shape[1] * table.features.dtype.itemsize
        for number, n in enumerate(rows):
            limit.check(n * width, f"{table.name}, partition {number}")
    task = dask.delayed(prepare, pure=False)
    tasks = [task(part, i, table.name, limit) for i, part in enumerate(table.parts())]
    futures = client.compute(tasks)
    summaries = client.gather(client.map(summary_of, futures, pure=False))
    check_whole([summary.ids for summary in summaries], table.name)
    filled = [i for i, summary in enumerate(summaries) if summary.n_rows]
    if not filled:
        raise DataError(f"{table.name}: no rows in {table.n_partitions} partitions")
    outline = agreed({i: summaries[i].outline for i in filled}, table.name, booster.reads)
    if known is not None:
        outline = _known_by(known, outline, table.name, booster)
    kept = [summaries[i] for i in filled]
    parts = [
        futures[i]
        if fits(summaries[i].outline, outline)
        else client.submit(conform, futures[i], outline, pure=False)
        for i in filled
    ]
    return Loaded(table, _spread(client, parts, kept, limit), kept, filled, outline)


def moves(holders: Sequence[str], rows: Sequence[int], workers: Sequence[str]) -> dict[int, str]:
    """Return which parts to move where, to reduce the largest share of a worker.

    ``holders`` are the workers that have the parts now.

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


def _memory_limit(dask_worker: Any) -> Any:
    return dask_worker.memory_manager.memory_limit


def _same(part: Prepared) -> Prepared:
    return part


def _nothing(part: Prepared) -> None:
    del part


def _known_by(known: Any, outline: Any, name: str, booster: Booster) -> Any:
    """Validate the columns of other rows, and return their outline with the known categories."""
    columns = Schema.of(known)
    columns.check_count(outline, name, "the model")
    columns.check(outline, name)
    if booster.reads.zeros_by_form:
        check_zeros(known, outline, name, "the training data")
    types = {}
    for at in categorical_columns(known):
        here, there = outline.dtypes.iloc[at], known.dtypes.iloc[at]
        new = here.categories.difference(there.categories, sort=False)
        said = booster.unseen_message(outline.columns[at], name, str(new[0])) if len(new) else None
        if said is not None:
            raise DataError(said)
        types[at] = there
    return with_types(outline, types) if types else outline
