"""Convex functions that objectives are composed of: generators, outer functions, regularisers.

A generator defines a Bregman loss together with its link. An outer function is an increasing
function of a useless item's mean loss in a push. A regulariser of the scores of the linear loss
is strictly convex, coercive and differentiable.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from gbmrank.errors import ParameterError
from gbmrank.losses.base import AbstractParametric, positive_number
from gbmrank.numerics import exp, sigmoid, softplus
from gbmrank.types import FloatArray

_BESIDE_ZERO = 1e-12


@dataclass(frozen=True, slots=True)
class AbstractGenerator(AbstractParametric):
    """Generator of a Bregman loss.

    A separable generator has a plain function ``term(s, v, eta, *params) -> (value, first,
    second)`` with derivatives with respect to the score s, where the slope must be
    ``h(s) (g(s) - v)`` with h > 0 and an increasing link g. Any other one has ``of_query(scores,
    utilities, *params) -> (value, gradient)`` of the arrays of one query, called from Python and
    trained with a constant Hessian; the gradient must be affine in the utilities, and the best
    scores sorted like expected utilities. Set ``proven`` if this is known for every score, with
    its ``reference``. If psi is strongly convex with modulus ``mu``, where the link reaches, the
    regret bound has the constant ``2 / sqrt(mu)``. Utilities are not negative.

    Examples
    --------
    >>> import gbmrank
    >>> from gbmrank.extend import AbstractGenerator
    >>> @dataclass(frozen=True, slots=True)
    ... class Doubled(AbstractGenerator):
    ...     name: ClassVar[str] = "doubled"
    ...     proven: ClassVar[bool] = True
    ...     reference: ClassVar[str] = "twice the squared error"
    ...     mu: ClassVar[float] = 4.0
    ...     @staticmethod
    ...     def term(s, v, eta):
    ...         return 2.0 * (s - v) ** 2, 4.0 * (s - v), 4.0
    >>> made = gbmrank.objective("bregman", loss=Doubled(), target="dcg")
    >>> verdict = gbmrank.theory.calibration(made, "dcg@10")
    >>> verdict.status, verdict.constant.value()
    ('calibrated', 1.0)
    """

    reference: ClassVar[str] = ""
    term: ClassVar[Any] = None
    of_query: ClassVar[Any] = None
    mu: ClassVar[float | None] = None
    needs_eta: ClassVar[bool] = False
    shift_invariant: ClassVar[bool] = False
    expected: ClassVar[Any] = None  # curvature (s, v, eta) to use instead of the exact one
    proven: ClassVar[bool] = False  # of your own: whether the slope is known to have that form


def _squared(s: float, v: float, eta: float) -> tuple[float, float, float]:  # noqa: ARG001
    gap = s - v
    return gap * gap, 2.0 * gap, 2.0


@final
@dataclass(frozen=True, slots=True)
class SquaredGenerator(AbstractGenerator):
    """Sum of squares with the identity link: least squares."""

    name: ClassVar[str] = "squared"
    formula: ClassVar[str] = "sum (u - s)^2"
    mu: ClassVar[float] = 2.0
    term = staticmethod(_squared)


@final
@dataclass(frozen=True, slots=True)
class Softmax(AbstractGenerator):
    """Negative entropy on the simplex with the softmax link, for utilities divided by their sum.

    It preserves the order of the expected normalised utilities, which differs from that of the
    expected utilities if their sum varies; ``softmax_ce`` preserves the latter.
    """

    name: ClassVar[str] = "softmax"
    formula: ClassVar[str] = "KL(u / sum u || softmax(s))"
    mu: ClassVar[float] = 2.0  # on the simplex, by Pinsker's inequality
    shift_invariant: ClassVar[bool] = True


@final
@dataclass(frozen=True, slots=True)
class SoftmaxCE(AbstractGenerator):
    """Cross-entropy of the utilities with the softmax, not divided by their sum."""

    name: ClassVar[str] = "softmax_ce"
    formula: ClassVar[str] = "sum u (LSE(s) - s)"
    shift_invariant: ClassVar[bool] = True


def _poisson(s: float, v: float, eta: float) -> tuple[float, float, float]:  # noqa: ARG001
    e = exp(s)
    return _x_log_x(v) - v * s - v + e, e - v, e


@final
@dataclass(frozen=True, slots=True)
class Poisson(AbstractGenerator):
    """``x log x - x`` with the exponential link: Poisson deviance. Exponents are clipped at 700."""

    name: ClassVar[str] = "poisson"
    formula: ClassVar[str] = "sum u log u - u s - u + exp(s)"
    term = staticmethod(_poisson)


def _binary_entropy(s: float, v: float, eta: float) -> tuple[float, float, float]:
    share = v / eta
    constant = eta * (_x_log_x(share) + _x_log_x(1.0 - share))
    q = sigmoid(s)
    return constant + eta * softplus(s) - v * s, eta * q - v, eta * q * sigmoid(-s)


@final
@dataclass(frozen=True, slots=True)
class BinaryEntropy(AbstractGenerator):
    """Binary entropy with the sigmoid link, for utilities up to eta."""

    name: ClassVar[str] = "binary_entropy"
    formula: ClassVar[str] = "sum eta (H-terms of u/eta) + eta softplus(s) - u s"
    needs_eta: ClassVar[bool] = True
    term = staticmethod(_binary_entropy)


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
class ItakuraSaito(AbstractGenerator):
    """``-log x`` with the exponential link: Itakura-Saito divergence of ``u + eps``.

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


