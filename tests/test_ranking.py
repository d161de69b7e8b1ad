"""Gains, and sorting within queries, some queries at a time."""

import mpmath
import numpy as np
import pytest

import gbmrank
from gbmrank import ranking
from gbmrank.data import Groups
from gbmrank.ranking import exp2_gains


@pytest.mark.parametrize("label", [1e-300, 1e-16, 1e-9, 0.01, 0.4999, 0.5, 1.0, 3.5, 31.0])
def test_gains_keep_the_digits_of_small_labels(label):
    wanted = float(mpmath.expm1(mpmath.mpf(label) * mpmath.log(2)))
    assert exp2_gains(np.array([label]))[0] == pytest.approx(wanted, rel=1e-15)


def test_whole_labels_have_whole_gains_and_tiny_ones_an_order():
    np.testing.assert_array_equal(exp2_gains(np.arange(32.0)), 2.0 ** np.arange(32) - 1.0)
    assert gbmrank.metric("ndcg").score([3e-16, 1e-16, 0.0], [0.0, 1.0, 2.0]) == pytest.approx(
        (1.0 / np.log2(3) + 3.0 / 2.0) / (3.0 + 1.0 / np.log2(3)), rel=1e-12
    )


def test_rows_are_sorted_the_same_whatever_is_sorted_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    sizes = np.array([1, 7, 3, 30, 1, 1, 12, 5])
    groups = Groups.from_sizes(sizes, int(sizes.sum()))
    values = rng.integers(0, 4, groups.n_rows).astype(float)
    whole = np.lexsort((-values, groups.spread(np.arange(len(sizes)))))
    for at_once in (1, 2, 8, 31, 59, 60, 1000):
        monkeypatch.setattr(ranking, "_ROWS_AT_ONCE", at_once)
        np.testing.assert_array_equal(ranking.rows_by_value(values, groups), whole)
        discount = 1.0 / np.arange(1.0, 31.0)
        best = [
            np.sort(values[begin:end])[::-1] @ discount[: end - begin]
            for begin, end in zip(groups.offsets[:-1], groups.offsets[1:], strict=True)
        ]
        np.testing.assert_allclose(ranking.best_sums(values, discount, groups), best, rtol=1e-14)
    assert ranking.rows_by_value(np.empty(0), Groups.single(0)).shape == (0,)
