"""Statistical results of a comparison, as frozen data and in sentences."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, NamedTuple, final

from gbmrank.experiments.results import Measure, Results, System
from gbmrank.experiments.systems import title_of

Outcome = Literal["better", "worse", "undecided"]
_FEW_QUERIES = 50
_NAMES = 4  # of systems in one sentence


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
    """One system on one measure."""

    system: System
    mean: float  # over the queries for which every system has a value
    interval: Interval  # of the mean, over queries
    seed_sd: float  # of the mean over seeds, which intervals leave out; NaN with fewer than two


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """One system against its baseline on one measure."""

    system: System
    baseline: System
    difference: float  # of the means, system minus baseline, in the direction of the measure
    interval: Interval  # of the difference, paired over queries
    p: float  # two-sided, of the paired randomisation test
    p_holm: float  # corrected for all comparisons on this measure, with whichever baseline
    effect: float  # Cohen's d of paired differences, positive if better; NaN if all are equal
    wins: int  # queries on which the system is better
    ties: int  # within 1e-12
    losses: int
    outcome: Outcome  # of the corrected test, at the level
    # The interval lies within the margin. For 95% intervals this is the two one-sided tests
    # procedure at 2.5%: stricter than the usual 5%, and visible in a plot.
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
    """Everything about one measure."""

    measure: Measure
    n_queries: int  # for which every system has a value; only these count
    left_out: int  # queries for which only some of the systems have a value
    undefined: int  # queries without a value for any system
    summaries: tuple[Summary, ...]  # in the order of the results
    comparisons: tuple[Comparison, ...]  # of systems that have values, as their baseline has
    pairs: tuple[Pair, ...]  # all, where there are more than two systems
    excluded: tuple[System, ...]  # without values

    @property
    def best(self) -> Summary | None:
        """System with the best mean, the first in case of ties; None if there is none."""
        known = [each for each in self.summaries if not math.isnan(each.mean)]
        return max(known, key=lambda each: self.measure.sign * each.mean, default=None)

    def summary(self, system: System) -> Summary | None:
        """Return the statistics of a system; None where it has no values."""
        return next((each for each in self.summaries if each.system == system), None)

    def ranked(self, systems: Sequence[System]) -> list[System]:
        """Return systems, the best mean first and those without values last."""
        means = {each.system: -self.measure.sign * each.mean for each in self.summaries}
        lost = {system: mean for system, mean in means.items() if not math.isnan(mean)}
        return sorted(systems, key=lambda each: lost.get(each, math.inf))

    def mean(self, system: System) -> float:
        """Return the mean of a system; NaN where it has none."""
        found = self.summary(system)
        return math.nan if found is None else found.mean

    def comparison(self, system: System) -> Comparison | None:
        """Return how a system compares with its baseline, if it does."""
        return next((each for each in self.comparisons if each.system == system), None)


@final
@dataclass(frozen=True, slots=True)
class Analysis:
    """Statistics of a comparison."""

    baseline: System  # with which the others are compared
    baselines: tuple[System, ...]  # of each booster, if systems are compared within boosters
    level: float  # of the intervals; tests are decided at one minus it
    margin: float  # smallest difference that matters; with 0 equivalence is not tested
    seed: int  # of the resampling
    resamples: int  # draws per paired test and interval
    tukey_resamples: int  # draws per test of all pairs; fewer where there is much data
    measures: tuple[MeasureAnalysis, ...]  # the target first
    verdict: str  # in words; one sentence per booster if each has its own baseline
    not_established: tuple[str, ...]  # what the comparison does not show

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; NaN becomes None."""
        return {"schema": "gbmrank.analysis/1", **_plain(self)}


