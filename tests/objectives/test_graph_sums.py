"""Objectives on preference graphs: values, minimisers, counterexamples, and the boosters."""

import math
import pickle

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from scipy.optimize import minimize

import gbmrank
from gbmrank import theory
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.errors import DataError, ParameterError
from tests.ranking_tasks import make_task

PHI = {
    "logistic": lambda z: math.log1p(math.exp(-z)),
    "exponential": lambda z: math.exp(-z),
    "squared_hinge": lambda z: max(1 - z, 0) ** 2,
    "hinge": lambda z: max(1 - z, 0),
    "squared_margin": lambda z: (1 - z) ** 2,
}
SIZES = [4, 1, 5]


def some_graphs(seed=0):
    rng = np.random.default_rng(seed)
    winner, loser = [0, 1, 2, 3, 0, 5, 6, 9, 7], [1, 2, 0, 1, 1, 6, 5, 8, 9]
    return PreferenceGraphs.from_edges(winner, loser, rng.random(9), group=SIZES)


def mean_graph(weights):
    """Three items; ``weights`` by (winner, loser)."""
    (winner, loser), weight = zip(*weights, strict=True), list(weights.values())
    return PreferenceGraphs.from_edges(winner, loser, weight, group=[3])


THEOREM_11 = mean_graph({(0, 1): 0.5, (0, 2): 1.5, (1, 2): 0.1, (2, 0): 0.5})
THEOREM_12 = mean_graph({(0, 1): 0.25, (1, 2): 0.01, (0, 2): 0.5, (2, 0): 0.24})


