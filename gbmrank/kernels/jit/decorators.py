"""The compiler's settings for kernels, and the functions of :mod:`gbmrank.numerics` inside them.

``entry`` marks functions that Python calls: compiled code is cached on disk, and the interpreter
lock is released. ``inner`` marks functions that only kernels call; called from Python they run as
Python functions. Both may fuse multiply-adds, and never assume that values are finite. They may
neither create nor return arrays, so no reference counting is compiled, which would be a quarter of
the code; ``allocating`` and ``separate`` may.

``fast_entry`` and ``fast_inner`` may reorder sums, too. A vectorised loop and its scalar twin then
differ in their last bits, so nothing may choose between them at run time. The compiler lets the
distance of two arrays decide where indices may be negative. Therefore all arrays of such a kernel
come through :func:`columns`.

Compiled loops use versions of the numerics without branches and library calls, so that loops can
be vectorised; they are accurate to a few units in the last place. They are emitted into the
kernel as instructions: as functions, they would be compiled one by one. ``exp`` reduces its
argument to ``k log 2 + r`` with ``|r| <= log(2)/2``, sums the polynomial of degree 11 that is
nearest to ``exp(r)`` there (error 1.3e-17) and adds ``k`` to the exponent bits; ``log1p_unit``
sums the series of ``2 artanh(x / (2 + x))``.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import entrypoints
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic, lower_builtin, type_callable

from gbmrank import numerics
from gbmrank.kernels.jit import notice
from gbmrank.kernels.jit.cache import FILLED, KernelCache
from gbmrank.kernels.jit.compiler import without_collector

F = TypeVar("F", bound=Callable[..., Any])
# Division by zero must follow IEEE rules: a check would keep loops from being vectorised.
_LOOSE: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
_STRICT: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
# Only kernels call these, so wrappers that unpack Python objects are not needed.
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
INLINED: dict[str, Any] = {"nogil": True, "forceinline": True, **_NO_WRAPPERS, **_STRICT}
_ENTRY: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
# Passes for closures, with blocks, array expressions and functions inlined before they are typed.
_IDLE = (
    "DeadBranchPrune",
    "InlineClosureLikes",
    "InlineInlinables",
    "InlineOverloads",
    "NopythonRewrites",
    "WithLifting",
)
# Passes that give each value of a name its own type. LLVM distinguishes the values by itself.
_FOR_TYPES = ("ReconstructSSA", "PreLowerStripPhis")
_ITEMS = {types.boolean: types.uint8}  # what is in memory, where that is another type
_NO_ARRAYS: dict[str, Any] = {"_nrt": False}
_SCALARS = (types.Number, types.Boolean, types.CPointer)
_call_types: dict[tuple[Any, tuple[Any, ...]], Any] = {}  # by function and types of arguments
_LOG2_E = 1.4426950408889634
_LOG_2_HIGH = 0.693147180369123816490
_LOG_2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer in the low bits


# Numba does this once, at the first call, which would fail if the entry points of any installed
# distribution cannot be read.
with contextlib.suppress(Exception):
    entrypoints.init_all()


def _refresh_once(context: Any) -> None:
    """Install the compiler's registries once; by default this is repeated for 250 methods."""
    with global_compiler_lock:
        context.refresh = lambda: None
        try:
            type(context).refresh(context)
        finally:
            del context.refresh


@contextlib.contextmanager
def _remembered_calls(context: Any) -> Iterator[None]:
    """Cache the types of calls such as ``a + b``, instead of trying dozens of templates."""
    if "resolve_function_type" in vars(context):  # a kernel that another one calls
        yield
        return
    resolve = context.resolve_function_type

    def remembered(function: Any, args: Any, kws: Any) -> Any:
        if kws or not all(isinstance(one, _SCALARS) for one in args):
            return resolve(function, args, kws)
        key = (function, tuple(args))
        if key not in _call_types:
            found = resolve(function, args, kws)
            if found is None:
                return None
            _call_types[key] = found
        return _call_types[key]

    context.resolve_function_type = remembered
    try:
        yield
    finally:
        del context.resolve_function_type


class _Pipeline(CompilerBase):  # type: ignore[misc]
    """The compiler's passes without those that kernels do not need."""

    def __init__(self, typing_context: Any, target_context: Any, *rest: Any) -> None:
        _refresh_once(target_context)
        super().__init__(typing_context, target_context, *rest)

    def compile_extra(self, function: Any) -> Any:
        """Compile a function, under the compiler's lock."""
        with global_compiler_lock, _remembered_calls(self.state.typingctx):
            compiled = super().compile_extra(function)
        return compiled._replace(typing_error=None)  # that of the short pipeline, if it failed

    def define_pipelines(self) -> list[Any]:
        """Return the short pipeline, and the one for kernels in which a name has two types."""
        return [self._passes_without(*_IDLE, *_FOR_TYPES), self._passes_without(*_IDLE)]

    def _passes_without(self, *names: str) -> PassManager:
        passes = PassManager("kernels")
        for kind, purpose in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if kind.__name__ not in names:
                passes.add_pass(kind, purpose)
        passes.finalize()
        return passes


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function that Python calls."""

    def compile(self, signature: Any) -> Any:
        start, before = time.perf_counter(), self.stats.cache_misses.total()
        with without_collector():
            compiled = super().compile(signature)
        if self.stats.cache_misses.total() > before:
            notice.compiled(self.py_func.__name__, time.perf_counter() - start)
        return compiled


class _Source(JITCodeLibrary):  # type: ignore[misc]
    """Code of a function inside kernels: optimised, and turned into machine code, with theirs."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _SourcePipeline(_Pipeline):
    """The passes up to the machine code, which nobody would run."""

    def __init__(self, typing: Any, target: Any, _: Any, args: Any, *rest: Any) -> None:
        super().__init__(typing, target, _Source(target.codegen(), "inside"), args, *rest)
        self.state.flags.no_compile = True


