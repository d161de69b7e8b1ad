"""Reading one column: numbers, or query ids that stay apart.

Reading what theory, decoders and comparisons are given: tables and numbers.
"""

import math
import sys
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.errors import DataError, GroupError, ParameterError, PluginContractError
from gbmrank.types import ArrayLike, FloatArray, IntArray, is_whole

__all__ = [
    "LARGEST",
    "as_floats",
    "check_digits",
    "check_graphs",
    "check_symmetric",
    "computed_column",
    "find_missing",
    "id_texts",
    "read_ids",
    "read_number",
    "read_square",
    "read_table",
    "read_whole",
    "read_wholes",
    "shared_ids",
    "text_column",
]


_EXACT = 2**53  # float64 has all whole numbers up to here


def as_floats(values: ArrayLike, what: str, *, exact: bool = False) -> FloatArray:
    """Return a column as a new or existing one-dimensional float64 array.

    Parameters
    ----------
    values : array-like of shape (n,)
        numpy, list, pandas, polars or pyarrow.
    what : str
        Name of the column, for messages.
    exact : bool, default=False
        Refuse whole numbers that float64 does not have.
    """
    try:
        array = _one_column(values)
        if array.dtype.kind in "cmM":
            raise TypeError(f"{array.dtype} is not a real number")
        with np.errstate(over="ignore"):  # longer floats become infinite, which callers refuse
            floats = array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{what} must be one column of numbers, got {_describe(values)}: {error}"
        ) from error
    if floats.ndim != 1:
        raise DataError(f"{what} must be one column, got an array of shape {floats.shape}")
    if exact:
        check_digits(_before_rounding(values, array), what)
    # Read-only columns (pandas gives them) would make every kernel be compiled a second time.
    return np.require(floats, requirements=["C", "W"])


def computed_column(values: Any, count: int, what: str) -> FloatArray:
    """Read a column that others may have computed; kernels would read beyond a shorter one.

    Parameters
    ----------
    values : array-like of shape (count,)
        What was returned.
    count : int
        How many numbers it should hold.
    what : str
        Who returned it, for the message.

    Raises
    ------
    PluginContractError
        When it is anything but that many real numbers.

    Examples
    --------
    >>> computed_column([1, 2], 2, "values")
    array([1., 2.])
    """
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.empty(0, dtype=object)
    if array.shape != (count,) or array.dtype.kind not in "biuf":
        found = f"{array.dtype} of shape {array.shape}" if array.ndim else type(values).__name__
        raise PluginContractError(f"{what} must be {count} real numbers, got {found}")
    return array.astype(np.float64, copy=False)


def check_digits(array: npt.NDArray[Any], what: str) -> None:
    """Raise DataError with the count and the first row for whole numbers float64 does not have.

    Examples
    --------
    >>> check_digits(np.array([2**53, 2**53 + 2, 2**60]), "labels")
    """
    lossy = np.flatnonzero(_loses_digits(array))
    if len(lossy):
        row = int(lossy[0])
        raise DataError(
            f"{len(lossy)} of {len(array)} {what} are whole numbers with more digits than float64 "
            f"holds, in which gbmrank computes; the first is {array[row]!s} in row {row}: "
            "subtract an offset, divide them, use ranks, or make the column float64 if the last "
            "digits do not matter"
        )


