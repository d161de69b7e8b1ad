"""Features in the forms boosters read: arrays, sparse matrices, and frames of any kind.

Nothing here imports a frame library: whoever made a frame has done so.

What a zero of the features is to XGBoost.

In a dense table it is a number. In a sparse matrix it is missing where nothing is stored, and a
number where a 0 is. LightGBM reads zeros as zeros in either form.
"""

import importlib.metadata
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import as_floats
from gbmrank.errors import DataError
from gbmrank.types import IntArray

__all__ = [
    "as_array",
    "categorical_columns",
    "check_columns",
    "column_names",
    "first_beyond",
    "is_sparse",
    "parts_to_score",
    "read_matrix",
    "read_table",
    "refuse_sparse",
    "take_rows",
    "unmasked",
    "with_names",
    "with_zeros",
    "zeros_of",
]


_FRAMES = ("pandas", "polars", "pyarrow")
# As polars and pyarrow say, in small letters.
_WHOLE = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_NUMBERS = _WHOLE | {"float32", "float64", "float", "double", "bool", "boolean"}
_HALVES = ("float16", "halffloat")
_SCALARS = (str, bool, int, float, np.bool_, np.integer, np.floating)
_LARGEST = float(np.finfo(np.float32).max) / 2
_LONG = ("float96", "float128")
_CATEGORIES = (
    "categorical",
    "enum",
    "dictionary<values=string",
    "dictionary<values=large_string",
)


def read_table(table: Any, what: str = "X", backend: str | None = None) -> Any:
    """Return a frame as it is, a sparse matrix by rows, anything else as an array of numbers.

    Masked entries of an array are missing values (NaN), and numbers get the byte order of this
    machine, the only one XGBoost reads. Rows of a sparse matrix have each column once, in order.

    Parameters
    ----------
    table : array-like, sparse matrix, or pandas, polars or pyarrow table
        One row per item.
    what : str, default="X"
        Its name, for messages.
    backend : {"lightgbm", "xgboost"}, optional
        The booster it is for: XGBoost reads categories of every frame, LightGBM those of pandas.

    Raises
    ------
    DataError
        Unless it has rows and columns, of numbers (or categories, in a frame).
    """
    kind = _kind(table)
    if type(table).__name__ == "RecordBatch":  # of pyarrow; XGBoost reads tables alone
        table = sys.modules["pyarrow"].Table.from_batches([table])
    if kind == "scipy":
        table = _sparse(table)
    elif kind == "numpy":
        table = _native(_numbers(_as_array(table, what), what))
    _check_shape(table, what)
    check_columns(table, what, backend)
    if kind == "polars" and backend == "lightgbm":
        _check_reads_polars(what)
    return _native_columns(table) if kind == "pandas" else table


def read_matrix(table: Any, what: str = "X") -> npt.NDArray[np.float64]:
    """Return a table as an array of finite numbers and NaN, for features that are computed with.

    Differences of its rows are finite as float32, too.

    Raises
    ------
    DataError
        For a sparse matrix, and for columns of anything else, by name.
    """
    refuse_sparse(table, what)
    kind = _kind(table)
    if kind in _FRAMES:
        _check_shape(table, what)
        columns = [_numbers_of(table, number, what) for number in range(table.shape[1])]
        made = np.column_stack(columns)
    else:
        made = np.asarray(read_table(table, what), np.float64)
    for number in range(made.shape[1]):
        bad = np.flatnonzero(np.abs(made[:, number]) > _LARGEST)
        if len(bad):
            raise DataError(
                f"the column {_label(table, number)!r} of {what} is infinite, or beyond half the "
                f"largest float32, in row {int(bad[0])}: clip it, or make it NaN, a missing value"
            )
    return made


def is_sparse(table: Any) -> bool:
    """Whether a table is a sparse matrix of scipy."""
    return _kind(table) == "scipy"


