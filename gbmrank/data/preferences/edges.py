"""Edges of preference graphs: checked, added up where they repeat, sorted; and tables of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import find_missing, id_texts, one_column, read_ids
from gbmrank.data.queries import LARGEST, Groups, as_floats
from gbmrank.data.readers.frames import open_parquet, read_texts, table_format
from gbmrank.data.readers.text import to_number
from gbmrank.data.tables import column_names, columns_by_name
from gbmrank.errors import DataError, GroupError, ParameterError, WeightError
from gbmrank.types import ArrayLike, FloatArray, IntArray

__all__ = [
    "Edges",
    "edge_degrees",
    "edges_of_table",
    "find_cycle",
    "merged",
    "read_edges",
    "read_file",
]


class Edges(NamedTuple):
    """Edges in query order: ``winner`` is preferred to ``loser`` with a weight above 0.

    Rows count in query order; edges are sorted by winner, then loser, and none repeats. Those
    of query q are at ``offsets[q]`` to ``offsets[q + 1] - 1``.
    """

    offsets: IntArray
    winner: IntArray
    loser: IntArray
    weight: FloatArray


def read_edges(
    winner: ArrayLike, loser: ArrayLike, weight: ArrayLike | None, groups: Groups
) -> Edges:
    """Check edges between rows of the caller and put them into query order."""
    ends = _as_rows(winner, "winner", groups), _as_rows(loser, "loser", groups)
    if len(ends[0]) != len(ends[1]):
        raise DataError(
            f"winner has {len(ends[0])} entries and loser has {len(ends[1])}: an edge needs both"
        )
    weights = _as_weights(weight, ends)
    itself = np.flatnonzero(ends[0] == ends[1])
    if len(itself):
        edge = int(itself[0])
        raise DataError(
            f"{_edge(edge, ends)} goes from a row to itself ({len(itself)} such edges); no item is "
            "preferred to itself: drop them"
        )
    arranged = ends
    if groups.row_order is not None:
        place = np.argsort(groups.row_order)
        arranged = place[ends[0]], place[ends[1]]
    _check_queries(ends, arranged, groups)
    return merged(*arranged, weights, groups)


def merged(winner: IntArray, loser: IntArray, weight: FloatArray, groups: Groups) -> Edges:
    """Sort edges of rows in query order, add up those that repeat and drop those of weight 0."""
    kept = weight > 0
    if not kept.all():
        winner, loser, weight = winner[kept], loser[kept], weight[kept]
    key = winner * max(groups.n_rows, 1) + loser
    if np.any(key[1:] <= key[:-1]):
        order = np.argsort(key, kind="stable")
        key, weight = key[order], weight[order]
        first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        key, weight = key[first], np.add.reduceat(weight, first)
        winner, loser = np.divmod(key, groups.n_rows)
    offsets = np.searchsorted(winner, groups.offsets).astype(np.int64)
    edges = Edges(offsets, winner, loser, weight.astype(np.float64))
    for column in edges:
        column.flags.writeable = False
    return edges


def edge_degrees(edges: Edges, n_rows: int) -> FloatArray:
    """Return the weight each row wins less the weight it loses, in query order."""
    won = np.bincount(edges.winner, edges.weight, n_rows)
    return np.asarray(won - np.bincount(edges.loser, edges.weight, n_rows), np.float64)


def find_cycle(edges: Edges, groups: Groups) -> list[int] | None:
    """Return rows (in query order) along a cycle of one query, or None when there is none."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = groups.n_rows
    if not len(edges.winner):
        return None
    begins = np.searchsorted(edges.winner, np.arange(n + 1))
    indices = edges.loser.astype(np.int32), begins.astype(np.int32)  # what old versions take
    matrix = csr_array((np.ones(len(edges.loser), np.int8), *indices), shape=(n, n))
    count, component = connected_components(matrix, connection="strong")
    if count == n:
        return None
    crowded = np.flatnonzero(np.bincount(component)[component] > 1)
    return _walk(int(crowded[0]), component, edges.loser, begins)


