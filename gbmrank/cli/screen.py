"""Terminal output: aligned tables, and text without control characters."""

import argparse
import json
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles and links
    r"|\x1b[PX^_].*?(?:\x1b\\|$)"  # device strings
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # colours and cursor moves
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
# C0 and C1 control characters, and marks that reverse the direction of writing.
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

WIDTH = 100  # of what is not printed on a terminal
_SEE = re.compile(r"; see :\w+:`[^`]+`")
_ROLE = re.compile(r":\w+:`~?(?P<name>[^`]+)`")


def show(given: argparse.Namespace, found: Mapping[str, Any], text: object, **how: Any) -> int:
    """Print a result, as JSON if that is wanted, and return the exit code of success.

    ``text`` may be a function, which is called for no JSON.
    """
    if given.json:
        print(json.dumps(found, **{"indent": 2, **how}))
    else:
        print(text() if callable(text) else text)
    return 0


def clean(text: object) -> str:
    r"""Return text without escape sequences and control characters; line ends stay.

    >>> clean("\x1b[31mred\x1b[0m \x1b]0;title\x07and\tsafe\x00")
    'red and safe'
    """
    printable = str(text).encode("utf-8", "backslashreplace").decode("utf-8")
    return _CONTROLS.sub("", _ESCAPES.sub("", printable.replace("\t", " ")))


def table(head: Sequence[str], rows: Sequence[Sequence[object]], right: str = "") -> str:
    """Return an aligned table with a line under its head, cells cleaned and on one line.

    ``right`` has one character per column: ``">"`` for columns aligned on the right.

    >>> print(table(["metric", "mean"], [["map", "0.5"]], right="<>"))
    metric  mean
    ------------
    map      0.5
    """
    cells = [
        # A cell that consists of control characters only is escaped.
        [clean(one).replace("\n", " ") or str(one).encode("unicode_escape").decode() for one in row]
        for row in (head, *rows)
    ]
    widths = [max(_columns(row[i]) for row in cells) for i in range(len(head))]
    sides = right.ljust(len(head), "<")
    lines = []
    for row in cells:
        room = [width - _columns(one) + len(one) for one, width in zip(row, widths, strict=True)]
        shown = zip(row, sides, room, strict=True)
        lines.append("  ".join(f"{cell:{side}{width}}" for cell, side, width in shown))
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join(line.rstrip() for line in (bold(lines[0]), rule, *lines[1:]))


def _columns(text: str) -> int:
    """Return how many columns of a terminal a text takes: wide letters two, marks none.

    >>> _columns("abc"), _columns("\u4e2d\u6587"), _columns("e\u0301")
    (3, 4, 1)
    """
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def fitted(
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    right: str = "",
    *,
    width: int | None,
    spare: Sequence[str] = (),
) -> str:
    """Return a table, or a paragraph for each row if the terminal is too narrow.

    ``width`` is that of the terminal, or None for no limit. Columns with the titles ``spare`` are
    left out first, in this order, if the table then fits.

    >>> print(fitted(["system", "mean", "p"], [["lightgbm ranknet", 0.5, ""]], width=20))
    lightgbm ranknet
      mean 0.5
    >>> print(fitted(["name", "cost"], [["ranknet", "O(n)"]], width=12, spare=["cost"]))
    name
    -------
    ranknet
    Left out to fit the terminal: cost
    """
    if width is None:
        return table(head, rows, right)
    sides = right.ljust(len(head), "<")
    for count in range(len(spare) + 1):
        left_out = spare[:count]
        kept = [i for i, title in enumerate(head) if title not in left_out]
        fewer = [[row[i] for i in kept] for row in rows]
        shown = table([head[i] for i in kept], fewer, "".join(sides[i] for i in kept))
        if max(map(_columns, shown.split("\n")[1:])) <= width:
            told = f"\nLeft out to fit the terminal: {', '.join(left_out)}" if left_out else ""
            return f"{shown}{told}"
    lines = []
    for first, *cells in rows:
        named = zip(head[1:], map(str, cells), strict=True)
        text = clean("; ".join(f"{title} {cell}" for title, cell in named if cell))
        lines.append(bold(clean(first)))
        lines.append(textwrap.indent(textwrap.fill(text, max(width - 2, 20)), "  "))
    return "\n".join(lines)


def filled(text: str, mark: str = "") -> str:
    """Return a cleaned paragraph in lines that fit the terminal, later ones indented.

    >>> filled("a short note", "* ")
    '* a short note'
    """
    width, shown = line_width() or WIDTH, f"{mark}{clean(text)}"
    return textwrap.fill(shown, width, subsequent_indent="  ", break_on_hyphens=False)


def unmarked(text: str) -> str:
    """Return a sentence of a docstring without its markup.

    >>> unmarked("Exponential loss ``exp(-z)``; see :func:`exponential`.")
    'Exponential loss exp(-z).'
    >>> unmarked("as :class:`~gbmrank.losses.Hinge` has it")
    'as Hinge has it'
    """
    short = _ROLE.sub(lambda found: found["name"].rpartition(".")[2], _SEE.sub("", text))
    return short.replace("``", "")


def system_message(error: OSError) -> str:
    """Return the message of the operating system, with the file."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def bold(text: str) -> str:
    """Return bold text on a terminal, plain text anywhere else or with ``NO_COLOR`` set."""
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return f"\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() and not plain else text


def line_width() -> int | None:
    """Return the width of the terminal, or None if the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
