"""Softmax losses with a scale: SPEC 13, its minimisers, and probabilities from a booster."""

from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.errors import LabelRangeError, ParameterError

LABELS = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0])
SCORES = np.array([0.3, -2.0, 1.5, 4.0, -0.1, 0.0])
DRAWN = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
CHANCES = np.array([0.4, 0.3, 0.2, 0.1])
LIKELY = CHANCES @ DRAWN


def chance(scores):
    return 1.0 / (1.0 + np.exp(-scores))


def test_the_gradient_over_shares_of_probabilities():
    p, total = chance(SCORES), LABELS.sum()
    q = p / p.sum()
    slope = total * q - LABELS
    grad, hess = gbmrank.objective("sigmoid_softmax(hessian=exact)").gradients(LABELS, SCORES)
    np.testing.assert_allclose(grad, (1 - p) * slope, rtol=1e-12)
    exact = (1 - p) * (total * (1 - p) * q * (1 - q) - p * slope)
    np.testing.assert_allclose(hess, exact, rtol=1e-12)
    assert hess.min() < 0
    _, hess = gbmrank.objective("sigmoid_softmax").gradients(LABELS, SCORES)
    np.testing.assert_allclose(hess, total * (1 - p) ** 2 * q * (1 - q), rtol=1e-12)


@pytest.mark.parametrize("anchor", [1.0, 0.2, 30.0])
def test_the_gradient_with_an_anchor(anchor):
    share = np.exp(SCORES) / (1 + np.exp(SCORES).sum())
    total = LABELS.sum() + anchor
    made = gbmrank.objective("calibrated_softmax", anchor=anchor)
    grad, hess = made.gradients(LABELS, SCORES)
    np.testing.assert_allclose(grad, total * share - LABELS, rtol=1e-12)
    np.testing.assert_allclose(hess, total * share * (1 - share), rtol=1e-12)
    bound = gbmrank.objective("calibrated_softmax", anchor=anchor, hessian="majorise")
    np.testing.assert_allclose(bound.gradients(LABELS, SCORES)[1], total * share, rtol=1e-12)


@pytest.mark.parametrize("name", ["sigmoid_softmax", "calibrated_softmax", "rcr"])
@pytest.mark.parametrize("shift", [-900.0, -40.0, 40.0, 900.0])
def test_scores_of_any_size(name, shift):
    made = gbmrank.objective(name)
    values = [made.loss(LABELS, SCORES + shift), *made.gradients(LABELS, SCORES + shift)]
    assert all(np.isfinite(one).all() for one in values)
    if name == "sigmoid_softmax" and shift < -30.0:  # there the sigmoid is the exponential
        softmax = gbmrank.objective("softmax(target=identity)")
        np.testing.assert_allclose(
            made.gradients(LABELS, SCORES + shift)[0],
            softmax.gradients(LABELS, SCORES)[0],
            rtol=1e-9,
        )


@pytest.mark.parametrize("weights", [[1.0, 1.0], [1.0, 20.0], [5.0, 0.1]])
def test_the_logistic_loss_and_shares_have_one_minimum(weights):
    template: Any = gbmrank.objective("rcr").template
    parts = template.parts
    best = theory.Distribution(DRAWN, CHANCES).minimiser(gbmrank.mix(*parts, weights=weights))
    made = gbmrank.objective("rcr")
    np.testing.assert_allclose(made.inverse_link(best.scores), LIKELY, rtol=1e-7)


@pytest.mark.parametrize("anchor", [1.0, 0.2])
def test_an_anchor_gives_scores_a_zero(anchor):
    made = gbmrank.objective("calibrated_softmax", anchor=anchor)
    best = theory.Distribution(DRAWN, CHANCES).minimiser(made)
    np.testing.assert_allclose(best.scores, np.log(LIKELY / anchor), rtol=1e-7)
    np.testing.assert_allclose(made.inverse_link(best.scores), LIKELY, rtol=1e-7)


def test_nothing_relevant_is_news_to_an_anchor_alone():
    nothing = np.zeros(3)
    assert not gbmrank.objective("sigmoid_softmax").gradients(nothing, np.ones(3))[0].any()
    assert (gbmrank.objective("calibrated_softmax").gradients(nothing, np.ones(3))[0] > 0).all()


