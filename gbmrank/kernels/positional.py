r"""Positional measures: a discount of the rank times a value of the item there.

A block of m tied items at the ranks a+1..a+m contributes the mean of its discounts times
the sum of its values, which is the mean over all orders of the block.
"""

from gbmrank.kernels.blocks import PART, block_end, block_sum
from gbmrank.kernels.jit import entry
from gbmrank.kernels.layout import Span
from gbmrank.kernels.rankings import Positions, Ranking
from gbmrank.types import FloatArray

__all__ = ["per_query"]


@entry
def per_query(ranking: Ranking, items: Positions, span: Span, out: FloatArray) -> None:
    """Write one value per query of a span."""
    cumulative = items.cumulative
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        total, part, terms = 0.0, 0.0, 0
        start = begin
        while start < end and start - begin < items.k:
            stop = block_end(ranking, start, end)
            first, last = start - begin, stop - begin
            if items.upwards:
                first, last = end - stop, end - start
            discount = items.discounts[first]
            if last - first > 1:
                discount = (cumulative[last] - cumulative[first]) / (last - first)
            part += discount * block_sum(items.values, begin, ranking, start, stop)
            terms += 1
            if terms == PART:
                total, part, terms = total + part, 0.0, 0
            start = stop
        out[q] = items.base[q] + items.scale[q] * (total + part)
