"""The falsifier finds the known negatives by itself."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

import gbmrank
from gbmrank import theory
from gbmrank.losses.base import loss_class
from gbmrank.theory.counterexamples import shown
from gbmrank.theory.falsifier import adversarial

ORDER_PRESERVING = {  # with the metric of every run; the others are for the night
    "pairwise(loss=logistic, target=ndcg)": "err",
    "pairwise(loss=exponential, target=dcg)": "",
    "pairwise(loss=squared_hinge, target=ndcg)": "err",
    "pointwise(loss=squared, target=dcg)": "map",
    "pointwise(loss=logistic, target=ndcg)": "",
    "bregman(loss=softmax_ce, target=ndcg)": "map",
    "map_diagonal": "err",
    "linear": "map",
}


@pytest.mark.parametrize(
    ("objective", "metric"),
    [
        pytest.param(objective, metric, marks=() if metric == now else pytest.mark.nightly)
        for objective, now in ORDER_PRESERVING.items()
        for metric in ("err", "map")
    ],
)
def test_order_preserving_losses_against_err_and_average_precision(objective, metric):
    example = theory.falsify(objective, metric, seed=2)
    assert example is not None
    assert len(example.probabilities) <= 4
    assert example.gap > 0


@pytest.mark.parametrize("metric", ["dcg", "pairwise_disagreement(normalize=false)"])
@pytest.mark.parametrize("objective", ["ranknet", "ranksvm", "rankboost"])
def test_comparisons_against_dcg_and_disagreement(objective, metric):
    example = theory.falsify(objective, metric)
    assert example is not None
    # Graphs made of labels have low noise.
    assert theory.is_low_noise(example.distribution.mean_graph())
    text = str(example)
    assert "minimising scores" in text
    assert f"for {gbmrank.metric(metric)}" in text


@pytest.mark.parametrize("objective", ["ranknet", "ranksvm", "rankboost"])
def test_comparisons_on_graphs(objective):
    example = theory.falsify_on_graphs(objective)
    assert example is not None
    assert "0->1" in str(example)
    assert theory.falsify_on_graphs("linear", budget=40) is None


@pytest.mark.parametrize("budget", [12, pytest.param(60, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("objective", "metric"),
    [
        ("pairwise(loss=logistic, target=ndcg)", "ndcg"),
        pytest.param(
            "pairwise(loss=squared_hinge, target=ndcg)", "ndcg", marks=pytest.mark.nightly
        ),
        ("pointwise(loss=logistic, target=ndcg)", "ndcg"),
        ("pairwise(loss=exponential, target=dcg)", "dcg@2"),
        ("softmax", "ndcg"),
    ],
)
def test_nothing_is_found_where_a_theorem_forbids_it(objective, metric, budget):
    assert theory.falsify(objective, metric, budget=budget, seed=9) is None


def test_the_search_alone_finds_one_too():
    """Without the distributions of the papers, from random ones."""
    from gbmrank.registry.composition import as_metric, as_objective
    from gbmrank.theory.falsifier import climbed, random_one, worth_of_a_swap

    template, measure = as_objective("ranknet"), as_metric("dcg")
    rng = np.random.default_rng(0)
    for _ in range(60):
        start = random_one(rng, 3, (0.0, 1.0, 2.0))
        moved = climbed(rng, start, template, measure)
        assert worth_of_a_swap(moved, template, measure) >= worth_of_a_swap(
            start, template, measure
        )
        if shown(moved, template, measure, margin=1e-3) is not None:
            return
    raise AssertionError("no random distribution led to a counterexample")


def test_grades_that_both_take():
    example = theory.falsify("ranknet", "auc")
    assert np.isin(example.labels, (0.0, 1.0)).all()
    with pytest.raises(gbmrank.DataError, match="no common labels"):
        theory.falsify("pointwise(loss=logistic, target=identity, eta=0.1)", "auc")


@pytest.mark.nightly
@pytest.mark.parametrize("metric", ["err", "map"])
def test_a_loss_that_is_not_convex_is_falsified_too(metric):
    found = theory.search("pointwise(loss=brier_sigmoid, target=dcg)", metric)
    assert found.example is not None
    assert found.example.gap > 0
    assert found.failed == 0


def _wrong_slope(z):
    """A parabola with the slope of another one, which leads uphill from everywhere."""
    return (z - 1.0) ** 2, 3.0 - 2.0 * z, 2.0


@pytest.mark.filterwarnings("ignore:the loss .* grows with the margin")
def test_distributions_that_could_not_be_minimised_are_counted():
    objective = gbmrank.objective("comparison", loss=loss_class(_wrong_slope)())
    found = theory.search(objective, "dcg", items=2, budget=1)
    assert found.example is None
    assert found.failed == found.tried == 1
    assert str(found) == "none found in 1 distributions; 1 could not be minimised"


def test_distributions_without_a_minimum_are_counted():
    found = theory.search("pairwise(target=ndcg)", "ndcg", items=4, budget=14, seed=9)
    assert found.example is None
    expected = [not one.minimiser("pairwise(target=ndcg)").attained for one in _adversarial()]
    assert found.unattained == sum(expected) > 0
    assert str(found).endswith(f"; {found.unattained} have no minimum, because scores diverge")


def _adversarial():
    return itertools.islice(adversarial(4, (0.0, 1.0, 2.0)), 14)


@pytest.mark.parametrize(("metric", "items"), [("precision@5", 6), ("precision@10", 11)])
def test_the_search_goes_beyond_a_cut_off(metric, items):
    example = theory.falsify("ranknet", metric)
    assert len(example.labels[0]) >= items
    distribution = example.distribution
    lost = distribution.regret(metric, example.scores)
    assert lost == pytest.approx(example.regret, rel=1e-6)
    utilities = np.array(example.probabilities) @ np.array(example.labels)
    k = gbmrank.metric(metric).measure.k
    best = np.sort(utilities)[::-1][:k].sum() / k
    assert distribution.best(metric).value == pytest.approx(best, rel=1e-9)
    assert set(example.best_order[:k]) == set(np.argsort(-utilities, kind="stable")[:k].tolist())


@pytest.mark.parametrize(
    ("objective", "metric", "items", "words"),
    [
        ("ranknet", "precision@5", (3, 4), "every order of 3 or 4 items has the same precision@5"),
        ("mix(ranknet)", "precision@40", None, "up to 12 items has the same precision@40"),
        ("mix(ranksvm)", "precision@5", None, "not searched for a loss with kinks"),
        ("ranknet", "precision", None, "every order has the same precision"),
    ],
)
def test_a_search_that_says_nothing_says_so(objective, metric, items, words):
    found = theory.search(objective, metric, items=items)
    assert found.tried == 0
    assert str(found).startswith("the search says nothing: ")
    assert words in str(found)


def test_items_that_are_no_query_are_refused():
    with pytest.raises(gbmrank.ParameterError, match="at least 2 items"):
        theory.falsify("ranknet", "dcg", items=1)


@pytest.mark.parametrize(
    ("objective", "metric", "grades"),
    [
        ("push(loss=hinge, p=2)", "dcg", (0.0, 1.0)),
        ("comparison(loss=hinge, margin=0.5)", "dcg", None),
        pytest.param(
            "mix(ranksvm, pointwise(loss=squared, target=dcg))",
            "dcg",
            None,
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_counterexamples_with_kinks_are_no_worse_than_any_scores(objective, metric, grades):
    """The first of them once claimed scores whose risk a right order undercut."""
    example = theory.falsify(objective, metric, grades=grades, budget=60)
    risk = example.distribution.risk(objective)
    scores = np.array(example.scores)
    rng = np.random.default_rng(0)
    for start in scores + rng.normal(0.0, 0.5, size=(4, len(scores))):
        options = {"xatol": 1e-8, "fatol": 1e-12, "maxiter": 4000}
        other = minimize(lambda s: risk(s)[0], start, method="Nelder-Mead", options=options)
        assert risk(scores)[0] <= other.fun + 1e-7
    assert example.distribution.regret(metric, scores) > 1e-3


def test_a_minimum_that_a_right_order_undercuts_is_no_counterexample():
    from gbmrank.theory.minimise import Minimum

    distribution = theory.Distribution([[1, 0], [0, 1]], [0.7, 0.3])
    least = distribution.minimiser("ranknet").value
    for value in (distribution.inner_risk("ranknet", [-1, 1]), least + 1e-6):
        wrong = Minimum(np.array([-1.0, 1.0]), value, True, 0.0)
        with pytest.raises(gbmrank.NumericError, match="not a minimum"):
            shown(distribution, "ranknet", "dcg", found=wrong)


def test_ties_that_no_kink_holds_are_no_counterexample():
    # max(-d, 0): every right order is as good as the ties at which the search stops.
    sure = theory.Distribution([[2, 0, 0], [2, 2, 0]], [0.5, 0.5])
    assert shown(sure, "comparison(loss=hinge, margin=-1)", "dcg") is None
