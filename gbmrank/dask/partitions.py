"""Dask collections as aligned partitions of whole queries."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any, final

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import numpy.typing as npt
import pandas as pd
from dask.array.dispatch import concatenate_lookup

from gbmrank.data.queries import Groups
from gbmrank.errors import ConfigError, DataError, GroupError, LimitError
from gbmrank.types import IntArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Features, labels, query ids and weights of one data set, as the user gave them.

    All are dask collections, one entry per row; a string names a column of the features.
    """

    features: Any
    labels: Any
    qid: Any
    weight: Any = None
    name: str = "train"

    @classmethod
    def read(cls, features: Any, labels: Any, qid: Any, weight: Any, name: str) -> "Table":
        """Select columns by name from a frame, and align all partitions."""
        if not isinstance(features, da.Array | dd.DataFrame):
            raise ConfigError(
                f"{name}: features must be a dask.array or a dask.dataframe, got "
                f"{_kind(features)}; use dask.array.from_array or dask.dataframe.from_pandas, or "
                "train on one machine with gbmrank.GBMRanker"
            )
        if qid is None:
            raise GroupError(
                f"{name}: say which query each row belongs to: qid= (one id per row, or the name "
                "of a column)"
            )
        if labels is None:
            raise DataError(f"{name}: give the labels: one per row, or the name of a column")
        if isinstance(features, da.Array):
            features = features.rechunk({1: -1})
        given = {"labels": labels, "qid": qid, "weight": weight}
        aligned = {key: _aligned(value, features, key, name) for key, value in given.items()}
        return cls(features, **aligned, name=name)

    @property
    def n_partitions(self) -> int:
        """Number of partitions."""
        return int(self.features.npartitions)

    def parts(self) -> list[tuple[Any, Any, Any, Any]]:
        """Return features, labels, ids and weights of each partition, delayed.

        A column name stays a name, and is looked up on the worker.
        """
        columns = (self.features, self.labels, self.qid, self.weight)
        made = [
            [one] * self.n_partitions if one is None or isinstance(one, str) else blocks(one)
            for one in columns
        ]
        return list(zip(*made, strict=True))


def is_frame(collection: object) -> bool:
    """Whether this is a frame or a series."""
    return isinstance(collection, dd.DataFrame | dd.Series)


def blocks(collection: Any) -> list[Any]:
    """Return the partitions, delayed.

    Frames are not optimised: Dask would merge small files, how many depends on the columns that
    are read, and the partitions of two columns of one frame would no longer match.
    """
    made = collection.to_delayed(optimize_graph=not is_frame(collection))
    return made.reshape(-1).tolist() if isinstance(made, np.ndarray) else list(made)


def row_chunks(collection: Any) -> tuple[int, ...] | None:
    """Return the number of rows of each partition, or None if it must be computed."""
    if is_frame(collection):
        return None
    rows = collection.chunks[0]
    return None if any(math.isnan(n) for n in rows) else tuple(int(n) for n in rows)


def array_of(
    parts: Sequence[Any], rows: Sequence[float], dtype: Any, rest: tuple[int, ...] = ()
) -> Any:
    """Make one dask array of delayed arrays; their numbers of rows are NaN if unknown."""
    pairs = zip(parts, rows, strict=True)
    made = [da.from_delayed(part, (n, *rest), dtype) for part, n in pairs]
    return da.concatenate(made, allow_unknown_chunksizes=True)


def features_of(like: Any, parts: Sequence[Any], rows: Sequence[int]) -> Any:
    """Make one collection of delayed tables, with the columns of another table."""
    if isinstance(like, pd.DataFrame):
        return dd.from_delayed(list(parts), meta=like, verify_meta=False)
    return array_of(parts, rows, like.dtype, like.shape[1:])


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__name__}"


def _aligned(column: Any, features: Any, key: str, name: str) -> Any:
    """Align a column with the partitions of the features, if possible without a shuffle."""
    if isinstance(column, str) and (not is_frame(features) or column not in features.columns):
        known = ", ".join(map(str, features.columns)) if is_frame(features) else "an array"
        raise DataError(f"{key}={column!r} names a column, but the features have: {known}")
    if column is None or isinstance(column, str):
        return column
    if not (isinstance(column, da.Array) or is_frame(column)):
        raise ConfigError(
            f"{name}: {key} must be a dask array or series like the features, got {_kind(column)}"
        )
    if isinstance(column, da.Array) and column.ndim > 1:
        column = column.reshape(-1)
    wanted, given = row_chunks(features), row_chunks(column)
    if wanted is not None and given is not None:
        if sum(wanted) != sum(given):
            raise DataError(
                f"{name}: {key} has {sum(given)} entries, but there are {sum(wanted)} rows"
            )
        return column.rechunk((wanted,))
    if column.npartitions != features.npartitions:
        raise DataError(
            f"{name}: {key} has {column.npartitions} partitions, the features have "
            f"{features.npartitions}; both need the same rows in the same partitions"
        )
    return column


_SHOWN = 5
_MOST_PIECES = 200_000  # tasks that a scheduler can handle


def check_whole(ids: Sequence[npt.NDArray[Any]], name: str) -> None:
    """Raise GroupError when a query id occurs in more than one partition."""
    known, part, query = _numbered(ids)
    times = np.bincount(query, minlength=len(known))
    split = np.flatnonzero(times > 1)
    if not len(split):
        return
    shown = ", ".join(
        f"{known[q].item()!r} (partitions {', '.join(map(str, part[query == q].tolist()))})"
        for q in split[:_SHOWN]
    )
    more = f" and {len(split) - _SHOWN} more" if len(split) > _SHOWN else ""
    raise GroupError(
        f"{name}: {len(split)} queries are split over partitions: {shown}{more}; each piece would "
        "be treated as a separate query. Fix it with gbmrank.dask.repartition_by_query(...)"
    )


