"""Explanations of models and rows that have none."""

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import gbmrank
from gbmrank import GBMRanker
from gbmrank.errors import ConfigError, GroupError, NotFittedError, ParameterError
from tests.ranking_tasks import make_task

TASK = make_task(seed=0)


@pytest.mark.fault(
    "explaining a pair that is not two rows of one query",
    promise="`ParameterError` or `GroupError` with the rows and their queries",
)
@pytest.mark.parametrize("pair", [(0, 0), (0,), (0, TASK.n), (-1, 2), (0.5, 1), (0, 1, 2)])
def test_pairs_that_are_not_two_rows(pair):
    model = GBMRanker(n_estimators=5).fit(TASK.x, TASK.y, qid=TASK.qid)
    with pytest.raises(ParameterError, match=f"two different rows of X.*to {TASK.n - 1}"):
        model.explain(TASK.x, pair=pair)
    with pytest.raises(GroupError, match=r"rows 0 and .* belong to different queries, 0 and"):
        model.explain(TASK.x, qid=TASK.qid, pair=(0, TASK.n - 1))


@pytest.mark.fault(
    "explaining a model that is not a sum of trees with one score",
    promise="`ConfigError` that says what to train instead",
)
def test_models_that_are_not_sums_of_trees():
    y = np.minimum(TASK.y, 2)
    quiet = {"verbose": -1, "num_threads": 1}
    lines = lgb.train({"linear_tree": True, **quiet}, lgb.Dataset(TASK.x, TASK.y), 3)
    with pytest.raises(ConfigError, match="linear_tree=False"):
        gbmrank.explain(lines, TASK.x)
    several = {"objective": "multiclass", "num_class": 3, **quiet}
    with pytest.raises(ConfigError, match="several scores per row"):
        gbmrank.explain(lgb.train(several, lgb.Dataset(TASK.x, y), 3), TASK.x)
    with pytest.raises(ConfigError, match="several scores per row"):
        gbmrank.explain(
            xgb.train({"objective": "multi:softmax", "num_class": 3}, xgb.DMatrix(TASK.x, y), 3),
            TASK.x,
        )
    with pytest.raises(ConfigError, match="a trained GBMRanker, or a model of LightGBM or XGBoost"):
        gbmrank.explain("model.txt", TASK.x)
    with pytest.raises(NotFittedError):
        gbmrank.explain(GBMRanker(), TASK.x)


@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning")  # gblinear, from 3.4 on
def test_a_linear_booster():
    linear = xgb.train({"booster": "gblinear"}, xgb.DMatrix(TASK.x, TASK.y), 3)
    with pytest.raises(ConfigError, match=r"gblinear.*explaining a score needs"):
        gbmrank.explain(linear, TASK.x)
