"""Comparisons that are stopped, repeated, moved or asked for what makes no sense."""

import json
import os
import random
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import gbmrank
from gbmrank.cli import main
from gbmrank.data.files import write_whole
from gbmrank.demo_data import demo_data
from gbmrank.errors import (
    ConfigError,
    DataError,
    LeakageWarning,
    NoProgressWarning,
    UnknownNameError,
)
from gbmrank.experiments.comparison import compare_source
from gbmrank.experiments.preparation import Settings
from gbmrank.experiments.progress import Progress
from gbmrank.experiments.sources import read_source
from gbmrank.experiments.statistics.estimates import analyse
from gbmrank.experiments.store import load_results
from tests.experiments.make_results import table_results
from tests.faults.interfaces import TASK, fit
from tests.formulas import each

DATA = demo_data(30, items=6)
QUICK = {"folds": 2, "rounds": 3, "isolate": False, "metrics": "ndcg@3", "backends": ["lightgbm"]}


def compare(objectives=("ranknet",), data=DATA, **options):
    return gbmrank.compare(data, objectives=list(objectives), **{**QUICK, **options})


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.mark.fault(
    "an objective that fails in a comparison", promise="reported with its error; the others go on"
)
def test_a_failing_objective():
    # Bipartite losses need two kinds of labels; here there are five grades.
    found = compare(["bipartite", "ranknet"])
    assert {run.system.objective for run in found.results.failed} == {"bipartite"}
    assert np.isfinite(found.results.values("ndcg@3")[1]).any()
    assert any("bipartite: 2 of 2 runs failed" in note for note in found.notes)


@pytest.mark.fault(
    "scores of a model in production that are missing or not finite for rows that are judged",
    promise="`DataError` with their number and a query, before the first run",
)
def test_given_scores_with_gaps():
    scores = np.where(np.arange(len(DATA.labels)) == 4, np.inf, DATA.X[:, 0])
    with pytest.raises(DataError, match="1 rows of test queries have no finite score"):
        compare(scores={"production": scores})


@pytest.mark.fault(
    "queries of equal time at the border of a fold that is split by time",
    promise="all of them are on one side; with fewer different times than folds need, `DataError`",
)
def test_equal_times_at_a_border():
    weeks = DATA.qid.astype(int) // 8
    found = compare(time=weeks, params={"min_data_in_leaf": 3})
    for fold in found.results.audit["split_by_time"]:
        assert float(fold["valid"]["to"]) < float(fold["test"]["from"])
    with pytest.raises(DataError, match="4 different times"):
        compare(time=weeks, folds=4)


@pytest.mark.fault(
    "a column that is categorical in one given split and numeric in another",
    promise="`DataError` that names the column",
)
def test_categories_in_one_split():
    table = pd.DataFrame(DATA.X[:, :2], columns=["a", "b"])
    table = table.assign(label=DATA.labels, qid=DATA.qid)
    coded = table.assign(a=(table["a"] > 0).map({True: "yes", False: "no"}).astype("category"))
    with pytest.raises(DataError, match="'a'"):
        compare(data={"train": coded, "test": table})


KILLED = """
import os, signal, sys
from gbmrank.demo_data import demo_data
from gbmrank.experiments.comparison import compare_source
from gbmrank.experiments.preparation import Settings
from gbmrank.experiments.sources import read_source

class Killing:
    begin = started = rounds = note = end = lambda self, *given: None
    def finished(self, task, run):
        os.kill(os.getpid(), signal.SIGKILL)

settings = Settings(objectives=["ranknet"], metrics="ndcg@3", backends=["lightgbm"], folds=2,
    rounds=3, isolate=False, out=sys.argv[1], progress=Killing())
compare_source(read_source(demo_data(30, items=6), None), settings)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.fault(
    "a comparison that is killed", promise="finished runs are kept; `--resume` does the rest"
)
def test_a_killed_comparison(out):
    done = subprocess.run([sys.executable, "-c", KILLED, str(out)], check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL
    kept = {path: path.stat().st_mtime_ns for path in (out / "runs").glob("*.json")}
    assert len(kept) == 1
    threads = json.loads((out / "plan.json").read_text())["design"]["threads"]
    resumed = compare(out=out, resume=True, threads=threads)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}  # not run again
    whole = compare(threads=threads)
    np.testing.assert_array_equal(resumed.results.values("ndcg@3"), whole.results.values("ndcg@3"))


class Interrupted(Progress):
    """Ctrl-C when the first run is done."""

    def finished(self, task, run):
        raise KeyboardInterrupt


@pytest.mark.fault(
    "Ctrl-C in a comparison", promise="finished runs are kept, and it says how many there are"
)
def test_an_interrupted_comparison(out):
    settings = Settings(
        objectives=["ranknet"],
        metrics="ndcg@3",
        backends=["lightgbm"],
        folds=2,
        rounds=3,
        isolate=False,
        out=out,
        progress=Interrupted(),
    )
    with pytest.raises(KeyboardInterrupt, match="stopped; 1 of 2 runs are done"):
        compare_source(read_source(DATA), settings)
    assert len(list((out / "runs").glob("*.json"))) == 1
    assert len(compare(out=out, resume=True).results.runs) == 2


FULL = """
import resource, signal, sys
from pathlib import Path
from gbmrank.data.files import write_whole
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_whole(Path(sys.argv[1]), b"new" * 1000)
except OSError as error:
    print(type(error).__name__, error.errno)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs limits of files")
