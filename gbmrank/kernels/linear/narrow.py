r"""Sums over the pairs of long queries whose scores lie close together; a template without slots.

What :mod:`gbmrank.kernels.linear.engine` does, for queries that need no more than ``GAPS + 1``
cells: most of them. There, every cell is stored, every two cells act on each other through a table
that :func:`make_tables` evaluates in Python, and no tails and no hash table are needed. So there
is little to compile, once for all losses. Wider queries are declined and left to the engine.
"""

from typing import Any

import numpy as np

from gbmrank.kernels.jit.decorators import entry, inner
from gbmrank.kernels.layout import Buffers, Engines, GradHess, ItemQueries, LevelQueries, Span
from gbmrank.kernels.linear.cells import (
    TO_NODES,
    TO_NODES_MIRRORED,
    TO_POWERS,
    TO_POWERS_MIRRORED,
    place_in_cell,
)
from gbmrank.kernels.linear.interpolation import NODES, ORDER, LinearPlan
from gbmrank.kernels.linear.vectors import add_chebyshev, add_product, evaluate_four
from gbmrank.types import BoolArray, FloatArray, IntArray

GAPS = 24
"""Largest distance of two cells for which there is a table."""

_FARTHEST = 2.0**45  # cell
_KINDS = 3  # value, first and second derivative
_SQUARE = ORDER * ORDER
_TABLE = _KINDS * _SQUARE
_PAIR = 2 * ORDER  # numbers per cell and kind: of better and of worse items

Work = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
"""Tables, moments, weights at the nodes, sums at the nodes, polynomials."""


def make_tables(phi: Any, params: tuple[float, ...], plan: LinearPlan) -> FloatArray:
    """Evaluate a loss between the nodes of cells: gap, kind, source node, target node; flat."""
    within = 0.5 * plan.width * (NODES[None, :] - NODES[:, None]).ravel()
    points = plan.width * np.arange(-GAPS, GAPS + 1)[:, None] + within
    rows = np.array([phi(z, *params) for z in points.ravel().tolist()], np.float64)
    return np.ascontiguousarray(rows.reshape(2 * GAPS + 1, _SQUARE, 3).swapaxes(1, 2)).ravel()


def workspace(tables: FloatArray, longest: int) -> tuple[Work, IntArray]:
    """Return the tables and room for the cells of one query, and for the cell of each item."""
    cells = GAPS + 1
    moments, weights = np.empty(cells * _PAIR), np.empty(cells * _PAIR)
    seen, powers = np.empty(_KINDS * cells * _PAIR), np.empty(4 * cells * ORDER)
    return (tables, moments, weights, seen, powers), np.empty(longest, np.int64)


@inner
def _locate(s: FloatArray, n: int, plan: LinearPlan, slots: IntArray) -> int:
    """Replace scores by their places in cells, write the cells, and return how many there are.

    None, with nothing written, where they are too many.
    """
    low, high = s[0], s[0]
    for i in range(n):
        low = s[i] if s[i] < low else low
        high = s[i] if s[i] > high else high
    width, per_width = plan.width, 1.0 / plan.width
    first, last = np.floor(low * per_width), np.floor(high * per_width)
    # Written so that NaN fails. Far out, positions inside a cell would be rounded.
    if not (last - first <= GAPS and high - low <= plan.reach and abs(first) < _FARTHEST):
        return 0
    for i in range(n):
        number = np.floor(s[i] * per_width)
        slots[i] = np.int64(number - first)
        s[i] = place_in_cell(s[i], number, width, per_width)
    return np.int64(last - first) + 1  # type: ignore[return-value]


@inner
def _solve(count: int, same: bool, work: Work) -> float:
    """Turn moments into polynomials of slope and curvature; return the sum of all pairs."""
    tables, moments, weights, seen, powers = work
    half, all_seen = count * ORDER, count * _PAIR
    for i in range(_KINDS * all_seen):
        seen[i] = 0.0
        if i < all_seen:
            weights[i] = 0.0
    for slot in range(count):
        add_product(TO_NODES, 0, (moments, slot * ORDER), (weights, slot * ORDER))
        place = half + slot * ORDER
        add_product(TO_NODES_MIRRORED, 0, (moments, place), (weights, place))
    for target in range(count):
        for source in range(count):
            if target == source and same and moments[target * ORDER] == 1.0:
                continue  # an item alone in its cell
            table = (target - source + GAPS) * _TABLE
            for kind in range(_KINDS):
                start, row = table + kind * _SQUARE, kind * all_seen
                ahead, behind = (seen, row + target * ORDER), (seen, row + half + source * ORDER)
                add_product(tables, start, (weights, source * ORDER), ahead)
                add_product(tables, start, (weights, half + target * ORDER), behind)
    value = 0.0
    for slot in range(count):
        at = slot * ORDER
        for k in range(ORDER):
            value += seen[at + k] * weights[half + at + ORDER - 1 - k]
        for field in range(4):
            for k in range(ORDER):
                seen[at + k] = 0.0  # read above
            source = (1 + field % 2) * all_seen + field // 2 * half + at
            if field < 2:
                add_product(TO_POWERS, 0, (seen, source), (seen, at))
            else:
                add_product(TO_POWERS_MIRRORED, 0, (seen, source), (seen, at))
            for k in range(ORDER):
                powers[4 * (at + k) + field] = seen[at + k]
        if same and moments[at] != 1.0:
            value -= tables[GAPS * _TABLE] * moments[half + at]
            powers[4 * at + 1] -= 2.0 * tables[GAPS * _TABLE + 2 * _SQUARE]
    return value


