"""Options of a comparison: numbers of numpy are numbers, and what is no option is named."""

import numpy as np
import pytest

import gbmrank
from gbmrank.demo_data import demo_data
from gbmrank.errors import ParameterError

DATA = demo_data(30, items=6)
QUICK = {"folds": 2, "rounds": 3, "isolate": False, "metrics": "ndcg@3", "backends": ["lightgbm"]}


def compare(**options):
    return gbmrank.compare(DATA, **{**QUICK, "objectives": ["ranknet"], **options})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"folds": "2"}, "folds must be a whole number from 1, got '2'"),
        ({"seeds": None}, "seeds must be a number of seeds or a list"),
        ({"early_stopping": "3"}, r"early_stopping .* must be .* '3'"),
        ({"early_stopping": 2.5}, "early_stopping .* must be a whole number from 1, got 2.5"),
        ({"valid_share": None}, "valid_share must be .*got None"),
        ({"margin": None}, "margin must be .*got None"),
        ({"margin": float("nan")}, "margin must be .*got nan"),
        ({"margin": float("inf")}, "margin must be .*got inf"),
        ({"jobs": "2"}, "jobs must be a whole number from 1"),
    ],
)
def test_what_is_no_option_is_named_before_any_training(options, words):
    with pytest.raises(ParameterError, match=words):
        compare(**options)


def test_numbers_of_numpy_are_numbers():
    params = {"num_leaves": np.int64(7), "learning_rate": np.float32(0.25)}
    counts = {"folds": np.int64(2), "rounds": np.int32(3), "early_stopping": np.int8(2)}
    found = compare(seeds=np.array([0, 3]), margin=np.float32(0.5), params=params, **counts)
    assert [run.seed for run in found.results.runs] == [0, 0, 3, 3]
    assert not found.results.failed
    assert found.results.runs[0].params["num_leaves"] == 7
    assert found.results.runs[0].params["learning_rate"] == 0.25
    assert len(compare(seeds=np.int64(2)).results.runs) == 4
