"""Every Python block of the README runs."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_block_runs(block: str) -> None:
    pytest.importorskip("lightgbm")
    pytest.importorskip("xgboost")
    exec(compile(block, str(README), "exec"), {"__name__": "readme"})  # noqa: S102
