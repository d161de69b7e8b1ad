"""Queries that a model was trained on, recognised by their ids and rows together.

Ids alone say little: many files number their queries from 0 or 1. A query is the same one if its id
and a row agree, or its id and the features that are equal for all rows of a query; ids that number
nothing, such as texts, are evidence by themselves.
"""

from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import id_texts
from gbmrank.data.queries import Groups
from gbmrank.data.row_store import RowStore
from gbmrank.data.tables import is_sparse, numeric_columns, take_rows
from gbmrank.errors import LeakageWarning, warn
from gbmrank.types import BoolArray, IntArray

_COLUMNS = 16  # that are compared; of wider tables every second, third, ...
_ROWS = 1 << 16  # that are read at once
_HASHED = 1 << 13  # rows that are hashed at once: they fit into the cache of a core
_SAMPLE, _HEAD = 200, 16  # queries in whose first rows columns must be equal
_DENSE = 4  # ids from 0 to at most this times their number only count the queries

Hashes = npt.NDArray[np.uint64]


class Shared(NamedTuple):
    """Queries of a data set that a model was trained on, as masks of its queries."""

    complete: BoolArray  # all rows were trained on
    partly: BoolArray  # other rows of the same query were trained on

    @property
    def known(self) -> BoolArray:
        """Queries of which any row was trained on."""
        return self.complete | self.partly


@final
class SeenQueries:
    """Hashes of the queries of a training set; kept in memory only."""

    __slots__ = ("_constant", "_ids", "_of_query", "_rows")

    def __init__(self, features: Any, groups: Groups) -> None:
        self._ids = np.arange(groups.n_queries) if groups.ids is None else groups.ids
        rows = row_hashes(features)
        few = rows[:_SAMPLE]
        if len(np.unique(few)) <= len(few) / 2:  # equal rows are no evidence
            rows = rows[:0]
        elif len(rows):
            rows ^= groups.spread(_spread_bits(groups.n_queries))
        self._rows = rows
        self._constant = _constant_columns(features, groups)
        self._of_query = self._query_hashes(features, groups)

    def shared(self, features: Any, groups: Groups) -> Shared:
        """Return which queries of a data set are also in the training set."""
        none = np.zeros(groups.n_queries, np.bool_)
        if groups.ids is None or not len(self._ids) or not groups.n_queries:
            return Shared(none, none)
        place = _places(groups.ids, self._ids)
        same_id = place >= 0
        if not same_id.any():
            return Shared(none, none)
        mark = _spread_bits(len(self._ids))[np.maximum(place, 0)]
        rows = np.isin(row_hashes(features) ^ groups.spread(mark), self._rows)
        rows &= groups.spread(same_id)
        begin = groups.offsets[:-1]
        complete, some = np.logical_and.reduceat(rows, begin), np.logical_or.reduceat(rows, begin)
        theirs = self._query_hashes(features, groups)
        alike = same_id & (theirs == self._of_query[np.maximum(place, 0)])
        if not self._constant.size or _is_chance(alike[same_id], theirs, self._of_query):
            alike = none if _only_count(self._ids) or _only_count(groups.ids) else same_id
        return Shared(complete, (some | alike) & ~complete)

    def warn_if_shared(self, features: Any, groups: Groups) -> None:
        """Warn if the model was trained on some of these queries, unless on exactly these rows."""
        found = self.shared(features, groups)
        if not found.known.any() or found.complete.all():
            return
        first = int(np.argmax(found.known))
        rows = "other rows of them" if found.partly.any() else "their rows"
        warn(
            f"{int(found.known.sum())} of {groups.n_queries} queries were trained on ({rows}), "
            f"such as {groups.query_of(int(groups.offsets[first]))!r}, so their values are too "
            "optimistic. Keep each query on one side of a split: cv=gbmrank.QueryKFold(5)",
            LeakageWarning,
        )

    def _query_hashes(self, features: Any, groups: Groups) -> Hashes:
        return _hashes(_cells(features, groups.offsets[:-1], self._constant))


