"""The contributions of an explanation, as a chart and as a page."""

from typing import Any

from gbmrank.experiments.report.markup import (
    Html,
    Scale,
    el,
    figure,
    label,
    plain_page,
    signed,
    table,
)

_WIDTH, _STEP, _NAMES = 640.0, 24.0, 300.0


def chart(name: str, title: str, bars: Any) -> Html:
    """Return a chart with one bar per feature, as ``Explanation.bars`` gives them."""
    values = [bar.contribution for bar in bars]
    low, high = min(0.0, *values), max(0.0, *values)
    x = Scale(low, high if high > low else low + 1.0, _NAMES + 60.0, _WIDTH - 60.0)
    body = []
    for at, (what, compared, value) in enumerate(bars):
        top, ends = at * _STEP, sorted((x(0.0), x(value)))
        kind = "undecided" if at == len(bars) - 1 else "better" if value > 0.0 else "worse"
        shape = {"x": ends[0], "y": top + 4.0, "width": ends[1] - ends[0], "height": _STEP - 8.0}
        side = ends[1] + 4.0 if value >= 0.0 else ends[0] - 4.0
        body += [
            label(0.0, top + 16.0, f"{what}  {compared}", "tick"),
            el("g", el("rect", class_="part", **shape), class_=f"bar {kind}"),
            label(side, top + 16.0, signed(value, 3), "tick" if value >= 0.0 else "tick end"),
        ]
    text = "; ".join(f"{what} {compared} {signed(value, 3)}" for what, compared, value in bars)
    return figure(name, title, text, body, (_WIDTH, _STEP * len(bars)))


def page(explanation: Any, row: int | None) -> str:
    """Return the page of :meth:`gbmrank.Explanation.to_html`."""
    title, bars = explanation.title(row), explanation.bars(row)
    rows = [
        (what, compared, signed(value)) for what, compared, value in explanation.bars(row, None)
    ]
    made = table(["feature", "values", "contribution"], rows)
    return plain_page(title, chart("bars", title, bars), made)
