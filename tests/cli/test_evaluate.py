"""``gbmrank evaluate``: numbers, words, exit codes."""

import csv
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gbmrank
from gbmrank.cli import main

DATA = os.environ.get("GBMRANK_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="GBMRANK_DATA names no folder of real data")

LETOR = "2 qid:a 1:1\n0 qid:a 1:2\n1 qid:a 1:3\n0 qid:b 1:1\n0 qid:b 1:2\n1 qid:c 1:5\n"
SCORES = "0.5\n0.5\n0.25\n1\n2\n3\n"
LABELS = [2, 0, 1, 0, 0, 1]
VALUES = [0.5, 0.5, 0.25, 1, 2, 3]
QID = ["a", "a", "a", "b", "b", "c"]
# Query a: gains 3 and 0 tie for ranks 1 and 2, gain 1 is third; b has no value; c has 1.
_A = (1.5 * (1 + 1 / np.log2(3)) + 1 / 2) / (3 + 1 / np.log2(3))
NDCG = f"{(_A + 1) / 2:.4f}"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "rows.txt").write_text(LETOR)
    (tmp_path / "scores.txt").write_text(SCORES)
    return ["--labels", str(tmp_path / "rows.txt"), "--scores", str(tmp_path / "scores.txt")]


def run(capsys, *arguments: str) -> str:
    code = main(["evaluate", *arguments])
    captured = capsys.readouterr()
    assert captured.err == ""
    assert code == 0
    return captured.out


def run_json(capsys, *arguments: str):
    return json.loads(run(capsys, *arguments, "--json"))


def refused(capsys, *arguments: str) -> str:
    code = main(["evaluate", *arguments])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert code == 2
    assert captured.err.startswith("gbmrank evaluate: error: ")
    assert "Traceback" not in captured.err
    return captured.err


def test_values_are_those_of_the_library(capsys, files):
    text = "ndcg@1,5, map(threshold=1), err@10, spearman"
    out = run_json(capsys, *files, "--metrics", text, "--per-query")
    for item, got in zip(gbmrank.metrics_callback(text), out["metrics"], strict=True):
        assert got["metric"] == str(item)
        assert got["mean"] == item.score(LABELS, VALUES, qid=QID)
        values = [query["values"][got["name"]] for query in out["per_query"]]
        want = item.per_query(LABELS, VALUES, qid=QID)
        assert values == [None if np.isnan(value) else value for value in want]
    assert [query["qid"] for query in out["per_query"]] == ["a", "b", "c"]
    assert [query["rows"] for query in out["per_query"]] == [3, 2, 1]


def test_the_form_of_the_json_is_kept(capsys, files):
    out = run_json(capsys, *files, "--metrics", "map", "--threshold", "2", "--per-query")
    assert out.pop("labels").endswith("rows.txt")
    assert out.pop("scores").endswith("scores.txt")
    assert out == {
        "schema": "gbmrank.evaluate/1",
        "gbmrank": gbmrank.__version__,
        "format": "letor",
        "like": None,
        "rows": 6,
        "unranked_rows": 0,
        "queries": 3,
        "ties": {"rows": 2, "queries": 1},
        "notes": [],
        "metrics": [
            {
                "name": "map",
                "metric": "map(threshold=2)",
                "mean": 0.75,
                "queries": 1,
                "undefined": 2,
                "reason": "no relevant row",
                "higher_is_better": True,
                "conventions": {
                    "threshold": 2.0,
                    "denominator": "relevant",
                    "ties": "mean",
                    "empty": "skip",
                    "dtype": "float64",
                },
            }
        ],
        "per_query": [
            {"qid": "a", "rows": 3, "values": {"map": 0.75}},
            {"qid": "b", "rows": 2, "values": {"map": None}},
            {"qid": "c", "rows": 1, "values": {"map": None}},
        ],
    }


def test_the_table_says_what_a_person_needs(capsys, files):
    out = run(capsys, *files, "--metrics", "ndcg@10, map", "--threshold", "1", "--per-query")
    assert "rows    6 in 3 queries, labels 0 to 2" in out
    assert "ties    33.3 % of the rows tie with another of their query, in 1 of 3 queries" in out
    assert f"ndcg@10  {NDCG}        2  1 skipped: no relevant row" in out
    assert "ndcg@10  gain=exp2  ties=mean  empty=skip" in out
    assert "map      threshold=1  denominator=relevant  ties=mean  empty=skip" in out
    assert "b         2        -       -" in out
    assert "\x1b" not in out


