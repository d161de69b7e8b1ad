"""Run the code blocks of the README and the guides, and keep the output that they show.

``python docs/blocks.py [PAGE ...]`` runs the pages and writes the printed output below each block;
``--check`` compares instead and fails where they differ. Notebooks are written from the same pages.

A block of ``python`` is executed, in the namespace of its page and in a temporary folder. What it
prints stands in the ``text`` block that follows it. In a block of ``console`` every line that
starts with ``$ gbmrank`` is executed and followed by its output. Other blocks are only shown.
"""

import argparse
import contextlib
import io
import json
import logging
import os
import re
import shlex
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gbmrank.errors import GbmrankWarning

HERE = Path(__file__).parent
GUIDES = HERE / "guides"
NOTEBOOKS = ("one_hour", "lambdarank", "choosing")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_CLOSE = 0.02  # numbers of trained models differ a little between versions and machines


class Block(NamedTuple):
    """A fenced block: its language, its text, and where it stands in the page."""

    language: str
    text: str
    start: int
    end: int


def pages() -> list[Path]:
    """Return the README, the first page of the documentation and the guides."""
    return [HERE.parent / "README.md", HERE / "index.md", *sorted(GUIDES.glob("*.md"))]


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    return [Block(m[1], m[2], m.start(), m.end()) for m in _FENCE.finditer(page)]


def run(path: Path) -> str:
    """Execute a page; return it with the output that it prints now."""
    page = path.read_text(encoding="utf-8")
    made, done = [], 0
    with _folder(), _script() as names:
        found = blocks(page)
        for number, block in enumerate(found):
            if block.start < done:  # the output of the block before
                continue
            made.append(page[done : block.start])
            done = block.end
            if block.language == "console":
                made.append(f"```console\n{_console(block.text)}```\n")
                continue
            made.append(page[block.start : block.end])
            if block.language == "python":
                printed = _execute(block.text, names, f"{path.name}, line {_line(page, block)}")
                made.append(f"\n```text\n{printed}```\n" if printed else "")
                done = _output_end(page, found[number : number + 2])
    return "".join([*made, page[done:]])


def _output_end(page: str, found: list[Block]) -> int:
    """Return where the output of a block ends: its own end, or that of the text block after it."""
    block, following = found[0], found[-1]
    shown = following.language == "text" and not page[block.end : following.start].strip()
    return following.end if shown else block.end


def _line(page: str, block: Block) -> int:
    return page.count("\n", 0, block.start) + 1


def _execute(source: str, names: dict[str, Any], where: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, where, "exec"), names)
    return _tidy(printed.getvalue())


def _console(text: str) -> str:
    from gbmrank.cli import main

    made = []
    for line in text.splitlines():
        if line.startswith("$ "):
            printed = io.StringIO()
            command = shlex.split(line[2:])
            if command[0] != "gbmrank":
                raise ValueError(f"only gbmrank is run in a console block, and not {line!r}")
            with contextlib.redirect_stdout(printed):
                code = main(command[1:])
            if code:
                raise RuntimeError(f"{line} ended with {code}")
            made.append(f"{line}\n{_tidy(printed.getvalue())}")
    return "".join(made)


def _tidy(printed: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


@contextlib.contextmanager
def _script() -> Iterator[dict[str, Any]]:
    """Run a page as the main script: it passes ``if __name__ == "__main__"``, and pickles."""
    module, before = types.ModuleType("__main__"), sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        yield module.__dict__
    finally:
        sys.modules["__main__"] = before


@contextlib.contextmanager
def _folder() -> Iterator[None]:
    """Work in a folder of its own, without plugins and log lines; a warning is an error."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", GbmrankWarning)
        os.environ.setdefault("COLUMNS", "100")
        os.environ.setdefault("GBMRANK_PLUGINS", "0")
        logging.getLogger("gbmrank").setLevel(logging.ERROR)
        os.chdir(place)
        try:
            yield
        finally:
            os.chdir(before)


def differences(shown: str, now: str) -> list[str]:
    """Return the lines of output that differ by more than rounding."""
    old, new = shown.splitlines(), now.splitlines()
    if len(old) != len(new):
        return [f"{len(old)} lines are shown, {len(new)} are printed"]
    return [f"shown:   {a}\nprinted: {b}" for a, b in zip(old, new, strict=True) if not _same(a, b)]


def _same(shown: str, now: str) -> bool:
    if _NUMBER.sub("#", shown).split() != _NUMBER.sub("#", now).split():
        return False
    pairs = zip(_NUMBER.findall(shown), _NUMBER.findall(now), strict=True)
    return all(abs(float(a) - float(b)) <= _CLOSE * max(abs(float(a)), 1.0) for a, b in pairs)


def notebook(page: str) -> str:
    """Return a page as a Jupyter notebook, with its output."""
    cells: list[dict[str, Any]] = []
    done = 0
    for block in blocks(page):
        text = page[done : block.start].strip()
        if text:
            cells.append(_text_cell(text))
        done = block.end
        if block.language == "python":
            cells.append(_code_cell(block.text))
        elif block.language == "console":
            lines = _lines(block.text)
            commands = [f"!{line[2:]}" for line in lines if line.startswith("$ ")]
            cells.append(_code_cell("".join(commands)))
            cells[-1]["outputs"] = [_printed([x for x in lines if not x.startswith("$ ")])]
        elif block.language == "text" and not text and cells[-1]["cell_type"] == "code":
            cells[-1]["outputs"] = [_printed(_lines(block.text))]
        else:
            cells.append(_text_cell(page[block.start : block.end].strip()))
    if page[done:].strip():
        cells.append(_text_cell(page[done:].strip()))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    meta = {"kernelspec": kernel, "language_info": {"name": "python"}}
    made: dict[str, Any] = {"cells": cells, "metadata": meta, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _printed(lines: list[str]) -> dict[str, Any]:
    return {"name": "stdout", "output_type": "stream", "text": lines}


def _text_cell(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": "", "metadata": {}, "source": _lines(text)}


def _code_cell(text: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "id": "",
        "metadata": {},
    }
    return {**made, "outputs": [], "source": _lines(text.rstrip("\n"))}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def notebooks() -> dict[Path, str]:
    """Return the text of every notebook by its path."""
    folder = HERE.parent / "examples" / "notebooks"
    return {
        folder / f"{name}.ipynb": notebook((GUIDES / f"{name}.md").read_text(encoding="utf-8"))
        for name in NOTEBOOKS
    }


def main() -> int:
    """Write or check the output of pages; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="all by default")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    given = parser.parse_args()
    wrong = 0
    for path in [page.resolve() for page in given.pages] or pages():
        made = run(path)
        found = differences(path.read_text(encoding="utf-8"), made)
        if given.check:
            wrong += bool(found)
            print("\n".join([f"{path.name}: {'differs' if found else 'as shown'}", *found]))
        else:
            path.write_text(made, encoding="utf-8")
            print(f"{path.name}: {'written' if found else 'as it was'}")
    if not given.check:
        for path, text in notebooks().items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
