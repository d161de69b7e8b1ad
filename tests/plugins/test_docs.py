"""The page about plugins: its code runs, passes the kit, and is the example plugin."""

import re
import sys
import zlib
from pathlib import Path
from types import ModuleType

import pytest

from gbmrank import extend
from gbmrank.testing import run_checks

HOUSE = Path(__file__).resolve().parents[2]
PAGE = (HOUSE / "docs" / "plugins.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def module_with(text):
    block = next(block for block in BLOCKS if text in block)
    module = ModuleType(f"plugin_page_{zlib.crc32(text.encode())}")
    sys.modules[module.__name__] = module
    exec(compile(block, "docs/plugins.md", "exec"), vars(module))  # noqa: S102  (our own page)
    return module


def test_the_tutorial_is_the_example_plugin():
    source = HOUSE / "plugins" / "gbmrank-example" / "gbmrank_example.py"
    assert source.read_text(encoding="utf-8") in BLOCKS
    assert len(BLOCKS[0].splitlines()) <= 15


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        # The tests of the example plugin run the kit on it, too, and each compiles its own.
        pytest.param("smooth_hinge", "loss", {}, marks=pytest.mark.nightly),
        ("Mixed", "loss", {}),
        ("Centred", "objective", {"spec": "not registered here"}),
        ("RankBiased", "metric", {"spec": "not registered here"}),
    ],
)
def test_what_it_shows_passes_the_kit(name, kind, expected):
    subject = getattr(module_with(f" {name}("), name)
    report = run_checks(subject, kind=kind, expected_failures=expected)
    assert not report.failed, str(report)


def test_the_other_blocks_run():
    assert module_with("bound = gbmrank.objective").grad.shape == (3,)


def test_what_plugins_may_import_is_there():
    assert all(hasattr(extend, name) for name in extend.__all__)
    for path in HOUSE.glob("plugins/*/*.py"):
        for module in re.findall(r"^(?:from|import) (gbmrank[\w.]*)", path.read_text(), re.M):
            assert module in ("gbmrank.extend", "gbmrank.numerics", "gbmrank.errors"), path
