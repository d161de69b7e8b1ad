"""LETOR text: what is read, what is rejected and where."""

import gzip
import math
import os
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbmrank.data.readers import Limits, RankingFile, letor, read_letor
from gbmrank.errors import DataError, LimitError, ParseError

DATA = os.environ.get("GBMRANK_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="GBMRANK_DATA names no folder of real data")


def read(path: Path, text: str | bytes, **options) -> RankingFile:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_letor(path, **options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.txt"


def test_everything_of_a_line_is_read(file):
    got = read(
        file, "2 qid:10 1:0.5 3:-1e-3 #docid = GX-1 inc = 1\n0 qid:10 2:NULL #other\n1 qid:a 1:2\n"
    )
    np.testing.assert_array_equal(got.labels, [2.0, 0.0, 1.0])
    assert got.qid is not None
    assert got.ids is not None
    assert got.X is not None
    assert got.qid.tolist() == ["10", "10", "a"]
    assert got.ids.tolist() == ["GX-1", "", ""]
    np.testing.assert_array_equal(got.X, [[0.5, 0, -1e-3], [0, math.nan, 0], [2, 0, 0]])
    assert got.feature_names == ("1", "2", "3")


PLAIN = "1 qid:1 1:2 2:3\n0 qid:1 2:5\n"


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + PLAIN,
        PLAIN.replace("\n", "\r\n"),
        "\ufeff# made by a tool\r\n" + PLAIN.replace("\n", "\r\n"),
        PLAIN.rstrip("\n"),
        PLAIN.replace(" ", "\t"),
        "\n\n" + PLAIN.replace("\n", " \n\n  \n"),
        "# a comment with qid:9 1:1\n" + PLAIN,
        PLAIN.replace("\n", "#\n"),
        PLAIN.replace("1:2", "1:+2.0e0").replace("2:5", "002:5."),
    ],
    ids=["bom", "crlf", "both", "no end", "tabs", "blanks", "comment", "hash", "spellings"],
)
def test_the_same_rows_in_another_dress(file, text):
    got = read(file, text)
    np.testing.assert_array_equal(got.labels, [1.0, 0.0])
    np.testing.assert_array_equal(got.X, [[2, 3], [0, 5]])
    assert got.qid is not None
    assert got.qid.tolist() == ["1", "1"]


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("x qid:1 1:2", 1, "must begin with its label, a finite number; got 'x'"),
        ("nan qid:1 1:2", 1, "a finite number; got 'nan'"),
        ("inf qid:1 1:2", 1, "a finite number; got 'inf'"),
        ("1_0 qid:1 1:2", 1, "a finite number; got '1_0'"),
        ("1:2 qid:1", 1, "must begin with its label"),
        ("1 1:2 2:3", 2, "expected qid:<query> after the label"),
        ("1", 2, "expected qid:<query> after the label"),
        ("1 qid: 1:2", 7, "every row needs a query id, got ''"),
        ("1 1:2 qid:3", 2, "expected qid:<query> after the label"),
        ("1 qid:1 1:2 qid:3", 13, "'qid'; qid comes second"),
        (
            "1 qid:1 0:2",
            9,
            "feature index 0, but indices start at 1.*zero_based=True.*--zero-based",
        ),
        ("1 qid:1 -1:2", 9, "a feature index must be a whole number.*got '-1'"),
        ("1 qid:1 1.5:2", 9, "a whole number.*got '1.5'"),
        ("1 qid:1 9999999999:2", 9, "a whole number up to 999,999,999"),
        ("1 qid:1 ²:2", 9, "a whole number"),
        ("1 qid:1 1:2 1:3", 13, "feature index 1 is given twice; indices must increase"),
        ("1 qid:1 3:2 2:3", 13, "feature index 2 comes after 3; indices must increase"),
        ("1 qid:1 1:", 9, "expected index:value, got '1:'"),
        ("1 qid:1 :1", 9, "expected index:value, got ':1'"),
        ("1 qid:1 1", 9, "expected index:value, got '1'"),
        ("1 qid:1 1 :2", 9, "expected index:value"),
        ("1 qid:1 1:2:3", 11, "a feature value must be a finite number.*got '2:3'"),
        ("1 qid:1 1:inf", 11, "a feature value must be a finite number, or NULL or nan"),
        ("1 qid:1 1:1e999", 11, "a feature value must be a finite number"),
        ("1 qid:1 1:abc", 11, "got 'abc'"),
        ("1 qid:1 1:1e", 11, "got '1e'"),
        ("1 qid:1 1:1-2", 11, "got '1-2'"),
        ("1 qid:1 1:0x10", 11, "got '0x10'"),
        ("1 qid:1 1:2\0", 12, "a NUL byte"),
        ("1 qid:nan 1:2", 7, "every row needs a query id, got 'nan'"),
        ("1 qid:NULL 1:2", 7, "every row needs a query id"),
    ],
)
@pytest.mark.parametrize("before", [0, 3])
def test_a_bad_line_is_named_with_its_place(file, line, column, message, before):
    rows = "1 qid:1 1:2\n" * before
    with pytest.raises(ParseError, match=rf"rows\.txt:{before + 1}:{column}: .*{message}"):
        read(file, rows + line + "\n1 qid:1 1:2\n")


