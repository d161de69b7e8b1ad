"""Conditions of verdicts: right inside, wrong outside; and what lemmas decide."""

import itertools
import os
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import pytest
from scipy.optimize import minimize

import gbmrank
from gbmrank import theory
from gbmrank.errors import GbmrankError
from gbmrank.extend import AbstractGenerator, AbstractOuter
from gbmrank.registry.composition import as_metric, as_objective
from gbmrank.theory.counterexamples import padded
from gbmrank.theory.verdicts.advice import advise
from tests.theory.test_attack import LOSSES, margin, minimiser, risk

MANY = int(os.environ.get("GBMRANK_CONDITION_DRAWS", "10000"))
BY_NAME = {loss["name"]: loss for loss in reversed(LOSSES)}
# All are convex but brier_sigmoid, which is proper: all its pairs are best at the log odds.
FALLING = ("logistic", "exponential", "squared_hinge", "canonical_boosting", "brier_sigmoid",
           "p_classification", "push")  # fmt: skip


def _binary(n):
    return np.array(list(itertools.product((0.0, 1.0), repeat=n)))


def _product(vectors, eta):
    return np.prod(np.where(vectors == 1.0, eta, 1.0 - eta), axis=1)


def _push(vectors, p, power):
    """Expected p-norm push with the exponential loss."""

    def expected(s):
        value, grad = 0.0, np.zeros(len(s))
        for q, y in zip(p, vectors, strict=True):
            good, bad = y == 1, y == 0
            if not good.any() or not bad.any():
                continue
            low, high = np.exp(-s[good]), np.exp(power * s[bad])
            loss = np.mean(low) ** power * np.mean(high)
            value += q * loss
            grad[good] -= q * loss * power * low / low.sum()
            grad[bad] += q * loss * power * high / high.sum()
        return value, grad

    return expected


def _attack_independent(draws, rng):
    """Yield scores that minimise, and the probabilities that they should be sorted by."""
    for turn in range(draws):
        n = int(rng.integers(2, 6))
        vectors, eta = _binary(n), rng.uniform(0.03, 0.97, n)
        p = _product(vectors, eta)
        name = FALLING[turn % len(FALLING)]
        if name == "push":
            pushed = _push(vectors, p, float(rng.choice([1.0, 2.0, 4.0])))
            options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 3000}
            box = [(-8.0, 8.0)] * n
            yield minimize(pushed, np.zeros(n), (), "L-BFGS-B", True, bounds=box,
                           options=options).x, eta  # fmt: skip
        else:
            template = "comparison" if turn % 2 else "bipartite"
            part = {"template": template, "loss": BY_NAME[name], "threshold": None}
            yield minimiser(risk(part, vectors, p), n), eta


def _no_pair_is_misordered(draws, seed):
    rng = np.random.default_rng(seed)
    for scores, eta in _attack_independent(draws, rng):
        ahead = eta[:, None] > eta[None] + 1e-3
        assert np.all((scores[:, None] - scores[None])[ahead] > 0), (scores, eta)


def test_independent_labels_are_sorted_by_probability():
    _no_pair_is_misordered(28, 0)


@pytest.mark.nightly
def test_many_independent_labels_are_sorted_by_probability():
    _no_pair_is_misordered(MANY, 1)


@pytest.mark.parametrize("metric", ["auc", "precision@2", "recall@2", "map", "wta"])
@pytest.mark.parametrize(
    "objective", ["ranknet", "rankboost", "ranksvm_squared", "w_ranknet", "bipartite", "pnorm_push"]
)
def test_binary_metrics_are_right_under_independence_and_wrong_outside(objective, metric):
    verdict = theory.calibration(objective, metric)
    assert verdict.status == "conditional"
    assert verdict.condition == theory.IndependentLabels()
    example = verdict.counterexample
    assert example.regret > 0
    assert not verdict.condition.holds(example.distribution)


def test_a_threshold_makes_relevance_of_grades():
    verdict = theory.calibration("bipartite(threshold=2)", "precision(threshold=2)@3")
    assert verdict.condition == theory.IndependentLabels(2.0)
    vectors = _binary(3)
    eta = np.array([0.2, 0.5, 0.7])
    graded = theory.Distribution(1.0 + 2.0 * vectors, _product(vectors, eta))
    assert verdict.condition.holds(graded)
    assert not theory.IndependentLabels().holds(graded)
    joint = theory.Distribution([[3, 3, 0], [0, 1, 2]], [0.5, 0.5])
    assert not verdict.condition.holds(joint)


