"""Minimisers and values that the specification prints (sections 3.4, 4.3, 4.4, 5.5, 9)."""

import numpy as np
import pytest
from scipy.optimize import minimize

import gbmrank
from gbmrank import RankingData
from tests import objective_oracles as oracle


def minimiser(spec, outcomes, probabilities, start=None):
    """Centred best scores of the expected loss over a finite distribution of labels."""
    outcomes = np.array(outcomes, float)
    count, n = outcomes.shape
    data = RankingData.from_arrays(outcomes.ravel(), group=[n] * count, weight=probabilities)
    ready = gbmrank.objective(spec, normalize="none").bind(data)

    def risk(s):
        scores = np.tile(s, count)
        grad, _ = ready.gradients(scores)
        return ready.losses(scores).sum(), grad.reshape(count, n).sum(axis=0)

    found = minimize(risk, np.zeros(n) if start is None else start, jac=True, tol=1e-13)
    return found.x - found.x.mean(), found.fun


# SPEC 3.4: comparing labels misorders items 1 and 2, whose expected labels are .3 and .2.
OUTCOMES, CHANCES = [[0, 0, 1], [1, 0, 0], [1, 1, 0]], [0.2, 0.5, 0.3]


@pytest.mark.parametrize(
    ("loss", "scores"),
    [
        ("logistic", (1.259801, -0.681053, -0.578748)),
        ("exponential", (0.654634, -0.400134, -0.254500)),
        ("squared_hinge", (0.493333, -0.266667, -0.226667)),
    ],
)
def test_comparison_is_not_order_preserving(loss, scores):
    found, _ = minimiser(f"comparison(loss={loss})", OUTCOMES, CHANCES)
    np.testing.assert_allclose(found, scores, atol=2e-6)
    assert found[2] > found[1]


def test_hinge_ties_items_that_differ():
    made = gbmrank.objective("ranksvm(normalize=none)")
    risk = made.loss(np.ravel(OUTCOMES), np.tile([1.0, 0, 0], 3), group=[3] * 3, weight=CHANCES)
    assert risk == pytest.approx(0.9)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "squared", "squared_hinge"])
def test_pairwise_is_order_preserving_on_the_same_labels(loss):
    found, _ = minimiser(f"pairwise(loss={loss}, target=identity)", OUTCOMES, CHANCES)
    assert found[0] > found[1] > found[2]
    best = np.array([0.8, 0.3, 0.2])
    exact = {"logistic": np.log(best), "exponential": np.log(best) / 2, "squared": best}
    if loss in exact:
        np.testing.assert_allclose(found, exact[loss] - exact[loss].mean(), atol=1e-6)


def test_softmax_orders_shares_and_softmax_ce_orders_utilities():
    """SPEC 3.3: u = (1,0,0) w.p. .55 and (0,3,3) w.p. .45."""
    outcomes, chances = [[1, 0, 0], [0, 3, 3]], [0.55, 0.45]
    shares, _ = minimiser("bregman(loss=softmax, target=identity)", outcomes, chances)
    utilities, _ = minimiser("bregman(loss=softmax_ce, target=identity)", outcomes, chances)
    assert shares[0] > shares[1]
    assert utilities[0] < utilities[1]


@pytest.mark.parametrize(("regulariser", "q"), [("square", 2), ("power(q=3)", 3), ("cosh", 0)])
def test_linear_minimiser_is_the_inverse_slope_of_the_net_degree(regulariser, q):
    """SPEC 4.3, and 4.5: f = n y - sum y."""
    made, labels = gbmrank.objective("linear", regulariser=regulariser, nu=0.5), [2.0, 0, 1, 4]
    data = RankingData.from_arrays(labels)
    slope = (4 * np.array(labels) - 7) / 0.5
    power = np.sign(slope) * (np.abs(slope) / max(q, 2)) ** (1 / max(q - 1, 1))
    best = np.arcsinh(slope) if regulariser == "cosh" else power
    np.testing.assert_allclose(made.template.minimiser(data), best)
    grad, _ = made.gradients(labels, best)
    np.testing.assert_allclose(grad, 0, atol=1e-13)


