"""Files, arrays and tables become rows in query order."""

import gzip
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gbmrank.data.readers import FileOptions, Header, read_letor
from gbmrank.demo_data import demo_data
from gbmrank.errors import ConfigError, DataError
from gbmrank.experiments.sources import read_source
from gbmrank.experiments.splits import PARTS

X = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0], [7.0, 8.0]])
Y = [2, 0, 1, 0]
QID = ["b", "a", "b", "a"]
LETOR = "2 qid:7 1:1 2:2\n0 qid:7 1:3\n1 qid:8 1:5 3:9\n"


def check_is_the_small_table(source):
    assert source.ids.tolist() == ["b", "a"]
    assert source.data.labels.tolist() == [2, 1, 0, 0]
    np.testing.assert_array_equal(source.X, X[[0, 2, 1, 3]])


def frame_columns():
    return {"label": Y, "query_id": QID, "one": X[:, 0].tolist(), "two": X[:, 1].tolist()}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_of_every_package_are_read_alike(make):
    source = read_source(make(frame_columns()))
    check_is_the_small_table(source)
    assert source.feature_names == ("one", "two")


def test_arrays_are_put_into_query_order():
    check_is_the_small_table(read_source((X, Y, QID)))


def test_columns_can_be_named_and_features_chosen():
    frame = pd.DataFrame({**frame_columns(), "grade2": [0, 0, 1, 1]})
    source = read_source(frame, FileOptions(columns=Header(label="grade2", features=["two"])))
    assert source.data.labels.tolist() == [0, 1, 0, 1]
    np.testing.assert_array_equal(source.X[:, 0], X[[0, 2, 1, 3], 1])


