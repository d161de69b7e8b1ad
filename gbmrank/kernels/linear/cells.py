"""The loops of the linear-time engine; a template without slots, compiled once for all losses.

Items lie in *blocks*, and the items of a block in *runs*: the unit of work of a thread. A block
has *slots*, one per cell of its query, or one per cell that holds an item where most hold none.
:mod:`gbmrank.kernels.linear.engine` lays them out.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit.decorators import columns, entry, inner
from gbmrank.kernels.layout import GradHess, Span
from gbmrank.kernels.linear.interpolation import ORDER
from gbmrank.kernels.linear.vectors import add_chebyshev, add_product, evaluate_four
from gbmrank.types import FloatArray, IntArray

_KINDS = 4
_SQUARE = ORDER * ORDER
_PAIR = 2 * ORDER


class Runs(NamedTuple):
    """Runs of items: where each begins (and the last ends), its first cell and its slots.

    ``cells`` is 0 for a run that is left out, ``sparse`` 1 where slots are not simply cells.
    """

    items: IntArray
    first: FloatArray
    begin: IntArray
    cells: IntArray
    sparse: npt.NDArray[np.uint8]


class Cells(NamedTuple):
    """Scores of items, each item's slot after those of its block, cell numbers of slots, width."""

    scores: FloatArray
    slots: npt.NDArray[np.int32]
    numbers: IntArray
    width: float


@inner
def _place(score: float, number: float, width: float, per_width: float) -> float:
    """Place of a score in its cell, from -1 to 1, without rounding errors of the cell's border."""
    return (score - (number + 0.5) * width) * (2.0 * per_width)


@entry
def spread(
    runs: Runs, span: Span, at: Cells, weights: tuple[FloatArray, FloatArray], moments: FloatArray
) -> None:
    """Write the slot of every item, and add ``weight * T_m(place)`` to ``moments``, twice.

    ``moments`` has the shape (slots, 2, ORDER), flat: one row for each kind of weights.
    """
    items, first, begin, cells, sparse = columns(runs)
    scores, slots, numbers, width = columns(at)
    one, other = columns(weights)
    per_width = 1.0 / width
    for r in range(span.first, span.last):
        for i in range(items[r], items[r + 1] if cells[r] > 0 else items[r]):
            number = np.floor(scores[i] * per_width)
            cell = np.int64(number - first[r])
            slot = begin[r] + cell
            if sparse[r]:
                slot, after = begin[r], begin[r] + cells[r]
                while after - slot > 1:
                    middle = (slot + after) >> 1
                    slot = middle if numbers[middle] <= cell else slot
                    after = after if numbers[middle] <= cell else middle
            slots[i] = slot - begin[r]
            place = _place(scores[i], number, width, per_width)
            add_chebyshev(moments, slot * _PAIR, one[i], place)
            add_chebyshev(moments, slot * _PAIR + ORDER, other[i], place)


@entry
def interact(
    blocks: IntArray,
    span: Span,
    numbers: IntArray,
    tables: FloatArray,
    gaps: tuple[int, int, int],
    kinds: tuple[int, int],
    weights: FloatArray,
    lonely: npt.NDArray[np.uint8],
    seen: FloatArray,
) -> None:
    """Let all cells of a block act on each other that are not too far apart.

    ``gaps`` are the least and the largest distance for which there is a table, and the direction:
    1 for target minus source, -1 for source minus target. ``weights`` at the nodes of the sources
    have the shape (slots, ORDER), ``seen`` (slots, kinds, ORDER). Lonely cells do not act on
    themselves.
    """
    blocks, numbers, lonely = columns((blocks, numbers, lonely))
    lowest, highest, direction = gaps
    widest = highest if highest > -lowest else -lowest
    for b in range(span.first, span.last):
        start = blocks[b]
        for target in range(blocks[b], blocks[b + 1]):
            while numbers[target] - numbers[start] > widest:
                start += 1
            for source in range(start, blocks[b + 1]):
                gap = direction * (numbers[target] - numbers[source])
                if numbers[source] - numbers[target] > widest:
                    break
                if lowest <= gap <= highest and not (source == target and lonely[target]):
                    for kind in range(kinds[0], kinds[1]):
                        table = ((gap - lowest) * _KINDS + kind) * _SQUARE
                        row = (seen, (target * _KINDS + kind) * ORDER)
                        add_product(tables, table, (weights, source * ORDER), row)


@entry
def read(
    runs: Runs,
    span: Span,
    at: Cells,
    weights: FloatArray,
    powers: FloatArray,
    scales: FloatArray,
    rows: npt.NDArray[np.integer],
    out: GradHess,
) -> None:
    """Write gradient and Hessian of every item, times the scale of its run.

    ``powers``, shape (slots, ORDER, 4): slope and curvature as the better, then as the worse item.
    """
    items, first, begin, cells, _ = columns(runs)
    scores, slots, numbers, width = columns(at)
    weights, scales, rows, grad, hess = columns((weights, scales, rows, out.grad, out.hess))
    per_width = 1.0 / width
    for r in range(span.first, span.last):
        for i in range(items[r], items[r + 1] if cells[r] > 0 else items[r]):
            slot = begin[r] + slots[i]
            place = _place(scores[i], first[r] + numbers[slot], width, per_width)
            fields = evaluate_four(powers, slot * (4 * ORDER), place)
            slope, curve, back_slope, back_curve = fields
            grad[rows[i]] = scales[r] * (weights[i] * slope - back_slope)
            hess[rows[i]] = scales[r] * (weights[i] * curve + back_curve)


@entry
def read_fields(runs: Runs, span: Span, at: Cells, powers: FloatArray, out: FloatArray) -> None:
    """Write the four fields of every item, shape (items, 4), flat."""
    items, first, begin, cells, _ = columns(runs)
    scores, slots, numbers, width = columns(at)
    (out,) = columns((out,))
    per_width = 1.0 / width
    for r in range(span.first, span.last):
        for i in range(items[r], items[r + 1] if cells[r] > 0 else items[r]):
            slot = begin[r] + slots[i]
            place = _place(scores[i], first[r] + numbers[slot], width, per_width)
            fields = evaluate_four(powers, slot * (4 * ORDER), place)
            out[4 * i], out[4 * i + 1], out[4 * i + 2], out[4 * i + 3] = fields