def test_options_go_to_the_metrics_that_have_them(capsys, files):
    out = run_json(
        capsys,
        *files,
        *("--metrics", "ndcg@10, ndcg(gain=exp2, ties=best)@5, map, err", "--gain", "0,1,5"),
        *("--threshold", "1", "--max-grade", "2", "--ties", "worst", "--empty", "zero"),
    )
    assert [one["metric"] for one in out["metrics"]] == [
        str(gbmrank.metric("ndcg@10", gain=(0, 1, 5), ties="worst", empty="zero")),
        str(gbmrank.metric("ndcg@5", ties="best", empty="zero")),
        str(gbmrank.metric("map", threshold=1, ties="worst", empty="zero")),
        str(gbmrank.metric("err", max_grade=2, ties="worst", empty="zero")),
    ]
    assert out["metrics"][0]["queries"] == 3


def test_conventions_of_another_tool(capsys, files):
    out = run_json(capsys, *files, "--metrics", "nDCG@10, MAP@10", "--like", "lightgbm")
    want = gbmrank.metric("ndcg@10, map@10", like="lightgbm").score(LABELS, VALUES, qid=QID)
    assert {one["metric"]: one["mean"] for one in out["metrics"]} == want
    text = run(capsys, *files, "--metrics", "map@10", "--like", "lightgbm", "--ties", "mean")
    assert "as in lightgbm where not stated" in text
    assert "threshold=above 0.5  denominator=min  ties=mean  empty=one" in text


def test_undefined_everywhere(capsys, tmp_path, files):
    (tmp_path / "rows.txt").write_text(LETOR.replace("2 qid", "0 qid").replace("1 qid", "0 qid"))
    assert run_json(capsys, *files)["metrics"][0]["mean"] is None
    assert "ndcg@1      -        0  3 skipped: no relevant row" in run(capsys, *files)


# --- inputs ----------------------------------------------------------------------------------


def same_table(folder: Path, name: str) -> Path:
    path = folder / name
    rows = [["topic", "label", "f", "score"], *zip(QID, LABELS, LABELS, VALUES, strict=True)]
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="\t" if name.endswith("tsv") else ",").writerows(rows)
    return path


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv"])
def test_tables(capsys, tmp_path, files, name):
    want = run_json(capsys, *files)["metrics"]
    path = same_table(tmp_path, name)
    assert run_json(capsys, "--labels", str(path))["metrics"] == want
    assert run_json(capsys, "--labels", str(path), *files[2:])["metrics"] == want
    named = ["--label-column", "f", "--score-column", "score", "--qid-column", "topic"]
    assert run_json(capsys, "--labels", str(path), *named)["metrics"] == want
    other = ["--scores", str(path), "--score-column", "score"]
    assert run_json(capsys, *files[:2], *other)["metrics"] == want


def test_columns_of_scores_in_other_tables(capsys, tmp_path, files):
    want = run_json(capsys, *files)["metrics"]
    rows = str(same_table(tmp_path, "rows.csv"))
    message = refused(capsys, "--labels", rows, *files[2:], "--score-column", "score")
    assert "--score-column needs a CSV or Parquet table" in message
    (tmp_path / "scores.csv").write_text("s;x\n" + "".join(f"{v};1\n" for v in VALUES))
    other = ["--scores", str(tmp_path / "scores.csv"), "--delimiter", ";", "--score-column"]
    assert run_json(capsys, *files[:2], *other, "s")["metrics"] == want
    assert run_json(capsys, *files[:2], *other, "x")["metrics"] != want
    message = refused(capsys, *files[:2], *other[:2])
    assert "has no column under a usual name; its columns are 's', 'x'; name one, or set" in message
    table = ["--labels", rows, "--scores", rows, "--score-column"]
    assert run_json(capsys, *table, "score")["metrics"] == want
    assert run_json(capsys, *table, "f")["metrics"] != want


def test_parquet(capsys, tmp_path, files):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    want = run_json(capsys, *files)["metrics"]
    frame = pandas.read_csv(same_table(tmp_path, "rows.csv"))
    frame.to_parquet(tmp_path / "rows.parquet")
    assert run_json(capsys, "--labels", str(tmp_path / "rows.parquet"))["metrics"] == want


