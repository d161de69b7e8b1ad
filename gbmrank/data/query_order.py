"""Sums and orders of values within queries."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.data.queries import Groups
from gbmrank.types import FloatArray

_ROWS_AT_ONCE = 1_000_000


def query_sums(values: FloatArray, groups: Groups) -> FloatArray:
    """Return the sum of each query's values, shape (n_queries,)."""
    if not groups.n_queries:
        return np.zeros(0)
    return np.add.reduceat(values, groups.offsets[:-1])


def rows_by_value(values: FloatArray, groups: Groups) -> npt.NDArray[Any]:
    """Return the rows of each query, largest value first, ties in row order."""
    order = np.empty(len(values), np.int32 if len(values) < 2**31 else np.int64)
    for first, last in _runs(groups):
        begin, end = groups.offsets[first], groups.offsets[last]
        queries = np.repeat(np.arange(last - first), groups.sizes[first:last])
        order[begin:end] = np.lexsort((-values[begin:end], queries)) + begin
    return order


def mid_ranks(values: FloatArray, groups: Groups) -> FloatArray:
    """Return ranks within each query, 1 for the largest; equal values share the mean rank."""
    order = rows_by_value(values, groups)
    ranked, owner = values[order], groups.spread(np.arange(groups.n_queries))
    new_block = np.ones(len(values), dtype=bool)
    new_block[1:] = (ranked[1:] != ranked[:-1]) | (owner[1:] != owner[:-1])
    first = np.flatnonzero(new_block)
    size = np.diff(np.append(first, len(values)))
    within = first - groups.offsets[owner[first]]
    ranks = np.empty(len(values))
    ranks[order] = np.repeat(within + (size + 1) / 2.0, size)
    return ranks


def _runs(groups: Groups) -> Iterator[tuple[int, int]]:
    """Yield runs of queries with about ``_ROWS_AT_ONCE`` rows, at least one query each."""
    first = 0
    while first < groups.n_queries:
        reach = groups.offsets[first] + _ROWS_AT_ONCE
        last = max(int(np.searchsorted(groups.offsets, reach, side="right")) - 1, first + 1)
        yield first, last
        first = last