def _before_rounding(values: ArrayLike, read: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column as it was given: of a list of whole numbers, numpy may have made floats."""
    large = read.dtype.kind == "f" and isinstance(values, Sequence)
    if not large or not np.any(np.abs(read) >= _EXACT):  # which 2**53 + 1 became
        return read
    return _one_column(np.array(values, dtype=object))


def _loses_digits(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Tell which entries are whole numbers that float64 does not have."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if not len(array):
        return np.zeros(0, dtype=bool)
    if kind == "O":
        return np.array([_is_lossy(value) for value in array], dtype=bool)
    if kind == "f" and size > 8:
        with np.errstate(over="ignore"):
            rounded = array.astype(np.float64)
        return np.isfinite(rounded) & (np.abs(array) > _EXACT) & (rounded != array)
    if kind not in "iu" or size < 8 or -_EXACT <= int(array.min()) <= int(array.max()) <= _EXACT:
        return np.zeros(len(array), dtype=bool)
    magnitude = np.abs(array).astype(np.uint64)
    lowest_bit = np.maximum(magnitude & (~magnitude + np.uint64(1)), np.uint64(1))
    return magnitude // lowest_bit > np.uint64(_EXACT)


def _is_lossy(value: Any) -> bool:
    if value is None or isinstance(value, float | str | bytes):
        return False
    try:
        return bool(abs(value) > _EXACT and value == int(value) and float(value) != value)
    except (TypeError, ValueError, ArithmeticError):  # what is missing, infinite or no number
        return False


def read_ids(qid: ArrayLike) -> npt.NDArray[Any]:
    """Return query ids as an array in which different ids stay different.

    Parameters
    ----------
    qid : array-like of shape (n_rows,)
        Numbers, texts, dates or other objects. Objects of one type that are equal are one id,
        however they are written; those that only know themselves are told apart by their texts.

    Raises
    ------
    GroupError
        For ids that are missing, and for those that cannot be kept apart as texts.

    Examples
    --------
    >>> read_ids([7, 2**63 + 1, 2**63 + 2]).tolist()
    [7, 9223372036854775809, 9223372036854775810]
    """
    try:
        ids = _one_column(qid)
    except (TypeError, ValueError, OverflowError) as error:
        raise GroupError(f"qid must be one column, got {_describe(qid)}: {error}") from error
    if ids.ndim != 1:
        raise GroupError(f"qid must be one column, got an array of shape {ids.shape}")
    if isinstance(qid, Sequence) and ids.dtype.kind in "fUS":
        ids = _as_listed(qid, ids)
    if ids.dtype.kind == "T":  # numpy's texts of any length, which may be missing
        ids = ids.astype(object)
    if ids.dtype.kind == "O":
        _check_present(find_missing(ids))
        return _as_texts(ids)
    _check_present(find_missing(ids))
    return ids


def find_missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Say which entries are None, NaN or what else stands for a missing value.

    Examples
    --------
    >>> find_missing(np.array(["a", None, float("nan")], dtype=object)).tolist()
    [False, True, True]
    """
    if values.dtype.kind == "O":
        return np.array([_is_missing(value) for value in values], dtype=bool)
    there = np.zeros(len(values), dtype=bool)
    return np.isnan(values) if values.dtype.kind in "fcmM" else there


def id_texts(ids: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    """Return the text of each id; whole numbers have the same one in columns of any type.

    Examples
    --------
    >>> id_texts(np.array([7.0, 0.5])).tolist()
    ['7', '0.5']
    """
    if ids.dtype.kind != "f":
        return np.array([str(one) for one in ids])
    return np.array([str(int(one)) if one.is_integer() else str(one) for one in ids])


def text_column(texts: Sequence[str], what: str) -> npt.NDArray[np.str_]:
    """Return texts as an array in which different ones stay different.

    Raises
    ------
    GroupError
        For a NUL at the end of one: arrays of numpy drop it.

    Examples
    --------
    >>> text_column(["a", "b"], "qid").tolist()
    ['a', 'b']
    """
    for row, text in enumerate(texts):
        if text.endswith("\0"):
            raise GroupError(
                f"{what} is {text!r} in row {row}: arrays of numpy drop a NUL at the end of a "
                "text, and two ids could become one; remove or replace it"
            )
    return np.array(texts, dtype=np.str_)


def shared_ids(own: npt.NDArray[Any], others: npt.NDArray[Any]) -> list[Any]:
    """Return the ids that two sets share, whatever their types.

    A number is also known by its texts, so that 0, 0.0, ``"0"`` and ``"0.0"`` are one id; dates
    and bytes are compared with other types as texts.

    Parameters
    ----------
    own, others : array
        As :func:`read_ids` returns them.

    Examples
    --------
    >>> shared_ids(np.array([0.0, 1.5]), np.array(["0", "2"]))
    [0.0]
    """
    if own.dtype.kind == others.dtype.kind:
        return [one.item() for one in np.intersect1d(own, others)]
    known = {name for one in _plain(others) for name in _names(one)}
    return [one for one in dict.fromkeys(_plain(own)) if not known.isdisjoint(_names(one))]


def _as_listed(qid: Sequence[Any], read: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Look at the entries of a list: numpy makes floats of large numbers, and texts of mixtures."""
    ids = _one_column(np.array(qid, dtype=object))
    plain = [one.item() if isinstance(one, np.generic) else one for one in ids]
    if read.dtype.kind != "f":
        text_column([_text(one) for one in plain], "qid")
        return read if len({type(one) for one in plain}) == 1 else _objects(plain)
    if all(isinstance(one, int) for one in plain):
        fits = plain and min(plain) >= 0 and max(plain) < 2**64
        return np.array(plain, dtype=np.uint64) if fits else _objects(plain)
    _check_present(np.isnan(read))
    for one in plain:
        if isinstance(one, int) and one != float(one):
            raise GroupError(
                f"qid mixes whole numbers and fractions, and {one} has too many digits to be told "
                "from its neighbours among fractions; make the column all whole numbers or all text"
            )
    return read


def _objects(values: list[Any]) -> npt.NDArray[np.object_]:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def _check_present(missing: npt.NDArray[np.bool_]) -> None:
    if missing.any():
        raise GroupError(
            f"qid is missing in {int(missing.sum())} rows, first in row "
            f"{int(np.flatnonzero(missing)[0])}; every row needs a query id"
        )


def _as_texts(ids: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    """Return ids of any type as texts, where that keeps equal ids equal and others apart."""
    plain = ids.tolist()
    kinds = {type(value) for value in plain}
    texts = [_text(value) for value in plain]
    if kinds != {str}:
        texts = _one_text_each(plain, texts, kinds)
    return text_column(texts, "qid")


def _one_text_each(plain: list[Any], texts: list[str], kinds: set[type]) -> list[str]:
    """Give equal ids the text of the first one.

    Raises
    ------
    GroupError
        For different ids with one text, and in a mixture of types for equal ids with two.
    """
    keys = [
        value if _knows_equals(value) else text for value, text in zip(plain, texts, strict=True)
    ]
    text_of: dict[Any, str] = {}
    for key, text in zip(keys, texts, strict=True):
        text_of.setdefault(key, text)
    settled = [text_of[key] for key in keys]
    merged = len(set(settled)) < len(text_of)
    if merged or (len(kinds) > 1 and settled != texts):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise GroupError(
            f"qid mixes types ({names}), and some ids are equal as one and not as the other, such "
            "as 1 and '1'; make the column all text or all numbers"
            if len(kinds) > 1
            else f"qid has different ids of the type {names} with one text, which would become one "
            "query; make the column text or numbers"
        )
    return settled


def _knows_equals(value: Any) -> bool:
    """Whether an object can be hashed and is equal to more than itself."""
    try:
        hash(value)
    except TypeError:
        return False
    kind: Any = type(value)
    return kind.__eq__ is not object.__eq__


def _text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _plain(ids: npt.NDArray[Any]) -> list[Any]:
    """Return ids as Python's own values; dates as texts, since numpy makes numbers of some."""
    return ids.astype(str).tolist() if ids.dtype.kind in "mM" else ids.tolist()


def _names(one: Any) -> set[str]:
    """Return the texts under which an id may be found in a column of another type."""
    if not isinstance(one, int | float) or not math.isfinite(one):
        return {_text(one)}
    if one != int(one):
        return {str(one)}
    names = {str(int(one)), f"{int(one)}.0"}
    return names | {str(float(one))} if float(one) == one else names


def _one_column(values: Any) -> npt.NDArray[Any]:
    """Read a column; missing entries of frames and masked arrays become NaN or None."""
    if isinstance(values, np.ma.MaskedArray):
        masked = bool(np.ma.getmaskarray(values).any())
        values = np.array(values.tolist(), dtype=object) if masked else values.data
    polars = type(values).__module__.partition(".")[0] == "polars"
    if polars and hasattr(values, "to_numpy"):  # texts would get one length; lazy ones have none
        values = values.to_numpy()
    array = np.asarray(values)
    return array.reshape(-1) if array.ndim == 2 and 1 in array.shape else array


def _is_missing(value: object) -> bool:
    try:
        return value is None or bool(value != value)  # noqa: PLR0124  (NaN differs from itself)
    except TypeError:  # pandas.NA has no truth value
        return True


def _describe(values: object) -> str:
    dtype = getattr(values, "dtype", None)
    return type(values).__name__ + ("" if dtype is None else f" of {dtype}")


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
