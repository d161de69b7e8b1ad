"""Features in the forms boosters read: arrays, sparse matrices, and frames of any kind.

Nothing here imports a frame library: whoever made a frame has done so.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.errors import DataError
from gbmrank.types import IntArray

__all__ = ["column_names", "read_table", "take_rows", "with_names"]

_FRAMES = ("pandas", "polars", "pyarrow")
_TEXT = ("object", "str", "string", "large_string", "utf8")  # as pandas, polars and pyarrow say


def read_table(table: Any, what: str = "X") -> Any:
    """Return a frame or sparse matrix as it is, anything else as an array of numbers.

    Parameters
    ----------
    table : array-like, sparse matrix, or pandas, polars or pyarrow table
        One row per item.
    what : str, default="X"
        Its name, for messages.

    Raises
    ------
    DataError
        Unless it has rows and columns, of numbers where it is an array, and without text.
    """
    kind = _kind(table)
    if kind == "scipy":
        from scipy.sparse import csr_matrix

        table = csr_matrix(table)  # LightGBM predicts for no other kind
    elif kind == "numpy":
        table = _numbers(np.asarray(table), what)
    shape = tuple(getattr(table, "shape", ()))
    if len(shape) != 2:
        raise DataError(
            f"{what} must be a table of rows and columns, got shape {shape}. Reshape your data: "
            "reshape(-1, 1) for one column, reshape(1, -1) for one row"
        )
    for count, noun in zip(shape, ("sample", "feature"), strict=True):
        if count == 0:  # in the words scikit-learn uses
            raise DataError(
                f"{what} has 0 {noun}(s) (shape={shape}) while a minimum of 1 is required."
            )
    if kind in _FRAMES:
        _check_columns(table, kind, what)
    return table


def take_rows(table: Any, rows: IntArray) -> Any:
    """Return rows of a table, by number and in this order."""
    kind = _kind(table)
    if kind == "pandas":
        return table.iloc[rows]
    return table.take(rows) if kind == "pyarrow" else table[rows]


def column_names(table: Any) -> list[str] | None:
    """Return the names of the columns of a frame, or None where there are none that are text."""
    kind = _kind(table)
    if kind not in _FRAMES:
        return None
    names = list(table.column_names if kind == "pyarrow" else table.columns)
    return names if all(isinstance(name, str) for name in names) else None


def with_names(table: Any, names: Sequence[str]) -> Any:
    """Return a frame with other column names; anything else is returned as it is."""
    kind = _kind(table)
    if kind == "pandas":
        return table.set_axis(list(names), axis=1)
    if kind == "polars":
        return table.rename(dict(zip(table.columns, names, strict=True)))
    return table.rename_columns(list(names)) if kind == "pyarrow" else table


def _kind(table: Any) -> str:
    module = type(table).__module__.partition(".")[0]
    return module if module in (*_FRAMES, "scipy") else "numpy"


def _check_columns(frame: Any, kind: str, what: str) -> None:
    """Refuse columns of text or objects, which no booster reads, by name."""
    names = frame.column_names if kind == "pyarrow" else frame.columns
    types = frame.schema.types if kind == "pyarrow" else frame.dtypes
    for name, dtype in zip(names, types, strict=True):
        if str(dtype).lower().startswith(_TEXT):
            advice = ", or make it a pandas category" if kind == "pandas" else ""
            raise DataError(
                f"the column {name!r} of {what} holds {dtype} and no numbers: encode it{advice}"
            )


def _numbers(table: npt.NDArray[Any], what: str) -> npt.NDArray[Any]:
    if table.dtype.kind == "O":
        try:
            table = table.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"{what} must hold numbers: {error}") from error
    if table.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {what} must hold real numbers")
    if table.dtype.kind not in "biuf":
        raise DataError(f"{what} must hold numbers, got {table.dtype}")
    return table
