"""Measures against all orders of five items: a judge that is quick without the compiler."""

from dataclasses import replace

import numpy as np
import pytest

import gbmrank
from gbmrank.data import RankingData
from gbmrank.kernels.jit import compiler
from gbmrank.metrics import Ranked
from tests.metrics.test_ties import CASES, IDS, assert_same, expected

SIZES = (5, 1, 4, 5, 2, 5)


@pytest.mark.parametrize("ties", ["mean", "best", "worst", "index"])
@pytest.mark.parametrize(("metric", "oracle", "largest"), CASES, ids=IDS)
def test_six_short_queries(metric, oracle, largest, ties):
    rng = np.random.default_rng(12)
    labels = rng.integers(0, largest + 1, sum(SIZES)).astype(float)
    scores = rng.integers(0, 3, sum(SIZES)).astype(float)
    labels[5], labels[10:15] = 0.0, 0.0  # nothing relevant
    data = RankingData.from_arrays(labels, group=SIZES)
    found = replace(metric, ties=ties).bind(data).per_query(Ranked(scores.copy(), data.groups))
    judge = expected(metric, oracle, ties)
    ends = np.cumsum((0, *SIZES))
    for query, value in enumerate(found.tolist()):
        part = slice(ends[query], ends[query + 1])
        assert_same(value, judge(labels[part].tolist(), scores[part].tolist()))


@pytest.mark.parametrize(("metric", "oracle", "largest"), CASES, ids=IDS)
def test_nothing_is_divided_by_zero_to_find_out_what_is_undefined(metric, oracle, largest):
    labels = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    with np.errstate(divide="raise", invalid="raise"):
        metric.bind(RankingData.from_arrays(labels, group=[2, 3, 1]))


@pytest.mark.parametrize("above", [0, 1, 7])
@pytest.mark.parametrize("stops", [(0.5, 0.5), (0.0, 0.25, 0.25, 0.9375), (0.1,) * 6 + (0.7,),
                                   (0.5, 0.1, 0.3, 0.1, 0.0)])  # fmt: skip
def test_the_integral_for_long_blocks_is_the_recurrence(stops, above):
    """Long tied blocks take another way to the same number; here on few items."""
    kernels = compiler.load("ranking.measures")
    column = np.array(stops)
    values, counts = kernels._different(column, 10)
    assert values.tolist() == sorted(set(stops))
    assert counts.tolist() == [stops.count(value) for value in sorted(set(stops))]
    assert len(kernels._different(column, len(values) - 1)[0]) == 0
    want = kernels._one_by_one(column, above, len(column))
    assert kernels._by_integral(values, counts, above) == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 2, 0, 3, 1), (4, 3, 2, 1, 0)])
def test_disagreement_where_every_label_is_another(order):
    """As many levels as items fill the buffers of the longest query."""
    labels, scores = np.array(order, float), np.array([2.0, 2.0, 1.0, 0.0, 3.0])
    lost = [max(labels[j] - labels[i], 0.0) * (1.0 if scores[i] > scores[j] else 0.5)
            for i in range(5) for j in range(5) if scores[i] >= scores[j] and i != j]  # fmt: skip
    metric = gbmrank.metric("pairwise_disagreement(normalize=false)")
    assert metric.score(labels, scores) == pytest.approx(sum(lost), rel=1e-14)


def test_a_share_of_no_utility_is_undefined():
    metric = gbmrank.metric("eru(neutral=2, normalize=true)")
    with np.errstate(divide="raise", invalid="raise"):
        found = metric.per_query([1.0, 2.0, 3.0, 1.0], np.arange(4.0), group=[2, 2])
    assert np.isnan(found[0])
    assert 0.0 < found[1] < 1.0
