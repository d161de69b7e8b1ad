"""Every Python block of the README runs, one after the other as a reader would paste them."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_all_extras_are_listed() -> None:
    project = tomllib.loads((README.parent / "pyproject.toml").read_text(encoding="utf-8"))
    listed = README.read_text(encoding="utf-8").partition("extras are ")[2].partition("\n\n")[0]
    extras = set(project["project"]["optional-dependencies"])
    assert set(re.findall(r"`(\w+)`", listed)) == extras


def test_blocks_run() -> None:
    pytest.importorskip("lightgbm")
    pytest.importorskip("xgboost")
    names: dict[str, Any] = {"__name__": "readme"}
    assert len(BLOCKS) > 5
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README block {number}", "exec"), names)  # noqa: S102
