r"""Measures of the set of items within a cut-off, and of the subtopics that a list covers.

Each is the mean over all orderings of tied items. A block of m tied items, p of them relevant, that
straddles the cut-off has t of its ranks before it: a relevant item is there with probability
t/m, and none is with probability :math:`\binom{m-p}{t} / \binom{m}{t}`.

*Subtopics*: an item earns :math:`\beta^c` for each of its subtopics that c items above it have.
Subtopics add up, so each is counted by itself. At the j-th rank of a block with p of m items on
a subtopic, the chance of an item on it is p/m, and the mean of :math:`\beta^c` over the ranks
before it is :math:`e_{j-1}`, the mean product over the subsets of so many of the other m - 1
items, where p - 1 have the factor :math:`\beta` and the others 1. One more item with the factor
x turns :math:`e_k` of M items into :math:`[(M+1-k) e_k + k x e_{k-1}] / (M+1)`.
"""

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit.decorators import entry, inner
from gbmrank.kernels.layout import Items, Ranking, Span, TopicItems
from gbmrank.kernels.ranking.sorting import block_end, block_sum
from gbmrank.types import FloatArray, IntArray


@entry
def share_within(ranking: Ranking, items: Items, span: Span, out: FloatArray) -> None:
    """Write the expected number of relevant items up to the cut-off, over the ``divisor``."""
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        start, total, cut = begin, 0.0, items.cuts[q]
        while start < end and start - begin < cut:
            stop = block_end(ranking, start, end)
            counted = min(stop - begin, cut) - (start - begin)
            p = block_sum(items.values, begin, ranking, start, stop)
            total += p * counted / (stop - start)
            start = stop
        out[q] = total / items.divisor[q]


@entry
def any_within(ranking: Ranking, items: Items, span: Span, out: FloatArray) -> None:
    """Write the probability of a relevant item up to the cut-off, over the ``divisor``."""
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        start, none, cut = begin, 1.0, items.cuts[q]
        while start < end and start - begin < cut:
            stop = block_end(ranking, start, end)
            size, counted = stop - start, min(stop - begin, cut) - (start - begin)
            p = block_sum(items.values, begin, ranking, start, stop)
            for j in range(counted):
                none *= max(size - p - j, 0.0) / (size - j)
            start = stop
        out[q] = (1.0 - none) / items.divisor[q]


@inner
def _topic_in_block(
    p: int, size: int, counted: int, beta: float, discounts: FloatArray, means: FloatArray
) -> float:
    """Return the expected discounted gain of a block on one subtopic that none above has."""
    means[:counted] = 1.0
    for taken in range(p - 1):
        many = size - p + taken + 1
        for k in range(min(counted - 1, many), 0, -1):
            means[k] = ((many - k) * means[k] + k * beta * means[k - 1]) / many
    total = 0.0
    for j in range(counted):
        total += means[j] * discounts[j]
    return total * p / size


@entry
def topic_gains(ranking: Ranking, items: TopicItems, span: Span, out: FloatArray) -> None:
    """Write the discounted gains of subtopics of every query, over the ``divisor``."""
    means = np.empty(span.longest)
    n_topics = items.topics.shape[1]
    seen = np.empty(n_topics)
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        start, total = begin, 0.0
        seen[:] = 1.0
        while start < end and start - begin < items.k:
            stop = block_end(ranking, start, end)
            above, size = start - begin, stop - start
            counted = min(stop - begin, items.k) - above
            for t in range(n_topics):
                p = 0
                for r in range(start, stop):
                    p += items.topics[begin + ranking.order[r], t]
                if p > 0:
                    tail = items.discounts[above : above + counted]
                    gain = _topic_in_block(p, size, counted, items.beta, tail, means)
                    total += seen[t] * gain
                    seen[t] *= items.beta**p
            start = stop
        out[q] = total / items.divisor[q]


@inner
def _best_item(
    topics: npt.NDArray[np.uint8], taken: npt.NDArray[np.uint8], seen: FloatArray
) -> tuple[int, float]:
    """Return the item that adds most, and what; -1 when none adds anything."""
    best, most = -1, 0.0
    for i in range(len(topics)):
        gain = 0.0
        for t in range(topics.shape[1]):
            gain += seen[t] * topics[i, t]
        if taken[i] == 0 and gain > most:
            best, most = i, gain
    return best, most


@entry
def greedy_gains(items: TopicItems, offsets: IntArray, span: Span, out: FloatArray) -> None:
    """Write the discounted gains when each rank gets the item that adds most to those above.

    Rows are sorted by their subtopics, so that items that add the same are taken in an order
    that does not depend on the rows of the caller.
    """
    n_topics = items.topics.shape[1]
    seen, taken = np.empty(n_topics), np.empty(span.longest, np.uint8)
    for q in range(span.first, span.last):
        begin, n = offsets[q], offsets[q + 1] - offsets[q]
        seen[:] = 1.0
        taken[:] = 0
        total = 0.0
        for r in range(min(n, items.k)):
            best, most = _best_item(items.topics[begin : begin + n], taken, seen)
            if best < 0:
                break
            taken[best] = 1
            total += most * items.discounts[r]
            for t in range(n_topics):
                if items.topics[begin + best, t]:
                    seen[t] *= items.beta
        out[q] = total
