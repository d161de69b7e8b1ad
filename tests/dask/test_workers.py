"""A worker that dies."""

import os
import signal
import threading
import time

import pytest
from distributed import Client, LocalCluster

from gbmrank import WorkerLostError
from gbmrank.dask import train
from gbmrank.errors import GbmrankError
from tests.dask.tables import arrays
from tests.ranking_tasks import make_task

TASKS = ("fn-", "_train_part-")  # what the boosters call their training


@pytest.fixture(scope="module")
def own_client():
    with (
        LocalCluster(
            n_workers=2, processes=True, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def kill_when_training(client, process):
    def training():
        return any(
            str(key).startswith(TASKS) for keys in client.processing().values() for key in keys
        )

    while not training():
        time.sleep(0.05)
    time.sleep(1.0)
    os.kill(process, signal.SIGKILL)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_lost_worker_is_an_error_and_the_next_training_works(own_client, backend):
    x, y, qid = arrays(make_task(queries=60), [0, 30, 60])
    train(own_client, x, y, qid=qid, backend=backend, rounds=1)
    process = next(iter(own_client.run(os.getpid).values()))
    killer = threading.Thread(target=kill_when_training, args=(own_client, process))
    killer.start()
    start = time.monotonic()
    with pytest.raises(
        WorkerLostError, match=r"lost 1 of the workers .* tcp://.* no model"
    ) as caught:
        train(own_client, x, y, qid=qid, backend=backend, rounds=10**6)
    killer.join()
    assert time.monotonic() - start < 60
    assert isinstance(caught.value, GbmrankError)
    own_client.wait_for_workers(2, timeout=60)
    assert train(own_client, x, y, qid=qid, backend=backend, rounds=3).fitted.n_rounds == 3
