"""Blocks of equal scores."""

from gbmrank.kernels.jit import exact_inner, inner
from gbmrank.kernels.rankings import Ranking
from gbmrank.types import FloatArray

__all__ = ["PART", "block_end", "block_sum"]

PART = 1024
"""Long sums are added up in parts of so many terms, each of which loses few digits."""


@inner
def block_end(ranking: Ranking, start: int, end: int) -> int:
    """Return one past the last entry that ties with ``start``."""
    stop = start + 1
    while stop < end and ranking.tied[stop]:
        stop += 1
    return stop


@exact_inner
def block_sum(values: FloatArray, begin: int, ranking: Ranking, start: int, stop: int) -> float:
    """Return the sum of values over entries ``start`` to ``stop - 1`` of a query at ``begin``."""
    total = 0.0
    for low in range(start, stop, PART):
        part = 0.0
        for i in range(low, min(low + PART, stop)):
            part += values[begin + ranking.order[i]]
        total += part
    return total
