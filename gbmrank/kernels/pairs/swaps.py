r"""Sums over pairs weighted by the change of a metric under a swap; a template.

.. math:: L = \sum_{v_i > v_j} (v_i - v_j)\, w(a, b)\, \varphi(s_i - s_j)

for items at the ranks a < b, with weights that count as constants: :math:`w(a, b) = x_a - y_a z_b`
with the columns of :mod:`gbmrank.kernels.pairs.changes`, which ranks the items.
``phi(z, *params) -> (value, first, second)`` is the slot.
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit.decorators import allocating, inner
from gbmrank.kernels.layout import GradHess, Out, Params, Rankings, Span, SwapQueries, SwapRule
from gbmrank.types import FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.layout import phi


@inner
def _discount(queries: SwapQueries, q: int, n: int, rank: int) -> float:
    """Return the discount of a rank that counts from 1."""
    if rank > queries.cuts[q]:
        return 0.0
    return queries.table[n - rank if queries.upwards else rank - 1]


@inner
def _discounts_to(queries: SwapQueries, q: int, n: int, rank: int) -> float:
    """Return the sum of the discounts of the ranks up to one."""
    rank = min(rank, queries.cuts[q])
    if queries.upwards:
        return queries.sums[n] - queries.sums[n - rank]
    return queries.sums[rank]


@inner
def _distance(
    queries: SwapQueries,
    q: int,
    n: int,
    truncation: int,
    upper: tuple[int, int],
    lower: tuple[int, int],
) -> float:
    """Mean over the ranks of two blocks of ties of ``d(b - a) - d(b - a + 1)``."""
    start, end = lower
    first, last = upper
    if last - first == 1 and end - start == 1:
        gap = start - first
        return _discount(queries, q, n, gap) - _discount(queries, q, n, gap + 1)
    counted = min(last, truncation)
    total = _discounts_to(queries, q, n, end - counted) - _discounts_to(queries, q, n, end - first)
    if start == first:
        total += (counted - first) * _discount(queries, q, n, 1)
        return 2.0 * total / ((last - first) * (last - first - 1))
    total += _discounts_to(queries, q, n, start - first)
    total -= _discounts_to(queries, q, n, start - counted)
    return total / ((last - first) * (end - start))


@inner
def _fill_row(
    queries: SwapQueries,
    rule: SwapRule,
    place: tuple[int, int, int, int],
    ranked: Rankings,
    row: FloatArray,
) -> None:
    """Write the weights of the pairs of rank a and each rank below it."""
    q, n, first, a = place
    head, share = ranked.head[first + a], ranked.share[first + a]
    tail = ranked.tail[first + a + 1 : first + n]
    for b in range(len(tail)):
        row[b] = abs(head - share * tail[b])
    if rule.average:
        for b in range(a + 1, ranked.ends[first + a]):
            row[b - a - 1] = ranked.within[first + a]
    if rule.mu > 0.0:
        upper = (a, a + 1)
        if rule.average:
            upper = (ranked.starts[first + a], ranked.ends[first + a])
        for b in range(a + 1, n):
            lower = (b, b + 1)
            if rule.average:
                lower = (ranked.starts[first + b], ranked.ends[first + b])
            change = _distance(queries, q, n, rule.truncation, upper, lower)
            row[b - a - 1] = rule.rho * row[b - a - 1] + rule.mu * change


@inner
def _fill_neighbours(
    queries: SwapQueries,
    rule: SwapRule,
    place: tuple[int, int, int],
    ranked: Rankings,
    row: FloatArray,
) -> None:
    """Write the weights of the pairs of each rank and the next."""
    q, n, first = place
    head, share = ranked.head[first : first + n], ranked.share[first : first + n]
    tail, distance = ranked.tail[first + 1 : first + n], 0.0
    if rule.mu > 0.0:
        distance = rule.mu * _distance(queries, q, n, n, (0, 1), (1, 2))
    for a in range(len(tail)):
        row[a] = rule.rho * abs(head[a] - share[a] * tail[a]) + distance


@inner
def _read_draw(
    items: npt.NDArray[np.int32], columns: tuple[FloatArray, FloatArray], out: Out
) -> bool:
    """Write two columns by rank; return whether the second one has different numbers."""
    differ = False
    for r in range(len(items)):
        out[0][r] = columns[0][items[r]]
        out[1][r] = columns[1][items[r]]
        differ |= out[1][r] != out[1][0]
    return differ


@inner
def _weigh_row(
    factors: FloatArray,
    begin: int,
    a: int,
    items: npt.NDArray[np.int32],
    v: FloatArray,
    row: FloatArray,
) -> None:
    """Multiply the weights of rank a and each rank below it by that of the preferred item."""
    if len(factors) > 0:
        for b in range(a + 1, len(items)):
            row[b - a - 1] *= factors[begin + (items[a] if v[a] > v[b] else items[b])]


@inner
def _weigh_neighbours(
    factors: FloatArray,
    begin: int,
    items: npt.NDArray[np.int32],
    v: FloatArray,
    row: FloatArray,
) -> None:
    """Multiply the weights of each rank and the next by that of the preferred item."""
    if len(factors) > 0:
        for a in range(len(items) - 1):
            row[a] *= factors[begin + (items[a] if v[a] > v[a + 1] else items[a + 1])]


@inner
def _n_rows(rule: SwapRule, n: int, first: int, ranked: Rankings) -> int:
    """Return how many ranks have pairs below them."""
    rows = min(rule.truncation, n - 1)
    return min(ranked.ends[first + rows - 1], n - 1) if rule.average else rows


@inner
def _pull_row(
    a: int, s: FloatArray, v: FloatArray, row: FloatArray, params: Params, out: Out
) -> float:
    """Add slopes and curvatures of the pairs of rank a and those below it."""
    g, h = out
    s_a, v_a, g_a, h_a, pulls = s[a], v[a], 0.0, 0.0, 0.0
    s_below, v_below, g_below, h_below = s[a + 1 :], v[a + 1 :], g[a + 1 :], h[a + 1 :]
    for b in range(len(s_below)):
        gap = v_a - v_below[b]
        sign = 1.0 if gap > 0.0 else -1.0
        _, slope, bend = phi(sign * (s_a - s_below[b]), *params)
        weight = sign * gap * row[b]
        pull = sign * weight * slope
        bend *= weight
        g_a += pull
        h_a += bend
        pulls += abs(pull)
        g_below[b] -= pull
        h_below[b] += bend
    g[a] += g_a
    h[a] += h_a
    return pulls


@inner
def _pull_neighbours(
    rows: int, s: FloatArray, v: FloatArray, row: FloatArray, params: Params, out: Out
) -> float:
    """Write slopes and curvatures of the pairs of each rank and the next."""
    g, h = out
    s_next, v_next, pulls = s[1:], v[1:], 0.0
    for a in range(rows):
        gap = v[a] - v_next[a]
        sign = 1.0 if gap > 0.0 else -1.0
        _, slope, bend = phi(sign * (s[a] - s_next[a]), *params)
        weight = sign * gap * row[a]
        g[a] = sign * weight * slope
        h[a] = weight * bend
        pulls += abs(g[a])
    for a in range(rows, 0, -1):
        g[a] -= g[a - 1]
        h[a] += h[a - 1]
    return pulls


@inner
def _factor(queries: SwapQueries, rule: SwapRule, q: int, draws: int, pulls: float) -> float:
    """Return the factor of a query; with ``norm`` times ``log2(1 + S) / S``, S = 2 sum |slope|."""
    scale = queries.scale[q] / max(draws, 1)
    total = 2.0 * scale * pulls
    if rule.norm and total > 0.0:
        scale *= np.log2(1.0 + total) / total
    return scale * queries.weight[q]


@inner
def _pull_draw(
    queries: SwapQueries,
    rule: SwapRule,
    place: tuple[int, int, int, bool],
    ranked: Rankings,
    columns: tuple[FloatArray, FloatArray, FloatArray],
    params: Params,
    out: Out,
) -> float:
    """Write slopes and curvatures of one ranking, by rank; return the sum of absolute slopes."""
    q, n, first, by_gaps = place
    s, v, row = columns
    begin, items = queries.offsets[q], ranked.items[first : first + n]
    out[0][:] = 0.0
    out[1][:] = 0.0
    pulls, rows = 0.0, _n_rows(rule, n, first, ranked)
    if rule.neighbours:
        _fill_neighbours(queries, rule, (q, n, first), ranked, row)
        for a in range(rows if by_gaps else 0):
            row[a] /= 0.01 + abs(s[a] - s[a + 1])
        _weigh_neighbours(queries.items, begin, items, v, row)
        return _pull_neighbours(rows, s, v, row, params, out)
    for a in range(rows):
        _fill_row(queries, rule, (q, n, first, a), ranked, row)
        for b in range(a + 1, n if by_gaps else 0):
            row[b - a - 1] /= 0.01 + abs(s[a] - s[b])
        _weigh_row(queries.items, begin, a, items, v, row)
        pulls += _pull_row(a, s, v, row, params, out)
    return pulls


@allocating
def swap_gradients(
    queries: SwapQueries,
    rule: SwapRule,
    span: Span,
    scores: FloatArray,
    ranked: Rankings,
    params: Params,
    out: GradHess,
) -> None:
    """Write scaled gradient and Hessian diagonal of every query of a span."""
    s_buffer, v_buffer, row = np.empty(span.longest), np.empty(span.longest), np.empty(span.longest)
    g_buffer, h_buffer = np.empty(span.longest), np.empty(span.longest)
    origin = queries.offsets[span.first]
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        n, pulls, draws = end - begin, 0.0, ranked.used[q - span.first]
        s, v, g, h = s_buffer[:n], v_buffer[:n], g_buffer[:n], h_buffer[:n]
        for i in range(n):
            out.grad[begin + i] = 0.0
            out.hess[begin + i] = 0.0
        for draw in range(draws):
            first = rule.draws * (begin - origin) + draw * n
            items = ranked.items[first : first + n]
            differ = _read_draw(items, (queries.values[begin:end], scores[begin:end]), (v, s))
            place = (q, n, first, differ and rule.norm)
            pulls += _pull_draw(queries, rule, place, ranked, (s, v, row), params, (g, h))
            for r in range(n):
                out.grad[begin + items[r]] += g[r]
                out.hess[begin + items[r]] += h[r]
        factor = _factor(queries, rule, q, draws, pulls)
        for i in range(n):
            out.grad[begin + i] *= factor
            out.hess[begin + i] *= factor


@allocating
def swap_values(
    queries: SwapQueries,
    rule: SwapRule,
    span: Span,
    columns: tuple[FloatArray, FloatArray],
    ranked: Rankings,
    params: Params,
    out: FloatArray,
) -> None:
    """Write the scaled loss of every query of a span; ``columns`` are scores, and those ranked."""
    s, v, at = np.empty(span.longest), np.empty(span.longest), np.empty(span.longest)
    row, origin = np.empty(span.longest), queries.offsets[span.first]
    for q in range(span.first, span.last):
        begin, end = queries.offsets[q], queries.offsets[q + 1]
        n, total, pulls, draws = end - begin, 0.0, 0.0, ranked.used[q - span.first]
        for draw in range(draws):
            first = rule.draws * (begin - origin) + draw * n
            items = ranked.items[first : first + n]
            _read_draw(items, (queries.values[begin:end], columns[0][begin:end]), (v, s))
            differ = _read_draw(items, (queries.values[begin:end], columns[1][begin:end]), (v, at))
            if rule.neighbours:
                _fill_neighbours(queries, rule, (q, n, first), ranked, row)
                _weigh_neighbours(queries.items, begin, items, v, row)
            for a in range(_n_rows(rule, n, first, ranked)):
                if not rule.neighbours:
                    _fill_row(queries, rule, (q, n, first, a), ranked, row)
                    _weigh_row(queries.items, begin, a, items, v, row)
                for b in range(a + 1, a + 2 if rule.neighbours else n):
                    gap = v[a] - v[b]
                    sign = 1.0 if gap > 0.0 else -1.0
                    weight = sign * gap * row[a if rule.neighbours else b - a - 1]
                    if rule.norm and differ:
                        weight /= 0.01 + abs(at[a] - at[b])
                    total += weight * phi(sign * (s[a] - s[b]), *params)[0]
                    pulls += weight * abs(phi(sign * (at[a] - at[b]), *params)[1])
        out[q] = total * _factor(queries, rule, q, draws, pulls)
