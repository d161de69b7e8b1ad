"""Counterexamples: distributions on which the minimiser of an objective ranks suboptimally.

To show one, the best orders of the metric are needed: :func:`best_tiers` gives them in few
tiers where ranks are worth the same.
"""

import functools
import itertools
import json
import math
from collections import Counter
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast, final

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.errors import NumericError
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.registry.composition import as_metric, as_objective, cut_off, loss_text, text_of
from gbmrank.theory.distributions import Distribution, nature_of
from gbmrank.theory.minimise import Minimum, Tiers, minimise_in_tiers
from gbmrank.theory.views import order_value, view

__all__ = [
    "Counterexample",
    "best_tiers",
    "grouped",
    "known_for",
    "shown",
    "stored_counterexamples",
]

_ENUMERATED = 5  # items; beyond, positional metrics are sorted
_MOST = 24
_LEAD = 1e-3
_FILE = Path(__file__).with_name("counterexamples.json")


@final
@dataclass(frozen=True, slots=True)
class BestTiers:
    """The best value and every order that reaches it."""

    value: float
    order: tuple[int, ...]  # one of them, best item first
    tiers: tuple[Tiers, ...] | None  # all of them; None when there are too many to go through


def best_tiers(distribution: Distribution, measure: AbstractMetric) -> BestTiers:
    """Return the best orders: enumerated for few items, else sorted by expected utility."""
    if distribution.n_items > _ENUMERATED:
        found = _sorted(distribution, measure)
        if found is not None:
            return found
    best = distribution.best(measure)
    return BestTiers(best.value, best.orders[0], grouped(best.orders))


def grouped(orders: tuple[tuple[int, ...], ...]) -> tuple[Tiers, ...] | None:
    """Join orders that differ in how they arrange their first or last items only, into tiers."""
    if len(orders) <= _MOST:
        return tuple(tuple((i,) for i in order) for order in orders)
    n = len(orders[0])
    head = next(size for size in range(n, 0, -1) if _closed(orders, size, first=True))
    tail = next(size for size in range(n - head, -1, -1) if _closed(orders, size, first=False))
    kinds = {_tiers_of(order, head, tail) for order in orders}
    return tuple(sorted(kinds)) if len(kinds) <= _MOST else None


@final
@dataclass(frozen=True, slots=True)
class Counterexample:
    """A distribution that shows that an objective is not calibrated for a metric.

    Parameters
    ----------
    objective, metric : str
        Canonical texts.
    labels : tuple
        Label vectors (tuples of numbers), or graphs (tuples of rows).
    probabilities : tuple of float
        Their probabilities.
    scores : tuple of float
        Scores that minimise the expected loss.
    regret : float
        Expected performance lost by ranking with these scores.
    gap : float or None
        What the cheapest scores in a best order cost above the infimum; 0 when a best
        order is reached by breaking ties of the minimiser, None where the minimiser is sorted
        by values that all differ, so that it is positive and was not computed.
    best_order : tuple of int
        An order that is best for the metric.
    """

    objective: str
    metric: str
    labels: tuple[Any, ...]
    probabilities: tuple[float, ...]
    scores: tuple[float, ...]
    regret: float
    gap: float | None
    best_order: tuple[int, ...]

    @property
    def on_graphs(self) -> bool:
        """Whether it is a distribution of preference graphs."""
        return isinstance(self.labels[0][0], tuple)

    @property
    def distribution(self) -> Distribution:
        """The distribution as an object."""
        return Distribution(self.labels, self.probabilities)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        width = max(len(f"{p:g}") for p in self.probabilities)
        rows = [
            f"  {p:<{width}g}  {_labels_text(y)}"
            for p, y in zip(self.probabilities, self.labels, strict=True)
        ]
        best = " ".join(map(str, self.best_order))
        lines = [
            f"{self.objective} misorders for {self.metric}:",
            f"  with probability: {'preferences' if self.on_graphs else 'labels of the items'}",
            *rows,
            f"  minimising scores: {' '.join(f'{s:.4g}' for s in self.scores)}",
            f"  their order: {_order_text(self.scores)}; a best order: {best}",
            f"  lost: {self.regret:.6g}; {self._cost_text()}",
        ]
        return "\n".join(lines)

    def _cost_text(self) -> str:
        if self.gap is None:
            return "every best order costs more loss"
        if self.gap == 0.0:
            return "the loss does not prefer a best order to the ties of its minimiser"
        return f"a best order costs {self.gap:.3g} more loss"


