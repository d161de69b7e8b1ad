"""What was tried for quality and did not become a default, with figures.

``python -m studies tried --data FOLDER`` runs, on the two sets on which choices are made
(OHSUMED, MovieLens) and on no other:

- *committees* (LightGBM, XGBoost): other members, weights and sizes, against seeds of the
  booster's own objective at equal cost; members are trained once, committees are made of scores;
- *objectives* (LightGBM): ``swap``, ``yetirank`` and their mix with other parameters;
- *leaves*, *tuned* (LightGBM): see ``leaves.py``.

What is done is kept in ``--work``, one file per training, and an interrupted run continues there;
remove the folder after a change of the code. ``--finished`` makes the page of the seeds that are
complete, without a training.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gbmrank.errors import ConfigError, ParameterError
from studies.files import VARIABLE
from studies.quality.models import Cell, Scores
from studies.quality.page import DEVELOPMENT
from studies.sets import SETS, RankingSet
from studies.study import Option, Page, Settings
from studies.tried.leaves import leaves, tuned
from studies.tried.page import Kept, page
from studies.tried.pool import FOLDS, GOALS, Member, mixes, pool, swaps, train, yetiranks

TITLE = "Tried for quality, and not made a default"
PAPER = ""
NEEDS = "OHSUMED of LETOR 3.0 and MovieLens 100k"
FORMULAS = ("objectives/calibrated.py", "objectives/pairwise.py", "objectives/swap.py")
OPTIONS: Mapping[str, Option] = {
    "work": Option(Path("build/tried"), "where finished runs are kept", quoted=False),
    "finished": Option(False, "train nothing: the page of complete seeds", quoted=False),
    "seeds": Option(3, "seeds with splits of their own"),
}
ROWS = 15_000  # of a set, by drawing queries, as in the study of quality


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


def run(settings: Settings) -> Page:
    """Train what is missing, and make the page of the seeds that are complete.

    Parameters
    ----------
    settings : Settings
        ``data`` holds the two sets; there is no short run.
    """
    if settings.small:
        raise ParameterError("tried has no short run; --seeds 1 takes a third of the time")
    if settings.data is None:
        raise ConfigError(f"no data: give --data FOLDER or set {VARIABLE}. It needs {NEEDS}")
    given = {name: one.default for name, one in OPTIONS.items()} | dict(settings.options)
    work = given["work"]
    sets = [SETS[name](settings.data) for name in DEVELOPMENT]
    jobs = list(_jobs(sets, given["seeds"]))
    if not given["finished"]:
        _run([job for job in jobs if not (work / job.path).exists()], work, settings.report)
    kept = [Kept(job.subject, job.cell, job.name, work / job.path) for job in jobs]
    return page(kept, [one.capped(ROWS) for one in sets])


def _run(jobs: list[Job], folder: Path, report: Callable[[str], None]) -> None:
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
        report(f"[{number}/{len(jobs)}] {job.path}: {cpu:.1f} s, {left:.0f} minutes left")


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
