"""Counterexamples: distributions on which the minimiser of an objective ranks suboptimally.

This needs the best orders of the metric: :func:`best_tiers` returns them as a few tiers if ranks
have equal discounts.

*Padding.* A loss of comparisons that misorders for precision at k on n items misorders for
precision at k + m: add m items that are relevant but for a small probability. Their scores grow
as that probability falls, their terms vanish, the other scores tend to the old minimiser, and they
take the first m places. :func:`padded` solves the padded problem and verifies the regret, so no
limit argument is needed; for other losses it tries the same and may find nothing.
"""

import functools
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from gbmrank.errors import NumericError
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.levels import Comparison
from gbmrank.objectives.pairwise import Pairwise
from gbmrank.registry.composition import as_metric, as_objective, cut_off, loss_text, text_of
from gbmrank.theory.distributions import Distribution, nature_of, pair_risk, repeated
from gbmrank.theory.minimise import Minimum, Nature, Risk, Tiers, minimise, minimise_in_tiers
from gbmrank.theory.views import order_value, view
from gbmrank.types import FloatArray

_ENUMERATED = 5  # items; beyond, positional metrics are sorted
_MOST = 24
_LEAD = 1e-3
_CUT = ("precision", "recall", "wta")  # metrics whose discount is one up to the cut-off
_CHANCES = (1e-3, 1e-2, 5e-2)  # of an added item to be irrelevant
_FILE = Path(__file__).with_name("counterexamples.json")


@final
@dataclass(frozen=True, slots=True)
class BestTiers:
    """The best value and every order that reaches it."""

    value: float
    order: tuple[int, ...]  # one of them, best item first
    tiers: tuple[Tiers, ...] | None  # all of them; None if there are too many


def best_tiers(distribution: Distribution, measure: AbstractMetric) -> BestTiers:
    """Return the best orders: enumerated for few items, else sorted by expected utility."""
    if distribution.n_items > _ENUMERATED:
        found = _sorted(distribution, measure)
        if found is not None:
            return found
    best = distribution.best(measure)
    return BestTiers(best.value, best.orders[0], grouped(best.orders))


def grouped(orders: tuple[tuple[int, ...], ...]) -> tuple[Tiers, ...] | None:
    """Merge orders that differ only in the arrangement of their first or last items into tiers."""
    if len(orders) <= _MOST:
        return tuple(tuple((i,) for i in order) for order in orders)
    n = len(orders[0])
    head = next(size for size in range(n, 0, -1) if _closed(orders, size))
    mirrored = tuple(order[::-1] for order in orders)
    tail = next(size for size in range(n - head, -1, -1) if _closed(mirrored, size))
    kinds = {_tiers_of(order, head, tail) for order in orders}
    return tuple(sorted(kinds)) if len(kinds) <= _MOST else None


@final
@dataclass(frozen=True, slots=True)
class Counterexample:
    """A distribution that shows that an objective is not calibrated for a metric."""

    objective: str  #: canonical texts
    metric: str
    labels: tuple[Any, ...]  #: label vectors (tuples of numbers), or graphs (tuples of rows)
    probabilities: tuple[float, ...]  #: their probabilities
    scores: tuple[float, ...]  #: scores that minimise the expected loss
    regret: float  #: expected performance lost by ranking with these scores
    #: least loss above the infimum of scores in a best order; 0 if breaking ties of the minimiser
    #: gives a best order, None if it is known to be positive and was not computed, because the
    #: minimiser has no ties
    gap: float | None
    best_order: tuple[int, ...]  #: an order that is best for the metric

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
    """Return a verified counterexample if a distribution is one, else None.

    It is one if the minimiser loses at least ``margin`` of the metric and either every best
    order has a larger loss than the infimum, or a kink ties items that a best order does not.
    The least risk of best orders is computed separately; if it is below the minimum found, that
    was not a minimum, and NumericError is raised.
    """
    template, measure = as_objective(objective), as_metric(metric)
    found = distribution.minimiser(template) if found is None else found
    if not found.attained:
        return None
    scores = tied(found.scores, 1e-7 * (1.0 + np.abs(found.scores)))
    best = best_tiers(distribution, measure)
    regret = abs(best.value - distribution.value(measure, scores))
    if not regret >= margin * max(abs(best.value), 1e-3) or best.tiers is None:
        return None
    gap = _gap(distribution.risk(template), nature_of(template), found, best.tiers)
    if gap is None:
        return None
    texts = loss_text(template), text_of(measure)
    return stated(texts, distribution, (scores, regret, gap, best.order), (17, 7))


def stated(
    texts: tuple[str, str],
    distribution: Distribution,
    found: tuple[FloatArray, float, float | None, Iterable[int]],
    digits: tuple[int, int],
) -> Counterexample:
    """Return a counterexample with probabilities and scores rounded to so many digits."""
    scores, regret, gap, order = found
    p, s = (
        tuple(float(f"{one:.{places}g}") for one in column)
        for column, places in zip((distribution.probabilities, scores), digits, strict=True)
    )
    labels, best = _tupled(distribution.labels.tolist()), tuple(map(int, order))
    return Counterexample(*texts, labels, p, s, regret, gap, best)


