"""Ranking data: labels, query boundaries, weights and other columns, validated once and frozen."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import LARGEST, as_floats, read_ids, read_wholes
from gbmrank.errors import DataError, GbmrankWarning, GroupError, WeightError, warn
from gbmrank.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from gbmrank.data.preferences import PreferenceGraphs

MANY_ROWS = 1000  # in one query, before a warning that the queries were forgotten
_MANY_QUERIES = 100  # with hardly more rows than queries, before a warning that they are in pieces
_PIECES = 1.25  # mean number of rows of such queries; shuffled rows of 6 queries have 1.2
DEBIASED = "click / propensity"
"""Column of unbiased relevance estimates; data that has it has clicks as labels."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Where each query begins and ends in a block of rows.

    Build one with :meth:`from_sizes`, :meth:`from_qid` or :meth:`single`.

    Parameters
    ----------
    offsets : array of shape (n_queries + 1,)
        Query q owns rows ``offsets[q]`` to ``offsets[q + 1] - 1``.
    row_order : array of shape (n_rows,) or None
        The caller's rows in query order; ``None`` if each query's rows were contiguous.
    ids : array of shape (n_queries,) or None
        The caller's query ids, used in error messages.
    """

    offsets: IntArray
    row_order: IntArray | None = None
    ids: npt.NDArray[Any] | None = None

    @classmethod
    def single(cls, n_rows: int) -> "Groups":
        """Treat all rows as one query; without rows there are no queries."""
        return cls(np.array([0, n_rows] if n_rows else [0], dtype=np.int64))

    @classmethod
    def from_sizes(cls, sizes: ArrayLike, n_rows: int) -> "Groups":
        """Build groups from the number of rows of each query.

        Parameters
        ----------
        sizes : array-like of shape (n_queries,)
            Rows per query, each at least 1.
        n_rows : int
            Total number of rows; the sizes must sum to it.

        Returns
        -------
        Groups
            With the rows in the given order.

        Examples
        --------
        >>> Groups.from_sizes([2, 3], 5).offsets
        array([0, 2, 5])
        """
        try:
            values = as_floats(sizes, "group")
        except DataError as error:
            raise GroupError(f"{error}; group takes sizes: for query ids use qid=") from error
        broken = np.flatnonzero(~((np.abs(values) < 2**53) & (values == np.floor(values))))
        if len(broken):
            raise GroupError(
                f"group sizes must be whole numbers, got {values[broken[0]]} at index {broken[0]}"
            )
        total = int(values.sum())
        if total != n_rows:
            advice = "check that group was made from the same rows"
            if len(values) == n_rows:
                advice = "group has one entry per row, so it looks like query ids: use qid="
            raise GroupError(
                f"group sizes sum to {total} in {len(values)} queries, but there are {n_rows} "
                f"rows; {advice}"
            )
        if len(small := np.flatnonzero(values < 1)):
            raise GroupError(
                f"group size {values[small[0]]:.0f} at index {small[0]}: every query needs at "
                "least one row; leave out empty queries"
            )
        return cls(np.concatenate([[0], np.cumsum(values)]).astype(np.int64))

    @classmethod
    def from_qid(cls, qid: ArrayLike, n_rows: int) -> "Groups":
        """Build groups from one query id per row; a query's rows need not be contiguous.

        Queries are ordered by their first row.

        Parameters
        ----------
        qid : array-like of shape (n_rows,)
            Query ids: numbers or strings, none missing.
        n_rows : int
            Number of rows.

        Returns
        -------
        Groups
            ``row_order`` maps query order to the caller's rows.

        Examples
        --------
        >>> groups = Groups.from_qid(["b", "a", "b"], 3)
        >>> groups.offsets, groups.row_order
        (array([0, 2, 3]), array([0, 2, 1]))
        """
        ids = read_ids(qid)
        if len(ids) != n_rows:
            advice = ""
            if ids.dtype.kind in "iu" and ids.sum() == n_rows:
                advice = "; these look like sizes: qid=np.repeat(np.arange(len(sizes)), sizes)"
            raise GroupError(f"qid has {len(ids)} entries, but there are {n_rows} rows{advice}")
        if n_rows == 0:
            return cls.single(0)
        starts = np.append(0, np.flatnonzero(ids[1:] != ids[:-1]) + 1)
        kept = ids[starts]
        if np.all(kept[1:] > kept[:-1]) or len(np.unique(kept)) == len(kept):
            return cls(np.append(starts, n_rows).astype(np.int64), None, kept)
        _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
        by_first_row = np.argsort(np.argsort(first))[inverse]
        order = np.argsort(by_first_row, kind="stable")
        sizes = np.bincount(by_first_row)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(offsets, order, ids[np.sort(first)])

    @classmethod
    def read(
        cls, n_rows: int, group: "ArrayLike | Groups | None", qid: ArrayLike | None
    ) -> "Groups":
        """Build groups from a user's sizes or ids; with neither, all rows are one query.

        Sizes of queries that are probably in pieces get a warning.
        """
        if group is not None and qid is not None:
            raise GroupError("give group= (sizes) or qid= (one id per row), not both")
        if isinstance(group, Groups):
            return group
        if group is not None:
            made = cls.from_sizes(group, n_rows)
            warn_if_in_pieces(made.sizes)
            return made
        return cls.single(n_rows) if qid is None else cls.from_qid(qid, n_rows)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.offsets[-1])

    @property
    def sizes(self) -> IntArray:
        """Rows per query, shape (n_queries,)."""
        return np.diff(self.offsets)

    @property
    def longest(self) -> int:
        """Rows of the longest query."""
        return int(self.sizes.max(initial=0))

    def take(self, rows: ArrayLike) -> tuple[IntArray, "Groups"]:
        """Return a subset of rows and its groups; queries left without rows are dropped.

        Parameters
        ----------
        rows : array-like of int
            Row numbers in increasing order.

        Returns
        -------
        rows : array of int
            The row numbers.
        groups : Groups
            The groups of these rows.

        Examples
        --------
        >>> Groups.from_sizes([2, 3], 5).take([0, 3, 4])[1].sizes
        array([1, 2])
        """
        if self.row_order is not None:
            raise GroupError("a subset needs data in which the rows of each query are contiguous")
        taken = read_wholes(rows, "rows", 0)
        if np.any(np.diff(taken) <= 0):
            raise DataError("rows must be increasing, as in a LightGBM subset")
        if len(taken) and taken[-1] >= self.n_rows:
            raise DataError(f"there is no row {taken[-1]}; rows go from 0 to {self.n_rows - 1}")
        owner = np.searchsorted(self.offsets, taken, side="right") - 1
        sizes = np.bincount(owner, minlength=self.n_queries)
        offsets = np.concatenate([[0], np.cumsum(sizes[sizes > 0])]).astype(np.int64)
        return taken, Groups(offsets, None, None if self.ids is None else self.ids[sizes > 0])

    def part(self, first: int, last: int) -> "Groups":
        """Return the groups of queries ``first`` to ``last - 1``, without ids."""
        return Groups(self.offsets[first : last + 1] - self.offsets[first])

    def arrange(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Reorder a column from the caller's order into query order."""
        return values if self.row_order is None else values[self.row_order]

    def restore(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Reorder a column from query order back into the caller's order."""
        if self.row_order is None:
            return values
        restored = np.empty_like(values)
        restored[self.row_order] = values
        return restored

    def spread(self, per_query: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Repeat one value per query for each of its rows."""
        return np.repeat(per_query, np.diff(self.offsets))

    def query_of(self, row: int) -> Hashable:
        """Return the id of the query of a row in query order, or its number without ids."""
        query = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return query if self.ids is None else self.ids[query].item()


class Subset(NamedTuple):
    """Increasing row numbers that a data set took from a larger one of ``n_rows`` rows."""

    rows: IntArray
    n_rows: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class RankingData:
    """Labels, groups, weights and other columns of one data set, in query order.

    Build one with :meth:`from_arrays`, which validates everything once.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        Larger is better.
    groups : Groups
        Query boundaries.
    weight : array of shape (n_rows,) or None
        One weight per row; if they differ within a query, they are item weights.
    preferences : PreferenceGraphs or None
        Preferences between rows, for objectives and metrics that use them instead of labels.
    subset : Subset or None
        The rows taken, if a booster made the data set from a larger one.
    columns : mapping of str to array of shape (n_rows,), default={}
        Other columns by name, such as positions or further labels. NaN is a missing value.
    """

    labels: FloatArray
    groups: Groups
    weight: FloatArray | None = None
    preferences: "PreferenceGraphs | None" = None
    subset: Subset | None = None
    columns: Mapping[str, FloatArray] = field(default_factory=dict)

    @classmethod
    def from_arrays(
        cls,
        labels: ArrayLike,
        *,
        group: ArrayLike | Groups | None = None,
        qid: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        preferences: "PreferenceGraphs | None" = None,
        columns: Mapping[str, ArrayLike] | None = None,
    ) -> "RankingData":
        """Validate columns and put them into query order.

        Parameters
        ----------
        labels : array-like of shape (n_rows,)
            Larger is better; NaN, infinity and values beyond 1e150 are rejected. All columns are
            matched by position; a pandas index is ignored.
        group : array-like of shape (n_queries,) or Groups, optional
            Rows per query.
        qid : array-like of shape (n_rows,), optional
            One id per row, in any order. With neither, all rows are one query.
        weight : array-like of shape (n_queries,) or (n_rows,), optional
            Non-negative, at most 1e150, and not all zero.
        preferences : PreferenceGraphs, optional
            Preferences between the same rows. ``labels`` may then be None, and without ``group``
            and ``qid`` the queries are those of the preferences.
        columns : mapping of str to array-like of shape (n_rows,), optional
            Other columns of numbers, by name; NaN is a missing value.

        Returns
        -------
        RankingData
            With rows in query order; ``groups.restore`` returns to the caller's order.

        Examples
        --------
        >>> data = RankingData.from_arrays([1, 0, 2], qid=[7, 8, 7], columns={"price": [5, 6, 7]})
        >>> data.labels, data.columns["price"]
        (array([1., 2., 0.]), array([5., 7., 6.]))
        """
        if labels is None and preferences is not None:
            labels = np.zeros(preferences.n_rows)
        values = as_floats(labels, "labels", exact=True)
        groups = Groups.read(len(values), group, qid)
        if preferences is not None:
            if group is None and qid is None and len(values) == preferences.n_rows:
                groups = preferences.groups
            preferences.check_rows(groups)
        arranged: FloatArray = np.array(groups.arrange(values))
        check_finite(arranged, "label", groups)
        _check_size(arranged, "labels", groups)
        checked = None if weight is None else _frozen(_row_weight(weight, groups))
        data = cls(_frozen(arranged), groups, checked, preferences)
        return data if columns is None else data.with_columns(columns)

    def with_columns(self, columns: Mapping[str, ArrayLike]) -> "RankingData":
        """Return the data with columns added or replaced.

        Parameters
        ----------
        columns : mapping of str to array-like
            Columns by name, one number per row in the caller's order. For a subset they may also
            have one number per row of the full data set. NaN is a missing value.

        Returns
        -------
        RankingData
            A copy; the original is not changed.

        Raises
        ------
        DataError
            If a column has another length, or values that are not numbers up to 1e150.
        """
        made = dict(self.columns)
        for name, given in columns.items():
            values = as_floats(given, name, exact=True)
            if self.subset is not None and len(values) == self.subset.n_rows:
                values = values[self.subset.rows]
            if len(values) != self.groups.n_rows:
                raise DataError(
                    f"{name} has {len(values)} entries, but there are {self.groups.n_rows} rows"
                )
            arranged = np.array(self.groups.arrange(values))
            _check_size(arranged, f"values of {name}", self.groups)
            made[name] = _frozen(arranged)
        return replace(self, columns=made)

    def with_weight(self, weight: ArrayLike) -> "RankingData":
        """Return the data with these weights.

        Parameters
        ----------
        weight : array-like of shape (n_queries,) or (n_rows,)
            Weights in the caller's order. For a subset there may also be one per row of the full
            data set.

        Returns
        -------
        RankingData
            A copy; the original is not changed.
        """
        values = as_floats(weight, "weight")
        if self.subset is not None and len(values) == self.subset.n_rows:
            values = values[self.subset.rows]
        return replace(self, weight=_frozen(_row_weight(values, self.groups)))

    def with_clicks(self, estimates: FloatArray) -> "RankingData":
        """Return the click data with unbiased relevance estimates, given in query order."""
        return replace(self, columns={**self.columns, DEBIASED: _frozen(np.array(estimates))})

    def take(self, rows: ArrayLike) -> "RankingData":
        """Return the data of a subset of rows; see :meth:`Groups.take`."""
        taken, groups = self.groups.take(rows)
        return RankingData(
            _frozen(self.labels[taken]),
            groups,
            None if self.weight is None else _frozen(self.weight[taken]),
            None if self.preferences is None else self.preferences.take(taken),
            columns={name: _frozen(values[taken]) for name, values in self.columns.items()},
        )

    def read_scores(self, scores: ArrayLike) -> FloatArray:
        """Validate scores in the caller's order and put them into query order."""
        values = as_floats(scores, "scores", exact=True)
        if len(values) != self.groups.n_rows:
            raise DataError(
                f"scores has {len(values)} rows, labels has {self.groups.n_rows}: "
                "both need one entry per row"
            )
        arranged: FloatArray = self.groups.arrange(values)
        check_finite(arranged, "score", self.groups)
        return arranged

    def query_weight(self) -> FloatArray | None:
        """Return one weight per query, or None without weights.

        Raises
        ------
        WeightError
            If the weights of a query's rows differ; the message names the query.
        """
        if self.weight is None:
            return None
        first = self.weight[self.groups.offsets[:-1]]
        if len(differs := np.flatnonzero(self.weight != self.groups.spread(first))):
            row = int(differs[0])
            raise WeightError(
                f"the rows of query {self.groups.query_of(row)!r} have different weights, but this "
                "objective or metric weighs whole queries; give each query one weight, or use an "
                "objective that weighs items: pairwise, comparison, swap, pointwise, query_rmse"
            )
        return first

    def split_weight(self) -> "tuple[RankingData, FloatArray | None]":
        """Split weights into query weights and item weights.

        Returns
        -------
        data : RankingData
            With one weight per query, the mean over its rows.
        items : array of shape (n_rows,) or None
            The weight of each row divided by that mean, so 1 where all rows of a query have the
            same weight; None if that holds for every query.

        Examples
        --------
        >>> data = RankingData.from_arrays([1, 0, 1], group=[2, 1], weight=[1, 3, 5])
        >>> whole, items = data.split_weight()
        >>> whole.query_weight(), items
        (array([2., 5.]), array([0.5, 1.5, 1. ]))
        """
        if self.weight is None:
            return self, None
        begin = self.groups.offsets[:-1]
        first = self.weight[begin]
        differs = self.weight != self.groups.spread(first)
        if not differs.any():
            return self, None
        means = np.add.reduceat(self.weight, begin) / self.groups.sizes
        uneven = np.logical_or.reduceat(differs, begin)
        mean = self.groups.spread(np.where(uneven, means, first))
        items = np.divide(self.weight, mean, out=np.ones_like(mean), where=mean > 0.0)
        return replace(self, weight=_frozen(mean)), items


def warn_if_in_pieces(sizes: npt.NDArray[Any]) -> None:
    """Warn if nearly all queries have one row, as if rows were shuffled before they were counted.

    >>> warn_if_in_pieces(np.array([1, 1, 7]))
    """
    if len(sizes) >= _MANY_QUERIES and sizes.sum() < _PIECES * len(sizes):
        warn(
            f"{np.count_nonzero(sizes == 1)} of {len(sizes)} queries have a single row, so there "
            "is hardly anything to rank. Sizes count adjacent rows: were the rows shuffled? Sort "
            "them by query before you count, or pass one id per row as qid= where it is accepted",
            GbmrankWarning,
        )


def warn_if_forgotten(n_rows: int) -> None:
    """Warn if many rows are one query, as neither sizes nor ids were given."""
    if n_rows >= MANY_ROWS:
        warn(
            f"neither group= nor qid= was given, so all {n_rows} rows count as one query. Pass "
            f"qid= (one id per row) or group= (rows per query), or group=[{n_rows}] if it is one",
            GbmrankWarning,
        )


def sorted_ties(
    values: FloatArray, groups: Groups
) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
    """Sort rows by query and increasing value.

    Returns the sorted rows, the query of each, and whether it begins a block of equal values.
    """
    query = groups.spread(np.arange(groups.n_queries))
    order = np.lexsort((values, query))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (values[order][1:] != values[order][:-1]) | (query[1:] != query[:-1])
    return order, query, new


def check_finite(values: FloatArray, what: str, groups: Groups) -> None:
    """Raise DataError if a value is not finite; the message has the count, first row and query."""
    if len(bad := np.flatnonzero(~np.isfinite(values))):
        raise DataError(
            f"{len(bad)} of {len(values)} {what}s are NaN or infinite; the first is "
            f"{_where(values, int(bad[0]), groups)}; drop or repair these rows"
        )


def _check_size(values: FloatArray, what: str, groups: Groups) -> None:
    """Raise DataError for numbers so large that their squares or sums overflow."""
    if len(bad := np.flatnonzero(np.abs(values) > LARGEST)):
        raise DataError(
            f"{len(bad)} of {len(values)} {what} are beyond {LARGEST:g}, where sums of them "
            f"overflow; the first is {_where(values, int(bad[0]), groups)}; divide the {what}, or "
            "use ranks within the query"
        )


def _frozen(column: FloatArray) -> FloatArray:
    column.flags.writeable = False
    return column


def _where(values: FloatArray, row: int, groups: Groups) -> str:
    """Describe a value with its query and its row in the caller's order."""
    given = row if groups.row_order is None else int(groups.row_order[row])
    return f"{values[row]} in row {given}, query {groups.query_of(row)!r}"


def check_weights(values: FloatArray) -> None:
    """Raise WeightError for a weight that is negative or not finite, or when all are zero."""
    if len(bad := np.flatnonzero(~((values >= 0) & (values < np.inf)))):
        raise WeightError(
            f"weights must be finite and at least 0; got {values[bad[0]]} at index {bad[0]}"
        )
    if len(large := np.flatnonzero(values > LARGEST)):
        raise WeightError(
            f"weights must be at most {LARGEST:g}, or their sums overflow; got "
            f"{values[large[0]]} at index {large[0]}. Divide all weights by a constant"
        )
    if len(values) and not values.any():
        raise WeightError("all weights are zero, so there is nothing to learn or to average")


def _row_weight(weight: ArrayLike, groups: Groups) -> FloatArray:
    values = as_floats(weight, "weight")
    if len(values) not in (groups.n_rows, groups.n_queries):
        raise WeightError(
            f"weight has {len(values)} entries; give one per query ({groups.n_queries}) or one "
            f"per row ({groups.n_rows})"
        )
    check_weights(values)
    per_row = len(values) == groups.n_rows
    return np.array(groups.arrange(values) if per_row else groups.spread(values))
