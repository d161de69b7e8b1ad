"""Linear models against closed forms, a linear programme and scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

import gbmrank
from gbmrank.data import RankingData
from gbmrank.errors import DataError, ParameterError
from studies.linear import fit_linear, standardise

SQUARED = "pointwise(loss=squared, target=identity)"


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 4))
    labels = np.clip(np.rint(1.0 + x[:, 0] + rng.normal(size=60)), 0, 3)
    return x, RankingData.from_arrays(labels, group=[15, 20, 25])


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(4)
    winner, loser = rng.integers(0, 30, (2, 200))
    keep = winner != loser
    weight = rng.integers(1, 4, keep.sum()).astype(float)
    made = gbmrank.PreferenceGraphs.from_edges(winner[keep], loser[keep], weight, group=[30])
    return rng.normal(size=(30, 3)), made, RankingData.from_arrays(None, preferences=made)


@pytest.mark.parametrize("l2", [0.0, 5.0])
def test_least_squares_has_an_intercept_without_penalty(task, l2):
    x, data = task
    model = fit_linear(SQUARED, data, x, l2=l2)
    # sum (s - y)^2 + l2 / 2 |w|^2: rows sqrt(l2 / 2) for the penalty, none for the intercept
    penalty = np.sqrt(l2 / 2) * np.eye(4, 5)
    system = np.vstack([np.column_stack([x, np.ones(60)]), penalty])
    best = np.linalg.lstsq(system, np.append(data.labels, np.zeros(4)), rcond=None)[0]
    assert model.converged
    np.testing.assert_allclose(np.append(model.w, model.intercept), best, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.scores(x), x @ best[:4] + best[4], rtol=1e-5, atol=1e-6)


def test_the_linear_loss_has_a_closed_form(graphs):
    x, made, data = graphs
    nu, l2 = 1e-4, 0.02
    objective = gbmrank.objective(f"linear(nu={nu}, normalize=none)", preferences=made)
    model = fit_linear(objective, data, x, l2=l2)
    design = np.column_stack([x, np.ones(30)])
    curvature = 2 * nu * design.T @ design + l2 * np.diag([1.0, 1.0, 1.0, 0.0])
    best = np.linalg.solve(curvature, design.T @ made.net_degree())
    np.testing.assert_allclose(np.append(model.w, model.intercept), best, rtol=1e-5)


def test_the_hinge_reaches_the_optimum_of_its_linear_programme(graphs):
    x, made, data = graphs
    objective = gbmrank.objective("comparison(loss=hinge, normalize=none)", preferences=made)
    model = fit_linear(objective, data, x, l2=0.0)
    edges = made.to_edges()
    margins = x[edges.winner] - x[edges.loser]
    n = len(margins)
    best = linprog(  # weights w, then one slack per pair: slack >= 1 - margin, slack >= 0
        np.append(np.zeros(3), edges.weight),
        A_ub=np.hstack([-margins, -np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(None, None)] * 3 + [(0, None)] * n,
    )
    assert model.value == pytest.approx(best.fun, rel=1e-4)
    assert model.intercept == 0.0


def test_ranknet_is_logistic_regression_on_differences(graphs):
    x, made, data = graphs
    objective = gbmrank.objective("comparison(loss=logistic, normalize=none)", preferences=made)
    model = fit_linear(objective, data, x, l2=0.5)
    edges = made.to_edges()
    margins = x[edges.winner] - x[edges.loser]
    theirs = LogisticRegression(C=1 / 0.5, fit_intercept=False, tol=1e-10, max_iter=1000)
    both = np.vstack([margins, -margins])  # each pair both ways, at half its weight
    answers = np.repeat([1, 0], len(margins))
    theirs.fit(both, answers, np.tile(edges.weight / 2, 2))
    np.testing.assert_allclose(model.w, theirs.coef_[0], rtol=1e-4)


def test_a_start_elsewhere_leads_to_the_same_place(task):
    x, data = task
    cold = fit_linear("ranknet", data, x, l2=1.0)
    far = fit_linear("ranknet", data, x, l2=1000.0)
    warm = fit_linear("ranknet", data, x, l2=1.0, start=far)
    assert not np.allclose(far.w, cold.w, rtol=0.1)
    np.testing.assert_allclose(warm.w, cold.w, rtol=1e-3, atol=1e-5)


def test_a_loss_that_overflows_is_minimised_all_the_same(task):
    x, data = task
    model = fit_linear("rankboost", data, 1e4 * x, l2=0.0)
    at_zero = gbmrank.objective("rankboost").bind(data).losses(np.zeros(60)).sum()
    plain = fit_linear("rankboost", data, x, l2=0.0)
    assert plain.value < at_zero
    assert model.value == pytest.approx(plain.value, rel=1e-3)


def test_it_says_when_it_did_not_get_there(task):
    x, data = task
    assert not fit_linear("ranknet", data, x, l2=0.0, max_iterations=1).converged
    assert fit_linear("ranknet", data, x, l2=0.0).converged


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"l2": -1.0}, "l2 must be 0 or more and finite, got -1.0"),
        ({"X": np.zeros((3, 4))}, r"X has shape \(3, 4\), the data 60 rows"),
        ({"X": np.full((60, 4), np.nan)}, "standardise"),
        ({"start": 3}, "start has 3 weights, X has 4 features"),
    ],
)
def test_mistakes_are_explained(task, change, message):
    x, data = task
    given = {"X": x, "l2": 1.0, **change}
    if "start" in given:
        given["start"] = fit_linear("ranknet", data, x[:, :3], l2=1.0)
    with pytest.raises((DataError, ParameterError), match=message):
        fit_linear("ranknet", data, **given)


def test_standardise_learns_from_the_training_rows_alone():
    train = np.array([[1.0, 5.0, 2.0], [3.0, 5.0, np.nan], [5.0, 5.0, 4.0]])
    other = np.array([[3.0, 9.0, np.nan], [7.0, 5.0, 3.0]])
    ours, theirs = standardise(train, other)
    spread = np.sqrt(8 / 3)
    np.testing.assert_allclose(ours[:, 0], [-2 / spread, 0, 2 / spread])
    np.testing.assert_allclose(ours[:, 2], [-1.0, 0.0, 1.0])  # NaN in the middle
    np.testing.assert_allclose(theirs, [[0.0, 0.0, 0.0], [4 / spread, 0.0, 0.0]])
