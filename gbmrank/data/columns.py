"""Read and validate columns, matrices, single numbers and query ids.

Columns may be numpy arrays, lists, or series of any data frame that narwhals supports.
"""

import re
import sys
from collections.abc import Hashable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.errors import DataError, GroupError, ParameterError, PluginContractError
from gbmrank.types import ArrayLike, FloatArray, IntArray, is_whole

LARGEST = 1e150  # label, weight or entry: squares and sums of these are finite
_EXACT = 2**53  # float64 represents every whole number up to here


def as_floats(values: ArrayLike, what: str, *, exact: bool = False) -> FloatArray:
    """Return one column as float64; ``exact`` rejects integers that float64 would round."""
    try:
        array = one_column(values)
        if array.dtype.kind in "cmM":
            raise TypeError(f"{array.dtype} is not a real number")
        floats = array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{what} must be one column of numbers, got {_describe(values)}: {error}"
        ) from error
    if floats.ndim != 1:
        raise DataError(f"{what} must be one column, got an array of shape {floats.shape}")
    if exact:
        if isinstance(values, Sequence) and np.any(np.abs(floats) >= _EXACT):
            array = one_column(np.array(values, dtype=object))  # numpy may have rounded a list
        check_digits(array, what)
    # For read-only columns (as pandas returns them) every kernel would be compiled again.
    return np.require(floats, requirements=["C", "W"])


def computed_column(values: Any, count: int, what: str) -> FloatArray:
    """Validate a column computed by a plugin; kernels would read past the end of a short one."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.empty(0, dtype=object)
    if array.shape != (count,) or array.dtype.kind not in "biuf":
        found = f"{array.dtype} of shape {array.shape}" if array.ndim else type(values).__name__
        raise PluginContractError(f"{what} must be {count} real numbers, got {found}")
    return np.ascontiguousarray(array, np.float64)


def check_digits(array: npt.NDArray[Any], what: str) -> None:
    """Raise DataError for integers that float64 would round, with count and first row."""
    if array.dtype.kind not in "iuO":
        return
    large = np.flatnonzero(np.abs(array.astype(np.float64)) >= _EXACT).tolist()
    lossy = [row for row in large if is_whole(array[row]) and int(array[row]) != float(array[row])]
    if lossy:
        raise DataError(
            f"{len(lossy)} of {len(array)} {what} are whole numbers with more digits than float64 "
            f"can represent; the first is {array[lossy[0]]} in row {lossy[0]}. Subtract an offset, "
            "use ranks, or convert the column to float64 if the last digits do not matter"
        )


def read_ids(qid: ArrayLike, what: str = "qid") -> npt.NDArray[Any]:
    """Return ids as an array, keeping different ids different.

    Missing ids raise a GroupError, and so do mixed types whose ids would collide as strings.
    """
    try:
        ids = one_column(qid)
    except (TypeError, ValueError, OverflowError) as error:
        raise GroupError(f"{what} must be one column, got {_describe(qid)}: {error}") from error
    if ids.ndim != 1:
        raise GroupError(f"{what} must be one column, got an array of shape {ids.shape}")
    rounded = ids.dtype.kind == "f" and not np.all(np.abs(ids.astype(float)) <= 2**53)
    if isinstance(qid, Sequence) and (rounded or ids.dtype.kind in "US"):
        listed = one_column(np.array(qid, dtype=object))
        kinds = {type(one) for one in listed}
        if len(kinds) > 1 or kinds == {int}:  # numpy would convert them to floats or strings
            ids = listed
    if ids.dtype.kind == "T":  # numpy's StringDType, whose entries may be missing
        ids = ids.astype(object)
    if len(missing := np.flatnonzero(find_missing(ids))):
        raise GroupError(
            f"{what} is missing in {len(missing)} rows, first in row {missing[0]}; every row needs "
            f"{'a query id' if what == 'qid' else 'an id'}"
        )
    return _as_texts(ids.tolist()) if ids.dtype.kind == "O" else ids


def find_missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return a mask of the entries that are None, NaN, NaT or another missing value."""
    if values.dtype.kind == "O":
        return np.array([_is_missing(value) for value in values], dtype=bool)
    there = np.zeros(len(values), dtype=bool)
    return np.isnan(values) if values.dtype.kind in "fcmM" else there


