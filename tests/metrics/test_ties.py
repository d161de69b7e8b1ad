"""Every measure against the mean, the extremes and the row order over all orders of ties."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbmrank.data import RankingData
from gbmrank.losses.utilities import IdentityUtility
from gbmrank.metrics import (
    AUC,
    BUILTIN_METRICS,
    DCG,
    ERR,
    ERU,
    MAP,
    MRR,
    NDCG,
    RBP,
    WTA,
    AbstractMetric,
    AlphaNDCG,
    HitRate,
    PairwiseDisagreement,
    Positional,
    Precision,
    PTop,
    Ranked,
    Recall,
    RPrecision,
    Spearman,
)
from tests import oracles

GRADES, BINARY = 4, 1
Oracle = Callable[[Sequence[float], Sequence[int]], float]
OnQuery = Callable[[list[float], list[float]], float]


def normalised_disagreement(labels: Sequence[float], order: Sequence[int]) -> float:
    total = sum(max(a - b, 0) for a in labels for b in labels)
    return oracles.pairwise_disagreement(labels, order) / total if total else math.nan


def normalised_top(labels: Sequence[float], order: Sequence[int]) -> float:
    return oracles.positives_at_top(labels, order) / sum(labels) if any(labels) else math.nan


def own_measure(labels: Sequence[float], order: Sequence[int]) -> float:
    return sum(labels[i] / (1 + r) for r, i in enumerate(order))


TABLE = (0.0, 1.0, 1.0, 5.0, 9.0)
CASES: list[tuple[AbstractMetric, Oracle, int]] = [
    (DCG(), oracles.dcg, GRADES),
    (DCG(k=2, gain="linear"), partial(oracles.dcg, k=2, gain="linear"), GRADES),
    (NDCG(), oracles.ndcg, GRADES),
    (NDCG(k=1), partial(oracles.ndcg, k=1), GRADES),
    (NDCG(k=2, gain=TABLE), partial(oracles.ndcg, k=2, gain=list(TABLE)), GRADES),
    (NDCG(k=9), partial(oracles.ndcg, k=9), GRADES),
    (Precision(), oracles.precision, BINARY),
    (Precision(k=3), partial(oracles.precision, k=3), BINARY),
    (Recall(k=2), partial(oracles.recall, k=2), BINARY),
    (Recall(), oracles.recall, BINARY),
    (WTA(), partial(oracles.precision, k=1), BINARY),
    (AUC(), oracles.pair_auc, BINARY),
    (Spearman(), oracles.spearman, GRADES),
    (ERU(), oracles.eru, GRADES),
    (
        ERU(neutral=1.5, half_life=2.5),
        partial(oracles.eru, neutral=1.5, half_life=2.5),
        GRADES,
    ),
    (ERR(), oracles.err, GRADES),
    (ERR(k=2), partial(oracles.err, k=2), GRADES),
    (ERR(max_grade=31), partial(oracles.err, max_grade=31), 31),
    (MAP(), oracles.average_precision, BINARY),
    (MAP(k=3), partial(oracles.average_precision, k=3), BINARY),
    (
        MAP(k=2, denominator="min"),
        partial(oracles.average_precision, k=2, denominator="min"),
        BINARY,
    ),
    (MRR(), oracles.reciprocal_rank, BINARY),
    (MRR(k=2), partial(oracles.reciprocal_rank, k=2), BINARY),
    (RBP(), oracles.rbp, GRADES),
    (RBP(p=0.5, k=2, threshold=1.0), partial(oracles.rbp, p=0.5, k=2), BINARY),
    (HitRate(), oracles.hit_rate, BINARY),
    (HitRate(k=2), partial(oracles.hit_rate, k=2), BINARY),
    (RPrecision(), oracles.r_precision, BINARY),
    (PTop(), oracles.positives_at_top, BINARY),
    (PTop(normalize=True), normalised_top, BINARY),
    (PairwiseDisagreement(), normalised_disagreement, GRADES),
    (PairwiseDisagreement(normalize=False), oracles.pairwise_disagreement, GRADES),
    (Positional(utility=IdentityUtility(), discount="reciprocal"), own_measure, GRADES),
]
IDS = [str(metric) for metric, _, _ in CASES]


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
