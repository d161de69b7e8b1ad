"""The demonstration data: deterministic, exact, and hard for comparison losses."""

import itertools

import numpy as np
import pytest

from gbmrank.demo_data import FEATURES, demo_data
from gbmrank.errors import DataError, ParameterError


def test_same_arguments_give_the_same_sample_and_another_seed_another_one():
    first, again, other = demo_data(50, seed=3), demo_data(50, seed=3), demo_data(50, seed=4)
    for field in ("X", "labels", "qid", "sizes", "probabilities"):
        np.testing.assert_array_equal(getattr(first, field), getattr(again, field))
    assert first.X.shape != other.X.shape or not np.array_equal(first.X, other.X)


def test_samples_of_different_seeds_share_no_query_id():
    first, second = demo_data(30, seed=0), demo_data(30, seed=1)
    assert first.qid.min() == 0
    assert not set(first.qid) & set(second.qid)


def test_columns_describe_the_same_rows():
    data = demo_data(200, items=30, seed=0)
    assert data.X.shape == (data.sizes.sum(), len(FEATURES))
    np.testing.assert_array_equal(data.qid, np.repeat(np.arange(200), data.sizes))
    assert data.sizes.min() >= 15
    assert data.sizes.max() <= 45
    assert set(np.unique(data.labels)) == {0, 1, 2, 3, 4}
    assert 0.3 < data.hit_or_miss.mean() < 0.37


def test_labels_follow_the_probabilities():
    data = demo_data(3000, seed=5)
    np.testing.assert_allclose(data.probabilities.sum(axis=1), 1.0, rtol=1e-12)
    for rows in (data.hit_or_miss, ~data.hit_or_miss):
        drawn = np.bincount(data.labels[rows], minlength=5)
        expected = data.probabilities[rows].sum(axis=0)
        deviation = np.sqrt((data.probabilities[rows] * (1 - data.probabilities[rows])).sum(axis=0))
        assert (np.abs(drawn - expected) <= 4 * deviation).all()


def test_expected_gain_is_the_closed_form_of_the_documentation():
    data = demo_data(100, seed=1)
    match, quality = np.log(data.X[:, 0]), np.log(data.X[:, 1] / (1 - data.X[:, 1]))
    appeal = match + 0.6 * quality + 0.5 * data.X[:, 3]
    theta = 0.45 / (1 + np.exp(-(1.2 * appeal - 0.3)))
    hit = 0.35 / (1 + np.exp(-(1.2 * appeal - 1)))
    gain = np.where(data.hit_or_miss, 15 * hit, (1 + theta) ** 4 - 1)
    np.testing.assert_allclose(data.expected_gain, gain, rtol=1e-9)


def test_expected_dcg_is_the_mean_over_the_orders_of_ties():
    data = demo_data(2, items=5, seed=2)
    scores = np.random.default_rng(0).integers(0, 2, len(data.labels)).astype(float)
    for query, value in zip(np.unique(data.qid), data.expected_dcg(scores, k=3), strict=True):
        gain, s = data.expected_gain[data.qid == query], scores[data.qid == query]
        orders = [
            o for o in itertools.permutations(range(len(s))) if (np.diff(s[list(o)]) <= 0).all()
        ]
        dcgs = [sum(gain[i] / np.log2(r + 2) for r, i in enumerate(o[:3])) for o in orders]
        assert value == pytest.approx(np.mean(dcgs), rel=1e-12)


@pytest.mark.parametrize("k", [1, 10, None])
def test_no_ranking_beats_the_expected_gain(k):
    data = demo_data(100, seed=0)
    assert data.regret(data.expected_gain, k=k) == 0.0
    assert 0.0 < data.regret(-data.expected_gain, k=k) < 1.0
    assert data.regret(data.expected_gain + 0.1 * data.X[:, -1], k=k) > 0.0


def test_the_order_of_comparisons_is_far_from_the_order_of_gains():
    data = demo_data(300, seed=0)
    typical = data.probabilities.mean(axis=0)
    below = np.concatenate([[0.0], np.cumsum(typical)[:-1]])
    above = 1.0 - np.cumsum(typical)
    # Log odds of winning against a typical item, ties left out: what RankNet's order follows.
    wins, losses = data.probabilities @ below, data.probabilities @ above
    assert data.regret(np.log(wins / losses), k=10) > 0.15


def test_wrong_arguments_are_rejected():
    with pytest.raises(ParameterError, match="at least 1 query of 2 items, got n_queries=0"):
        demo_data(0)
    data = demo_data(3)
    with pytest.raises(DataError, match="one per row; got an array of shape"):
        data.regret(np.zeros(2))
    with pytest.raises(DataError, match="finite"):
        data.regret(np.full(len(data.labels), np.nan))
