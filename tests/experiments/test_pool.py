"""Worker processes: the same numbers, and a crash costs one run."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from gbmrank.demo_data import demo_data
from gbmrank.experiments.design import Design
from gbmrank.experiments.pool import run_here, run_in_processes
from gbmrank.experiments.progress import Progress
from gbmrank.experiments.results import System
from gbmrank.experiments.sources import read_source
from gbmrank.experiments.store import Store

SOURCE = read_source(demo_data(40, items=8))


def design(**settings):
    return Design(
        systems=(System("lightgbm", "pairwise"), System("xgboost", "native:rank:ndcg")),
        metrics=("ndcg@3",),
        regret_k=3,
        **{"folds": 2, "rounds": 5, **settings},
    )


def children():
    """Return the processes that this one has started, by the kernel's own list."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    return [int(line.split()[0]) for line in listed if "experiments.pool" in line]


def begin(folder, plan):
    return Store.begin(folder, {"design": plan.to_json()})


def same(one, other):
    assert one is not None
    assert other is not None
    assert (one.error, one.best_round, one.history) == (
        other.error,
        other.best_round,
        other.history,
    )
    for name, values in one.values.items():
        np.testing.assert_array_equal(values, other.values[name])


def test_processes_give_what_this_process_gives(tmp_path):
    plan = design()
    here, there = begin(tmp_path / "here", plan), begin(tmp_path / "there", plan)
    run_here(SOURCE, plan, plan.tasks, here, Progress())
    run_in_processes(SOURCE, plan, plan.tasks, there, Progress(), 2)
    for task in plan.tasks:
        same(here.load(task), there.load(task))
    assert not there.work.exists()


class Killer(Progress):
    """Kills the worker as soon as it says that the chosen run has begun to learn."""

    def __init__(self, number):
        self.number, self.seen, self.killed, self.ended = number, 0, False, []

    def started(self, task):
        self.seen += 1

    def rounds(self, task, done):
        if self.seen == self.number and not self.killed:
            self.killed = True
            for pid in children():
                os.kill(pid, signal.SIGKILL)

    def finished(self, task, run):
        self.ended.append(run)


@pytest.mark.skipif(sys.platform == "win32", reason="needs ps and SIGKILL")
def test_a_worker_that_dies_costs_one_run(tmp_path):
    plan = design(rounds=400, early_stopping=None, seeds=(0,))
    small = [plan.tasks[1], plan.tasks[0]]
    store = begin(tmp_path / "out", plan)
    killer = Killer(1)
    run_in_processes(SOURCE, plan, small, store, killer, 1)
    assert killer.killed
    errors = [run.error for run in killer.ended]
    assert len(errors) == 2
    assert errors[0] is not None
    assert errors[0].startswith("WorkerDied: the worker process ended by signal SIGKILL")
    assert errors[1] is None
    kept = store.load(small[0])
    assert kept is not None
    assert kept.error == errors[0]


class Interrupter(Killer):
    def rounds(self, task, done):
        raise KeyboardInterrupt


@pytest.mark.nightly  # tests/cli/test_compare.py interrupts a whole comparison
def test_an_interrupt_ends_the_workers(tmp_path):
    plan = design(rounds=100_000, early_stopping=None)
    store = begin(tmp_path / "out", plan)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_in_processes(SOURCE, plan, plan.tasks, store, Interrupter(1), 2)
    assert time.monotonic() - began < 30
    assert children() == []
    assert not store.work.exists()
