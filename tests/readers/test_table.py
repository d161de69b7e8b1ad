"""CSV and Parquet tables."""

import csv
import gzip
import io
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbmrank.data.readers import Header, Limits, read_csv, read_parquet
from gbmrank.errors import ConfigError, DataError, LimitError, MissingPackageError, ParseError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.csv"


def test_usual_names_are_found(file):
    file.write_text("Query_ID,grade,Prediction,docno,f\na,2,0.5,d1,7\nb,0,-1e3,d2,\n")
    got = read_csv(file, Header(features=None))
    assert got.qid is not None
    assert got.ids is not None
    assert got.qid.tolist() == ["a", "b"]
    assert got.ids.tolist() == ["d1", "d2"]
    np.testing.assert_array_equal(got.labels, [2, 0])
    np.testing.assert_array_equal(got.scores, [0.5, -1000])
    np.testing.assert_array_equal(got.X, [[7], [math.nan]])
    assert got.feature_names == ("f",)


def test_columns_can_be_named(file):
    file.write_text("a;b;c;label\n1;2;x;9\n")
    got = read_csv(file, Header(label="a", qid="c", score="b", features=["label"]), delimiter=";")
    np.testing.assert_array_equal(got.labels, [1])
    np.testing.assert_array_equal(got.X, [[9]])


def test_the_end_of_a_name_tells_the_delimiter(tmp_path):
    for name, delimiter in (("a.tsv.csv", ","), ("a.csv.tsv.gz", "\t"), ("A.TSV", "\t")):
        path = tmp_path / name
        path.write_text(delimiter.join(["label", "qid"]) + "\n" + delimiter.join("12") + "\n")
        assert read_csv(path).labels.tolist() == [1.0]


def test_tabs_gzip_bom_and_windows(tmp_path):
    path = tmp_path / "rows.tsv.gz"
    path.write_bytes(gzip.compress('\ufefflabel\tqid\r\n1\t"a\tb"\r\n\r\n'.encode()))
    got = read_csv(path)
    assert got.qid is not None
    assert got.qid.tolist() == ["a\tb"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,qid\n1,a\n1\n", r"rows\.csv:3:1: 1 cells, but the header has 2"),
        ("\n \nlabel,qid\n1,a\n1\n", r"rows\.csv:5:1: 1 cells, but the header has 2"),
        ("label,qid\n1,a,b\n", r"rows\.csv:2:1: 3 cells, but the header has 2"),
        ("label,qid\n1,a\nx,a\n", r"rows\.csv:3:'label': expected a finite number, got 'x'"),
        ("label,qid\nnan,a\n", r"rows\.csv:2:'label': expected a finite number, got 'nan'"),
        ("label,qid\n,a\n", r"rows\.csv:2:'label': expected a finite number, got ''"),
        ("label,qid\n1,\n", r"rows\.csv:2:'qid': expected an id .*got ''"),
        ("label,qid\n1,a\n0,nan\n", r"rows\.csv:3:'qid': expected an id other than .*got 'nan'"),
        ("label,qid\n1,NULL\n0,a\n", r"rows\.csv:2:'qid': expected an id .*got 'NULL'"),
        ("label,qid,score\n1,a,inf\n", r"rows\.csv:2:'score': expected a finite number, got 'inf'"),
        ('label,qid\n1,"a\n', r"rows\.csv:\d:1: unexpected end of data"),
        ("label,qid\n1,a\udcff\n", r"rows\.csv:2:4: byte 0xff is not UTF-8"),
        ("label,qid\n1,a\n0,a\0\n", r"rows\.csv:3:4: a NUL byte"),
    ],
)
def test_bad_rows_are_named_with_their_place(file, text, message):
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ParseError, match=message):
        read_csv(file)


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("", Header(), "is empty; the first line must name the columns"),
        ("label,qid\n", Header(), "has no rows"),
        ("a,b\n1,2\n", Header(), r"no label column.*its columns are 'a', 'b'.*--label-column"),
        ("label,qid\n1,2\n", Header(label="lable"), "no column 'lable'; did you mean 'label'"),
        ("label,label\n1,2\n", Header(), "two columns called 'label'"),
        ("label,f\n1,2\n", Header(features=["g"]), "no column 'g'; its columns are 'f'"),
    ],
)
def test_tables_that_do_not_fit(file, text, columns, message):
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        read_csv(file, columns)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": "qid", "qid": "qid"}, "'qid' is named both as label and as qid"),
        ({"qid": "a", "score": "a"}, "'a' is named both as qid and as score"),
        ({"label": 7}, "must be strings, got 7; pass '7'"),
        ({"features": ["a", 1]}, "must be strings, got 1; pass '1'"),
        ({"features": ["a", "b", "a"]}, "the feature 'a' is listed twice"),
        ({"features": "ab"}, r"features must be a list of names, got 'ab'; pass \['ab'\]"),
    ],
)
def test_names_of_columns_that_make_no_sense(columns, message):
    with pytest.raises(ConfigError, match=message):
        Header(**columns)


