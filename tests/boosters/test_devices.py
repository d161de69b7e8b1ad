"""Arrays that a booster hands over from a GPU."""

import numpy as np
import pytest
import xgboost as xgb

import gbmrank
from gbmrank.errors import DataError
from tests.ranking_tasks import make_task

TASK = make_task(seed=0, queries=10)
OBJECTIVE, NDCG = gbmrank.objective("ranknet"), gbmrank.metric("ndcg@10")
SCORES = np.random.default_rng(0).normal(size=TASK.n).astype(np.float32)


class OnDevice:
    """An array as CuPy has it: it does not become a numpy array by itself."""

    def __init__(self, values):
        self._values = values
        self.size = values.size
        self.__cuda_array_interface__ = {"shape": values.shape, "typestr": "<f4", "version": 3}

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


class LikeCuPy(OnDevice):
    def get(self):
        return self._values


class LikeNumba(OnDevice):
    def copy_to_host(self):
        return self._values


@pytest.mark.parametrize("kind", [LikeCuPy, LikeNumba])
def test_arrays_of_a_gpu_are_copied(kind):
    data = xgb.DMatrix(TASK.x, TASK.y, qid=TASK.qid)
    for found, expected in zip(OBJECTIVE(kind(SCORES), data), OBJECTIVE(SCORES, data), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert NDCG(kind(SCORES), data) == NDCG(SCORES, data)
    labels = TASK.y.astype(np.float32)
    by_arrays = OBJECTIVE(kind(labels), kind(SCORES), None, TASK.sizes)
    np.testing.assert_array_equal(by_arrays[0], OBJECTIVE(labels, SCORES, None, TASK.sizes)[0])


def test_other_arrays_of_a_gpu_are_an_error():
    data = xgb.DMatrix(TASK.x, TASK.y, qid=TASK.qid)
    for call in (OBJECTIVE, NDCG):
        with pytest.raises(DataError, match="OnDevice on a GPU"):
            call(OnDevice(SCORES), data)
