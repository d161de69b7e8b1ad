"""Counterexamples for losses that sort an expected utility, without minimising anything."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from gbmrank.data import RankingData
from gbmrank.errors import GbmrankError, NumericError
from gbmrank.losses import Hinge
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.pairwise import Pairwise
from gbmrank.theory.counterexamples import Counterexample
from gbmrank.theory.distributions import Distribution, all_orders
from gbmrank.theory.graph_risks import pair_risk
from gbmrank.theory.match import DOMAINS, Domain, disagreement
from gbmrank.theory.minimise import Nature, minimise, minimise_in_tiers
from gbmrank.theory.parts import cut_off, text_of
from gbmrank.theory.shapes import pair_shape
from gbmrank.theory.views import order_value, view
from gbmrank.types import FloatArray

__all__ = ["expected_utilities", "kink_witness", "order_witness"]

Utilities = Callable[[RankingData], FloatArray]
_SUPPORT = 3
_MARGIN = 1e-4
_MIXTURES = 4000
_ENOUGH = 400  # mixtures after which the first good example will do


def order_witness(
    template: AbstractObjective,
    measure: AbstractMetric,
    utilities: Utilities,
    domain: Domain | None,
) -> Counterexample | None:
    """Return a distribution whose expected utilities are sorted in a suboptimal order.

    Parameters
    ----------
    template : AbstractObjective
        An objective that sorts the expectation of ``utilities``.
    measure : AbstractMetric
        The metric.
    utilities : callable
        ``RankingData -> u`` for every row.
    domain : Domain or None
        Labels that both take; None tries them from the narrowest to the widest.
    """
    seen = view(measure)
    if seen is not None and domain is not None:
        cuts = {k + 1 for k in _cuts(template, measure) if k >= 3}
        for n in (3, 4, *sorted(cuts)):
            for labels, p in disagreement(utilities, seen.utilities, domain, n):
                example = _judged(Distribution(labels, p), template, measure, utilities)
                if example is not None:
                    return example
        return None
    for each in reversed(DOMAINS):
        for n in (3, 4):
            found = _enumerated(template, measure, utilities, each, n)
            if found is not None:
                return found
    return None


def expected_utilities(distribution: Distribution, utilities: Utilities) -> FloatArray:
    """Return the expectation of utilities, undefined ones counting zero."""
    m, n = distribution.labels.shape
    data = RankingData.from_arrays(distribution.labels.ravel(), group=[n] * m)
    return distribution.probabilities @ np.nan_to_num(utilities(data), nan=0.0).reshape(m, n)


def _judged(
    distribution: Distribution,
    template: AbstractObjective,
    measure: AbstractMetric,
    utilities: Utilities,
) -> Counterexample | None:
    """Compare the order by these utilities with the best one of a positional metric."""
    seen = view(measure)
    sorted_by = expected_utilities(distribution, utilities)
    wanted = distribution.expected_utilities(measure)
    phi = np.ones(0) if seen is None else seen.discounts(distribution.n_items)
    best = order_value(wanted, phi, wanted)
    regret = best - order_value(wanted, phi, sorted_by)
    if regret <= _MARGIN * max(abs(best), 1e-9):
        return None
    order = np.argsort(-wanted, kind="stable")
    return _example(distribution, template, measure, (sorted_by, regret, order))


def _enumerated(
    template: AbstractObjective,
    measure: AbstractMetric,
    utilities: Utilities,
    domain: Domain,
    n: int,
) -> Counterexample | None:
    """Go through small mixtures of label vectors; every order of the items is tried."""
    if len(domain.grades) ** n > 700:
        return None
    vectors = np.array(list(itertools.product(domain.grades, repeat=n)))
    uniform = Distribution(vectors, np.ones(len(vectors)))
    orders = all_orders(n)
    ranks = np.argsort(orders, axis=1)
    try:
        values = uniform.order_values(measure, -ranks.astype(np.float64))
        table = _rows(vectors, utilities)
    except (GbmrankError, ValueError):
        return None
    keep = np.flatnonzero(~np.isnan(values).any(axis=1))
    sign = 1.0 if measure.higher_is_better else -1.0
    best: tuple[float, Distribution, FloatArray, FloatArray] | None = None
    for tried, (rows, p) in enumerate(_mixtures(keep)):
        if best is not None and tried >= _ENOUGH:
            break
        expected, u = sign * (p @ values[rows]), p @ table[rows]
        if len(np.unique(u.round(9))) < n:
            continue
        mine = int(np.flatnonzero((orders == np.argsort(-u)).all(axis=1))[0])
        regret = float(expected.max() - expected[mine])
        if regret > _MARGIN and (best is None or regret > best[0] + 1e-9):
            best = regret, Distribution(vectors[rows], p), u, orders[int(expected.argmax())]
    return (
        None if best is None else _example(best[1], template, measure, (best[2], best[0], best[3]))
    )


def _mixtures(rows: np.ndarray) -> Iterator[tuple[list[int], FloatArray]]:
    """Yield a fixed sample of mixtures of two and three label vectors."""
    rng = np.random.default_rng(0)
    for _ in range(_MIXTURES):
        size = int(rng.integers(2, _SUPPORT + 1))
        if len(rows) < size:
            return
        parts = rng.choice(np.arange(1, 10), size=size)
        chosen = rng.choice(rows, size=size, replace=False)
        yield chosen.tolist(), parts / parts.sum()


def _rows(vectors: FloatArray, utilities: Utilities) -> FloatArray:
    m, n = vectors.shape
    data = RankingData.from_arrays(vectors.ravel(), group=[n] * m)
    return np.nan_to_num(utilities(data), nan=0.0).reshape(m, n)


def _example(
    distribution: Distribution,
    template: AbstractObjective,
    measure: AbstractMetric,
    found: tuple[FloatArray, float, np.ndarray],
) -> Counterexample:
    scores, regret, order = found
    return Counterexample(
        text_of(template),
        text_of(measure),
        tuple(tuple(float(y) for y in row) for row in distribution.labels),
        tuple(float(f"{p:.6g}") for p in distribution.probabilities),
        tuple(float(f"{s:.6g}") for s in scores),
        float(regret),
        None,
        tuple(int(i) for i in order),
    )


def _cuts(template: AbstractObjective, measure: AbstractMetric) -> list[int]:
    parts = getattr(template, "parts", (template,))
    owners = [measure, *(part.target for part in parts if hasattr(part, "target"))]
    return [k for k in (cut_off(owner) for owner in owners) if k is not None]


def kink_witness(template: Pairwise, measure: AbstractMetric) -> Counterexample | None:
    """Return a distribution on which a loss with a kink ties items that should not tie.

    One item is useful at a time, with probabilities 1/2, 3/10 and 1/5: the minimiser of the
    hinge is (1, 0, 0) up to a constant. It counts when the best order costs more as soon as
    items are a thousandth apart.
    """
    seen, weights = view(measure), np.array([0.5, 0.3, 0.2])
    distribution = Distribution(np.eye(3), weights)
    if seen is None or not pair_shape(template.loss).convex:
        return None
    nature = Nature(shift_invariant=True, smooth=False, whole=template.loss == Hinge())
    try:
        sorted_by = expected_utilities(distribution, template.target.values)
        wanted = distribution.expected_utilities(measure)
        pairs = np.outer(np.maximum(sorted_by, 0.0), np.ones(3)) * (1.0 - np.eye(3))
        risk = pair_risk(template.loss.kappa, template.loss.params, pairs)
        found = minimise(risk, 3, nature)
        order = np.argsort(-wanted, kind="stable")
        apart = minimise_in_tiers(risk, tuple((int(i),) for i in order), found.scores, nature, 1e-3)
    except (ValueError, NumericError):  # labels that the target does not take, or no minimum
        return None
    if not found.attained or apart - found.value < 1e-5 * abs(found.value):
        return None
    phi = seen.discounts(3)
    regret = order_value(wanted, phi, wanted) - order_value(wanted, phi, found.scores)
    if regret <= _MARGIN * np.abs(wanted).max():
        return None
    return _example(distribution, template, measure, (found.scores, regret, order))
