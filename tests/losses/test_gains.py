"""Gains, and sorting within queries, some queries at a time."""

import mpmath
import numpy as np
import pytest

import gbmrank
from gbmrank.data import Groups, query_order
from gbmrank.errors import ParameterError
from gbmrank.losses import gains
from gbmrank.losses.gains import exp2_gains
from gbmrank.losses.utilities import EruUtility


@pytest.mark.parametrize("label", [1e-300, 1e-16, 1e-9, 0.01, 0.4999, 0.5, 1.0, 3.5, 31.0])
def test_gains_keep_the_digits_of_small_labels(label):
    wanted = float(mpmath.expm1(mpmath.mpf(label) * mpmath.log(2)))
    assert exp2_gains(np.array([label]))[0] == pytest.approx(wanted, rel=1e-15)


def test_whole_labels_have_whole_gains_and_tiny_ones_an_order():
    np.testing.assert_array_equal(exp2_gains(np.arange(32.0)), 2.0 ** np.arange(32) - 1.0)
    assert gbmrank.metric("ndcg").score([3e-16, 1e-16, 0.0], [0.0, 1.0, 2.0]) == pytest.approx(
        (1.0 / np.log2(3) + 3.0 / 2.0) / (3.0 + 1.0 / np.log2(3)), rel=1e-12
    )


def test_rows_are_sorted_the_same_whatever_is_sorted_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    sizes = np.array([1, 7, 3, 30, 1, 1, 12, 5])
    groups = Groups.from_sizes(sizes, int(sizes.sum()))
    values = rng.integers(0, 4, groups.n_rows).astype(float)
    whole = np.lexsort((-values, groups.spread(np.arange(len(sizes)))))
    for at_once in (1, 2, 8, 31, 59, 60, 1000):
        monkeypatch.setattr(query_order, "_ROWS_AT_ONCE", at_once)
        np.testing.assert_array_equal(query_order.rows_by_value(values, groups), whole)
        discount = 1.0 / np.arange(1.0, 31.0)
        best = [
            np.sort(values[begin:end])[::-1] @ discount[: end - begin]
            for begin, end in zip(groups.offsets[:-1], groups.offsets[1:], strict=True)
        ]
        np.testing.assert_allclose(gains.best_sums(values, discount, groups), best, rtol=1e-14)
    assert query_order.rows_by_value(np.empty(0), Groups.single(0)).shape == (0,)


BINARY_METRICS = ("precision@2", "recall@2", "wta", "auc", "map", "mrr", "ptop")
BINARY_OBJECTIVES = (
    "bipartite",
    "push",
    "pairwise(target=precision)",
    "pointwise(target=map)",
    "pointwise(target=identity)",
    "bregman(target=wta)",
)


@pytest.mark.parametrize("threshold", [np.nan, np.inf, -np.inf, np.float64(np.nan)])
def test_thresholds_are_finite(threshold):
    for make, names in (
        (gbmrank.metric, BINARY_METRICS),
        (gbmrank.objective, BINARY_OBJECTIVES),
    ):
        for name in names:
            with pytest.raises(ParameterError, match="threshold is the smallest label"):
                make(name, threshold=threshold)
    with pytest.raises(ParameterError, match="threshold is the smallest label"):
        gbmrank.objective("pairwise", target=f"map(threshold={np.inf})")


@pytest.mark.parametrize("gain", [[0, 1e308, 1e308], [0, 2**1100], [0, np.nan], [0, -1]])
@pytest.mark.parametrize("name", ["dcg", "ndcg"])
def test_gains_whose_sums_overflow_are_rejected(name, gain):
    with pytest.raises(ParameterError, match=r"finite gains .* at most 1e\+150|is too large"):
        gbmrank.metric(name, gain=gain)
    with pytest.raises(ParameterError, match=r"finite gains .* at most 1e\+150"):
        gains.check_gain(tuple(gain))


@pytest.mark.parametrize("neutral", [-np.inf, np.inf, np.nan, -1e308, 1e151])
def test_neutral_grades_whose_distance_overflows_are_rejected(neutral):
    for make in (gbmrank.metric, lambda *_, **options: EruUtility(**options)):
        with pytest.raises(ParameterError, match="eru: neutral must be a number between"):
            make("eru", neutral=neutral)


def test_the_metric_eru_takes_grades_of_any_size():
    metric = gbmrank.metric("eru", neutral=5, half_life=3)
    assert metric.score([6, 5, 8], [3.0, 2.0, 1.0]) == 1.0 + 3.0 / 2.0
    assert gbmrank.metric("eru", neutral=5, normalize=True).score([6, 5], [1.0, 0.0]) == 1.0
    with pytest.raises(ParameterError, match="max_grade must be above neutral=5, got 4"):
        gbmrank.objective("pointwise", target=metric)
