"""Levels of a query."""

import numpy as np
import pytest

from gbmrank.kernels.scores import read_levels


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
