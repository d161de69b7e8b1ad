"""Numbers the checks work with: small data, and derivatives by differences."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from gbmrank.testing.report import fail_unless
from gbmrank.types import FloatArray, IntArray

__all__ = [
    "SIZES",
    "close",
    "derivative",
    "hold_close",
    "permuted_rows",
    "query_slices",
    "row_derivatives",
    "scores_of",
]

SIZES = (5, 1, 4, 7, 3, 6, 2)
_STEP = 4e-3
_WEIGHTS = ((1.0, 8.0), (-1.0, -8.0), (2.0, -1.0), (-2.0, 1.0))  # fourth-order differences


def query_slices(sizes: Any = SIZES) -> list[slice]:
    """Return the rows of each query."""
    ends = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


def scores_of(sizes: Any = SIZES, seed: int = 0, spread: float = 1.0) -> FloatArray:
    """Return scores that are all different."""
    rng = np.random.default_rng([17, seed])
    return spread * rng.normal(size=int(np.sum(sizes)))


def permuted_rows(sizes: Any = SIZES, seed: int = 0) -> IntArray:
    """Return an order of rows that shuffles every query within itself."""
    rng = np.random.default_rng([23, seed])
    parts = [part.start + rng.permutation(part.stop - part.start) for part in query_slices(sizes)]
    return np.concatenate(parts)


def derivative(function: Callable[[float], Any], at: float, step: float = _STEP) -> Any:
    """Return the derivative of a function of a number, and where it can be trusted."""
    wide = _difference(lambda by: np.asarray(function(at + by), dtype=np.float64), step)
    near = _difference(lambda by: np.asarray(function(at + by), dtype=np.float64), 0.5 * step)
    return near, _agree(wide, near)


def row_derivatives(
    evaluate: Callable[[FloatArray], FloatArray], scores: FloatArray
) -> tuple[FloatArray, Any]:
    """Differentiate by every row, one position of every query at a time.

    Parameters
    ----------
    evaluate : callable
        Maps scores to one number per query, or to one per row (then the derivative of each
        by its own score is meant).
    scores : array of shape (n_rows,)
        In queries of the sizes ``SIZES``.

    Returns
    -------
    slopes, trusted : arrays of shape (n_rows,)
        Two step sizes agree where the function has no kink.
    """
    slopes, trusted = np.zeros(len(scores)), np.zeros(len(scores), dtype=bool)
    parts = query_slices()
    for place in range(max(SIZES)):
        queries = [q for q, n in enumerate(SIZES) if place < n]
        rows = np.array([parts[q].start + place for q in queries])

        def moved(by: float, rows: Any = rows, queries: Any = queries) -> FloatArray:
            shifted = scores.copy()
            shifted[rows] += by
            values = evaluate(shifted)
            return values[queries] if len(values) == len(SIZES) else values[rows]

        wide, near = _difference(moved, _STEP), _difference(moved, 0.5 * _STEP)
        slopes[rows], trusted[rows] = near, _agree(wide, near)
    return slopes, trusted


def close(found: Any, expected: Any, tolerance: float, scale: Any = 1.0) -> Any:
    """Whether numbers agree up to a tolerance relative to them or to a scale."""
    size = np.maximum(np.maximum(np.abs(found), np.abs(expected)), scale)
    return np.abs(np.asarray(found) - expected) <= tolerance * size


def hold_close(what: str, found: Any, expected: Any, tolerance: float, scale: Any = 1e-12) -> None:
    """Raise AssertionError with the first place where two arrays differ."""
    found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    fail_unless(
        found.shape == expected.shape, f"{what}: shape {found.shape}, expected {expected.shape}"
    )
    same = close(found, expected, tolerance, scale) | (np.isnan(found) & np.isnan(expected))
    if not np.all(same):
        at = int(np.argmin(np.atleast_1d(same)))
        one, two = np.atleast_1d(found)[at], np.atleast_1d(expected)[at]
        raise AssertionError(f"{what}: {one:.10g} where {two:.10g} is expected (place {at})")


def _difference(moved: Callable[[float], FloatArray], step: float) -> FloatArray:
    total = sum(factor * moved(by * step) for by, factor in _WEIGHTS)
    return np.asarray(total) / (12.0 * step)


def _agree(wide: FloatArray, near: FloatArray) -> Any:
    size = np.maximum(np.maximum(np.abs(wide), np.abs(near)), 1e-3 * np.abs(near).max(initial=0.0))
    return np.isfinite(wide) & (np.abs(wide - near) <= 1e-4 * size + 1e-12)
