"""Folders of comparisons: one at a time, of one plan, and nothing lost by a mistake."""

import json
import os
import signal
import socket
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank.demo_data import demo_data
from gbmrank.errors import ConfigError, ParameterError
from gbmrank.experiments.store import load_results
from tests.plugins.fakes import shelf  # noqa: F401  (a fixture)

DATA = demo_data(30, items=6)
LOCK = "running.json"
QUICK = {"folds": 2, "rounds": 3, "isolate": False, "metrics": "ndcg@3", "backends": ["lightgbm"]}


def compare(**options):
    return gbmrank.compare(DATA, **{**QUICK, "objectives": ["ranknet"], **options})


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.mark.fault(
    "a setting that makes no sense, with `force`",
    promise="rejected before the comparison that is there is touched",
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
    found = (path for path in out.rglob("*") if path.name != ".lock")  # old locks touch it
    return {path: path.stat().st_mtime_ns for path in found}


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
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)]
)
def test_a_folder_is_free_when_its_process_has_ended(out, running, how, capsys):
    running.send_signal(how)
    running.wait()
    assert (out / LOCK).exists() == (how == signal.SIGKILL)
    found = compare(out=out, resume=True, progress=True)
    assert len(found.results.runs) == 2
    told = f"process {running.pid} on {socket.gethostname()} ended before its comparison"
    assert (told in capsys.readouterr().err) == (how == signal.SIGKILL)
    assert not (out / LOCK).exists()


@pytest.mark.fault(
    "the folder of a killed comparison in a new container or on another machine",
    promise="`--resume` continues it",
)
def test_what_another_machine_has_left_is_resumed(out, capsys):
    compare(out=out)
    lose_a_run(out)
    (out / LOCK).write_text(f"process 1 on not-{socket.gethostname()}")
    assert len(compare(out=out, resume=True, progress=True).results.runs) == 2
    assert "process 1 on not-" in capsys.readouterr().err
    assert not (out / LOCK).exists()


def test_a_lock_without_a_comparison_is_no_obstacle(out):
    out.mkdir()
    (out / LOCK).write_text("")
    assert len(compare(out=out).results.runs) == 2


LOSS = "def bent(z, c={c}):\n    return c * (1.0 - z) ** 2, -2.0 * c * (1.0 - z), 2.0 * c\n"


def lose_a_run(out):
    next((out / "runs").glob("*.json")).unlink()


@pytest.mark.fault(
    "`resume` after a plugin was changed",
    promise="`ConfigError`: which version and code the finished runs are from",
)
def test_resume_with_another_version_of_a_plugin(out, shelf):  # noqa: F811
    asked = {"objectives": ["comparison(loss=bent)"], "out": out}
    shelf.add("bent-plugin", LOSS.format(c=1.0), losses={"bent": "bent"})
    compare(**asked)
    lose_a_run(out)
    compare(**asked, resume=True)
    info = shelf.folder / "bent_plugin-1.5.dist-info"
    info.rename(shelf.folder / "old")
    shelf.add("bent-plugin", LOSS.format(c=0.5), losses={"bent": "bent"})
    text = (info / "METADATA").read_text().replace("1.5", "2.0")
    (info / "METADATA").write_text(text)
    lose_a_run(out)
    with pytest.raises(ConfigError, match=r"code.bent was 'bent-plugin 1.5, .* is 'bent-plugin"):
        compare(**asked, resume=True)


def registered(source):
    space: dict[str, Any] = {"__name__": __name__}
    exec(source, space)  # noqa: S102  (as a notebook does)
    return gbmrank.register_loss(space["resumed_loss"])


OWN = """
def inner(z):
    return {c} * z * z, 2 * {c} * z, 2.0 * {c}

def resumed_loss(z):  {comment}
    return inner(1.0 - z)[0], -inner(1.0 - z)[1], inner(1.0 - z)[2]
"""


@pytest.mark.fault(
    "`resume` after a loss of one's own was changed", promise="`ConfigError`, as with a plugin"
)
def test_resume_with_another_loss_under_the_same_name(out):
    asked = {"objectives": ["comparison(loss=resumed_loss)"], "out": out}
    registered(OWN.format(c=1.0, comment=""))
    compare(**asked)
    registered(OWN.format(c=1.0, comment="# the same in other words"))
    lose_a_run(out)
    assert not compare(**asked, resume=True).results.failed
    registered(OWN.format(c=3.0, comment=""))
    lose_a_run(out)
    with pytest.raises(ConfigError, match=r"code.resumed_loss was 'this process, code .* and is"):
        compare(**asked, resume=True)


def test_plans_of_earlier_versions_are_resumed(out):
    compare(out=out)
    plan = json.loads((out / "plan.json").read_text())
    del plan["code"]
    (out / "plan.json").write_text(json.dumps(plan))
    lose_a_run(out)
    assert not compare(out=out, resume=True).results.failed
