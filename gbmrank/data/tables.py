"""Feature tables: numpy arrays, scipy sparse matrices, and data frames.

Data frames (pandas, polars, pyarrow) are read through narwhals. :class:`Reads` declares which
tables a booster supports.

A zero in a dense table is a number. In a sparse matrix some boosters treat an entry that is not
stored as missing, and a stored 0 as a number; :func:`with_zeros` converts a table so that its zeros
mean the same as in the training table.
"""

import importlib.metadata
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import as_floats, find_missing, id_texts, one_column
from gbmrank.data.row_store import RowStore
from gbmrank.errors import DataError, import_optional
from gbmrank.types import FloatArray, IntArray

_LARGEST = float(np.finfo(np.float32).max) / 2  # a difference of two is finite in float32
_CELLS_AT_ONCE = 1 << 22
_HALVES = ("Float16", "halffloat")  # of polars and pyarrow, which older versions of narwhals lack
_LONG = ("float96", "float128")  # of numpy


class Categories(NamedTuple):
    """The category values that the codes 0, 1, ... of a column stand for; NaN is missing."""

    values: tuple[str, ...]
    ordered: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """The feature tables and column types that a booster supports."""

    name: str
    package: str  # its distribution
    category_frames: tuple[str, ...]  # data frames whose categorical columns it reads
    # Types of pandas categories it reads, as named by Index.inferred_type, or "nullable integer",
    # or "empty" for a column without categories.
    category_kinds: tuple[str, ...]
    rejected_types: tuple[str, ...] = ()  # suffixes of numeric dtypes it does not read
    polars_since: tuple[int, int] | None = None  # first version that reads polars; None: all do
    floats: str = "<f8"  # in which it compares features
    zeros_by_form: bool = False  # whether entries that a sparse matrix does not store are missing


def read_table(table: Any, what: str = "X", reads: Reads | None = None) -> Any:
    """Validate a table and return it as a data frame, a CSR matrix or a numeric array.

    Data frames are returned unchanged. Masked entries of an array become missing values (NaN), and
    numbers are converted to native byte order, the only one XGBoost reads. Sparse matrices are
    converted to CSR with sorted, unique column indices.
    """
    if isinstance(table, RowStore):
        return table
    if type(table).__name__ == "RecordBatch":  # of pyarrow; XGBoost only reads pyarrow tables
        table = sys.modules["pyarrow"].Table.from_batches([table])
    frame = _frame(table)
    if is_sparse(table):
        table = _by_rows(table)
    elif frame is None:
        return _numbers(table, what)
    elif frame.implementation.is_pandas():
        foreign = {
            name: dtype.newbyteorder("=")
            for name, dtype in table.dtypes.items()
            if isinstance(dtype, np.dtype) and not dtype.isnative
        }
        table = table.astype(foreign) if foreign else table
    _check_shape(table, what)
    check_columns(table, what, reads)
    return table


def read_matrix(table: Any) -> FloatArray:
    """Return a dense table as an array: NaN, or numbers whose differences are finite as float32."""
    reject_sparse(table, "X")
    if (frame := _frame(table)) is None:
        made = np.asarray(read_table(table), np.float64)
    else:
        _check_shape(table, "X")
        named = zip(column_names(table) or [], frame.iter_columns(), strict=True)
        made = np.column_stack([_floats(each, f"the column {name!r} of X") for name, each in named])
    if len(bad := np.argwhere((np.abs(made) > _LARGEST).T)):
        number, row = bad[0].tolist()
        raise DataError(
            f"the column {_label(table, number)!r} of X is infinite, or larger than half the "
            f"largest float32, in row {row}; clip it, or set it to NaN (missing)"
        )
    return made


def is_sparse(table: Any) -> bool:
    """Whether a table is a scipy sparse matrix."""
    return type(table).__module__.startswith("scipy.")


def reject_sparse(table: Any, what: str) -> None:
    """Raise for a sparse matrix where a dense table is required."""
    if is_sparse(table):
        raise DataError(
            f"{what} is sparse, but only GBMRanker supports sparse features; pass "
            f"{what}.toarray(), with fewer columns if that is too large"
        )


def take_rows(table: Any, rows: IntArray | slice) -> Any:
    """Return rows of a table by number, in the given order."""
    if hasattr(table, "iloc"):  # pandas, whose column names may repeat
        return table.iloc[rows]
    frame = _frame(table)
    if frame is None:
        return (np.asarray(table) if isinstance(table, list | tuple) else table)[rows]
    return frame[rows].to_native()


def cell(table: Any, row: int, column: int) -> Any:
    """Return one entry of a table."""
    frame = _frame(table)
    if frame is None:
        return table[row][column] if isinstance(table, list | tuple) else table[row, column]
    return frame.item(int(row), int(column))