class _Inside(CPUDispatcher):  # type: ignore[misc]
    """A function without a Python entry point; called from Python it runs uncompiled."""

    def __call__(self, *args: Any) -> Any:
        return self.py_func(*args)

    def add_overload(self, compiled: Any) -> None:
        """Let kernels call a function that has no machine code of its own."""
        if compiled.entry_point is not None:
            super().add_overload(compiled)
            return
        source = compiled.library
        self.overloads[compiled.signature.args] = compiled._replace(entry_point=source)
        self.targetctx.insert_user_function(source, compiled.fndesc, [source])

    def compile(self, signature: Any) -> Any:
        compiled = super().compile(signature)
        if not self.targetoptions.get("_nrt", True):
            for made in self.overloads.values():
                _check_no_arrays(self.py_func.__name__, made.signature.return_type)
        return compiled


def _check_no_arrays(name: str, returned: Any) -> None:
    """Raise TypeError for returned arrays without reference counts: memory would be freed twice."""
    if isinstance(returned, types.Array):
        raise TypeError(f"{name} returns an array: decorate it with separate, not with inner")
    for part in returned if isinstance(returned, types.BaseTuple) else ():
        _check_no_arrays(name, part)


_OURS: dict[str, Any] = {"pipeline_class": _Pipeline}
_SOURCE: dict[str, Any] = {"pipeline_class": _SourcePipeline}


def _inside(function: F, options: dict[str, Any]) -> F:
    return _as(_Inside, numba.njit(nogil=True, **_NO_WRAPPERS, **options)(function))


def _as(kind: type[CPUDispatcher], compiled: F) -> F:
    if isinstance(compiled, CPUDispatcher):  # unless the compiler is switched off
        compiled.__class__ = kind
    return compiled


def _kernel(function: F, **options: Any) -> F:
    compiled = _as(_Kernel, numba.njit(**_ENTRY, **_OURS, **options)(function))
    module = function.__module__
    if isinstance(compiled, _Kernel) and module.startswith(FILLED):
        name = f"{module.removeprefix(FILLED)}.{function.__name__}"
        compiled._cache = KernelCache(name)
    return compiled


def entry(function: F) -> F:
    """Compile a kernel that Python calls; cached on disk, without the interpreter lock.

    It must neither create arrays nor call functions that return one: they would never be freed.
    """
    return _kernel(function, **_NO_ARRAYS, **_STRICT)


def fast_entry(function: F) -> F:
    """Compile like :func:`entry`, and let sums be reordered; arrays come through `columns`."""
    return _kernel(function, **_NO_ARRAYS, **_LOOSE)


def allocating(function: F) -> F:
    """Compile a kernel that creates arrays, like :func:`entry`; this takes longer."""
    return _kernel(function, **_STRICT)


def inner(function: F) -> F:
    """Compile a function that only kernels call and that neither creates nor returns arrays."""
    return _inside(function, {"forceinline": True, **_SOURCE, **_NO_ARRAYS, **_STRICT})


def fast_inner(function: F) -> F:
    """Compile like :func:`inner`, for a :func:`fast_entry`."""
    return _inside(function, {"forceinline": True, **_SOURCE, **_NO_ARRAYS, **_LOOSE})


def separate(function: F) -> F:
    """Compile a function that only kernels call and that creates arrays or is large."""
    return _inside(function, {**_SOURCE, **_STRICT})


def slot(function: F, fast: bool) -> F:
    """Compile a function that fills a slot of a template; that of a plugin may create arrays."""
    return _inside(function, {"forceinline": True, **(_LOOSE if fast else _STRICT)})


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

    def _with(self, operation: str, other: "_Number | float") -> "_Number":
        # Explicit flags keep an instruction from inheriting those of the surrounding kernel.
        value = getattr(self.builder, operation)(
            self.value, self._value_of(other), flags=["contract"]
        )
        return _Number(self.builder, value)

    def _value_of(self, other: "_Number | float") -> Any:
        return other.value if isinstance(other, _Number) else ir.Constant(ir.DoubleType(), other)

    def __add__(self, other: "_Number | float") -> "_Number":
        return self._with("fadd", other)

    def __sub__(self, other: "_Number | float") -> "_Number":
        return self._with("fsub", other)

    def __mul__(self, other: "_Number | float") -> "_Number":
        return self._with("fmul", other)

    def __truediv__(self, other: "_Number | float") -> "_Number":
        return self._with("fdiv", other)

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
    p = r.polynomial(
        2.51003767988125e-08,
        2.762007713646922e-07,
        2.7557268478279004e-06,
        2.480152131972762e-05,
        0.00019841269863041851,
        0.0013888888917198419,
        0.008333333333330065,
        0.04166666666662416,
        0.16666666666666669,
        0.5000000000000001,
    )
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


def _write_inline(
    function: Callable[[float], float], formula: Callable[[_Number], _Number]
) -> None:
    """Inline the formula of a function of the numerics into kernels that call it."""

    @type_callable(function)  # type: ignore[untyped-decorator]
    def type_of(context: Any) -> Any:
        return lambda x: types.float64 if isinstance(x, types.Number) else None

    @lower_builtin(function, types.Number)  # type: ignore[untyped-decorator]
    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x = context.cast(builder, args[0], signature.args[0], types.float64)
        return formula(_Number(builder, x)).value


_write_inline(numerics.exp, _exp)
_write_inline(numerics.log1p_unit, _log1p_unit)
_write_inline(numerics.sigmoid, _sigmoid)
_write_inline(numerics.softplus, _softplus)
