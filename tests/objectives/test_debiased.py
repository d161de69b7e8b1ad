"""Clicks over propensities: the mean gradient over logs is that of relevance (SPEC 12.2)."""

from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import RankingData
from gbmrank.clicks import PositionBias
from gbmrank.errors import DataError, GbmrankWarning, ParameterError, WeightError
from gbmrank.objectives import Mix
from gbmrank.registry import OBJECTIVES

SIZES = [5, 3]
ROWS = 8
RELEVANCE = np.array([0.9, 0.2, 0.5, 0.1, 0.7, 0.3, 0.8, 0.4])
POSITION = np.array([2, 1, 4, 5, 3, 3, 1, 2])
SCORES = np.random.default_rng(0).normal(size=ROWS)
BIAS = PositionBias([1.0, 0.7, 0.5, 0.4, 0.3])
TRUST = PositionBias([0.8, 0.6, 0.5, 0.4, 0.3], false_clicks=[0.2, 0.15, 0.1, 0.05, 0.0])
TAKE_IT = (
    "pairwise(target=identity)",
    "pairwise(target=dcg, engine=pairs)",
    "pairwise(target=precision, engine=linear)",
    "pairwise(loss=exponential, target=identity)",
    "pairwise(loss=squared_hinge, target=identity, engine=sorted)",
    "pairwise(loss=squared_margin, target=identity)",
    "pairwise(loss=canonical_boosting, target=identity)",
    "pairwise(loss=squared, target=dcg)",
    "pointwise(loss=logistic, target=identity)",
    "pointwise(loss=squared, target=precision)",
    "pointwise(loss=exponential, target=dcg(max_grade=1))",
    "query_rmse",
    "query_rmse(target=dcg)",
    "linear",
    "mix(pairwise(target=identity), pointwise(loss=squared, target=dcg), weights=[1, 2])",
)
LOGS = 2000


def of_clicks(text, clicks, bias):
    made = gbmrank.objective(text).bind_rows(position=POSITION, position_bias=bias)
    return made.gradients(clicks, SCORES, group=SIZES)


@pytest.mark.parametrize("bias", [BIAS, TRUST], ids=["examination", "trust"])
@pytest.mark.parametrize("text", TAKE_IT)
def test_the_mean_over_logs_is_the_gradient_of_relevance(text, bias):
    """All logs at once: every log is a query of its own."""
    rng = np.random.default_rng(7)
    theta = bias.theta(POSITION)
    extra = 0.0 if bias.false_clicks is None else bias.false_clicks[POSITION - 1]
    clicks = (rng.random((LOGS, ROWS)) < theta * RELEVANCE + extra).astype(float)
    made = gbmrank.objective(text).bind_rows(position=np.tile(POSITION, LOGS), position_bias=bias)
    found = made.gradients(clicks.reshape(-1), np.tile(SCORES, LOGS), group=SIZES * LOGS)
    grads, hesses = (part.reshape(LOGS, ROWS) for part in found)
    whole = relevance_gradients(text)
    for values, expected in zip((grads, hesses), whole, strict=True):
        error = values.std(axis=0) / np.sqrt(LOGS)
        assert np.all(np.abs(values.mean(axis=0) - expected) <= 4.5 * error + 1e-9)


def relevance_gradients(text):
    """Gradients where relevance itself is the utility."""
    part = text.replace("target=dcg(max_grade=1)", "target=identity, eta=1")
    part = part.replace("target=dcg", "target=identity").replace(
        "target=precision", "target=identity"
    )
    part = part.replace(
        "pointwise(loss=logistic, target=identity", "pointwise(target=identity, eta=1"
    )
    return gbmrank.objective(part).gradients(RELEVANCE, SCORES, group=SIZES)


@pytest.mark.parametrize("text", TAKE_IT)
def test_gradient_is_the_slope_of_the_value(text):
    clicks = np.array([1.0, 0, 1, 0, 0, 0, 1, 0])
    made = gbmrank.objective(text).bind_rows(position=POSITION, position_bias=TRUST)
    grad, _ = made.gradients(clicks, SCORES, group=SIZES)
    slope = np.empty(ROWS)
    for row in range(ROWS):
        moved = np.tile(SCORES, (2, 1))
        moved[:, row] += (1e-5, -1e-5)
        up, down = (made.loss(clicks, one, group=SIZES) for one in moved)
        slope[row] = (up - down) / 2e-5
    np.testing.assert_allclose(grad, slope, atol=1e-6 * max(1.0, np.abs(grad).max()))


