"""The front of a ranker of several goals, as a chart and as a page."""

from typing import Any

from gbmrank.experiments.report.markup import (
    Frame,
    Html,
    el,
    figure,
    fixed,
    path,
    plain_page,
    signed,
    table,
)


def chart(front: Any) -> Html:
    """Return the values of the second goal against those of the first."""
    values, kept = front.values, ~front.dominated
    frame = Frame.around(values[:, 0].tolist(), values[:, 1].tolist())
    named = [f"{goal} ({name})" for goal, name in zip(front.goals, front.metrics, strict=True)]
    on = values[kept][values[kept][:, 0].argsort()]
    served = values[front.served]
    dots = [
        el("circle", cx=frame.x(x), cy=frame.y(y), r=2.5 if fine else 1.2, class_="dot")
        for (x, y), fine in zip(values.tolist(), kept.tolist(), strict=True)
    ]
    body = [
        frame.x_axis(named[0]),
        frame.y_axis(named[1]),
        path(frame, on[:, 0], on[:, 1], "line c0", None),
        el("g", dots, class_="c0"),
        el("circle", cx=frame.x(served[0]), cy=frame.y(served[1]), r=6, class_="part c1"),
    ]
    text = "; ".join(
        f"{fixed(x)} of {front.goals[0]} with {fixed(y)} of {front.goals[1]}"
        for x, y in on[:: max(1, len(on) // 8)].tolist()
    )
    return figure("front", f"{named[1]} against {named[0]}", text, body)


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
