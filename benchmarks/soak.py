"""Endurance: memory over many rounds and many fits, and trainings side by side.

python -m benchmarks.soak [--quick]

Every line of the table is a measured number beside the most it may be; the exit code is 1
when one is above. ``make soak`` takes minutes.
"""

import argparse
import ctypes
import gc
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import gbmrank
from benchmarks.data import mslr_like
from benchmarks.machine import print_machine
from benchmarks.settings import Settings
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters import bindings
from gbmrank.demo_data import demo_data

BACKENDS = ("lightgbm", "xgboost")
OBJECTIVE = "pairwise(loss=logistic, target=ndcg@10)"
DATA = demo_data(30, items=10)


class Line(NamedTuple):
    """One number and the most it may be."""

    what: str
    found: float
    most: float
    unit: str = ""

    @property
    def good(self) -> bool:
        """Whether the number is within its bound."""
        return self.found <= self.most


def resident() -> float:
    """Return the memory of this process in MB, after giving back what is free."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def long_training(backend: str, rows: int, rounds: int, slack: float) -> list[Line]:
    """Record memory after every tenth round; it may not grow from the first half to the end.

    Parameters
    ----------
    backend : {"lightgbm", "xgboost"}
        The booster.
    rows : int
        About how many rows to train on.
    rounds : int
        Trees.
    slack : float
        MB that memory may grow from a quarter of the rounds on.
    """
    sample = mslr_like(max(rows // 120, 2), n_features=20)
    groups = gbmrank.Groups.from_sizes(sample.sizes, len(sample.labels))
    model = gbmrank.GBMRanker(OBJECTIVE, backend, "ndcg@10", rounds)
    seen: list[float] = []
    _train_watched(model, (sample.features, sample.labels, groups), seen)
    early = seen[len(seen) // 4]
    return [
        Line(
            f"{backend}: {len(sample.labels):,} rows, {rounds} rounds, peak", max(seen), 1e6, "MB"
        ),
        Line(f"{backend}: growth of the last three quarters", max(seen[-3:]) - early, slack, "MB"),
        Line(f"{backend}: data sets kept after training", kept(), 0),
    ]


def _train_watched(model: gbmrank.GBMRanker, rows: Any, seen: list[float]) -> None:
    from gbmrank.boosters.base import Part
    from gbmrank.boosters.plan import train

    features, labels, groups = rows
    plan = training_plan(
        objective=model.objective,
        metric=model.metric,
        backend=model.backend,
        rounds=model.n_estimators,
    )
    part = Part(features, gbmrank.RankingData.from_arrays(labels, group=groups.sizes))

    def after(done: int) -> None:
        if done % max(model.n_estimators // 20, 1) == 0:
            seen.append(resident())

    train(plan, part, {"train": part}, after)


def kept() -> int:
    """Return how many data sets still have state of ours."""
    gc.collect()
    return len(bindings.states)


def one_fit(backend: str, seed: int = 0) -> npt.NDArray[np.float64]:
    """Fit with one thread of the booster; return the scores."""
    model = gbmrank.GBMRanker(OBJECTIVE, backend, n_estimators=3, n_jobs=1, seed=seed)
    return model.fit(DATA.X, DATA.labels, qid=DATA.qid).predict(DATA.X)


def fits(count: int, slack: float) -> list[Line]:
    """Fit many times in one process, the boosters by turns.

    Parameters
    ----------
    count : int
        Number of fits.
    slack : float
        MB that memory may grow after the first fifth of them.
    """
    for number in range(count // 5):
        one_fit(BACKENDS[number % 2], number)
    before = resident()
    for number in range(count // 5, count):
        one_fit(BACKENDS[number % 2], number)
    return [
        Line(
            f"{count:,} fits: growth after the first {count // 5:,}",
            resident() - before,
            slack,
            "MB",
        ),
        Line(f"{count:,} fits: data sets kept", kept(), 0),
    ]


def _different(found: Iterator[npt.NDArray[np.float64]], backend: str) -> int:
    expected = one_fit(backend)
    return sum(not np.array_equal(each, expected) for each in found)


def side_by_side(threads: int, count: int) -> list[Line]:
    """Fit in threads, with threads of our own as well; every model is that of one thread."""
    gbmrank.set_num_threads(2)
    lines = []
    for backend in BACKENDS:
        with ThreadPoolExecutor(threads) as pool:
            wrong = _different(pool.map(one_fit, [backend] * count), backend)
        lines.append(
            Line(f"{backend}: {count} fits in {threads} threads, models that differ", wrong, 0)
        )
    gbmrank.set_num_threads(None)
    return [*lines, Line("threads: data sets kept", kept(), 0)]


def processes(method: str, workers: int, count: int) -> list[Line]:
    """Fit in forked or spawned processes, after fits in this one.

    XGBoost reads labels with all threads of OpenMP, which do not survive a fork: forked
    processes can use it only where ``OMP_NUM_THREADS=1``.
    """
    for backend in BACKENDS:
        one_fit(backend)  # so that a forked child inherits pools and locks that were used
    forkable = method != "fork" or os.environ.get("OMP_NUM_THREADS") == "1"
    lines = []
    with multiprocessing.get_context(method).Pool(workers) as pool:
        for backend in BACKENDS if forkable else BACKENDS[:1]:
            found = pool.map_async(one_fit, [backend] * count).get(timeout=600)
            what = f"{backend}: {count} fits, {method}, models that differ"
            lines.append(Line(what, _different(iter(found), backend), 0))
    return lines


def forks_with_one_thread(count: int) -> list[Line]:
    """Fit in forked processes of a new one where OpenMP has one thread."""
    found = f"sum(line.found for line in soak.processes('fork', 2, {count}))"
    code = f"from benchmarks import soak; print({found})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=600,
    )
    what = f"both: {count} fits, fork, one thread, models that differ"
    return [Line(what, float(done.stdout), 0)]


def joblib_fits(workers: int, count: int) -> list[Line]:
    """Fit in joblib's processes and threads."""
    import joblib

    lines = []
    for kind in ("loky", "threading"):
        for backend in BACKENDS:
            jobs = [joblib.delayed(one_fit)(backend) for _ in range(count)]
            found = joblib.Parallel(n_jobs=workers, backend=kind)(jobs)
            wrong = _different(iter(found), backend)
            lines.append(
                Line(f"{backend}: {count} fits, joblib {kind}, models that differ", wrong, 0)
            )
    return lines