def test_metrics_of_independent_labels_want_the_order_of_probabilities():
    """E[y z(P)] rises with the probability: by enumeration of all orders."""
    rng = np.random.default_rng(5)
    vectors = _binary(4)
    for _ in range(6):
        eta = rng.uniform(0.05, 0.95, 4)
        distribution = theory.Distribution(vectors, _product(vectors, eta))
        for metric in ("ndcg@2", "recall@2", "auc", "map", "spearman", "dcg"):
            assert distribution.regret(metric, eta) < 1e-12


def test_judgments_are_tested_for_independence():
    rng = np.random.default_rng(3)
    eta = rng.uniform(0.2, 0.8, (6, 1))
    apart = rng.random((6, 400)) < eta
    assert theory.independence(apart, group=[2, 4])
    mood = rng.random((1, 400)) < 0.5
    together = np.where(mood, rng.random((6, 400)) < 0.9, rng.random((6, 400)) < 0.1)
    answer = theory.IndependentLabels().estimate(together, group=[2, 4])
    assert not answer
    assert len(answer.witness) == 2
    assert theory.IndependentLabels(threshold=3).estimate(3.0 * apart, group=[2, 4])
    with pytest.raises(gbmrank.DataError, match="8 judges"):
        theory.independence(apart[:, :3])
    false = sum(not theory.independence(rng.random((4, 60)) < eta[:4]) for _ in range(200))
    assert false <= 12  # level 0.01


# Padding --------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [3, 5, 12])
@pytest.mark.parametrize(
    "objective", ["ranknet", "ranksvm", "rankboost", "pairwise(loss=hinge, target=precision)"]
)
@pytest.mark.parametrize("metric", ["precision", "recall"])
def test_padding_decides_cut_offs(objective, metric, k):
    measure = as_metric(f"{metric}@{k}")
    example = padded(as_objective(objective), measure)
    if k == 3 and "pairwise" in objective:
        assert example is None  # an added item is not far enough above the others
        return
    assert example is not None
    assert example.regret > 0
    if objective != "ranknet":
        return
    labels, p = np.array(example.labels), np.array(example.probabilities)
    part = {"template": "comparison", "loss": BY_NAME["logistic"]}
    scores = minimiser(risk(part, labels, p / p.sum()), labels.shape[1])
    stored = np.array(example.scores)
    np.testing.assert_allclose(scores - scores.mean(), stored - stored.mean(), atol=2e-3)
    assert example.distribution.regret(measure, scores) == pytest.approx(example.regret, rel=1e-6)


def test_hinges_with_padding_are_minimised_by_a_linear_programme():
    """The shared score of added items loses nothing: the least risk over all scores is the same."""
    from scipy.optimize import linprog

    example = theory.calibration("ranksvm", "precision@5").counterexample
    labels, p = np.array(example.labels), np.array(example.probabilities)
    wins = np.einsum("m,mij->ij", p, (labels[:, :, None] > labels[:, None]) * 1.0)
    i, j = np.nonzero(wins)
    n = labels.shape[1]
    cost = np.concatenate([np.zeros(n), wins[i, j]])
    rows = np.zeros((len(i), n + len(i)))
    rows[np.arange(len(i)), i], rows[np.arange(len(i)), j] = -1.0, 1.0
    rows[np.arange(len(i)), n + np.arange(len(i))] = -1.0
    bounds = [(-20, 20)] * n + [(0, None)] * len(i)
    least = linprog(cost, rows, -np.ones(len(i)), bounds=bounds).fun
    s = np.array(example.scores)
    reached = wins[i, j] @ np.maximum(1.0 - (s[i] - s[j]), 0.0)
    assert reached == pytest.approx(least, abs=1e-6)  # scores are stored with seven digits


def test_a_search_says_how_it_found_one():
    by_lemma = theory.search("ranknet", "precision@6")
    assert by_lemma.by == "padding"
    assert "adding items" in str(by_lemma)
    assert theory.search("ranknet", "dcg", budget=20).by == "search"
    assert theory.search("ranksvm", "precision@7").example is not None  # kinks, and 8 items


