"""Search for a distribution on which minimising an objective misorders for a metric."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gbmrank.errors import DataError, GbmrankError, NumericError
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.theory.counterexamples import Counterexample, shown
from gbmrank.theory.distributions import Distribution
from gbmrank.theory.noise import is_low_noise
from gbmrank.theory.parts import as_metric, as_objective
from gbmrank.theory.shrink import shrunk

__all__ = ["MARGIN", "Search", "adversarial", "falsify", "falsify_on_graphs", "settings_for"]

_CLIMB = 12
MARGIN = 1e-3
"""Least loss of performance that counts, relative to the best value."""


@final
@dataclass(frozen=True, slots=True)
class Search:
    """How to search.

    Parameters
    ----------
    items : tuple of int
        Numbers of items to try.
    grades : tuple of float
        Labels to try; those that objective or metric refuse are left out.
    seed : int
        Of the random distributions.
    """

    items: tuple[int, ...]
    grades: tuple[float, ...]
    seed: int


def falsify(
    objective: Any,
    metric: Any,
    *,
    items: int | tuple[int, ...] = (3, 4),
    grades: tuple[float, ...] | None = None,
    budget: int = 400,
    seed: int = 0,
) -> Counterexample | None:
    """Search for a counterexample to calibration, verify it and make it small.

    Adversarial distributions come first, then random ones; from those where a swap of
    neighbours is nearly worth it, probabilities are moved to make it so. A candidate counts
    when the minimum is attained, ranking by it loses at least a thousandth of the best
    value, and every best order costs more loss than the minimum (or, for a loss with kinks,
    the minimiser ties what should not tie). Not finding one proves nothing.

    Parameters
    ----------
    objective : Objective, template or str
        What is minimised.
    metric : Metric, measure or str
        What should be best.
    items : int or tuple of int, default=(3, 4)
        Numbers of items.
    grades : tuple of float, optional
        Labels; by default the widest of 0/1/2 and 0/1 that both take.
    budget : int, default=400
        Distributions to try.
    seed : int, default=0
        Of the search.

    Returns
    -------
    Counterexample or None
        ``print`` shows it.

    Examples
    --------
    >>> example = falsify("ranknet", "dcg")
    >>> example.best_order, example.probabilities
    ((0, 1, 2), (0.2, 0.5, 0.3))
    """
    template, measure = as_objective(objective), as_metric(metric)
    lengths = (items,) if isinstance(items, int) else tuple(items)
    search = Search(lengths, grades or settings_for(template, measure), seed)
    return _first(_candidates(search, template, measure), (template, measure), budget)


def falsify_on_graphs(
    objective: Any,
    metric: Any = "pairwise_disagreement(normalize=false)",
    *,
    budget: int = 400,
    seed: int = 0,
) -> Counterexample | None:
    """Search among distributions of preference graphs whose mean has low noise.

    Parameters
    ----------
    objective : Objective, template or str
        A comparison or linear loss.
    metric : Metric, measure or str
        Pairwise disagreement.
    budget, seed : int
        As for :func:`falsify`.
    """
    return _first(_graphs(seed), (as_objective(objective), as_metric(metric)), budget)


def _first(
    candidates: Iterator[Distribution],
    pair: tuple[AbstractObjective, AbstractMetric],
    budget: int,
) -> Counterexample | None:
    for candidate in itertools.islice(candidates, budget):
        example = _tried(candidate, *pair)
        if example is not None:
            return shrunk(example, *pair, MARGIN)
    return None


def settings_for(template: AbstractObjective, measure: AbstractMetric) -> tuple[float, ...]:
    """Return the grades that an objective and a metric both take."""
    for grades in ((0.0, 1.0, 2.0), (0.0, 0.5, 1.0), (0.0, 1.0)):
        probe = Distribution(list(itertools.product(grades, repeat=3)), np.ones(len(grades) ** 3))
        try:
            probe.inner_risk(template, np.zeros(3))
            probe.value(measure, np.zeros(3))
        except DataError:
            continue
        return grades
    raise DataError(f"{template.name} and {measure.name} take no common labels")


def _tried(
    candidate: Distribution, template: AbstractObjective, measure: AbstractMetric
) -> Counterexample | None:
    try:
        return shown(candidate, template, measure, margin=MARGIN)
    except (NumericError, FloatingPointError, np.linalg.LinAlgError):
        return None


def adversarial(n: int, grades: tuple[float, ...]) -> Iterator[Distribution]:
    """Yield distributions that papers use against surrogates, padded to n items."""
    top = grades[-1]
    small = [
        (((0, 0, 1), (1, 0, 0), (1, 1, 0)), (0.2, 0.5, 0.3)),
        (((0, 0, 1), (1, 0, 0), (1, 1, 0)), (0.4, 0.35, 0.25)),
        (((1, 1, 0, 0), (0, 0, 1, 1)), (0.55, 0.45)),
        (((1, 1, 0, 0), (0, 0, 1, 1), (1, 0, 0, 0)), (0.45, 0.4, 0.15)),
        (((1, 0, 0, 0), (0, 1, 0, 0), (0, 1, 0, 1)), (0.3, 0.2, 0.5)),
        (((1, 0, 0), (0, 1, 1)), (0.55, 0.45)),
        (((1, 0, 0, 0), (0, 1, 1, 1)), (0.6, 0.4)),
    ]
    for vectors, p in small:
        table = np.array(vectors, dtype=np.float64)
        if table.shape[1] > n:
            continue
        padded = np.pad(table, ((0, 0), (0, n - table.shape[1])))
        # A little of every single winner keeps minima finite.
        spread = 1e-2 / n
        mixed = np.concatenate([np.array(p) * (1.0 - n * spread), np.full(n, spread)])
        yield Distribution(np.concatenate([padded, np.eye(n)]) * top, mixed)
        yield Distribution(padded * top, p)
    if len(grades) > 2:
        middle = grades[1]
        for weight in (0.3, 0.45, 0.6):
            rows = np.full((2, n), 0.0)
            rows[0, 0], rows[1, 1:3] = top, middle
            yield Distribution(
                np.concatenate([rows, np.eye(n) * top]), [weight, 1 - weight] + [0.01] * n
            )


def _candidates(
    search: Search, template: AbstractObjective, measure: AbstractMetric
) -> Iterator[Distribution]:
    for n in search.items:
        yield from adversarial(n, search.grades)
    rng = np.random.default_rng(search.seed)
    while True:
        for n in search.items:
            drawn = [_random(rng, n, search.grades) for _ in range(6)]
            yield from drawn
            nearest = max(drawn, key=lambda one: _worth_of_a_swap(one, template, measure))
            yield from _climb(rng, nearest, template, measure)


def _random(rng: np.random.Generator, n: int, grades: tuple[float, ...]) -> Distribution:
    m = int(rng.integers(2, 6))
    labels = rng.choice(np.array(grades), size=(m, n))
    p = rng.dirichlet(np.full(m, float(rng.choice([0.5, 1.0, 3.0]))))
    base = np.eye(n) * grades[-1]
    return Distribution(np.concatenate([labels, base]), np.concatenate([p, np.full(n, 0.01)]))


def _worth_of_a_swap(
    distribution: Distribution, template: AbstractObjective, measure: AbstractMetric
) -> float:
    """Return what the best swap of neighbours in the minimiser's order gains (or costs)."""
    try:
        found = distribution.minimiser(template)
    except (GbmrankError, np.linalg.LinAlgError):
        return -np.inf
    order = np.argsort(-found.scores, kind="stable")
    n = len(order)
    rows = np.empty((n, n))
    for swap in range(n):
        changed = order.copy()
        if swap:
            changed[[swap - 1, swap]] = changed[[swap, swap - 1]]
        rows[swap, changed] = -np.arange(n)
    values = distribution.expected_values(measure, rows)
    sign = 1.0 if measure.higher_is_better else -1.0
    return float(np.max(sign * (values[1:] - values[0])))


