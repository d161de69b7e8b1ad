"""What kernels receive: small named tuples of arrays."""

from typing import Any, NamedTuple

import numpy.typing as npt

from gbmrank.types import FloatArray, IntArray

__all__ = ["GradHess", "ItemQueries", "Span"]


class ItemQueries(NamedTuple):
    """Queries whose items carry a utility, sorted by it.

    ``order`` holds the rows of each query, largest utility first; ``utilities`` follows
    that order; the first ``useful[q]`` items of query q have a positive utility; ``scale``
    multiplies the query (normalisation times weight).
    """

    offsets: IntArray
    order: npt.NDArray[Any]
    utilities: FloatArray
    useful: IntArray
    scale: FloatArray


class Span(NamedTuple):
    """Queries ``first`` to ``last - 1``, the longest of which has ``longest`` items."""

    first: int
    last: int
    longest: int


class GradHess(NamedTuple):
    """Where a kernel writes; float32 or float64, shape (n_rows,)."""

    grad: npt.NDArray[Any]
    hess: npt.NDArray[Any]
