"""Independent labels: sorting by probability of relevance, or by expected gain, is best.

All orders are enumerated, with whole numbers: probabilities are multiples of 1/12, and values of
metrics, written again here, are fractions.
"""

import functools
import itertools
import math
import os
from fractions import Fraction

import numpy as np
import pytest

from gbmrank import theory
from gbmrank.registry.composition import as_metric, as_objective
from gbmrank.theory.verdicts.advice import advise

MANY = int(os.environ.get("GBMRANK_CASCADE_DRAWS", "10000"))
COUNTS = [150, pytest.param(MANY, marks=pytest.mark.nightly)]
PARTS = 12
BINARY = ("err(max_grade=1)", "err(max_grade=2)@2", "err(max_grade=1)@3", "mrr", "mrr@1", "mrr@2",
          "mrr@3", "ptop", "ptop(normalize=true)", "hit_rate@1", "hit_rate@2", "hit_rate@3", "map",
          "map@1", "map@2", "map@3", "map(denominator=min)@2", "map(denominator=min)@3",
          "r_precision")  # fmt: skip
GRADED = ("err(max_grade=2)", "err(max_grade=2)@1", "err(max_grade=2)@2", "err(max_grade=3)@3")


# Metrics, as fractions ----------------------------------------------------------------------


def _cascade(stops, falls):
    """The sum of v(k) R_k times the chance of coming to rank k."""
    chance, total = Fraction(1), Fraction(0)
    for stop, v in zip(stops, falls, strict=True):
        total += v * stop * chance
        chance *= 1 - stop
    return total


def _reciprocals(n, k):
    return [Fraction(1, r) if r <= k else Fraction(0) for r in range(1, n + 1)]


def value(name, y, options, k):
    """Return a metric of the labels in the order of ranks; None where it is undefined."""
    n, p = len(y), sum(y)
    k = n if k is None else min(k, n)
    if name == "err":
        stops = [Fraction(2 ** int(label) - 1, 2 ** options["max_grade"]) for label in y]
        return _cascade(stops, _reciprocals(n, k))
    if name == "ptop":
        led = Fraction(len(list(itertools.takewhile(bool, y))))
        return led if "normalize" not in options else led / p if p else None
    if not p:
        return None
    first = y.index(1)
    if name == "mrr":
        return _reciprocals(n, k)[first]
    if name == "hit_rate":
        return Fraction(first < k)
    if name == "r_precision":
        return Fraction(sum(y[:p]), p)
    hits = (Fraction(sum(y[: r + 1]), r + 1) for r in range(k) if y[r])
    return sum(hits, Fraction(0)) / (min(p, k) if "denominator" in options else p)


def _read(text):
    name, options, k = text.partition("@")[0], {}, text.partition("@")[2]
    if "(" in name:
        name, _, inside = name.removesuffix(")").partition("(")
        key, _, given = inside.partition("=")
        options = {key: int(given) if given.isdigit() else given}
    return name, options, int(k) if k else None


@functools.cache
def _table(text, grades, n):
    """Return label vectors, orders, and the values of a metric as whole numbers over one."""
    vectors = list(itertools.product(grades, repeat=n))
    orders = list(itertools.permutations(range(n)))
    name, options, k = _read(text)
    rows = [[value(name, tuple(y[i] for i in order), options, k) for order in orders]
            for y in vectors]  # fmt: skip
    unit = math.lcm(*(one.denominator for row in rows for one in row if one is not None))
    whole = [[0 if one is None else int(one * unit) for one in row] for row in rows]
    return np.array(vectors), orders, np.array(whole, dtype=np.int64), unit


@pytest.mark.parametrize("text", [*BINARY, *GRADED])
def test_these_are_the_metrics_of_the_library(text):
    grades = (0, 1, 2) if text in GRADED else (0, 1)
    vectors, orders, whole, unit = _table(text, grades, 3)
    scores = -np.argsort(np.array(orders), axis=1).astype(float)
    uniform = theory.Distribution(vectors.astype(float), np.ones(len(vectors)))
    assert np.nan_to_num(uniform.order_values(text, scores)) == pytest.approx(whole / unit)


# The orders that are best -------------------------------------------------------------------


