"""Scores and levels of a query on their way in and out of a kernel."""

import numpy as np
import pytest

from gbmrank.kernels.layout import GradHess
from gbmrank.kernels.scores import mark_served, read_levels, read_scores, write_scaled


@pytest.mark.parametrize(
    ("labels", "begin", "end", "levels"),
    [
        ([3.0, 3.0, 1.0, 0.0, 0.0], [0, 0, 2, 3, 3], [2, 2, 3, 5, 5], 3),
        ([1.0, 1.0], [0, 0], [2, 2], 1),
        ([4.0, 2.0], [0, 1], [1, 2], 2),
        ([], [], [], 0),
    ],
)
def test_levels_are_found_and_counted(labels, begin, end, levels):
    """The buffers are longer than the query, and hold what was there before."""
    found = read_levels(np.array(labels), np.full(7, 99), np.full(7, 99))
    assert (found.begin.tolist(), found.end.tolist(), found.levels) == (begin, end, levels)


def test_rows_are_read_and_written_in_the_order_of_the_query():
    rows, s = np.array([4, 1, 3]), np.full(5, np.nan)
    read_scores(np.array([0.0, 10.0, 20.0, 30.0, 40.0]), rows, s)
    np.testing.assert_array_equal(s, [40.0, 10.0, 30.0, np.nan, np.nan])
    out = GradHess(np.full(5, 7.0), np.full(5, 8.0))
    write_scaled(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]), 0.5, rows, out)
    assert out.grad.tolist() == [7.0, 1.0, 7.0, 1.5, 0.5]
    assert out.hess.tolist() == [8.0, 2.5, 8.0, 3.0, 2.0]


def test_a_query_is_served_unless_its_value_is_nan():
    values, served = np.full(3, 7.0), np.zeros(3, np.bool_)
    assert mark_served(1, 0.25, values, served)
    assert not mark_served(2, np.nan, values, served)
    assert values.tolist() == [7.0, 0.25, 7.0]
    assert served.tolist() == [False, True, False]
