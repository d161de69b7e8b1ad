"""Composite losses: one partial loss for useful items, another for useless ones."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from gbmrank.errors import ParameterError
from gbmrank.losses.base import (
    AbstractLoss,
    LeastWeights,
    ScalarFunction,
    pair_penalty,
    positive_number,
)
from gbmrank.losses.margin import squared_hinge_margin
from gbmrank.numerics import exp, log1p_unit, sigmoid, softplus
from gbmrank.types import FloatArray

_LOG_2 = math.log(2.0)
_FALLING = ("proper", "differentiable", "convex", "decreasing", "bounded_below")


@dataclass(frozen=True, slots=True)
class AbstractCompositeLoss(AbstractLoss):
    """A loss with two partial losses; its pair penalty is their symmetric mean.

    ``positive`` and ``negative`` are plain functions ``(v, *params) -> (value, first,
    second)``, the losses of a useful and of a useless item at score v.
    """

    positive: ClassVar[Any]
    negative: ClassVar[Any]

    @property
    def partials(self) -> tuple[ScalarFunction, ScalarFunction]:
        """Both partial losses."""
        return type(self).positive, type(self).negative

    @property
    def kappa(self) -> ScalarFunction:
        """Mean of the positive loss of the margin and the negative loss of its opposite."""
        return pair_penalty(type(self).positive, type(self).negative)


def _p_positive(v: float, p: float) -> tuple[float, float, float]:  # noqa: ARG001
    e = exp(-v)
    return e, -e, e


def _p_negative(v: float, p: float) -> tuple[float, float, float]:
    e = exp(p * v)
    return e / p, e, p * e


def _p_expected(v: float, p: float) -> float:
    """(p + 1) q^(p/(p+1)) (1 - q)^(1/(p+1))."""
    z = (p + 1.0) * v
    return (p + 1.0) * exp(-(p * softplus(-z) + softplus(z)) / (p + 1.0))


def _p_weight(c: FloatArray, p: float) -> FloatArray:
    r = 1.0 / (p + 1.0)
    return r * c ** (-1.0 - r) * (1.0 - c) ** (-2.0 + r)


@final
@dataclass(frozen=True, slots=True)
class PClassification(AbstractCompositeLoss):
    """p-classification loss: ``exp(-v)`` and ``exp(p v) / p``; exponents are clipped at 700.

    Parameters
    ----------
    p : float, default=2
        Above 0; larger values push useless items down harder.
    """

    p: float = 2.0

    name: ClassVar[str] = "p_classification"
    formula: ClassVar[str] = "exp(-v), exp(p v)/p"
    reference: ClassVar[str] = "Ertekin and Rudin, JMLR 2011"
    proven: ClassVar[tuple[str, ...]] = _FALLING
    closed_form: ClassVar[str | None] = "p_classification"
    positive = staticmethod(_p_positive)
    negative = staticmethod(_p_negative)
    expected_of = staticmethod(_p_expected)
    weight_of = staticmethod(_p_weight)

    def __post_init__(self) -> None:
        positive_number(self.name, "p", self.p)

    @property
    def rate(self) -> float | None:
        """One more than p."""
        return self.p + 1.0

    @property
    def least_weights(self) -> LeastWeights:
        """At c = (1 + r) / 3, with r = 1 / (p + 1); over pairs, 8 r at one half."""
        r = 1.0 / (self.p + 1.0)
        return float(_p_weight(np.array((1.0 + r) / 3.0), self.p)), 8.0 * r


def _asymmetric_a_positive(v: float) -> tuple[float, float, float]:
    slope = 1.0 / _root(v)
    return 2.0 * log1p_unit(slope) + softplus(-v), -slope, 0.5 * sigmoid(v) * slope


def _asymmetric_a_negative(v: float) -> tuple[float, float, float]:
    s, root = sigmoid(v), _root(v)
    slope = s * root
    value = 2.0 * slope / (1.0 + 1.0 / root)  # 2 sqrt(1 + e^v) - 2 without cancellation
    return value, slope, slope * (1.0 - 0.5 * s)


def _asymmetric_a_expected(v: float) -> float:
    return sigmoid(v) / _root(v)


def _root(v: float) -> float:
    """Return the square root of ``1 + exp(v)``; finite where ``exp(v)`` is not."""
    return exp(0.5 * max(v, 0.0)) * math.sqrt(1.0 + exp(-abs(v)))


@final
@dataclass(frozen=True, slots=True)
class AsymmetricA(AbstractCompositeLoss):
    """Asymmetric loss A, in the version that vanishes at both ends.

    ``2 artanh sqrt(sigmoid(-v))`` and ``2 sqrt(1 + exp(v)) - 2``.
    """

    name: ClassVar[str] = "asymmetric_a"
    formula: ClassVar[str] = "2 artanh sqrt(sigmoid(-v)), 2 sqrt(1 + exp(v)) - 2"
    reference: ClassVar[str] = "Menon and Williamson, COLT 2014, Table 1 (constant added)"
    proven: ClassVar[tuple[str, ...]] = _FALLING
    link_rate: ClassVar[float | None] = 1.0
    positive = staticmethod(_asymmetric_a_positive)
    negative = staticmethod(_asymmetric_a_negative)
    least_weights: ClassVar[LeastWeights] = (1.0 / (0.4 * 0.6**1.5), math.sqrt(32.0))  # 2/5; 1/2
    expected_of = staticmethod(_asymmetric_a_expected)
    weight_of = staticmethod(lambda c: 1.0 / (c * (1.0 - c) ** 1.5))


def _asymmetric_b_positive(v: float) -> tuple[float, float, float]:
    s, t, e = sigmoid(v), sigmoid(-v), exp(-0.5 * v)
    upper = v > 0.0
    return (
        e if upper else softplus(-v) - _LOG_2 + 1.0,
        -0.5 * e if upper else -t,
        0.25 * e if upper else s * t,
    )


def _asymmetric_b_negative(v: float) -> tuple[float, float, float]:
    s, t, e = sigmoid(v), sigmoid(-v), exp(0.5 * v)
    upper = v > 0.0
    return (
        e - 1.0 + _LOG_2 if upper else softplus(v),
        0.5 * e if upper else s,
        0.25 * e if upper else s * t,
    )


def _asymmetric_b_pair(d: float) -> tuple[float, float, float]:
    s, t, e = sigmoid(d), sigmoid(-d), exp(-0.5 * d)
    return 0.5 * (e + softplus(-d)), -0.5 * (0.5 * e + t), 0.5 * (0.25 * e + s * t)


def _asymmetric_b_expected(v: float) -> float:
    product = sigmoid(v) * sigmoid(-v)
    return 0.5 * math.sqrt(product) if v > 0.0 else product


def _asymmetric_b_weight(c: FloatArray) -> FloatArray:
    product = c * (1.0 - c)
    return np.where(c > 0.5, 0.5 * product**-1.5, 1.0 / product)


@final
@dataclass(frozen=True, slots=True)
class AsymmetricB(AbstractCompositeLoss):
    """Asymmetric loss B: logistic below zero, exponential with half rate above.

    Integrated from the printed weight function, so that it is proper, convex and twice
    continuously differentiable; its pair penalty is the mean of ``exp(-d/2)`` and the
    logistic loss.
    """

    name: ClassVar[str] = "asymmetric_b"
    formula: ClassVar[str] = "v>0: exp(-v/2), exp(v/2)-1+log 2; v<=0: logistic (+1-log 2)"
    reference: ClassVar[str] = "Menon and Williamson, COLT 2014, Table 1 (from its weight)"
    proven: ClassVar[tuple[str, ...]] = _FALLING
    link_rate: ClassVar[float | None] = 1.0
    positive = staticmethod(_asymmetric_b_positive)
    negative = staticmethod(_asymmetric_b_negative)
    least_weights: ClassVar[LeastWeights] = (4.0, 4.0)  # at one half
    expected_of = staticmethod(_asymmetric_b_expected)
    weight_of = staticmethod(_asymmetric_b_weight)

    @property
    def kappa(self) -> ScalarFunction:
        """Mean of exp(-d/2) and log(1 + exp(-d)): both branches in one formula."""
        return _asymmetric_b_pair


def _squared_hinge_positive(v: float, t: float) -> tuple[float, float, float]:
    gap = max(t - v, 0.0)
    return gap * gap, -2.0 * gap, (2.0 if v < t else 0.0)


def _squared_hinge_negative(v: float, t: float) -> tuple[float, float, float]:  # noqa: ARG001
    over = max(v, 0.0)
    return over * over, 2.0 * over, (2.0 if v > 0.0 else 0.0)


def _squared_hinge_pair(d: float, t: float) -> tuple[float, float, float]:  # noqa: ARG001
    return squared_hinge_margin(d)


@final
@dataclass(frozen=True, slots=True)
class SquaredHinge(AbstractCompositeLoss):
    """Squared hinge with separate zones: ``max(t - v, 0)^2`` and ``max(v, 0)^2``.

    Over pairs it is ``max(1 - d, 0)^2``, whatever t: another margin only rescales scores.

    Parameters
    ----------
    t : float, default=1
        Score at which a useful item costs nothing, in ``pointwise``; above 0.
    """

    t: float = 1.0

    name: ClassVar[str] = "squared_hinge"
    formula: ClassVar[str] = "max(t - v, 0)^2, max(v, 0)^2"
    reference: ClassVar[str] = "Calauzenes et al., Machine Learning 2013, Table 2"
    proven: ClassVar[tuple[str, ...]] = (*_FALLING, "bounded_curvature")
    smooth: ClassVar[bool] = False
    closed_form: ClassVar[str | None] = "squared_hinge"
    majorant: ClassVar[float] = 2.0
    positive = staticmethod(_squared_hinge_positive)
    negative = staticmethod(_squared_hinge_negative)

    def __post_init__(self) -> None:
        positive_number(self.name, "t", self.t)

    @property
    def least_weights(self) -> LeastWeights:
        """Two t^2 everywhere."""
        return 2.0 * self.t**2, None

    @property
    def kappa(self) -> ScalarFunction:
        """Squared hinge of the margin; it does not depend on t."""
        return _squared_hinge_pair


def _huber_like(x: float, alpha: float) -> tuple[float, float, float]:
    """Zero below 0, a parabola up to alpha, then a line."""
    inside = 0.0 < x < alpha
    bent = min(max(x, 0.0), alpha)
    return bent * (max(x, 0.0) - 0.5 * bent) / alpha, bent / alpha, (1.0 / alpha if inside else 0.0)


def _differentiable_hinge_positive(v: float, alpha: float) -> tuple[float, float, float]:
    value, first, second = _huber_like(1.0 - v, alpha)
    return value, -first, second


@final
@dataclass(frozen=True, slots=True)
class DifferentiableHinge(AbstractCompositeLoss):
    """Hinge with a parabola of width alpha in place of the kink; for items, not pairs.

    Parameters
    ----------
    alpha : float, default=0.5
        Width of the parabola, above 0 and at most 1/2.
    """

    alpha: float = 0.5

    name: ClassVar[str] = "differentiable_hinge"
    formula: ClassVar[str] = "H(1 - v), H(v)"
    reference: ClassVar[str] = "Calauzenes et al., Machine Learning 2013, Table 2"
    proven: ClassVar[tuple[str, ...]] = ("proper", "differentiable")
    smooth: ClassVar[bool] = False
    exact_curvature: ClassVar[bool] = False
    pair_form: ClassVar[str] = "none"
    positive = staticmethod(_differentiable_hinge_positive)
    negative = staticmethod(_huber_like)

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha <= 0.5:
            raise ParameterError(
                f"{self.name}: alpha must be above 0 and at most 1/2, got {self.alpha}"
            )

    @property
    def least_weights(self) -> LeastWeights:
        """Alpha, at both ends."""
        return self.alpha, None

    @property
    def majorant(self) -> float | None:
        """One over alpha."""
        return 1.0 / self.alpha


@final
@dataclass(frozen=True, slots=True)
class Squared(AbstractLoss):
    """Squared error of the utility: ``(u - s)^2`` for items, ``(u_i - u_j - d)^2`` for pairs."""

    name: ClassVar[str] = "squared"
    formula: ClassVar[str] = "(u - s)^2, (u_i - u_j - d)^2"
    reference: ClassVar[str] = "Cossock and Zhang, COLT 2006"
    pair_form: ClassVar[str] = "difference"

    @property
    def partials(self) -> tuple[ScalarFunction, ScalarFunction]:
        """Raise: the squared error does not split into two partial losses."""
        raise ParameterError("squared error compares a score with a utility; it has no partials")

    @property
    def kappa(self) -> ScalarFunction:
        """Raise: use ``squared_margin`` for a loss of the margin alone."""
        raise ParameterError("squared error has no margin form; use squared_margin")
