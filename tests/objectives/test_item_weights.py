"""Weights of items: every engine against loops and differences (SPEC 12.1)."""

import itertools
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import PreferenceGraphs, RankingData, WeightError
from tests import objective_oracles as oracle
from tests.objectives.cases import SIZES, bound, differences, labels_for, scores_for, slices

STEP = 1e-3
ROWS = sum(SIZES)
WEIGHT = np.random.default_rng(5).uniform(0.0, 3.0, ROWS)
WEIGHT[[1, 6]] = 0.0
WEIGHT[slices()[3]] = 2.0  # one query whose rows do not differ
WEIGHT[slices()[4]] = 0.0  # and one that does not count
TEXTS = (
    "pairwise(target=dcg)",
    "pairwise(target=ndcg@3, normalize=none)",
    "pairwise(target=dcg, engine=pairs)",
    "pairwise(target=dcg, engine=linear)",
    "pairwise(loss=canonical_boosting, target=identity)",
    "pairwise(loss=exponential, target=dcg)",
    "pairwise(loss=squared_margin, target=dcg)",
    "pairwise(loss=hinge, target=dcg, engine=sorted)",
    "pairwise(loss=squared_hinge, target=dcg, engine=sorted)",
    "pairwise(loss=squared, target=dcg)",
    "pairwise(loss=squared, target=ndcg, hessian=majorise, normalize=pairs)",
    "comparison(loss=logistic)",
    "comparison(loss=logistic, engine=linear)",
    "comparison(loss=exponential)",
    "comparison(loss=squared_margin)",
    "comparison(loss=squared_hinge, engine=sorted)",
    "comparison(weights=gain_discount)",
    "comparison(margin=0.5)",
    "comparison(margin=weight)",
    "pointwise(target=dcg)",
    "pointwise(loss=squared, target=dcg, normalize=items)",
    "query_rmse(target=dcg, hessian=exact)",
    "query_rmse(target=ndcg)",
    "mix(pairwise(loss=squared, target=dcg), comparison, pointwise(target=dcg), query_rmse)",
)


@pytest.mark.parametrize("text", TEXTS)
def test_value_is_the_formula(text):
    labels, scores, template = labels_for(text), scores_for(), gbmrank.objective(text).template
    expected = [
        oracle.query_loss(template, labels[part], scores[part], WEIGHT[part]) for part in slices()
    ]
    made = gbmrank.objective(text)
    found = made.loss(labels, scores, group=SIZES, weight=WEIGHT, per_query=True)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("text", TEXTS)
def test_gradient_and_hessian_are_its_derivatives(text):
    scores, ready = scores_for(), bound(text, weight=WEIGHT)
    grad, hess = ready.gradients(scores)
    slope = differences(ready.losses, scores, STEP)
    size = np.repeat(np.abs(ready.losses(scores)), SIZES) + np.abs(grad) + 1.0
    assert np.all(np.abs(grad - slope) <= 1e-9 * size)
    exact = differences(lambda s: ready.gradients(s)[0], scores, STEP)
    trait = gbmrank.objective(text).template.hessian_trait
    if trait == "exact":
        assert np.all(np.abs(hess - exact) <= 1e-8 * size)
    elif trait == "bound":
        assert np.all(hess >= exact - 1e-8 * size)


@pytest.mark.parametrize(
    "text", ["pairwise(target=dcg)", "pairwise(loss=squared)", "comparison", "swap(metric=ndcg)"]
)
def test_equal_weights_of_a_query_are_a_weight_of_the_query(text):
    labels, scores, made = labels_for(text), scores_for(), gbmrank.objective(text)
    weight = np.linspace(0.3, 1.7, len(SIZES))
    whole = made.gradients(labels, scores, group=SIZES, weight=weight)
    rows = np.repeat(weight, SIZES)
    rows[0] *= 1 + 1e-9  # so that one query has weights of items
    near = made.gradients(labels, scores, group=SIZES, weight=rows)
    later = np.arange(ROWS) >= SIZES[0]
    for one, other in zip(whole, near, strict=True):
        assert one[later].tolist() == other[later].tolist()
        np.testing.assert_allclose(other, one, rtol=1e-7)


@pytest.mark.parametrize("template", ["pairwise(target=dcg)", "comparison"])
@pytest.mark.parametrize("n", [40, 700])
def test_engines_agree(template, n):
    rng = np.random.default_rng(n)
    labels, scores = rng.integers(0, 5, n), rng.normal(size=n)
    data = RankingData.from_arrays(labels, weight=rng.exponential(size=n))
    made = gbmrank.objective(template)
    found = {
        engine: gbmrank.objective(made, engine=engine).bind(data).gradients(scores)
        for engine in ("pairs", "linear", "auto")
    }
    for engine, part in itertools.product(("linear", "auto"), (0, 1)):
        size = np.abs(found["pairs"][part]).max()
        np.testing.assert_allclose(found[engine][part], found["pairs"][part], atol=1e-8 * size)
    single = made.bind(data).gradients(scores, np.float32, single=True)
    size = np.abs(found["pairs"][0]).max()
    np.testing.assert_allclose(single[0], found["pairs"][0], atol=1e-4 * size)


