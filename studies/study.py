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
    """

    data: Path | None = None
    small: bool = False
    seed: int = 0
    threads: int | None = None
    report: Callable[[str], None] = print


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


class Study(Protocol):
    """One paper; a module of this package that offers these names."""

    TITLE: str
    """Of the page: authors, year, subject."""
    PAPER: str
    """Authors, title, venue, year."""
    NEEDS: str
    """What data it needs, where to get it, and which files the folder must hold; or nothing."""
    FORMULAS: Sequence[str]
    """Files of ``gbmrank`` that define what is measured: losses, templates, metrics, theory."""

    def run(self, settings: Settings) -> Outcome:
        """Run the experiments."""
        ...