def test_text_that_is_no_text(file):
    with pytest.raises(ParseError, match=r"rows\.txt:2:7: byte 0xff is not UTF-8"):
        read(file, b"1 qid:1 1:2\n1 qid:\xff 1:2\n")


def test_control_characters_of_a_file_do_not_reach_the_message(file):
    with pytest.raises(ParseError) as caught:
        read(file, "\x1b[31mred qid:1 1:2\n")
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_a_file_without_rows(file, text):
    with pytest.raises(DataError, match="has no line with a label"):
        read(file, text)


def test_files_that_count_from_zero(file):
    got = read(file, "1 qid:1 0:2 2:3\n", zero_based=True)
    np.testing.assert_array_equal(got.X, [[2, 0, 3]])
    assert got.feature_names == ("0", "1", "2")


def test_files_without_qid_on_request(file):
    got = read(file, "1 1:2\n0 1:3\n", need_qid=False)
    assert got.qid is None
    with pytest.raises(ParseError, match=r":2:3: .*qid"):
        read(file, "1 1:2\n0 qid:1 1:3\n", need_qid=False)
    with pytest.raises(ParseError, match=r":2:2: expected qid"):
        read(file, "1 qid:1 1:2\n0 1:3\n", need_qid=False)


def test_labels_alone(file):
    got = read(file, "1 qid:1 1:1e\n2 qid:2 1:x\n", features=False)
    assert got.X is None
    assert got.feature_names == ()
    np.testing.assert_array_equal(got.labels, [1.0, 2.0])
    with pytest.raises(ParseError, match=r":1:13: feature index 1 is given twice"):
        read(file, "1 qid:1 1:x 1:2\n", features=False)


# --- hostile files ---------------------------------------------------------------------------


