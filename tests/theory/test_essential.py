"""The essential loss of Chen et al. and the chain around it."""

import itertools

import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.objectives import step_weights
from gbmrank.theory.views import order_value

POSITIONAL = (
    "dcg@2",
    "ndcg",
    "precision@2",
    "recall@2",
    "wta",
    "auc",
    "spearman",
    "eru",
    "err@1",
    "map@1",
    "mrr@1",
    "map(denominator=min)@1",
    "pairwise_disagreement",
    "pairwise_disagreement(normalize=false)",
)


def _by_definition(labels, scores, betas):
    """Minimum over consistent orders of the weighted errors, with the corrected tie rule."""
    n = len(labels)
    best = np.inf
    for order in itertools.permutations(range(n)):
        if any(labels[a] < labels[b] for a, b in itertools.pairwise(order)):
            continue
        total = 0.0
        for p in range(n - 1):
            i = order[p]
            later = order[p + 1 :]
            higher = any(scores[j] > scores[i] for j in later)
            tied = any(scores[j] == scores[i] and labels[j] < labels[i] for j in later)
            total += betas[p] * (higher or tied)
        best = min(best, total)
    return best


def _queries(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = int(rng.integers(1, 6))
        labels = rng.integers(0, 4, n)
        yield labels, rng.integers(-2, 3, n) * float(rng.choice([0.001, 0.1, 1.0]))


def test_sorting_attains_the_minimum_of_the_definition():
    for labels, scores in _queries(150, 0):
        ordered = -np.sort(-labels)
        betas = (2.0**ordered - 1) / np.log2(np.arange(2, len(labels) + 2))
        ours = theory.essential_loss(labels, scores)[0]
        assert ours == pytest.approx(_by_definition(labels, scores, betas), abs=1e-12)
        ones = theory.essential_loss(labels, scores, weights="one")[0]
        assert ones == _by_definition(labels, scores, np.ones(len(labels)))


@pytest.mark.parametrize(
    "objective", ["ranknet", "ranksvm", "rankboost", "listmle", "w_ranknet", "w_listmle"]
)
def test_ndcg_lost_is_at_most_the_essential_loss_is_at_most_the_surrogate(objective):
    labels, scores, sizes = [], [], []
    for y, s in _queries(400, 1):
        labels += list(y)
        scores += list(s)
        sizes.append(len(y))
    check = theory.essential_check(labels, scores, group=sizes, objective=objective)
    assert check.holds
    defined = ~np.isnan(check.lost)
    assert defined.sum() > 300
    assert np.all(check.lost[defined] <= check.essential[defined] + 1e-12)
    assert np.any(check.essential[defined] > 0.9 * check.surrogate[defined])


def test_average_precision_too():
    labels = [1, 0, 1, 0, 0, 1]
    check = theory.essential_check(labels, [0.1, 0.4, 0.3, 0.2, 0.1, 0.0], metric="map")
    assert check.holds
    assert check.lost[0] <= check.essential[0] <= check.surrogate[0]


def test_natural_logarithms_would_break_the_bound():
    # SPEC 3.5: y = (1, 0), s = (0, .001) has the loss .6936 < 1.
    objective = gbmrank.objective("ranknet", normalize="none")
    assert objective.loss([1, 0], [0.0, 0.001]) == pytest.approx(0.6936, abs=1e-4)
    check = theory.essential_check([1, 0], [0.0, 0.001], objective=objective)
    assert check.essential[0] == 1.0
    assert check.surrogate[0] == pytest.approx(0.6936 / np.log(2), abs=1e-4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "ptop"}, "bounds ndcg"),
        ({"metric": "map@2"}, "bounds ndcg"),
        ({"metric": "dcg(gain=[0, 3, 1])"}, "gains of larger labels"),
        ({"objective": "softmax"}, "not known to bound"),
        ({"objective": "comparison(weights=[1])"}, "weight of zero at a step"),
        ({"objective": "w_ranknet(weights=gain_discount(k=1))"}, "weight of zero at a step"),
    ],
)
def test_what_has_no_such_bound_is_refused(options, words):
    with pytest.raises(gbmrank.ParameterError, match=words):
        theory.essential_check([2, 1, 0], [0.0, 1.0, 2.0], **options)
    with pytest.raises(gbmrank.ParameterError, match="ndcg or one"):
        theory.essential_loss([1, 0], [0.0, 1.0], weights="two")


