"""Regret bounds: the constants of Calauzenes et al., Table 2, on random distributions."""

import functools
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.registry.composition import as_objective
from gbmrank.theory.distributions import Distribution
from gbmrank.theory.verdicts.order import preserved_order
from gbmrank.theory.views import order_value

# Objective, and how label vectors are made to fit it.
ROWS = {
    "point.squared": "pointwise(loss=squared, target=identity)",
    "point.logistic": "pointwise(loss=logistic, target=identity, eta=1.5)",
    "point.exponential": "pointwise(loss=exponential, target=identity, eta=1.5)",
    "point.sqhinge": "pointwise(loss=squared_hinge(t=2), target=identity, eta=1.5)",
    "point.dhinge": "pointwise(loss=differentiable_hinge(alpha=0.5), target=identity, eta=1.5)",
    "pair.squared": "pairwise(loss=squared, target=identity, normalize=none)",
    "pair.logistic": "pairwise(loss=logistic, target=identity, normalize=none)",
    "pair.exponential": "pairwise(loss=exponential, target=identity, normalize=none)",
    "breg.softmax": "bregman(loss=softmax, target=identity)",
    "breg.softmax_ce": "bregman(loss=softmax_ce, target=identity)",
    "breg.poisson": "bregman(loss=poisson, target=identity)",
    "breg.binent": "bregman(loss=binary_entropy, target=identity, eta=1.5)",
    "breg.is": "bregman(loss=itakura_saito(eps=0.001), target=identity)",
}
PRINTED = {
    "point.squared": 2**0.5,
    "point.logistic": 1.5**0.5,
    "point.exponential": 1.5**0.5,
    "point.sqhinge": (2 * 1.5) ** 0.5 / 2,
    "point.dhinge": 2 * (1.5 / 0.5) ** 0.5,
    "breg.softmax": 2**0.5,
    "breg.binent": 1.5**0.5,
    "pair.squared": 1.0,
}


@functools.cache
def _preserved(row) -> Any:
    template = as_objective(ROWS[row])
    preserved = preserved_order(template)
    assert preserved is not None
    assert preserved.constant is not None
    return template, preserved.constant


def _constant(row, utilities):
    template, constant = _preserved(row)
    known = {"none": 1.0, "largest": utilities.max(), "sum": utilities.sum()}
    bound = template.eta if constant.of == "eta" else known[constant.of]
    return constant.value(bound + getattr(template.loss, "eps", 0.0))


def _trials(row, rng, n_distributions, n_scores):
    """Yield expected utilities, discounts, scores and surrogate regrets."""
    for _ in range(n_distributions):
        n, m = int(rng.integers(2, 7)), int(rng.integers(1, 4))
        labels = rng.random((m, n)) + 0.02
        if row == "breg.softmax":
            labels /= labels.sum(axis=1, keepdims=True)
        distribution = Distribution(labels, rng.dirichlet(np.ones(m)))
        least = distribution.minimiser(ROWS[row])
        assert least.attained
        risk = distribution.risk(ROWS[row])
        utilities = distribution.probabilities @ distribution.labels
        phi = np.sort(rng.random(n) ** 2)[::-1]
        for _ in range(n_scores):
            scores = least.scores + rng.normal(size=n) * rng.choice([0.02, 0.1, 0.5, 2.0])
            if rng.random() < 0.4:  # close to the cheapest way of swapping two items
                i, j = rng.choice(n, 2, replace=False)
                lower, upper = sorted((least.scores[i], least.scores[j]))
                scores = least.scores.copy()
                middle = lower + (upper - lower) * rng.random()
                up = i if least.scores[i] < least.scores[j] else j
                scores[up], scores[i + j - up] = middle + 1e-9, middle
            yield utilities, phi, scores, max(risk(scores)[0] - least.value, 0.0)


@pytest.mark.parametrize("trials", [(8, 20), pytest.param((40, 100), marks=pytest.mark.nightly)])
@pytest.mark.parametrize("row", ROWS)
def test_no_trial_loses_more_than_the_bound_and_some_come_near_it(row, trials):
    rng = np.random.default_rng(sum(map(ord, row)))
    closest = 0.0
    for utilities, phi, scores, surrogate in _trials(row, rng, *trials):
        best = order_value(utilities, phi, utilities)
        lost = best - order_value(utilities, phi, scores)
        bound = _constant(row, utilities) * theory.c_phi(phi) * surrogate**0.5
        assert lost <= bound * (1 + 1e-6) + 1e-7
        if lost > 1e-4:
            closest = max(closest, lost / bound)
    assert closest > 1 / 20


