"""Prices of a useless item's mean loss in a push: increasing functions around it."""

import math
from abc import ABC
from dataclasses import dataclass, fields
from typing import Any, ClassVar, final

from gbmrank.losses.base import positive_number
from gbmrank.numerics import exp

__all__ = ["BUILTIN_OUTERS", "AbstractOuter", "Expm1", "Power"]


@dataclass(frozen=True, slots=True)
class AbstractOuter(ABC):
    """An increasing function G of a loss that is not negative, for ``push(g=...)``.

    ``function`` is a plain function ``(x, *params) -> (value, first, second)``, compiled
    into the sums; the dataclass fields are its parameters. Pass an object of a subclass.

    Examples
    --------
    >>> import gbmrank
    >>> from gbmrank.extend import AbstractOuter
    >>> def cube(x, scale):
    ...     return scale * x**3, 3.0 * scale * x**2, 6.0 * scale * x
    >>> @dataclass(frozen=True, slots=True)
    ... class Cube(AbstractOuter):
    ...     scale: float = 1.0
    ...     name: ClassVar[str] = "cube"
    ...     function = staticmethod(cube)
    >>> gbmrank.objective("push", g=Cube(scale=2.0)).template.g
    Cube(scale=2.0)
    """

    name: ClassVar[str]
    formula: ClassVar[str] = ""
    function: ClassVar[Any]

    @property
    def params(self) -> tuple[float, ...]:
        """Parameters as the compiled function receives them."""
        return tuple(float(getattr(self, field.name)) for field in fields(self))


def _power(x: float, p: float) -> tuple[float, float, float]:
    if x <= 0.0:
        return 0.0, (1.0 if p == 1.0 else 0.0), (2.0 if p == 2.0 else 0.0)
    value = x**p
    first = p * value / x
    return value, first, (p - 1.0) * first / x  # x * x would underflow


def _expm1(x: float) -> tuple[float, float, float]:
    e = exp(x)
    return (math.expm1(x) if x < 1.0 else e - 1.0), e, e


@final
@dataclass(frozen=True, slots=True)
class Power(AbstractOuter):
    """``x^p``: the p-norm push.

    Parameters
    ----------
    p : float, default=4
        At least 1 for a convex risk; larger values concentrate on the top of the list.
    """

    p: float = 4.0

    name: ClassVar[str] = "power"
    formula: ClassVar[str] = "x^p"
    function = staticmethod(_power)

    def __post_init__(self) -> None:
        positive_number(self.name, "p", self.p)


@final
@dataclass(frozen=True, slots=True)
class Expm1(AbstractOuter):
    """``exp(x) - 1``: pushes harder than every power."""

    name: ClassVar[str] = "expm1"
    formula: ClassVar[str] = "exp(x) - 1"
    function = staticmethod(_expm1)


BUILTIN_OUTERS: tuple[type[AbstractOuter], ...] = (Power, Expm1)
