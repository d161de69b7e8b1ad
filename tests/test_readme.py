"""Every Python block of the README runs, one after the other as a reader would paste them."""

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_blocks_run() -> None:
    pytest.importorskip("lightgbm")
    pytest.importorskip("xgboost")
    names: dict[str, Any] = {"__name__": "readme"}
    assert len(BLOCKS) > 5
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README block {number}", "exec"), names)  # noqa: S102