def verdict(target: MeasureAnalysis, results: Results, level: float) -> str:
    """Return the result on the target measure, in a few sentences."""
    name, best, baseline = target.measure.name, target.best, title_of(results.baseline)
    if best is None:
        return f"Nothing was measured on {name}: no query has a value for every system."
    if len(target.summaries) == 1:
        ends, only = _between(best.interval, level), title_of(best.system)
        return f"{only} has a mean {name} of {best.mean:.4f}{ends}, compared with nothing."
    if not target.comparisons:
        return (
            f"The baseline {baseline} has no values, so nothing is compared with it; the best "
            f"mean {name}, {best.mean:.4f}, is that of {title_of(best.system)}."
        )
    if results.baselines:
        return " ".join(_by_booster(target, results, level))
    text = _decided(target, target.comparisons, f"the baseline {baseline}", level)
    return f"{text[0].upper()}{text[1:]}" if text.startswith(("no ", "every ")) else text


def not_established(
    results: Results, measures: Sequence[MeasureAnalysis], margin: float, level: float
) -> Iterator[str]:
    """Yield conclusions that the comparison does not support."""
    target = measures[0]
    for system in results.systems:
        if system.is_given:
            yield (
                f"How good {system.objective} is on new queries: its model may have been trained "
                "on these, and its values are too good then. Give queries from after its training."
            )
    if target.best is not None:
        yield from _about_best(target, target.best.system, level)
    yield from _undecided(target, margin)
    if target.best is not None:
        yield from _disagreement(target.best.system, measures[1:])
    if len(measures) > 1:
        yield "Anything about all measures together: p values are corrected within each measure."
    yield from _thin(results, target)
    yield from _missing(results, target)


def _by_booster(target: MeasureAnalysis, results: Results, level: float) -> Iterator[str]:
    """Return a sentence per booster, about its objectives, and one about the boosters."""
    name = target.measure.name
    for base in results.baselines:
        own = [each for each in target.comparisons if each.baseline == base]
        own = [each for each in own if each.system not in results.baselines]
        short = title_of(base, booster=False)
        booster = title_of(base).removesuffix(f" {short}")
        if own:
            yield f"{booster}: {_decided(target, own, short, level, within=True)}"
        elif base in target.excluded:
            yield f"{booster}: {short} has no values on {name}, so nothing is compared with it."
    for base in results.baselines[1:]:
        compared = target.comparison(base)
        if compared is not None:
            side = "above" if compared.difference > 0.0 else "below"
            known = "not established, " if compared.outcome == "undecided" else ""
            yield (
                f"The boosters themselves: {title_of(base)} is {_size(target, compared)} {side} "
                f"{title_of(compared.baseline)} on {name} ({known}corrected p "
                f"{_p(compared.p_holm)})."
            )


def _decided(
    target: MeasureAnalysis,
    comparisons: Sequence[Comparison],
    baseline: str,
    level: float,
    *,
    within: bool = False,
) -> str:
    """Return what is established about comparisons with one baseline, in lower case.

    Systems are named without their booster in a sentence that is ``within`` one.
    """
    name = target.measure.name
    better = [each for each in comparisons if each.outcome == "better"]
    worse = [each for each in comparisons if each.outcome == "worse"]
    if better:
        first = max(better, key=lambda each: abs(each.difference))
        small = ", a difference that is within the margin" if first.equivalent else ""
        share = "" if not target.mean(first.baseline) else f" or {_size(target, first)}"
        low, high = first.interval
        ends = first.interval if first.difference > 0.0 else Interval(-high, -low)
        size = f"{abs(first.difference):.4f}{share}{_between(ends, level)}"
        return (
            f"{title_of(first.system, booster=not within)} is better than {baseline} on {name}, "
            f"by {size}, corrected p {_p(first.p_holm)}{small}."
            f"{_others(len(better) - 1, len(worse))}"
        )
    if worse:
        return f"no system is better than {baseline} on {name}.{_others(0, len(worse))}"
    if all(each.equivalent for each in comparisons):
        return f"every system is as good as {baseline} on {name}, within the margin."
    return f"no difference to {baseline} is established on {name}."


def _size(target: MeasureAnalysis, compared: Comparison) -> str:
    """Return a difference in percent of the baseline, or as it is if that is zero."""
    base = target.mean(compared.baseline)
    size = abs(compared.difference)
    return f"{100.0 * size / abs(base):.1f}%" if base else f"{size:.4f}"


