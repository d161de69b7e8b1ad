"""Partitions as they lie on the workers: checked, in query order, with their summaries."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.backends.tables import is_sparse, read_table, take_rows
from gbmrank.dask.features import blank_columns, conformed, outline_of
from gbmrank.data.queries import Groups, RankingData
from gbmrank.errors import DataError, GbmrankError, LimitError
from gbmrank.estimators.columns import renamed

__all__ = ["Limit", "Prepared", "Summary", "column_of", "conform", "prepare", "summary_of"]


class Limit(NamedTuple):
    """Memory a worker has, and how many times its rows the booster needs."""

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
                + (advice or f"cut it into {pieces} or more partitions of whole queries")
            )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """One partition in query order.

    Parameters
    ----------
    features : table
        With column names that both boosters take, rows in query order.
    labels : array of shape (n_rows,)
        float32, as both boosters keep them.
    sizes : array of shape (n_queries,)
        Rows per query.
    weight : array of shape (n_rows,) or None
        float32, as both boosters keep them.
    ids : array of shape (n_queries,)
        The user's query ids.
    outline : table
        The columns as the user has them, without rows.
    """

    features: Any
    labels: npt.NDArray[np.float32]
    sizes: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float32] | None
    ids: npt.NDArray[Any]
    outline: Any

    def to_data(self) -> RankingData:
        """Return labels, queries and weights."""
        return RankingData.from_arrays(self.labels, group=self.sizes, weight=self.weight)


class Summary(NamedTuple):
    """What the client knows about a partition."""

    n_rows: int
    n_bytes: int
    ids: npt.NDArray[Any]
    informative: int
    outline: Any
    blank: frozenset[int]  # columns of categories without any


def prepare(
    part: tuple[Any, Any, Any, Any], number: int, name: str, limit: Limit | None
) -> Prepared:
    """Check a partition and put its rows into query order; runs on a worker.

    Parameters
    ----------
    part : tuple
        Features, labels, query ids and weights (or None); a text names a column.
    number : int
        Of the partition, for messages.
    name : str
        Of the data set, for messages.
    limit : Limit or None
        Memory that a partition may take.
    """
    features, labels, qid, weight = _looked_up(part)
    n_rows, where = features.shape[0], f"{name}, partition {number}"
    lengths = [len(c) for c in (labels, qid, weight) if c is not None]
    if any(n != n_rows for n in lengths):
        raise DataError(
            f"{where}: {n_rows} rows of features, but {lengths} labels, query ids (and weights); "
            "all columns need the same rows in the same partitions"
        )
    if not n_rows:
        return _empty(features)
    table = read_table(features, where)
    if limit is not None:
        limit.check(_size_of(table), where)
    try:
        groups = Groups.from_qid(qid, n_rows)
        data = RankingData.from_arrays(labels, qid=qid, weight=weight)
    except GbmrankError as error:
        raise type(error)(f"{where}: {error}") from error
    single = None if data.weight is None else data.weight.astype(np.float32)
    ids = groups.ids if groups.ids is not None else np.empty(0)
    return Prepared(
        _arranged(renamed(table), groups),
        data.labels.astype(np.float32),
        groups.sizes,
        single,
        ids,
        outline_of(table),
    )


def conform(part: Prepared, outline: Any) -> Prepared:
    """Give a partition the columns that all have; runs on a worker."""
    return replace(part, features=conformed(part.features, outline))


def summary_of(part: Prepared) -> Summary:
    """Return what the client needs to know; runs on a worker."""
    if not len(part.labels):
        return Summary(0, 0, part.ids, 0, part.outline, frozenset())
    offsets = np.concatenate([[0], np.cumsum(part.sizes)])[:-1]
    highest = np.maximum.reduceat(part.labels, offsets)
    lowest = np.minimum.reduceat(part.labels, offsets)
    size = _size_of(part.features)
    informative = int((highest > lowest).sum())
    blank = blank_columns(part.features)
    return Summary(len(part.labels), size, part.ids, informative, part.outline, blank)


def column_of(part: Prepared, name: str, first_code: int = 0) -> Any:
    """Return a column of a partition; ``codes`` are query numbers that go up from the first."""
    if name == "codes":
        queries = np.arange(first_code, first_code + len(part.sizes), dtype=np.int64)
        return np.repeat(queries, part.sizes)
    return getattr(part, name)


def _looked_up(part: tuple[Any, ...]) -> tuple[Any, ...]:
    features, *columns = part
    names = [column for column in columns if isinstance(column, str)]
    found = [features[c] if isinstance(c, str) else c for c in columns]
    return (features.drop(columns=names) if names else features), *found


def _empty(features: Any) -> Prepared:
    nothing = np.empty(0, np.float32)
    return Prepared(features, nothing, np.empty(0, np.int64), None, np.empty(0), None)


def _arranged(features: Any, groups: Groups) -> Any:
    return features if groups.row_order is None else take_rows(features, groups.row_order)


def _size_of(features: Any) -> int:
    if hasattr(features, "memory_usage"):
        return int(features.memory_usage(index=False).sum())
    if is_sparse(features):
        return int(features.data.nbytes + features.indices.nbytes + features.indptr.nbytes)
    return int(features.nbytes)
