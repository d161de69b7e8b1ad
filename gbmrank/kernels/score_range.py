"""Middle and range of the scores of a query, and their differences."""

from gbmrank.kernels.jit import exact_inner, inner
from gbmrank.types import FloatArray

__all__ = ["apart", "middle_and_range"]


@exact_inner
def apart(one: float, other: float, more: float) -> float:
    """Return ``(one - other) + more``, the scores first.

    In another order, which the compiler may choose elsewhere, scores far from zero would lose
    the digits in which they differ.
    """
    return (one - other) + more


@inner
def middle_and_range(s: FloatArray) -> tuple[float, float]:
    """Return the point half-way between the extreme scores, and their distance."""
    lowest, highest = s[0], s[0]
    for i in range(len(s)):
        lowest = s[i] if s[i] < lowest else lowest
        highest = s[i] if s[i] > highest else highest
    return 0.5 * (lowest + highest), highest - lowest