def _weights(chances, vectors, grades):
    """Return the weight of each label vector: products of whole chances per item and grade."""
    place = np.searchsorted(np.array(grades), vectors)
    chosen = chances[np.arange(vectors.shape[1]), place]
    return np.prod(chosen, axis=1, dtype=np.int64)


def _chances(rng, n, grades):
    """Return whole numbers per item that sum to PARTS; two items are often alike."""
    rows = rng.multinomial(PARTS, rng.dirichlet(np.ones(len(grades))), size=n)
    if rng.random() < 0.3:
        rows[rng.integers(n)] = rows[rng.integers(n)]
    return rows.astype(np.int64)


def _lost(whole, orders, weights, sort_by):
    """Return what the worst order that is sorted by these numbers loses."""
    values = weights @ whole
    ordered = np.array(sort_by)[np.array(orders)]
    fits = np.all(np.diff(ordered, axis=1) <= 0, axis=1)
    return int(values.max() - values[fits].min())


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("text", BINARY)
def test_sorting_by_probability_is_best_on_independent_binary_labels(text, count):
    rng = np.random.default_rng(len(text))
    for _ in range(count):
        n = int(rng.integers(2, 6 if count > 1000 else 5))
        vectors, orders, whole, _ = _table(text, (0, 1), n)
        chances = _chances(rng, n, (0, 1))
        weights = _weights(chances, vectors, (0, 1))
        assert _lost(whole, orders, weights, chances[:, 1]) == 0, (text, chances)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("text", GRADED)
def test_sorting_by_expected_gain_is_best_for_err_of_independent_grades(text, count):
    rng = np.random.default_rng(len(text))
    grades = (0, 1, 2)
    for _ in range(count):
        n = int(rng.integers(2, 5))
        vectors, orders, whole, _ = _table(text, grades, n)
        chances = _chances(rng, n, grades)
        weights = _weights(chances, vectors, grades)
        gain = chances @ np.array([0, 1, 3])
        assert _lost(whole, orders, weights, gain) == 0, (text, chances)


# Where it fails ------------------------------------------------------------------------------


def _share_lost(count, text, utility, grades=(0, 1, 2), n=4):
    """Return the share of random cases in which sorting by E u(y) loses."""
    rng, lost = np.random.default_rng(9), 0
    vectors, orders, whole, _ = _table(text, grades, n)
    table = np.array([utility(y) for y in vectors.tolist()])
    for _ in range(count):
        weights = _weights(_chances(rng, n, grades), vectors, grades)
        lost += _lost(whole, orders, weights, (weights @ table).round(9)) > 0
    return lost / count


def _ideal(y):
    gains = 2.0 ** np.array(y) - 1.0
    best = np.sort(gains)[::-1] @ (1.0 / np.log2(np.arange(2, len(y) + 2)))
    return gains / best if best > 0 else gains


def test_the_ideal_of_ndcg_changes_the_order_of_grades_but_not_of_relevance():
    assert _share_lost(400, "err(max_grade=2)", lambda y: 2 ** np.array(y) - 1) == 0.0
    assert 0.02 < _share_lost(400, "err(max_grade=2)", _ideal) < 0.6
    assert _share_lost(400, "err(max_grade=1)", _ideal, (0, 1)) == 0.0


def test_a_reciprocal_rank_of_grades_needs_a_threshold():
    """With relevance from grade 1 or 2 on, the probability of reaching it sorts; E y does not."""
    name = "mrr"
    for threshold in (1, 2):
        rng, lost = np.random.default_rng(threshold), 0
        vectors, orders, _, _ = _table("err(max_grade=2)", (0, 1, 2), 3)
        whole = np.array([[12 * (value(name, tuple(int(y[i] >= threshold) for i in o), {}, None)
                                 or 0) for o in orders] for y in vectors.tolist()])  # fmt: skip
        whole = whole.astype(np.int64)
        for _ in range(300):
            chances = _chances(rng, 3, (0, 1, 2))
            weights = _weights(chances, vectors, (0, 1, 2))
            assert _lost(whole, orders, weights, chances[:, threshold:].sum(axis=1)) == 0
            lost += _lost(whole, orders, weights, chances @ np.array([0, 1, 2])) > 0
        assert lost > 15


def test_a_discount_that_rises_reverses_the_order():
    stops = [Fraction(1, 4), Fraction(3, 4)]
    fall, rise = [Fraction(1), Fraction(1, 2)], [Fraction(1, 2), Fraction(1)]
    assert _cascade(stops, fall) < _cascade(stops[::-1], fall)
    assert _cascade(stops, rise) > _cascade(stops[::-1], rise)


