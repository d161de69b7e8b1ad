"""Search for a distribution on which minimising an objective misorders for a metric.

:func:`search` tries :func:`candidates` (adversarial, random and hill-climbed distributions), and
simplifies what it finds (:func:`shrunk`).
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from gbmrank.data.columns import as_floats, read_table, read_whole
from gbmrank.errors import DataError, GbmrankError, NumericError, ParameterError
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.levels import Comparison
from gbmrank.objectives.pairwise import Pairwise
from gbmrank.registry.composition import as_metric, as_objective, cut_off, text_of
from gbmrank.theory.counterexamples import Counterexample, padded, padded_distributions, shown
from gbmrank.theory.distributions import Distribution, nature_of
from gbmrank.theory.minimise import MOST_WITH_KINKS
from gbmrank.theory.noise import is_low_noise
from gbmrank.theory.user_code import isolated
from gbmrank.theory.views import view

_CLIMB = 12
Judge = Callable[[Distribution], Counterexample | None]
_ROUNDINGS = (4, 5, 8, 10, 20, 50, 100)
_NOT_COMPUTED = "the minimiser of a risk that has kinks and is not convex is not computed"
_USUAL = (3, 4)
_MOST_ITEMS = 12
MARGIN = 1e-3
"""Smallest regret that counts, relative to the best value."""


@final
@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search for a counterexample."""

    example: Counterexample | None  #: A counterexample, if one was found
    tried: int  #: distributions that were tried
    failed: int = 0  #: those of them whose expected loss could not be minimised
    unattained: int = 0  #: those of them whose expected loss has no minimum, because scores diverge
    silent: str = ""  #: why the search has no result for this metric; empty if it has one
    #: what found it: trying distributions, or adding items to a stored counterexample
    by: str = "search"

    def __str__(self) -> str:
        if self.by == "padding":
            return f"{self.example}\n  found by adding items to a smaller counterexample"
        if self.silent:
            return f"the search says nothing: {self.silent}"
        left = [f"{self.failed} could not be minimised"] if self.failed else []
        if self.unattained:
            left.append(f"{self.unattained} have no minimum, because scores diverge")
        if self.example is None:
            return "; ".join([f"none found in {self.tried} distributions", *left])
        return "\n".join([str(self.example), *(f"  of {self.tried} tried, {one}" for one in left)])


def falsify(
    objective: Any,
    metric: Any,
    *,
    items: int | tuple[int, ...] | None = None,
    grades: tuple[float, ...] | None = None,
    budget: int = 400,
    seed: int = 0,
) -> Counterexample | None:
    """Search for a counterexample to calibration, verify it and make it small.

    A stored counterexample for a smaller cut-off is padded first, if there is one. Then
    adversarial distributions are tried, then random ones; if swapping two neighbours nearly
    improves the metric, the probabilities are adjusted until it does. A candidate counts if the
    minimum is attained, ranking by it loses at least a thousandth of the best value, and every
    best order has a larger loss than the minimum (or, for a loss with kinks, as soon as it
    separates items that the minimiser ties). If a best order has a smaller loss, the minimum was
    missed and the candidate is discarded. Finding nothing proves nothing; :func:`search` also
    returns how many distributions were evaluated.

    Parameters
    ----------
    objective : Objective, template or str
        The objective that is minimised.
    metric : Metric, measure or str
        The metric that should be optimal.
    items : int or tuple of int, optional
        Numbers of items: 3 and 4 by default, or just above the cut-off for a metric such as
        precision@5, for which all orders of fewer items are equal.
    grades : tuple of float, optional
        Labels; by default 0/1/2, or 0/1 if the objective or the metric does not support grades.
    budget : int, default=400
        Distributions to try.
    seed : int, default=0
        Seed of the search.

    Examples
    --------
    >>> example = falsify("ranknet", "dcg")
    >>> example.best_order, example.probabilities
    ((0, 1, 2), (0.2, 0.5, 0.3))
    """
    found = search(objective, metric, items=items, grades=grades, budget=budget, seed=seed)
    return found.example


