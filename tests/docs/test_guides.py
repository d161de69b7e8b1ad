"""Every block of the README and the guides runs, one after the other, and prints what is shown."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

DOCS = Path(__file__).parents[2] / "docs"
blocks = SimpleNamespace(**runpy.run_path(str(DOCS / "blocks.py")))
NEEDS = {
    "optuna": ["optuna"],
    "cluster": ["distributed"],
    "files": ["pyarrow"],
    "one_hour": ["pandas"],
}


@pytest.mark.parametrize("page", blocks.pages(), ids=lambda page: page.stem)
def test_a_page_prints_what_it_shows(page):
    for package in ["lightgbm", "xgboost", "sklearn", *NEEDS.get(page.stem, [])]:
        pytest.importorskip(package)
    found = blocks.differences(page.read_text(encoding="utf-8"), blocks.run(page))
    assert not found, "\n".join([f"run python docs/blocks.py {page}", *found])


def test_every_block_that_prints_shows_it():
    """Differences in words, in numbers and in the number of lines are noticed."""
    assert not blocks.differences("a 0.500\n", "a 0.505\n")
    assert blocks.differences("a 0.5\n", "a 0.6\n")
    assert blocks.differences("a 0.5\n", "b 0.5\n")
    assert blocks.differences("a\n", "a\nb\n")


@pytest.mark.parametrize("path", blocks.notebooks(), ids=lambda path: path.stem)
def test_notebooks_are_their_guides(path):
    made = blocks.notebooks()[path]
    assert path.read_text(encoding="utf-8") == made, "run python docs/blocks.py"
    cells = json.loads(made)["cells"]
    assert sum(cell["cell_type"] == "code" for cell in cells) >= 3
    assert any(cell.get("outputs") for cell in cells)
