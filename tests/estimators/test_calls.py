"""What a training costs in calls of our functions, beside the kernels."""

import sys
from collections import Counter

import pytest

import gbmrank
from gbmrank.demo_data import demo_data

ROOM = gbmrank.__path__[0]


def calls(backend, rounds):
    """Count the calls of our functions in a fit, by qualified name."""
    data = demo_data(n_queries=60, seed=0)
    found: Counter[str] = Counter()
    ranker = gbmrank.GBMRanker(
        "pairwise(target=ndcg@10)", backend=backend, n_estimators=rounds, n_jobs=1
    )

    def count(frame, event, _argument):
        if event == "call" and frame.f_code.co_filename.startswith(ROOM):
            found[frame.f_code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        ranker.fit(data.X, data.labels, qid=data.qid)
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_fit_takes_few_calls_and_one_gradient_per_round(backend):
    calls(backend, 1)  # what is imported and compiled once
    three, thirteen = calls(backend, 3), calls(backend, 13)
    assert three.total() <= 500
    assert thirteen.total() - three.total() <= 240
    assert three["BoundPairs.fill"] == 3
