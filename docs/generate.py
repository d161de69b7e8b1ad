"""Write the reference pages that come from the registry.

``python docs/generate.py`` writes them; ``python docs/generate.py --check`` fails when one
of them is not what the registry says.
"""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from gbmrank.composition import spec_of
from gbmrank.objectives import PRESETS
from gbmrank.registry import GENERATORS, LOSSES, METRICS, OBJECTIVES, UTILITIES, Registry
from gbmrank.spec import Spec, format_value

HERE = Path(__file__).parent
NOTE = "<!-- Written by docs/generate.py from the registry; do not edit. -->\n"


def main() -> int:
    """Write or check every page; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail instead of writing")
    check = parser.parse_args().check
    stale = []
    for name, text in pages().items():
        path = HERE / name
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(name)
        elif not check:
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"not up to date: {', '.join(stale)}; run python docs/generate.py", file=sys.stderr)
    return 1 if stale else 0


def pages() -> dict[str, str]:
    """Return the text of every generated page by file name."""
    return {
        "objectives.md": _objectives(),
        "losses.md": _losses(),
        "metrics.md": _metrics(),
    }


def _objectives() -> str:
    templates = _table(
        ["template", "formula", "cost", "parameters", "reference"],
        ([_code(c.name), c.formula, c.cost, _parameters(c), c.reference] for c in _own(OBJECTIVES)),
    )
    presets = _table(
        ["preset", "stands for"], ([_code(name), _code(text)] for name, text in PRESETS.items())
    )
    utilities = _table(
        ["target", "utility of an item", "parameters"],
        ([_code(c.name), c.formula, _parameters(c)] for c in _own(UTILITIES)),
    )
    return (
        f"{NOTE}\n# Objectives\n\nAn objective is a template with a loss and, where it takes one, "
        'a target:\n`gbmrank.objective("pairwise", loss="logistic", target="ndcg@10")`, or the '
        f"same as text.\n\n{templates}\n## Presets\n\n{presets}\n## Targets\n\n{utilities}"
    )


def _losses() -> str:
    losses = _table(
        ["loss", "formula", "convex", "parameters", "reference"],
        (
            [_code(c.name), c.formula, "yes" if c.convex else "no", _parameters(c), c.reference]
            for c in _own(LOSSES)
        ),
    )
    generators = _table(
        ["generator", "loss of a query", "parameters"],
        ([_code(c.name), c.formula, _parameters(c)] for c in _own(GENERATORS)),
    )
    return (
        f"{NOTE}\n# Losses\n\nScalar penalties; z is the margin by which the right answer leads, v "
        "a score, and a pair of\nformulas gives the loss of a useful and of a useless item.\n\n"
        f"{losses}\n## Generators of `bregman`\n\n{generators}"
    )


def _metrics() -> str:
    table = _table(
        ["metric", "also written", "formula", "better", "parameters", "reference"],
        (
            [
                _code(c.name),
                ", ".join(map(_code, c.aliases)),
                c.formula,
                "larger" if c.higher_is_better else "smaller",
                _parameters(c),
                c.reference,
            ]
            for c in _own(METRICS)
        ),
    )
    return (
        f"{NOTE}\n# Metrics\n\nOne value per query, the mean over all orders of tied items, then "
        f"one mean over queries.\nA cut-off is written `name@k`.\n\n{table}"
    )


def _own(registry: Registry[Any]) -> list[Any]:
    """Return the classes of gbmrank itself, without presets and plugins."""
    entries = (entry for found in registry.entries.values() for entry in found)
    classes = {
        entry.name: entry.load() for entry in entries if entry.origin.distribution == "gbmrank"
    }
    return [cls for name, cls in classes.items() if cls.name == name]


def _parameters(cls: Any) -> str:
    parts = []
    for field in fields(cls):
        default = field.default if field.default is not MISSING else ()
        parts.append(f"{field.name}={_default_text(default)}")
    return ", ".join(map(_code, parts))


def _default_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | int | float | tuple):
        return format_value(int(value) if isinstance(value, float) and value % 1 == 0 else value)
    spec = spec_of(value)
    return str(Spec(spec.name, (), spec.k))


def _code(text: str) -> str:
    return f"`{text}`"


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    return line(head) + line("---" for _ in head) + "".join(line(row) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
