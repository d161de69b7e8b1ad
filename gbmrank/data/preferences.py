"""Preference graphs: weighted preferences between the rows of a query.

One graph per query, stored as a list of edges or as levels that stand for all pairs. Edges are
validated and sorted, and the weights of repeated edges are summed; edges can also be read from
tables and files.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import LARGEST, as_floats, find_missing, id_texts, one_column, read_ids
from gbmrank.data.queries import Groups, RankingData, sorted_ties
from gbmrank.data.readers.frames import open_parquet, read_texts, table_format
from gbmrank.data.readers.text import to_number
from gbmrank.data.tables import column_names, columns_by_name
from gbmrank.errors import DataError, GroupError, LimitError, ParameterError, WeightError
from gbmrank.types import ArrayLike, FloatArray, IntArray, is_whole

_MOST_EDGES = 200_000_000  # 4.8 GB


class Edges(NamedTuple):
    """Edges in query order: ``winner`` is preferred to ``loser`` with a weight above 0.

    Row numbers refer to query order. Edges are unique, sorted by winner, then loser; those of
    query q are at ``offsets[q]`` to ``offsets[q + 1] - 1``.
    """

    offsets: IntArray
    winner: IntArray
    loser: IntArray
    weight: FloatArray


def _read_edges(
    winner: ArrayLike, loser: ArrayLike, weight: ArrayLike | None, groups: Groups
) -> Edges:
    """Validate edges between rows in the caller's order and put them into query order."""
    ends = _as_rows(winner, "winner", groups), _as_rows(loser, "loser", groups)
    if len(ends[0]) != len(ends[1]):
        raise DataError(
            f"winner has {len(ends[0])} entries and loser has {len(ends[1])}: an edge needs both"
        )
    weights = _as_weights(weight, ends)
    if len(itself := np.flatnonzero(ends[0] == ends[1])):
        edge = int(itself[0])
        raise DataError(
            f"{_edge(edge, ends)} goes from a row to itself ({len(itself)} such edges); drop edges "
            "whose winner and loser are the same"
        )
    place = groups.restore(np.arange(groups.n_rows))
    winners, losers = place[ends[0]], place[ends[1]]
    owner = [np.searchsorted(groups.offsets, rows, side="right") for rows in (winners, losers)]
    if len(across := np.flatnonzero(owner[0] != owner[1])):
        edge = int(across[0])
        queries = [groups.query_of(int(rows[edge])) for rows in (winners, losers)]
        raise GroupError(
            f"{_edge(edge, ends)} joins query {queries[0]!r} and query {queries[1]!r} "
            f"({len(across)} such edges); both rows of an edge must belong to one query"
        )
    return _merged(winners, losers, weights, groups)


def _merged(winner: IntArray, loser: IntArray, weight: FloatArray, groups: Groups) -> Edges:
    """Sort edges in query order, sum repeated ones and drop those of weight 0."""
    kept = weight > 0
    if not kept.all():
        winner, loser, weight = winner[kept], loser[kept], weight[kept]
    key = winner * max(groups.n_rows, 1) + loser  # one number per edge sorts faster than two
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


def _find_cycle(edges: Edges, groups: Groups) -> list[int] | None:
    """Return rows (in query order) along a cycle within one query, or None."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = groups.n_rows
    if not len(edges.winner):
        return None
    begins = np.searchsorted(edges.winner, np.arange(n + 1))
    indices = edges.loser.astype(np.int32), begins.astype(np.int32)  # old scipy takes no int64
    matrix = csr_array((np.ones(len(edges.loser), np.int8), *indices), shape=(n, n))
    count, component = connected_components(matrix, connection="strong")
    if count == n:
        return None
    crowded = np.flatnonzero(np.bincount(component)[component] > 1)
    return _walk(int(crowded[0]), component, edges.loser, begins)


def _walk(start: int, component: IntArray, loser: IntArray, begins: IntArray) -> list[int]:
    """Follow edges inside a strongly connected component until a row repeats."""
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
    if len(bad := np.flatnonzero(~(whole & (values >= 0) & (values < groups.n_rows)))):
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
    if len(bad := np.flatnonzero(~((values >= 0) & (values <= LARGEST)))):
        edge = int(bad[0])
        raise WeightError(
            f"{_edge(edge, ends)} has the weight {values[edge]} ({len(bad)} such edges); weights "
            f"must be between 0 and {LARGEST:g}: for a negative weight swap winner and loser, "
            "divide large ones"
        )
    return values


def _edge(number: int, ends: tuple[IntArray, IntArray]) -> str:
    return f"edge {number} (row {ends[0][number]} over row {ends[1][number]})"


def _read_file(path: str | Path, has_items: bool) -> tuple[Any, bool]:
    """Read a CSV or Parquet file of edges; also return whether its ids are strings.

    A CSV file has no types, and 007 is another id than 7: ids stay strings. Winner and loser are
    numbers unless ``has_items``.
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
                    f"edge {edge}: the {name} {text!r} is not a number; write it like 10 or 0.5"
                )
        if name in columns:
            columns[name] = [float(text) for text in columns[name]]
    return columns, True


