r"""Sums over pairs weighted by the change of a metric under a swap; a template.

.. math:: L = \sum_{v_i > v_j} (v_i - v_j)\, w(a, b)\, \varphi(s_i - s_j)

for items at the ranks a < b, with weights that count as constants: :math:`w(a, b) = x_a - y_a z_b`
with the columns of :mod:`gbmrank.kernels.pairs.changes`. ``phi(z, *params) -> (value, first,
second)`` is the slot.
"""

from typing import TYPE_CHECKING

import numpy as np

from gbmrank.kernels.jit.decorators import columns, fast_entry, inner
from gbmrank.kernels.layout import (
    GradHess,
    Params,
    Span,
    SwapBuffers,
    SwapQueries,
    SwapRule,
    SwapWork,
)
from gbmrank.kernels.pairs.dense import SINGLE_RANGE
from gbmrank.numerics import exp
from gbmrank.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from gbmrank.kernels.layout import phi


@inner
def _distance(
    queries: SwapQueries, q: int, truncation: int, upper: tuple[int, int], lower: tuple[int, int]
) -> float:
    """Mean over the ranks of two blocks of ties of ``d(b - a) - d(b - a + 1)``."""
    start, end = lower
    first, last = upper
    d, sums = queries.offsets[q] - 1, queries.offsets[q] + q
    if last - first == 1 and end - start == 1:
        gap = start - first
        return queries.discounts[d + gap] - queries.discounts[d + gap + 1]
    counted = last if last < truncation else truncation
    total = queries.sums[sums + end - counted] - queries.sums[sums + end - first]
    if start == first:
        total += (counted - first) * queries.discounts[d + 1]
        return 2.0 * total / ((last - first) * (last - first - 1))
    total += queries.sums[sums + start - first] - queries.sums[sums + start - counted]
    return total / ((last - first) * (end - start))


@inner
def _add_distances(work: SwapWork, place: tuple[int, int, int, int]) -> None:
    """Mix the weights of a row with those of the distances of its ranks."""
    queries, rule, ranked, (_, _, _, row, _, _, _) = work
    q, n, first, a = place
    upper = (a, a + 1)
    if rule.average:
        upper = (ranked.starts[first + a], ranked.ends[first + a])
    for b in range(a + 1, n):
        lower = (b, b + 1)
        if rule.average:
            lower = (ranked.starts[first + b], ranked.ends[first + b])
        change = _distance(queries, q, rule.truncation, upper, lower)
        row[b] = rule.rho * row[b] + rule.mu * change


@inner
def _weigh_row(work: SwapWork, place: tuple[int, int, int, int], near: bool) -> None:
    """Write the weights of the pairs of rank a and each rank below it."""
    _, rule, ranked, out = work
    _, n, first, a = place
    head, share = ranked.head[first + a], ranked.share[first + a]
    for b in range(a + 1, n):
        out.row[b] = abs(head - share * ranked.tail[first + b])
    if rule.average:
        for b in range(a + 1, ranked.ends[first + a]):
            out.row[b] = ranked.within[first + a]
    if rule.mu > 0.0:
        _add_distances(work, place)
    if near:
        for b in range(a + 1, n):
            out.row[b] /= 0.01 + abs(out.s[a] - out.s[b])


@inner
def _weigh_next(work: SwapWork, place: tuple[int, int, int, int], near: bool) -> None:
    """Write the weight of the pair of rank a and the next."""
    queries, rule, ranked, out = work
    q, _, first, a = place
    fall = ranked.head[first + a] - ranked.share[first + a] * ranked.tail[first + a + 1]
    weight = rule.rho * abs(fall)
    if rule.mu > 0.0:
        weight += rule.mu * _distance(queries, q, rule.truncation, (0, 1), (1, 2))
    out.row[a + 1] = weight / (0.01 + abs(out.s[a] - out.s[a + 1]) if near else 1.0)


