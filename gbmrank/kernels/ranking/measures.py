r"""Metrics: one value per query from a ranking, the mean over all orderings of tied items.

*Positional measures* are a discount of the rank times a value of the item there. A block of m
tied items at the ranks a+1..a+m adds the mean of its discounts times the sum of its values.

*Average precision, reciprocal rank and positives at the top* take binary values: a block has p
relevant items among m.

*Expected reciprocal rank*: a reader goes down and stops at an item with probability R. For a
block of m tied items let :math:`c_k` be the mean probability of stopping within k of them, over
all k-subsets. The block at the ranks a+1..a+m adds :math:`\sum_j (c_j - c_{j-1}) / (a + j)`
times the probability of getting there. Two ways to it:

- items one by one, where the next item turns :math:`c_k` into
  :math:`[(m+1-k) c_k + k (R + (1-R) c_{k-1})] / (m+1)`. As
  :math:`1 - c_k \le (1 - \bar R)^k` (Maclaurin), the sum may end where that is below 1e-18;
- for long blocks with few different R, an integral. Give the items independent uniform
  times; with :math:`1/(a+j) = \int_0^1 x^{a+j-1} dx` and :math:`y = 1 - x` the sum is

  .. math:: \int_0^1 (1-y)^a \int_0^1 \sum_i R_i \prod_{l \ne i} (1 - t\, b_l) \, dt \, dy,
            \quad b_l = y + R_l (1 - y),

  smooth on a logarithmic scale, so that the trapezoidal rule converges geometrically.
  Its cost does not depend on m.

*Disagreement of labels* sums label differences of pairs in the wrong order in
:math:`O(n \log n)`: going down the ranking, a tree over label levels stores how many items with
each label were passed and the sum of their labels. An item adds its lead over the passed items
with a smaller label. The mean of the queries to the tree before and after a block of ties is
entered counts each pair inside the block by one half. *Disagreement of edges* is one pass over
them.
"""

import math

import numpy as np

from gbmrank.kernels.jit.decorators import columns, entry, inner, separate
from gbmrank.kernels.layout import EdgeWeights, Items, Levels, Positions, Ranking, Span
from gbmrank.kernels.ranking.sorting import PART, block_end, block_sum
from gbmrank.types import FloatArray, IntArray

_LOG_NEGLIGIBLE = -41.5  # log of 1e-18
_NEGLIGIBLE = 1e-18
_LONG = 1_000_000  # steps of the recurrence that take as long as the integral for one R
DIFFERENT = 64  # values of a query; more are sorted elsewhere
_MANY = 2000  # more different R than this are not looked for
_STEP = 0.25
_LOWEST, _HIGHEST = -46.0, 38.0  # of the logit; the rest weighs below 1e-16


@entry
def positional_per_query(ranking: Ranking, items: Positions, span: Span, out: FloatArray) -> None:
    """Write one value per query of a span."""
    values, divisor, k, base, discounts, cumulative, upwards = items
    offsets, order, tied = columns(ranking)
    values, divisor, base, out = columns((values, divisor, base, out))
    discounts, cumulative = columns((discounts, cumulative))
    for q in range(span.first, span.last):
        begin, end = offsets[q], offsets[q + 1]
        total, part, terms = 0.0, 0.0, 0
        start = begin
        while start < end and start - begin < k:
            stop = start + 1
            value, few = values[begin + order[start]], 0.0
            while stop < end and tied[stop]:
                few += values[begin + order[stop]]
                stop += 1
                if (stop - start) % PART == 0:
                    value, few = value + few, 0.0
            value += few
            first = end - stop if upwards else start - begin
            discount = discounts[first]
            if stop - start > 1:
                discount = (cumulative[first + stop - start] - cumulative[first]) / (stop - start)
            part += discount * value
            terms += 1
            if terms == PART:
                total, part, terms = total + part, 0.0, 0
            start = stop
        out[q] = (base[q] + (total + part)) / divisor[q]


@inner
def _count(value: float, n: int, found: FloatArray, counts: IntArray) -> int:
    """Count a value among n different ones, best first; return how many there are then."""
    at = 0
    while at < n and found[at] > value:
        at += 1
    if at < n and found[at] == value:
        counts[at] += 1
        return n
    for j in range(n, at, -1):
        found[j] = found[j - 1]
        counts[j] = counts[j - 1]
    found[at] = value
    counts[at] = 1
    return n + 1


@entry
def best_sums(
    values: FloatArray,
    offsets: IntArray,
    discounts: FloatArray,
    span: Span,
    work: tuple[FloatArray, IntArray],
    out: FloatArray,
) -> None:
    """Write the sum of discount times value of the best order, or NaN for too many values.

    Counts how often each of the best values occurs; the discounts are those of the ranks that
    count. What rounding loses of a sum is added to the next term.
    """
    ranks = len(discounts)
    most = ranks if ranks < DIFFERENT else DIFFERENT
    found, counts = columns(work)
    values, offsets, discounts, out = columns((values, offsets, discounts, out))
    for q in range(span.first, span.last):
        n = 0
        for i in range(offsets[q], offsets[q + 1]):
            n = _count(values[i], n, found, counts)
            if n > most:
                n -= 1
                if ranks > most:
                    found[0] = np.nan
                    break
        total, lost, rank = 0.0, 0.0, 0
        for at in range(n):
            last = rank + counts[at] if rank + counts[at] < ranks else ranks
            while rank < last:
                term = discounts[rank] * found[at] - lost
                more = total + term
                lost = (more - total) - term
                total = more
                rank += 1
        out[q] = total


