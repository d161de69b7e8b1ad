"""Every example runs and says something."""

import runpy
import sys
import warnings
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("[0-9]*.py"))


# The first compiles a loss of its own into every kernel of the kit; the other starts a cluster.
LATER = ("08_plugin_loss.py", "11_dask.py")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.nightly if name in LATER else ()) for name in SCRIPTS],
)
def test_example(name, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GBMRANK_DATA", "")
    monkeypatch.setattr(sys, "argv", [name, "--fast"])
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    printed = capfd.readouterr().out
    assert len(printed.splitlines()) >= 3, "an example prints something worth reading"
    if ".png" in (EXAMPLES / name).read_text(encoding="utf-8"):
        assert list(tmp_path.glob("*.png")), "the plot it promises"
