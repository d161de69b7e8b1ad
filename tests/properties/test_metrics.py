"""Every registered metric on random small data with ties."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gbmrank
from gbmrank import RankingData
from gbmrank.metrics import Ranked, mean_over_queries
from gbmrank.registry import METRICS
from tests.properties.strategies import BINARY, GRADED, problems
from tests.properties.tally import fewer, tried

MORE = (
    "ndcg(gain=linear)@3",
    "err(max_grade=7)@2",
    "eru(neutral=1, half_life=2, normalize=true)",
    "map(threshold=2, denominator=min)@2",
    "precision(threshold=3)@2",
    "auc(threshold=2)",
    "mrr(threshold=1)",
    "positional(utility=identity, discount=reciprocal)@2",
    "positional(utility=dcg, discount=[1, 0.5, 0.5])",
)


NAMES = [name for name in METRICS.entries if name != "alpha_ndcg"]  # it needs subtopics


def texts():
    for name in NAMES:
        yield name
        if "k" in {field.name for field in fields(METRICS.get(name))}:
            yield f"{name}@2"
    yield from MORE


TEXTS = list(texts())


def grades_for(text):
    measure = gbmrank.metric(text).measure
    if "threshold" in {field.name for field in fields(measure)}:
        return GRADED if measure.threshold is not None else BINARY
    return GRADED


def values(measure, labels, scores, sizes):
    data = RankingData.from_arrays(labels, group=sizes)
    return measure.bind(data).per_query(Ranked(np.array(scores, float), data.groups))


def assert_same(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("text", TEXTS)
def test_values_lie_in_their_range_and_between_the_orders_of_ties(text):
    measure = gbmrank.metric(text).measure
    low, high = measure.value_range
    sign = 1.0 if measure.higher_is_better else -1.0

    @fewer(2)
    @given(problems(grades_for(text)))
    def check(problem):
        labels, scores, sizes = problem.labels, problem.scores, problem.sizes
        mean = values(measure, labels, scores, sizes)
        there = ~np.isnan(mean)
        assert (mean[there] >= low - 1e-12).all()
        assert (mean[there] <= high + 1e-12).all()
        worst, best, index = (
            values(replace(measure, ties=rule), labels, scores, sizes)
            for rule in ("worst", "best", "index")
        )
        for inside in (mean, index):
            assert np.isnan(inside).tolist() == np.isnan(mean).tolist()
            assert (sign * (inside - worst)[there] >= -1e-12).all()
            assert (sign * (best - inside)[there] >= -1e-12).all()
        top = values(measure, labels, labels, sizes)
        assert (sign * (top - best)[there] >= -1e-12).all()  # nothing beats the labels
        tried("metric ranges")

    check()


@pytest.mark.parametrize("text", TEXTS)
def test_what_changes_nothing(text):
    """An increasing map of the scores, the order of rows, and the other queries."""
    measure = gbmrank.metric(text).measure

    @fewer(2)
    @given(problems(grades_for(text)), st.sampled_from([1e-3, 1.0, 1e200]))
    def check(problem, spread):
        labels, scores, sizes = problem.labels, problem.scores, problem.sizes
        want = values(measure, labels, scores, sizes)
        levels = np.unique(scores, return_inverse=True)[1].reshape(-1)
        mapped = spread * (levels - 2.0)
        assert values(measure, labels, mapped, sizes).tolist() == pytest.approx(
            want.tolist(), rel=0.0, abs=0.0, nan_ok=True
        )
        within = problem.within
        assert_same(values(measure, labels[within], scores[within], sizes), want)
        for query, part in enumerate(problem.slices):
            alone = values(measure, labels[part], scores[part], [part.stop - part.start])
            assert_same(alone, want[query : query + 1])
        tried("metric invariances")

    check()


@pytest.mark.parametrize("text", NAMES)
def test_the_mean_is_that_of_the_queries(text):
    metric = gbmrank.metric(text)

    @fewer(2)
    @given(problems(grades_for(text)), st.sampled_from(["skip", "zero", "one"]))
    def check(problem, empty):
        measure = replace(metric.measure, empty=empty)
        data = RankingData.from_arrays(problem.labels, group=problem.sizes, weight=problem.weight)
        bound = measure.bind(data)
        each = bound.per_query(Ranked(problem.scores.copy(), data.groups))
        pairs = [
            (weight, {"zero": 0.0, "one": 1.0}[empty] if math.isnan(value) else value)
            for weight, value in zip(problem.weight.tolist(), each.tolist(), strict=True)
            if empty != "skip" or not math.isnan(value)
        ]
        total = sum(weight for weight, _ in pairs)
        want = sum(w * v for w, v in pairs) / total if total else math.nan
        got = bound.score(Ranked(problem.scores.copy(), data.groups))
        assert got == pytest.approx(want, rel=1e-12, abs=1e-15, nan_ok=True)
        again = mean_over_queries(each, problem.weight, empty)
        assert again == pytest.approx(want, rel=1e-12, abs=1e-15, nan_ok=True)
        tried("metric means")

    check()