@pytest.mark.parametrize("form", ["csv", "parquet", "letor"])
@pytest.mark.parametrize("scores", ["inside", "lines", "folder"])
def test_a_folder_is_read_in_one_pass(capsys, tmp_path, monkeypatch, form, scores):
    """Queries cross files; a part has few rows."""
    pl = pytest.importorskip("polars")
    monkeypatch.setattr("gbmrank.data.readers.frames.BLOCK", 7)
    rng = np.random.default_rng(0)
    qid = np.repeat([f"q{at:03}" for at in range(40)], rng.integers(1, 9, 40))
    n = len(qid)
    labels, found = rng.integers(0, 3, n), rng.integers(0, 5, n) / 2.0
    whole = pl.DataFrame({"label": labels, "qid": qid, "score": found})
    (tmp_path / "rows").mkdir()
    (tmp_path / "scores").mkdir()
    for at, rows in enumerate((slice(0, 30), slice(30, 31), slice(31, n))):
        piece = whole[rows]
        inside = scores == "inside"
        if form == "letor":
            text = [f"{y} qid:{q} 1:1" for y, q in zip(labels[rows], qid[rows], strict=True)]
            (tmp_path / f"rows/{at}.txt").write_text("\n".join(text) + "\n")
        else:
            shown = piece if inside else piece.drop("score")
            getattr(shown, f"write_{form}")(tmp_path / f"rows/{at}.{form}")
    for at, rows in enumerate((slice(0, 9), slice(9, n))):
        whole[rows].select("qid", "score").write_csv(tmp_path / f"scores/{at}.csv")
    (tmp_path / "lines.txt").write_text("\n".join(map(str, found)) + "\n")
    given = {
        "lines": ["--scores", tmp_path / "lines.txt"],
        "folder": ["--scores", tmp_path / "scores"],
    }
    options = [*map(str, given.get(scores, [])), "--metrics", "ndcg@5, map", "--threshold", "1"]
    if form == "letor" and scores == "inside":
        assert "--scores FILE is needed" in refused(
            capsys, "--labels", str(tmp_path / "rows"), *options
        )
        return
    out = run_json(capsys, "--labels", str(tmp_path / "rows"), *options, "--interval")
    assert (out["rows"], out["queries"]) == (n, 40)
    for one in out["metrics"]:
        item = gbmrank.metric(one["metric"])
        assert one["mean"] == pytest.approx(item.score(labels, found, qid=qid), rel=1e-12)
        each = item.per_query(labels, found, qid=qid)
        error = np.nanstd(each, ddof=1) / np.sqrt(np.sum(~np.isnan(each)))
        low, high = one["interval"]
        assert high - low == pytest.approx(2 * 1.96 * error, rel=0.15)
        assert low < one["mean"] < high
    shown = run(capsys, "--labels", str(tmp_path / "rows"), *options, "--interval")
    assert "95% interval" in shown


def test_folders_that_cannot_be_read_in_one_pass(capsys, tmp_path):
    (tmp_path / "rows").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"rows/{name}.csv").write_text("label,qid,score\n1,x,1\n0,x,2\n1,y,1\n0,y,3\n")
    folder = ["--labels", str(tmp_path / "rows")]
    message = refused(capsys, *folder)
    assert "'x'" in message
    assert "a.csv" in message
    assert "b.csv" in message
    (tmp_path / "rows/b.csv").unlink()
    (tmp_path / "scores.txt").write_text("1\n2\n3\n")
    assert "fewer scores" in refused(capsys, *folder, "--scores", str(tmp_path / "scores.txt"))
    (tmp_path / "scores.txt").write_text("1\n2\n3\n4\n5\n")
    assert "more scores" in refused(capsys, *folder, "--scores", str(tmp_path / "scores.txt"))
    assert "--group is for one file" in refused(capsys, *folder, "--group", "sizes.txt")


def test_sizes_instead_of_qid(capsys, tmp_path, files):
    want = run_json(capsys, *files)["metrics"]
    (tmp_path / "plain.txt").write_text("".join(f"{label} 0:1\n" for label in LABELS))
    (tmp_path / "sizes.txt").write_text("3\n2\n1\n")
    sizes = ["--group", str(tmp_path / "sizes.txt")]
    plain = ["--labels", str(tmp_path / "plain.txt"), *files[2:], "--zero-based"]
    assert run_json(capsys, *plain, *sizes)["metrics"] == want
    message = refused(capsys, *plain)
    assert "plain.txt' has no query ids" in message
    assert "--group" in message
    (tmp_path / "sizes.txt").write_text("3\n2\n")
    assert "group sizes sum to 5 in 2 queries, but there are 6 rows" in refused(
        capsys, *plain, *sizes
    )


