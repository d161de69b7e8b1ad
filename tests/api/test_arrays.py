"""Objectives and metrics on plain arrays."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import gbmrank
from gbmrank.errors import (
    DataError,
    GroupError,
    LabelRangeError,
    MetricError,
    ParameterError,
    UnknownNameError,
    WeightError,
)
from tests.ranking_tasks import make_task, run_python

TASK = make_task(seed=5, queries=12, longest=9)
SCORES = np.random.default_rng(5).normal(size=TASK.n)
BINARY = (TASK.y >= 2).astype(float)
NDCG = gbmrank.metric("ndcg@10")

GRADED_TARGETS = [
    "identity",
    "dcg",
    "dcg(gain=linear)",
    "dcg(gain=[0, 1, 2, 5, 9])",
    "ndcg",
    "ndcg@3",
    "ndcg(gain=linear)@5",
    "spearman",
    "eru(neutral=1)",
    "precision(threshold=2)@5",
    "map(threshold=3)",
]
BINARY_TARGETS = ["precision@5", "recall@5", "wta", "auc", "map"]
TARGETS = [(target, TASK.y) for target in GRADED_TARGETS] + [
    (target, BINARY) for target in BINARY_TARGETS
]


def pairwise(target="ndcg", **params):
    return gbmrank.objective("pairwise", loss="logistic", target=target, **params)


def numeric_gradient(obj, labels, scores, step=1e-5, **columns):
    """Central differences of the loss."""
    grad = np.empty(len(scores))
    for i in range(len(scores)):
        up, down = scores.copy(), scores.copy()
        up[i] += step
        down[i] -= step
        rise = obj.loss(labels, up, **columns) - obj.loss(labels, down, **columns)
        grad[i] = rise / (2 * step)
    return grad


def slow_pairwise(utilities, scores):
    """The definition of the template for one query, without normalisation."""
    total = 0.0
    for i, u in enumerate(utilities):
        for j in range(len(utilities)):
            if j != i:
                total += u * np.logaddexp(0.0, -(scores[i] - scores[j]))
    return total


def test_the_loss_is_the_sum_of_the_definition():
    gains = 2.0**TASK.y - 1.0
    obj = pairwise("dcg", normalize="none")
    values = obj.loss(TASK.y, SCORES, group=TASK.sizes, per_query=True)
    expected = [
        slow_pairwise(gains[TASK.qid == q], SCORES[TASK.qid == q]) for q in range(len(TASK.sizes))
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    assert obj.loss(TASK.y, SCORES, group=TASK.sizes) == pytest.approx(sum(expected), rel=1e-12)


@pytest.mark.parametrize(("target", "labels"), TARGETS, ids=[target for target, _ in TARGETS])
def test_the_gradient_is_the_derivative_of_the_loss(target, labels):
    obj = pairwise(target)
    weight = np.linspace(0.5, 2.0, len(TASK.sizes))
    grad, hess = obj.gradients(labels, SCORES, group=TASK.sizes, weight=weight)
    expected = numeric_gradient(obj, labels, SCORES, group=TASK.sizes, weight=weight)
    np.testing.assert_allclose(grad, expected, rtol=1e-6, atol=1e-8)
    assert grad.dtype == hess.dtype == np.float64
    assert np.abs(grad).max() > 0.01


def test_net_degree_may_be_negative_and_is_rejected():
    with pytest.raises(LabelRangeError, match=r"target=net_degree gives -.*loss=squared"):
        pairwise("net_degree").gradients(TASK.y, SCORES, group=TASK.sizes)


@pytest.mark.parametrize("normalize", ["none", "items", "pairs"])
def test_the_exact_hessian_is_the_derivative_of_the_gradient(normalize):
    obj = pairwise("dcg", hessian="exact", normalize=normalize)
    _, hess = obj.gradients(TASK.y, SCORES, group=TASK.sizes)
    step = 1e-5
    for i in range(0, TASK.n, 7):
        up, down = SCORES.copy(), SCORES.copy()
        up[i] += step
        down[i] -= step
        rise = (
            obj.gradients(TASK.y, up, group=TASK.sizes)[0][i]
            - obj.gradients(TASK.y, down, group=TASK.sizes)[0][i]
        )
        assert hess[i] == pytest.approx(rise / (2 * step), rel=1e-6, abs=1e-9)


def test_hessian_options():
    weight = np.arange(1.0, len(TASK.sizes) + 1)

    def hessian(option):
        obj = pairwise(hessian=option)
        return obj.gradients(TASK.y, SCORES, group=TASK.sizes, weight=weight)[1]

    exact = hessian("exact")
    np.testing.assert_array_equal(hessian("auto"), exact)
    np.testing.assert_allclose(hessian("majorise"), 2.0 * exact, rtol=1e-15)
    np.testing.assert_array_equal(hessian("constant"), weight[TASK.qid])
    traits = {
        option: pairwise(hessian=option).template.hessian_trait
        for option in ("auto", "exact", "majorise", "constant")
    }
    assert traits == {
        "auto": "exact",
        "exact": "exact",
        "majorise": "bound",
        "constant": "constant",
    }


def test_the_majorant_bounds_the_loss():
    """One half of the majorant's curvature in every coordinate is an upper bound of the loss."""
    obj = pairwise("dcg", hessian="majorise", normalize="none")
    rng = np.random.default_rng(0)
    start = np.zeros(TASK.n)  # where the logistic loss curves most
    grad, hess = obj.gradients(TASK.y, start, group=TASK.sizes)
    base = obj.loss(TASK.y, start, group=TASK.sizes)
    for _ in range(20):
        step = rng.normal(size=TASK.n)
        bound = base + grad @ step + 0.5 * hess @ step**2
        assert obj.loss(TASK.y, step, group=TASK.sizes) <= bound * (1 + 1e-12)


