"""Groups and RankingData: every kind of column, every kind of mistake."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbmrank.data import Groups, RankingData, Subset, as_floats
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.errors import DataError, GroupError, WeightError

LABELS = [2, 0, 1, 1, 0]

COLUMNS = {
    "list": LABELS,
    "tuple": tuple(LABELS),
    "float64": np.array(LABELS, np.float64),
    "float32": np.array(LABELS, np.float32),
    "float16": np.array(LABELS, np.float16),
    "int32": np.array(LABELS, np.int32),
    "uint8": np.array(LABELS, np.uint8),
    "strided": np.repeat(np.array(LABELS, np.float64), 2)[::2],
    "column": np.array(LABELS)[:, None],
    "row": np.array(LABELS)[None, :],
    "pandas": pd.Series(LABELS, index=[9, 9, 1, 2, 3]),
    "pandas Int64": pd.Series(LABELS, dtype="Int64"),
    "pandas Float32": pd.Series(LABELS, dtype="Float32"),
    "pandas pyarrow": pd.Series(LABELS, dtype="int64[pyarrow]"),
    "pandas category": pd.Series(LABELS, dtype="category"),
    "pandas frame": pd.DataFrame({"y": LABELS}),
    "polars": pl.Series(LABELS),
    "polars UInt8": pl.Series(LABELS, dtype=pl.UInt8),
    "pyarrow": pa.array(LABELS),
    "pyarrow float32": pa.array(LABELS, type=pa.float32()),
    "pyarrow chunked": pa.chunked_array([LABELS[:2], LABELS[2:]]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_kind_of_column_gives_the_same_labels(kind):
    data = RankingData.from_arrays(COLUMNS[kind], group=[2, 3])
    assert data.labels.dtype == np.float64
    np.testing.assert_array_equal(data.labels, LABELS)


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_kind_of_column_gives_the_same_sizes_ids_and_weights(kind):
    column = COLUMNS[kind]
    np.testing.assert_array_equal(Groups.from_qid(column, 5).sizes, [1, 2, 2])
    weight = RankingData.from_arrays(LABELS, group=[2, 3], weight=column).weight
    np.testing.assert_array_equal(weight, LABELS)


def test_booleans_are_labels():
    data = RankingData.from_arrays([True, False])
    np.testing.assert_array_equal(data.labels, [1.0, 0.0])
    np.testing.assert_array_equal(
        RankingData.from_arrays(pl.Series([True, False])).labels, [1.0, 0.0]
    )


def test_small_integers_do_not_wrap_around():
    labels = np.array([0, 255, 200], np.uint8)
    data = RankingData.from_arrays(labels)
    assert data.labels[0] - data.labels[1] == -255.0


STRING_IDS = {
    "list": ["b", "a", "b"],
    "object": np.array(["b", "a", "b"], object),
    "pandas": pd.Series(["b", "a", "b"]),
    "pandas string": pd.Series(["b", "a", "b"], dtype="string"),
    "pandas category": pd.Series(["b", "a", "b"], dtype="category"),
    "polars": pl.Series(["b", "a", "b"]),
    "polars categorical": pl.Series(["b", "a", "b"], dtype=pl.Categorical),
    "pyarrow": pa.array(["b", "a", "b"]),
    "pyarrow dictionary": pa.array(["b", "a", "b"]).dictionary_encode(),
    "pyarrow chunked": pa.chunked_array([["b"], ["a", "b"]]),
    "dates": np.array(["2020-02-02", "2020-01-01", "2020-02-02"], "M8[D]"),
    "floats": [0.5, 0.25, 0.5],
}


@pytest.mark.parametrize("kind", STRING_IDS)
def test_ids_of_any_type_group_rows_in_order_of_first_appearance(kind):
    groups = Groups.from_qid(STRING_IDS[kind], 3)
    np.testing.assert_array_equal(groups.offsets, [0, 2, 3])
    assert groups.row_order is not None
    np.testing.assert_array_equal(groups.row_order, [0, 2, 1])


MISSING_IDS = {
    "None": ["a", None, "a"],
    "nan": [1.0, np.nan, 1.0],
    "pandas": pd.Series(["a", None, "a"]),
    "pandas Int64": pd.Series([1, None, 1], dtype="Int64"),
    "pandas string": pd.Series(["a", pd.NA, "a"], dtype="string"),
    "pandas category": pd.Series(["a", None, "a"], dtype="category"),
    "polars": pl.Series(["a", None, "a"]),
    "polars ints": pl.Series([1, None, 1]),
    "pyarrow": pa.array(["a", None, "a"]),
    "pyarrow ints": pa.array([1, None, 1]),
    "dates": np.array(["2020-01-01", "NaT", "2020-01-01"], "M8[D]"),
    "masked": np.ma.array([1, 2, 1], mask=[False, True, False]),
}


@pytest.mark.parametrize("kind", MISSING_IDS)
def test_a_missing_id_is_rejected_with_its_row(kind):
    message = "qid is missing in 1 rows, first in row 1; every row needs a query id"
    with pytest.raises(GroupError, match=re.escape(message)):
        Groups.from_qid(MISSING_IDS[kind], 3)


@pytest.mark.parametrize("mixed", [[1, "1", 2], [1, 1.0, 2]])
def test_ids_that_would_be_merged_or_split_as_texts_are_rejected(mixed):
    with pytest.raises(GroupError, match="qid mixes types"):
        Groups.from_qid(np.array(mixed, object), 3)


def test_ids_of_several_types_that_stay_apart_are_taken():
    assert Groups.from_qid(np.array([1, "a", 1], object), 3).sizes.tolist() == [2, 1]


MISSING_LABELS = {
    "nan": [1.0, np.nan, 0.0],
    "inf": [1.0, np.inf, 0.0],
    "None": [1.0, None, 0.0],
    "pandas": pd.Series([1, None, 0]),
    "pandas Int64": pd.Series([1, None, 0], dtype="Int64"),
    "polars": pl.Series([1, None, 0]),
    "pyarrow": pa.array([1, None, 0]),
    "pyarrow chunked": pa.chunked_array([[1, None], [0]]),
    "masked": np.ma.array([1.0, 2.0, 0.0], mask=[False, True, False]),
}


@pytest.mark.parametrize("kind", MISSING_LABELS)
def test_a_missing_label_is_rejected_with_count_row_and_query(kind):
    with pytest.raises(DataError) as caught:
        RankingData.from_arrays(MISSING_LABELS[kind], qid=["a", "b", "b"])
    message = str(caught.value)
    assert "1 of 3 labels are NaN or infinite" in message
    assert "row 1, query 'b'" in message
    assert "drop or repair" in message


def test_the_row_of_a_bad_label_is_the_callers_row():
    with pytest.raises(DataError, match=r"2 of 4 labels .* nan in row 3, query 7"):
        RankingData.from_arrays([1.0, 0.0, np.inf, np.nan], qid=[7, 8, 8, 7])


@pytest.mark.parametrize("large", [1e308, -1e151])
def test_labels_whose_sums_overflow_are_rejected_with_row_and_query(large):
    words = r"2 of 4 labels are beyond 1e\+150, .* in row 3, query 7; divide the labels"
    with pytest.raises(DataError, match=words):
        RankingData.from_arrays([1.0, 0.0, large, large], qid=[7, 8, 8, 7])
    assert RankingData.from_arrays([1e150, -1e150]).labels.tolist() == [1e150, -1e150]


def test_bad_scores_name_row_and_query():
    data = RankingData.from_arrays([1, 0, 0], group=[1, 2])
    with pytest.raises(DataError, match=r"1 of 3 scores .* -inf in row 2, query 1"):
        data.read_scores([0.0, 0.0, -np.inf])
    with pytest.raises(DataError, match=r"scores has 2 rows, labels has 3"):
        data.read_scores([0.0, 0.0])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["high", "low"], "labels must be one column of numbers, got list: could not convert"),
        (np.ones((2, 2)), r"labels must be one column, got an array of shape (2, 2)"),
        (np.array([1 + 2j]), "got ndarray of complex128"),
        (np.array(["2020-01-01"], "M8[D]"), "got ndarray of datetime64[D]"),
        ([[1], [2, 3]], "labels must be one column of numbers, got list"),
        (3.0, "labels must be one column, got an array of shape ()"),
        ({"y": 1}, "labels must be one column of numbers, got dict"),
        (pd.Series(["x", "y"], dtype="category"), "got Series of category"),
    ],
)
def test_what_is_not_a_column_of_numbers_is_rejected(labels, message):
    with pytest.raises(DataError, match=re.escape(message)):
        RankingData.from_arrays(labels)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([2, 0, 3], "group size 0 at index 1: every query needs at least one row"),
        ([-1, 6], "group size -1 at index 0"),
        ([2, 2], "group sizes sum to 4 in 2 queries, but there are 5 rows"),
        ([2, 4], "group sizes sum to 6 in 2 queries, but there are 5 rows"),
        ([7, 7, 8, 8, 8], "looks like query ids: use qid="),
        ([0, 0, 1, 1, 1], "looks like query ids: use qid="),
        (["a", "a", "b", "b", "b"], "for query ids use qid="),
        ([2.5, 2.5], "whole numbers, got 2.5 at index 0"),
        ([5, np.nan], "whole numbers, got nan at index 1"),
        ([np.inf], "whole numbers, got inf at index 0"),
        ([], "group sizes sum to 0 in 0 queries, but there are 5 rows"),
    ],
)
def test_wrong_sizes_are_rejected(sizes, message):
    with pytest.raises(GroupError, match=re.escape(message)):
        Groups.from_sizes(sizes, 5)


@pytest.mark.parametrize(
    ("qid", "message"),
    [
        ([1, 1], "qid has 2 entries, but there are 3 rows"),
        (np.ones((3, 2)), "qid must be one column, got an array of shape (3, 2)"),
        ([[1], [2, 3], [4]], "qid must be one column, got list"),
        (5, "qid must be one column, got an array of shape ()"),
    ],
)
def test_wrong_ids_are_rejected(qid, message):
    with pytest.raises(GroupError, match=re.escape(message)):
        Groups.from_qid(qid, 3)


def test_sizes_and_ids_together_are_rejected():
    with pytest.raises(GroupError, match=re.escape("group= (sizes) or qid= (one id per row)")):
        RankingData.from_arrays([1, 0], group=[2], qid=[0, 0])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, 1.0, 1.0], "weight has 3 entries; give one per query (2) or one per row (5)"),
        ([1.0, -1.0], "at least 0; got -1.0 at index 1"),
        ([np.nan, 1.0], "at least 0; got nan at index 0"),
        ([1.0, 1.0, 1.0, np.inf, 1.0], "at least 0; got inf at index 3"),
        ([0.0, 0.0], "all weights are zero"),
        ([1e308, 1e308], "at most 1e+150, or their sums overflow; got 1e+308 at index 0"),
    ],
)
def test_wrong_weights_are_rejected(weight, message):
    with pytest.raises(WeightError, match=re.escape(message)):
        RankingData.from_arrays(LABELS, group=[2, 3], weight=weight)


def test_weights_per_query_and_per_row_mean_the_same():
    per_query = RankingData.from_arrays(LABELS, group=[2, 3], weight=[1.5, 0.0])
    per_row = RankingData.from_arrays(LABELS, group=[2, 3], weight=[1.5, 1.5, 0, 0, 0])
    assert per_query.weight is not None
    assert per_row.weight is not None
    np.testing.assert_array_equal(per_query.weight, per_row.weight)
    np.testing.assert_array_equal(per_row.query_weight(), [1.5, 0.0])


def test_weights_follow_unsorted_rows_and_queries():
    by_row = RankingData.from_arrays([1, 2, 3], qid=["b", "a", "b"], weight=[5, 6, 5])
    assert by_row.weight is not None
    np.testing.assert_array_equal(by_row.weight, [5, 5, 6])
    by_query = RankingData.from_arrays([1, 2, 3], qid=["b", "a", "b"], weight=[5, 6])
    assert by_query.weight is not None
    np.testing.assert_array_equal(by_query.weight, [5, 5, 6])


def test_different_weights_in_a_query_name_the_query():
    data = RankingData.from_arrays(LABELS, qid=list("xxyyy"), weight=[1, 1, 2, 3, 2])
    with pytest.raises(WeightError, match=r"query 'y'.*pairwise"):
        data.query_weight()


def test_nothing_given_is_one_query_and_no_rows_are_no_query():
    np.testing.assert_array_equal(RankingData.from_arrays([1, 0, 2]).groups.offsets, [0, 3])
    empty = RankingData.from_arrays([], weight=[])
    assert (empty.groups.n_queries, empty.groups.n_rows) == (0, 0)
    assert RankingData.from_arrays([], qid=[]).groups.n_queries == 0
    assert RankingData.from_arrays([], group=[]).groups.n_queries == 0


def test_one_row_queries_are_kept():
    data = RankingData.from_arrays([1, 0, 2], group=[1, 1, 1], weight=[1, 2, 3])
    np.testing.assert_array_equal(data.groups.sizes, [1, 1, 1])
    np.testing.assert_array_equal(data.query_weight(), [1, 2, 3])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_unsorted_ids_are_arranged_and_restored(ids):
    groups = Groups.from_qid(ids, len(ids))
    rows = np.arange(len(ids))
    arranged = groups.arrange(np.array(ids))
    for q, (begin, end) in enumerate(zip(groups.offsets[:-1], groups.offsets[1:], strict=True)):
        assert set(arranged[begin:end]) == {list(dict.fromkeys(ids))[q]}
        assert (np.diff(groups.arrange(rows)[begin:end]) > 0).all()  # stable
    np.testing.assert_array_equal(groups.restore(groups.arrange(rows)), rows)
    assert groups.sizes.sum() == len(ids)
    assert groups.query_of(len(ids) - 1) == list(dict.fromkeys(ids))[-1]


def test_sorted_ids_need_no_order():
    groups = Groups.from_qid([5, 5, 2, 9], 4)
    assert groups.row_order is None
    np.testing.assert_array_equal(groups.offsets, [0, 2, 3, 4])
    assert groups.query_of(2) == 2


def test_ids_that_come_back_belong_to_the_first_query():
    groups = Groups.from_qid([5, 2, 5], 3)
    np.testing.assert_array_equal(groups.arrange(np.array([10, 20, 30])), [10, 30, 20])


@pytest.mark.parametrize("qid", [None, [1, 2, 1, 2, 1]])
def test_the_callers_arrays_are_neither_changed_nor_locked(qid):
    labels, weight, scores = np.array(LABELS, float), np.ones(5), np.arange(5.0)
    ids = None if qid is None else np.array(qid)
    data = RankingData.from_arrays(labels, qid=ids, weight=weight)
    data.read_scores(scores)
    np.testing.assert_array_equal(labels, LABELS)
    np.testing.assert_array_equal(scores, np.arange(5.0))
    labels[0], weight[0], scores[0] = 99.0, 99.0, 99.0  # still the caller's own
    assert 99.0 not in data.labels
    assert data.weight is not None
    assert 99.0 not in data.weight


def test_checked_data_is_frozen():
    data = RankingData.from_arrays(LABELS, weight=np.ones(5))
    with pytest.raises(ValueError, match="read-only"):
        data.labels[0] = 3.0
    assert data.weight is not None
    with pytest.raises(ValueError, match="read-only"):
        data.weight[0] = 3.0
    with pytest.raises(AttributeError):
        data.labels = data.labels  # type: ignore[misc]


def test_data_survives_pickling():
    data = pickle.loads(pickle.dumps(RankingData.from_arrays(LABELS, qid=list("abbab"))))  # noqa: S301
    np.testing.assert_array_equal(data.groups.sizes, [2, 3])
    np.testing.assert_array_equal(data.groups.restore(data.labels), LABELS)


def test_columns_follow_the_rows():
    data = RankingData.from_arrays(
        LABELS, qid=list("abbab"), columns={"position": [1, 2, 3, 4, np.nan], "price": range(5)}
    )
    assert list(data.columns) == ["position", "price"]
    np.testing.assert_array_equal(data.columns["position"], [1, 4, 2, 3, np.nan])
    np.testing.assert_array_equal(data.groups.restore(data.columns["price"]), range(5))
    with pytest.raises(ValueError, match="read-only"):
        data.columns["price"][0] = 9.0
    more = data.with_columns({"price": [5, 6, 7, 8, 9]})
    np.testing.assert_array_equal(more.columns["price"], [5, 8, 6, 7, 9])
    np.testing.assert_array_equal(data.columns["price"], [0, 3, 1, 2, 4])
    assert RankingData.from_arrays(LABELS).columns == {}


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1, 2], "position has 2 entries, but there are 5 rows"),
        (["a"] * 5, "position must be one column of numbers"),
        ([1, 2, 3, 4, np.inf], "1 of 5 values of position are beyond 1e+150"),
        ([1, 2, 3, 4, 2**53 + 1], "more digits than float64"),
    ],
)
def test_wrong_columns_are_rejected(column, message):
    with pytest.raises(DataError, match=re.escape(message)):
        RankingData.from_arrays(LABELS, group=[2, 3], columns={"position": column})


def test_columns_survive_pickling():
    data = RankingData.from_arrays(LABELS, qid=list("abbab"), columns={"position": range(5)})
    again = pickle.loads(pickle.dumps(data))  # noqa: S301
    np.testing.assert_array_equal(again.columns["position"], [0, 3, 1, 2, 4])


def test_rows_are_taken_with_all_that_belongs_to_them():
    graphs = PreferenceGraphs.from_edges([0, 2], [1, 4], group=[2, 3])
    data = RankingData.from_arrays(
        LABELS, qid=[7, 7, 8, 8, 8], weight=range(5), preferences=graphs, columns={"c": range(5)}
    )
    part = data.take([0, 2, 4])
    assert part.labels.tolist() == [2, 1, 0]
    assert part.groups.sizes.tolist() == [1, 2]
    assert part.groups.ids is not None
    assert part.groups.ids.tolist() == [7, 8]
    assert part.weight is not None
    assert part.weight.tolist() == [0, 2, 4]
    assert part.columns["c"].tolist() == [0, 2, 4]
    assert part.preferences is not None
    assert part.preferences.net_degree().tolist() == [0, 1, -1]
    with pytest.raises(DataError, match="there is no row 5"):
        data.take([0, 5])


def test_columns_of_a_whole_data_set_are_cut_to_a_subset():
    whole = RankingData.from_arrays([2, 0, 1], group=[1, 2])
    part = replace(whole, subset=Subset(np.array([1, 3, 4]), 6))
    for column in (range(6), [1, 3, 4]):
        assert part.with_columns({"c": column}).columns["c"].tolist() == [1, 3, 4]
    with pytest.raises(DataError, match="c has 5 entries, but there are 3 rows"):
        part.with_columns({"c": range(5)})


def test_as_floats_is_contiguous_and_leaves_float64_alone():
    column = np.arange(4.0)
    assert as_floats(column, "scores") is column
    assert as_floats(column[::2], "scores").flags.c_contiguous


def test_read_only_columns_are_copied_because_kernels_are_compiled_per_kind_of_array():
    column = np.arange(4.0)
    column.flags.writeable = False
    copied = as_floats(column, "scores")
    assert copied.flags.writeable
    assert not np.shares_memory(copied, column)
    assert not column.flags.writeable