def centred_minimiser(objective):
    def value(scores):
        grad, _ = objective.gradients(None, scores)
        return objective.loss(None, scores), grad

    found = minimize(value, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    return found - found.mean()


def loss_by_loops(graphs, scores, name, margin):
    total = 0.0
    begins = np.concatenate([[0], np.cumsum(SIZES)])
    for query, n in enumerate(SIZES):
        a = graphs.to_matrix(query)
        s = scores[begins[query] : begins[query + 1]]
        for i in range(n):
            for j in range(n):
                if a[i, j] > 0 and margin == "weight":
                    total += PHI[name](s[i] - s[j] - a[i, j])
                elif a[i, j] > 0:
                    total += a[i, j] * PHI[name](s[i] - s[j] - margin)
    return total


@pytest.mark.parametrize("margin", [0, 0.7, "weight"])
@pytest.mark.parametrize("name", sorted(PHI))
def test_comparison_on_edges_is_its_formula(name, margin):
    graphs = some_graphs()
    scores = np.random.default_rng(1).normal(size=10)
    objective = gbmrank.objective(
        "comparison", loss=name, margin=margin, preferences=graphs, normalize="none"
    )
    value = objective.loss(None, scores)
    assert value == pytest.approx(loss_by_loops(graphs, scores, name, margin), rel=1e-12)
    grad, hess = objective.gradients(None, scores)
    step = 1e-4
    for row in range(10):
        up, down = scores.copy(), scores.copy()
        up[row] += step
        down[row] -= step
        above, below = (loss_by_loops(graphs, s, name, margin) for s in (up, down))
        assert grad[row] == pytest.approx((above - below) / (2 * step), abs=1e-6)
        if name not in ("hinge", "squared_hinge"):
            assert hess[row] == pytest.approx((above - 2 * value + below) / step**2, abs=1e-5)
    assert np.all(hess >= 0)


def test_hessian_normalisation_and_weight_act_on_edges_as_on_labels():
    graphs, scores = some_graphs(), np.random.default_rng(1).normal(size=10)

    def gradients(**options):
        objective = gbmrank.objective("comparison", preferences=graphs, **options)
        return objective.gradients(None, scores)

    grad, hess = gradients(normalize="none")
    np.testing.assert_allclose(gradients(normalize="none", hessian="majorise")[1], 2 * hess)
    assert np.all(gradients(hessian="constant")[1] == 1.0)
    factor = np.repeat([1 / 3, 1.0, 1 / 4], SIZES)
    np.testing.assert_allclose(gradients()[0], factor * grad)
    objective = gbmrank.objective("comparison", preferences=graphs, normalize="none")
    weighted = objective.gradients(None, scores, weight=[2.0, 1.0, 3.0])
    np.testing.assert_allclose(weighted[0], np.repeat([2.0, 1.0, 3.0], SIZES) * grad)


@pytest.mark.parametrize("name", ["linear", "comparison", "comparison(margin=0)"])
def test_graphs_from_labels_give_what_labels_give(name):
    task = make_task(seed=0)
    scores = np.random.default_rng(0).normal(size=task.n)
    weights = "difference" if name == "linear" else "unit"
    graphs = PreferenceGraphs.from_labels(task.y, group=task.sizes, weights=weights)
    ours = gbmrank.objective(name, preferences=graphs)
    theirs = gbmrank.objective(name)
    for mine, plain in zip(
        ours.gradients(None, scores),
        theirs.gradients(task.y, scores, group=task.sizes),
        strict=True,
    ):
        np.testing.assert_allclose(mine, plain, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("margin", [0.5, "weight"])
def test_a_margin_works_on_labels_too(margin):
    labels, scores = np.array([2.0, 0.0, 1.0]), np.array([0.3, 0.1, -0.2])
    objective = gbmrank.objective("comparison", margin=margin, normalize="none")
    expected = sum(
        PHI["logistic"](
            scores[i] - scores[j] - (labels[i] - labels[j] if margin == "weight" else margin)
        )
        for i in range(3)
        for j in range(3)
        if labels[i] > labels[j]
    )
    assert objective.loss(labels, scores) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("regulariser", ["square", "power(q=3)", "power(q=1.5)", "cosh"])
@pytest.mark.parametrize("nu", [0.5, 2.0])
def test_the_closed_form_minimiser_is_the_numerical_one(regulariser, nu):
    graphs = some_graphs(3)
    objective = gbmrank.objective(
        "linear", preferences=graphs, regulariser=regulariser, nu=nu, normalize="none"
    )
    closed = objective.minimiser()
    found = minimize(
        lambda s: objective.loss(None, s),
        np.full(10, 0.1),
        jac=lambda s: objective.gradients(None, s)[0],
        method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-11, "maxiter": 5000, "maxfun": 20000},
    )
    np.testing.assert_allclose(closed, found.x, atol=2e-4)
    assert objective.loss(None, closed) <= found.fun + 1e-13
    np.testing.assert_allclose(objective.gradients(None, closed)[0], 0.0, atol=1e-12)


def test_the_minimiser_comes_in_the_order_of_the_rows():
    qid = ["b", "a", "b", "a"]
    graphs = PreferenceGraphs.from_edges([2, 1], [0, 3], [2.0, 1.0], qid=qid)
    objective = gbmrank.objective("linear", preferences=graphs)
    assert objective.minimiser().tolist() == [-2.0, 1.0, 2.0, -1.0]
    assert gbmrank.objective("linear").minimiser([2, 0, 1]).tolist() == [3.0, -3.0, 0.0]
    with pytest.raises(ParameterError, match="comparison has no closed-form minimiser"):
        gbmrank.objective("comparison").minimiser([1, 0])


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("logistic", (1.060294, -0.840220, -0.220075)),
        ("exponential", (0.589632, -0.536479, -0.053153)),
        ("squared_hinge", (0.44, -0.32, -0.12)),
    ],
)
def test_theorem_11_comparison_losses_misorder_under_low_noise(loss, expected):
    assert theory.is_low_noise(THEOREM_11.to_matrix(0))
    objective = gbmrank.objective("comparison", loss=loss, preferences=THEOREM_11, normalize="none")
    found = centred_minimiser(objective)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert np.argsort(-found).tolist() == [0, 2, 1]


def test_theorem_11_the_hinge_ties_what_it_should_separate():
    hinge = gbmrank.objective("comparison", loss="hinge", preferences=THEOREM_11, normalize="none")
    assert hinge.loss(None, [1.0, 0.0, 0.0]) == pytest.approx(1.1)
    assert hinge.loss(None, [1.0, 0.01, 0.0]) - 1.1 == pytest.approx(0.01 * 0.4)
    assert hinge.loss(None, [1.0, -0.01, 0.0]) - 1.1 == pytest.approx(0.01 * 0.1)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("logistic", (1.843659, -2.355928, 0.512269)),
        ("exponential", (0.749127, -1.072959, 0.323831)),
        ("squared_hinge", (0.873268, -1.001539, 0.128271)),
    ],
)
def test_theorem_12_margins_do_not_help(loss, expected):
    assert theory.is_low_noise(THEOREM_12.to_matrix(0))
    objective = gbmrank.objective(
        "comparison", loss=loss, margin=1, preferences=THEOREM_12, normalize="none"
    )
    found = centred_minimiser(objective)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert np.argsort(-found).tolist() == [0, 2, 1]


