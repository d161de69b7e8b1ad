"""Bad input on a cluster."""

import os
import threading

import dask.array as da
import numpy as np
import pytest

import gbmrank
from gbmrank.dask import repartition_by_query, train
from gbmrank.errors import DataError, GroupError, WorkerLostError
from tests.dask.tables import arrays
from tests.dask.test_workers import kill_when_training, own_client  # noqa: F401  (a fixture)
from tests.ranking_tasks import make_task

BOTH = pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
TASK = make_task(seed=1, queries=20)
OTHER = make_task(seed=2, queries=21)


@pytest.mark.fault(
    "Dask: a query split over partitions",
    promise="`GroupError` with the ids and partitions; `repartition_by_query` repairs it",
)
@BOTH
def test_a_query_that_is_split(client, backend):
    rows = (int(TASK.sizes[:9].sum()) - 1, TASK.n - int(TASK.sizes[:9].sum()) + 1)
    x = da.from_array(TASK.x, chunks=(rows, -1))
    y, qid = (da.from_array(column, chunks=(rows,)) for column in (TASK.y, TASK.qid))
    with pytest.raises(GroupError, match=r"1 quer.* split .* 8 \(partitions 0, 1\)"):
        train(client, x, y, qid=qid, backend=backend)
    x, y, qid = repartition_by_query(x, y, qid=qid)
    parts = [set(block) for block in (qid.blocks[0].compute(), qid.blocks[1].compute())]
    assert not parts[0] & parts[1]


@pytest.mark.fault(
    "Dask: metrics of rows on several workers",
    promise="sums and counts are added and then divided: the number of one machine, never a mean "
    "of means",
)
@BOTH
def test_metrics_over_workers(client, backend):
    x, y, qid = arrays(TASK, [0, 10, 20])
    cuts = [0, 2, 21]  # two queries on one worker and nineteen on the other
    judged = arrays(OTHER, cuts, OTHER.qid + 1000)
    made = train(
        client,
        x,
        y,
        qid=qid,
        backend=backend,
        rounds=2,
        metric="ndcg@3",
        eval_set=[judged[:2]],
        eval_qid=[judged[2]],
        keep_best=False,
    )
    scores = made.scores(OTHER.x)
    whole = gbmrank.metric("ndcg@3").score(OTHER.y, scores, group=OTHER.sizes)
    assert made.history["valid_0"]["ndcg@3"][-1] == pytest.approx(whole, rel=1e-9)
    values = gbmrank.metric("ndcg@3").per_query(OTHER.y, scores, group=OTHER.sizes)
    of_means = (np.nanmean(values[:2]) + np.nanmean(values[2:])) / 2
    assert abs(of_means - whole) > 1e-6  # they differ, so the line above can fail


@pytest.mark.fault(
    "Dask: a label that is NaN", promise="`DataError` that names the partition, before training"
)
def test_a_label_on_a_worker(client):
    labels = TASK.y.copy()
    labels[-1] = np.nan
    x, _, qid = arrays(TASK, [0, 10, 20])
    y = da.from_array(labels, chunks=(x.chunks[0],))
    with pytest.raises(DataError, match=r"train, partition 1: .* labels are NaN"):
        train(client, x, y, qid=qid)


@pytest.mark.fault(
    "Dask: a worker that is lost",
    promise="`WorkerLostError` that names it; there is no model of what is left",
)
@pytest.mark.nightly
@BOTH
def test_a_worker_that_is_lost(own_client, backend):  # noqa: F811
    x, y, qid = arrays(TASK, [0, 10, 20])
    train(own_client, x, y, qid=qid, backend=backend, rounds=1)
    process = next(iter(own_client.run(os.getpid).values()))
    killer = threading.Thread(target=kill_when_training, args=(own_client, process))
    killer.start()
    with pytest.raises(WorkerLostError, match=r"lost 1 of the workers .* tcp://.* no model"):
        train(own_client, x, y, qid=qid, backend=backend, rounds=10**6)
    killer.join()
    own_client.wait_for_workers(2, timeout=60)
