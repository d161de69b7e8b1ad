"""What the README says of the project; tests/docs/test_guides.py runs its blocks."""

import re
import tomllib
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_all_extras_are_listed() -> None:
    project = tomllib.loads((README.parent / "pyproject.toml").read_text(encoding="utf-8"))
    listed = README.read_text(encoding="utf-8").partition("extras are ")[2].partition("\n\n")[0]
    extras = set(project["project"]["optional-dependencies"])
    assert set(re.findall(r"`(\w+)`", listed)) == extras
