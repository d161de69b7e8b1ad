"""Objectives in boosters: what is asked for, what exists, what can run.

Parts of objectives and metrics that are not gbmrank's: whose they are, what they do.

A run follows from their code too. It is told apart by a hash of what Python has compiled,
of constants and of everything of the same package that is named there; comments, line
numbers and the place of the file do not matter.
"""

import contextlib
import difflib
import hashlib
import importlib.util
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from gbmrank.api import Metric, MetricList, Objective
from gbmrank.api.metrics import metric_list
from gbmrank.api.objectives import ranking_objective
from gbmrank.boosters.doors import BOOSTERS
from gbmrank.boosters.plan import Native, native_lists, near_native
from gbmrank.errors import ConfigError, MissingBackendError, SpecError, UnknownNameError
from gbmrank.experiments.results import System
from gbmrank.objectives import held_preferences
from gbmrank.registry.catalogue import LOSSES, METRICS, OBJECTIVES, UTILITIES, Origin
from gbmrank.registry.composition import spec_of
from gbmrank.registry.entry_points import class_name
from gbmrank.registry.guards import is_ours
from gbmrank.registry.spec import parse_list
from gbmrank.theory.verdicts.advice import target_for

__all__ = [
    "BACKENDS",
    "DEFAULT_METRICS",
    "NATIVE",
    "Chosen",
    "choose_systems",
    "code_of",
    "default_objectives",
    "find_baseline",
    "foreign_code",
    "foreign_parts",
    "installed_backends",
    "needs_this_process",
    "origin_of",
    "read_metrics",
    "split_list",
]

NATIVE = {booster.name: booster.native for booster in BOOSTERS}


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
    named = list(_named_function(function.__globals__, _names(function.__code__), root, set()))
    held = [cell.cell_contents for cell in function.__closure__ or () if _is_full(cell)]
    defaults = [function.__defaults__, function.__kwdefaults__]
    for one in (*named, *held, *defaults):
        yield from _told(one, root, seen)


def _named_function(
    space: Mapping[str, Any], names: Sequence[str], root: str, seen: set[str]
) -> Iterator[Any]:
    """Yield what names stand for, in modules of the package too: ``tools.slope``."""
    for name in names:
        value = space.get(name)
        yield value
        if isinstance(value, types.ModuleType) and value.__name__ not in seen:
            seen.add(value.__name__)
            if value.__name__.partition(".")[0] == root:
                yield from _named_function(vars(value), names, root, seen)


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


BACKENDS = ("lightgbm", "xgboost")
DEFAULT_METRICS = "ndcg@10, ndcg@5, ndcg@1"
"""What is measured where nothing else is asked for."""


class Chosen(NamedTuple):
    """Systems to train, what each minimises, and what was left out."""

    systems: tuple[System, ...]
    objectives: Mapping[str, Objective | Native]
    notes: tuple[str, ...]


def installed_backends() -> tuple[str, ...]:
    """Return the boosters that are installed, without importing them."""
    return tuple(name for name in BACKENDS if importlib.util.find_spec(name) is not None)


def read_metrics(given: Any) -> MetricList:
    """Read metrics; the first is the target. Refuses one that is asked for twice."""
    _check_commas(given)
    return metric_list(DEFAULT_METRICS if given is None else given)


def _check_commas(given: Any) -> None:
    """Refuse metrics with spaces between them."""
    if not isinstance(given, str):
        return
    with contextlib.suppress(SpecError):
        parse_list(given)
        return
    meant = ", ".join(given.replace(",", " ").split())
    with contextlib.suppress(SpecError):
        parse_list(meant)
        raise ConfigError(f"metrics are separated by commas, got {given!r}; say {meant!r}")


def split_list(text: str) -> list[str]:
    """Cut a list at the commas that are outside of brackets and quotes.

    Examples
    --------
    >>> split_list("pairwise(loss=logistic, target=dcg), native:rank:ndcg")
    ['pairwise(loss=logistic, target=dcg)', 'native:rank:ndcg']
    """
    pieces = re.findall(r"""'[^']*'|"[^"]*"|.""", text, re.DOTALL)
    depth, cut = 0, [""]
    for piece in pieces:
        depth += (piece in "([") - (piece in ")]")
        if piece == "," and depth == 0:
            cut.append("")
        else:
            cut[-1] += piece
    return [part.strip() for part in cut if part.strip()]


def default_objectives(target: Metric) -> list[str]:
    """Return objectives worth comparing for a metric: founded ones, known ones, native ones."""
    utility = target_for(target.measure)
    goal = spec_of(utility)
    return [
        f"pairwise(loss=logistic, target={goal})",
        f"pointwise(loss=squared, target={goal})",
        f"bregman(loss=softmax_ce, target={goal})",
        "ranknet",
        "native:lambdarank",
        "native:rank:ndcg",
        "native:rank:pairwise",
    ]


