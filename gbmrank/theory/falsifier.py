"""Search for a distribution on which minimising an objective misorders for a metric."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gbmrank.columns import as_floats
from gbmrank.errors import NumericError, ParameterError
from gbmrank.matrices import read_table, read_whole
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.theory.candidates import Search, candidates, graphs, settings_for
from gbmrank.theory.counterexamples import Counterexample, shown
from gbmrank.theory.distributions import Distribution, nature_of
from gbmrank.theory.minimise import MOST_WITH_KINKS
from gbmrank.theory.parts import as_metric, as_objective, cut_off, text_of
from gbmrank.theory.shrink import shrunk
from gbmrank.theory.views import view

__all__ = [
    "MARGIN",
    "SearchResult",
    "falsify",
    "falsify_on_graphs",
    "search",
    "search_on_graphs",
]

_NOT_COMPUTED = "the minimiser of a risk that has kinks and is not convex is not computed"
_USUAL = (3, 4)
_MOST_ITEMS = 12
MARGIN = 1e-3
"""Least loss of performance that counts, relative to the best value."""


@final
@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, and how much of it counts.

    Parameters
    ----------
    example : Counterexample or None
        A counterexample, if one was found.
    tried : int
        Distributions that were tried.
    failed : int
        Those of them whose expected loss could not be minimised.
    unattained : int
        Those of them whose expected loss has no minimum, as scores run off.
    silent : str
        Why the search says nothing about this metric; empty where it does.
    """

    example: Counterexample | None
    tried: int
    failed: int = 0
    unattained: int = 0
    silent: str = ""

    def __str__(self) -> str:
        if self.silent:
            return f"the search says nothing: {self.silent}"
        left = [
            f"{count} {words}"
            for count, words in (
                (self.failed, "could not be minimised"),
                (self.unattained, "have no minimum, as scores run off"),
            )
            if count
        ]
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

    Adversarial distributions come first, then random ones; from those where a swap of
    neighbours is nearly worth it, probabilities are moved to make it so. A candidate counts
    when the minimum is attained, ranking by it loses at least a thousandth of the best
    value, and every best order costs more loss than the minimum (or, for a loss with kinks,
    as soon as it sets apart what the minimiser ties). Where a best order turns out to cost
    less, the minimum was missed and nothing is claimed. Not finding one proves nothing;
    :func:`search` also tells how many distributions could be judged.

    Parameters
    ----------
    objective : Objective, template or str
        What is minimised.
    metric : Metric, measure or str
        What should be best.
    items : int or tuple of int, optional
        Numbers of items: 3 and 4 by default, or just above the cut-off for a metric such as
        precision@5, for which all orders of fewer items are equal.
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
    found = search(objective, metric, items=items, grades=grades, budget=budget, seed=seed)
    return found.example


def search(
    objective: Any,
    metric: Any,
    *,
    items: int | tuple[int, ...] | None = None,
    grades: tuple[float, ...] | None = None,
    budget: int = 400,
    seed: int = 0,
) -> SearchResult:
    """Search as :func:`falsify` does, and tell what was tried.

    Parameters
    ----------
    objective, metric, items, grades, budget, seed : object
        As for :func:`falsify`.

    Returns
    -------
    SearchResult
        The counterexample or None, with the numbers of distributions tried, of those that
        could not be minimised and of those without a minimum.

    Examples
    --------
    >>> print(search("ranknet", "precision@5", items=4))
    the search says nothing: every order of 4 items has the same precision@5; more items tell
    """
    template, measure = as_objective(objective), as_metric(metric)
    given = None if items is None else _numbers_of_items(items)
    lengths = _lengths(template, measure) if given is None else _telling(measure, given)
    if not lengths:
        return SearchResult(None, 0, silent=_silence(template, measure, given))
    labels = settings_for(template, measure) if grades is None else _grades(grades)
    plan = Search(lengths, labels, read_whole(seed, "seed", 0))
    return _searched(candidates(plan, template, measure), (template, measure), budget)


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


def search_on_graphs(
    objective: Any,
    metric: Any = "pairwise_disagreement(normalize=false)",
    *,
    budget: int = 400,
    seed: int = 0,
) -> SearchResult:
    """Search as :func:`falsify_on_graphs` does, and tell what was tried.

    Parameters
    ----------
    objective, metric, budget, seed : object
        As for :func:`falsify_on_graphs`.
    """
    plan = graphs(read_whole(seed, "seed", 0))
    return _searched(plan, (as_objective(objective), as_metric(metric)), budget)


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


def _numbers_of_items(items: Any) -> tuple[int, ...]:
    listed = items if isinstance(items, Sequence | np.ndarray) else (items,)
    return tuple(read_whole(one, "items", 0) for one in listed)


def _grades(grades: Any) -> tuple[float, ...]:
    column = read_table(as_floats(grades, "grades"), "grades")
    if len(np.unique(column)) < 2:
        raise ParameterError(f"grades are at least two different labels, got {column.tolist()}")
    return tuple(column.tolist())


def _telling(measure: AbstractMetric, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Keep the numbers of items at which the order makes a difference to a metric."""
    low = [n for n in lengths if n < 2]
    if low or not lengths:
        raise ParameterError(f"a search needs at least 2 items, got {low or lengths}")
    seen = view(measure)
    return tuple(n for n in lengths if seen is None or float(np.ptp(seen.discounts(n))) > 0.0)


def _lengths(template: AbstractObjective, measure: AbstractMetric) -> tuple[int, ...]:
    usual = _telling(measure, _USUAL)
    return usual or _telling(measure, tuple(range(5, _most(template) + 1)))[:2]


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
