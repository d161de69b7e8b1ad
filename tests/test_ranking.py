"""Sorting within queries, some queries at a time."""

import numpy as np

from gbmrank import ranking
from gbmrank.data import Groups


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
