"""Sums and counts, and what travels to the workers."""

import pickle

import cloudpickle
import numpy as np
import pytest

import gbmrank
from gbmrank.dask.workers import Parcel
from gbmrank.distributed.summed_metrics import means
from gbmrank.errors import DataError
from gbmrank.metrics.base import mean_over_queries, weighted_sum


@pytest.mark.parametrize("empty", ["skip", "zero", "one"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_pieces_give_the_mean_of_the_whole(empty, weighted):
    rng = np.random.default_rng(0)
    values = np.where(rng.random(50) < 0.3, np.nan, rng.random(50))
    weight = rng.random(50) if weighted else None
    pieces = [slice(0, 1), slice(1, 40), slice(40, 50), slice(50, 50)]
    sums = np.sum(
        [weighted_sum(values[p], None if weight is None else weight[p], empty) for p in pieces],
        axis=0,
    )
    whole = mean_over_queries(values, weight, empty)
    assert sums[0] / sums[1] == pytest.approx(whole, rel=1e-14)


def test_a_metric_that_no_query_defines_is_an_error():
    with pytest.raises(DataError, match=r"undefined for every query .* on all workers"):
        means([gbmrank.metric("ndcg")], np.zeros((1, 2)))


class Counted:
    pickled = 0

    def __reduce__(self):
        Counted.pickled += 1
        return Counted, ()


def test_a_parcel_is_pickled_once_and_opened_once():
    parcel = Parcel.pack(Counted())
    sent = [cloudpickle.loads(pickle.dumps(parcel)) for _ in range(3)]
    assert Counted.pickled == 1
    assert sent[0].open() is sent[2].open()
