"""Draw the picture of the README: how much of the best ranking each objective loses.

``gbmrank compare --out demo && python docs/picture.py demo/results.json`` writes
``docs/compare.svg``. It follows light and dark, and names its own background. Colours are written
out, as librsvg knows no variables.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from gbmrank.experiments.report.markup import Html, Scale, el, label, rounded, ticks
from gbmrank.experiments.results import Results
from gbmrank.experiments.statistics.analysis import Analysis, MeasureAnalysis, Summary
from gbmrank.experiments.statistics.estimates import analyse
from gbmrank.experiments.store import load_results

HERE = Path(__file__).parent
WIDTH, SECOND, LEFT, RIGHT, TOP, STEP = 880.0, 330.0, 412.0, 790.0, 92.0, 30.0
BOOSTERS = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}
KINDS = {
    "proven": "objective calibrated for DCG",
    "wrong": "not calibrated",
    "open": "the booster's own: no verdict",
}
STYLE = """
svg { color-scheme: light dark; }
.paper { fill: #ffffff; }
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; fill: #1b2129; }
.title { font-size: 17px; font-weight: 600; }
.soft { fill: #5b6673; }
.mid { text-anchor: middle; }
.end { text-anchor: end; }
.grid { stroke: #e3e8ed; }
.stem { stroke-width: 8; stroke-opacity: 0.22; }
.whisker { stroke-width: 2.5; stroke-linecap: round; }
.proven { fill: #0067a8; stroke: #0067a8; }
.wrong { fill: #b8480c; stroke: #b8480c; }
.open { fill: #78838f; stroke: #78838f; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; } text { fill: #e6eaef; } .soft { fill: #9aa6b3; }
.grid { stroke: #262e38; }
.proven { fill: #63b8f2; stroke: #63b8f2; } .wrong { fill: #f59a63; stroke: #f59a63; }
.open { fill: #8b97a4; stroke: #8b97a4; }
}
"""


def main() -> None:
    """Read results and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="results.json of gbmrank compare")
    parser.add_argument("--out", type=Path, default=HERE / "compare.svg")
    given = parser.parse_args()
    results = load_results(given.results)
    given.out.write_text(draw(results, analyse(results)), encoding="utf-8")


def draw(results: Results, analysis: Analysis) -> str:
    """Return the picture: a dot with its interval per system, least regret on top."""
    shown = next(
        (each for each in analysis.measures if each.measure.name.startswith("regret")),
        analysis.measures[0],
    )
    sign = -1.0 if shown.measure.higher_is_better else 1.0
    rows = sorted(shown.summaries, key=lambda each: sign * each.mean)
    height = TOP + STEP * len(rows) + 54.0
    body = [
        el("style", Html(STYLE)),
        el("title", f"Mean {shown.measure.name} per system"),
        el("rect", width=WIDTH, height=height, rx=8, class_="paper"),
        *_heading(shown),
        *_plot(results, shown, rows),
    ]
    return el(
        "svg",
        body,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        width=WIDTH,
        height=height,
        role="img",
    )


def _heading(shown: MeasureAnalysis) -> Iterator[Html]:
    name = shown.measure.name
    if name.startswith("regret"):
        title = f"Share of the best possible DCG{name.removeprefix('regret')} that is lost"
    else:
        title = f"Mean {name}"
    yield label(24, 34, title, "title")
    yield label(RIGHT + 60, 34, f"{shown.n_queries:,} queries, 95% intervals", "soft end")
    x = 24.0
    for kind, text in KINDS.items():
        yield el("circle", cx=x + 5, cy=56, r=5, class_=f"dot {kind}")
        yield label(x + 17, 60.5, text, "soft")
        x += 40 + 6.8 * len(text)


def _plot(results: Results, shown: MeasureAnalysis, rows: list[Summary]) -> Iterator[Html]:
    lows = [each.interval.low for each in rows]
    highs = [each.interval.high for each in rows]
    regret = shown.measure.name.startswith("regret")
    x = Scale(0.0 if regret else min(lows), max(highs) * 1.02, LEFT, RIGHT)
    bottom = TOP + STEP * len(rows) - 6
    for at in ticks(x.low, x.high, 6):
        yield el("line", x1=x(at), x2=x(at), y1=TOP - 8, y2=bottom, class_="grid")
        yield label(x(at), bottom + 18, _text(at, regret, 0), "soft mid")
    axis = "lost, lower is better" if regret else shown.measure.name
    yield label((LEFT + RIGHT) / 2, bottom + 40, axis, "soft mid")
    for number, each in enumerate(rows):
        y = rounded(TOP + STEP * number + 8)
        kind = _kind(results, each, shown.measure.name)
        yield label(24, y + 4.5, each.system.objective.removeprefix("native:"), "name")
        yield label(SECOND, y + 4.5, BOOSTERS.get(each.system.backend, each.system.backend), "soft")
        yield el("line", x1=x(x.low), x2=x(each.mean), y1=y, y2=y, class_=f"stem {kind}")
        ends = (x(each.interval.low), x(each.interval.high))
        yield el("line", x1=ends[0], x2=ends[1], y1=y, y2=y, class_=f"whisker {kind}")
        yield el("circle", cx=x(each.mean), cy=y, r=5, class_=f"dot {kind}")
        yield label(RIGHT + 60, y + 4.5, _text(each.mean, regret, 1), "end")


def _kind(results: Results, each: Summary, measure: str) -> str:
    found = results.verdicts.get((each.system.objective, measure)) or results.verdicts.get(
        (each.system.objective, results.measures[0].name)
    )
    if not found:
        return "open"
    return _TONES.get(found["status"], "open")


_TONES = {"calibrated": "proven", "not calibrated": "wrong"}


def _text(value: float, percent: bool, digits: int) -> str:
    return f"{100 * value:.{digits}f}%" if percent else f"{value:.{digits + 2}f}"


if __name__ == "__main__":
    main()
