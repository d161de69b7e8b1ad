"""Sizes of modules."""

from pathlib import Path

import pytest

import gbmrank

HOUSE = Path(gbmrank.__file__).parent
MODULES = sorted(str(path.relative_to(HOUSE)) for path in HOUSE.rglob("*.py"))
LIMIT = 400


@pytest.mark.parametrize("module", MODULES)
def test_no_module_is_longer_than_it_should_be(module):
    lines = (HOUSE / module).read_text(encoding="utf-8").count("\n")
    assert lines <= LIMIT, f"{module} has {lines} lines; split it by what it is about"


def test_the_types_are_shipped():
    assert (HOUSE / "py.typed").exists()
