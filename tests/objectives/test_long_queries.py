"""Which queries are summed in linear time, on queries short enough for plain Python."""

import itertools
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import RankingData
from gbmrank.kernels.layout import GradHess

FROM, PER_RANGE = 20, 10.0  # engines serve 20 items, and ten per unit of the range of scores
# Items and range of the scores of each query.
QUERIES = [
    (40, 1.0),
    (19, 1.0),  # too short
    (20, 2.0),  # just long enough, but for two levels
    (20, 2.125),  # too wide
    (40, 2.0),  # just long enough for two levels
    (40, 2.125),  # too wide for two levels
    (40, 1.0),
    (40, 1.0),  # with a score that is not a number
    (40, 1.0),  # one class only
    (40, 0.5),  # of three levels
    (20, 1.0),  # one class only, just long enough
    (40, 1.0),  # nothing relevant
    (40, 1.0),  # one relevant item
    (40, 1.0),  # of no weight
    (40, 1.0),
]
SIZES = [size for size, _ in QUERIES]
STARTS = np.cumsum([0, *SIZES])
SERVED = {
    "pairwise(target=identity)": {0, 2, 4, 5, 6, 8, 9, 10, 12, 14},
    "comparison": {0, 4, 6, 8, 10, 11, 12, 14},
    "push(threshold=1, p=3)": {0, 2, 4, 5, 6, 9, 12, 14},
}


def query_data() -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    labels, scores = (np.arange(STARTS[-1]) % 3 == 0).astype(float), np.empty(STARTS[-1])
    labels[STARTS[8] : STARTS[9]] = 1.0
    labels[STARTS[10] : STARTS[11]] = 1.0
    labels[STARTS[11] : STARTS[13]] = 0.0
    labels[STARTS[12] + 7] = 1.0
    labels[STARTS[9] : STARTS[10]] = np.arange(40) % 3
    for q, (size, width) in enumerate(QUERIES):
        part = rng.random(size) * width
        part[:2] = 0.0, width
        scores[STARTS[q] : STARTS[q + 1]] = part
    return labels, scores


@pytest.mark.parametrize("spec", SERVED)
def test_queries_are_served_by_length_range_and_levels(spec):
    labels, scores = query_data()
    weight = np.linspace(0.5, 2.0, len(SIZES))
    weight[13] = 0.0
    data = RankingData.from_arrays(labels, group=SIZES, weight=weight)
    exact: Any = gbmrank.objective(spec, engine="pairs").bind(data)
    expected, losses = exact.gradients(scores), exact.losses(scores)
    scores[STARTS[7] + 3] = np.nan
    bound: Any = gbmrank.objective(spec, engine="linear").bind(data)
    engines = bound.engines._replace(linear_from=FROM, linear_range=PER_RANGE)
    served = np.zeros(len(SIZES), np.bool_)
    values, out = np.full(len(SIZES), 77.0), GradHess(*np.full((2, len(scores)), 88.0))
    bound._sum_long(bound.long, scores, engines, served, values, out)
    assert set(np.flatnonzero(served).tolist()) == SERVED[spec]
    for q, (first, last) in enumerate(itertools.pairwise(STARTS.tolist())):
        if q in SERVED[spec]:
            assert values[q] == pytest.approx(losses[q], rel=1e-9, abs=1e-14)
            for found, whole in zip(out, expected, strict=True):
                part = whole[first:last]
                limit = 1e-9 * np.abs(part).max()
                assert np.abs(found[first:last] - part).max() <= limit
        else:
            assert values[q] == 77.0
            assert all((column[first:last] == 88.0).all() for column in out)
