"""Make counterexamples small and readable."""

from collections.abc import Callable, Iterator

import numpy as np

from gbmrank.errors import GbmrankError
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.theory.counterexamples import Counterexample, shown
from gbmrank.theory.distributions import Distribution

__all__ = ["shrunk"]

Judge = Callable[[Distribution], Counterexample | None]
_ROUNDINGS = (4, 5, 8, 10, 20, 50, 100)


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

    current = example
    while True:
        smaller = _first(judge, _fewer(current))
        if smaller is None:
            break
        current = smaller
    rounded = _first(judge, _rounder(current))
    return current if rounded is None else rounded


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
