r"""Expected reciprocal rank: a reader goes down and stops at an item with probability R.

For a block of m tied items let :math:`c_k` be the mean probability of stopping within k of
them, over all k-subsets. The block at the ranks a+1..a+m adds
:math:`\sum_j (c_j - c_{j-1}) / (a + j)` times the probability of getting there. Two ways to it:

- items one by one, where the next item turns :math:`c_k` into
  :math:`[(m+1-k) c_k + k (R + (1-R) c_{k-1})] / (m+1)`. As
  :math:`1 - c_k \le (1 - \bar R)^k` (Maclaurin), the sum may end where that is below 1e-18;
- for long blocks with few different R, an integral. Give the items independent uniform
  times; with :math:`1/(a+j) = \int_0^1 x^{a+j-1} dx` and :math:`y = 1 - x` the sum is

  .. math:: \int_0^1 (1-y)^a \int_0^1 \sum_i R_i \prod_{l \ne i} (1 - t\, b_l) \, dt \, dy,
            \quad b_l = y + R_l (1 - y),

  smooth on a logarithmic scale, so that the trapezoidal rule converges geometrically.
  Its cost does not depend on m.
"""

import math

import numpy as np

from gbmrank.kernels.blocks import block_end
from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import Span
from gbmrank.kernels.rankings import Items, Ranking
from gbmrank.types import FloatArray

__all__ = ["per_query"]

_LOG_NEGLIGIBLE = -41.5  # log of 1e-18
_NEGLIGIBLE = 1e-18
_LONG = 1_000_000  # steps of the recurrence that take as long as the integral for one R
_MANY = 2000  # more different R than this are not looked for
_STEP = 0.25
_LOWEST, _HIGHEST = -46.0, 38.0  # of the logit; the rest weighs below 1e-16


@inner
def _depth(stops: FloatArray) -> int:
    """Return how many items of a block can matter: beyond, nearly nobody reads on."""
    reading_on = math.log1p(-stops.mean())
    if reading_on * len(stops) >= _LOG_NEGLIGIBLE:
        return len(stops)
    return int(_LOG_NEGLIGIBLE / reading_on) + 1


@inner
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


@inner
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


@inner
def _block(stops: FloatArray, a: int, k: int) -> float:
    """Return what a block of ties adds when everybody gets to it."""
    depth = _depth(stops)
    most = min(depth * len(stops) // _LONG, _MANY)
    if depth <= k - a and most > 0:
        values, counts = _different(stops, most)
        if len(values) > 0:
            return _by_integral(values, counts, a)
    return _one_by_one(stops, a, min(depth, k - a))


@entry
def per_query(ranking: Ranking, items: Items, span: Span, out: FloatArray) -> None:
    """Write one value per query of a span."""
    buffer = np.empty(span.longest)
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        total, reading = 0.0, 1.0
        start = begin
        while start < end and start - begin < items.k and reading > _NEGLIGIBLE:
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
                total += reading * _block(buffer[: stop - start], start - begin, items.k)
            reading *= on
            start = stop
        out[q] = items.scale[q] * total
