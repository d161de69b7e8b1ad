"""Which objective ranks best on real data: gbmrank, the boosters' own, and CatBoost.

``python -m studies quality --data FOLDER`` trains every system on every set it finds (see
``studies/sets.py``), in folds of queries with several seeds, and keeps one JSON line per set, seed,
fold and booster in ``--work``: an interrupted run continues there. What it will take is printed
first; ``--estimate`` ends there. ``--finished`` makes the page of the lines that are there, without
a training; ``--figures docs/results/quality.json`` makes it of the figures of an earlier page.

``--letor FOLDER --max-grade 4`` runs the same table on a public set with files of its own for
training, validation and test: a fold of MSLR-WEB10K or 30K, a set of Yahoo, Istella.

Settings, members and defaults were chosen on the sets of ``DEVELOPMENT``; nothing on the others.
"""

import contextlib
import importlib.util
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self, final

import numpy as np

from gbmrank.errors import ConfigError
from studies.files import VARIABLE
from studies.quality.models import PARAMS, Cell, run_cell
from studies.quality.page import document_of, page
from studies.sets import SETS, RankingSet, demonstration, read_parts
from studies.study import Option, Page, Settings

TITLE = "Quality on real data"
PAPER = ""
NEEDS = (
    "any of the public sets that studies/sets.py reads: OHSUMED, MQ2008 and MSLR of LETOR, "
    "MovieLens 100k, the ranking examples of LightGBM and CatBoost, ModeCanada"
)
FORMULAS = ("objectives/calibrated.py", "objectives/pairwise.py", "objectives/swap.py")
BACKENDS = tuple(PARAMS)
OPTIONS: Mapping[str, Option] = {
    "letor": Option(None, "folder of one set with parts of its own", quoted=False),
    "max_grade": Option(4, "highest label of --letor"),
    "work": Option(Path("build/quality"), "where finished runs are kept", quoted=False),
    "finished": Option(False, "train nothing: the page of finished runs", quoted=False),
    "figures": Option(None, "train nothing: the page of a quality.json", quoted=False),
    "estimate": Option(False, "print the hours and end", quoted=False),
    "sets": Option(tuple(SETS), "data sets", tuple(SETS)),
    "backends": Option(BACKENDS, "boosters", BACKENDS),
    "seeds": Option(3, "seeds with splits of their own"),
    "folds": Option(3, "folds by query"),
    "rounds": Option(100, "trees of a model"),
    "rows": Option(15_000, "rows of a set, by drawing queries"),
}
_PROBE = 2000, 5  # rows and rounds that time is measured on


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to train, and where finished runs are kept."""

    work: Path
    backends: tuple[str, ...]
    seeds: int
    folds: int
    rounds: int
    threads: int

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return what the options say; a short run has one split and five rounds."""
        given = {name: one.default for name, one in OPTIONS.items()} | dict(settings.options)
        if given["letor"] is not None:
            given["folds"] = 1
        if settings.small:
            given |= {"seeds": 1, "folds": 2, "rounds": 5, "work": given["work"] / "small"}
        given["threads"] = settings.threads or 1
        return cls(**{one.name: given[one.name] for one in fields(cls)})


def run(settings: Settings) -> Page | None:
    """Train what is missing, and make the page of all runs that are finished.

    Parameters
    ----------
    settings : Settings
        ``data`` holds the sets; ``small`` takes a made-up one instead.
    """
    plan, options = Plan.of(settings), settings.options
    if options.get("figures") is not None:
        return page(json.loads(options["figures"].read_text(encoding="utf-8")))
    if not options.get("finished"):
        data = _sets(settings)
        waiting = _waiting(data, plan, settings.report)
        if options.get("estimate"):
            return None
        train(data, waiting, plan, settings.report)
    runs = _read(plan.work)
    if not runs:
        raise ConfigError(f"{plan.work} has no finished runs")
    return page(document_of(runs))


