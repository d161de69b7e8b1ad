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

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit.decorators import columns, entry, inner
from gbmrank.kernels.layout import Ranking, Span
from gbmrank.types import FloatArray, IntArray

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
    kinds: list[Any] = [np.float64, np.int32, np.float64, np.int32, np.int32, np.int64, np.float64]
    return Workspace(*(np.empty(longest + 1, kind) for kind in kinds))


@inner
def _bucket(distance: float, scale: float) -> int:
    return int(distance * scale)


@inner
def _merge(work: Workspace, n: int) -> None:
    """Sort by merging runs of twice the width in every pass."""
    keys, items, other_keys, other_items = work[:4]
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle = start + width if start + width < n else n
            stop = middle + width if middle + width < n else n
            left, right = start, middle
            for place in range(start, stop):
                from_left = right >= stop or (left < middle and not keys[left] < keys[right])
                chosen = left if from_left else right
                other_keys[place] = keys[chosen]
                other_items[place] = items[chosen]
                left += from_left
                right += not from_left
        for i in range(n):
            keys[i] = other_keys[i]
            items[i] = other_items[i]
        width *= 2


@inner
def sort_down(scores: FloatArray, begin: int, n: int, work: Workspace) -> None:
    """Write n scores, largest first, ties by row, and their numbers to the first two buffers."""
    keys, items, _, _, buckets, counts, _ = work
    lowest = highest = scores[begin]
    for i in range(begin, begin + n):
        lowest = scores[i] if scores[i] < lowest else lowest
        highest = scores[i] if scores[i] > highest else highest
    scale = (n - 1) / (highest - lowest)
    spread = 0.0 < scale < np.inf
    for i in range(n + 1):
        counts[i] = 0
    for i in range(n):
        bucket = _bucket(highest - scores[begin + i], scale) if spread else i
        bucket = bucket if bucket < n else n - 1  # rounding may lead one past the end
        buckets[i] = bucket
        counts[bucket + 1] += 1
    for i in range(n):
        counts[i + 1] += counts[i]
    for i in range(n):
        place = counts[buckets[i]]
        counts[buckets[i]] = place + 1
        keys[place] = scores[begin + i]
        items[place] = i
    moves, i = _MOVES_PER_ITEM * n, 1
    while i < n and moves >= 0:
        key, item, j = keys[i], items[i], i
        while j > 0 and keys[j - 1] < key:
            keys[j] = keys[j - 1]
            items[j] = items[j - 1]
            j -= 1
        keys[j] = key
        items[j] = item
        moves -= i - j
        i += 1
    if moves < 0:
        _merge(work, n)


@inner
def block_end(ranking: Ranking, start: int, end: int) -> int:
    """Return one past the last entry that ties with ``start``."""
    stop = start + 1
    while stop < end and ranking.tied[stop]:
        stop += 1
    return stop


@inner
def block_sum(values: FloatArray, begin: int, ranking: Ranking, start: int, stop: int) -> float:
    """Return the sum of values over entries ``start`` to ``stop - 1`` of a query at ``begin``."""
    total = 0.0
    for low in range(start, stop, PART):
        part = 0.0
        for i in range(low, min(low + PART, stop)):
            part += values[begin + ranking.order[i]]
        total += part
    return total


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
    buffers = columns(work)
    keys, items = buffers[:2]
    offsets, order, tied = columns(ranking)
    (scores,) = columns((scores,))
    for q in range(span.first, span.last):
        begin, n = offsets[q], offsets[q + 1] - offsets[q]
        sort_down(scores, begin, n, buffers)
        for i in range(n):
            order[begin + i] = items[i]
            tied[begin + i] = i > 0 and keys[i] == keys[i - 1]


@entry
def settle(
    ranking: Ranking, values: FloatArray, k: int, span: Span, work: Workspace, out: Ranking
) -> None:
    """Write the order in which tied items follow each other by decreasing value."""
    buffers = columns(work)
    items, settled = buffers[1], buffers[6]
    offsets, order, tied = columns(ranking)
    values, settled_order = columns((values, out.order))
    for q in range(span.first, span.last):
        begin, end = offsets[q], offsets[q + 1]
        start = begin
        while start < end and start - begin < k:
            stop = start + 1
            while stop < end and tied[stop]:
                stop += 1
            settled_order[start] = order[start]
            if stop - start > 1:
                for i in range(start, stop):
                    settled[i - start] = values[begin + order[i]]
                sort_down(settled, 0, stop - start, buffers)
                for i in range(stop - start):
                    settled_order[start + i] = order[start + items[i]]
            start = stop