def _edges_of_table(
    table: Any, items: ArrayLike | None, groups: Groups, written: bool = False
) -> Edges:
    """Return the edges of a table; ids ``written`` in a file are compared as strings."""
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
        return _read_edges(winner, loser, weight, groups)
    rows = _row_table(_plain_ids(items, "items", written), groups, queries is not None, written)
    asked = None if queries is None else _plain_ids(queries, "qid", written)
    winners = _looked_up(_plain_ids(winner, "winner"), "winner", asked, rows)
    losers = _looked_up(_plain_ids(loser, "loser"), "loser", asked, rows)
    return _read_edges(winners, losers, weight, groups)


def _columns(table: Any) -> Mapping[str, Any]:
    """Return the columns of a table of edges by name."""
    columns = table if isinstance(table, Mapping) else columns_by_name(table)
    if columns is None:
        raise DataError(
            "preferences are read from a data frame or from a dict of columns, got "
            f"{type(table).__name__}"
        )
    if missing := [name for name in ("winner", "loser") if name not in columns]:
        raise DataError(
            f"the table of preferences has no column {missing[0]}, only "
            f"{', '.join(map(str, columns))}; winner and loser are required, weight and qid are "
            "optional"
        )
    names = list(columns) if isinstance(table, Mapping) else column_names(table) or []
    if twice := [name for name in ("winner", "loser", "weight", "qid") if names.count(name) > 1]:
        raise DataError(f"the table of preferences has two columns called {twice[0]}; rename one")
    return columns


def _plain_ids(ids: ArrayLike, what: str, written: bool = False) -> list[Any]:
    """Return ids as Python objects, or as strings if ``written``."""
    kinds = {type(one) for one in ids} if isinstance(ids, list | tuple) else set()
    if len(kinds) == 1 and kinds <= {int, str, tuple}:  # numpy drops digits and tuples
        return [str(one) for one in ids] if written else list(ids)
    array = one_column(ids)
    if array.ndim != 1:
        raise DataError(f"{what} must be one column of ids, got an array of shape {array.shape}")
    if len(missing := np.flatnonzero(find_missing(array))):
        raise DataError(f"{what} is missing at index {missing[0]} ({len(missing)} such entries)")
    if written:
        return id_texts(array).tolist()
    return [one.item() if isinstance(one, np.generic) else one for one in array]


def _check_queries_said(winner: FloatArray, queries: npt.NDArray[Any], groups: Groups) -> None:
    """Raise GroupError if a table's qid is not that of its winner; others check row numbers."""
    own = groups.restore(groups.spread(id_texts(np.asarray(groups.ids))))
    for edge, (row, said) in enumerate(zip(winner.tolist(), id_texts(queries), strict=False)):
        known = own[int(row)] if 0 <= row < groups.n_rows else said
        if said != known:
            raise GroupError(
                f"edge {edge} has qid {str(said)!r}, but its winner, row {int(row)}, belongs to "
                f"query {str(known)!r}; without items=, winner and loser are row numbers of the "
                "whole data set"
            )