def _undecided(target: MeasureAnalysis, margin: float) -> Iterator[str]:
    known, name = target.comparisons, target.measure.name
    rest = [each for each in known if each.outcome == "undecided" and not each.equivalent]
    if not rest:
        return
    who = "they are"
    if len(rest) == 1:
        who, first, second = "it is", title_of(rest[0].system), title_of(rest[0].baseline)
        yield f"Whether {first} is better or worse than {second} on {name}."
    else:
        yield (
            f"{len(rest)} of {len(known)} systems: no difference to the baseline is established on "
            f"{name}."
        )
    if margin > 0.0:
        yield f"Whether {who} within the margin of {margin:g} of the baseline."
    else:
        yield f"Whether {who} as good as the baseline: no margin was given to judge that by."


def _about_best(target: MeasureAnalysis, best: System, level: float) -> Iterator[str]:
    close = [
        pair.second if pair.first == best else pair.first
        for pair in target.pairs
        if best in (pair.first, pair.second) and pair.p > 1.0 - level
    ]
    if close:
        others = len(target.summaries) - 1
        which = title_of(close[0]) if len(close) == 1 else f"{len(close)} of the {others} others"
        yield (
            f"Whether {title_of(best)}, which has the best mean, is better than {which} "
            "(Tukey's test, which compares all pairs)."
        )
    compared = target.comparison(best)
    if compared is not None and compared.outcome == "better" and compared.wins <= compared.losses:
        yield (
            f"That {title_of(best)} is better on most queries: it is better on {compared.wins} and "
            f"worse on {compared.losses}; its mean is better as its gains are larger."
        )


def _disagreement(best: System, measures: Sequence[MeasureAnalysis]) -> Iterator[str]:
    others = [
        each.measure.name for each in measures if each.best is not None and each.best.system != best
    ]
    if others:
        yield f"That {title_of(best)} is best on {_list(others)}: another has the best mean there."


def _thin(results: Results, target: MeasureAnalysis) -> Iterator[str]:
    count = target.n_queries
    if 0 < count < _FEW_QUERIES:
        yield f"Exact intervals: with {count} queries, bootstrap intervals are too short."
    if len(results.seeds) < 2:
        yield "How much training with another seed changes: there is one seed."
    else:
        yield "What another seed or training set would give: intervals are over queries alone."
    stopped = results.stopped_at_once()
    if stopped:
        yield (
            f"How good {_list([title_of(each) for each in stopped])} can be: early stopping kept "
            "fewer than 5 rounds in some runs, so the comparison says little."
        )


def _missing(results: Results, target: MeasureAnalysis) -> Iterator[str]:
    if target.excluded:
        names = _list([title_of(each) for each in target.excluded])
        yield f"How good {names} would be: there are no values on {target.measure.name}."
    if target.left_out:
        yield (
            f"Anything about {target.left_out} queries that only some of the systems have a "
            "value for; they are left out."
        )
    partly = len({run.system for run in results.failed} - set(target.excluded))
    if partly:
        some = f"{partly} {'system' if partly == 1 else 'systems'}"
        yield f"A like-for-like comparison of {some} of which some runs failed."


def _between(ends: Interval, level: float) -> str:
    if math.isnan(ends.low):
        return ""
    return f" ({100 * level:g}% interval {ends.low:.4f} to {ends.high:.4f})"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _others(better: int, worse: int) -> str:
    parts = []
    if better:
        parts = [
            f"{_count(better)} {'other system is' if better == 1 else 'others are'} better too"
        ]
    if worse:
        parts.append(f"{_count(worse)} {'is' if worse == 1 else 'are'} worse")
    text = " and ".join(parts)
    return f" {text[0].upper()}{text[1:]}." if text else ""


def _count(count: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[count] if count < len(words) else str(count)


def _list(names: list[str]) -> str:
    if len(names) > _NAMES + 1:
        names = [*names[:_NAMES], f"{len(names) - _NAMES} others"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(each) for name, each in value._asdict().items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
