"""Runs on disk: whole or not there, and harmless whatever they are called."""

import json
import os
import string

import numpy as np
import pytest

from gbmrank.data.files import BLANK, NAME, with_checksum, write_whole
from gbmrank.errors import ConfigError, DataError
from gbmrank.experiments.design import Task
from gbmrank.experiments.results import Run, System
from gbmrank.experiments.store import Store, check_folder, locked, slug

PLAN = {"data": {"rows": 3}, "design": {"folds": 2}}
HOSTILE = [
    "../../x",
    "<script>alert(1)</script>",
    "\x1b[31mred",
    "$a$",
    "=cmd|' /C'",
    "a\0b",
    "CON",
]


def make_run(name="ranknet", error=None):
    return Run(
        system=System("lightgbm", name),
        seed=3,
        fold=1,
        queries=np.array([2, 0]),
        values={"ndcg@10": np.array([0.5, np.nan]), name: np.array([1.0, 2.0])},
        tied=np.array([0.0, 1.0]),
        history={"ndcg@10": [0.1, float("nan")]},
        best_round=4,
        seconds=0.25,
        params={"learning_rate": 0.1, "text": name},
        warnings=(name,),
        error=error,
    )


def task_of(run):
    return Task(run.system, run.seed, run.fold)


@pytest.fixture
def store(tmp_path):
    return Store.begin(tmp_path / "out", PLAN)


@pytest.mark.parametrize("name", ["ranknet", *HOSTILE])
def test_a_run_comes_back_as_it_was_whatever_it_is_called(store, tmp_path, name):
    run = make_run(name)
    store.save(run)
    back = store.load(task_of(run))
    assert back is not None
    for field in ("system", "seed", "fold", "best_round", "seconds", "params", "warnings", "error"):
        assert getattr(back, field) == getattr(run, field)
    assert list(back.values) == list(run.values)
    for measure, values in run.values.items():
        np.testing.assert_array_equal(back.values[measure], values)
    np.testing.assert_array_equal(back.queries, run.queries)
    np.testing.assert_array_equal(back.tied, run.tied)
    np.testing.assert_array_equal(back.history["ndcg@10"], run.history["ndcg@10"])
    everything = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(path.parent for path in everything) == sorted(
        [store.folder, store.runs, store.runs]
    )
    plain = set(string.ascii_letters + string.digits + "-.")
    assert all(set(path.name) <= plain for path in everything)


def test_slugs_differ_where_texts_differ():
    texts = [*HOSTILE, "a b", "a-b", "A b", "x" * 500, "x" * 501, "", "é", "è"]
    assert len({slug(text) for text in texts}) == len(texts)
    assert all(len(slug(text)) < 64 for text in texts)


def test_a_run_that_is_not_whole_does_not_count(store):
    run = make_run()
    store.save(run)
    arrays, about = (next(store.runs.glob(f"*{suffix}")) for suffix in (".npz", ".json"))
    whole = arrays.read_bytes()
    arrays.write_bytes(whole[:-7])
    assert store.load(task_of(run)) is None
    arrays.write_bytes(whole)
    assert store.load(task_of(run)) is not None
    about.write_text(about.read_text()[:50])
    assert store.load(task_of(run)) is None
    about.unlink()
    assert store.load(task_of(run)) is None


def test_a_run_with_a_changed_byte_does_not_count(store):
    run = make_run()
    store.save(run)
    for path in list(store.runs.iterdir()):
        whole = path.read_bytes()
        for at in range(len(whole)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
            assert store.load(task_of(run)) is None, (path.suffix, at)
        path.write_bytes(whole)
    assert store.load(task_of(run)) is not None


def test_a_run_without_a_checksum_is_read(store):
    run = make_run()
    store.save(run)
    about = next(store.runs.glob("*.json"))
    told = json.loads(about.read_text())
    del told[NAME]
    about.write_text(json.dumps(told))
    back = store.load(task_of(run))
    assert back is not None
    assert back.params == run.params


def test_a_plan_with_a_changed_byte_is_refused(store):
    path = store.folder / "plan.json"
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        if path.read_bytes().split() != whole.split():
            with pytest.raises((ConfigError, DataError)):
                Store.begin(store.folder, PLAN, resume=True)


def test_a_run_of_another_version_is_refused(store):
    run = make_run()
    store.save(run)
    about = next(store.runs.glob("*.json"))
    told = {**json.loads(about.read_text()), "schema": "gbmrank.run/99", NAME: BLANK}
    about.write_bytes(with_checksum(json.dumps(told).encode()))
    with pytest.raises(DataError, match=r"gbmrank\.run/99.*gbmrank\.run/1"):
        store.load(task_of(run))


def test_arrays_are_never_unpickled(store):
    run = make_run()
    store.save(run)
    arrays, about = (next(store.runs.glob(f"*{suffix}")) for suffix in (".npz", ".json"))
    np.savez(arrays, queries=np.array([print], dtype=object))
    import hashlib

    told = json.loads(about.read_text())
    told["arrays"], told["measures"] = hashlib.sha256(arrays.read_bytes()).hexdigest(), []
    del told[NAME]
    about.write_text(json.dumps(told))
    with pytest.raises(ValueError, match="allow_pickle"):
        store.load(task_of(run))


def test_failed_runs_are_tried_again(store):
    store.save(make_run("good"))
    store.save(make_run("bad", error="ValueError: no"))
    tasks = [task_of(make_run(name)) for name in ("good", "bad", "missing")]
    assert [run.system.objective for run in store.done(tasks)] == ["good"]


def test_a_folder_in_use_is_refused_and_nothing_is_lost(store):
    store.save(make_run())
    with pytest.raises(ConfigError, match=r"--resume.*--force"):
        Store.begin(store.folder, PLAN)
    assert len(list(store.runs.iterdir())) == 2
    again = Store.begin(store.folder, PLAN, resume=True)
    assert again.load(task_of(make_run())) is not None


def test_force_removes_the_comparison_and_nothing_else(store):
    store.save(make_run())
    (store.folder / "thesis.txt").write_text("mine")
    Store.begin(store.folder, {"data": 1}, force=True)
    assert list(store.runs.iterdir()) == []
    assert (store.folder / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("options", [{}, {"force": True}, {"resume": True}])
def test_a_folder_of_somebody_else_is_never_touched(tmp_path, options):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "precious").write_text("mine")
    with pytest.raises(ConfigError, match="not the folder of a comparison"):
        Store.begin(tmp_path, PLAN, **options)
    assert (tmp_path / "runs" / "precious").exists()


def test_a_folder_that_another_start_is_clearing_is_in_use(store):
    with locked(store.folder, print):
        store.clear()
        (store.folder / "runs").mkdir()  # not yet removed; the plan is
        assert check_folder(store.folder, force=True)
        with pytest.raises(ConfigError, match="is in use: process"), locked(store.folder, print):
            pass


def test_resuming_with_other_settings_names_the_difference(store):
    other = {"data": {"rows": 4}, "design": {"folds": 2}}
    with pytest.raises(ConfigError, match=r"data\.rows was 3 and is 4"):
        Store.begin(store.folder, other, resume=True)


def test_what_a_killed_process_left_is_removed(store):
    (store.runs / ".writing-1-abc").write_text("half")
    store.work.mkdir()
    (store.work / "features.npy").write_text("big")
    Store.begin(store.folder, PLAN, resume=True)
    assert list(store.runs.iterdir()) == []
    assert not store.work.exists()


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