def as_array(table: Any) -> npt.NDArray[Any]:
    """Return a table of numbers, as :func:`read_table` gives it, as one array."""
    if is_sparse(table):
        return np.asarray(table.toarray())
    if _kind(table) == "numpy":
        return np.asarray(table)
    return np.column_stack([_column(table, number) for number in range(table.shape[1])])


def check_columns(table: Any, what: str, backend: str | None) -> None:
    """Refuse columns of a frame that the booster does not read, by name.

    LightGBM would end the process.
    """
    kind = _kind(table)
    if kind not in _FRAMES:
        return
    names = table.column_names if kind == "pyarrow" else table.columns
    for name, dtype in zip(names, _types(table, kind), strict=True):
        refusal = _refusal(dtype, kind, backend)
        if refusal is not None:
            shown = str(dtype).partition("(")[0]  # without all the categories of an enum
            raise DataError(f"the column {name!r} of {what} holds {shown}{refusal}")


def refuse_sparse(table: Any, what: str) -> None:
    """Raise for a sparse matrix where rows are needed in full."""
    if is_sparse(table):
        raise DataError(
            f"{what} is sparse, and only GBMRanker reads sparse features: give {what}.toarray(), "
            "of fewer columns where that is too large"
        )


def _numbers_of(frame: Any, number: int, what: str) -> npt.NDArray[np.float64]:
    name, kind = _label(frame, number), _kind(frame)
    if _is_category(_types(frame, kind)[number], kind):
        raise DataError(f"the column {name!r} of {what} holds categories: encode it as numbers")
    try:
        return as_floats(_take_column(frame, number), f"the column {name!r} of {what}")
    except DataError as error:
        raise DataError(f"{error}; encode it as numbers") from error


def _sparse(table: Any) -> Any:
    """Return a sparse matrix in the one form that both boosters read as scipy does.

    XGBoost reads beyond its memory where the columns of a row are not in order, and neither
    booster adds up entries that are there twice. What was given is not changed.
    """
    from scipy.sparse import csr_matrix

    made = csr_matrix(table)  # LightGBM predicts for no other kind
    if not made.has_canonical_format:
        made = made.copy()  # it may share its entries with the one that was given
        made.sum_duplicates()
    if made.data.dtype not in (np.float32, np.float64):  # LightGBM predicts for no other numbers
        made = made.astype(np.float64)
    return made


def unmasked(table: Any) -> npt.NDArray[Any]:
    """Return an array-like as an array; masked entries of one become missing values, NaN."""
    if not isinstance(table, np.ma.MaskedArray) or table.dtype.kind not in "biufO":
        return np.asarray(table)
    wide = np.float64 if table.dtype.kind in "biu" else table.dtype
    return np.where(np.ma.getmaskarray(table), np.nan, np.ma.getdata(table)).astype(wide)


def _as_array(table: Any, what: str) -> npt.NDArray[Any]:
    try:
        return unmasked(table)
    except ValueError as error:  # rows of different lengths
        raise DataError(
            f"{what} must be a table of numbers, with as many in each row: {error}"
        ) from error


def take_rows(table: Any, rows: IntArray) -> Any:
    """Return rows of a table, by number and in this order."""
    kind = _kind(table)
    if kind == "pandas":
        return table.iloc[rows]
    return table.take(rows) if kind == "pyarrow" else table[rows]


def column_names(table: Any) -> list[str] | None:
    """Return the names of the columns of a frame as texts, or None for what is no frame."""
    kind = _kind(table)
    if kind not in _FRAMES:
        return None
    return [str(name) for name in (table.column_names if kind == "pyarrow" else table.columns)]


def categorical_columns(table: Any) -> list[int]:
    """Return the numbers of the columns that hold categories."""
    kind = _kind(table)
    if kind not in _FRAMES:
        return []
    types = _types(table, kind)
    return [number for number, dtype in enumerate(types) if _is_category(dtype, kind)]


