"""Reading what theory, decoders and comparisons are given: tables and numbers."""

import sys
from numbers import Real
from typing import Any

import numpy as np

from gbmrank.columns import as_floats, check_digits
from gbmrank.errors import DataError, ParameterError
from gbmrank.types import ArrayLike, FloatArray, IntArray, is_whole

__all__ = [
    "LARGEST",
    "check_graphs",
    "check_symmetric",
    "read_number",
    "read_square",
    "read_table",
    "read_whole",
    "read_wholes",
]

LARGEST = 1e150  # of labels, weights and entries: their squares and sums are finite


def read_table(values: ArrayLike, what: str) -> FloatArray:
    """Return a new float64 array of the same shape.

    Parameters
    ----------
    values : array-like
        Rows of one length, with finite numbers up to 1e150; masked entries are missing ones.
    what : str
        What they are, for messages.

    Raises
    ------
    DataError
        For rows of different lengths, text, complex, masked, infinite or huge entries.

    Examples
    --------
    >>> read_table([[1, 2], [3, 4]], "labels")
    array([[1., 2.],
           [3., 4.]])
    """
    rows = values if isinstance(values, list | tuple) else (values,)
    if any(np.ma.is_masked(row) for row in rows):
        raise DataError(f"{what} have masked entries, which are missing values; fill or drop them")
    try:
        given = np.asarray(values)
        if given.dtype.kind in "cmM":
            raise TypeError(f"{given.dtype} is not a real number")
        table: FloatArray = np.array(given, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{what} are numbers{_why(values, error)}") from error
    check_digits(given.reshape(-1), what)
    wrong = np.argwhere(~(np.abs(table) <= LARGEST))
    if len(wrong):
        at = tuple(wrong[0].tolist())
        raise DataError(
            f"{what} are finite and at most {LARGEST:g}, got {table[at]:g} at index "
            f"{', '.join(map(str, at))}; drop, repair or rescale them"
        )
    return table


def read_square(values: ArrayLike, what: str, *, symmetric: bool = False) -> FloatArray:
    """Return a new square matrix, symmetric to nine digits where that is asked for.

    Examples
    --------
    >>> read_square([[0, 1], [2, 0]], "weights")
    array([[0., 1.],
           [2., 0.]])
    """
    matrix = read_table(values, what)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"{what} form a square matrix, got an array of shape {matrix.shape}")
    if symmetric:
        check_symmetric(matrix, what)
    return matrix


def check_symmetric(matrix: FloatArray, what: str) -> None:
    """Raise DataError with the first pair of entries that differ in nine digits."""
    apart = np.argwhere(~np.isclose(matrix, matrix.T, rtol=1e-9, atol=0.0))
    if len(apart):
        i, j = apart[0].tolist()
        raise DataError(
            f"{what} form a symmetric matrix, but entry ({i}, {j}) is {matrix[i, j]:g} and "
            f"({j}, {i}) is {matrix[j, i]:g}; average it with its transpose"
        )


def check_graphs(weights: FloatArray) -> FloatArray:
    """Return weights of shape (..., n, n) that are not negative, and zero on the diagonal."""
    loops = np.eye(weights.shape[-1], dtype=bool) & (weights != 0.0)
    wrong = np.argwhere((weights < 0.0) | loops)
    if len(wrong):
        i, j = wrong[0, -2:].tolist()
        raise DataError(
            f"the weight of {i} over {j} is {weights[tuple(wrong[0])]:g}; weights are finite and "
            "not negative, and zero on the diagonal"
        )
    return weights


def read_wholes(values: ArrayLike, what: str, least: int) -> IntArray:
    """Return a column of whole numbers.

    Examples
    --------
    >>> read_wholes([3.0, 4.0], "sizes", 1)
    array([3, 4])
    """
    column = as_floats(values, what)
    wrong = np.flatnonzero(~((column == np.floor(column)) & (column >= least) & (column < 2**53)))
    if len(wrong):
        at = int(wrong[0])
        raise DataError(f"{what} are whole numbers from {least}, got {column[at]:g} at index {at}")
    return column.astype(np.int64)


def read_whole(value: Any, what: str, least: int) -> int:
    """Return a whole number; a truth value is none.

    Examples
    --------
    >>> read_whole(np.int64(3), "items", 2)
    3
    """
    if not is_whole(value) or value < least:
        raise ParameterError(f"{what} must be a whole number from {least}, got {value!r}")
    return int(value)


def read_number(
    value: Any, what: str, low: float = -sys.float_info.max, high: float = sys.float_info.max
) -> float:
    """Return a number between two others, finite unless they are not.

    Examples
    --------
    >>> read_number(1, "rate", 0)
    1.0
    """
    real = isinstance(value, Real | np.number) and not isinstance(value, bool | np.complexfloating)
    try:
        number = float(value) if real else np.nan
    except OverflowError:
        number = np.nan
    if not low <= number <= high:
        above = f" from {low:g}" if low > -sys.float_info.max else ""
        below = f" up to {high:g}" if high < sys.float_info.max else ""
        kind = "number" if np.isinf(high) else "finite number"
        raise ParameterError(f"{what} must be a {kind}{above}{below}, got {value!r}")
    return number


def _why(values: Any, error: Exception) -> str:
    lengths = {len(row) for row in values if hasattr(row, "__len__")} if _listed(values) else ()
    if len(lengths) < 2:
        return f", got {type(values).__name__}: {error}"
    listed = ", ".join(map(str, sorted(lengths)))
    return f" in rows of one and the same length, got lengths {listed}; fill up the shorter ones"


def _listed(values: Any) -> bool:
    return isinstance(values, list | tuple)
