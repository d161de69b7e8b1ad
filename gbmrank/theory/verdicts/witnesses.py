"""Counterexamples to calibration that need no search.

:func:`order_witness` is for objectives that sort a utility: the minimiser is known without
minimising. :func:`kink_witness` and :func:`comparison_witness` minimise a sum over three items in
Python. All labels are supported by the objective and the metric, and an example counts if no order
of the minimiser (with any tie-breaking) is a best order of the metric.
"""

import functools
import itertools
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from gbmrank.errors import GbmrankError, NumericError
from gbmrank.losses import Hinge
from gbmrank.losses.utilities import Form
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.base import Mix
from gbmrank.objectives.levels import Comparison
from gbmrank.objectives.pairwise import Pairwise
from gbmrank.registry.composition import cut_off, text_of
from gbmrank.theory.counterexamples import Counterexample, shown, stated, tied
from gbmrank.theory.distributions import Distribution, all_orders, pair_risk
from gbmrank.theory.minimise import Nature, Risk, minimise, minimise_in_tiers
from gbmrank.theory.shapes import pair_shape
from gbmrank.theory.verdicts.forms import Labels, probes
from gbmrank.theory.verdicts.order import Preserved, Utilities, disagreements, utility_rows
from gbmrank.theory.views import View, order_value, view
from gbmrank.types import FloatArray, IntArray

Pair: TypeAlias = tuple[AbstractObjective, AbstractMetric]
_SUPPORT = 3
_MARGIN = 1e-4
_MIXTURES = 4000
_ENOUGH = 400  # mixtures after which the first good example is used
_THEOREM_11 = ((0.0, 0.5, 1.5), (0.0, 0.0, 0.1), (0.5, 0.0, 0.0))
_THEOREM_12 = ((0.0, 0.25, 0.5), (0.0, 0.0, 0.01), (0.24, 0.0, 0.0))
_CHAIN = ((0.0, 1.0, 0.0), (0.0, 0.0, 6.0), (0.0, 0.0, 0.0))
_LONGEST = 60  # longest list in which disagreements are searched


def order_witness(
    template: AbstractObjective,
    measure: AbstractMetric,
    preserved: Preserved,
    labels: Iterable[Labels],
    forms: Iterable[Form],
) -> Counterexample | None:
    """Return a distribution whose expected utilities are sorted in a suboptimal order."""
    seen, forms, pair = view(measure), tuple(forms), (template, measure)
    sets = [probes(forms, each) for each in labels]
    if seen is None:
        return _among_mixtures(pair, preserved.utilities, sets)
    lengths = {2, 3, 4, *(k + more for k in cut_offs(template, measure) for more in (1, 2))}
    for n, grades in itertools.product(sorted(n for n in lengths if n <= _LONGEST), sets):
        drops = np.flatnonzero(np.diff(seen.discounts(n)) < 0) + 1
        for top in dict.fromkeys(drops[[0, -1]].tolist() if len(drops) else ()):
            tried = disagreements(preserved.utilities, seen.utilities, grades, n, top)
            for vectors, p in tried:
                found = _judged(Distribution(vectors, p), pair, seen, preserved.utilities)
                if found is not None:
                    return found
    return None


def kink_witness(template: AbstractObjective, measure: AbstractMetric) -> Counterexample | None:
    """Return a distribution on which a pairwise loss with a kink ties items that should not tie.

    One item is useful at a time, with probabilities 1/2, 3/10 and 1/5: the minimiser of the
    hinge is (1, 0, 0) up to a constant. It counts when the best order costs more as soon as
    items are a thousandth apart.
    """
    if not isinstance(template, Pairwise):
        return None
    shape, weights = pair_shape(template.loss), np.array([0.5, 0.3, 0.2])
    if shape.differentiable or not shape.convex:
        return None
    distribution = Distribution(np.eye(3), weights)
    if view(measure) is None:
        try:
            return shown(distribution, template, measure)
        except (GbmrankError, FloatingPointError):
            return None
    nature = Nature(shift_invariant=True, smooth=False, whole=template.loss == Hinge())
    try:
        sorted_by = weights @ utility_rows(np.eye(3), template.target.values)
        pairs = np.outer(np.maximum(sorted_by, 0.0), np.ones(3)) * (1.0 - np.eye(3))
        risk = pair_risk(template.loss, pairs)
        return _solved(distribution, (template, measure), risk, nature)
    except (ValueError, NumericError):  # labels that a side does not take, or no minimum
        return None