def first_beyond(table: Any) -> tuple[int, Any] | None:
    """Return row and column of the first entry that is infinite as float32, or None.

    Columns are told by name where they have one, and the first column that holds such an entry
    is the one told.
    """
    for number in range(table.shape[1]):
        values = _column(table, number)
        with np.errstate(over="ignore"):
            bad = np.flatnonzero(np.isinf(values.astype(np.float32)))
        if len(bad):
            return int(bad[0]), _label(table, number)
    return None


def with_names(table: Any, names: Sequence[str]) -> Any:
    """Return a frame with other column names; anything else is returned as it is."""
    kind = _kind(table)
    if kind == "pandas":
        return table.set_axis(list(names), axis=1)
    if kind == "polars":
        return table.rename(dict(zip(table.columns, names, strict=True)))
    return table.rename_columns(list(names)) if kind == "pyarrow" else table


def _check_shape(table: Any, what: str) -> None:
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


def _kind(table: Any) -> str:
    module = type(table).__module__.partition(".")[0]
    return module if module in (*_FRAMES, "scipy") else "numpy"


def _types(frame: Any, kind: str) -> Any:
    return frame.schema.types if kind == "pyarrow" else list(frame.dtypes)


def _check_reads_polars(what: str) -> None:
    found = importlib.metadata.version("lightgbm")
    if is_before(found, (4, 7)):
        raise DataError(
            f"{what} is a polars data frame, which LightGBM reads from version 4.7 on, and {found} "
            f"is installed: pip install 'lightgbm>=4.7', or give {what}.to_pandas()"
        )


def _refusal(dtype: Any, kind: str, backend: str | None) -> str | None:
    """Say what is wrong with a type of columns, and what to do; None for one that is read."""
    text, pandas = str(dtype).lower(), kind == "pandas"
    if _is_category(dtype, kind):
        if pandas:
            return _category_refusal(dtype.categories, backend)
        if backend != "lightgbm":
            return None
        return (
            ", and LightGBM reads categories of pandas alone: give a pandas data frame, encode "
            "it as numbers, or use backend='xgboost'"
        )
    if not (dtype.kind in "biuf" if pandas else text in (*_NUMBERS, *_HALVES)):
        return f" and no numbers: encode it{', or make it a pandas category' if pandas else ''}"
    unread = text.endswith("[pyarrow]") if pandas else text in _HALVES
    if (unread and backend == "lightgbm") or text in _LONG:
        return ", which the booster does not read: make it float64"
    return None


def _category_refusal(categories: Any, backend: str | None) -> str | None:
    """Say what is wrong with categories of pandas; None for those that the booster reads."""
    kind = categories.inferred_type
    if backend == "xgboost":
        whole = kind == "integer" and isinstance(categories.dtype, np.dtype)
        read = len(categories) > 0 and (whole or kind in ("string", "bytes"))
    else:  # LightGBM writes them into its model as JSON
        read = backend is None or all(isinstance(each, _SCALARS) for each in categories)
    if read:
        return None
    if len(categories) == 0:
        return ", and there is none: leave it out, or give it those of the training"
    shown = kind if categories.dtype == object else categories.dtype
    return (
        f" of {shown}, which {backend} does not read as categories: make them texts, all "
        "different (cat.rename_categories)"
    )


def _is_category(dtype: Any, kind: str) -> bool:
    text = str(dtype).lower()
    return text == "category" if kind == "pandas" else text.startswith(_CATEGORIES)


def _column(table: Any, number: int) -> npt.NDArray[Any]:
    """Return a column as an array of numbers; categories have none and are empty."""
    kind = _kind(table)
    if kind == "scipy":
        return np.asarray(table[:, [number]].toarray()).reshape(-1)
    if kind == "numpy":
        return np.asarray(table[:, number])
    if _is_category(_types(table, kind)[number], kind):
        return np.empty(0)
    return as_floats(_take_column(table, number), "X")


