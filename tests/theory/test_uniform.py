"""Whether verdicts are uniform over distributions, and distributions that show where not."""

import itertools

import numpy as np
import pytest

from gbmrank import theory

RAW = "pairwise_disagreement(normalize=false)"


@pytest.mark.parametrize(
    ("objective", "metric", "holds", "words"),
    [
        ("pairwise(target=ndcg)", "ndcg", True, "A.1"),
        ("pairwise(target=dcg)", "dcg", True, "no label is above 4"),
        ("pairwise(target=identity)", "dcg(gain=linear)", False, "grows with"),
        ("pairwise(loss=squared_hinge, target=dcg)", "dcg", False, "4.5"),
        ("pairwise(loss=squared_hinge, target=dcg(gain=[0, 1, 3]))", "dcg(gain=[0, 1, 3])", True,
         "finitely many"),
        ("pairwise(loss=squared_hinge, target=precision)", "precision@2", True, "finitely many"),
        ("ranknet", "auc", True, "finitely many"),
        ("pointwise(loss=squared, target=dcg)", "dcg", True, "sqrt(2)"),
        ("pairwise(target=map)", "map", False, "no: the condition"),
    ],
)  # fmt: skip
def test_verdicts_say_whether_they_are_uniform(objective, metric, holds, words):
    verdict = theory.calibration(objective, metric)
    assert verdict.uniform is not None
    assert verdict.uniform.holds is holds
    assert words in verdict.uniform.reason
    assert verdict.as_dict()["uniform"] == verdict.uniform.reason
    assert theory.calibration("ranknet", "dcg").uniform is None


def _tie_cost(distribution, objective, pair):
    """The least excess risk of scores that put the second item of a pair not below the first."""
    found = distribution.minimiser(objective)
    best = np.inf
    for shift in np.linspace(-3.0, 3.0, 1201):
        scores = found.scores.copy()
        scores[list(pair)] = shift
        best = min(best, distribution.inner_risk(objective, scores) - found.value)
    return best


def test_under_the_degree_condition_a_fixed_regret_costs_ever_less():
    verdict = theory.calibration("linear", RAW, graphs=True)
    assert not verdict.uniform
    costs = []
    for w in (1.0, 1.5, 1.9, 1.99):
        d = theory.Distribution([[[0, 1, 0], [0, 0, w], [0, 0, 0]]], [1.0])
        assert verdict.condition.holds(d)
        assert d.regret(RAW, [1.0, 2.0, 0.0]) == 1.0
        costs.append(_tie_cost(d, "linear", (0, 1)))
    assert all(b < 0.5 * a for a, b in itertools.pairwise(costs))


def test_under_reinforcement_a_fixed_regret_costs_ever_less():
    objective, costs = "pointwise(loss=squared, target=map)", []
    condition = theory.calibration(objective, "map").condition
    for gap in (0.1, 0.01, 0.001):
        d = theory.Distribution([[1, 0, 1], [0, 1, 0]], [(2 + gap) / 3, (1 - gap) / 3])
        assert condition.holds(d)
        assert d.regret("map", [1.0, 2.0, 0.0]) > 0.05
        costs.append(_tie_cost(d, objective, (0, 1)))
    assert costs[-1] < 0.01 * costs[0]


def test_for_finitely_many_labels_the_least_surrogate_regret_is_positive():
    found = theory.calibration_function(
        "pairwise(loss=squared_hinge, target=precision)", "precision@1", eps=[0.05, 0.2]
    )
    assert found.certified
    assert np.all(found.lower > 0)
