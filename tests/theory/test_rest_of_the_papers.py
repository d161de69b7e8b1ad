"""Statements of the five papers that have a function of their own, against enumeration."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.errors import DataError, ParameterError
from gbmrank.losses.convex import Expm1, Power
from gbmrank.theory.bipartite import FiniteBipartite
from gbmrank.theory.shapes import contradictions

# Chen et al., section 2.3 ----------------------------------------------------------------------


def test_the_classification_bound_holds():
    rng, used = np.random.default_rng(0), 0.0
    for _ in range(400):
        n, k = int(rng.integers(1, 7)), [None, 1, 3, 10][rng.integers(4)]
        labels = rng.integers(0, 5, n).astype(float)
        predicted = np.where(rng.random(n) < 0.5, labels, rng.integers(0, 5, n))
        bound = theory.classification_bound(labels, predicted, k=k)[0]
        if not labels.any():
            assert np.isnan(bound)
            continue
        value = gbmrank.metric("ndcg" if k is None else f"ndcg@{k}").score(labels, predicted)
        assert 1.0 - value <= bound + 1e-12
        used = max(used, (1.0 - value) / max(bound, 1e-12))
    assert used > 0.1


def test_the_classification_bound_is_that_of_the_paper():
    labels, predicted = [4, 1, 0], [2, 1, 3]
    c = 1.0 / np.log2(np.arange(2, 5))
    ideal = 15 * c[0] + c[1]
    printed = 15 * np.sqrt(2) * np.sqrt((c**2).sum() - 3 * c.prod() ** (2 / 3)) * np.sqrt(2) / ideal
    assert theory.classification_bound(labels, predicted)[0] == pytest.approx(printed)
    with pytest.raises(ParameterError, match="max_grade=4"):
        theory.classification_bound([5.0], [1.0])


def test_the_essential_check_covers_rbp_and_err_and_weights_of_the_surrogate():
    rng = np.random.default_rng(1)
    for _ in range(60):
        labels, scores = rng.integers(0, 4, 5), rng.integers(0, 4, 5).astype(float)
        for metric in ("rbp(p=0.8)", "err", "ndcg@3"):
            for objective in ("ranknet", "listmle", "comparison(weights=[5, 4, 3, 2, 1])"):
                assert theory.essential_check(
                    labels, scores, objective=objective, metric=metric
                ).holds


# Menon and Williamson --------------------------------------------------------------------------


def test_orders_by_eta_minimise_the_zero_one_push_that_is_linear():
    rng = np.random.default_rng(2)
    for _ in range(6):
        population = FiniteBipartite(rng.integers(1, 5, 4), rng.permutation([0.1, 0.35, 0.6, 0.8]))
        best = population.zero_one_push_risk(population.eta**3, Power(1.0))
        for s in itertools.product(range(4), repeat=4):
            right = all(s[i] > s[j] for i, j in itertools.permutations(range(4), 2)
                        if population.eta[i] > population.eta[j])  # fmt: skip
            assert (population.zero_one_push_risk(s, Power(1.0)) <= best + 1e-12) == right


@pytest.mark.parametrize("outer", [Power(4.0), Expm1()])
def test_other_zero_one_pushes_need_small_masses(outer):
    """Two kinds of instances, split into copies: the order by eta is best once masses are small."""
    lost = []
    for copies in (1, 2, 3):
        eta = np.repeat([0.5, 0.6], copies)
        population = FiniteBipartite(np.repeat([9.0, 1.0], copies), eta)
        risks = [population.zero_one_push_risk(order, outer)
                 for order in itertools.permutations(range(2 * copies))]  # fmt: skip
        lost.append(risks[0] - min(risks))  # items are in the order of eta
    assert lost[-1] < 1e-12
    assert (lost[0] > 0.005) == (outer == Power(4.0))


@pytest.mark.parametrize("loss", ["logistic", "exponential", "p_classification(p=3)"])
def test_an_excess_risk_bounds_the_auc_regret(loss):
    for regret in (0.0, 0.01, 0.3, 0.9):
        excess = theory.auc_regret_bound(loss, regret)
        assert theory.largest_auc_regret(loss, excess) == pytest.approx(regret, abs=1e-7)
    rng = np.random.default_rng(3)
    for _ in range(10):
        population = FiniteBipartite.random(5, rng)
        risk, found = population.bipartite_risk(loss), population.bipartite_scorer(loss)
        scores = found.scores + rng.normal(0.0, 1.0, 5)
        lost = population.auc(found.scores) - population.auc(scores)
        assert lost <= theory.largest_auc_regret(loss, risk(scores)[0] - found.value) + 1e-9


def test_min_max_aligns_scores_up_to_scale():
    scores = np.array([3.0, -1.0, 0.5])
    np.testing.assert_allclose(theory.min_max(7 * scores + 2), theory.min_max(scores))
    assert theory.min_max([2, 2]).tolist() == [0.0, 0.0]


def test_a_weight_that_vanishes_at_an_end_has_no_constant():
    for number, weight in enumerate((lambda c: c**0.3, lambda c: (1.0 - c) ** 0.3)):
        loss = theory.loss_from_weight(weight, name=f"vanishing_{number}")
        objective = gbmrank.objective("pointwise", loss=loss, target="dcg")
        assert theory.calibration(objective, "dcg").constant is None


@pytest.mark.parametrize("link", ["logit", "cloglog", "algebraic"])
@pytest.mark.parametrize("kind", ["kink", "jump", "waves", "steep jump"])
def test_rough_weights_claim_only_what_their_tables_keep(kind, link):
    weight = {
        "kink": lambda c: 1 + 10 * abs(c - 0.5),
        "jump": lambda c: np.where(c < 0.3, 1.0, 5.0),
        "waves": lambda c: 1 + np.sin(60 * c) * 0.9,
        "steep jump": lambda c: np.where(c < 0.3, 1.0, 50.0) / (c * (1 - c)),
    }[kind]
    loss = theory.loss_from_weight(weight, link=link, name=f"rough_{kind.replace(' ', '_')}_{link}")
    assert contradictions(loss) == {}
    verdict = theory.calibration(gbmrank.objective("pointwise", loss=loss, target="dcg"), "dcg")
    if kind == "kink":
        assert verdict.status == "calibrated"
        assert verdict.constant.value(1.0) == pytest.approx(2.0, rel=0.02)


# Duchi et al. ----------------------------------------------------------------------------------

LOSSES = ("logistic", "exponential", "squared_margin", "squared_hinge", "canonical_boosting")


def test_the_condition_against_convex_losses_is_right():
    rng, met = np.random.default_rng(4), 0
    for _ in range(400):
        a = np.zeros((3, 3))
        a[[0, 0, 1, 2], [1, 2, 2, 0]] = np.round(rng.random(4) * [1, 3, 0.2, 1], 2)
        order = rng.permutation(3)
        a = a[np.ix_(order, order)]
        found = theory.misordered_by_convex(a)
        if found is None:
            continue
        met += 1
        i, j, k = found
        best = theory.Distribution([a], [1.0]).best("pairwise_disagreement(normalize=false)")
        assert best.orders == ((i, j, k),)
        for loss in LOSSES if met < 12 else LOSSES[:1]:
            minimum = theory.Distribution([a], [1.0]).minimiser(f"comparison(loss={loss})")
            if minimum.attained:
                assert minimum.scores[j] < minimum.scores[k] - 1e-9
    assert met > 5
    with pytest.raises(DataError, match="three items"):
        theory.misordered_by_convex(np.zeros((2, 2)))


def test_the_papers_example_meets_the_condition_at_its_limit_only_strictly():
    third, half = Fraction(1, 8), Fraction(1, 2)
    for share, met in ((Fraction(4, 5), True), (Fraction(1), False)):
        weight = float(share * third)
        a = [[0, float(half), 1.5], [0, 0, weight], [float(half), 0, 0]]
        assert (theory.misordered_by_convex(a) is not None) == met


# Restricted calibration functions --------------------------------------------------------------


def test_a_restriction_leaves_out_the_distributions_that_refute():
    edges = []
    for i, j in itertools.permutations(range(3), 2):
        graph = np.zeros((3, 3))
        graph[i, j] = 1.0
        edges.append(graph)
    metric = "pairwise_disagreement(normalize=false)"
    free, low = (
        theory.calibration_function("linear", metric, graphs=edges, eps=[0.1], restrict=restrict)
        for restrict in (None, "low_noise")
    )
    assert free.upper[0] < 1e-4 < low.upper[0]
    assert not low.certified
    assert all(theory.is_low_noise(one.mean_graph()) for one in low.worst)
    with pytest.raises(ParameterError, match="reinforcing"):
        theory.calibration_function("linear", metric, graphs=edges, restrict="quiet")


def test_reinforcing_distributions_cost_something_for_average_precision():
    given = {"items": 3, "eps": [0.08]}
    found = theory.calibration_function(
        "pointwise(loss=squared, target=map)", "map", restrict="reinforcing", **given
    )
    assert theory.Reinforcement().holds(found.worst[0])
    assert np.isfinite(found.upper[0])