def repartition_by_query(*columns: Any, qid: Any) -> Any:
    """Move rows so that every query lies in one partition.

    Arrays: a query goes to the partition that has most of its rows, so data that are almost
    sorted move little; rows keep their order within a partition, and the ids are computed
    immediately. Frames: Dask's own shuffle by the id. Everything else is lazy.

    Parameters
    ----------
    *columns : dask arrays, or a frame and series
        Features, labels, weights: the same rows in the same partitions.
    qid : dask array, dask series or str
        One query id per row, or the name of a column of the only frame given.

    Returns
    -------
    tuple or collection
        The columns and then the ids; for ``qid="name"`` the frame alone.

    Examples
    --------
    >>> import dask.array as da
    >>> qid = da.from_array(np.array([1, 1, 2, 2, 2, 3]), chunks=3)
    >>> (whole,) = repartition_by_query(qid=qid)
    >>> whole.chunks
    ((2, 4),)
    """
    if isinstance(qid, str):
        (frame,) = columns
        return frame.shuffle(on=qid)
    every = (*columns, qid)
    counts = {one.npartitions for one in every}
    if len(counts) > 1:
        raise DataError(
            f"columns have {sorted(counts)} partitions; all need the same partitions and rows"
        )
    if is_frame(qid):
        return _shuffled(every)
    plan = _Plan(dask.compute(*[dask.delayed(_ids_of)(block) for block in blocks(qid)]))
    return tuple(plan.apply(column) for column in every)


def _shuffled(columns: tuple[Any, ...]) -> tuple[Any, ...]:
    """Join a frame and series, shuffle them by the last one, and separate them again."""
    tables = [c for c in columns if c.ndim == 2]
    names = [f"__gbmrank_{number}" for number in range(len(columns))]
    named = {name: c for name, c in zip(names, columns, strict=True) if c.ndim == 1}
    whole = (tables[0] if tables else columns[0].to_frame(names[0])).assign(**named)
    moved = whole.shuffle(on=names[-1])
    return tuple(
        moved[name].rename(c.name) if c.ndim == 1 else moved[list(c.columns)]
        for name, c in zip(names, columns, strict=True)
    )


class _Plan:
    """Target partition of each row of each partition."""

    def __init__(self, found: Sequence[tuple[npt.NDArray[Any], IntArray]]) -> None:
        ids, inverse = [f[0] for f in found], [f[1] for f in found]
        known, part, query = _numbered(ids)
        sizes = np.concatenate([np.bincount(i, minlength=len(u)) for u, i in found])
        owner = _owners(part, query, sizes, len(known))
        ends = np.cumsum([0] + [len(one) for one in ids])
        # New partition of each row, by old partition.
        self.targets = [owner[query[ends[p] : ends[p + 1]]][rows] for p, rows in enumerate(inverse)]
        self.rows = np.bincount(np.concatenate(self.targets), minlength=len(ids)).tolist()
        self.pieces = [np.unique(target).tolist() for target in self.targets]
        total = sum(map(len, self.pieces))
        if total > _MOST_PIECES:
            raise LimitError(
                f"the queries are scattered: {total:,} pieces to move between {len(ids):,} "
                f"partitions, at most {_MOST_PIECES:,}; use fewer partitions, or sort the rows by "
                "query when they are written"
            )

    def apply(self, column: Any) -> Any:
        """Return a column with its rows moved."""
        pick, join = dask.delayed(getitem, pure=False), dask.delayed(_join, pure=False)
        arriving: list[list[Any]] = [[] for _ in self.rows]
        is_matrix = column.ndim == 2
        old = blocks(column.rechunk({1: -1}) if is_matrix else column)
        for block, target, pieces in zip(old, self.targets, self.pieces, strict=True):
            for number in pieces:
                whole = len(pieces) == 1
                arriving[number].append(block if whole else pick(block, target == number))
        filled = [i for i, pieces in enumerate(arriving) if pieces]
        made = [arriving[i][0] if len(arriving[i]) == 1 else join(arriving[i]) for i in filled]
        rows = [self.rows[i] for i in filled]
        if is_matrix:
            return features_of(column, made, rows)
        return array_of(made, rows, column.dtype)


def _numbered(ids: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], IntArray, IntArray]:
    """Return all ids, and the partition and number of the id of each entry."""
    filled = [one for one in ids if len(one)] or [np.empty(0, np.int64)]
    known, query = np.unique(np.concatenate(filled), return_inverse=True)
    part = np.repeat(np.arange(len(ids)), [len(one) for one in ids])
    return known, part, query.reshape(-1)


def _owners(part: IntArray, query: IntArray, sizes: IntArray, n_queries: int) -> IntArray:
    """Return the partition that has most rows of each query, the first in case of ties."""
    order = np.lexsort((-part, sizes, query))  # the last entry of a query wins
    owner = np.zeros(n_queries, np.int64)
    owner[query[order]] = part[order]
    return owner


def _ids_of(column: Any) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the distinct ids of a partition and the number of the id of each row."""
    groups = Groups.from_qid(column, len(column))
    if groups.ids is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    number = groups.restore(groups.spread(np.arange(groups.n_queries)))
    return groups.ids, number


def _join(pieces: list[Any]) -> Any:
    """Concatenate rows; plain numpy would drop masks and cannot read sparse matrices."""
    return concatenate_lookup.dispatch(type(pieces[0]))(pieces, axis=0)
