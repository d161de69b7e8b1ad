"""Arguments of kernels: small named tuples of arrays, and the signatures of their slots.

A *slot* is a function that a template leaves open (:mod:`gbmrank.kernels.jit.compiler`); type
checkers see the declarations at the end of this file instead. A slot that sums a query in a
particular way may *decline* it, by returning NaN or False: the query is then left to the next
engine, and in the end every pair is visited.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.types import BoolArray, FloatArray, IntArray

Out = tuple[FloatArray, FloatArray]
"""Gradient and Hessian diagonal of one query."""

Params = tuple[float, ...]
"""Parameters of a scalar loss."""

Buffers = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
"""Room for the scores, weights, gradient and Hessian of one query."""

LANES = 8
"""Pairs are visited in whole vectors, so buffers have room for so many more items."""

ScalarSlot = Callable[..., tuple[float, float, float]]
"""A slot that returns a value, the first and the second derivative."""


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
    """Queries of ``positives[q]`` relevant, then other items; ``scale`` is 0 if one is missing."""

    offsets: IntArray
    order: npt.NDArray[Any]
    positives: IntArray
    scale: FloatArray


class PushParams(NamedTuple):
    """Parameters of the pair penalty and of the outer function of its mean."""

    inner: Params
    outer: Params


class Paths(NamedTuple):
    """Paths through trees: the feature of every split, what is above splits and leaves.

    ``above`` is the number of the split above, -1 at the top; ``from_left`` says on which side.
    """

    feature: IntArray
    above: IntArray
    from_left: BoolArray
    leaf_above: IntArray
    leaf_from_left: BoolArray
    value: FloatArray


class ItemTerms(NamedTuple):
    """Items summed one by one; ``eta`` and ``scale`` per query, ``weight`` empty if all are one."""

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
    """Which engine sums a query.

    A query of at least ``linear_from`` items, and of ``linear_range`` times its range of scores,
    is left to the linear-time engine; one of at least ``closed_from`` items to the closed form (no
    loss has both); else every pair is visited. ``bend`` replaces the second derivative in closed
    forms unless it is NaN.
    """

    closed_from: int
    linear_from: int
    linear_range: float
    bend: float


class Span(NamedTuple):
    """Queries ``first`` to ``last - 1``, the longest of which has ``longest`` items."""

    first: int
    last: int
    longest: int


class GradHess(NamedTuple):
    """Output arrays of gradient and Hessian; float32 or float64, shape (n_rows,)."""

    grad: npt.NDArray[Any]
    hess: npt.NDArray[Any]


class PairWork(NamedTuple):
    """A span of queries to sum, which of them are done already, and room for the longest one."""

    span: Span
    scores: FloatArray
    served: BoolArray
    buffers: Buffers


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
    """Edges of every query; a tie counts ``tie_down`` (preferred row first) or ``tie_up``."""

    offsets: IntArray
    winner: IntArray
    loser: IntArray
    weight: FloatArray
    divisor: FloatArray
    tie_down: float
    tie_up: float


class PairValues(NamedTuple):
    """Square matrices of all queries: rows from ``rows[q]``, values from ``offsets[q]``."""

    rows: IntArray
    offsets: IntArray
    values: FloatArray


class Ranking(NamedTuple):
    """Items of every query, best score first, and where they tie.

    Query q owns the entries from ``offsets[q]`` to ``offsets[q + 1] - 1``. ``order`` holds
    item numbers that begin at 0 in each query; ``tied`` is 1 where an item has the score
    of the one before it. Only the requested number of ranks need be present; they end with a
    whole block of ties.
    """

    offsets: IntArray
    order: npt.NDArray[np.int32]
    tied: npt.NDArray[np.uint8]


class Items(NamedTuple):
    """Values per row; the divisor of a sum and the last rank that counts, per query."""

    values: FloatArray
    divisor: FloatArray
    cuts: IntArray


class TopicItems(NamedTuple):
    """Which subtopics (columns) each row has; a subtopic seen c times is worth ``beta`` to the c.

    A sum over the first ``k`` ranks with these ``discounts``, over ``divisor[q]``; ``values``
    counts the subtopics of each row.
    """

    values: FloatArray
    topics: npt.NDArray[np.uint8]
    beta: float
    discounts: FloatArray
    divisor: FloatArray
    k: int


class Positions(NamedTuple):
    """A positional measure: ``(base[q] + sum of discount * value) / divisor[q]``.

    ``discounts[r]`` belongs to rank r + 1, or with ``upwards`` to r items below;
    ``cumulative[r]`` is the sum of the first r discounts.
    """

    values: FloatArray
    divisor: FloatArray
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
    divisor: FloatArray


class SwapTerms(NamedTuple):
    """Terms of the change of a metric when two items swap ranks; see ``pairs.changes``.

    ``values`` per row, ``scale`` and the last rank that counts (``cuts``) per query, NaN or 0 where
    undefined; ``table[r]`` belongs to rank r + 1, or with ``upwards`` to r items below.
    """

    values: FloatArray
    scale: FloatArray
    cuts: IntArray
    table: FloatArray
    upwards: bool = False


class SwapQueries(NamedTuple):
    """Queries of a measure; ``scale`` 0 leaves a query out.

    ``discounts`` are those of the ranks of each query. ``sums`` are those of the first 0 to n of
    them, from ``offsets[q] + q`` on; empty unless distances of ranks count.
    """

    offsets: IntArray
    values: FloatArray
    scale: FloatArray
    weight: FloatArray
    items: FloatArray  # factor of the pairs in which a row is preferred
    cuts: IntArray
    discounts: FloatArray
    sums: FloatArray
    hashes: npt.NDArray[np.uint64]  # of the labels


class Rankings(NamedTuple):
    """Rankings of a span of queries, those of the i-th query of the span from ``begins[i]`` on.

    ``order`` and ``tied`` are those of a :class:`Ranking`; ``head``, ``share`` and ``tail`` are the
    columns of ``pairs.changes`` by rank. With ties averaged, ``starts`` and ``ends`` bound the
    block of a rank and ``within`` is the weight of its pairs; else these three are empty.
    """

    begins: IntArray
    order: npt.NDArray[np.int32]
    tied: npt.NDArray[np.uint8]
    head: FloatArray
    share: FloatArray
    tail: FloatArray
    within: FloatArray
    starts: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]


class SwapBuffers(NamedTuple):
    """Scores, values, weights, changes, gradient, Hessian and exponentials by rank."""

    s: FloatArray
    v: FloatArray
    w: FloatArray
    row: FloatArray
    g: FloatArray
    h: FloatArray
    e: FloatArray


class SwapRule(NamedTuple):
    """Which pairs of which rankings: ``noise`` is 0 (none), 1 (logistic) or 2 (Gumbel).

    With ``average`` ties have the mean weight over their orderings, with ``shuffle`` random
    orderings. A weight is ``rho`` times the change plus ``mu`` times that of the distance; with
    ``norm`` it is divided by 0.01 plus the difference of scores. ``norm`` and ``like`` set the size
    of the step of a query.
    """

    truncation: int
    neighbours: bool
    average: bool
    shuffle: bool
    noise: int
    temperature: float
    draws: int
    seed: np.uint64
    rho: float
    mu: float
    norm: bool
    like: bool


class SwapWork(NamedTuple):
    """Queries, the rule of their pairs, the rankings of a span of them, and room for one."""

    queries: SwapQueries
    rule: SwapRule
    ranked: Rankings
    buffers: SwapBuffers


phi: ScalarSlot
"""Loss of a margin: ``phi(z, *params)``."""

outer: ScalarSlot
"""Outer function of a useless item's mean loss in a push: ``outer(x, *params)``."""

term: ScalarSlot
"""Loss of one item with score s and utility v: ``term(s, v, eta, *params)``."""

query: Callable[..., float]
"""Loss of one query: ``query(labels, scores, at, grad, hess, *params)`` adds to grad and hess."""

closed_pairs: Callable[[FloatArray, FloatArray, Params, float, Out], float]
"""All pairs of a query by scores and utilities, a bend as in `Engines`; NaN when it declines."""

closed_levels: Callable[[FloatArray, FloatArray, Level, Params, float, Out], float]
"""Pairs of different level, by scores and weights; NaN when it declines."""
