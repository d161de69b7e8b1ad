"""Stable sorting of one query by decreasing score.

Scores are spread over as many buckets as there are items by a monotone map, which leaves
little for the insertion sort that follows; scores that crowd into few buckets are merged
instead. Comparisons are exact, so nothing depends on the map but the time.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit import exact_inner, inner
from gbmrank.types import FloatArray

__all__ = ["Workspace", "sort_down", "workspace"]

_RUN = 8
_MOVES_PER_ITEM = 6  # beyond this merging is faster than insertion

Numbers = npt.NDArray[np.int32]


class Workspace(NamedTuple):
    """Buffers for the longest query: two pairs of scores and items, bucket numbers, values."""

    keys: FloatArray
    items: Numbers
    other_keys: FloatArray
    other_items: Numbers
    buckets: Numbers
    counts: Numbers
    settled: FloatArray


@inner
def workspace(longest: int) -> Workspace:
    """Return buffers for queries of up to ``longest`` items."""
    return Workspace(
        np.empty(longest, np.float64),
        np.empty(longest, np.int32),
        np.empty(longest, np.float64),
        np.empty(longest, np.int32),
        np.empty(longest, np.int32),
        np.empty(longest + 1, np.int32),
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
    """Write the scores, largest first, and their item numbers to ``work.keys, work.items``.

    Equal scores keep the order of their rows.
    """
    n = len(scores)
    if not _spread(scores, work):
        for i in range(n):
            work.keys[i] = scores[i]
            work.items[i] = i
    if _insert(work.keys, work.items, 0, n, _MOVES_PER_ITEM * n + _RUN) < 0:
        _merge_sort(work, n)