@functools.cache
def stored_counterexamples() -> tuple[Counterexample, ...]:
    """Return the counterexamples that ship with gbmrank; the tests verify each of them."""
    rows = json.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(Counterexample(**{key: _tupled(value) for key, value in r.items()}) for r in rows)


def known_for(
    template: AbstractObjective, measure: AbstractMetric, *, graphs: bool = False
) -> Counterexample | None:
    """Return a stored counterexample for this metric, ignoring cut-offs that are not reached."""
    stored = [each for each in stored_counterexamples() if each.on_graphs == graphs]
    text = loss_text(template)
    for n in (None, 3, 4):
        wanted = text if n is None else loss_text(_uncut(template, n))
        for each in stored:
            if each.objective == wanted and n in (None, len(each.labels[0])):
                served = _serving(each, measure)
                if served is not None:
                    return replace(served, objective=text)
    return None if graphs else padded(template, measure)


def padded(template: AbstractObjective, measure: AbstractMetric) -> Counterexample | None:
    """Return a counterexample for a larger cut-off than the stored ones have, by padding them.

    For losses of pairs; the added items are exchangeable, so they share a score, and only a few
    scores are left to minimise over (a convex risk has such a minimum).
    """
    if not isinstance(template, Comparison | Pairwise) or not nature_of(template).convex:
        return None
    if template.loss.pair_form != "margin" or getattr(template, "margin", 0.0) != 0.0:
        return None
    for small, distribution in padded_distributions(template, measure):
        try:
            found = _verified_padding(distribution, small, template, measure)
        except (NumericError, ValueError):
            continue
        if found is not None:
            return found
    return None


def padded_distributions(
    template: AbstractObjective, measure: AbstractMetric
) -> Iterator[tuple[int, Distribution]]:
    """Yield padded versions of stored 0/1 counterexamples, with the number of original items."""
    k = cut_off(measure)
    if k is None or view(measure) is None or measure.name not in _CUT:
        return
    for k_0, labels, p in _small_examples(template):
        if not k_0 < min(k, labels.shape[1]) or not np.isin(labels, (0, 1)).all():
            continue
        shape = (len(labels), k - k_0)
        rows = np.concatenate([np.hstack([labels, np.full(shape, y)]) for y in (1.0, 0.0)])
        for chance in _CHANCES:
            weights = np.concatenate([p * (1.0 - chance), p * chance])
            yield labels.shape[1], Distribution(rows, weights)


