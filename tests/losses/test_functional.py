"""What is measured of a loss that is one function holds for its own parameters."""

import math
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gbmrank
from gbmrank import theory
from gbmrank.errors import GbmrankWarning, ParameterError, PluginContractError
from gbmrank.losses import AbstractMarginLoss
from gbmrank.losses.base import loss_class
from gbmrank.numerics import sigmoid, softplus
from gbmrank.theory.shapes import contradictions


def kinked(z: float, a: float = 0.0) -> tuple[float, float, float]:
    p, q = sigmoid(-z), sigmoid(z)
    return softplus(-z) + a * max(1.0 - z, 0.0), -p - (a if z < 1.0 else 0.0), p * q


def wavy(z: float, a: float = 0.0) -> tuple[float, float, float]:
    p, q = sigmoid(-z), sigmoid(z)
    return softplus(-z) + a * math.cos(z), -p - a * math.sin(z), p * q - a * math.cos(z)


KINKED: Any = loss_class(kinked)
WAVY: Any = loss_class(wavy)


def steep(z: float, a: float = 0.5) -> tuple[float, float, float]:
    e, gap = math.exp(-z), max(0.30003 - z, 0.0)
    return e + a * gap, -e - (a if gap else 0.0), e


def flat(z: float) -> tuple[float, float, float]:
    return 1.0, 0.0, 0.0


STEEP: Any = loss_class(steep)


def test_a_small_kink_of_a_steep_loss_is_found() -> None:
    assert not STEEP().differentiable
    assert STEEP(a=0.0).differentiable
    assert "differentiable" in contradictions(declared(steep))
    assert contradictions(declared(lambda z: steep(z, 0.0))) == {}


def declared(phi: Any) -> AbstractMarginLoss:
    """Return a loss that declares this function to be smooth and convex."""
    traits = {
        "name": "declared",
        "proven": ("differentiable", "convex", "decreasing", "bounded_below"),
        "phi": staticmethod(phi),
    }
    made: Any = dataclass(frozen=True, slots=True)(type("Declared", (AbstractMarginLoss,), traits))
    loss: AbstractMarginLoss = made()
    return loss


def test_a_constant_loss_sorts_nothing() -> None:
    objective = gbmrank.objective("pointwise", loss=loss_class(flat)(), target="dcg")
    assert theory.calibration(objective, "dcg").status == "unknown"


def test_a_kink_that_a_parameter_makes_is_found() -> None:
    smooth, bent = KINKED(a=0.0), KINKED(a=50.0)
    assert (smooth.differentiable, smooth.smooth) == (True, True)
    assert (bent.differentiable, bent.smooth) == (False, False)
    status = [
        theory.calibration(gbmrank.objective("pairwise", loss=loss, target="dcg"), "dcg").status
        for loss in (smooth, bent)
    ]
    assert status == ["conditional", "not calibrated"]  # convex as far as a grid shows
    assert str(gbmrank.objective("pointwise", loss=smooth)).startswith("pointwise(loss=kinked")
    with pytest.raises(ParameterError, match="has a kink"):
        gbmrank.objective("pointwise", loss=bent)


def test_a_curvature_that_a_parameter_makes_negative_is_not_returned() -> None:
    convex, wave = WAVY(a=0.0), WAVY(a=5.0)
    assert (convex.convex, wave.convex) == (True, False)
    assert (convex.exact_curvature, wave.exact_curvature) == (True, False)
    assert not WAVY(a=-5.0).exact_curvature  # it bends upwards at 0, and downwards elsewhere
    made = [gbmrank.objective("pairwise", loss=loss, target="dcg") for loss in (convex, wave)]
    assert made[0].gradients([1, 0], [0.0, 0.0])[1].tolist() == [0.25, 0.25]
    assert made[1].gradients([1, 0], [0.0, 0.0])[1].tolist() == [1.0, 1.0]
    assert [one.template.hessian_trait for one in made] == ["exact", "heuristic"]
    with pytest.raises(ParameterError, match="majorise needs a convex loss"):
        gbmrank.objective("pairwise", loss=wave, hessian="majorise")


def test_the_class_has_the_traits_of_the_defaults() -> None:
    assert (WAVY.convex, KINKED.differentiable, KINKED.smooth) == (True, True, True)
    copied = pickle.loads(pickle.dumps(WAVY(a=5.0)))  # noqa: S301
    assert copied.convex is False


@pytest.mark.parametrize("a", [np.nan, np.inf])
def test_parameters_for_which_a_function_is_not_finite(a: float) -> None:
    with pytest.raises(ParameterError, match=rf"'wavy' is not finite .* for wavy\(a={a}\)"):
        WAVY(a=a)


def test_a_loss_that_grows_with_the_margin_gets_a_warning() -> None:
    def turned(z: float, a: float = -1.0) -> tuple[float, float, float]:
        return (1.0 + a * z) ** 2, 2.0 * a * (1.0 + a * z), 2.0 * a * a

    made: Any = loss_class(turned)
    made()  # without a warning, which would be an error here
    with pytest.warns(GbmrankWarning, match=r"turned\(a=1.5\).* at 0 is 3"):
        made(a=1.5)
    with pytest.warns(GbmrankWarning, match="learn the reverse order"):
        gbmrank.objective("pairwise", loss=made(a=1.0))


@pytest.mark.parametrize("default", ["wide", None, 10**400])
def test_defaults_that_are_no_numbers(default: Any) -> None:
    def odd(z: float, a: Any = default) -> tuple[float, float, float]:
        return z * z, 2.0 * z, 2.0

    with pytest.raises(PluginContractError, match="the defaults of its parameters must be numbers"):
        loss_class(odd)


@pytest.mark.parametrize(
    ("traits", "fact"),
    [
        ({"exact_curvature": False, "curvature_trait": "heuristic"}, "expected_curvature"),
        ({"exact_curvature": False}, "expected_curvature"),
        ({"curvature_trait": "heuristic"}, "expected_curvature"),
        ({"differentiable": False}, "smooth=True"),
        ({"proven": ("convex",), "convex": False}, "convex=False"),
        ({"proven": ("proper", "differentiable"), "differentiable": False, "smooth": False},
         "differentiable=False"),
        ({"proven": ("parabola", "decreasing")}, "parabola"),
    ],
)  # fmt: skip
def test_traits_that_contradict_each_other_are_rejected_when_the_class_is_made(traits, fact):
    with pytest.raises(PluginContractError, match=f"the loss odd: .*{fact}"):
        type("Odd", (AbstractMarginLoss,), {"name": "odd", "phi": staticmethod(kinked), **traits})


def test_a_curvature_to_use_instead_is_declared_as_a_number_or_a_function():
    same = {"name": "bent", "phi": staticmethod(kinked), "exact_curvature": False}
    for given in (3.0, staticmethod(lambda z: 3.0)):
        made = type("Bent", (AbstractMarginLoss,), {**same, "expected_of": given})()
        assert made.expected_curvature(0.4) == 3.0
        assert made.constant_curvature == (3.0 if given == 3.0 else None)
