"""Distributed training against one machine."""

from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part
from gbmrank.boosters.plan import train as train_here
from gbmrank.dask import predict, train
from gbmrank.data import RankingData
from gbmrank.errors import ConfigError, NumericError, WeightError
from tests.dask.tables import arrays
from tests.ranking_tasks import make_task

UNEQUAL = [0, 2, 52, 60]  # 2, 50 and 8 queries
TASK = make_task(seed=1, queries=60)
VALID = make_task(seed=2, queries=31)
LEAVES = {"lightgbm": {"min_data_in_leaf": 5}, "xgboost": {"max_depth": 3}}


def part(task, weight=None):
    data = RankingData.from_arrays(task.y, group=task.sizes, weight=weight)
    return Part(task.x, data)


def query_weights(task):
    """Weights that float32 holds exactly."""
    return np.random.default_rng(5).integers(1, 32, len(task.sizes)) / 8.0


def valid_arrays(cuts=(0, 1, 31), start=1000):
    return arrays(VALID, list(cuts), VALID.qid + start)


@pytest.mark.parametrize(
    "objective",
    [
        "pairwise(target=dcg)",
        pytest.param("pointwise(loss=squared, target=dcg)", marks=pytest.mark.nightly),
    ],
)
def test_xgboost_grows_the_trees_of_one_machine(client, objective):
    x, y, qid = arrays(TASK, UNEQUAL)
    params = LEAVES["xgboost"]
    there = train(
        client, x, y, qid=qid, objective=objective, backend="xgboost", rounds=6, params=params
    )
    plan = training_plan(
        objective=objective, metric="ndcg", backend="xgboost", rounds=6, params=params
    )
    here = train_here(plan, part(TASK))
    trees = [f.booster.trees_to_dataframe() for f in (there.fitted, here.fitted)]
    for column in ("Tree", "Node", "Feature", "Split", "Yes", "No"):
        assert trees[0][column].equals(trees[1][column]), column
    assert trees[0]["Gain"].to_numpy() == pytest.approx(trees[1]["Gain"].to_numpy(), rel=1e-4)
    assert there.fitted.n_rounds == 6


@pytest.mark.parametrize(
    ("backend", "empty"),
    [
        ("xgboost", "skip"),
        ("lightgbm", "zero"),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (("xgboost", "zero"), ("xgboost", "one"), ("lightgbm", "skip"),
                         ("lightgbm", "one"))
        ),
    ],
)  # fmt: skip
def test_metrics_are_those_of_one_machine_however_rows_are_spread(client, backend, empty):
    weight = query_weights(VALID)
    rows = np.repeat(weight, VALID.sizes)
    x, y, qid = arrays(TASK, UNEQUAL)
    vx, vy, vq = valid_arrays()
    vw = vy * 0 + rows
    metrics = gbmrank.metric(["ndcg@3", "map(threshold=2)"], empty=empty)
    made = train(
        client,
        x,
        y,
        qid=qid,
        metric=metrics,
        backend=backend,
        rounds=3,
        eval_set=[(vx, vy), (vx, vy)],
        eval_qid=[vq, vq],
        eval_sample_weight=[None, vw],
        eval_names=["plain", "weighted"],
        params=LEAVES[backend],
        keep_best=False,
    )
    undefined = np.isnan(metrics[1].per_query(VALID.y, VALID.x[:, 0], group=VALID.sizes))
    assert 0 < undefined.sum() < len(undefined)
    scores = made.scores(VALID.x)
    for name, given in (("plain", None), ("weighted", weight)):
        for item in metrics:
            here = item.score(VALID.y, scores, group=VALID.sizes, weight=given)
            assert made.history[name][str(item)][-1] == pytest.approx(here, rel=1e-12)
    assert made.history["plain"] != made.history["weighted"]
    assert predict(made, vx).compute() == pytest.approx(scores, abs=0.0)


