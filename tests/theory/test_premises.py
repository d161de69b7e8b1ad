"""Premises of verdicts and bounds: positive weights, ties, discounts that fall, largest labels."""

import itertools
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.errors import MetricError, ParameterError
from gbmrank.losses.convex import AbstractRegulariser, PowerOf
from gbmrank.theory.shapes import rises_without_jumps
from tests.theory.test_attack import LOSSES, minimiser, regret, risk

MANY = int(os.environ.get("GBMRANK_PREMISE_DRAWS", "40000"))
AUC = {"name": "auc", "threshold": None, "metric": True}


def _independent(eta):
    vectors = np.array(list(itertools.product((0.0, 1.0), repeat=len(eta))))
    return vectors, np.prod(np.where(vectors == 1.0, eta, 1.0 - eta), axis=1)


# Weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weights",
    ["[0, 1]", "gain_discount(gain=[0, 0, 1])", "gain_discount(gain=[1, 0])",
     "gain_discount(gain=[2])"],
)  # fmt: skip
def test_comparisons_whose_weights_vanish_on_binary_labels_have_no_condition(weights):
    objective = f"comparison(weights={weights})"
    verdict = theory.calibration(objective, "auc")
    assert verdict.status in ("not calibrated", "unknown")
    assert not any(
        row.proven for row in theory.advise("auc", given="independent") if "[0, 1]" in row.objective
    )
    if verdict.status == "not calibrated":
        example = verdict.counterexample
        assert gbmrank.objective(objective).loss(example.labels[0], [0.0, 1.0]) == 0.0
        assert example.regret == 0.5


def test_a_condition_of_weighted_comparisons_needs_a_positive_weight():
    """Tables and gains with zeros: where the verdict is conditional, AUC is not lost."""
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        table = [int(w) for w in rng.integers(0, 3, rng.integers(1, 4))]
        if not any(table):
            continue
        gains = bool(rng.random() < 0.5)
        text = f"gain_discount(gain={table})" if gains else str(table)
        verdict = theory.calibration(f"comparison(weights={text})", "auc")
        weight = (table[1] if len(table) > 1 else 0) if gains else table[0]
        assert (verdict.status == "conditional") == (weight > 0)
        seen.add(verdict.status)
        if verdict.status == "conditional":
            vectors, p = _independent(rng.uniform(0.1, 0.9, 3))
            part = {"template": "comparison", "loss": LOSSES[0]}
            scores = minimiser(risk(part, vectors, weight * p), 3)
            assert regret(AUC, vectors, p, scores) < 1e-9
    assert "conditional" in seen
    assert len(seen) > 1


def test_labels_beyond_those_of_exponential_gains_are_taken_by_tables_of_steps():
    metric = "precision(threshold=100)@2"
    assert theory.calibration("comparison(weights=[1, 2])", metric).status != "calibrated"
    assert theory.calibration("w_ranknet", metric).reference == "by definition"  # labels up to 31


# Ties -----------------------------------------------------------------------------------------


def _exact_reinforcement(vectors, weights):
    """The property of Ramaswamy et al., Thm 4, with fractions."""
    n, total, u = len(vectors[0]), sum(weights), {}
    for i, j in itertools.product(range(n), repeat=2):
        shares = (Fraction(w * y[i] * y[j], total * max(sum(y), 1))
                  for w, y in zip(weights, vectors, strict=True))  # fmt: skip
        u[i, j] = sum(shares, Fraction(0))

    def needed(i, j):
        others = (u[j, g] - u[i, g] for g in range(n) if g not in (i, j))
        return u[j, j] + sum((one for one in others if one > 0), Fraction(0))

    pairs = itertools.permutations(range(n), 2)
    return all(u[i, i] >= needed(i, j) for i, j in pairs if u[i, i] >= u[j, j])


def test_a_tie_that_fails_reinforcement_is_not_split_by_rounding():
    distribution = theory.Distribution([[0, 1, 1], [0, 0, 1], [0, 0, 0], [1, 1, 0]], [1, 2, 6, 5])
    assert not theory.calibration("pairwise(target=map)", "map").condition.holds(distribution)


@pytest.mark.parametrize("count", [400, pytest.param(MANY, marks=pytest.mark.nightly)])
def test_reinforcement_is_decided_as_with_fractions(count):
    rng, holds = np.random.default_rng(1), 0
    for _ in range(count):
        n = int(rng.integers(2, 5))
        vectors = rng.integers(0, 2, (int(rng.integers(1, 5)), n)).tolist()
        weights = [int(w) for w in rng.integers(1, 7, len(vectors))]
        found = theory.Reinforcement().holds(theory.Distribution(vectors, weights))
        assert found == _exact_reinforcement(vectors, weights), (vectors, weights)
        holds += found
    assert 0.05 * count < holds < 0.95 * count


def _exact_graph(rng):
    """A mean graph with decimal weights, which tie in decimals but not in binary numbers."""
    n = int(rng.integers(2, 5))
    tenths = rng.integers(0, 4, (n, n)) * (rng.random((n, n)) < 0.7) + 10**6 * rng.integers(0, 2)
    return [[Fraction(int(w), 10) if i != j else Fraction(0) for j, w in enumerate(row)]
            for i, row in enumerate(tenths)]  # fmt: skip