def row_hashes(features: Any, columns: int = _COLUMNS) -> Hashes:
    """Return a hash of each row, of at most so many features; categories are left out."""
    every = slice(None, None, max(1, -(-features.shape[1] // columns)))
    if isinstance(features, np.ndarray):
        return _hashes(features[:, every])
    parts = [slice(at, at + _ROWS) for at in range(0, features.shape[0], _ROWS)]
    return np.concatenate([_hashes(_cells(features, part, every)) for part in parts])


def _cells(features: Any, rows: IntArray | slice, columns: IntArray | slice) -> npt.NDArray[Any]:
    """Return some rows of some features; the features of data frames are those with numbers."""
    if isinstance(features, np.ndarray | RowStore):
        return np.asarray(features[rows][:, columns])
    if is_sparse(features):
        return np.asarray(features[rows][:, columns].toarray())
    return numeric_columns(take_rows(features, rows), columns)


def _hashes(cells: npt.NDArray[Any]) -> Hashes:
    """Return a hash of each row; 0.0 and -0.0 are the same."""
    made, factors = np.empty(len(cells), np.uint64), _spread_bits(cells.shape[1])
    for at in range(0, len(cells), _HASHED):
        bits = (np.asarray(cells[at : at + _HASHED], np.float64) + 0.0).view(np.uint64)
        bits ^= bits >> np.uint64(32)
        made[at : at + _HASHED] = bits @ factors
    return made


def _spread_bits(count: int) -> Hashes:
    return np.random.default_rng(0).integers(2**63, size=count, dtype=np.uint64) * np.uint64(2) + 1


def _constant_columns(features: Any, groups: Groups) -> IntArray:
    """Return the features that are equal within queries, and not the same everywhere."""
    sizes = groups.sizes
    several = np.flatnonzero(sizes > 1)[:_SAMPLE]
    if not len(several):
        return np.zeros(0, np.int64)
    sizes = np.minimum(sizes[several], _HEAD)
    ends = np.cumsum(sizes)
    begins = np.repeat(ends - sizes, sizes)
    rows = np.repeat(groups.offsets[several], sizes) + np.arange(ends[-1]) - begins
    # All features, unless dense ones are too many.
    step = max(1, -(-features.shape[1] // _COLUMNS)) if is_sparse(features) else 1
    cells = _cells(features, rows, slice(None, None, step))
    first = cells[begins]
    same = ((cells == first) | (np.isnan(cells) & np.isnan(first))).all(axis=0)
    return np.flatnonzero(same & (cells != cells[:1]).any(axis=0)) * step


def _is_chance(alike: BoolArray, own: Hashes, theirs: Hashes) -> bool:
    """Whether queries with the same id are alike hardly more often than any two queries are."""
    values, counts = np.unique(theirs, return_counts=True)
    at = np.minimum(np.searchsorted(values, own), len(values) - 1)
    usual = float(np.where(values[at] == own, counts[at], 0).mean()) / len(theirs)
    return float(alike.mean()) <= (1.0 + usual) / 2.0


def _places(ids: npt.NDArray[Any], known: npt.NDArray[Any]) -> IntArray:
    """Return the place of each id among known ones, or -1."""
    if ids.dtype.kind != known.dtype.kind:
        ids, known = id_texts(ids), id_texts(known)
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known[order], ids), len(known) - 1)
    return np.where(known[order][at] == ids, order[at], -1)


def _only_count(ids: npt.NDArray[Any]) -> bool:
    """Whether ids are small whole numbers, which files give to their first, second, ... query."""
    if ids.dtype.kind not in "iuf":
        return all(text.isdecimal() for text in map(str, ids[:100])) and _only_count(
            ids.astype(np.float64)
        )
    return bool((ids >= 0).all() and ids.max() <= _DENSE * len(ids))
