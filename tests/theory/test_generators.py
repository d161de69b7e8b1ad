"""Bregman generators of your own: complete, separable or not, with a modulus that is true."""

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.errors import ParameterError, PluginContractError, PluginError
from gbmrank.losses.convex import AbstractGenerator
from gbmrank.testing import check_objective


def _squared(s, v, rho):
    """(s - v)' M (s - v) with M = (1 - rho) I + rho 11'."""
    gap = s - v
    pull = (1.0 - rho) * gap + rho * gap.sum()
    return gap @ pull, 2.0 * pull


@dataclass(frozen=True, slots=True)
class Coupled(AbstractGenerator):
    rho: float = 0.5
    name: ClassVar[str] = "coupled"
    reference: ClassVar[str] = "a quadratic form whose least eigenvalue is 1 - rho"
    proven: ClassVar[bool] = True
    mu: ClassVar[float | None] = 1.0
    of_query = staticmethod(_squared)


def _cross_entropy(s, v):
    top = s.max()
    e = np.exp(s - top)
    return v.sum() * (top + np.log(e.sum())) - v @ s, v.sum() * e / e.sum() - v


@dataclass(frozen=True, slots=True)
class OwnSoftmax(AbstractGenerator):
    name: ClassVar[str] = "own_softmax"
    shift_invariant: ClassVar[bool] = True
    of_query = staticmethod(_cross_entropy)


def _made(loss: Any, **options: Any) -> Any:
    return gbmrank.objective("bregman", loss=loss, target="dcg", **options)


def test_a_generator_without_a_formula_is_rejected():
    @dataclass(frozen=True, slots=True)
    class Empty(AbstractGenerator):
        name: ClassVar[str] = "empty"

    with pytest.raises(ParameterError, match="empty has no formula") as caught:
        _made(Empty())
    assert "term" in str(caught.value)
    assert "of_query" in str(caught.value)


def test_a_generator_of_queries_trains_like_the_built_in_one():
    rng = np.random.default_rng(0)
    labels, scores, group = rng.integers(0, 3, 9).astype(float), rng.normal(size=9), [4, 1, 4]
    for normalize in ("none", "items"):
        own, ours = (_made(g, normalize=normalize) for g in (OwnSoftmax(), "softmax_ce"))
        assert own.loss(labels, scores, group=group) == pytest.approx(
            ours.loss(labels, scores, group=group)
        )
        grad, hess = own.gradients(labels, scores, group=group, weight=[1, 1, 1, 1, 2, 3, 3, 3, 3])
        np.testing.assert_allclose(
            grad,
            ours.gradients(labels, scores, group=group, weight=[1, 1, 1, 1, 2, 3, 3, 3, 3])[0],
            atol=1e-12,
        )
        assert hess.tolist() == [1, 1, 1, 1, 2, 3, 3, 3, 3]
    with pytest.raises(ParameterError, match="second derivative"):
        _made(OwnSoftmax(), hessian="exact")


@pytest.mark.parametrize("loss", [OwnSoftmax(), Coupled()])
def test_generators_of_queries_conform(loss):
    check_objective(_made(loss), expected_failures={"spec": "it is not registered"})


def test_what_is_declared_decides_the_verdict():
    verdict = theory.calibration(_made(Coupled()), "dcg")
    assert verdict.status == "calibrated"
    assert verdict.constant.value() == 2.0
    assert verdict.reference.endswith("as declared by coupled (a quadratic form whose least "
                                      "eigenvalue is 1 - rho)")  # fmt: skip
    measured = theory.calibration(_made(OwnSoftmax()), "dcg")
    assert measured.status == "conditional"
    assert "own_softmax" in str(measured.condition)
    with pytest.raises(ParameterError, match="declares mu"):
        theory.regret_bound("pairwise(loss=squared_hinge, target=dcg)", "dcg", [3], 0.1)


def test_the_bound_of_a_declared_modulus_holds():
    rng = np.random.default_rng(1)
    objective, tightest = _made(Coupled()), 0.0
    bound = theory.regret_bound(objective, "dcg", [3], 1.0)
    assert bound.condition is None
    vectors = np.array(list(itertools.product((0.0, 1.0, 2.0), repeat=3)))
    for _ in range(40):
        d = theory.Distribution(vectors, rng.dirichlet(np.full(27, 0.1)))
        u = d.expected_utilities("dcg")
        scores = u + rng.normal(0.0, 0.5, 3)
        excess = d.inner_risk(objective, scores) - d.inner_risk(objective, u)
        lost = d.regret("dcg", scores)
        assert lost <= bound.value * np.sqrt(excess) + 1e-9
        tightest = max(tightest, lost / (bound.value * np.sqrt(excess)))
    assert tightest > 0.05


@pytest.mark.parametrize("modulus", [1.1, 3.0])
def test_a_modulus_that_is_too_large_is_an_error(modulus):
    @dataclass(frozen=True, slots=True)
    class Bold(Coupled):
        name: ClassVar[str] = "bold"
        mu: ClassVar[float | None] = modulus

    with pytest.raises(PluginContractError, match="a tie of the utilities"):
        theory.calibration(_made(Bold()), "dcg")


def _reversed(s, v):
    return ((s + v) ** 2).sum(), 2.0 * (s + v)


def _bent(s, v):
    return ((s - v**2) ** 2).sum(), 2.0 * (s - v**2)


@pytest.mark.parametrize("function", [_reversed, _bent])
def test_what_is_no_divergence_gets_no_verdict(function):
    @dataclass(frozen=True, slots=True)
    class Other(AbstractGenerator):
        name: ClassVar[str] = "other"
        of_query = staticmethod(function)

    assert theory.calibration(_made(Other()), "dcg").status == "unknown"


def test_a_generator_cannot_write_to_the_scores_of_its_caller():
    def shifts(s, v):
        s -= s.max()
        return (s**2).sum(), 2.0 * s

    @dataclass(frozen=True, slots=True)
    class Shifting(AbstractGenerator):
        name: ClassVar[str] = "shifting"
        of_query = staticmethod(shifts)

    scores = np.array([3.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        gbmrank.objective("bregman", loss=Shifting(), target="dcg").gradients([2, 0, 1], scores)
    assert scores.tolist() == [3.0, 1.0, 2.0]


def test_a_generator_that_fails_is_named():
    def fails(s, v):
        raise RuntimeError("no memory")

    @dataclass(frozen=True, slots=True)
    class Failing(AbstractGenerator):
        name: ClassVar[str] = "failing"
        of_query = staticmethod(fails)

    with pytest.raises(PluginError, match=r"failing fails: RuntimeError\('no memory'\)"):
        theory.calibration(_made(Failing()), "dcg")
