"""What a loss is: a scalar penalty that templates sum over items or pairs."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

__all__ = ["AbstractLoss", "AbstractMarginLoss", "ScalarFunction"]

ScalarFunction: TypeAlias = Callable[..., tuple[float, float, float]]
"""``(z, *params) -> (value, first derivative, second derivative)``, compilable."""


@dataclass(frozen=True, slots=True)
class AbstractLoss(ABC):
    """A penalty for scoring too low what is useful or too high what is not.

    The dataclass fields are its parameters; they reach the compiled functions as floats,
    in the order they are declared.
    """

    name: ClassVar[str]
    formula: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    convex: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True

    @property
    def params(self) -> tuple[float, ...]:
        """Parameters as the compiled functions receive them."""
        return tuple(float(getattr(self, field.name)) for field in fields(self))

    @property
    @abstractmethod
    def kappa(self) -> ScalarFunction:
        """Penalty of a pair, as a function of the margin by which the better item leads."""


@dataclass(frozen=True, slots=True)
class AbstractMarginLoss(AbstractLoss):
    """A loss that depends only on the margin by which the right answer leads.

    ``phi`` is a plain function ``(z, *params) -> (value, first, second)``.
    """

    phi: ClassVar[Any]

    @property
    def kappa(self) -> ScalarFunction:
        """The loss itself."""
        return type(self).phi
