"""``target=pairwise_disagreement``: its utility, bound and verdicts against all orders."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.data.queries import RankingData
from gbmrank.errors import ParameterError
from gbmrank.losses.utilities import DisagreementUtility


def _disagreement(labels, order):
    """The share of label differences that an order contradicts, with fractions; None if none."""
    pairs = list(itertools.combinations(order, 2))
    total = sum(abs(labels[i] - labels[j]) for i, j in pairs)
    lost = sum(max(labels[j] - labels[i], 0) for i, j in pairs)
    return Fraction(lost, total) if total else None


def _utilities(labels):
    total = sum(abs(a - b) for a, b in itertools.combinations(labels, 2))
    low = min(labels)
    return [Fraction(y - low, total) if total else Fraction(0) for y in labels]


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_sorting_the_expected_utility_is_best_of_all_orders(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        n = int(rng.integers(2, 5))
        vectors = rng.integers(-3, 6, (3, n)).tolist()
        weights = [int(w) for w in rng.integers(1, 9, 3)]
        expected = [sum(w * u[i] for w, u in zip(weights, map(_utilities, vectors), strict=True))
                    for i in range(n)]  # fmt: skip
        values = {
            order: sum(w * (_disagreement(y, order) or 0)
                       for w, y in zip(weights, vectors, strict=True))
            for order in itertools.permutations(range(n))
        }  # fmt: skip
        best = min(values.values())
        for order, value in values.items():
            falls = all(expected[a] >= expected[b] for a, b in itertools.pairwise(order))
            assert (value == best) == falls, (vectors, weights, order)


def test_the_utility_is_that_of_fractions_and_within_its_bound():
    rng = np.random.default_rng(1)
    for _ in range(200):
        labels = rng.integers(-4, 9, int(rng.integers(1, 6))).tolist()
        found = DisagreementUtility().values(RankingData.from_arrays(labels))
        if len(set(labels)) < 2:
            assert np.isnan(found).all()
            continue
        np.testing.assert_allclose(found, [float(u) for u in _utilities(labels)], rtol=1e-12)
        sizes = np.array([len(labels)])
        bounds = DisagreementUtility().upper_bounds(sizes)
        assert bounds is not None
        assert found.max() <= bounds[0] * (1 + 1e-12)
    assert DisagreementUtility(normalize=False).values(
        RankingData.from_arrays([3, 1])
    ).tolist() == [3.0, 1.0]


@pytest.mark.parametrize(
    "objective",
    ["pairwise(loss=logistic, target=pairwise_disagreement, normalize=none)",
     "pointwise(loss=squared, target=disagreement)", "query_rmse(target=pairwise_disagreement)",
     "pointwise(loss=logistic, target=pairwise_disagreement)"],
)  # fmt: skip
def test_verdict_and_bound_hold_on_random_distributions(objective):
    verdict = theory.calibration(objective, "pairwise_disagreement")
    assert verdict.status == "calibrated"
    bound = theory.regret_bound(objective, "pairwise_disagreement", [3], 1.0)
    assert bound.condition is None
    rng = np.random.default_rng(2)
    for _ in range(25):
        labels = rng.integers(-3, 6, (3, 3)).astype(float)
        distribution = theory.Distribution(labels, rng.dirichlet(np.ones(3)))
        found = distribution.minimiser(objective)
        if not found.attained:
            continue
        order = np.argsort(-found.scores)
        ranked = -np.argsort(order).astype(float)
        assert distribution.regret("pairwise_disagreement(empty=zero)", ranked) <= 1e-6
        scores = rng.normal(0.0, 0.3, 3)
        excess = max(distribution.inner_risk(objective, scores) - found.value, 0.0)
        lost = distribution.regret("pairwise_disagreement(empty=zero)", scores)
        assert lost <= bound.value * np.sqrt(excess) + 1e-9


def test_text_metric_and_options_name_one_target():
    made = gbmrank.objective("pairwise(target=pairwise_disagreement)")
    assert gbmrank.objective("pairwise", target=gbmrank.metric("disagreement")) == made
    assert str(made) == "pairwise(loss=logistic, target=pairwise_disagreement)"
    raw = gbmrank.metric("pairwise_disagreement(normalize=false)")
    assert gbmrank.objective("pairwise", target=raw) != made
    graphs = PreferenceGraphs.from_labels([1, 0])
    metric = gbmrank.metric("pairwise_disagreement", preferences=graphs)
    with pytest.raises(ParameterError, match="linear template"):
        gbmrank.objective("pairwise", target=metric)


def test_advice_names_it():
    first = theory.advise("pairwise_disagreement")[0]
    assert first.proven
    assert first.objective == "pairwise(loss=logistic, target=pairwise_disagreement)"