def _walk(start: int, component: IntArray, loser: IntArray, begins: IntArray) -> list[int]:
    """Follow edges inside a strongly connected component until a row comes again."""
    path, seen = [start], {start: 0}
    while True:
        targets = loser[begins[path[-1]] : begins[path[-1] + 1]]
        row = int(targets[component[targets] == component[start]][0])
        if row in seen:
            return path[seen[row] :]
        seen[row] = len(path)
        path.append(row)


def _as_rows(column: ArrayLike, what: str, groups: Groups) -> IntArray:
    values = as_floats(column, what)
    whole = np.isfinite(values) & (values == np.floor(values))
    bad = np.flatnonzero(~(whole & (values >= 0) & (values < groups.n_rows)))
    if len(bad):
        edge = int(bad[0])
        raise DataError(
            f"edge {edge}: the {what} {values[edge]:g} is not a row; rows are whole numbers from 0 "
            f"to {groups.n_rows - 1} ({len(bad)} such edges)"
        )
    return values.astype(np.int64)


def _as_weights(weight: ArrayLike | None, ends: tuple[IntArray, IntArray]) -> FloatArray:
    if weight is None:
        return np.ones(len(ends[0]))
    values = as_floats(weight, "weight")
    if len(values) != len(ends[0]):
        raise WeightError(f"weight has {len(values)} entries, but there are {len(ends[0])} edges")
    bad = np.flatnonzero(~((values >= 0) & (values <= LARGEST)))
    if len(bad):
        edge = int(bad[0])
        raise WeightError(
            f"{_edge(edge, ends)} has the weight {values[edge]} ({len(bad)} such edges); weights "
            f"are finite, not negative and at most {LARGEST:g}: turn a negative preference round, "
            "divide large ones"
        )
    return values


def _check_queries(
    ends: tuple[IntArray, IntArray], arranged: tuple[IntArray, IntArray], groups: Groups
) -> None:
    owner = [np.searchsorted(groups.offsets, rows, side="right") for rows in arranged]
    across = np.flatnonzero(owner[0] != owner[1])
    if len(across):
        edge = int(across[0])
        queries = [groups.query_of(int(rows[edge])) for rows in arranged]
        raise GroupError(
            f"{_edge(edge, ends)} joins query {queries[0]!r} and query {queries[1]!r} "
            f"({len(across)} such edges); preferences are between rows of one query"
        )


def _edge(number: int, ends: tuple[IntArray, IntArray]) -> str:
    return f"edge {number} (row {ends[0][number]} over row {ends[1][number]})"


def read_file(path: str | Path, has_items: bool) -> tuple[Any, bool]:
    """Read a CSV or Parquet file of edges; say whether its ids are but texts.

    A CSV file does not say whether 7 is a number, and 007 is another id: ids are left as they are
    written. Winner and loser are numbers unless ``has_items``.
    """
    form = table_format(path)
    if form == "parquet":
        with open_parquet(path) as opened:
            return opened.read(), False
    if form != "csv":
        raise ParameterError(
            f"preferences are read from .csv, .tsv or .parquet files, got {Path(path).name!r}"
        )
    columns: dict[str, Any] = dict(read_texts(path))
    for name in ("weight",) if has_items else ("winner", "loser", "weight"):
        for edge, text in enumerate(columns.get(name, ())):
            if to_number(text.strip()) is None:
                raise DataError(
                    f"edge {edge}: the {name} {text!r} is not a number; write it as 10 or 0.5 is"
                )
        if name in columns:
            columns[name] = [float(text) for text in columns[name]]
    return columns, True


def edges_of_table(
    table: Any, items: ArrayLike | None, groups: Groups, written: bool = False
) -> Edges:
    """Return the edges of a table; ids ``written`` in a file are compared as texts."""
    columns = _columns(table)
    winner, loser, weight = columns["winner"], columns["loser"], columns.get("weight")
    queries = read_ids(columns["qid"]) if "qid" in columns else None
    if queries is not None and len(queries) != np.size(winner):
        raise DataError(
            f"qid has {len(queries)} entries and winner has {np.size(winner)}: an edge needs both"
        )
    if items is None:
        if queries is not None and groups.ids is not None:
            _check_queries_said(as_floats(winner, "winner"), queries, groups)
        return read_edges(winner, loser, weight, groups)
    rows = _row_table(_plain_ids(items, "items", written), groups, queries is not None, written)
    asked = None if queries is None else _plain_ids(queries, "qid", written)
    found = [
        _looked_up(_plain_ids(column, end), end, asked, rows)
        for end, column in (("winner", winner), ("loser", loser))
    ]
    return read_edges(found[0], found[1], weight, groups)


