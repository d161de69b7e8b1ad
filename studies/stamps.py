"""Stamps: a page tells by which code it was made."""

import ast
import hashlib
import io
import tokenize
from collections.abc import Sequence
from pathlib import Path

_HERE = Path(__file__).parent
_PACKAGE = _HERE.parent / "gbmrank"
_LAYOUT = ("study", "report", "stamps", "__main__")  # how a page looks, not what it says
_STAMP = "- stamp: "
AGAIN = "- stamped without a new run: the figures are of an earlier version of this code"


def stamp(name: str) -> str:
    """Return a line for the page of a study that changes when its code does.

    It covers the study's folder, as far as it is imported, the shared modules that it imports, and
    the files of ``gbmrank`` that the study lists as its formulas, without imports, comments and
    docstrings. Kernels and boosters are not among them: they change often for speed, and tests
    compare them with formulas.

    Parameters
    ----------
    name : str
        Of the study.

    Examples
    --------
    >>> stamp("ramaswamy2013")
    '- stamp: `...` of the code of intervals.py, ramaswamy2013/experiment.py, ... and gbmrank/...'
    """
    found, todo = {}, [f"{name}/experiment"]
    while todo:
        module = todo.pop()
        if module not in found and module not in _LAYOUT:
            found[module], imported = _code(_text(module))
            todo += imported
    formulas = _formulas(_text(f"{name}/experiment"))
    code = [f"{module}\n{found[module]}" for module in sorted(found)]
    code += [_code((_PACKAGE / one).read_text(encoding="utf-8"))[0] for one in formulas]
    digest = hashlib.sha256("\n".join(code).encode()).hexdigest()[:16]
    files = ", ".join(f"{module}.py" for module in sorted(found))
    used = ", ".join(f"gbmrank/{one}" for one in formulas)
    return (
        f"{_STAMP}`{digest}` of the code of {files} and {used}; `make check` fails when it changes"
    )


def _text(module: str) -> str:
    return (_HERE / f"{module}.py").read_text(encoding="utf-8")


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
    kept = [line for line in lines if not line.startswith((_STAMP, AGAIN))]
    after = 1 + next(at for at, line in enumerate(kept) if line.startswith("- versions: "))
    page.write_text("\n".join([*kept[:after], stamp(name), AGAIN, *kept[after:]]), "utf-8")
    return page


def _code(text: str) -> tuple[str, list[str]]:
    """Return the lines of a module that compute, and the modules of the studies it imports.

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
            imported += _imported(node)
    lines = text.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    kept = [line.rstrip() for at, line in enumerate(lines, 1) if at not in dropped]
    return "\n".join(filter(None, kept)), imported


def _imported(node: ast.ImportFrom) -> list[str]:
    """Return the modules of the studies that a statement imports."""
    package, *parts = (node.module or "").split(".")
    if package != _HERE.name:
        return []
    places = ["/".join(parts), *("/".join([*parts, each.name]) for each in node.names)]
    return [place for place in places if (_HERE / f"{place}.py").is_file()]
