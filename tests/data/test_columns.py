"""Ids stay apart in a column, and are found again in another one; numbers keep their digits."""

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gbmrank.data import Groups
from gbmrank.data.columns import as_floats, read_ids, shared_ids
from gbmrank.errors import DataError, GroupError

LARGE = 2**63


@pytest.mark.parametrize(
    "ids",
    [
        [7, LARGE + 1, LARGE + 2, LARGE + 3],
        (7, LARGE + 1, LARGE + 2),
        [[7], [LARGE + 1], [LARGE + 2]],
        [-1, LARGE + 1, LARGE + 2],
        [np.int64(7), np.uint64(LARGE + 1), np.uint64(LARGE + 2)],
        [2**64 + 1, 2**64 + 2],
        pd.Series([7, LARGE + 1, LARGE + 2], dtype=object),
    ],
)
def test_large_numbers_stay_apart(ids):
    read = read_ids(ids)
    assert len(set(read.tolist())) == len(ids)
    assert [int(one) for one in read] == [int(one) for one in np.ravel(np.array(ids, object))]


def test_lists_are_read_as_columns_of_objects_are():
    with pytest.raises(GroupError, match=r"qid mixes types \(int, str\)"):
        read_ids([1, "1", 2])
    with pytest.raises(GroupError, match=r"qid mixes types \(float, int, str\)"):
        read_ids([1, "1", 1.0])  # two texts and two values, but not the same pairs
    with pytest.raises(GroupError, match="missing in 1 rows, first in row 1"):
        read_ids(["a", float("nan"), "b"])
    with pytest.raises(GroupError, match="missing in 1 rows, first in row 0"):
        read_ids([float("nan"), LARGE + 1])
    assert read_ids([1, "a", 1]).tolist() == ["1", "a", "1"]
    assert read_ids(["a", np.str_("b")]).tolist() == ["a", "b"]


def test_texts_of_numpy_that_are_missing():
    kind = getattr(np.dtypes, "StringDType", None)
    if kind is None:
        pytest.skip("numpy before 2.0 has no texts of variable length")
    assert read_ids(np.array(["a", "bc", "a"], kind())).tolist() == ["a", "bc", "a"]
    with pytest.raises(GroupError, match="missing in 1 rows, first in row 1"):
        read_ids(np.array(["a", np.nan], kind(na_object=np.nan)))


def test_bytes_that_are_no_text_stay_apart():
    read = read_ids(np.array([b"\xff", b"\xfe", b"a"], object))
    assert len(set(read.tolist())) == 3
    with pytest.raises(GroupError, match="qid mixes types"):
        read_ids([b"a", "a"])


DAYS = np.array(["2020-01-01", "2020-01-02"], "M8[D]")


@pytest.mark.parametrize(
    ("own", "others", "shared"),
    [
        ([0.0, 1.0], ["0", "7"], [0.0]),
        (["0", "7"], [0.0, 1.0], ["0"]),
        ([0.0, 1.5], ["0.0", "1.5"], [0.0, 1.5]),
        ([0, 1], ["0.0", "7"], [0]),
        ([0, 1], [1.0, 2.5], [1]),
        ([1, 2], np.array([2, 3], np.uint64), [2]),
        ([2**53 + 1, 1], [2.0**53, np.inf], []),
        ([1, 1, 2], ["1"], [1]),
        (["007"], [7], []),
        (DAYS, [0, 18262], []),
        (DAYS, ["2020-01-01", "a"], [DAYS[0].item()]),
        (DAYS, DAYS.astype("M8[ns]"), None),
        (np.array([b"\xff", b"a"]), ["a", "b"], [b"a"]),
        (["a"], [1.0, np.inf], []),
    ],
)
def test_ids_are_found_whatever_their_types(own, others, shared):
    found = shared_ids(np.asarray(own), np.asarray(others))
    assert len(found) == 2 if shared is None else found == shared


@pytest.mark.parametrize(
    "column",
    [
        [1700000000000000000, 1700000000000000100],
        np.array([0, 2**64 - 1], np.uint64),
        np.array([-(2**53) + 1, -(2**63) + 1]),
        pd.Series([0, 2**53 + 1]),
        pl.Series([0, 2**53 + 1]),
        pa.array([0, 2**53 + 1]),
        np.ma.array([0, 2**53 + 1]),
        np.ma.array([0, 2**53 + 1], mask=[True, False]),
        np.array([0, 2**53 + 1], object),
        [2**64, 2**64 + 1],
        (-1, 2**63 + 1),
        [0.5, 2**53 + 1],
        [[-1], [2**63 + 1]],
        pd.Series([0, 2**53 + 1], dtype="Int64"),
    ],
)
def test_whole_numbers_that_would_lose_digits_are_rejected(column):
    words = r"1 of 2 scores are whole numbers with more digits .* in row 1\."
    with pytest.raises(DataError, match=words):
        as_floats(column, "scores", exact=True)
    assert len(as_floats(column, "column 'a'")) == 2


@pytest.mark.parametrize(
    "column",
    [
        [2**63 + 2**30, -1],
        [2**64, 2.0**70],
        [Decimal("0.1"), 2**60],
        [2**53, -(2**53)],
        [2**60, 3 * 2**61, -(2**63)],
        np.array([2**63], np.uint64),
        [1e300],
        [],
    ],
)
def test_whole_numbers_that_float64_has_are_taken(column):
    assert as_floats(column, "labels", exact=True).tolist() == [float(one) for one in column]


@pytest.mark.parametrize("column", [pl.LazyFrame({"a": [1, 0]}), pl.col("a")])
def test_lazy_columns_are_rejected(column):
    with pytest.raises(DataError, match=r"labels must be one column.* (LazyFrame|Expr)"):
        as_floats(column, "labels")
    with pytest.raises(GroupError, match="qid must be one column"):
        read_ids(column)


def test_masked_entries_are_missing():
    assert np.isnan(as_floats(np.ma.array([1, 2], mask=[False, True]), "labels", exact=True)[1])


HOUR = timedelta(hours=1)
UTC = timezone.utc  # noqa: UP017  (Python 3.10 has no datetime.UTC)


@pytest.mark.parametrize(
    "ids",
    [
        [Decimal("1"), Decimal("1.0"), Decimal("2")],
        [
            datetime(2020, 1, 1, 12, tzinfo=UTC),
            datetime(2020, 1, 1, 13, tzinfo=timezone(HOUR)),
            datetime(2021, 1, 1, tzinfo=UTC),
        ],
        np.array([0.0, -0.0, 1.0], object),
    ],
    ids=["decimals", "times", "zeros"],
)
def test_equal_ids_of_any_type_are_one_query(ids):
    assert Groups.from_qid(ids, 3).sizes.tolist() == [2, 1]


@pytest.mark.parametrize(
    "ids",
    [
        [1.0, 1, 2, "2"],
        np.array([1.0, 1, 2, "2"], object),
        np.array([True, 1, 0, 0], object),
        [Fraction(1, 2), 0.5, "a", "a"],
    ],
)
def test_mixtures_that_cannot_be_told_apart_are_rejected(ids):
    with pytest.raises(GroupError, match="qid mixes types"):
        Groups.from_qid(ids, 4)