def _small_examples(template: AbstractObjective) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Yield cut-off, labels and probabilities of examples that may be padded."""
    texts = {loss_text(template), loss_text(_uncut(template, 3)), loss_text(_uncut(template, 4))}
    for each in stored_counterexamples():
        if each.on_graphs or each.objective not in texts:
            continue
        stored = as_metric(each.metric)
        k = cut_off(stored)
        if stored.name in _CUT and k is not None:
            yield k, np.asarray(each.labels, dtype=np.float64), np.asarray(each.probabilities)
    if isinstance(template, Pairwise) and not template.loss.differentiable:
        yield 2, np.eye(3), np.array([0.5, 0.3, 0.2])  # a kink ties the last two


def _verified_padding(
    distribution: Distribution, small: int, template: Any, measure: AbstractMetric
) -> Counterexample | None:
    """Minimise over the scores of the original items and the one of the added items."""
    n = distribution.n_items
    owner = np.minimum(np.arange(n), small)
    joined = np.zeros((small + 1, small + 1))
    np.add.at(joined, (owner[:, None], owner[None, :]), _pair_weights(distribution, template))
    np.fill_diagonal(joined, 0.0)
    nature = nature_of(template)
    risk = pair_risk(template.loss, joined)
    found = minimise(risk, small + 1, nature)
    wanted, seen = distribution.expected_utilities(measure), view(measure)
    scores = tied(found.scores, 1e-7 * (1.0 + np.abs(found.scores)))[owner]
    scores = scores - scores.mean()
    if seen is None or not found.attained:
        return None
    phi = seen.discounts(n)
    best = order_value(wanted, phi, wanted)
    regret = float(best - order_value(wanted, phi, scores))
    order = np.argsort(-wanted, kind="stable")
    k = int(np.flatnonzero(np.diff(phi))[0]) + 1
    apart = wanted[order[k - 1]] - wanted[order[k]] > 1e-9
    first = set(range(small, n)) <= set(order[:k].tolist())  # the added items
    if regret <= 1e-3 * abs(best) or not apart or not first:
        return None
    upper = tuple(sorted({int(owner[i]) for i in order[:k]}))
    tiers = (upper, tuple(i for i in range(small) if i not in upper))
    gap = _gap(risk, nature, found, (tiers,))
    if gap is None:
        return None
    texts = loss_text(template), text_of(measure)
    return stated(texts, distribution, (scores, regret, gap, order), (9, 7))


def _pair_weights(distribution: Distribution, template: Any) -> FloatArray:
    """Return the factor of every phi(s_i - s_j) in the expected loss, of 0/1 labels."""
    labels, p, n = distribution.labels, distribution.probabilities, distribution.n_items
    if isinstance(template, Comparison):
        return np.einsum("m,mij->ij", p, (labels[:, :, None] > labels[:, None, :]) * 1.0)
    worth = p @ np.nan_to_num(template.target.values(repeated(labels))).reshape(len(p), n)
    return np.outer(worth, np.ones(n)) * (1.0 - np.eye(n))


def _closed(orders: tuple[tuple[int, ...], ...], size: int) -> bool:
    """Whether every arrangement of the first items occurs with each order."""
    counts = Counter((frozenset(order[:size]), order[size:]) for order in orders)
    return all(count == math.factorial(size) for count in counts.values())


def _tiers_of(order: tuple[int, ...], head: int, tail: int) -> Tiers:
    end = len(order) - tail
    middle = tuple((i,) for i in order[head:end])
    last = (tuple(sorted(order[end:])),) if tail else ()
    return (tuple(sorted(order[:head])), *middle, *last)


def _sorted(distribution: Distribution, measure: AbstractMetric) -> BestTiers | None:
    """Sort the expected utilities; None if they tie, or if discounts tie in the middle."""
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
    chosen = tuple(order.tolist())
    tiers = _tiers_of(chosen, int(sizes[0]), int(sizes[-1]))
    ranked = -np.argsort(order).astype(np.float64)
    return BestTiers(distribution.value(measure, ranked), chosen, (tiers,))


def _gap(risk: Risk, nature: Nature, found: Minimum, orders: tuple[Tiers, ...]) -> float | None:
    """Return the loss of a best order above the minimum; None if there is no difference.

    It is 0 if a kink ties items: moving them apart by a thousandth costs proportionally more.
    """
    value = found.value

    def least(lead: float) -> float:
        return min(minimise_in_tiers(risk, tiers, found.scores, nature, lead) for tiers in orders)

    gap = least(0.0) - value
    noise = 1e-8 * (1e-3 + abs(value)) if nature.smooth else 1e-8 * (1.0 + abs(value))
    if gap < -noise:
        raise NumericError(
            f"a best order has a risk of {value + gap:.9g}, below the minimum found, {value:.9g}, "
            "which is therefore not a minimum"
        )
    if gap >= noise:
        return gap
    held = not nature.smooth and least(_LEAD) - value >= 1e-2 * _LEAD * (1e-3 + abs(value))
    return 0.0 if held else None


def _uncut(part: Any, n: int) -> Any:
    """Return a part without cut-offs that n items do not reach, including those of its target."""
    k = cut_off(part)
    if k is not None and k >= n:
        part = replace(part, k=None)
    return replace(part, target=_uncut(part.target, n)) if hasattr(part, "target") else part


def _unthresholded(measure: AbstractMetric, labels: np.ndarray) -> AbstractMetric:
    """Return a metric without a threshold that has no effect on 0/1 labels."""
    threshold = getattr(measure, "threshold", None)
    if threshold is None or not 0.0 < threshold <= 1.0 or not np.isin(labels, (0.0, 1.0)).all():
        return measure
    return replace(measure, threshold=None)  # type: ignore[call-arg]


def _serving(example: Counterexample, measure: AbstractMetric) -> Counterexample | None:
    """Evaluate a stored minimiser by another metric, without compiled code."""
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
    # With strict utilities and discounts there is one best order, and the minimiser is not in it.
    strict = len(np.unique(utilities.round(9))) == n and bool(np.all(np.diff(phi) < 0))
    tied = len(set(example.scores)) < n
    if not strict or regret <= 1e-6 * max(abs(best), 1e-3) or tied:
        return None
    order = tuple(np.argsort(-utilities, kind="stable").tolist())
    return replace(example, metric=wanted, regret=regret, best_order=order)


def _same_values(example: Counterexample, measure: AbstractMetric) -> bool:
    """Whether a metric is, on the labels of an example, the one it was found for."""
    stored = as_metric(example.metric)
    seen, known, n = view(measure), view(stored), len(example.labels[0])
    if seen is None or known is None or example.on_graphs or measure.ties != stored.ties:
        return False
    data = repeated(np.asarray(example.labels, dtype=np.float64))
    try:
        mine, its = (
            np.hstack([each.discounts(n), each.utilities(data), each.sign])
            for each in (seen, known)
        )
    except ValueError:  # labels that this metric does not take
        return False
    return np.array_equal(mine, its)


def tied(values: FloatArray, noise: FloatArray) -> FloatArray:
    """Tie values that exceed the next smaller one by no more than noise."""
    cleaned = values.copy()
    for low, high in itertools.pairwise(np.argsort(values, kind="stable")):
        if values[high] - values[low] <= noise[high]:
            cleaned[high] = cleaned[low]
    return cleaned


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
