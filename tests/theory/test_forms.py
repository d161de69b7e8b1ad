"""Utilities are compared in symbols: for all labels, list lengths and cut-offs."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
import pytest

from gbmrank import theory
from gbmrank.losses import BUILTIN_LOSSES
from gbmrank.losses.base import AbstractMarginLoss
from gbmrank.registry import LOSSES
from gbmrank.registry.composition import build
from gbmrank.theory.shapes import contradictions

SHORT = "no query has more than {} items"


def _verdict(objective, metric):
    return theory.calibration(objective, metric)


@pytest.mark.parametrize(
    "objective",
    [
        "pairwise(target=dcg(gain=linear))",
        "pairwise(target=dcg(gain=[0, 1, 2]))",
        "pairwise(target=dcg(gain=[0, 1, 9.999999]))",
        "pairwise(target=precision(threshold=1))",
        "duchi_linear",
        "pairwise(target=dcg(gain=[0, 2, 3, 20]))",
        "bregman(loss=poisson, target=dcg)",
    ],
)
def test_short_tables_are_compared_on_all_their_labels(objective):
    verdict = _verdict(objective, "dcg(gain=[0, 1, 10])@10")
    assert verdict.status == "conditional"
    assert verdict.condition == theory.BinaryLabels()


@pytest.mark.parametrize(
    ("target", "metric", "expected"),
    [
        ("dcg(gain=[0, 2, 20])", "dcg(gain=[0, 1, 10])@10", "calibrated"),
        ("dcg(gain=[3, 5, 23])", "dcg(gain=[0, 1, 10])@10", "calibrated"),
        ("dcg(gain=[0, 0.1, 0.3])", "dcg(gain=[0, 1, 3])", "calibrated"),  # rounding of 0.3
        ("dcg(gain=[0, 1, 3, 7])", "dcg", "calibrated"),
        ("ndcg(gain=[0, 2, 6])@5", "ndcg@5", "calibrated"),
        ("ndcg(gain=[1, 2, 4])@5", "ndcg@5", "not calibrated"),
        ("dcg(gain=[0, 3, 2, 1, 1000000000000])", "dcg(gain=[0, 1, 2, 3, 1000000000000])", None),
        ("dcg(gain=[0, 3, 2, 1])", "dcg(gain=linear)", None),
        ("dcg(gain=[1, 0])", "precision@1", "not calibrated"),
        ("dcg(gain=[1, 0, 0])", "dcg(gain=[5, 3, 3])@1", "calibrated"),
        ("ndcg@1", "wta", "calibrated"),
        ("ndcg@2", "wta", "conditional"),
        ("spearman", "precision@1", "calibrated"),
        ("spearman", "spearman", "calibrated"),
    ],
)
def test_gains_are_affine_in_each_other_or_not(target, metric, expected):
    verdict = _verdict(f"pairwise(loss=squared, target={target})", metric)
    if expected is None:
        assert verdict.condition == theory.BinaryLabels()
    else:
        assert verdict.status == expected


@pytest.mark.parametrize(
    ("objective", "metric", "items"),
    [
        ("mix(pairwise(target=ndcg@10), pairwise(target=ndcg@20))", "ndcg@10", 10),
        ("mix(mix(pairwise(target=ndcg@10)))", "ndcg", 10),
        ("pairwise(target=ndcg)", "positional(utility=ndcg@10)", 10),
        ("mix(pairwise(target=ndcg@20), pairwise(target=ndcg@9))", "ndcg@20", 9),
        ("mix(pairwise(target=ndcg@20), mix(pairwise(target=ndcg@9)))", "ndcg@30", 9),
        ("pairwise(target=ndcg@7)", "ndcg@1000", 7),
    ],
)
def test_cut_offs_hold_up_to_the_smallest(objective, metric, items):
    verdict = _verdict(objective, metric)
    assert verdict.status == "conditional"
    assert verdict.condition == theory.MaxItems(items)


@pytest.mark.parametrize(
    ("objective", "metric"),
    [
        ("pointwise(target=eru(neutral=2), eta=1)", "precision(threshold=2)@1"),
        ("pairwise(target=precision(threshold=5))", "precision(threshold=6)@1"),
        ("pairwise(target=precision(threshold=1.5))", "precision(threshold=1.25)@1"),
        ("pairwise(loss=squared, target=eru(neutral=5, max_grade=9))", "precision(threshold=7)@2"),
        ("pairwise(target=eru(neutral=3))", "dcg@2"),
        ("pairwise(loss=squared, target=ndcg@3)", "ndcg@4"),
    ],
)
def test_labels_of_any_size_tell_utilities_apart(objective, metric):
    verdict = _verdict(objective, metric)
    assert verdict.status == "not calibrated"
    example = verdict.counterexample
    assert example.distribution.regret(metric, example.scores) == pytest.approx(
        example.regret, rel=1e-4
    )
    # Labels that the objective takes, and its own minimiser.
    found = example.distribution.minimiser(objective)
    if found.attained:
        assert example.distribution.regret(metric, found.scores) >= 0.9 * example.regret


@pytest.mark.parametrize(
    ("objective", "metric", "condition"),
    [
        ("pairwise(target=precision(threshold=0.5))", "precision(threshold=1)@1", "BinaryLabels()"),
        ("pairwise(target=eru(neutral=5, max_grade=9))", "eru(neutral=7)", "LabelsFrom(low=7.0)"),
        ("pointwise(loss=squared, target=identity)", "eru", "LabelsFrom(low=0.0)"),
        ("pointwise(loss=squared, target=identity)", "eru(neutral=-1)", "LabelsFrom(low=-1.0)"),
    ],
)
def test_narrower_labels_make_a_condition(objective, metric, condition):
    verdict = _verdict(objective, metric)
    assert verdict.status == "conditional"
    assert repr(verdict.condition) == condition


def test_labels_from_a_number_on():
    condition = theory.LabelsFrom(0.0)
    assert condition.holds(theory.Distribution([[0, 1]], [1]))
    assert not condition.holds(theory.Distribution([[-0.5, 1]], [1]))


def test_a_table_of_discounts_ends():
    flat = "positional(discount=[1, 1, 1, 1, 1, 1, 1, 1])"
    assert _verdict("listmle", flat).status != "calibrated"
    assert _verdict("pairwise(target=dcg)", flat).status == "calibrated"
    assert _verdict("listmle", "positional(discount=constant)").status == "calibrated"
    assert _verdict("listmle", "positional(discount=constant)@3").status != "calibrated"
    assert _verdict("listmle", "positional(discount=[0, 0])").status == "calibrated"


@pytest.mark.parametrize(
    ("objective", "metric"),
    [
        ("pairwise(target=dcg)", "dcg(gain=[1, 1, 1])"),
        ("ranksvm", "dcg(gain=[1, 1, 1])"),
        ("pairwise(target=precision)", "precision(threshold=10)@2"),
        ("pointwise(target=dcg)", "map(threshold=10)"),  # labels up to 4
        ("bipartite", "mrr(threshold=-3)"),
    ],
)
def test_metrics_that_are_constant_take_every_loss(objective, metric):
    assert _verdict(objective, metric).reference == "by definition"


def test_a_bound_needs_the_verdict():
    with_table = "dcg(gain=[0, 1, 10])@10"
    bound = theory.regret_bound(
        "pairwise(loss=squared, target=dcg(gain=linear))", with_table, [3], 1e-8
    )
    assert bound.condition == theory.BinaryLabels()
    with pytest.raises(ValueError, match="items"):
        theory.regret_bound("pairwise(target=ndcg@10)", "ndcg@20", [11], 0.1)
    first = theory.advise(with_table)[0]
    assert first.verdict.status == "calibrated"
    assert "[0, 1, 10]" in first.objective


def test_neutral_grades_above_the_usual_ones_are_advised_on():
    first = theory.advise("eru(neutral=5)")[0]
    assert first.verdict.status == "calibrated"
    assert "eru(neutral=5" in first.objective


def test_an_example_leaves_no_best_order_open():
    """A tie of the minimiser that one best order breaks is no counterexample."""
    for objective, metric in [
        ("pairwise(loss=squared, target=dcg)", "ndcg"),
        ("pairwise(loss=squared, target=precision(threshold=5))", "precision(threshold=6)@1"),
    ]:
        example = _verdict(objective, metric).counterexample
        best = example.distribution.best(metric)
        scores = np.array(example.scores)
        for order in best.orders:
            assert np.any(np.diff(scores[list(order)]) > 1e-9)


def test_what_losses_declare_is_not_contradicted():
    for cls in BUILTIN_LOSSES:
        loss: Any = cls()
        if loss.pair_form != "difference":
            assert contradictions(loss) == {}
            for rough in (0.01, 0.3):
                assert not (hasattr(loss, "alpha") and contradictions(replace(loss, alpha=rough)))
    found = contradictions(_Claims())
    assert list(found) == ["convex", "decreasing", "nonsense", "proper"]
    assert np.sin(float(found["convex"].rsplit(" ", 1)[1])) > 0  # there it is concave
    assert np.cos(float(found["decreasing"].rsplit(" ", 1)[1])) > 0  # there it rises


@pytest.mark.parametrize("loss", ["logistic(sigma=3)", "p_classification(p=3)", "asymmetric_a"])
def test_least_weights_are_those_of_the_functions(loss):
    built: Any = build(LOSSES, loss)
    chances = np.linspace(0.001, 0.999, 5001)
    assert np.min(built.weight_function(chances)) == pytest.approx(built.least_weights[0], rel=1e-5)
    v = np.linspace(-8.0, 8.0, 4001) / built.rate
    slopes = np.array([built.kappa(float(d), *built.params)[1] for d in v])
    q = 1.0 / (1.0 + np.exp(-built.rate * v))
    weight = -slopes / (built.rate * q * (1.0 - q) ** 2)
    assert weight.min() == pytest.approx(built.least_weights[1], rel=1e-6)


@final
@dataclass(frozen=True, slots=True)
class _Claims(AbstractMarginLoss):
    name: ClassVar[str] = "claims"
    proven: ClassVar[tuple[str, ...]] = ("proper", "convex", "decreasing", "nonsense")

    @staticmethod
    def phi(z: float) -> tuple[float, float, float]:
        """A wave."""
        return np.sin(z), np.cos(z), -np.sin(z)


def test_the_reinforcement_condition_knows_the_threshold():
    condition = _verdict("pairwise(target=map(threshold=2))", "map(threshold=2)").condition
    assert condition == theory.Reinforcement(2.0)
    graded = theory.Distribution([[2, 0, 0, 1], [1, 2, 0, 0], [0, 2, 1, 2]], [0.3, 0.2, 0.5])
    plain = theory.Distribution([[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1]], [0.3, 0.2, 0.5])
    np.testing.assert_allclose(condition.mean(graded), theory.Reinforcement().mean(plain))
    assert not condition.holds(graded)
    assert not theory.Reinforcement().holds(plain)