def choose_systems(objectives: Iterable[Any], backends: Sequence[str] | None) -> Chosen:
    """Pair objectives with boosters; a native objective goes to the booster that has it.

    Raises
    ------
    ConfigError
        For an objective or a booster that is asked for twice, or nothing that can run.
    UnknownNameError
        For a booster or a native objective that does not exist.
    MissingBackendError
        For a booster that is not installed.
    """
    chosen = _check_backends(backends)
    named = _named(objectives)
    systems, notes = [], []
    for name, one in named.items():
        able = [b for b in chosen if not isinstance(one, Native) or one.name in NATIVE[b]]
        systems += [System(backend, name) for backend in able]
        if not able:
            owner = next(b for b in BACKENDS if one.name in NATIVE[b])  # type: ignore[union-attr]
            notes.append(f"{name} was left out: it belongs to {owner}, which is not compared")
    if not systems:
        raise ConfigError(f"nothing can run: {'; '.join(notes) or 'no objective is given'}")
    order = {backend: at for at, backend in enumerate(chosen)}
    systems.sort(key=lambda system: order[system.backend])
    return Chosen(tuple(systems), named, tuple(notes))


def _named(objectives: Iterable[Any]) -> dict[str, Objective | Native]:
    """Return objectives by the name they are shown under: the text they were given as."""
    if isinstance(objectives, str):
        objectives = split_list(objectives)
    if isinstance(objectives, Objective | Native):
        objectives = [objectives]
    named: dict[str, Objective | Native] = {}
    first: dict[Objective | Native, str] = {}
    for given in objectives:
        one = ranking_objective(given)
        name = " ".join(given.split()) if isinstance(given, str) else str(one)
        if isinstance(one, Native):
            _check_native(one)
            name = str(one)
        elif held_preferences(one.template):
            raise ConfigError(f"{name} holds preferences of its own rows; folds need labels")
        elif isinstance(given, Objective) and ranking_objective(name) != given:  # runs get its text
            raise ConfigError(f"{name} stands for another objective by now; give yours a new name")
        if name in named or one in first:
            other = "" if first.get(one, name) == name else f", as {first[one]!r} too"
            raise ConfigError(f"the objective {name!r} is asked for twice{other}")
        named[name], first[one] = one, name
    return named


def _check_native(one: Native) -> None:
    if any(one.name in names for names in NATIVE.values()):
        return
    near = near_native(one.name)
    hint = "" if near is None else f"did you mean {near}? "
    raise UnknownNameError(f"no booster has the objective {str(one)!r}; {hint}{native_lists()}")


def _check_backends(given: Sequence[str] | None) -> tuple[str, ...]:
    there = installed_backends()
    if given is None:
        if not there:
            raise MissingBackendError(
                "no booster is installed: pip install 'gbmrank[lightgbm,xgboost]'"
            )
        return there
    names = (given,) if isinstance(given, str) else tuple(given)
    for at, name in enumerate(names):
        if name not in BACKENDS:
            raise UnknownNameError(f"no backend is called {name!r}; known: {', '.join(BACKENDS)}")
        if name in names[:at]:
            raise ConfigError(f"the backend {name!r} is asked for twice")
        if name not in there:
            raise MissingBackendError(
                f"backend={name} needs {name}: pip install 'gbmrank[{name}]', or leave it out"
            )
    if not names:
        raise ConfigError(f"backends is empty; known: {', '.join(BACKENDS)}")
    return names


def find_baseline(systems: Sequence[System], given: str | None) -> System:
    """Return the system that others are compared with.

    By default the first with a native objective, else the first. ``given`` is an objective,
    or a backend and an objective: ``xgboost native:rank:ndcg``.
    """
    if given is None:
        native = [one for one in systems if one.objective.startswith("native:")]
        return (native or list(systems))[0]
    wanted = " ".join(given.split())
    found = [one for one in systems if wanted in (str(one), one.objective)]
    if not found:
        near = difflib.get_close_matches(wanted, [str(one) for one in systems], n=1)
        known = ", ".join(repr(str(one)) for one in systems)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {known}"
        raise UnknownNameError(f"the baseline {given!r} is none of the systems; {hint}")
    return found[0]


def needs_this_process(part: Any) -> bool:
    """Whether an objective or metric has parts that another process would not find.

    That is what was registered with a decorator, in a notebook for example.
    """
    # Only a plugin's distribution has a version; what a decorator registered has none.
    return any(not origin_of(cls).version for cls in foreign_parts(part))
