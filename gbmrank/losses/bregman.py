"""Generators of Bregman losses: a convex function with the link that goes with it."""

import math
from abc import ABC
from dataclasses import dataclass, fields
from typing import Any, ClassVar, final

from gbmrank.losses.base import positive_number
from gbmrank.numerics import exp, sigmoid, softplus

__all__ = [
    "BUILTIN_GENERATORS",
    "AbstractGenerator",
    "BinaryEntropy",
    "ItakuraSaito",
    "Poisson",
    "Softmax",
    "SoftmaxCE",
    "SquaredGenerator",
]


@dataclass(frozen=True, slots=True)
class AbstractGenerator(ABC):
    """What makes a Bregman loss.

    A separable generator has a plain function ``term(s, v, eta, *params) -> (value, first,
    second)``; the others couple the items of a query through a softmax.
    """

    name: ClassVar[str]
    formula: ClassVar[str] = ""
    term: ClassVar[Any] = None
    needs_eta: ClassVar[bool] = False
    shift_invariant: ClassVar[bool] = False
    expected: ClassVar[Any] = None  # curvature (s, v, eta) to use instead of the exact one

    @property
    def params(self) -> tuple[float, ...]:
        """Parameters as the compiled function receives them."""
        return tuple(float(getattr(self, field.name)) for field in fields(self))


def _x_log_x(x: float) -> float:
    return x * math.log(x) if x > 0.0 else 0.0


def _squared(s: float, v: float, eta: float) -> tuple[float, float, float]:  # noqa: ARG001
    gap = s - v
    return gap * gap, 2.0 * gap, 2.0


def _poisson(s: float, v: float, eta: float) -> tuple[float, float, float]:  # noqa: ARG001
    e = exp(s)
    return _x_log_x(v) - v * s - v + e, e - v, e


def _binary_entropy(s: float, v: float, eta: float) -> tuple[float, float, float]:
    share = v / eta
    constant = eta * (_x_log_x(share) + _x_log_x(1.0 - share))
    q = sigmoid(s)
    return constant + eta * softplus(s) - v * s, eta * q - v, eta * q * sigmoid(-s)


def _itakura_saito(s: float, v: float, eta: float, eps: float) -> tuple[float, float, float]:  # noqa: ARG001
    raised = v + eps
    ratio = raised * exp(-s)
    return ratio + s - math.log(raised) - 1.0, 1.0 - ratio, ratio


def _itakura_saito_expected(
    s: float, v: float, eta: float, eps: float
) -> tuple[float, float, float]:
    value, first, _ = _itakura_saito(s, v, eta, eps)
    return value, first, 1.0


@final
@dataclass(frozen=True, slots=True)
class SquaredGenerator(AbstractGenerator):
    """Sum of squares with the identity: least squares."""

    name: ClassVar[str] = "squared"
    formula: ClassVar[str] = "sum (u - s)^2"
    term = staticmethod(_squared)


@final
@dataclass(frozen=True, slots=True)
class Softmax(AbstractGenerator):
    """Negative entropy on the simplex with the softmax, of utilities divided by their sum.

    It preserves the order of the normalised utilities, which is not that of the utilities
    when their sum varies; ``softmax_ce`` does.
    """

    name: ClassVar[str] = "softmax"
    formula: ClassVar[str] = "KL(u / sum u || softmax(s))"
    shift_invariant: ClassVar[bool] = True


@final
@dataclass(frozen=True, slots=True)
class SoftmaxCE(AbstractGenerator):
    """Cross-entropy of the utilities with the softmax, not divided by their sum."""

    name: ClassVar[str] = "softmax_ce"
    formula: ClassVar[str] = "sum u (LSE(s) - s)"
    shift_invariant: ClassVar[bool] = True


@final
@dataclass(frozen=True, slots=True)
class Poisson(AbstractGenerator):
    """``x log x - x`` with the exponential: Poisson deviance. Exponents are clipped at 700."""

    name: ClassVar[str] = "poisson"
    formula: ClassVar[str] = "sum u log u - u s - u + exp(s)"
    term = staticmethod(_poisson)


@final
@dataclass(frozen=True, slots=True)
class BinaryEntropy(AbstractGenerator):
    """Binary entropy with the sigmoid, for utilities up to eta."""

    name: ClassVar[str] = "binary_entropy"
    formula: ClassVar[str] = "sum eta (H-terms of u/eta) + eta softplus(s) - u s"
    needs_eta: ClassVar[bool] = True
    term = staticmethod(_binary_entropy)


@final
@dataclass(frozen=True, slots=True)
class ItakuraSaito(AbstractGenerator):
    """``-log x`` with the exponential: Itakura-Saito divergence of ``u + eps``.

    Parameters
    ----------
    eps : float, default=1e-3
        Added to every utility, because the divergence needs positive ones.
    """

    eps: float = 1e-3

    name: ClassVar[str] = "itakura_saito"
    formula: ClassVar[str] = "sum (u + eps) exp(-s) + s - log(u + eps) - 1"
    term = staticmethod(_itakura_saito)
    expected = staticmethod(_itakura_saito_expected)

    def __post_init__(self) -> None:
        positive_number(self.name, "eps", self.eps)


BUILTIN_GENERATORS: tuple[type[AbstractGenerator], ...] = (
    SquaredGenerator,
    Softmax,
    SoftmaxCE,
    Poisson,
    BinaryEntropy,
    ItakuraSaito,
)
