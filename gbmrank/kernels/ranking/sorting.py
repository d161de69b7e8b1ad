"""Scores to rankings: the whole order, the best few, and ties settled by value; a template.

The whole order is a stable sort of each query by decreasing score. Scores are spread over as many
buckets as there are items by a monotone map, which leaves little for the insertion sort that
follows; scores that crowd into few buckets are merge-sorted instead. Comparisons are exact, so
only the time depends on the map.

For the best k, rows are dealt into k piles. The smallest of the piles' best scores is a bound that
at least k scores reach; usually few others do, and each finds its rank by counting those above
it. Where many reach the bound, as ties do, the best k are kept sorted while the others pass.

Equal scores form a block, marked by ``tied``.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit.decorators import columns, entry, exact_inner, inner
from gbmrank.kernels.layout import Ranking, Span
from gbmrank.types import FloatArray, IntArray

__all__ = ["PART", "block_end", "block_sum"]

_RUN = 8
_MOVES_PER_ITEM = 6  # beyond this merging is faster than insertion
_FEW = 3  # times k items, among which there is nothing to select
_CROWDED = 6  # times k items, for which counting takes too long

Numbers = npt.NDArray[np.int32]
PART = 1024
"""Long sums are added up in parts of so many terms, each of which loses few digits."""


class Workspace(NamedTuple):
    """Buffers for the longest query: two pairs of scores and items, bucket numbers, values."""

    keys: FloatArray
    items: Numbers
    other_keys: FloatArray
    other_items: Numbers
    buckets: Numbers
    counts: IntArray
    settled: FloatArray


def best_workspace(longest: int) -> tuple[FloatArray, Numbers, Numbers]:
    """Return buffers for the best of up to ``longest`` items: scores, items, ranks."""
    return np.empty(longest + 1), np.empty(longest + 1, np.int32), np.empty(longest, np.int32)


def workspace(longest: int) -> Workspace:
    """Return buffers for queries of up to ``longest`` items; kernels would have to compile it."""
    return Workspace(
        np.empty(longest + 1, np.float64),
        np.empty(longest + 1, np.int32),
        np.empty(longest, np.float64),
        np.empty(longest, np.int32),
        np.empty(longest, np.int32),
        np.empty(longest + 1, np.int64),
        np.empty(longest, np.float64),
    )


@exact_inner
def _spread(scores: FloatArray, work: Workspace) -> bool:
    """Place items by bucket, in row order within a bucket; False when that cannot be done."""
    n = len(scores)
    lowest = highest = scores[0]
    for i in range(n):
        lowest = scores[i] if scores[i] < lowest else lowest
        highest = scores[i] if scores[i] > highest else highest
    scale = (n - 1) / (highest - lowest)
    if not 0.0 < scale < np.inf:
        return False
    counts = work.counts[: n + 1]
    counts[:] = 0
    for i in range(n):
        bucket = np.int32((highest - scores[i]) * scale)
        bucket = bucket if bucket < n else np.int32(n - 1)  # rounding may lead one past the end
        work.buckets[i] = bucket
        counts[bucket + 1] += 1
    for b in range(n):
        counts[b + 1] += counts[b]
    for i in range(n):
        place = counts[work.buckets[i]]
        counts[work.buckets[i]] = place + 1
        work.keys[place] = scores[i]
        work.items[place] = i
    return True


@inner
def _insert(keys: FloatArray, items: Numbers, first: int, last: int, budget: int) -> int:
    """Sort a stretch by insertion; return the moves left, below zero when it gave up."""
    for i in range(first + 1, last):
        key, item = keys[i], items[i]
        j = i
        while j > first and keys[j - 1] < key:
            keys[j] = keys[j - 1]
            items[j] = items[j - 1]
            j -= 1
        keys[j] = key
        items[j] = item
        budget -= i - j
        if budget < 0:
            return budget
    return budget


@inner
def _merge(
    source: tuple[FloatArray, Numbers], width: int, n: int, target: tuple[FloatArray, Numbers]
) -> None:
    """Merge neighbouring runs of ``width`` items into runs of twice that."""
    keys, items = source
    for start in range(0, n, 2 * width):
        middle = min(start + width, n)
        stop = min(start + 2 * width, n)
        left, right = start, middle
        for place in range(start, stop):
            take_left = right >= stop or (left < middle and not keys[left] < keys[right])
            chosen = left if take_left else right
            target[0][place] = keys[chosen]
            target[1][place] = items[chosen]
            left += take_left
            right += not take_left


@inner
def _merge_sort(work: Workspace, n: int) -> None:
    for start in range(0, n, _RUN):
        _insert(work.keys, work.items, start, min(start + _RUN, n), _RUN * _RUN)
    width = _RUN
    while width < n:
        _merge((work.keys, work.items), width, n, (work.other_keys, work.other_items))
        _merge((work.other_keys, work.other_items), 2 * width, n, (work.keys, work.items))
        width *= 4


@inner
def sort_down(scores: FloatArray, work: Workspace) -> None:
    """Write scores, largest first, ties by row, and item numbers to ``work.keys, work.items``."""
    n = len(scores)
    if not _spread(scores, work):
        for i in range(n):
            work.keys[i] = scores[i]
            work.items[i] = i
    if _insert(work.keys, work.items, 0, n, _MOVES_PER_ITEM * n + _RUN) < 0:
        _merge_sort(work, n)


@inner
def block_end(ranking: Ranking, start: int, end: int) -> int:
    """Return one past the last entry that ties with ``start``."""
    stop = start + 1
    while stop < end and ranking.tied[stop]:
        stop += 1
    return stop


@exact_inner
def block_sum(values: FloatArray, begin: int, ranking: Ranking, start: int, stop: int) -> float:
    """Return the sum of values over entries ``start`` to ``stop - 1`` of a query at ``begin``."""
    total = 0.0
    for low in range(start, stop, PART):
        part = 0.0
        for i in range(low, min(low + PART, stop)):
            part += values[begin + ranking.order[i]]
        total += part
    return total


@inner
def _write(work: Workspace, begin: int, n: int, ranking: Ranking) -> None:
    """Copy a sorted query and mark its ties."""
    ranking.order[begin] = work.items[0]
    ranking.tied[begin] = 0
    for i in range(1, n):
        ranking.order[begin + i] = work.items[i]
        ranking.tied[begin + i] = work.keys[i] == work.keys[i - 1]


@entry
def rank_best(  # noqa: PLR0915  (a function more would take longer to compile)
    scores: FloatArray,
    k: int,
    span: Span,
    work: tuple[FloatArray, Numbers, Numbers],
    ranking: Ranking,
) -> None:
    """Rank at least the first k items of each query, and all that tie with the k-th."""
    keys, items, places = columns(work)
    offsets, order, tied = columns(ranking)
    (scores,) = columns((scores,))
    for q in range(span.first, span.last):
        begin, end = offsets[q], offsets[q + 1]
        bound, count = -np.inf, 0
        if end - begin > _FEW * k:
            for pile in range(k):
                keys[pile] = scores[begin + pile]
            pile = 0
            for i in range(begin + k, end):
                keys[pile] = scores[i] if scores[i] > keys[pile] else keys[pile]
                pile = pile + 1 if pile + 1 < k else 0
            bound = keys[0]
            for pile in range(k):
                bound = keys[pile] if keys[pile] < bound else bound
        for i in range(begin, end):
            keys[count] = scores[i]
            items[count] = i - begin
            count += scores[i] >= bound
        if count <= _CROWDED * k:
            for i in range(count):
                key, ahead = keys[i], 0
                for j in range(i):
                    lower = keys[j] < key
                    places[j] += lower
                    ahead += not lower
                places[i] = ahead
            for i in range(count):
                order[begin + places[i]] = items[i]
        else:
            kept = 0
            for i in range(count):
                key, item = keys[i], items[i]
                if kept < k or key > keys[k - 1]:
                    j = kept if kept < k else k - 1
                    while j > 0 and keys[j - 1] < key:
                        keys[j] = keys[j - 1]
                        items[j] = items[j - 1]
                        j -= 1
                    keys[j] = key
                    items[j] = item
                    kept += kept < k
            count = 0
            while keys[count] > keys[k - 1]:
                order[begin + count] = items[count]
                count += 1
            for i in range(begin, end):
                if scores[i] == keys[k - 1]:
                    order[begin + count] = i - begin
                    count += 1
        tied[begin] = 0
        for i in range(begin + 1, begin + count):
            tied[i] = scores[begin + order[i]] == scores[begin + order[i - 1]]
        if begin + count < end:
            tied[begin + count] = 0


@entry
def rank_all(scores: FloatArray, span: Span, work: Workspace, ranking: Ranking) -> None:
    """Rank all items of each query."""
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        sort_down(scores[begin:end], work)
        _write(work, begin, end - begin, ranking)


@inner
def _settle_block(
    ranking: Ranking, values: FloatArray, block: tuple[int, int, int], work: Workspace, out: Ranking
) -> None:
    """Order the entries of one block by decreasing value."""
    begin, start, stop = block
    value = work.settled[: stop - start]
    for i in range(start, stop):
        value[i - start] = values[begin + ranking.order[i]]
    sort_down(value, work)
    for i in range(stop - start):
        out.order[start + i] = ranking.order[start + work.items[i]]


@entry
def settle(
    ranking: Ranking, values: FloatArray, k: int, span: Span, work: Workspace, out: Ranking
) -> None:
    """Write the order in which tied items follow each other by decreasing value."""
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        start = begin
        while start < end and start - begin < k:
            stop = block_end(ranking, start, end)
            if stop - start == 1:
                out.order[start] = ranking.order[start]
            else:
                _settle_block(ranking, values, (begin, start, stop), work, out)
            start = stop