# Graphs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", ["true", "false"])
@pytest.mark.parametrize("m", [0, 1, "weight"])
@pytest.mark.parametrize("loss", ["logistic", "exponential", "squared_hinge", "hinge"])
def test_comparisons_of_graphs_misorder_under_low_noise(loss, m, normalize):
    metric = f"pairwise_disagreement(normalize={normalize})"
    verdict = theory.calibration(f"comparison(loss={loss}, margin={m})", metric, graphs=True)
    assert verdict.status == "not calibrated"
    assert ("Thm 11" if m == 0 else "Thm 12") in verdict.reference
    example = verdict.counterexample
    mean = example.distribution.mean_graph()
    assert theory.is_low_noise(mean)
    assert example.distribution.regret(metric, example.scores) == pytest.approx(example.regret)
    if loss == "hinge":
        return
    graphs, p = np.array(example.labels), np.array(example.probabilities)
    part = BY_NAME[loss]

    def expected(s):
        leads = graphs if m == "weight" else m
        value, slope = margin(part, s[:, None] - s[None] - leads)
        weights = p[:, None, None] * ((graphs > 0) if m == "weight" else graphs)
        slopes = (weights * slope).sum(axis=0)
        return float((weights * value).sum()), slopes.sum(axis=1) - slopes.sum(axis=0)

    scores = minimiser(expected, 3)
    np.testing.assert_allclose(scores - scores.mean(), example.scores, atol=1e-4)


def _graph_trials(draws, seed, normalize):
    """Inside the degree condition, sorting net degrees is best: by going through all orders."""
    rng = np.random.default_rng(seed)
    condition, inside = theory.DegreeCondition(normalize), 0
    while inside < draws:
        n = int(rng.integers(3, 5))
        graphs = rng.random((3, n, n)) * rng.integers(0, 3, (3, n, n)) * (1 - np.eye(n))
        p = rng.dirichlet(np.ones(3))
        if not condition.holds(theory.Distribution(graphs, p)):
            continue
        inside += 1
        raw = np.einsum("m,mij->ij", p, graphs)
        total = np.maximum(graphs.sum(axis=(1, 2)), 1e-300)
        judged = np.einsum("m,mij->ij", p / total if normalize else p, graphs)
        order = np.argsort(-(raw - raw.T).sum(axis=1))

        def lost(order, judged=judged):
            return sum(judged[j, i] for i, j in itertools.combinations(order, 2))

        assert lost(order) <= min(map(lost, itertools.permutations(range(n)))) + 1e-9


@pytest.mark.parametrize("normalize", [False, True])
def test_net_degrees_are_best_under_the_degree_condition(normalize):
    _graph_trials(40, 0, normalize)
    metric = f"pairwise_disagreement(normalize={str(normalize).lower()})"
    verdict = theory.calibration("linear", metric, graphs=True)
    assert verdict.condition == theory.DegreeCondition(normalize)
    assert not verdict.condition.holds(verdict.counterexample.distribution)


@pytest.mark.nightly
@pytest.mark.parametrize("normalize", [False, True])
def test_net_degrees_are_best_many_times(normalize):
    _graph_trials(MANY, 1, normalize)


def _p_f_trials(draws, seed):
    """Inside P_f, sorting an expected f (the label) is best for the normalised disagreement."""
    rng = np.random.default_rng(seed)
    condition, held = theory.calibration("linear", "pairwise_disagreement").condition, 0
    while held < draws:
        labels = rng.integers(0, 4, (3, 4)) * 1.0
        p = rng.dirichlet(np.ones(3))
        if not condition.holds(theory.Distribution(labels, p)):
            continue
        held += 1
        graphs = np.maximum(labels[:, :, None] - labels[:, None], 0.0)
        total = graphs.sum(axis=(1, 2))
        mean = np.einsum("m,mij->ij", p / np.where(total > 0, total, 1.0), graphs)

        def lost(order, mean=mean):
            return sum(mean[j, i] for i, j in itertools.combinations(order, 2))

        order = np.argsort(-(p @ labels))
        assert lost(order) <= min(map(lost, itertools.permutations(range(4)))) + 1e-9


def test_an_expectation_is_best_for_disagreement_on_its_distributions():
    _p_f_trials(40, 0)
    verdict = theory.calibration("linear", "pairwise_disagreement")
    assert isinstance(verdict.condition, theory.SortsPreferences)
    assert not verdict.condition.holds(verdict.counterexample.distribution)


@pytest.mark.nightly
def test_an_expectation_is_best_many_times():
    _p_f_trials(MANY, 1)


# Parts that users define ----------------------------------------------------------------------


def _cosh_like(s, v, eta):
    """Slope (1 + s^2) (s - v): the link is the identity."""
    return s**4 / 4 - v * s**3 / 3 + s * s / 2 - v * s, (1 + s * s) * (s - v), 1 + s * s


def _crooked(s, v, eta):
    """Slope s - v^2: it sorts the mean of squares."""
    return s * s / 2 - v * v * s, s - v * v, 1.0


@final
@dataclass(frozen=True, slots=True)
class _Own(AbstractGenerator):
    name: ClassVar[str] = "own"
    term = staticmethod(_cosh_like)


