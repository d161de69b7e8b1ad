"""Plugins in a clean environment: installed with pip, found, checked, trained, removed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parents[2]
PLUGINS = sorted(path.parent for path in HOUSE.glob("plugins/*/pyproject.toml"))

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """An environment with gbmrank, both boosters and pytest alone."""
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    environment = Clean(folder)
    environment.pip("install", f"{HOUSE}[lightgbm,xgboost]", "pytest>=8.2")
    return environment


class Clean:
    def __init__(self, folder):
        self.folder, self.python = folder, folder / "venv" / "bin" / "python"

    def run(self, *arguments):
        done = subprocess.run(
            [str(self.python), *arguments],
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "GBMRANK_CACHE_DIR": str(self.folder / "cache")},
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def pip(self, *arguments):
        return self.run("-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)

    def plugins(self):
        rows = json.loads(self.run("-m", "gbmrank", "plugins", "doctor", "--json"))["plugins"]
        assert all(row["status"] == "ok" for row in rows), rows
        return {row["distribution"] for row in rows}


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: folder.name)
def test_a_plugin_comes_and_goes(clean, folder):
    assert clean.plugins() == set()
    clean.pip("install", str(folder))
    assert clean.plugins() == {folder.name}
    clean.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / "tests"))
    clean.pip("uninstall", "--yes", folder.name)
    assert clean.plugins() == set()
    left = list((clean.folder / "venv").rglob(f"{folder.name.replace('-', '_')}*"))
    assert left == []


@pytest.mark.parametrize("kind", ["loss", "objective", "metric"])
def test_a_new_plugin_installs_and_passes_at_once(clean, kind):
    name = f"gbmrank-fresh-{kind}"
    clean.run("-m", "gbmrank", "plugin", "new", name, "--kind", kind)
    clean.pip("install", f"./{name}")
    assert clean.plugins() == {name}
    clean.run("-m", "pytest", "-q", "-p", "no:cacheprovider", name)
    clean.pip("uninstall", "--yes", name)
