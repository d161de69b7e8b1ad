"""``gbmrank plugins``: which plugins are installed, and what is wrong with a broken one."""

import argparse
import contextlib
import sys
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from gbmrank.cli.screen import bold, clean, show, table
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
    about = (
        "list: show them without importing; doctor: load each, compile losses, and explain what "
        "is wrong"
    )
    actions = ("list", "doctor")
    parser.add_argument("action", nargs="?", default="list", choices=actions, help=about)


def run(given: argparse.Namespace) -> int:
    """Print plugins with their status; the exit code of doctor is 2 when one is broken."""
    load = given.action == "doctor"
    found = [
        (entry, _loaded(entry) if load else entry.status, clash) for entry, clash in _plugins()
    ]
    bad = unreadable()
    broken = bool(bad) or any(status.state == "broken" for _, status, _ in found)
    rows = [*(_row(*each) for each in found), *(_unread(*each) for each in bad)]
    text = "\n\n".join([_page(found, load), *(_unread_text(*each) for each in bad)])
    show(given, {"schema": "gbmrank.plugins/1", "plugins": rows}, text)
    return _BROKEN if broken and load else _FINE


def _plugins() -> Iterator[tuple[Entry[Any], str]]:
    """Yield entries of other distributions, each with those that share its name."""
    for entries in (one for registry in _KINDS for one in registry.entries.values()):
        for entry in entries:
            if entry.origin.distribution not in ("gbmrank", "this process"):
                yield entry, ", ".join(str(one.origin) for one in entries if one is not entry)


def _loaded(entry: Entry[Any]) -> Status:
    """Load a plugin, and use a loss once on two rows, which compiles it."""
    from gbmrank.api import objective
    from gbmrank.cli.arguments import objective_with

    status = entry.try_load()
    if status.state != "ok" or entry.kind != LOSSES.kind:
        return status
    try:
        with contextlib.redirect_stdout(sys.stderr):
            text = objective_with(f"{entry.origin.distribution}:{entry.name}")
            if text is not None:
                objective(text).loss([1, 0], [0.0, 0.0])
    except Exception as error:  # a plugin may do anything
        return Status("broken", error)
    return status


def _row(entry: Entry[Any], status: Status, clash: str) -> dict[str, object]:
    known = status.cause is not None
    return {
        "name": entry.name,
        "kind": entry.kind,
        **asdict(entry.origin),
        "status": status.state,
        "cause": f"{type(status.cause).__name__}: {status.cause}" if known else None,
        "advice": _advice(status.cause) if known else None,
        "same name as": clash or None,
    }


def _unread(origin: Origin, error: Exception) -> dict[str, object]:
    cause = f"entry_points.txt cannot be read: {type(error).__name__}: {error}"
    about = {"status": "broken", "cause": cause, "advice": _REWRITE, "same name as": None}
    return {"name": None, "kind": None, **asdict(origin), **about}


def _unread_text(origin: Origin, error: Exception) -> str:
    head = bold(clean(f"entry_points.txt of {origin} cannot be read"))
    return "\n".join([head, clean(f"  {type(error).__name__}: {error}"), f"  advice: {_REWRITE}"])


def _page(found: list[tuple[Entry[Any], Status, str]], load: bool) -> str:
    if not found:
        return "no plugins are installed (gbmrank plugin new NAME creates one)"
    rows = [[entry.name, entry.kind, str(entry.origin), status.state] for entry, status, _ in found]
    parts = [table(["name", "kind", "from", "status"], rows)]
    parts += [_explained(entry, status) for entry, status, _ in found if status.cause is not None]
    for entry, _, clash in found:
        use = f"{entry.origin.distribution}:{entry.name}"
        if clash:
            parts.append(clean(f"{entry.name}: {clash} also has this {entry.kind}; use {use}"))
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
    for frame in reversed(frames):
        if "importlib" not in frame.filename and "/gbmrank/" not in frame.filename:
            return [f"  {frame.filename}:{frame.lineno}: {frame.line}"]
    return []


def _advice(cause: BaseException | None) -> str:
    names = [cls.__name__ for cls in type(cause).__mro__]
    return next((_ADVICE[name] for name in names if name in _ADVICE), "see its traceback")
