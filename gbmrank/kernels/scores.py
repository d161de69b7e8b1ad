"""Levels and range of a query, and the check of a booster's gradient."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit.decorators import columns, fast_entry, inner, separate
from gbmrank.kernels.layout import Level
from gbmrank.types import FloatArray, IntArray


@separate
def read_levels(labels: FloatArray, begin: IntArray, end: IntArray) -> Level:
    """Find where each item's level begins and ends among labels sorted best first."""
    count = 0
    first = 0
    for i in range(len(labels)):
        if i + 1 == len(labels) or labels[i + 1] != labels[i]:
            for k in range(first, i + 1):
                begin[k] = first
                end[k] = i + 1
            first = i + 1
            count += 1
    return Level(begin[: len(labels)], end[: len(labels)], count)


@inner
def middle_and_range(s: FloatArray) -> tuple[float, float]:
    """Return the point half-way between the extreme scores, and their distance."""
    lowest, highest = s[0], s[0]
    for i in range(len(s)):
        lowest = s[i] if s[i] < lowest else lowest
        highest = s[i] if s[i] > highest else highest
    return 0.5 * (lowest + highest), highest - lowest


@fast_entry
def finish(
    grad: npt.NDArray[Any],
    hess: npt.NDArray[Any],
    offsets: IntArray,
    tied_curvature: FloatArray,
    floors: tuple[float, float],
) -> tuple[int, int]:
    """Raise every Hessian to the floor of its query; return the first bad query and rows raised.

    With ``relative, absolute = floors`` the floor is the largest of ``relative * mean hess``,
    ``relative * min(mean |grad|, tied_curvature)`` and ``absolute``: it scales with the loss, a
    saturated query cannot cause an infinite step, and a curvature like that of
    tied scores is not changed.
    A bad query has a value that is not finite; -1 when there is none.
    """
    relative, absolute = floors
    raised, queries = 0, len(tied_curvature)
    grad, hess, offsets, tied_curvature = columns((grad, hess, offsets, tied_curvature))
    for q in range(queries):
        rows = offsets[q + 1] - offsets[q]
        slope, curvature = 0.0, 0.0
        for i in range(offsets[q], offsets[q + 1]):
            slope += abs(grad[i])
            curvature += hess[i]
        if not (slope < np.inf and abs(curvature) < np.inf):  # isfinite is x - x: reordered away
            return q, raised
        slope, curvature = slope / rows, curvature / rows
        slope = slope if slope < tied_curvature[q] else tied_curvature[q]
        floor = relative * (slope if slope > curvature else curvature)
        floor = floor if floor > absolute else absolute
        for i in range(offsets[q], offsets[q + 1]):
            if hess[i] < floor:
                hess[i] = floor
                raised += 1
    return -1, raised