def test_a_compressed_file_that_is_cut_off(file):
    whole = gzip.compress(b"1 qid:1 1:2\n" * 10_000)
    with pytest.raises(ParseError, match=r"rows\.txt:\d+:1: "):
        read(file, whole[: len(whole) // 2])


def test_a_compressed_file_with_a_wrong_byte(file):
    broken = bytearray(gzip.compress(os.urandom(1000).hex().encode()))
    broken[len(broken) // 2] ^= 0xFF
    with pytest.raises(ParseError):
        read(file, bytes(broken))


def test_a_bomb(file):
    bomb = gzip.compress(b"1 qid:1 1:2\n" * 1_000_000)
    with pytest.raises(LimitError, match=r"more than 1,000,000 bytes.*raise max_bytes"):
        read(file, bomb, limits=Limits(max_bytes=1_000_000))


@pytest.mark.parametrize("block", [1 << 10, 1 << 23])
@pytest.mark.parametrize("end", ["", "\n1 qid:1 1:2\n"])
def test_a_giant_line(file, block, end):
    line = "1 qid:1 1:2 #" + "x" * 200_000
    with pytest.raises(LimitError, match=r"rows\.txt:2: .*100,000 bytes"):
        read(file, "1 qid:1 1:2\n" + line + end, limits=Limits(max_line=100_000, block=block))


def test_a_giant_index(file):
    with pytest.raises(LimitError, match=r"2 rows.*999,999,999.*features=False"):
        read(file, "1 qid:1 999999999:1\n1 qid:1 1:1\n")
    assert read(file, "1 qid:1 999999999:1\n", features=False).n_rows == 1


@pytest.mark.parametrize("line", ["1 qid:{} 1:2\n", "1 qid:1 1:2 #docid = {}\n"])
def test_a_giant_id(file, line):
    text = line.format("a" * 1000) + "1 qid:1 1:2\n" * 999
    with pytest.raises(LimitError, match="1,000 ids of up to 1,000 characters"):
        read(file, text, limits=Limits(max_cells=10_000))


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_letor(tmp_path / "nothing.txt")


# --- both ways of reading agree --------------------------------------------------------------

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.just(math.nan)
rows = st.lists(
    st.tuples(
        st.floats(-1e6, 1e6) | st.integers(0, 4).map(float),
        st.text("abcXYZ019_-é", min_size=1, max_size=5),
        st.dictionaries(st.integers(1, 30), numbers, max_size=8),
        st.text("abc019-", max_size=6),
    ),
    min_size=1,
    max_size=20,
)


def written(data) -> str:
    lines = []
    for label, qid, features, docid in data:
        cells = [
            f"{index}:{'NULL' if math.isnan(value) else repr(value)}"
            for index, value in sorted(features.items())
        ]
        comment = f" #docid = {docid}" if docid else ""
        lines.append(" ".join([repr(label), f"qid:{qid}", *cells]) + comment)
    return "\n".join(lines) + "\n"


@given(rows, st.sampled_from([40, 300, 1 << 20]), st.booleans())
def test_what_is_written_is_read(tmp_path_factory, data, block, compressed):
    path = tmp_path_factory.getbasetemp() / "round.txt"
    text = written(data).encode()
    got = read(path, gzip.compress(text) if compressed else text, limits=Limits(block=block))
    width = max((max(features, default=0) for _, _, features, _ in data), default=0)
    want = np.zeros((len(data), width))
    for row, (_, _, features, _) in enumerate(data):
        for index, value in features.items():
            want[row, index - 1] = value
    np.testing.assert_array_equal(got.labels, [label for label, *_ in data])
    np.testing.assert_array_equal(got.X, want)
    assert got.qid is not None
    assert got.qid.tolist() == [qid for _, qid, _, _ in data]
    docids = [docid for *_, docid in data]
    assert (got.ids.tolist() if got.ids is not None else [""] * len(data)) == docids


@given(st.text("01 .:#-eqidNUL\t\n+9", max_size=60), st.booleans(), st.booleans())
def test_the_fast_way_accepts_and_gives_what_the_careful_one_does(
    tmp_path_factory, text, need_qid, features
):
    path = tmp_path_factory.getbasetemp() / "noise.txt"
    path.write_text("1 qid:1 1:2\n" + text if need_qid else text, newline="")
    outcomes = []
    for fast in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not fast:
                patch.setattr(letor, "_read_plain", Mock(side_effect=ValueError))
            outcomes.append(outcome(path, need_qid=need_qid, features=features))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("tail", ["2:3", "5", "NULL", ".", "x 2:3", "\t2:", ":1"])
def test_nothing_may_follow_a_missing_value(file, tail):
    with pytest.raises(ParseError, match=r"rows\.txt:2:(9|11|16): "):
        read(file, f"1 qid:1 1:NULL\t2:NULL\n1 qid:1 1:NULL{tail}\n")


def outcome(path: Path, **options):
    try:
        got = read_letor(path, **options)
    except (DataError, LimitError) as error:
        return str(error)
    columns = (got.labels, got.qid, got.X, got.ids)
    return [repr(None if column is None else column.tolist()) for column in columns]


def test_the_fast_way_is_taken_for_plain_files(file, monkeypatch):
    monkeypatch.setattr(letor, "_read_carefully", lambda *_: pytest.fail("read line by line"))
    got = read(file, "1 qid:1 1:0.5 2:NULL 7:1e-3 #docid = a\r\n# x\n0 qid:2 1:1\n")
    assert got.n_rows == 2


# --- real data -------------------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize("part", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["min", "norm"])
def test_ohsumed(part, kind, monkeypatch):
    path = Path(str(DATA)) / "ohsumed" / f"{kind}.S{part}.txt.gz"
    got = read_letor(path)
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    want = [line.split("#")[0].split() for line in lines]
    np.testing.assert_array_equal(got.labels, [float(words[0]) for words in want])
    np.testing.assert_array_equal(
        got.X,
        [
            [math.nan if w.endswith("NULL") else float(w.partition(":")[2]) for w in words[2:]]
            for words in want
        ],
    )
    assert got.qid is not None
    assert got.ids is not None
    assert got.qid.tolist() == [words[1][4:] for words in want]
    assert all(got.ids)


@needs_data
def test_lightgbm_example():
    from sklearn.datasets import load_svmlight_file

    path = str(Path(str(DATA)) / "lgbm_rank" / "rank.train.gz")
    got = read_letor(path, zero_based=True, need_qid=False)
    features, labels = load_svmlight_file(path, n_features=301, zero_based=True)
    np.testing.assert_array_equal(got.X, features.toarray())
    np.testing.assert_array_equal(got.labels, labels)