@final
@dataclass(frozen=True, slots=True)
class _Wrong(AbstractGenerator):
    name: ClassVar[str] = "wrong"
    proven: ClassVar[bool] = True
    term = staticmethod(_crooked)


def test_generators_of_ones_own():
    mine = gbmrank.objective("bregman", loss=_Own(), target="dcg")
    verdict = theory.calibration(mine, "dcg@10")
    assert verdict.status == "conditional"
    assert "generator own" in str(verdict.condition)
    assert theory.calibration(mine, "err@10").status == "not calibrated"
    wrong = gbmrank.objective("bregman", loss=_Wrong(), target="dcg")
    assert theory.calibration(wrong, "dcg@10").status == "unknown"
    labels, scores = np.array([2.0, 0.0, 1.0]), np.array([0.3, -0.2, 0.1])
    grad, _ = mine.gradients(labels, scores)
    np.testing.assert_allclose(grad, (1 + scores**2) * (scores - (2.0**labels - 1.0)))


@final
@dataclass(frozen=True, slots=True)
class _Cube(AbstractOuter):
    name: ClassVar[str] = "cube"

    @staticmethod
    def function(x):
        return x**3 + x, 3 * x**2 + 1, 6 * x


def test_prices_of_ones_own_in_a_push():
    verdict = theory.calibration(gbmrank.objective("push", g=_Cube()), "auc")
    assert verdict.status == "conditional"
    assert verdict.condition.parts[0] == theory.IndependentLabels()
    assert "cube" in str(verdict.condition)
    built_in = theory.calibration("push(loss=logistic, g=expm1)", "auc")
    assert built_in.condition == theory.IndependentLabels()


def test_a_push_with_any_price_sorts_the_probability():
    rng = np.random.default_rng(2)
    vectors = _binary(3)
    for _ in range(10):
        eta = rng.uniform(0.1, 0.9, 3)
        p = _product(vectors, eta)

        def expected(s, p=p):
            total = 0.0
            for q, y in zip(p, vectors, strict=True):
                good, bad = s[y == 1], s[y == 0]
                if len(good) and len(bad):
                    inner = np.logaddexp(0, bad[:, None] - good[None]).mean(axis=1)
                    total += q * np.mean(inner**3 + inner)
            return total

        scores = minimize(expected, np.zeros(3), method="BFGS", tol=1e-10).x
        assert np.argsort(scores).tolist() == np.argsort(eta).tolist()


def test_the_parabola_over_pairs_has_a_proof():
    verdict = theory.calibration("pairwise(loss=squared_margin, target=dcg)", "dcg")
    assert verdict.status == "calibrated"
    assert "closed-form minimiser" in verdict.reference
    rng = np.random.default_rng(0)
    for _ in range(20):
        u = rng.random(5)
        v, n = u.sum(), 5
        a = np.sum(u / (n * u + v))
        assert a <= 0.5
        part = {"template": "pairwise", "loss": BY_NAME["squared_margin"]}
        part["target"] = {"name": "identity"}
        scores = minimiser(risk(part, u[None], np.ones(1)), n)
        np.testing.assert_allclose(
            scores - scores.mean(), 1.0 - v / ((1 - a) * (n * u + v)), atol=1e-5
        )


# Advice ---------------------------------------------------------------------------------------


def test_advice_for_what_is_given():
    plain = {row.objective: row for row in advise("ndcg@10")}
    given = {row.objective: row for row in advise("ndcg@10", given="independent")}
    ranknet = "comparison(loss=logistic)"
    assert not plain[ranknet].proven
    assert plain[ranknet].verdict.status == "not calibrated"
    assert given[ranknet].proven
    assert not given["comparison(loss=hinge)"].proven
    order = [row.proven for row in advise("ndcg@10", given="independent")]
    assert order == sorted(order, reverse=True)
    noise = advise("pairwise_disagreement(normalize=false)", given="low-noise")
    assert noise[0].objective == "linear"
    assert [row.proven for row in noise].count(True) == 1
    with pytest.raises(gbmrank.ParameterError, match="graphs"):
        advise("dcg", given="low-noise")
    with pytest.raises(gbmrank.ParameterError, match="luck"):
        advise("dcg", given="luck")


def test_a_condition_rejects_labels_that_the_objective_does_not_take():
    verdict = theory.calibration("pairwise(target=identity)", "pairwise_disagreement")
    with pytest.raises(GbmrankError, match="not negative"):
        verdict.condition.holds(theory.Distribution([[-1, 1, 0]], [1]))
