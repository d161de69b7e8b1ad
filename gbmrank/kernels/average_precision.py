r"""Average precision, reciprocal rank and positives at the top, for binary values.

Each block of ties holds p relevant items among m, at the ranks a+1..a+m.
"""

import numpy as np

from gbmrank.kernels.blocks import block_end, block_sum
from gbmrank.kernels.jit import entry, inner
from gbmrank.kernels.layout import Span
from gbmrank.kernels.rankings import Items, Ranking
from gbmrank.types import FloatArray

__all__ = ["average_precision", "positives_at_top", "reciprocal_rank"]


@inner
def _mean_precisions(found: float, p: float, a: int, m: int, k: int) -> float:
    """Return the expected sum of precisions at the relevant items of a block, up to rank k.

    A rank of the block is relevant with probability p/m; given that, each of the j-1 ranks
    before it in the block is relevant with probability (p-1)/(m-1).
    """
    before = (p - 1.0) / max(m - 1, 1)
    total = 0.0
    for j in range(min(m, k - a)):
        total += (found + 1.0 + j * before) / (a + j + 1)
    return total * p / m


@entry
def average_precision(
    ranking: Ranking, items: Items, whole: bool, span: Span, out: FloatArray
) -> None:
    """Write one value per query; ``whole`` takes each block as one step at its last rank."""
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        total, found = 0.0, 0.0
        start = begin
        while start < end and start - begin < items.k:
            stop = block_end(ranking, start, end)
            p = block_sum(items.values, begin, ranking, start, stop)
            if p > 0.0:
                if whole or stop == start + 1:
                    total += p * (found + p) / (stop - begin)
                else:
                    total += _mean_precisions(found, p, start - begin, stop - start, items.k)
                found += p
            start = stop
        out[q] = items.scale[q] * total


@inner
def _mean_reciprocal(p: float, a: int, m: int, k: int) -> float:
    """Return the expected 1/rank of the first of p relevant items in a block of m."""
    chance = p / m
    total = 0.0
    for j in range(min(m - int(p) + 1, k - a)):
        total += chance / (a + j + 1)
        chance *= (m - j - p) / max(m - j - 1, 1)
    return total


@entry
def reciprocal_rank(ranking: Ranking, items: Items, span: Span, out: FloatArray) -> None:
    """Write one value per query: that of the first block with a relevant item."""
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        total = 0.0
        start = begin
        while start < end and start - begin < items.k:
            stop = block_end(ranking, start, end)
            p = block_sum(items.values, begin, ranking, start, stop)
            if p > 0.0:
                total = _mean_reciprocal(p, start - begin, stop - start, items.k)
                break
            start = stop
        out[q] = items.scale[q] * total


@entry
def positives_at_top(ranking: Ranking, items: Items, span: Span, out: FloatArray) -> None:
    """Write one value per query; the first block with b > 0 negatives adds p/(b+1)."""
    for q in range(span.first, span.last):
        begin, end = ranking.offsets[q], ranking.offsets[q + 1]
        total = 0.0
        start = begin
        while start < end:
            stop = block_end(ranking, start, end)
            p = block_sum(items.values, begin, ranking, start, stop)
            negatives = np.float64(stop - start) - p
            total += p / (negatives + 1.0)
            if negatives > 0.0:
                break
            start = stop
        out[q] = items.scale[q] * total
