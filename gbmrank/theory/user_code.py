"""Calls of functions and parts that are not gbmrank's; a failure is a PluginError with a name."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gbmrank.errors import GbmrankError, PluginError
from gbmrank.losses.base import AbstractParametric, ScalarFunction
from gbmrank.registry.composition import as_metric, as_objective
from gbmrank.registry.guards import is_ours
from gbmrank.types import ArrayLike, FloatArray

P = ParamSpec("P")
T = TypeVar("T")


def sampled(part: AbstractParametric, function: ScalarFunction, at: ArrayLike) -> FloatArray:
    """Return value, first and second derivative of a part's function, shape (..., 3).

    Raises PluginError, with the first number at which a function of yours fails.
    """
    given = np.asarray(at, dtype=np.float64)
    rows, params = np.empty((given.size, 3)), part.params
    with np.errstate(all="ignore"):
        for row, z in zip(rows, given.ravel().tolist(), strict=True):
            try:
                row[:] = function(z, *params)
            except Exception as error:
                if is_ours(type(part)):
                    raise
                raise PluginError(
                    f"{part.name} fails at the margin {z:g}: {error!r}. Theory looks at margins of "
                    "up to 100,000; write it so that no exponential overflows, as exp(-abs(z))"
                ) from error
    return rows.reshape(*given.shape, 3)


def own_parts(part: Any) -> Iterator[Any]:
    """Yield the parts of an objective or a metric, itself included, that are not gbmrank's."""
    if isinstance(part, tuple):
        for each in part:
            yield from own_parts(each)
    elif is_dataclass(part):
        if not is_ours(type(part)):
            yield part
        yield from own_parts(tuple(getattr(part, field.name) for field in fields(part)))
    elif callable(part) and not is_ours(type(part)):
        yield part


def isolated(function: Callable[P, T]) -> Callable[P, T]:
    """Convert exceptions of your parts into a PluginError that names them.

    For functions whose first arguments are an objective and a metric.
    """

    @functools.wraps(function)
    def guarded(*args: P.args, **options: P.kwargs) -> T:
        try:
            return function(*args, **options)
        except GbmrankError:
            raise
        except Exception as error:
            names = dict.fromkeys(_names(args))
            if not names:
                raise
            raise PluginError(f"{' or '.join(names)} fails: {error!r}") from error

    return guarded


def _names(given: tuple[Any, ...]) -> Iterator[str]:
    for part, read in zip(given, (as_objective, as_metric), strict=False):
        with contextlib.suppress(GbmrankError):
            for each in own_parts(read(part)):
                yield str(getattr(each, "name", each))
