"""Rows of features in a file on disk, for training on more rows than memory holds."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from gbmrank.types import FloatArray

BLOCK = 1 << 16  # rows read at once, at most
_CELLS_AT_ONCE = 1 << 22


@final
class RowStore:
    """A table of numbers in a file, row after row.

    It takes the place of an array of features in a training. Rows are read from the file when they
    are asked for and are not mapped: a limit on the address space of a process holds.
    """

    def __init__(self, path: Path, names: list[str] | None, width: int, dtype: str) -> None:
        self.path, self.names, self.dtype = path, names, np.dtype(dtype)
        self.shape = (0, width)
        self._held: list[Any] = []  # labels, and a booster's data set of these rows and labels

    @property
    def block(self) -> int:
        """Number of rows that are read at once: fewer of wide rows."""
        return max(min(BLOCK, _CELLS_AT_ONCE // max(self.shape[1], 1)), 1)

    def renamed(self, names: list[str]) -> "RowStore":
        """Return the same rows with other names of columns."""
        made = copy.copy(self)
        made.names = names
        return made

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Add rows at the end."""
        with self.path.open("ab") as file:
            file.write(np.ascontiguousarray(rows, self.dtype).data)
        self.shape = (self.shape[0] + len(rows), self.shape[1])

    def hold(self, data: Any, made: Any) -> None:
        """Keep a booster's data set of these rows with their labels, to use it again."""
        self._held[:] = [data, made]

    def data_set(self, data: Any) -> Any:
        """Return the data set that was kept for these labels, or None."""
        return self._held[1] if self._held and self._held[0] is data else None

    def release(self) -> None:
        """Forget the data set; XGBoost then removes its files."""
        self._held.clear()

    def rows(self, first: int, last: int) -> npt.NDArray[Any]:
        """Return the rows from ``first`` to ``last - 1``."""
        width = self.shape[1]
        with self.path.open("rb") as file:
            file.seek(first * width * self.dtype.itemsize)
            found = np.fromfile(file, self.dtype, max(last - first, 0) * width)
        return found.reshape(-1, width)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> npt.NDArray[Any]:
        """Return one row, a range of rows, rows by ascending number, or columns of rows."""
        if isinstance(key, tuple):
            rows, columns = key
            if rows != slice(None):
                return self[rows][:, columns]
            return np.concatenate([block[:, columns] for block in self.blocks()])
        if isinstance(key, slice):
            first, last, _ = key.indices(len(self))
            return self.rows(first, last)
        if isinstance(key, int | np.integer):
            return self.rows(int(key), int(key) + 1)[0]
        starts = range(0, len(self), self.block)
        by_block = np.split(np.asarray(key), np.searchsorted(key, starts[1:]))
        blocks = zip(self.blocks(), by_block, starts, strict=True)
        return np.concatenate([block[rows - start] for block, rows, start in blocks])

    def blocks(self) -> Iterator[npt.NDArray[Any]]:
        """Yield all rows, some at a time."""
        for start in range(0, len(self), self.block):
            yield self.rows(start, min(start + self.block, len(self)))


def by_blocks(score: Callable[[Any], FloatArray], features: Any) -> FloatArray:
    """Return one score per row; of a RowStore block after block."""
    if not isinstance(features, RowStore):
        return score(features)
    return np.concatenate([np.zeros(0), *map(score, features.blocks())])
