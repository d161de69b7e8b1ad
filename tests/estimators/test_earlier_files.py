"""Files that gbmrank 0.1.0 wrote (commit 356b6d7), read by this version.

``rows.csv`` has the rows: the models are of all of them, ``predictions.json`` has what the models
gave for every fifth one, and ``comparison.json`` is of ``compare rows.csv --objectives ranknet
--backends xgboost --metrics ndcg@3 --folds 2 --rounds 3``.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import gbmrank
from gbmrank.experiments.store import load_results

FILES = Path(__file__).parent / "written_by_0_1"
ROWS = np.loadtxt(FILES / "rows.csv", delimiter=",", skiprows=1)


@pytest.mark.parametrize(
    ("file", "backend", "version"),
    [("gbm_ranker.txt", "lightgbm", "4.6"), ("gbm_ranker.json", "xgboost", "3.2")],
)
def test_rankers_predict_as_they_did(file: str, backend: str, version: str, tmp_path: Path):
    pytest.importorskip(backend, minversion=version)  # that of the file, or one that reads it
    want = json.loads((FILES / "predictions.json").read_text())[file]
    model = gbmrank.load(FILES / file)
    assert model.backend == backend
    assert str(model.objective) == "pairwise(loss=logistic, target=ndcg@3)"
    np.testing.assert_allclose(model.predict(ROWS[::5, 2:]), want, rtol=1e-6)
    model.save(tmp_path / file)
    again = gbmrank.load(tmp_path / file).predict(ROWS[::5, 2:])
    np.testing.assert_allclose(again, want, rtol=1e-6)


def test_a_comparison_is_read_whole():
    results = load_results(FILES / "comparison.json")
    assert [(str(run.system), run.fold, run.error) for run in results.runs] == [
        ("xgboost ranknet", 0, None),
        ("xgboost ranknet", 1, None),
    ]
    queries = np.concatenate([run.queries for run in results.runs])
    assert sorted(queries.tolist()) == list(range(12))
    values = np.concatenate([run.values["ndcg@3"] for run in results.runs])
    kept = json.loads((FILES / "comparison.json").read_text())
    assert values.tolist() == [value for run in kept["runs"] for value in run["values"]["ndcg@3"]]
    assert 0.93 < values.mean() < 0.95
