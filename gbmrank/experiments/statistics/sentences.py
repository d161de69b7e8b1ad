"""What a comparison found and what it did not, in plain words."""

import math
from collections.abc import Iterator

from gbmrank.experiments.results import Results, System
from gbmrank.experiments.statistics.analysis import Comparison, Interval, MeasureAnalysis

__all__ = ["not_established", "verdict"]

_FEW_QUERIES = 50
_NAMES = 4  # of systems in one sentence


def verdict(target: MeasureAnalysis, baseline: System, level: float) -> str:
    """Return the answer on the target measure, in one sentence or two."""
    name, best = target.measure.name, target.best
    if best is None:
        return f"Nothing was measured on {name}: no query has a value for every system."
    if len(target.summaries) == 1:
        ends = _between(best.interval, level)
        return f"{best.system} has a mean {name} of {best.mean:.4f}{ends}, compared with nothing."
    if not target.comparisons:
        return (
            f"The baseline {baseline} has no values, so nothing is compared with it; the best "
            f"mean {name}, {best.mean:.4f}, is that of {best.system}."
        )
    return _decided(target, baseline, level)


def _decided(target: MeasureAnalysis, baseline: System, level: float) -> str:
    name = target.measure.name
    better = [each for each in target.comparisons if each.outcome == "better"]
    worse = [each for each in target.comparisons if each.outcome == "worse"]
    same = [each for each in target.comparisons if each.equivalent]
    if better:
        first = max(better, key=lambda each: abs(each.difference))
        small = ", a difference that is within the margin" if first.equivalent else ""
        size = f"{abs(first.difference):.4f}{_between(_ahead(first), level)}"
        return (
            f"{first.system} is better than the baseline {baseline} on {name}, by {size}, "
            f"corrected p {_p(first.p_holm)}{small}.{_others(len(better) - 1, len(worse))}"
        )
    if worse:
        return f"No system is better than the baseline {baseline} on {name}." + _others(
            0, len(worse)
        )
    if len(same) == len(target.comparisons):
        return f"Every system is as good as the baseline {baseline} on {name}, within the margin."
    return f"No difference to the baseline {baseline} is established on {name}."


def not_established(
    results: Results, measures: tuple[MeasureAnalysis, ...], margin: float, level: float
) -> tuple[str, ...]:
    """Return what a reader could believe and the comparison does not show."""
    target = measures[0]
    return (
        *_undecided(target, margin),
        *_first_and_second(target, level),
        *_most(target),
        *_disagreement(measures),
        *_thin(results, target),
        *_missing(results, target),
    )


def _undecided(target: MeasureAnalysis, margin: float) -> Iterator[str]:
    open_ones = [
        each for each in target.comparisons if each.outcome == "undecided" and not each.equivalent
    ]
    if not open_ones:
        return
    names = _list([str(each.system) for each in open_ones])
    verb = "is" if len(open_ones) == 1 else "are"
    who = "it" if len(open_ones) == 1 else "they"
    yield f"Whether {names} {verb} better or worse than the baseline on {target.measure.name}."
    if margin > 0.0:
        yield f"Whether {who} {verb} within the margin of {margin:g} of the baseline."
    else:
        yield f"Whether {who} {verb} as good as the baseline: no margin was given to judge that by."


def _first_and_second(target: MeasureAnalysis, level: float) -> Iterator[str]:
    best = target.best
    if best is None or not target.pairs:
        return
    close = [
        pair.second if pair.first == best.system else pair.first
        for pair in target.pairs
        if best.system in (pair.first, pair.second) and pair.p > 1.0 - level
    ]
    if close:
        yield (
            f"Whether {best.system}, which has the best mean, is better than "
            f"{_list([str(each) for each in close])} (all pairs, Tukey HSD)."
        )


def _most(target: MeasureAnalysis) -> Iterator[str]:
    best = target.best
    compared = None if best is None else target.comparison(best.system)
    if compared is None or compared.outcome != "better" or compared.wins > compared.losses:
        return
    yield (
        f"That {compared.system} is better on most queries: it is better on {compared.wins} and "
        f"worse on {compared.losses}; its mean is better as its gains are larger."
    )


def _disagreement(measures: tuple[MeasureAnalysis, ...]) -> Iterator[str]:
    best = measures[0].best
    others = [
        each.measure.name
        for each in measures[1:]
        if best is not None and each.best is not None and each.best.system != best.system
    ]
    if best is not None and others:
        yield f"That {best.system} is best on {_list(others)}: another has the best mean there."
    if len(measures) > 1:
        yield "Anything about all measures together: p values are corrected within each measure."


def _thin(results: Results, target: MeasureAnalysis) -> Iterator[str]:
    if 0 < target.n_queries < _FEW_QUERIES:
        yield (
            f"Exact intervals: with {target.n_queries} queries, bootstrap intervals are too short."
        )
    if len(results.seeds) < 2:
        yield "How much training with another seed changes: there is one seed."
    else:
        yield "What another seed or training set would give: intervals are over queries alone."


def _missing(results: Results, target: MeasureAnalysis) -> Iterator[str]:
    if target.excluded:
        names = _list([str(each) for each in target.excluded])
        yield f"How good {names} would be: there are no values on {target.measure.name}."
    if target.left_out:
        yield (
            f"Anything about {target.left_out} queries that only some of the systems have a "
            "value for; they are left out."
        )
    partly = len({run.system for run in results.failed} - set(target.excluded))
    if partly:
        yield (
            f"A like-for-like comparison of {partly} "
            f"{'system' if partly == 1 else 'systems'} of which some runs failed."
        )


def _ahead(comparison: Comparison) -> Interval:
    low, high = comparison.interval
    return Interval(low, high) if comparison.difference > 0.0 else Interval(-high, -low)


def _between(ends: Interval, level: float) -> str:
    if math.isnan(ends.low):
        return ""
    return f" ({100 * level:g}% interval {ends.low:.4f} to {ends.high:.4f})"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _others(better: int, worse: int) -> str:
    parts = [
        f"{_count(better)} {'other system is' if better == 1 else 'others are'} better too",
        f"{_count(worse)} {'is' if worse == 1 else 'are'} worse",
    ]
    said = [part for part, count in zip(parts, (better, worse), strict=True) if count]
    text = " and ".join(said)
    return f" {text[0].upper()}{text[1:]}." if text else ""


def _count(count: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[count] if count < len(words) else str(count)


def _list(names: list[str]) -> str:
    if len(names) > _NAMES + 1:
        names = [*names[:_NAMES], f"{len(names) - _NAMES} others"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
