"""Every measure against the mean, the extremes and the row order over all orders of ties."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gbmrank
from gbmrank.data import RankingData
from gbmrank.metrics import (
    BUILTIN_METRICS,
    ERR,
    MAP,
    AbstractMetric,
    AlphaNDCG,
    PairwiseDisagreement,
    PTop,
    Ranked,
)
from tests import oracles

Oracle = Callable[[Sequence[float], Sequence[int]], float]
OnQuery = Callable[[list[float], list[float]], float]


CASES: list[tuple[AbstractMetric, Oracle, int]] = [
    (gbmrank.metric(text).measure, twin, largest) for text, twin, largest in oracles.TWINS
]
IDS = [text for text, _, _ in oracles.TWINS]


def value(metric: AbstractMetric, labels: list[float], scores: list[float]) -> float:
    data = RankingData.from_arrays(labels)
    return float(metric.bind(data).per_query(Ranked(np.array(scores, float), data.groups))[0])


def tied_queries(largest: int) -> st.SearchStrategy[tuple[list[float], list[float]]]:
    item = st.tuples(
        st.integers(0, largest).map(float), st.sampled_from([-1.0, -0.0, 0.0, 2.0, 1e300])
    )
    columns = st.lists(item, min_size=1, max_size=6)
    return columns.map(lambda rows: ([y for y, _ in rows], [s for _, s in rows]))


def random_query(largest: int, seed: int, n: int = 7) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, largest + 1, n).astype(float)
    return labels.tolist(), rng.integers(0, 3, n).astype(float).tolist()


def expected(metric: AbstractMetric, oracle: Oracle, ties: str) -> OnQuery:
    best, worst = (max, min) if metric.higher_is_better else (min, max)
    rules: dict[str, OnQuery] = {
        "mean": partial(oracles.mean_over_orders, oracle),
        "best": partial(oracles.extreme_over_orders, best, oracle),
        "worst": partial(oracles.extreme_over_orders, worst, oracle),
        "index": lambda labels, scores: oracle(labels, oracles.first_in_row_order(scores)),
    }
    return rules[ties]


def assert_same(got: float, want: float) -> None:
    assert got == pytest.approx(want, rel=1e-12, abs=1e-12, nan_ok=True)


def test_every_builtin_metric_has_an_oracle():
    judged = {type(metric) for metric, _, _ in CASES}
    assert judged == {*BUILTIN_METRICS} - {AlphaNDCG}  # in test_diversity.py


@pytest.mark.parametrize(("metric", "oracle", "largest"), CASES, ids=IDS)
def test_mean_over_all_orders(metric: AbstractMetric, oracle: Oracle, largest: int):
    @settings(deadline=None, derandomize=True)
    @given(tied_queries(largest))
    def check(query: tuple[list[float], list[float]]) -> None:
        assert_same(value(metric, *query), oracles.mean_over_orders(oracle, *query))

    check()


@pytest.mark.parametrize("ties", ["mean", "best", "worst", "index"])
@pytest.mark.parametrize(("metric", "oracle", "largest"), CASES, ids=IDS)
def test_tie_rules_on_six_items(metric: AbstractMetric, oracle: Oracle, largest: int, ties: str):
    for seed in range(3):
        labels, scores = random_query(largest, seed, 5 if oracle is oracles.spearman else 6)
        want = expected(metric, oracle, ties)(labels, scores)
        assert_same(value(replace(metric, ties=ties), labels, scores), want)


@pytest.mark.parametrize(("metric", "oracle", "largest"), CASES, ids=IDS)
def test_selection_of_the_best_agrees_with_the_whole_order(
    metric: AbstractMetric, oracle: Oracle, largest: int
):
    rng = np.random.default_rng(7)
    sizes = rng.integers(1, 60, 40)
    labels = rng.integers(0, largest + 1, sizes.sum())
    data = RankingData.from_arrays(labels, group=sizes)
    for scores in (rng.normal(size=len(labels)), rng.integers(0, 6, len(labels)).astype(float)):
        for ties in ("mean", "index", "best", "worst"):
            bound = replace(metric, ties=ties).bind(data)
            fresh = bound.per_query(Ranked(scores, data.groups))
            whole = bound.per_query(Ranked(scores, data.groups).prepare(None))
            np.testing.assert_allclose(fresh, whole, rtol=1e-14, atol=0)


def test_strict_positives_at_the_top_are_the_worst_order():
    labels, scores = [1.0, 1.0, 0.0, 1.0], [3.0, 2.0, 2.0, 1.0]
    assert value(PTop(ties="strict"), labels, scores) == 1.0
    assert value(PTop(ties="worst"), labels, scores) == 1.0
    assert value(PTop(), labels, scores) == 1.5


def test_disagreement_best_is_smallest():
    labels, scores = [1.0, 0.0], [0.0, 0.0]
    assert value(PairwiseDisagreement(ties="best"), labels, scores) == 0.0
    assert value(PairwiseDisagreement(ties="worst"), labels, scores) == 1.0


def test_worked_example_of_the_specification():
    labels = [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
    first, second = [4.0, 3.0, 2.0, 1.0], [4.0, 2.0, 3.0, 1.0]

    def mean(metric: AbstractMetric, scores: list[float]) -> float:
        return (value(metric, labels[0], scores) + value(metric, labels[1], scores)) / 2

    err = ERR(max_grade=1)
    assert mean(err, second) - mean(err, first) == pytest.approx(1 / 48, rel=1e-12)
    assert mean(MAP(), second) - mean(MAP(), first) == pytest.approx(-1 / 24, rel=1e-12)
