"""Training in parts, with checkpoints."""

import numpy as np
import pytest

from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part
from gbmrank.boosters.plan import train
from gbmrank.data.queries import RankingData
from gbmrank.estimators.file_training import Checkpoints, train_in_parts
from tests.ranking_tasks import make_task

TASK = make_task(seed=0, queries=30)
STUCK = {"lightgbm": {"min_gain_to_split": 2.0}, "xgboost": {"gamma": 2.0}}


@pytest.mark.parametrize("backend", STUCK)
def test_training_ends_where_no_tree_can_grow(backend, tmp_path):
    part = Part(TASK.x, RankingData.from_arrays(TASK.y, qid=TASK.qid))
    plan = training_plan(
        "pairwise", "ndcg", backend=backend, rounds=30, params=STUCK[backend], threads=1
    )
    rounds: list[int] = []

    def count(done, _):
        rounds.append(done)
        assert len(rounds) <= 30

    found = train_in_parts(plan, part, {}, Checkpoints(tmp_path, 10, "key"), count)
    assert rounds == list(range(1, 31))
    whole = train(plan, part)
    assert whole.fitted.n_rounds < 30 or backend == "xgboost"
    np.testing.assert_allclose(found.scores(TASK.x), whole.scores(TASK.x), rtol=1e-5, atol=1e-6)
