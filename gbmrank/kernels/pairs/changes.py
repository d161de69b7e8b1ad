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
* *first* (a function d of the rank f of the first relevant item, the second being at g):
  :math:`x_a = d_a - d_f` above f, else :math:`x_f = d_f`, :math:`y_f = 1`,
  :math:`z_b = d_{\min(b, g)}`, and zero elsewhere.

Ranks beyond the cut-off have no effect by themselves. For ties, positional metrics use the mean
over all orderings of tied items, which is a mean over the ranks of their blocks; other metrics use
random orderings.

Random numbers come from SplitMix64, with a key made of the seed, the labels and the scores of a
query: there is no state between calls.
"""

from typing import NamedTuple

import numpy as np

from gbmrank.kernels.jit.decorators import allocating, columns, inner
from gbmrank.kernels.layout import Rankings, Span, SwapQueries, SwapRule
from gbmrank.kernels.ranking.sorting import Numbers, Workspace, sort_down, workspace
from gbmrank.types import FloatArray

__all__ = ["rank_queries", "workspace"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_READS_ON = 1e-280  # below this chance of reading on nothing changes, to double precision


class _Change(NamedTuple):
    """Columns x, y and z of one ranking."""

    head: FloatArray
    share: FloatArray
    tail: FloatArray


@inner
def _mixed(word: np.uint64) -> np.uint64:
    """Return the output of SplitMix64 for a state."""
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    return word ^ (word >> _31)


@inner
def _query_key(start: np.uint64, s: FloatArray) -> np.uint64:
    """Return a number made of another one and the scores of a query."""
    bits, total = s.view(np.uint64), np.uint64(0)
    for i in range(len(bits)):
        total += _mixed(bits[i] + np.uint64(i + 1) * _GOLDEN)
    return _mixed(_mixed(start) ^ total)


@inner
def _uniform(key: np.uint64, count: int) -> float:
    """Return a random number between 0 and 1, neither of them included."""
    word = _mixed(key + np.uint64(count + 1) * _GOLDEN)
    return (np.float64(word >> _11) + 0.5) * 2.0**-53


@inner
def _add_noise(rule: SwapRule, key: np.uint64, first: int, at: FloatArray, out: FloatArray) -> None:
    """Write scores with noise."""
    for i in range(len(out)):
        out[i] = _uniform(key, first + i)
    if rule.noise == 1:
        for i in range(len(out)):
            out[i] = at[i] + rule.temperature * np.log(out[i] / (1.0 - out[i]))
    else:
        for i in range(len(out)):
            out[i] = at[i] - rule.temperature * np.log(-np.log(out[i]))


@inner
def _shuffle(key: np.uint64, first: int, at: FloatArray, out: FloatArray, places: Numbers) -> None:
    """Write scores in a random order, and where they were."""
    for i in range(len(out)):
        j = int(_uniform(key, first + i) * (i + 1))
        places[i] = places[j]
        places[j] = i
    for i in range(len(out)):
        out[i] = at[places[i]]


@inner
def _disturb(
    rule: SwapRule, key: np.uint64, first: int, at: FloatArray, out: FloatArray, places: Numbers
) -> None:
    """Add noise or shuffle, where the rule says so."""
    if rule.noise != 0:
        _add_noise(rule, key, first, at, out)
    elif rule.shuffle:
        _shuffle(key, first, at, out, places)


@inner
def _read_discounts(table: FloatArray, upwards: bool, cut: int, d: FloatArray) -> None:
    """Write the discounts of all ranks of a query."""
    for r in range(len(d)):
        d[r] = table[len(d) - 1 - r if upwards else r] if r < cut else 0.0


@inner
def _has_ties(keys: FloatArray) -> bool:
    ties = False
    for r in range(1, len(keys)):
        ties |= keys[r] == keys[r - 1]
    return ties


@inner
def _average(truncation: int, keys: FloatArray, d: FloatArray, begin: int, out: Rankings) -> None:
    """Write means over the ranks of each block of ties; the upper rank is within the truncation."""
    n, start = len(d), 0
    while start < n:
        end = start + 1
        while end < n and keys[end] == keys[start]:
            end += 1
        size, counted = end - start, max(min(end, truncation) - start, 0)
        whole, upper, inside = 0.0, 0.0, 0.0
        for r in range(end - 1, start - 1, -1):
            if r < truncation:
                upper += d[r]
                inside += (end - 1 - r) * d[r] - whole
            whole += d[r]
        for r in range(start, end):
            out.head[begin + r] = upper / size
            out.share[begin + r] = counted / size
            out.tail[begin + r] = whole / size
            out.within[begin + r] = inside / max(0.5 * size * (size - 1), 1.0)
            out.starts[begin + r] = start
            out.ends[begin + r] = end
        start = end


@inner
def _positional(d: FloatArray, out: _Change) -> None:
    for r in range(len(d)):
        out.head[r] = d[r]
        out.share[r] = 1.0
        out.tail[r] = d[r]


@inner
def _cascade(v: FloatArray, cut: int, out: _Change) -> None:
    following = 0.0  # what is still to come for a reader who has passed a rank
    for r in range(len(v) - 1, -1, -1):
        out.head[r] = out.share[r] = out.tail[r] = 0.0
        if r < cut:
            out.head[r] = 1.0 / (r + 1) - following
            following = v[r] / (r + 1) + (1.0 - v[r]) * following
            out.tail[r] = 1.0 / (r + 1) - following
            out.share[r] = 1.0 / (1.0 - v[r])
    reads_on = 1.0
    for r in range(len(v)):
        out.head[r] *= reads_on
        out.tail[r] *= reads_on
        if reads_on < _READS_ON:
            out.head[r] = out.share[r] = 0.0
        reads_on *= 1.0 - v[r]


@inner
def _precision(v: FloatArray, cut: int, out: _Change) -> None:
    found, earned = 0.0, 0.0
    for r in range(len(v)):
        if r < cut:
            before = earned
            earned += v[r] / (r + 1)
            out.head[r] = (found + 1.0) / (r + 1) - earned
            found += v[r]
            out.tail[r] = found / (r + 1) - before
            out.share[r] = 1.0
        else:
            out.head[r] = out.share[r] = 0.0
            out.tail[r] = -earned


@inner
def _first_relevant(v: FloatArray, d: FloatArray, out: _Change) -> None:
    first = second = len(v)
    for r in range(len(v) - 1, -1, -1):
        if v[r] > 0.0:
            first, second = r, first
    for r in range(len(v)):
        out.head[r] = d[r] - d[first] if r < first < len(v) else 0.0
        out.share[r] = 0.0
        out.tail[r] = d[r] if r < second else d[second]
    if first < len(v):
        out.head[first] = d[first]
        out.share[first] = 1.0


@inner
def _fill_change(kind: int, cut: int, v: FloatArray, d: FloatArray, out: _Change) -> None:
    """Write the columns of a ranking without ties, from values and discounts by rank."""
    if kind == 0:
        _positional(d, out)
    elif kind == 1:
        _cascade(v, cut, out)
    elif kind == 2:
        _precision(v, cut, out)
    else:
        _first_relevant(v, d, out)


@allocating
def rank_queries(
    queries: SwapQueries,
    rule: SwapRule,
    span: Span,
    scores: FloatArray,
    work: Workspace,
    out: Rankings,
) -> None:
    """Write the rankings of a span of queries, one after the other, with their columns."""
    v, d, noisy = np.empty(span.longest), np.empty(span.longest), np.empty(span.longest)
    places = np.empty(span.longest, np.int32)
    origin = queries.offsets[span.first]
    (ranked,), buffers = columns((noisy,)), columns(work)
    for q in range(span.first, span.last):
        begin, end, cut = queries.offsets[q], queries.offsets[q + 1], queries.cuts[q]
        n = end - begin
        at = scores[begin:end]
        _read_discounts(queries.table, queries.upwards, cut, d[:n])
        for i in range(n):
            noisy[i] = at[i]
        key = _query_key(queries.hashes[q] + rule.seed * _GOLDEN, at)
        used, draw = (0 if n < 2 or queries.scale[q] == 0.0 else rule.draws), 0
        while draw < used:
            first = rule.draws * (begin - origin) + draw * n
            _disturb(rule, key, draw * n, at, noisy[:n], places)
            sort_down(ranked, 0, n, buffers)
            if rule.shuffle and not _has_ties(work.keys[:n]):
                used = 1
            for r in range(n):
                item = places[work.items[r]] if rule.shuffle else work.items[r]
                out.items[first + r] = item
                v[r] = queries.values[begin + item]
            if rule.average:
                _average(rule.truncation, work.keys[:n], d[:n], first, out)
            else:
                here = slice(first, first + n)
                change = _Change(out.head[here], out.share[here], out.tail[here])
                _fill_change(queries.kind, cut, v[:n], d[:n], change)
            draw += 1
        out.used[q - span.first] = used
