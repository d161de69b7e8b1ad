"""``gbmrank list``: registered objectives, metrics, losses and utilities, with their origin."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from gbmrank.cli.screen import WIDTH, bold, fitted, line_width, show
from gbmrank.errors import PluginError
from gbmrank.registry import catalogue
from gbmrank.registry.catalogue import LOSSES, METRICS, OBJECTIVES, UTILITIES, Registry
from gbmrank.registry.entry_points import Entry, Origin

Row = dict[str, str | None]

_KINDS: dict[str, tuple[Registry[Any], Callable[[], list[Entry[Any]]]]] = {
    "objectives": (OBJECTIVES, catalogue.list_objectives),
    "metrics": (METRICS, catalogue.list_metrics),
    "losses": (LOSSES, catalogue.list_losses),
    "utilities": (UTILITIES, catalogue.list_utilities),
}
_COLUMNS = ("name", "formula", "cost", "reference", "status", "from")
_SPARE = ("from", "status", "reference", "cost")  # left out on narrow terminals, the first first


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    about = "what to list; all if left out"
    parser.add_argument("kind", nargs="?", choices=tuple(_KINDS), help=about)


def run(given: argparse.Namespace) -> int:
    """Print one table per kind."""
    kinds = [given.kind] if given.kind else list(_KINDS)
    rows = {kind: [_row(kind, entry) for entry in _KINDS[kind][1]()] for kind in kinds}
    if "objectives" in rows:  # a committee is no objective of the registry
        origin = next(one.origin for one in catalogue.list_objectives() if one.name == "pairwise")
        about = {"formula": "mean of models of several objectives", "cost": "that of its members"}
        rows["objectives"].append({**_blank("committee", origin), **about})
    text = "\n\n".join(_section(kind, rows[kind]) for kind in kinds)
    return show(given, {"schema": "gbmrank.list/1", **rows}, text)


def _row(kind: str, entry: Entry[Any]) -> Row:
    row = _blank(entry.name, entry.origin)
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:  # a plugin may do anything; the others are listed
        cause = error.__cause__ if isinstance(error, PluginError) and error.__cause__ else error
        return {**row, "status": "broken", "error": f"{type(cause).__name__}: {cause}"}
    stands_for = _KINDS[kind][0].preset(entry.name)
    texts = {key: str(getattr(loaded, key, "")) or None for key in ("formula", "cost", "reference")}
    return {**row, **texts, "preset": None if stands_for is None else str(stands_for)}


def _blank(name: str, origin: Origin) -> Row:
    texts = dict.fromkeys(("formula", "preset", "cost", "reference"))
    origin_of = {"distribution": origin.distribution, "version": origin.version}
    return {"name": name, **texts, **origin_of, "status": "ok", "error": None}


def _section(kind: str, rows: Sequence[Row]) -> str:
    own = [_cells(row) for row in rows if row["preset"] is None]
    presets = [_cells(row) for row in rows if row["preset"] is not None]
    parts = [bold(kind.upper()), _layout(own, "formula")]
    if presets:
        head = bold(f"{kind.upper()}: NAMES FROM THE LITERATURE")
        parts += ["", head, _layout(presets, "stands for")]
    return "\n".join(parts)


def _cells(row: Row) -> list[str]:
    formula = row["preset"] or row["formula"] or ""
    if row["error"] is not None:
        formula = f"cannot be loaded: {row['error']}"
    origin = f"{row['distribution']} {row['version']}".strip()
    status = "" if row["distribution"] == "gbmrank" else row["status"] or ""
    texts = [row["name"] or "", formula, row["cost"] or "", row["reference"] or ""]
    return [*texts, status, origin]


def _layout(rows: Sequence[Sequence[str]], second: str) -> str:
    head = [_COLUMNS[0], second, *_COLUMNS[2:]]
    used = [i for i in range(len(head)) if any(row[i] for row in rows)]
    cells = [[row[i] for i in used] for row in rows]
    shown = [head[i] for i in used]
    spare = [title for title in _SPARE if title in shown]
    return fitted(shown, cells, width=line_width() or WIDTH, spare=spare)