def test_without_independence_the_order_by_probability_loses():
    together = theory.Distribution([[1, 1, 0, 0], [0, 0, 1, 1]], [0.55, 0.45])
    for text in ("err(max_grade=1)", "mrr", "hit_rate@2"):
        assert together.regret(text, [2.0, 2.0, 1.0, 1.0]) > 0.01


# Verdicts and advice ------------------------------------------------------------------------


def test_advice_for_err_of_independent_labels_has_the_right_utility():
    rows = advise("err", given="independent")
    proven = {row.objective for row in rows if row.proven}
    assert {"pairwise(loss=logistic, target=dcg)", "pointwise(loss=squared, target=dcg)",
            "pointwise(loss=logistic, target=dcg)"} <= proven  # fmt: skip
    assert rows[0].verdict.condition == theory.IndependentLabels(graded=True)
    assert not any(row.proven for row in advise("err"))


@pytest.mark.parametrize("text", [text for text in BINARY if text.partition("@")[2] != "1"])
def test_advice_for_binary_metrics_of_independent_labels(text):
    first = advise(text, given="independent")[0]
    assert first.proven
    assert isinstance(first.verdict.condition, theory.IndependentLabels)
    assert theory.calibration(first.objective, text).status in ("not calibrated", "unknown",
                                                                "conditional")  # fmt: skip


@pytest.mark.parametrize("text", ["mrr(threshold=2)", "map(threshold=2)@5", "auc(threshold=2)"])
def test_losses_of_binary_labels_are_advised_on_with_the_threshold_of_the_metric(text):
    rows = {row.objective: row for row in advise(text, given="independent")}
    for own in (
        "bipartite(loss=logistic, threshold=2)",
        "push(loss=exponential, p=4, threshold=2)",
    ):
        assert rows[own].proven
        assert rows[own].verdict.condition == theory.IndependentLabels(threshold=2)
    assert not any(row.verdict.reference == "by definition" for row in rows.values())


def test_what_is_proven_for_grades_and_what_for_relevance_alone():
    from gbmrank.theory.verdicts.calibration import given_independent

    def condition(objective, metric):
        found = given_independent(as_objective(objective), as_metric(metric))
        return None if found is None else found.condition

    graded, binary = theory.IndependentLabels(graded=True), theory.IndependentLabels()
    assert condition("pairwise(target=dcg)", "err@10") == graded
    assert condition("query_rmse(target=dcg(max_grade=2))", "err@10") == graded
    assert condition("pairwise(target=dcg(gain=[0, 1, 3, 7]))", "err") == graded
    assert condition("pairwise(target=dcg(gain=[0, 1, 2, 3]))", "err") == binary
    assert condition("pairwise(target=dcg(gain=linear))", "err") == binary
    assert condition("pairwise(target=ndcg)", "err@10") == binary
    assert condition("ranknet", "mrr@3") == binary
    assert condition("ranknet", "mrr(threshold=2)@3") is None
    two = theory.IndependentLabels(threshold=2)
    assert condition("bipartite(threshold=2)", "mrr(threshold=2)@3") == two
    assert condition("ranksvm", "mrr") is None
    assert condition("pairwise(target=dcg)", "alpha_ndcg") is None
    assert condition("pairwise(target=map)", "map(ties=best)") is None


def test_independence_of_grades_is_tested_on_distributions_and_judgments():
    condition = theory.IndependentLabels(graded=True)
    grades = np.array(list(itertools.product((0.0, 1.0, 3.0), repeat=2)))
    chances = np.array([[3, 5, 4], [6, 1, 5]])
    weights = _weights(chances, grades, (0.0, 1.0, 3.0))
    assert condition.holds(theory.Distribution(grades, weights))
    assert not condition.holds(theory.Distribution(grades, weights + np.eye(9, dtype=int)[4]))
    assert not theory.IndependentLabels().holds(theory.Distribution(grades, weights))
    rng = np.random.default_rng(3)
    apart = rng.choice([0.0, 1.0, 3.0], size=(4, 300))
    assert condition.estimate(apart)
    assert not condition.estimate(np.stack([apart[0], apart[0], apart[1]]))
