"""Turn kernel templates and scalar functions into compiled modules.

A template is a module of this package with *slots*: names it only imports under
``TYPE_CHECKING``, such as ``phi``, the scalar loss. :func:`load` fills the slots with
functions and runs the module under a name made of the hash of everything that can change the
machine code. :mod:`gbmrank.kernels.jit.cache` stores compiled code under that name.

Losses from plugins and notebooks are treated like built-in ones, but are test-compiled first; one
that cannot be compiled is rejected with the offending line. ``GBMRANK_SLOW_PLUGINS=1`` accepts
it: the kernels that need it then run in plain Python, hundreds of times slower.
"""

import contextlib
import gc
import hashlib
import importlib.metadata
import inspect
import linecache
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from gbmrank import numerics
from gbmrank.errors import GbmrankWarning, PluginContractError, warn

Scalar = Callable[..., Any]

SOURCES = Path(__file__).parents[1]
"""Templates are named by their path below this folder; every file in it affects compiled code."""

_PLACE = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)')
_RAISED = re.compile(r"\.*\s*Raised from (?P<file>.+?) \((?P<line>\d+)\)$")
_TELLING = ("Unknown attribute", "Untyped", "Use of unsupported", "Cannot", "Can't unify")
_COLUMNS = ("labels", "scores", "at", "grad", "hess")  # arguments of a function of a query
_PASSING = "gbmrank.kernels._passing."  # of functions that no other process can import
_PLAIN = "gbmrank.kernels._plain."
_DECORATORS = re.compile(r"^from gbmrank\.kernels\.jit\.decorators import (.+)$", re.MULTILINE)
_lock = threading.RLock()  # templates load others while they are loaded
_loaded: dict[tuple[str, tuple[tuple[str, Scalar], ...]], ModuleType] = {}
_registered: set[Scalar] = set()
_warned: set[FunctionType] = set()
_forking = threading.local()  # the locks that a thread holds while it forks


def load(template: str, **slots: Scalar) -> ModuleType:
    """Return the compiled module of a template (below ``gbmrank.kernels``) with its slots filled.

    Entry functions are compiled at their first call and found on disk at the next start of Python.
    """
    key = (template, tuple(sorted(slots.items())))
    with _lock:
        if key not in _loaded:
            _loaded[key] = _import_filled(template, slots)
        return _loaded[key]


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Switch off the garbage collector, which would repeatedly scan the compiler's objects."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def template_path(template: str) -> Path:
    """Return the source file of a template."""
    return SOURCES.joinpath(*template.split(".")).with_suffix(".py")


def check_compiles(function: FunctionType) -> None:
    """Raise PluginContractError, with line and reason, unless a function compiles."""
    import numba

    from gbmrank.kernels.jit.decorators import STRICT

    arguments = list(inspect.signature(function).parameters.values())
    if not arguments or any(one.kind is not one.POSITIONAL_OR_KEYWORD for one in arguments):
        return  # as many arguments as its caller has: nothing to try it with
    names = [one.name for one in arguments]
    column = numba.float64[::1]
    fixed = numba.types.Array(numba.float64, 1, "C", readonly=True)
    kinds = [
        (fixed if name == "labels" else column)
        if names[0] == "labels" and name in _COLUMNS
        else numba.float64
        for name in names
    ]
    try:
        numba.njit(**STRICT)(function).compile(tuple(kinds))
    except Exception as error:
        raise PluginContractError(_explained(function, error)) from error


def _hold_compiler() -> None:
    """Let compiling threads finish before a fork, or a child would wait for their locks forever."""
    numba_lock = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    _forking.locks = [lock for lock in (_lock, numba_lock) if lock is not None]
    for lock in _forking.locks:
        lock.acquire()


def _release_compiler() -> None:
    for lock in reversed(_forking.locks):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_compiler, after_in_parent=_release_compiler, after_in_child=_release_compiler
    )


