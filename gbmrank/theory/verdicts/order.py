"""Which expected utility the minimiser of an objective sorts, derived from its parts.

A loss is order-preserving with respect to u when, for every distribution of labels, scores
that are not sorted like ``E u`` cost more than the infimum by a fixed amount. Proofs of
the rules below, where the papers have none:

* *items*: with ``l1`` and ``l-1`` differentiable, the derivative of the conditional risk is
  ``(l-1' - l1')(q(s) - q)``. When the first factor is positive and q(s) is continuous, does
  not decrease and reaches from 0 to 1, the minimisers for different q are separated.
* *pairs, convex*: for ``U_i > U_j`` a swap of ``s_i < s_j`` gains, and a tie can be improved
  because ``phi'(0) < 0``; convexity keeps items with positive U together, so a limit exists.
* *pairs, link sigmoid(a d)*: every pair is minimised at ``log(U_i / U_j) / a``, so all agree.
* *pairs, parabola*: the minimiser is ``1 - (2V - T) / (n U_i + V)``, increasing in U_i.
* *sums*: swaps and ties argue for sums of such losses too. With bounded curvature the gain
  at a tie is bounded below wherever the other scores are, so no limit is needed.

Two utilities ask for the same order when they sort every expectation alike: they are compared as
functions, on many label vectors of several lengths, and u and u' do when ``u'(y) = a u(y) + b(y)``
with a > 0 that depends on the number of items at most. A label vector on which one of them is
undefined carries no information and counts as zeros.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from gbmrank.data.queries import Groups, RankingData
from gbmrank.losses.convex import (
    AbstractGenerator,
    BinaryEntropy,
    ItakuraSaito,
    Poisson,
    Softmax,
    SoftmaxCE,
    SquaredGenerator,
)
from gbmrank.losses.utilities import AbstractUtility, NetDegreeUtility, query_sums
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.base import Mix
from gbmrank.objectives.bregman import Bregman
from gbmrank.objectives.pairwise import Pairwise, QueryRMSE
from gbmrank.objectives.pointwise import Pointwise, with_options
from gbmrank.objectives.value_linear import Linear
from gbmrank.theory.shapes import item_shape, pair_shape
from gbmrank.theory.verdicts.verdict import Constant
from gbmrank.types import FloatArray

__all__ = [
    "DOMAINS",
    "Alike",
    "Domain",
    "Preserved",
    "disagreement",
    "label_vectors",
    "preserved_order",
    "ratio",
    "sorts_alike",
    "utility_bound",
]

Utilities = Callable[[RankingData], FloatArray]
_TOLERANCE = 1e-9
_SHORT = (2, 3, 4, 5)
_THEOREM = "Calauzenes et al. 2013, Thm 3.2"


@final
@dataclass(frozen=True, slots=True)
class Preserved:
    """The order an objective preserves."""

    utilities: Utilities  # minimisers are sorted like its expectation
    constant: Constant | None  # of the regret bound
    reference: str
    bounded_curvature: bool = False  # of the second derivatives along a swap


def preserved_order(objective: AbstractObjective) -> Preserved | None:
    """Return what an objective is order-preserving for, or None when nothing is proven."""
    if isinstance(objective, Pointwise):
        return _pointwise(objective)
    if isinstance(objective, Pairwise):
        return _pairwise(objective)
    if isinstance(objective, QueryRMSE):  # that of pointwise, at scores with another shift
        constant = Constant("sqrt(2)", math.sqrt(2.0))
        return Preserved(objective.target.values, constant, f"{_THEOREM}, Table 2", True)
    if isinstance(objective, Bregman):
        return _bregman(objective)
    if isinstance(objective, Linear):
        return _linear(objective)
    return _mix(objective) if isinstance(objective, Mix) else None


def utility_bound(objective: AbstractObjective, n: int) -> float | None:
    """Return the bound of an objective's utilities in queries of n items, if it is known."""
    eta = getattr(objective, "eta", None)
    if eta is not None:
        return float(eta)
    target = getattr(objective, "target", None)
    if target is None:
        return None
    options = (getattr(objective, "max_grade", None), getattr(objective, "threshold", None))
    bounds = with_options(target, *options).upper_bounds(np.array([n]))
    return None if bounds is None else float(bounds[0])


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
    """Whether two utilities ask for the same order."""

    alike: bool  # on the widest domain that both take
    domain: Domain | None  # that domain, if there is one
    on_binary: bool  # whether they do on 0/1 labels
    up_to: int | None  # longest query up to which they do, when they do not beyond it


