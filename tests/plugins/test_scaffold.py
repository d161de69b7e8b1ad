"""``gbmrank plugin new``: complete, found, and passing before it is touched."""

import importlib
import json
import sys
import tomllib

import pytest

from gbmrank.cli import main
from gbmrank.testing import run_checks
from tests.plugins.fakes import forget_plugins, shelf  # noqa: F401  (a fixture)


@pytest.mark.parametrize("kind", ["loss", "objective", "metric"])
def test_a_new_plugin_is_complete_and_passes(shelf, tmp_path, capsys, kind):  # noqa: F811
    name = f"gbmrank-brand-new-{kind}"
    assert main(["plugin", "new", name, "--kind", kind, "--folder", str(tmp_path)]) == 0
    assert f"pytest {tmp_path / name}" in capsys.readouterr().out
    folder = tmp_path / name
    module = name.replace("-", "_")
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert written == {
        "pyproject.toml",
        "README.md",
        f"{module}.py",
        f"tests/test_{module}.py",
        ".github/workflows/test.yml",
    }
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    ((group, points),) = project["project"]["entry-points"].items()
    _install(tmp_path, folder, name, group, points)
    (entry,) = points
    report = run_checks(f"{name}:{entry}", kind=kind)
    assert not report.failed, str(report)
    assert main(["plugins", "doctor"]) == 0
    assert f"{name} 0.1.0" in capsys.readouterr().out
    sys.modules.pop(module, None)


def _install(path, folder, name, group, points):
    """What pip would do: the module and its metadata on the path."""
    module = name.replace("-", "_")
    (path / f"{module}.py").write_text((folder / f"{module}.py").read_text())
    info = path / f"{module}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = [f"[{group}]", *(f"{key} = {value}" for key, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    importlib.invalidate_caches()
    forget_plugins()


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("logistic", "loss", "the loss 'logistic' already exists in gbmrank"),
        ("gbmrank-logistic", "loss", "choose another name, such as gbmrank-my-logistic"),
        ("ranknet", "objective", "the objective 'ranknet' already exists in gbmrank"),
        ("gbmrank-focal", "loss", "the loss 'focal' already exists in robust-things 1.5"),
    ],
)
def test_a_name_that_exists_is_rejected(shelf, tmp_path, capsys, name, kind, words):  # noqa: F811
    module = shelf.add("robust-things", "raise RuntimeError", losses={"focal": "focal"})
    folder = tmp_path / "new"
    assert main(["plugin", "new", name, "--kind", kind, "--folder", str(folder)]) == 2
    assert words in capsys.readouterr().err
    assert not folder.exists()
    assert module not in sys.modules


def test_an_installed_plugin_can_be_written_anew(shelf, tmp_path):  # noqa: F811
    shelf.add("gbmrank-mine-again", "raise RuntimeError", losses={"mine_again": "mine_again"})
    folder = str(tmp_path / "new")
    assert main(["plugin", "new", "gbmrank-mine-again", "--folder", folder]) == 0


@pytest.mark.parametrize("name", ["Big", "a_b", "1x", "a--b", "../up", "gbmrank-"])
def test_names_are_checked(tmp_path, capsys, name):
    assert main(["plugin", "new", name, "--folder", str(tmp_path)]) == 2
    assert "the name of a plugin must be lower-case letters" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    assert main(["plugin", "new", "mine", "--folder", str(tmp_path)]) == 2
    assert "already exists" in capsys.readouterr().err


def test_as_json(tmp_path, capsys):
    assert main(["plugin", "new", "mine", "--folder", str(tmp_path), "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["schema"] == "gbmrank.plugin/1"
    assert len(out["files"]) == 5


def test_listing_plugins_imports_none(shelf, capsys):  # noqa: F811
    shelf.add("loud-plugin", "raise RuntimeError('imported')", losses={"loud": "loud"})
    assert main(["plugins", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["plugins"]
    (row,) = [row for row in rows if row["distribution"] == "loud-plugin"]
    assert row["status"] == "not loaded"
    assert main(["plugins", "doctor", "--json"]) == 2
    rows = json.loads(capsys.readouterr().out)["plugins"]
    (row,) = [row for row in rows if row["distribution"] == "loud-plugin"]
    assert (row["status"], row["cause"]) == ("broken", "RuntimeError: imported")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gbmrank-def", "'gbmrank-def' registers 'def', which is a Python keyword"),
        ("gbmrank-1x", "'gbmrank-1x' registers '1x', which does not begin with a letter"),
    ],
)
def test_names_that_no_function_can_have(capsys, tmp_path, name, reason):
    assert main(["plugin", "new", name, "--folder", str(tmp_path)]) == 2
    assert reason in capsys.readouterr().err
