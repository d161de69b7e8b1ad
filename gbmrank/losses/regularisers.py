"""Regularisers of scores for the linear loss: strictly convex, coercive, differentiable."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, final

import numpy as np

from gbmrank.errors import ParameterError
from gbmrank.numerics import exp
from gbmrank.types import FloatArray

__all__ = ["BUILTIN_REGULARISERS", "AbstractRegulariser", "Cosh", "PowerOf", "Square"]

_BESIDE_ZERO = 1e-12


@dataclass(frozen=True, slots=True)
class AbstractRegulariser(ABC):
    """A penalty r of one score.

    ``function`` is a plain function ``(x, *params) -> (value, first, second)`` and
    ``inverse`` that of its derivative; the dataclass fields are their parameters. It must
    be strictly convex, grow faster than any line and have a derivative everywhere: with a
    kink the linear loss loses its order.
    """

    name: ClassVar[str]
    formula: ClassVar[str] = ""
    function: ClassVar[Any]
    inverse: ClassVar[Any]  # (slope, *params) -> the score at which the derivative has it
    even: ClassVar[bool] = False  # the same curvature everywhere

    @property
    def params(self) -> tuple[float, ...]:
        """Parameters as the compiled function receives them."""
        return tuple(float(getattr(self, field.name)) for field in fields(self))

    @abstractmethod
    def inverse_slope(self, slope: FloatArray) -> FloatArray:
        """Return the score at which the derivative has this value."""


def _square(x: float) -> tuple[float, float, float]:
    return x * x, 2.0 * x, 2.0


def _power(x: float, q: float) -> tuple[float, float, float]:
    size = abs(x)
    if size == 0.0:  # where the curvature of q below 2 has a pole, it is taken beside it
        return 0.0, 0.0, (q * (q - 1.0) * _BESIDE_ZERO ** (q - 2.0) if q <= 2.0 else 0.0)
    value = size**q
    slope = q * value / size
    return value, (slope if x > 0.0 else -slope), (q - 1.0) * slope / size


def _half(slope: float) -> float:
    return 0.5 * slope


def _power_inverse(slope: float, q: float) -> float:
    root = (abs(slope) / q) ** (1.0 / (q - 1.0))
    return root if slope > 0.0 else -root


def _cosh_inverse(slope: float) -> float:
    return math.asinh(slope)


def _cosh(x: float) -> tuple[float, float, float]:
    up, down = 0.5 * exp(x), 0.5 * exp(-x)
    return up + down, up - down, up + down


@final
@dataclass(frozen=True, slots=True)
class Square(AbstractRegulariser):
    """``x^2``: the linear loss becomes least squares."""

    name: ClassVar[str] = "square"
    formula: ClassVar[str] = "x^2"
    even: ClassVar[bool] = True
    function = staticmethod(_square)
    inverse = staticmethod(_half)

    def inverse_slope(self, slope: FloatArray) -> FloatArray:
        """Return half of it."""
        return slope / 2.0


@final
@dataclass(frozen=True, slots=True)
class PowerOf(AbstractRegulariser):
    """``|x|^q``.

    Parameters
    ----------
    q : float, default=3
        Above 1. Above 2 the curvature at zero is zero; below 2 it is unbounded, and the one at
        1e-12 is returned there.
    """

    q: float = 3.0

    name: ClassVar[str] = "power"
    formula: ClassVar[str] = "|x|^q"
    function = staticmethod(_power)
    inverse = staticmethod(_power_inverse)

    def __post_init__(self) -> None:
        if not 1.0 < self.q < math.inf:
            raise ParameterError(
                f"power: q must be above 1 (else scores are not held), got {self.q}"
            )

    def inverse_slope(self, slope: FloatArray) -> FloatArray:
        """Return sgn(g) (|g| / q)^(1 / (q - 1))."""
        return np.sign(slope) * (np.abs(slope) / self.q) ** (1.0 / (self.q - 1.0))


@final
@dataclass(frozen=True, slots=True)
class Cosh(AbstractRegulariser):
    """``cosh x``."""

    name: ClassVar[str] = "cosh"
    formula: ClassVar[str] = "cosh x"
    function = staticmethod(_cosh)
    inverse = staticmethod(_cosh_inverse)

    def inverse_slope(self, slope: FloatArray) -> FloatArray:
        """Return the inverse hyperbolic sine."""
        return np.arcsinh(slope)


BUILTIN_REGULARISERS: tuple[type[AbstractRegulariser], ...] = (Square, PowerOf, Cosh)