def _row_table(items: list[Any], groups: Groups, by_query: bool, written: bool) -> dict[Any, int]:
    """Map item ids, or pairs of query id and item id, to the caller's rows."""
    if len(items) != groups.n_rows:
        raise DataError(f"items has {len(items)} entries, but there are {groups.n_rows} rows")
    if by_query and groups.ids is None:
        raise DataError("the table has a column qid, so pass qid= (one id per row), not group=")
    rows = range(len(items)) if groups.row_order is None else groups.row_order.tolist()
    queries = groups.spread(np.arange(groups.n_queries)).tolist()
    ids = _plain_ids(groups.ids, "qid", written) if by_query and groups.ids is not None else None
    table: dict[Any, int] = {}
    for row, query in zip(rows, queries, strict=True):
        key = items[row] if ids is None else (ids[query], items[row])
        first = table.setdefault(key, row)
        if first != row:
            advice = "" if by_query else "; add a column qid to the table"
            raise DataError(f"the item {items[row]!r} is in rows {first} and {row}{advice}")
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
                f"edge {edge}: the {end} {item!r}{where} is not among items=; write ids the same "
                "way in both"
            )
        found[edge] = rows[key]
    return found


def _level_degrees(levels: FloatArray, groups: Groups, by_difference: bool) -> FloatArray:
    """Return net degrees in query order: ``n y - sum(y)``, or worse minus better rows."""
    if not groups.n_queries:
        return np.zeros(0)
    if by_difference:
        # Centred first: n y - sum(y) would lose digits of labels far from zero.
        means = np.add.reduceat(levels, groups.offsets[:-1]) / groups.sizes
        centred = levels - groups.spread(means)
        sums = groups.spread(np.add.reduceat(centred, groups.offsets[:-1]))
        return np.asarray(groups.spread(groups.sizes) * centred - sums, np.float64)
    order, queries, first, last = _blocks(levels, groups)
    sizes = last - first
    worse = np.repeat(first, sizes) - groups.offsets[queries]
    better = groups.offsets[queries + 1] - np.repeat(last, sizes)
    degrees = np.empty(len(order))
    degrees[order] = worse - better
    return degrees


def _pairs_of_levels(levels: FloatArray, groups: Groups, by_difference: bool) -> Edges:
    """Return an edge for every pair of unequal levels, weighted 1 or by their difference."""
    pairs = float((groups.sizes * (groups.sizes - 1.0) / 2.0).sum())
    if pairs > _MOST_EDGES:
        raise LimitError(
            f"listing all pairs needs up to {pairs:.3g} edges, more than the limit of "
            f"{_MOST_EDGES:,}; use objective('linear') or pairwise_disagreement, which need no "
            "list, or sample pairs and pass them to from_edges"
        )
    ends = [np.zeros((2, 0), np.int64)]
    for begin, end in itertools.pairwise(groups.offsets.tolist()):
        own = levels[begin:end]
        ends.append(np.array(np.nonzero(own[:, None] > own[None, :])) + begin)
    winner, loser = np.concatenate(ends, axis=1)
    weight = levels[winner] - levels[loser] if by_difference else np.ones(len(winner))
    return _merged(winner, loser, weight, groups)


def _added(parts: list[Edges], groups: Groups) -> Edges:
    _, winners, losers, weights = zip(*parts, strict=True)
    winner, loser, weight = (np.concatenate(each) for each in (winners, losers, weights))
    return _merged(winner, loser, weight, groups)


