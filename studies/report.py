"""The page of a study, and the index of all pages."""

import importlib.metadata
import importlib.util
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from studies.stamps import stamp
from studies.study import Outcome, Settings, Table

_PACKAGES = ("numpy", "scipy", "numba", "lightgbm", "xgboost")
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
        What it reproduces.
    settings : Settings
        How it was run.
    outcome : Outcome
        What came out.
    seconds : float
        How long it took.
    title : str
        Of the page; the name of the study by default.
    """

    name: str
    paper: str
    settings: Settings
    outcome: Outcome
    seconds: float
    title: str = ""

    @property
    def command(self) -> str:
        """What to type to run it again; ``DATA`` stands for the folder with data."""
        given = self.settings
        words = [PROGRAM, self.name]
        words += ["--small"] if given.small else ["--data DATA"] if given.data else []
        words += [f"--seed {given.seed}"] if given.seed else []
        words += [f"--threads {given.threads}"] if given.threads else []
        return " ".join(words)

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the plots, ready for JSON."""
        return {
            "study": self.name,
            "paper": self.paper,
            "command": self.command,
            "seconds": round(self.seconds, 1),
            "versions": versions(),
            "facts": {key: _plain(value) for key, value in self.outcome.facts.items()},
            "findings": list(self.outcome.findings),
            "tables": [
                {
                    "title": one.title,
                    "columns": list(one.columns),
                    "rows": list(map(list, one.rows)),
                }
                for one in self.outcome.tables
            ],
        }

    def as_markdown(self, figures: Sequence[str] = ()) -> str:
        """Return a page.

        Parameters
        ----------
        figures : sequence of str
            File names of plots, beside the page.
        """
        facts = [f"- {key}: {_cell(value)}" for key, value in self.outcome.facts.items()]
        used = ", ".join(f"{name} {version}" for name, version in versions().items())
        return "\n".join(
            [
                _NOTE,
                f"# {self.title or self.name}",
                "",
                *([self.outcome.summary, ""] if self.outcome.summary else []),
                _PAPER + self.paper + ("" if self.paper.endswith(".") else "."),
                "",
                _FINDINGS,
                "",
                *(f"- {sentence}" for sentence in self.outcome.findings),
                "",
                *(line for name in figures for line in (f"![{name}]({name})", "")),
                *(line for one in self.outcome.tables for line in (*_markdown(one), "")),
                "## How it was run",
                "",
                f"- command: `{self.command}`",
                f"- time: {_duration(self.seconds)}",
                f"- versions: {used}",
                stamp(self.name),
                *facts,
                "",
            ]
        )

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
        plots = [folder / f"{self.name}-{name}.svg" for name in self.outcome.figures]
        if not has_matplotlib():
            plots = []
        for path, draw in zip(plots, self.outcome.figures.values(), strict=False):
            _draw(draw, path)
        page = folder / f"{self.name}.md"
        page.write_text(self.as_markdown([path.name for path in plots]), encoding="utf-8")
        return [page, *plots, write_index(folder)]


def write_index(folder: Path) -> Path:
    """Write ``index.md``: the findings of every page of a study in a folder.

    Parameters
    ----------
    folder : Path
        Where pages are.
    """
    lines = [_NOTE, "# Reproduced papers", ""]
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if page.name == "index.md" or not text.startswith(_NOTE):
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