@pytest.mark.parametrize("name", ["label", "qid"])
def test_labels_and_ids_are_no_features(file, name):
    file.write_text("label,qid,score,a\n1,x,2,3\n")
    with pytest.raises(ConfigError, match=f"'{name}'"):
        read_csv(file, Header(features=["a", name]))
    np.testing.assert_array_equal(read_csv(file, Header(features=["score", "a"])).X, [[2.0, 3.0]])


def test_a_column_that_is_named_is_not_found_for_another_part(file):
    file.write_text("label,relevance,qid\n1,2,x\n")
    got = read_csv(file, Header(score="label"))
    np.testing.assert_array_equal([got.labels, got.scores], [[2.0], [1.0]])


@pytest.mark.parametrize("text", ["NA", "N/A", "NULL", "nan"])
def test_texts_that_are_no_ids_are_told(tmp_path, text):
    path = tmp_path / "rows.csv"
    path.write_text(f"label,qid\n1,a\n0,{text}\n")
    words = f"other than NULL, NA, N/A, NaN, got '{text}'"
    with pytest.raises(ParseError, match=words):
        read_csv(path)


def test_whole_numbers_with_too_many_digits_in_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"label": [0, 2**53 + 1], "qid": [1, 1], "a": [0, 2**53 + 1]}), path)
    with pytest.raises(DataError, match=r"1 of 2 values of 'label'"):
        read_parquet(path)


def test_limits(file):
    file.write_text("label,qid,f,g\n" + "1,a,1,2\n" * 10)
    with pytest.raises(LimitError, match="raise max_bytes"):
        read_csv(file, limits=Limits(max_bytes=20))
    with pytest.raises(LimitError, match=r"rows\.csv:1: the line is longer than 5"):
        read_csv(file, limits=Limits(max_line=5))
    with pytest.raises(LimitError, match="more than 10 cells"):
        read_csv(file, Header(features=None), limits=Limits(max_cells=10))
    file.write_text('label,qid\n1,"' + "x\n" * 100_000)
    with pytest.raises(LimitError, match="is a quote missing"):
        read_csv(file)


texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0\r"),
    min_size=1,
    max_size=8,
).filter(lambda text: text.upper() not in ("NULL", "NA", "N/A", "NAN"))


@given(
    st.lists(
        st.tuples(
            texts,
            st.floats(allow_nan=False, allow_infinity=False),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        min_size=1,
        max_size=10,
    )
)
def test_what_is_written_is_read(tmp_path_factory, rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["qid", "label", "score"])
    writer.writerows([(qid, repr(label), repr(score)) for qid, label, score in rows])
    path = tmp_path_factory.getbasetemp() / "round.csv"
    path.write_bytes(text.getvalue().encode())
    got = read_csv(path)
    assert got.qid is not None
    assert got.qid.tolist() == [qid for qid, _, _ in rows]
    np.testing.assert_array_equal(got.labels, [label for _, label, _ in rows])
    np.testing.assert_array_equal(got.scores, [score for _, _, score in rows])


def save_parquet(path: Path, columns: dict) -> Path:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), path)
    return path


def test_parquet(tmp_path):
    columns = {"qid": [7, 7, 8], "label": [1, 0, 2], "score": [0.5, 0.25, 1.0], "f": [1.0, None, 3]}
    path = save_parquet(tmp_path / "rows.parquet", columns)
    got = read_parquet(path, Header(features=None))
    assert got.qid is not None
    assert got.qid.tolist() == ["7", "7", "8"]
    np.testing.assert_array_equal(got.labels, [1, 0, 2])
    np.testing.assert_array_equal(got.scores, [0.5, 0.25, 1.0])
    np.testing.assert_array_equal(got.X, [[1], [math.nan], [3]])


def test_parquet_has_whole_numbers_as_ids_whatever_their_type(tmp_path):
    columns = {"label": [1.0, 0.0], "qid": [7.0, 7.5], "docid": [1, None]}
    got = read_parquet(save_parquet(tmp_path / "rows.parquet", columns))
    assert got.qid is not None
    assert got.ids is not None
    assert got.qid.tolist() == ["7", "7.5"]
    assert got.ids.tolist() == ["1", ""]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": [1.0, None], "qid": ["a", "b"]}, "'label' has nan in row 1"),
        (
            {"label": ["x", "y"], "qid": ["a", "b"]},
            "'label' must contain numbers; it has type string",
        ),
        ({"label": [1.0, 2.0], "qid": ["a", None]}, "row 1 has no query id in 'qid'"),
        ({"label": [1.0, 2.0], "qid": [7, None]}, "row 1 has no query id in 'qid'"),
        ({"label": [1.0, 2.0], "qid": [7.0, math.nan]}, "row 1 has no query id in 'qid'"),
        ({"label": [1.0, 2.0], "qid": ["", "a"]}, "row 0 has no query id in 'qid'"),
    ],
)
def test_parquet_with_bad_columns(tmp_path, columns, message):
    with pytest.raises(ParseError, match=message):
        read_parquet(save_parquet(tmp_path / "rows.parquet", columns))


def test_parquet_that_is_none(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    path.write_text("label,qid\n")
    with pytest.raises(ParseError, match="not a readable Parquet file"):
        read_parquet(path)


def test_parquet_without_its_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'gbmrank\[parquet\]'"):
        read_parquet(tmp_path / "rows.parquet")
