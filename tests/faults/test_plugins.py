"""Plugins that break their contract: the message names them, and nothing else breaks."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gbmrank
from gbmrank.cli import main
from gbmrank.errors import PluginContractError, PluginError
from gbmrank.registry import LOSSES
from gbmrank.testing import run_checks
from tests.faults.interfaces import BACKENDS, TASK, data_set, train
from tests.plugins.fakes import forget_plugins, shelf  # noqa: F401  (a fixture)
from tests.plugins.test_faults import DIST, GOOD, objective_source

BOTH = pytest.mark.parametrize("backend", BACKENDS)
ODD = rf"'odd' of {DIST} 1\.5"


@pytest.fixture
def odd(shelf):  # noqa: F811
    """Install an objective with some lines changed."""
    return lambda **changes: shelf.add(DIST, objective_source(**changes), objectives={"odd": "Odd"})


@pytest.mark.fault(
    "a plugin that gives gradients of another length, or none for some rows",
    promise="`PluginError` that names the plugin; what it did not write is found",
)
@BOTH
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"after": "out.grad[:] = np.zeros(len(scores) + 1)"}, "could not broadcast"),
        ({"fill": "out.grad[1:], out.hess[:] = 0.0, 1.0; return"}, "did not write"),
        ({"after": "out.hess[0] = np.nan"}, "Hessian nan"),
    ],
)
def test_gradients_of_another_shape(odd, backend, changes, words):
    odd(**changes)
    with pytest.raises(PluginError, match=rf"{ODD}.*{words}"):
        train(backend, "odd", data_set(backend))


@pytest.mark.fault(
    "a plugin that returns losses or values of another length or type",
    promise="`PluginContractError` that names the plugin and the shape it must have",
)
def test_values_of_another_shape(odd):
    odd(losses="'text'")
    with pytest.raises(
        PluginContractError, match=rf"{ODD}: losses must return one number per query"
    ):
        gbmrank.objective("odd").loss([1.0, 0.0], [0.0, 0.1])


@pytest.mark.fault(
    "a plugin that writes to its inputs",
    promise="writes to a copy; `gbmrank.testing` finds it",
)
@BOTH
def test_inputs_that_are_written_to(odd, backend):
    odd(after="scores[:] = 1e6")
    rows = data_set(backend)
    if backend == "lightgbm":
        rows.construct()
    scores = np.zeros(TASK.n)
    gbmrank.objective("odd")(scores, rows)
    assert not scores.any()
    labels = gbmrank.RankingData.from_arrays([1.0, 0.0]).labels
    assert not labels.flags.writeable
    assert "inputs" in run_checks("odd").failed


@pytest.mark.fault(
    "a plugin that raises in the middle of training",
    promise="`PluginError` that names it, with its own exception as the cause",
)
@BOTH
def test_an_exception_in_training(odd, backend):
    odd(fill="if self.calls > 2: raise OSError('disk on fire')")
    with pytest.raises(PluginError, match=rf"{ODD} failed.*disk on fire") as caught:
        train(backend, "odd", data_set(backend), rounds=5)
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.fault(
    "a plugin that raises in a comparison", promise="its runs fail with its name; the others go on"
)
def test_an_exception_in_a_comparison(odd):
    odd(fill="if self.calls > 1: raise OSError('disk on fire')")
    found = gbmrank.compare(
        (TASK.x, TASK.y, TASK.qid),
        objectives=["odd", "ranknet"],
        metrics="ndcg@3",
        backends=["xgboost"],
        folds=2,
        rounds=3,
        isolate=False,
    )
    assert {run.system.objective for run in found.results.failed} == {"odd"}
    assert all(DIST in str(run.error) for run in found.results.failed)
    assert np.isfinite(found.results.values("ndcg@3")[1]).any()


@pytest.mark.fault(
    "a plugin that cannot be imported, made or used, or that calls `sys.exit`",
    promise="isolated; `gbmrank list` and `gbmrank plugins doctor` tell the cause, and asking for "
    "it raises `PluginError` with it",
)
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise RuntimeError('boom')", "boom"),
        ("import sys; sys.exit(3)", r"SystemExit\(3\)"),
        ("def odd(z:", "SyntaxError"),
        ("odd = 7", "a loss must be a subclass of"),
        ("def odd(z):\n    return z, float('nan'), 0.0", "not finite at the margin"),
    ],
)
def test_plugins_that_do_not_load(shelf, capsys, source, words):  # noqa: F811
    shelf.add(DIST, source, losses={"odd": "odd"})
    with pytest.raises(PluginError, match=words) as caught:
        gbmrank.objective("comparison", loss="odd")
    assert f"{DIST} 1.5" in str(caught.value)
    assert LOSSES.entries["odd"][0].status.cause is not None
    assert gbmrank.objective("ranknet").gradients([1, 0], [0.0, 0.0])[0].tolist() == [-0.5, 0.5]
    assert main(["list", "losses"]) == 0
    assert main(["plugins", "doctor"]) == 2
    assert capsys.readouterr().out.count(DIST) > 1


def spoil(shelf, file, text):  # noqa: F811
    (shelf.folder / f"{DIST.replace('-', '_')}-1.5.dist-info" / file).write_text(
        text, encoding="latin-1"
    )
    forget_plugins()


@pytest.mark.fault(
    "a distribution whose `entry_points.txt` cannot be read",
    promise="everything else works; `gbmrank plugins doctor` names the distribution",
)
@pytest.mark.parametrize("line", ["a line without a sign", "na\xefve = fine"])
def test_entry_points_that_cannot_be_read(shelf, capsys, line):  # noqa: F811
    shelf.add("good-plugin", GOOD, losses={"fine": "fine"})
    shelf.add(DIST, GOOD, losses={"odd": "fine"})
    spoil(shelf, "entry_points.txt", f"[gbmrank.losses]\n{line}\n")
    assert gbmrank.objective("ranknet").loss([1, 0], [0.0, 0.0]) > 0
    assert gbmrank.objective("comparison", loss="fine").loss([1, 0], [0.0, 0.0]) == 1.0
    for command in (["list"], ["info", "ranknet"], ["advise", "ndcg"], ["plugins"]):
        assert main(command) == 0
    capsys.readouterr()
    assert main(["plugins", "doctor"]) == 2
    assert f"entry_points.txt of {DIST} 1.5 cannot be read" in capsys.readouterr().out
    assert main(["plugins", "doctor", "--json"]) == 2
    rows = json.loads(capsys.readouterr().out)["plugins"]
    assert [row["status"] for row in rows if row["distribution"] == DIST] == ["broken"]


def test_entry_points_that_the_compiler_cannot_read(shelf):  # noqa: F811
    shelf.add(DIST, GOOD, losses={"odd": "fine"})
    spoil(shelf, "entry_points.txt", "[of.somebody.else]\na line without a sign\n")
    path = os.pathsep.join(filter(None, [str(shelf.folder), os.getcwd(), os.getenv("PYTHONPATH")]))
    code = "import gbmrank; print(gbmrank.objective('ranknet').loss([1, 0], [0.0, 0.0]) > 0)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout == "True\n", done.stderr


def test_entry_points_of_a_plugin_that_is_not_allowed_are_no_fault(
    shelf,  # noqa: F811
    capsys,
    monkeypatch,
):
    shelf.add("good-plugin", GOOD, losses={"fine": "fine"})
    shelf.add(DIST, GOOD, losses={"odd": "fine"})
    monkeypatch.setenv("GBMRANK_PLUGINS", "good-plugin")
    spoil(shelf, "entry_points.txt", "[gbmrank.losses]\na line without a sign\n")
    assert main(["plugins", "doctor"]) == 0
    assert DIST not in capsys.readouterr().out


@pytest.mark.fault(
    "a plugin that raises anything at import, or prints",
    promise="it is named with what it raised; what it prints goes to the error stream",
)
def test_a_plugin_that_raises_or_prints_at_import(shelf, capsys):  # noqa: F811
    shelf.add("good-plugin", f"print('hello')\n{GOOD}", losses={"fine": "fine"})
    shelf.add(DIST, "raise BaseException('no way')", losses={"odd": "odd"})
    with pytest.raises(PluginError, match=rf"{DIST} 1.5 cannot be loaded: BaseException\('no way"):
        gbmrank.objective("comparison", loss="odd")
    assert main(["plugins", "doctor", "--json"]) == 2
    captured = capsys.readouterr()
    rows = {row["name"]: row for row in json.loads(captured.out)["plugins"]}
    assert rows["odd"]["cause"] == "BaseException: no way"
    assert rows["fine"]["status"] == "ok"
    assert "hello" in captured.err


def test_plugins_that_load_in_two_threads_leave_the_output_stream(shelf):  # noqa: F811
    for number, seconds in enumerate((0.2, 0.4)):
        source = f"import time\ntime.sleep({seconds})\n{GOOD}"
        shelf.add(f"slow-{number}", source, losses={f"slow{number}": "fine"})
    assert {"slow0", "slow1"} <= LOSSES.entries.keys()
    before = sys.stdout
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(LOSSES.get, ("slow0", "slow1")))
    assert sys.stdout is before


@pytest.mark.fault(
    "a plugin without a name in its metadata", promise="its folder stands for the name"
)
def test_a_plugin_without_a_name(shelf, capsys):  # noqa: F811
    shelf.add(DIST, "raise RuntimeError('broken')", losses={"odd": "odd"})
    spoil(shelf, "METADATA", "Metadata-Version: 2.1\n")
    assert main(["plugins", "doctor"]) == 2
    told = capsys.readouterr().out
    assert "odd_plugin-1.5.dist-info without version" in told
    assert "RuntimeError: broken" in told