def _take_column(frame: Any, number: int) -> Any:
    if _kind(frame) == "pandas":
        return frame.iloc[:, number]
    return frame.column(number) if _kind(frame) == "pyarrow" else frame.to_series(number)


def _label(table: Any, number: int) -> Any:
    """Return the name of a column, or its number where it has none."""
    names = column_names(table)
    return number if names is None else names[number]


def _native(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def _native_columns(frame: Any) -> Any:
    """Return a pandas frame whose columns have the byte order of this machine."""
    types = [dtype if isinstance(dtype, np.dtype) else None for dtype in frame.dtypes]
    foreign = [at for at, dtype in enumerate(types) if dtype is not None and not dtype.isnative]
    if not foreign:
        return frame
    frame = frame.copy()
    for at in foreign:
        frame.isetitem(at, _native(frame.iloc[:, at].to_numpy()))
    return frame


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


_CELLS_AT_ONCE = 1 << 22


def zeros_of(table: Any, backend: str | None) -> str | None:
    """Return what the zeros of a training set are to the booster.

    Parameters
    ----------
    table : table
        As :func:`gbmrank.data.tables.read_table` returns it.
    backend : {"lightgbm", "xgboost"} or None
        The booster, if one is to read it.

    Returns
    -------
    {"numbers", "missing", "both"} or None
        None where the form of a table makes no difference.
    """
    if backend != "xgboost":
        return None
    if not is_sparse(table):
        return "numbers"
    if table.shape[0] == 0:  # stands for rows that lie elsewhere
        return "both"
    if table.nnz == table.shape[0] * table.shape[1]:
        return "numbers"
    return "missing" if np.all(table.data) else "both"


def with_zeros(table: Any, zeros: str | None, what: str) -> Any:
    """Return a table in the form in which its zeros are what those of the training were.

    Parameters
    ----------
    table : table
        As :func:`gbmrank.data.tables.read_table` returns it.
    zeros : {"numbers", "missing", "both"} or None
        What zeros of the training were; None leaves the table as it is.
    what : str
        Its name, for messages.

    Raises
    ------
    DataError
        For a dense table with zeros, where those of the training were both.
    """
    if zeros is None or is_sparse(table) == (zeros != "numbers"):
        return table
    values = as_array(table)
    if zeros == "numbers":
        return values
    if zeros == "missing":
        return _sparse_table(values)
    if np.any(values == 0):
        raise DataError(
            f"{what} is dense and has zeros; in the sparse features of the training XGBoost took "
            "zeros for missing where nothing was stored, and for numbers where a 0 was: give "
            f"{what} as a sparse matrix, with a 0 stored where it is a number"
        )
    return table


def parts_to_score(table: Any, zeros: str | None, what: str) -> Iterator[Any]:
    """Yield the rows of a table with zeros as in the training, few at once where they fill up.

    Parameters are those of :func:`with_zeros`.
    """
    if zeros != "numbers" or not is_sparse(table):
        yield with_zeros(table, zeros, what)
        return
    with np.errstate(over="ignore"):
        if np.any(np.isinf(table.data.astype(np.float32))):
            yield table  # refused by XGBoost, which is to count the rows of the whole
            return
    step = max(1, _CELLS_AT_ONCE // table.shape[1])
    for start in range(0, table.shape[0], step):
        yield with_zeros(table[start : start + step], zeros, what)


def _sparse_table(values: npt.NDArray[Any]) -> Any:
    from scipy.sparse import csr_matrix

    kept = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
    return csr_matrix(kept)


def is_before(version: str, least: tuple[int, int]) -> bool:
    """Whether a version is older than a release; one that cannot be read is not.

    Examples
    --------
    >>> is_before("4.6.0", (4, 7)), is_before("4.10rc1", (4, 7)), is_before("unknown", (4, 7))
    (True, False, False)
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and tuple(map(int, found.groups())) < least
