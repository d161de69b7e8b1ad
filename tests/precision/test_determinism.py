"""The same bits again: for repeated runs, and for every number of gbmrank's threads.

Kernels give each query to one thread, in one order, so their results do not depend on how
many there are. What a booster does with more than one thread of its own is the booster's
matter; LightGBM has ``deterministic`` and ``force_row_wise`` for it.
"""

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import gbmrank
from tests.ranking_tasks import make_task

TASK = make_task(seed=2, queries=600, longest=40)  # enough work for several threads
OBJECTIVES = (
    "pairwise(target=ndcg@10)",
    "ranknet",
    "softmax",
    *(
        pytest.param(text, marks=pytest.mark.nightly)
        for text in ("rankboost", "ranksvm", "listmle")
    ),
)
OWN = {
    "lightgbm": {"deterministic": True, "force_row_wise": True, "verbosity": -1, "seed": 7},
    "xgboost": {"seed": 7, "max_depth": 4},
}


def model_text(backend, objective, booster_threads):
    """Train and return the model as the booster writes it."""
    made, ndcg = gbmrank.objective(objective), gbmrank.metric("ndcg@10")
    params = {**gbmrank.booster_params(made, backend), **OWN[backend]}
    seen: dict = {}
    if backend == "lightgbm":
        rows = lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes)
        sampling = {"bagging_fraction": 0.8, "bagging_freq": 1, "num_threads": booster_threads}
        model = lgb.train(
            {**params, **sampling, "objective": made},
            rows,
            5,
            valid_sets=[rows],
            feval=ndcg,
            callbacks=[lgb.record_evaluation(seen)],
        )
        return model.model_to_string(), str(seen)
    rows = xgb.DMatrix(TASK.x, TASK.y, qid=TASK.qid, nthread=booster_threads)
    model = xgb.train(
        {**params, "subsample": 0.8, "nthread": booster_threads},
        rows,
        5,
        obj=made,
        custom_metric=ndcg,
        evals=[(rows, "rows")],
        evals_result=seen,
        verbose_eval=False,
    )
    return bytes(model.save_raw("json")), str(seen)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_threads_of_ours_do_not_change_a_bit(backend, objective):
    found = []
    for threads in (1, 2, 3):
        gbmrank.set_num_threads(threads)
        found.append(model_text(backend, objective, 1))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_repeated_runs_give_the_same_bits(backend):
    gbmrank.set_num_threads(2)
    found = [model_text(backend, "pairwise(target=ndcg@10)", 2) for _ in range(3)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("objective", [*OBJECTIVES, "pnorm_push(threshold=2)", "linear"])
def test_gradients_losses_and_metrics_do_not_depend_on_threads(objective):
    """One long query beside many short ones: the shape that is hardest to share out."""
    rng = np.random.default_rng(0)
    sizes = np.array([5000, *rng.integers(1, 60, 300)])
    labels = rng.integers(0, 3, sizes.sum()).astype(float)
    scores = rng.normal(size=len(labels))
    made = gbmrank.objective(objective)
    metrics = gbmrank.metric("ndcg@10, err(max_grade=2), auc(threshold=1)")
    found = []
    for threads in (1, 2, 5):
        gbmrank.set_num_threads(threads)
        grad, hess = made.gradients(labels, scores, group=sizes)
        single = made(labels, scores.astype(np.float32), None, sizes)
        loss = made.loss(labels, scores, group=sizes)
        told = metrics.score(labels, scores, group=sizes)
        found.append((grad.tobytes(), hess.tobytes(), *(a.tobytes() for a in single), loss, told))
    assert found[0] == found[1] == found[2]
