r"""The change of a metric when two items swap their ranks, and the rankings it is averaged over.

An item has a value v: its utility, its probability of stopping a reader, or 0 and 1. When the
items at the ranks a < b change places, the measure changes by
:math:`|v_a - v_b|\, (x_a - y_a z_b)`, where the columns x, y and z are

* *positional*, with discounts d: :math:`x_a = d_a`, :math:`y_a = 1`, :math:`z_b = d_b`;
* *cascade* (expected reciprocal rank), with :math:`P_a = \prod_{l<a} (1 - v_l)` and
  :math:`F_a = v_a / a + (1 - v_a) F_{a+1}`, what is still to come for a reader who is at a:
  :math:`x_a = P_a (1/a - F_{a+1})`, :math:`y_a = 1/(1 - v_a)`, :math:`z_b = P_b (1/b - F_b)`;
* *precision* (average precision), with c relevant items up to a rank and
  :math:`H_a = \sum_{l \le a} v_l / l`: :math:`x_a = (c_{a-1} + 1)/a - H_a`, :math:`y_a = 1`,
  :math:`z_b = c_b / b - H_{b-1}`;
* *first relevant* (a function d of the rank f of the first relevant item, the second at g):
  :math:`x_a = d_a - d_f` above f, else :math:`x_f = d_f`, :math:`y_f = 1`,
  :math:`z_b = d_{\min(b, g)}`, and zero elsewhere.

Ranks beyond the cut-off have no effect by themselves. For ties, positional metrics use the mean
over all orderings of tied items, which is a mean over the ranks of their blocks; other metrics use
random orderings.

Random numbers come from SplitMix64, with a key made of the seed, the labels and the scores of a
query: there is no state between calls.
"""

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit.decorators import columns, entry, inner
from gbmrank.kernels.layout import Rankings, Span, SwapQueries, SwapRule
from gbmrank.types import FloatArray, IntArray

Words = npt.NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_READS_ON = 1e-280  # below this chance of reading on nothing changes, to double precision


@inner
def _mixed(word: np.uint64) -> np.uint64:
    """Return the output of SplitMix64 for a state."""
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    return word ^ (word >> _31)


@inner
def _query_key(start: np.uint64, scores: Words, begin: int, n: int) -> np.uint64:
    """Return a number made of another one and the scores of a query."""
    total = np.uint64(0)
    for i in range(n):
        total += _mixed(scores[begin + i] + np.uint64(i + 1) * _GOLDEN)
    return _mixed(_mixed(start) ^ total)


@inner
def _uniform(key: np.uint64, count: int) -> float:
    """Return a random number between 0 and 1, neither of them included."""
    word = _mixed(key + np.uint64(count + 1) * _GOLDEN)
    return (np.float64(word >> _11) + 0.5) * 2.0**-53


@entry
def add_noise(
    queries: SwapQueries,
    rule: SwapRule,
    span: Span,
    at: FloatArray,
    begins: IntArray,
    out: FloatArray,
) -> None:
    """Write scores with noise, for each ranking."""
    queries = columns(queries)
    at, words, begins, out = columns((at, at.view(np.uint64), begins, out))
    for q in range(span.first, span.last):
        begin, n = queries.offsets[q], queries.offsets[q + 1] - queries.offsets[q]
        key = _query_key(queries.hashes[q] + rule.seed * _GOLDEN, words, begin, n)
        drawn = begins[q - span.first]
        for first in range(drawn, begins[q - span.first + 1], n):
            for i in range(n):
                out[first + i] = _uniform(key, first - drawn + i)
            for i in range(n):
                u = out[first + i]
                noise = np.log(u / (1.0 - u)) if rule.noise == 1 else -np.log(-np.log(u))
                out[first + i] = at[begin + i] + rule.temperature * noise


@entry
def shuffle(
    queries: SwapQueries,
    rule: SwapRule,
    span: Span,
    at: FloatArray,
    begins: IntArray,
    out: FloatArray,
    places: npt.NDArray[np.int32],
) -> None:
    """Write scores in a random order, and where they were, for each ranking."""
    queries = columns(queries)
    at, words, begins, out, places = columns((at, at.view(np.uint64), begins, out, places))
    for q in range(span.first, span.last):
        begin, n = queries.offsets[q], queries.offsets[q + 1] - queries.offsets[q]
        key = _query_key(queries.hashes[q] + rule.seed * _GOLDEN, words, begin, n)
        drawn = begins[q - span.first]
        for first in range(drawn, begins[q - span.first + 1], n):
            for i in range(n):
                j = int(_uniform(key, first - drawn + i) * (i + 1))
                places[first + i] = places[first + j]
                places[first + j] = i
            for i in range(n):
                out[first + i] = at[begin + places[first + i]]


