"""Simulated clicks: every model has the rates that its formula says."""

import numpy as np
import pytest

from gbmrank.clicks import PositionBias, simulate_clicks
from gbmrank.errors import DataError, LabelRangeError, ParameterError

RHO = np.array([0.9, 0.2, 0.5])  # in the order shown
QID = np.zeros(3, dtype=int)
SESSIONS = 20_000


def rates(**options):
    """Click rates of the three items, and the log."""
    log = simulate_clicks(
        RHO, [3.0, 2.0, 1.0], QID, sessions=SESSIONS, seed=1, max_grade=None, **options
    )
    return np.bincount(log.position, log.clicks)[1:] / SESSIONS, log


def assert_near(found, expected):
    """Within 4.5 standard errors of a share."""
    expected = np.asarray(expected)
    margin = 4.5 * np.sqrt(expected * (1.0 - expected) / SESSIONS) + 1e-12
    assert np.all(np.abs(found - expected) <= margin), (found, expected)


def test_position_based_clicks():
    theta = np.array([1.0, 0.5, 1 / 3])
    assert_near(rates()[0], theta * RHO)
    bias = PositionBias([0.8, 0.7, 0.1])
    assert_near(rates(bias=bias)[0], bias.propensity * RHO)


def test_trust_bias_adds_false_clicks():
    bias = PositionBias([0.6, 0.5, 0.4], false_clicks=[0.3, 0.1, 0.0])
    assert_near(rates(bias=bias)[0], [0.6 * 0.9 + 0.3, 0.5 * 0.2 + 0.1, 0.4 * 0.5])


def test_cascade_clicks_stop_at_the_first():
    found, log = rates(model="cascade")
    assert_near(found, [0.9, 0.1 * 0.2, 0.1 * 0.8 * 0.5])
    assert np.bincount(log.session, log.clicks).max() == 1


def test_dependent_clicks_go_on_after_a_click():
    found, _ = rates(model="dependent", continuation=0.4)
    second = 0.1 + 0.9 * 0.4  # the chance that it is examined
    third = second * (0.8 + 0.2 * 0.4)
    assert_near(found, [0.9, second * 0.2, third * 0.5])
    stopping, _ = rates(model="dependent", continuation=0.0)
    np.testing.assert_array_equal(stopping, rates(model="cascade")[0])


def test_grades_become_probabilities():
    log = simulate_clicks([0, 1, 2], [1, 2, 3], QID, sessions=1, max_grade=2, noise=0.1)
    np.testing.assert_allclose(log.relevance, [1.0, 0.1 + 0.9 / 3, 0.1])
    np.testing.assert_array_equal(log.row, [2, 1, 0])


def test_rows_and_queries_are_those_of_the_caller():
    qid = np.array(["b", "a", "b", "a", "a"])
    scores = np.array([1.0, 5.0, 2.0, 4.0, 6.0])
    log = simulate_clicks(np.zeros(5), scores, qid, sessions=50, k=2)
    np.testing.assert_array_equal(log.query, qid[log.row])
    ranked = {name: log.row[log.query == name].reshape(-1, 2) for name in "ab"}
    assert np.all(ranked["a"] == [4, 1])
    assert np.all(ranked["b"] == [2, 0])
    np.testing.assert_array_equal(log.position.reshape(-1, 2)[:, 1], 2)
    assert log.n_sessions == 50
    assert len(log) == 100


def test_short_queries_show_what_they_have():
    log = simulate_clicks([0, 0, 0], [1, 2, 3], [7, 8, 8], sessions=100, k=5)
    assert set(np.bincount(log.session)) == {1, 2}
    assert log.position.max() == 2


@pytest.mark.parametrize("temperature", [0.0, np.inf])
def test_tied_or_heated_scores_come_in_any_order(temperature):
    scores = np.zeros(3) if temperature == 0.0 else [9.0, 5.0, 1.0]
    log = simulate_clicks(RHO, scores, QID, sessions=6000, temperature=temperature)
    counts = np.histogram2d(log.row, log.position, bins=3)[0]
    assert np.all(np.abs(counts - 2000) < 5 * np.sqrt(6000 * (1 / 3) * (2 / 3)))


def test_a_temperature_gives_a_plackett_luce_ranking():
    scores, heat = np.array([1.0, 0.0, -0.5]), 0.7
    log = simulate_clicks(RHO, scores, QID, sessions=SESSIONS, temperature=heat)
    first = np.bincount(log.row[log.position == 1], minlength=3) / SESSIONS
    weights = np.exp(scores / heat)
    assert_near(first, weights / weights.sum())


def test_a_seed_decides_the_log():
    logs = [rates()[1], rates()[1]]
    np.testing.assert_array_equal(logs[0].clicks, logs[1].clicks)
    other = simulate_clicks(RHO, [3, 2, 1], QID, sessions=SESSIONS, seed=2, max_grade=None)
    assert not np.array_equal(other.clicks, logs[0].clicks)
    assert f"{SESSIONS} sessions, {3 * SESSIONS} impressions" in str(other)


@pytest.mark.parametrize(
    ("options", "error", "fact"),
    [
        ({"model": "browsing"}, ParameterError, "browsing"),
        ({"model": "cascade", "bias": PositionBias([1.0])}, ParameterError, "cascade"),
        ({"bias": PositionBias([1.0, 0.5])}, DataError, "beyond 2"),
        ({"sessions": 0}, ParameterError, "sessions"),
        ({"k": 0}, ParameterError, "k must"),
        ({"temperature": -1.0}, ParameterError, "temperature"),
        ({"noise": 2.0}, ParameterError, "noise"),
        ({"model": "dependent", "continuation": 1.5}, ParameterError, "continuation"),
        ({"max_grade": 2}, LabelRangeError, "got 3"),
        ({"max_grade": None}, LabelRangeError, "got 3"),
    ],
)
def test_wrong_options_are_rejected(options, error, fact):
    with pytest.raises(error, match=fact):
        simulate_clicks([3, 0, 1], [1.0, 2.0, 3.0], QID, **options)