@pytest.mark.parametrize("metric", POSITIONAL)
def test_the_parts_of_a_metric_give_its_value(metric):
    rng = np.random.default_rng(2)
    chosen = gbmrank.metric(metric)
    for _ in range(20):
        labels = np.append(rng.integers(0, 2, 4), [1, 0])
        scores = rng.integers(0, 4, 6).astype(float)
        utilities, phi, offset = theory.positional(chosen, labels)
        value = offset + order_value(utilities, phi, scores)
        if metric == "err@1":
            value *= 2.0**-4  # the probability of stopping is the gain over 2^max_grade
        expected = chosen.score(labels, scores)
        assert (value if chosen.higher_is_better else -value) == pytest.approx(expected, abs=1e-12)


def test_a_cascade_has_no_parts():
    with pytest.raises(gbmrank.ParameterError, match="not a sum of utilities"):
        theory.positional("err@2", [1, 0])


@pytest.mark.parametrize(
    ("weights", "betas"),
    [
        ("gain_discount(gain=linear, k=2)", lambda y, p: y / np.log2(p + 1) if p <= 2 else 0.0),
        ([3.0, 2.0, 1.0], lambda y, p: max(4.0 - p, 0.0)),
    ],
)
def test_weights_of_ones_own(weights, betas):
    for labels, scores in _queries(60, 3):
        ordered = -np.sort(-labels)
        steps = [betas(y, p) for p, y in enumerate(ordered, 1)]
        ours = theory.essential_loss(labels, scores, weights=weights)[0]
        assert ours == pytest.approx(_by_definition(labels, scores, steps), abs=1e-12)


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("metric", ["ndcg@2", "ndcg(gain=linear)@3", "ndcg(gain=[0, 1, 5, 6])"])
@pytest.mark.parametrize("template", ["ranknet", "listmle", "comparison", "listmle(weighted)"])
def test_the_chain_with_other_gains_and_cut_offs(metric, template, count):
    made = gbmrank.metric(metric)
    text = {"listmle(weighted)": "listmle"}.get(template, template)
    objective = gbmrank.objective(text)
    if template in ("comparison", "listmle(weighted)"):
        weights = step_weights.GainDiscount(gain=made.measure.gain, k=made.measure.k)
        objective = gbmrank.objective(text, weights=weights)
    broken = 0
    for labels, scores in _queries(count, 4):
        check = theory.essential_check(labels, scores, objective=objective, metric=metric)
        broken += not check.holds
    assert broken == 0


BOUNDED = (
    "ndcg",
    "dcg(gain=linear)@3",
    "precision(threshold=1)@2",
    "recall(threshold=2)@3",
    "rbp",
    "eru",
    "wta(threshold=1)",
    "auc(threshold=2)",
    "spearman",
    "err",
    "err@2",
    "mrr(threshold=1)",
    "mrr(threshold=2)@2",
    "map(threshold=2)",
    "pairwise_disagreement",
)
"""Metrics whose loss is at most the essential loss."""


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("metric", BOUNDED)
def test_the_chain_of_other_metrics_with_weights_of_ones_own(metric, count):
    rng, queries = np.random.default_rng(7), list(_queries(count, 8))
    labels, scores = (np.concatenate(parts) for parts in zip(*queries, strict=True))
    sizes = [len(y) for y, _ in queries]
    for name in ("ranknet", "ranksvm", "rankboost", "listmle"):
        table = tuple(rng.uniform(0.05, 2.0, 6).round(2).tolist())  # rises and falls
        for weights in ("none", table):
            objective = gbmrank.objective(name, weights=weights)
            check = theory.essential_check(
                labels, scores, group=sizes, objective=objective, metric=metric
            )
            assert check.holds
            lost = check.lost[~np.isnan(check.lost)]
            essential = check.essential[~np.isnan(check.lost)]
            assert np.all(lost <= essential + 1e-12)
            assert np.any(lost > 0.2 * essential + 1e-9)  # and not far from it everywhere