def thread_budget(budget: int, rows: int, given: int | None = None) -> list[Line]:
    """Train with a budget of threads, and count the threads that worked.

    Our helpers and the booster's are different threads that take turns, each beside the
    calling one; how long they had to wait for a processor does not matter to the count.

    Parameters
    ----------
    budget : int
        Threads of the booster, and ours.
    rows : int
        About how many rows to train on.
    given : int or None, default=None
        Threads that the model is given, to see that more than the budget are counted.
    """
    sample = mslr_like(max(rows // 120, 2), n_features=20)
    qid = np.repeat(np.arange(len(sample.sizes)), sample.sizes)
    time.sleep(0.5)  # numpy's own threads spin for a while after the data is made
    lines = []
    n_jobs = budget if given is None else given
    gbmrank.set_num_threads(n_jobs)
    for backend in BACKENDS:
        model = gbmrank.GBMRanker(OBJECTIVE, backend, n_estimators=10, n_jobs=n_jobs)
        one_fit(backend)  # whatever is started once
        before = _spent()
        model.fit(sample.features, sample.labels, qid=qid)
        used = {thread: spent - before.get(thread, 0) for thread, spent in _spent().items()}
        # XGBoost reads labels with all threads of OpenMP, which takes a few milliseconds.
        worked = sum(spent > 1e7 for spent in used.values())
        what = f"{backend}: threads that worked, budget {budget}"
        lines.append(Line(what, worked, 2 * budget - 1))
    gbmrank.set_num_threads(None)
    return lines


def _spent() -> dict[str, int]:
    """Return the processor time of every thread of this process, in nanoseconds."""
    tasks = Path("/proc/self/task").iterdir()
    return {task.name: int((task / "schedstat").read_text().split()[0]) for task in tasks}


def _parts(quick: bool) -> Iterator[Callable[[], list[Line]]]:
    rows, rounds, count = (20_000, 40, 100) if quick else (1_000_000, 200, 1000)
    yield lambda: fits(count, 16.0)
    yield lambda: side_by_side(4, count // 10)
    for method in ("fork", "spawn"):
        yield lambda method=method: processes(method, 2, count // 20)  # type: ignore[misc]
    yield lambda: forks_with_one_thread(count // 20)
    yield lambda: joblib_fits(2, count // 20)
    for budget in (1, 2):
        yield lambda budget=budget: thread_budget(budget, rows // 5)  # type: ignore[misc]
    for backend in BACKENDS:
        yield lambda backend=backend: long_training(backend, rows, rounds, 48.0)  # type: ignore[misc]


def main() -> int:
    """Run everything and print the table; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers: a smoke run")
    given = parser.parse_args()
    print_machine(Settings(quick=given.quick))
    print(f"\n{'':<62} {'found':>10} {'at most':>10}")
    bad = 0
    for part in _parts(given.quick):
        for line in part():
            mark = "" if line.good else "  <- above"
            print(
                f"{line.what:<62} {line.found:>10,.2f} {line.most:>10,.2f} {line.unit}{mark}",
                flush=True,
            )
            bad += not line.good
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