@pytest.mark.parametrize("row", PRINTED)
def test_measured_constants_are_those_of_the_table(row):
    assert _constant(row, np.array([0.3])) == pytest.approx(PRINTED[row], rel=1e-9)


@pytest.mark.parametrize(
    ("n", "k", "expected"), [(5, None, 0.645020), (8, 3, 1.283773), (10, 10, 0.811622), (4, 1, 1.0)]
)
def test_c_phi_of_dcg(n, k, expected):
    metric = gbmrank.metric("dcg" if k is None else f"dcg@{k}")
    phi = theory.positional(metric, np.zeros(n)).discounts
    assert theory.c_phi(phi) == pytest.approx(expected, abs=5e-7)


def test_c_phi_is_zero_where_every_order_is_best():
    assert theory.c_phi(theory.positional("precision", [1, 0, 1]).discounts) == 0.0
    assert theory.c_phi([1.0]) == 0.0
    assert theory.c_phi([1.0, 0.25, 0.0], p=float("inf")) == 1.0
    with pytest.raises(gbmrank.ParameterError, match="p must be a number from 1"):
        theory.c_phi([1.0, 0.0], p=0.5)


def test_the_bound_is_in_the_units_of_the_objective():
    raw = theory.regret_bound(
        "pairwise(loss=squared, target=dcg, normalize=none)", "dcg", [4, 9], 0.08
    )
    divided = theory.regret_bound("pairwise(loss=squared, target=dcg)", "dcg", [9], 0.08 / 8)
    assert raw.n_items == 9
    assert divided.value == pytest.approx(raw.value, rel=1e-12)
    assert raw.value == pytest.approx(raw.constant * raw.c_phi * 0.08**0.5, rel=1e-12)


def test_the_bound_follows_the_scale_of_the_utility():
    # For 0/1 labels the utility of Spearman is n/2 times the label plus a constant.
    bound = theory.regret_bound("pointwise(loss=squared, target=spearman)", "precision@2", [6], 1.0)
    assert bound.ratio == pytest.approx(2 / 6)


@pytest.mark.parametrize(
    ("objective", "metric", "words"),
    [
        ("ranknet", "dcg", "no regret bound"),
        ("pairwise(loss=squared_hinge, target=dcg)", "dcg", "declares mu"),
        ("pairwise(loss=logistic, target=identity)", "dcg(gain=linear)", "largest_utility="),
        ("pointwise(loss=squared, target=identity)", "auc", "independent given their features"),
        ("pointwise(loss=squared, target=recall)", "map", "no regret bound"),
    ],
)
def test_where_there_is_no_bound_the_reason_is_told(objective, metric, words):
    with pytest.raises(gbmrank.ParameterError, match=words):
        theory.regret_bound(objective, metric, [5], 0.1)


@pytest.mark.parametrize("row", ["point.logistic", "point.exponential", "breg.binent"])
def test_a_bound_of_the_utilities_does_not_take_the_place_of_eta(row):
    objective, metric = ROWS[row], "dcg(gain=linear)"
    labels = np.array([[0.3, 0.05]])  # far below eta = 1.5
    distribution = Distribution(labels, [1.0])
    least = distribution.minimiser(objective)
    scores = least.scores.mean() + np.array([-1e-9, 1e-9])
    surrogate = distribution.inner_risk(objective, scores) - least.value
    bound = theory.regret_bound(objective, metric, [2], surrogate, largest_utility=0.3)
    assert bound == theory.regret_bound(objective, metric, [2], surrogate)
    assert distribution.regret(metric, scores) <= bound.value


def test_a_bound_of_the_utilities_takes_the_place_of_the_largest():
    pair = ("pairwise(loss=logistic, target=ndcg)", "ndcg")
    whole, quarter = (theory.regret_bound(*pair, [4], 1.0, largest_utility=u) for u in (1.0, 0.25))
    assert whole == theory.regret_bound(*pair, [4], 1.0)
    assert quarter.value == pytest.approx(0.5 * whole.value, rel=1e-12)


