"""Every template and preset trains in both boosters and improves what it is for."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import gbmrank
from gbmrank.demo_data import demo_data
from tests.objectives.cases import PRESETS, SWAPS, TEMPLATES, template_of

lgb = pytest.importorskip("lightgbm")
xgb = pytest.importorskip("xgboost")

ROUNDS = 5
GRADED = {  # objective: the metric it targets, or the nearest one
    "pointwise": "ndcg",
    "pairwise": "ndcg",
    "pairwise(target=ndcg@5)": "ndcg@5",
    "pairwise(loss=squared, target=spearman)": "spearman",
    "comparison": "pairwise_disagreement",
    "bipartite(threshold=2)": "auc(threshold=2)",
    "push(threshold=2)": "map(threshold=2)",
    "linear": "pairwise_disagreement",
    "linear(regulariser=power(q=3))": "pairwise_disagreement",
    "linear(regulariser=power(q=1.5))": "pairwise_disagreement",
    "linear(regulariser=cosh)": "pairwise_disagreement",
    "bregman": "ndcg",
    "bregman(loss=poisson, target=dcg)": "dcg",
    "listmle": "ndcg",
    "mix(ranknet, softmax, weights=[0.7, 0.3])": "ndcg",
    "ranknet": "pairwise_disagreement",
    "ranksvm": "pairwise_disagreement",
    "ranksvm_squared": "pairwise_disagreement",
    "rankboost": "pairwise_disagreement",
    "w_ranknet": "ndcg",
    "w_listmle": "ndcg",
    "cossock_zhang": "dcg",
    "duchi_linear": "pairwise_disagreement",
    "softmax": "ndcg",
    "listnet": "ndcg",
    "query_rmse": "spearman",
    "sigmoid_softmax(target=ndcg)": "ndcg",
    "calibrated_softmax": "spearman",
    "swap": "ndcg",
    "swap(metric=err@5, noise=gumbel, draws=2)": "err@5",
    "lambdarank": "ndcg",
    "ndcg_loss2": "ndcg",
    "ndcg_loss2pp": "ndcg",
    "yetirank": "ndcg",
}
BINARY = {
    "pnorm_push": "map",
    "p_classification": "auc",
    "asymmetric_a": "auc",
    "asymmetric_b": "auc",
    "map_diagonal": "map",
    "rcr": "auc",
}
CASES = {**GRADED, **BINARY}


def test_every_template_and_preset_is_trained():
    trained = {template_of(text).name for text in CASES}
    assert {*PRESETS, *SWAPS} <= CASES.keys()
    assert {*TEMPLATES, "mix", "swap"} == trained


@pytest.fixture(scope="module")
def task() -> Any:
    return demo_data(40, seed=1)


class Task(NamedTuple):
    X: Any
    labels: Any
    sizes: Any


def labels_for(text: str, grades: Any) -> Any:
    return (grades >= 2).astype(float) if text in BINARY else grades.astype(float)


def train(backend: str, made: Any, x: Any, labels: Any, sizes: Any) -> list[Any]:
    """Scores after each of the first rounds."""
    needed = gbmrank.booster_params(made, backend)
    if backend == "lightgbm":
        data = lgb.Dataset(x, labels, group=sizes)
        params = {"objective": made, "learning_rate": 0.1, "num_leaves": 15, "verbose": -1}
        booster = lgb.train({**params, **needed}, data, ROUNDS)
        return [booster.predict(x, num_iteration=k + 1, raw_score=True) for k in range(ROUNDS)]
    matrix = xgb.DMatrix(x, labels)
    matrix.set_group(sizes)
    params = {"eta": 0.1, "max_depth": 4, "nthread": 2}
    booster = xgb.train({**params, **needed}, matrix, ROUNDS, obj=made)
    rounds = range(ROUNDS)
    return [booster.predict(matrix, iteration_range=(0, k + 1), output_margin=True) for k in rounds]


def check_progress(backend: str, text: str, x: Any, labels: Any, sizes: Any) -> None:
    made, metric = gbmrank.objective(text), gbmrank.metric(CASES[text])
    constant = np.zeros(len(labels))
    scores = [constant, *train(backend, made, x, labels, sizes)]
    losses = [made.loss(labels, one, group=sizes) for one in scores]
    if made.template.gradient == "exact":  # frozen weights are others in every round
        assert np.all(np.diff(losses) < 0), losses
    gain = metric.score(labels, scores[-1], group=sizes) - metric.score(
        labels, constant, group=sizes
    )
    assert gain > 0 if metric.higher_is_better else gain < 0


BACKENDS = ("lightgbm", "xgboost")
SLOW = (
    "yetirank",
    "lambdarank",
    "ndcg_loss2",
    "ndcg_loss2pp",
    "swap(metric=err@5, noise=gumbel, draws=2)",
)
# One booster at every change, by turns.
BY_TURNS = [
    pytest.param(
        text,
        backend,
        marks=pytest.mark.nightly if text in SLOW or (place + turn) % 2 else (),
    )
    for place, text in enumerate(CASES)
    for turn, backend in enumerate(BACKENDS)
]


@pytest.mark.parametrize(("text", "backend"), BY_TURNS)
def test_first_rounds_improve_loss_and_metric(text, backend, task):
    check_progress(backend, text, task.X, labels_for(text, task.labels), task.sizes)


@pytest.fixture(scope="module")
def real_task() -> Task:
    """The first 60 queries of LightGBM's own ranking example, grades 0 to 4."""
    folder = os.environ.get("GBMRANK_DATA")
    if not folder:
        pytest.skip("GBMRANK_DATA names no folder with data sets")
    place = importlib.util.spec_from_file_location("loaders", Path(folder) / "loaders.py")
    assert place is not None
    assert place.loader is not None
    loaders = importlib.util.module_from_spec(place)
    sys.modules["loaders"] = loaders
    place.loader.exec_module(loaders)
    part = loaders.lgbm_rank()["train"]
    rows = part["qid"] < 60
    return Task(part["X"][rows], part["y"][rows], np.bincount(part["qid"][rows]))


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("text", CASES)
def test_first_rounds_on_real_data(text, backend, real_task):
    labels = labels_for(text, real_task.labels)
    check_progress(backend, text, real_task.X, labels, real_task.sizes)