def test_normalisation_divides_each_query():
    per_query = {
        option: pairwise("dcg", normalize=option).loss(
            TASK.y, SCORES, group=TASK.sizes, per_query=True
        )
        for option in ("none", "items", "pairs")
    }
    n = TASK.sizes.astype(float)
    np.testing.assert_allclose(per_query["items"], per_query["none"] / (n - 1), rtol=1e-13)
    np.testing.assert_allclose(
        per_query["pairs"], per_query["none"] / (n * (n - 1) / 2), rtol=1e-13
    )
    assert pairwise().template.normalize == "items"


def test_a_query_does_not_depend_on_the_others():
    obj = pairwise("ndcg@5")
    grad, hess = obj.gradients(TASK.y, SCORES, group=TASK.sizes)
    for q in range(len(TASK.sizes)):
        rows = TASK.qid == q
        alone = obj.gradients(TASK.y[rows], SCORES[rows])
        np.testing.assert_array_equal(grad[rows], alone[0])
        np.testing.assert_array_equal(hess[rows], alone[1])


def test_rows_and_queries_may_come_in_any_order():
    obj = pairwise("ndcg@5")
    grad, hess = obj.gradients(TASK.y, SCORES, qid=TASK.qid)
    order = np.random.default_rng(1).permutation(TASK.n)
    names = np.array([f"query {q}" for q in TASK.qid])
    shuffled = obj.gradients(TASK.y[order], SCORES[order], qid=names[order])
    np.testing.assert_allclose(shuffled[0], grad[order], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(shuffled[1], hess[order], rtol=1e-12, atol=1e-15)
    first_rows = list(dict.fromkeys(TASK.qid[order]))
    np.testing.assert_allclose(
        NDCG.per_query(TASK.y[order], SCORES[order], qid=TASK.qid[order]),
        NDCG.per_query(TASK.y, SCORES, qid=TASK.qid)[first_rows],
        rtol=1e-12,
    )
    assert obj.loss(TASK.y[order], SCORES[order], qid=names[order]) == pytest.approx(
        obj.loss(TASK.y, SCORES, group=TASK.sizes), rel=1e-12
    )


def test_groups_as_sizes_ids_and_nothing():
    obj = pairwise()
    by_size = obj.gradients(TASK.y, SCORES, group=TASK.sizes)
    by_id = obj.gradients(TASK.y, SCORES, qid=TASK.qid)
    np.testing.assert_array_equal(by_size, by_id)
    np.testing.assert_array_equal(
        obj.gradients(TASK.y, SCORES), obj.gradients(TASK.y, SCORES, group=[TASK.n])
    )


def test_frames_and_lists_give_the_same_numbers():
    obj = pairwise()
    expected = obj.gradients(TASK.y, SCORES, qid=TASK.qid)
    for make in (list, pd.Series, pl.Series):
        found = obj.gradients(make(TASK.y), make(SCORES), qid=make(TASK.qid))
        np.testing.assert_array_equal(found, expected)


def test_gradients_sum_to_zero_because_a_shift_changes_nothing():
    obj = pairwise("dcg")
    grad, _ = obj.gradients(TASK.y, SCORES, group=TASK.sizes)
    sums = np.bincount(TASK.qid, grad)
    np.testing.assert_allclose(sums, 0.0, atol=1e-12)
    assert obj.template.shift_invariant
    assert obj.loss(TASK.y, SCORES + 7.0, group=TASK.sizes) == pytest.approx(
        obj.loss(TASK.y, SCORES, group=TASK.sizes), rel=1e-10
    )


def test_weights_multiply_queries():
    obj = pairwise()
    weight = np.random.default_rng(2).uniform(0.0, 3.0, len(TASK.sizes))
    grad, hess = obj.gradients(TASK.y, SCORES, group=TASK.sizes)
    for given in (weight, weight[TASK.qid]):
        weighted = obj.gradients(TASK.y, SCORES, group=TASK.sizes, weight=given)
        np.testing.assert_allclose(weighted[0], grad * weight[TASK.qid], rtol=1e-12)
        np.testing.assert_allclose(weighted[1], hess * weight[TASK.qid], rtol=1e-12)
    values = obj.loss(TASK.y, SCORES, group=TASK.sizes, per_query=True)
    assert obj.loss(TASK.y, SCORES, group=TASK.sizes, weight=weight) == pytest.approx(
        weight @ values, rel=1e-12
    )


def test_integer_weights_are_repetitions():
    times = np.arange(len(TASK.sizes)) % 3 + 1
    many = TASK.repeated(times)
    rows = np.concatenate(
        [np.flatnonzero(TASK.qid == q) for q in np.repeat(np.arange(len(times)), times)]
    )
    obj = pairwise()
    weighted = obj.gradients(TASK.y, SCORES, group=TASK.sizes, weight=times)
    repeated = obj.gradients(many.y, SCORES[rows], group=many.sizes)
    for one, other in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(one, np.bincount(rows, other, minlength=TASK.n), rtol=1e-12)
    assert NDCG.score(TASK.y, SCORES, group=TASK.sizes, weight=times) == pytest.approx(
        NDCG.score(many.y, SCORES[rows], group=many.sizes), rel=1e-12
    )


def test_small_and_useless_queries_have_no_gradient():
    obj = pairwise("ndcg")
    for labels in ([3.0], [0.0, 0.0, 0.0]):
        grad, hess = obj.gradients(labels, np.arange(float(len(labels))))
        np.testing.assert_array_equal(grad, np.zeros(len(labels)))
        np.testing.assert_array_equal(hess, np.zeros(len(labels)))
        assert obj.loss(labels, np.arange(float(len(labels)))) == 0.0
    grad, hess = obj.gradients([], [])
    assert grad.shape == hess.shape == (0,)
    assert obj.loss([], []) == 0.0


def test_equal_labels_are_pulled_together():
    grad, _ = pairwise("dcg").gradients([1, 1], [1.0, 0.0])
    assert grad[0] > 0 > grad[1]


@pytest.mark.parametrize("size", [1e2, 1e4, 1e8, 1e200])
def test_huge_scores_give_finite_and_right_gradients(size):
    obj = pairwise("dcg")
    grad, hess = obj.gradients([1, 0], [-size, size])  # the wrong way round
    np.testing.assert_allclose(grad, [-1.0, 1.0], rtol=1e-12)
    assert np.isfinite(hess).all()
    assert obj.loss([1, 0], [-size, size]) == pytest.approx(2 * size, rel=1e-12)
    grad, _ = obj.gradients([1, 0], [size, -size])
    np.testing.assert_allclose(grad, [0.0, 0.0], atol=1e-40)


def test_the_callers_scores_are_not_changed():
    scores = SCORES.copy()
    scores.flags.writeable = False
    pairwise().gradients(TASK.y, scores, group=TASK.sizes)
    NDCG.score(TASK.y, scores, group=TASK.sizes)
    np.testing.assert_array_equal(scores, SCORES)


def test_memory_grows_with_rows_and_not_with_pairs():
    """One query of 20,000 items: a matrix of pairs would take 3.2 GB."""
    code = """
import resource, numpy as np, gbmrank
rng = np.random.default_rng(0)
obj = gbmrank.objective('pairwise', target='dcg')
y, s = rng.integers(0, 5, 20_000).astype(float), rng.normal(size=20_000)
obj.gradients(y[:50], s[:50]); obj.loss(y[:50], s[:50])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
obj.gradients(y, s, group=[20_000])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    assert float(run_python(code)) < 50.0  # megabytes


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pairwise().gradients([1, 0], [0.0]), DataError, "scores has 1 rows, labels has 2"),
        (lambda: pairwise().gradients([1, 0], [0.0, np.nan]), DataError, "nan in row 1, query 0"),
        (lambda: pairwise().loss([1, np.nan], [0.0, 0.0]), DataError, "1 of 2 labels are NaN"),
        (lambda: pairwise().gradients([1, -1], [0, 0]), LabelRangeError, "not negative, got -1"),
        (lambda: pairwise().gradients([1, 32], [0, 0]), LabelRangeError, "largest label is 32"),
        (
            lambda: pairwise("ndcg(gain=[0, 1])").gradients([2, 0], [0, 0]),
            LabelRangeError,
            "entries for labels 0..1; the labels go up to 2",
        ),
        (
            lambda: pairwise("ndcg(gain=[0, 1])").gradients([0.5, 0], [0, 0]),
            LabelRangeError,
            "must be whole numbers",
        ),
        (lambda: pairwise("auc").gradients([2, 0], [0, 0]), DataError, "for example threshold=1"),
        (
            lambda: pairwise("auc").gradients([-1, 0, 1], [0, 0, 0]),
            DataError,
            "labels must be 0/1 or -1/+1 here, got -1",
        ),
        (
            lambda: gbmrank.objective("softmax").gradients([1, 0], [0, 0], weight=[1.0, 2.0]),
            WeightError,
            "rows of query 0 have different weights",
        ),
        (lambda: NDCG.score([1, 0], [0, 0], group=[3]), GroupError, "sum to 3 in 1 queries"),
        (lambda: NDCG.score([1, 0], [0, np.inf]), DataError, "1 of 2 scores"),
    ],
)
def test_errors_say_what_was_given(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_labels_of_minus_one_and_one_are_binary():
    signs = np.where(BINARY > 0, 1.0, -1.0)
    np.testing.assert_array_equal(
        pairwise("auc").gradients(signs, SCORES, group=TASK.sizes),
        pairwise("auc").gradients(BINARY, SCORES, group=TASK.sizes),
    )


def test_fractional_and_large_labels_where_the_gain_takes_them():
    grad, _ = pairwise("dcg").gradients([0.5, 0], [0.0, 0.0])
    assert grad[0] == pytest.approx(-0.5 * (2**0.5 - 1), rel=1e-12)
    grad, _ = pairwise("dcg").gradients([31, 0], [0.0, 0.0])
    assert grad[0] == pytest.approx(-0.5 * (2.0**31 - 1), rel=1e-12)
    grad, _ = pairwise("dcg(gain=linear)").gradients(np.array([200, 0], np.uint8), [0.0, 0.0])
    assert grad[0] == pytest.approx(-100.0, rel=1e-12)


def test_bound_objectives_take_new_scores():
    obj = pairwise()
    bound = obj.bind(gbmrank.RankingData.from_arrays(TASK.y, group=TASK.sizes))
    for scores in (SCORES, -SCORES):
        np.testing.assert_array_equal(
            bound.gradients(scores), obj.gradients(TASK.y, scores, group=TASK.sizes)
        )


# metrics


def dcg(labels):
    return sum((2.0**y - 1) / np.log2(rank + 2) for rank, y in enumerate(labels))


def test_a_metric_is_the_mean_over_its_queries():
    labels, scores, sizes = [3, 2, 0, 0, 1, 0], [1.0, 2.0, 3.0, 0.5, 0.1, 9.0], [3, 2, 1]
    per_query = NDCG.per_query(labels, scores, group=sizes)
    first, second = dcg([0, 2, 3]) / dcg([3, 2, 0]), dcg([0, 1]) / dcg([1, 0])
    np.testing.assert_allclose(per_query, [first, second, np.nan], rtol=1e-12)
    assert NDCG.score(labels, scores, group=sizes) == pytest.approx((first + second) / 2)
    for empty, value in [("zero", 0.0), ("one", 1.0)]:
        metric = gbmrank.metric("ndcg@10", empty=empty)
        assert metric.score(labels, scores, group=sizes) == pytest.approx(
            (first + second + value) / 3
        )
    weighted = NDCG.score(labels, scores, group=sizes, weight=[3, 1, 5])
    assert weighted == pytest.approx((3 * first + second) / 4)


def test_ties_are_averaged_over_their_orders():
    assert gbmrank.metric("ndcg@1").score([1, 0], [0.0, 0.0]) == pytest.approx(0.5)
    both = (dcg([1, 0]) + dcg([0, 1])) / 2
    assert NDCG.score([0, 1], [5.0, 5.0]) == pytest.approx(both)


def test_a_metric_called_with_two_arrays_gives_a_number():
    value = NDCG(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    assert type(value) is float
    assert value == NDCG.score([1, 0], [0.0, 1.0])
    with pytest.raises(DataError, match="ndcg@10 is undefined"):
        NDCG(np.zeros(2), np.zeros(2))


def test_metric_lists():
    for several in (gbmrank.metric("ndcg@1,5,10"), gbmrank.metric(["ndcg@1", "ndcg@5,10"])):
        assert [str(item) for item in several] == ["ndcg@1", "ndcg@5", "ndcg@10"]
        assert len(several) == 3
        assert several[2] == NDCG
        scores = several.score(TASK.y, SCORES, group=TASK.sizes)
        assert scores == {
            str(item): pytest.approx(item.score(TASK.y, SCORES, group=TASK.sizes), rel=1e-12)
            for item in several
        }
        values = several.per_query(TASK.y, SCORES, group=TASK.sizes)
        np.testing.assert_allclose(
            values["ndcg@10"], NDCG.per_query(TASK.y, SCORES, group=TASK.sizes), rtol=1e-12
        )
    assert gbmrank.metric("ndcg@1,5") == gbmrank.metric(["ndcg@1", gbmrank.metric("ndcg@5")])
    assert repr(gbmrank.metric("ndcg@1,5")) == "gbmrank.metric('ndcg@1, ndcg@5')"


def test_metric_lists_have_every_metric_once():
    with pytest.raises(MetricError, match=r"ndcg@5.*twice"):
        gbmrank.metric("ndcg@5, map, nDCG@5")
    one, two = (gbmrank.PreferenceGraphs.from_edges([a], [1 - a], group=[2]) for a in (0, 1))
    with pytest.raises(MetricError, match="differ only in their preferences"):
        gbmrank.metric(
            [gbmrank.metric("pairwise_disagreement", preferences=graphs) for graphs in (one, two)]
        )
    nothing: list = []
    for empty in (nothing, iter(nothing)):
        with pytest.raises(MetricError, match="metric is empty; name at least one"):
            gbmrank.metric(empty)
    with pytest.raises(AttributeError):
        gbmrank.metric("ndcg@1,5").metrics = ()


@pytest.mark.parametrize("given", [b"ndcg", {"ndcg": 1}, 3])
def test_what_is_no_metric(given):
    with pytest.raises(MetricError, match=f"got {type(given).__name__}"):
        gbmrank.metric(given)


@pytest.mark.parametrize("score", [np.nan, np.inf])
def test_scores_that_stand_for_no_probability(score):
    with pytest.raises(DataError, match="1 of 2 scores are NaN or infinite"):
        gbmrank.objective("asymmetric_a").inverse_link([0.0, score])


def test_lists_of_metrics_of_no_rows_are_not_defined():
    with pytest.raises(DataError, match="ndcg, map of no rows is not defined"):
        gbmrank.metric("ndcg, map").score([], [])


def test_options_apply_to_every_metric_of_a_list():
    several = gbmrank.metric("ndcg@1,5", empty="zero")
    assert [item.measure.empty for item in several] == ["zero", "zero"]


def test_metrics_are_made_from_text_specs_and_objects():
    assert gbmrank.metric("nDCG@10") == NDCG
    assert gbmrank.metric("ndcg", k=10) == NDCG
    assert gbmrank.metric(NDCG) is NDCG
    assert gbmrank.metric(NDCG.spec) == NDCG
    assert gbmrank.metric(NDCG.measure) == NDCG
    other = gbmrank.metric(NDCG, empty="zero")
    assert other == gbmrank.metric("ndcg(empty=zero)@10")
    assert gbmrank.metric(other, empty="one", k=5) == gbmrank.metric("ndcg(empty=one)@5")


@pytest.mark.parametrize(
    ("spec", "params", "error", "message"),
    [
        ("ndcg@x", {}, MetricError, "whole number of at least 1"),
        ("ndcg@0", {}, MetricError, "whole number of at least 1"),
        ("ndcg", {"k": 0}, MetricError, "at least 1"),
        ("ndcg", {"k": -3}, MetricError, "at least 1"),
        ("ndgc@10", {}, UnknownNameError, "did you mean 'ndcg'"),
        ("ndcg@10", {"k": 5}, ParameterError, "k is set in the text and as an argument"),
        ("ndcg(k=5)@10", {}, ParameterError, "the cut-off is set twice"),
        ("ndcg", {"empty": "maybe"}, ParameterError, "one of skip, zero, one; got 'maybe'"),
        ("ndcg", {"gian": "exp2"}, ParameterError, "did you mean gain?"),
        (7, {}, MetricError, "text such as 'ndcg@10', got int"),
    ],
)
def test_wrong_metrics_are_rejected(spec, params, error, message):
    with pytest.raises(error, match=re.escape(message)):
        gbmrank.metric(spec, **params)


def test_names_for_other_tools():
    assert NDCG.name_in("lightgbm") == "gbmrank_ndcg@10"
    assert NDCG.name_in("xgboost") == "pre_gbmrank_ndcg@10"
    assert NDCG.name_in("mlflow") == "ndcg_at_10"
    with pytest.raises(ParameterError, match="got 'catboost'"):
        NDCG.name_in("catboost")


def test_values_are_frozen():
    for value in (NDCG, pairwise()):
        with pytest.raises(AttributeError, match="is frozen; make another"):
            value.name = "x"


def test_folds_keep_queries_whole_and_cover_every_row_once():
    folds = gbmrank.query_folds(qid=TASK.qid, n_folds=5)
    tested = np.concatenate([outside for _, outside in folds])
    np.testing.assert_array_equal(np.sort(tested), np.arange(TASK.n))
    for inside, outside in folds:
        assert not set(TASK.qid[inside]) & set(TASK.qid[outside])
        assert len(inside) + len(outside) == TASK.n
        assert 2 <= len(set(TASK.qid[outside])) <= 3  # 12 queries in 5 folds


def test_folds_follow_their_seed_and_unsorted_rows():
    first, again, other = (gbmrank.query_folds(qid=TASK.qid, seed=s) for s in (1, 1, 2))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a[1], b[1]) for a, b in zip(first, other, strict=True))
    order = np.random.default_rng(0).permutation(TASK.n)
    for inside, outside in gbmrank.query_folds(qid=TASK.qid[order], n_folds=3):
        assert not set(TASK.qid[order][inside]) & set(TASK.qid[order][outside])
    sizes = gbmrank.query_folds(group=TASK.sizes, seed=1)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(first, sizes, strict=True))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, GroupError, "pass a data set, group= (sizes) or qid="),
        ({"group": [1, 1], "n_folds": 3}, ParameterError, "from 2 to the number of queries (2)"),
        ({"group": [1, 1], "n_folds": 1}, ParameterError, "got 1"),
        ({"group": [1, 1, 1], "n_folds": 2.5}, ParameterError, "a whole number from 2 to the"),
        ({"group": [1, 1], "n_folds": "2"}, ParameterError, "number of queries (2), got '2'"),
        ({"data": np.zeros(3)}, GroupError, "lightgbm.Dataset or xgboost.DMatrix, got ndarray"),
        ({"group": [1, 1], "qid": [0, 1]}, GroupError, "not both"),
        ({"group": ["a", "b"]}, DataError, "group must be one column of numbers"),
        ({"group": [np.nan, 3]}, GroupError, "group sizes must be whole numbers, got nan"),
        ({"group": [1e300, 3], "n_folds": 2}, GroupError, "must be whole numbers, got 1e+300"),
        ({"qid": [1, None]}, GroupError, "qid is missing in 1 rows"),
        ({"group": [1, 1], "n_folds": 2, "seed": -1}, ParameterError, "at least 0 or None, got -1"),
        ({"group": [1, 1], "n_folds": 2, "seed": "a"}, ParameterError, "or None, got 'a'"),
    ],
)
def test_wrong_folds_are_rejected(options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        gbmrank.query_folds(**options)


def test_a_list_of_metrics_knows_preferences_without_labels():
    graphs = gbmrank.PreferenceGraphs.from_edges([0, 1], [1, 2], [3.0, 2.0], group=[3])
    one = gbmrank.metric("pairwise_disagreement", preferences=graphs)
    scores = np.array([2.0, 0.0, 1.0])
    several = gbmrank.metrics_callback([one])
    assert several.score(None, scores) == {str(one): one.score(None, scores)}
    assert (
        several.per_query(None, scores)[str(one)].tolist() == one.per_query(None, scores).tolist()
    )


def test_a_metric_of_no_rows_is_an_error():
    with pytest.raises(gbmrank.DataError, match="ndcg of no rows is not defined"):
        gbmrank.metric("ndcg").score([], [])


def test_columns_of_objects_and_masks_in_callbacks_with_arrays():
    plain = gbmrank.objective("ranknet")(np.array([1.0, 0.0]), np.zeros(2))
    given = gbmrank.objective("ranknet")(
        np.array([1, 0], object), np.zeros(2), np.array([1], object), np.array([2], object)
    )
    np.testing.assert_array_equal(given, plain)
    missing = (np.array([1, None], object), np.ma.array([1, 0], mask=[False, True]))
    for labels in missing:
        for call in (gbmrank.objective("ranknet"), gbmrank.metric("ndcg")):
            with pytest.raises(DataError, match="1 of 2 labels are NaN"):
                call(labels, np.zeros(2), None, np.array([2]))
    with pytest.raises(DataError, match="labels must be one column of numbers"):
        gbmrank.objective("ranknet")(np.array(["a", "b"]), np.zeros(2))


def test_a_metric_is_not_given_as_bytes():
    with pytest.raises(MetricError, match="got bytes: b'ndcg'"):
        gbmrank.metric(b"ndcg")


def test_objectives_of_the_boosters_are_told_apart():
    for name in ("rank:ndcg", "rank_xendcg"):
        with pytest.raises(UnknownNameError, match=f"did you mean native:{name}"):
            gbmrank.objective(name)