def shown(
    distribution: Distribution,
    objective: Any,
    metric: Any,
    *,
    margin: float = 1e-6,
    found: Minimum | None = None,
) -> Counterexample | None:
    """Return a counterexample when a distribution is one, with everything computed afresh.

    It is one when the minimiser loses at least ``margin`` of performance and either every
    best order costs more loss than the infimum, or a kink ties items that a best order does
    not. The least risk of best orders is searched for on its own; where it is lower than the
    minimum, that was none, and NumericError is raised.
    """
    template, measure = as_objective(objective), as_metric(metric)
    found = distribution.minimiser(template) if found is None else found
    if not found.attained:
        return None
    scores = _without_noise(found.scores)
    best = best_tiers(distribution, measure)
    regret = abs(best.value - distribution.value(measure, scores))
    if not regret >= margin * max(abs(best.value), 1e-3) or best.tiers is None:
        return None
    gap = _gap(distribution, template, found, best.tiers)
    if gap is None:
        return None
    return Counterexample(
        loss_text(template),
        text_of(measure),
        _nested(distribution.labels),
        tuple(float(p) for p in distribution.probabilities),
        tuple(float(f"{s:.7g}") for s in scores),
        regret,
        gap,
        best.order,
    )


@functools.cache
def stored_counterexamples() -> tuple[Counterexample, ...]:
    """Return the counterexamples that ship with gbmrank; the tests verify each again."""
    rows = json.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(Counterexample(**{key: _tupled(value) for key, value in r.items()}) for r in rows)


def known_for(
    template: AbstractObjective, measure: AbstractMetric, *, graphs: bool = False
) -> Counterexample | None:
    """Return a stored counterexample that serves for this metric, unreached cut-offs aside."""
    stored = [each for each in stored_counterexamples() if each.on_graphs == graphs]
    texts = (loss_text(template), text_of(measure))
    for n in (None, 3, 4):
        wanted = texts if n is None else (loss_text(_uncut(template, n)), texts[1])
        mine = [each for each in stored if each.objective == wanted[0]]
        mine = [each for each in mine if n is None or len(each.labels[0]) == n]
        for each in mine:
            served = _serving(each, measure)
            if served is not None:
                return replace(served, objective=texts[0])
    return None


def _closed(orders: tuple[tuple[int, ...], ...], size: int, *, first: bool) -> bool:
    """Whether every arrangement of the first (or last) items is there with each order."""
    n = len(orders[0])
    at = size if first else n - size
    counts = Counter(
        (frozenset(order[:at]), order[at:]) if first else (order[:at], frozenset(order[at:]))
        for order in orders
    )
    return all(count == math.factorial(size) for count in counts.values())


def _tiers_of(order: tuple[int, ...], head: int, tail: int) -> Tiers:
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
    falling = utilities[order]
    apart = falling[edges] - falling[edges + 1] > 1e-9 * np.abs(falling).max()
    if len(sizes) < 2 or np.any(sizes[1:-1] > 1) or not np.all(apart):
        return None
    chosen = tuple(int(i) for i in order)
    tiers = _tiers_of(chosen, int(sizes[0]), int(sizes[-1]))
    ranked = -np.argsort(order).astype(np.float64)
    return BestTiers(distribution.value(measure, ranked), chosen, (tiers,))


def _gap(
    distribution: Distribution,
    template: AbstractObjective,
    found: Minimum,
    orders: tuple[Tiers, ...],
) -> float | None:
    """Return what a best order costs above a minimum; None where that is nothing.

    It is 0 where a kink holds items together: apart by a thousandth they cost more in proportion.
    """
    nature, risk, value = nature_of(template), distribution.risk(template), found.value

    def least(lead: float) -> float:
        return min(minimise_in_tiers(risk, tiers, found.scores, nature, lead) for tiers in orders)

    gap = least(0.0) - value
    noise = 1e-8 * (1e-3 + abs(value)) if nature.smooth else 1e-8 * (1.0 + abs(value))
    if gap < -noise:
        raise NumericError(
            f"a best order has a risk of {value + gap:.9g}, and the minimum found is {value:.9g}: "
            "it is no minimum"
        )
    if gap >= noise:
        return gap
    held = not nature.smooth and least(_LEAD) - value >= 1e-2 * _LEAD * (1e-3 + abs(value))
    return 0.0 if held else None