def frame_like(table: Any, columns: Mapping[str, Any]) -> Any:
    """Return columns as a data frame of the same library, or as they are for any other table."""
    if (frame := _frame(table)) is None:
        return dict(columns)
    return type(frame).from_dict(dict(columns), backend=frame.implementation).to_native()


def column_names(table: Any) -> list[str] | None:
    """Return the column names of a data frame as strings, or None for any other table."""
    if isinstance(table, RowStore):
        return table.names
    if (frame := _frame(table)) is None:
        return None
    named = table.columns if hasattr(table, "iloc") else getattr(table, "column_names", None)
    return [str(name) for name in (frame.columns if named is None else named)]


def columns_by_name(table: Any) -> dict[str, Any] | None:
    """Return the columns of a data frame by name (the last of equal names), or None."""
    if (frame := _frame(table)) is None:
        return None
    columns = (column.to_native() for column in frame.iter_columns())
    return dict(zip(column_names(table) or [], columns, strict=True))


def split_column(table: Any, name: str) -> tuple[Any, Any]:
    """Return a data frame without a column, and the column; the table and None without one."""
    frame = _frame(table)
    if frame is None or name not in frame.columns:
        return table, None
    return frame.drop(name).to_native(), frame[name].to_native()


def with_names(table: Any, names: Sequence[str]) -> Any:
    """Return a data frame with new column names; any other table is returned unchanged."""
    if isinstance(table, RowStore):
        return table.renamed(list(names))
    if (frame := _frame(table)) is None:
        return table
    if frame.implementation.is_pandas():  # a MultiIndex has no names to replace one by one
        return table.set_axis(list(names), axis=1)
    return frame.rename(dict(zip(frame.columns, names, strict=True))).to_native()


def categorical_columns(table: Any) -> list[int]:
    """Return the numbers of the categorical columns."""
    frame = _frame(table)
    columns = () if frame is None else frame.iter_columns()
    return [number for number, column in enumerate(columns) if _is_category(column)]


def dense(table: Any, categories: Sequence[Sequence[Any]] = ()) -> FloatArray:
    """Return a table as an array of numbers.

    Categorical columns of pandas, in their order, become codes of ``categories``; others are
    missing.
    """
    if is_sparse(table):
        return np.asarray(table.toarray(), np.float64)
    made = table
    for at, known in zip(categorical_columns(table), categories, strict=True):
        made = made.copy(deep=False) if made is table else made
        codes = table.iloc[:, at].cat.set_categories(known).cat.codes.to_numpy(np.float64)
        made.isetitem(at, np.where(codes < 0, np.nan, codes))
    return np.column_stack([np.asarray(each, np.float64) for each in _columns(made)])


def numeric_columns(table: Any, which: IntArray | slice) -> FloatArray:
    """Return some of the columns of a data frame that are not categorical, as an array."""
    found = [one for one in _frame(table).iter_columns() if not _is_category(one)]
    taken = [as_floats(found[at].to_native(), "X") for at in np.arange(len(found))[which]]
    return np.column_stack(taken) if taken else np.zeros((table.shape[0], 0))


def category_codes(column: Any) -> tuple[FloatArray, Categories]:
    """Encode a column of any values as codes; also return the categories as strings.

    Ordered pandas categories keep their order; all others are sorted.

    >>> category_codes(["b", "a", None, "b"])
    (array([ 1.,  0., nan,  1.]), Categories(values=('a', 'b'), ordered=False))
    """
    values = one_column(np.array(column, dtype=object) if isinstance(column, list) else column)
    known = ~find_missing(values)
    texts = id_texts(values[known])
    levels, codes = np.unique(texts, return_inverse=True)
    found = np.full(len(values), np.nan)
    found[known] = codes
    own = getattr(column, "cat", None)  # of pandas
    if not getattr(own, "ordered", False):
        return found, Categories(tuple(map(str, levels)))
    ordered = [str(one) for one in id_texts(np.asarray(column.cat.categories))]
    places = np.array([ordered.index(str(level)) for level in levels], dtype=np.int64)
    found[known] = places[codes]
    return found, Categories(tuple(ordered), ordered=True)


def category_frame(
    values: npt.NDArray[Any], names: Sequence[str], categories: Mapping[int, Categories]
) -> Any:
    """Return a pandas data frame whose columns of codes, by number, are categorical."""
    missing = "categorical features need pandas; install it with: pip install pandas"
    pd = import_optional("pandas", missing)
    frame = pd.DataFrame(values, columns=list(names))
    for at, known in categories.items():
        codes = np.nan_to_num(values[:, at], nan=-1.0).astype(np.int64)
        dtype = pd.CategoricalDtype(list(known.values), ordered=known.ordered)
        frame.isetitem(at, pd.Categorical.from_codes(codes, dtype=dtype))
    return frame