@dataclass(frozen=True, slots=True)
class AbstractOuter(AbstractParametric):
    """Outer function G for ``push(g=...)``: increasing, of a non-negative loss.

    ``function`` is a plain function ``(x, *params) -> (value, first, second)``, which is
    compiled; the dataclass fields are its parameters. Pass an instance of a subclass.

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

    function: ClassVar[Any]


def _outer_power(x: float, p: float) -> tuple[float, float, float]:
    if x <= 0.0:
        return 0.0, (1.0 if p == 1.0 else 0.0), (2.0 if p == 2.0 else 0.0)
    value = x**p
    first = p * value / x
    return value, first, (p - 1.0) * first / x  # x * x would underflow


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
    function = staticmethod(_outer_power)

    def __post_init__(self) -> None:
        positive_number(self.name, "p", self.p)


def _expm1(x: float) -> tuple[float, float, float]:
    e = exp(x)
    return (math.expm1(x) if x < 1.0 else e - 1.0), e, e


@final
@dataclass(frozen=True, slots=True)
class Expm1(AbstractOuter):
    """``exp(x) - 1``: pushes harder than every power."""

    name: ClassVar[str] = "expm1"
    formula: ClassVar[str] = "exp(x) - 1"
    function = staticmethod(_expm1)


BUILTIN_OUTERS: tuple[type[AbstractOuter], ...] = (Power, Expm1)


@dataclass(frozen=True, slots=True)
class AbstractRegulariser(AbstractParametric):
    """A penalty r of one score.

    ``function`` is a plain function ``(x, *params) -> (value, first, second)`` and
    ``inverse`` is the inverse of its derivative; the dataclass fields are their parameters. The
    function must be strictly convex, superlinear and differentiable: with a kink the linear
    loss is no longer order-preserving.
    """

    function: ClassVar[Any]
    inverse: ClassVar[Any]  # (slope, *params) -> the score at which the derivative has it
    even: ClassVar[bool] = False  # the same curvature everywhere

    @abstractmethod
    def inverse_slope(self, slope: FloatArray) -> FloatArray:
        """Return the score at which the derivative has this value."""


def _square(x: float) -> tuple[float, float, float]:
    return x * x, 2.0 * x, 2.0


def _half(slope: float) -> float:
    return 0.5 * slope


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


def _power_regulariser(x: float, q: float) -> tuple[float, float, float]:
    size = abs(x)
    if size == 0.0:  # where the curvature of q below 2 has a pole, it is taken beside it
        return 0.0, 0.0, (q * (q - 1.0) * _BESIDE_ZERO ** (q - 2.0) if q <= 2.0 else 0.0)
    value = size**q
    slope = q * value / size
    return value, (slope if x > 0.0 else -slope), (q - 1.0) * slope / size


def _power_inverse(slope: float, q: float) -> float:
    root = (abs(slope) / q) ** (1.0 / (q - 1.0))
    return root if slope > 0.0 else -root


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
    function = staticmethod(_power_regulariser)
    inverse = staticmethod(_power_inverse)

    def __post_init__(self) -> None:
        if not 1.0 < self.q < math.inf:
            raise ParameterError(
                f"power: q must be above 1 (else scores are not held), got {self.q}"
            )

    def inverse_slope(self, slope: FloatArray) -> FloatArray:
        """Return sgn(g) (|g| / q)^(1 / (q - 1))."""
        return np.sign(slope) * (np.abs(slope) / self.q) ** (1.0 / (self.q - 1.0))


def _cosh_inverse(slope: float) -> float:
    return math.asinh(slope)


def _cosh(x: float) -> tuple[float, float, float]:
    up, down = 0.5 * exp(x), 0.5 * exp(-x)
    return up + down, up - down, up + down


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


def _x_log_x(x: float) -> float:
    return x * math.log(x) if x > 0.0 else 0.0