def comparison_witness(
    template: AbstractObjective, measure: AbstractMetric
) -> Counterexample | None:
    """Return a distribution on which the comparison loss prefers frequent narrow wins.

    Labels 0/1: (0, 0, 1), (1, 0, 0) and (1, 1, 0) with probabilities 1/5, 1/2 and 3/10, on
    which a fixed margin counts as it is and the weight of an edge is 1.
    """
    vectors, p = np.array([[0.0, 0, 1], [1, 0, 0], [1, 1, 0]]), np.array([0.2, 0.5, 0.3])
    if not isinstance(template, Comparison) or view(measure) is None:
        return None
    if not pair_shape(template.loss).convex:
        return None
    if not template.relevant_weight > 0.0:
        return _without_loss(template, measure)
    wins = np.einsum("m,mi,mj->ij", p, vectors, 1.0 - vectors)
    margin = 1.0 if isinstance(template.margin, str) else float(template.margin)
    risk = pair_risk(template.loss, wins, margin)
    smooth = pair_shape(template.loss).differentiable
    try:
        nature = Nature(shift_invariant=True, smooth=smooth, convex=True)
        return _solved(Distribution(vectors, p), (template, measure), risk, nature)
    except (ValueError, NumericError):
        return None


def _without_loss(template: Comparison, measure: AbstractMetric) -> Counterexample | None:
    """Return one relevant item and another, whose order costs nothing where weights are zero."""
    distribution = Distribution([[1.0, 0.0]], [1.0])
    try:
        distribution.inner_risk(template, np.zeros(2))  # raises where it takes no such labels
        regret = distribution.regret(measure, np.zeros(2))
    except ValueError:
        return None
    found = (np.zeros(2), regret, np.arange(2))
    return _example(distribution, (template, measure), found, 0.0) if regret > _MARGIN else None


def graph_witness(template: AbstractObjective, measure: AbstractMetric) -> Counterexample | None:
    """Return preference graphs on which a comparison (or the linear loss) misorders.

    The mean graphs of Duchi et al., Thms 11 and 12, which have low noise, and a chain without
    the degree condition; each edge is a separate graph with weight 1, so that normalising has no
    effect and ``margin=weight`` is 1.
    """
    for mean in (_THEOREM_11, _THEOREM_12) if isinstance(template, Comparison) else (_CHAIN,):
        weights = np.array(mean)
        winner, loser = np.nonzero(weights)
        graphs = np.zeros((len(winner), 3, 3))
        graphs[np.arange(len(winner)), winner, loser] = 1.0
        try:
            found = shown(Distribution(graphs, weights[winner, loser]), template, measure)
        except (GbmrankError, FloatingPointError):
            continue
        if found is not None:
            return found
    return None


def cut_offs(template: AbstractObjective, measure: AbstractMetric) -> tuple[int, ...]:
    """Return the cut-offs of a metric and of all targets, including those in sums."""
    parts = template.parts if isinstance(template, Mix) else ()
    inside = {k for part in parts for k in cut_offs(part, measure)}
    target = getattr(template, "target", None)
    own = map(cut_off, (measure,) if target is None else (measure, target))
    return tuple(sorted({*inside, *(k for k in own if k is not None)}))


def _solved(
    distribution: Distribution, pair: Pair, risk: Risk, nature: Nature
) -> Counterexample | None:
    """Minimise a risk of three scores; the best order must cost more, a thousandth apart."""
    seen = view(pair[1])
    wanted = distribution.expected_utilities(pair[1])
    if seen is None or len(set(wanted.round(9).tolist())) < len(wanted):
        return None
    found, phi = minimise(risk, len(wanted), nature), seen.discounts(len(wanted))
    regret = order_value(wanted, phi, wanted) - order_value(wanted, phi, found.scores)
    if not found.attained or regret <= _MARGIN * np.abs(wanted).max():
        return None
    order = np.argsort(-wanted, kind="stable")
    lead = 0.0 if nature.smooth else 1e-3
    edges = np.flatnonzero(np.diff(phi)) + 1  # ranks with equal discounts share a tier
    tiers = tuple(tuple(tier.tolist()) for tier in np.split(order, edges))
    gap = minimise_in_tiers(risk, tiers, found.scores, nature, lead) - found.value
    if gap < 1e-5 * abs(found.value):
        return None
    held = None if nature.smooth else 0.0
    return _example(distribution, pair, (found.scores, regret, order), held)


