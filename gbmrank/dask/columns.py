"""Collections of the user, cut into aligned partitions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

from gbmrank.errors import ConfigError, DataError, GroupError

__all__ = ["Table", "array_of", "blocks", "features_of", "is_frame", "row_chunks"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Features, labels, query ids and weights of one data set, as the user gave them.

    A text names a column of the features.

    Parameters
    ----------
    features : dask array or dask data frame
        One row per item.
    labels, qid : dask array, dask series or str
        One entry per row.
    weight : dask array, dask series, str or None
        One entry per row.
    name : str
        For messages.
    """

    features: Any
    labels: Any
    qid: Any
    weight: Any = None
    name: str = "train"

    @classmethod
    def read(cls, features: Any, labels: Any, qid: Any, weight: Any, name: str) -> "Table":
        """Take columns by name out of a frame, and bring all to the same partitions."""
        _check_collection(features, name)
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
        """Return features, labels, ids and weights of each partition, delayed."""
        columns = (self.features, self.labels, self.qid, self.weight)
        return list(zip(*(self._blocks(column) for column in columns), strict=True))

    def _blocks(self, column: Any) -> list[Any]:
        """Return the partitions; a name goes along, and is looked up where the rows are."""
        given = column is None or isinstance(column, str)
        return [column] * self.n_partitions if given else blocks(column)


def is_frame(collection: object) -> bool:
    """Whether this is a frame or a series."""
    return isinstance(collection, dd.DataFrame | dd.Series)


def blocks(collection: Any) -> list[Any]:
    """Return the partitions, delayed.

    Frames are taken as they are: their optimiser joins small files, and how many depends on
    the columns that are read, so that two columns of one frame would no longer fit together.
    """
    made = collection.to_delayed(optimize_graph=not is_frame(collection))
    return made.reshape(-1).tolist() if isinstance(made, np.ndarray) else list(made)


def row_chunks(collection: Any) -> tuple[int, ...] | None:
    """Return the rows of each partition, or None where only a computation tells."""
    if is_frame(collection):
        return None
    rows = collection.chunks[0]
    return None if any(math.isnan(n) for n in rows) else tuple(int(n) for n in rows)


def array_of(parts: Sequence[Any], rows: Sequence[int], dtype: Any) -> Any:
    """Make one dask array of delayed columns with known lengths."""
    return da.concatenate(
        [da.from_delayed(part, (n,), dtype) for part, n in zip(parts, rows, strict=True)]
    )


def features_of(like: Any, parts: Sequence[Any], rows: Sequence[int]) -> Any:
    """Make one collection of delayed tables, with the columns of another table."""
    if isinstance(like, pd.DataFrame):
        return dd.from_delayed(list(parts), meta=like, verify_meta=False)
    rest, dtype = like.shape[1:], like.dtype
    made = [da.from_delayed(p, (n, *rest), dtype) for p, n in zip(parts, rows, strict=True)]
    return da.concatenate(made)


def _check_collection(features: Any, name: str) -> None:
    if not isinstance(features, da.Array | dd.DataFrame):
        raise ConfigError(
            f"{name}: features are a dask.array or a dask.dataframe, got "
            f"{type(features).__module__}.{type(features).__name__}; use dask.array.from_array or "
            "dask.dataframe.from_pandas, or train on one machine with gbmrank.GBMRanker"
        )
    if len(features.shape) != 2 or features.shape[1] == 0:
        raise DataError(f"{name}: features need rows and columns, got shape {features.shape}")


def _check_name(features: Any, value: str, key: str) -> None:
    if not is_frame(features) or value not in features.columns:
        known = ", ".join(map(str, features.columns)) if is_frame(features) else "an array"
        raise DataError(f"{key}={value!r} names a column, but the features have: {known}")


def _aligned(column: Any, features: Any, key: str, name: str) -> Any:
    """Give a column the partitions of the features, where this can be done without a shuffle."""
    if isinstance(column, str):
        _check_name(features, column, key)
    if column is None or isinstance(column, str):
        return column
    if not (isinstance(column, da.Array) or is_frame(column)):
        raise ConfigError(
            f"{name}: {key} is a dask array or series like the features, got "
            f"{type(column).__module__}.{type(column).__name__}"
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
