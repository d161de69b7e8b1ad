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
* *pairs, parabola*: with V the sum of U and scores that sum to 0, the minimiser is
  ``s_i = 1 - V / ((1 - A) (n U_i + V))`` with ``A = sum_j U_j / (n U_j + V)``, and A is at most
  1/2 because ``x / (n x + V)`` is concave; so s_i increases with U_i.
* *softmax of log-probabilities* (``sigmoid_softmax``): with V the sum of U, the risk is V times
  the cross-entropy of ``U / V`` and the shares q of ``sigmoid(s)``, and q sorts like s. It is
  lower semicontinuous on a compact set, so the least risk with ``q_i <= q_j`` is attained; it is
  not the least of all, as a swap gains where ``q_i < q_j`` and moving apart gains at a tie.
* *softmax with an anchor*: the risk is ``(V + anchor) log Z - <U, s>``; a swap of ``s_i < s_j``
  gains ``(U_i - U_j) (s_j - s_i)``, and moving apart gains at a rate of at least ``U_i - U_j``.
* *sums* of such losses for utilities that sort alike, parabolas of pairs excepted: a swap of
  ``s_i < s_j`` loses in no part. Where they are apart by d or more it gains at least
  ``(U_i - U_j) (phi(-d) - phi(d))`` (or as much in the loss of items); nearer than that, moving
  them apart gains at a rate of at least a constant, as curvatures are bounded. So there is a gap
  for every distribution, and no limit is needed. ``sigmoid_softmax`` alone has no such rate,
  since probabilities near 1 hardly move, but neither step loses: for scores d apart the rate is
  at most ``(1 - p_i) (d V - (U_i - U_j))``. A sum of several of them is a function of q again.

