"""Elements of HTML and SVG, escaped when they are made, and plots with axes.

Text becomes markup in one function, so escaping cannot be forgotten; hence there is no template
language, and a report needs no package beyond numpy. Colours are classes of the style sheet, so
that plots follow the light and dark mode.
"""

import html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files as package_files
from typing import TypeAlias, final

import numpy as np

from gbmrank.types import FloatArray

# Control characters are not allowed in HTML; direction marks could disguise a name.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
FOOTER = "Written by gbmrank. This page loads nothing from elsewhere."
_VOID = ("meta", "br", "wbr")
_COLORS = 5  # that also differ for the colour-blind
_DASHES = (None, "6 3", "2 3", "9 3 2 3")


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


Child: TypeAlias = "str | float | Iterable[Child] | None"


def el(tag: str, *children: Child, **attributes: str | float | None) -> Html:
    """Return an element; text is escaped, and None is left out.

    >>> el("td", "<b>", class_="n", aria_label='"x"')
    '<td class="n" aria-label="&quot;x&quot;">&lt;b&gt;</td>'
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Html(f"<{tag}{given}>")
    return Html(f"<{tag}{given}>{join(children)}</{tag}>")


def join(children: Child) -> Html:
    """Return children as concatenated markup.

    >>> join(["a < b", None, Html("<br>"), 0.5])
    'a &lt; b<br>0.5'
    """
    if children is None or isinstance(children, Html):
        return children or Html("")
    if isinstance(children, str | float | int):
        return Html(_escaped(children))
    return Html("".join(join(child) for child in children))


def table(head: Iterable[Child], rows: Iterable[Iterable[Child]], class_: str = "") -> Html:
    """Return a table in a box that scrolls on narrow screens; the first cell names the row."""
    head = list(head)
    titles = [str(each[0]) if isinstance(each, list) else str(each) for each in head[1:]]
    body = []
    for first, *rest in rows:
        cells = [el("td", cell, data_of=of) for of, cell in zip(titles, rest, strict=True)]
        body.append(el("tr", el("th", first, scope="row"), cells))
    top = el("thead", el("tr", [el("th", cell, scope="col") for cell in head]))
    whole = el("table", top, el("tbody", body), class_=class_ or None)
    return el("div", whole, class_="scroll")


def breakable(text: str) -> Html:
    """Return a name that may break after a bracket, a comma or a colon.

    >>> breakable("pairwise(loss=logistic, k=<1>)")
    'pairwise(<wbr>loss=logistic, k=&lt;1&gt;)'
    """
    parts = re.split(r"(?<=[(:,_/])(?! )", text)
    return Html("<wbr>".join(join(part) for part in parts))


def details(summary: Child, *children: Child) -> Html:
    """Return a section that opens on a click, without a script."""
    return el("details", el("summary", summary), *children)


def fixed(value: float, digits: int = 4) -> str:
    """Return a number with a true minus sign, or a dash for NaN.

    >>> fixed(-0.25, 2), fixed(float("nan"))
    ('\u22120.25', '\u2013')
    """
    if not math.isfinite(value):
        return "\u2013"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0.0 else text.replace("-", "\u2212")


def signed(value: float, digits: int = 4) -> str:
    """Return a number that always has its sign."""
    text = fixed(value, digits)
    return f"+{text}" if math.isfinite(value) and float(f"{value:.{digits}f}") > 0.0 else text


def percent(difference: float, base: float) -> str:
    """Return a difference in percent of a mean; empty if that is zero or unknown.

    >>> percent(0.012, 0.6), percent(0.1, 0.0)
    ('(+2.0%)', '')
    """
    known = bool(base) and math.isfinite(difference / base)
    return f"({signed(100.0 * difference / abs(base), 1)}%)" if known else ""


def number(value: float) -> str:
    """Return a whole number with thin spaces between thousands.

    >>> number(12345) == "12\u2009345"
    True
    """
    return f"{int(value):,}".replace(",", "\u2009")


@final
@dataclass(frozen=True, slots=True)
class Scale:
    """A linear scale from numbers to coordinates.

    >>> Scale(0.0, 2.0, 100.0, 200.0)(0.5)
    125.0
    """

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """Return the coordinate of a number."""
        share = (value - self.low) / (self.high - self.low)
        return rounded(self.start + share * (self.stop - self.start))


@final
@dataclass(frozen=True, slots=True)
class Frame:
    """The area of a plot with its two scales."""

    x: Scale
    y: Scale

    @classmethod
    def around(
        cls, xs: Sequence[float], ys: Sequence[float], height: float = 280.0, left: float = 54.0
    ) -> "Frame":
        """Return a frame that holds all numbers, with room for the axes."""
        return cls(Scale(*_spread(xs), left, 446.0), Scale(*_spread(ys), height - 44.0, 14.0))

    def x_axis(self, title: str, digits: int | None = None) -> Html:
        """Return the lower axis, with a grid line per tick."""
        top, bottom = self.y.stop, self.y.start
        marks = ticks(self.x.low, self.x.high, 6)
        shown = _decimals(marks) if digits is None else digits
        return el(
            "g",
            [_line(self.x(at), top, self.x(at), bottom, "grid") for at in marks],
            _line(self.x.start, bottom, self.x.stop, bottom, "axis"),
            [label(self.x(at), bottom + 16, fixed(at, shown), "tick mid") for at in marks],
            label((self.x.start + self.x.stop) / 2, bottom + 35, title, "name mid"),
        )

    def y_axis(self, title: str) -> Html:
        """Return the left axis, with a grid line per tick and its name above."""
        left, marks = self.x.start, ticks(self.y.low, self.y.high, 6)
        digits = _decimals(marks)
        place = f"translate(12 {(self.y.start + self.y.stop) / 2:g}) rotate(-90)"
        return el(
            "g",
            [_line(left, self.y(at), self.x.stop, self.y(at), "grid") for at in marks],
            [label(left - 7, self.y(at) + 4, fixed(at, digits), "tick end") for at in marks],
            el("text", title, transform=place, class_="name mid"),
        )

    def upright(self, at: float) -> Html:
        """Return a line from top to bottom at a number."""
        return _line(self.x(at), self.y.stop, self.x(at), self.y.start, "zero")

    def level(self, at: float) -> Html:
        """Return a line from left to right at a number."""
        return _line(self.x.start, self.y(at), self.x.stop, self.y(at), "zero")


def figure(
    name: str, title: str, text: str, body: Iterable[Child], size: tuple[float, float] = (460, 280)
) -> Html:
    """Return a figure with its alternative text."""
    return el(
        "svg",
        el("title", title, id=f"{name}-title"),
        el("desc", text, id=f"{name}-text"),
        list(body),
        viewBox=f"0 0 {size[0]:g} {size[1]:g}",
        role="img",
        aria_labelledby=f"{name}-title {name}-text",
        class_="plot",
    )


def page(title: str, body: Iterable[Child], *head: Child) -> str:
    """Return a page with the style sheet of reports; it loads nothing from elsewhere."""
    style = (package_files(__package__) / "style.css").read_text(encoding="utf-8")
    about = el(
        "head",
        el("meta", charset="utf-8"),
        *head,
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        Html(f"<style>\n{style}</style>"),
    )
    whole = el("html", about, el("body", list(body)), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def plain_page(title: str, *children: Child) -> str:
    """Return a page without a script."""
    return page(title, [el("h1", title), *children, el("footer", FOOTER)])


def path(frame: Frame, xs: FloatArray, ys: FloatArray, class_: str, dash: str | None) -> Html:
    """Return a line through points, thinned if there are more points than pixels."""
    step = max(1, math.ceil(len(xs) / 400))
    keep = np.unique(np.append(np.arange(0, len(xs), step), len(xs) - 1))
    points = " ".join(f"{frame.x(xs[i]):g},{frame.y(ys[i]):g}" for i in keep)
    return el("polyline", points=points, class_=class_, stroke_dasharray=dash)


def label(x: float, y: float, text: str, class_: str) -> Html:
    """Return text at a place."""
    return el("text", text, x=rounded(x), y=rounded(y), class_=class_)


def color(number: int) -> tuple[str, str | None]:
    """Return class and dashes of a system: five colours, then the same ones dashed."""
    return f"c{number % _COLORS}", _DASHES[number // _COLORS % len(_DASHES)]


def ticks(low: float, high: float, about: int) -> list[float]:
    """Return round numbers between two ends."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * each for each in (1, 2, 5, 10) if raw <= power * each * (1 + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{at * step:.12g}") for at in range(first, last + 1)]


def rounded(value: float) -> float:
    """Return a coordinate with one decimal, which is precise enough."""
    return round(float(value), 1)


def _spread(values: Sequence[float]) -> tuple[float, float]:
    low, high = float(min(values)), float(max(values))
    room = 0.04 * (high - low) or max(abs(low) * 0.05, 0.01)
    return low - room, high + room


def _decimals(marks: Sequence[float]) -> int:
    return max((len(f"{at:.12g}".partition(".")[2]) for at in marks), default=0)


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    return el("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _escaped(value: str | float) -> str:
    text = value if isinstance(value, str) else f"{value:g}"
    return html.escape(_CONTROLS.sub("\ufffd", text), quote=True)
