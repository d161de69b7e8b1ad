"""Both boosters through their own calls and through the estimator, on one small task."""

from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import gbmrank
from tests.ranking_tasks import Task, make_task

BACKENDS = ("lightgbm", "xgboost")
TASK = make_task(seed=3, queries=30)
OTHER = make_task(seed=4, queries=10)
OTHER_QID = OTHER.qid + 1000


def ranker(backend: str, objective: Any = "ranknet", **options: Any) -> gbmrank.GBMRanker:
    return gbmrank.GBMRanker(objective, backend, **{"n_estimators": 3, "n_jobs": 1, **options})


def fit(backend: str, objective: Any = "ranknet", task: Task = TASK, **options: Any) -> Any:
    return ranker(backend, objective, **options).fit(task.x, task.y, qid=task.qid)


def data_set(backend: str, task: Task = TASK, weight: Any = None, start: Any = None) -> Any:
    """Return a data set of the booster; weights are per query."""
    if backend == "lightgbm":
        rows = None if weight is None else np.repeat(weight, task.sizes)
        return lgb.Dataset(task.x, task.y, group=task.sizes, weight=rows, init_score=start)
    matrix = xgb.DMatrix(task.x, task.y, qid=task.qid, weight=weight)
    if start is not None:
        matrix.set_base_margin(start)
    return matrix


def train(backend: str, objective: Any, rows: Any, rounds: int = 3, **more: Any) -> Any:
    """Train through the booster's own function; objectives by text or as objects."""
    made = gbmrank.objective(objective)
    params = {**gbmrank.booster_params(made, backend), **more}
    if backend == "lightgbm":
        given = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 2}
        return lgb.train({**given, **params, "objective": made}, rows, rounds)
    return xgb.train({"nthread": 1, **params}, rows, rounds, obj=made)
