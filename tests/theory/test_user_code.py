"""Losses, utilities and metrics of your own: what fails is named, and breaks nothing."""

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.errors import GbmrankWarning, PluginContractError, PluginError
from gbmrank.losses.base import AbstractMarginLoss
from gbmrank.losses.margin import Logistic
from gbmrank.registry.catalogue import LOSSES
from gbmrank.testing import check_loss, run_checks
from gbmrank.testing.checks import ConformanceError


@pytest.fixture
def naive(monkeypatch):
    """A loss that trains, compiled, and overflows in Python."""
    monkeypatch.setattr(LOSSES, "_own", dict(LOSSES._own))

    @gbmrank.register_loss
    def naive_logistic(z: float, k: float = 1.0):
        """log(1 + exp(-k z)), written naively."""
        e = math.exp(-k * z)
        return math.log1p(e), -k * e / (1.0 + e), k * k * e / (1.0 + e) ** 2

    return "naive_logistic"


def test_advice_leaves_out_a_loss_that_fails_with_one_warning_that_names_it(naive):
    for metric in ("ndcg@10", "auc", "err@10"):
        with pytest.warns(GbmrankWarning, match=naive) as record:
            rows = theory.advise(metric)
        assert len(record) == 1
        assert rows
        assert not any(row.objective.startswith(f"pointwise(loss={naive}") for row in rows)
    with pytest.warns(GbmrankWarning, match=naive):
        assert theory.advise("ndcg@10")[0].proven


def test_asked_for_directly_a_loss_that_fails_is_an_error_with_the_margin(naive):
    for question in (
        lambda: theory.calibration(f"pointwise(loss={naive}, target=ndcg)", "ndcg"),
        lambda: theory.item_shape(naive),
        lambda: theory.regret_bound(f"pointwise(loss={naive}, target=ndcg)", "ndcg", [3], 0.1),
    ):
        with pytest.raises(PluginError, match=r"naive_logistic fails at the margin -\d") as caught:
            question()
        assert isinstance(caught.value.__cause__, OverflowError)
    assert theory.calibration(f"pairwise(loss={naive}, target=ndcg)", "ndcg").condition is not None


def test_early_stopping_says_once_that_there_is_no_verdict(naive):
    objective = gbmrank.objective("pointwise", loss=naive, target="ndcg")
    with pytest.warns(GbmrankWarning, match=naive) as record:
        found = [theory.warn_if_not_calibrated(objective, "ndcg@7") for _ in range(3)]
    assert len(record) == 1
    assert {one.status for one in found} == {"unknown"}


def test_a_metric_of_ones_own_that_fails_is_named():
    def fails(labels):
        raise ZeroDivisionError("nothing to divide by")

    metric = gbmrank.metric("dcg", gain=fails)
    for question in (theory.calibration, theory.search):
        with pytest.raises(PluginError, match="fails") as caught:
            question("pairwise(target=dcg)", metric)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


# What is declared as proven --------------------------------------------------------------------


def _claiming(phi_of: Any, *claims: str, rate: float | None = None, reference: str = "a note"):
    @dataclass(frozen=True, slots=True)
    class Claiming(AbstractMarginLoss):
        name: ClassVar[str] = "claiming"
        reference: ClassVar[str] = ""
        link_rate: ClassVar[float | None] = rate
        proven: ClassVar[tuple[str, ...]] = claims
        phi = staticmethod(phi_of)

    Claiming.reference = reference
    return Claiming()


def _soft(z):
    return Logistic.phi(z, 1.0)


def _kinked(z):
    e = 0.6863 * math.exp(0.3137 - z)
    return (1.0 - z, -1.0, 0.0) if z < 0.3137 else (e, -e, e)


FALLING = ("differentiable", "convex", "decreasing", "bounded_below")


@pytest.mark.parametrize(
    ("phi", "claims", "rate", "wrong", "where"),
    [
        (_kinked, FALLING, None, "differentiable", "0.3137"),
        (lambda z: (math.exp(-z), -math.exp(-z), math.exp(-z)), (*FALLING, "bounded_curvature"),
         None, "bounded_curvature", "-"),
        (lambda z: ((1 - z) ** 2, -2 * (1 - z), 2.0), ("convex", "decreasing"), None,
         "decreasing", "1.0"),
        (_soft, ("proper", *FALLING), 2.0, "link_rate", "sigmoid(1 v)"),
        (lambda z: (-z, -1.0, 0.0), ("convex", "decreasing", "bounded_below"), None,
         "bounded_below", "10000"),
        (lambda z: (np.cosh(z - 1), np.sinh(z - 1), np.cosh(z - 1)), ("convex", "parabola"), None,
         "parabola", "not the same"),
    ],
)  # fmt: skip
def test_a_false_claim_is_an_error_with_the_margin(phi, claims, rate, wrong, where):
    loss = _claiming(phi, *claims, rate=rate)
    with pytest.raises(ConformanceError, match="declares as proven what is not so"):
        check_loss(loss)
    report = run_checks(loss, kind="loss")
    told = next(one for one in report.results if one.check == "proven").message
    assert wrong in told
    assert where in told
    objective = gbmrank.objective("pairwise", loss=loss, target="dcg")
    with pytest.raises(PluginContractError, match=wrong):
        theory.calibration(objective, "dcg")


def test_a_claim_carries_its_reference_into_the_verdict():
    loss = _claiming(_soft, "proper", *FALLING, rate=1.0, reference="Nobody 2026, Lemma 1")
    for template in ("pairwise", "pointwise"):
        objective = gbmrank.objective(template, loss=loss, target="dcg")
        verdict = theory.calibration(objective, "dcg")
        assert verdict.status == "calibrated"
        assert verdict.reference.endswith("as declared by claiming (Nobody 2026, Lemma 1)")
    assert "declared" not in theory.calibration("pairwise(target=dcg)", "dcg").reference
    nameless = _claiming(_soft, *FALLING, reference="")
    with pytest.raises(ConformanceError, match="without a reference"):
        check_loss(nameless)


def test_a_verdict_is_silent_about_parts_that_work():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theory.warn_if_not_calibrated("pairwise(target=dcg)", "dcg")
