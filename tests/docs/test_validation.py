"""The page that says where input is validated names functions that exist."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "validation.md"
ROWS = [
    re.findall(r"`([^`]+)`", line)
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if re.search(r"\| `gbmrank\.", line)
]


def resolve(module, path):
    found = module
    for name in path.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_check_is_where_the_page_says(row):
    place, *names = row
    module = importlib.import_module(place)
    assert names
    for name in names:
        if name.startswith("gbmrank."):
            (found,) = re.findall(r"(gbmrank\.[a-z_.]+)\.(\w+(?:\.\w+)?)$", name)
            assert resolve(importlib.import_module(found[0]), found[1])
        elif not name.startswith("__"):  # of the classes, not of a module
            assert resolve(module, name)


def test_no_row_is_left_out():
    assert len(ROWS) > 15