def first_infinite(table: Any) -> tuple[int, Any] | None:
    """Return row and column of the first entry that is infinite as float32, or None."""
    for number, values in enumerate(_columns(table)):
        with np.errstate(over="ignore"):
            bad = np.flatnonzero(np.isinf(values.astype(np.float32)))
        if len(bad):
            return int(bad[0]), _label(table, number)
    return None


def check_columns(table: Any, what: str, reads: Reads | None) -> None:
    """Raise DataError for a column the booster does not support; LightGBM would abort."""
    if (frame := _frame(table)) is None:
        return
    if reads is not None and reads.polars_since and frame.implementation.is_polars():
        found, first = importlib.metadata.version(reads.package), reads.polars_since
        if is_before(found, first):
            least = ".".join(map(str, first))
            raise DataError(
                f"{what} is a polars data frame, which needs {reads.name} {least} or newer, but "
                f"{found} is installed; pip install '{reads.package}>={least}', or pass "
                f"{what}.to_pandas()"
            )
    for name, column in zip(column_names(table) or [], frame.iter_columns(), strict=True):
        if (problem := _problem(column, reads)) is not None:
            shown = _type_text(column).partition("(")[0]  # without all the categories of an enum
            raise DataError(f"the column {name!r} of {what} has type {shown}{problem}")


def zeros_of(table: Any, reads: Reads | None) -> str | None:
    """Return how the booster treats zeros: "numbers", "missing", "both", or None if alike."""
    if reads is None or not reads.zeros_by_form:
        return None
    if not is_sparse(table):
        return "numbers"
    if table.shape[0] == 0:  # an outline, whose rows are elsewhere
        return "both"
    if table.nnz == table.shape[0] * table.shape[1]:
        return "numbers"
    return "missing" if np.all(table.data) else "both"


def with_zeros(table: Any, zeros: str | None, what: str) -> Any:
    """Convert a table, dense or sparse, so that its zeros mean the same as in training."""
    if zeros is None or is_sparse(table) == (zeros != "numbers"):
        return table
    if zeros == "numbers":
        return table.toarray()
    values = np.column_stack(list(_columns(table)))
    if zeros == "missing":
        return _by_rows(values)
    if np.any(values == 0):
        raise DataError(
            f"{what} is dense and has zeros, but the model was trained on sparse features, where "
            "entries that are not stored are missing and a stored 0 is a number; pass "
            f"{what} as a sparse matrix that stores the zeros that are numbers"
        )
    return table


