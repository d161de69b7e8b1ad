"""Elements of HTML and SVG, escaped where they are made.

Text becomes markup in one function, so nothing has to remember to escape; that is why there is
no template language here, and why a report needs no package beyond numpy.
"""

import html
import math
import re
from collections.abc import Iterable
from typing import TypeAlias

__all__ = [
    "Child",
    "Html",
    "breakable",
    "details",
    "el",
    "fixed",
    "join",
    "number",
    "signed",
    "table",
]

# Control characters are not allowed in HTML; marks that reverse writing could disguise a name.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_VOID = ("meta", "br", "wbr")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "str | float | Iterable[Child] | None"


def el(tag: str, *children: Child, **attributes: str | float | None) -> Html:
    """Return an element; text in it is escaped.

    Parameters
    ----------
    tag : str
        Its name.
    *children : text, number, Html, None or iterable of these
        What is in it; None is nothing.
    **attributes : text, number or None
        ``class_`` is class and ``_`` is a hyphen; None is no attribute.

    Examples
    --------
    >>> el("td", "<b>", class_="n", aria_label='"x"')
    '<td class="n" aria-label="&quot;x&quot;">&lt;b&gt;</td>'
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_escaped(_text(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Html(f"<{tag}{given}>")
    return Html(f"<{tag}{given}>{join(children)}</{tag}>")


def join(children: Child) -> Html:
    """Return children as markup, one after the other.

    Examples
    --------
    >>> join(["a < b", None, Html("<br>"), 0.5])
    'a &lt; b<br>0.5'
    """
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, str | float | int):
        return Html(_escaped(_text(children)))
    return Html("".join(join(child) for child in children))


def table(
    head: Iterable[Child], rows: Iterable[Iterable[Child]], class_: str = "", caption: Child = None
) -> Html:
    """Return a table in a box that scrolls on narrow screens; the first cell names the row."""
    body = (
        el("tr", el("th", first, scope="row"), [el("td", cell) for cell in rest])
        for first, *rest in rows
    )
    return el(
        "div",
        el(
            "table",
            None if caption is None else el("caption", caption),
            el("thead", el("tr", [el("th", cell, scope="col") for cell in head])),
            el("tbody", list(body)),
            class_=class_ or None,
        ),
        class_="scroll",
    )


def breakable(text: str) -> Html:
    """Return a name that may go on in the next line after a bracket, a comma or a colon.

    Examples
    --------
    >>> breakable("pairwise(loss=logistic, k=<1>)")
    'pairwise(<wbr>loss=logistic, k=&lt;1&gt;)'
    """
    parts = re.split(r"(?<=[(:,_/])(?! )", text)
    return Html("<wbr>".join(join(part) for part in parts))


def details(summary: Child, *children: Child) -> Html:
    """Return what opens on a click, without a script."""
    return el("details", el("summary", summary), *children)


def fixed(value: float, digits: int = 4) -> str:
    """Return a number with a true minus sign, or a dash where there is none.

    Examples
    --------
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


def number(value: float) -> str:
    """Return a whole number with thin spaces between thousands.

    Examples
    --------
    >>> number(12345) == "12\u2009345"
    True
    """
    return f"{int(value):,}".replace(",", "\u2009")


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _escaped(text: str) -> str:
    return html.escape(_CONTROLS.sub("\ufffd", text), quote=True)
