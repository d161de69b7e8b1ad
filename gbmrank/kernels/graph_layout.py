"""What the kernels of preference graphs and pair values receive."""

from typing import NamedTuple

from gbmrank.types import FloatArray, IntArray

__all__ = ["EdgeQueries", "EdgeWeights", "PairValues"]


class EdgeQueries(NamedTuple):
    """Queries with edges: rows of the two ends, weight, margin, and a factor per query.

    Query q owns rows from ``rows[q]`` and edges from ``offsets[q]``; ``margin`` is empty when
    it is zero everywhere.
    """

    rows: IntArray
    offsets: IntArray
    winner: IntArray
    loser: IntArray
    weight: FloatArray
    margin: FloatArray
    scale: FloatArray


class EdgeWeights(NamedTuple):
    """Edges of every query, a factor per query, and what a tie counts.

    A tied edge counts ``tie_down`` of its weight when the preferred row comes first in the
    data, else ``tie_up``.
    """

    offsets: IntArray
    winner: IntArray
    loser: IntArray
    weight: FloatArray
    scale: FloatArray
    tie_down: float
    tie_up: float


class PairValues(NamedTuple):
    """Square matrices of all queries: rows from ``rows[q]``, values from ``offsets[q]``."""

    rows: IntArray
    offsets: IntArray
    values: FloatArray
