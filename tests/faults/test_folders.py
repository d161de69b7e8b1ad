"""Folders of comparisons: one at a time, of one plan, and nothing lost by a mistake."""

import json
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

import gbmrank
from gbmrank.demo_data import demo_data
from gbmrank.errors import ConfigError, ParameterError
from gbmrank.experiments.documents import load_results
from gbmrank.experiments.lock import LOCK

DATA = demo_data(30, items=6)
QUICK = {"folds": 2, "rounds": 3, "isolate": False, "metrics": "ndcg@3", "backends": ["lightgbm"]}


def compare(**options):
    return gbmrank.compare(DATA, **{**QUICK, "objectives": ["ranknet"], **options})


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.mark.fault(
    "a setting that makes no sense, with `force`",
    promise="refused before the comparison that is there is touched",
)
def test_a_mistake_with_force_costs_nothing(out):
    compare(out=out).to_json(out / "results.json")
    for options in ({"seeds": np.array([0.5])}, {"params": {"num_leaves": 1j}}, {"margin": -1}):
        with pytest.raises(ParameterError):
            compare(out=out, force=True, **options)
        assert len(load_results(out / "results.json").runs) == 2
    compare(out=out, force=True, seeds=np.array([0, 1]), folds=np.int64(2))
    compare(out=out, resume=True, seeds=2)


RUNNING = """
import sys, time
from gbmrank.demo_data import demo_data
from gbmrank.experiments.comparison import compare_source
from gbmrank.experiments.preparation import Settings
from gbmrank.experiments.sources import read_source

class Waiting:
    begin = started = rounds = note = end = lambda self, *given: None
    def finished(self, task, run):
        print("one is done", flush=True)
        time.sleep(600)

settings = Settings(objectives=["ranknet"], metrics="ndcg@3", backends=["lightgbm"], folds=2,
    rounds=3, isolate=False, out=sys.argv[1], progress=Waiting())
compare_source(read_source(demo_data(30, items=6), None), settings)
"""


@pytest.fixture
def running(out):
    """A comparison in a process of its own that is half done."""
    command = [sys.executable, "-c", RUNNING, str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "one is done\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def kept(out):
    return {path: path.stat().st_mtime_ns for path in out.rglob("*")}


@pytest.mark.fault(
    "a folder in which another comparison is running",
    promise="`ConfigError` that names the process; nothing of it is touched",
)
def test_two_comparisons_in_one_folder(out, running):
    before = kept(out)
    for how in ({"force": True}, {"resume": True}):
        with pytest.raises(ConfigError, match=f"process {running.pid} on .* runs a comparison"):
            compare(out=out, **how)
        assert kept(out) == before


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_folder_is_free_when_its_process_has_ended(out, running, how, capsys):
    running.send_signal(how)
    running.wait()
    assert (out / LOCK).exists() == (how == signal.SIGKILL)
    found = compare(out=out, resume=True, progress=True)
    assert len(found.results.runs) == 2
    told = f"process {running.pid} ended before its comparison"
    assert (told in capsys.readouterr().err) == (how == signal.SIGKILL)
    assert not (out / LOCK).exists()


def test_what_another_machine_has_left_is_not_taken_over(out):
    compare(out=out)
    lock = out / LOCK
    lock.write_text(json.dumps({"pid": 1, "host": f"not-{socket.gethostname()}"}))
    with pytest.raises(ConfigError, match=r"process 1 on not-.* should it have ended, remove"):
        compare(out=out, force=True)
    lock.unlink()
    compare(out=out, resume=True)


def test_a_lock_without_a_comparison_is_no_obstacle(out):
    out.mkdir()
    (out / LOCK).write_text("")
    assert len(compare(out=out).results.runs) == 2