@pytest.mark.parametrize("objective", ["pairwise(target=ndcg@5)", "native:lambdarank"])
def test_lightgbm_begins_with_the_trees_of_one_machine_where_bins_agree(client, objective):
    """Later trees part at near ties of gains, which are summed in another order."""
    x, y, qid = arrays(TASK, UNEQUAL)
    params = {**LEAVES["lightgbm"], "num_leaves": 6}
    there = train(client, x, y, qid=qid, objective=objective, rounds=2, params=params)
    plan = training_plan(objective=objective, metric="ndcg", rounds=2, params=params)
    here = train_here(plan, part(TASK))
    first = [
        frame[frame["tree_index"] == 0]
        for frame in (f.booster.trees_to_dataframe() for f in (there.fitted, here.fitted))
    ]
    for column in ("node_index", "split_feature", "threshold"):
        assert first[0][column].equals(first[1][column]), column
    gains = [frame["split_gain"].to_numpy(float) for frame in first]
    assert gains[0] == pytest.approx(gains[1], rel=1e-4, nan_ok=True)


def lightgbm_values(client, objective, seed):
    """Return NDCG@5 of other queries: of a model of two workers, of one machine, untrained."""
    task, held_out = make_task(seed=seed, queries=200), make_task(seed=seed + 1, queries=200)
    measure = gbmrank.metric("ndcg@5")
    x, y, qid = arrays(task, [0, 60, 200])
    there = train(client, x, y, qid=qid, objective=objective, rounds=20)
    here = train_here(training_plan(objective=objective, metric=measure, rounds=20), part(task))
    scores = there.scores(held_out.x), here.scores(held_out.x), np.zeros(held_out.n)
    return [measure.score(held_out.y, one, group=held_out.sizes) for one in scores]


@pytest.mark.nightly
def test_lightgbm_differs_from_one_machine_as_its_own_objective_does(client):
    """``python -m benchmarks workers`` has more data sets: there ours moves less."""
    seeds = (3, 13, 23, 33, 43)
    ours = np.array([lightgbm_values(client, "pairwise(target=ndcg@5)", s) for s in seeds])
    native = np.array([lightgbm_values(client, "native:lambdarank", s) for s in seeds])
    spread = np.abs(native[:, 0] - native[:, 1])
    gaps = ours[:, 0] - ours[:, 1]
    assert 0.0 < spread.mean() < 0.01
    assert np.abs(gaps).mean() <= 2.0 * spread.mean(), (ours, native)
    assert abs(gaps.mean()) <= spread.max(), (ours, native)
    assert (ours[:, 0] > ours[:, 2] + 0.1).all(), ours  # over a model that knows nothing


@pytest.mark.parametrize("backend", ["xgboost", "lightgbm"])
def test_stopping_is_the_same_on_all_workers_and_on_one_machine(client, backend):
    x, y, qid = arrays(TASK, UNEQUAL)
    vx, vy, vq = valid_arrays()
    params = {**LEAVES[backend], "learning_rate": 0.5}
    made = train(
        client,
        x,
        y,
        qid=qid,
        metric="ndcg@3",
        backend=backend,
        rounds=40,
        early_stopping=4,
        eval_set=[(vx, vy)],
        eval_qid=[vq],
        params=params,
    )
    values = made.history["valid_0"]["ndcg@3"]
    assert len(values) < 40
    assert made.best_round == int(np.argmax(values)) == len(values) - 5
    assert made.fitted.n_rounds == made.best_round + 1
    here = gbmrank.metric("ndcg@3").score(VALID.y, made.scores(VALID.x), group=VALID.sizes)
    assert here == pytest.approx(max(values), rel=1e-12)
    if backend == "xgboost":
        plan = training_plan(
            objective="pairwise(loss=logistic, target=ndcg@10)",
            metric="ndcg@3",
            backend=backend,
            rounds=40,
            early_stopping=4,
            params=params,
        )
        alone = train_here(plan, part(TASK), {"valid_0": part(VALID)})
        assert made.best_round == alone.best_round


