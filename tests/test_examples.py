"""Every example runs and says something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("[0-9]*.py"))


# The first compiles a loss of its own into every kernel of the kit; the other starts a cluster.
LATER = ("08_plugin_loss.py", "11_dask.py")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.nightly if name in LATER else ()) for name in SCRIPTS],
)
def test_example(name, tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), "--fast"],
        cwd=tmp_path,
        env={**os.environ, "GBMRANK_DATA": "", "PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 3, "an example prints something worth reading"
    if ".png" in (EXAMPLES / name).read_text(encoding="utf-8"):
        assert list(tmp_path.glob("*.png")), "the plot it promises"
