"""The charts of a report."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gbmrank.experiments.report.markup import (
    Frame,
    Html,
    Scale,
    el,
    figure,
    fixed,
    label,
    path,
    percent,
    rounded,
    signed,
)
from gbmrank.experiments.report.sections import View
from gbmrank.experiments.results import Measure, System
from gbmrank.experiments.statistics.analysis import Comparison, Interval, MeasureAnalysis
from gbmrank.experiments.statistics.estimates import Slice
from gbmrank.experiments.systems import title_of
from gbmrank.types import FloatArray

_WIDTH = 460.0
_STEP = 42.0
_DOTS = 2_000
_LONGEST = 50  # characters of a name


class Bar(NamedTuple):
    """One line of a plot of intervals."""

    name: str
    note: str
    middle: float
    ends: Interval
    class_: str


def intervals(name: str, bars: Sequence[Bar], words: tuple[str, str, str], margin: float) -> Html:
    """Return a chart of dots with intervals, one row per name."""
    bottom = _STEP * len(bars) + 4.0
    known = [x for bar in bars for x in (bar.middle, *bar.ends) if math.isfinite(x)]
    frame = Frame.around([0.0, margin, -margin, *known], [0.0, 1.0], left=2.0)
    tops = [_STEP * at for at in range(len(bars))]
    lanes = [Frame(frame.x, Scale(0.0, 1.0, y + 36.0, y + 20.0)) for y in tops]
    axis = Frame(frame.x, Scale(0.0, 1.0, bottom, bottom)).x_axis(words[2])
    body = [axis, *(_bar(lane, bar, margin) for lane, bar in zip(lanes, bars, strict=True))]
    return figure(name, words[0], words[1], body, (_WIDTH, bottom + 44.0))


def differences(view: View, measured: MeasureAnalysis, name: str) -> Html:
    """Return the difference of every system to the baseline, with intervals."""
    bars = []
    for each in filter(None, map(measured.comparison, view.order)):
        title = title_of(each.system)
        if each.system in view.analysis.baselines:  # its baseline is in another booster
            title = f"{title} against {title_of(each.baseline)}"
        share = percent(each.difference, measured.mean(each.baseline))
        note = f"{signed(each.difference)} {share}".rstrip()
        bars.append(Bar(title, note, each.difference, each.interval, each.outcome))
    text = "; ".join(f"{bar.name} {bar.note} ({bar.class_})" for bar in bars)
    title = f"Difference to the baseline, {measured.measure.name}"
    return intervals(name, bars, (title, text, _direction(measured.measure)), view.analysis.margin)


def sliced(view: View, parts: Sequence[Slice], name: str, what: str) -> Html:
    """Return differences on parts of the queries, with intervals."""
    measure = view.target.measure
    bars = []
    for part in parts:
        outcome = _outcome(*(measure.sign * end for end in part.interval))
        note = f"{part.n_queries} queries"
        bars.append(Bar(f"{part.label} {what}", note, part.difference, part.interval, outcome))
    text = "; ".join(f"{bar.name}: {signed(bar.middle)} over {bar.note}" for bar in bars)
    title = f"Difference to the baseline by number of {what}"
    return intervals(name, bars, (title, text, _direction(measure)), 0.0)


def curves(view: View, backend: str, name: str) -> Html | None:
    """Return the median learning curves of one booster, with the best rounds marked."""
    systems = [each for each in view.results.systems if each.backend == backend]
    lines = [(each, *found) for each in systems if len((found := curve(view, each))[0])]
    if not lines:
        return None
    target, columns = view.target.measure, [line for _, line, _ in lines]
    values, longest = np.concatenate(columns), max(map(len, columns))
    # The limits of the axis cut off the first rounds.
    starts = np.array([line[min(len(line) // 12, len(line) - 1)] for line in columns])
    low, high = float(values.min()), float(values.max())
    if target.higher_is_better:
        low = float(min(starts.min(), np.quantile(values, 0.1)))
    else:
        high = float(max(starts.max(), np.quantile(values, 0.9)))
    frame = Frame.around([1.0, float(max(longest, 2))], [low, high])
    body = [frame.x_axis("round", 0), frame.y_axis(f"{target.name}, validation")]
    body += [_drawn(view, frame, each, (low, high)) for each in lines]
    text = "; ".join(f"{system.objective} best at round {best + 1}" for system, _, best in lines)
    return figure(name, f"Learning curves in {backend}", text, body)


def scatter(view: View, challenger: Comparison) -> Html:
    """Return a scatter plot of queries: baseline on the x axis, challenger on the y axis."""
    xs, ys = view.data.row(challenger.baseline), view.data.row(challenger.system)
    both = [min(xs.min(), ys.min()), max(xs.max(), ys.max())]
    frame = Frame.around(both, both, height=400.0)
    keep = np.unique(np.linspace(0, len(xs) - 1, min(_DOTS, len(xs))).astype(np.int64))
    ahead = view.target.measure.sign * (ys - xs)
    ids = view.results.queries.ids[view.data.queries]
    dots = [
        el(
            "circle",
            el("title", f"{ids[i]}: {fixed(xs[i])} \u2192 {fixed(ys[i])}"),
            cx=frame.x(xs[i]),
            cy=frame.y(ys[i]),
            r=2.2,
            class_=f"dot {_outcome(ahead[i], ahead[i])}",
        )
        for i in keep
    ]
    ends = (frame.x.low, frame.x.high)
    line = path(frame, np.array(ends), np.array(ends), "zero", None)
    name = view.target.measure.name
    body = [frame.x_axis(f"{name}, baseline"), frame.y_axis(f"{name}, challenger"), line, *dots]
    text = (
        f"{title_of(challenger.system)} is better on {challenger.wins}, equal on "
        f"{challenger.ties} and worse on {challenger.losses} queries; {len(keep)} of them "
        "are drawn."
    )
    return figure("scatter", "Every query, challenger against baseline", text, body, (_WIDTH, 400))


def sorted_differences(view: View, challenger: Comparison) -> Html:
    """Return the differences of all queries in order, as an area."""
    gaps = np.sort(view.data.row(challenger.system) - view.data.row(challenger.baseline))[::-1]
    share = (np.arange(len(gaps)) + 0.5) / len(gaps)
    frame = Frame.around([0.0, 1.0], [*gaps[[0, -1]].tolist(), 0.0], height=400.0)
    higher = view.target.measure.higher_is_better
    parts = [
        _area(frame, share, np.maximum(gaps, 0.0), "better" if higher else "worse"),
        _area(frame, share, np.minimum(gaps, 0.0), "worse" if higher else "better"),
    ]
    body = [frame.x_axis("share of queries"), frame.y_axis("difference"), *parts, frame.level(0.0)]
    text = f"From {signed(float(gaps[0]))} to {signed(float(gaps[-1]))}."
    return figure("sorted", "Differences of all queries, sorted", text, body, (_WIDTH, 400))


def _direction(measure: Measure) -> str:
    arrow = "better \u2192" if measure.higher_is_better else "\u2190 better"
    return f"difference in {measure.name} ({arrow})"


def _outcome(low: float, high: float) -> str:
    """Return the outcome for an interval of the lead."""
    if min(low, high) > 1e-12:
        return "better"
    return "worse" if max(low, high) < -1e-12 else "undecided"


def _bar(lane: Frame, bar: Bar, margin: float) -> Html:
    y, top, name, ends = lane.y(0.5), lane.y.stop, bar.name, ""
    name = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}\u2026"
    body = [
        label(lane.x.start, top - 6, name, "bar-name"),
        label(lane.x.stop, top - 6, bar.note, "bar-note end"),
    ]
    boxes = [("lane", lane.x.start, lane.x.stop)]
    if margin > 0.0:
        boxes.append(("band", lane.x(-margin), lane.x(margin)))
    for class_, left, right in boxes:
        width, height = rounded(right - left), lane.y.start - top
        body.append(el("rect", x=left, y=top, width=width, height=height, class_=class_))
    body.append(lane.upright(0.0))
    if math.isfinite(bar.ends.low):
        low, high = map(lane.x, bar.ends)
        body.append(el("line", x1=low, x2=high, y1=y, y2=y, class_="whisker"))
        ends = f", {signed(bar.ends.low)} to {signed(bar.ends.high)}"
    body.append(el("circle", cx=lane.x(bar.middle), cy=y, r=4.5))
    title = el("title", f"{bar.name}: {signed(bar.middle)}{ends}, {bar.class_}")
    return el("g", title, body, class_=f"bar {bar.class_}")


def curve(view: View, system: System) -> tuple[FloatArray, int]:
    """Return the median over runs while at least half of them continue, and the best round.

    A run that has stopped counts with its last value; otherwise the median would jump.
    """
    target = view.target.measure.name
    runs = [run for run in view.results.finished(system) if run.history]
    histories = [run.history.get(target) or next(iter(run.history.values())) for run in runs]
    histories = [each for each in histories if each]
    if not histories:
        return np.zeros(0), 0
    lengths = sorted((len(each) for each in histories), reverse=True)
    rounds = lengths[(len(lengths) - 1) // 2]
    padded = np.full((len(histories), rounds), np.nan)
    for row, history in zip(padded, histories, strict=True):
        row[: len(history)] = history[:rounds]
        row[len(history) :] = history[-1]
    known = np.isfinite(padded).any(axis=0)
    line = np.nanmedian(padded[:, known], axis=0)
    return line, int(np.median([run.best_round for run in runs]))


def _drawn(
    view: View, frame: Frame, found: tuple[System, FloatArray, int], ends: tuple[float, float]
) -> Html:
    system, values, best = found
    class_, dash = view.color(system.objective)
    inside = (values >= ends[0]) & (values <= ends[1])
    first = int(np.argmax(inside))
    rounds = np.arange(1.0, len(values) + 1.0)
    at = min(best, len(values) - 1)
    where = float(np.clip(values[at], *ends))
    line = path(frame, rounds[first:], np.clip(values[first:], *ends), "curve", dash)
    about = el("title", f"{system}: {fixed(values[at])} after round {best + 1}, the one kept")
    dot = el("circle", about, cx=frame.x(at + 1.0), cy=frame.y(where), r=4.5, class_="best")
    return el("g", el("title", str(system)), line, dot, class_=class_)


def _area(frame: Frame, share: FloatArray, values: FloatArray, class_: str) -> Html:
    keep = np.unique(np.linspace(0, len(values) - 1, min(400, len(values))).astype(np.int64))
    xs = [0.0, 0.0, *share[keep], 1.0, 1.0]
    ys = [0.0, values[0], *values[keep], values[-1], 0.0]
    points = [f"{frame.x(x):g},{frame.y(y):g}" for x, y in zip(xs, ys, strict=True)]
    return el("polygon", points=" ".join(points), class_=f"area {class_}")
