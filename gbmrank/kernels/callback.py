"""Checks around a boosting round: cheap passes over whole columns."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit import entry
from gbmrank.types import FloatArray, IntArray

__all__ = ["fingerprint", "finish"]


@entry
def fingerprint(words: npt.NDArray[np.uint32]) -> int:
    """Return a 64-bit hash of a column of 32-bit words that depends on their order."""
    total = np.uint64(len(words))
    for i in range(len(words)):
        mixed = np.uint64(words[i]) ^ (np.uint64(i) << np.uint64(32))
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        total += mixed ^ (mixed >> np.uint64(31))  # a sum sees through anything linear
    return total  # type: ignore[return-value]


@entry
def finish(
    grad: npt.NDArray[Any],
    hess: npt.NDArray[Any],
    offsets: IntArray,
    usual: FloatArray,
    floors: tuple[float, float],
) -> tuple[int, int]:
    """Raise every Hessian to the floor of its query.

    With ``relative, absolute = floors`` the floor is the largest of ``relative * mean hess``,
    ``relative * min(mean |grad|, usual)`` and ``absolute``: it scales with the loss, a
    saturated query cannot ask for an endless step, and a curvature that is as usual stays.

    Returns
    -------
    tuple of int
        First query with a value that is not finite (or -1), and the number of rows raised.
    """
    relative, absolute = floors
    raised = 0
    for q in range(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        g, h = grad[begin:end], hess[begin:end]
        total_g, total_h = 0.0, 0.0
        for i in range(len(g)):
            total_g += abs(g[i])
            total_h += h[i]
        if not (total_g < np.inf and abs(total_h) < np.inf):  # isfinite is x - x: reordered away
            return q, raised
        slope, curvature = total_g / len(g), total_h / len(g)
        slope = slope if slope < usual[q] else usual[q]
        floor = relative * (slope if slope > curvature else curvature)
        floor = floor if floor > absolute else absolute
        for i in range(len(h)):
            if h[i] < floor:
                h[i] = floor
                raised += 1
    return -1, raised
