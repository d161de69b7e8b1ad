"""Reading one column: numbers, or query ids that stay apart."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.errors import DataError, GroupError
from gbmrank.types import ArrayLike, FloatArray

__all__ = ["as_floats", "check_digits", "id_texts", "read_ids", "shared_ids", "text_column"]

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
        floats = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{what} must be one column of numbers, got {_describe(values)}: {error}"
        ) from error
    if floats.ndim != 1:
        raise DataError(f"{what} must be one column, got an array of shape {floats.shape}")
    if exact:
        check_digits(array, what)
    # Read-only columns (pandas gives them) would make every kernel be compiled a second time.
    return np.require(floats, requirements=["C", "W"])


def check_digits(array: npt.NDArray[Any], what: str) -> None:
    """Raise DataError with the count and the first row for whole numbers float64 does not have.

    Examples
    --------
    >>> check_digits(np.array([2**53, 2**53 + 2, 2**60]), "labels")
    """
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or not len(array):
        return
    if int(array.min()) >= -_EXACT and int(array.max()) <= _EXACT:
        return
    size = np.abs(array).astype(np.uint64)
    lowest_bit = np.maximum(size & (~size + np.uint64(1)), np.uint64(1))
    lossy = np.flatnonzero(size // lowest_bit > np.uint64(_EXACT))
    if len(lossy):
        raise DataError(
            f"{len(lossy)} of {len(array)} {what} are whole numbers with more digits than float64 "
            f"holds, in which gbmrank computes; the first is {array[lossy[0]]} in row {lossy[0]}: "
            "subtract an offset, divide them, use ranks, or make the column float64 if the last "
            "digits do not matter"
        )


def read_ids(qid: ArrayLike) -> npt.NDArray[Any]:
    """Return query ids as an array in which different ids stay different.

    Parameters
    ----------
    qid : array-like of shape (n_rows,)
        Numbers, texts, dates or other objects; objects are told apart by their texts.

    Raises
    ------
    GroupError
        For ids that are missing, and for mixtures that cannot be kept apart.

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
        _check_present(np.array([_is_missing(value) for value in ids], dtype=bool))
        return _as_texts(ids)
    if ids.dtype.kind in "fcmM":
        _check_present(np.isnan(ids))
    return ids


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
    texts = text_column([_text(value) for value in plain], "qid")
    mixed = len(kinds) > 1 or bytes in kinds
    pairs = set(zip(plain, texts.tolist(), strict=True)) if mixed else set()
    if mixed and not len(pairs) == len({text for _, text in pairs}) == len(set(plain)):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise GroupError(
            f"qid mixes types ({names}), and some ids are equal as one and not as the other, such "
            "as 1 and '1'; make the column all text or all numbers"
        )
    return texts


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
        values = np.array(values.tolist(), dtype=object)
    if type(values).__module__.partition(".")[0] == "polars":  # its texts would get one length
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
