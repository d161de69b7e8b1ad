"""One preference graph per query: edges that are listed, or levels that stand for all pairs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from gbmrank.data.columns import id_texts, read_ids, shared_ids
from gbmrank.data.preferences.edges import (
    Edges,
    edge_degrees,
    edges_of_table,
    find_cycle,
    merged,
    read_edges,
    read_file,
)
from gbmrank.data.queries import Groups, RankingData, as_floats
from gbmrank.errors import DataError, GroupError, LimitError, ParameterError, WeightError
from gbmrank.types import ArrayLike, FloatArray, IntArray

__all__ = ["PreferenceGraphs", "preferences_for"]

_MOST_EDGES = 200_000_000  # 4.8 GB


def _level_degrees(levels: FloatArray, groups: Groups, by_difference: bool) -> FloatArray:
    """Return net degrees in query order: ``n y - sum of y``, or worse less better rows."""
    if not groups.n_queries:
        return np.zeros(0)
    if by_difference:
        # Centred first: n y - sum of y would lose digits of labels far from zero.
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
    """Return an edge for every pair of different level, of weight 1 or of their difference."""
    pairs = float((groups.sizes * (groups.sizes - 1.0) / 2.0).sum())
    if pairs > _MOST_EDGES:
        raise LimitError(
            f"listing all pairs needs up to {pairs:.3g} edges, the cap is {_MOST_EDGES:,}; use "
            "objective('linear') or pairwise_disagreement, which need no list, or sample pairs "
            "with from_edges"
        )
    winners, losers = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for begin, end in zip(groups.offsets[:-1].tolist(), groups.offsets[1:].tolist(), strict=True):
        own = levels[begin:end]
        better, worse = np.nonzero(own[:, None] > own[None, :])
        winners.append(better + begin)
        losers.append(worse + begin)
    winner, loser = np.concatenate(winners), np.concatenate(losers)
    weight = levels[winner] - levels[loser] if by_difference else np.ones(len(winner))
    return merged(winner, loser, weight, groups)


def _added(parts: list[Edges], groups: Groups) -> Edges:
    winner, loser, weight = (
        np.concatenate(columns) for columns in list(zip(*parts, strict=True))[1:]
    )
    return merged(winner, loser, weight, groups)


def _rank_table(ranks: ArrayLike) -> FloatArray:
    """Read the ranks of one or more judges, shape (n_rows, n_judges); NaN where there is none."""
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
    """Turn ranks of one judge into levels; NaN stays unless it means the last place."""
    bad = np.flatnonzero(np.isinf(ranks) | (ranks < 1))
    if len(bad):
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
    """Return rows by query and level, the query of each, and where blocks of equals begin and end.

    Lower levels come first.
    """
    queries = groups.spread(np.arange(groups.n_queries))
    order = np.lexsort((levels, queries))
    sorted_levels, sorted_queries = levels[order], queries[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (sorted_levels[1:] != sorted_levels[:-1]) | (
        sorted_queries[1:] != sorted_queries[:-1]
    )
    first = np.flatnonzero(new)
    return order, sorted_queries, first, np.append(first[1:], len(order))


def _read_groups(group: ArrayLike | None, qid: ArrayLike | None) -> Groups:
    """Read sizes of queries or ids; edges do not tell how many rows there are."""
    if group is not None and qid is None:
        return Groups.from_sizes(group, int(np.nan_to_num(as_floats(group, "group")).sum()))
    if qid is not None and group is None:
        return Groups.from_qid(qid, len(read_ids(qid)))
    raise GroupError(
        "edges do not tell how many rows there are: give group= (rows per query) or qid= (one id "
        "per row), and not both"
    )


def _stored_order(groups: Groups) -> IntArray:
    """Return the caller's rows in query order; empty where that is their order."""
    return np.empty(0, np.int64) if groups.row_order is None else groups.row_order


