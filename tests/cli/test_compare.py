"""``gbmrank compare``: words, files, exit codes, and what survives a kill."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from gbmrank.boosters.plan import train
from gbmrank.cli import compare, main
from gbmrank.demo_data import demo_data
from gbmrank.experiments import trial
from gbmrank.experiments.comparison import Comparison
from gbmrank.experiments.statistics.estimates import analyse
from gbmrank.experiments.store import load_results

SHORT = ("--in-process", "--quiet", "--rounds", "5", "--metrics", "ndcg@3")
QUICK = (*SHORT, "--folds", "2")
ONE = ("--objectives", "ranknet, pairwise(loss=logistic, target=dcg)", "--backends", "lightgbm")
ESCAPES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def letor(path: Path, queries: int = 20, seed: int = 0, first: int = 0) -> str:
    data = demo_data(queries, items=6, seed=seed)
    lines = [
        f"{label} qid:{query - data.qid[0] + first} "
        + " ".join(f"{i}:{v:.6g}" for i, v in enumerate(row, 1))
        for label, query, row in zip(data.labels, data.qid, data.X[:, :4], strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def rows(tmp_path):
    return letor(tmp_path / "rows.txt")


@pytest.fixture
def out(tmp_path):
    return str(tmp_path / "out")


def run(capsys, *arguments: str, code: int = 0) -> str:
    found = main(["compare", *arguments])
    captured = capsys.readouterr()
    assert found == code, captured.err
    return captured.out


def refused(capsys, *arguments: str) -> str:
    assert main(["compare", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("gbmrank compare: error: ")
    return captured.err


def test_a_comparison_prints_a_table_and_writes_its_files(capsys, rows, out):
    text = run(capsys, rows, "--out", out, *QUICK, *ONE)
    assert text.startswith("rows.txt: ")
    assert "20 queries" in text
    assert re.search(r"lightgbm ranknet \* +0\.\d{4} \[0\.\d{4}, 0\.\d{4}\]", text)
    assert re.search(r"pairwise\(loss=logistic, target=dcg\) .*[+-]0\.\d{4} \[", text)
    assert f"report  {out}/report.html" in text
    names = {path.name for path in Path(out).iterdir()}
    assert names - {".lock"} == {
        *("plan.json", "runs", "results.json", "per_query.csv", "report.html")
    }
    results = load_results(Path(out) / "results.json")
    mean = np.nanmean(results.values("ndcg@3"), axis=2)[0, 0]
    assert f"{mean:.4f}" in text


def test_json_is_for_machines(capsys, rows, out):
    found = json.loads(run(capsys, rows, "--out", out, *QUICK, *ONE, "--json"))
    assert found["schema"] == "gbmrank.compare/1"
    assert found["runs"] == 4
    assert found["failed"] == []
    assert found["analysis"]["measures"][0]["measure"]["name"] == "ndcg@3"
    assert Path(found["files"]["report"]).exists()


def test_boosters_have_baselines_of_their_own_everywhere(capsys, rows, out):
    objectives = ("--objectives", "ranknet, native:lambdarank, native:rank:ndcg")
    text = run(capsys, rows, "--out", out, *QUICK, *objectives)
    verdict = json.loads((Path(out) / "results.json").read_text())["analysis"]["verdict"]
    parts = ("LightGBM: ", " XGBoost: ", "The boosters themselves: XGBoost rank:ndcg is ")
    assert all(part in verdict for part in parts)
    assert verdict in " ".join(text.split())
    assert "* baseline of its booster; XGBoost rank:ndcg is compared with LightGBM lamb" in text
    assert text.count(" *  ") == 2
    results = load_results(Path(out) / "results.json")
    assert [str(one) for one in results.baselines] == [
        "lightgbm native:lambdarank",
        "xgboost native:rank:ndcg",
    ]
    page = (Path(out) / "report.html").read_text()
    assert verdict in page
    assert "corrected for 3 comparisons with a baseline (Holm)" in page
    found = Comparison(results, analyse(results))
    assert verdict in str(found)
    assert verdict in found._repr_html_()
    named = run(
        capsys, rows, "--out", out, "--force", *QUICK, *objectives, "--baseline", "lightgbm ranknet"
    )
    assert "The boosters themselves" not in named
    assert "\n* baseline\n" in named


def test_a_failed_run_has_an_exit_code_of_its_own(capsys, rows, out):
    options = [
        "--objectives",
        "ranknet",
        "--objectives",
        "native:rank:map",
        "--backends",
        "xgboost",
    ]
    text = run(capsys, rows, "--out", out, *QUICK, *options, code=3)
    assert "note: xgboost native:rank:map: 2 of 2 runs failed: " in text
    assert "failed" in text


def test_when_every_run_failed_this_is_said_first(capsys, rows, out):
    options = ["--objectives", "native:rank:map", "--backends", "xgboost"]
    text = run(capsys, rows, "--out", out, *QUICK, *options, code=3)
    assert text.startswith("every run failed; the first error is ")
    assert "binary labels" in text.splitlines()[0]
    assert "undefined" not in text
    assert "2 of 2 runs failed" in text


def test_warnings_of_a_booster_are_told_in_full(capsys, rows, out, monkeypatch):
    def warned(*given):
        warnings.warn("[12:34:56] WARNING: /src/learner.cc:790: top_k is not used", stacklevel=1)
        return train(*given)

    monkeypatch.setattr(trial, "train", warned)
    options = ["--objectives", "ranknet", "--backends", "xgboost"]
    text = run(capsys, rows, "--out", out, *QUICK, *options)
    (line,) = [one for one in text.splitlines() if "top_k" in one]
    assert line.startswith("note: xgboost ranknet: UserWarning: top_k is not used")


def test_features_of_a_letor_file_are_chosen_by_index(capsys, rows, out):
    run(capsys, rows, "--out", out, *QUICK, *ONE, "--feature", "3", "--feature", "1")
    assert load_results(Path(out) / "results.json").audit["features"] == 2


def test_help_shows_what_is_done_by_default(capsys):
    assert main(["compare", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in (
        "folds of queries (default: 5)",
        "boosting rounds (default: 300)",
        "0 disables it (default: 30)",
        "for validation (default: 0.2)",
        "learning_rate=0.1",
        '(default: "ndcg@10, ndcg@5, ndcg@1"',
        "an index in LETOR files), or a pattern such as 'bm25_*'; may be repeated",
    ):
        assert words in text


def test_a_narrow_terminal_gets_a_paragraph_per_system(capsys, rows, out, monkeypatch):
    monkeypatch.setattr(compare, "line_width", lambda: 60)
    text = run(capsys, rows, "--out", out, *QUICK, *ONE)
    shown = text.split("\n\n")[2].splitlines()
    assert "lightgbm ranknet *" in shown
    assert max(map(len, shown)) <= 60
    assert any(line.startswith("  ndcg@3 [95%] 0.") for line in shown)


def test_a_terminal_that_is_not_wide_enough_gets_fewer_columns(capsys, rows, out, monkeypatch):
    whole = run(capsys, rows, "--out", out, *QUICK, *ONE)
    lines = whole.split("\n\n")[2].splitlines()
    assert lines[0].endswith("s/run")
    monkeypatch.setattr(compare, "line_width", lambda: len(lines[1]) - 1)
    again = run(capsys, rows, "--out", out, "--resume", *QUICK, *ONE).split("\n\n")[2]
    assert again.splitlines()[0].endswith("rounds")
    assert max(map(len, again.splitlines())) < len(lines[1])
    assert "Left out to fit the terminal: s/run" in again


def test_regret_is_defined_where_it_is_shown(capsys, rows, out):
    defined = "regret: share of the best possible expected DCG that a ranking loses; 0 is perfect"
    options = ("--rounds", "2", "--objectives", "ranknet, pairwise", "--backends", "lightgbm")
    demo = run(capsys, "--out", out, "--quiet", "--in-process", "--folds", "2", *options)
    assert f"* baseline\n{defined}\n" in demo
    assert defined not in run(capsys, rows, "--out", f"{out}-rows", *QUICK, *ONE)


def test_parameters_reach_the_boosters(capsys, rows, out):
    params = ["--param", "learning_rate=0.3", "--param-for", "lightgbm ranknet:num_leaves=5"]
    params += ["--param-for", "pairwise(loss=logistic, target=dcg):learning_rate=0.01"]
    run(capsys, rows, "--out", out, *QUICK, *ONE, *params, "--seeds", "2,7")
    runs = load_results(Path(out) / "results.json").runs
    assert {run.seed for run in runs} == {2, 7}
    used = {(run.system.objective, run.params["learning_rate"]) for run in runs}
    assert used == {("ranknet", 0.3), ("pairwise(loss=logistic, target=dcg)", 0.01)}
    assert {run.params.get("num_leaves") for run in runs} == {5, None}


def test_tuning_tries_other_settings(capsys, rows, out):
    run(capsys, rows, "--out", out, *QUICK, "--objectives", "ranknet", "--tune", "3")
    runs = load_results(Path(out) / "results.json").runs
    assert len({run.params["learning_rate"] for run in runs}) > 1


def test_a_folder_in_use_is_refused_until_told_otherwise(capsys, rows, out):
    run(capsys, rows, "--out", out, *QUICK, *ONE)
    assert "--resume" in refused(capsys, rows, "--out", out, *QUICK, *ONE)
    before = {path: path.stat().st_mtime_ns for path in Path(out, "runs").iterdir()}
    run(capsys, rows, "--out", out, *QUICK, *ONE, "--resume")
    assert before == {path: path.stat().st_mtime_ns for path in Path(out, "runs").iterdir()}
    said = refused(capsys, rows, "--out", out, *QUICK, *ONE, "--resume", "--tune", "2")
    assert "design.tune was 0 and is 2" in said
    said = refused(capsys, rows, "--out", out, *QUICK, *ONE, "--resume", "--force")
    assert "one of them" in said
    run(capsys, rows, "--out", out, *QUICK, *ONE, "--force")


def test_given_splits_that_share_queries_are_refused(capsys, tmp_path, out):
    train, test = letor(tmp_path / "train.txt"), letor(tmp_path / "test.txt", seed=1)
    parts = ["--train", train, "--test", test, "--out", out, *SHORT, *ONE]
    assert "20 query ids, such as '0'" in refused(capsys, *parts)
    assert not Path(out).exists()
    assert "note: 20 query ids" in run(capsys, *parts, "--allow-overlap")
    apart = letor(tmp_path / "apart.txt", seed=1, first=100)
    text = run(capsys, "--train", train, "--test", apart, "--out", out, "--force", *SHORT, *ONE)
    assert "train.txt, apart.txt" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--objectives", "ranknett"], "ranknet"),
        (["--objectives", "native:lambdarink"], "native:lambdarank"),
        (["--objectives", "ranknet, ranknet"], "given twice"),
        (["--backends", "catboost"], "lightgbm, xgboost"),
        (["--metrics", "ndgc"], "ndcg"),
        (["--baseline", "softmax"], "not one of the systems"),
        (["--param", "learning_rate"], "NAME=VALUE"),
        (["--param-for", "x=1"], "WHO:NAME=VALUE"),
        (["--param-for", "nobody:a=1"], "'nobody'"),
        (["--param", "seed=3"], "seed=3"),
        (["--seeds", "a"], "0,1,2"),
        (
            ["--seeds", "0"],
            "from 1 to 1000, got 0; to set the seeds themselves, give a list such as 0,1",
        ),
        (["--feature", "9"], "'rows.txt' has no column '9'; its columns are '1', '2', '3', '4'"),
        (["--feature", "2", "--feature", "2"], "the feature '2' is listed twice"),
        (["--metrics", "ndcg@10 map"], "ndcg@10 map"),
        (["--folds", "1"], "at least 2"),
        (["--delimiter", "ab"], "one character"),
        (["--train", "x"], "not both"),
        (["--threads", "0"], "threads must be a whole number from 1"),
        (["--unknown"], "--unknown"),
    ],
)
def test_mistakes_are_told_before_anything_is_trained(capsys, rows, out, options, words):
    assert words in refused(capsys, rows, "--out", out, *options)
    assert not Path(out).exists()


def test_a_tuner_that_is_not_installed_is_told(capsys, rows, out, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    said = refused(capsys, rows, "--out", out, "--tune", "2", "--tuner", "optuna")
    assert "pip install optuna" in said


def test_files_that_are_not_there_are_told(capsys, out, tmp_path):
    assert "No such file" in refused(capsys, str(tmp_path / "none.txt"), "--out", out)
    assert "--train and --test" in refused(capsys, "--train", "x", "--out", out)


def test_columns_of_a_table_are_named(capsys, tmp_path, out):
    data = demo_data(20, items=6)
    lines = ["=cmd,<script>,rank\x1b[31m,noise"]
    for label, query, row in zip(data.labels, data.qid, data.X, strict=True):
        lines.append(f"{label},=q{query},{row[0]},{row[1]}")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    columns = ["--label-column", "=cmd", "--qid-column", "<script>"]
    run(capsys, str(path), "--out", out, *QUICK, *ONE, *columns)
    cells = Path(out, "per_query.csv").read_text().splitlines()
    assert not any(line.startswith("=") for line in cells)
    assert sum(line.startswith("'=q") for line in cells) > 0


@pytest.mark.parametrize(
    "name", ["<script>alert(1)<script>.txt", "\x1b]0;title\x07\x1b[31mred.txt", "$a$=cmd.txt"]
)
def test_hostile_file_names_are_harmless(capsys, tmp_path, out, name):
    path = letor(tmp_path / name)
    text = run(capsys, path, "--out", out, *QUICK, *ONE)
    assert ESCAPES.search(text) is None
    report = Path(out, "report.html").read_text()
    assert "<script>alert(1)" not in report
    assert ESCAPES.search(report) is None
    assert load_results(Path(out) / "results.json").title == name
    inside = [path.name for path in Path(out).rglob("*")]
    assert all(re.fullmatch(r"[\w.-]+", one) for one in inside)


def test_progress_is_told_on_the_error_stream(capsys, rows, out):
    options = [option for option in QUICK if option != "--quiet"]
    assert main(["compare", rows, "--out", out, *options, *ONE]) == 0
    columns, ahead, *lines = capsys.readouterr().err.splitlines()
    assert columns == "4 features: 1, 2, 3, 4"
    assert re.match(r"4 runs of up to \d+ rounds, \d+ at a time: about \d+ s", ahead)
    assert [line[:5] for line in lines[:-1]] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]
    assert "ndcg@3 0." in lines[0]
    assert lines[-1].startswith("4 of 4 runs")


# What follows stops real processes.

COMMAND = [sys.executable, "-m", "gbmrank", "compare"]
LONG = ["--folds", "2", "--rounds", "60", "--early-stopping", "0", "--metrics", "ndcg@3"]
LONG += ["--objectives", "ranknet, native:lambdarank, native:rank:ndcg"]
TWO_AT_ONCE = ["--jobs", "2", "--threads", "2"]
ONE_HERE = ["--in-process", "--threads", "1", "--quiet"]
RUNS = 8


def begin(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for_runs(out: str, number: int, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 60
    while len(list(Path(out, "runs").glob("*.json"))) < number:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def workers_of(out: str) -> list[str]:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if f"pool {out}" in line]


@pytest.mark.nightly  # tests/faults/test_compare.py kills one without workers
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_comparison_is_resumed_to_the_same_result(capsys, tmp_path):
    rows = letor(tmp_path / "rows.txt", queries=60)
    killed, whole = str(tmp_path / "killed"), str(tmp_path / "whole")
    process = begin(rows, "--out", killed, *LONG, *TWO_AT_ONCE)
    wait_for_runs(killed, 2, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 20
    while workers_of(killed):  # they see that nobody listens any more
        assert time.monotonic() < deadline
        time.sleep(0.05)
    kept = {path: path.stat().st_mtime_ns for path in Path(killed, "runs").glob("*-*.json")}
    assert 2 <= len(kept) < RUNS
    run(capsys, rows, "--out", killed, *LONG, *ONE_HERE, "--resume")
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    run(capsys, rows, "--out", whole, *LONG, *ONE_HERE)
    one, other = (load_results(Path(folder) / "results.json") for folder in (killed, whole))
    assert len(one.runs) == len(other.runs) == RUNS
    for first, second in zip(one.runs, other.runs, strict=True):
        assert (first.system, first.fold) == (second.system, second.fold)
        assert first.error is second.error is None
        assert first.history == second.history
        assert first.best_round == second.best_round
        np.testing.assert_array_equal(first.values["ndcg@3"], second.values["ndcg@3"])
    results = [json.loads(Path(f, "results.json").read_text()) for f in (killed, whole)]
    assert results[0]["analysis"] == results[1]["analysis"]


@pytest.mark.skipif(os.name == "nt", reason="needs SIGINT")
def test_control_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path):
    rows, out = letor(tmp_path / "rows.txt", queries=60), str(tmp_path / "out")
    process = begin(rows, "--out", out, *LONG, "--jobs", "1", "--threads", "1")
    wait_for_runs(out, 1, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    last = said.strip().splitlines()[-1]
    assert re.search(r"stopped; \d+ of 8 runs are done and kept in .*out; .*--resume", last)
    assert "Traceback" not in said
    assert workers_of(out) == []
    assert not Path(out, "work").exists()


@pytest.mark.nightly
def test_the_demonstration_shows_what_comparison_losses_lose(capsys, out):
    found = json.loads(run(capsys, "--out", out, "--quiet", "--json"))
    regret = found["analysis"]["measures"][-1]
    assert regret["measure"]["name"] == "regret@10"
    ends = {tuple(one["system"].values()): one["interval"] for one in regret["summaries"]}
    losing = ("ranknet", "native:rank:pairwise")
    founded = ("pairwise", "pointwise", "bregman")
    worst = max(v["high"] for (_, name), v in ends.items() if name.startswith(founded))
    best = min(v["low"] for (_, name), v in ends.items() if name in losing)
    assert worst < 0.03
    assert best > 0.15
