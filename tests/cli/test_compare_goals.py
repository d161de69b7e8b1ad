"""``gbmrank compare --goals``: fronts side by side, what is kept, and what is rejected."""

import csv
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank.cli import compare, main
from gbmrank.demo_data import demo_data

GOALS = ("--goals", "relevance=label,margin=margin")
QUICK = (
    "--folds",
    "2",
    "--rounds",
    "20",
    "--param",
    "learning_rate=0.2",
    "--valid-share",
    "0.3",
    "--quiet",
    "--threads",
    "1",
)
LIGHT = ("--backends", "lightgbm")
SCORES = ("--scores", "production=column:old_score")
HEAD = ("qid", "label", "margin", "flat", "old_score", "a", "b", "c", "d")


def table(path: Path, queries: int = 100, missing: int = 0, gap: bool = False) -> str:
    """Write demonstration data with two goals; the first rows may lack the margin."""
    data = demo_data(queries, items=8, goals=2)
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(HEAD)
        columns: Any = (data.qid, data.labels, data.margin, data.X[:, 0], data.X[:, :4])
        for row, (query, label, margin, score, x) in enumerate(zip(*columns, strict=True)):
            known = "" if row < missing else margin
            lines.writerow([query, label, known, 1, "" if gap and not row else score, *x])
    return str(path)


@pytest.fixture
def rows(tmp_path):
    return table(tmp_path / "rows.csv")


@pytest.fixture
def out(tmp_path):
    return str(tmp_path / "out")


def run(capsys, *arguments: str, code: int = 0) -> str:
    found = main(["compare", *arguments])
    captured = capsys.readouterr()
    assert found == code, captured.err
    return captured.out


def as_json(capsys, *arguments: str):
    return json.loads(run(capsys, *arguments, "--json"))


def test_fronts_of_both_boosters_and_production_side_by_side(capsys, rows, out):
    text = run(capsys, rows, *GOALS, *SCORES, *QUICK, "--out", out)
    shown = text.split("\n\n")[1].splitlines()
    assert max(map(len, shown)) <= 80
    assert re.search(r"^production +\d\.\d{4} \+0\.0000 ±0\.0000 .* r$", text, re.MULTILINE)
    for name in ("relevance alone", "margin alone", "at 0.5"):
        assert len(re.findall(rf"^  {name} +\d\.\d{{4}} [+-]", text, re.MULTILINE)) == 2
    assert "difference to production" in text
    found = json.loads((Path(out) / "results.json").read_text())
    assert (
        as_json(capsys, rows, *GOALS, *SCORES, *QUICK, "--out", out)["settings"]
        == (found["settings"])
    )
    assert len(found["settings"]) == 1 + 2 * 11
    assert "over 100 test queries" in found["about"]
    page = (Path(out) / "report.html").read_text()
    assert page.count("<polyline") >= 2
    for word in ("production", "lightgbm GoalRanker", "xgboost GoalRanker", "relevance alone"):
        assert word in page
    for one in found["settings"]:
        mean = f"{one['margin']:.4f}"
        assert mean in text
        assert mean in page


def test_a_given_score_is_valued_by_the_metrics(capsys, rows, out):
    found = as_json(capsys, rows, *GOALS, *SCORES, *QUICK, *LIGHT, "--out", out)
    data = demo_data(100, items=8, goals=2)
    given = found["settings"][0]
    for goal, metric, labels in (
        ("relevance", "ndcg@10", data.labels),
        ("margin", "ndcg(gain=linear)@10", data.margin),
    ):
        want = gbmrank.metric(metric).score(labels, data.X[:, 0], qid=data.qid)
        assert given[goal] == pytest.approx(want, rel=1e-9)


def test_differences_are_paired_and_dominated_settings_are_marked(capsys, rows, out):
    found = as_json(capsys, rows, *GOALS, *QUICK, *LIGHT, "--out", out)
    settings = found["settings"]
    assert "difference to lightgbm GoalRanker at 0.5," in found["about"]
    middle = next(one for one in settings if one["setting"] == "at 0.5")
    means = np.array([[one["relevance"], one["margin"]] for one in settings])
    for one, own in zip(settings, means, strict=True):
        for goal in ("relevance", "margin"):
            want = one[goal] - middle[goal]
            assert one[f"{goal}: difference"] == pytest.approx(want, abs=1e-12)
            assert one[f"{goal}: +-"] >= 0.0
        better = (means >= own).all(axis=1) & (means > own).any(axis=1)
        assert one["dominated"] == better.any()
    assert [one["weight of margin"] for one in (settings[0], settings[-1])] == [0.0, 1.0]