def _waiting(
    data: Mapping[str, RankingSet], plan: Plan, report: Callable[[str], None]
) -> list[Cell]:
    """Return what is not done yet, and say what it takes."""
    done = _done(plan.work)
    waiting = [cell for cell in _cells(data, plan, report) if cell not in done]
    if waiting:
        hours = sum(_hours(data[cell.set], cell.backend, plan) for cell in waiting)
        report(f"{len(waiting)} runs wait; about {hours:.1f} hours of CPU time")
    else:
        report("all runs are done")
    return waiting


def train(
    data: Mapping[str, RankingSet], cells: list[Cell], plan: Plan, report: Callable[[str], None]
) -> None:
    """Run cells and keep each."""
    plan.work.mkdir(parents=True, exist_ok=True)
    lines = plan.work / f"runs-{os.getpid()}.jsonl"  # several calls may share the work by --sets
    for number, cell in enumerate(cells, 1):
        found = run_cell(data[cell.set], cell, plan.folds, plan.rounds, plan.threads)
        about = data[cell.set].about
        with lines.open("a", encoding="utf-8") as out:
            out.write(json.dumps({**found, "about": about, "model_rounds": plan.rounds}) + "\n")
        report(f"[{number}/{len(cells)}] {' '.join(map(str, cell))}: {found['cpu']} s")


def _sets(settings: Settings) -> dict[str, RankingSet]:
    if settings.small:
        return {"demonstration": demonstration()}
    options = settings.options
    if options.get("letor") is not None:
        grade = options.get("max_grade", OPTIONS["max_grade"].default)
        one = read_parts(options["letor"], grade)
        return {one.name: one}
    if settings.data is None:
        raise ConfigError(f"no data: give --data FOLDER or set {VARIABLE}, or --letor FOLDER")
    found = {}
    for name in options.get("sets", SETS):
        try:
            read = SETS[name](settings.data)
        except ConfigError as error:
            settings.report(f"{name} is left out: {error}")
        else:
            found[name] = read.capped(options.get("rows", OPTIONS["rows"].default))
    return found


def _cells(
    data: Mapping[str, RankingSet], given: Plan, report: Callable[[str], None]
) -> Iterator[Cell]:
    """Yield what to run: first seeds of all sets first, so that a part of the runs tells most."""
    known = [one for one in given.backends if importlib.util.find_spec(one) is not None]
    for name in set(given.backends) - set(known):
        report(f"{name} is left out: it is not installed")
    for seed in range(given.seeds):
        for fold in range(given.folds):
            yield from (Cell(name, seed, fold, backend) for name in data for backend in known)


def _read(folder: Path) -> list[dict[str, Any]]:
    """Return the runs that were kept, each once; a line that a kill cut off is left out."""
    found = {}
    for path in sorted(folder.glob("runs-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                run = json.loads(line)
                found[Cell(*(run[name] for name in Cell._fields))] = run
    return list(found.values())


def _done(folder: Path) -> set[Cell]:
    return {Cell(*(run[name] for name in Cell._fields)) for run in _read(folder)}


def _hours(data: RankingSet, backend: str, given: Plan) -> float:
    """Return the hours of one run: what begins a model and what grows it, timed on a few rows."""
    key = data.name, backend
    if key not in _measured:
        rows, rounds = _PROBE
        few = _first_queries(data, rows)
        cell = Cell(data.name, 0, 0, backend)
        run_cell(few, cell, 2, 1, given.threads)  # compiles
        short, long = (
            run_cell(few, cell, 2, count, given.threads)["cpu"] for count in (1, 1 + rounds)
        )
        seconds = short + (long - short) / rounds * given.rounds
        _measured[key] = seconds * len(data.y) / len(few.y) / 3600.0
    return _measured[key]


_measured: dict[tuple[str, str], float] = {}


def _first_queries(data: RankingSet, rows: int) -> RankingSet:
    """Return some queries with about so many rows, without parts."""
    _, first, query = np.unique(data.qid, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[query]
    ends = np.cumsum(np.bincount(place))
    return data.only(place < max(8, int(np.searchsorted(ends, rows))))