def test_the_linear_loss_with_squares_is_least_squares_on_the_net_degree():
    """SPEC 4.3: nu sum (s - f / 2 nu)^2 up to a constant; nu = 1/2 has target f."""
    made, rng = gbmrank.objective("linear(normalize=none)"), np.random.default_rng(0)
    labels, one, two = rng.integers(0, 5, 6), rng.normal(size=6), rng.normal(size=6)
    f = 6 * labels - labels.sum()
    change = made.loss(labels, one) - made.loss(labels, two)
    assert change == pytest.approx(0.5 * (((one - f) ** 2).sum() - ((two - f) ** 2).sum()))


def test_errata_of_asymmetric_a_inside_a_push():
    """SPEC 9, M 3: p = 8; the fair constant moves the optimum."""
    mass, eta = np.array([0.3, 0.2, 0.3, 0.2]), np.array([0.15, 0.35, 0.6, 0.8])
    positive = mass * eta / (mass * eta).sum()
    negative = mass * (1 - eta) / (mass * (1 - eta)).sum()

    def risk(s):
        pairs = np.array([[oracle.kappa("asymmetric_a", a - b) for b in s] for a in s])
        return float(negative @ (positive @ pairs) ** 8)

    found = minimize(risk, np.zeros(4), tol=1e-14, method="BFGS").x
    np.testing.assert_allclose(found - found.mean(), (-0.329, -0.100, 0.112, 0.317), atol=2e-3)
    # The library's risk on a sample with these frequencies is the same number.
    counts = np.round(np.stack([positive, negative]) * 4000).astype(int)
    s = np.array([-0.329, -0.100, 0.112, 0.317])
    scores = np.concatenate([np.repeat(s, counts[0]), np.repeat(s, counts[1])])
    labels = np.repeat([1.0, 0.0], counts.sum(axis=1))
    made = gbmrank.objective("push(loss=asymmetric_a, p=8, normalize=none)")
    assert made.loss(labels, scores, group=[len(labels)]) == pytest.approx(risk(s), rel=2e-3)


@pytest.mark.parametrize(
    ("spec", "rate"),
    [
        ("bipartite(loss=logistic)", 1.0),
        ("bipartite(loss=exponential)", 2.0),
        ("bipartite(loss=p_classification(p=4))", 5.0),
        ("push(loss=exponential, p=4)", 5.0),
        ("bipartite(loss=asymmetric_b)", 1.0),
    ],
)
def test_bayes_scorers_of_bipartite_risks(spec, rate):
    """SPEC 5.5 and 5.6: logit(eta) / a up to a shift, from a sample with exact frequencies."""
    eta = np.array([0.1, 0.3, 0.6, 0.9])
    ups = (eta * 10).round().astype(int)
    groups = np.concatenate([np.repeat(np.arange(4), ups), np.repeat(np.arange(4), 10 - ups)])
    labels = np.repeat([1.0, 0.0], [ups.sum(), (10 - ups).sum()])
    ready = gbmrank.objective(spec, normalize="none").bind(RankingData.from_arrays(labels))

    def risk(s):
        grad, _ = ready.gradients(s[groups])
        return ready.losses(s[groups]).sum(), np.bincount(groups, grad, minlength=4)

    found = minimize(risk, np.zeros(4), jac=True, tol=1e-13).x
    exact = np.log(eta / (1 - eta)) / rate
    np.testing.assert_allclose(found - found.mean(), exact - exact.mean(), atol=1e-5)


def test_weighted_ranknet_bounds_one_minus_ndcg():
    """SPEC 3.5: 1 - NDCG <= w_ranknet in base 2 over the ideal DCG."""
    rng, made = np.random.default_rng(4), gbmrank.objective("w_ranknet(normalize=none)")
    listmle = gbmrank.objective("w_listmle(normalize=none)")
    for _ in range(50):
        labels, scores = rng.integers(0, 4, 6).astype(float), rng.normal(size=6)
        if not labels.any():
            continue
        ideal = gbmrank.metric("dcg").score(labels, labels)
        regret = 1 - gbmrank.metric("ndcg").score(labels, scores)
        assert regret <= made.loss(labels, scores) / np.log(2) / ideal + 1e-12
        assert regret <= listmle.loss(labels, scores) / np.log(2) / ideal + 1e-12