def test_a_run_is_a_line_and_the_same_command_continues(capsys, rows, out):
    command = (rows, *GOALS, *QUICK, "--out", out, "--seeds", "2")
    whole = as_json(capsys, *command)
    lines = Path(out) / "runs" / "goals.jsonl"
    kept = lines.read_text().splitlines()
    assert len(kept) == 2 * 2 * 2
    # A process that was killed leaves half a line.
    lines.write_text("\n".join([*kept[:3], kept[3][:200]]))
    (Path(out) / "results.json").unlink()
    assert as_json(capsys, *command) == whole
    again = lines.read_text().splitlines()
    assert again[:3] == kept[:3]
    assert len(again) == len(kept)
    run(capsys, *command, "--rounds", "9", code=2)
    assert lines.read_text().splitlines() == again
    run(capsys, *command, "--rounds", "9", "--force")


def test_the_labels_of_goals_are_no_features(capsys, rows, out):
    run(capsys, rows, "--goals", "first=flat_not,second=margin", "--out", out, code=2)
    text = as_json(capsys, rows, *GOALS, *QUICK, *LIGHT, "--out", out)
    plan = json.loads((Path(out) / "plan.json").read_text())
    assert text["goals"] == plan["goals"]
    assert plan["goals"]["margin"]["column"] == "margin"
    # Under names that do not look like labels, too.
    renamed = Path(rows).with_name("renamed.csv")
    renamed.write_text(Path(rows).read_text().replace("label,margin", "worth,cash", 1))
    goals = ("--goals", "relevance=worth,margin=cash")
    found = as_json(capsys, str(renamed), *goals, *QUICK, *LIGHT, "--out", out + "2")
    assert found["settings"] == text["settings"]


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_queries_without_labels_of_a_goal_are_left_out_of_it(capsys, tmp_path, out, backend):
    rows = table(tmp_path / "rows.csv", missing=12)
    command = (rows, *GOALS, *SCORES, *QUICK, "--backends", backend, "--out", out)
    found = as_json(capsys, *command)
    assert any("missing label of margin" in note for note in found["notes"])
    assert all(0 < one["margin"] < 1 for one in found["settings"])


def test_three_goals_have_weights_and_no_dial(capsys, rows, out):
    goals = ("--goals", "relevance=label,margin=margin,old=old_score")
    command = (rows, *goals, *QUICK, *LIGHT, "--out", out, "--metrics", "ndcg(gain=linear)@5")
    found = as_json(capsys, *command)
    names = [one["setting"] for one in found["settings"]]
    assert [name for name in names if name.endswith(" alone")] == [
        "relevance alone",
        "margin alone",
        "old alone",
    ]
    assert {one["metric"] for one in found["goals"].values()} == {"ndcg(gain=linear)@5"}
    assert all(one["at"] is None for one in found["settings"])
    assert max(map(len, run(capsys, *command).split("\n\n")[1].splitlines())) <= 80


def test_given_splits_weights_and_parameters(capsys, tmp_path, out):
    parts = [table(tmp_path / f"{name}.csv", 40) for name in ("train", "valid", "test")]
    command = ("--train", parts[0], "--valid", parts[1], "--test", parts[2], "--allow-overlap")
    options = ("--weight", "flat", "--param-for", "lightgbm:num_leaves=7", *QUICK, *LIGHT)
    found = as_json(capsys, *command, *GOALS, *options, "--out", out)
    assert "over 40 test queries" in found["about"]
    plan = json.loads((Path(out) / "plan.json").read_text())
    assert plan["design"]["params_for"] == {"lightgbm": {"num_leaves": 7}}


def test_a_run_that_fails_is_told_and_tried_again(capsys, monkeypatch, rows, out):
    fit, calls = gbmrank.GoalRanker.fit, []

    def broken(self, *given, **named):
        calls.append(self.backend)
        if len(calls) == 2:
            raise ValueError("out of luck")
        return fit(self, *given, **named)

    monkeypatch.setattr(gbmrank.GoalRanker, "fit", broken)
    command = (rows, *GOALS, *QUICK, *LIGHT, "--out", out)
    text = run(capsys, *command, code=3)
    assert "failed, ValueError: out of luck" in text
    assert "50 queries without values" in text
    assert "over 100 test queries" in as_json(capsys, *command)["about"]
    assert len(calls) == 3


