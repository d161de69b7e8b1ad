"""Scores of ONNX and treelite are those of the ranker, and SHAP explains them."""

from typing import Any

import numpy as np
import pytest

from gbmrank import GBMRanker
from tests.ranking_tasks import make_task

BACKENDS = ["lightgbm", "xgboost"]
TASK = make_task(seed=0, queries=40)
ROWS = (TASK.x + np.random.default_rng(0).normal(size=TASK.x.shape)).astype(np.float32)


def fitted(backend: str, objective: str = "pairwise(target=ndcg@10)", **params: Any) -> GBMRanker:
    model = GBMRanker(objective, backend, n_estimators=12, n_jobs=1, **params)
    return model.fit(ROWS, TASK.y, qid=TASK.qid)


def with_missing() -> Any:
    rows = ROWS.copy()
    rows[np.random.default_rng(1).random(rows.shape) < 0.2] = np.nan
    return rows


COMMITTEE = "committee(pairwise(target=ndcg@10), query_rmse)"


@pytest.mark.parametrize("objective", ["pairwise(target=ndcg@10)", "native", COMMITTEE])
@pytest.mark.parametrize("backend", BACKENDS)
def test_onnx_gives_the_scores_of_the_ranker(backend, objective):
    onnxmltools = pytest.importorskip("onnxmltools", reason="onnxmltools is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from onnxmltools.convert.common.data_types import FloatTensorType

    native = {"lightgbm": "native:lambdarank", "xgboost": "native:rank:ndcg"}[backend]
    model = fitted(backend, native if objective == "native" else objective)
    types = [("rows", FloatTensorType([None, ROWS.shape[1]]))]
    convert = getattr(onnxmltools, f"convert_{backend}")
    made = convert(model.to_booster(), initial_types=types)
    session = runtime.InferenceSession(made.SerializeToString())
    for rows in (ROWS, with_missing()):
        scores = session.run(None, {"rows": rows})[0].ravel()
        np.testing.assert_allclose(scores, model.predict(rows), atol=2e-6)


@pytest.mark.parametrize("objective", ["pairwise(target=ndcg@10)", COMMITTEE])
@pytest.mark.parametrize("backend", BACKENDS)
def test_treelite_gives_the_scores_of_the_ranker(backend, objective):
    treelite = pytest.importorskip("treelite", reason="treelite is not installed")
    model = fitted(backend, objective)
    made = getattr(treelite.frontend, f"from_{backend}")(model.to_booster())
    for rows in (ROWS, with_missing()):
        scores = np.asarray(treelite.gtil.predict(made, rows, pred_margin=True)).ravel()
        np.testing.assert_allclose(scores, model.predict(rows), atol=2e-6)


@pytest.mark.parametrize("objective", ["pairwise(target=ndcg@10)", COMMITTEE])
@pytest.mark.parametrize("backend", BACKENDS)
def test_shap_explains_the_booster(backend, objective):
    shap = pytest.importorskip("shap", reason="SHAP is not installed")
    model = fitted(backend, objective)
    explained = shap.TreeExplainer(model.booster_)(ROWS)
    total = explained.values.sum(axis=1) + explained.base_values
    np.testing.assert_allclose(total, model.predict(ROWS), atol=1e-4)
