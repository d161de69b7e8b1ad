"""Rows that preferences are between: queries as given, rows to take, data sets to fit."""

import math

import numpy as np

from gbmrank.columns import id_texts, read_ids, shared_ids
from gbmrank.data import Groups, as_floats
from gbmrank.errors import DataError, GroupError
from gbmrank.matrices import read_wholes
from gbmrank.types import ArrayLike, IntArray

__all__ = ["check_same_rows", "read_groups", "rows_to_take", "stored_order"]


def read_groups(group: ArrayLike | None, qid: ArrayLike | None) -> Groups:
    """Read sizes of queries or ids; edges do not tell how many rows there are."""
    if group is not None and qid is None:
        total = float(as_floats(group, "group").sum())
        return Groups.from_sizes(group, int(total) if math.isfinite(total) else 0)
    if qid is not None and group is None:
        return Groups.from_qid(qid, len(read_ids(qid)))
    raise GroupError(
        "edges do not tell how many rows there are: give group= (rows per query) or qid= (one id "
        "per row), and not both"
    )


def rows_to_take(rows: ArrayLike, groups: Groups) -> IntArray:
    """Read row numbers of a subset.

    Raises
    ------
    GroupError
        Where rows of a query are apart.
    DataError
        For rows that are not there or not in increasing order.
    """
    if groups.row_order is not None:
        raise GroupError("rows can only be taken where the rows of each query are together")
    taken = read_wholes(rows, "rows", 0)
    if np.any(np.diff(taken) <= 0):
        raise DataError("rows must be increasing, as in a LightGBM subset")
    if len(taken) and taken[-1] >= groups.n_rows:
        raise DataError(f"there is no row {taken[-1]}; rows go from 0 to {groups.n_rows - 1}")
    return taken


def check_same_rows(own: Groups, groups: Groups) -> None:
    """Raise DataError unless a data set has the rows and queries of preferences.

    Rows are matched by position. Ids of queries tell that the order is another one where both
    sides have some of them, at different places; ids that are all different are not compared.
    """
    if own is groups:
        return
    if not np.array_equal(own.offsets, groups.offsets) or not np.array_equal(
        stored_order(own), stored_order(groups)
    ):
        raise DataError(
            f"the preferences are for {own.n_rows} rows in {own.n_queries} queries, the data set "
            f"has {groups.n_rows} rows in {groups.n_queries} queries"
            + ("; they differ in size or order" if own.n_rows == groups.n_rows else "")
            + "; make preferences for this data set"
        )
    if own.ids is None or groups.ids is None or np.array_equal(own.ids, groups.ids):
        return
    mine, theirs = id_texts(own.ids), id_texts(groups.ids)
    differs = np.flatnonzero(mine != theirs)
    if len(differs) and shared_ids(own.ids, groups.ids):
        query = int(differs[0])
        raise DataError(
            f"the preferences have the query {str(mine[query])!r} where the data set has "
            f"{str(theirs[query])!r}: rows are matched by position; put both into one order, or "
            "make preferences for this data set"
        )


def stored_order(groups: Groups) -> IntArray:
    """Return the caller's rows in query order; empty where that is their order."""
    return np.empty(0, np.int64) if groups.row_order is None else groups.row_order
