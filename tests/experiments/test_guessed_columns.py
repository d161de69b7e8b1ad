"""Which columns of a table are label, query id and features, if nobody says so."""

import gzip

import numpy as np
import pandas as pd
import pytest

from gbmrank.data.readers import FileOptions, Header, guess_format
from gbmrank.errors import ConfigError, DataError
from gbmrank.experiments.sources import read_source

ROWS = 60


def export(**more):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, ROWS)
    plain = {"qid": np.repeat(np.arange(ROWS // 10), 10), "label": label}
    return pd.DataFrame({**plain, **more, "f0": rng.normal(size=ROWS), "f1": rng.normal(size=ROWS)})


def read(data, **columns):
    return read_source(data, FileOptions(columns=Header(**{"features": None, **columns})))


@pytest.fixture(params=["csv", "parquet", "frame"])
def stored(request, tmp_path):
    def store(frame):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.{request.param}"
        if request.param == "frame":
            return frame
        frame.to_csv(path, index=False) if request.param == "csv" else frame.to_parquet(path)
        return path

    return store


def test_features_of_search_engines_are_features(stored):
    numbers = np.random.default_rng(2).normal(size=ROWS)
    named = dict.fromkeys(("bm25_score", "vector_score", "rating"), numbers)
    source = read(stored(export(**named)))
    assert source.feature_names == (*named, "f0", "f1")
    assert not any("left out" in note for note in source.notes)


def test_columns_that_hold_the_answer_are_no_features(stored):
    label = export()["label"]
    ids = np.random.default_rng(1).permutation(ROWS)
    suspects = {"query": 1, "relevance": label, "click": label > 1, "prodScore": label}
    suspects |= {"old_pred": label, "doc-id": ids, "user_id": ids, "Unnamed: 0": ids}
    source = read(stored(export(**suspects)))
    assert source.feature_names == ("f0", "f1")
    assert source.roles == {"label": "label", "qid": "qid"}
    assert source.described() == "label label, query id qid, 2 features: f0, f1"
    assert all(any(repr(name) in note for note in source.notes) for name in suspects)
    everything = read(stored(export(**suspects)), features=["*"]).feature_names
    assert everything == (*suspects, "f0", "f1")


def test_a_column_that_numbers_the_rows_is_no_feature(stored):
    source = read(stored(export(line=np.arange(ROWS) + 7)))
    assert source.feature_names == ("f0", "f1")
    assert any("number the rows: 'line'" in note for note in source.notes)
    assert read(stored(export(line=np.arange(ROWS) + 7)), features=["*"]).X.shape[1] == 3


def test_features_are_chosen_and_dropped_by_patterns(stored):
    data = stored(export(bm25_title=1.5, bm25_body=2.5, price=3.5))
    assert read(data, features=["bm25_*", "f1"]).feature_names == ("bm25_title", "bm25_body", "f1")
    assert read(data, drop=["bm25_*", "f1"]).feature_names == ("price", "f0")
    assert read(data, features=["*"], drop=["f?"]).X.shape[1] == 3
    with pytest.raises(DataError, match="no column 'prize'; did you mean 'price'"):
        read(data, drop=["prize"])
    with pytest.raises(DataError, match=r"no column 'x\*'"):
        read(data, features=["x*"])


def test_a_dropped_column_is_no_label_and_a_pattern_keeps_it():
    data = export(relevance=np.arange(ROWS) % 2)
    assert read(data, drop=["label"]).roles["label"] == "relevance"
    assert read(data, drop=["*1*", "l*"]).roles["label"] == "label"


def test_letor_indices_are_chosen_by_patterns(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("1 qid:1 1:5 2:6 11:7\n0 qid:1 1:1 2:2 11:3\n")
    assert read(path, features=["1*"]).feature_names == ("1", "10", "11")
    assert read(path, drop=["1*"]).feature_names == (*map(str, range(2, 10)),)


def test_text_is_categories_if_few_else_left_out(stored):
    kinds = np.array(["red", "blue", "green"])[np.arange(ROWS) % 3]
    titles = np.array([f"title {at}" for at in range(ROWS)])
    source = read(stored(export(colour=kinds, heading=titles)))
    assert source.feature_names == ("colour", "f0", "f1")
    assert source.categories[0].values == ("blue", "green", "red")
    assert any("text of many values, or no numbers: 'heading'" in note for note in source.notes)
    with pytest.raises(DataError, match="heading"):
        read(stored(export(heading=titles)), features=["heading"])


def test_text_that_is_left_out_of_one_part_is_left_out_of_all(stored):
    few, many = np.array(["a", "b"])[np.arange(ROWS) % 2], [f"t{at}" for at in range(ROWS)]
    parts = {"train": stored(export(kind=many)), "test": stored(export(kind=few))}
    assert read(parts).feature_names == ("f0", "f1")


@pytest.mark.parametrize("bad", ["x", "1,5"])
def test_a_broken_number_is_no_text(tmp_path, bad):
    path = tmp_path / "rows.csv"
    rows = [f"{at % 2};{at // 10};{0.5 * at if bad == 'x' and at else bad}" for at in range(ROWS)]
    path.write_text("\n".join(["label;qid;f", *rows]))
    with pytest.raises(DataError, match=f"rows.csv:2:'f': expected a number.*got '{bad}'"):
        read(path)


@pytest.mark.parametrize("mark", ["\t", ";", "|", ","])
@pytest.mark.parametrize("name", ["rows.txt.gz", "rows.txt", "rows.csv"])
def test_the_delimiter_is_that_of_the_first_line(tmp_path, mark, name):
    text = export().to_csv(sep=mark, index=False).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert guess_format(path) == "csv"
    assert read(path).feature_names == ("f0", "f1")


@pytest.mark.parametrize("mark", ["\t", ","])
def test_files_without_a_header_number_their_columns(tmp_path, mark):
    path, frame = tmp_path / "rows.txt", export()
    path.write_text(
        frame[["label", "qid", "f0", "f1"]].assign(g=0).to_csv(sep=mark, index=False, header=False)
    )
    with pytest.raises(DataError, match=r"numbered from 0 to 4: give --label-column 0"):
        read(path)
    source = read(path, label="0", qid="1")
    assert source.feature_names == ("2", "3", "4")
    assert source.data.groups.n_rows == ROWS


def test_columns_named_by_numbers_are_a_header(tmp_path):
    path, frame = tmp_path / "rows.csv", export()
    pd.DataFrame(frame.to_numpy()).to_csv(path, index=False)
    assert read(path, label="1", qid="0").data.groups.n_rows == ROWS


def test_a_named_column_is_not_dropped_in_silence():
    with pytest.raises((ConfigError, DataError), match="label"):
        read(export(), label="label", drop=["label"])
