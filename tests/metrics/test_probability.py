"""Metrics of probabilities, against their definitions and scikit-learn."""

import numpy as np
import pytest

import gbmrank
from gbmrank import plots
from gbmrank.errors import DataError, MetricError, ParameterError
from gbmrank.metrics.probability import reliability_bins


def draws(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(1.0, 4.0, rows)
    return (rng.random(rows) < p).astype(float), p, np.repeat(np.arange(rows // 10), 10)


def test_log_loss_and_brier_are_those_of_scikit_learn():
    theirs = pytest.importorskip("sklearn.metrics")
    y, p, _ = draws()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    for given in (None, weight):
        ours = gbmrank.metric("log_loss").score(y, p, weight=given)
        assert ours == pytest.approx(theirs.log_loss(y, p, sample_weight=given), rel=1e-12)
        ours = gbmrank.metric("brier").score(y, p, weight=given)
        assert ours == pytest.approx(theirs.brier_score_loss(y, p, sample_weight=given), rel=1e-12)


def slow_ece(y, p, query, bins):
    """The definition, bin by bin and query by query."""
    order, n = np.argsort(p, kind="stable"), len(y)
    total = 0.0
    for rows in np.array_split(order, bins):
        d = p[rows].mean() - y[rows].mean()
        v = 0.0
        for one in np.unique(query[rows]):
            here = rows[query[rows] == one]
            v += np.sum(p[here] - y[here] - d) ** 2
        total += len(rows) / n * np.sqrt(max(d**2 - v / len(rows) ** 2, 0.0))
    return total


@pytest.mark.parametrize("bins", [1, 5, 15])
def test_ece_is_its_definition(bins):
    y, p, qid = draws(600)
    q = np.clip(p * 1.5, 0.0, 1.0) * 0.999 + 1e-9 * np.arange(len(p))
    found = gbmrank.metric("ece", bins=bins).score(y, q, qid=qid)
    assert found == pytest.approx(slow_ece(y, q, qid, bins), rel=1e-9)


def test_true_probabilities_have_hardly_an_error():
    """Without the noise of bins; the plain mean of differences would be three times as large."""
    found, plain = [], []
    for seed in range(20):
        y, p, qid = draws(seed=seed)
        found.append(gbmrank.metric("ece").score(y, p, qid=qid))
        bins = reliability_bins(y, p, qid, np.ones(len(y)), 15)
        plain.append(np.abs(bins.difference).mean())
    assert np.mean(found) < 0.6 * np.mean(plain)
    assert np.mean(found) < 0.012


def test_rows_of_a_query_that_depend_on_each_other_widen_the_noise():
    rng = np.random.default_rng(0)
    chance = rng.beta(1.0, 1.0, 300)
    qid = np.repeat(np.arange(300), 20)
    y = (rng.random(6000) < chance[qid]).astype(float)
    p = np.full(6000, y.mean()) + 1e-9 * np.arange(6000)
    w = np.ones(6000)
    alone = reliability_bins(y, p, np.arange(6000), w, 1).variance[0]
    together = reliability_bins(y, p, qid, w, 1).variance[0]
    assert together > 4.0 * alone


def test_equal_probabilities_stay_in_one_bin():
    y = np.tile([0.0, 0.0, 0.0, 1.0], 250)
    found = reliability_bins(y, np.full(1000, 0.25), np.arange(1000), np.ones(1000), 15)
    assert len(found.mean) == 1
    assert gbmrank.metric("ece").score(y, np.full(1000, 0.25)) == 0.0


def test_the_link_and_increasing_maps():
    y, p, _ = draws()
    odds = np.log(p / (1.0 - p))
    for name in ("log_loss", "brier", "ece"):
        plain = gbmrank.metric(name).score(y, p)
        assert gbmrank.metric(name, link="sigmoid").score(y, odds) == pytest.approx(plain)
        assert gbmrank.metric(f"{name}(link=sigmoid)").score(y, 3.0 * odds) > plain


@pytest.mark.parametrize("name", ["log_loss", "brier", "ece"])
def test_an_interval_draws_some_row_with_a_weight(name):
    y, p, weight = [1, 0, 1, 0], [0.9, 0.2, 0.6, 0.4], [1.0, 0.0, 0.0, 0.0]
    metric = gbmrank.metric(name)
    value = metric.score(y, p, qid=[0, 1, 2, 3], weight=weight)
    found = metric.interval(y, p, qid=[0, 1, 2, 3], weight=weight)
    assert found == pytest.approx((value, value), rel=1e-9)


def test_intervals_cover_and_shrink():
    y, p, qid = draws()
    metric = gbmrank.metric("brier")
    low, high = metric.interval(y, p, qid=qid)
    assert low < metric.score(y, p) < high
    wide = metric.interval(y[:500], p[:500], qid=qid[:500])
    assert wide[1] - wide[0] > 1.5 * (high - low)


def test_errors_say_what_to_do():
    y, p, _ = draws(100)
    with pytest.raises(DataError, match=r"from 0 to 1, got 1\.5 in row 3.*link='sigmoid'"):
        gbmrank.metric("brier").score(y, np.where(np.arange(100) == 3, 1.5, p))
    with pytest.raises(DataError, match="needs labels 0 and 1"):
        gbmrank.metric("brier").score(y + 1.0, p)
    with pytest.raises(DataError, match="one probability per label"):
        gbmrank.metric("brier").score(y, p[:-1])
    with pytest.raises(MetricError, match="one query has no value"):
        gbmrank.metric("ece").per_query(y, p)
    with pytest.raises(MetricError, match="scores in training are none"):
        gbmrank.GBMRanker(metric="log_loss").fit(np.zeros((4, 1)), [0, 1, 0, 1], qid=[0, 0, 1, 1])
    for several in (["ndcg@10", "log_loss"], [gbmrank.metric("brier")]):
        for combine in (gbmrank.metric, gbmrank.metrics_callback):
            with pytest.raises(MetricError, match="compares probabilities over all rows"):
                combine(several)
    with pytest.raises(MetricError, match="no cut-off"):
        gbmrank.metric("ece@10")
    with pytest.raises(MetricError, match="not combined"):
        gbmrank.metric("ece, ndcg@10")
    with pytest.raises(ParameterError, match="link is none or sigmoid"):
        gbmrank.metric("ece", link="probit")
    assert str(gbmrank.metric("ece(bins=20)")) == "ece(bins=20)"


def test_a_reliability_diagram_has_its_parts():
    mpl = pytest.importorskip("matplotlib")
    mpl.use("agg")
    y, p, qid = draws()
    axes = plots.reliability(y, p, qid=qid, bins=10)
    assert axes.get_xlabel() == "probability"
    assert len(axes.patches) == 30
