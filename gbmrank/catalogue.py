"""What is registered: listing and adding."""

from typing import Any, TypeVar

from gbmrank.losses import AbstractLoss
from gbmrank.losses.base import ScalarFunction
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.registry import LOSSES, METRICS, OBJECTIVES, UTILITIES, Entry, Registry
from gbmrank.utilities import AbstractUtility

__all__ = [
    "list_losses",
    "list_metrics",
    "list_objectives",
    "list_utilities",
    "register_loss",
    "register_metric",
    "register_objective",
    "register_utility",
]

L = TypeVar("L", bound=type[AbstractLoss] | ScalarFunction)
U = TypeVar("U", bound=type[AbstractUtility])
C = TypeVar("C", bound=type[AbstractObjective])
M = TypeVar("M", bound=type[AbstractMetric])


def list_losses() -> list[Entry[AbstractLoss]]:
    """Return the registered losses with their origin; imports no plugin."""
    return _listed(LOSSES)


def list_utilities() -> list[Entry[AbstractUtility]]:
    """Return the registered utilities with their origin; imports no plugin."""
    return _listed(UTILITIES)


def list_objectives() -> list[Entry[AbstractObjective]]:
    """Return the registered objectives with their origin; imports no plugin."""
    return _listed(OBJECTIVES)


def list_metrics() -> list[Entry[AbstractMetric]]:
    """Return the registered metrics with their origin; imports no plugin."""
    return _listed(METRICS)


def register_loss(cls: L) -> L:
    """Register a loss for this process; use as a decorator.

    Parameters
    ----------
    cls : function or type
        A function ``(z, alpha=0.5, ...) -> (value, first, second)`` of the margin, compiled
        into every template, or a subclass of ``AbstractLoss``.

    Examples
    --------
    >>> import gbmrank
    >>> @gbmrank.register_loss
    ... def cauchy(z, c=1.0):
    ...     gap = 1.0 - z
    ...     q = c * c + gap * gap
    ...     bend = 2.0 * c * c * (c * c - 3.0 * gap * gap) / q**3
    ...     return gap * gap / q, -2.0 * c * c * gap / q**2, bend
    >>> grad, _ = gbmrank.objective("ranknet", loss="cauchy(c=2)").gradients([1, 0], [0.0, 0.0])
    >>> grad
    array([-0.32,  0.32])
    """
    LOSSES.register(cls)
    return cls


def register_utility(cls: U) -> U:
    """Register a utility class for this process; use as a decorator."""
    UTILITIES.register(cls)
    return cls


def register_objective(cls: C) -> C:
    """Register an objective class for this process; use as a decorator."""
    OBJECTIVES.register(cls)
    return cls


def register_metric(cls: M) -> M:
    """Register a metric class for this process; use as a decorator."""
    METRICS.register(cls)
    return cls


def _listed(registry: Registry[Any]) -> list[Entry[Any]]:
    return [entry for entries in registry.entries.values() for entry in entries]