def test_the_weights_of_a_metric_are_what_its_best_order_adds():
    labels, reversed_scores = np.array([3, 2, 1, 0]), np.arange(4.0)
    for metric in ("err", "rbp", "dcg"):  # all but the last item err
        check = theory.essential_check(labels, reversed_scores, metric=metric)
        best = gbmrank.metric(metric).score(labels, labels)
        assert check.essential[0] == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("count", [300, pytest.param(3000, marks=pytest.mark.nightly)])
def test_any_weights_of_the_steps_reach_the_minimum_over_all_orders(count):
    rng = np.random.default_rng(9)
    rising = 0
    for _ in range(count):
        n = int(rng.integers(1, 7))
        labels = rng.integers(0, int(rng.integers(1, 4)) + 1, n)
        scores = rng.integers(0, 4, n).astype(float)
        betas = rng.choice([0.0, 0.5, 1.0, 2.0, 5.0], n) + rng.choice([0.0, 0.25])
        if not betas.any():
            betas[0] = 1.0
        ours = theory.essential_loss(labels, scores, weights=betas)[0]
        assert ours == pytest.approx(_by_definition(labels, scores, betas), abs=1e-12)
        rising += bool(np.any(np.diff(betas) > 0))
    assert rising > count // 2
    assert theory.essential_loss([1, 1, 0], [3, 1, 2], weights=[1, 5])[0] == 1.0


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.nightly)])
def test_the_regression_bound(count):
    loose = []
    for labels, scores in _queries(count, 5):
        for k, gain in itertools.product((None, 2), ("exp2", "linear")):
            lost = 1.0 - gbmrank.metric("ndcg", gain=gain, k=k).per_query(labels, scores)[0]
            bound = theory.regression_bound(labels, scores, gain=gain, k=k)[0]
            assert np.isnan(bound) == np.isnan(lost)
            assert np.isnan(lost) or lost <= bound + 1e-12
            loose.append(bound)
    assert np.nanmin(loose) < 1.0
    # Targets have to be gains: for labels (4, 3) and scores near them it would be false.
    error = np.sqrt(((np.array([3.49, 3.51]) - [4, 3]) ** 2).sum())
    gains = np.array([15.0, 7.0])
    ideal = gains @ [1.0, 1.0 / np.log2(3)]
    assert np.sqrt(2 * (1 + np.log2(3) ** -2)) * error / ideal == pytest.approx(0.0621, abs=1e-4)
    lost = 1.0 - gbmrank.metric("ndcg").score([4, 3], [3.49, 3.51])
    assert lost == pytest.approx(0.1521, abs=1e-4)
    assert theory.regression_bound([4, 3], [3.49, 3.51])[0] > lost


def test_the_bound_by_inversions():
    rng = np.random.default_rng(6)
    for _ in range(300):
        labels = rng.integers(0, 2, rng.integers(1, 7))
        scores = rng.integers(0, 4, len(labels)).astype(float)
        value = gbmrank.metric("map").per_query(labels, scores)[0]
        bound = theory.inversion_bound(labels, scores)[0]
        assert np.isnan(bound) == np.isnan(value)
        assert np.isnan(value) or bound <= value + 1e-12
    # One relevant item: the bound is one over its rank.
    assert theory.inversion_bound([0, 0, 1], [3.0, 2.0, 1.0])[0] == pytest.approx(1 / 3)
    graded = theory.inversion_bound([2, 0, 1, 2], [1.0, 2.0, 0.0, 2.0], group=[2, 2], threshold=2)
    np.testing.assert_allclose(graded, [0.5, 1.0])
