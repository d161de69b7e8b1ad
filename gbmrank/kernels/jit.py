"""Compiler settings shared by every kernel.

``entry`` marks what Python calls: compiled code is kept on disk, the interpreter lock is
released. ``inner`` marks what only other kernels call; called from Python it is a Python
function. Both may reorder sums and fuse multiply-adds, and never assume that values are finite.
"""

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numba
from numba.core import entrypoints
from numba.core.registry import CPUDispatcher

__all__ = ["INLINED", "entry", "exact_inner", "inner", "merged", "separate"]

F = TypeVar("F", bound=Callable[..., Any])

# Numba does this at the first call, once. A distribution whose entry points cannot be read, whoever
# it is from, would make that call fail.
with contextlib.suppress(Exception):
    entrypoints.init_all()

# Division by zero must follow IEEE rules: a check would keep loops from being vectorised.
_LOOSE: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
# Nothing but kernels calls these: what unpacks Python objects would be compiled in vain.
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
INLINED: dict[str, Any] = {"nogil": True, "forceinline": True, **_NO_WRAPPERS, **_LOOSE}
_STRICT: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Keep the garbage collector from walking over the compiler's objects again and again."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function that Python calls."""

    def compile(self, signature: Any) -> Any:
        with _without_collector():
            return super().compile(signature)


class _Inside(CPUDispatcher):  # type: ignore[misc]
    """A function without a way in from Python, where it runs uncompiled."""

    def __call__(self, *args: Any) -> Any:
        return self.py_func(*args)


def _inside(function: F, options: dict[str, Any]) -> F:
    return _as(_Inside, numba.njit(nogil=True, **_NO_WRAPPERS, **options)(function))


def _as(kind: type[CPUDispatcher], compiled: F) -> F:
    if isinstance(compiled, CPUDispatcher):  # unless the compiler is switched off
        compiled.__class__ = kind
    return compiled


def entry(function: F) -> F:
    """Compile a kernel that Python calls; cached on disk, without the interpreter lock."""
    return _as(_Kernel, numba.njit(nogil=True, cache=True, **_LOOSE)(function))


def merged(function: F) -> F:
    """Compile like :func:`entry`, and as a part of each kernel that calls it.

    A kernel that others call is optimised again in each of them, which takes longer than to
    compile it in its place; for large functions with one or two callers.
    """
    compiled = numba.njit(nogil=True, cache=True, inline="always", **_LOOSE)(function)
    return _as(_Kernel, compiled)


def inner(function: F) -> F:
    """Compile a function that only kernels call."""
    return _inside(function, {"forceinline": True, **_LOOSE})


def separate(function: F) -> F:
    """Compile a function that only kernels call and that is too large to be copied inline."""
    return _inside(function, _LOOSE)


def exact_inner(function: F) -> F:
    """Compile a function whose rounding steps must stay in the order they are written."""
    return _inside(function, {"forceinline": True, **_STRICT})
