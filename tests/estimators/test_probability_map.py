"""Probabilities of rankers: fitted out of fold, never against the order."""

import warnings
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import GBMRanker
from gbmrank.clicks import simulate_clicks
from gbmrank.data.demonstration import demo_data
from gbmrank.data.queries import Groups
from gbmrank.errors import ConfigError, DataError, GbmrankWarning, GroupError
from gbmrank.estimators.probability_map import ProbabilityMap, _logistic

TRAIN, TEST = demo_data(250, 15, seed=0), demo_data(250, 15, seed=3)
RELEVANT = (TEST.labels >= 2).astype(float)
TRUE = TEST.probabilities[:, 2:].sum(axis=1)
FAST: dict[str, Any] = {"n_estimators": 40, "learning_rate": 0.1, "n_jobs": 1}


def fitted(backend="lightgbm", calibrate="cross-fit", **given):
    model = GBMRanker(
        "pairwise(target=ndcg@10)", backend, calibrate=calibrate, threshold=2, **FAST, **given
    )
    return model.fit(TRAIN.X, TRAIN.labels, qid=TRAIN.qid)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_probabilities_are_near_the_truth_and_keep_the_order(backend, tmp_path):
    model = fitted(backend)
    found = model.predict_proba(TEST.X, qid=TEST.qid)
    assert gbmrank.metric("ece").score(RELEVANT, found, qid=TEST.qid) < 0.03
    assert np.sqrt(np.mean((found - TRUE) ** 2)) < 0.6 * TRUE.std()
    scores = model.predict(TEST.X)
    order = np.lexsort((scores, TEST.qid))
    same = TEST.qid[order][1:] == TEST.qid[order][:-1]
    assert (np.diff(found[order])[same] >= -1e-12).all()
    path = tmp_path / ("m.txt" if backend == "lightgbm" else "m.ubj")
    model.save(path)
    again = gbmrank.load(path)
    np.testing.assert_array_equal(again.predict_proba(TEST.X, qid=TEST.qid), found)
    (tmp_path / f"m.level{path.suffix}").unlink()
    alone = gbmrank.load(path)
    np.testing.assert_array_equal(alone.predict(TEST.X), scores)
    with pytest.raises(ConfigError, match="file of the level"):
        alone.predict_proba(TEST.X, qid=TEST.qid)


def test_shorter_lists_hold_too():
    model = fitted()
    ranks = model.rank(TEST.X, qid=TEST.qid)
    sizes = np.repeat(TEST.sizes, TEST.sizes)
    kept = ranks <= sizes / 2
    found = model.predict_proba(TEST.X[kept], qid=TEST.qid[kept])
    assert gbmrank.metric("ece").score(RELEVANT[kept], found, qid=TEST.qid[kept]) < 0.05


def test_rows_in_any_order():
    model = fitted()
    want = model.predict_proba(TEST.X, qid=TEST.qid)
    mixed = np.random.default_rng(0).permutation(len(want))
    found = model.predict_proba(TEST.X[mixed], qid=TEST.qid[mixed])
    np.testing.assert_allclose(found, want[mixed], rtol=1e-12)


def test_held_out_is_a_sigmoid_of_the_score():
    valid = demo_data(150, 15, seed=5)
    model = GBMRanker(calibrate="held-out", threshold=2, **FAST).fit(
        TRAIN.X,
        TRAIN.labels,
        qid=TRAIN.qid,
        eval_set=(valid.X, valid.labels),
        eval_qid=valid.qid,
    )
    found = model.predict_proba(TEST.X, qid=TEST.qid)
    odds = np.log(found / (1.0 - found))
    made = model.calibration_
    np.testing.assert_allclose(odds, made.a * model.predict(TEST.X) + made.d, rtol=1e-6, atol=1e-9)
    assert gbmrank.metric("ece").score(RELEVANT, found, qid=TEST.qid) < 0.05


def test_committees_are_calibrated():
    model = GBMRanker("committee(query_rmse, yetirank)", calibrate="cross-fit", threshold=2, **FAST)
    found = model.fit(TRAIN.X, TRAIN.labels, qid=TRAIN.qid).predict_proba(TEST.X, qid=TEST.qid)
    assert gbmrank.metric("ece").score(RELEVANT, found, qid=TEST.qid) < 0.04