def _uncut(part: Any, n: int) -> Any:
    """Return a part without cut-offs that n items do not reach, also in its target."""
    known = {field.name for field in fields(part)}
    k = cut_off(part)
    if k is not None and k >= n and "k" in known:
        part = replace(part, k=None)
    return replace(part, target=_uncut(part.target, n)) if "target" in known else part


def _unthresholded(measure: AbstractMetric, labels: np.ndarray) -> AbstractMetric:
    """Return a metric without a threshold that changes nothing, as labels are 0 and 1."""
    threshold = getattr(measure, "threshold", None)
    if threshold is None or not 0.0 < threshold <= 1.0 or not np.isin(labels, (0.0, 1.0)).all():
        return measure
    plain: Any = measure
    return cast("AbstractMetric", replace(plain, threshold=None))


def _serving(example: Counterexample, measure: AbstractMetric) -> Counterexample | None:
    """Judge a stored minimiser by another metric, without compiled code."""
    wanted = text_of(measure)
    n = len(example.labels[0])
    labels = np.asarray(example.labels, dtype=np.float64)
    alike = (measure, _uncut(measure, n), _unthresholded(_uncut(measure, n), labels))
    if example.metric in map(text_of, alike) or _same_values(example, measure):
        return replace(example, metric=wanted)
    seen = view(measure)
    if seen is None or labels.ndim != 2 or example.gap == 0.0:
        return None
    try:
        utilities = example.distribution.expected_utilities(measure)
    except ValueError:  # labels that this metric does not take
        return None
    phi, scores = seen.discounts(n), np.asarray(example.scores)
    best = order_value(utilities, phi, utilities)
    regret = float(best - order_value(utilities, phi, scores))
    # Strict utilities and discounts leave one best order, and the minimiser misses it.
    strict = len(np.unique(utilities.round(9))) == n and bool(np.all(np.diff(phi) < 0))
    tied = len(set(example.scores)) < n
    if not strict or regret <= 1e-6 * max(abs(best), 1e-3) or tied:
        return None
    order = tuple(int(i) for i in np.argsort(-utilities, kind="stable"))
    return replace(example, metric=wanted, regret=regret, best_order=order)


def _same_values(example: Counterexample, measure: AbstractMetric) -> bool:
    """Whether a metric is, on the labels of an example, the one it was found for."""
    stored = as_metric(example.metric)
    seen, known, n = view(measure), view(stored), len(example.labels[0])
    if seen is None or known is None or example.on_graphs or measure.ties != stored.ties:
        return False
    data = RankingData.from_arrays(np.ravel(example.labels), group=[n] * len(example.labels))
    try:
        pairs = (
            (seen.discounts(n), known.discounts(n)),
            (seen.utilities(data), known.utilities(data)),
            (seen.sign, known.sign),
        )
    except ValueError:  # labels that this metric does not take
        return False
    return all(np.array_equal(mine, its) for mine, its in pairs)


def _without_noise(scores: np.ndarray) -> np.ndarray:
    """Make scores equal that differ by less than the minimiser is accurate to."""
    order = np.argsort(scores, kind="stable")
    cleaned = scores.copy()
    for low, high in itertools.pairwise(order):
        if scores[high] - scores[low] <= 1e-7 * (1.0 + abs(scores[high])):
            cleaned[high] = cleaned[low]
    return cleaned


def _nested(table: np.ndarray) -> tuple[Any, ...]:
    return tuple(_nested(row) if row.ndim else float(row) for row in table)


def _tupled(value: Any) -> Any:
    return tuple(_tupled(item) for item in value) if isinstance(value, list) else value


def _order_text(scores: tuple[float, ...]) -> str:
    """Items best first; tied ones in brackets."""
    levels = sorted(set(scores), reverse=True)
    blocks = [[str(i) for i, s in enumerate(scores) if s == level] for level in levels]
    return " ".join(b[0] if len(b) == 1 else f"({' '.join(b)})" for b in blocks)


def _labels_text(labels: Any) -> str:
    if labels and isinstance(labels[0], tuple):
        edges = [
            f"{i}->{j} ({w:g})" for i, row in enumerate(labels) for j, w in enumerate(row) if w > 0
        ]
        return ", ".join(edges)
    return " ".join(f"{y:g}" for y in labels)
