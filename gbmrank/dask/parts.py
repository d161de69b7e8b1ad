"""Partitions as they lie on the workers: checked, in query order, with their summaries."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.data import Groups, RankingData
from gbmrank.errors import DataError, GbmrankError, LimitError

__all__ = ["Limit", "Prepared", "Summary", "column_of", "prepare", "summary_of"]


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
        As the user has it, rows in query order.
    labels : array of shape (n_rows,)
        float32, as both boosters keep them.
    sizes : array of shape (n_queries,)
        Rows per query.
    weight : array of shape (n_rows,) or None
        float32, as both boosters keep them.
    ids : array of shape (n_queries,)
        The user's query ids.
    """

    features: Any
    labels: npt.NDArray[np.float32]
    sizes: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float32] | None
    ids: npt.NDArray[Any]

    def to_data(self) -> RankingData:
        """Return labels, queries and weights."""
        return RankingData.from_arrays(self.labels, group=self.sizes, weight=self.weight)


class Summary(NamedTuple):
    """What the client knows about a partition."""

    n_rows: int
    n_bytes: int
    ids: npt.NDArray[Any]
    informative: int


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
    if limit is not None:
        limit.check(_size_of(features), where)
    try:
        if not n_rows:
            return _empty(features)
        groups = Groups.from_qid(qid, n_rows)
        data = RankingData.from_arrays(labels, qid=qid, weight=weight)
    except GbmrankError as error:
        raise type(error)(f"{where}: {error}") from error
    single = None if data.weight is None else data.weight.astype(np.float32)
    ids = groups.ids if groups.ids is not None else np.empty(0)
    return Prepared(
        _arranged(features, groups), data.labels.astype(np.float32), groups.sizes, single, ids
    )


def summary_of(part: Prepared) -> Summary:
    """Return what the client needs to know; runs on a worker."""
    if not len(part.labels):
        return Summary(0, 0, part.ids, 0)
    offsets = np.concatenate([[0], np.cumsum(part.sizes)])[:-1]
    highest = np.maximum.reduceat(part.labels, offsets)
    lowest = np.minimum.reduceat(part.labels, offsets)
    size = _size_of(part.features)
    return Summary(len(part.labels), size, part.ids, int((highest > lowest).sum()))


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
    return Prepared(features, np.empty(0, np.float32), np.empty(0, np.int64), None, np.empty(0))


def _arranged(features: Any, groups: Groups) -> Any:
    if groups.row_order is None:
        return features
    return (
        features.iloc[groups.row_order] if hasattr(features, "iloc") else groups.arrange(features)
    )


def _size_of(features: Any) -> int:
    if hasattr(features, "memory_usage"):
        return int(features.memory_usage(index=False).sum())
    return int(features.nbytes)