@pytest.mark.parametrize("count", [400, pytest.param(MANY, marks=pytest.mark.nightly)])
def test_conditions_of_graphs_are_decided_as_with_fractions(count):
    rng, holds = np.random.default_rng(2), np.zeros(2)
    for _ in range(count):
        a = _exact_graph(rng)
        n = len(a)
        f = [sum(a[i][j] - a[j][i] for j in range(n)) for i in range(n)]
        degree = all(f[i] > f[k] for i, k in itertools.permutations(range(n), 2)
                     if a[i][k] > a[k][i])  # fmt: skip
        d = [[max(a[i][j] - a[j][i], Fraction(0)) for j in range(n)] for i in range(n)]
        chains = (t for t in itertools.permutations(range(n), 3) if d[t[0]][t[1]] and d[t[1]][t[2]])
        low = all(a[i][k] - a[k][i] >= d[i][j] + d[j][k] for i, j, k in chains)
        weights = np.array([[float(w) for w in row] for row in a])
        found = bool(theory.degree_condition(weights)), bool(theory.is_low_noise(weights))
        assert found == (degree, low), a
        distribution = theory.Distribution(weights[None] * rng.integers(1, 9, (1, 1, 1)), [1.0])
        assert theory.DegreeCondition().holds(distribution) == degree
        holds += found
    assert np.all(holds > 0.1 * count)


def test_an_expectation_that_ties_by_cancellation_sorts_nothing():
    """f is (1e6 + .1) - 1e6 for one item and .1 for the other: equal, but not in binary."""
    labels = [[3.0, 0.0], [0.0, 1.0]]
    table = {3.0: 1e6 + 0.1, 0.0: -1e6, 1.0: 1e6 + 0.1}
    condition = theory.SortsPreferences(lambda data: np.array([table[y] for y in data.labels]))
    assert not condition.holds(theory.Distribution(labels, [0.5, 0.5]))


# Discounts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "discount", [(0, 1), (1, 2, 3), (1, 0.5, 0.6), (-1,), (float("inf"), 1), lambda k: k,
                 lambda k: np.where(k == 900, 2.0, 1.0 / k)]
)  # fmt: skip
def test_a_discount_that_rises_is_rejected_when_the_metric_is_made(discount):
    with pytest.raises(MetricError, match="does not increase"):
        gbmrank.metric("positional", discount=discount)


def test_every_table_is_a_metric_that_scores_or_is_rejected():
    rng = np.random.default_rng(3)
    made = 0
    for _ in range(80):
        table = tuple(rng.integers(-1, 4, rng.integers(1, 4)).tolist())
        falls = all(a >= b for a, b in itertools.pairwise((*table, 0)))
        if not falls:
            with pytest.raises(MetricError):
                gbmrank.metric("positional", discount=table)
            continue
        made += 1
        assert np.isfinite(gbmrank.metric("positional", discount=table).score([1, 0], [0.0, 1.0]))
    assert made > 10


# Regularisers --------------------------------------------------------------------------------


def _kinked(at, jump):
    def kinked(x):
        return x * x + jump * abs(x - at), 2.0 * x + jump * np.sign(x - at), 2.0

    @dataclass(frozen=True, slots=True)
    class Kinked(AbstractRegulariser):
        name: ClassVar[str] = "kinked"
        function: ClassVar[Any] = staticmethod(kinked)

        def inverse_slope(self, slope):
            low, high = 2.0 * at - jump, 2.0 * at + jump
            below, above = np.minimum(slope - low, 0.0), np.maximum(slope - high, 0.0)
            return at + 0.5 * (below + above)

    return Kinked()


@pytest.mark.parametrize("graphs", [True, False])
def test_a_regulariser_with_a_kink_fails_its_premise(graphs):
    mean = np.array([[0, 0.2, 0.4], [0, 0, 0.2], [0, 0, 0]])
    labels = [[2.0, 1.0, 0.0]]
    where = theory.Distribution([mean] if graphs else labels, [1.0])
    metric = "pairwise_disagreement(normalize=false)"
    for jump in (1.0, 0.0):
        objective = gbmrank.objective("linear", regulariser=_kinked(0.0, jump), nu=1.0)
        verdict = theory.calibration(objective, metric, graphs=graphs)
        assert verdict.status == "conditional"
        assert "without a kink" in str(verdict.condition)
        assert verdict.condition.holds(where) == (jump == 0.0)
        assert "search" not in verdict.sentence
    scores = _kinked(0.0, 1.0).inverse_slope(theory.net_degree(mean))
    assert theory.Distribution([mean], [1.0]).regret(metric, scores) == pytest.approx(0.4)


