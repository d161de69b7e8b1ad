"""``gbmrank plugin new NAME``: create a plugin project that installs and passes its tests."""

import argparse
import keyword
import re
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from gbmrank.boosters.supported import BACKENDS
from gbmrank.cli.screen import clean, show
from gbmrank.errors import ParameterError
from gbmrank.registry.catalogue import LOSSES, METRICS, OBJECTIVES, Registry
from gbmrank.registry.entry_points import project

KINDS = {
    "loss": ("{name}", 'gbmrank.objective("comparison", loss="{name}")'),
    "objective": ("Objective", 'gbmrank.objective("{name}")'),
    "metric": ("Metric", 'gbmrank.metric("{name}@10")'),
}
"""Per kind: object of the entry point, and example of use."""
_FILES = {  # of a project, and their templates in the folder plugin_files
    "pyproject.toml": "pyproject.toml",
    "{module}.py": "{kind}.py",
    "README.md": "README.md",
    "tests/test_{module}.py": "test.py",
    ".github/workflows/test.yml": "test.yml",
}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_REGISTRIES: dict[str, Registry[Any]] = {each.kind: each for each in (LOSSES, OBJECTIVES, METRICS)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("action", choices=("new",), help="new: write the files of a plugin")
    parser.add_argument("name", help="name of the distribution, such as gbmrank-tempered")
    parser.add_argument("--kind", choices=tuple(KINDS), default="loss", help="what it adds (loss)")
    parser.add_argument("--folder", default=".", help="where to create its folder (default: here)")


def run(given: argparse.Namespace) -> int:
    """Write the files and print the next steps."""
    from gbmrank import __version__

    module = given.name.replace("-", "_")
    _check(given.name, module.removeprefix("gbmrank_"), given.kind)
    target = Path(given.folder) / given.name
    if target.exists():
        raise ParameterError(f"{target} already exists; choose another name or --folder")
    written = []
    for path, text in files_of(given.name, given.kind, __version__).items():
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        written.append(str(file))
    lines = [
        f"wrote {len(written)} files to {target}",
        "next:",
        f"  pip install -e '{target}[test]'",
        f"  pytest {target}",
        f"  then put your {given.kind} into {target / module}.py",
    ]
    known = {"schema": "gbmrank.plugin/1", "files": written}
    return show(given, known, clean("\n".join(lines)))


def files_of(distribution: str, kind: str, version: str) -> dict[str, str]:
    """Return the files of a plugin by path; ``version`` is the gbmrank it needs.

    >>> sorted(files_of("gbmrank-tempered", "loss", "0.1"))[-2:]
    ['pyproject.toml', 'tests/test_gbmrank_tempered.py']
    """
    module = distribution.replace("-", "_")
    attribute, use = KINDS[kind]
    name = module.removeprefix("gbmrank_")
    words = {
        "distribution": distribution,
        "module": module,
        "name": name,
        "kind": kind,
        "group": {"loss": "losses"}.get(kind, f"{kind}s"),
        "attribute": attribute.format(name=name),
        "use": use.format(name=name),
        "gbmrank": version,
        "boosters": ",".join(BACKENDS),
    }
    made = {}
    for path, template in _FILES.items():
        file = package_files(__package__) / "plugin_files" / f"{template.format(**words)}.txt"
        made[path.format(**words)] = file.read_text(encoding="utf-8").format(**words)
    return made


def _check(name: str, own: str, kind: str) -> None:
    """Reject a name that is not one, or that gbmrank or another distribution registers."""
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"the name of a plugin must be lower-case letters, digits and '-', such as "
            f"gbmrank-tempered; got {name!r}"
        )
    if keyword.iskeyword(own) or not own[:1].isalpha():
        what = "is a Python keyword" if keyword.iskeyword(own) else "does not begin with a letter"
        raise ParameterError(f"{name!r} registers {own!r}, which {what}; choose another name")
    registry = _REGISTRIES[kind]
    if own not in registry:
        return
    owners = [entry.origin for entry in registry.entries.get(own, ())]
    others = [one for one in owners if project(one.distribution) != project(name)]
    if owners and not others:
        return  # the same plugin, written again
    raise ParameterError(
        f"the {kind} {own!r} already exists in {others[0] if others else 'gbmrank'}; choose "
        f"another name, such as gbmrank-my-{own.replace('_', '-')}"
    )
