"""Folders of comparisons: one at a time, of one plan, and nothing lost by a mistake."""

import numpy as np
import pytest

import gbmrank
from gbmrank.demo_data import demo_data
from gbmrank.errors import ParameterError
from gbmrank.experiments.documents import load_results

DATA = demo_data(30, items=6)
QUICK = {"folds": 2, "rounds": 3, "isolate": False, "metrics": "ndcg@3", "backends": ["lightgbm"]}


def compare(**options):
    return gbmrank.compare(DATA, **{**QUICK, "objectives": ["ranknet"], **options})


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.mark.fault(
    "a setting that makes no sense, with `force`",
    promise="refused before the comparison that is there is touched",
)
def test_a_mistake_with_force_costs_nothing(out):
    compare(out=out).to_json(out / "results.json")
    for options in ({"seeds": np.array([0.5])}, {"params": {"num_leaves": 1j}}, {"margin": -1}):
        with pytest.raises(ParameterError):
            compare(out=out, force=True, **options)
        assert len(load_results(out / "results.json").runs) == 2
    compare(out=out, force=True, seeds=np.array([0, 1]), folds=np.int64(2))
    compare(out=out, resume=True, seeds=2)
