"""What a study is given, what it gives back, and the page that is made of it."""

import ast
import hashlib
import importlib.metadata
import importlib.util
import io
import platform
import re
import tokenize
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


_PACKAGES = ("numpy", "scipy", "numba", "lightgbm", "xgboost")
PROGRAM = "python -m examples.papers"
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


_HERE = Path(__file__).parent
_PACKAGE = _HERE.parents[1] / "gbmrank"
_LAYOUT = ("study", "__main__")  # how a page looks, not what it says
_STAMP = "- stamp: "
_AGAIN = "- stamped without a new run: the figures are of an earlier version of this code"


def stamp(name: str) -> str:
    """Return a line for the page of a study that changes when its code does.

    It covers the study's module, the modules of this package that it imports, and the files of
    ``gbmrank`` that the study lists as its formulas, without imports, comments and docstrings.
    Kernels and boosters are not among them: they change often for speed, and tests compare them
    with formulas.

    Parameters
    ----------
    name : str
        Of the study.

    Examples
    --------
    >>> stamp("ramaswamy2013")
    '- stamp: `...` of the code of intervals.py, low_rank.py, ramaswamy2013.py and gbmrank/...'
    """
    found, todo = {}, [name]
    while todo:
        module = todo.pop()
        if module not in found and module not in _LAYOUT:
            found[module], imported = _code((_HERE / f"{module}.py").read_text(encoding="utf-8"))
            todo += imported
    formulas = _formulas((_HERE / f"{name}.py").read_text(encoding="utf-8"))
    code = [f"{module}\n{found[module]}" for module in sorted(found)]
    code += [_code((_PACKAGE / one).read_text(encoding="utf-8"))[0] for one in formulas]
    digest = hashlib.sha256("\n".join(code).encode()).hexdigest()[:16]
    files = ", ".join(f"{module}.py" for module in sorted(found))
    used = ", ".join(f"gbmrank/{one}" for one in formulas)
    return (
        f"{_STAMP}`{digest}` of the code of {files} and {used}; `make check` fails when it changes"
    )


def _formulas(text: str) -> list[str]:
    """Return what a study lists in FORMULAS, without an import."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FORMULAS":
            return sorted(ast.literal_eval(node.value))
    raise ValueError("a study lists the files of gbmrank that it rests on in FORMULAS")


def outdated(folder: Path, names: Sequence[str]) -> list[str]:
    """Return the studies whose page in a folder has no stamp, or that of other code."""
    pages = {name: folder / f"{name}.md" for name in names}
    return [
        name
        for name, page in pages.items()
        if not page.exists() or stamp(name) not in page.read_text(encoding="utf-8").split("\n")
    ]


def restamp(folder: Path, name: str) -> Path:
    """Put the stamp of today's code on a page without a new run, which the page then says.

    For a change that should change no result, where a run takes too long.
    """
    page = folder / f"{name}.md"
    lines = page.read_text(encoding="utf-8").split("\n")
    kept = [line for line in lines if not line.startswith((_STAMP, _AGAIN))]
    after = 1 + next(at for at, line in enumerate(kept) if line.startswith("- versions: "))
    page.write_text("\n".join([*kept[:after], stamp(name), _AGAIN, *kept[after:]]), "utf-8")
    return page


def _code(text: str) -> tuple[str, list[str]]:
    """Return the lines of a module that compute, and the modules of this package it imports.

    The lines are text, not a syntax tree, whose form differs between versions of Python.
    """
    dropped: set[int] = set()
    imported: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            dropped.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module == "examples.papers":
                imported += [each.name for each in node.names]
            elif module.startswith("examples.papers."):
                imported.append(module.rpartition(".")[2])
    lines = text.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    kept = [line.rstrip() for at, line in enumerate(lines, 1) if at not in dropped]
    return "\n".join(filter(None, kept)), imported


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
