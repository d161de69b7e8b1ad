r"""Label differences of pairs in the wrong order, :math:`O(n \log n)` per query.

Going down the ranking, a tree over label levels holds how many items with each label were
passed and the sum of their labels. An item adds its lead over the passed items with a
smaller label. Asking before and after a block of ties enters the tree and taking the mean
counts each pair inside the block by one half.
"""

import numpy as np

from gbmrank.kernels.blocks import block_end
from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import Span
from gbmrank.kernels.rankings import Levels, Ranking
from gbmrank.types import FloatArray

__all__ = ["per_query"]


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
def per_query(ranking: Ranking, items: Levels, span: Span, out: FloatArray) -> None:
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
        out[q] = items.scale[q] * total
