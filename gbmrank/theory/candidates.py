"""Distributions that a search for counterexamples goes through."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from gbmrank.errors import DataError, GbmrankError
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.theory.distributions import Distribution
from gbmrank.theory.noise import is_low_noise

__all__ = [
    "Search",
    "adversarial",
    "candidates",
    "climbed",
    "graphs",
    "random_one",
    "settings_for",
    "worth_of_a_swap",
]

_CLIMB = 12


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


def candidates(
    plan: Search, template: AbstractObjective, measure: AbstractMetric
) -> Iterator[Distribution]:
    """Yield adversarial distributions, then random and climbed ones without end."""
    for n in plan.items:
        yield from adversarial(n, plan.grades)
    rng = np.random.default_rng(plan.seed)
    while True:
        for n in plan.items:
            drawn = [random_one(rng, n, plan.grades) for _ in range(6)]
            yield from drawn
            nearest = max(drawn, key=lambda one: worth_of_a_swap(one, template, measure))
            yield from climbed(rng, nearest, template, measure)


def random_one(rng: np.random.Generator, n: int, grades: tuple[float, ...]) -> Distribution:
    """Draw a few label vectors, with a little of every single winner to keep minima finite."""
    m = int(rng.integers(2, 6))
    labels = rng.choice(np.array(grades), size=(m, n))
    p = rng.dirichlet(np.full(m, float(rng.choice([0.5, 1.0, 3.0]))))
    base = np.eye(n) * grades[-1]
    return Distribution(np.concatenate([labels, base]), np.concatenate([p, np.full(n, 0.01)]))


def worth_of_a_swap(
    distribution: Distribution, template: AbstractObjective, measure: AbstractMetric
) -> float:
    """Return what the best swap of neighbours in the minimiser's order gains (or costs)."""
    try:
        found = distribution.minimiser(template)
    except GbmrankError:  # counted where the distribution itself is tried
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


def climbed(
    rng: np.random.Generator,
    start: Distribution,
    template: AbstractObjective,
    measure: AbstractMetric,
) -> Iterator[Distribution]:
    """Move probabilities so that a swap of neighbours becomes worth more."""
    best, at = start, worth_of_a_swap(start, template, measure)
    for step in range(_CLIMB):
        noise = rng.normal(0.0, 0.6 * 0.85**step, size=len(best.probabilities))
        moved = Distribution(best.labels, best.probabilities * np.exp(noise))
        worth = worth_of_a_swap(moved, template, measure)
        if worth > at:
            best, at = moved, worth
    yield best


def graphs(seed: int) -> Iterator[Distribution]:
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
