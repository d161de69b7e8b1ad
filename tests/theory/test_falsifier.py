"""The falsifier finds the known negatives by itself."""

import numpy as np
import pytest

import gbmrank
from gbmrank import theory


@pytest.mark.parametrize("metric", ["err", "map"])
@pytest.mark.parametrize(
    "objective",
    [
        "pairwise(loss=logistic, target=ndcg)",
        "pairwise(loss=exponential, target=dcg)",
        "pairwise(loss=squared_hinge, target=ndcg)",
        "pointwise(loss=squared, target=dcg)",
        "pointwise(loss=logistic, target=ndcg)",
        "bregman(loss=softmax_ce, target=ndcg)",
        "map_diagonal",
        "linear",
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


@pytest.mark.parametrize(
    ("objective", "metric"),
    [
        ("pairwise(loss=logistic, target=ndcg)", "ndcg"),
        ("pairwise(loss=squared_hinge, target=ndcg)", "ndcg"),
        ("pointwise(loss=logistic, target=ndcg)", "ndcg"),
        ("pairwise(loss=exponential, target=dcg)", "dcg@2"),
        ("softmax", "ndcg"),
    ],
)
def test_nothing_is_found_where_a_theorem_forbids_it(objective, metric):
    assert theory.falsify(objective, metric, budget=120, seed=9) is None


def test_the_search_alone_finds_one_too():
    """Without the distributions of the papers, from random ones."""
    from gbmrank.theory.counterexamples import shown
    from gbmrank.theory.falsifier import _climb, _random, _worth_of_a_swap
    from gbmrank.theory.parts import as_metric, as_objective

    template, measure = as_objective("ranknet"), as_metric("dcg")
    rng = np.random.default_rng(0)
    for _ in range(60):
        start = _random(rng, 3, (0.0, 1.0, 2.0))
        (moved,) = _climb(rng, start, template, measure)
        assert _worth_of_a_swap(moved, template, measure) >= _worth_of_a_swap(
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