@pytest.mark.parametrize(
    ("loss", "largest", "expected"),
    [
        ("softmax_ce", None, (2 * 4 * 1.0) ** 0.5),  # four utilities of at most 1
        ("softmax_ce", 3.0, (2 * 3.0) ** 0.5),
        ("itakura_saito(eps=0.25)", None, 2 * (1.0 + 0.25)),
        ("itakura_saito(eps=0.25)", 0.5, 2 * (0.5 + 0.25)),
    ],
)
def test_constants_of_bounded_sums_and_of_shifted_utilities(loss, largest, expected):
    objective = f"bregman(loss={loss}, target=ndcg)"
    bound = theory.regret_bound(objective, "ndcg", [4], 1.0, largest_utility=largest)
    assert bound.constant == pytest.approx(expected, rel=1e-12)


def test_where_every_order_is_best_nothing_is_lost_whatever_the_utilities():
    pair = ("pairwise(loss=logistic, target=identity)", "precision@5")
    assert theory.regret_bound(*pair, [3, 5], 1.0).value == 0.0
    with pytest.raises(gbmrank.ParameterError, match="largest_utility="):
        theory.regret_bound(*pair, [6], 1.0)


def test_a_negative_regret_is_refused():
    with pytest.raises(gbmrank.ParameterError, match="from 0, got -1"):
        theory.regret_bound("cossock_zhang", "dcg", [5], -1.0)


def test_queries_that_a_metric_skips_enlarge_what_the_others_lose():
    pair = ("pairwise(loss=squared, target=ndcg)", "ndcg")
    distribution = Distribution([[0, 0], [1, 0]], [0.99, 0.01])
    scores = np.array([0.0, 1e-9])
    surrogate = distribution.inner_risk(pair[0], scores)
    surrogate -= distribution.minimiser(pair[0]).value
    bound = theory.regret_bound(*pair, [2], surrogate).value
    assert distribution.regret("ndcg(empty=zero)", scores) <= bound
    assert bound < distribution.regret("ndcg(empty=skip)", scores) <= bound / 0.01


CONDITIONAL = ("pointwise(loss=squared, target=dcg)", "dcg(gain=linear)@1")


def test_a_bound_under_a_condition_is_that_of_the_labels_it_allows():
    bound = theory.regret_bound(*CONDITIONAL, [2], 1.0)
    assert bound.ratio == pytest.approx(1.0, rel=1e-12)
    assert bound.condition == theory.BinaryLabels()
    assert str(bound).endswith(", when labels are 0 and 1")
    assert theory.regret_bound("cossock_zhang", "dcg", [5], 1.0).condition is None


@pytest.mark.parametrize("n", [2, 3, 4])
def test_no_trial_loses_more_than_the_bound_under_its_condition(n):
    objective, metric = CONDITIONAL
    factor = theory.regret_bound(objective, metric, [n], 1.0).value
    rng = np.random.default_rng(n)
    closest = 0.0
    for _ in range(40):
        distribution = Distribution(rng.integers(0, 2, (4, n)), rng.dirichlet(np.ones(4)))
        utilities = distribution.expected_utilities("dcg")
        best, worst = np.argsort(-utilities)[[0, -1]]
        scores = utilities.copy()  # the cheapest way to swap the first and the last
        middle = 0.5 * (utilities[best] + utilities[worst])
        scores[best], scores[worst] = middle - 1e-9, middle + 1e-9
        surrogate = distribution.inner_risk(objective, scores) - distribution.inner_risk(
            objective, utilities
        )
        lost = distribution.regret(metric, scores)
        assert lost <= factor * max(surrogate, 0.0) ** 0.5 * (1 + 1e-6) + 1e-7
        closest = max(closest, lost / (factor * surrogate**0.5) if surrogate > 1e-6 else 0.0)
    assert closest > 0.5


def test_queries_beyond_the_condition_have_no_bound():
    pair = ("pairwise(loss=squared, target=ndcg)", "ndcg@10")
    assert theory.regret_bound(*pair, [4, 10], 0.01).condition == theory.MaxItems(10)
    with pytest.raises(gbmrank.ParameterError, match=r"50 items.*no query has more than 10 items"):
        theory.regret_bound(*pair, [5, 50], 0.01)