def _rank_table(ranks: ArrayLike) -> FloatArray:
    """Read ranks by one or more judges, shape (n_rows, n_judges); NaN means unranked."""
    try:
        given: Any = np.ma.asanyarray(ranks)
        table = np.ma.filled(given.astype(np.float64), np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(
            "ranks must be numbers, one row per item and one column per judge (NaN where a judge "
            f"did not rank a row): {error}"
        ) from error
    return table[:, None] if table.ndim == 1 else table


def _ranked_levels(ranks: FloatArray, groups: Groups, last: bool) -> FloatArray:
    """Turn ranks of one judge into levels; NaN stays NaN unless ``last``."""
    if len(bad := np.flatnonzero(np.isinf(ranks) | (ranks < 1))):
        row = int(bad[0])
        raise DataError(
            f"ranks count from 1 (the best), got {ranks[row]} in query {groups.query_of(row)!r}; "
            "for scores where larger is better use from_labels"
        )
    if last and groups.n_queries:
        worst = np.fmax.reduceat(np.nan_to_num(ranks, nan=0.0), groups.offsets[:-1])
        ranks = np.where(np.isnan(ranks), groups.spread(worst) + 1.0, ranks)
    levels = -ranks
    levels.flags.writeable = False
    return levels


def _blocks(levels: FloatArray, groups: Groups) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return rows by query and level, the query of each, and where equal levels begin and end."""
    order, queries, new = sorted_ties(levels, groups)
    first = np.flatnonzero(new)
    return order, queries, first, np.append(first[1:], len(order))


def _read_groups(group: ArrayLike | None, qid: ArrayLike | None) -> Groups:
    """Read query sizes or ids; one is required, as edges do not determine the number of rows."""
    if group is not None and qid is None:
        return Groups.read(int(np.nan_to_num(as_floats(group, "group")).sum()), group, None)
    if qid is not None and group is None:
        return Groups.from_qid(qid, len(read_ids(qid)))
    raise GroupError(
        "edges do not determine the number of rows: pass either group= (rows per query) or qid= "
        "(one id per row)"
    )


def _stored_order(groups: Groups) -> IntArray:
    """Return the caller's rows in query order; empty if they already are."""
    return np.empty(0, np.int64) if groups.row_order is None else groups.row_order


@final
@dataclass(frozen=True, slots=True, eq=False)
class PreferenceGraphs:
    r"""Weighted preferences between the rows of each query.

    :math:`A_{ij} \ge 0` is the weight of "row i is preferred to row j". Either the edges are
    stored, which takes memory proportional to their number, or one level per row stands for all
    pairs of a query, with weight :math:`(y_i - y_j)_+` or 1; such pairs are listed only by
    :meth:`to_edges`. Build one with :meth:`from_edges`, :meth:`from_labels`,
    :meth:`from_rankings`, :meth:`from_duels`, :meth:`from_frame` or :meth:`from_file`.
    Immutable and compared by content.

    Parameters
    ----------
    groups : Groups
        Query boundaries.
    edges : Edges or None
        The edges, in query order.
    levels : array of shape (n_rows,) or None
        Larger is preferred; in query order.
    by_difference : bool, default=True
        Whether a pair weighs the difference of its levels; otherwise it weighs 1.
    """

    groups: Groups
    edges: Edges | None = None
    levels: FloatArray | None = None
    by_difference: bool = True

    @classmethod
    def from_edges(
        cls,
        winner: ArrayLike,
        loser: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        acyclic: bool = False,
    ) -> "PreferenceGraphs":
        """Build graphs from edges between row numbers; repeated edges are summed.

        Parameters
        ----------
        winner, loser : array-like of shape (n_edges,)
            Row numbers, from 0, of the preferred and the other item.
        weight : array-like of shape (n_edges,), optional
            Finite, not negative; 1 by default.
        group : array-like of shape (n_queries,), optional
            Rows per query.
        qid : array-like of shape (n_rows,), optional
            One query id per row, in any order. Exactly one of ``group`` and ``qid`` is required,
            since edges do not determine the number of rows.
        acyclic : bool, default=False
            Reject a query whose preferences contain a cycle.

        Returns
        -------
        PreferenceGraphs
            With the edges stored.

        Examples
        --------
        >>> graphs = PreferenceGraphs.from_edges([0, 0, 1], [1, 1, 2], group=[3, 1])
        >>> graphs.n_edges, graphs.net_degree()
        (2, array([ 2., -1., -1.,  0.]))
        """
        groups = _read_groups(group, qid)
        graphs = cls(groups, _read_edges(winner, loser, weight, groups))
        return graphs.check_acyclic() if acyclic else graphs

    @classmethod
    def from_labels(
        cls,
        labels: ArrayLike,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        weights: str = "difference",
    ) -> "PreferenceGraphs":
        """Prefer the item with the larger label; pairs are not listed.

        Parameters
        ----------
        labels : array-like of shape (n_rows,)
            Larger is better; same limits as in ``gbmrank.RankingData``.
        group, qid : array-like, optional
            Queries, as in :meth:`from_edges`; with neither, all rows are one query.
        weights : {"difference", "unit"}, default="difference"
            Weight of a pair: ``y_i - y_j``, or 1.

        Returns
        -------
        PreferenceGraphs
            With one level per row.
        """
        by_difference = _choice("weights", weights, ("difference", "unit")) == "difference"
        data = RankingData.from_arrays(labels, group=group, qid=qid)
        return cls(data.groups, None, data.labels, by_difference)

    @classmethod
    def from_rankings(
        cls,
        ranks: ArrayLike,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        weights: str = "unit",
        unranked: str = "absent",
    ) -> "PreferenceGraphs":
        """Build graphs from rankings by one or more judges.

        Parameters
        ----------
        ranks : array-like of shape (n_rows,) or (n_rows, n_judges)
            One column of ranks per judge; 1 is the best. Tied rows have no preference between
            them. NaN or masked means that the judge did not rank the row. Preferences of several
            judges are summed.
        group, qid : array-like, optional
            Queries, as in :meth:`from_labels`.
        weights : {"unit", "distance"}, default="unit"
            Weight of a pair: 1, or the difference of the ranks.
        unranked : {"absent", "last"}, default="absent"
            Whether an unranked row has no preferences, or is worse than every ranked row.

        Returns
        -------
        PreferenceGraphs
            The preferences of all judges.

        Examples
        --------
        >>> PreferenceGraphs.from_rankings([[1, 2], [2, 1], [3, float("nan")]]).to_matrix(0)
        array([[0., 1., 1.],
               [1., 0., 1.],
               [0., 0., 0.]])
        """
        table = _rank_table(ranks)
        groups = Groups.read(len(table), group, qid)
        by_difference = _choice("weights", weights, ("unit", "distance")) == "distance"
        last = _choice("unranked", unranked, ("absent", "last")) == "last"
        columns = [_ranked_levels(np.array(groups.arrange(c)), groups, last) for c in table.T]
        if len(columns) == 1 and not np.isnan(columns[0]).any():
            return cls(groups, None, columns[0], by_difference)
        return cls(
            groups, _added([_pairs_of_levels(c, groups, by_difference) for c in columns], groups)
        )

    @classmethod
    def from_duels(
        cls,
        first: ArrayLike,
        second: ArrayLike,
        wins: ArrayLike,
        losses: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> "PreferenceGraphs":
        """Build graphs from counts of wins and losses between two rows.

        Parameters
        ----------
        first, second : array-like of shape (n_duels,)
            Row numbers.
        wins, losses : array-like of shape (n_duels,)
            How often the first row beat the second, and how often it lost. Without ``losses``
            each entry is one duel and ``wins`` is 1, 0, or 0.5 for a draw.
        group, qid : array-like
            Queries, as in :meth:`from_edges`.

        Returns
        -------
        PreferenceGraphs
            With the edges stored; repeated duels are summed.
        """
        groups = _read_groups(group, qid)
        won = as_floats(wins, "wins")
        if losses is None and np.any((won < 0) | (won > 1)):
            duel = int(np.flatnonzero((won < 0) | (won > 1))[0])
            raise WeightError(
                f"duel {duel} has wins={won[duel]:g}; without losses= it must be 1, 0 or 0.5"
            )
        lost = 1.0 - won if losses is None else as_floats(losses, "losses")
        there = _read_edges(first, second, won, groups)
        back = _read_edges(second, first, lost, groups)
        return cls(groups, _added([there, back], groups))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        items: ArrayLike | None = None,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        acyclic: bool = False,
    ) -> "PreferenceGraphs":
        """Build graphs from a table of edges.

        Parameters
        ----------
        frame : data frame or dict of columns
            One edge per row, with the columns ``winner`` and ``loser`` and optionally ``weight``
            and ``qid``.
        items : array-like of shape (n_rows,), optional
            The item id of every row of the data, as used in ``winner`` and ``loser``. Without it
            these are row numbers. If several queries share item ids, the table needs the column
            ``qid``. With row numbers, a column ``qid`` must agree with ``qid=``; with ``group=``
            it is ignored.
        group, qid : array-like
            Queries of the rows, as in :meth:`from_edges`.
        acyclic : bool, default=False
            Reject a query whose preferences contain a cycle.

        Returns
        -------
        PreferenceGraphs
            With the edges stored.
        """
        groups = _read_groups(group, qid)
        graphs = cls(groups, _edges_of_table(frame, items, groups))
        return graphs.check_acyclic() if acyclic else graphs

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        items: ArrayLike | None = None,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        acyclic: bool = False,
    ) -> "PreferenceGraphs":
        """Build graphs from a CSV or Parquet file with the columns of :meth:`from_frame`.

        Parameters
        ----------
        path : str or Path
            A ``.csv`` or ``.tsv`` file, plain or with ``.gz``, or a ``.parquet`` file. Ids in CSV
            are compared as strings: 7 matches the item 7 or ``"7"``, and 007 matches neither.
        items, group, qid, acyclic
            As in :meth:`from_frame`.

        Returns
        -------
        PreferenceGraphs
            With the edges stored.
        """
        table, written = _read_file(path, items is not None)
        groups = _read_groups(group, qid)
        graphs = cls(groups, _edges_of_table(table, items, groups, written))
        return graphs.check_acyclic() if acyclic else graphs

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.groups.n_rows

    @property
    def n_edges(self) -> int:
        """Number of edges, including the pairs that levels stand for."""
        if self.edges is not None:
            return len(self.edges.winner)
        _, _, first, last = _blocks(self._levels(), self.groups)
        sizes, same = self.groups.sizes.astype(np.float64), (last - first).astype(np.float64)
        return int((sizes * sizes).sum() - (same * same).sum()) // 2

    def net_degree(self, *, in_query_order: bool = False) -> FloatArray:
        r"""Return :math:`f_i = \sum_j (A_{ij} - A_{ji})` for every row.

        Levels are not compared pair by pair: the result is ``n y - sum(y)`` for differences, and
        the number of worse rows minus that of better rows otherwise.

        Parameters
        ----------
        in_query_order : bool, default=False
            Return rows in query order instead of the caller's order.

        Returns
        -------
        array of shape (n_rows,)
            Weight won minus weight lost.
        """
        if self.edges is None:
            degrees = _level_degrees(self._levels(), self.groups, self.by_difference)
        else:
            _, winner, loser, weight = self.edges
            won = np.bincount(winner, weight, self.n_rows)
            degrees = np.asarray(won - np.bincount(loser, weight, self.n_rows), np.float64)
        return degrees if in_query_order else self.groups.restore(degrees)

    def to_edges(self) -> Edges:
        """Return all edges in query order; raises LimitError if levels stand for too many."""
        if self.edges is not None:
            return self.edges
        return _pairs_of_levels(self._levels(), self.groups, self.by_difference)

    def to_matrix(self, query: int) -> FloatArray:
        """Return the weight matrix A of one query, shape (n_items, n_items).

        Parameters
        ----------
        query : int
            Number of the query, from 0, in order of first appearance.

        Returns
        -------
        array of shape (n_items, n_items)
            Entry (i, j) is the weight of "i is preferred to j".
        """
        queries = self.groups.n_queries
        if not is_whole(query) or not 0 <= query < queries:
            raise ParameterError(
                f"query must be a whole number from 0 to {queries - 1}, by first appearance; "
                f"got {query!r}"
            )
        begin, end = self.groups.offsets[query : query + 2].tolist()
        rows, n = np.arange(begin, end), end - begin
        return self.weights(np.repeat(rows, n), np.tile(rows, n)).reshape(n, n)

    def weights(self, winner: IntArray, loser: IntArray) -> FloatArray:
        """Return the weight of "winner over loser" for pairs of rows in query order, or 0."""
        if self.edges is None:
            lead = self._levels()[winner] - self._levels()[loser]
            return np.maximum(lead, 0.0) if self.by_difference else (lead > 0).astype(np.float64)
        if not len(self.edges.winner):
            return np.zeros(len(winner))
        known = self.edges.winner * self.n_rows + self.edges.loser
        wanted = winner * self.n_rows + loser
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, self.edges.weight[place], 0.0)

    def find_cycle(self) -> list[int] | None:
        """Return the caller's rows along a cycle within one query, or None if there is none."""
        cycle = None if self.edges is None else _find_cycle(self.edges, self.groups)
        order = self.groups.row_order
        return cycle if cycle is None or order is None else order[cycle].tolist()

    def check_acyclic(self) -> "PreferenceGraphs":
        """Return self, or raise a DataError that shows a cycle."""
        if (rows := self.find_cycle()) is None:
            return self
        order = self.groups.row_order
        place = rows[0] if order is None else int(np.flatnonzero(order == rows[0])[0])
        raise DataError(
            f"query {self.groups.query_of(place)!r} has a cycle: row "
            f"{' over '.join(map(str, [*rows, rows[0]]))}; drop one of its edges, or allow cycles "
            "by leaving out acyclic=True"
        )

    def take(self, rows: ArrayLike) -> "PreferenceGraphs":
        """Return the graphs of a subset of rows, in increasing order, with the edges among them."""
        rows, groups = self.groups.take(rows)
        if self.edges is None:
            return PreferenceGraphs(groups, None, self._levels()[rows], self.by_difference)
        place = np.full(self.n_rows, -1, np.int64)
        place[rows] = np.arange(len(rows))
        winner, loser = place[self.edges.winner], place[self.edges.loser]
        kept = (winner >= 0) & (loser >= 0)
        edges = _merged(winner[kept], loser[kept], self.edges.weight[kept], groups)
        return PreferenceGraphs(groups, edges)

    def check_rows(self, groups: Groups) -> None:
        """Raise DataError unless a data set has the same rows and queries in the same order.

        Rows are matched by position. If both sides have query ids, different ids show that the
        order differs, or that the preferences are those of another data set.
        """
        own = self.groups
        if own is groups:
            return
        if not np.array_equal(own.offsets, groups.offsets) or not np.array_equal(
            _stored_order(own), _stored_order(groups)
        ):
            raise DataError(
                f"the preferences are for {own.n_rows} rows in {own.n_queries} queries, the data "
                f"set has {groups.n_rows} rows in {groups.n_queries} queries"
                + ("; their sizes or order differ" if own.n_rows == groups.n_rows else "")
                + "; build the preferences for this data set"
            )
        if own.ids is None or groups.ids is None or np.array_equal(own.ids, groups.ids):
            return
        mine, theirs = id_texts(own.ids), id_texts(groups.ids)
        if len(differs := np.flatnonzero(mine != theirs)):
            query = int(differs[0])
            raise DataError(
                f"the preferences have the query {str(mine[query])!r} where the data set has "
                f"{str(theirs[query])!r}. Rows are matched by position: put both into the same "
                "order, or build the preferences for this data set. If these are two names of one "
                "query, build the preferences with group= instead of qid="
            )

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, PreferenceGraphs) and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(self._columns(), other._columns(), strict=True)
        )

    def __hash__(self) -> int:
        first, last = self._columns()[2][:1], self._columns()[2][-1:]
        return hash((self.n_rows, self.by_difference, *first.tolist(), *last.tolist()))

    def __repr__(self) -> str:
        kind = "listed" if self.edges is not None else "from levels"
        return (
            f"PreferenceGraphs({self.n_edges} edges {kind}, {self.groups.n_queries} queries, "
            f"{self.n_rows} rows)"
        )

    def _columns(self) -> tuple[Any, ...]:
        start = self.groups.offsets, _stored_order(self.groups)
        if self.edges is None:
            return (*start, self._levels(), np.array([self.by_difference]), np.empty(0))
        return (*start, self.edges.weight, self.edges.winner, self.edges.loser)

    def _levels(self) -> FloatArray:
        if self.levels is None:
            raise ParameterError("PreferenceGraphs needs edges or levels; use a from_ method")
        return self.levels


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")
    return value


def preferences_for(own: PreferenceGraphs | None, data: RankingData) -> PreferenceGraphs | None:
    """Return the preferences of an objective or metric, or else of the data.

    If the data is a subset of the data set they were built for, they are restricted to its rows.
    Preferences for other rows raise a DataError.
    """
    graphs = data.preferences if own is None else own
    if graphs is None:
        return None
    if data.subset is not None and graphs.n_rows == data.subset.n_rows:
        graphs = graphs.take(data.subset.rows)
    graphs.check_rows(data.groups)
    return graphs
