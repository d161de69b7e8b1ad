"""The recipes of CONTRIBUTING for a loss and a metric, followed to the letter in a copy."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("gbmrank", "tests", "docs", "studies", "plugins", "pyproject.toml", "README.md")
QUICK = (
    "tests/losses/test_scalars.py",
    "tests/losses/test_utilities.py",
    "tests/metrics/test_ties.py",
    "tests/properties/test_metrics.py",
    "tests/testing/test_builtins.py",
    "tests/objectives/test_values.py",
    "tests/objectives/test_engines.py",
    "tests/theory/test_forms.py",
)
EVERYTHING = (
    "tests/losses",
    "tests/metrics",
    "tests/objectives",
    "tests/properties",
    "tests/testing",
    "tests/theory",
    "tests/precision",
    "tests/mutation/test_plan.py",
)
NEW = "huberised_hinge or f1 or every"


def recipe(title: str) -> list[tuple[str, str, str]]:
    """Return the kind, file and text of the code blocks of a section."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"( *)```(python|diff) (\S+)\n(.*?)\n *```", section, re.DOTALL)
    return [(kind, file, textwrap.dedent(text)) for _, kind, file, text in blocks]


def follow(folder: Path, title: str) -> set[str]:
    """Append blocks of Python, insert the lines of diffs with a plus; return the files."""
    steps = recipe(title)
    for kind, file, text in steps:
        path = folder / file
        source = path.read_text(encoding="utf-8")
        if kind == "python":
            changed = f"{source.rstrip()}\n\n\n{text}\n"
        else:
            lines = text.splitlines()
            there = "\n".join(line[1:] for line in lines if line[0] == " ")
            after = "\n".join(line[1:] for line in lines)
            assert source.count(there) == 1, (
                f"{file} has this {source.count(there)} times:\n{there}"
            )
            changed = source.replace(there, after)
        path.write_text(changed, encoding="utf-8")
    return {file for _, file, _ in steps}


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        whole = ROOT / name
        if whole.is_dir():
            shutil.copytree(whole, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(whole, folder)
    changed = [follow(folder, title) for title in ("Add a loss", "Add a metric")]
    assert [len(files) for files in changed] == [3, 3]
    for check in (("check", "--quiet"), ("format", "--check", "--quiet")):
        run(folder, "-m", "ruff", *check, *set().union(*changed))
    return folder


def run(folder: Path, *arguments: str) -> str:
    """Run Python in the copy, with its package in place of this one, and return what it prints."""
    env = {**os.environ, "PYTHONPATH": str(folder), "GBMRANK_PLUGINS": "0"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def passed_in(folder: Path, *arguments: str) -> int:
    """Return how many tests of the copy pass, where none may fail."""
    plain = ("-p", "tests.plain_kernels", "-m", "formula and not nightly", "-p", "no:cacheprovider")
    told = run(folder, "-m", "pytest", "-n0", *plain, *arguments)
    return int(re.findall(r"(\d+) passed", told)[-1])


def test_the_recipes_are_followed_without_a_failure(followed):
    assert passed_in(followed, *QUICK, "-k", NEW) > 300
    run(followed, "-c", "import gbmrank\nassert {'huberised_hinge'} < {one.name for one in "
        "gbmrank.list_losses()}\nassert str(gbmrank.objective('pairwise', target='f1@3')) == "
        "'pairwise(loss=logistic, target=f1@3)'")  # fmt: skip


@pytest.mark.nightly
def test_nothing_else_fails_after_the_recipes(followed):
    assert passed_in(followed, *EVERYTHING) > 5000