Whether two utilities give the same order is derived from their forms
(:mod:`gbmrank.theory.verdicts.forms`). :func:`disagreements` searches numerically for distributions
on which they differ: it can refute, but not confirm.
"""

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, final

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.data.query_order import query_sums
from gbmrank.errors import DataError
from gbmrank.losses import AbstractLoss
from gbmrank.losses.convex import (
    BUILTIN_GENERATORS,
    BUILTIN_REGULARISERS,
    AbstractGenerator,
    AbstractRegulariser,
    BinaryEntropy,
    ItakuraSaito,
    Poisson,
    Softmax,
    SoftmaxCE,
    SquaredGenerator,
)
from gbmrank.losses.utilities import AbstractUtility, Form, IdentityUtility, NetDegreeUtility
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.base import Mix
from gbmrank.objectives.bregman import Bregman
from gbmrank.objectives.calibrated import CalibratedSoftmax, SigmoidSoftmax
from gbmrank.objectives.pairwise import Pairwise, QueryRMSE
from gbmrank.objectives.pointwise import Pointwise, with_options
from gbmrank.objectives.value_linear import Linear
from gbmrank.theory.distributions import repeated
from gbmrank.theory.shapes import generates, item_shape, pair_shape, rises_without_jumps
from gbmrank.theory.verdicts.forms import SIGNS, Labels, alike, bounded, common, legal, shares
from gbmrank.theory.verdicts.verdict import Assumed, Constant, LabelsUpTo
from gbmrank.types import FloatArray

Utilities = Callable[[RankingData], FloatArray]
_THEOREM = "Calauzenes et al. 2013, Thm 3.2"
_PARABOLA = "closed-form minimiser of the parabola over pairs (gbmrank.theory.verdicts.order)"
_SHARES = "cross-entropy of shares of probabilities (gbmrank.theory.verdicts.order)"
_ANCHORED = "softmax with an anchor (gbmrank.theory.verdicts.order)"
_EACH = 40  # candidates of one length
_ROOT_2 = Constant("sqrt(2)", math.sqrt(2.0))


@final
@dataclass(frozen=True, slots=True)
class Preserved:
    """The order an objective preserves."""

    form: Form  # minimisers are sorted like the expectation of this
    labels: tuple[Labels, ...]  # supported by the objective, or a superset of these
    utilities: Utilities  # computes them, and rejects labels that the objective rejects
    constant: Constant | None  # constant of the regret bound
    reference: str
    in_sums: bool = False  # whether sums with other such losses preserve the order
    up_to: int | None = None  # longest list, if a sum agrees on short ones only
    assumed: tuple[Assumed, ...] = ()  # properties that no proof covers


def preserved_order(objective: AbstractObjective) -> Preserved | None:
    """Return the utility whose order an objective preserves, or None if nothing is proven."""
    rule = _RULES.get(type(objective))
    return None if rule is None else rule(objective)


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


def largest_label(objective: Any) -> LabelsUpTo | None:
    """Return the condition under which the utilities are below their bound, if there is one."""
    target = with_options(objective.target, getattr(objective, "max_grade", None), None)
    table = isinstance(getattr(target, "gain", None), tuple)
    grade = None if table else getattr(target, "max_grade", None)
    return None if grade is None else LabelsUpTo(grade)


def disagreements(
    first: Utilities, second: Utilities, grades: tuple[float, ...], n: int, top: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield distributions of n labels that two utilities may order differently.

    For a pair of items whose order depends on the label vector, the two utilities switch the
    order at different mixing probabilities; half-way between, they disagree. The pair should be
    at the ranks ``top`` and ``top + 1``, so a third label vector may lift ``top - 1`` other
    items.
    """
    vectors, u, v = _defined(first, second, _vectors(grades, n, top))
    if not len(vectors):
        return
    gap_u, gap_v = u[:, 0] - u[:, 1], v[:, 0] - v[:, 1]
    found = []
    for a, b in itertools.product(np.flatnonzero(gap_u > 0), np.flatnonzero(gap_u < 0)):
        p_u = -gap_u[b] / (gap_u[a] - gap_u[b])
        if gap_v[a] <= 0 or gap_v[b] >= 0:
            p_v = 1.0 if gap_v[a] <= 0 else 0.0
        else:
            p_v = -gap_v[b] / (gap_v[a] - gap_v[b])
        found.append((abs(p_u - p_v), a, b, 0.5 * (p_u + p_v)))
    found.sort(key=lambda entry: (-round(entry[0], 9), entry[1], entry[2]))
    best = vectors[int(np.argmax(v.max(axis=1)))].max()
    lift = np.full(n, vectors[0].min())
    lift[2 : top + 1] = best
    for distance, a, b, p in found[:_EACH]:
        if distance > 1e-6:
            yield vectors[[a, b]], np.array([p, 1.0 - p])
            yield np.array([vectors[a], vectors[b], lift]), np.array([p, 1.0 - p, 1.0])


def ratio(first: Utilities, second: Utilities, grades: tuple[float, ...], n: int) -> float | None:
    """Return the a of ``second = a first + b(y)``, known to exist, for queries of n items."""
    for high, low in itertools.permutations(grades, 2):
        vector = np.full((1, n), low)
        vector[0, 0] = high
        _, u, v = _defined(first, second, vector)
        if len(u) and u[0, 0] != u[0, 1] and v[0, 0] != v[0, 1]:
            return float((v[0, 0] - v[0, 1]) / (u[0, 0] - u[0, 1]))
    return None


def same_order(first: Utilities, second: Utilities, where: Any) -> bool:
    """Whether ``second = a(n) first + b(y)`` on the label vectors of data or a distribution."""
    labels = np.asarray(where.labels, dtype=np.float64)
    data = isinstance(where, RankingData)
    vectors = np.split(labels, where.groups.offsets[1:-1]) if data else list(labels)
    by_length: dict[int, list[FloatArray]] = {}
    for vector in vectors:
        by_length.setdefault(len(vector), []).append(vector)
    for rows in by_length.values():
        u, v = (utility_rows(np.array(rows), each) for each in (first, second))
        u, v = u - u.mean(axis=1, keepdims=True), v - v.mean(axis=1, keepdims=True)
        factor = float(np.sqrt(np.sum(v * v) / max(np.sum(u * u), 1e-300)))
        if np.sum(u * v) < 0 or np.abs(v - factor * u).max() > 1e-9 * np.abs(v).max():
            return False
    return True


