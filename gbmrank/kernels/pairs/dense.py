r"""Logistic sums over the pairs of a query without an exponential per pair; a template.

With :math:`E_i = e^{\sigma (s_i - c)}` for a common c, the pair probability is
:math:`E_j / (E_i + E_j)`: one division per pair. Choosing c as the middle of the scores
keeps every E finite in float64 while the range of ``sigma * score`` stays below 700, and every
product normal in float32 below 80; products are formed as ``(E_i r)(E_j r)``, never with
``r * r``. Queries of a ``widest`` range or more are left to the next kernel.

The precision is that of the buffers, ``(E, weights, gradient, Hessian)``; float32 lanes have
errors below 1e-5 of the largest gradient. A kernel is compiled for the one it is called with.
"""

from gbmrank.kernels.jit.decorators import columns, fast_entry
from gbmrank.kernels.layout import GradHess, ItemQueries, LevelQueries, PairWork
from gbmrank.numerics import exp

DOUBLE_RANGE = 700.0
SINGLE_RANGE = 80.0


@fast_entry
def dense_all(
    queries: ItemQueries, sigma: float, widest: float, work: PairWork, out: GradHess
) -> None:
    """Write scaled gradient and Hessian diagonal over all pairs, and mark the queries done."""
    span, scores, served, buffers = work
    offsets, order, utilities, useful, scales = columns(queries)
    e, v, g, h = columns(buffers)
    grad, hess, scores, served = columns((out.grad, out.hess, scores, served))
    one = buffers[0].dtype.type(1.0)  # a Python number would widen float32 lanes
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin = offsets[q]
        n = offsets[q + 1] - begin
        lowest = highest = scores[begin]
        for i in range(begin, begin + n):  # the rows of a query, in whatever order
            lowest = scores[i] if scores[i] < lowest else lowest
            highest = scores[i] if scores[i] > highest else highest
        if not sigma * (highest - lowest) < widest:
            continue
        middle, scale = 0.5 * (lowest + highest), sigma * scales[q]
        stop = useful[q] if scale != 0.0 else 0
        for i in range(n):
            e[i] = exp(sigma * (scores[order[begin + i]] - middle))
            v[i] = utilities[begin + i]
            g[i] = 0.0
            h[i] = 0.0
        for i in range(n):
            e_i, v_i, g_i, h_i = e[i], v[i], g[i], h[i]
            for j in range(i if i < stop else stop):
                r = one / (e_i + e[j])
                up = e_i * r
                down = e[j] * r
                pull = v[j] * up - v_i * down
                bend = (v[j] + v_i) * up * down
                g_i += pull
                h_i += bend
                g[j] -= pull
                h[j] += bend
            g[i] = g_i
            h[i] = h_i
        for i in range(n):
            grad[order[begin + i]] = scale * g[i]
            hess[order[begin + i]] = scale * (sigma * h[i])
        served[q] = True


@fast_entry
def dense_different(
    queries: LevelQueries, sigma: float, widest: float, work: PairWork, out: GradHess
) -> None:
    """Like :func:`dense_all`, over pairs of different level weighted by the better item."""
    span, scores, served, buffers = work
    offsets, order, levels, weights, scales = columns(queries)
    e, w, g, h = columns(buffers)
    grad, hess, scores, served = columns((out.grad, out.hess, scores, served))
    one = buffers[0].dtype.type(1.0)
    for q in range(span.first, span.last):
        if served[q]:
            continue
        begin = offsets[q]
        n = offsets[q + 1] - begin
        lowest = highest = scores[begin]
        for i in range(begin, begin + n):  # the rows of a query, in whatever order
            lowest = scores[i] if scores[i] < lowest else lowest
            highest = scores[i] if scores[i] > highest else highest
        if not sigma * (highest - lowest) < widest:
            continue
        middle, scale = 0.5 * (lowest + highest), sigma * scales[q]
        for i in range(n):
            e[i] = exp(sigma * (scores[order[begin + i]] - middle))
            w[i] = weights[begin + i]
            g[i] = 0.0
            h[i] = 0.0
        better = 0  # items of better levels, which come first
        for i in range(n if scale != 0.0 else 0):
            if i > 0 and levels[begin + i] != levels[begin + i - 1]:
                better = i
            e_i, g_i, h_i = e[i], g[i], h[i]
            for j in range(better):
                r = one / (e_i + e[j])
                pull = w[j] * (e_i * r)
                bend = pull * (e[j] * r)
                g_i += pull
                h_i += bend
                g[j] -= pull
                h[j] += bend
            g[i] = g_i
            h[i] = h_i
        for i in range(n):
            grad[order[begin + i]] = scale * g[i]
            hess[order[begin + i]] = scale * (sigma * h[i])
        served[q] = True
