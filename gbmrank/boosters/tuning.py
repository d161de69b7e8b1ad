"""What comparisons and the conformance kit know of a booster.

Each booster has one object of :class:`Tuning`: parameters for runs that can be repeated, the
space that is searched, and two small trainings by which the kit tries an objective or a metric.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from gbmrank.types import FloatArray, IntArray

__all__ = ["Range", "Rows", "Tuning"]


class Range(NamedTuple):
    """Values between two bounds, uniform in their logarithm."""

    low: float
    high: float
    whole: bool = False

    def at(self, share: float) -> float:
        """Return the value at a share of the way, from 0 to 1.

        Examples
        --------
        >>> Range(1.0, 100.0).at(0.5), Range(2, 32, whole=True).at(1.0)
        (10.0, 32)
        """
        value = min(self.low * (self.high / self.low) ** share, self.high)
        return round(value) if self.whole else value


class Rows(NamedTuple):
    """Rows of a small training: features, labels, and rows per query."""

    features: FloatArray
    labels: FloatArray
    sizes: IntArray


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """A booster in comparisons and in the conformance kit.

    Parameters
    ----------
    space : mapping of str to Range
        Parameters to search.
    aliases : mapping of str to tuple of str
        Other names of the parameters of ``space``.
    repeatable : mapping
        Parameters by which a run does not depend on what else the machine does.
    not_repeatable_with : frozenset of str
        Parameters that exclude those of ``repeatable``.
    demonstration : mapping
        Parameters that suit the small demonstration data.
    baselines : tuple of str
        The booster's own objectives that are compared by default.
    try_objective : callable
        ``(objective, params, rows, rounds)`` gives the scores of the rows after training.
    try_metric : callable
        ``(metric, rows)`` gives scores of the rows and the value the booster reports for them.
    """

    space: Mapping[str, Range]
    aliases: Mapping[str, tuple[str, ...]]
    repeatable: Mapping[str, Any]
    not_repeatable_with: frozenset[str]
    demonstration: Mapping[str, Any]
    baselines: tuple[str, ...]
    try_objective: Callable[[Any, Mapping[str, Any], Rows, int], FloatArray]
    try_metric: Callable[[Any, Rows], tuple[FloatArray, float]]

    def is_given(self, name: str, params: Mapping[str, Any]) -> bool:
        """Whether a parameter is among others, under any of its names."""
        return not params.keys().isdisjoint((name, *self.aliases.get(name, ())))