def _climb(
    rng: np.random.Generator,
    start: Distribution,
    template: AbstractObjective,
    measure: AbstractMetric,
) -> Iterator[Distribution]:
    """Move probabilities so that a swap of neighbours becomes worth more."""
    best, at = start, _worth_of_a_swap(start, template, measure)
    for step in range(_CLIMB):
        noise = rng.normal(0.0, 0.6 * 0.85**step, size=len(best.probabilities))
        moved = Distribution(best.labels, best.probabilities * np.exp(noise))
        worth = _worth_of_a_swap(moved, template, measure)
        if worth > at:
            best, at = moved, worth
    yield best


def _graphs(seed: int) -> Iterator[Distribution]:
    """Yield pairs of graphs whose mean has low noise: first the recipe of the proof."""
    rng = np.random.default_rng(seed)
    for big, small in itertools.product((1.0, 0.8, 0.5), (0.2, 0.1, 0.05)):
        graphs = np.zeros((2, 3, 3))
        graphs[0, 0, 1], graphs[0, 0, 2] = big, 3.0 * big
        graphs[1, 1, 2], graphs[1, 2, 0] = small, big
        yield Distribution(graphs, [0.5, 0.5])
    while True:
        graphs = np.round(rng.random((2, 3, 3)) * rng.integers(0, 4, size=(2, 3, 3)), 1)
        graphs *= 1.0 - np.eye(3)
        candidate = Distribution(graphs, [0.5, 0.5])
        if is_low_noise(candidate.mean_graph()):
            yield candidate