def test_the_slope_is_that_of_the_mean_that_serves():
    rng = np.random.default_rng(0)
    groups = Groups.from_sizes([20] * 2000, 40_000)
    truth, noise = rng.normal(size=40_000), rng.normal(size=(4, 40_000))
    chance = 1.0 / (1.0 + np.exp(-truth))
    relevant = (rng.random(40_000) < chance).astype(float)
    member = groups.restore(groups.spread(rng.integers(4, size=2000)))
    members = truth + 0.7 * noise
    z = members[member, np.arange(40_000)]
    memorised = relevant - chance  # by members that trained on a row
    served = (members.sum(axis=0) + 3.0 * memorised) / 4.0
    made = ProbabilityMap.fitted(z, np.zeros(40_000), relevant, groups, 0, served)
    fresh = truth + 0.7 * rng.normal(size=(4, 40_000)).mean(axis=0)
    happened = (rng.random(40_000) < chance).astype(float)
    ece = gbmrank.metric("ece")
    assert ece.score(happened, made.probabilities(fresh, None, groups)) < 0.012
    plain = ProbabilityMap.fitted(z, np.zeros(40_000), relevant, groups, 0)
    assert ece.score(happened, plain.probabilities(fresh, None, groups)) > 0.025


def test_uncalibrated_objectives():
    plain = GBMRanker("pointwise(loss=logistic, target=identity, eta=1)", metric="auc", **FAST)
    plain.fit(TRAIN.X, TRAIN.labels >= 2, qid=TRAIN.qid)
    found = plain.predict_proba(TEST.X)
    np.testing.assert_allclose(found, 1.0 / (1.0 + np.exp(-plain.predict(TEST.X))))
    for objective in ("yetirank", "native:lambdarank", "committee(query_rmse, yetirank)"):
        model = GBMRanker(objective, n_estimators=2, n_jobs=1).fit(
            TRAIN.X, TRAIN.labels, qid=TRAIN.qid
        )
        with pytest.raises(ConfigError, match="are no probabilities"):
            model.predict_proba(TEST.X, qid=TEST.qid)
        assert not hasattr(model, "predict_proba")
    assert hasattr(plain, "predict_proba")


def test_a_logistic_regression_is_at_its_minimum():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(500, 2)) * [1.0, 100.0], np.ones(500)])
    y = (rng.random(500) < 1.0 / (1.0 + np.exp(-(x @ [1.0, 0.01, -0.5])))).astype(float)
    at = np.array(_logistic(x, y))
    p = 1.0 / (1.0 + np.exp(-(x @ at)))
    np.testing.assert_allclose(x.T @ (p - y) / 500 / [1.0, 100.0, 1.0], 0.0, atol=1e-4)


def test_bad_input():
    with pytest.raises(ConfigError, match="needs threshold= for graded labels"):
        GBMRanker(calibrate="cross-fit").fit(TRAIN.X, TRAIN.labels, qid=TRAIN.qid)
    log = simulate_clicks(TRAIN.labels, TRAIN.X[:, 0], TRAIN.qid, sessions=3000, seed=0)
    with (
        pytest.raises(ConfigError, match=r"labels are clicks.*held-out"),
        warnings.catch_warnings(action="ignore", category=GbmrankWarning),
    ):
        GBMRanker("pairwise(target=identity)", metric="dcg@10", calibrate="cross-fit").fit(
            TRAIN.X[log.row],
            log.clicks,
            qid=log.query,
            item=log.row,
            session=log.session,
            position=log.position,
            position_bias="pooled",
        )
    with pytest.raises(ConfigError, match="calibrate is 'cross-fit', 'held-out' or None"):
        GBMRanker(calibrate="isotonic", threshold=2).fit(TRAIN.X, TRAIN.labels, qid=TRAIN.qid)
    with pytest.raises(ConfigError, match="'held-out' needs eval_set="):
        GBMRanker(calibrate="held-out", threshold=2).fit(TRAIN.X, TRAIN.labels, qid=TRAIN.qid)
    with pytest.raises(ConfigError, match="for calibrate=; give both"):
        GBMRanker(threshold=2).fit(TRAIN.X, TRAIN.labels, qid=TRAIN.qid)
    with pytest.raises(GroupError, match="say which query each row"):
        fitted(folds=2).predict_proba(TEST.X)
    groups = Groups.from_sizes([10] * 120, 1200)
    z = np.random.default_rng(0).normal(size=1200)
    with pytest.raises(DataError, match="are irrelevant, so there is no probability"):
        ProbabilityMap.fitted(z, z, np.zeros(1200), groups, 0)
    with pytest.raises(DataError, match="less often relevant the higher they score"):
        ProbabilityMap.fitted(z, None, (z < 0.0).astype(float), groups, 0)
    few = Groups.from_sizes([10] * 20, 200)
    with pytest.warns(GbmrankWarning, match="calibrated on 20 queries"):
        made = ProbabilityMap.fitted(z[:200], None, (z[:200] > 0.5).astype(float), few, 0)
    with pytest.warns(GbmrankWarning, match="longest list has 200 rows"):
        made.probabilities(z[:200], None, Groups.single(200))
