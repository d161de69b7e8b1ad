"""Calibration functions: certified from below, found from above."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from gbmrank import theory
from gbmrank.errors import LimitError, ParameterError

pytestmark = pytest.mark.compiled  # hundred thousands of risks
TIGHT = {
    "pointwise(loss=squared, target=precision)": ("precision@1", np.sqrt(2), 0.1),
    "pointwise(loss=squared_hinge(t=2), target=precision)": ("precision@1", np.sqrt(2) / 2, 0.1),
    "pairwise(loss=squared, target=dcg)": ("dcg", 1.0, 0.02),
    "bregman(loss=softmax, target=recall)": ("recall@1", np.sqrt(2), 0.02),
}


@pytest.mark.parametrize("objective", TIGHT)
def test_two_items_have_the_published_constants_that_are_tight(objective):
    """SPEC of the regret bounds: c C_phi, with equality as the regret goes to 0."""
    metric, constant, eps = TIGHT[objective]
    found = theory.calibration_function(objective, metric, eps=[eps])
    c_phi = theory.c_phi(theory.positional(metric, [0, 1]).discounts)
    assert found.certified
    for measured in (found.constants(), found.constants(estimate=True)):
        assert measured[0] / c_phi == pytest.approx(constant, rel=5e-4)


def hinge_risk(scores, utilities):
    """Sum over ordered pairs of u_i max(1 - (s_i - s_j), 0)^2, over n - 1, and its gradient."""
    short = np.maximum(1.0 - scores[:, None] + scores[None, :], 0.0)
    np.fill_diagonal(short, 0.0)
    slopes = 2.0 * utilities[:, None] * short
    total = float((utilities[:, None] * short**2).sum())
    return total / (len(scores) - 1), (slopes.sum(axis=0) - slopes.sum(axis=1)) / (len(scores) - 1)


def dcg(utilities, order):
    return sum(utilities[i] / np.log2(2.0 + rank) for rank, i in enumerate(order))


def tied_towards_an_error(scores, rng):
    """Scores of two items, or of three, made nearly equal, in the wrong order."""
    wrong = scores.copy()
    chosen = rng.choice(len(scores), size=rng.integers(2, len(scores) + 1), replace=False)
    order = chosen[np.argsort(scores[chosen])]
    wrong[order] = scores[chosen].mean() - 1e-6 * np.arange(len(order))
    return wrong


@pytest.mark.parametrize(
    ("n", "count"),
    [(2, 200), *(pytest.param(n, 1000, marks=pytest.mark.nightly) for n in (2, 3))],
)
def test_no_distribution_misorders_for_less(n, count):
    """A loss without a published constant; scipy minimises the plain formula."""
    objective = "pairwise(loss=squared_hinge, target=dcg)"
    found = theory.calibration_function(objective, "dcg", n, cells=3000)
    assert found.certified
    assert np.all(found.lower[2:] > 0.0)
    assert np.all(found.upper[2:] < 1.05 * found.lower[2:])
    rng, tried, nearest = np.random.default_rng(n), 0, np.inf
    labels = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
    for _ in range(count):
        utilities = rng.dirichlet(np.full(len(labels), 0.3)) @ labels
        least = minimize(hinge_risk, np.zeros(n), utilities, jac=True, tol=1e-10)
        scores = tied_towards_an_error(least.x, rng)
        best = dcg(utilities, np.argsort(-utilities))
        regret = best - dcg(utilities, np.argsort(-scores))
        excess = hinge_risk(scores, utilities)[0] - least.fun
        certified = found(regret)
        assert excess >= certified - 1e-6
        assert regret <= found.regret_bound(max(excess, 0.0) + 1e-6) + 1e-12
        if certified > 0:
            tried, nearest = tried + 1, min(nearest, excess / certified)
    assert tried > count / 10
    assert nearest < 2.0


def test_graphs_of_duchi():
    """Two opposite edges and the linear loss with nu = 1/2: the regret eps costs eps^2."""
    graphs = [[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]]
    found = theory.calibration_function(
        "linear", "pairwise_disagreement(normalize=false)", graphs=graphs, eps=[0.1, 0.5, 1.0]
    )
    assert found.certified
    assert found.largest == 1.0
    np.testing.assert_allclose(found.lower, [0.01, 0.25, 1.0], rtol=1e-3)
    np.testing.assert_allclose(found.upper, [0.01, 0.25, 1.0], rtol=1e-3)


def test_a_loss_that_is_not_calibrated_has_zeros():
    """Duchi, Mackey and Jordan, Theorem 11: at even odds RankNet puts item 2 above item 1."""
    graphs = np.zeros((2, 3, 3))
    graphs[0, 0, 1], graphs[0, 0, 2] = 1.0, 3.0
    graphs[1, 1, 2], graphs[1, 2, 0] = 0.2, 1.0
    raw = "pairwise_disagreement(normalize=false)"
    found = theory.calibration_function("ranknet", raw, graphs=graphs, eps=[0.08, 2.0])
    assert found.upper[0] < 1e-7
    assert found.lower[0] == 0.0
    assert found.lower[1] > 0.1
    assert found.worst[0].regret(raw, found.worst[0].minimiser("ranknet").scores) > 0.05


@pytest.mark.nightly
def test_more_expectations_than_can_be_covered_are_estimated():
    found = theory.calibration_function("ranknet", "dcg", 3, eps=[0.05, 0.4])
    assert not found.certified
    assert np.all(found.lower == 0.0)
    assert 0.0 <= found.upper[0] < found.upper[1]
    with pytest.raises(ParameterError, match="estimate=True"):
        found.regret_bound(0.01)
    assert 0.0 < found.regret_bound(0.01, estimate=True) <= found.largest


def test_the_values_in_between_and_the_bound():
    found = theory.calibration_function("pairwise(loss=squared, target=dcg)", "dcg@1", eps=[0.1, 1])
    np.testing.assert_allclose(found.lower, [0.01, 1.0], rtol=1e-3)
    assert (found(0.05), found(0.1), found(0.7)) == (0.0, found.lower[0], found.lower[0])
    assert found.regret_bound(0.0) == pytest.approx(0.1)
    assert found.regret_bound(5.0) == 1.0
    assert found.regret_bound(0.005) == pytest.approx(0.1 + 0.9 / 2, rel=1e-3)


def test_where_every_order_is_best():
    found = theory.calibration_function("pointwise(target=precision)", "precision@2")
    assert (found.largest, found.regret_bound(1.0)) == (0.0, 0.0)


def test_what_is_not_computed():
    with pytest.raises(ParameterError, match="kink"):
        theory.calibration_function("ranksvm", "dcg")
    with pytest.raises(LimitError, match="2 to 4"):
        theory.calibration_function("ranknet", "dcg", 5)
    with pytest.raises(LimitError, match="1,296"):
        theory.calibration_function("ranknet", "dcg", 4, grades=range(6))
    with pytest.raises(ParameterError, match="largest there is, 1"):
        theory.calibration_function("ranknet", "dcg@1", eps=[2.0])
    with pytest.raises(ParameterError, match="comparison and linear"):
        theory.calibration_function("listmle", "pairwise_disagreement", graphs=np.zeros((1, 2, 2)))


@pytest.mark.nightly
@pytest.mark.parametrize("metric", ["dcg@1", "dcg@2", "dcg"])
def test_the_smallest_constants_of_cut_offs(metric):
    """For the squared loss c C_phi is attained at every cut-off, times sqrt(2 / n) for pairs.

    Scores sorted like o cost at least |z|^2 with z = U - s and regret a.U <= a.z, |a| the
    distance of the two orders of discounts; equality at U = const + t a and the reverse order.
    """
    n = 3
    phi = theory.positional(metric, np.zeros(n)).discounts
    eps = 0.3 * (phi[0] - phi[-1])
    for objective, constant in {
        "pointwise(loss=squared, target=dcg)": np.sqrt(2),
        "pairwise(loss=squared, target=dcg, normalize=none)": np.sqrt(2 / n),
    }.items():
        found = theory.calibration_function(objective, metric, n, eps=[eps], cells=40_000)
        assert found.constants(estimate=True)[0] <= constant * theory.c_phi(phi) * (1 + 1e-6)
        assert found.constants(estimate=True)[0] == pytest.approx(
            constant * theory.c_phi(phi), rel=0.01
        )
        assert found.constants()[0] >= constant * theory.c_phi(phi) * (1 - 1e-6)