@inner
def _n_rows(work: SwapWork, q: int, first: int) -> int:
    """Return how many ranks have pairs below them that count."""
    queries, rule, ranked, _ = work
    last = queries.offsets[q + 1] - queries.offsets[q] - 1
    rows = rule.truncation if rule.truncation < last else last
    if rule.mu == 0.0 and queries.cuts[q] < rows:
        rows = queries.cuts[q]  # beyond, nothing changes
    if queries.scale[q] == 0.0 or rows < 1:
        return 0
    if rule.average:
        rows = ranked.ends[first + rows - 1]
    return rows if rows < last else last


@inner
def _read_ranking(work: SwapWork, scores: FloatArray, place: tuple[int, int, int]) -> bool:
    """Write scores, values and weights by rank; return whether scores differ."""
    queries, _, ranked, out = work
    begin, n, first = place
    differ = False
    for r in range(n):
        item = begin + ranked.order[first + r]
        out.s[r] = scores[item]
        out.v[r] = queries.values[item]
        out.w[r] = queries.items[item]
        out.g[r] = 0.0
        out.h[r] = 0.0
        differ |= out.s[r] != out.s[0]
    return differ


@inner
def _mass(work: SwapWork, a: int, end: int) -> float:
    """Return the sum of the weights of the pairs of rank a and those below it, for ``like``."""
    _, rule, _, out = work
    total = 0.0
    for b in range(a + 1, end if rule.like else a + 1):
        total += abs(out.v[a] - out.v[b]) * out.row[b]
    return total


@inner
def _factor(
    queries: SwapQueries, rule: SwapRule, q: int, draws: int, sums: tuple[float, float]
) -> float:
    """Return the factor of a query, from the sums of absolute slopes and of weights.

    With S = 2 sum |slope| and n items it holds ``log2(1 + S) / S`` for ``norm``, and for ``like``
    ``log2(1 + 6 n r) / S``, with r the mean of |phi'|.
    """
    pulls, mass = sums
    scale = queries.scale[q] / draws
    total = 2.0 * scale * pulls
    if rule.norm and total > 0.0:
        scale *= np.log2(1.0 + total) / total
    if rule.like and total > 0.0:
        n = queries.offsets[q + 1] - queries.offsets[q]
        scale *= np.log2(1.0 + 6.0 * n * pulls / mass) / total
    return scale * queries.weight[q]


@inner
def _pull(a: int, end: int, params: Params, out: SwapBuffers) -> float:
    """Add slopes and curvatures of the pairs of rank a and those below it, up to an end."""
    s, v, w, row, g, h, _ = out
    s_a, v_a, w_a, g_a, h_a, pulls = s[a], v[a], w[a], 0.0, 0.0, 0.0
    for b in range(a + 1, end):
        gap = v_a - v[b]
        sign = 1.0 if gap > 0.0 else -1.0
        _, slope, bend = phi(sign * (s_a - s[b]), *params)
        weight = sign * gap * row[b] * (w_a if gap > 0.0 else w[b])
        pull = sign * weight * slope
        bend *= weight
        g_a += pull
        h_a += bend
        pulls += abs(pull)
        g[b] -= pull
        h[b] += bend
    g[a] += g_a
    h[a] += h_a
    return pulls


@inner
def _add(work: SwapWork, place: tuple[int, int, int], out: GradHess) -> None:
    """Add the gradient and Hessian of a ranking to those of its rows."""
    _, _, ranked, found = work
    begin, n, first = place
    for r in range(n):
        out.grad[begin + ranked.order[first + r]] += found.g[r]
        out.hess[begin + ranked.order[first + r]] += found.h[r]


@inner
def _multiply(begin: int, end: int, factor: float, sigma: float, out: GradHess) -> None:
    """Multiply a gradient by a factor and by sigma, a Hessian by sigma once more."""
    for i in range(begin, end):
        out.grad[i] *= sigma * factor
        out.hess[i] *= sigma * factor * sigma