@pytest.mark.fault(
    "a disk that is full", promise="the file before stays whole and nothing half-written is left"
)
def test_a_full_disk(tmp_path):
    path = tmp_path / "results.json"
    write_whole(path, b"old")
    said = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True
    )
    assert said.stdout.split()[0] == "OSError"
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.fault(
    "a folder that holds a comparison already",
    promise="`ConfigError`: go on with `--resume`, overwrite with `--force`, or choose another",
)
def test_output_that_is_there(out, capsys):
    compare(out=out)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    with pytest.raises(ConfigError, match=r"already contains a comparison.*--resume.*--force"):
        compare(out=out)
    assert main(["compare", "--out", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert len(compare(out=out, force=True).results.runs) == 2


@pytest.mark.fault(
    "an output file of `gbmrank evaluate` that exists", promise="rejected without `--force`"
)
def test_a_file_that_is_there(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("label,qid,score\n1,1,0.3\n0,1,0.2\n")
    target = tmp_path / "values.csv"
    target.write_text("mine")
    command = ["evaluate", "--labels", str(tmp_path / "rows.csv"), "--output", str(target)]
    assert main(command) == 2
    assert "--force" in capsys.readouterr().err
    assert target.read_text() == "mine"
    assert main([*command, "--force"]) == 0
    assert target.read_text() != "mine"


@pytest.mark.fault(
    "a query in two of the given splits",
    promise="`LeakageWarning`; the command rejects without `--allow-overlap`",
)
def test_a_query_in_two_splits(tmp_path, capsys):
    rows = (DATA.X, DATA.labels, DATA.qid)
    with pytest.warns(LeakageWarning, match="30 query ids, such as '0'"):
        compare(data={"train": rows, "test": rows})
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"{i % 2} qid:{i // 2} 1:{i}\n" for i in range(20)))
    command = ["compare", "--train", str(path), "--test", str(path), "--out", str(tmp_path / "o")]
    assert main(command) == 2
    assert "--allow-overlap" in capsys.readouterr().err


@pytest.mark.fault(
    "scores that are all tied in a comparison",
    promise="`NoProgressWarning` and a note beside the table",
)
def test_constant_scores():
    with pytest.warns(NoProgressWarning, match="all scores are equal in 2 runs"):
        found = compare(params={"min_data_in_leaf": 10**6})
    assert any("constant scores in 2 of 2 runs" in note for note in found.notes)


@pytest.mark.fault(
    "the same system twice, however it is written", promise="`ConfigError`; nothing is collapsed"
)
def test_a_system_twice():
    with pytest.raises(ConfigError, match="given twice"):
        compare(["ranknet", "comparison(loss=logistic)"])
    with pytest.raises(ConfigError, match="seed 3 is given twice"):
        compare(seeds=[3, 3])
    with pytest.raises(ConfigError, match="'lightgbm' is given twice"):
        compare(backends=["lightgbm", "lightgbm"])


@pytest.mark.fault(
    "runs on different data or queries put together",
    promise="`ConfigError` that lists what differs; differences are taken over common queries",
)
def test_runs_on_other_queries(out):
    compare(out=out)
    other = demo_data(20, items=6, seed=1)
    with pytest.raises(ConfigError, match=r"data\.queries was 30 and is 20; .*data\.sha256"):
        compare(out=out, data=other, resume=True)
    nothing = analyse(table_results([[0.5, np.nan], [np.nan, 0.5]]))
    assert nothing.measures[0].comparisons == ()
    assert "Nothing was measured" in nothing.verdict


@pytest.mark.fault(
    "results of another version, or with pickled objects",
    promise="`DataError` with both versions; nothing is ever unpickled",
)
def test_results_that_cannot_be_read(tmp_path):
    path = tmp_path / "results.json"
    path.write_text('{"schema": "gbmrank.results/99"}')
    with pytest.raises(DataError, match=r"gbmrank\.results/99.*gbmrank\.results/1"):
        load_results(path)
    path.write_bytes(b"\x80\x04\x95cposix\nsystem\n")  # begins as a pickle does
    with pytest.raises(DataError, match="not a JSON document"):
        load_results(path)
    path.write_text("[" * 100_000)
    with pytest.raises(DataError, match="not a JSON document"):
        load_results(path)
    path.write_text('{"schema": "gbmrank.results/1", "queries": {}}')
    with pytest.raises(DataError, match="damaged"):
        load_results(path)


@pytest.mark.fault(
    "a comparison whose plan was damaged",
    promise="`DataError` that says to start over; nothing is overwritten",
)
def test_a_damaged_plan(out):
    compare(out=out)
    (out / "plan.json").write_text("{")
    with pytest.raises(DataError, match=r"damaged .* --force"):
        compare(out=out, resume=True)


@pytest.mark.fault(
    "a changed byte in a file of a comparison",
    promise="`--resume` makes such a run anew; `results.json` is a `DataError`",
)
def test_files_of_a_comparison_with_a_changed_byte(out):
    found = compare(out=out)
    about = sorted((out / "runs").glob("*.json"))[0]
    for old, new in (
        (b'"fold": 0', b'"fold": 1'),
        (b'"seed": 0', b'"seed": 1'),
        (b"ndcg", b"nDcg"),
    ):
        about.write_bytes(about.read_bytes().replace(old, new, 1))
        again = compare(out=out, resume=True)
        values = (one.results.values("ndcg@3") for one in (again, found))
        np.testing.assert_array_equal(*values)
        assert [run.fold for run in again.results.runs] == [0, 1]
    found.to_json(out / "results.json")
    whole = (out / "results.json").read_bytes()
    for at in np.linspace(0, len(whole) - 1, 300).astype(int):
        changed = whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :]
        (out / "results.json").write_bytes(changed)
        with pytest.raises(DataError, match="was damaged or edited"):
            load_results(out / "results.json")


