"""Scores and levels of a query in, its gradient, Hessian and value out."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gbmrank.kernels.jit import inner
from gbmrank.kernels.layout import GradHess, Level
from gbmrank.types import BoolArray, FloatArray, IntArray

__all__ = ["mark_served", "read_levels", "read_scores", "write_scaled"]


@inner
def read_scores(scores: FloatArray, rows: npt.NDArray[Any], s: FloatArray) -> None:
    """Write the scores of the given rows."""
    for i in range(len(rows)):
        s[i] = scores[rows[i]]


@inner
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
def write_scaled(
    g: FloatArray, h: FloatArray, scale: float, rows: npt.NDArray[Any], out: GradHess
) -> None:
    """Write a gradient and a Hessian, times the factor of their query, to the given rows."""
    for i in range(len(rows)):
        out.grad[rows[i]] = scale * g[i]
        out.hess[rows[i]] = scale * h[i]


@inner
def mark_served(q: int, value: float, values: FloatArray, served: BoolArray) -> bool:
    """Keep the value of a query and mark it as done, unless it is NaN: declined."""
    if np.isnan(value):
        return False
    values[q] = value
    served[q] = True
    return True
