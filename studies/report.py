"""The page of a study, and the index of all pages."""

import importlib.metadata
import importlib.util
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, final

from studies.stamps import AGAIN, stamp
from studies.study import Option, Outcome, Page, Settings, Table

_PACKAGES = ("numpy", "scipy", "numba", "lightgbm", "xgboost", "catboost")
PROGRAM = "python -m studies"
_NOTE = f"<!-- Written by {PROGRAM}; do not edit. -->"
_FINDINGS, _PAPER = "## What was found", "Paper: "
_SVG: Any = {"svg.fonttype": "none", "svg.hashsalt": "gbmrank", "figure.figsize": (7.0, 4.2)}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What a study found, and how it was run.

    Parameters
    ----------
    name : str
        Of the study.
    paper : str
        What it reproduces, if anything.
    settings : Settings
        How it was run.
    outcome : Outcome or Page
        What came out.
    seconds : float
        How long it took.
    title : str
        Of the page; the name of the study by default.
    options : mapping of str to Option
        The study's own options.
    """

    name: str
    paper: str
    settings: Settings
    outcome: Outcome | Page
    seconds: float
    title: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """What to type to run it again; ``DATA`` stands for the folder with data."""
        given = self.settings
        words = [PROGRAM, self.name]
        words += ["--small"] if given.small else ["--data DATA"] if given.data else []
        words += [f"--seed {given.seed}"] if given.seed else []
        words += [f"--threads {given.threads}"] if given.threads else []
        for name, option in self.options.items():
            value = given.options.get(name, option.default)
            if option.quoted and value != option.default:
                shown = " ".join(value) if isinstance(value, tuple) else str(value)
                words += [f"--{name.replace('_', '-')} {shown}"]
        return " ".join(words)

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the plots, ready for JSON."""
        return {
            "study": self.name,
            "paper": self.paper,
            "command": self.command,
            "seconds": round(self.seconds, 1),
            "versions": versions(),
            **_parts(self.outcome),
        }

    def as_markdown(self, figures: Sequence[str] = ()) -> str:
        """Return a page.

        Parameters
        ----------
        figures : sequence of str
            File names of plots, beside the page.
        """
        found = self.outcome
        body = found.lines if isinstance(found, Page) else _body(self.paper, found, figures)
        page = [_NOTE, f"# {self.title or self.name}", "", *body, "", "## How it was run", ""]
        return "\n".join([*page, *self._how_it_was_run(), ""])

    def _how_it_was_run(self) -> list[str]:
        found = self.outcome
        used, duration, made_by = used_versions(), _duration(self.seconds), stamp(self.name)
        again = []
        if isinstance(found, Page):
            used, duration = found.versions or used, found.time or duration
            again = [AGAIN] if found.stamp not in (None, made_by) else []
            notes = [f"- {one}" for one in found.notes]
        else:
            notes = [f"- {key}: {_cell(value)}" for key, value in found.facts.items()]
        return [
            f"- command: `{self.command}`",
            f"- time: {duration}",
            f"- versions: {used}",
            made_by,
            *again,
            *notes,
        ]

    def save(self, folder: Path) -> list[Path]:
        """Write the page, its plots and the index into a folder, which is made if need be.

        Parameters
        ----------
        folder : Path
            Old plots of this study in it are removed.

        Returns
        -------
        list of Path
            What was written; no plots where matplotlib is not installed.
        """
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{self.name}*.svg"):
            old.unlink()
        beside = [folder / name for name in self._files()]
        for path, write in zip(beside, self._files().values(), strict=True):
            write(path)
        page = folder / f"{self.name}.md"
        page.write_text(self.as_markdown([path.name for path in beside]), encoding="utf-8")
        return [page, *beside, write_index(folder)]

    def _files(self) -> dict[str, Callable[[Path], None]]:
        """Return what lies beside the page: by name, what writes it."""
        if isinstance(self.outcome, Page):
            files = dict(self.outcome.files)
        else:
            draws = self.outcome.figures.items()
            files = {f"{self.name}-{name}.svg": partial(_draw, draw) for name, draw in draws}
        return {n: one for n, one in files.items() if not n.endswith(".svg") or has_matplotlib()}


def _parts(found: Outcome | Page) -> dict[str, Any]:
    """Return what came out, ready for JSON."""
    if isinstance(found, Page):
        return {"page": list(found.lines), "notes": list(found.notes)}
    tables = [one._asdict() for one in found.tables]
    return {
        "facts": {key: _plain(value) for key, value in found.facts.items()},
        "findings": list(found.findings),
        "tables": [{**one, "rows": list(map(list, one["rows"]))} for one in tables],
    }


def _body(paper: str, found: Outcome, figures: Sequence[str]) -> list[str]:
    lines = [
        *([found.summary, ""] if found.summary else []),
        *([_PAPER + paper + ("" if paper.endswith(".") else "."), ""] if paper else []),
        _FINDINGS,
        "",
        *(f"- {sentence}" for sentence in found.findings),
        "",
        *(line for name in figures for line in (f"![{name}]({name})", "")),
        *(line for one in found.tables for line in (*_markdown(one), "")),
    ]
    return lines[:-1]


def write_index(folder: Path) -> Path:
    """Write ``index.md``: the findings of every page of a paper in a folder.

    Parameters
    ----------
    folder : Path
        Where pages are.
    """
    lines = [_NOTE, "# Reproduced papers", ""]
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if page.name == "index.md" or not text.startswith(_NOTE) or f"\n{_PAPER}" not in text:
            continue
        title = text.split("\n")[1].removeprefix("# ")
        about = text.split("\n\n", 1)[1].split(f"\n\n{_FINDINGS}", 1)[0]
        found = text.split(_FINDINGS, 1)[1].split("\n\n", 2)[1]
        lines += [f"## [{title}]({page.name})", "", about, "", found, ""]
    path = folder / "index.md"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def has_matplotlib() -> bool:
    """Return whether plots can be drawn."""
    return importlib.util.find_spec("matplotlib") is not None


def versions() -> dict[str, str]:
    """Return the versions of Python, gbmrank and what it computes with."""
    from gbmrank import __version__

    found = {"Python": platform.python_version(), "gbmrank": __version__}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def used_versions() -> str:
    """Return the versions in one line."""
    return ", ".join(f"{name} {version}" for name, version in versions().items())


def _draw(draw: Any, path: Path) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SVG):
        figure = Figure(layout="constrained")
        draw(figure)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE), encoding="utf-8")


def _markdown(table: Table) -> list[str]:
    rows = [[_cell(cell) for cell in row] for row in (table.columns, *table.rows)]
    rule = ["---"] * len(table.columns)
    return [
        f"## {table.title}",
        "",
        *(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:])),
    ]


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.1f} minutes"
