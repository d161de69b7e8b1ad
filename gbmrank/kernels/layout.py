"""What kernels receive: small named tuples of arrays."""

from typing import Any, NamedTuple

import numpy.typing as npt

from gbmrank.kernels.linear_plan import LinearPlan
from gbmrank.types import FloatArray, IntArray

__all__ = [
    "Engines",
    "GradHess",
    "ItemQueries",
    "ItemTerms",
    "Level",
    "LevelQueries",
    "PushParams",
    "PushQueries",
    "Span",
]


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


class LevelQueries(NamedTuple):
    """Queries whose items have levels, best level first.

    ``order`` holds the rows of each query, best first; ``levels`` and ``weights`` follow
    that order, ``weights`` being the factor of the pairs in which an item is the better
    one; ``scale`` multiplies the query.
    """

    offsets: IntArray
    order: npt.NDArray[Any]
    levels: FloatArray
    weights: FloatArray
    scale: FloatArray


class PushQueries(NamedTuple):
    """Queries of relevant and other items; the first ``positives[q]`` in order are relevant.

    ``scale`` multiplies the query; it is zero where there is one class only.
    """

    offsets: IntArray
    order: npt.NDArray[Any]
    positives: IntArray
    scale: FloatArray


class PushParams(NamedTuple):
    """Parameters of the pair penalty and of the price around its mean."""

    inner: tuple[float, ...]
    outer: tuple[float, ...]


class ItemTerms(NamedTuple):
    """Items that are summed one by one.

    ``utilities`` in the order of rows; ``eta`` and ``scale`` per query; ``weight`` per row,
    or empty when all are one.
    """

    offsets: IntArray
    utilities: FloatArray
    eta: FloatArray
    scale: FloatArray
    weight: FloatArray


class Level(NamedTuple):
    """Per item: first position of its own level and of the next; number of levels."""

    begin: IntArray
    end: IntArray
    levels: int


class Engines(NamedTuple):
    """Which way a query is summed.

    A query of at least ``linear_from`` items, and of ``linear_range`` times its range of scores,
    tries the linear-time engine by its ``plan``; one of at least ``closed_from`` items tries the
    closed form (no loss has both); else every pair is visited. ``bend`` replaces the second
    derivative in closed forms unless it is NaN.
    """

    closed_from: int
    linear_from: int
    linear_range: float
    bend: float
    plan: LinearPlan


class Span(NamedTuple):
    """Queries ``first`` to ``last - 1``, the longest of which has ``longest`` items."""

    first: int
    last: int
    longest: int


class GradHess(NamedTuple):
    """Where a kernel writes; float32 or float64, shape (n_rows,)."""

    grad: npt.NDArray[Any]
    hess: npt.NDArray[Any]
