"""The page of the benchmarks of speed: what they print, with the result first."""

import contextlib
import io
import re
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

TOPICS = ("rounds", "swaps", "engines", "long_queries", "metrics")  # of docs/results/speed.md
_BY = "These are ratios of medians; the tables have minima as well."
_RULE = re.compile(r"[-:| ]+")


class Section(NamedTuple):
    """A topic: what it is about, what it found, and what it printed."""

    title: str
    findings: Sequence[str]
    text: str


class _Tee(io.StringIO):
    """Keep what is printed, and print it."""

    def write(self, text: str) -> int:
        sys.__stdout__.write(text)  # type: ignore[union-attr]
        return super().write(text)

    def flush(self) -> None:
        sys.__stdout__.flush()  # type: ignore[union-attr]


@contextlib.contextmanager
def printed() -> Iterator[io.StringIO]:
    """Collect what is printed, without keeping it from the screen."""
    with contextlib.redirect_stdout(_Tee()) as found:
        yield found


def speed_page(sections: Sequence[Section], command: str, machine: str) -> str:
    """Return the page as markdown: results, tables, and how it was run.

    Parameters
    ----------
    sections : sequence of Section
        In the order of the page.
    command : str
        What was typed.
    machine : str
        What ``print_machine`` prints.
    """
    found = [sentence for one in sections for sentence in one.findings]
    lines = [
        "# Speed",
        "",
        *found[:1],
        "",
        *(f"- {sentence}" for sentence in found[1:]),
        "",
        _BY,
        "",
    ]
    for one in sections:
        title = one.title[0].upper() + one.title[1:]
        lines += [f"## {title}", "", *_paragraphs(one.text)]
    notes = [f"- {line}" for line in machine.splitlines()]
    lines += ["## How it was run", "", f"- `{command}`", *notes]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    """Yield tables as they are and every other line as a paragraph; indented lines are left out."""
    inside = False
    for line in text.splitlines():
        if line.startswith("|"):
            yield _shortened(line)
            inside = True
        elif line.strip() and not line.startswith("  "):
            yield from ([""] if inside else [])
            yield from (line, "")
            inside = False
        elif inside:
            yield ""
            inside = False
    if inside:
        yield ""


def _shortened(line: str) -> str:
    """Return a line of a table without the blanks that align it on a screen.

    >>> _shortened("| a     |   1 |"), _shortened("|-------|----:|")
    ('| a | 1 |', '| --- | ---: |')
    """
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    if _RULE.fullmatch(line):
        cells = ["---:" if cell.endswith(":") else "---" for cell in cells]
    return f"| {' | '.join(cells)} |"