def _plugin_functions(slots: Iterable[Any]) -> Iterator[FunctionType]:
    """Yield the functions of plugins that fill slots, directly or wrapped by ours."""
    for function in slots:
        if not isinstance(function, FunctionType):
            continue
        if str(function.__module__).split(".", 1)[0] != "gbmrank":
            yield function  # what it calls takes whatever it gives
        else:
            inside = [cell.cell_contents for cell in function.__closure__ or ()]
            yield from _plugin_functions(inside)


def _named(function: FunctionType) -> str:
    module, owner = function.__module__, ""
    with contextlib.suppress(Exception):  # a bad file of any distribution is enough
        owner = next(
            f" of {point.dist.name} {point.dist.version}"
            for group in importlib.metadata.entry_points().groups
            if group.startswith("gbmrank.")
            for point in importlib.metadata.entry_points(group=group)
            if point.module == module and point.dist
        )
    return f"{module}.{function.__qualname__}{owner}"


def _explained(function: FunctionType, error: Exception) -> str:
    file, line = _place(function, error)
    source = linecache.getline(file, line).strip()
    shown = f"\n    {source}" if source else ""
    return (
        f"{_named(function)} cannot be compiled: {_reason(error)}\n  {file}:{line}{shown}\n"
        "write it with numbers, the math module and gbmrank.numerics; or set "
        "GBMRANK_SLOW_PLUGINS=1 to run it in plain Python, hundreds of times slower"
    )


def _reason(error: Exception) -> str:
    """Return the first informative line of the compiler's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    rest = [line for line in lines if not line.startswith("Failed in nopython mode")]
    plain = [line for line in rest if line.startswith(_TELLING)]
    return _RAISED.sub("", (plain or rest or [type(error).__name__])[0])[:300]


def _place(function: FunctionType, error: Exception) -> tuple[str, int]:
    """Return the file and line where compilation failed: in the function or in a callee."""
    own = function.__code__.co_filename
    named = [
        (match["file"], int(match["line"]))
        for pattern in (_PLACE, _RAISED)
        for match in pattern.finditer(str(error))
        if "numba" not in match["file"]
    ]
    loc = getattr(error, "loc", None)
    if named:
        file, line = named[0]
        # The compiler prints paths relative to the working directory.
        same = os.path.basename(file) == os.path.basename(own)
        return (own if same else file), line
    if loc is not None and getattr(loc, "line", None):
        return own, int(loc.line)
    return own, function.__code__.co_firstlineno


def _import_filled(template: str, slots: dict[str, Scalar]) -> ModuleType:
    with without_collector():  # a third of the time of the compiler's own import
        from gbmrank.kernels.jit import (
            cache,
            decorators,  # registers the compiled numerics, too
        )

    digest = hashlib.sha256()
    modules: set[str] = set()
    for name in sorted(slots):
        digest.update(name.encode())
        for part in _code_parts(slots[name], set()):
            digest.update(part)
        # Compiled code imports the modules of all functions inside when it is read.
        own = _modules_of(slots[name], set())
        digest.update(repr(sorted(own)).encode())
        modules |= own
    name = f"{template.replace('.', '_')}_{digest.hexdigest()[:16]}"
    lasting = all(module in sys.modules for module in modules)  # else code from exec()
    if not (lasting and cache.holds(name)) and not _compiles(slots):
        return _import_plain(template, name, slots)
    module = ModuleType(f"{cache.FILLED if lasting else _PASSING}{name}")
    source = template_path(template).read_text(encoding="utf-8")
    fast = "fast_entry" in source
    for slot, function in slots.items():
        _register_callees(function)
        setattr(
            module,
            slot,
            decorators.slot(function, fast) if isinstance(function, FunctionType) else function,
        )
    return _run(module, template, source)


def _run(module: ModuleType, template: str, source: str) -> ModuleType:
    sys.modules[module.__name__] = module
    exec(compile(source, str(template_path(template)), "exec"), vars(module))  # noqa: S102  (ours)
    return module


def _compiles(slots: dict[str, Scalar]) -> bool:
    """Try plugins' functions; False when one fails and may run in Python."""
    for function in _plugin_functions(slots.values()):
        _register_callees(function)
        try:
            check_compiles(function)
        except PluginContractError:
            if os.environ.get("GBMRANK_SLOW_PLUGINS", "") in ("", "0"):
                raise
            if function not in _warned:
                _warned.add(function)
                warn(
                    f"{_named(function)} is not compiled and runs in plain Python, hundreds of "
                    "times slower (GBMRANK_SLOW_PLUGINS is set)",
                    GbmrankWarning,
                )
            return False
    return True


