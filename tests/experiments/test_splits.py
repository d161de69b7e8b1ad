"""Queries are cut so that no run sees what it is judged on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbmrank.errors import DataError, ParameterError
from gbmrank.experiments.sources import check_split, cut, judged, read_source


@given(st.integers(6, 60), st.integers(2, 5), st.floats(0.01, 0.99), st.integers(0, 9))
def test_every_query_is_judged_once_and_never_learned_from(n, folds, share, seed):
    splits = [cut(n, None, folds=folds, share=share, at=(seed, fold)) for fold in range(folds)]
    assert sorted(np.concatenate([split.test for split in splits])) == list(range(n))
    for split in splits:
        assert sorted(np.concatenate(split)) == list(range(n))
        assert all(len(part) for part in split)


def test_seeds_change_what_is_watched_and_not_what_is_judged():
    first, second = (cut(50, None, folds=5, share=0.25, at=(seed, 2)) for seed in (0, 1))
    np.testing.assert_array_equal(first.test, second.test)
    assert first.valid.tolist() != second.valid.tolist()
    assert len(first.valid) == round(0.25 * 40)


def test_given_parts_stay_as_they_are():
    parts = np.array([0, 0, 1, 2, 0, 2])
    split = cut(6, parts, folds=1, share=0.5, at=(0, 0))
    assert [part.tolist() for part in split] == [[0, 1, 4], [2], [3, 5]]
    assert judged(6, parts).tolist() == [3, 5]


def test_without_a_given_valid_some_of_train_are_watched():
    parts = np.array([0, 0, 0, 0, 2])
    split = cut(5, parts, folds=1, share=0.25, at=(0, 0))
    assert len(split.valid) == 1
    assert sorted([*split.train, *split.valid]) == [0, 1, 2, 3]
    assert split.test.tolist() == [4]


def test_too_few_queries_are_refused():
    def source(n):
        return read_source((np.zeros((n, 1)), np.zeros(n), np.arange(n)))

    check_split(source(3), 3)
    with pytest.raises(DataError, match="2 queries cannot be cut into 2 folds"):
        check_split(source(2), 2)
    with pytest.raises(DataError, match="9 queries cannot be cut into 10 folds"):
        check_split(source(9), 10)
    with pytest.raises(ParameterError, match="at least 2, got 1"):
        check_split(source(9), 1)
