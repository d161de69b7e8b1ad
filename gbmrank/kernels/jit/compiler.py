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
    kinds = [numba.float64] * len(arguments)
    if arguments[0].name == "labels":  # a function of a query
        fixed = numba.types.Array(numba.float64, 1, "C", readonly=True)
        columns = dict.fromkeys(_COLUMNS, numba.float64[::1]) | {"labels": fixed}
        kinds = [columns.get(one.name, numba.float64) for one in arguments]
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
    # The first informative line of the compiler's message.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    rest = [line for line in lines if not line.startswith("Failed in nopython mode")]
    plain = [line for line in rest if line.startswith(_TELLING)]
    reason = _RAISED.sub("", (plain or rest or [type(error).__name__])[0])[:300]
    return (
        f"{_named(function)} cannot be compiled: {reason}\n  {file}:{line}{shown}\n"
        "write it with numbers, the math module and gbmrank.numerics; or set "
        "GBMRANK_SLOW_PLUGINS=1 to run it in plain Python, hundreds of times slower"
    )


def _place(function: FunctionType, error: Exception) -> tuple[str, int]:
    """Return the file and line where compilation failed: in the function or in a callee."""
    own, text = function.__code__.co_filename, str(error)
    for match in [*_PLACE.finditer(text), *_RAISED.finditer(text)]:
        file = match["file"]
        if "numba" not in file:
            # The compiler prints paths relative to the working directory.
            same = os.path.basename(file) == os.path.basename(own)
            return (own if same else file), int(match["line"])
    line = getattr(getattr(error, "loc", None), "line", None)
    return own, int(line or function.__code__.co_firstlineno)


def _import_filled(template: str, slots: dict[str, Scalar]) -> ModuleType:
    collects = gc.isenabled()
    gc.disable()  # it takes a third of the time of the compiler's own import
    try:
        from gbmrank.kernels.jit import cache, decorators  # registers the compiled numerics, too
    finally:
        if collects:
            gc.enable()
    reached = {name: list(_reached(slots[name], set())) for name in sorted(slots)}
    functions = [getattr(one, "py_func", one) for parts in reached.values() for one in parts]
    # Compiled code imports the modules of all functions inside when it is read.
    modules = sorted({str(f.__module__) for f in functions if isinstance(f, FunctionType)})
    parts = [name.encode() + b"".join(map(_bytes_of, found)) for name, found in reached.items()]
    digest = hashlib.sha256(b"".join(parts) + repr(modules).encode())
    name = f"{template.replace('.', '_')}_{digest.hexdigest()[:16]}"
    lasting = all(module in sys.modules for module in modules)  # else code from exec()
    if not (lasting and cache.holds(name)) and not _compiles(slots):
        return _import_plain(template, name, slots)
    module = ModuleType(f"{cache.FILLED if lasting else _PASSING}{name}")
    source = template_path(template).read_text(encoding="utf-8")
    for slot, function in slots.items():
        _register_callees(function)
        plain = isinstance(function, FunctionType)
        filled = decorators.slot(function, "fast_entry" in source) if plain else function
        setattr(module, slot, filled)
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
    vars(module).update(dict.fromkeys(imported[1].split(", "), lambda function: function))
    # The empty line keeps the numbers of lines in messages.
    return _run(module, template, _DECORATORS.sub("", source))


def _register_callees(function: Any) -> None:
    """Let compiled code call the plain Python functions that a slot's function uses."""
    from gbmrank.kernels.jit import decorators

    for callee in list(_reached(function, set()))[1:]:
        plain = isinstance(callee, FunctionType) and callee.__module__ != numerics.__name__
        if plain and callee not in _registered:
            _registered.add(callee)
            decorators.callee(callee)


def _reached(value: Any, seen: set[Any]) -> Iterator[Any]:
    """Yield a value and, if it is a function, everything that its machine code depends on."""
    function = getattr(value, "py_func", value)
    if not isinstance(function, FunctionType):
        yield value
    elif function not in seen:
        seen.add(function)
        yield value
        names = list(_names_in(function.__code__))
        inside = [cell.cell_contents for cell in function.__closure__ or ()]
        for used in inside + [function.__globals__.get(name) for name in names]:
            for part in _constants_of(used, names) if isinstance(used, ModuleType) else (used,):
                yield from _reached(part, seen)


def _names_in(code: CodeType) -> Iterator[str]:
    """Yield the global and attribute names of a function and of the functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _constants_of(module: ModuleType, names: list[str]) -> Iterator[Any]:
    """Yield the values of ``module.name`` that the compiler treats as constants."""
    for value in (vars(module).get(name) for name in names):
        if isinstance(value, int | float | complex | tuple | np.ndarray) or hasattr(
            value, "py_func"
        ):
            yield value


def _bytes_of(value: Any) -> bytes:
    """Return what tells a function from others by its own code, or a constant by its value."""
    function = getattr(value, "py_func", value)
    if isinstance(value, np.ndarray):
        return repr((value.dtype.str, value.shape)).encode() + value.tobytes()
    if not isinstance(function, FunctionType):
        return re.sub(r" at 0x[0-9a-f]+", "", repr(value)).encode()
    defaults, names = (function.__defaults__, function.__kwdefaults__), _names_in(function.__code__)
    return repr((_instructions(function.__code__), defaults, list(names))).encode()


def _instructions(code: CodeType) -> tuple[Any, ...]:
    inside = code.co_consts
    return code.co_code, *(_instructions(c) if isinstance(c, CodeType) else c for c in inside)