@pytest.mark.parametrize("name", ["sigmoid_softmax", "calibrated_softmax", "rcr"])
def test_verdicts(name):
    assert theory.calibration(name, "precision@3").status == "calibrated"
    assert theory.calibration(name, "dcg(gain=linear)").status == "calibrated"
    assert theory.calibration(name, "ndcg").status == "not calibrated"
    if name != "rcr":
        aimed = gbmrank.objective(name, target="ndcg@10")
        assert theory.calibration(aimed, "ndcg@10").status == "calibrated"


def test_a_loss_that_is_not_convex_has_no_calibration_function():
    with pytest.raises(ParameterError, match="not known to be convex"):
        theory.calibration_function("sigmoid_softmax", "precision@1")
    assert theory.calibration_function("calibrated_softmax", "precision@1", eps=[0.5]).lower > 0


@pytest.mark.parametrize("name", ["sigmoid_softmax", "calibrated_softmax", "rcr"])
def test_labels_of_minus_one_are_zeros(name):
    made = gbmrank.objective(name)
    signs = made.gradients(2.0 * LABELS - 1.0, SCORES)
    for one, other in zip(signs, made.gradients(LABELS, SCORES), strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["sigmoid_softmax", "calibrated_softmax", "rcr"])
def test_the_same_bits_wherever_arrays_lie(name):
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 30, 400)
    labels, scores = rng.integers(0, 2, sizes.sum()).astype(float), rng.normal(size=sizes.sum())
    ready = gbmrank.objective(name).bind(gbmrank.RankingData.from_arrays(labels, group=sizes))
    first, held = ready.gradients(scores), []
    for _ in range(200):
        held.append(np.empty(rng.integers(1, 5000)))
        for one, other in zip(first, ready.gradients(scores), strict=True):
            assert one.tobytes() == other.tobytes()


def test_options():
    with pytest.raises(ParameterError, match="anchor must be above 0"):
        gbmrank.objective("calibrated_softmax", anchor=0.0)
    with pytest.raises(LabelRangeError, match="gives -2 in query 0"):
        gbmrank.objective("sigmoid_softmax").loss([1, -2], [0, 0])
    with pytest.raises(LabelRangeError, match="0/1"):
        gbmrank.objective("rcr").loss([2, 0], [0, 0])
    logistic = "pointwise(loss=logistic, target=identity, eta=1)"
    for parts in (
        ("rcr", "calibrated_softmax"),
        (logistic, "sigmoid_softmax(target=ndcg)"),
        (logistic, "pointwise(loss=logistic, target=identity, eta=4)"),
    ):
        with pytest.raises(ParameterError, match="different ways"):
            gbmrank.mix(*parts).inverse_link([-30.0, -40.0])
    graded = gbmrank.mix(f"{logistic[:-1]}, threshold=2)", "sigmoid_softmax(threshold=2)")
    assert graded.inverse_link([0.0])[0] == 0.5
    with pytest.raises(ParameterError, match="write its parts out and set it there"):
        gbmrank.objective("rcr", threshold=2)
    for name in ("sigmoid_softmax", "calibrated_softmax"):
        graded = gbmrank.objective(f"{name}(threshold=2)")
        assert graded == gbmrank.objective(name, target="precision(threshold=2)")


@pytest.mark.compiled
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_booster_learns_probabilities(backend):
    rng = np.random.default_rng(5)
    x = rng.uniform(-2.0, 2.0, size=(6000, 1))
    relevant = (rng.random(6000) < chance(x[:, 0])).astype(float)
    leaves: dict[str, Any] = {"num_leaves": 6} if backend == "lightgbm" else {"max_depth": 2}
    model = gbmrank.GBMRanker("rcr", backend=backend, n_estimators=40, **leaves)
    model.fit(x, relevant, qid=np.repeat(np.arange(600), 10))
    at = np.linspace(-1.9, 1.9, 200)[:, None]
    found = gbmrank.objective("rcr").inverse_link(model.predict(at))
    assert np.abs(found - chance(at[:, 0])).mean() < 0.05