def utility_rows(vectors: FloatArray, utilities: Utilities) -> FloatArray:
    """Return u of each label vector; zeros where undefined. ValueError for illegal labels."""
    values = utilities(repeated(vectors)).reshape(vectors.shape)
    return np.where(np.isnan(values).any(axis=1, keepdims=True), 0.0, values)


def _vectors(grades: tuple[float, ...], n: int, top: int) -> FloatArray:
    """Return label vectors: all of two or three items, the others low, high or in between."""
    free, low, high = (3 if n > 2 and len(grades) <= 5 else 2), min(grades), max(grades)
    rows = []
    for few in itertools.product(grades, repeat=free):
        rows.append([*few, *[high] * (top - 1), *[low] * n][:n])
        rows.append([*few, *[low] * n][:n])
    counts = sorted({*range(min(n - 1, 4)), (n - 2) // 2, *range(max(n - 5, 0), n - 1)})
    for m in counts:
        for pair in itertools.permutations({low, high, grades[len(grades) // 2]}, 2):
            rows.append([*pair, *[high] * m, *[low] * (n - 2 - m)])
    return np.unique(np.array(rows, dtype=np.float64), axis=0)


def _defined(
    first: Utilities, second: Utilities, vectors: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the label vectors that both support, with both utilities."""
    try:
        return vectors, utility_rows(vectors, first), utility_rows(vectors, second)
    except ValueError:  # DataError is one
        pass
    kept = []
    for vector in vectors:
        with contextlib.suppress(ValueError):
            u, v = (utility_rows(vector[None], each)[0] for each in (first, second))
            kept.append((vector, u, v))
    found = np.array(kept).reshape(-1, 3, vectors.shape[1])
    return found[:, 0], found[:, 1], found[:, 2]


def _pointwise(objective: Pointwise) -> Preserved | None:
    target = with_options(objective.target, objective.max_grade, objective.threshold)
    if objective.loss.pair_form == "difference":
        return _squares(target, _ROOT_2)
    shape = item_shape(objective.loss)
    if not shape.proper:
        return None
    factor = 2.0 / math.sqrt(max(shape.least_weight, 1e-300))
    known = shape.proven and factor < 1e3  # there is no such bound if the weight vanishes
    constant = Constant(f"{_number(factor)}sqrt(eta)", factor, 0.5, "eta")
    assumed = Assumed(f"the loss {objective.loss.name} is strictly proper")
    return Preserved(
        target.form,
        _up_to_eta(target, objective.eta),
        _bounded(target, objective.eta),
        constant if known else None,
        f"{_THEOREM} and 5.3; Menon and Williamson 2014",
        shape.bounded_curvature and objective.loss.convex,
        assumed=() if shape.proven else (assumed,),
    )


def _pairwise(objective: Pairwise) -> Preserved | None:
    form, values = objective.target.form, objective.target.values
    if objective.loss.pair_form == "difference":
        return _squares(objective.target, Constant("1", 1.0))
    shape = pair_shape(objective.loss)
    monotone = shape.convex and shape.falls
    parabola = shape.quadratic and shape.slope < 0 and shape.differentiable
    linked = shape.rate is not None and shape.falls
    if not (monotone or parabola or linked):
        return None
    constant = None
    if shape.proven and shape.rate is not None and 0 < shape.least_weight < math.inf:
        factor = 4.0 / math.sqrt(shape.least_weight)
        constant = Constant(f"{_number(factor)}sqrt(max U)", factor, 0.5, "largest")
    return Preserved(
        form,
        tuple(bounded(form, each) for each in legal(form)),
        _not_negative(values),
        constant,
        _PARABOLA if parabola else f"{_THEOREM} and sec. 3.1",
        shape.bounded_curvature and not parabola,
        assumed=() if shape.proven else (assumed_of(objective.loss, convex=monotone),),
    )


def assumed_of(loss: AbstractLoss, *, convex: bool = True) -> Assumed:
    """Return the assumption about a loss of pairs that was only tested on a grid."""
    shape = "convex, without a kink" if convex else "of a link sigmoid(a d)"
    return Assumed(
        f"the loss {loss.name} is {shape}, nowhere rising and bounded below at every margin"
    )


def _squares(target: AbstractUtility, constant: Constant) -> Preserved:
    labels, reference = legal(target.form), f"{_THEOREM}, Table 2"
    return Preserved(target.form, labels, target.values, constant, reference, True)


def _softmax(objective: SigmoidSoftmax | CalibratedSoftmax) -> Preserved:
    form, anchored = objective.target.form, isinstance(objective, CalibratedSoftmax)
    labels = tuple(bounded(form, each) for each in legal(form))
    values = _not_negative(objective.target.values)
    constant = None if anchored else _generator_constant(SoftmaxCE())
    return Preserved(form, labels, values, constant, _ANCHORED if anchored else _SHARES, True)


def _bregman(objective: Bregman) -> Preserved | None:
    target = with_options(objective.target, objective.max_grade, objective.threshold)
    constant = _generator_constant(objective.loss)
    assumed: tuple[Assumed, ...] = ()
    if type(objective.loss) not in BUILTIN_GENERATORS:
        if not generates(objective.loss, utility_bound(objective, 2)):
            return None
        name = objective.loss.name
        words = f"the slope of the generator {name} is h(s) (g(s) - v), h > 0, with g increasing"
        if objective.loss.of_query is not None:
            words = f"{name} is a Bregman divergence whose best scores are sorted like utilities"
        assumed = () if objective.loss.proven else (Assumed(words),)
    form = target.form
    values: Utilities = target.values
    labels = tuple(bounded(form, each) for each in legal(form))
    if isinstance(objective.loss, Softmax):
        form, values = shares(form), _shares_of(_not_negative(values))
    elif isinstance(objective.loss, BinaryEntropy):
        labels, values = _up_to_eta(target, objective.eta), _bounded(target, objective.eta)
    elif isinstance(objective.loss, SquaredGenerator):
        labels = legal(form)
    else:
        values = _not_negative(values)
    smooth = isinstance(objective.loss, SquaredGenerator | Softmax | SoftmaxCE | BinaryEntropy)
    reference = f"{_THEOREM} and 5.3"
    return Preserved(form, labels, values, constant, reference, smooth, assumed=assumed)


def _generator_constant(generator: AbstractGenerator) -> Constant | None:
    """Return that of Thm 5.3 for a strongly convex psi, or one of Thm 5.2."""
    if generator.mu is not None:
        factor = 2.0 / math.sqrt(generator.mu)
        return Constant("sqrt(2)" if generator.mu == 2.0 else f"{factor:.5g}", factor)
    return _CONSTANTS.get(type(generator))


_CONSTANTS: Mapping[type[AbstractGenerator], Constant] = MappingProxyType(
    {
        SoftmaxCE: Constant("sqrt(2 sum U)", math.sqrt(2.0), 0.5, "sum"),
        Poisson: Constant("2 sqrt(max U)", 2.0, 0.5, "largest"),
        BinaryEntropy: Constant("sqrt(eta)", 1.0, 0.5, "eta"),
        ItakuraSaito: Constant("2 (max U + eps)", 2.0, 1.0, "largest"),
    }
)


def _linear(objective: Linear) -> Preserved | None:
    if getattr(objective, "preferences", None) is not None:
        return None
    target, part = NetDegreeUtility(), objective.regulariser
    reference = f"Duchi et al. 2010, Thm 13 and Cor. 15; {_THEOREM}"
    assumed, labels = assumed_of_regulariser(part), legal(target.form)
    return Preserved(
        target.form, labels, target.values, None, reference, part.even, assumed=assumed
    )


def assumed_of_regulariser(regulariser: AbstractRegulariser) -> tuple[Assumed, ...]:
    """Return the assumption about a regulariser of your own, with the test that it passes."""
    if type(regulariser) in BUILTIN_REGULARISERS:
        return ()
    smooth = rises_without_jumps(regulariser)
    words = f"the regulariser {regulariser.name} is strictly convex, without a kink"
    return (Assumed(words, lambda _: smooth),)


def _mix(objective: Mix) -> Preserved | None:
    parts = [part for part in map(preserved_order, objective.parts) if part is not None]
    if len(parts) < len(objective.parts):
        return None
    first = joined = parts[0]
    if len(parts) == 1:
        return replace(first, constant=None)
    for part in parts[1:]:
        labels = common(joined.labels, part.labels)
        found = [alike(first.form, part.form, each) for each in labels]
        if not found or any(not one.holds and one.up_to is None for one in found):
            return None
        limits = [one.up_to for one in found if one.up_to is not None]
        limits += [k for k in (joined.up_to, part.up_to) if k is not None]
        assumed = tuple(dict.fromkeys(joined.assumed + part.assumed))
        joined = replace(joined, labels=labels, up_to=min(limits, default=None), assumed=assumed)
    if not all(part.in_sums for part in parts):
        return None

    def utilities(data: RankingData) -> FloatArray:
        """Those of the first part, for labels that all parts support."""
        first, *_ = [part.utilities(data) for part in parts]
        return first

    reference = f"{_THEOREM}, for sums of losses"
    return replace(joined, utilities=utilities, constant=None, reference=reference)


_RULES: Mapping[type[AbstractObjective], Callable[[Any], Preserved | None]] = MappingProxyType(
    {
        Pointwise: _pointwise,
        Pairwise: _pairwise,
        # That of pointwise, at scores with another shift.
        QueryRMSE: lambda objective: _squares(objective.target, _ROOT_2),
        Bregman: _bregman,
        SigmoidSoftmax: _softmax,
        CalibratedSoftmax: _softmax,
        Linear: _linear,
        Mix: _mix,
    }
)


def _number(factor: float) -> str:
    return "" if abs(factor - 1.0) < 1e-9 else f"{factor:.5g} "


def _shares_of(values: Utilities) -> Utilities:
    def divided(data: RankingData) -> FloatArray:
        utilities = np.nan_to_num(values(data), nan=0.0)
        totals = query_sums(utilities, data.groups)
        return utilities / data.groups.spread(np.where(totals > 0, totals, np.nan))

    return divided


def _not_negative(values: Utilities) -> Utilities:
    """Reject labels that the objective rejects, so that they are not compared."""

    def checked(data: RankingData) -> FloatArray:
        utilities = values(data)
        if np.any(utilities < 0):
            raise DataError("utilities of this objective are not negative")
        return utilities

    return checked


def _up_to_eta(target: AbstractUtility, eta: float | None) -> tuple[Labels, ...]:
    """Return a superset of the labels that an objective with a bound supports."""
    bounds = target.upper_bounds(np.array([2])) if eta is None else np.array([eta])
    most = math.inf if bounds is None else float(bounds[0])
    taken = tuple(bounded(target.form, each, most) for each in legal(target.form))
    signs = eta == 1.0 and isinstance(target, IdentityUtility)  # -1 and +1 are read as 0 and 1
    return (*taken, SIGNS) if signs else taken


def _bounded(target: AbstractUtility, eta: float | None) -> Utilities:
    signs = eta == 1.0 and isinstance(target, IdentityUtility)

    def checked(data: RankingData) -> FloatArray:
        utilities = target.values(data)
        if signs and np.all(np.abs(utilities) == 1.0):
            utilities = (utilities + 1.0) / 2.0
        bounds = target.upper_bounds(data.groups.sizes)
        bounds = np.full(data.groups.n_queries, np.inf) if bounds is None else bounds
        limit = data.groups.spread(bounds if eta is None else np.full(len(bounds), eta))
        if np.any(utilities < 0) or np.any(utilities > limit * (1.0 + 1e-12)):
            raise DataError("utilities of this objective lie between 0 and eta")
        return utilities

    return checked
