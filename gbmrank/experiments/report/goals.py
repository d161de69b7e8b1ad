"""The front of a ranker of several goals, as a chart and as a page; several fronts side by side."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gbmrank.experiments.report.markup import (
    Frame,
    Html,
    color,
    el,
    figure,
    fixed,
    path,
    plain_page,
    signed,
    table,
)


def chart(front: Any, systems: Mapping[str, Any] | None = None) -> Html:
    """Return the values of the second goal against those of the first.

    ``systems`` has the rows of each system, whose own front is a line; by default all are one. Of
    more than two goals the first two are drawn.
    """
    values, kept = front.values[:, :2], ~front.dominated
    frame = Frame.around(values[:, 0].tolist(), values[:, 1].tolist())
    named = [f"{goal} ({name})" for goal, name in zip(front.goals, front.metrics, strict=True)]
    body, text, served = [frame.x_axis(named[0]), frame.y_axis(named[1])], [], "c1"
    for number, (system, rows) in enumerate((systems or {"": np.arange(len(values))}).items()):
        class_, dash = color(number)
        own = replace(front, per_query=front.per_query[rows, :2])
        on = values[rows[~own.dominated]]
        on = on[on[:, 0].argsort()]
        large = 2.5 if len(rows) > 1 else 5.0
        dots = [
            el("circle", cx=frame.x(x), cy=frame.y(y), r=large if fine else 1.2, class_="dot")
            for (x, y), fine in zip(values[rows].tolist(), kept[rows].tolist(), strict=True)
        ]
        if systems and front.served in rows:
            served = class_
        body.append(path(frame, on[:, 0], on[:, 1], f"curve {class_}", dash))
        body.append(el("g", dots, class_=class_))
        text += [
            f"{system} {fixed(x)} of {front.goals[0]} with {fixed(y)} of {front.goals[1]}".strip()
            for x, y in on[:: max(1, len(on) // 8)].tolist()
        ]
    x, y = values[front.served]
    body.append(el("circle", cx=frame.x(x), cy=frame.y(y), r=6, class_=f"part {served}"))
    return figure("front", f"{named[1]} against {named[0]}", "; ".join(text), body)


def page(front: Any) -> str:
    """Return the page of :meth:`gbmrank.Front.to_html`."""
    means, widths = front.differences()
    rows = []
    for row, known in enumerate(zip(front.values, means, widths, strict=True)):
        cells = [
            f"{fixed(value)} ({signed(mean)} ± {fixed(width)})"
            for value, mean, width in zip(*known, strict=True)
        ]
        mark = "served" if row == front.served else "dominated" if front.dominated[row] else ""
        rows.append((fixed(front.at[row], 2), *cells, mark))
    title = "What every setting is worth: " + " and ".join(front.goals)
    note = (
        "Values are means over validation queries. Behind them stands the difference to the "
        "served setting; its intervals hold for all settings at once, with 95%."
    )
    return plain_page(title, chart(front), el("p", note), table(["at", *front.goals, ""], rows))


def comparison_page(found: Any) -> str:
    """Return the page of ``gbmrank compare --goals``."""
    names, front = dict.fromkeys(found.systems), found.front
    systems = {name: np.flatnonzero(np.array(found.systems) == name) for name in names}
    items = []
    for number, name in enumerate(names):
        class_, dash = color(number)
        line = el("line", x1=0, y1=5, x2=26, y2=5, class_="curve", stroke_dasharray=dash)
        kind = f"swatch {class_}"
        swatch = el("svg", line, viewBox="0 0 26 10", class_=kind, aria_hidden="true")
        items.append(el("li", swatch, name))
    return plain_page(
        f"{found.title}: {' and '.join(front.goals)}",
        el("ul", items, class_="legend"),
        chart(front, systems),
        el("p", found.about),
        table(["system", "setting", *front.goals, ""], found.rows()),
        [el("p", note) for note in found.notes],
    )
