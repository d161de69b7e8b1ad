"""Features of partitions: read as on one machine, and the same columns in all of them.

A worker tells the columns of a partition by an outline, its features without rows. Partitions
are then given the categories of all, since a booster takes codes for what they mean elsewhere.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from gbmrank.backends.tables import (
    categorical_columns,
    check_columns,
    is_sparse,
    take_rows,
    with_names,
)
from gbmrank.backends.xgboost_trainer import said_of_unseen
from gbmrank.errors import DataError
from gbmrank.estimators.columns import Columns, safe_names

__all__ = ["agreed", "blank_columns", "conformed", "fits", "known_by", "outline_of"]


def outline_of(features: Any) -> Any:
    """Return a table without its rows: names and kinds of its columns."""
    return take_rows(features, np.empty(0, np.int64))


def blank_columns(features: Any) -> frozenset[int]:
    """Return the numbers of columns of categories that are missing in every row."""
    found = categorical_columns(features)
    return frozenset(at for at in found if features.iloc[:, at].isna().all())


def agreed(outlines: Mapping[int, Any], name: str, backend: str) -> Any:
    """Return the one outline that all partitions of a table are given.

    Categories are those of all partitions, in the order of their first one. Numbers of different
    types become float64.

    Parameters
    ----------
    outlines : mapping of int to table
        By number of the partition.
    name : str
        Of the data set, for messages.
    backend : {"lightgbm", "xgboost"}
        The booster.

    Raises
    ------
    DataError
        Where partitions differ in the number, the names or the kinds of their columns, and for
        columns that the booster does not read.
    """
    first, outline = next(iter(outlines.items()))
    columns = Columns.of(outline)
    for number, other in outlines.items():
        what = f"{name}, partition {number}"
        _check_form(outline, other, what, first)
        columns.check(other, what, f"partition {first}")
    if isinstance(outline, pd.DataFrame):
        outline = _joined(list(outlines.values()), name)
    check_columns(outline, name, backend)
    return outline


def known_by(known: Any, outline: Any, name: str, backend: str) -> Any:
    """Return the outline of other rows with the categories of the training.

    Parameters
    ----------
    known, outline : table
        Outlines of the training and of the other rows.
    name : str
        Of the other rows, for messages.
    backend : {"lightgbm", "xgboost"}
        The booster: categories that the training did not have are missing values in LightGBM.

    Raises
    ------
    DataError
        Unless the columns are those of the training.
    """
    columns = Columns.of(known)
    columns.check_count(outline, name, "the model")
    columns.check(outline, name)
    if backend == "xgboost":
        _check_zeros(known, outline, name, "the training")
    types = {}
    for at in categorical_columns(known):
        here, there = outline.dtypes.iloc[at], known.dtypes.iloc[at]
        new = here.categories.difference(there.categories, sort=False)
        if len(new) and backend == "xgboost":
            raise DataError(said_of_unseen(outline.columns[at], name, str(new[0])))
        types[at] = there
    return _with_types(outline, types) if types else outline


def fits(outline: Any, wanted: Any) -> bool:
    """Whether a partition has the names, types and categories that all are given."""
    if not isinstance(wanted, pd.DataFrame):
        return True
    pairs = zip(outline.dtypes, wanted.dtypes, strict=True)
    return list(outline.columns) == list(wanted.columns) and all(_equal(a, b) for a, b in pairs)


def conformed(features: Any, outline: Any) -> Any:
    """Return the features of a partition with the names and types of an outline."""
    names = safe_names([str(name) for name in outline.columns])
    renamed = with_names(features, names)
    pairs = enumerate(zip(renamed.dtypes, outline.dtypes, strict=True))
    return _with_types(
        renamed, {at: there for at, (here, there) in pairs if not _equal(here, there)}
    )


def _check_form(outline: Any, other: Any, what: str, first: int) -> None:
    if other.shape[1] != outline.shape[1]:
        raise DataError(
            f"{what} has {other.shape[1]} columns, and partition {first} has {outline.shape[1]}: "
            "give all partitions the same columns"
        )
    _check_zeros(outline, other, what, f"partition {first}")


def _check_zeros(outline: Any, other: Any, what: str, where: str) -> None:
    if is_sparse(other) != is_sparse(outline):
        kinds = "sparse", "dense"
        raise DataError(
            f"{what} is {kinds[not is_sparse(other)]}, and {where} is {kinds[is_sparse(other)]}: "
            "boosters read zeros of one as missing values of the other, so make both one of them"
        )


def _joined(outlines: list[Any], name: str) -> Any:
    """Return a frame without rows, with types that hold the columns of all partitions."""
    first, types = outlines[0], {}
    by_column = zip(*(outline.dtypes for outline in outlines), strict=True)
    for at, every in enumerate(by_column):
        if not all(_equal(every[0], other) for other in every):
            types[at] = _common(every, f"the column {first.columns[at]!r} of {name}")
    return _with_types(first, types) if types else first


def _common(types: tuple[Any, ...], what: str) -> Any:
    """Return a type that holds the columns of all partitions."""
    if not isinstance(types[0], pd.CategoricalDtype):
        return np.dtype(np.float64)
    if any(dtype.ordered for dtype in types):
        raise DataError(
            f"{what} holds ordered categories, and not the same ones in all partitions, so that "
            "their order is not known: give all the same (cat.set_categories, ordered=True)"
        )
    filled = [dtype.categories for dtype in types if len(dtype.categories)]
    return pd.CategoricalDtype(filled[0].append(filled[1:]).unique()) if filled else types[0]


def _equal(one: Any, other: Any) -> bool:
    """Whether two types are the same; in pandas those with categories in another order are."""
    if not isinstance(one, pd.CategoricalDtype):
        return bool(one == other)
    return (
        isinstance(other, pd.CategoricalDtype)
        and one.ordered == other.ordered
        and one.categories.equals(other.categories)
    )


def _with_types(frame: Any, types: Mapping[int, Any]) -> Any:
    """Return a frame with other types of some columns, by their number."""
    made = frame.copy(deep=False)
    for at, dtype in types.items():
        made.isetitem(at, _with_type(made.iloc[:, at], dtype))
    return made


def _with_type(column: Any, dtype: Any) -> Any:
    if not isinstance(dtype, pd.CategoricalDtype):
        return column.astype(dtype)
    # astype keeps the codes where only the order of categories differs.
    return column.cat.set_categories(dtype.categories, ordered=dtype.ordered)
