"""``gbmrank advise METRIC``: which objective is right for a metric, and why."""

import argparse
import json
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gbmrank.cli.screen import bold, clean, fitted, line_width

if TYPE_CHECKING:
    from gbmrank.theory.verdicts.advice import Advice

__all__ = ["add_arguments", "run"]

_WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("metric", help="such as ndcg@10 or err@10")
    parser.add_argument(
        "--given",
        choices=("independent", "low-noise"),
        help="what is known of your data: 0/1 labels that are independent given the features, or "
        "preference graphs with low noise; what is proven for such data comes first",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Print objectives, the best first."""
    from gbmrank.registry.composition import as_metric, text_of
    from gbmrank.theory.verdicts.advice import advise

    measure = as_metric(given.metric)
    rows = advise(measure, given=given.given)
    name = text_of(measure)
    if given.json:
        advice = [row.as_dict() for row in rows]
        known = {"schema": "gbmrank.advise/1", "metric": name, "given": given.given}
        print(json.dumps({**known, "advice": advice}, indent=2))
        return 0
    when = {"independent": ", 0/1 LABELS INDEPENDENT", "low-noise": ", GRAPHS WITH LOW NOISE"}
    print(bold(f"OBJECTIVES FOR {name.upper()}{when.get(given.given, '')}"))
    cells = [
        [row.objective, row.verdict.status, row.verdict.constant or "-", row.cost, _why(row)]
        for row in rows
    ]
    print(fitted(["objective", "verdict", "c", "cost", "why"], cells, width=line_width()))
    print()
    print("\n".join(_reasons(rows)))
    print()
    print(_closing(name, measure.name, rows))
    return 0


def _why(row: "Advice") -> str:
    condition = row.verdict.condition
    return row.verdict.reference if condition is None else f"if {condition}"


def _reasons(rows: Sequence["Advice"]) -> list[str]:
    """Return one paragraph for each different reason, with the number of its objectives."""
    counts = Counter((row.verdict.status, row.verdict.sentence) for row in rows)
    return [
        _wrapped(f"{status} ({count}): {sentence}.") for (status, sentence), count in counts.items()
    ]


def _closing(name: str, kind: str, rows: Sequence["Advice"]) -> str:
    best = rows[0]
    if best.proven and best.verdict.constant is None:
        return _wrapped(f"Take {best.objective}: {best.verdict.sentence}.")
    if best.proven:
        note = (
            f"Take {best.objective}. c is the constant of the bound: {name} lost <= c C_phi(2) "
            "sqrt(loss above its infimum), with sums as the formulas have them."
        )
        return _wrapped(note)
    from gbmrank.losses.utilities import WITHOUT_UTILITY

    lines = [_wrapped(f"No objective is known to be calibrated for {name}.")]
    if kind in WITHOUT_UTILITY:
        lines.append(_wrapped(f"What to do: {WITHOUT_UTILITY[kind]}."))
    aimed = next((row.objective for row in rows if row.objective.startswith("swap(")), None)
    if aimed is not None:
        lines.append(
            _wrapped(
                f"{aimed} aims at the metric itself, pair by pair: no theorem, so compare it on "
                "your data (gbmrank compare)."
            )
        )
    shown = next((row for row in rows if row.verdict.counterexample is not None), None)
    if shown is not None:
        lines += ["", "A distribution that shows it:", clean(shown.verdict.counterexample)]
    return "\n".join(lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(clean(text), line_width() or _WIDTH, subsequent_indent="  ")
