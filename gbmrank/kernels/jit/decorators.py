"""The compiler's settings for kernels, and the functions of :mod:`gbmrank.numerics` inside them.

``entry`` marks functions that Python calls, without the interpreter lock; ``inner`` and
``separate`` those that kernels call. All may fuse multiply-adds, and never assume that values are
finite. ``fast_entry`` may reorder sums, too. A vectorised loop and its scalar twin then differ in
their last bits, so nothing may choose between them at run time, as the compiler does by the
distance of two arrays if indices may be negative: the arrays of such a kernel come through
:func:`columns`.

Compiled loops use versions of the numerics without branches and library calls, so that loops can
be vectorised; they are accurate to a few units in the last place. They are emitted into the
kernel as instructions: as functions, they would be compiled one by one. ``exp`` reduces its
argument to ``k log 2 + r`` with ``|r| <= log(2)/2``, sums the polynomial of degree 11 that is
nearest to ``exp(r)`` there (error 1.3e-17) and adds ``k`` to the exponent bits; ``log1p_unit``
sums the series of ``2 artanh(x / (2 + x))``.

What is imported from ``numba.core`` shortens a first start and is not needed for any result.
"""

import contextlib
import gc
import time
from collections.abc import Callable
from functools import partialmethod
from typing import Any, TypeVar

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, lower_builtin, register_jitable, type_callable

from gbmrank import numerics
from gbmrank.kernels.jit import cache

F = TypeVar("F", bound=Callable[..., Any])
# Division by zero must follow IEEE rules: a check would keep loops from being vectorised.
STRICT: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
_FAST: dict[str, Any] = STRICT | {"fastmath": {"reassoc", "contract", "nsz", "arcp"}}
# Only kernels call these, so wrappers that unpack Python objects are not needed.
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_INLINED: dict[str, Any] = {"forceinline": True, **_NO_WRAPPERS}
# Passes for closures, with blocks, array expressions and functions inlined before they are typed.
IDLE = (
    "DeadBranchPrune",
    "InlineClosureLikes",
    "InlineOverloads",
    "NopythonRewrites",
    "WithLifting",
)
_ITEMS = {types.boolean: types.uint8}  # what is in memory, where that is another type
_LOG2_E = 1.4426950408889634
_LOG_2_HIGH = 0.693147180369123816490
_LOG_2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer in the low bits
_OF_EXP = (  # (exp(r) - 1 - r) / r^2, highest power first
    *(2.51003767988125e-08, 2.762007713646922e-07, 2.7557268478279004e-06, 2.480152131972762e-05),
    *(0.00019841269863041851, 0.0013888888917198419, 0.008333333333330065, 0.04166666666662416),
    *(0.16666666666666669, 0.5000000000000001),
)
_PIPELINE: dict[str, Any] = {}

with contextlib.suppress(Exception):  # done at the first call, which a broken plugin would end
    from numba.core import entrypoints

    entrypoints.init_all()

with contextlib.suppress(ImportError):
    from numba.core.compiler import CompilerBase, DefaultPassBuilder  # to leave out idle passes
    from numba.core.compiler_machinery import PassManager

    class _Pipeline(CompilerBase):  # type: ignore[misc]
        """Numba's passes without the idle ones; where these fail, all."""

        def define_pipelines(self) -> list[Any]:
            default = DefaultPassBuilder.define_nopython_pipeline(self.state)
            short = PassManager("kernels")
            for kind, purpose in default.passes:
                if kind.__name__ not in IDLE:
                    short.add_pass(kind, purpose)
            short.finalize()
            return [short, default]

        def compile_extra(self, function: Any) -> Any:  # forgets why the short pipeline failed
            return super().compile_extra(function)._replace(typing_error=None)

    _PIPELINE["pipeline_class"] = _Pipeline

with contextlib.suppress(ImportError):
    from numba.core import event  # to pause the collector, which would scan compilers' objects

    class _Compilation(event.Listener):  # type: ignore[misc]
        """Pauses the collector while one of our functions is compiled, and reports kernels."""

        def __init__(self) -> None:
            self._begun: list[tuple[bool, float]] = []  # under the compiler's lock

        def on_start(self, event: Any) -> None:
            self._begun.append((gc.isenabled(), time.perf_counter()))
            if event.data["dispatcher"].py_func.__module__.startswith("gbmrank."):
                gc.disable()

        def on_end(self, event: Any) -> None:
            collects, begin = self._begun.pop()
            if collects:
                gc.enable()
            kernel = event.data["dispatcher"].py_func
            if not self._begun and kernel.__module__.startswith(cache.FILLED):
                cache.report(kernel.__name__, time.perf_counter() - begin)

    event.register("numba:compile", _Compilation())


def _kernel(function: F, options: dict[str, Any]) -> F:
    compiled: Any = numba.njit(no_cfunc_wrapper=True, **_PIPELINE, **options)(function)
    if function.__module__.startswith(cache.FILLED):
        name = f"{function.__module__.removeprefix(cache.FILLED)}.{function.__name__}"
        cache.attach(compiled, name)
    return compiled


def entry(function: F) -> F:
    """Compile a kernel that Python calls; cached on disk, without the interpreter lock."""
    return _kernel(function, STRICT)


def fast_entry(function: F) -> F:
    """Compile like :func:`entry`, and let sums be reordered; arrays come through `columns`."""
    return _kernel(function, _FAST)


def inner(function: F) -> F:
    """Compile a function into the kernels that call it, with their settings."""
    return numba.njit(inline="always", **STRICT)(function)


