"""What the kernels of measures receive and what the sorting kernels write."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.types import FloatArray, IntArray

__all__ = ["Items", "Levels", "Positions", "Ranking"]


class Ranking(NamedTuple):
    """Items of every query, best score first, and where they tie.

    Query q owns the entries from ``offsets[q]`` to ``offsets[q + 1] - 1``. ``order`` holds
    item numbers that begin at 0 in each query; ``tied`` is 1 where an item has the score
    of the one before it. Only as many ranks as were asked for need to be there; they
    end with a whole block of ties.
    """

    offsets: IntArray
    order: npt.NDArray[np.int32]
    tied: npt.NDArray[np.uint8]


class Items(NamedTuple):
    """What a measure knows about labels: a value per row, a factor per query, a cut-off.

    The measure of query q is ``scale[q]`` times a sum over the first ``k`` ranks.
    """

    values: FloatArray
    scale: FloatArray
    k: int


class Positions(NamedTuple):
    """A positional measure: ``base[q] + scale[q] * sum of discount * value``.

    ``discounts[r]`` belongs to rank r + 1, or with ``upwards`` to r items below;
    ``cumulative[r]`` is the sum of the first r discounts.
    """

    values: FloatArray
    scale: FloatArray
    k: int
    base: FloatArray
    discounts: FloatArray
    cumulative: FloatArray
    upwards: bool


class Levels(NamedTuple):
    """Labels above the smallest of their query, and their levels from 0 in each query."""

    values: FloatArray
    levels: npt.NDArray[np.int32]
    n_levels: IntArray
    scale: FloatArray