@pytest.mark.parametrize(
    ("sizes", "regret", "largest", "words"),
    [
        ([], 0.1, None, "group_sizes are the lengths of the queries, got none"),
        (["a"], 0.1, None, "group_sizes must be one column of numbers"),
        ([np.nan], 0.1, None, "got nan at index 0"),
        ([5, -5], 0.1, None, "got -5 at index 1"),
        ([5, 0], 0.1, None, "group_sizes must be whole numbers from 1, got 0 at index 1"),
        ([10.9], 0.1, None, "got 10.9 at index 0"),
        ([5], "0.01", None, "surrogate_regret must be a finite number from 0, got '0.01'"),
        ([5], np.nan, None, "surrogate_regret"),
        ([5], 0.1, np.nan, "largest_utility must be a finite number from 0, got nan"),
        ([5], 0.1, -1, "largest_utility"),
        ([5], 0.1, "3", "largest_utility"),
    ],
)
def test_what_no_bound_can_be_made_of_is_refused(sizes, regret, largest, words):
    with pytest.raises((gbmrank.ParameterError, gbmrank.DataError), match=words):
        theory.regret_bound("pairwise(target=dcg)", "dcg", sizes, regret, largest_utility=largest)


@pytest.mark.parametrize("loss", ["p_classification", "asymmetric_a", "brier_sigmoid"])
def test_derived_constants_of_other_pair_losses_hold(loss):
    """Constants that no table prints: from the least weight of the pair loss."""
    from gbmrank.theory.distributions import pair_risk
    from gbmrank.theory.minimise import Nature, minimise
    from gbmrank.theory.shapes import pair_shape

    template: Any = as_objective(f"pairwise(loss={loss}, target=identity)")
    part = template.loss
    factor = 4.0 / pair_shape(part).least_weight ** 0.5
    rng = np.random.default_rng(7)
    closest = 0.0
    for _ in range(12):
        n = int(rng.integers(2, 5))
        utilities = rng.random(n) + 0.05
        risk = pair_risk(part, np.outer(utilities, np.ones(n)) * (1 - np.eye(n)))
        least = minimise(risk, n, Nature(shift_invariant=True))
        phi = np.sort(rng.random(n))[::-1]
        for _ in range(60):
            scores = least.scores + rng.normal(size=n) * rng.choice([0.1, 0.5, 1.5])
            lost = order_value(utilities, phi, utilities) - order_value(utilities, phi, scores)
            regret = max(risk(scores)[0] - least.value, 0.0)
            bound = factor * utilities.max() ** 0.5 * theory.c_phi(phi) * regret**0.5
            assert lost <= bound * (1 + 1e-6) + 1e-7
            closest = max(closest, lost / bound if lost > 1e-4 else 0.0)
    assert closest > 1 / 20


@pytest.mark.parametrize("count", [8, pytest.param(100, marks=pytest.mark.nightly)])
def test_the_best_value_takes_the_place_of_a_bound_of_the_utilities(count):
    """Corollary A.2: 2 C_phi sqrt(R* / phi(1)) sqrt(regret), on random distributions."""
    rng, objective = np.random.default_rng(4), "pairwise(loss=logistic, target=dcg, normalize=none)"
    for _ in range(count):
        labels = rng.integers(0, 4, size=(3, 4)).astype(float)
        labels[0] += 1.0
        one = theory.Distribution(labels, rng.dirichlet(np.ones(3)))
        least, scores = one.minimiser(objective), rng.normal(size=4)
        best = one.best("dcg").value
        excess = one.inner_risk(objective, scores) - least.value
        bound = theory.regret_bound(objective, "dcg", [4], excess, best_value=best)
        assert one.regret("dcg", scores) <= bound.value
        assert bound.constant == pytest.approx(2.0 * np.sqrt(best))


def test_a_best_value_is_for_constants_with_the_largest_utility():
    with pytest.raises(gbmrank.ParameterError, match="eta"):
        theory.regret_bound("pointwise(target=precision)", "precision@1", [3], 0.1, best_value=1.0)
    with pytest.raises(gbmrank.ParameterError, match="offset"):
        theory.regret_bound("pairwise(target=auc)", "auc", [3], 0.1, best_value=1.0)