def test_a_stopped_comparison_keeps_its_runs(capsys, monkeypatch, rows, out):
    fit, calls = gbmrank.GoalRanker.fit, []

    def stopped(self, *given, **named):
        calls.append(self.backend)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return fit(self, *given, **named)

    monkeypatch.setattr(gbmrank.GoalRanker, "fit", stopped)
    command = (rows, *GOALS, *QUICK, *LIGHT, "--out", out)
    assert main(["compare", *command]) == 130
    assert "1 of 2 runs are done and kept" in capsys.readouterr().err
    run(capsys, *command)
    assert len(calls) == 3


def test_a_killed_comparison_continues(capsys, rows, out):
    command = (rows, *GOALS, *QUICK, *LIGHT, "--seeds", "6", "--out", out)
    lines = Path(out) / "runs" / "goals.jsonl"
    with subprocess.Popen([sys.executable, "-m", "gbmrank", "compare", *command]) as process:
        while process.poll() is None and not (lines.exists() and lines.stat().st_size):
            time.sleep(0.01)
        process.kill()
    kept = lines.read_text().splitlines()
    found = as_json(capsys, *command)
    assert lines.read_text().splitlines()[0] == kept[0]
    assert as_json(capsys, *command[:-1], f"{out}-2")["settings"] == found["settings"]


def test_the_demonstration_has_two_goals(capsys, monkeypatch, out):
    monkeypatch.setattr(compare, "demo_data", lambda goals: demo_data(100, items=8, goals=goals))
    goals = ("--goals", "relevance=relevance,margin=margin")
    found = as_json(capsys, *goals, *QUICK, *LIGHT, "--out", out)
    assert found["title"] == "demonstration data"
    assert "over 100 test queries" in found["about"]
    assert main(["compare", *GOALS, "--out", out]) == 2
    assert "no 'label'; its goals are relevance and margin" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--goals", "relevance=label"), "two or more"),
        (("--goals", "relevance=label,margin"), "the form is"),
        (("--goals", "one=label,one=margin"), "of its own"),
        (("--goals", "one=label,two=label"), "of its own"),
        (("--goals", "one=label,two=profit"), "'profit'"),
        (("--goals", "one=label,two=flat"), "the same for all rows"),
        ((*GOALS, "--feature", "margin", "--feature", "a"), "margin is the label column"),
        ((*GOALS, "--objectives", "ranknet"), "--objectives has no meaning"),
        ((*GOALS, "--position", "a"), "--position has no meaning"),
        ((*GOALS, "--tune", "3"), "--tune has no meaning"),
        ((*GOALS, "--jobs", "2"), "--jobs has no meaning"),
        ((*GOALS, "--baseline", "production"), "--baseline has no meaning"),
        ((*GOALS, "--label-column", "label"), "--label-column has no meaning"),
        ((*GOALS, "--metrics", "ndcg@1, ndcg@2, ndcg@3"), "one for each of relevance, margin"),
        ((*GOALS, "--metrics", "err@10"), "err"),
        ((*GOALS, "--backends", "catboost"), "'catboost'"),
        ((*GOALS, "--param", "seed=3", *LIGHT), "seed"),
        ((*GOALS, "--folds", "20"), "a dial needs 10 of each"),
        ((*GOALS, "--qid-column", "margin"), "'margin'"),
    ],
)
def test_bad_input_is_told_before_anything_is_trained(capsys, rows, out, options, words):
    assert main(["compare", rows, *QUICK, *options, "--out", out]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("gbmrank compare: error: ")
    assert words in captured.err
    assert len(captured.err) < 500
    assert not (Path(out) / "runs" / "goals.jsonl").exists()


def test_missing_labels_and_scores_are_told(capsys, tmp_path, out):
    path = tmp_path / "rows.csv"
    table(path, missing=10_000)
    assert main(["compare", str(path), *GOALS, "--out", out]) == 2
    assert "the labels of margin" in capsys.readouterr().err
    table(path, gap=True)
    assert main(["compare", str(path), *GOALS, *SCORES, *QUICK, "--out", out]) == 2
    assert "no finite score of 'production'" in capsys.readouterr().err
    letor = tmp_path / "rows.txt"
    letor.write_text("1 qid:1 1:0.5\n0 qid:1 1:0.2\n")
    assert main(["compare", str(letor), *GOALS, "--out", out]) == 2
    assert "no named columns" in capsys.readouterr().err


def test_another_comparison_is_not_touched(capsys, rows, out):
    ranking = ("--objectives", "ranknet", "--metrics", "ndcg@3", "--in-process")
    run(capsys, rows, *ranking, *QUICK, *LIGHT, "--out", out)
    before = (Path(out) / "results.json").read_bytes()
    run(capsys, rows, *GOALS, *QUICK, *LIGHT, "--out", out, code=2)
    assert (Path(out) / "results.json").read_bytes() == before
