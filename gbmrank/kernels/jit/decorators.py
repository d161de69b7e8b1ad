"""The compiler's settings for kernels, and the functions of :mod:`gbmrank.numerics` inside them.

``entry`` marks what Python calls: compiled code is kept on disk, the interpreter lock is
released. ``inner`` marks what only other kernels call; called from Python it is a Python
function. Both may reorder sums and fuse multiply-adds, and never assume that values are finite.

Compiled loops get versions of the numerics without branches and library calls, which keep no
loop from being vectorised, accurate to a few units in the last place. ``exp`` reduces its
argument to ``k log 2 + r`` with ``|r| <= log(2)/2``, sums the polynomial of degree 11 that is
nearest to ``exp(r)`` there (error 1.3e-17) and adds ``k`` to the exponent bits; ``log1p_unit``
sums the series of ``2 artanh(x / (2 + x))``.
"""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numba
from numba import types
from numba.core import entrypoints
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic, overload

from gbmrank import numerics
from gbmrank.kernels.jit import notice
from gbmrank.kernels.jit.cache import FILLED, KernelCache

__all__ = ["INLINED", "entry", "exact_inner", "exp", "inner", "merged", "separate"]

F = TypeVar("F", bound=Callable[..., Any])
# Division by zero must follow IEEE rules: a check would keep loops from being vectorised.
_LOOSE: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
# Nothing but kernels calls these: what unpacks Python objects would be compiled in vain.
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
INLINED: dict[str, Any] = {"nogil": True, "forceinline": True, **_NO_WRAPPERS, **_LOOSE}
_ENTRY: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
_STRICT: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
_LOG2_E = 1.4426950408889634
_LOG_2_HIGH = 0.693147180369123816490
_LOG_2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer in the low bits


# Numba does this at the first call, once. A distribution whose entry points cannot be read, whoever
# it is from, would make that call fail.
with contextlib.suppress(Exception):
    entrypoints.init_all()


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
        start, before = time.perf_counter(), self.stats.cache_misses.total()
        with _without_collector():
            compiled = super().compile(signature)
        if self.stats.cache_misses.total() > before:
            notice.compiled(self.py_func.__name__, time.perf_counter() - start)
        return compiled


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


def _kernel(function: F, **options: Any) -> F:
    compiled = _as(_Kernel, numba.njit(**_ENTRY, **_LOOSE, **options)(function))
    module = function.__module__
    if isinstance(compiled, _Kernel) and module.startswith(FILLED):
        name = f"{module.removeprefix(FILLED)}.{function.__name__}"
        compiled._cache = KernelCache(name)
    return compiled


def entry(function: F) -> F:
    """Compile a kernel that Python calls; cached on disk, without the interpreter lock."""
    return _kernel(function)


def merged(function: F) -> F:
    """Compile like :func:`entry`, and as a part of each kernel that calls it.

    A kernel that others call is optimised again in each of them, which takes longer than to
    compile it in its place; for large functions with one or two callers.
    """
    return _kernel(function, inline="always")


def inner(function: F) -> F:
    """Compile a function that only kernels call."""
    return _inside(function, {"forceinline": True, **_LOOSE})


def separate(function: F) -> F:
    """Compile a function that only kernels call and that is too large to be copied inline."""
    return _inside(function, _LOOSE)


def exact_inner(function: F) -> F:
    """Compile a function whose rounding steps must stay in the order they are written."""
    return _inside(function, {"forceinline": True, **_STRICT})


@intrinsic  # type: ignore[untyped-decorator]
def _scale_by_power(typingctx: Any, value: Any, shifted: Any) -> Any:
    """``value * 2**k`` where ``shifted`` is ``k + _ROUND``: adds k to the exponent bits."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        int64 = context.get_value_type(types.int64)
        bits = builder.bitcast(args[0], int64)
        power = builder.shl(builder.bitcast(args[1], int64), int64(52))
        return builder.bitcast(builder.add(bits, power), context.get_value_type(types.float64))

    return types.float64(types.float64, types.float64), build


@exact_inner
def exp(x: float) -> float:
    """Exponential of x clipped to plus or minus 700."""
    # NaN stays NaN. min and max would be functions more to compile.
    x = -700.0 if x < -700.0 else x
    x = 700.0 if x > 700.0 else x
    shifted = x * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    p = 2.51003767988125e-08
    p = p * r + 2.762007713646922e-07
    p = p * r + 2.7557268478279004e-06
    p = p * r + 2.480152131972762e-05
    p = p * r + 0.00019841269863041851
    p = p * r + 0.0013888888917198419
    p = p * r + 0.008333333333330065
    p = p * r + 0.04166666666662416
    p = p * r + 0.16666666666666669
    p = p * r + 0.5000000000000001
    p = p * r * r + r
    return _scale_by_power(1.0 + p, shifted)


@exact_inner
def log1p_unit(x: float) -> float:
    """Logarithm of 1 + x for x in [0, 1]."""
    y = x / (2.0 + x)
    z = y * y
    p = 1.0 / 33.0
    p = p * z + 1.0 / 31.0
    p = p * z + 1.0 / 29.0
    p = p * z + 1.0 / 27.0
    p = p * z + 1.0 / 25.0
    p = p * z + 1.0 / 23.0
    p = p * z + 1.0 / 21.0
    p = p * z + 1.0 / 19.0
    p = p * z + 1.0 / 17.0
    p = p * z + 1.0 / 15.0
    p = p * z + 1.0 / 13.0
    p = p * z + 1.0 / 11.0
    p = p * z + 1.0 / 9.0
    p = p * z + 1.0 / 7.0
    p = p * z + 1.0 / 5.0
    p = p * z + 1.0 / 3.0
    return 2.0 * (y + y * z * p)


@exact_inner
def _sigmoid(x: float) -> float:
    e = exp(-abs(x))
    return (1.0 if x >= 0.0 else e) / (1.0 + e)


@exact_inner
def _softplus(x: float) -> float:
    return (0.0 if x < 0.0 else x) + log1p_unit(exp(-abs(x)))


@overload(numerics.exp, strict=False)  # type: ignore[untyped-decorator]
def _exp_in_kernels(x: Any) -> Any:
    return lambda x: exp(x)  # noqa: PLW0108  (the compiler wants a function of x)


@overload(numerics.log1p_unit, strict=False)  # type: ignore[untyped-decorator]
def _log1p_in_kernels(x: Any) -> Any:
    return lambda x: log1p_unit(x)  # noqa: PLW0108  (the compiler wants a function of x)


@overload(numerics.sigmoid, strict=False)  # type: ignore[untyped-decorator]
def _sigmoid_in_kernels(x: Any) -> Any:
    return lambda x: _sigmoid(x)  # noqa: PLW0108  (the compiler wants a function of x)


@overload(numerics.softplus, strict=False)  # type: ignore[untyped-decorator]
def _softplus_in_kernels(x: Any) -> Any:
    return lambda x: _softplus(x)  # noqa: PLW0108  (the compiler wants a function of x)
