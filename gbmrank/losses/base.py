"""What a loss is: a scalar penalty that templates sum over items or pairs.

Everything here is a plain function ``(z, *params) -> (value, first, second)`` of floats.
Templates hand these functions to the kernel compiler; called from Python they work too.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np

from gbmrank.errors import ParameterError
from gbmrank.types import FloatArray

__all__ = [
    "AbstractLoss",
    "AbstractMarginLoss",
    "ScalarFunction",
    "mirrored",
    "pair_penalty",
    "positive_number",
    "with_curvature",
]

ScalarFunction: TypeAlias = Callable[..., tuple[float, float, float]]
"""``(z, *params) -> (value, first derivative, second derivative)``, compilable."""


@dataclass(frozen=True, slots=True)
class AbstractLoss(ABC):
    """A penalty for scoring too low what is useful or too high what is not.

    The dataclass fields are its parameters; they reach the compiled functions as floats,
    in the order they are declared. ``partials`` are the losses of a useful and of a
    useless item; ``kappa`` is the loss of a pair. Either may be refused.
    """

    name: ClassVar[str]
    formula: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    convex: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True
    smooth: ClassVar[bool] = True  # twice differentiable: the linear-time engine may serve it
    curvature_trait: ClassVar[str] = "expected"  # what expected_curvature is; or "heuristic"
    exact_curvature: ClassVar[bool] = True  # the second derivative is positive where it matters
    pair_form: ClassVar[str] = "margin"  # "difference" when it compares utilities too
    closed_form: ClassVar[str | None] = None  # name of the kernels that sum it faster

    @property
    def params(self) -> tuple[float, ...]:
        """Parameters as the compiled functions receive them."""
        return tuple(float(getattr(self, field.name)) for field in fields(self))

    @property
    @abstractmethod
    def partials(self) -> tuple[ScalarFunction, ScalarFunction]:
        """Losses of an item that is useful and of one that is not, as functions of its score."""

    @property
    @abstractmethod
    def kappa(self) -> ScalarFunction:
        """Penalty of a pair, as a function of the margin by which the better item leads."""

    @property
    def expected_curvature(self) -> Callable[..., float] | None:
        """Second derivative of the conditional risk at the model's own probability, or None."""
        return None

    @property
    def constant_curvature(self) -> float | None:
        """The expected curvature where it is the same for every margin, or None."""
        return None

    @property
    def majorant(self) -> float | None:
        """Upper bound of the second derivatives of both partials, or None."""
        return None

    def inverse_link(self, scores: FloatArray) -> FloatArray:
        """Return the probability that a score stands for."""
        raise ParameterError(f"the loss {self.name} has no link, so scores are not probabilities")

    def link(self, probabilities: FloatArray) -> FloatArray:
        """Return the score that stands for a probability."""
        raise ParameterError(f"the loss {self.name} has no link, so scores are not probabilities")

    def weight_function(self, probabilities: FloatArray) -> FloatArray:
        """Return w(c): how much the loss cares about the cost ratio c."""
        raise ParameterError(f"the loss {self.name} has no weight function")


@dataclass(frozen=True, slots=True)
class AbstractMarginLoss(AbstractLoss):
    """A loss that depends only on the margin by which the right answer leads.

    ``phi`` is a plain function ``(z, *params) -> (value, first, second)``.
    """

    phi: ClassVar[Any]

    @property
    def partials(self) -> tuple[ScalarFunction, ScalarFunction]:
        """The loss of the score, and of its negative."""
        phi = type(self).phi
        return phi, mirrored(phi)

    @property
    def kappa(self) -> ScalarFunction:
        """The loss itself."""
        return type(self).phi


@functools.cache
def mirrored(phi: ScalarFunction) -> ScalarFunction:
    """Return ``v -> phi(-v)`` with its derivatives."""

    def mirror(v: float, *params: float) -> tuple[float, float, float]:
        value, first, second = phi(-v, *params)
        return value, -first, second

    return mirror


@functools.cache
def pair_penalty(positive: ScalarFunction, negative: ScalarFunction) -> ScalarFunction:
    """Return ``d -> (positive(d) + negative(-d)) / 2`` with its derivatives."""

    def penalty(d: float, *params: float) -> tuple[float, float, float]:
        value_1, first_1, second_1 = positive(d, *params)
        value_2, first_2, second_2 = negative(-d, *params)
        return 0.5 * (value_1 + value_2), 0.5 * (first_1 - first_2), 0.5 * (second_1 + second_2)

    return penalty


@functools.cache
def with_curvature(phi: ScalarFunction, curvature: Callable[..., float]) -> ScalarFunction:
    """Return ``phi`` with another function in place of its second derivative."""

    def curved(z: float, *params: float) -> tuple[float, float, float]:
        value, first, _ = phi(z, *params)
        return value, first, curvature(z, *params)

    curved.__name__ = getattr(phi, "__name__", "curved")
    return curved


def positive_number(owner: str, name: str, value: float) -> None:
    """Raise ParameterError unless a parameter is a finite number above zero."""
    if not (np.isfinite(value) and value > 0):
        raise ParameterError(f"{owner}: {name} must be a finite number above 0, got {value}")