@pytest.mark.parametrize("regulariser", ["square", "power(q=3)", "cosh"])
@pytest.mark.parametrize("graphs", [THEOREM_11, THEOREM_12])
def test_the_linear_loss_orders_both_counterexamples_rightly(graphs, regulariser):
    objective = gbmrank.objective("linear", preferences=graphs, regulariser=regulariser)
    assert np.argsort(-objective.minimiser()).tolist() == [0, 1, 2]
    chain = mean_graph({(0, 1): 1.0, (1, 2): 6.0})  # a DAG without the degree condition
    objective = gbmrank.objective("linear", preferences=chain, regulariser=regulariser)
    assert np.argsort(-objective.minimiser()).tolist() == [1, 0, 2]


def booster_task(seed=0):
    task = make_task(seed=seed, queries=60)
    graphs = PreferenceGraphs.from_labels(task.y, group=task.sizes, weights="unit").to_edges()
    rng = np.random.default_rng(seed)
    edges = rng.choice(len(graphs.winner), 400, replace=False)
    kept = graphs.winner[edges], graphs.loser[edges], 1.0 + rng.random(400)
    return task, PreferenceGraphs.from_edges(*kept, group=task.sizes)


@pytest.mark.parametrize("name", ["duchi_linear", "ranknet"])
def test_both_boosters_learn_preferences_without_labels(name):
    task, graphs = booster_task()
    new, new_graphs = booster_task(seed=1)
    objective = gbmrank.objective(name, preferences=graphs)
    metric = gbmrank.metric("pairwise_disagreement", preferences=new_graphs)
    params = gbmrank.booster_params(objective, "lightgbm") | {"verbose": -1}
    data = lgb.Dataset(task.x, np.zeros(task.n), group=task.sizes)
    valid = lgb.Dataset(new.x, np.zeros(new.n), group=new.sizes, reference=data)
    history: dict = {}
    booster = lgb.train(
        params | {"objective": objective},
        data,
        30,
        valid_sets=[valid],
        feval=metric,
        callbacks=[lgb.record_evaluation(history)],
    )
    scores = booster.predict(new.x, raw_score=True)
    values = history["valid_0"][metric.name_in("lightgbm")]
    assert values[-1] == pytest.approx(metric.score(None, scores), abs=1e-9)
    assert values[-1] < 0.3  # half of the weight is chance
    params = gbmrank.booster_params(objective, "xgboost")
    matrix = xgb.DMatrix(task.x, qid=task.qid)
    held = xgb.DMatrix(new.x, qid=new.qid)
    record: dict = {}
    booster = xgb.train(
        params,
        matrix,
        30,
        obj=objective,
        evals=[(held, "valid")],
        custom_metric=metric,
        evals_result=record,
        verbose_eval=False,
    )
    assert record["valid"][metric.name_in("xgboost")][-1] < 0.3


def test_a_callback_returns_what_gradients_returns():
    task, graphs = booster_task()
    scores = np.random.default_rng(0).normal(size=task.n)
    for name in ("linear", "comparison"):
        objective = gbmrank.objective(name, preferences=graphs)
        data = lgb.Dataset(task.x, np.zeros(task.n), group=task.sizes).construct()
        grad, _ = objective(scores, data)
        np.testing.assert_allclose(grad, objective.gradients(None, scores)[0], rtol=1e-5, atol=1e-6)


def test_another_data_set_is_rejected_with_both_numbers():
    task, graphs = booster_task()
    objective = gbmrank.objective("linear", preferences=graphs)
    part = task.rows(0, 10)
    data = lgb.Dataset(part.x, part.y, group=part.sizes).construct()
    message = f"for {task.n} rows in 60 queries, the data set has {part.n} rows in 10 queries"
    with pytest.raises(DataError, match=message):
        objective(np.zeros(part.n), data)
    matrix = xgb.DMatrix(part.x, part.y, qid=part.qid)
    with pytest.raises(DataError, match=message):
        objective(np.zeros(part.n), matrix)
    with pytest.raises(DataError, match=message):
        gbmrank.metric("pairwise_disagreement", preferences=graphs)(np.zeros(part.n), data)
    with pytest.raises(DataError, match="10 queries"):
        objective.loss(part.y, np.zeros(part.n), group=part.sizes)