@entry
def positional(queries: SwapQueries, span: Span, ranked: Rankings) -> None:
    """Write the columns of a sum of discounted values."""
    queries, out = columns(queries), columns(ranked)
    for q in range(span.first, span.last):
        begin, n = queries.offsets[q], queries.offsets[q + 1] - queries.offsets[q]
        for first in range(out.begins[q - span.first], out.begins[q - span.first + 1], n):
            for r in range(n):
                out.head[first + r] = queries.discounts[begin + r]
                out.share[first + r] = 1.0
                out.tail[first + r] = queries.discounts[begin + r]


@entry
def positional_means(truncation: int, queries: SwapQueries, span: Span, ranked: Rankings) -> None:
    """Write means over the ranks of each block of ties; the upper rank is within the truncation."""
    queries, out = columns(queries), columns(ranked)
    for q in range(span.first, span.last):
        begin, n = queries.offsets[q], queries.offsets[q + 1] - queries.offsets[q]
        first, start = out.begins[q - span.first], 0
        while start < n:
            end = start + 1
            while end < n and out.tied[first + end]:
                end += 1
            size, counted, whole, upper, inside = end - start, 0, 0.0, 0.0, 0.0
            for r in range(end - 1, start - 1, -1):
                d = queries.discounts[begin + r]
                if r < truncation:
                    counted += 1
                    upper += d
                    inside += (end - 1 - r) * d - whole
                whole += d
            for r in range(first + start, first + end):
                out.head[r] = upper / size
                out.share[r] = counted / size
                out.tail[r] = whole / size
                out.within[r] = inside / (0.5 * size * (size - 1) if size > 1 else 1.0)
                out.starts[r] = start
                out.ends[r] = end
            start = end


@entry
def cascade(queries: SwapQueries, span: Span, ranked: Rankings) -> None:
    """Write the columns of expected reciprocal rank."""
    queries, out = columns(queries), columns(ranked)
    for q in range(span.first, span.last):
        begin, end, cut = queries.offsets[q], queries.offsets[q + 1], queries.cuts[q]
        n = end - begin
        for first in range(out.begins[q - span.first], out.begins[q - span.first + 1], n):
            following = 0.0  # what is still to come for a reader who has passed a rank
            for r in range(n - 1, -1, -1):
                v, ahead = queries.values[begin + out.order[first + r]], following
                if r < cut:
                    following = v / (r + 1) + (1.0 - v) * following
                out.head[first + r] = 1.0 / (r + 1) - ahead if r < cut else 0.0
                out.tail[first + r] = 1.0 / (r + 1) - following if r < cut else 0.0
                out.share[first + r] = 1.0 / (1.0 - v) if r < cut else 0.0
            reads_on = 1.0
            for r in range(first, first + n):
                out.head[r] = out.head[r] * reads_on if reads_on >= _READS_ON else 0.0
                out.share[r] = out.share[r] if reads_on >= _READS_ON else 0.0
                out.tail[r] *= reads_on
                reads_on *= 1.0 - queries.values[begin + out.order[r]]


@entry
def precision(queries: SwapQueries, span: Span, ranked: Rankings) -> None:
    """Write the columns of average precision."""
    queries, out = columns(queries), columns(ranked)
    for q in range(span.first, span.last):
        begin, end, cut = queries.offsets[q], queries.offsets[q + 1], queries.cuts[q]
        n = end - begin
        for first in range(out.begins[q - span.first], out.begins[q - span.first + 1], n):
            found, earned = 0.0, 0.0
            for r in range(n):
                v = queries.values[begin + out.order[first + r]] if r < cut else 0.0
                before = earned
                earned += v / (r + 1)
                out.head[first + r] = (found + 1.0) / (r + 1) - earned if r < cut else 0.0
                found += v
                out.tail[first + r] = found / (r + 1) - before if r < cut else -earned
                out.share[first + r] = 1.0 if r < cut else 0.0


@entry
def first_relevant(queries: SwapQueries, span: Span, ranked: Rankings) -> None:
    """Write the columns of a function of the rank of the first relevant item."""
    queries, out = columns(queries), columns(ranked)
    for q in range(span.first, span.last):
        begin, n = queries.offsets[q], queries.offsets[q + 1] - queries.offsets[q]
        for first in range(out.begins[q - span.first], out.begins[q - span.first + 1], n):
            found = second = n
            for r in range(n - 1, -1, -1):
                if queries.values[begin + out.order[first + r]] > 0.0:
                    found, second = r, found
            at_found = queries.discounts[begin + found] if found < n else 0.0
            at_second = queries.discounts[begin + second] if second < n else 0.0
            for r in range(n):
                d = queries.discounts[begin + r]
                before = d - at_found if r < found < n else 0.0
                out.head[first + r] = d if r == found else before
                out.share[first + r] = 1.0 if r == found else 0.0
                out.tail[first + r] = d if r < second else at_second