@fast_entry
def swap_gradients(
    work: SwapWork,
    span: Span,
    scores: FloatArray,
    params: Params,
    served: BoolArray,
    out: GradHess,
) -> None:
    """Add scaled gradient and Hessian diagonal of every query not yet served to zeros."""
    queries, rule, ranked, buffers = work
    queries, ranked, buffers = columns(queries), columns(ranked), columns(buffers)
    work = SwapWork(queries, rule, ranked, buffers)
    (scores, served), out = columns((scores, served)), columns(out)
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin, end, pulls, mass = queries.offsets[q], queries.offsets[q + 1], 0.0, 0.0
        drawn, stop = ranked.begins[q - span.first], ranked.begins[q - span.first + 1]
        n = end - begin
        for first in range(drawn, stop, n):
            differ = _read_ranking(work, scores, (begin, n, first))
            for a in range(_n_rows(work, q, first)):
                _weigh_row(work, (q, n, first, a), rule.norm and differ)
                pulls += _pull(a, n, params, buffers)
                mass += _mass(work, a, n)
            _add(work, (begin, n, first), out)
        factor = _factor(queries, rule, q, (stop - drawn) // n, (pulls, mass))
        _multiply(begin, end, factor, 1.0, out)


@inner
def _pull_logistic(a: int, end: int, one: float, out: SwapBuffers) -> float:
    """Add slopes and curvatures of the pairs of rank a and those below it, up to an end."""
    _, v, w, row, g, h, e = out
    zero = one - one
    e_a, v_a, w_a, g_a, h_a, pulls = e[a], v[a], w[a], zero, zero, zero
    for b in range(a + 1, end):
        gap = v_a - v[b]
        r = one / (e_a + e[b])
        up, down = e_a * r, e[b] * r
        weight = abs(gap) * row[b] * (w_a if gap > zero else w[b])
        pull = weight * (-down if gap > zero else up)
        bend = weight * up * down
        g_a += pull
        h_a += bend
        pulls += abs(pull)
        g[b] -= pull
        h[b] += bend
    g[a] += g_a
    h[a] += h_a
    return pulls


@fast_entry
def logistic_gradients(
    work: SwapWork,
    span: Span,
    scores: FloatArray,
    sigma: float,
    served: BoolArray,
    out: GradHess,
) -> None:
    """Like :func:`swap_gradients` for the logistic loss, as in :mod:`gbmrank.kernels.pairs.dense`.

    Marks the queries that it has done: those whose range of scores suits float32 buffers.
    """
    one = work.buffers.e.dtype.type(1.0)
    queries, rule, ranked, buffers = work
    queries, ranked, buffers = columns(queries), columns(ranked), columns(buffers)
    work = SwapWork(queries, rule, ranked, buffers)
    (scores, served), out = columns((scores, served)), columns(out)
    for q in range(span.first, span.last):
        begin, end, pulls, mass = queries.offsets[q], queries.offsets[q + 1], 0.0, 0.0
        drawn, stop = ranked.begins[q - span.first], ranked.begins[q - span.first + 1]
        n = end - begin
        lowest = highest = scores[begin]
        for i in range(begin, end):
            lowest = scores[i] if scores[i] < lowest else lowest
            highest = scores[i] if scores[i] > highest else highest
        served[q] = sigma * (highest - lowest) < SINGLE_RANGE
        for first in range(drawn, stop if served[q] else drawn, n):
            differ = _read_ranking(work, scores, (begin, n, first))
            for r in range(n):
                buffers.e[r] = exp(sigma * (buffers.s[r] - 0.5 * (lowest + highest)))
            for a in range(_n_rows(work, q, first)):
                _weigh_row(work, (q, n, first, a), rule.norm and differ)
                pulls += _pull_logistic(a, n, one, buffers)
                mass += _mass(work, a, n)
            _add(work, (begin, n, first), out)
        factor = _factor(queries, rule, q, (stop - drawn) // n, (sigma * pulls, mass))
        _multiply(begin, end, factor, sigma, out)


@fast_entry
def neighbour_gradients(
    work: SwapWork, span: Span, scores: FloatArray, params: Params, out: GradHess
) -> None:
    """Like :func:`swap_gradients`, from the pairs of each rank and the next."""
    queries, rule, ranked, buffers = work
    queries, ranked, buffers = columns(queries), columns(ranked), columns(buffers)
    work = SwapWork(queries, rule, ranked, buffers)
    (scores,), out = columns((scores,)), columns(out)
    s, v, w, row, g, h, _ = buffers
    for q in range(span.first, span.last):
        begin, end, pulls, mass = queries.offsets[q], queries.offsets[q + 1], 0.0, 0.0
        drawn, stop = ranked.begins[q - span.first], ranked.begins[q - span.first + 1]
        n = end - begin
        for first in range(drawn, stop, n):
            differ = _read_ranking(work, scores, (begin, n, first))
            rows = _n_rows(work, q, first)
            for a in range(rows):
                _weigh_next(work, (q, n, first, a), rule.norm and differ)
            for a in range(rows):  # pairs do not share what they write, so these are vectors
                gap = v[a] - v[a + 1]
                sign = 1.0 if gap > 0.0 else -1.0
                _, slope, bend = phi(sign * (s[a] - s[a + 1]), *params)
                weight = sign * gap * row[a + 1] * (w[a] if gap > 0.0 else w[a + 1])
                g[a] = sign * weight * slope
                h[a] = weight * bend
                pulls += abs(g[a])
                mass += abs(gap) * row[a + 1]
            for a in range(rows, 0, -1):
                g[a] -= g[a - 1]
                h[a] += h[a - 1]
            _add(work, (begin, n, first), out)
        factor = _factor(queries, rule, q, (stop - drawn) // n, (pulls, mass))
        _multiply(begin, end, factor, 1.0, out)


@fast_entry
def swap_values(
    work: SwapWork,
    span: Span,
    scores: tuple[FloatArray, FloatArray],
    params: Params,
    out: FloatArray,
) -> None:
    """Write the scaled loss of every query of a span, of scores with the weights at others."""
    queries, rule, ranked, buffers = work
    queries, ranked, buffers = columns(queries), columns(ranked), columns(buffers)
    work = SwapWork(queries, rule, ranked, buffers)
    at, v, w, row, s, _, _ = buffers
    moved, fixed, out = columns((*scores, out))
    for q in range(span.first, span.last):
        begin, n = queries.offsets[q], queries.offsets[q + 1] - queries.offsets[q]
        drawn, stop = ranked.begins[q - span.first], ranked.begins[q - span.first + 1]
        total, pulls, mass = 0.0, 0.0, 0.0
        for first in range(drawn, stop, n):
            differ = _read_ranking(work, fixed, (begin, n, first))
            for r in range(n):
                s[r] = moved[begin + ranked.order[first + r]]
            for a in range(_n_rows(work, q, first)):
                place, near = (q, n, first, a), rule.norm and differ
                if rule.neighbours:
                    _weigh_next(work, place, near)
                else:
                    _weigh_row(work, place, near)
                end = a + 2 if rule.neighbours else n
                mass += _mass(work, a, end)
                for b in range(a + 1, end):
                    gap = v[a] - v[b]
                    sign = 1.0 if gap > 0.0 else -1.0
                    weight = sign * gap * row[b] * (w[a] if gap > 0.0 else w[b])
                    total += weight * phi(sign * (s[a] - s[b]), *params)[0]
                    pulls += weight * abs(phi(sign * (at[a] - at[b]), *params)[1])
        out[q] = total * _factor(queries, rule, q, (stop - drawn) // n, (pulls, mass))
