"""Margin losses: functions of the margin by which the better item leads."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from gbmrank.losses.base import AbstractMarginLoss, LeastWeights, positive_number
from gbmrank.numerics import exp, log1p_unit, sigmoid
from gbmrank.types import FloatArray

_FALLING = ("proper", "differentiable", "convex", "decreasing", "bounded_below")


def logistic(margin: float, sigma: float = 1.0) -> tuple[float, float, float]:
    r"""Logistic penalty of the margin by which the better document leads.

    .. math::
        \varphi(m) = \log(1 + e^{-\sigma m}), \quad \varphi'(m) = -\sigma p, \quad
        \varphi''(m) = \sigma^2 p (1 - p), \quad p = \frac{1}{1 + e^{\sigma m}}.

    Convex, with exact curvature and bounded slope. Accurate for every finite margin.

    Parameters
    ----------
    margin : float
        Score of the better document minus score of the worse one.
    sigma : float
        Steepness.

    Returns
    -------
    tuple of float
        Value, first and second derivative.

    References
    ----------
    Burges et al., "Learning to rank using gradient descent", ICML 2005, sec. 3.

    Examples
    --------
    >>> value, slope, curvature = logistic(0.0)
    >>> slope, curvature
    (-0.5, 0.25)
    """
    z = sigma * margin
    e = exp(-abs(z))
    p = (e if z > 0.0 else 1.0) / (1.0 + e)
    value = max(-z, 0.0) + log1p_unit(e)
    return value, -sigma * p, sigma * sigma * e / ((1.0 + e) * (1.0 + e))


def exponential(margin: float) -> tuple[float, float, float]:
    """Exponential penalty ``exp(-m)``; the exponent is clipped at 700.

    Examples
    --------
    >>> exponential(0.0)
    (1.0, -1.0, 1.0)
    """
    e = exp(-margin)
    return e, -e, e


def squared_margin(margin: float) -> tuple[float, float, float]:
    """Squared distance of the margin from one, ``(1 - m)^2``.

    Examples
    --------
    >>> squared_margin(0.5)
    (0.25, -1.0, 2.0)
    """
    gap = 1.0 - margin
    return gap * gap, -2.0 * gap, 2.0


def hinge(margin: float) -> tuple[float, float, float]:
    """Hinge ``max(1 - m, 0)``; a pair is active when the margin is below one.

    Examples
    --------
    >>> hinge(0.0), hinge(1.0)
    ((1.0, -1.0, 0.0), (0.0, 0.0, 0.0))
    """
    return max(1.0 - margin, 0.0), (-1.0 if margin < 1.0 else 0.0), 0.0


def squared_hinge_margin(margin: float) -> tuple[float, float, float]:
    """Squared hinge ``max(1 - m, 0)^2``.

    Examples
    --------
    >>> squared_hinge_margin(0.0), squared_hinge_margin(2.0)
    ((1.0, -2.0, 2.0), (0.0, 0.0, 0.0))
    """
    gap = max(1.0 - margin, 0.0)
    return gap * gap, 0.0 - 2.0 * gap, (2.0 if margin < 1.0 else 0.0)


def canonical_boosting(margin: float) -> tuple[float, float, float]:
    r"""Canonical boosting loss ``sqrt(1 + m^2/4) - m/2``.

    For large margins it is computed as ``1 / (sqrt(1 + m^2/4) + m/2)``.

    Examples
    --------
    >>> canonical_boosting(0.0)
    (1.0, -0.5, 0.25)
    """
    half = 0.5 * margin
    root = math.sqrt(1.0 + half * half)
    small = 1.0 / (root + abs(half))
    value = small if margin > 0.0 else root + abs(half)
    slope_gap = small / (2.0 * root)
    slope = -slope_gap if margin > 0.0 else slope_gap - 1.0
    return value, slope, 1.0 / (4.0 * root * root * root)


def brier_sigmoid(margin: float) -> tuple[float, float, float]:
    """Squared error of the sigmoid, ``sigmoid(-m)^2``; bounded, not convex.

    Examples
    --------
    >>> brier_sigmoid(0.0)
    (0.25, -0.25, 0.125)
    """
    s, t = sigmoid(margin), sigmoid(-margin)
    return t * t, -2.0 * s * t * t, 2.0 * s * t * t * (2.0 * s - t)


@final
@dataclass(frozen=True, slots=True)
class Logistic(AbstractMarginLoss):
    """Logistic loss ``log(1 + exp(-sigma z))``; see :func:`logistic`.

    Parameters
    ----------
    sigma : float, default=1
        Steepness, greater than 0.
    """

    sigma: float = 1.0

    name: ClassVar[str] = "logistic"
    formula: ClassVar[str] = "log(1 + exp(-sigma z))"
    reference: ClassVar[str] = "Burges et al., ICML 2005"
    proven: ClassVar[tuple[str, ...]] = (*_FALLING, "bounded_curvature")
    closed_form: ClassVar[str | None] = "logistic"
    least_weights: ClassVar[LeastWeights] = (4.0, 4.0)  # at one half
    phi = staticmethod(logistic)
    weight_of = staticmethod(lambda c, sigma: 1.0 / (c * (1.0 - c)))

    def __post_init__(self) -> None:
        positive_number(self.name, "sigma", self.sigma)

    @property
    def rate(self) -> float | None:
        """Sigma."""
        return self.sigma

    @property
    def majorant(self) -> float | None:
        """A quarter of sigma squared."""
        return 0.25 * self.sigma**2


def _exponential_expected(margin: float) -> float:
    e = exp(-abs(margin))
    return 2.0 * e / (1.0 + e * e)


@final
@dataclass(frozen=True, slots=True)
class Exponential(AbstractMarginLoss):
    """Exponential loss ``exp(-z)``; see :func:`exponential`."""

    name: ClassVar[str] = "exponential"
    formula: ClassVar[str] = "exp(-z)"
    reference: ClassVar[str] = "Freund et al., JMLR 2003"
    proven: ClassVar[tuple[str, ...]] = _FALLING
    closed_form: ClassVar[str | None] = "exponential"
    link_rate: ClassVar[float | None] = 2.0
    least_weights: ClassVar[LeastWeights] = (4.0, 4.0)  # at one half
    phi = staticmethod(exponential)
    expected_of = staticmethod(_exponential_expected)
    weight_of = staticmethod(lambda c: 0.5 * (c * (1.0 - c)) ** -1.5)


@dataclass(frozen=True, slots=True)
class _AbstractSquaredMargin(AbstractMarginLoss):
    """A loss that is ``(1 - z)^2`` below one, with its link and weight function."""

    majorant: ClassVar[float] = 2.0
    least_weights: ClassVar[LeastWeights] = (8.0, None)
    weight_of = staticmethod(lambda c: np.full_like(c, 8.0))

    def inverse_link(self, scores: FloatArray) -> FloatArray:
        """Return (1 + v) / 2, clipped to probabilities."""
        return np.clip((1.0 + scores) / 2.0, 0.0, 1.0)

    def link(self, probabilities: FloatArray) -> FloatArray:
        """Return 2 eta - 1."""
        return 2.0 * probabilities - 1.0


@final
@dataclass(frozen=True, slots=True)
class SquaredMargin(_AbstractSquaredMargin):
    """Squared loss of the margin ``(1 - z)^2``; see :func:`squared_margin`."""

    name: ClassVar[str] = "squared_margin"
    formula: ClassVar[str] = "(1 - z)^2"
    reference: ClassVar[str] = "Menon and Williamson, COLT 2014, App. E"
    proven: ClassVar[tuple[str, ...]] = (
        "proper",
        "differentiable",
        "convex",
        "bounded_below",
        "parabola",
    )
    closed_form: ClassVar[str | None] = "squared_margin"
    phi = staticmethod(squared_margin)


@final
@dataclass(frozen=True, slots=True)
class Hinge(AbstractMarginLoss):
    """Hinge loss ``max(1 - z, 0)``; see :func:`hinge`. No curvature, no link."""

    name: ClassVar[str] = "hinge"
    formula: ClassVar[str] = "max(1 - z, 0)"
    reference: ClassVar[str] = "Joachims, KDD 2002"
    proven: ClassVar[tuple[str, ...]] = ("convex", "decreasing", "bounded_below")
    differentiable: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    curvature_trait: ClassVar[str] = "heuristic"
    exact_curvature: ClassVar[bool] = False
    closed_form: ClassVar[str | None] = "hinge"
    phi = staticmethod(hinge)
    expected_of: ClassVar[float] = 1.0  # a scale, not a bound


@final
@dataclass(frozen=True, slots=True)
class SquaredHingeMargin(_AbstractSquaredMargin):
    """Squared hinge ``max(1 - z, 0)^2``; see :func:`squared_hinge_margin`."""

    name: ClassVar[str] = "squared_hinge_margin"
    formula: ClassVar[str] = "max(1 - z, 0)^2"
    reference: ClassVar[str] = "Menon and Williamson, COLT 2014, App. E"
    proven: ClassVar[tuple[str, ...]] = (*_FALLING, "bounded_curvature")
    smooth: ClassVar[bool] = False
    closed_form: ClassVar[str | None] = "squared_hinge"
    phi = staticmethod(squared_hinge_margin)
    expected_of: ClassVar[float] = 2.0


@final
@dataclass(frozen=True, slots=True)
class CanonicalBoosting(AbstractMarginLoss):
    """Canonical boosting loss; see :func:`canonical_boosting`."""

    name: ClassVar[str] = "canonical_boosting"
    formula: ClassVar[str] = "sqrt(1 + z^2/4) - z/2"
    reference: ClassVar[str] = "Menon and Williamson, COLT 2014, Table 1 (sign corrected)"
    proven: ClassVar[tuple[str, ...]] = (*_FALLING, "bounded_curvature")
    majorant: ClassVar[float] = 0.25
    least_weights: ClassVar[LeastWeights] = (4.0, None)  # at one half
    phi = staticmethod(canonical_boosting)
    weight_of = staticmethod(lambda c: 0.5 * (c * (1.0 - c)) ** -1.5)

    def inverse_link(self, scores: FloatArray) -> FloatArray:
        """Return 1/2 + v / (4 sqrt(1 + v^2/4))."""
        return 0.5 + scores / (4.0 * np.sqrt(1.0 + scores**2 / 4.0))

    def link(self, probabilities: FloatArray) -> FloatArray:
        """Return (2 eta - 1) / sqrt(eta (1 - eta))."""
        return (2.0 * probabilities - 1.0) / np.sqrt(probabilities * (1.0 - probabilities))


def _brier_expected(margin: float) -> float:
    product = sigmoid(margin) * sigmoid(-margin)
    return 2.0 * product * product


@final
@dataclass(frozen=True, slots=True)
class BrierSigmoid(AbstractMarginLoss):
    """Squared error of the sigmoid; see :func:`brier_sigmoid`. Bounded, not convex."""

    name: ClassVar[str] = "brier_sigmoid"
    formula: ClassVar[str] = "sigmoid(-z)^2"
    reference: ClassVar[str] = "Brier, Monthly Weather Review 1950"
    proven: ClassVar[tuple[str, ...]] = (
        "proper",
        "differentiable",
        "decreasing",
        "bounded_below",
        "bounded_curvature",
    )
    link_rate: ClassVar[float | None] = 1.0
    convex: ClassVar[bool] = False
    exact_curvature: ClassVar[bool] = False
    least_weights: ClassVar[LeastWeights] = (2.0, 2.0)  # everywhere
    phi = staticmethod(brier_sigmoid)
    expected_of = staticmethod(_brier_expected)
    weight_of = staticmethod(lambda c: np.full_like(c, 2.0))
