"""Tables of what was measured."""

import math
from collections.abc import Iterator

import numpy as np

from gbmrank.experiments.report.markup import Child, Html, details, el, fixed, number, signed, table
from gbmrank.experiments.report.view import View, system_name
from gbmrank.experiments.results import System
from gbmrank.experiments.statistics import Comparison, Interval, MeasureAnalysis, Summary

__all__ = ["all_pairs", "measure_table", "overview", "tie_table", "warnings_list"]

_MARKS = {"better": "\u25b2", "worse": "\u25bc", "undecided": ""}


def measure_table(view: View, measured: MeasureAnalysis) -> Html:
    """Return one line per system with everything about one measure."""
    head = (
        "System",
        f"Mean {measured.measure.name}",
        "Difference to baseline",
        "Outcome",
        "Corrected p",
        "Wins / ties / losses",
        "Effect d",
        "Seed sd",
        "Rounds",
        "Seconds",
    )
    summaries = {each.system: each for each in measured.summaries}
    rows = [_row(view, measured, summaries.get(system), system) for system in view.order]
    return table(head, rows, class_="results")


def overview(view: View) -> Html:
    """Return systems by measures: the mean, and the difference to the baseline."""
    names = [
        [
            each.measure.name,
            el("small", "higher is better" if each.measure.higher_is_better else "lower is better"),
        ]
        for each in view.analysis.measures
    ]
    rows = [
        [_named(view, system), *(_overview_cell(each, system) for each in view.analysis.measures)]
        for system in view.order
    ]
    return table(["System", *names], rows, class_="results")


def all_pairs(view: View, measured: MeasureAnalysis) -> Html | None:
    """Return Tukey's p of all pairs as a matrix; None for one pair or none."""
    if not measured.pairs:
        return None
    p = {(each.first, each.second): each.p for each in measured.pairs}
    p |= {(second, first): value for (first, second), value in p.items()}
    systems = [each for each in view.order if each not in measured.excluded]
    rows = [
        [_named(view, one), *(_pair_cell(view, p.get((one, other))) for other in systems)]
        for one in systems
    ]
    return details(
        "All pairs: p of randomised Tukey HSD",
        table(["", *(str(view.rank(each)) for each in systems)], rows, class_="pairs"),
    )


def tie_table(view: View) -> Html:
    """Return how often scores are equal, per system."""
    rows = []
    for system in view.order:
        tied = [run.tied[view.results.queries.sizes[run.queries] > 1] for run in view.runs(system)]
        values = np.concatenate(tied) if tied else np.zeros(0)
        values = values[np.isfinite(values)]
        constant = int((values >= 1.0).sum())
        share = f"{100 * values.mean():.2f}%" if len(values) else "\u2013"
        chip = el("span", "constant scores", class_="chip worse") if constant else None
        cell = [f"{number(constant)} of {number(len(values))} ", chip]
        rows.append([system_name(system), share, cell])
    return table(["System", "Tied pairs", "Queries with one score for all rows"], rows)


def warnings_list(view: View) -> Html | None:
    """Return what was warned about, with the number of runs."""
    found: dict[tuple[System, str], int] = {}
    for run in view.results.runs:
        for message in run.warnings:
            found[run.system, message] = found.get((run.system, message), 0) + 1
    if not found:
        return None
    items = [
        el("li", system_name(system), el("span", f" {message}"), el("small", f" \u00d7{count}"))
        for (system, message), count in found.items()
    ]
    return el("div", el("h3", "Warnings of the runs"), el("ul", items))


def _row(
    view: View, measured: MeasureAnalysis, summary: Summary | None, system: System
) -> list[Child]:
    if summary is None:
        note = el("span", "no values", class_="chip worse")
        return [_named(view, system), "\u2013", "\u2013", note, *["\u2013"] * 6]
    compared = measured.comparison(system)
    return [
        _named(view, system),
        [el("b", fixed(summary.mean)), _ends(summary.interval)],
        *_compared(compared, system == view.results.baseline),
        fixed(summary.seed_sd),
        *_cost(view, system),
    ]


def _compared(compared: Comparison | None, is_baseline: bool) -> list[Child]:
    if compared is None:
        chip = el("span", "baseline", class_="chip") if is_baseline else "\u2013"
        return ["\u2013", chip, "\u2013", "\u2013", "\u2013"]
    chips: list[Child] = [
        el(
            "span",
            _MARKS[compared.outcome],
            " ",
            compared.outcome,
            class_=f"chip {compared.outcome}",
        )
    ]
    if compared.equivalent:
        chips += [" ", el("span", "\u2248 within margin", class_="chip same")]
    return [
        [el("b", signed(compared.difference)), _ends(compared.interval, True)],
        chips,
        _p(compared.p_holm),
        [_balance(compared), el("small", f"{compared.wins} / {compared.ties} / {compared.losses}")],
        signed(compared.effect, 2),
    ]


def _cost(view: View, system: System) -> Iterator[Child]:
    runs = list(view.runs(system))
    if not runs:
        yield from ("\u2013", "\u2013")
        return
    rounds = [run.best_round + 1 for run in runs]
    span = f"{min(rounds)} to {max(rounds)}"
    yield [f"{np.median(rounds):.0f}", el("small", span) if len(runs) > 1 else None]
    seconds = [run.seconds for run in runs]
    yield f"{np.median(seconds):.2f}" if max(seconds) < 100 else f"{np.median(seconds):.0f}"


def _overview_cell(measured: MeasureAnalysis, system: System) -> list[Child]:
    summary = next((each for each in measured.summaries if each.system == system), None)
    if summary is None:
        return ["\u2013"]
    compared = measured.comparison(system)
    best = measured.best
    mean = fixed(summary.mean)
    shown: Child = el("b", mean) if best is not None and best.system == system else mean
    if compared is None:
        return [shown, el("small", "baseline")]
    text = f"{signed(compared.difference)} {_MARKS[compared.outcome]}"
    return [shown, el("small", text, class_=f"mark {compared.outcome}")]


def _pair_cell(view: View, p: float | None) -> Child:
    if p is None:
        return ""
    decided = p <= 1.0 - view.analysis.level
    return el("span", _p(p), class_="decided" if decided else "open")


def _named(view: View, system: System) -> Html:
    return el(
        "span", el("span", view.rank(system), class_="rank"), system_name(system), class_="named"
    )


def _ends(ends: Interval, sign: bool = False) -> Html | None:
    if math.isnan(ends.low):
        return None
    shown = signed if sign else fixed
    return el("small", f"{shown(ends.low)} to {shown(ends.high)}")


def _p(p: float) -> str:
    return "<\u200a0.001" if p < 0.001 else f"{p:.3f}"


def _balance(compared: Comparison) -> Html:
    total = max(compared.wins + compared.ties + compared.losses, 1)
    parts, x = [], 0.0
    for count, class_ in (
        (compared.wins, "better"),
        (compared.ties, "undecided"),
        (compared.losses, "worse"),
    ):
        width = 96.0 * count / total
        parts.append(el("rect", x=x, y=0, width=width, height=7, class_=f"part {class_}"))
        x += width
    return el("svg", parts, viewBox="0 0 96 7", class_="balance", aria_hidden="true")