def test_a_score_column_is_left_out_and_this_is_said():
    source = read_source(pd.DataFrame({**frame_columns(), "score": [1.0, 2, 3, 4]}))
    assert source.feature_names == ("one", "two")
    assert any("suggest scores of a model: 'score'" in note for note in source.notes)


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_columns_that_are_told_by_their_names_alone_are_noted(tmp_path, form):
    frame = pd.DataFrame(
        {**frame_columns(), "id": [1, 2, 3, 4], "Target": Y, "group": [1, 1, 2, 2]}
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    source = read_source(frame if form == "frame" else tmp_path / f"a.{form}")
    assert source.feature_names == ("one", "two")
    found = [note for note in source.notes if "column" in note]
    assert [note.split(" (")[0] for note in found] == [
        "columns left out because their names suggest ids: 'id'",
        "columns left out because their names suggest labels: 'Target'",
        "columns left out because their names suggest query ids: 'group'",
    ]
    named = read_source(frame, FileOptions(columns=Header(features=["one", "Target"])))
    assert named.feature_names == ("one", "Target")
    assert not any("column" in note for note in named.notes)


def test_files_are_put_together_and_filled_up(tmp_path):
    (tmp_path / "a.txt").write_text(LETOR)
    with gzip.open(tmp_path / "b.txt.gz", "wt") as file:
        file.write("1 qid:9 1:4\n0 qid:7 2:1\n")
    source = read_source([tmp_path / "a.txt", tmp_path / "b.txt.gz"])
    assert source.title == "a.txt, b.txt.gz"
    assert source.ids.tolist() == ["7", "8", "9"]
    np.testing.assert_array_equal(source.X, [[1, 2, 0], [3, 0, 0], [0, 1, 0], [5, 0, 9], [4, 0, 0]])
    assert any("'7'" in note and "several files" in note for note in source.notes)


def test_features_of_files_and_arrays_are_chosen_by_name(tmp_path):
    long, short = tmp_path / "long.txt", tmp_path / "short.txt"
    long.write_text(LETOR)
    short.write_text("1 qid:9 1:4\n0 qid:9 1:2\n")
    for data in ([long, short], {"train": long, "test": short}):
        source = read_source(data, FileOptions(columns=Header(features=["3", "1"])))
        assert source.feature_names == ("3", "1")
        assert source.X.tolist() == [[0, 1], [0, 3], [9, 5], [0, 4], [0, 2]]
    with pytest.raises(DataError, match=r"no column .3.; its columns are .1.$"):
        read_source(short, FileOptions(columns=Header(features=["3"])))
    with pytest.raises(ConfigError, match="by name, but arrays have no names"):
        read_source((X, Y, QID), FileOptions(columns=Header(features=["3"])))


def test_lightgbm_files_of_sizes_are_found(tmp_path):
    (tmp_path / "rank.train").write_text("1 1:1\n0 1:2\n2 1:3\n")
    (tmp_path / "rank.train.query").write_text("2\n1\n")
    assert read_source(tmp_path / "rank.train").data.groups.sizes.tolist() == [2, 1]
    (tmp_path / "rank.train.query").write_text("2\n2\n")
    with pytest.raises(DataError, match=r"rank\.train\.query.*sum to 4 .*there are 3 rows"):
        read_source(tmp_path / "rank.train")


def test_sizes_beside_ids_are_noted(tmp_path):
    rows = tmp_path / "rank.txt"
    rows.write_text("1 qid:a 1:2\n0 qid:a 1:1\n1 qid:b 1:2\n0 qid:b 1:1\n")
    assert read_source(rows).notes == ()
    rows.with_name("rank.txt.query").write_text("1\n3\n")
    (note,) = read_source(rows).notes
    assert "has query ids, so rank.txt.query beside it was not read" in note


def test_features_of_one_name_cannot_be_chosen():
    frame = pd.DataFrame(np.zeros((4, 3)), columns=["a", "a", "b"])
    reading = FileOptions(columns=Header(features=["a", "b"]))
    with pytest.raises(ConfigError, match="several features called 'a'; rename them"):
        read_source((frame, Y, QID), reading)


def test_files_of_sizes_with_one_name_in_two_folders(tmp_path):
    paths = [tmp_path / folder / "rank.txt" for folder in ("one", "two")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("1 1:1\n0 1:2\n2 1:3\n")
        path.with_name("rank.txt.query").write_text("2\n1\n")
    source = read_source(paths)
    assert source.title == "one/rank.txt, two/rank.txt"
    assert source.ids.tolist() == [
        *("one/rank.txt:0", "one/rank.txt:1", "two/rank.txt:0", "two/rank.txt:1")
    ]
    assert read_source({"train": paths[0], "test": paths[1]}).leakage() is None
    spelt_otherwise = tmp_path / "two" / ".." / "one" / "rank.txt"
    same = read_source({"train": paths[0], "test": spelt_otherwise})
    assert "2 query ids, such as 'rank.txt:0'" in str(same.leakage())


def test_a_file_without_queries_says_what_is_needed(tmp_path):
    (tmp_path / "rank.train").write_text("1 1:1\n")
    with pytest.raises(DataError, match=r"qid.*rank\.train\.query"):
        read_source(tmp_path / "rank.train")


@pytest.mark.parametrize(
    "options", [FileOptions(columns=Header(label="grade")), FileOptions(delimiter=";")]
)
def test_columns_of_a_letor_file_cannot_be_named(tmp_path, options):
    (tmp_path / "a.txt").write_text(LETOR)
    with pytest.raises(ConfigError, match=r"read as LETOR, which has no columns.*--format csv"):
        read_source(tmp_path / "a.txt", options)


COLUMNS = {"columns": Header(label="one", features=None)}
QUERIES = {"columns": Header(qid="one", features=None)}


@pytest.mark.parametrize(
    ("kind", "option", "words"),
    [
        *(("csv", option, "read as CSV") for option in [{"zero_based": True}]),
        *(("parquet", o, "as Parquet") for o in [{"zero_based": True}, {"delimiter": ";"}]),
        *(
            (kind, option, words)
            for kind, words in (("demo", "the demonstration data"), ("arrays", "arrays"))
            for option in (COLUMNS, QUERIES, {"form": "csv"}, {"delimiter": ";"})
        ),
        ("frame", {"zero_based": True}, "a table in memory"),
        ("parts", COLUMNS, "arrays"),
    ],
)
def test_options_that_would_do_nothing_are_refused(tmp_path, kind, option, words):
    frame = pd.DataFrame(frame_columns())
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    arrays = (X, Y, QID)
    data = {
        "csv": tmp_path / "a.csv",
        "parquet": tmp_path / "a.parquet",
        "demo": None,
        "arrays": arrays,
        "frame": frame,
        "parts": {"train": arrays, "test": arrays},
    }
    with pytest.raises(ConfigError, match=f" has no effect on .*{words}; leave it out"):
        read_source(data[kind], FileOptions(**option))


def test_features_may_come_from_any_iterable_and_once(tmp_path):
    (tmp_path / "a.csv").write_text("label,qid,a,b\n1,1,2,3\n0,1,3,4\n")
    (tmp_path / "a.txt").write_text(LETOR)
    for path, name in ((tmp_path / "a.csv", "b"), (tmp_path / "a.txt", "2")):
        once: Any = (one for one in [name])
        source = read_source(path, FileOptions(columns=Header(features=once)))
        assert source.feature_names == (name,)
        with pytest.raises(ConfigError, match=f"the feature '{name}' is listed twice"):
            read_source(path, FileOptions(columns=Header(features=[name, name])))


def test_csv_files_with_other_columns_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("label,qid,f\n1,1,2\n0,1,3\n")
    (tmp_path / "b.csv").write_text("label,qid,g\n1,2,2\n")
    assert read_source(tmp_path / "a.csv").X.tolist() == [[2.0], [3.0]]
    with pytest.raises(DataError, match="different feature columns: 'f', 'g'"):
        read_source([tmp_path / "a.csv", tmp_path / "b.csv"])


@pytest.mark.parametrize("second", ["2,1", "2", "1", "1,2,3"])
@pytest.mark.parametrize("kind", ["files", "parts", "frames"])
def test_columns_named_by_numbers_are_no_letor_indices(tmp_path, second, kind):
    (tmp_path / "a.csv").write_text("label,qid,1,2\n1,a,10,20\n0,a,11,21\n")
    (tmp_path / "b.csv").write_text(f"label,qid,{second}\n1,b,{second}\n0,b,{second}\n")
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    parts = dict(zip(("train", "test"), paths, strict=True))
    frames = {name: pd.read_csv(path).rename(columns=number) for name, path in parts.items()}
    message = "the same feature columns in another order" if second == "2,1" else "different feat"
    with pytest.raises(DataError, match=message):
        read_source({"files": paths, "parts": parts, "frames": frames}[kind])


def number(name: str) -> "str | int":
    return int(name) if name.isdecimal() else name


def test_letor_files_that_count_otherwise_or_beside_tables(tmp_path):
    (tmp_path / "a.txt").write_text(LETOR)
    (tmp_path / "b.txt").write_text("1 qid:9 0:4\n0 qid:9 0:3 1:1\n")
    (tmp_path / "c.csv").write_text("label,qid,1,2\n1,a,10,20\n0,a,11,21\n")
    one = read_letor(tmp_path / "a.txt")
    other = read_letor(tmp_path / "b.txt", zero_based=True)
    with pytest.raises(DataError, match="train and test have different feature columns: '0'"):
        read_source({"train": one, "test": other})
    with pytest.raises(DataError, match="different feature columns: '3'"):
        read_source([tmp_path / "a.txt", tmp_path / "c.csv"])


def test_the_advice_about_columns_in_another_order_helps():
    frame = pd.DataFrame(frame_columns())
    other = frame[["two", "one", "label", "query_id"]].replace({"query_id": {"a": "c", "b": "d"}})
    advice = r"another order; use the same order, or for files and tables name all"
    with pytest.raises(DataError, match=advice):
        read_source({"train": frame, "test": other})
    named = FileOptions(columns=Header(features=["one", "two"]))
    assert read_source({"train": frame, "test": other}, named).feature_names == ("one", "two")
    arrays = [
        (part[list(part.columns.drop(["label", "query_id"]))], Y, QID) for part in (frame, other)
    ]
    with pytest.raises(DataError, match=advice):  # arrays are not read by name
        read_source(dict(zip(("train", "test"), arrays, strict=True)), named)


def test_columns_whose_names_are_one_text_are_refused():
    frame = pd.DataFrame({**frame_columns(), 1: [1, 2, 3, 4], "1": [5, 6, 7, 8]})
    with pytest.raises(DataError, match="the table' has two columns called '1'; rename one"):
        read_source(frame)
    columns = [pa.array(column) for column in frame_columns().values()]
    table = pa.Table.from_arrays(columns, names=["label", "qid", "x", "x"])
    with pytest.raises(DataError, match="two columns called 'x'"):
        read_source(table)


def test_given_parts_stay_apart_even_with_equal_ids():
    one = (X, Y, QID)
    source = read_source({"train": one, "test": one})
    assert source.parts is not None
    assert [PARTS[number] for number in source.parts] == ["train", "train", "test", "test"]
    assert "2 query ids, such as 'a'" in str(source.leakage())
    other = read_source({"train": one, "valid": (X, Y, ["c"] * 4), "test": (X, Y, ["d"] * 4)})
    assert other.leakage() is None


def test_queries_are_found_in_both_parts_whatever_the_type_of_their_ids():
    x, y = np.arange(4.0)[:, None], [0, 1, 0, 1]
    parts = {"train": (x, y, [0.0, 0.0, 1.5, 1.5]), "test": (x, y, [0, 0, 2, 2])}
    source = read_source(parts)
    assert source.ids.tolist() == ["0", "1.5", "0", "2"]
    assert "1 query ids, such as '0'" in str(source.leakage())


def test_given_parts_must_be_known_and_of_one_width():
    with pytest.raises(ConfigError, match="'dev'"):
        read_source({"train": (X, Y, QID), "dev": (X, Y, QID)})
    with pytest.raises(ConfigError, match="train, test"):
        read_source({"train": (X, Y, QID)})
    with pytest.raises(DataError, match="train 2, test 1"):
        read_source({"train": (X, Y, QID), "test": (X[:, :1], Y, QID)})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((X, Y), "got tuple"),
        (3, "int"),
        ((X[:, :0], Y, QID), r"0 feature\(s\)"),
        ((X[:0], [], []), r"0 sample\(s\)"),
        ((X[:3], Y, QID), "3 rows of features and 4 labels"),
        ((X[:, 0], Y, QID), "rows and columns"),
        (([["x", "y"]] * 4, Y, QID), "must contain numbers, got <U1"),
        ((X + 1j, Y, QID), "real numbers"),
        ((X.astype("M8[s]"), Y, QID), "got datetime64"),
        (pd.DataFrame({"label": Y, "f": Y}), "no column of query ids"),
        (pl.LazyFrame(frame_columns()), r"collect\(\) .* got LazyFrame"),
    ],
)
def test_what_cannot_be_used_is_refused(data, words):
    with pytest.raises(DataError, match=words):
        read_source(data)


def test_the_digest_sees_every_column():
    base = read_source((X, Y, QID))
    assert base.digest() == read_source((X.copy(), Y, QID)).digest()
    changed = X.copy()
    changed[0, 0] += 1e-12
    others = [
        read_source((changed, Y, QID)),
        read_source((X, [2, 0, 1, 1], QID)),
        read_source((X, Y, ["b", "c", "b", "c"])),
        read_source({"train": (X, Y, QID), "test": (X, Y, QID)}),
        read_source((X.astype(np.float32), Y, QID)),
    ]
    assert len({base.digest(), *(other.digest() for other in others)}) == 6


def test_nothing_given_is_the_demonstration():
    source = read_source(None)
    data = demo_data()
    assert source.gain is not None
    np.testing.assert_array_equal(source.gain, data.expected_gain)
    assert source.n_queries == 2000