@isolated
def search(
    objective: Any,
    metric: Any,
    *,
    items: int | tuple[int, ...] | None = None,
    grades: tuple[float, ...] | None = None,
    budget: int = 400,
    seed: int = 0,
) -> SearchResult:
    """Search like :func:`falsify`, and also return what was tried.

    Examples
    --------
    >>> print(search("ranknet", "precision@5", items=4))
    the search says nothing: every order of 4 items has the same precision@5; more items tell
    """
    template, measure = as_objective(objective), as_metric(metric)
    listed = items if isinstance(items, Sequence | np.ndarray) else (items,)
    given = None if items is None else tuple(read_whole(one, "items", 0) for one in listed)
    if given is None and grades is None:
        found = _by_padding(template, measure)
        if found is not None:
            return found
    lengths = _telling(measure, _USUAL if given is None else given)
    if given is None and not lengths:
        lengths = _telling(measure, tuple(range(5, _most(template) + 1)))[:2]
    if not lengths:
        return SearchResult(None, 0, silent=_silence(template, measure, given))
    labels = settings_for(template, measure) if grades is None else _grades(grades)
    distributions = candidates(template, measure, lengths, labels, read_whole(seed, "seed", 0))
    return _searched(distributions, (template, measure), budget)


def _by_padding(template: AbstractObjective, measure: AbstractMetric) -> SearchResult | None:
    """Add items to a stored counterexample of a smaller cut-off, and minimise again."""
    example = padded(template, measure)
    if example is not None:
        return SearchResult(example, 1, by="padding")
    if isinstance(template, Comparison | Pairwise):
        return None
    distributions = [each for _, each in padded_distributions(template, measure)]
    if not distributions:
        return None
    found = _searched(iter(distributions), (template, measure), len(distributions))
    return replace(found, by="padding") if found.example is not None else None


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
    return search_on_graphs(objective, metric, budget=budget, seed=seed).example


@isolated
def search_on_graphs(
    objective: Any,
    metric: Any = "pairwise_disagreement(normalize=false)",
    *,
    budget: int = 400,
    seed: int = 0,
) -> SearchResult:
    """Search like :func:`falsify_on_graphs`, and also return what was tried."""
    plan = graphs(read_whole(seed, "seed", 0))
    return _searched(plan, (as_objective(objective), as_metric(metric)), budget)


def settings_for(template: AbstractObjective, measure: AbstractMetric) -> tuple[float, ...]:
    """Return the grades that an objective and a metric both support."""
    for grades in ((0.0, 1.0, 2.0), (0.0, 0.5, 1.0), (0.0, 1.0)):
        probe = Distribution(list(itertools.product(grades, repeat=3)), np.ones(len(grades) ** 3))
        try:
            probe.inner_risk(template, np.zeros(3))
            probe.value(measure, np.zeros(3))
        except DataError:
            continue
        return grades
    raise DataError(f"{template.name} and {measure.name} support no common labels")


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
        # A small probability of every single winner keeps minima finite.
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
    template: AbstractObjective,
    measure: AbstractMetric,
    items: tuple[int, ...],
    grades: tuple[float, ...],
    seed: int,
) -> Iterator[Distribution]:
    """Yield adversarial distributions, then random and hill-climbed ones, indefinitely."""
    for n in items:
        yield from adversarial(n, grades)
    rng = np.random.default_rng(seed)
    while True:
        for n in items:
            drawn = [random_one(rng, n, grades) for _ in range(6)]
            yield from drawn
            nearest = max(drawn, key=lambda one: worth_of_a_swap(one, template, measure))
            yield climbed(rng, nearest, template, measure)


def random_one(rng: np.random.Generator, n: int, grades: tuple[float, ...]) -> Distribution:
    """Draw a few label vectors; a small share of every single winner keeps minima finite."""
    m = int(rng.integers(2, 6))
    labels = rng.choice(np.array(grades), size=(m, n))
    p = rng.dirichlet(np.full(m, float(rng.choice([0.5, 1.0, 3.0]))))
    base = np.eye(n) * grades[-1]
    return Distribution(np.concatenate([labels, base]), np.concatenate([p, np.full(n, 0.01)]))


def worth_of_a_swap(
    distribution: Distribution, template: AbstractObjective, measure: AbstractMetric
) -> float:
    """Return the gain of the best swap of neighbours in the minimiser's order."""
    try:
        found = distribution.minimiser(template)
    except GbmrankError:  # counted when the distribution itself is tried
        return -np.inf
    order = np.argsort(-found.scores, kind="stable")
    n = len(order)
    rows = np.empty((n, n))
    for swap in range(n):  # none first
        changed = order.copy()
        changed[[max(swap - 1, 0), swap]] = order[[swap, max(swap - 1, 0)]]
        rows[swap, changed] = -np.arange(n)
    values = distribution.expected_values(measure, rows)
    sign = 1.0 if measure.higher_is_better else -1.0
    return float(np.max(sign * (values[1:] - values[0])))