def separate(function: F) -> F:
    """Compile a large function that only kernels call, once for all its calls."""
    register_jitable(**_NO_WRAPPERS, **_PIPELINE, **STRICT)(function)
    return function


def slot(function: F, fast: bool) -> F:
    """Compile a function that fills a slot of a template, perhaps of a plugin: with all passes."""
    options = _FAST if fast else STRICT
    return numba.njit(**_INLINED, **options)(function)


def callee(function: Any) -> None:
    """Let a slot call a plain function."""
    register_jitable(**_INLINED, **STRICT)(function)


@intrinsic  # type: ignore[untyped-decorator]
def columns(typingctx: Any, arrays: Any) -> Any:
    """Return a tuple with its arrays as pointers, which need a tenth of the code to access items.

    Field names and values that are not arrays stay. Pointers have no length and no negative
    indices. Arrays must be contiguous.
    """
    kinds = [_pointer(one) for one in arrays]
    if None in kinds:
        return None
    named = isinstance(arrays, types.BaseNamedTuple)
    result = types.NamedTuple(kinds, arrays.instance_class) if named else types.Tuple(kinds)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = []
        for place, (kind, pointer) in enumerate(zip(arrays, kinds, strict=True)):
            value = builder.extract_value(args[0], place)
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, value)
                value = builder.bitcast(array.data, context.get_value_type(pointer))
            data.append(value)
        return context.make_tuple(builder, signature.return_type, data)

    return result(arrays), build


def _pointer(kind: Any) -> Any:
    """Return the type of the pointer to an array, None for one that has gaps."""
    if not isinstance(kind, types.Array):
        return kind
    return types.CPointer(_ITEMS.get(kind.dtype, kind.dtype)) if kind.layout == "C" else None


class _Number:
    """A float64 of the kernel that is being compiled; operations stay in the order written."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def _with(self, other: "_Number | float", operation: str) -> "_Number":
        # Explicit flags keep an instruction from inheriting those of the surrounding kernel.
        write, value = getattr(self.builder, operation), self._value_of(other)
        return _Number(self.builder, write(self.value, value, flags=["contract"]))

    def _value_of(self, other: "_Number | float") -> Any:
        return other.value if isinstance(other, _Number) else ir.Constant(ir.DoubleType(), other)

    __add__ = partialmethod(_with, operation="fadd")
    __sub__ = partialmethod(_with, operation="fsub")
    __mul__ = partialmethod(_with, operation="fmul")
    __truediv__ = partialmethod(_with, operation="fdiv")

    def __neg__(self) -> "_Number":
        return _Number(self.builder, self.builder.fneg(self.value))

    def __abs__(self) -> "_Number":
        size = self.builder.module.declare_intrinsic("llvm.fabs", [ir.DoubleType()])
        return _Number(self.builder, self.builder.call(size, [self.value]))

    def choose(self, sign: str, limit: float, yes: "_Number | float", no: "_Number") -> "_Number":
        """One of two numbers, by how this one compares; NaN compares as no."""
        found = self.builder.fcmp_ordered(sign, self.value, self._value_of(limit))
        return _Number(self.builder, self.builder.select(found, self._value_of(yes), no.value))

    def polynomial(self, *coefficients: float) -> "_Number":
        """Evaluate a polynomial here, highest power first."""
        total = self * coefficients[0] + coefficients[1]
        for coefficient in coefficients[2:]:
            total = total * self + coefficient
        return total

    def scaled_by_power(self, shifted: "_Number") -> "_Number":
        """Return this times ``2**k`` by adding k to the exponent; ``shifted`` is ``k + _ROUND``."""
        build, int64 = self.builder, ir.IntType(64)
        power = build.shl(build.bitcast(shifted.value, int64), int64(52))
        bits = build.add(build.bitcast(self.value, int64), power)
        return _Number(build, build.bitcast(bits, ir.DoubleType()))


def _exp(x: _Number) -> _Number:
    x = x.choose("<", -700.0, -700.0, x)
    x = x.choose(">", 700.0, 700.0, x)
    shifted = x * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    p = r.polynomial(*_OF_EXP)
    return (p * r * r + r + 1.0).scaled_by_power(shifted)


def _log1p_unit(x: _Number) -> _Number:
    y = x / (x + 2.0)
    z = y * y
    total = y + y * z * z.polynomial(*(1.0 / n for n in range(33, 1, -2)))
    return total * 2.0


def _sigmoid(x: _Number) -> _Number:
    e = _exp(-abs(x))  # seen to be that of -x, too
    return x.choose(">=", 0.0, 1.0, e) / (e + 1.0)


def _softplus(x: _Number) -> _Number:
    return x.choose("<", 0.0, 0.0, x) + _log1p_unit(_exp(-abs(x)))


def _write_inline(function: Callable[[float], float], formula: Callable[[_Number], Any]) -> None:
    """Inline the formula of a function of the numerics into kernels that call it."""

    @type_callable(function)  # type: ignore[untyped-decorator]
    def type_of(context: Any) -> Any:
        return lambda x: types.float64 if isinstance(x, types.Number) else None

    @lower_builtin(function, types.Number)  # type: ignore[untyped-decorator]
    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x = context.cast(builder, args[0], signature.args[0], types.float64)
        return formula(_Number(builder, x)).value


for _formula in (_exp, _log1p_unit, _sigmoid, _softplus):
    _write_inline(getattr(numerics, _formula.__name__[1:]), _formula)
