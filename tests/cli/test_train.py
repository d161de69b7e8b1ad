"""Training and predicting from files, with checkpoints."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import gbmrank
from gbmrank.cli import main
from gbmrank.data.demonstration import FEATURES, demo_data
from gbmrank.data.row_store import RowStore
from gbmrank.errors import ConfigError

SUFFIX = {"lightgbm": ".txt", "xgboost": ".ubj"}
DATA = demo_data(120, 12, seed=0)


def write_parquet(path, rows=slice(None), data=DATA, **more):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = {name: data.X[rows, at] for at, name in enumerate(FEATURES)}
    table = pa.table({"label": data.labels[rows], "qid": data.qid[rows], **columns, **more})
    pq.write_table(table, path, row_group_size=300)


def write_csv(path, rows=slice(None)):
    lines = [",".join(["label", "qid", *FEATURES])]
    for label, qid, x in zip(DATA.labels[rows], DATA.qid[rows], DATA.X[rows], strict=True):
        lines.append(",".join([str(label), str(qid), *map(repr, x.tolist())]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_letor(path, rows=slice(None)):
    lines = [
        " ".join([str(y), f"qid:{q}", *(f"{at}:{v!r}" for at, v in enumerate(x.tolist(), 1))])
        for y, q, x in zip(DATA.labels[rows], DATA.qid[rows], DATA.X[rows], strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """Three files; a query continues from the first to the second."""
    made = tmp_path / "data"
    made.mkdir()
    n = len(DATA.qid)
    for at, rows in enumerate((slice(0, 500), slice(500, 1000), slice(1000, n))):
        write_parquet(made / f"part-{at}.parquet", rows)
    (made / "_SUCCESS").write_text("")
    return made


def trained(out, *given):
    return main(["train", *map(str, given), "--out", str(out), "--quiet", "--threads", "1"])


@pytest.mark.parametrize("backend", SUFFIX)
def test_the_model_is_that_of_training_in_memory(backend, folder, tmp_path, capsys):
    out = tmp_path / f"model{SUFFIX[backend]}"
    assert trained(out, folder, "--backend", backend, "--rounds", 15, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["queries"], told["rounds"]) == (len(DATA.qid), 120, 15)
    model = gbmrank.load(out)
    same = gbmrank.GBMRanker(backend=backend, n_estimators=15, n_jobs=1)
    same.fit(DATA.X, DATA.labels, qid=DATA.qid)
    np.testing.assert_allclose(
        model._fitted.scores(DATA.X), same._fitted.scores(DATA.X), rtol=1e-6, atol=1e-7
    )
    assert list(model.feature_names_in_) == list(FEATURES)
    assert not (tmp_path / f"{out.name}.work").exists()


@pytest.mark.parametrize("write", [write_csv, write_letor])
def test_text_files_give_the_same_model(write, folder, tmp_path):
    text = tmp_path / "rows.txt"
    write(text)
    assert trained(tmp_path / "a.txt", folder, "--rounds", 8) == 0
    assert trained(tmp_path / "b.txt", text, "--rounds", 8) == 0
    one, two = (gbmrank.load(tmp_path / name)._fitted for name in ("a.txt", "b.txt"))
    np.testing.assert_allclose(one.scores(DATA.X), two.scores(DATA.X), rtol=1e-12)


@pytest.mark.parametrize("backend", SUFFIX)
@pytest.mark.parametrize("sampled", [False, True])
def test_a_killed_training_ends_in_the_same_model(backend, sampled, folder, tmp_path):
    """Killed once a checkpoint is there; the same command goes on, to the same bytes."""
    sampling = {
        "lightgbm": ["--param", "bagging_fraction=0.5", "--param", "bagging_freq=1"],
        "xgboost": ["--param", "subsample=0.5"],
    }[backend]
    write_parquet(tmp_path / "valid.parquet", data=demo_data(30, 12, seed=5))
    given = [str(folder), "--valid", str(tmp_path / "valid.parquet"), "--backend", backend]
    given += ["--rounds", "60"]
    given += ["--checkpoint", "4", "--quiet", "--threads", "1", *(sampling if sampled else [])]
    name = f"model{SUFFIX[backend]}"
    (tmp_path / "whole").mkdir()
    assert main(["train", *given, "--out", str(tmp_path / "whole" / name)]) == 0
    out = tmp_path / name
    command = [sys.executable, "-m", "gbmrank", "train", *given, "--out", str(out)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    state, deadline = tmp_path / f"{name}.work" / "checkpoint.json", time.monotonic() + 300.0
    while not state.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
    child.wait()
    assert out.exists() or state.exists()
    if not out.exists():
        assert main(["train", *given, "--out", str(out)]) == 0
    assert out.read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_early_stopping_counts_rounds_of_all_parts(folder, tmp_path, capsys):
    valid = tmp_path / "valid.parquet"
    write_parquet(valid, data=demo_data(60, 12, seed=5))
    given = [folder, "--valid", valid, "--rounds", 80, "--early-stopping", 7, "--json"]
    given += ["--param", "learning_rate=0.3"]
    found = []
    for every in (5, 80):
        out = tmp_path / f"m{every}.txt"
        assert trained(out, *given, "--checkpoint", every) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0]["rounds"] == found[1]["rounds"] < 73
    assert found[0]["values"] == found[1]["values"]


def test_native_objectives_and_committees(folder, tmp_path):
    assert (
        trained(tmp_path / "n.txt", folder, "--objective", "native:lambdarank", "--rounds", 5) == 0
    )
    committee = "committee(query_rmse, native:lambdarank)"
    assert trained(tmp_path / "c.txt", folder, "--objective", committee, "--rounds", 5) == 0
    assert len(gbmrank.load(tmp_path / "c.txt").committee_) == 2


@pytest.mark.parametrize("backend", SUFFIX)
def test_folds_and_distil_are_those_of_the_ranker(backend, folder, tmp_path):
    given = [folder, "--backend", backend, "--rounds", 12, "--early-stopping", 4, "--folds", 3]
    out = [tmp_path / f"{name}{SUFFIX[backend]}" for name in ("folds", "small")]
    assert trained(out[0], *given) == 0
    assert trained(out[1], *given, "--distil") == 0
    dtype = "<f8" if backend == "lightgbm" else "<f4"
    want = gbmrank.GBMRanker(
        backend=backend, n_estimators=12, early_stopping_rounds=4, folds=3, n_jobs=1
    ).fit(DATA.X.astype(dtype), DATA.labels, qid=DATA.qid.astype(str))
    small = want.distil(DATA.X.astype(dtype), qid=DATA.qid)
    for path, model in zip(out, (want, small), strict=True):
        found = gbmrank.load(path)._fitted.scores(DATA.X)
        np.testing.assert_allclose(found, model._fitted.scores(DATA.X), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".txt"])
def test_predictions_are_in_the_order_of_the_rows(suffix, folder, tmp_path, capsys):
    assert trained(tmp_path / "m.txt", folder, "--rounds", 5) == 0
    out = tmp_path / f"scores{suffix}"
    assert main(["predict", str(tmp_path / "m.txt"), str(folder), "--out", str(out)]) == 0
    assert f"{len(DATA.qid):,} scores" in capsys.readouterr().out
    want = gbmrank.load(tmp_path / "m.txt")._fitted.scores(DATA.X)
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(out)
        found, ids = table["score"].to_numpy(), table["qid"].to_pylist()
    else:
        lines = out.read_text(encoding="utf-8").splitlines()
        cells = [one.split("\t" if suffix == ".tsv" else ",") for one in lines]
        found = np.array([float(one[-1]) for one in (cells if suffix == ".txt" else cells[1:])])
        ids = None if suffix == ".txt" else [one[0] for one in cells[1:]]
    np.testing.assert_array_equal(found, want)
    assert ids is None or [int(one) for one in ids] == DATA.qid.tolist()


def refused(capsys, *given):
    assert main(["train", *map(str, given), "--quiet"]) == 2
    return " ".join(capsys.readouterr().err.split())


def test_a_query_in_two_places_is_refused(folder, tmp_path, capsys):
    write_parquet(folder / "part-9.parquet", slice(0, 300))
    said = refused(capsys, folder, "--out", tmp_path / "m.txt")
    assert "the rows of query '0' are in" in said
    assert "part-0.parquet" in said
    assert "part-9.parquet" in said
    assert "sort the data by query id" in said


def test_columns_that_differ_between_files_are_refused(folder, tmp_path, capsys):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    last = folder / "part-2.parquet"
    pq.write_table(pq.read_table(last).drop_columns(["ease"]), last)
    assert "has no column 'ease'" in refused(capsys, folder, "--out", tmp_path / "m.txt")
    write_parquet(last, slice(1000, None), match=pa.array(["x"] * (len(DATA.qid) - 1000)))
    said = refused(capsys, folder, "--out", tmp_path / "m.txt")
    assert "match" in said


def test_a_file_that_ends_in_the_middle_is_refused(folder, tmp_path, capsys):
    last = folder / "part-2.parquet"
    last.write_bytes(last.read_bytes()[:-100])
    said = refused(capsys, folder, "--out", tmp_path / "m.txt")
    assert "part-2.parquet" in said
    assert "not a readable Parquet file" in said


def test_a_full_disk_keeps_the_last_checkpoint(folder, tmp_path, capsys, monkeypatch):
    from gbmrank.estimators import file_training

    calls: list[object] = []
    plain = vars(file_training)["write_model"]

    def full(fitted, path):
        calls.append(path)
        if len(calls) > 1:
            raise OSError(28, "No space left on device", str(path))
        plain(fitted, path)

    monkeypatch.setattr(file_training, "write_model", full)
    given = [folder, "--rounds", 9, "--checkpoint", 3, "--out", tmp_path / "m.txt"]
    said = refused(capsys, *given)
    assert "No space left on device" in said
    assert "The same command goes on from there" in said
    monkeypatch.undo()
    assert json.loads((tmp_path / "m.txt.work/checkpoint.json").read_text())["model"].endswith(
        "3.txt"
    )
    assert main(["train", *map(str, given), "--quiet"]) == 0


@pytest.mark.parametrize("backend", SUFFIX)
def test_a_full_memory_is_no_bug(backend, folder, tmp_path, capsys, monkeypatch):
    """Boosters raise an error of their own for std::bad_alloc."""
    booster = pytest.importorskip(backend)
    own = booster.core.XGBoostError if backend == "xgboost" else booster.basic.LightGBMError

    def full(*_):
        raise ConfigError(f"{backend}: failed") from own("std::bad_alloc")

    monkeypatch.setattr("gbmrank.cli.train.train_in_parts", full)
    said = refused(capsys, folder, "--backend", backend, "--out", tmp_path / f"m{SUFFIX[backend]}")
    assert "the memory of this process is not enough" in said


def test_xgboost_is_not_started_on_a_full_disk(folder, tmp_path, capsys, monkeypatch):
    """It would abort the process; the same command goes on later."""
    pytest.importorskip("xgboost")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    given = [folder, "--backend", "xgboost", "--rounds", 2, "--out", tmp_path / "m.ubj"]
    said = refused(capsys, *given)
    assert "No space left on device" in said
    assert "The same command goes on from there" in said
    monkeypatch.undo()
    left = tmp_path / "m.ubj.work" / "train.rows.xgboost-0x1.gradient_index.page"
    left.write_bytes(b"of a run that was killed")
    assert main(["train", *map(str, given), "--quiet"]) == 0


def test_wide_rows_are_read_in_smaller_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("gbmrank.data.row_store._CELLS_AT_ONCE", 50)
    store = RowStore(tmp_path / "rows", None, 12, "<f8")
    store.append(DATA.X[:30, :1].repeat(12, axis=1))
    assert [len(block) for block in store.blocks()] == [4] * 7 + [2]
    rows = np.array([0, 3, 4, 29])
    np.testing.assert_array_equal(store[rows], DATA.X[rows, :1].repeat(12, axis=1))


def test_a_file_that_is_not_there_leaves_nothing_behind(tmp_path, capsys):
    assert trained(tmp_path / "model.txt", tmp_path / "nothing.parquet") == 2
    assert capsys.readouterr().err.rstrip().endswith("nothing.parquet: No such file or directory")
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_of_another_training_is_not_continued(folder, tmp_path, capsys, monkeypatch):
    from gbmrank.estimators import file_training

    kept = file_training.Checkpoints.write

    def stop(self, *state):
        kept(self, *state)
        raise KeyboardInterrupt

    monkeypatch.setattr(file_training.Checkpoints, "write", stop)
    given = ["train", str(folder), "--out", str(tmp_path / "m.txt"), "--quiet", "--checkpoint", "2"]
    assert main(given) == 130
    monkeypatch.undo()
    assert main([*given, "--objective", "query_rmse"]) == 2
    assert "checkpoint of another training" in " ".join(capsys.readouterr().err.split())
    assert main([*given, "--rounds", "6"]) == 0


def test_wrong_arguments(folder, tmp_path, capsys):
    assert "a model of lightgbm is saved as *.txt" in refused(
        capsys, folder, "--out", tmp_path / "m.ubj"
    )
    (tmp_path / "m.txt").write_text("")
    assert "overwrite it with --force" in refused(capsys, folder, "--out", tmp_path / "m.txt")
    (tmp_path / "empty").mkdir()
    said = refused(capsys, tmp_path / "empty", "--out", tmp_path / "x.txt")
    assert "there are no files in the folder" in said
    said = refused(capsys, folder, "--param", "learning_rate", "--out", tmp_path / "y.txt")
    assert "--param learning_rate: the form is learning_rate=0.05" in said


def test_warnings_of_the_training_are_notes(folder, tmp_path, capsys):
    out = tmp_path / "m.txt"
    assert trained(out, folder, "--valid", folder, "--rounds", 4, "--checkpoint", 2) == 0
    assert " ".join(capsys.readouterr().out.split()).count("are in the training set and in") == 1