@pytest.mark.fault(
    "a model file that is none, or of another tool",
    promise="read by the booster alone, never unpickled",
)
def test_models_that_cannot_be_read(tmp_path):
    import pickle

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    for name in ("model.txt", "model.ubj", "model.json"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        with pytest.raises(gbmrank.GbmrankError):
            gbmrank.load(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.fault(
    "a model file that is cut",
    promise="`DataError`, also where the booster would end the process, and also for files without "
    "a checksum, which the booster or an earlier version wrote",
)
@pytest.mark.parametrize("name", ["model.txt", "model.ubj", "model.json"])
def test_models_that_are_damaged(name, tmp_path):
    backend, file = "lightgbm" if name.endswith("txt") else "xgboost", tmp_path / name
    model = fit(backend)
    if backend == "xgboost":
        model.booster_.set_attr(gbmrank_sha256=None)
    model.booster_.save_model(str(file))  # has no checksum
    whole = file.read_bytes()
    assert gbmrank.load(file).predict(TASK.x).tolist() == model.predict(TASK.x).tolist()
    for length in np.linspace(1, len(whole) - 2, 60).astype(int):
        file.write_bytes(whole[:length])
        with pytest.raises(
            DataError, match=r"damaged .* model; save it again|neither LightGBM nor XGBoost"
        ):
            gbmrank.load(file)


@pytest.mark.fault(
    "a model file that `save` wrote, with a changed byte",
    promise="`DataError` by a checksum, before the booster reads it; `verify=False` reads files "
    "that were changed on purpose",
)
@pytest.mark.parametrize("name", each(3, ["model.txt", "model.ubj", "model.json"], 1))
def test_models_with_a_changed_byte(name, tmp_path):
    file, draw = tmp_path / name, random.Random(0)
    fit("lightgbm" if name.endswith("txt") else "xgboost", n_estimators=2, max_depth=2).save(file)
    whole = file.read_bytes()
    for at in range(len(whole)):
        change = draw.choice([1, 2, 4, 8, 16, 32, 64, 128, 255])
        file.write_bytes(whole[:at] + bytes([whole[at] ^ change]) + whole[at + 1 :])
        with pytest.raises(
            DataError, match=r"not the file that gbmrank wrote|neither LightGBM nor XGBoost"
        ):
            gbmrank.load(file)


@pytest.mark.fault(
    "code in a setting", promise="settings are names, numbers and words; nothing is evaluated"
)
def test_code_in_settings(out, capsys, tmp_path):
    trap = f"__import__('os').mkdir({str(tmp_path / 'sprung')!r})"
    for text in (f"ranknet({trap})", f"pairwise(loss={trap})", "os.system", "gbmrank.cli:main"):
        assert main(["compare", "--objectives", text, "--out", str(out)]) == 2
    assert main(["compare", "--param", trap, "--out", str(out)]) == 2
    with pytest.raises(gbmrank.GbmrankError):
        compare(params={"learning_rate": print})
    assert capsys.readouterr().err.count("error: ") == 5
    assert not (tmp_path / "sprung").exists()
    assert not out.exists()


@pytest.mark.fault("a setting that does not exist", promise="an error that names the nearest one")
def test_settings_that_do_not_exist():
    for text in ("pairwise(los=logistic)", "pairwise(target=ndcg@10, normalise=items)"):
        with pytest.raises(gbmrank.ParameterError, match=r"loss|normalize"):
            gbmrank.objective(text)
    with pytest.raises(UnknownNameError, match=r"did you mean .*ranknet"):
        compare(["ranknett"])
    with pytest.raises(gbmrank.GbmrankError, match="ranknet"):
        compare(params_for={"ranknett": {"learning_rate": 0.1}})


@pytest.mark.fault(
    "an option of `gbmrank compare` that the data at hand do not use, such as `--zero-based` with "
    "CSV, or `--label-column` with the demonstration data",
    promise="`ConfigError` that names it",
)
def test_options_without_use(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("label,qid,f\n1,1,2\n")
    out = ["--out", str(tmp_path / "out")]
    assert main(["compare", str(tmp_path / "t.csv"), "--zero-based", *out]) == 2
    assert "--zero-based has no effect on" in capsys.readouterr().err
    for option in (["--label-column", "x"], ["--format", "csv"], ["--delimiter", ";"]):
        assert main(["compare", *option, *out]) == 2
        assert "has no effect on the demonstration data" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"\(qid, --qid-column\) has no effect on arrays"):
        compare(data=(TASK.x, TASK.y, TASK.qid), qid="q")


@pytest.mark.fault(
    "the column of the label or of the query id among the features, or one column in two roles",
    promise="`ConfigError` that names the column, from `gbmrank.compare` and both commands",
)
def test_columns_in_two_roles(tmp_path, capsys):
    table = pd.DataFrame({"a": TASK.x[:, 0], "label": TASK.y, "qid": TASK.qid, "score": TASK.y})
    table.to_csv(tmp_path / "t.csv", index=False)
    file = str(tmp_path / "t.csv")
    for name in ("label", "qid"):
        with pytest.raises(
            ConfigError, match=f"'{name}' of 'the table' is both the {name} and a feature"
        ):
            compare(data=table, features=["a", name])
        chosen = ["--feature", "a", "--feature", name]
        assert main(["compare", file, "--out", str(tmp_path / "out"), *chosen]) == 2
        assert "which leaks the target into the model" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="'qid' is named both as label and as qid"):
        compare(data=table, label="qid", qid="qid")
    with pytest.raises(ConfigError, match="column names must be strings, got 7"):
        compare(data=table, label=7)
    for roles in (("label", "qid"), ("label", "score"), ("qid", "score")):
        options = [word for role in roles for word in (f"--{role}-column", "qid")]
        assert main(["evaluate", "--labels", file, *options]) == 2
        assert f"named both as {roles[0]} and as {roles[1]}" in capsys.readouterr().err
