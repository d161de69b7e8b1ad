"""Files that are damaged, hostile or too large."""

import contextlib
import gzip
import json
import os
import re
import threading
from pathlib import Path

import pandas as pd
import pytest

import gbmrank
from gbmrank.cli import main
from gbmrank.data.readers import Limits, read_csv, read_letor
from gbmrank.errors import DataError, LimitError, ParseError

GOOD = "1 qid:1 1:2\n"


def evaluated(capsys, *arguments: str):
    assert main(["evaluate", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def rejected(capsys, *arguments: str) -> str:
    assert main([*arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.fixture
def file(tmp_path):
    return tmp_path / "rows.txt"


@pytest.mark.fault(
    "a LETOR line that cannot be read: label, qid or feature missing, cut off, out of order, "
    "given twice, or index 0",
    promise="`ParseError` with file, line and column, and what was expected",
)
@pytest.mark.parametrize(
    ("line", "column", "words"),
    [
        ("good qid:1 1:2", 1, "a finite number; got 'good'"),
        ("1 1:2 2:3", 2, "expected qid:<query>"),
        ("1 qid:1 1:2 2", 13, "expected index:value, got '2'"),
        ("1 qid:1 1:2 1:3", 13, "given twice"),
        ("1 qid:1 3:2 2:3", 13, "comes after 3; indices must increase"),
        ("1 qid:1 0:2", 9, "indices start at 1"),
        ("1 qid:1 1:", 9, "expected index:value"),
    ],
)
def test_lines_that_cannot_be_read(file, line, column, words):
    file.write_text(GOOD * 4 + line + "\n" + GOOD)
    with pytest.raises(ParseError, match=rf"rows\.txt:5:{column}: .*{words}"):
        read_letor(file)


@pytest.mark.fault(
    "a byte order mark, Windows line ends, or no end of the last line", promise="accepted"
)
@pytest.mark.parametrize(
    "text", [b"\xef\xbb\xbf1 qid:1 1:2\r\n0 qid:1 1:3\r\n", b"1 qid:1 1:2\n0 qid:1 1:3"]
)
def test_other_line_ends(file, text):
    file.write_bytes(text)
    assert read_letor(file).labels.tolist() == [1.0, 0.0]


@pytest.mark.fault("a compressed file that is cut off", promise="`ParseError` with the line")
def test_a_file_that_is_cut_off(file):
    whole = gzip.compress(GOOD.encode() * 10_000)
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ParseError, match=r"rows\.txt:\d+:1: "):
        read_letor(file)


@pytest.mark.fault(
    "a small compressed file that unpacks to a huge one, or a giant line",
    promise="`LimitError` at a cap that can be raised",
)
def test_bombs_and_giant_lines(file):
    file.write_bytes(gzip.compress(GOOD.encode() * 100_000))
    for read in (read_letor, read_csv):
        with pytest.raises(LimitError, match=r"more than 100,000 bytes.*raise max_bytes"):
            read(file, limits=Limits(max_bytes=100_000))
    file.write_text(GOOD + "1 qid:1 1:2 #" + "x" * 2000 + "\n")
    with pytest.raises(LimitError, match=r"rows\.txt:2: .*1,000.*gbmrank evaluate"):
        read_letor(file, limits=Limits(max_line=1000))
    file.write_text(GOOD + "1 qid:1 999999999:1\n")
    with pytest.raises(LimitError, match=r"2 rows of 999,999,999 features"):
        read_letor(file)


@contextlib.contextmanager
def piped(content: bytes):
    """Give the name of a pipe out of which this comes."""
    end, start = os.pipe()

    def write():
        with contextlib.suppress(BrokenPipeError), open(start, "wb") as file:
            file.write(content)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield f"/dev/fd/{end}"
    finally:
        os.close(end)
        writer.join()


@pytest.mark.fault(
    "files or given splits whose columns have other names, another order, or one text as name",
    promise="`DataError` that names them; LETOR files alone may leave out the last features",
)
def test_columns_that_do_not_match(tmp_path, capsys):
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text("label,qid,1,2\n1,a,10,20\n0,a,11,21\n")
    other.write_text("label,qid,2,1\n1,b,20,10\n0,b,21,11\n")
    for given in ([str(one), str(other)], ["--train", str(one), "--test", str(other)]):
        message = rejected(capsys, "compare", *given, "--out", str(tmp_path / "out"))
        assert "the same feature columns in another order; use the same order" in message
    other.write_text("label,qid,2\n1,b,20\n0,b,21\n")
    message = rejected(capsys, "compare", str(one), str(other), "--out", str(tmp_path / "out"))
    assert "have different feature columns: '1'" in message
    twice = pd.DataFrame({"label": [1, 0], "qid": [1, 1], 1: [10, 11], "1": [20, 21]})
    with pytest.raises(DataError, match="two columns called '1'"):
        gbmrank.compare(twice)


@pytest.mark.fault(
    "a missing query id in a table: an empty cell, `NULL`, `NA`, NaN",
    promise="`ParseError` with its row, in CSV and Parquet files alike",
)
@pytest.mark.parametrize("missing", [float("nan"), None, "", "nan", "NULL"])
def test_query_ids_that_are_missing(tmp_path, missing, capsys):
    number = not isinstance(missing, str)
    frame = pd.DataFrame({"label": [1, 0, 2], "qid": [7, 7, missing], "f": 1, "score": 1})
    frame = frame if number else frame.astype({"qid": str})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    for name in ("rows.csv", "rows.parquet"):
        file = str(tmp_path / name)
        place = "rows.csv:4:'qid'" if name == "rows.csv" else "rows.parquet: row 2 has no query id"
        assert place in rejected(capsys, "evaluate", "--labels", file)
        assert place in rejected(capsys, "compare", file, "--out", str(tmp_path / "out"))


@pytest.mark.fault(
    "a table of scores whose ids are in another order than those of the labels",
    promise="`DataError` with the first row that differs, from `gbmrank evaluate`",
)
def test_scores_in_another_order(tmp_path, capsys):
    labels, scores = tmp_path / "labels.csv", tmp_path / "scores.csv"
    command = ["--labels", str(labels), "--scores", str(scores), "--metrics", "ndcg"]
    labels.write_text("label,qid,docid\n2,1,a\n0,1,b\n1,2,c\n0,2,d\n")
    scores.write_text("qid,docid,score\n2,c,.9\n2,d,.3\n1,b,.2\n1,a,.7\n")
    message = rejected(capsys, "evaluate", *command)
    assert re.search("has the document 'c' in row 0, where .* has 'a'.*Sort both files", message)
    scores.write_text("qid,score\n2,.9\n2,.3\n1,.2\n1,.7\n")
    assert "has the query '2' in row 0" in rejected(capsys, "evaluate", *command)
    scores.write_text("qid,docid,score\n1.0,a,.7\n1.0,b,.2\n2.0,,.9\n2.0,d,.3\n")
    assert evaluated(capsys, *command)["metrics"][0]["mean"] == 1.0
    scores.write_text("score\n.7\n.2\n.9\n.3\n")
    assert evaluated(capsys, *command)["metrics"][0]["mean"] == 1.0
    letor = tmp_path / "labels.txt"
    letor.write_text("2 qid:1 #docid = a\n0 qid:1 #docid = b\n")
    scores.write_text("docid,score\na,2\nc,1\n")
    message = rejected(capsys, "evaluate", "--labels", str(letor), *command[2:])
    assert "has the document 'c' in row 1" in message


@pytest.mark.fault(
    "sizes of queries (`--group`) that contradict the query ids",
    promise="`DataError`; where they agree, either may be given",
)
@pytest.mark.parametrize("name", ["labels.csv", "labels.txt"])
def test_sizes_beside_ids(tmp_path, name, capsys):
    letor = "1 qid:7 1:2\n0 qid:7 1:2\n2 qid:8 1:2\n"
    table = "label,qid\n1,7\n0,7\n2,8\n"
    files = {name: letor if name.endswith("txt") else table, "scores.txt": "1\n2\n3\n"}
    for file, text in {**files, "sizes.txt": "1\n2\n"}.items():
        (tmp_path / file).write_text(text)
    command = ["--labels", name, "--scores", "scores.txt", "--group", "sizes.txt"]
    command = [str(tmp_path / word) if "." in word else word for word in command]
    message = rejected(capsys, "evaluate", *command)
    assert "has 2 queries that do not match the query ids" in message
    (tmp_path / "sizes.txt").write_text("2\n1\n")
    assert evaluated(capsys, *command)["queries"] == 2


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs names of pipes")
@pytest.mark.fault(
    "a pipe as the file of labels",
    promise="read whole where `--format` says what it is, else `ConfigError`; Parquet is rejected",
)
def test_labels_from_a_pipe(capsys, tmp_path):
    topics = range(3000)  # more than a first look takes out of a pipe
    qrels = "".join(f"{topic} 0 document{topic} 1\n" for topic in topics).encode()
    results = tmp_path / "results.run"
    results.write_text("".join(f"{topic} Q0 document{topic} 1 2.5 r\n" for topic in topics))
    options = ["--scores", str(results), "--metrics", "map"]
    with piped(qrels) as path:
        message = rejected(capsys, "evaluate", "--labels", path, *options)
    assert re.search(
        "is not a regular file.*give --format letor or csv or parquet or trec", message
    )
    with piped(qrels) as path:
        out = evaluated(capsys, "--labels", path, "--format", "trec", *options)
    assert (out["queries"], out["notes"]) == (3000, [])
    with piped(qrels) as path:
        assert "Parquet needs a real file" in rejected(
            capsys, "evaluate", "--labels", path, "--format", "parquet", *options
        )
