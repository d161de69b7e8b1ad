"""Sections about what is behind the numbers: theory, data, conventions, how to repeat it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gbmrank.experiments.report.markup import Child, Html, breakable, details, el, number, table
from gbmrank.experiments.report.view import View, system_name
from gbmrank.experiments.results import System

__all__ = ["audit", "calibration", "failures", "files", "origins"]

_AUDIT = {
    "rows": "Rows",
    "queries": "Queries",
    "features": "Features",
    "longest": "Longest query, rows",
    "singletons": "Queries of one row",
    "without_relevant": "Queries without a relevant row",
    "all_labels_equal": "Queries with equal labels",
    "duplicate_rows": "Duplicate rows",
    "label_counts": "Rows by label",
}
_BESIDE = {
    "per_query.csv": "values per query, as CSV",
    "results.json": "everything that was measured, as JSON",
}


def calibration(view: View) -> Html:
    """Return the matrix of objectives and measures, with the sentence and its source inside."""
    measures = [measure.name for measure in view.results.measures]
    objectives = list(dict.fromkeys(each.objective for each in view.results.systems))
    rows = [
        [
            el("span", breakable(name), class_="objective"),
            *(_verdict(view, name, each) for each in measures),
        ]
        for name in objectives
    ]
    return table(["Objective", *measures], rows, class_="verdicts")


def audit(view: View) -> Html:
    """Return what was found in the data, and which queries do not count."""
    found = view.results.audit
    rows = [(title, plain(found[key])) for key, title in _AUDIT.items() if key in found]
    rows += [(key, plain(value)) for key, value in found.items() if key not in (*_AUDIT, "notes")]
    counts = [
        [each.measure.name, *map(number, (each.n_queries, each.left_out, each.undefined))]
        for each in view.analysis.measures
    ]
    head = ("Queries", "Compared", "Left out: a system has no value", "No system has a value")
    notes = [el("li", str(note)) for note in found.get("notes", ())]
    return el(
        "div",
        table(["Data", ""], rows, class_="facts"),
        el("ul", notes) if notes else None,
        table(head, counts),
    )


def origins(view: View) -> Iterator[Html]:
    """Return conventions, settings, versions and the command."""
    results, made = view.results, view.results.environment
    if results.conventions:
        yield el("h3", "Conventions")
        rows = [(name, plain(each)) for name, each in results.conventions.items()]
        yield table(["Measure", ""], rows, class_="facts")
    if results.settings:
        yield el("h3", "Settings")
        yield _facts({key: each for key, each in results.settings.items() if key != "systems"})
    yield el("h3", "Where it ran")
    known = {key: value for key, value in made.items() if key != "command"}
    seeds = {} if "seeds" in results.settings else {"seeds": list(results.seeds)}
    yield _facts({**known, **seeds, **_resampling(view)})
    params = {run.system: plain(run.params) for run in results.runs if run.error is None}
    if params:
        yield details(
            "Parameters of the boosters, as used in the last run of each system",
            table(["", ""], [(system_name(who), text) for who, text in params.items()], "facts"),
        )
    if "command" in made:
        yield el("h3", "Do it again")
        yield el("pre", el("code", plain(made["command"])))


def failures(view: View) -> Html | None:
    """Return the runs that failed, with their errors; None where there is none."""
    if not view.results.failed:
        return None
    found: dict[tuple[System, str], list[str]] = {}
    for run in view.results.failed:
        place = f"seed {run.seed} fold {run.fold}"
        found.setdefault((run.system, run.error or ""), []).append(place)
    rows: list[list[Child]] = [
        [system_name(system), [len(places), el("small", ", ".join(places))], el("code", error)]
        for (system, error), places in found.items()
    ]
    return table(["System", "Runs", "Error"], rows, class_="failed")


def files(path: Path) -> Html | None:
    """Return links to the files that lie beside the report."""
    items = [
        el("li", el("a", name, href=name), f": {what}")
        for name, what in _BESIDE.items()
        if (path.parent / name).exists()
    ]
    return el("ul", items) if items else None


def plain(value: Any) -> str:
    """Return nested data as one line of text.

    Examples
    --------
    >>> plain({"folds": 5, "seeds": [0, 1], "tuned": None})
    'folds: 5, seeds: [0, 1], tuned: none'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_inner(each)}" for key, each in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(_inner(each) for each in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number(value)
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _inner(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({plain(value)})"
    return f"[{plain(value)}]" if isinstance(value, list | tuple) else plain(value)


def _verdict(view: View, objective: str, measure: str) -> Child:
    verdict = view.results.verdicts.get((objective, measure))
    if not verdict:
        return el("span", "\u2013", title="No verdict for a booster's own objective")
    status = str(verdict.get("status", "unknown"))
    chip = el("span", status, class_=f"chip {_TONES.get(status, 'undecided')}")
    return details(
        chip,
        el("p", str(verdict.get("sentence", ""))),
        el("p", el("small", str(verdict.get("reference", "")))),
    )


_TONES = {"calibrated": "better", "conditional": "same", "not calibrated": "worse"}


def _facts(values: Mapping[str, Any]) -> Html:
    return table(
        ["", ""],
        [(str(key).replace("_", " "), plain(value)) for key, value in values.items()],
        class_="facts",
    )


def _resampling(view: View) -> dict[str, Any]:
    made = view.analysis
    draws = f"{number(made.resamples)} draws, {number(made.tukey_resamples)} for all pairs"
    return {"resampling": f"{draws}, seed {made.seed}, level {made.level:g}"}
