"""What was tried for quality and did not become a default, with figures.

``python -m benchmarks.tried --data FOLDER`` runs, on the two sets on which choices are made
(OHSUMED, MovieLens) and on no other:

- *committees* (LightGBM, XGBoost): other members, weights and sizes, against seeds of the
  booster's own objective at equal cost; members are trained once, committees are made of scores;
- *objectives* (LightGBM): ``swap``, ``yetirank`` and their mix with other parameters;
- *leaves*, *tuned* (LightGBM): see ``tried_leaves.py``.

What is done is kept in ``--work``, one file per training, and an interrupted run continues there;
remove the folder after a change of the code. ``--page docs/results/tried.md`` writes the page from
the seeds that are complete, without a training.
"""

import argparse
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from studies.quality.models import Cell, Scores
from studies.quality.page import DEVELOPMENT
from studies.sets import SETS, RankingSet
from studies.tried.leaves import leaves, tuned
from studies.tried.page import Kept, write_page
from studies.tried.pool import FOLDS, GOALS, Member, mixes, pool, swaps, train, yetiranks

SEEDS = 3
ROWS = 15_000  # of a set, by drawing queries, as in the benchmark of quality


class Job(NamedTuple):
    """One file to make."""

    subject: str
    cell: Cell
    name: str
    run: Callable[[], dict[str, Scores]]

    @property
    def path(self) -> str:
        """Where it is kept, below the folder of all work."""
        name = re.sub(r"[^\w.@=-]+", "_", self.name).strip("_")
        return f"{self.subject}/{'-'.join(map(str, self.cell))}/{name}.npz"


def main() -> None:
    """Train what is missing, or write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tried", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("GBMRANK_DATA"))
    parser.add_argument("--work", type=Path, default=Path("build/tried"))
    parser.add_argument("--page", type=Path, help="write the page there and train nothing")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    given = parser.parse_args()
    sets = [SETS[name](Path(given.data)) for name in DEVELOPMENT]
    jobs = list(_jobs(sets, given.seeds))
    if given.page is not None:
        kept = [Kept(job.subject, job.cell, job.name, given.work / job.path) for job in jobs]
        write_page(kept, [one.capped(ROWS) for one in sets], given.page)
        return
    _run([job for job in jobs if not (given.work / job.path).exists()], given.work)


def _run(jobs: list[Job], folder: Path) -> None:
    """Make what is missing, one after the other."""
    began = time.monotonic()
    for number, job in enumerate(jobs, 1):
        path, cpu = folder / job.path, time.process_time()
        found = job.run()
        cpu = time.process_time() - cpu
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("wb") as out:
            np.savez_compressed(out, cpu=np.array(cpu), **found)  # type: ignore[arg-type]
        part.replace(path)
        left = (time.monotonic() - began) / number * (len(jobs) - number) / 60.0
        print(
            f"[{number}/{len(jobs)}] {job.path}: {cpu:.1f} s, {left:.0f} minutes left", flush=True
        )


def _jobs(sets: Sequence[RankingSet], seeds: int) -> Iterator[Job]:
    """Yield what to train: the committees first, and first seeds before others."""
    capped = [one.capped(ROWS) for one in sets]
    for seed in range(seeds):
        for data, cell in _cells(capped, seed, ("lightgbm", "xgboost")):
            yield from _models("committees", data, cell, _pool(data, cell))
    for seed in range(seeds):
        for data, cell in _cells(capped, seed, ("lightgbm",)):
            done = _pool(data, cell)
            more = {one: goals for one, goals in _variants().items() if one not in done}
            yield from _models("objectives", data, cell, more)
    for subject, run in (("leaves", leaves), ("tuned", tuned)):
        for data, cell in _cells(sets, 0, ("lightgbm",)):
            yield Job(subject, cell, subject, partial(run, data, cell.seed, cell.fold))


def _cells(
    sets: Sequence[RankingSet], seed: int, backends: Sequence[str]
) -> Iterator[tuple[RankingSet, Cell]]:
    for fold, data, backend in product(range(FOLDS), sets, backends):
        yield data, Cell(data.name, seed, fold, backend)


Wanted = dict[Member, tuple[str, ...]]  # models, and the metrics to keep scores for


def _pool(data: RankingSet, cell: Cell) -> Wanted:
    return dict.fromkeys(pool(data, cell.backend), GOALS)


def _variants() -> Wanted:
    wanted: Wanted = {Member(text, 0): (goal,) for goal in GOALS for text in swaps(goal).values()}
    more = [*yetiranks().values(), *mixes().values()]
    return {**wanted, **dict.fromkeys((Member(text, 0) for text in more), GOALS)}


def _models(subject: str, data: RankingSet, cell: Cell, wanted: Wanted) -> Iterator[Job]:
    for one, goals in wanted.items():
        name = f"{one.objective}-{one.seed}"
        yield Job(subject, cell, name, partial(train, data, cell, one, goals))


if __name__ == "__main__":
    main()
