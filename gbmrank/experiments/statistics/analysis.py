"""What statistics say about a comparison, as plain frozen data."""

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, NamedTuple, final

from gbmrank.experiments.results import Measure, System

__all__ = ["Analysis", "Comparison", "Interval", "MeasureAnalysis", "Outcome", "Pair", "Summary"]

Outcome = Literal["better", "worse", "undecided"]


class Interval(NamedTuple):
    """Ends of a percentile bootstrap interval; NaN with fewer than two queries."""

    low: float
    high: float

    def inside(self, margin: float) -> bool:
        """Return whether it lies strictly within ``(-margin, margin)``."""
        return -margin < self.low and self.high < margin


@final
@dataclass(frozen=True, slots=True)
class Summary:
    """One system on one measure.

    Parameters
    ----------
    system : System
        Which.
    mean : float
        Over the queries that every system has.
    interval : Interval
        Of the mean, over queries.
    seed_sd : float
        Standard deviation of the mean over seeds; NaN with fewer than two of them. It is not
        part of the interval.
    """

    system: System
    mean: float
    interval: Interval
    seed_sd: float


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """One system against the baseline on one measure.

    Parameters
    ----------
    system : System
        Which.
    difference : float
        Mean of the system minus mean of the baseline, in the direction of the measure.
    interval : Interval
        Of the difference, over queries, paired.
    p : float
        Two-sided, of the paired randomisation test.
    p_holm : float
        Corrected for the number of systems compared with the baseline on this measure.
    effect : float
        Cohen's d of paired differences: their mean over their standard deviation, positive
        where the system is better. NaN where all differences are equal.
    wins, ties, losses : int
        Queries on which the system is better, equal (within 1e-12) or worse.
    outcome : {"better", "worse", "undecided"}
        Whether the corrected test decides at the level.
    equivalent : bool
        Whether the interval lies within the margin. For 95% intervals this is the two
        one-sided tests procedure at 2.5%: stricter than the usual 5%, and visible in a plot.
    """

    system: System
    difference: float
    interval: Interval
    p: float
    p_holm: float
    effect: float
    wins: int
    ties: int
    losses: int
    outcome: Outcome
    equivalent: bool


@final
@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems on one measure; p is that of randomised Tukey HSD over all pairs."""

    first: System
    second: System
    difference: float
    p: float


@final
@dataclass(frozen=True, slots=True)
class MeasureAnalysis:
    """Everything about one measure.

    Parameters
    ----------
    measure : Measure
        Which.
    n_queries : int
        Queries that every system has: those that count.
    left_out : int
        Queries that only some of the systems have.
    undefined : int
        Queries without a value for any system.
    summaries : tuple of Summary
        In the order of the results.
    comparisons : tuple of Comparison
        Without the baseline; empty where the baseline has no values.
    pairs : tuple of Pair
        All pairs, where there are more than two systems.
    excluded : tuple of System
        Systems without values.
    """

    measure: Measure
    n_queries: int
    left_out: int
    undefined: int
    summaries: tuple[Summary, ...]
    comparisons: tuple[Comparison, ...]
    pairs: tuple[Pair, ...]
    excluded: tuple[System, ...]

    @property
    def best(self) -> Summary | None:
        """System with the best mean, the first of equals; None where there is none."""
        known = [each for each in self.summaries if not math.isnan(each.mean)]
        sign = 1.0 if self.measure.higher_is_better else -1.0
        return max(known, key=lambda each: sign * each.mean, default=None)

    def comparison(self, system: System) -> Comparison | None:
        """Return how a system compares with the baseline, if it does."""
        return next((each for each in self.comparisons if each.system == system), None)


@final
@dataclass(frozen=True, slots=True)
class Analysis:
    """Statistics of a comparison.

    Parameters
    ----------
    baseline : System
        What differences are taken to.
    level : float
        Of the intervals; tests are decided at one minus it.
    margin : float
        Differences below it do not matter in practice; zero asks for no such verdict.
    seed : int
        Of the resampling.
    resamples : int
        Draws per paired test and interval.
    tukey_resamples : int
        Draws per test of all pairs; fewer where there is much data.
    measures : tuple of MeasureAnalysis
        The target first.
    verdict : str
        The answer in one sentence.
    not_established : tuple of str
        What it does not say.
    """

    baseline: System
    level: float
    margin: float
    seed: int
    resamples: int
    tukey_resamples: int
    measures: tuple[MeasureAnalysis, ...]
    verdict: str
    not_established: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON; what is not a number is None."""
        return {"schema": "gbmrank.analysis/1", **_plain(self)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(each) for name, each in value._asdict().items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
