"""The decorators where kernels stay plain Python; see :mod:`gbmrank.kernels.jit.compiler`."""

from typing import TypeVar

F = TypeVar("F")
INLINED: dict[str, object] = {}


def entry(function: F) -> F:
    """Leave a function as it is."""
    return function


inner = merged = separate = exact_inner = entry