def test_the_click_is_replaced_and_not_weighed():
    clicks = np.array([1.0, 0, 1, 0, 0, 0, 1, 0])
    found = of_clicks("pairwise(target=identity)", clicks, BIAS)
    labels = BIAS.utilities(clicks, POSITION)
    given = gbmrank.objective("pairwise(target=identity)").gradients(labels, SCORES, group=SIZES)
    for one, other in zip(found, given, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_weights_of_items_come_on_top():
    clicks, weight = np.array([1.0, 0, 1, 0, 0, 0, 1, 0]), np.linspace(0.5, 2.0, ROWS)
    made = gbmrank.objective("pairwise(target=identity)")
    bound = made.bind_rows(position=POSITION, position_bias=BIAS, weight=weight, clip=0.5)
    labels = BIAS.utilities(clicks, POSITION, clip=0.5)
    given = made.gradients(labels, SCORES, group=SIZES, weight=weight)[0]
    np.testing.assert_allclose(bound.gradients(clicks, SCORES, group=SIZES)[0], given, rtol=1e-12)
    again = made.bind_rows(weight=weight).bind_rows(position=POSITION, position_bias=BIAS, clip=0.5)
    np.testing.assert_allclose(again.gradients(clicks, SCORES, group=SIZES)[0], given, rtol=1e-12)


@pytest.mark.parametrize("target", ["ndcg@3", "recall", "map", "auc"])
def test_normalisers_of_clicks_are_warned_about(target):
    clicks = np.array([1.0, 0, 1, 0, 0, 0, 1, 0])
    made = gbmrank.objective("pairwise", target=target)
    with pytest.warns(GbmrankWarning, match=f"target={target[:3]}.*target=identity"):
        bound = made.bind_rows(position=POSITION, position_bias=BIAS)
    grad, _ = bound.gradients(clicks, SCORES, group=SIZES)
    template: Any = made.template
    utilities = template.target.values(RankingData.from_arrays(clicks, group=SIZES))
    same = gbmrank.objective("pairwise(target=identity)").gradients(
        utilities / BIAS.theta(POSITION), SCORES, group=SIZES
    )
    np.testing.assert_allclose(grad, same[0], rtol=1e-12)


def test_a_target_that_does_not_follow_from_clicks_is_rejected():
    made = gbmrank.objective("query_rmse(target=spearman)")
    with pytest.warns(GbmrankWarning, match="spearman"):
        bound = made.bind_rows(position=POSITION, position_bias=BIAS)
    with pytest.raises(ParameterError, match="spearman does not follow"):
        bound.gradients(np.array([1.0, 0, 1, 0, 0, 0, 1, 0]), SCORES, group=SIZES)


REJECT = (
    "comparison",
    "bipartite",
    "push",
    "listmle",
    "bregman",
    "swap(metric=ndcg)",
    "sigmoid_softmax",
    "calibrated_softmax",
)


@pytest.mark.parametrize("text", [*REJECT, "mix(pairwise(target=identity), ranknet)"])
def test_others_reject_a_bias_and_advise_pairwise(text):
    with pytest.raises(ParameterError, match=r"position.*pairwise\(target=identity\)"):
        gbmrank.objective(text).bind_rows(position=POSITION, position_bias=BIAS)
    assert not gbmrank.objective(text).template.linear_in_utility


def test_every_built_in_template_is_decided():
    names = {gbmrank.objective(text).template.name for text in (*TAKE_IT, *REJECT)}
    built_in = {
        OBJECTIVES.get(name).name
        for name, entries in OBJECTIVES.entries.items()
        if entries[0].origin.distribution == "gbmrank" and OBJECTIVES.preset(name) is None
    }
    assert built_in - {Mix.name} <= names


@pytest.mark.parametrize(
    ("position", "message"),
    [
        ([1, 2, 0, 1, 1, 1, 1, 1], "0"),
        ([1, -2, 1, 1, 1, 1, 1, 1], "-2"),
        ([1, 1.5, 1, 1, 1, 1, 1, 1], "1.5"),
        ([1, np.nan, 1, 1, 1, 1, 1, 1], "nan|missing|whole"),
        ([1, 1, 1, 9, 1, 1, 1, 1], "9 in row 3 is beyond 5"),
    ],
)
def test_positions_that_cannot_be(position, message):
    made = gbmrank.objective("pairwise(target=identity)")
    with pytest.raises(DataError, match=message):
        made.bind_rows(position=position, position_bias=BIAS)


def test_what_else_is_wrong_is_said():
    made = gbmrank.objective("pairwise(target=identity)")
    with pytest.raises(ParameterError, match="go together"):
        made.bind_rows(position=POSITION)
    with pytest.raises(ParameterError, match="go together"):
        made.bind_rows(position_bias=BIAS)
    bound = made.bind_rows(position=POSITION, position_bias=BIAS)
    with pytest.raises(DataError, match="8 entries, but there are 3 rows"):
        bound.gradients([1, 0, 1], np.zeros(3))
    with pytest.raises(DataError, match=r"clicks are 0 or 1.*got 2 in row 0"):
        bound.gradients(np.full(ROWS, 2.0), SCORES, group=SIZES)
    steep = PositionBias([1.0, 1e-160, 0.5, 0.5, 0.5])
    bound = made.bind_rows(position=POSITION, position_bias=steep)
    with pytest.raises(WeightError, match="clip"):
        bound.gradients(np.ones(ROWS), SCORES, group=SIZES)
