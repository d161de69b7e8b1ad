"""Middle and range of the scores of a query."""

from gbmrank.kernels.jit import inner
from gbmrank.types import FloatArray

__all__ = ["middle_and_range"]


@inner
def middle_and_range(s: FloatArray) -> tuple[float, float]:
    """Return the point half-way between the extreme scores, and their distance."""
    lowest, highest = s[0], s[0]
    for i in range(len(s)):
        lowest = s[i] if s[i] < lowest else lowest
        highest = s[i] if s[i] > highest else highest
    return 0.5 * (lowest + highest), highest - lowest