@final
@dataclass(frozen=True, slots=True, eq=False)
class PreferenceGraphs:
    r"""Weighted preferences between the rows of each query.

    :math:`A_{ij} \ge 0` is the weight of "row i is preferred to row j". Either edges are listed,
    in memory of the order of their number, or one level per row stands for all pairs of a
    query, with weight :math:`(y_i - y_j)_+` or 1; such pairs are never listed unless asked
    for. Build one with :meth:`from_edges`, :meth:`from_labels`, :meth:`from_rankings`,
    :meth:`from_duels`, :meth:`from_frame` or :meth:`from_file`. Frozen, equal by content.

    Parameters
    ----------
    groups : Groups
        Query boundaries.
    edges : Edges or None
        Listed edges, in query order.
    levels : array of shape (n_rows,) or None
        Larger is preferred; in query order.
    by_difference : bool, default=True
        Whether a pair of levels weighs their difference, or 1.
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
        """Read edges between row numbers; edges that repeat add up, as clicks do.

        Parameters
        ----------
        winner, loser : array-like of shape (n_edges,)
            Row numbers, from 0, of the preferred and of the other item.
        weight : array-like of shape (n_edges,), optional
            Finite, not negative; 1 when not given.
        group : array-like of shape (n_queries,), optional
            Rows per query.
        qid : array-like of shape (n_rows,), optional
            One query id per row, in any order. One of ``group`` and ``qid`` is needed: edges
            do not tell how many rows there are.
        acyclic : bool, default=False
            Reject a query whose preferences go round in a circle.

        Examples
        --------
        >>> graphs = PreferenceGraphs.from_edges([0, 0, 1], [1, 1, 2], group=[3, 1])
        >>> graphs.n_edges, graphs.net_degree()
        (2, array([ 2., -1., -1.,  0.]))
        """
        groups = _read_groups(group, qid)
        graphs = cls(groups, read_edges(winner, loser, weight, groups))
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
        """Let the item with the larger label be preferred; pairs are not listed.

        Parameters
        ----------
        labels : array-like of shape (n_rows,)
            Larger is better; what ``gbmrank.RankingData`` rejects is rejected.
        group, qid : array-like, optional
            Queries, as in :meth:`from_edges`; with neither, all rows are one query.
        weights : {"difference", "unit"}, default="difference"
            Weight of a pair: ``y_i - y_j``, or 1.
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
        """Read ranks that judges gave to rows, 1 being the best.

        Parameters
        ----------
        ranks : array-like of shape (n_rows,) or (n_rows, n_judges)
            One column per judge. Equal ranks say nothing about each other; a row that is NaN or
            masked was not ranked by the judge. Judges add up.
        group, qid : array-like, optional
            Queries, as in :meth:`from_labels`.
        weights : {"unit", "distance"}, default="unit"
            Weight of a pair: 1, or the difference of the ranks.
        unranked : {"absent", "last"}, default="absent"
            Whether a row without a rank takes no part, or is below all that have one.

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
        """Add up comparisons of two rows.

        Parameters
        ----------
        first, second : array-like of shape (n_duels,)
            Row numbers.
        wins, losses : array-like of shape (n_duels,)
            How often the first row beat the second, and lost. Without ``losses`` each entry
            is one duel and ``wins`` is 1, 0, or 0.5 for a draw.
        group, qid : array-like
            Queries, as in :meth:`from_edges`.
        """
        groups = _read_groups(group, qid)
        won = as_floats(wins, "wins")
        if losses is None and np.any((won < 0) | (won > 1)):
            duel = int(np.flatnonzero((won < 0) | (won > 1))[0])
            raise WeightError(
                f"duel {duel} has wins={won[duel]:g}; without losses= it is 1, 0 or 0.5"
            )
        lost = 1.0 - won if losses is None else as_floats(losses, "losses")
        there = read_edges(first, second, won, groups)
        back = read_edges(second, first, lost, groups)
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
        """Read a table with columns ``winner`` and ``loser``, and perhaps ``weight`` and ``qid``.

        Parameters
        ----------
        frame : data frame or dict of columns
            One edge per row; rename its columns where they have other names.
        items : array-like of shape (n_rows,), optional
            What the table calls the rows of the data, none missing; without it, ``winner`` and
            ``loser`` are row numbers. Ids that repeat from query to query need the column ``qid``.
            With row numbers a column ``qid`` must agree with ``qid=``; beside ``group=`` it
            says nothing.
        group, qid : array-like
            Queries of the rows, as in :meth:`from_edges`.
        acyclic : bool, default=False
            Reject a query whose preferences go round in a circle.
        """
        groups = _read_groups(group, qid)
        graphs = cls(groups, edges_of_table(frame, items, groups))
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
        """Read a CSV or Parquet file with the columns of :meth:`from_frame`.

        Parameters
        ----------
        path : str or Path
            Its name ends in ``.csv``, ``.tsv`` (``.gz`` too) or ``.parquet``. Ids in CSV are
            compared as they are written: 7 is the item 7 or ``"7"``, and 007 is neither.
        items, group, qid, acyclic
            As in :meth:`from_frame`.
        """
        table, written = read_file(path, items is not None)
        groups = _read_groups(group, qid)
        graphs = cls(groups, edges_of_table(table, items, groups, written))
        return graphs.check_acyclic() if acyclic else graphs

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.groups.n_rows

    @property
    def n_edges(self) -> int:
        """Number of edges, listed or not."""
        if self.edges is not None:
            return len(self.edges.winner)
        _, _, first, last = _blocks(self._levels(), self.groups)
        sizes, same = self.groups.sizes.astype(np.float64), (last - first).astype(np.float64)
        return int((sizes * sizes).sum() - (same * same).sum()) // 2

    def net_degree(self, *, in_query_order: bool = False) -> FloatArray:
        r"""Return :math:`f_i = \sum_j (A_{ij} - A_{ji})` for every row.

        Levels are not compared pair by pair: ``n y - sum of y`` for differences, and the
        number of worse less that of better rows otherwise.

        Parameters
        ----------
        in_query_order : bool, default=False
            Leave rows in query order instead of the caller's.
        """
        if self.edges is not None:
            degrees = edge_degrees(self.edges, self.n_rows)
        else:
            degrees = _level_degrees(self._levels(), self.groups, self.by_difference)
        return degrees if in_query_order else self.groups.restore(degrees)

    def to_edges(self) -> Edges:
        """Return all edges, in query order; LimitError when levels stand for too many."""
        if self.edges is not None:
            return self.edges
        return _pairs_of_levels(self._levels(), self.groups, self.by_difference)

    def to_matrix(self, query: int) -> FloatArray:
        """Return A of one query (by its number, from 0), shape (n_items, n_items)."""
        queries = self.groups.n_queries
        if not 0 <= query < queries:
            raise ParameterError(
                f"query is a number from 0 to {queries - 1}, in order of first appearance; got "
                f"{query!r}"
            )
        begin, end = self.groups.offsets[query : query + 2].tolist()
        rows, n = np.arange(begin, end), end - begin
        return self.weights(np.repeat(rows, n), np.tile(rows, n)).reshape(n, n)

    def weights(self, winner: IntArray, loser: IntArray) -> FloatArray:
        """Return the weight of "winner over loser" for pairs of rows in query order; 0 if none."""
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
        """Return the caller's rows along a cycle of one query, or None; levels have none."""
        cycle = None if self.edges is None else find_cycle(self.edges, self.groups)
        order = self.groups.row_order
        return cycle if cycle is None or order is None else order[cycle].tolist()

    def check_acyclic(self) -> "PreferenceGraphs":
        """Return self, or raise DataError with a cycle."""
        rows = self.find_cycle()
        if rows is None:
            return self
        order = self.groups.row_order
        place = rows[0] if order is None else int(np.flatnonzero(order == rows[0])[0])
        raise DataError(
            f"query {self.groups.query_of(place)!r} has a cycle: row "
            f"{' over '.join(map(str, [*rows, rows[0]]))}; the preferences of one judge have none "
            "(those of several may: leave out acyclic=True)"
        )

    def take(self, rows: ArrayLike) -> "PreferenceGraphs":
        """Return the graphs of some rows, in increasing order; edges that lose an end go."""
        rows, groups = self.groups.take(rows)
        if self.edges is None:
            return PreferenceGraphs(groups, None, self._levels()[rows], self.by_difference)
        place = np.full(self.n_rows, -1, np.int64)
        place[rows] = np.arange(len(rows))
        winner, loser = place[self.edges.winner], place[self.edges.loser]
        kept = (winner >= 0) & (loser >= 0)
        edges = merged(winner[kept], loser[kept], self.edges.weight[kept], groups)
        return PreferenceGraphs(groups, edges)

    def check_rows(self, groups: Groups) -> None:
        """Raise DataError unless a data set has these rows, and queries in this order.

        Rows are matched by position. Ids of queries tell that the order is another one where both
        sides have some of them, at different places; ids that are all different are not compared.
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
                f"{str(theirs[query])!r}: rows are matched by position; put both into one order, "
                "or make preferences for this data set"
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
    """Return the preferences of an objective or metric, else of the data, for the rows of the data.

    Where the data is a part of the data set they were made for, they are truncated to its rows;
    those of other rows are a DataError.
    """
    graphs = data.preferences if own is None else own
    if graphs is None:
        return None
    if data.subset is not None and graphs.n_rows == data.subset.n_rows:
        graphs = graphs.take(data.subset.rows)
    graphs.check_rows(data.groups)
    return graphs
