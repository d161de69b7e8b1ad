"""Goals without labels, and demands that no setting meets."""

import numpy as np
import pytest

from gbmrank import GoalRanker
from gbmrank.data.demonstration import demo_data
from gbmrank.errors import DataError

GOALS = {"relevance": "query_rmse(target=ndcg@10)", "margin": "query_rmse(target=identity)"}


@pytest.mark.fault(
    "the label column of a goal missing, constant or without any label",
    promise="`DataError` that names the goal, before training",
)
@pytest.mark.parametrize("margin", [None, 1.0, np.nan])
def test_columns_that_teach_nothing(margin):
    data = demo_data(30, goals=2)
    columns = {"relevance": data.labels}
    if margin is not None:
        columns["margin"] = np.full(len(data.labels), margin)
    with pytest.raises(DataError, match="margin"):
        GoalRanker(GOALS, n_estimators=5).fit(data.X, columns, qid=data.qid)


@pytest.mark.fault(
    "a demand on several goals that no setting meets",
    promise="`pick` says what is reachable, in words, and `met` is False",
)
def test_a_demand_that_nothing_meets():
    train, valid = demo_data(60, goals=2), demo_data(60, seed=1, goals=2)
    ranker = GoalRanker(GOALS, n_estimators=10, learning_rate=0.3).fit(
        train.X,
        train.columns,
        qid=train.qid,
        eval_set=(valid.X, valid.columns),
        eval_qid=valid.qid,
    )
    found = ranker.pick({"relevance": 1.0, "margin": 1.0})
    assert not found.met
    assert "No setting is shown to keep 100% of relevance and 100% of margin" in str(found)
    assert "it keeps 100.0% of relevance" in str(found)
