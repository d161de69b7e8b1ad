"""The picture of the study of quality, which the README shows as well."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_COLORS, _BAND = ("#0b5394", "#8ab6dd"), "#eef2f7"
_STYLE: Any = {"svg.hashsalt": "gbmrank", "font.size": 10, "font.family": "DejaVu Sans"}
_LEGEND = "minus one model", "minus 4 seeds of it, averaged (equal cost); bars: 95% intervals"
_CHOSEN = "settings were chosen on these"


class Mark(NamedTuple):
    """A difference and how far its 95% interval reaches to either side."""

    difference: float
    reach: float


class Panel(NamedTuple):
    """A booster: marks against one model and against seeds, per set and pooled."""

    title: str
    development: Mapping[str, Sequence[Mark | None]]
    held_out: Mapping[str, Sequence[Mark | None]]
    pooled: Sequence[Mark | None]


class _Row(NamedTuple):
    """A line of the picture; one without marks is a note."""

    text: str
    marks: Sequence[Mark | None] = ()
    shaded: bool = False
    bold: bool = False


def draw(panels: Sequence[Panel], title: str, note: str, path: Path) -> None:
    """Draw one panel per booster, side by side, on white: it is read on dark pages too.

    Parameters
    ----------
    panels : sequence of Panel
        With the same rows.
    title : str
        Of the picture.
    note : str
        What is special about the held-out sets.
    path : Path
        Where to write it.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = [_rows(one, note) for one in panels]
    size = 8.8, 1.5 + 0.33 * len(rows[0])
    with mpl.rc_context(_STYLE):
        figure, axes = plt.subplots(
            1, len(panels), figsize=size, sharex=True, sharey=True, layout="constrained"
        )
        for place, one, lines in zip(axes, panels, rows, strict=True):
            _draw_panel(place, lines)
            place.set_title(one.title, fontsize=10.5)
        _name_rows(axes[0], rows[0])
        figure.suptitle(title, fontsize=12, fontweight="bold")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
        figure.savefig(path, facecolor="white", metadata={"Date": None})
        plt.close(figure)


def _rows(panel: Panel, note: str) -> list[_Row]:
    rows = [_Row(_CHOSEN)] if panel.development else []
    rows += [_Row(name, marks) for name, marks in panel.development.items()]
    if panel.held_out:
        rows.append(_Row(note, shaded=True))
        rows += [_Row(name, marks, shaded=True) for name, marks in panel.held_out.items()]
        rows.append(_Row("Pooled, held out", panel.pooled, shaded=True, bold=True))
    return rows


def _draw_panel(axes: Any, rows: Sequence[_Row]) -> None:
    axes.axvline(0.0, color="0.35", linewidth=1, zorder=1)
    for place, row in enumerate(rows):
        if row.shaded:
            axes.axhspan(place - 0.5, place + 0.5, color=_BAND, linewidth=0, zorder=0)
        for mark, color, shift in zip(row.marks, _COLORS, (-0.15, 0.17), strict=False):
            if mark is not None:
                size = {"markersize": 7.5, "elinewidth": 3} if row.bold else {"markersize": 5}
                shape = "D" if row.bold else "o"
                axes.errorbar(
                    mark.difference, place + shift, xerr=mark.reach, fmt=shape, color=color, **size
                )
    for text, color in zip(_LEGEND, _COLORS, strict=True):
        axes.errorbar([], [], xerr=[], fmt="o", color=color, label=text)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="0.88")
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _name_rows(axes: Any, rows: Sequence[_Row]) -> None:
    axes.set_yticks(range(len(rows)), [row.text if row.marks else "" for row in rows])
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if row.bold else "normal")
    for place, row in enumerate(rows):
        if not row.marks:
            axes.text(
                -0.36,
                place,
                row.text,
                transform=axes.get_yaxis_transform(),
                va="center",
                style="italic",
                color="0.3",
                bbox={"color": _BAND if row.shaded else "white", "pad": 1.5},
            )
