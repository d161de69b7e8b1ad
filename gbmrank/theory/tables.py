"""Scalar functions from tables of their slopes, compilable and consistent with themselves."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from gbmrank.losses.base import ScalarFunction
from gbmrank.numerics import MAX_EXPONENT
from gbmrank.types import FloatArray

__all__ = ["Grid", "expected_curvature", "is_convex", "tabulated"]

Tail = tuple[float, float, float, float, float]
"""Where it begins, value, slope, relative rate of the slope, and reach (0: exponential)."""

_STEEPEST = MAX_EXPONENT - 100.0  # leaves room for the factors of an exponential
_FLAT = 1e-5  # a slope that changes less than this over the whole table is constant


@final
@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Scores that are even in ``asinh(steep (v - centre))``: dense inside, wide outside.

    Parameters
    ----------
    nodes : array of shape (n,)
        The scores.
    places : array of shape (n,)
        Their evenly spaced places.
    centre, steep : float
        Of the formula above.
    """

    nodes: FloatArray
    places: FloatArray
    centre: float
    steep: float

    @classmethod
    def between(cls, low: float, high: float, centre: float, steep: float, cells: int) -> "Grid":
        """Return a grid with a number of cells."""
        first, last = math.asinh((low - centre) * steep), math.asinh((high - centre) * steep)
        places = np.linspace(first, last, cells + 1)
        nodes = centre + np.sinh(places) / steep
        nodes[0], nodes[-1] = low, high
        return cls(nodes, places, centre, steep)

    def scaled(self, factor: float) -> "Grid":
        """Return the grid with all scores multiplied."""
        return Grid(self.nodes * factor, self.places, self.centre * factor, self.steep / factor)

    @property
    def stretch(self) -> FloatArray:
        """Derivative of the scores by their places."""
        return np.cosh(self.places) / self.steep


def tabulated(
    grid: Grid, slopes: FloatArray, tail: float, *, vanishes_above: bool
) -> ScalarFunction:
    """Return the function with these slopes that vanishes at one end.

    Parameters
    ----------
    grid : Grid
        Where slopes are known.
    slopes : array of shape (n,)
        Of one sign.
    tail : float
        Its value at the last node of the end where it vanishes.
    vanishes_above : bool
        Which end that is.
    """
    from scipy.interpolate import CubicSpline

    nodes = grid.nodes
    bends = CubicSpline(grid.places, slopes)(grid.places, 1) / grid.stretch
    widths = np.diff(nodes)
    steps = widths * (slopes[1:] + slopes[:-1]) / 2.0 - widths**2 * np.diff(bends) / 12.0
    if vanishes_above:
        values = tail + np.append(np.cumsum(-steps[::-1])[::-1], 0.0)
    else:
        values = tail + np.append(0.0, np.cumsum(steps))
    below = _tail_of(grid, (values, slopes, bends), 0, vanishes=not vanishes_above)
    above = _tail_of(grid, (values, slopes, bends), -1, vanishes=vanishes_above)
    low, high = float(nodes[0]), float(nodes[-1])
    start, step = float(grid.places[0]), float(grid.places[1] - grid.places[0])
    centre, steep, last = grid.centre, grid.steep, len(nodes) - 2

    def partial(v: float) -> tuple[float, float, float]:
        if v <= low:
            return _beyond(v, below)
        if v >= high:
            return _beyond(v, above)
        place = (math.asinh((v - centre) * steep) - start) / step
        left = min(max(int(place), 0), last)
        width = float(nodes[left + 1] - nodes[left])
        return _between(
            (v - float(nodes[left])) / width,
            width,
            (float(values[left]), float(slopes[left]), float(bends[left])),
            (float(slopes[left + 1]), float(bends[left + 1])),
        )

    return partial


def _tail_of(
    grid: Grid, columns: tuple[FloatArray, FloatArray, FloatArray], end: int, *, vanishes: bool
) -> Tail:
    """Choose how slopes go on beyond an end: as an exponential or as a power of the distance."""
    values, slopes, bends = columns
    reach = float(grid.nodes[end]) - grid.centre
    inner = int(np.argmin(np.abs(grid.nodes - grid.centre - 0.8 * reach)))
    rates = [float(bends[at] / slopes[at]) for at in (inner, end)]
    orders = [rates[0] * float(grid.nodes[inner] - grid.centre), rates[1] * reach]
    power = _change(orders) < _change(rates)
    value, slope = float(values[end]), float(slopes[end])
    rate = 0.0 if abs(orders[1]) < _FLAT else rates[1]
    if vanishes:  # exactly, at infinity
        rate = slope / value - (1.0 / reach if power else 0.0)
    return float(grid.nodes[end]), value, slope, rate, reach if power else 0.0


def _change(pair: list[float]) -> float:
    return abs(pair[1] - pair[0]) / max(abs(pair[0]), abs(pair[1]), 1e-300)


def _beyond(v: float, tail: Tail) -> tuple[float, float, float]:
    end, value, slope, rate, reach = tail
    if reach == 0.0:
        return _exponential(v - end, value, slope, rate)
    return _power((v - end) / reach, value, slope, (rate * reach, reach))


def _exponential(x: float, value: float, slope: float, rate: float) -> tuple[float, float, float]:
    """Slope ``slope exp(rate x)`` with its integral and derivative."""
    z = min(max(rate * x, -MAX_EXPONENT), _STEEPEST)
    grown = slope * math.exp(z)
    area = slope * x if abs(rate) < 1e-12 else slope * math.expm1(z) / rate
    return max(value + area, 0.0), grown, rate * grown


def _power(
    u: float, value: float, slope: float, shape: tuple[float, float]
) -> tuple[float, float, float]:
    """Slope ``slope (1 + u)^p`` at a distance of u reaches, with its integral and derivative."""
    p, reach = shape
    far = math.log1p(u)
    z = min(max(p * far, -MAX_EXPONENT), _STEEPEST)
    grown = slope * math.exp(z)
    up = min(max((p + 1.0) * far, -MAX_EXPONENT), _STEEPEST)
    area = slope * reach * (far if abs(p + 1.0) < 1e-12 else math.expm1(up) / (p + 1.0))
    return max(value + area, 0.0), grown, p * grown / (reach * (1.0 + u))


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


def is_convex(grid: Grid, positive: ScalarFunction, negative: ScalarFunction) -> bool:
    """Whether both functions bend upwards, but for the noise of the table."""
    inside = np.linspace(0.0, 1.0, 400) * 0.9 + 0.05
    probes = (inside * (len(grid.nodes) - 1)).astype(np.int64)
    for v, stretch in zip(grid.nodes[probes].tolist(), grid.stretch[probes], strict=True):
        for function in (positive, negative):
            _, slope, bend = function(v)
            if bend * stretch < -1e-5 * abs(slope):
                return False
    return True


def expected_curvature(positive: ScalarFunction, negative: ScalarFunction) -> Callable[..., float]:
    """Second derivative of the conditional risk at the model's own probability."""

    def curvature(v: float) -> float:
        _, a, bend_a = positive(v)
        _, b, bend_b = negative(v)
        return (b * bend_a - a * bend_b) / (b - a)

    return curvature