def sorts_alike(first: Utilities, second: Utilities, cut_offs: tuple[int, ...] = ()) -> Alike:
    """Compare two utilities, at lengths on both sides of each cut-off that occurs in them."""
    lengths = _lengths(cut_offs)
    domain = next((each for each in DOMAINS if _both_take(first, second, each)), None)
    if domain is None:
        return Alike(False, None, False, None)
    same = {n: ratio(first, second, domain, n) is not None for n in lengths}
    if all(same.values()):
        return Alike(True, domain, True, None)
    binary = DOMAINS[-1]
    on_binary = domain is not binary and all(
        ratio(first, second, binary, n) is not None for n in lengths
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


def _pointwise(objective: Pointwise) -> Preserved | None:
    target = with_options(objective.target, objective.max_grade, objective.threshold)
    if objective.loss.pair_form == "difference":
        constant = Constant("sqrt(2)", math.sqrt(2.0))
        return Preserved(target.values, constant, f"{_THEOREM}, Table 2", True)
    shape = item_shape(objective.loss)
    if not (objective.loss.differentiable and shape.proper):
        return None
    factor = 2.0 / math.sqrt(shape.least_weight)
    bounded = _bounded(target, objective.eta)
    constant = Constant(f"{_number(factor)}sqrt(eta)", factor, 0.5, "eta")
    reference = f"{_THEOREM} and 5.3; Menon and Williamson 2014"
    known = factor < 1e3  # a weight that vanishes somewhere has no such bound
    return Preserved(bounded, constant if known else None, reference, shape.bounded_curvature)


def _pairwise(objective: Pairwise) -> Preserved | None:
    values = objective.target.values
    if objective.loss.pair_form == "difference":
        return Preserved(values, Constant("1", 1.0), f"{_THEOREM}, Table 2", True)
    if not objective.loss.differentiable:
        return None
    shape = pair_shape(objective.loss)
    monotone = shape.convex and shape.decreasing and shape.bounded_below and shape.slope < 0
    parabola = shape.quadratic and shape.slope < 0
    if not (monotone or parabola or shape.rate is not None):
        return None
    constant = None
    if shape.rate is not None and 0 < shape.least_weight < math.inf:
        factor = 4.0 / math.sqrt(shape.least_weight)
        constant = Constant(f"{_number(factor)}sqrt(max U)", factor, 0.5, "largest")
    reference = f"{_THEOREM} and sec. 3.1"
    return Preserved(_not_negative(values), constant, reference, shape.bounded_curvature)


def _bregman(objective: Bregman) -> Preserved | None:
    target = with_options(objective.target, objective.max_grade, objective.threshold)
    values: Utilities = target.values
    if isinstance(objective.loss, Softmax):
        values = _shares_of(_not_negative(values))
    elif isinstance(objective.loss, BinaryEntropy):
        values = _bounded(target, objective.eta)
    elif not isinstance(objective.loss, SquaredGenerator):
        values = _not_negative(values)
    constant = _generator_constant(objective.loss)
    if constant is None:
        return None
    smooth = isinstance(objective.loss, SquaredGenerator | Softmax | SoftmaxCE | BinaryEntropy)
    return Preserved(values, constant, f"{_THEOREM} and 5.3", smooth)


def _generator_constant(generator: AbstractGenerator) -> Constant | None:
    if isinstance(generator, SquaredGenerator | Softmax):
        return Constant("sqrt(2)", math.sqrt(2.0))
    if isinstance(generator, SoftmaxCE):
        return Constant("sqrt(2 sum U)", math.sqrt(2.0), 0.5, "sum")
    if isinstance(generator, Poisson):
        return Constant("2 sqrt(max U)", 2.0, 0.5, "largest")
    if isinstance(generator, BinaryEntropy):
        return Constant("sqrt(eta)", 1.0, 0.5, "eta")
    if isinstance(generator, ItakuraSaito):
        return Constant("2 (max U + eps)", 2.0, 1.0, "largest")
    return None


def _linear(objective: Linear) -> Preserved | None:
    if getattr(objective, "preferences", None) is not None:
        return None
    reference = "Duchi et al. 2010, Thm 13 and Cor. 15; Calauzenes et al. 2013, Thm 3.2"
    return Preserved(NetDegreeUtility().values, None, reference, objective.regulariser.even)


def _mix(objective: Mix) -> Preserved | None:
    parts = [preserved_order(part) for part in objective.parts]
    first = parts[0]
    for part in parts:
        if first is None or part is None or not part.bounded_curvature:
            return None
        if not sorts_alike(first.utilities, part.utilities).alike:
            return None
    assert first is not None  # noqa: S101  (a mix has at least one part)
    return Preserved(first.utilities, None, f"{_THEOREM}, for sums of losses", True)


def _number(factor: float) -> str:
    return "" if abs(factor - 1.0) < 1e-9 else f"{factor:.5g} "


def _shares_of(values: Utilities) -> Utilities:
    def shares(data: RankingData) -> FloatArray:
        utilities = np.nan_to_num(values(data), nan=0.0)
        totals = query_sums(utilities, data.groups)
        return utilities / data.groups.spread(np.where(totals > 0, totals, np.nan))

    return shares


def _not_negative(values: Utilities) -> Utilities:
    """Reject labels that the objective would reject, so that they are not compared on."""

    def checked(data: RankingData) -> FloatArray:
        utilities = values(data)
        if np.any(utilities < 0):
            raise ValueError("utilities of this objective are not negative")
        return utilities

    return checked


def _bounded(target: AbstractUtility, eta: float | None) -> Utilities:
    def checked(data: RankingData) -> FloatArray:
        utilities = target.values(data)
        bounds = target.upper_bounds(data.groups.sizes)
        bounds = np.full(data.groups.n_queries, np.inf) if bounds is None else bounds
        limit = data.groups.spread(bounds if eta is None else np.full(len(bounds), eta))
        if np.any(utilities < 0) or np.any(utilities > limit * (1.0 + 1e-12)):
            raise ValueError("utilities of this objective lie between 0 and eta")
        return utilities

    return checked
