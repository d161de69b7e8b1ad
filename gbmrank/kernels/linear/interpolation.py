"""How the linear-time engine interpolates a loss.

The engine interpolates the loss and its derivatives by polynomials inside cells. The accuracy
depends only on the loss, not on the data, so it is measured once: :func:`make_plan` searches
the widest cell that meets the required accuracy, verifies it over all differences that matter,
and determines from where on the loss is a straight line. A loss with a kink or a jump in its
curvature meets no accuracy and is rejected.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev

from gbmrank.types import FloatArray

Loss = Callable[..., tuple[float, float, float]]

ORDER = 12
"""Chebyshev nodes per cell."""
NODES: FloatArray = -np.cos((2.0 * np.arange(ORDER) + 1.0) * np.pi / (2.0 * ORDER))

_UNBOUNDED = 2**50  # a band wider than the distance of any two cells
_WIDTHS: list[float] = [m * 2.0**k for k in range(-16, 5) for m in (4.0, 5.0, 6.0, 7.0)]
_NEAR = 3  # cells on each side that a width must pass before all of them are checked
_CHECKED = 64  # widest cells on each side over which every difference is checked
_HALVINGS = 4  # how often a width may be halved when a feature lies further out
_FAR_GROWTH = 1.25  # beyond, every cell that starts this much further out is checked
_MAX_GAP = 16_384  # cells between which a loss without straight tails may act
_UNEXPLAINED = 0.1  # error of the logarithm of that growth
_NEGLIGIBLE = 1e-18  # of the loss's size near zero: what a tail may leave out
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)  # the loss's own rounding, same unit
# Interpolating in both items instead of one multiplies the error by at most this.
_BOTH_ITEMS = 4.0

_PROBES: FloatArray = -np.cos(np.arange(ORDER + 1) * np.pi / ORDER)
_INTERPOLATE: FloatArray = chebyshev.chebvander(_PROBES, ORDER - 1) @ np.linalg.inv(
    chebyshev.chebvander(NODES, ORDER - 1)
)


class Tail(NamedTuple):
    """Line ``value + slope * difference`` that replaces the loss far on one side."""

    band: int  # cells at most this far apart are computed, others use the line
    value: float
    slope: float


class LinearPlan(NamedTuple):
    """How the engine treats one loss; made by :func:`make_plan`."""

    width: float  # of a cell; a whole number of few bits times a power of two
    reach: float  # largest difference of scores for which the accuracy was verified
    lower: Tail  # far negative differences
    upper: Tail  # far positive differences


class PlanReport(NamedTuple):
    """Result of :func:`make_plan`."""

    plan: LinearPlan | None  # None when the loss is rejected
    error: float  # largest measured, relative to the largest value in the cell
    reason: str  # why the loss is rejected; empty otherwise


class _Sampler:
    """The loss on arrays: value, first, second and squared first derivative."""

    def __init__(self, loss: Loss, params: tuple[float, ...]) -> None:
        self.loss = loss
        self._params = params
        self.size: FloatArray = np.abs(self(np.linspace(-2.0, 2.0, 9))).max(axis=0)

    def __call__(self, points: FloatArray) -> FloatArray:
        rows = np.array([self._at(z) for z in points.ravel().tolist()])
        rows = np.column_stack([rows, rows[:, 1] ** 2])
        return rows.reshape(*points.shape, 4)

    def _at(self, z: float) -> tuple[float, float, float]:
        try:
            return self.loss(z, *self._params)
        except (ArithmeticError, ValueError):
            return math.nan, math.nan, math.nan


def make_plan(loss: Loss, params: tuple[float, ...] = (), accuracy: float = 1e-10) -> PlanReport:
    """Measure how to interpolate a loss ``(z, *params) -> (value, first, second)``.

    ``accuracy`` is the required error of value, slope and curvature relative to the sum of the
    absolute values of their terms.
    """
    # Losses may overflow far out; that only shortens the reach.
    with np.errstate(all="ignore"):
        sample = _Sampler(loss, params)
        widest = _widest_near_zero(sample, accuracy)
        if widest is None:
            return PlanReport(None, math.inf, _not_smooth(loss, accuracy, 0.0))
        return _check_everywhere(sample, widest, accuracy)


def _check_everywhere(sample: _Sampler, widest: float, accuracy: float) -> PlanReport:
    """Find the first width, from the widest on, that is accurate at all near differences."""
    checked = _CHECKED * widest
    error, where = math.inf, 0.0
    for width in reversed(_WIDTHS):
        if not widest / 2.0**_HALVINGS <= width <= widest:
            continue
        # A kink stays where it is: most widths fail there, without a look elsewhere.
        if (
            _worst_error(sample, width, np.arange(where - widest, where + widest, width))[0]
            > accuracy
        ):
            continue
        error, where = _worst_error(sample, width, np.arange(-checked, checked + width, width))
        if error <= accuracy:
            return _finish(sample, width, checked, accuracy, error)
    return PlanReport(None, error, _not_smooth(sample.loss, accuracy, where))


def _not_smooth(loss: Loss, accuracy: float, place: float) -> str:
    name = getattr(loss, "__name__", "this loss")
    return (
        f"{name} is not smooth enough near {place:.6g} to be interpolated to a relative "
        f"accuracy of {accuracy:g}; use the engine that visits all pairs, or the sorted one "
        "for hinges"
    )


def _cell_errors(sample: _Sampler, width: float, centers: FloatArray) -> FloatArray:
    """Error of interpolation in each cell, relative to the largest value there.

    An error below the rounding of the loss near zero is ignored.
    """
    at_nodes = sample(centers[:, None] + 0.5 * width * NODES)
    at_probes = sample(centers[:, None] + 0.5 * width * _PROBES)
    error = np.abs(_INTERPOLATE @ at_nodes - at_probes).max(axis=1)
    largest = np.abs(at_probes).max(axis=1)
    excess = _BOTH_ITEMS * np.maximum(error - _ROUNDING * sample.size.max(), 0.0)
    ratio = np.where(largest == 0.0, 0.0, excess / largest)
    return np.where(np.isfinite(ratio), ratio, np.inf).max(axis=1)


def _worst_error(sample: _Sampler, width: float, centers: FloatArray) -> tuple[float, float]:
    errors = _cell_errors(sample, width, centers)
    worst = int(np.argmax(errors))
    return float(errors[worst]), float(centers[worst])


def _widest_near_zero(sample: _Sampler, accuracy: float) -> float | None:
    """Widest cell that is accurate around zero, by bisection."""
    low, high = -1, len(_WIDTHS)
    while high - low > 1:
        middle = (low + high) // 2
        width = _WIDTHS[middle]
        centers = np.linspace(-_NEAR * width, _NEAR * width, 2 * _NEAR + 1)
        if _worst_error(sample, width, centers)[0] <= accuracy:
            low = middle
        else:
            high = middle
    return _WIDTHS[low] if low >= 0 else None


def _finish(
    sample: _Sampler, width: float, checked: float, accuracy: float, error: float
) -> PlanReport:
    """Find the tails and the reach of a width that passed."""
    sides = {sign: _find_tail(sample, width, checked, sign) for sign in (-1.0, 1.0)}
    reach = math.inf
    for sign, tail in sides.items():
        if tail.band == _UNBOUNDED:
            reach = min(reach, _find_reach(sample, width, checked * sign, accuracy))
    return PlanReport(LinearPlan(width, reach, sides[-1.0], sides[1.0]), error, "")


def _find_tail(sample: _Sampler, width: float, checked: float, sign: float) -> Tail:
    """Straight line on one side, and from how many cells on it may be used."""
    near = np.arange(0.0, checked, 0.5 * width)
    beyond = checked * np.array([1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0])
    points = sign * np.concatenate([near, beyond])
    value, first, second, _ = sample(points).T
    anchor = len(points) - 3
    slope = _drop(first[anchor], sample.size[1])
    start = _drop(value[anchor] - slope * points[anchor], sample.size[0])
    eps = np.finfo(np.float64).eps
    misfit = np.abs(value - start - slope * points)
    straight = (
        (np.abs(second) <= _NEGLIGIBLE * sample.size[2])
        & (np.abs(first - slope) <= _NEGLIGIBLE * sample.size[1] + eps * abs(slope))
        & (misfit <= _NEGLIGIBLE * sample.size[0] + 4.0 * eps * np.abs(value))
    )
    bent = np.flatnonzero(~straight)
    begin = int(bent[-1]) + 1 if len(bent) else 0
    if begin >= len(near):
        return Tail(_UNBOUNDED, 0.0, 0.0)
    return Tail(math.ceil(near[begin] / width) + 1, start, slope)


def _find_reach(sample: _Sampler, width: float, checked: float, accuracy: float) -> float:
    """Largest difference up to which a side without a straight tail stays accurate."""
    steps = int(math.log(_MAX_GAP * width / abs(checked)) / math.log(_FAR_GROWTH))
    powers = np.arange(max(steps, 0) + 1, dtype=np.float64)
    centers: FloatArray = np.asarray(checked * _FAR_GROWTH**powers, np.float64)
    failed = np.flatnonzero(
        (_cell_errors(sample, width, centers) > accuracy) | ~_explained(sample, centers)
    )
    last = failed[0] - 1 if len(failed) else len(centers) - 1
    return abs(float(centers[max(last, 0)])) - width


def _explained(sample: _Sampler, points: FloatArray) -> npt.NDArray[np.bool_]:
    """Return up to where the derivatives explain the growth of the loss from point to point.

    Losses clip their exponents, which causes a kink far out that sampled cells may miss; the
    growth of the loss between the samples reveals it.
    """
    value, first, second, _ = sample(points).T
    good = np.ones(len(points), np.bool_)
    for function, derivative in ((value, first), (first, second)):
        rate = derivative / function
        grown = np.diff(np.log(np.abs(function)))
        expected = 0.5 * np.diff(points) * (rate[1:] + rate[:-1])
        good[1:] &= np.abs(grown - expected) <= _UNEXPLAINED
    return good


def _drop(number: float, size: float) -> float:
    return float(number) if abs(number) > _NEGLIGIBLE * size else 0.0
