"""The best orders of a metric on a distribution, in few tiers where ranks are worth the same."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import final

import numpy as np

from gbmrank.metrics import AbstractMetric
from gbmrank.theory.distributions import Distribution
from gbmrank.theory.minimise import Tiers
from gbmrank.theory.views import view
from gbmrank.types import FloatArray

__all__ = ["BestTiers", "best_tiers", "grouped"]

_ENUMERATED = 5  # items; beyond, positional metrics are sorted
_MOST = 24


@final
@dataclass(frozen=True, slots=True)
class BestTiers:
    """The best value and every order that reaches it.

    Parameters
    ----------
    value : float
        Expected value of the best orders.
    order : tuple of int
        One of them, best item first.
    tiers : tuple of Tiers
        All of them; None when there are too many to go through.
    """

    value: float
    order: tuple[int, ...]
    tiers: tuple[Tiers, ...] | None


def best_tiers(distribution: Distribution, measure: AbstractMetric) -> BestTiers:
    """Return the best orders: enumerated for few items, else sorted by expected utility.

    Parameters
    ----------
    distribution : Distribution
        Labels of one query.
    measure : AbstractMetric
        The metric.

    Examples
    --------
    >>> from gbmrank.theory.parts import as_metric
    >>> relevant = Distribution([[1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0]], [0.6, 0.4])
    >>> best_tiers(relevant, as_metric("precision@3")).tiers
    (((0, 1, 2), (3, 4, 5)),)
    """
    if distribution.n_items > _ENUMERATED:
        found = _sorted(distribution, measure)
        if found is not None:
            return found
    best = distribution.best(measure)
    return BestTiers(best.value, best.orders[0], grouped(best.orders))


def grouped(orders: tuple[tuple[int, ...], ...]) -> tuple[Tiers, ...] | None:
    """Join orders that differ in how they arrange their first or last items only.

    Examples
    --------
    >>> grouped(((0, 1, 2), (0, 2, 1)))
    (((0,), (1,), (2,)), ((0,), (2,), (1,)))
    >>> from itertools import permutations
    >>> grouped(tuple((*a, *b) for a in permutations(range(4)) for b in ((4, 5), (5, 4))))
    (((0, 1, 2, 3), (4, 5)),)
    """
    if len(orders) <= _MOST:
        return tuple(tuple((i,) for i in order) for order in orders)
    n = len(orders[0])
    head = next(size for size in range(n, 0, -1) if _closed(orders, size, first=True))
    tail = next(size for size in range(n - head, -1, -1) if _closed(orders, size, first=False))
    kinds = {_cut(order, head, tail) for order in orders}
    return tuple(sorted(kinds)) if len(kinds) <= _MOST else None


def _closed(orders: tuple[tuple[int, ...], ...], size: int, *, first: bool) -> bool:
    """Whether every arrangement of the first (or last) items is there with each order."""
    n = len(orders[0])
    at = size if first else n - size
    counts = Counter(
        (frozenset(order[:at]), order[at:]) if first else (order[:at], frozenset(order[at:]))
        for order in orders
    )
    return all(count == math.factorial(size) for count in counts.values())


def _cut(order: tuple[int, ...], head: int, tail: int) -> Tiers:
    end = len(order) - tail
    middle = tuple((i,) for i in order[head:end])
    last = (tuple(sorted(order[end:])),) if tail else ()
    return (tuple(sorted(order[:head])), *middle, *last)


def _sorted(distribution: Distribution, measure: AbstractMetric) -> BestTiers | None:
    """Sort the expected utilities; None where they tie, or ranks do in the middle."""
    seen = view(measure)
    if seen is None or distribution.labels.ndim != 2:
        return None
    n = distribution.n_items
    utilities, phi = distribution.expected_utilities(measure), seen.discounts(n)
    order = np.argsort(-utilities, kind="stable")
    edges = np.flatnonzero(np.diff(phi) != 0.0)
    sizes = np.diff([0, *(edges + 1), n])
    if len(sizes) < 2 or np.any(sizes[1:-1] > 1) or not _apart(utilities[order], edges):
        return None
    chosen = tuple(int(i) for i in order)
    tiers = _cut(chosen, int(sizes[0]), int(sizes[-1]))
    return BestTiers(distribution.value(measure, _ranked(order)), chosen, (tiers,))


def _apart(falling: FloatArray, edges: np.ndarray) -> bool:
    scale = float(np.abs(falling).max())
    return bool(np.all(falling[edges] - falling[edges + 1] > 1e-9 * scale))


def _ranked(order: np.ndarray) -> FloatArray:
    scores = np.empty(len(order))
    scores[order] = -np.arange(len(order), dtype=np.float64)
    return scores