def test_kinks_are_found_wherever_they_are():
    rng = np.random.default_rng(6)
    for _ in range(60):
        at, jump = rng.uniform(-8, 8), 10.0 ** rng.uniform(-4, 2)
        assert not rises_without_jumps(_kinked(at, jump))
        assert rises_without_jumps(_kinked(at, 0.0))
        assert rises_without_jumps(PowerOf(rng.uniform(1.5, 6.0)))
        assert rises_without_jumps(_CoshOf(rng.uniform(0.05, 3.0)))
    assert not rises_without_jumps(_Half())


@dataclass(frozen=True, slots=True)
class _CoshOf(AbstractRegulariser):
    rate: float = 1.0
    name: ClassVar[str] = "cosh_of"

    @staticmethod
    def function(x, rate):
        return np.cosh(rate * x), rate * np.sinh(rate * x), rate**2 * np.cosh(rate * x)

    def inverse_slope(self, slope):
        return np.arcsinh(slope / self.rate) / self.rate


@dataclass(frozen=True, slots=True)
class _Half(AbstractRegulariser):
    name: ClassVar[str] = "half"

    @staticmethod
    def function(x):
        return max(x, 0.0) ** 2, 2.0 * max(x, 0.0), 2.0

    def inverse_slope(self, slope):
        return slope / 2.0


# The essential loss ---------------------------------------------------------------------------


def _least_over_orders(labels, scores, betas):
    best = np.inf
    for order in itertools.permutations(range(len(labels))):
        if any(labels[a] < labels[b] for a, b in itertools.pairwise(order)):
            continue
        steps = (
            betas[p]
            for p, i in enumerate(order)
            if any(
                scores[j] > scores[i] or (scores[j] == scores[i] and labels[j] < labels[i])
                for j in order[p + 1 :]
            )
        )
        best = min(best, sum(steps))
    return best


def test_the_essential_loss_chooses_the_best_order_of_equal_labels():
    assert theory.essential_loss([1, 1, 0], [3, 1, 2], weights=[1, 5]).tolist() == [1.0]


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.nightly)])
def test_the_essential_loss_is_the_least_over_orders_of_equal_labels(count):
    rng = np.random.default_rng(4)
    for turn in range(count):
        n = int(rng.integers(1, 7 if turn % 4 == 0 else 6))
        labels, scores = rng.integers(0, 3, n).tolist(), rng.integers(0, 4, n).tolist()
        betas = rng.integers(0, 6, n).tolist()
        if not any(betas):
            continue
        found = theory.essential_loss(labels, scores, weights=betas)[0]
        assert found == _least_over_orders(labels, scores, betas), (labels, scores, betas)


# Largest labels -------------------------------------------------------------------------------


def test_a_bound_names_the_largest_label_it_is_for():
    pair = "pairwise(loss=logistic, target=dcg, normalize=none)", "dcg"
    bound = theory.regret_bound(*pair, [2], 0.01)
    assert bound.condition == theory.LabelsUpTo(4.0)
    assert "no label is above 4" in str(bound)
    assert not bound.condition.holds(theory.Distribution([[10, 0]], [1.0]))
    assert theory.regret_bound(*pair, [2], 0.01, largest_utility=1023).condition is None
    assert theory.regret_bound(*pair, [2], 0.01, best_value=2.0).condition is None
    shorter = "pairwise(target=dcg(gain=[0, 1, 3]), normalize=none)"
    assert theory.regret_bound(shorter, "dcg", [2], 0.01).condition is None
    eru = "bregman(loss=softmax_ce, target=eru(neutral=1, max_grade=3))"
    assert theory.regret_bound(eru, "eru(neutral=1)", [3], 0.01).condition == theory.LabelsUpTo(3.0)
    with pytest.raises(ParameterError, match="largest_utility"):
        theory.regret_bound("pairwise(target=identity)", "eru", [2], 0.01)


@pytest.mark.parametrize(
    "objective",
    ["pairwise(loss=logistic, target=dcg, normalize=none)",
     "pairwise(loss=exponential, target=dcg(max_grade=2), normalize=none)",
     "bregman(loss=poisson, target=dcg(gain=linear))",
     "bregman(loss=softmax_ce, target=dcg)", "pointwise(loss=logistic, target=dcg)",
     "pointwise(loss=squared, target=dcg)"],
)  # fmt: skip
def test_a_bound_holds_where_its_condition_does(objective):
    rng = np.random.default_rng(5)
    metric = "dcg(gain=linear)" if "linear" in objective else "dcg"
    inside = 0
    for _ in range(30):
        labels = rng.integers(0, rng.choice([3, 5, 11]), (3, 3)).astype(float)
        distribution = theory.Distribution(labels, rng.dirichlet(np.ones(3)))
        bound = theory.regret_bound(objective, metric, [3], 1.0)
        if bound.condition is not None and not bound.condition.holds(distribution):
            continue
        scores = rng.normal(0.0, 1.0, 3)
        try:
            found = distribution.minimiser(objective)
            excess = max(distribution.inner_risk(objective, scores) - found.value, 0.0)
        except gbmrank.DataError:  # labels that the objective rejects
            continue
        inside += found.attained
        if found.attained:
            lost = distribution.regret(metric, scores)
            assert lost <= bound.value * np.sqrt(excess) * (1 + 1e-9) + 1e-9
    assert inside > 3