@inner
def _mean_precisions(found: float, p: float, a: int, m: int, k: int) -> float:
    """Return the expected sum of precisions at the relevant items of a block, up to rank k.

    A rank of the block is relevant with probability p/m; given that, each of the j-1 ranks
    before it in the block is relevant with probability (p-1)/(m-1).
    """
    before = (p - 1.0) / max(m - 1, 1)
    total = 0.0
    for j in range(min(m, k - a)):
        total += (found + 1.0 + j * before) / (a + j + 1)
    return total * p / m


@entry
def average_precision(
    whole: bool, ranking: Ranking, items: Items, span: Span, out: FloatArray
) -> None:
    """Write one value per query; ``whole`` takes each block as one step at its last rank."""
    values, divisor, cuts = items
    offsets, order, tied = columns(ranking)
    values, divisor, cuts, out = columns((values, divisor, cuts, out))
    for q in range(span.first, span.last):
        begin, end, k = offsets[q], offsets[q + 1], cuts[q]
        total, found = 0.0, 0.0
        start = begin
        while start < end and start - begin < k:
            stop = start + 1
            p = values[begin + order[start]]
            while stop < end and tied[stop]:
                p += values[begin + order[stop]]
                stop += 1
            if whole or stop == start + 1:
                total += p * (found + p) / (stop - begin)
            elif p > 0.0:
                total += _mean_precisions(found, p, start - begin, stop - start, k)
            found += p
            start = stop
        out[q] = total / divisor[q]


@inner
def _mean_reciprocal(p: float, a: int, m: int, k: int) -> float:
    """Return the expected 1/rank of the first of p relevant items in a block of m."""
    chance = p / m
    total = 0.0
    for j in range(min(m - int(p) + 1, k - a)):
        total += chance / (a + j + 1)
        chance *= (m - j - p) / max(m - j - 1, 1)
    return total


@entry
def reciprocal_rank(ranking: Ranking, items: Items, span: Span, out: FloatArray) -> None:
    """Write one value per query: that of the first block with a relevant item."""
    for q in range(span.first, span.last):
        begin, end, k = ranking.offsets[q], ranking.offsets[q + 1], items.cuts[q]
        total = 0.0
        start = begin
        while start < end and start - begin < k:
            stop = block_end(ranking, start, end)
            p = block_sum(items.values, begin, ranking, start, stop)
            if p > 0.0:
                total = _mean_reciprocal(p, start - begin, stop - start, k)
                break
            start = stop
        out[q] = total / items.divisor[q]


@entry
def positives_at_top(ranking: Ranking, items: Items, span: Span, out: FloatArray) -> None:
    """Write one value per query; the first block with b > 0 negatives adds p/(b+1)."""
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        total = 0.0
        start = begin
        while start < end:
            stop = block_end(ranking, start, end)
            p = block_sum(items.values, begin, ranking, start, stop)
            negatives = np.float64(stop - start) - p
            total += p / (negatives + 1.0)
            if negatives > 0.0:
                break
            start = stop
        out[q] = total / items.divisor[q]


@inner
def _depth(stops: FloatArray) -> int:
    """Return how many items of a block can matter, until readers have almost surely stopped."""
    reading_on = math.log1p(-stops.mean())
    if reading_on * len(stops) >= _LOG_NEGLIGIBLE:
        return len(stops)
    return int(_LOG_NEGLIGIBLE / reading_on) + 1


@separate
def _one_by_one(stops: FloatArray, a: int, depth: int) -> float:
    """Return the contribution of a block, items entering one by one."""
    now = np.zeros(depth + 1)
    new = np.zeros(depth + 1)
    for m in range(len(stops)):
        stop, on, share = stops[m], 1.0 - stops[m], 1.0 / (m + 1)
        for k in range(1, min(m + 1, depth) + 1):
            new[k] = ((m + 1 - k) * now[k] + k * (stop + on * now[k - 1])) * share
        now, new = new, now
    total = 0.0
    for j in range(1, depth + 1):
        total += (now[j] - now[j - 1]) / (a + j)
    return total