def test_subsets_are_followed_to_their_rows():
    task, graphs = booster_task()
    data = lgb.Dataset(task.x, np.zeros(task.n), group=task.sizes, free_raw_data=False).construct()
    rows = np.flatnonzero(np.isin(task.qid, [3, 4, 7, 20]))
    part = data.subset(rows.tolist()).construct()
    scores = np.random.default_rng(0).normal(size=task.n)
    for name in ("linear", "comparison"):
        objective = gbmrank.objective(name, preferences=graphs)
        whole, _ = objective(scores, data)
        cut, _ = objective(scores[rows], part)
        np.testing.assert_allclose(cut, whole[rows], rtol=1e-6, atol=1e-7)
    metric = gbmrank.metric("pairwise_disagreement", preferences=graphs, empty="zero")
    expected = metric.per_query(None, scores)[[3, 4, 7, 20]]
    found = metric(scores[rows], part)[1]
    assert found == pytest.approx(np.nan_to_num(expected).mean())


def test_cross_validation_uses_the_preferences_of_each_fold():
    task, graphs = booster_task()
    objective = gbmrank.objective("comparison", preferences=graphs)
    metric = gbmrank.metric("pairwise_disagreement", preferences=graphs)
    folds = gbmrank.query_folds(group=task.sizes, n_folds=3)
    data = lgb.Dataset(task.x, np.zeros(task.n), group=task.sizes)
    params = gbmrank.booster_params(objective, "lightgbm") | {"verbose": -1}
    result = lgb.cv(
        params | {"objective": objective},
        data,
        10,
        folds=folds,
        feval=metric,
        return_cvbooster=True,
    )
    name = metric.name_in("lightgbm")
    assert result[f"valid {name}-mean"][-1] < 0.3
    values = []
    for booster, (_, test) in zip(result["cvbooster"].boosters, folds, strict=True):
        held = gbmrank.metric("pairwise_disagreement", preferences=graphs.take(test))
        values.append(held.score(None, booster.predict(task.x[test], raw_score=True)))
    assert result[f"valid {name}-mean"][-1] == pytest.approx(np.mean(values), abs=1e-9)


def test_preferences_are_part_of_the_value_and_not_of_the_text():
    graphs = some_graphs()
    objective = gbmrank.objective("linear", preferences=graphs)
    assert str(objective) == "linear"
    assert objective != gbmrank.objective("linear")
    assert objective == gbmrank.objective("linear", preferences=some_graphs())
    assert objective == pickle.loads(pickle.dumps(objective))  # noqa: S301
    assert hash(objective) == hash(pickle.loads(pickle.dumps(objective)))  # noqa: S301
    assert str(gbmrank.objective("comparison", margin=1)) == "comparison(loss=logistic, margin=1)"
    assert gbmrank.objective("comparison(margin=1)") == gbmrank.objective("comparison", margin=1.0)
    metric = gbmrank.metric("pairwise_disagreement", preferences=graphs)
    assert str(metric) == "pairwise_disagreement"
    mixed = gbmrank.mix(objective, gbmrank.objective("ranknet", preferences=graphs))
    scores = np.arange(10.0)
    parts = [gbmrank.objective(n, preferences=graphs) for n in ("linear", "ranknet")]
    total = sum(part.loss(None, scores) for part in parts)
    assert mixed.loss(np.zeros(10), scores, group=SIZES) == pytest.approx(total)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda g: gbmrank.objective("pairwise", preferences=g), "no parameter 'preferences'"),
        (lambda g: gbmrank.objective("linear", preferences=3), "must be PreferenceGraphs or none"),
        (lambda g: gbmrank.objective("comparison", margin="x"), "finite number or weight"),
        (lambda g: gbmrank.objective("comparison", margin=math.inf), "finite number or weight"),
        (lambda g: gbmrank.objective("w_ranknet", preferences=g), "leave out weights="),
        (
            lambda g: gbmrank.objective("comparison", engine="linear", preferences=g),
            "leave out weights= and engine=",
        ),
        (lambda g: gbmrank.metric("ndcg", preferences=g), "no parameter 'preferences'"),
    ],
)
def test_options_that_do_not_go_together_are_rejected(make, message):
    with pytest.raises(ParameterError, match=message):
        make(some_graphs())
