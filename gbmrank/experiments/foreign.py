"""Parts of objectives and metrics that are not gbmrank's: whose they are, what they do.

A run follows from their code too. It is told apart by a hash of what Python has compiled,
of constants and of everything of the same package that is named there; comments, line
numbers and the place of the file do not matter.
"""

import hashlib
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from gbmrank.api import Metric, MetricList, Objective
from gbmrank.registry.catalogue import LOSSES, METRICS, OBJECTIVES, UTILITIES, Origin
from gbmrank.registry.entry_points import class_name
from gbmrank.registry.guards import is_ours

__all__ = ["code_of", "foreign_code", "foreign_parts", "origin_of"]

_REGISTRIES = (LOSSES, METRICS, OBJECTIVES, UTILITIES)
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type(...))
_MADE_BY_PYTHON = frozenset(
    (
        *("__doc__", "__module__", "__dict__", "__weakref__", "__firstlineno__"),
        "__static_attributes__",  # in an order that changes from one process to the next
    )
)


def foreign_parts(part: Any) -> Iterator[type]:
    """Yield the classes in an objective or a metric that gbmrank does not have itself."""
    if isinstance(part, MetricList | list | tuple):
        for one in part:
            yield from foreign_parts(one)
        return
    if isinstance(part, Objective | Metric):
        part = part.template if isinstance(part, Objective) else part.measure
    if not is_dataclass(part) or isinstance(part, type):
        return
    if not is_ours(type(part)):
        yield type(part)
    for field in fields(part):
        yield from foreign_parts(getattr(part, field.name))


def origin_of(cls: type) -> Origin:
    """Return the plugin of a class; without a version it was registered in this process."""
    origins = [registry.origin_of(cls) for registry in _REGISTRIES]
    return next((one for one in origins if one.version), origins[0])


def foreign_code(parts: Any) -> dict[str, str]:
    """Return for every such class, by name, where it comes from and a hash of its code."""
    found = {}
    for cls in foreign_parts(parts):
        origin = origin_of(cls)
        where = str(origin) if origin.version else "this process"
        found[class_name(cls)] = f"{where}, code {code_of(cls)[:12]}"
    return found


def code_of(cls: type) -> str:
    """Return a hash of what a class does."""
    root = cls.__module__.partition(".")[0]
    return hashlib.sha256("\n".join(_told(cls, root, set())).encode("utf-8", "replace")).hexdigest()


def _told(thing: Any, root: str, seen: set[int]) -> Iterator[str]:
    """Yield texts that change when the behaviour does."""
    thing = getattr(thing, "py_func", thing)  # what numba compiles
    if isinstance(thing, staticmethod | classmethod):
        thing = thing.__func__
    if isinstance(thing, property):
        thing = thing.fget
    if isinstance(thing, _PLAIN):
        yield repr(thing)
    elif id(thing) not in seen:
        seen.add(id(thing))
        yield from _of_object(thing, root, seen)


def _of_object(thing: Any, root: str, seen: set[int]) -> Iterator[str]:
    if not isinstance(thing, types.FunctionType | type):
        yield from _of_value(thing, root, seen)
    elif str(thing.__module__).partition(".")[0] != root:
        yield f"{thing.__module__}.{thing.__qualname__}"
    elif isinstance(thing, type):
        yield from _of_class(thing, root, seen)
    else:
        yield from _of_function(thing, root, seen)


def _of_class(cls: type, root: str, seen: set[int]) -> Iterator[str]:
    yield f"class {cls.__qualname__}"
    for base in cls.__bases__:
        yield from _told(base, root, seen)
    for name, value in sorted(vars(cls).items()):
        if name not in _MADE_BY_PYTHON:
            yield name
            yield from _told(value, root, seen)


def _of_function(function: types.FunctionType, root: str, seen: set[int]) -> Iterator[str]:
    yield from _of_code(function.__code__)
    named = list(_named(function.__globals__, _names(function.__code__), root, set()))
    held = [cell.cell_contents for cell in function.__closure__ or () if _is_full(cell)]
    defaults = [function.__defaults__, function.__kwdefaults__]
    for one in (*named, *held, *defaults):
        yield from _told(one, root, seen)


def _named(
    space: Mapping[str, Any], names: Sequence[str], root: str, seen: set[str]
) -> Iterator[Any]:
    """Yield what names stand for, in modules of the package too: ``tools.slope``."""
    for name in names:
        value = space.get(name)
        yield value
        if isinstance(value, types.ModuleType) and value.__name__ not in seen:
            seen.add(value.__name__)
            if value.__name__.partition(".")[0] == root:
                yield from _named(vars(value), names, root, seen)


def _of_code(code: types.CodeType) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_varnames} {code.co_names}"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _of_code(constant)
        else:
            yield from _told(constant, "", set())


def _names(code: types.CodeType) -> list[str]:
    inner = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return [*code.co_names, *(name for one in inner for name in _names(one))]


def _is_full(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _of_value(value: Any, root: str, seen: set[int]) -> Iterator[str]:
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif isinstance(value, frozenset | set):
        yield f"{sorted(map(repr, value))}"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield repr(key)
            yield from _told(inner, root, seen)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _told(inner, root, seen)
    else:
        yield type(value).__qualname__