@separate
def _different(stops: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """Return the different values and how often each occurs; nothing when they are too many."""
    values, counts = np.empty(most + 1), np.empty(most + 1)
    n = 0
    for stop in stops:
        low, high = 0, n
        while low < high:
            middle = (low + high) // 2
            if values[middle] < stop:
                low = middle + 1
            else:
                high = middle
        if low == n or values[low] != stop:
            for i in range(n, low, -1):
                values[i] = values[i - 1]
                counts[i] = counts[i - 1]
            values[low], counts[low] = stop, 0.0
            n += 1
        counts[low] += 1.0
        if n > most:
            return values[:0], counts[:0]
    return values[:n], counts[:n]


@inner
def _over_times(y: float, values: FloatArray, counts: FloatArray) -> float:
    """Return the inner integral, over the time at which the reader stops."""
    total = 0.0
    for node in range(int((_HIGHEST - _LOWEST) / _STEP)):
        e = math.exp(_LOWEST + node * _STEP)
        t = e / (1.0 + e)
        log_on = rate = 0.0
        for d in range(len(values)):
            seen = t * (y + values[d] * (1.0 - y))
            if seen >= 1.0:  # nobody reads on: the rest is nothing
                return total * _STEP
            log_on += counts[d] * math.log1p(-seen)
            rate += counts[d] * values[d] / (1.0 - seen)
        if log_on < 2.0 * _LOG_NEGLIGIBLE:
            break
        total += rate * math.exp(log_on) * t / (1.0 + e)
    return total * _STEP


@inner
def _by_integral(values: FloatArray, counts: FloatArray, a: int) -> float:
    """Return the contribution of a block from its different stopping probabilities."""
    total = 0.0
    for node in range(int((_HIGHEST - _LOWEST) / _STEP)):
        e = math.exp(_LOWEST + node * _STEP)
        weight = math.exp(-(a + 1) * math.log1p(e)) * e / (1.0 + e)
        if weight > 0.0:
            total += weight * _over_times(e / (1.0 + e), values, counts)
    return total * _STEP


@separate
def _block(stops: FloatArray, a: int, k: int) -> float:
    """Return the contribution of a block of ties that every reader reaches."""
    depth = _depth(stops)
    most = min(depth * len(stops) // _LONG, _MANY)
    if depth <= k - a and most > 0:
        values, counts = _different(stops, most)
        if len(values) > 0:
            return _by_integral(values, counts, a)
    return _one_by_one(stops, a, min(depth, k - a))


@entry
def cascade_per_query(ranking: Ranking, items: Items, span: Span, out: FloatArray) -> None:
    """Write one value per query of a span."""
    buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end, k = ranking.offsets[q], ranking.offsets[q + 1], items.cuts[q]
        total, reading = 0.0, 1.0
        start = begin
        while start < end and start - begin < k and reading > _NEGLIGIBLE:
            stop = block_end(ranking, start, end)
            some, on = 0.0, 1.0
            for i in range(start, stop):
                value = items.values[begin + ranking.order[i]]
                buffer[i - start] = value
                some = max(some, value)
                on *= 1.0 - value
            if stop == start + 1:
                total += reading * some / (stop - begin)
            elif some > 0.0:
                total += reading * _block(buffer[: stop - start], start - begin, k)
            reading *= on
            start = stop
        out[q] = total / items.divisor[q]


@inner
def _lead(counts: FloatArray, sums: FloatArray, level: int, label: float) -> float:
    """Return the sum of ``label - passed`` over passed items of smaller levels."""
    count = total = 0.0
    while level > 0:
        count += counts[level]
        total += sums[level]
        level -= level & -level
    return label * count - total


@inner
def _enter(counts: FloatArray, sums: FloatArray, level: int, label: float) -> None:
    level += 1
    while level < len(counts):
        counts[level] += 1.0
        sums[level] += label
        level += level & -level


@entry
def disagreement_per_query(ranking: Ranking, items: Levels, span: Span, out: FloatArray) -> None:
    """Write one value per query of a span."""
    count_buffer = np.empty(span.longest + 1)
    sum_buffer = np.empty(span.longest + 1)
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        counts, sums = count_buffer[: items.n_levels[q] + 1], sum_buffer[: items.n_levels[q] + 1]
        counts[:] = 0.0
        sums[:] = 0.0
        total = 0.0
        start = begin
        while start < end:
            stop = block_end(ranking, start, end)
            for i in range(start, stop):
                row = begin + ranking.order[i]
                total += 0.5 * _lead(counts, sums, items.levels[row], items.values[row])
            for i in range(start, stop):
                row = begin + ranking.order[i]
                _enter(counts, sums, items.levels[row], items.values[row])
            for i in range(start, stop):
                row = begin + ranking.order[i]
                total += 0.5 * _lead(counts, sums, items.levels[row], items.values[row])
            start = stop
        out[q] = total / items.divisor[q]


@entry
def edge_disagreement_per_query(
    scores: FloatArray, edges: EdgeWeights, span: Span, out: FloatArray
) -> None:
    """Write one value per query of a span."""
    for q in range(span.first, span.last):
        total = 0.0
        for e in range(edges.offsets[q], edges.offsets[q + 1]):
            i, j = edges.winner[e], edges.loser[e]
            if scores[i] < scores[j]:
                total += edges.weight[e]
            elif scores[i] == scores[j]:
                total += edges.weight[e] * (edges.tie_down if i < j else edges.tie_up)
        out[q] = total / edges.divisor[q]