def parts_to_score(table: Any, zeros: str | None, what: str) -> Iterator[Any]:
    """Yield the rows after :func:`with_zeros`, in small parts if they become dense."""
    if not is_sparse(table):
        yield with_zeros(table, zeros, what)
        return
    with np.errstate(over="ignore"):
        infinite = np.isinf(table.data.astype(np.float32)).any()
    if zeros != "numbers" or infinite:  # in one part, so that the error has the right row number
        yield table
        return
    step = max(1, _CELLS_AT_ONCE // table.shape[1])
    for start in range(0, table.shape[0], step):
        yield with_zeros(table[start : start + step], zeros, what)


def is_before(version: str, least: tuple[int, int]) -> bool:
    """Whether a version is older than a release; False if it cannot be parsed."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and tuple(map(int, found.groups())) < least


def _frame(table: Any) -> Any:
    """Return a data frame wrapped by narwhals, or None for any other table."""
    if isinstance(table, np.ndarray | list | tuple) or is_sparse(table):
        return None
    import narwhals.stable.v2 as nw

    # narwhals needs unique column names, but in pandas and pyarrow they may repeat.
    if nw.dependencies.is_pandas_dataframe(table) and not table.columns.is_unique:
        table = table.set_axis(range(table.shape[1]), axis=1)
    elif nw.dependencies.is_pyarrow_table(table) and len(set(table.column_names)) < table.shape[1]:
        table = table.rename_columns([str(number) for number in range(table.shape[1])])
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _check_shape(table: Any, what: str) -> None:
    shape = tuple(table.shape)
    if len(shape) != 2:
        raise DataError(
            f"{what} must be a table of rows and columns, got shape {shape}. Reshape your data: "
            "reshape(-1, 1) for one column, reshape(1, -1) for one row"
        )
    for count, noun in zip(shape, ("sample", "feature"), strict=True):
        if count == 0:  # worded as scikit-learn's estimator checks expect
            raise DataError(
                f"{what} has 0 {noun}(s) (shape={shape}) while a minimum of 1 is required."
            )


def _numbers(table: Any, what: str) -> npt.NDArray[Any]:
    """Return an array-like as an array of real numbers in native byte order."""
    if isinstance(table, np.ma.MaskedArray) and table.dtype.kind in "biufO":
        wide = np.float64 if table.dtype.kind in "biu" else table.dtype
        table = np.where(np.ma.getmaskarray(table), np.nan, np.ma.getdata(table)).astype(wide)
    try:
        values = np.asarray(table)
    except ValueError as error:  # rows of different lengths
        raise DataError(
            f"{what} must be a table of numbers with rows of equal length: {error}"
        ) from error
    _check_shape(values, what)
    if values.dtype.kind == "O":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"{what} contains a non-numeric value: {error}") from error
    if values.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {what} must contain real numbers")
    if values.dtype.kind not in "biuf":
        raise DataError(f"{what} must contain numbers, got {values.dtype}")
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _by_rows(table: Any) -> Any:
    """Return a sparse matrix as canonical CSR, the one format both boosters read correctly.

    XGBoost reads out of bounds if the column indices of a row are not sorted, and neither booster
    sums duplicate entries. The argument is not modified.
    """
    from scipy.sparse import csr_matrix

    made = csr_matrix(table)  # LightGBM predicts from no other sparse format
    if not made.has_canonical_format:
        made = made.copy()  # it may share memory with the argument
        made.sum_duplicates()
    if made.data.dtype not in (np.float32, np.float64):  # LightGBM predicts from no other dtype
        made = made.astype(np.float64)
    return made


def _problem(column: Any, reads: Reads | None) -> str | None:
    """Describe why a column is not supported and what to do; None if it is supported."""
    if _is_category(column):
        return None if reads is None else _category_problem(column, reads)
    if not _is_number(column):
        pandas = column.implementation.is_pandas()
        return f", not numbers; encode it{', or make it a pandas category' if pandas else ''}"
    rejected = _LONG if reads is None else (*_LONG, *reads.rejected_types)
    if _type_text(column).endswith(rejected):
        return ", which the booster does not support; convert it to float64"
    return None


def _category_problem(column: Any, reads: Reads) -> str | None:
    frame = column.implementation.value
    if frame not in reads.category_frames:
        return (
            f", but {reads.name} reads categories only from "
            f"{' and '.join(reads.category_frames)}; pass such a data frame, or encode the column "
            "as numbers"
        )
    if frame != "pandas":
        return None
    categories = column.to_native().cat.categories
    kind, plain = categories.inferred_type, isinstance(categories.dtype, np.dtype)
    if (kind if plain or kind != "integer" else "nullable integer") in reads.category_kinds:
        return None
    if len(categories) == 0:
        return " without any category; leave it out, or set the categories of the training data"
    shown = kind if categories.dtype == object else categories.dtype
    return (
        f" of {shown}, which {reads.name} does not support as categories; rename them to unique "
        "strings (cat.rename_categories)"
    )


def _is_category(column: Any) -> bool:
    """Whether a column is categorical; in pyarrow, a dictionary of strings."""
    import narwhals.stable.v2 as nw

    text = _type_text(column)
    known = isinstance(column.dtype, nw.Categorical | nw.Enum)
    return known and ("dictionary" not in text or "string" in text)


def _is_number(column: Any) -> bool:
    import narwhals.stable.v2 as nw

    dtype = column.dtype
    if isinstance(dtype, nw.Unknown):  # sparse, of another byte order, long or short
        kind = getattr(getattr(column.to_native(), "dtype", None), "kind", "O")
        return kind in "biuf" or _type_text(column) in _HALVES
    wide = isinstance(dtype, nw.Decimal | nw.Int128 | nw.UInt128)
    return (dtype.is_numeric() and not wide) or isinstance(dtype, nw.Boolean)


def _type_text(column: Any) -> str:
    """Return the type of a column as its data frame library prints it."""
    native = column.to_native()
    return str(native.dtype if hasattr(native, "dtype") else native.type)


def _columns(table: Any) -> Iterator[npt.NDArray[Any]]:
    """Yield each column as an array of numbers; an empty array for a categorical column."""
    if (frame := _frame(table)) is not None:
        for column in frame.iter_columns():
            yield np.empty(0) if _is_category(column) else as_floats(column.to_native(), "X")
        return
    for number in range(table.shape[1]):
        values = table[:, [number]]
        yield (values.toarray() if is_sparse(table) else values).reshape(-1)


def _floats(column: Any, what: str) -> FloatArray:
    if _is_category(column):
        raise DataError(f"{what} is categorical; encode it as numbers")
    try:
        return as_floats(column.to_native(), what)
    except DataError as error:
        raise DataError(f"{error}; encode it as numbers") from error


def _label(table: Any, number: int) -> Any:
    """Return the name of a column, or its number where it has none."""
    names = column_names(table)
    return number if names is None else names[number]
