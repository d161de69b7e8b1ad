"""Edges of graphs: checked, added up where they repeat, sorted."""

from typing import NamedTuple

import numpy as np

from gbmrank.data import LARGEST, Groups, as_floats
from gbmrank.errors import DataError, GroupError, WeightError
from gbmrank.types import ArrayLike, FloatArray, IntArray

__all__ = ["Edges", "edge_degrees", "find_cycle", "merged", "read_edges"]


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
