"""Objectives and rankers travel to Ray's workers and train the same model there."""

import numpy as np
import pytest

from gbmrank import GBMRanker
from tests.ranking_tasks import make_task

TASK = make_task(seed=0, queries=30)


@pytest.fixture(scope="module")
def ray():
    module = pytest.importorskip("ray", reason="Ray is not installed")
    module.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    yield module
    module.shutdown()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets of Ray's own
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_worker_trains_what_this_process_does(ray, backend):
    train = ray.remote(GBMRanker.fit)
    model = GBMRanker("ranknet", backend, n_estimators=5, n_jobs=1)
    away = ray.get(train.remote(model, TASK.x, TASK.y, qid=TASK.qid))
    here = model.fit(TASK.x, TASK.y, qid=TASK.qid)
    np.testing.assert_array_equal(away.predict(TASK.x), here.predict(TASK.x))
