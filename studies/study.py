"""What a study is given and what it gives back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to run a study.

    Parameters
    ----------
    data : Path or None
        Folder with the paper's data; not needed with ``small`` or for simulations.
    small : bool, default=False
        A short run on built-in data: shows that it works, says nothing about the paper.
    seed : int, default=0
        Of everything random.
    threads : int or None, default=None
        Of boosters and kernels.
    report : callable, default=print
        Takes one line of progress.
    options : mapping
        The study's own options, by name; what is not given has its default.
    """

    data: Path | None = None
    small: bool = False
    seed: int = 0
    threads: int | None = None
    report: Callable[[str], None] = print
    options: Mapping[str, Any] = field(default_factory=dict)


class Option(NamedTuple):
    """An option of one study; the type of its default says what it takes."""

    default: Any
    about: str
    choices: Sequence[str] = ()
    quoted: bool = True
    """Whether the page's command has it; not where it only names a place or a step."""


class Table(NamedTuple):
    """A table for people: our figures and the printed ones, as text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came out.

    Parameters
    ----------
    tables : sequence of Table
        Ours beside theirs.
    findings : sequence of str
        One sentence per claim of the paper: what was found, with its interval, whichever way
        it came out.
    figures : mapping of str to callable
        Name of a plot, and a function that draws it on a ``matplotlib`` figure.
    facts : mapping
        Data, sizes, settings; everything needed to run it again.
    summary : str
        The result in one plain sentence, which opens the page; nothing in a short run.
    """

    tables: Sequence[Table]
    findings: Sequence[str]
    figures: Mapping[str, Callable[[Any], None]] = field(default_factory=dict)
    facts: Mapping[str, object] = field(default_factory=dict)
    summary: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page that a study lays out itself, between its title and how it was run.

    Parameters
    ----------
    lines : sequence of str
        Markdown; the result comes first.
    notes : sequence of str
        How it was run, one sentence or a few each.
    files : mapping of str to callable
        Name of a file beside the page, and a function that writes it to a path.
    time : str
        What it took, where runs were kept; by default the time of this call.
    versions : str
        Of the packages, where the figures are of an earlier call.
    stamp : str or None
        Of the code that made the figures, where that was an earlier call.
    """

    lines: Sequence[str]
    notes: Sequence[str] = ()
    files: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    time: str = ""
    versions: str = ""
    stamp: str | None = None


class Study(Protocol):
    """What ``studies/NAME/experiment.py`` offers."""

    TITLE: str
    """Of the page: of a paper, authors, year, subject."""
    PAPER: str
    """Authors, title, venue, year; nothing for a study of our own."""
    NEEDS: str
    """What data it needs, where to get it, and which files the folder must hold; or nothing."""
    FORMULAS: Sequence[str]
    """Files of ``gbmrank`` that define what is measured: losses, templates, metrics, theory."""
    OPTIONS: Mapping[str, Option]
    """Its own options, by name, for ``Settings.options``; mostly none."""

    def run(self, settings: Settings) -> Outcome | Page | None:
        """Run the experiments; nothing comes out where only the cost was wanted."""
        ...
