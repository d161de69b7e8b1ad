"""Functions of plugins on their way into kernels: compiled as a trial, refused with the line.

``GBMRANK_SLOW_PLUGINS=1`` accepts a function that cannot be compiled: the kernels that
need it then run in plain Python, hundreds of times slower.
"""

import contextlib
import importlib.metadata
import inspect
import linecache
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

from gbmrank.errors import GbmrankWarning, PluginContractError

__all__ = ["check_compiles", "foreign_functions", "slow_allowed", "warn_slow"]

_PLACE = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)')
_RAISED = re.compile(r"\.*\s*Raised from (?P<file>.+?) \((?P<line>\d+)\)$")
_TELLING = ("Unknown attribute", "Untyped", "Use of unsupported", "Cannot", "Can't unify")
_COLUMNS = ("labels", "scores", "at", "grad", "hess")  # arguments of a function of a query
_GROUPS = ("gbmrank.losses", "gbmrank.objectives", "gbmrank.metrics", "gbmrank.utilities")
_warned: set[Any] = set()


def foreign_functions(slots: Iterable[Any]) -> Iterator[FunctionType]:
    """Yield the functions of others that fill slots, directly or wrapped by ours."""
    for function in slots:
        if not isinstance(function, FunctionType):
            continue
        if function.__module__.split(".", 1)[0] != "gbmrank":
            yield function  # what it calls takes whatever it gives
        else:
            inside = [cell.cell_contents for cell in function.__closure__ or ()]
            yield from foreign_functions(inside)


def check_compiles(function: FunctionType) -> None:
    """Raise PluginContractError unless a function of numbers (or of a query) compiles.

    Raises
    ------
    PluginContractError
        Names the function, its distribution, the line and the compiler's reason.
    """
    import numba

    from gbmrank.kernels.jit import INLINED

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
        numba.njit(**INLINED)(function).compile(tuple(kinds))
    except Exception as error:
        raise PluginContractError(_explained(function, error)) from error


def slow_allowed() -> bool:
    """Whether functions that cannot be compiled may run in Python."""
    return os.environ.get("GBMRANK_SLOW_PLUGINS", "") not in ("", "0")


def warn_slow(function: FunctionType) -> None:
    """Say once that a function runs in Python."""
    if function not in _warned:
        _warned.add(function)
        warnings.warn(
            f"{_named(function)} is not compiled and runs in plain Python, hundreds of times "
            "slower (GBMRANK_SLOW_PLUGINS is set)",
            GbmrankWarning,
            stacklevel=2,
        )


def _named(function: FunctionType) -> str:
    module, owner = function.__module__, ""
    with contextlib.suppress(Exception):  # a bad file of any distribution is enough
        owner = next(
            f" of {point.dist.name} {point.dist.version}"
            for group in _GROUPS
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
    """The compiler's first sentence that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith("Failed in nopython mode")]
    plain = [line for line in told if line.startswith(_TELLING)]
    return _RAISED.sub("", (plain or told or [type(error).__name__])[0])[:300]


def _place(function: FunctionType, error: Exception) -> tuple[str, int]:
    """Where the compiler stumbled: in the function or in what it calls."""
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
