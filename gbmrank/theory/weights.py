"""Proper composite losses from a weight function w(c): say which cost ratios matter."""

import math
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from typing import Any

import numpy as np

from gbmrank.errors import ParameterError
from gbmrank.losses.base import ScalarFunction
from gbmrank.losses.composite import AbstractCompositeLoss
from gbmrank.numerics import MAX_EXPONENT, expit, logit
from gbmrank.types import FloatArray

__all__ = ["AbstractWeightLoss", "loss_from_weight"]

_REACH = 18.0  # beyond, 1 - sigmoid has too few digits for a user's w(c)
_NODES = 4001


@dataclass(frozen=True, slots=True)
class AbstractWeightLoss(AbstractCompositeLoss):
    """A composite loss whose partial losses are tables; see :func:`loss_from_weight`."""


def loss_from_weight(
    weight: Callable[[FloatArray], FloatArray], *, rate: float = 1.0, name: str = "weighted"
) -> AbstractCompositeLoss:
    r"""Build the strictly proper composite loss with a given weight function.

    With the link ``q(v) = sigmoid(rate v)``,

    .. math::
        \ell_1(v) = \int_{q(v)}^1 (1 - c) w(c)\, dc, \qquad
        \ell_{-1}(v) = \int_0^{q(v)} c\, w(c)\, dc.

    Slopes are tabulated where ``|rate v| <= 18`` and interpolated by cubic splines (relative
    error about 1e-9 for smooth w); beyond, they go on exponentially. Value and derivatives
    belong to one another exactly. It works wherever a composite loss does: pointwise,
    bipartite, push, pairwise.

    Parameters
    ----------
    weight : callable
        w(c) for an array of c in (0, 1); positive, with finite integrals above.
    rate : float, default=1
        Steepness of the link.
    name : str, default="weighted"
        Shown in texts.

    Returns
    -------
    AbstractCompositeLoss
        An instance to give as ``loss=``.

    Examples
    --------
    >>> loss = loss_from_weight(lambda c: 1 / (c * (1 - c)))  # the logistic loss
    >>> value, slope, bend = loss.partials[0](0.0)
    >>> round(value, 6), round(slope, 6), round(bend, 6)
    (0.693147, -0.5, 0.25)
    """
    if not 0 < rate < math.inf:
        raise ParameterError(f"loss_from_weight: rate must be above 0, got {rate}")
    reach = _REACH / rate
    nodes = np.linspace(-reach, reach, _NODES)
    q, rest = expit(rate * nodes), expit(-rate * nodes)
    values = np.asarray(weight(q), dtype=np.float64) * np.ones(_NODES)
    if not np.all(np.isfinite(values)) or not np.all(values > 0):
        raise ParameterError("loss_from_weight: w(c) must be finite and positive inside (0, 1)")
    density = values * rate * q * rest
    positive = _tabulated(nodes, -rest * density, at_end=True)
    negative = _tabulated(nodes, q * density, at_end=False)

    def link(_: Any, probabilities: FloatArray) -> FloatArray:
        return logit(probabilities) / rate

    def inverse_link(_: Any, scores: FloatArray) -> FloatArray:
        return expit(rate * scores)

    def weight_function(_: Any, probabilities: FloatArray) -> FloatArray:
        return np.asarray(weight(probabilities), dtype=np.float64)

    curvature, convex = _expected(positive, negative), _convex(positive, negative, reach)
    traits = {
        "name": name,
        "formula": "l1' = -(1 - q) w(q) q', l-1' = q w(q) q'",
        "reference": "Menon and Williamson, COLT 2014, sec. 2; weight of the caller",
        "convex": convex,
        "positive": staticmethod(positive),
        "negative": staticmethod(negative),
        "link": link,
        "inverse_link": inverse_link,
        "weight_function": weight_function,
        "expected_curvature": property(lambda _: curvature),
        "exact_curvature": convex,
    }
    made: Any = make_dataclass(
        "WeightLoss", [], bases=(AbstractWeightLoss,), namespace=traits, frozen=True, slots=True
    )
    built: AbstractCompositeLoss = made()
    return built


def _tabulated(nodes: FloatArray, slopes: FloatArray, *, at_end: bool) -> ScalarFunction:
    """Return the function with these slopes that vanishes at one end."""
    from scipy.interpolate import CubicSpline

    bends = CubicSpline(nodes, slopes)(nodes, 1)
    width = float(nodes[1] - nodes[0])
    steps = width * (slopes[1:] + slopes[:-1]) / 2.0 + width**2 * (bends[:-1] - bends[1:]) / 12.0
    values = np.concatenate([[0.0], np.cumsum(steps)])
    low, high = float(nodes[0]), float(nodes[-1])
    rate_low, rate_high = float(bends[0] / slopes[0]), float(bends[-1] / slopes[-1])
    # What is left beyond the table, where slopes fall off exponentially.
    if at_end:
        values = values - values[-1] + slopes[-1] / rate_high
    else:
        values = values - values[0] + slopes[0] / rate_low
    first, last = _end(values, slopes, 0, rate_low), _end(values, slopes, -1, rate_high)

    def partial(v: float) -> tuple[float, float, float]:
        if v <= low:
            return _continued(v - low, first[0], first[1], first[2])
        if v >= high:
            return _continued(v - high, last[0], last[1], last[2])
        place = (v - low) / width
        left = min(int(place), len(values) - 2)
        return _between(
            place - left,
            width,
            (float(values[left]), float(slopes[left]), float(bends[left])),
            (float(slopes[left + 1]), float(bends[left + 1])),
        )

    return partial


def _end(
    values: FloatArray, slopes: FloatArray, index: int, rate: float
) -> tuple[float, float, float]:
    return float(values[index]), float(slopes[index]), rate


def _continued(x: float, value: float, slope: float, rate: float) -> tuple[float, float, float]:
    """Slope ``slope exp(rate x)`` with its integral and derivative."""
    z = min(max(rate * x, -MAX_EXPONENT), MAX_EXPONENT)
    grown = slope * math.exp(z)
    area = slope * x if abs(rate) < 1e-12 else slope * math.expm1(z) / rate
    return value + area, grown, rate * grown


def _between(
    t: float,
    width: float,
    left: tuple[float, float, float],
    right: tuple[float, float],
) -> tuple[float, float, float]:
    """Cubic Hermite interpolation of the slope, with its integral and derivative."""
    value, g0, b0 = left
    g1, b1 = right
    b0, b1 = b0 * width, b1 * width
    c2, c3 = 3.0 * (g1 - g0) - 2.0 * b0 - b1, 2.0 * (g0 - g1) + b0 + b1
    slope = g0 + t * (b0 + t * (c2 + t * c3))
    bend = (b0 + t * (2.0 * c2 + 3.0 * t * c3)) / width
    area = width * t * (g0 + t * (b0 / 2.0 + t * (c2 / 3.0 + t * c3 / 4.0)))
    return value + area, slope, bend


def _convex(positive: ScalarFunction, negative: ScalarFunction, reach: float) -> bool:
    probes = np.linspace(-0.9 * reach, 0.9 * reach, 400)
    return all(
        function(float(v))[2] >= -1e-7 * abs(function(float(v))[1])
        for function in (positive, negative)
        for v in probes
    )


def _expected(positive: ScalarFunction, negative: ScalarFunction) -> Callable[..., float]:
    """Second derivative of the conditional risk at the model's own probability."""

    def curvature(v: float) -> float:
        _, a, bend_a = positive(v)
        _, b, bend_b = negative(v)
        return (b * bend_a - a * bend_b) / (b - a)

    return curvature
