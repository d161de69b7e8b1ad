"""Edges of graphs: checked, added up where they repeat, sorted.

Edges in tables: data frames, CSV and Parquet files.
"""

import gzip
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import find_missing, id_texts, read_ids
from gbmrank.data.queries import LARGEST, Groups, as_floats
from gbmrank.data.readers.text import to_number
from gbmrank.errors import DataError, GroupError, MissingPackageError, ParameterError, WeightError
from gbmrank.types import ArrayLike, FloatArray, IntArray

__all__ = [
    "Edges",
    "edge_degrees",
    "find_cycle",
    "frame_columns",
    "merged",
    "read_edges",
    "read_table",
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
    """Check edges between rows of the caller and put them into query order.

    Raises
    ------
    DataError
        For a row that does not exist, an edge from a row to itself, an edge between two
        queries, or a weight that is not finite or negative; it names the edge.
    """
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
    arranged = _positions(ends[0], groups), _positions(ends[1], groups)
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
    return _frozen(Edges(offsets, winner, loser, weight.astype(np.float64)))


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


def _frozen(edges: Edges) -> Edges:
    for column in edges:
        column.flags.writeable = False
    return edges


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


def _positions(rows: IntArray, groups: Groups) -> IntArray:
    """Turn rows of the caller into rows in query order."""
    if groups.row_order is None:
        return rows
    place = np.empty(groups.n_rows, np.int64)
    place[groups.row_order] = np.arange(groups.n_rows)
    return place[rows]


def read_table(path: str | Path, texts: Sequence[str]) -> tuple[Any, bool]:
    """Read a CSV or Parquet file with pandas; say whether columns of ids are but texts.

    Parameters
    ----------
    path : str or Path
        The file.
    texts : sequence of str
        Columns of ids. A CSV file does not say whether 7 is a number, and 007 is another id: they
        are left as they are written.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingPackageError(
            "reading preferences from a file needs pandas (and pyarrow for Parquet): "
            "pip install pandas pyarrow"
        ) from error
    name = Path(path).name.lower()
    if name.endswith((".parquet", ".pq")):
        try:
            return pd.read_parquet(path), False
        except ValueError as error:
            raise DataError(f"{name} cannot be read as Parquet: {error}") from error
    if name.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        sep = "\t" if name.endswith((".tsv", ".tsv.gz")) else ","
        return _read_csv(path, sep, texts), True
    raise ParameterError(f"preferences are read from .csv, .tsv or .parquet files, got {name!r}")


def _read_csv(path: str | Path, sep: str, texts: Sequence[str]) -> Any:
    import pandas as pd

    name, kept = Path(path).name, {"sep": sep, "keep_default_na": False}
    try:
        header = pd.read_csv(path, header=None, nrows=1, dtype=str, **kept)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # Without index_col=False the first fields of longer lines become names of rows.
            types = dict.fromkeys(texts, str)
            table = pd.read_csv(path, dtype=types, index_col=False, **kept)
    except pd.errors.ParserWarning as error:
        raise DataError(
            f"lines of {name} have more fields than its header; name every column"
        ) from error
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name} cannot be read as a table of preferences: {error}") from error
    _check_names(header.iloc[0].tolist())  # pandas gives names that repeat others
    for column in ("winner", "loser", "weight"):
        if column in table and column not in texts:
            _check_numbers(table[column], column)
    return table


def _check_names(names: list[Any]) -> None:
    for name in ("winner", "loser", "weight", "qid"):
        if names.count(name) > 1:
            raise DataError(f"a table of preferences has two columns called {name}: rename one")


def _check_numbers(column: Any, name: str) -> None:
    """Raise DataError for texts that are no numbers, though Python takes some of them."""
    if np.asarray(column).dtype.kind in "iuf":
        return
    for edge, text in enumerate(map(str, column)):
        if to_number(text) is None:
            raise DataError(
                f"edge {edge}: the {name} {text!r} is not a number; write it as 10 or 0.5 is"
            )


def frame_columns(
    frame: Any, items: ArrayLike | None, groups: Groups, written: bool = False
) -> tuple[Any, Any, Any | None]:
    """Return winner rows, loser rows and weights of a table of edges.

    Parameters
    ----------
    frame : table
        With columns ``winner`` and ``loser``, and perhaps ``weight`` and ``qid``.
    items : array-like of shape (n_rows,) or None
        What ``winner`` and ``loser`` call the rows; ``None`` when they are row numbers.
    groups : Groups
        Query boundaries of the rows, with ids when ``frame`` has a column ``qid``.
    written : bool, default=False
        Whether ids in ``frame`` are as written in a file, and compared as texts.
    """
    lazy = hasattr(type(frame), "collect")  # its columns have no values yet
    given = None if lazy else getattr(frame, "column_names", getattr(frame, "columns", frame))
    try:
        names = list(given)  # type: ignore[arg-type]
    except TypeError as error:
        raise DataError(
            "preferences are read from a pandas, polars or pyarrow table or from a dict of "
            f"columns, got {type(frame).__name__}"
        ) from error
    missing = [name for name in ("winner", "loser") if name not in names]
    if missing:
        raise DataError(
            f"a table of preferences has columns winner, loser and perhaps weight and qid; "
            f"{missing[0]} is missing among {', '.join(map(str, names))}"
        )
    _check_names(names)
    weight = frame["weight"] if "weight" in names else None
    queries = read_ids(frame["qid"]) if "qid" in names else None
    if queries is not None and len(queries) != np.size(frame["winner"]):
        raise DataError(
            f"qid has {len(queries)} entries and winner has {np.size(frame['winner'])}: an edge "
            "needs both"
        )
    if items is None:
        if queries is not None and groups.ids is not None:
            _check_frame_queries(as_floats(frame["winner"], "winner"), queries, groups)
        return frame["winner"], frame["loser"], weight
    if np.ma.is_masked(items):
        raise DataError("items has masked entries; every row needs an id")
    rows = _row_table(_names(items, "items", written), groups, queries is not None, written)
    asked = None if queries is None else _names(queries, "qid", written)
    ends = [_looked_up(_names(frame[end], end), end, asked, rows) for end in ("winner", "loser")]
    return ends[0], ends[1], weight


def _names(ids: ArrayLike, what: str, written: bool = False) -> list[Any]:
    """Return ids as plain objects, or as texts; those of a list are not made an array of."""
    kinds = {type(one) for one in ids} if isinstance(ids, list | tuple) else set()
    if len(kinds) == 1 and kinds <= {int, str, tuple}:  # numpy drops digits, NUL and tuples
        return [str(one) for one in ids] if written else list(ids)
    array = np.asarray(ids)
    if array.ndim != 1:
        raise DataError(f"{what} must be one column of ids, got an array of shape {array.shape}")
    missing = np.flatnonzero(find_missing(array))
    if len(missing):
        raise DataError(f"{what} has no id at index {missing[0]} ({len(missing)} such entries)")
    if written:
        return id_texts(array).tolist()
    return [one.item() if isinstance(one, np.generic) else one for one in array]


def _check_frame_queries(winner: FloatArray, queries: npt.NDArray[Any], groups: Groups) -> None:
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
    ids = _names(groups.ids, "qid", written) if by_query and groups.ids is not None else None
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