def test_the_query_file_of_lightgbm_is_read_as_compare_does(capsys, tmp_path, files):
    expected = run_json(capsys, *files)
    plain = re.sub(r" qid:\w", "", LETOR)
    (tmp_path / "rank.test.gz").write_bytes(gzip.compress(plain.encode()))
    (tmp_path / "rank.test.query").write_text("3\n2\n1\n")
    given = ["--labels", str(tmp_path / "rank.test.gz"), *files[2:]]
    found = run_json(capsys, *given)
    assert found["metrics"] == expected["metrics"]
    assert found["notes"] == ["queries were read from rank.test.query"]
    (tmp_path / "rows.txt.query").write_text("5\n1\n")
    own = run_json(capsys, *files)
    assert own["metrics"] == expected["metrics"]
    (note,) = own["notes"]
    assert "rows.txt' has query ids, so rows.txt.query beside it was not read" in note


def test_scattered_queries_are_put_together(capsys, tmp_path, files):
    want = run_json(capsys, *files)["metrics"]
    order = [3, 0, 5, 1, 4, 2]
    lines = LETOR.splitlines()
    (tmp_path / "rows.txt").write_text("".join(f"{lines[i]}\n" for i in order))
    (tmp_path / "scores.txt").write_text("".join(f"{VALUES[i]}\n" for i in order))
    out = run_json(capsys, *files)
    assert [one["mean"] for one in out["metrics"]] == pytest.approx([one["mean"] for one in want])
    assert out["notes"] == [
        "the rows of some queries are not adjacent; they were grouped by query id"
    ]


def test_compressed_files(capsys, tmp_path, files):
    want = run_json(capsys, *files)["metrics"]
    for name in ("rows.txt", "scores.txt"):
        (tmp_path / name).write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    assert run_json(capsys, *files)["metrics"] == want


# --- TREC ------------------------------------------------------------------------------------

QRELS = "1 0 a 1\n1 0 b 0\n1 0 x 1\n1 0 y 2\n2 0 a 1\n"
RUN = "1 Q0 a 1 1.0 t\n1 Q0 b 2 1.0 t\n1 Q0 c 3 0.5 t\n"


@pytest.fixture
def trec(tmp_path: Path) -> list[str]:
    (tmp_path / "qrels.txt").write_text(QRELS)
    (tmp_path / "run.txt").write_text(RUN)
    return ["--labels", str(tmp_path / "qrels.txt"), "--scores", str(tmp_path / "run.txt")]


def test_documents_not_retrieved_count_below_the_line_only(capsys, trec):
    names = "map, mrr, precision, precision(divisor=min)@5, recall@10, dcg, err"
    options = ["--threshold", "1", "--ties", "index", "--gain", "linear", "--max-grade", "2"]
    out = run_json(capsys, *trec, "--metrics", names, *options)
    # trec_eval's order: b (not relevant), a (relevant), c; x and y are relevant and missing.
    want = [1 / 2 / 3, 1 / 2, 1 / 3, 1 / 3, 1 / 3, 1 / np.log2(3), 1 / 4 / 2]
    assert [one["mean"] for one in out["metrics"]] == pytest.approx(want, rel=1e-12)
    assert (out["rows"], out["unranked_rows"], out["queries"]) == (3, 2, 1)
    assert out["ties"] == {"rows": 2, "queries": 1}


def test_ndcg_has_the_ideal_of_all_judged_documents(capsys, trec):
    out = run_json(capsys, *trec, "--metrics", "ndcg", "--like", "trec_eval")
    discounts = 1 / np.log2([2, 3, 4])
    assert out["metrics"][0]["mean"] == pytest.approx(
        discounts[1] / ([2, 1, 1] @ discounts), rel=1e-12
    )


def test_whole_orders_see_missing_documents_at_the_end(capsys, trec):
    out = run_json(capsys, *trec, "--metrics", "auc", "--threshold", "1")
    # Against b (tied with a, 1/2) and c (below a): x and y lose all four pairs.
    assert out["metrics"][0]["mean"] == pytest.approx((0.5 + 1) / 6)


def test_topics_the_run_lacks(capsys, trec):
    options = ["--metrics", "map", "--like", "trec_eval"]
    half = run_json(capsys, *trec, *options)["metrics"][0]["mean"]
    out = run_json(capsys, *trec, *options, "--complete", "--per-query")
    assert out["metrics"][0]["mean"] == half / 2
    assert out["per_query"][1] == {"qid": "2", "rows": 0, "values": {"map": 0.0}}


CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
MEASURES = ["map", "recip_rank", "ndcg"]
MEASURES += [f"{name}_{k}" for name in ("P", "recall", "ndcg_cut", "map_cut") for k in CUTS]


@needs_data
@pytest.mark.parametrize(
    ("qrels", "results", "expected", "options"),
    [
        ("qrels.test", "results.test", "out.test.aq", ()),
        ("qrels.test", "results.trunc", "out.test.aqc", ("--complete",)),
        ("qrels.rel_level", "results.test", "out.test.aql", ("--threshold", "2")),
    ],
)
def test_the_numbers_of_trec_eval(capsys, qrels, results, expected, options):
    folder = Path(str(DATA)) / "trec_eval_test"
    paths = ["--labels", str(folder / qrels), "--scores", str(folder / results)]
    out = run_json(
        capsys,
        *(*paths, "--like", "trec_eval", "--metrics", ", ".join(MEASURES), "--per-query", *options),
    )
    lines = [line.split() for line in (folder / expected).read_text().splitlines()]
    want = {(line[0], line[1]): line[2] for line in lines if len(line) == 3}
    for measure, summary in zip(MEASURES, out["metrics"], strict=True):
        assert summary["mean"] == pytest.approx(float(want[measure, "all"]), abs=5.001e-5)
        for query in out["per_query"]:
            value = query["values"][summary["name"]]
            listed = float(want[measure, query["qid"]])
            assert value == pytest.approx(listed, abs=5.001e-5), (measure, query["qid"])


# --- output ----------------------------------------------------------------------------------


def test_values_of_queries_in_files(capsys, tmp_path, files):
    out = tmp_path / "out.csv"
    text = run(capsys, *files, "--metrics", "ndcg@5, err@5", "--output", str(out))
    assert "query" not in text.split("conventions")[1]
    want = gbmrank.metric("ndcg@5").per_query(LABELS, VALUES, qid=QID)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["qid"] for row in rows] == ["a", "b", "c"]
    assert [row["ndcg@5"] for row in rows] == [repr(float(want[0])), "", repr(float(want[2]))]
    run(capsys, *files, "--output", str(tmp_path / "out.json"))
    saved = json.loads((tmp_path / "out.json").read_text())
    assert saved["schema"] == "gbmrank.per_query/1"
    assert len(saved["per_query"]) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("out.csv", "out.json", "rows.txt", "scores.txt")
    ]


@pytest.mark.skipif(os.name == "nt", reason="needs modes of files")
def test_files_have_the_mode_of_other_files(capsys, tmp_path, files):
    (tmp_path / "other").touch()
    run(capsys, *files, "--output", str(tmp_path / "out.csv"))
    modes = {(tmp_path / name).stat().st_mode for name in ("other", "out.csv")}
    assert len(modes) == 1


def test_a_file_that_is_there_is_kept(capsys, tmp_path, files):
    out = tmp_path / "out.csv"
    out.write_text("precious")
    message = refused(capsys, *files, "--output", str(out))
    assert "already exists" in message
    assert "--force" in message
    assert out.read_text() == "precious"
    run(capsys, *files, "--output", str(out), "--force")
    assert out.read_text().startswith("qid,rows,ndcg@1")


def test_spreadsheets_get_no_formulas(capsys, tmp_path, files):
    (tmp_path / "rows.txt").write_text(
        LETOR.replace("qid:a", "qid:=1+cmd").replace("qid:b", "qid:-5").replace("qid:c", "qid:@x")
    )
    out = tmp_path / "out.csv"
    run(capsys, *files, "--output", str(out))
    with out.open(newline="") as file:
        assert [row["qid"] for row in csv.DictReader(file)] == ["'=1+cmd", "-5", "'@x"]