def climbed(
    rng: np.random.Generator,
    best: Distribution,
    template: AbstractObjective,
    measure: AbstractMetric,
) -> Distribution:
    """Change probabilities by hill climbing so that a swap of neighbours gains more."""
    at = worth_of_a_swap(best, template, measure)
    for step in range(_CLIMB):
        noise = rng.normal(0.0, 0.6 * 0.85**step, size=len(best.probabilities))
        moved = Distribution(best.labels, best.probabilities * np.exp(noise))
        worth = worth_of_a_swap(moved, template, measure)
        if worth > at:
            best, at = moved, worth
    return best


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


def shrunk(
    example: Counterexample, template: AbstractObjective, measure: AbstractMetric, margin: float
) -> Counterexample:
    """Return a counterexample with fewer label vectors and round probabilities.

    Label vectors are dropped one by one, then probabilities are rounded to the coarsest
    grid, as long as the result still is a counterexample.
    """

    def judge(distribution: Distribution) -> Counterexample | None:
        try:
            return shown(distribution, template, measure, margin=margin)
        except GbmrankError:
            return None

    while (smaller := _first(judge, _fewer(example))) is not None:
        example = smaller
    return _first(judge, _rounder(example)) or example


def _first(judge: Judge, candidates: Iterator[Distribution]) -> Counterexample | None:
    return next((found for each in candidates if (found := judge(each)) is not None), None)


def _fewer(example: Counterexample) -> Iterator[Distribution]:
    labels, p = np.asarray(example.labels), np.asarray(example.probabilities)
    if len(p) <= 2:
        return
    for row in np.argsort(p):
        keep = np.arange(len(p)) != row
        yield Distribution(labels[keep], p[keep])


def _rounder(example: Counterexample) -> Iterator[Distribution]:
    labels, p = np.asarray(example.labels), np.asarray(example.probabilities)
    for parts in _ROUNDINGS:
        counts = np.round(p * parts)
        if np.all(counts > 0) and counts.sum() == parts:
            yield Distribution(labels, counts / parts)


def _searched(
    distributions: Iterator[Distribution],
    pair: tuple[AbstractObjective, AbstractMetric],
    budget: int,
) -> SearchResult:
    budget, nature = read_whole(budget, "budget", 1), nature_of(pair[0])
    if not (nature.smooth or nature.convex):
        return SearchResult(None, 0, silent=_NOT_COMPUTED)
    tried = failed = unattained = 0
    for candidate in itertools.islice(distributions, budget):
        tried += 1
        try:
            found = candidate.minimiser(pair[0])
            example = shown(candidate, *pair, margin=MARGIN, found=found)
        except (NumericError, FloatingPointError):
            failed += 1
            continue
        unattained += not found.attained
        if example is not None:
            small = shrunk(example, *pair, MARGIN)
            return SearchResult(small, tried, failed, unattained)
    return SearchResult(None, tried, failed, unattained)


def _grades(grades: Any) -> tuple[float, ...]:
    column = read_table(as_floats(grades, "grades"), "grades")
    if len(np.unique(column)) < 2:
        raise ParameterError(f"grades must be at least two different labels, got {column.tolist()}")
    return tuple(column.tolist())


def _telling(measure: AbstractMetric, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Keep the numbers of items at which a metric depends on the order."""
    low = [n for n in lengths if n < 2]
    if low or not lengths:
        raise ParameterError(f"a search needs at least 2 items, got {low or lengths}")
    seen = view(measure)
    return tuple(n for n in lengths if seen is None or float(np.ptp(seen.discounts(n))) > 0.0)


def _most(template: AbstractObjective) -> int:
    return _MOST_ITEMS if nature_of(template).smooth else MOST_WITH_KINKS


def _silence(
    template: AbstractObjective, measure: AbstractMetric, given: tuple[int, ...] | None
) -> str:
    name = text_of(measure)
    if given is not None:
        listed = " or ".join(map(str, given))
        return f"every order of {listed} items has the same {name}; more items tell"
    if cut_off(measure) is None:
        return f"every order has the same {name}"
    kinks = "" if nature_of(template).smooth else " for a loss with kinks"
    return (
        f"every order of up to {_most(template)} items has the same {name}, and longer queries are "
        f"not searched{kinks}; a smaller cut-off can be"
    )