def test_edges_are_weighted_by_the_preferred_row():
    graphs = PreferenceGraphs.from_edges([0, 1, 2], [1, 2, 0], [1, 2, 3], group=[3])
    made = gbmrank.objective("comparison", preferences=graphs, normalize="none")
    scores, weight = np.array([0.1, -0.4, 0.3]), np.array([2.0, 0.5, 3.0])
    expected = sum(
        w * weight[i] * np.log1p(np.exp(scores[j] - scores[i]))
        for i, j, w in ((0, 1, 1.0), (1, 2, 2.0), (2, 0, 3.0))
    )
    assert made.loss(None, scores, weight=weight) == pytest.approx(expected)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("pairs", ["all", "neighbours"])
@pytest.mark.parametrize("metric", ["ndcg@3", "err"])
def test_a_swap_weighs_pairs_by_the_preferred_item(metric, pairs, norm):
    """Pair by pair: what a pair adds is that of no weights times that of its better item."""
    labels = np.array([3.0, 0.0, 1.0, 4.0, 2.0])
    scores = np.array([0.3, 1.2, -0.4, 0.9, 0.1])
    weight = np.array([0.5, 2.0, 1.0, 0.0, 1.5])  # of mean 1
    made = gbmrank.objective("swap", metric=metric, pairs=pairs, norm=norm, normalize="none")
    plain: Any = made.bind(RankingData.from_arrays(labels))
    ready: Any = made.bind(RankingData.from_arrays(labels, weight=weight))
    grad, hess = ready.gradients(scores)
    slope = np.empty(5)
    for row in range(5):
        up, down = scores.copy(), scores.copy()
        up[row], down[row] = up[row] + 1e-5, down[row] - 1e-5
        slope[row] = (ready.frozen_losses(up, scores) - ready.frozen_losses(down, scores))[0] / 2e-5
    np.testing.assert_allclose(grad, slope, atol=1e-9)
    assert np.all(hess >= 0.0)
    if norm:
        return
    pulls = pair_slopes(plain, labels, scores)
    expected = np.zeros(5)
    for (i, j), pull in pulls.items():
        expected[i] += weight[i] * pull
        expected[j] -= weight[i] * pull
    np.testing.assert_allclose(grad, expected, atol=1e-6)


def pair_slopes(ready, labels, scores):
    """Slope of each pair, from the mixed second differences of the loss with frozen weights."""
    found = {}
    for i, j in itertools.permutations(range(len(labels)), 2):
        if labels[i] > labels[j]:
            step, value = 1e-3, {}
            for a, b in itertools.product((-1, 1), (-1, 1)):
                moved = scores.copy()
                moved[i] += a * step
                moved[j] += b * step
                value[a, b] = ready.frozen_losses(moved, scores)[0]
            mixed = (value[1, 1] - value[1, -1] - value[-1, 1] + value[-1, -1]) / (4 * step**2)
            lead = scores[i] - scores[j]
            chance = 1 / (1 + np.exp(lead))
            factor = -mixed / (chance * (1 - chance))  # the loss of a pair has curvature c (1 - c)
            found[i, j] = -factor * chance
    return found


@pytest.mark.parametrize(
    "text", ["bipartite", "push", "bregman", "bregman(loss=squared)", "listmle", "linear"]
)
def test_others_reject_them_and_name_those_that_take_them(text):
    made = gbmrank.objective(text)
    with pytest.raises(WeightError, match=r"query 1.*pairwise, comparison, swap, pointwise"):
        made.gradients([1, 0, 1, 0], np.zeros(4), group=[2, 2], weight=[1.0, 1.0, 1.0, 2.0])
    with pytest.raises(WeightError, match="query 1"):
        gbmrank.mix("pairwise(target=dcg)", made).gradients(
            [1, 0, 1, 0], np.zeros(4), group=[2, 2], weight=[1.0, 1.0, 1.0, 2.0]
        )


@pytest.mark.parametrize("text", ["pairwise(target=dcg)", "comparison", "pairwise(loss=squared)"])
def test_a_constant_hessian_is_the_mean_weight(text):
    """An item of weight 0 still moves, as the lower one of its pairs."""
    made = gbmrank.objective(text, hessian="constant")
    _, hess = made.gradients([2, 1, 0], np.zeros(3), weight=[0.0, 1.0, 5.0])
    assert hess.tolist() == [2.0, 2.0, 2.0]


def test_weights_as_large_as_can_be():
    made, scores = gbmrank.objective("pairwise(target=dcg)"), np.array([0.2, 0.1, 0.4])
    grad, _ = made.gradients([1, 2, 0], scores, weight=[1e149, 1e150, 0.0])
    small, _ = made.gradients([1, 2, 0], scores, weight=[0.1, 1.0, 0.0])
    np.testing.assert_allclose(grad / 1e150, small, rtol=1e-12)
    data = RankingData.from_arrays([1, 2, 0], weight=[1e30, 1e38, 0.0])
    single, _ = made.bind(data).gradients(scores, np.float32, single=True)
    assert np.isfinite(single).all()
