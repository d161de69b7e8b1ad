"""Summary of a comparison: a table with one row per system, and caveats."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gbmrank.experiments.progress import printable
from gbmrank.experiments.results import Results, Run, System
from gbmrank.experiments.statistics.analysis import (
    Analysis,
    Comparison,
    Interval,
    MeasureAnalysis,
)
from gbmrank.experiments.systems import title_of

_MANY_TIES = 0.1
_DEFINITION = "regret: share of the best possible expected DCG that a ranking loses; 0 is perfect"
_WORDS = {"calibrated": "yes", "conditional": "if", "not calibrated": "no", "unknown": "?"}


class Table(NamedTuple):
    """Titles, rows of text, and the side each column is aligned to."""

    head: list[str]
    rows: list[list[str]]
    sides: str


class Verdict(NamedTuple):
    """The result in three sentences: what wins, what it costs, what is not established."""

    wins: str
    costs: str
    open: str


def verdict_of(results: Results, analysis: Analysis) -> Verdict | None:
    """Return the result in three sentences, or None if nothing can be compared."""
    target = analysis.measures[0]
    best = target.best
    if best is None or not target.comparisons:
        return None
    better = [one for one in target.comparisons if one.outcome == "better"]
    # The boosters' own baselines may be best without being compared with the others.
    means = {one.system: target.measure.sign * one.mean for one in target.summaries}
    won = max((one.system for one in better), key=lambda one: means[one], default=best.system)
    lead = best.system if target.comparison(best.system) is None else won
    missing = analysis.not_established
    rest = f" {len(missing) - 1} more below." if len(missing) > 1 else ""
    return Verdict(
        _wins(target, analysis, lead),
        _costs(results, target, lead),
        f"Not established: {missing[0][0].lower()}{missing[0][1:]}{rest}",
    )


def _wins(target: MeasureAnalysis, analysis: Analysis, lead: System) -> str:
    name, mean, compared = target.measure.name, target.mean(lead), target.comparison(lead)
    if compared is None:
        worse = sum(one.outcome == "worse" for one in target.comparisons)
        return (
            f"{title_of(lead)}, the baseline, has the best mean {name}, {mean:.4f}: no system is "
            f"better, {worse} of {len(target.comparisons)} are worse."
        )
    gap, p = _gap(target, compared, analysis.level), _p(compared.p_holm)
    size = f"{mean:.4f}, {gap}, corrected p {p}"
    if compared.outcome != "better":
        return f"No winner on {name}: {title_of(lead)} has the best mean, {size}."
    more = ""
    if target.best is not None and target.best.system != lead:
        more = f" {title_of(target.best.system)} has a better mean, but no established lead."
    return f"{title_of(lead)} wins on {name}: {size}.{more}"


def _gap(target: MeasureAnalysis, compared: Comparison, level: float) -> str:
    """Return how far a system is from its baseline, in percent where that makes sense."""
    base = target.mean(compared.baseline)
    ends = (compared.difference, *compared.interval)
    shown = (f"{100.0 * one / abs(base):+.1f}%" if base else f"{one:+.4f}" for one in ends)
    middle, low, high = shown
    known = "" if math.isnan(compared.interval.low) else f" ({100 * level:g}%: {low} to {high})"
    return f"{middle} against {title_of(compared.baseline)}{known}"


def _costs(results: Results, target: MeasureAnalysis, lead: System) -> str:
    compared = target.comparison(lead)
    own = _spent(results, lead)
    if own is None:
        text = f"{title_of(lead)} needs no training"
    else:
        base = None if compared is None else _spent(results, compared.baseline)
        seconds, trees = own
        text = f"It costs {seconds:.2g} s of training and {trees:.0f} trees to score"
        if base is not None and min(base) > 0:
            shares = [f"{one / other:.1f}" for one, other in zip(own, base, strict=True)]
            text += f", {shares[0]} and {shares[1]} times those of the baseline"
    if compared is None:
        return f"{text}."
    total = compared.wins + compared.ties + compared.losses
    return f"{text}, and is worse on {compared.losses:,} of {total:,} queries."


def _spent(results: Results, system: System) -> tuple[float, float] | None:
    """Return the median seconds and trees of the runs of a system, if it was trained."""
    runs = results.finished(system)
    if system.is_given or not runs:
        return None
    seconds, trees = zip(*((run.seconds, run.best_round + 1) for run in runs), strict=True)
    return float(np.median(seconds)), float(np.median(trees))


def summary_table(results: Results, analysis: Analysis) -> Table:
    """Return one row per system, the best on the target first, failed ones last."""
    target, *others = (one.measure for one in analysis.measures)
    sides = ["" if one.higher_is_better else " (lower is better)" for one in others]
    head = [
        *("system", f"{target.name} [{100 * analysis.level:g}%]", "difference to baseline"),
        *("p (Holm)", *(f"{one.name}{side}" for one, side in zip(others, sides, strict=True))),
        *("calibrated", "rounds", "s/run"),
    ]
    rows = [
        _row(results, analysis, system) for system in analysis.measures[0].ranked(results.systems)
    ]
    return Table(head, rows, "<" + ">" * (len(head) - 1))


def as_text(table: Table) -> str:
    """Return an aligned table, with control characters escaped."""
    lines = [[printable(cell) for cell in row] for row in (table.head, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        "  ".join(
            f"{cell:{side}{width}}"
            for cell, side, width in zip(row, table.sides, widths, strict=True)
        ).rstrip()
        for row in lines
    ]
    return "\n".join([shown[0], "-" * (sum(widths) + 2 * len(widths) - 2), *shown[1:]])


def notes(results: Results, analysis: Analysis) -> tuple[str, ...]:
    """Return caveats about the table, one sentence each."""
    runs: dict[System, list[Run]] = defaultdict(list)
    for run in results.runs:
        runs[run.system].append(run)
    found = [*results.audit.get("notes", ())]
    if failure_sentence(results) is None:
        found += _about_queries(results, analysis.measures[0])
    found += _about_ties(runs)
    for system, own in runs.items():
        found += [f"{system}: {line}" for line in _about_runs(own, results.settings)]
    for system, (few, total) in results.stopped_at_once().items():
        found.append(
            f"{system}: early stopping kept fewer than 5 rounds in {few} of {total} runs; its "
            "comparison says little"
        )
    return tuple(dict.fromkeys(found))


def footnotes(results: Results) -> list[str]:
    """Return what the star in the table means, and regret where it is shown."""
    told = []
    for one in results.baselines[1:]:
        if (other := results.compared_with(one)) is not None:
            told.append(f"; {title_of(one)} is compared with {title_of(other)}")
    star = f"* baseline of its booster{''.join(told)}" if told else "* baseline"
    return [star, _DEFINITION] if any(one.is_regret for one in results.measures) else [star]


def failure_sentence(results: Results) -> str | None:
    """Return the first error if every run failed, else None."""
    failed = results.failed
    if not failed or len(failed) < len(results.runs):
        return None
    return f"every run failed; the first error is {str(failed[0].error).splitlines()[0]}"


def regret_sentence(analysis: Analysis) -> str | None:
    """Return a sentence about the regret of the best and the worst system, if it is known."""
    found = next((one for one in analysis.measures if one.measure.is_regret), None)
    known = [one for one in (found.summaries if found else ()) if not math.isnan(one.mean)]
    if found is None or len(known) < 2:
        return None
    ends = min(known, key=lambda one: one.mean), max(known, key=lambda one: one.mean)
    lost = [
        f"{100 * one.mean:.1f}% ({100 * one.interval.low:.1f} to {100 * one.interval.high:.1f})"
        for one in ends
    ]
    k = found.measure.name.partition("@")[2]
    best, worst = (title_of(one.system) for one in ends)
    return (
        f"The truth is known here: of the best possible expected DCG@{k}, {best} loses {lost[0]} "
        f"and {worst} {lost[1]}."
    )


def _row(results: Results, analysis: Analysis, system: System) -> list[str]:
    target, *others = analysis.measures
    spent = _spent(results, system)
    versus = target.comparison(system)
    mark = " *" if system in analysis.baselines else ""
    status = results.verdicts.get((system.objective, target.measure.name), {}).get("status")
    return [
        f"{system}{mark}",
        _mean(target, system, ends=True) if results.finished(system) else "failed",
        "" if versus is None else f"{versus.difference:+.4f} {_ends(versus.interval, sign='+')}",
        "" if versus is None else _p(versus.p_holm),
        *(_mean(one, system, ends=one.measure.is_regret) for one in others),
        _WORDS.get(str(status), ""),
        "" if spent is None else f"{spent[1]:.0f}",
        "" if spent is None else f"{spent[0]:.2g}",
    ]


def _mean(one: MeasureAnalysis, system: System, *, ends: bool = False) -> str:
    found = one.summary(system)
    if found is None or math.isnan(found.mean):
        return "-"
    return f"{found.mean:.4f}" + (f" {_ends(found.interval)}" if ends else "")


def _ends(interval: Interval, sign: str = "") -> str:
    if math.isnan(interval.low):
        return ""
    return f"[{interval.low:{sign}.4f}, {interval.high:{sign}.4f}]"


def _p(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.2g}" if value >= 1e-3 else "<0.001"


def _about_queries(results: Results, target: MeasureAnalysis) -> Iterator[str]:
    total = len(results.queries)
    judged = {int(query) for run in results.runs if run.error is None for query in run.queries}
    failed = total - len(judged)
    if failed:
        yield f"{failed} of {total} queries are not counted: every run that tests them failed"
    if target.undefined > failed:
        yield (
            f"{target.measure.name} is undefined for {target.undefined - failed} of {total} "
            "queries, which are not counted"
        )
    if target.left_out:
        yield (
            f"{target.left_out} of {total} queries are not counted: only some systems have a value"
        )


def _about_ties(runs: Mapping[System, Sequence[Run]]) -> Iterator[str]:
    many = []
    for system, own in runs.items():
        good = [run for run in own if run.error is None and not is_constant(run)]
        shares = [float(run.tied.mean()) for run in good if len(run.tied)]
        if shares and (share := float(np.mean(shares))) > _MANY_TIES:
            many.append(f"{system} {100 * share:.0f}%")
    if many:
        listed = ", ".join(many)
        yield f"pairs of a query with equal scores (averaged over their orderings): {listed}"


def _about_runs(runs: Sequence[Run], settings: Any) -> Iterator[str]:
    good = [run for run in runs if run.error is None]
    failures = Counter(run.error for run in runs if run.error is not None)
    for error, times in failures.items():
        yield f"{times} of {len(runs)} runs failed: {error.splitlines()[0]}"
    constant = sum(is_constant(run) for run in good)
    if constant:
        yield f"constant scores in {constant} of {len(good)} runs: nothing was learned"
    limit = sum(run.best_round + 1 == settings.get("rounds") for run in good)
    if limit:
        yield f"the last round was the best in {limit} of {len(good)} runs; increase rounds"
    messages = dict.fromkeys(text for run in good for text in run.warnings)
    for text in messages:
        if not text.startswith("NoProgressWarning"):
            yield " ".join(text.split())


def is_constant(run: Run) -> bool:
    """Whether all scores of every test query were equal."""
    return any(text.startswith("NoProgressWarning: all scores") for text in run.warnings)
