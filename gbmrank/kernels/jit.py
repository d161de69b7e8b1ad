"""Compiler settings shared by every kernel.

``entry`` marks what Python calls: compiled code is kept on disk, the interpreter lock is
released. ``inner`` marks what only other kernels call. Both may reorder sums and fuse
multiply-adds, and never assume that values are finite.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["INLINED", "entry", "exact_inner", "inner", "separate"]

F = TypeVar("F", bound=Callable[..., Any])

# Division by zero must follow IEEE rules: a check would keep loops from being vectorised.
_LOOSE: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
INLINED: dict[str, Any] = {"nogil": True, "forceinline": True, **_LOOSE}
_STRICT: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}


def entry(function: F) -> F:
    """Compile a kernel that Python calls; cached on disk, without the interpreter lock."""
    compiled: F = numba.njit(nogil=True, cache=True, **_LOOSE)(function)
    return compiled


def inner(function: F) -> F:
    """Compile a function that only kernels call."""
    compiled: F = numba.njit(**INLINED)(function)
    return compiled


def separate(function: F) -> F:
    """Compile a function that only kernels call and that is too large to be copied inline."""
    compiled: F = numba.njit(nogil=True, **_LOOSE)(function)
    return compiled


def exact_inner(function: F) -> F:
    """Compile a function whose rounding steps must stay in the order they are written."""
    compiled: F = numba.njit(nogil=True, forceinline=True, **_STRICT)(function)
    return compiled