@inner
def _sum(
    buffers: Buffers, slots: IntArray, block: tuple[int, int, int], count: int, work: Work
) -> float:
    """Add the pairs of better items, ``begin`` to ``middle - 1``, and worse ones, up to ``end``.

    With ``begin == middle`` all items are both.
    """
    places, w, g, h = buffers
    begin, middle, end = block
    moments, powers, half = work[1], work[4], count * ORDER
    same = begin == middle
    for i in range(2 * half):
        moments[i] = 0.0
    for i in range(begin, end):
        better, offset = same or i < middle, slots[i] * ORDER
        if same:
            add_chebyshev(moments, offset, 1.0, places[i])
        offset += half if better else 0
        add_chebyshev(moments, offset, w[i] if better else 1.0, places[i])
    value = _solve(count, same, work)
    for i in range(begin, end):
        fields = evaluate_four(powers, slots[i] * (4 * ORDER), places[i])
        slope, curve, back_slope, back_curve = fields
        weight = w[i] if same or i < middle else 0.0
        back = 1.0 if same or i >= middle else 0.0
        g[i] += weight * slope - back * back_slope
        h[i] += weight * curve + back * back_curve
    return value


@entry
def narrow_all(
    queries: ItemQueries,
    span: Span,
    scores: FloatArray,
    engines: Engines,
    served: BoolArray,
    values: FloatArray,
    buffers: Buffers,
    work: Work,
    slots: IntArray,
    out: GradHess,
) -> int:
    """Sum the long queries of a span and mark them done; return how many are too wide for it.

    With an empty ``out``, values only.
    """
    s, v, g, h = buffers
    declined, width = 0, engines.plan.width
    for q in range(span.first, span.last):
        begin, scale = queries.offsets[q], queries.scale[q]
        n = queries.offsets[q + 1] - begin
        if served[q] or n < engines.linear_from or scale == 0.0 or queries.useful[q] == 0:
            continue
        for i in range(n):
            s[i] = scores[queries.order[begin + i]]
            v[i] = queries.utilities[begin + i]
            g[i] = 0.0
            h[i] = 0.0
        count = _locate(s, n, engines.plan, slots)
        if count == 0:
            declined += 1
            continue
        if n < engines.linear_range * count * width:
            continue
        values[q] = scale * _sum(buffers, slots, (0, 0, n), count, work)
        served[q] = True
        if len(out.grad):
            for i in range(n):
                out.grad[queries.order[begin + i]] = scale * g[i]
                out.hess[queries.order[begin + i]] = scale * h[i]
    return declined


@entry
def narrow_levels(
    queries: LevelQueries,
    span: Span,
    scores: FloatArray,
    engines: Engines,
    served: BoolArray,
    values: FloatArray,
    buffers: Buffers,
    work: Work,
    slots: IntArray,
    out: GradHess,
) -> int:
    """Like :func:`narrow_all`, over pairs of different level: each level and all lower ones."""
    s, w, g, h = buffers
    declined, width = 0, engines.plan.width
    for q in range(span.first, span.last):
        begin, scale = queries.offsets[q], queries.scale[q]
        n = queries.offsets[q + 1] - begin
        if served[q] or n < engines.linear_from or scale == 0.0:
            continue
        levels = 1
        for i in range(n):
            s[i] = scores[queries.order[begin + i]]
            w[i] = queries.weights[begin + i]
            g[i] = 0.0
            h[i] = 0.0
            levels += i > 0 and queries.levels[begin + i] != queries.levels[begin + i - 1]
        count = _locate(s, n, engines.plan, slots)
        if count == 0:
            declined += 1
            continue
        cost = engines.linear_range * count * width
        cost = cost if cost > engines.linear_from else float(engines.linear_from)
        if n < cost * levels:  # every level is a pass over all lower ones
            continue
        value, start = 0.0, 0
        for i in range(1, n):
            if queries.levels[begin + i] != queries.levels[begin + i - 1]:
                value += _sum(buffers, slots, (start, i, n), count, work)
                start = i
        values[q] = scale * value
        served[q] = True
        if len(out.grad):
            for i in range(n):
                out.grad[queries.order[begin + i]] = scale * g[i]
                out.hess[queries.order[begin + i]] = scale * h[i]
    return declined
