"""``gbmrank check NAME``: search for a distribution on which an objective misleads a metric."""

import argparse
from collections.abc import Callable
from typing import Any, TypeVar

from gbmrank.cli.arguments import check_no_loss, check_not_native, number, option, whole
from gbmrank.cli.screen import bold, clean, show
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
    items = f"items per query, up to {_MOST_ITEMS} (default: 3,4, or just above the cut-off)"
    parser.add_argument("--items", help=items)
    parser.add_argument("--grades", help="labels to try, such as 0,1,2 (default: by metric)")
    parser.add_argument("--budget", type=whole, default=400, help="distributions to try (400)")
    parser.add_argument("--seed", type=whole, default=0, help="seed of the search (0)")
    option(parser, "--graphs", "search low-noise preference graphs")
    kit = "run the conformance kit instead, on a loss, an objective or a metric"
    option(parser, "--kit", kit)
    kind = "with --kit, for a name that has several meanings"
    parser.add_argument("--kind", choices=("loss", "objective", "metric"), help=kind)


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
    items = _listed("--items", given.items, whole)
    if any(one > _MOST_ITEMS for one in items or ()):
        raise ParameterError(
            f"--items goes up to {_MOST_ITEMS}, as longer queries take too long; got "
            f"{given.items!r}"
        )
    grades = _listed("--grades", given.grades, number)
    if grades is not None and len(set(grades)) < 2:
        raise ParameterError(f"--grades needs at least two different labels, got {given.grades!r}")
    given.items, given.grades = items, grades
    usual = _ON_GRAPHS if given.graphs else _METRICS
    rows = [_checked(given, metric) for metric in given.metric or usual]
    text = "\n\n".join(map(_section, rows))
    return show(given, {"schema": "gbmrank.check/1", "checks": rows}, text)


def _run_kit(given: argparse.Namespace) -> int:
    """Print the report of the kit; the exit code is 2 when a check failed."""
    from gbmrank.testing import run_checks

    report = run_checks(given.name, kind=given.kind)
    names = ("check", "outcome", "message")
    rows = [{name: getattr(one, name) for name in names} for one in report.results]
    known = {"schema": "gbmrank.kit/1", "kind": report.kind, "subject": report.subject}
    show(given, {**known, "results": rows}, clean(report))
    return 2 if report.failed else 0


def _checked(given: argparse.Namespace, metric: str) -> dict[str, Any]:
    from gbmrank.registry.composition import as_metric, as_objective, text_of
    from gbmrank.theory.falsifier import search, search_on_graphs
    from gbmrank.theory.verdicts.calibration import calibration

    objective, measure = as_objective(given.name), as_metric(metric)
    verdict = calibration(objective, measure, graphs=given.graphs)
    how: dict[str, Any] = {"budget": given.budget, "seed": given.seed}
    if given.graphs:
        result = search_on_graphs(objective, measure, **how)
    else:
        result = search(objective, measure, items=given.items, grades=given.grades, **how)
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


def _listed(name: str, text: str | None, read: Callable[[str], T]) -> tuple[T, ...] | None:
    try:
        return None if text is None else tuple(read(part) for part in text.split(","))
    except argparse.ArgumentTypeError as error:
        raise ParameterError(f"{name} takes numbers separated by commas, got {text!r}") from error


def _section(row: dict[str, Any]) -> str:
    verdict = row["verdict"]
    told = f"verdict: {verdict['status']}: {verdict['sentence']} [{verdict['reference']}]"
    head = bold(clean(f"{row['objective']} FOR {row['metric']}"))
    return "\n".join([head, clean(told), clean(f"search: {row['text']}")])