def id_texts(ids: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    """Return each id as a string; whole numbers look alike whatever the column type."""
    if ids.dtype.kind != "f":
        return np.array([_text(one) for one in ids])
    return np.array([str(int(one)) if one.is_integer() else str(one) for one in ids])


def shared_ids(own: npt.NDArray[Any], others: npt.NDArray[Any]) -> list[Any]:
    """Return the ids that two sets share; 0, 0.0, ``"0"`` and ``"0.0"`` match across types."""
    if own.dtype.kind == others.dtype.kind:
        return [one.item() for one in np.intersect1d(own, others)]
    mine, theirs = ([re.sub(r"\.0$", "", text) for text in id_texts(ids)] for ids in (own, others))
    known, found = set(theirs), dict(zip(mine, own, strict=True))
    return [one.item() for text, one in found.items() if text in known]


def _as_texts(ids: list[Any]) -> npt.NDArray[np.str_]:
    """Return ids of mixed types as strings; equal ids get the string of the first one."""
    nested = next((row for row, one in enumerate(ids) if not isinstance(one, Hashable)), None)
    if nested is not None:
        raise GroupError(
            f"qid must be numbers or text, but row {nested} holds {ids[nested]!r}, a "
            f"{type(ids[nested]).__name__}; take its entry, or convert it to text"
        )
    texts, kinds = [_text(one) for one in ids], {type(one) for one in ids}
    if kinds != {str}:
        text_of: dict[Any, str] = {}
        settled = [text_of.setdefault(one, text) for one, text in zip(ids, texts, strict=True)]
        if len(set(settled)) < len(text_of) or (len(kinds) > 1 and settled != texts):
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise GroupError(
                f"qid mixes types ({names}), and some ids differ only in type, such as 1 and '1'; "
                "convert the column to strings or to numbers"
            )
        texts = settled
    return np.array(texts, dtype=np.str_)


def _text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def one_column(values: Any) -> npt.NDArray[Any]:
    """Convert a column to an array; missing or masked entries become NaN or None."""
    if isinstance(values, np.ma.MaskedArray):
        masked = bool(np.ma.getmaskarray(values).any())
        values = np.array(values.tolist(), dtype=object) if masked else values.data
    elif not isinstance(values, np.ndarray | list | tuple):
        import narwhals.stable.v2 as nw

        series = nw.from_native(values, series_only=True, pass_through=True)
        values = series.to_numpy() if isinstance(series, nw.Series) else values
    array = np.asarray(values)
    return array.reshape(-1) if array.ndim == 2 and 1 in array.shape else array


def _is_missing(value: object) -> bool:
    try:
        return value is None or bool(value != value)  # noqa: PLR0124  (NaN differs from itself)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # nor has an array of several entries
        return False


def _describe(values: object) -> str:
    dtype = getattr(values, "dtype", None)
    return type(values).__name__ + ("" if dtype is None else f" of {dtype}")


def read_table(values: ArrayLike, what: str) -> FloatArray:
    """Return a float64 copy of an array after checking that it is finite and at most 1e150."""
    rows = values if isinstance(values, list | tuple) else (values,)
    if any(np.ma.is_masked(row) for row in rows):
        raise DataError(f"{what} have masked entries; fill or drop these missing values")
    try:
        given = np.asarray(values)
        if given.dtype.kind in "cmM":
            raise TypeError(f"{given.dtype} is not a real number")
        table: FloatArray = np.array(given, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(
            f"{what} must be numbers in rows of equal length, got {type(values).__name__}: {error}"
        ) from error
    check_digits(given.reshape(-1), what)
    if len(wrong := np.argwhere(~(np.abs(table) <= LARGEST))):
        at = tuple(wrong[0].tolist())
        raise DataError(
            f"{what} must be finite and at most {LARGEST:g}, got {table[at]:g} at index "
            f"{', '.join(map(str, at))}; drop, repair or rescale them"
        )
    return table


def read_square(values: ArrayLike, what: str, *, symmetric: bool = False) -> FloatArray:
    """Return a copy of a square matrix; ``symmetric`` checks symmetry to nine digits."""
    matrix = read_table(values, what)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"{what} must form a square matrix, got an array of shape {matrix.shape}")
    if symmetric:
        check_symmetric(matrix, what)
    return matrix


def check_symmetric(matrix: FloatArray, what: str) -> None:
    """Raise DataError for the first pair of entries that differ in the first nine digits."""
    if len(apart := np.argwhere(~np.isclose(matrix, matrix.T, rtol=1e-9, atol=0.0))):
        i, j = apart[0].tolist()
        raise DataError(
            f"{what} must form a symmetric matrix, but entry ({i}, {j}) is {matrix[i, j]:g} and "
            f"({j}, {i}) is {matrix[j, i]:g}; average the matrix with its transpose"
        )


def check_graphs(weights: FloatArray) -> FloatArray:
    """Validate weights of shape (..., n, n): not negative, and zero on the diagonal."""
    loops = np.eye(weights.shape[-1], dtype=bool) & (weights != 0.0)
    if len(wrong := np.argwhere((weights < 0.0) | loops)):
        i, j = wrong[0, -2:].tolist()
        raise DataError(
            f"the weight of {i} over {j} is {weights[tuple(wrong[0])]:g}; weights must be finite "
            "and not negative, and zero on the diagonal"
        )
    return weights


def read_wholes(values: ArrayLike, what: str, least: int) -> IntArray:
    """Return a column of whole numbers."""
    column = as_floats(values, what)
    wrong = np.flatnonzero(~((column == np.floor(column)) & (column >= least) & (column < 2**53)))
    if len(wrong):
        at = int(wrong[0])
        raise DataError(
            f"{what} must be whole numbers from {least}, got {column[at]:g} at index {at}"
        )
    return column.astype(np.int64)


def read_whole(value: Any, what: str, least: int) -> int:
    """Return a whole number; booleans are rejected."""
    if not is_whole(value) or value < least:
        raise ParameterError(f"{what} must be a whole number from {least}, got {value!r}")
    return int(value)


def read_number(
    value: Any, what: str, low: float = -sys.float_info.max, high: float = sys.float_info.max
) -> float:
    """Return a number after checking its bounds; it must be finite unless they are infinite."""
    real = isinstance(value, Real | np.number) and not isinstance(value, bool | np.complexfloating)
    number = float(value) if real else np.nan
    if not low <= number <= high:
        above = f" from {low:g}" if low > -sys.float_info.max else ""
        below = f" up to {high:g}" if high < sys.float_info.max else ""
        kind = "number" if np.isinf(high) else "finite number"
        raise ParameterError(f"{what} must be a {kind}{above}{below}, got {value!r}")
    return number
