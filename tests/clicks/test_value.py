"""The value of a new ranking from the log of another one."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gbmrank.clicks import PositionBias, offline_value, simulate_clicks
from gbmrank.demo_data import demo_data
from gbmrank.errors import DataError, GbmrankWarning, MetricError, ParameterError
from tests.formulas import each

RNG = np.random.default_rng(3)
SIZES = RNG.integers(1, 6, 150)
QID = np.repeat(np.arange(150), SIZES)
POSITION = np.concatenate([np.arange(1, n + 1) for n in SIZES])
CLICKS = RNG.integers(0, 2, len(QID))
SCORES = RNG.integers(0, 3, len(QID)).astype(float)  # many are equal
G = RNG.random(len(QID))
FALSE = [0.05, 0.02, 0.0, 0.0, 0.0]
BIAS = PositionBias([0.9, 0.6, 0.4, 0.2, 0.05], false_clicks=FALSE)


def mean_discount(scores, row, table):
    """The mean discount of an item over all orders of equal scores, from the definition."""
    above = int((scores > scores[row]).sum())
    tied = int((scores == scores[row]).sum())
    return np.mean(
        [table[rank] if rank < len(table) else 0.0 for rank in range(above, above + tied)]
    )


def slow_value(table, estimator, clip=0.1, false=()):
    """The value by plain loops; ``false`` are the false clicks at the new ranks."""
    total, divisor = 0.0, 0.0
    for q in range(150):
        rows = np.flatnonzero(q == QID)
        for i, row in enumerate(rows):
            k = POSITION[row] - 1
            theta, b, c = BIAS.propensity[k], FALSE[k], CLICKS[row]
            d = mean_discount(SCORES[rows], i, table)
            if estimator == "doubly_robust":
                total += d * (G[row] + (c - b - theta * G[row]) / max(theta, clip))
                total += mean_discount(SCORES[rows], i, false)
            else:
                utility = (c - b) / (max(theta, clip) if estimator == "clipped" else theta)
                total += utility * d
                total += mean_discount(SCORES[rows], i, false) if estimator != "ratio" else 0.0
                divisor += utility
    return total / divisor if estimator == "ratio" else total / 150


@pytest.mark.parametrize("estimator", ["ips", "ratio", "clipped", "doubly_robust"])
@pytest.mark.parametrize("metric", ["dcg@3", "precision@2", "rbp(p=0.5)", "clicks"])
def test_values_are_those_of_the_definition(metric, estimator):
    tables = {
        "dcg@3": [1.0, 1 / np.log2(3), 0.5],
        "precision@2": [0.5, 0.5],
        "rbp(p=0.5)": [0.5 * 0.5**k for k in range(5)],
        "clicks": BIAS.propensity,
    }
    found = offline_value(
        metric,
        CLICKS,
        POSITION,
        SCORES,
        QID,
        bias=BIAS,
        estimator=estimator,
        relevance=G if estimator == "doubly_robust" else None,
    )
    false = FALSE if metric == "clicks" else ()
    expected = slow_value(tables[metric], estimator, false=false)
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert found.low < found.value < found.high
    assert float(found) == found.value
    assert f"{found.value:.4g}" in str(found)
    order = RNG.permutation(len(QID))
    again = offline_value(
        metric,
        CLICKS[order],
        POSITION[order],
        SCORES[order],
        QID[order],
        bias=BIAS,
        estimator=estimator,
        relevance=G[order] if estimator == "doubly_robust" else None,
    )
    assert again.value == pytest.approx(found.value, rel=1e-12)


def test_the_shown_order_gets_the_clicks_of_the_log():
    """False clicks are part of them."""
    bias = PositionBias([0.6, 0.3], false_clicks=[0.2, 0.1])
    clicks, position = np.tile([1, 0, 1, 1, 0, 0, 0, 1], 25), np.tile([1, 2], 100)
    session = np.repeat(np.arange(100), 2)
    assert offline_value("clicks", clicks, position, -position, session, bias=bias).value == (
        pytest.approx(clicks.sum() / 100)
    )


def test_discounts_may_depend_on_the_length_of_a_list():
    """Precision of lists of two and three items, one click in each, by either way."""
    clicks, position = np.tile([1, 0, 1, 0, 0], 50), np.tile([1, 2, 1, 2, 3], 50)
    session = np.repeat(np.arange(100), np.tile([2, 3], 50))
    ones, bias = np.ones(250), PositionBias([1.0, 1.0, 1.0])
    log = ("precision", clicks, position)
    assert offline_value(*log, None, session, propensity=ones, policy=ones).value == (
        pytest.approx((1 / 2 + 1 / 3) / 2)
    )
    assert offline_value(*log, -position, session, bias=bias).value == pytest.approx(5 / 12)


def test_without_clipping_doubly_robust_is_ips():
    ips = offline_value("dcg", CLICKS, POSITION, SCORES, QID, bias=BIAS)
    robust = offline_value(
        "dcg",
        CLICKS,
        POSITION,
        SCORES,
        QID,
        bias=BIAS,
        estimator="doubly_robust",
        clip=0.01,
        relevance=G,
    )
    assert robust.value == pytest.approx(ips.value, rel=1e-12)


def small_world():
    data = demo_data(n_queries=60, seed=2)
    scores = data.X[:, 1]
    return data, scores, PositionBias.decaying(8, 0.8)


@pytest.mark.parametrize("estimator", ["ips", "doubly_robust"])
def test_intervals_cover_at_their_level(estimator):
    """Mean and coverage over 100 logs, both within three standard errors of what they should be."""
    data, scores, bias = small_world()
    values, covered = [], []
    truth = true_value(data, scores)
    for seed in range(100):
        log = simulate_clicks(
            data.labels, scores, data.qid, sessions=400, seed=seed, k=8, bias=bias
        )
        found = offline_value(
            "dcg@5",
            log.clicks,
            log.position,
            data.X[log.row, 0],
            log.session,
            bias=bias,
            estimator=estimator,
            clip=0.3 if estimator == "doubly_robust" else None,
            relevance=log.relevance if estimator == "doubly_robust" else None,
            resamples=300,
            seed=seed,
        )
        values.append(found.value)
        covered.append(found.low <= truth <= found.high)
    error = np.std(values) / np.sqrt(100)
    assert abs(np.mean(values) - truth) < 3.5 * error
    assert np.mean(covered) >= 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / 100)


def true_value(data, scores, share=lambda position: 1.0):
    """The mean over queries of what the new ranking of the eight items shown earns.

    ``share`` of it is left by an estimator, by the position at which an item was shown.
    """
    return _true_sums(data, scores, share)[0] / len(np.unique(data.qid))


def _true_sums(data, scores, share=lambda position: 1.0):
    """What the first five of the new ranking earn, and the relevance of all items shown."""
    rho = 0.1 + 0.9 * (2.0**data.labels - 1.0) / 15.0
    earned = relevant = 0.0
    for q in np.unique(data.qid):
        rows = np.flatnonzero(data.qid == q)
        shown = rows[np.argsort(-scores[rows])][:8]
        left = rho[shown] * np.array([share(k) for k in range(1, len(shown) + 1)])
        new = np.argsort(-data.X[shown, 0])[:5]
        earned += (left[new] / np.log2(np.arange(2, len(new) + 2))).sum()
        relevant += rho[shown].sum()
    return earned, relevant


LOGS = 300


def cross_fitted(data, log):
    return {"relevance": "cross-fitted", "X": data.X[log.row]}


@pytest.mark.parametrize("backend", each(2, ["lightgbm", "xgboost"]))
def test_relevance_of_other_sessions_makes_up_for_clipping(backend):
    data, scores, bias = small_world()
    truth, found = true_value(data, scores), []
    for seed in range(6):
        log = simulate_clicks(
            data.labels, scores, data.qid, sessions=400, seed=seed, k=8, bias=bias
        )
        columns = log.clicks, log.position, data.X[log.row, 0], log.session
        options = {"bias": bias, "clip": 0.4, "resamples": 1}
        clipped = offline_value("dcg@5", *columns, estimator="clipped", **options)
        options |= {"estimator": "doubly_robust", "backend": backend, **cross_fitted(data, log)}
        found.append([clipped.value, offline_value("dcg@5", *columns, **options).value])
    means = np.mean(found, axis=0) - truth
    assert means[0] < -0.1
    assert abs(means[1]) < abs(means[0]) / 2.0


def test_attention_after_a_click_is_corrected_per_row():
    """The mean over 400 logs of one list: right with the factor, too low without it."""
    rho, theta, factor = np.array([0.6, 0.5, 0.4]), np.array([1.0, 0.7, 0.5]), 0.4
    rng = np.random.default_rng(0)
    clicks = np.zeros((40_000, 3), int)
    for k in range(3):
        after = clicks[:, :k].any(axis=1)
        clicks[:, k] = rng.random(40_000) < rho[k] * theta[k] * np.where(after, factor, 1.0)
    rows = clicks.ravel(), np.tile([1, 2, 3], 40_000), np.tile([3.0, 1.0, 2.0], 40_000)
    session = np.repeat(np.arange(40_000), 3)
    truth = rho @ (1.0 / np.log2([2.0, 4.0, 3.0]))
    biases = [PositionBias(theta, after_click=one) for one in (factor, 1.0)]
    right, wrong = (offline_value("dcg", *rows, session, bias=bias) for bias in biases)
    assert right.low < truth < right.high
    assert wrong.high < truth


@pytest.mark.nightly
@pytest.mark.parametrize("estimator", ["ips", "ratio", "clipped", "doubly_robust"])
def test_what_intervals_cover(estimator):
    """A ratio covers the ratio of sums; clipped its own, lower value, and not the true one."""
    data, scores, bias = small_world()
    clip = 0.4 if estimator in ("clipped", "doubly_robust") else None
    truth = true_value(data, scores)
    targets = {
        "ips": truth,
        "doubly_robust": truth,
        "ratio": np.divide(*_true_sums(data, scores)),
        "clipped": true_value(
            data, scores, lambda k: bias.propensity[k - 1] / max(bias.propensity[k - 1], 0.4)
        ),
    }
    found = []
    for seed in range(LOGS):
        log = simulate_clicks(
            data.labels, scores, data.qid, sessions=400, seed=seed, k=8, bias=bias
        )
        columns = log.clicks, log.position, data.X[log.row, 0], log.session
        options = {"estimator": estimator, "clip": clip, "resamples": 400, "seed": seed}
        options |= cross_fitted(data, log) if estimator == "doubly_robust" else {}
        found.append(offline_value("dcg@5", *columns, bias=bias, **options))
    _check_coverage(estimator, found, targets[estimator], truth)
    if estimator == "clipped":
        assert targets[estimator] < 0.9 * truth


@pytest.mark.nightly
@pytest.mark.parametrize("estimator", ["ips", "ratio", "clipped"])
def test_what_intervals_of_logged_actions_cover(estimator):
    """Of 5 actions in 40 contexts one is logged each time, by a policy whose chances are known."""
    world = np.random.default_rng(0)
    old, new = (world.dirichlet(np.full(5, 2.0), size=40) for _ in range(2))
    old = 0.9 * old + 0.02
    rho = world.uniform(0.02, 0.5, size=(40, 5))
    truth, clip = float((new * rho).sum(axis=1).mean()), 0.15
    left = old / np.maximum(old, clip) if estimator == "clipped" else 1.0
    target = float((left * new * rho).sum(axis=1).mean())
    found = []
    for seed in range(LOGS):
        rng = np.random.default_rng(seed + 1)
        context = rng.integers(0, 40, 1500)
        action = (rng.random((1500, 1)) > old.cumsum(axis=1)[context]).sum(axis=1)
        clicks = rng.random(1500) < rho[context, action]
        options = {"propensity": old[context, action], "policy": new[context, action]}
        options |= {"estimator": estimator, "resamples": 400, "seed": seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GbmrankWarning)  # weights whose mean is not quite 1
            found.append(
                offline_value(
                    *("clicks", clicks, np.ones(1500, int), None, np.arange(1500)),
                    clip=clip if estimator == "clipped" else None,
                    **options,
                )
            )
    _check_coverage(f"actions, {estimator}", found, target, truth)


def _check_coverage(name, found, target, truth):
    """Print shares of intervals that contain target and truth; three standard errors are fine."""
    of_target, of_truth = (
        np.mean([one.low <= value <= one.high for one in found]) for value in (target, truth)
    )
    values = np.array([one.value for one in found])
    error = values.std() / np.sqrt(len(values))
    print(
        f"{name}: mean {values.mean():.4f} ± {error:.4f}, target {target:.4f} in {of_target:.3f}, "
        f"true value {truth:.4f} in {of_truth:.3f} of 95% intervals"
    )
    # Intervals take the learned relevance for exact: 87% contained the truth.
    level = 0.87 if name == "doubly_robust" else 0.95
    assert of_target >= level - 3.0 * np.sqrt(level * (1.0 - level) / len(found))
    # A ratio of sums is biased by the order of one over the number of sessions, and the learned
    # relevance is not quite right.
    slack = {"ratio": 0.005, "doubly_robust": 0.02}.get(name.split()[-1], 0.0) * target
    assert abs(values.mean() - target) < 3.5 * error + slack


def test_the_value_of_a_policy_from_its_own_log_is_its_click_rate():
    propensity = np.full(len(CLICKS), 0.25)
    rows = np.arange(len(CLICKS))
    found = offline_value(
        "clicks", CLICKS, POSITION, None, rows, propensity=propensity, policy=propensity
    )
    assert found.value == CLICKS.mean()
    assert found.effective_sample_size == pytest.approx(len(CLICKS))
    again = offline_value(
        "clicks",
        CLICKS,
        POSITION,
        None,
        rows,
        propensity=propensity,
        policy=propensity,
        estimator="ratio",
    )
    assert again.value == pytest.approx(found.value)


def test_actions_weigh_by_the_chance_of_the_new_policy():
    """Two items in a random order at two positions; the new ranking always has one first."""
    rng = np.random.default_rng(0)
    n = 4000
    first = rng.integers(0, 2, n)
    item = np.stack([first, 1 - first], axis=1).ravel()
    position, session = np.tile([1, 2], n), np.repeat(np.arange(n), 2)
    chance = np.array([[0.5, 0.2], [0.3, 0.1]])  # by item and position
    clicks = rng.random(2 * n) < chance[item, position - 1]
    half = np.full(2 * n, 0.5)
    found = offline_value("clicks", clicks, position, -item, session, propensity=half)
    assert found.low <= 0.5 + 0.1 <= found.high
    assert found.value == pytest.approx(0.6, abs=0.06)
    ties = offline_value("clicks", clicks, position, np.zeros(2 * n), session, propensity=half)
    assert ties.value == pytest.approx(clicks.sum() / n)  # every order is as likely
    discounted = offline_value("dcg", clicks, position, -item, session, propensity=half)
    assert discounted.low <= 0.5 + 0.1 / np.log2(3) <= discounted.high


def test_a_log_that_cannot_tell_says_so():
    n = 1000
    clicks = np.zeros(n, dtype=int)
    clicks[:7] = 1
    rows, ones = np.arange(n), np.ones(n, dtype=int)
    with pytest.warns(GbmrankWarning, match=r"7 clicks \(7 effective\)"):
        found = offline_value("clicks", clicks, ones, np.zeros(n), rows, bias=PositionBias([1.0]))
    assert found.effective_clicks == pytest.approx(7.0)
    with pytest.warns(GbmrankWarning, match="0 clicks"):
        none = offline_value("clicks", 0 * ones, ones, np.zeros(n), rows, bias=PositionBias([1.0]))
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(-np.log(0.05) / n)


def test_a_policy_that_the_log_does_not_cover_gets_a_warning():
    n = 1000
    policy = np.where(np.arange(n) % 2, 0.1, 0.0)  # half of what it shows was never logged
    with pytest.warns(GbmrankWarning, match="mean weight of the rows is 0.25"):
        offline_value(
            "clicks",
            np.ones(n, dtype=int),
            np.ones(n, dtype=int),
            None,
            np.arange(n),
            propensity=np.full(n, 0.2),
            policy=policy,
        )


@pytest.mark.parametrize("metric", ["ndcg@10", "recall", "auc", "map", "mrr", "err", "spearman"])
def test_metrics_that_are_not_linear_in_the_clicks_are_rejected(metric):
    with pytest.raises(MetricError, match=metric.partition("@")[0]):
        offline_value(metric, CLICKS, POSITION, SCORES, QID, bias=BIAS)


@pytest.mark.parametrize(
    ("clicks", "bias"),
    [
        ([0, 0], PositionBias([1.0, 0.5])),
        ([1, 0], PositionBias([0.5, 0.5], false_clicks=[0.5] * 2)),
    ],
)
def test_a_ratio_without_relevant_clicks_is_rejected(clicks, bias):
    with pytest.raises(DataError, match=r"show none.*estimator='ips'"):
        offline_value("dcg", clicks, [1, 2], [1.0, 2.0], [0, 0], bias=bias, estimator="ratio")


def test_wrong_propensities_stay_wrong_in_doubly_robust():
    """The mean over both outcomes of a click: off by what the docs say, with perfect relevance."""
    truth, declared, rho = 1.0, 0.7, 0.5
    with pytest.warns(GbmrankWarning, match="too few"):
        one, none = (
            offline_value(
                "dcg",
                [click],
                [1],
                [1.0],
                [0],
                bias=PositionBias([declared]),
                estimator="doubly_robust",
                relevance=[rho],
            ).value
            for click in (1, 0)
        )
    mean = truth * rho * one + (1.0 - truth * rho) * none
    assert mean - rho == pytest.approx(rho * (truth - declared) / declared)


@pytest.mark.parametrize(
    ("options", "error", "fact"),
    [
        ({}, ParameterError, "bias="),
        ({"bias": BIAS, "propensity": G}, ParameterError, "propensity="),
        ({"bias": BIAS, "estimator": "dm"}, ParameterError, "'dm'"),
        ({"bias": BIAS, "estimator": "doubly_robust"}, ParameterError, "relevance="),
        ({"bias": BIAS, "relevance": G}, ParameterError, "relevance="),
        ({"bias": BIAS, "clip": 0.1}, ParameterError, "clip="),
        ({"bias": BIAS, "X": G[:, None]}, ParameterError, "X= and relevance='cross-fitted'"),
        (
            {"bias": BIAS, "estimator": "doubly_robust", "relevance": "cross-fitted"},
            ParameterError,
            "X= and relevance='cross-fitted'",
        ),
        (
            {"bias": BIAS, "estimator": "doubly_robust", "relevance": "learned"},
            ParameterError,
            "'learned'",
        ),
        ({"bias": BIAS, "policy": G}, ParameterError, "policy="),
        (
            {"propensity": G, "estimator": "doubly_robust", "relevance": G},
            ParameterError,
            "doubly_robust",
        ),
        ({"propensity": 0 * G}, DataError, "propensity.*0 in row 0"),
        ({"propensity": G + 1}, DataError, "propensity.*in row 0"),
        ({"propensity": G[1:]}, DataError, "propensity has"),
        ({"propensity": G, "policy": -G}, DataError, "policy.*in row 0"),
        ({"propensity": G, "policy": 0 * G}, DataError, "shows no item"),
        ({"bias": PositionBias([1.0, 0.5])}, DataError, "beyond 2"),
    ],
)
def test_wrong_options_are_rejected(options, error, fact):
    with pytest.raises(error, match=fact):
        offline_value("dcg", CLICKS, POSITION, SCORES, QID, **options)


DATA = Path(os.environ.get("GBMRANK_DATA") or "nowhere") / "obd"


@pytest.mark.skipif(not DATA.is_dir(), reason="GBMRANK_DATA names no folder with Open Bandit")
def test_open_bandit_random_policy_from_itself():
    log = pd.read_csv(DATA / "random_all.csv.gz", index_col=0)
    chance = log["propensity_score"]
    found = offline_value(
        "clicks",
        log["click"],
        log["position"],
        None,
        np.arange(len(log)),
        propensity=chance,
        policy=chance,
    )
    assert found.value == log["click"].mean()
    assert found.low < found.value < found.high
