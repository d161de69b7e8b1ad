"""Optuna's pruning callbacks work through GBMRanker."""

from typing import Any

import pytest

import gbmrank
from gbmrank import GBMRanker
from tests.ranking_tasks import make_task

TRAIN, VALID = make_task(seed=1, queries=30), make_task(seed=2, queries=30)
NDCG = gbmrank.metric("ndcg@10")


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_trials_are_pruned(backend):
    optuna = pytest.importorskip("optuna", reason="Optuna is not installed")
    made = pytest.importorskip("optuna_integration", reason="optuna-integration is not installed")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def callback(trial: Any) -> Any:
        if backend == "lightgbm":
            return made.LightGBMPruningCallback(trial, NDCG.name_in(backend), "valid_0")
        return made.XGBoostPruningCallback(trial, f"valid_0-{NDCG.name_in(backend)}")

    def objective(trial: Any) -> float:
        """The first trial learns, the others learn nothing."""
        rate = 0.3 if trial.number == 0 else 1e-6
        model = GBMRanker(
            backend=backend, n_estimators=8, metric=NDCG, learning_rate=rate, n_jobs=1
        )
        model.fit(
            TRAIN.x,
            TRAIN.y if trial.number == 0 else 4 - TRAIN.y,
            qid=TRAIN.qid,
            eval_set=[(VALID.x, VALID.y)],
            eval_qid=[VALID.qid + 1000],
            callbacks=[callback(trial)],
        )
        return float(max(model.evals_result_["valid_0"]["ndcg@10"]))

    study = optuna.create_study(
        direction="maximize", pruner=optuna.pruners.MedianPruner(n_startup_trials=1)
    )
    study.optimize(objective, n_trials=3)
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE", "PRUNED", "PRUNED"]
    assert len(study.trials[0].intermediate_values) == 8
    assert len(study.trials[1].intermediate_values) < 8