@pytest.mark.parametrize("backend", ["xgboost", "lightgbm"])
@pytest.mark.nightly
def test_weights_reach_the_objective(client, backend):
    weight = np.repeat(query_weights(TASK), TASK.sizes)
    x, y, qid = arrays(TASK, UNEQUAL)
    options = {"backend": backend, "rounds": 4, "params": LEAVES[backend]}
    plain = train(client, x, y, qid=qid, **options).scores(TASK.x)
    made = train(client, x, y, qid=qid, sample_weight=y * 0 + weight, **options).scores(TASK.x)
    assert not np.allclose(plain, made)
    if backend == "xgboost":
        objective = "pairwise(loss=logistic, target=ndcg@10)"
        plan = training_plan(objective=objective, metric="ndcg", **options)
        here = train_here(plan, part(TASK, query_weights(TASK))).scores(TASK.x)
        assert made == pytest.approx(here, abs=1e-5)


@pytest.mark.parametrize(
    "backend", ["xgboost", pytest.param("lightgbm", marks=pytest.mark.nightly)]
)
def test_weights_of_items_reach_the_objective_and_no_metric(client, backend):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, TASK.n)
    x, y, qid = arrays(TASK, UNEQUAL)
    options = {"backend": backend, "rounds": 4, "params": LEAVES[backend]}
    watched: dict[str, Any] = {"eval_set": [(x, y)], "eval_qid": [qid + 1000], "keep_best": False}
    given: dict[str, Any] = {"qid": qid, "sample_weight": y * 0 + weight, **options}
    made = train(client, x, y, **given, **watched, eval_sample_weight=[y * 0 + weight])
    plain = train(client, x, y, **given, **watched)
    assert made.history == plain.history  # metrics weigh queries
    objective = "pairwise(loss=logistic, target=ndcg@10)"
    plan = training_plan(objective=objective, metric="ndcg", **options)
    here = train_here(plan, part(TASK, weight)).scores(TASK.x)
    if backend == "xgboost":
        assert made.scores(TASK.x) == pytest.approx(here, abs=1e-5)
    else:  # bins are not those of one machine
        far = train_here(plan, part(TASK)).scores(TASK.x)
        near, unweighted = (np.corrcoef(made.scores(TASK.x), s)[0, 1] for s in (here, far))
        assert near > max(0.97, unweighted)
    with pytest.raises(WeightError, match="rows of query"):
        train(client, x, y, **given, objective="softmax")


def test_weights_and_a_native_objective_of_xgboost_are_refused(client):
    x, y, qid = arrays(TASK, UNEQUAL)
    with pytest.raises(WeightError, match="does not support weights with queries"):
        train(
            client, x, y, qid=qid, sample_weight=y, objective="native:rank:ndcg", backend="xgboost"
        )


@pytest.mark.parametrize("backend", ["xgboost", "lightgbm"])
def test_an_error_on_a_worker_reaches_the_client_and_the_next_training_works(client, backend):
    x, y, qid = arrays(TASK, UNEQUAL)
    steep = {"learning_rate": 1e9, **LEAVES[backend]}
    with pytest.raises(NumericError, match="query"):
        train(
            client,
            x,
            y,
            qid=qid,
            objective="rankboost",
            backend=backend,
            rounds=10,
            params=steep,
        )
    made = train(client, x, y, qid=qid, backend=backend, rounds=2, params=LEAVES[backend])
    assert made.fitted.n_rounds == 2


def test_settings_that_contradict_are_refused(client):
    x, y, qid = arrays(TASK, UNEQUAL)
    with pytest.raises(ConfigError, match="backend must be one of lightgbm, xgboost"):
        train(client, x, y, qid=qid, backend="catboost")
    with pytest.raises(ConfigError, match="eval_set=, eval_qid="):
        train(client, x, y, qid=qid, early_stopping=3)
    with pytest.raises(ConfigError, match="bagging_by_query"):
        train(client, x, y, qid=qid, params={"bagging_by_query": True})
    graphs = gbmrank.PreferenceGraphs.from_labels(TASK.y, group=TASK.sizes)
    with pytest.raises(ConfigError, match="preferences are not supported on Dask"):
        train(client, x, y, qid=qid, objective=gbmrank.objective("linear", preferences=graphs))
