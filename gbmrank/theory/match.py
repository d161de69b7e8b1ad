"""Do two utilities always ask for the same order? And if not, a distribution that shows it.

Utilities are compared as functions, on many label vectors of several lengths: u and u'
sort every expectation alike when ``u'(y) = a u(y) + b(y)`` with a > 0 that depends on the
number of items at most. A label vector on which one of them is undefined carries no
information and counts as zeros.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from gbmrank.data import Groups, RankingData
from gbmrank.types import FloatArray

__all__ = ["DOMAINS", "Alike", "Domain", "disagreement", "label_vectors", "ratio", "sorts_alike"]

Utilities = Callable[[RankingData], FloatArray]
_TOLERANCE = 1e-9
_SHORT = (2, 3, 4, 5)


@final
@dataclass(frozen=True, slots=True)
class Domain:
    """Labels that both sides take."""

    words: str
    grades: tuple[float, ...]


DOMAINS = (
    Domain("graded labels", (0.0, 1.0, 2.0, 3.0, 4.0)),
    Domain("labels between 0 and 1", (0.0, 0.25, 0.5, 0.75, 1.0)),
    Domain("0/1 labels", (0.0, 1.0)),
)
"""From the widest to the narrowest."""


@final
@dataclass(frozen=True, slots=True)
class Alike:
    """Whether two utilities ask for the same order.

    Parameters
    ----------
    alike : bool
        On the widest domain that both take.
    domain : Domain or None
        That domain; None when there is none.
    on_binary : bool
        Whether they do on 0/1 labels.
    up_to : int or None
        Longest query up to which they do, when they do not beyond it.
    """

    alike: bool
    domain: Domain | None
    on_binary: bool
    up_to: int | None


def sorts_alike(first: Utilities, second: Utilities, cut_offs: tuple[int, ...] = ()) -> Alike:
    """Compare two utilities.

    Parameters
    ----------
    first, second : callable
        ``RankingData -> u`` for every row.
    cut_offs : tuple of int
        Cut-offs that occur in them; lengths on both sides of each are looked at.
    """
    lengths = _lengths(cut_offs)
    domain = next((each for each in DOMAINS if _both_take(first, second, each)), None)
    if domain is None:
        return Alike(False, None, False, None)
    same = {n: _proportional(first, second, domain, n) for n in lengths}
    if all(same.values()):
        return Alike(True, domain, True, None)
    binary = DOMAINS[-1]
    on_binary = domain is not binary and all(
        _proportional(first, second, binary, n) for n in lengths
    )
    failing = min(n for n in lengths if not same[n])
    below = [n for n in lengths if n < failing]
    up_to = max(below) if below and failing > max(_SHORT[-1], min(cut_offs, default=0)) else None
    return Alike(False, domain, on_binary, up_to)


def disagreement(
    first: Utilities, second: Utilities, domain: Domain, n: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield distributions on two label vectors that the utilities order differently.

    For a pair of items whose order depends on the label vector, the two utilities change
    their minds at different mixing probabilities; half-way between, they disagree.

    Yields
    ------
    labels : array of shape (2, n)
        The label vectors.
    probabilities : array of shape (2,)
        Their probabilities.
    """
    vectors = label_vectors(domain, n, 60)
    u, v = _table(first, vectors), _table(second, vectors)
    found = []
    for i, j in itertools.combinations(range(min(n, 6)), 2):
        gap_u, gap_v = u[:, i] - u[:, j], v[:, i] - v[:, j]
        for a, b in itertools.product(np.flatnonzero(gap_u > 0), np.flatnonzero(gap_u < 0)):
            p_u = -gap_u[b] / (gap_u[a] - gap_u[b])
            if gap_v[a] <= 0 or gap_v[b] >= 0:
                p_v = 1.0 if gap_v[a] <= 0 else 0.0
            else:
                p_v = -gap_v[b] / (gap_v[a] - gap_v[b])
            found.append((abs(p_u - p_v), a, b, 0.5 * (p_u + p_v)))
    found.sort(key=lambda entry: (-round(entry[0], 9), entry[1], entry[2]))
    for distance, a, b, p in found[:200]:
        if distance > 1e-6:
            yield vectors[[a, b]], np.array([p, 1.0 - p])


def label_vectors(domain: Domain, n: int, count: int = 80) -> FloatArray:
    """Return label vectors of n items: all of them when there are few, else a sample."""
    count = max(min(count, 400_000 // n), 4)
    if n <= 8 and len(domain.grades) ** n <= count:
        return np.array(list(itertools.product(domain.grades, repeat=n)))
    rng = np.random.default_rng([n, len(domain.grades)])
    density = rng.random((count, 1))
    density[:2] = 1.0  # no item without a gain: cut-offs of ideals show at the next length
    drawn = rng.choice(np.array(domain.grades[1:]), size=(count, n))
    vectors = np.where(rng.random((count, n)) < density, drawn, domain.grades[0])
    ones = np.unique([*np.linspace(1, n, min(n, count // 2, 24)).astype(np.int64), n - 2, n - 1])
    steps = np.where(np.arange(n)[None, :] < ones[:, None], domain.grades[-1], 0.0)
    return np.unique(np.concatenate([vectors, steps, steps[:, ::-1]]), axis=0)


def _lengths(cut_offs: tuple[int, ...]) -> tuple[int, ...]:
    around = {n for k in cut_offs for n in (k, k + 1, k + 2) if n >= 2}
    return tuple(sorted({*_SHORT, 8, *around}))


def _both_take(first: Utilities, second: Utilities, domain: Domain) -> bool:
    vectors = label_vectors(domain, 3)
    for utilities in (first, second):
        try:
            _table(utilities, vectors)
        except ValueError:  # DataError is one
            return False
    return True


def _table(utilities: Utilities, vectors: FloatArray) -> FloatArray:
    """Return u of each label vector, centred; zeros where undefined."""
    count, n = vectors.shape
    groups = Groups(np.arange(0, count * n + 1, n, dtype=np.int64))
    values = utilities(RankingData(vectors.ravel().copy(), groups)).reshape(count, n)
    values = np.where(np.isnan(values).any(axis=1, keepdims=True), 0.0, values)
    return values - values.mean(axis=1, keepdims=True)


def _proportional(first: Utilities, second: Utilities, domain: Domain, n: int) -> bool:
    return ratio(first, second, domain, n) is not None


def ratio(first: Utilities, second: Utilities, domain: Domain, n: int) -> float | None:
    """Return a > 0 with ``second = a first + b(y)`` for queries of n items; None without one."""
    vectors = label_vectors(domain, n)
    u, v = _table(first, vectors), _table(second, vectors)
    size_u, size_v = float(np.sqrt(np.sum(u * u))), float(np.sqrt(np.sum(v * v)))
    if size_u <= _TOLERANCE or size_v <= _TOLERANCE:
        return 1.0 if size_u <= _TOLERANCE and size_v <= _TOLERANCE else None
    u, v = u / size_u, v / size_v
    alike = np.sum(u * v) > 0.5 and np.abs(u - v).max() <= _TOLERANCE * np.abs(u).max()
    return size_v / size_u if alike else None