def _columns(table: Any) -> Mapping[str, Any]:
    """Return the columns of a table of edges by name."""
    columns = table if isinstance(table, Mapping) else columns_by_name(table)
    if columns is None:
        raise DataError(
            "preferences are read from a data frame or from a dict of columns, got "
            f"{type(table).__name__}"
        )
    missing = [name for name in ("winner", "loser") if name not in columns]
    if missing:
        raise DataError(
            f"a table of preferences has columns winner, loser and perhaps weight and qid; "
            f"{missing[0]} is missing among {', '.join(map(str, columns))}"
        )
    names = list(columns) if isinstance(table, Mapping) else column_names(table) or []
    twice = [name for name in ("winner", "loser", "weight", "qid") if names.count(name) > 1]
    if twice:
        raise DataError(f"a table of preferences has two columns called {twice[0]}: rename one")
    return columns


def _plain_ids(ids: ArrayLike, what: str, written: bool = False) -> list[Any]:
    """Return ids as plain objects, or as texts."""
    kinds = {type(one) for one in ids} if isinstance(ids, list | tuple) else set()
    if len(kinds) == 1 and kinds <= {int, str, tuple}:  # numpy drops digits and tuples
        return [str(one) for one in ids] if written else list(ids)
    array = one_column(ids)
    if array.ndim != 1:
        raise DataError(f"{what} must be one column of ids, got an array of shape {array.shape}")
    missing = np.flatnonzero(find_missing(array))
    if len(missing):
        raise DataError(f"{what} has no id at index {missing[0]} ({len(missing)} such entries)")
    if written:
        return id_texts(array).tolist()
    return [one.item() if isinstance(one, np.generic) else one for one in array]


def _check_queries_said(winner: FloatArray, queries: npt.NDArray[Any], groups: Groups) -> None:
    """Raise GroupError where a table says another query than its winner has; rows come later."""
    own = groups.restore(groups.spread(id_texts(np.asarray(groups.ids))))
    for edge, (row, said) in enumerate(zip(winner.tolist(), id_texts(queries), strict=False)):
        known = own[int(row)] if 0 <= row < groups.n_rows else said
        if said != known:
            raise GroupError(
                f"edge {edge}: the table says query {str(said)!r}, and row {int(row)}, its winner, "
                f"is of query {str(known)!r}; without items=, winner and loser are row numbers of "
                "the whole data set"
            )


def _row_table(items: list[Any], groups: Groups, by_query: bool, written: bool) -> dict[Any, int]:
    """Map an item's id, or a query's and an item's, to the caller's row."""
    if len(items) != groups.n_rows:
        raise DataError(f"items has {len(items)} entries, but there are {groups.n_rows} rows")
    if by_query and groups.ids is None:
        raise DataError("the table has a column qid, so say qid= (one id per row) instead of group")
    rows = range(len(items)) if groups.row_order is None else groups.row_order.tolist()
    queries = groups.spread(np.arange(groups.n_queries)).tolist()
    ids = _plain_ids(groups.ids, "qid", written) if by_query and groups.ids is not None else None
    table: dict[Any, int] = {}
    for row, query in zip(rows, queries, strict=True):
        item = items[row]
        key = item if ids is None else (ids[query], item)
        if key in table:
            advice = "" if by_query else "; give the table a column qid"
            raise DataError(f"the item {item!r} is in rows {table[key]} and {row}{advice}")
        table[key] = row
    return table


def _looked_up(
    column: list[Any], end: str, queries: list[Any] | None, rows: dict[Any, int]
) -> IntArray:
    found = np.empty(len(column), np.int64)
    for edge, item in enumerate(column):
        key = item if queries is None else (queries[edge], item)
        if key not in rows:
            where = "" if queries is None else f" of query {queries[edge]!r}"
            raise DataError(
                f"edge {edge}: the {end} {item!r}{where} is none of the items; write it as "
                "items= does"
            )
        found[edge] = rows[key]
    return found
