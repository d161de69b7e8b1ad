"""``gbmrank plugins``: which plugins are installed, and what is wrong with a broken one."""

import argparse
import contextlib
import json
import sys
import traceback
from typing import Any

from gbmrank.cli.screen import bold, clean, table
from gbmrank.registry.catalogue import LOSSES, METRICS, OBJECTIVES, UTILITIES, Registry
from gbmrank.registry.entry_points import API_VERSION, Entry, Origin, Status, unreadable

_KINDS: tuple[Registry[Any], ...] = (LOSSES, OBJECTIVES, METRICS, UTILITIES)
_FINE, _BROKEN = 0, 2
_REWRITE = "its lines are NAME = MODULE:OBJECT; repair or uninstall the distribution"
_ADVICE = {
    "ModuleNotFoundError": "install the package that is missing into this environment",
    "ImportError": "its version may not match a package that it imports; upgrade both",
    "SyntaxError": "this Python cannot parse the file; see the line above",
    "SystemExit": "it exits the process on import, which a plugin must not do",
    "AttributeError": "the entry point names an object that is missing from its module, or an "
    "import failed half way",
    "PluginContractError": "it violates the plugin contract; see docs/plugins.md",
    "RegistrationError": "choose another name",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "doctor"),
        help="list: show them without importing; doctor: load each, compile losses, and explain "
        "what is wrong",
    )


def run(given: argparse.Namespace) -> int:
    """Print plugins with their status; the exit code of doctor is 2 when one is broken."""
    load = given.action == "doctor"
    found = [(entry, _status(entry, load), clash) for entry, clash in _plugins()]
    bad = unreadable()
    broken = bool(bad) or any(status.state == "broken" for _, status, _ in found)
    if given.json:
        rows = [*(_row(*each) for each in found), *(_unread(*each) for each in bad)]
        print(json.dumps({"schema": "gbmrank.plugins/1", "plugins": rows}, indent=2))
    else:
        print("\n\n".join([_page(found, load), *(_unread_text(*each) for each in bad)]))
    return _BROKEN if broken and load else _FINE


def _plugins() -> list[tuple[Entry[Any], str]]:
    """Return entries of other distributions, each with those that share its name."""
    found = []
    for registry in _KINDS:
        for entries in registry.entries.values():
            for entry in entries:
                if entry.origin.distribution in ("gbmrank", "this process"):
                    continue
                others = [str(one.origin) for one in entries if one is not entry]
                found.append((entry, ", ".join(others)))
    return found


def _status(entry: Entry[Any], load: bool) -> Status:
    if not load:
        return entry.status
    status = entry.try_load()
    return _compiled(entry) if status.state == "ok" and entry.kind == LOSSES.kind else status


def _compiled(entry: Entry[Any]) -> Status:
    """Use a loss once on two rows, which compiles it."""
    from gbmrank.api import objective
    from gbmrank.cli.arguments import objective_with

    try:
        with contextlib.redirect_stdout(sys.stderr):
            text = objective_with(f"{entry.origin.distribution}:{entry.name}")
            if text is not None:
                objective(text).loss([1, 0], [0.0, 0.0])
    except Exception as error:  # a plugin may do anything
        return Status("broken", error)
    return Status("ok")


def _row(entry: Entry[Any], status: Status, clash: str) -> dict[str, object]:
    return {
        "name": entry.name,
        "kind": entry.kind,
        "distribution": entry.origin.distribution,
        "version": entry.origin.version,
        "status": status.state,
        "cause": None if status.cause is None else f"{type(status.cause).__name__}: {status.cause}",
        "advice": None if status.cause is None else _advice(status.cause),
        "same name as": clash or None,
    }


def _unread(origin: Origin, error: Exception) -> dict[str, object]:
    return {
        "name": None,
        "kind": None,
        "distribution": origin.distribution,
        "version": origin.version,
        "status": "broken",
        "cause": f"entry_points.txt cannot be read: {type(error).__name__}: {error}",
        "advice": _REWRITE,
        "same name as": None,
    }


def _unread_text(origin: Origin, error: Exception) -> str:
    head = bold(clean(f"entry_points.txt of {origin} cannot be read"))
    return "\n".join([head, clean(f"  {type(error).__name__}: {error}"), f"  advice: {_REWRITE}"])


def _page(found: list[tuple[Entry[Any], Status, str]], load: bool) -> str:
    if not found:
        return "no plugins are installed (gbmrank plugin new NAME creates one)"
    rows = [[entry.name, entry.kind, str(entry.origin), status.state] for entry, status, _ in found]
    parts = [table(["name", "kind", "from", "status"], rows)]
    parts += [_explained(entry, status) for entry, status, _ in found if status.cause is not None]
    parts += [
        clean(
            f"{entry.name}: {clash} also has this {entry.kind}; use "
            f"{entry.origin.distribution}:{entry.name}"
        )
        for entry, _, clash in found
        if clash
    ]
    if load:
        parts.append(f"the plugin contract of this gbmrank is version {API_VERSION}")
    return "\n\n".join(parts)


def _explained(entry: Entry[Any], status: Status) -> str:
    cause = status.cause
    head = bold(clean(f"{entry.kind} {entry.name} of {entry.origin}"))
    lines = [f"  {type(cause).__name__}: {cause}", *_place(cause), f"  advice: {_advice(cause)}"]
    return "\n".join([head, *map(clean, lines)])


def _place(cause: BaseException | None) -> list[str]:
    """Return the last executed line of the plugin itself."""
    if isinstance(cause, SyntaxError) and cause.filename:
        return [f"  {cause.filename}:{cause.lineno}: {(cause.text or '').strip()}"]
    frames = traceback.extract_tb(None if cause is None else cause.__traceback__)
    theirs = [
        frame
        for frame in frames
        if "importlib" not in frame.filename and "/gbmrank/" not in frame.filename
    ]
    return [f"  {frame.filename}:{frame.lineno}: {frame.line}" for frame in theirs[-1:]]


def _advice(cause: BaseException | None) -> str:
    names = [cls.__name__ for cls in type(cause).__mro__]
    return next((_ADVICE[name] for name in names if name in _ADVICE), "see its traceback")