def test_escape_sequences_do_not_reach_the_terminal(capsys, tmp_path, files):
    (tmp_path / "rows.txt").write_text(LETOR.replace("qid:a", "qid:\x1b]0;owned\x07\x1b[31mred"))
    out = run(capsys, *files, "--per-query")
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "\nred " in out


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metrics", "ndgc@10"], "no metric is called 'ndgc'; did you mean 'ndcg'"),
        (["--metrics", "ndcg@0"], "the cut-off after '@' must be a whole number of at least 1"),
        (["--metrics", "map"], r"labels must be 0/1 or -1/\+1 here.*threshold=1"),
        (["--metrics", "map, map"], "map is asked for twice"),
        (["--metrics", "err", "--like", "lightgbm"], "err: lightgbm does not have this metric"),
        (["--max-grade", "3"], "--max-grade is not an option of ndcg@1, ndcg@5, ndcg@10"),
        (["--max-grade", "3"], "ndcg@10; it is one of err"),
        (["--metrics", "ndcg@10", "--threshold", "1"], "it is one of auc, hit_rate, map, mrr"),
        (["--gain", "cubic"], "gain='cubic' is not known"),
        (["--gain", "1,x"], "--gain is exp2, linear or a table"),
        (["--gain", "0,1_0,3"], "--gain is exp2, linear or a table"),
        (["--gain", "0,\uff11,3"], "--gain is exp2, linear or a table"),
        (["--metrics", "ndcg@\uff11"], "unexpected character"),
        (["--threshold", "1_0"], "a number is needed, such as 0.5; got '1_0'"),
        (["--ties", "random"], "ties must be one of mean, worst, best, index"),
        (["--empty", "two"], "empty must be one of skip, zero, one"),
        (["--like", "solr"], "invalid choice: 'solr'"),
        (["--threshold", "x"], "a number is needed, such as 0.5; got 'x'"),
        (["--score-column", "s"], "--score-column needs .* table; .*scores.txt is not one"),
        (["--output", "nowhere/x.csv"], "--output nowhere/x.csv: there is no folder .*create it"),
        (["--output", "x.xlsx"], "must end in .csv, .tsv, .json"),
        (["--max-line", "3"], "rows.txt:1: the line is longer than 3 bytes"),
        (["--max-bytes", "10"], "raise max_bytes"),
        (["--format", "csv"], "no label column"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_mistakes_are_explained(capsys, files, options, message):
    assert re.search(message, refused(capsys, *files, *options).replace("\n", " "))


def test_files_that_are_not_there_or_do_not_match(capsys, tmp_path, files):
    assert "nothing.txt: No such file" in refused(capsys, "--labels", "nothing.txt", *files[2:])
    assert "Is a directory" in refused(capsys, *files[:2], "--scores", str(tmp_path))
    assert "has no query ids" in refused(capsys, "--labels", str(tmp_path), *files[2:])
    assert "--scores FILE is needed with LETOR" in refused(capsys, *files[:2])
    assert "arguments are required: --labels" in refused(capsys)
    (tmp_path / "scores.txt").write_text("1\n")
    assert "has 1 scores, but" in refused(capsys, *files)
    (tmp_path / "scores.txt").write_text(SCORES.replace("3", "nan"))
    assert "scores.txt:6:1: expected one finite number, got 'nan'" in refused(capsys, *files)
    path = same_table(tmp_path, "rows.csv")
    path.write_text("label,score\n1,2\n")
    assert "has no query ids" in refused(capsys, "--labels", str(path))
    path.write_text("label,qid\n1,2\n")
    assert "no column of scores" in refused(capsys, "--labels", str(path))
    (tmp_path / "odd").write_text("a b c d e\n")
    assert "cannot infer the format of" in refused(
        capsys, "--labels", str(tmp_path / "odd"), *files[2:]
    )
    (tmp_path / "odd").write_text("\n")
    assert "odd' is empty" in refused(capsys, "--labels", str(tmp_path / "odd"), *files[2:])


# --- as a program ----------------------------------------------------------------------------


@pytest.mark.parametrize("program", [[sys.executable, "-m", "gbmrank"], ["gbmrank"]])
def test_as_a_program(files, program):
    if program == ["gbmrank"]:
        program = [str(Path(sys.executable).parent / "gbmrank")]
        if not Path(program[0]).exists():
            pytest.skip("the entry point is not installed beside this Python")
    done = subprocess.run(
        [*program, "evaluate", *files], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"ndcg@10  {NDCG}" in done.stdout
    wrong = subprocess.run(
        [*program, "evaluate", "--labels", "x"], capture_output=True, text=True, check=False
    )
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "gbmrank evaluate: error: x: No such file or directory\n"


def test_a_metric_that_is_not_defined_for_graded_labels_is_left_out_with_a_note(capsys, tmp_path):
    path = tmp_path / "graded.csv"
    path.write_text("qid,label,score\n1,2,0.3\n1,0,0.4\n2,1,0.1\n2,0,0.0\n")
    told = run_json(capsys, "--labels", str(path), "--metrics", "ndcg@10, map")
    assert [one["metric"] for one in told["metrics"]] == ["ndcg@10"]
    assert any(
        note.startswith("map is left out") and "threshold=1" in note for note in told["notes"]
    )
    assert "threshold=1" in refused(capsys, "--labels", str(path), "--metrics", "map")