def _judged(
    distribution: Distribution, pair: Pair, seen: View, utilities: Utilities
) -> Counterexample | None:
    """Compare the order by these utilities with the best one of a positional metric."""
    try:
        sorted_by = distribution.probabilities @ utility_rows(distribution.labels, utilities)
        wanted = distribution.expected_utilities(pair[1])
    except ValueError:  # a label vector that one side does not take
        return None
    phi = seen.discounts(distribution.n_items)
    best = order_value(wanted, phi, wanted)
    # Break ties of the minimiser in favour of the metric.
    rounding = np.full(len(sorted_by), _MARGIN * np.abs(sorted_by).max())
    order = np.lexsort((-wanted, -tied(sorted_by, rounding)))
    regret = best - float(phi @ wanted[order])
    if regret <= _MARGIN * max(abs(best), 1e-9):
        return None
    best_order = np.argsort(-wanted, kind="stable")
    return _example(distribution, pair, (sorted_by, regret, best_order), None)


def _among_mixtures(
    pair: Pair, utilities: Utilities, sets: list[tuple[float, ...]]
) -> Counterexample | None:
    few = [grades for grades in sets if len(grades) > 1]
    ends = {(grades[0], grades[-1]) for grades in few} | {grades[:3] for grades in few}
    usual = {(0.0, 1.0), (0.0, 1.0, 2.0)}
    shortest = sorted(usual | ends, key=lambda one: (len(one), one))
    tried = (
        _enumerated(pair, utilities, np.array(list(itertools.product(grades, repeat=n))))
        for grades, n in itertools.product(shortest, (3, 4))
    )
    return next((found for found in tried if found is not None), None)


def _enumerated(pair: Pair, utilities: Utilities, vectors: FloatArray) -> Counterexample | None:
    """Enumerate small mixtures of label vectors; every order of the items is tried."""
    measure = pair[1]
    uniform = Distribution(vectors, np.ones(len(vectors)))
    orders = all_orders(vectors.shape[1])
    ranks = np.argsort(orders, axis=1)
    try:
        values = uniform.order_values(measure, -ranks.astype(np.float64))
        table = utility_rows(vectors, utilities)
    except (GbmrankError, ValueError):
        return None
    keep = np.flatnonzero(~np.isnan(values).any(axis=1))
    sign = 1.0 if measure.higher_is_better else -1.0
    mixtures = _mixtures(len(keep))
    weights = np.zeros((len(mixtures), len(keep)))
    for row, (parts, p) in zip(weights, mixtures, strict=True):
        row[parts] = p
    place = _most_lost(sign * weights @ values[keep], weights @ table[keep], orders)
    if place is None:
        return None
    parts, p = mixtures[place]
    rows = keep[parts]
    expected, u = sign * (p @ values[rows]), p @ table[rows]
    regret = float(expected.max() - expected[_place_of(u[None], orders)[0]])
    found = (u, regret, orders[int(expected.argmax())])
    return _example(Distribution(vectors[rows], p), pair, found, None)


def _most_lost(expected: FloatArray, u: FloatArray, orders: IntArray) -> int | None:
    """Return the row of u whose order loses most, of the first rows if one of these loses."""
    falling = np.sort(u.round(9), axis=1)
    strict = np.flatnonzero((np.diff(falling, axis=1) > 0.0).all(axis=1))
    regrets = expected[strict].max(axis=1) - expected[strict, _place_of(u[strict], orders)]
    best, most = None, _MARGIN
    for row, regret in zip(strict.tolist(), regrets.tolist(), strict=True):
        if best is not None and row >= _ENOUGH:
            break
        if regret > most:
            best, most = row, regret + 1e-9
    return best


def _place_of(u: FloatArray, orders: IntArray) -> IntArray:
    """Return where the descending order of each row is among all orders."""
    return np.asarray((np.argsort(-u, axis=1)[:, None] == orders).all(axis=2).argmax(axis=1))


@functools.cache
def _mixtures(count: int) -> list[tuple[IntArray, FloatArray]]:
    """Return a fixed sample of mixtures of two and three of ``count`` label vectors."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(_MIXTURES):
        size = int(rng.integers(2, _SUPPORT + 1))
        if count < size:
            break
        parts = rng.choice(np.arange(1, 10), size=size)
        made.append((rng.choice(count, size=size, replace=False), parts / parts.sum()))
    return made


def _example(
    distribution: Distribution, pair: Pair, found: tuple[FloatArray, float, IntArray], gap: Any
) -> Counterexample:
    scores, regret, order = found
    texts = text_of(pair[0]), text_of(pair[1])
    return stated(texts, distribution, (scores, float(regret), gap, order), (6, 6))
