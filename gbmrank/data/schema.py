"""The columns of the training data, and checks that another table or partition has the same.

Partitions are compared by outlines: their feature tables without rows. They then get the
categories of all partitions, since boosters only see category codes, which must agree.
"""

import importlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gbmrank.data.tables import (
    Reads,
    categorical_columns,
    check_columns,
    column_names,
    is_sparse,
    parts_to_score,
    read_table,
    take_rows,
    with_names,
    zeros_of,
)
from gbmrank.errors import DataError, GbmrankWarning, warn
from gbmrank.types import FloatArray

_TRAINING = "the training data"

_UNSAFE = re.compile(r'[\s,:\[\]{}"<\x00-\x1f]')  # what LightGBM or XGBoost changes or rejects
_NOW_CATEGORIES = (
    "is categorical, but in {where} it was numeric; pass numbers, or train on categories"
)
_NOW_NUMBERS = (
    "is numeric, but in {where} it was categorical; make it a category in a data frame "
    "(astype('category') in pandas, with the values it had in {where})"
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """Number, names and kinds of the columns of the training data."""

    count: int
    names: list[str] | None = None  # as the user gave them
    categorical: list[int] | None = None  # numbers of columns; None if unknown
    zeros: str | None = None  # as returned by gbmrank.data.tables.zeros_of

    @classmethod
    def of(cls, table: Any, reads: Reads | None = None) -> "Schema":
        """Return the schema of a training table for a booster."""
        kinds = categorical_columns(table)
        return cls(int(table.shape[1]), column_names(table), kinds, zeros_of(table, reads))

    def scores(
        self, fitted: Any, table: Any, what: str = "X", who: str = "GBMRanker"
    ) -> FloatArray:
        """Return one raw score per row of a table with these columns."""
        return np.concatenate([*map(fitted.scores, self._parts(fitted, table, what, who))])

    def encoded(self, fitted: Any, table: Any, who: str = "GBMRanker") -> FloatArray:
        """Return the rows of a table with these columns as the numbers that the trees compare."""
        return np.concatenate([*map(fitted.encoded, self._parts(fitted, table, "X", who))])

    def _parts(self, fitted: Any, table: Any, what: str, who: str) -> Iterator[Any]:
        """Yield the rows of a table with these columns, as the booster reads them."""
        read = read_table(table, what, fitted.reads)
        self.check_count(read, what, who)
        self.check(read, what)
        return map(renamed, parts_to_score(read, self.zeros, what))

    def check_count(self, table: Any, what: str, who: str = "GBMRanker") -> None:
        """Raise DataError unless a table has the same number of columns."""
        width = int(table.shape[1])
        if width != self.count:
            raise DataError(
                f"{what} has {width} features, but {who} is expecting {self.count} features as "
                "input"
            )

    def check(self, table: Any, what: str, where: str = _TRAINING) -> None:
        """Raise DataError unless a table has columns of the same names, order and kinds."""
        own = column_names(table)
        _reject_other_names(what, own, self.names, where)
        if self.categorical is not None:
            now = categorical_columns(table)
            if changed := sorted(set(now).symmetric_difference(self.categorical)):
                names = own or self.names
                column = changed[0] if names is None else names[changed[0]]
                change = _NOW_CATEGORIES if changed[0] in now else _NOW_NUMBERS
                raise DataError(f"the column {column!r} of {what} {change.format(where=where)}")
        check_names(what, own, self.names, where)


def renamed(table: Any) -> Any:
    """Return a table with column names that both boosters accept."""
    names = column_names(table)
    return table if names is None else with_names(table, safe_names(names))


def safe_names(names: list[str]) -> list[str]:
    """Return unique column names that both boosters accept.

    >>> safe_names(["a b", "a_b", "c"])
    ['a_b', 'a_b_1', 'c']
    """
    made: dict[str, None] = {}
    for number, name in enumerate(names):
        plain = _UNSAFE.sub("_", name) or "_"
        others = (f"{plain}_{suffix}" for suffix in itertools.count(number))
        made[next(each for each in itertools.chain([plain], others) if each not in made)] = None
    return list(made)


def check_names(
    what: str, own: list[str] | None, known: list[str] | None, where: str = _TRAINING
) -> None:
    """Raise DataError unless columns have the names of the training data, in the same order.

    This matters as LightGBM matches columns by position. If either table has no names, or only
    the default names 0, 1, ... of pandas or polars, columns are matched by position. If the
    training data has these numbers in another order, they count as names: columns were selected
    or sorted. A warning is issued if only one of the two tables has names.
    """
    _reject_other_names(what, own, known, where)
    named = _has_names(own)
    if own != known and (named or _has_names(known)):
        names = (own if named else known) or []
        some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        mismatch = (
            f"are called {some}, but those of the training data had no names"
            if named
            else f"have no names, but those of the training data are called {some}"
        )
        warn(
            f"the columns of {what} {mismatch}; they are matched by position. Name the columns of "
            "both tables, or of neither",
            GbmrankWarning,
        )


def _reject_other_names(
    what: str, own: list[str] | None, known: list[str] | None, where: str = _TRAINING
) -> None:
    """Raise DataError if both tables have column names and these differ."""
    if own is None or known is None or own == known:
        return
    if _has_names(own) or set(own) == set(known):
        raise DataError(
            f"the columns of {what} are not those of {where}: got {', '.join(own)}; expected "
            f"{', '.join(known)}, in this order"
        )


def _has_names(names: list[str] | None) -> bool:
    """Whether columns have names other than the defaults of pandas or polars."""
    return names is not None and not any(
        names == [f"{made_up}{number}" for number in range(len(names))]
        for made_up in ("", "column_")
    )


def outline_of(features: Any) -> Any:
    """Return a table without its rows: only names and types of its columns."""
    return take_rows(features, np.empty(0, np.int64))


def blank_columns(features: Any) -> frozenset[int]:
    """Return the numbers of categorical columns that are missing in every row."""
    found = categorical_columns(features)
    return frozenset(at for at in found if features.iloc[:, at].isna().all())


def agreed(outlines: Mapping[int, Any], name: str, reads: Reads) -> Any:
    """Return the common outline of all partitions; raise DataError if they are incompatible.

    Categories are the union over the partitions, in order of first appearance. Different numeric
    types become float64.
    """
    first, outline = next(iter(outlines.items()))
    schema = Schema.of(outline)
    for number, other in outlines.items():
        what = f"{name}, partition {number}"
        if other.shape[1] != outline.shape[1]:
            raise DataError(
                f"{what} has {other.shape[1]} columns, but partition {first} has "
                f"{outline.shape[1]}; all partitions need the same columns"
            )
        check_zeros(outline, other, what, f"partition {first}")
        schema.check(other, what, f"partition {first}")
    if hasattr(outline, "iloc"):
        outline = _joined(list(outlines.values()), name)
    check_columns(outline, name, reads)
    return outline


def stacked(tables: Sequence[Any]) -> Any:
    """Return the rows of several tables with the same columns, one below the other."""
    first = tables[0]
    if is_sparse(first):
        return type(first)(importlib.import_module("scipy.sparse").vstack(tables))
    if isinstance(first, np.ndarray):
        return np.concatenate(tables)
    if hasattr(first, "iloc"):  # pandas turns different categories into strings
        outline = _joined([outline_of(one) for one in tables], "eval_set")
        tables = [conformed(one, outline) for one in tables]
    import narwhals.stable.v2 as nw

    return nw.concat([nw.from_native(one, eager_only=True) for one in tables]).to_native()


def fits(outline: Any, wanted: Any) -> bool:
    """Whether a partition has the names, types and categories of the common outline."""
    if not hasattr(wanted, "iloc"):
        return True
    pairs = zip(outline.dtypes, wanted.dtypes, strict=True)
    return list(outline.columns) == list(wanted.columns) and all(_equal(a, b) for a, b in pairs)


def conformed(features: Any, outline: Any) -> Any:
    """Convert the features of a partition to the names and types of an outline."""
    named = with_names(features, safe_names([str(name) for name in outline.columns]))
    pairs = enumerate(zip(named.dtypes, outline.dtypes, strict=True))
    return with_types(named, {at: there for at, (here, there) in pairs if not _equal(here, there)})


def check_zeros(outline: Any, other: Any, what: str, where: str) -> None:
    """Raise DataError unless two tables are both sparse or both dense."""
    if is_sparse(other) != is_sparse(outline):
        kinds = "sparse", "dense"
        raise DataError(
            f"{what} is {kinds[not is_sparse(other)]}, but {where} is {kinds[is_sparse(other)]}; "
            "boosters treat zeros differently in the two, so make both sparse or both dense"
        )


def with_types(frame: Any, types: Mapping[int, Any]) -> Any:
    """Return a pandas data frame with new types for some columns, by column number."""
    made = frame.copy(deep=False)
    for at, dtype in types.items():
        column = made.iloc[:, at]
        if _is_category(dtype):  # astype keeps the codes where only the order differs
            column = column.cat.set_categories(dtype.categories, ordered=dtype.ordered)
        made.isetitem(at, column.astype(dtype))
    return made


def _joined(outlines: list[Any], name: str) -> Any:
    """Return a data frame without rows whose types fit the columns of all partitions."""
    first, types = outlines[0], {}
    by_column = zip(*(outline.dtypes for outline in outlines), strict=True)
    for at, every in enumerate(by_column):
        if not all(_equal(every[0], other) for other in every):
            types[at] = _common(every, f"the column {first.columns[at]!r} of {name}")
    return with_types(first, types)


def _common(types: tuple[Any, ...], what: str) -> Any:
    """Return a type that fits a column in all partitions."""
    if not _is_category(types[0]):
        return np.dtype(np.float64)
    if any(dtype.ordered for dtype in types):
        raise DataError(
            f"{what} has ordered categories that differ between partitions, so their common order "
            "is unknown; set the same ones in all (cat.set_categories, ordered=True)"
        )
    filled = [dtype.categories for dtype in types if len(dtype.categories)]
    return type(types[0])(filled[0].append(filled[1:]).unique()) if filled else types[0]


def _equal(one: Any, other: Any) -> bool:
    """Whether two types are the same; unlike in pandas, the order of categories matters."""
    if not (_is_category(one) and _is_category(other)):
        return bool(one == other)
    return bool(one.ordered == other.ordered and one.categories.equals(other.categories))


def _is_category(dtype: Any) -> bool:
    return hasattr(dtype, "categories")
