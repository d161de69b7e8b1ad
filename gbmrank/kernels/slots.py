"""Signatures of the functions that templates leave open; for type checkers only."""

from gbmrank.types import FloatArray

__all__ = ["fast_pairs", "phi"]


def phi(z: float, *params: float) -> tuple[float, float, float]:
    """Scalar loss of a margin: value, first and second derivative."""
    raise AssertionError("a slot that the compiler fills")


def fast_pairs(
    s: FloatArray,
    v: FloatArray,
    useful: int,
    params: tuple[float, ...],
    single: bool,
    out: tuple[FloatArray, FloatArray],
) -> bool:
    """Gradient of one query in a faster way; False when it does not apply."""
    raise AssertionError("a slot that the compiler fills")
