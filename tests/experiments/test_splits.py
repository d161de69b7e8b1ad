"""Scheme are cut so that no run sees what it is judged on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbmrank.errors import DataError, ParameterError
from gbmrank.experiments.sources import read_source
from gbmrank.experiments.splits import Scheme, check_split, cut, judged, read_times


@given(st.integers(6, 60), st.integers(2, 5), st.floats(0.01, 0.99), st.integers(0, 9))
def test_every_query_is_judged_once_and_never_learned_from(n, folds, share, seed):
    splits = [cut(Scheme(n), folds=folds, share=share, at=(seed, fold)) for fold in range(folds)]
    assert sorted(np.concatenate([split.test for split in splits])) == list(range(n))
    for split in splits:
        assert sorted(np.concatenate(split)) == list(range(n))
        assert all(len(part) for part in split)


def test_seeds_change_what_is_watched_and_not_what_is_judged():
    first, second = (cut(Scheme(50), folds=5, share=0.25, at=(seed, 2)) for seed in (0, 1))
    np.testing.assert_array_equal(first.test, second.test)
    assert first.valid.tolist() != second.valid.tolist()
    assert len(first.valid) == round(0.25 * 40)


def test_given_parts_stay_as_they_are():
    parts = np.array([0, 0, 1, 2, 0, 2])
    split = cut(Scheme(6, parts), folds=1, share=0.5, at=(0, 0))
    assert [part.tolist() for part in split] == [[0, 1, 4], [2], [3, 5]]
    assert judged(Scheme(6, parts), 1).tolist() == [3, 5]


def test_without_a_given_valid_some_of_train_are_watched():
    parts = np.array([0, 0, 0, 0, 2])
    split = cut(Scheme(5, parts), folds=1, share=0.25, at=(0, 0))
    assert len(split.valid) == 1
    assert sorted([*split.train, *split.valid]) == [0, 1, 2, 3]
    assert split.test.tolist() == [4]


def test_too_few_queries_are_refused():
    def source(n):
        return read_source((np.zeros((n, 1)), np.zeros(n), np.arange(n))).scheme

    check_split(source(3), 3)
    with pytest.raises(DataError, match="2 queries cannot be split into 2 folds"):
        check_split(source(2), 2)
    with pytest.raises(DataError, match="9 queries cannot be split into 10 folds"):
        check_split(source(9), 10)
    with pytest.raises(ParameterError, match="at least 2, got 1"):
        check_split(source(9), 1)


@given(st.lists(st.integers(0, 12), min_size=4, max_size=60), st.integers(1, 5), st.data())
def test_what_is_judged_is_later_than_all_that_is_learned(times, folds, data):
    scheme = Scheme(len(times), times=np.array(times))
    ordered = np.sort(times)
    if len(np.unique(ordered[ordered > ordered[1]])) < folds:
        with pytest.raises(DataError, match=f"{len(times)} queries of {len(set(times))} different"):
            check_split(scheme, folds)
        return
    check_split(scheme, folds)
    share = data.draw(st.floats(0.01, 0.99))
    splits = [cut(scheme, folds=folds, share=share, at=(0, fold)) for fold in range(folds)]
    tested = np.concatenate([split.test for split in splits])
    np.testing.assert_array_equal(np.sort(tested), judged(scheme, folds))
    seen: set[int] = set()
    for split in splits:
        assert all(len(part) for part in split)
        learned = np.concatenate([split.train, split.valid])
        moments = np.array(times)
        assert moments[learned].max() < moments[split.test].min()
        if len(np.unique(moments[learned])) > 1:
            assert moments[split.train].max() < moments[split.valid].min()
        assert seen <= set(learned.tolist())  # the window expands
        seen = set(learned.tolist())
    assert len(tested) + (len(splits[0].train) + len(splits[0].valid)) == len(times)


def test_times_are_numbers_or_dates():
    expected = np.array(["2024-03-01", "2024-02-29T23:30"], dtype="M8[us]")
    for times in (
        expected.astype("M8[ns]"),
        np.array(["2024-03-01", "2024-02-29T23:30:00"]),
        np.array(["2024-03-01T00:00:00Z", "2024-03-01T00:30:00+01:00"]),
        expected.astype(object),
    ):
        np.testing.assert_array_equal(read_times(times, "time"), expected)
    assert read_times(np.array(["10", "9"]), "time").tolist() == [10.0, 9.0]
    assert read_times(np.array([3, 1]), "time").tolist() == [3.0, 1.0]
    with pytest.raises(DataError, match="'soon'"):
        read_times(np.array(["2024-03-01", "soon"]), "time")
    for missing in (["2024-03-01", ""], [1.0, np.nan], np.array(["2024-03-01", "NaT"], "M8[s]")):
        with pytest.raises(DataError, match="1 rows, first in row 1"):
            read_times(np.asarray(missing), "time")
