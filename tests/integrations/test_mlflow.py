"""MLflow logs every metric of a training, whatever its name."""

import importlib
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import gbmrank
from gbmrank import GBMRanker
from tests.ranking_tasks import make_task

TRAIN, VALID = make_task(seed=1, queries=30), make_task(seed=2, queries=30)
OBJECTIVE = gbmrank.objective("pairwise(target=ndcg@10)")
METRICS = gbmrank.metric(
    "ndcg@10, map(threshold=1), err(max_grade=4, empty=zero)@5, ndcg(gain=[0, 1, 3, 7, 15])@3"
)


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a data base needs more packages
    module = pytest.importorskip("mlflow", reason="MLflow is not installed")
    module.set_tracking_uri(f"file://{tmp_path}/runs")
    return module


def logged(mlflow: Any, autolog: Any, train: Any) -> Any:
    """Return the data of a run that a training made by itself."""
    autolog(log_models=False, log_datasets=False, silent=True)
    try:
        with mlflow.start_run() as run:
            train()
    finally:
        autolog(disable=True)
    return mlflow.get_run(run.info.run_id).data


def fit(backend: str) -> GBMRanker:
    model = GBMRanker(OBJECTIVE, backend, METRICS, n_estimators=4, n_jobs=1)
    valid: dict[str, Any] = {"eval_set": [(VALID.x, VALID.y)], "eval_qid": [VALID.qid + 1000]}
    return model.fit(TRAIN.x, TRAIN.y, qid=TRAIN.qid, **valid)


def test_autolog_of_lightgbm(mlflow):
    autolog = importlib.import_module("mlflow.lightgbm").autolog
    train_set = lgb.Dataset(TRAIN.x, TRAIN.y, group=TRAIN.sizes)
    valid_set = lgb.Dataset(VALID.x, VALID.y, group=VALID.sizes, reference=train_set)
    params = {"objective": OBJECTIVE, "metric": "None", "verbose": -1, "num_threads": 1}

    def native() -> None:
        lgb.train(params, train_set, 4, valid_sets=[valid_set], feval=METRICS)

    for train in (native, lambda: fit("lightgbm")):
        data = logged(mlflow, autolog, train)
        names = {f"valid_0-{one.name_in('lightgbm').replace('@', '_at_')}" for one in METRICS}
        assert names <= set(data.metrics)


def test_autolog_of_xgboost(mlflow):
    autolog = importlib.import_module("mlflow.xgboost").autolog

    def matrix(task: Any) -> Any:
        return xgb.DMatrix(task.x, task.y, qid=task.qid)

    params = {**gbmrank.booster_params(OBJECTIVE, "xgboost"), "nthread": 1}

    def native() -> None:
        xgb.train(
            params,
            matrix(TRAIN),
            4,
            obj=OBJECTIVE,
            custom_metric=METRICS,
            evals=[(matrix(VALID), "valid_0")],
            verbose_eval=False,
        )

    for train in (native, lambda: fit("xgboost")):
        data = logged(mlflow, autolog, train)
        names = {f"valid_0-{one.name_in('xgboost').replace('@', '_at_')}" for one in METRICS}
        assert names <= set(data.metrics)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_names_and_values_by_hand(mlflow, backend):
    model = fit(backend)
    with mlflow.start_run() as run:
        for one in METRICS:
            for step, value in enumerate(model.evals_result_["valid_0"][str(one)]):
                mlflow.log_metric(one.name_in("mlflow"), value, step=step)
    found = mlflow.get_run(run.info.run_id).data.metrics
    assert found["ndcg_at_10"] == model.evals_result_["valid_0"]["ndcg@10"][-1]
    assert len(found) == len(METRICS)
    assert np.isfinite(list(found.values())).all()
