"""``gbmrank plugin new NAME``: a plugin distribution that installs and passes at once."""

import argparse
import json
import keyword
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gbmrank.cli.scaffold import KINDS, files_of
from gbmrank.cli.screen import clean
from gbmrank.errors import ParameterError
from gbmrank.registry.catalogue import LOSSES, METRICS, OBJECTIVES, Registry
from gbmrank.registry.entry_points import project

__all__ = ["add_arguments", "run"]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_REGISTRIES: Mapping[str, Registry[Any]] = MappingProxyType(
    {each.kind: each for each in (LOSSES, OBJECTIVES, METRICS)}
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("action", choices=("new",), help="new: write the files of a plugin")
    parser.add_argument("name", help="of the distribution, such as gbmrank-tempered")
    parser.add_argument("--kind", choices=tuple(KINDS), default="loss", help="what it adds (loss)")
    parser.add_argument("--folder", default=".", help="where its folder is made (here)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Write the files and say what to do next."""
    from gbmrank import __version__

    _check_name(given.name)
    _check_free(given.name, given.kind)
    target = Path(given.folder) / given.name
    if target.exists():
        raise ParameterError(f"{target} is there already; choose another name or --folder")
    written = _write(target, files_of(given.name, given.kind, __version__))
    if given.json:
        print(json.dumps({"schema": "gbmrank.plugin/1", "files": written}, indent=2))
        return 0
    module = given.name.replace("-", "_")
    print(clean(f"wrote {len(written)} files to {target}"))
    print("next:")
    print(clean(f"  pip install -e '{target}[test]'"))
    print(clean(f"  pytest {target}"))
    print(clean(f"  then put your {given.kind} into {target / module}.py"))
    return 0


def _write(target: Path, files: Mapping[str, str]) -> list[str]:
    """Write all files or none; return where they are."""
    file = target
    try:
        for path, text in files.items():
            file = target / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        error.filename = error.filename or str(file)
        raise
    return [str(target / path) for path in files]


def _check_name(name: str) -> None:
    own = _registered_name(name)
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"a plugin is named in lower-case letters, digits and '-', such as gbmrank-tempered; "
            f"got {name!r}"
        )
    if keyword.iskeyword(own) or not own[:1].isalpha():
        what = "is a word of Python" if keyword.iskeyword(own) else "does not begin with a letter"
        raise ParameterError(
            f"{name!r} registers {own!r}, which {what}, so no function can be called that; "
            "choose another name, such as gbmrank-tempered"
        )


def _check_free(name: str, kind: str) -> None:
    """Refuse a name that gbmrank or another distribution has: neither is ever overridden."""
    own, registry = _registered_name(name), _REGISTRIES[kind]
    if own not in registry:
        return
    owners = [entry.origin for entry in registry.entries.get(own, ())]
    others = [one for one in owners if project(one.distribution) != project(name)]
    if owners and not others:
        return  # the same plugin, written anew
    owner = others[0] if others else "gbmrank"
    raise ParameterError(
        f"the {kind} {own!r} exists already, in {owner}, and a plugin never takes its place; "
        f"choose another name, such as gbmrank-my-{own.replace('_', '-')}"
    )


def _registered_name(name: str) -> str:
    return name.replace("-", "_").removeprefix("gbmrank_")
