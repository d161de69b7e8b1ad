"""``gbmrank check NAME``: search for a distribution on which an objective misleads a metric."""

import argparse
import json
from collections.abc import Callable
from typing import Any, TypeVar

from gbmrank.cli.arguments import check_no_loss, check_not_native, number, whole
from gbmrank.cli.screen import bold, clean
from gbmrank.errors import ParameterError

T = TypeVar("T")
_MOST_ITEMS = 12
_METRICS = ("dcg", "ndcg", "auc", "map", "err")
_ON_GRAPHS = ("pairwise_disagreement(normalize=false)",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", help="an objective: a name or a text such as pairwise(loss=hinge)")
    parser.add_argument(
        "--metric", action="append", help=f"may be repeated; {', '.join(_METRICS)} if left out"
    )
    parser.add_argument(
        "--items",
        help=f"items per query, up to {_MOST_ITEMS} (default: 3,4, or just above the cut-off)",
    )
    parser.add_argument("--grades", help="labels to try, such as 0,1,2 (default: by metric)")
    parser.add_argument("--budget", type=whole, default=400, help="distributions to try (400)")
    parser.add_argument("--seed", type=whole, default=0, help="seed of the search (0)")
    parser.add_argument("--graphs", action="store_true", help="search low-noise preference graphs")
    parser.add_argument(
        "--kit",
        action="store_true",
        help="run the conformance kit instead, on a loss, an objective or a metric",
    )
    parser.add_argument(
        "--kind",
        choices=("loss", "objective", "metric"),
        help="with --kit, for a name that has several meanings",
    )


def run(given: argparse.Namespace) -> int:
    """Print the verdict and what the search found, for each metric."""
    check_not_native(given.name)
    if given.kit:
        return _run_kit(given)
    check_no_loss(given.name)
    if given.budget < 1 or given.seed < 0:
        raise ParameterError(
            f"--budget must be at least 1 and --seed at least 0, got {given.budget} and "
            f"{given.seed}"
        )
    given.items, given.grades = _items(given.items), _grades(given.grades)
    usual = _ON_GRAPHS if given.graphs else _METRICS
    rows = [_checked(given, metric) for metric in given.metric or usual]
    if given.json:
        print(json.dumps({"schema": "gbmrank.check/1", "checks": rows}, indent=2))
        return 0
    print("\n\n".join(_section(row) for row in rows))
    return 0


def _run_kit(given: argparse.Namespace) -> int:
    """Print the report of the kit; the exit code is 2 when a check failed."""
    from gbmrank.testing import run_checks

    report = run_checks(given.name, kind=given.kind)
    if given.json:
        rows = [
            {"check": one.check, "outcome": one.outcome, "message": one.message}
            for one in report.results
        ]
        shown = {"kind": report.kind, "subject": report.subject, "results": rows}
        print(json.dumps({"schema": "gbmrank.kit/1", **shown}, indent=2))
    else:
        print(clean(report))
    return 2 if report.failed else 0


def _checked(given: argparse.Namespace, metric: str) -> dict[str, Any]:
    from gbmrank.registry.composition import as_metric, as_objective, text_of
    from gbmrank.theory.falsifier import search, search_on_graphs
    from gbmrank.theory.verdicts.calibration import calibration

    objective, measure = as_objective(given.name), as_metric(metric)
    verdict = calibration(objective, measure, graphs=given.graphs)
    if given.graphs:
        result = search_on_graphs(objective, measure, budget=given.budget, seed=given.seed)
    else:
        result = search(
            objective,
            measure,
            items=given.items,
            grades=given.grades,
            budget=given.budget,
            seed=given.seed,
        )
    return {
        "objective": text_of(objective),
        "metric": text_of(measure),
        "verdict": {**verdict.as_dict(), "counterexample": None},
        "found": None if result.example is None else result.example.as_dict(),
        "tried": result.tried,
        "failed": result.failed,
        "unattained": result.unattained,
        "text": str(result),
    }


def _items(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    items = _listed("--items", text, whole)
    if any(one > _MOST_ITEMS for one in items):
        raise ParameterError(
            f"--items goes up to {_MOST_ITEMS}, as longer queries take too long; got {text!r}"
        )
    return items


def _grades(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    grades = _listed("--grades", text, number)
    if len(set(grades)) < 2:
        raise ParameterError(f"--grades needs at least two different labels, got {text!r}")
    return grades


def _listed(option: str, text: str, read: Callable[[str], T]) -> tuple[T, ...]:
    try:
        return tuple(read(part) for part in text.split(","))
    except argparse.ArgumentTypeError as error:
        raise ParameterError(f"{option} takes numbers separated by commas, got {text!r}") from error


def _section(row: dict[str, Any]) -> str:
    verdict = row["verdict"]
    return "\n".join(
        [
            bold(clean(f"{row['objective']} FOR {row['metric']}")),
            clean(f"verdict: {verdict['status']}: {verdict['sentence']} [{verdict['reference']}]"),
            clean(f"search: {row['text']}"),
        ]
    )