def _import_plain(template: str, name: str, slots: dict[str, Scalar]) -> ModuleType:
    """Return a template that is plain Python, with plain functions in its slots."""
    path = template_path(template)
    source = path.read_text(encoding="utf-8")
    imported = _DECORATORS.search(source)
    if imported is None:
        raise ImportError(f"{path} imports no decorators, so it has no plain form")
    module = ModuleType(f"{_PLAIN}{name}")
    vars(module).update(slots)
    vars(module).update(dict.fromkeys(imported[1].split(", "), _undecorated))
    # The empty line keeps the numbers of lines in messages.
    return _run(module, template, _DECORATORS.sub("", source))


def _undecorated(function: Scalar) -> Scalar:
    """Replace the decorators if kernels stay plain Python."""
    return function


def _register_callees(function: Any) -> None:
    """Let compiled code call the plain Python functions that a slot's function uses."""
    from gbmrank.kernels.jit.decorators import callee as register_callee

    for callee in _used_by(function):
        plain = isinstance(callee, FunctionType) and callee.__module__ != numerics.__name__
        if plain and callee not in _registered:
            _registered.add(callee)
            register_callee(callee)
            _register_callees(callee)


def _used_by(function: Any) -> Iterator[Any]:
    """Yield the values of the globals and closure cells that a Python function refers to."""
    if isinstance(function, FunctionType):
        for cell in function.__closure__ or ():
            yield cell.cell_contents
        for name in _names_in(function.__code__):
            yield function.__globals__.get(name)


def _names_in(code: CodeType) -> Iterator[str]:
    """Yield the global and attribute names of a function and of the functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _modules_of(value: Any, seen: set[int]) -> set[str]:
    """Return the names of the modules that a function and its callees are from."""
    function = getattr(value, "py_func", value)
    if not isinstance(function, FunctionType) or id(function) in seen:
        return set()
    seen.add(id(function))
    inside = (_modules_of(used, seen) for used in _used_by(function))
    return {str(function.__module__)}.union(*inside)


def _code_parts(value: Any, seen: set[int]) -> Iterator[bytes]:
    """Yield everything that the machine code of a function depends on: code, constants, callees."""
    function = getattr(value, "py_func", value)
    if isinstance(value, np.ndarray):
        yield repr((value.dtype.str, value.shape)).encode() + value.tobytes()
        return
    if not isinstance(function, FunctionType):
        yield re.sub(r" at 0x[0-9a-f]+", "", repr(value)).encode()
        return
    if id(function) in seen:
        return
    seen.add(id(function))
    yield from _code_object_parts(function.__code__)
    yield repr(function.__defaults__).encode()
    names = list(_names_in(function.__code__))
    yield repr((function.__kwdefaults__, names)).encode()
    for used in _used_by(function):
        if isinstance(used, ModuleType):
            for constant in _constants_of(used, names):
                yield from _code_parts(constant, seen)
        else:
            yield from _code_parts(used, seen)


def _constants_of(module: ModuleType, names: list[str]) -> Iterator[Any]:
    """Yield the values of ``module.name`` that the compiler treats as constants."""
    for name in names:
        value = vars(module).get(name)
        if isinstance(value, int | float | complex | tuple | np.ndarray) or hasattr(
            value, "py_func"
        ):
            yield value


def _code_object_parts(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_object_parts(constant)
        else:
            yield repr(constant).encode()
