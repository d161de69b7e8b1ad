"""Which objective ranks best on real data: gbmrank, the boosters' own, and CatBoost.

``python -m benchmarks.quality --data FOLDER`` trains every system on every set it finds (see
``quality_sets.py``), in folds of queries with several seeds, and keeps one JSON line per set,
seed, fold and booster in ``--work``: a second call goes on where the first stopped. What it will
take is printed first; ``--estimate`` ends there. ``--page docs/results`` writes ``quality.md``,
``quality.json`` and ``quality.svg`` from the lines that are there, without a training;
``--rewrite docs/results`` writes page and picture again from the ``quality.json`` that is there.

``--letor FOLDER --max-grade 4`` runs the same table on a public set with files of its own for
training, validation and test: a fold of MSLR-WEB10K or 30K, a set of Yahoo, Istella.

Settings, members and defaults were chosen on the sets of ``DEVELOPMENT``; nothing on the others.
"""

import argparse
import contextlib
import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gbmrank.errors import ConfigError
from studies.quality.models import PARAMS, Cell, run_cell
from studies.quality.page import rewrite_page, write_page
from studies.sets import SETS, RankingSet, read_parts

BACKENDS = tuple(PARAMS)
_PROBE = 2000, 5  # rows and rounds that time is measured on


def main() -> None:
    """Run what is missing, or write the page."""
    given = _arguments()
    if given.page is not None:
        write_page(_read(given.work), given.page)
        return
    if given.rewrite is not None:
        rewrite_page(given.rewrite)
        return
    data = _sets(given)
    done = _done(given.work)
    waiting = [cell for cell in _cells(data, given) if cell not in done]
    if not waiting:
        print("all runs are done")
        return
    hours = sum(_hours(data[cell.set], cell.backend, given) for cell in waiting)
    print(f"{len(waiting)} runs wait; about {hours:.1f} hours of CPU time", flush=True)
    if given.estimate:
        return
    given.work.mkdir(parents=True, exist_ok=True)
    lines = given.work / f"runs-{os.getpid()}.jsonl"  # several calls may share the work by --sets
    for number, cell in enumerate(waiting, 1):
        found = run_cell(data[cell.set], cell, given.folds, given.rounds, given.threads)
        about = data[cell.set].about
        with lines.open("a", encoding="utf-8") as out:
            out.write(json.dumps({**found, "about": about, "model_rounds": given.rounds}) + "\n")
        print(f"[{number}/{len(waiting)}] {' '.join(map(str, cell))}: {found['cpu']} s", flush=True)


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("GBMRANK_DATA"))
    parser.add_argument("--letor", type=Path, help="folder of one set with parts of its own")
    parser.add_argument("--max-grade", type=int, default=4, help="highest label of --letor")
    parser.add_argument("--work", type=Path, default=Path("build/quality"))
    parser.add_argument("--page", type=Path, help="write the page there and train nothing")
    parser.add_argument("--rewrite", type=Path, help="write page and picture from quality.json")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--backends", nargs="*", default=list(BACKENDS), choices=BACKENDS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--rows", type=int, default=15_000, help="of a set, by drawing queries")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--estimate", action="store_true", help="print the hours and end")
    return parser.parse_args()


def _sets(given: Any) -> dict[str, RankingSet]:
    if given.letor is not None:
        one = read_parts(given.letor, given.max_grade)
        given.folds = 1
        return {one.name: one}
    if given.data is None:
        raise ConfigError("give --data FOLDER, --letor FOLDER, or set GBMRANK_DATA")
    found = {}
    for name in given.sets:
        try:
            found[name] = SETS[name](Path(given.data)).capped(given.rows)
        except ConfigError as error:
            print(f"{name} is left out: {error}")
    return found


def _cells(data: dict[str, RankingSet], given: Any) -> Iterator[Cell]:
    """Yield what to run: first seeds of all sets first, so that a part of the runs tells most."""
    known = [one for one in given.backends if importlib.util.find_spec(one) is not None]
    for name in set(given.backends) - set(known):
        print(f"{name} is left out: it is not installed")
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


def _hours(data: RankingSet, backend: str, given: Any) -> float:
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


if __name__ == "__main__":
    main()
