"""Provenance of results: facts about the data, verdicts of theory, versions, code of plugins.

A run also depends on the code of plugins and notebooks. It is identified by a hash of the
bytecode, of constants and of everything it references in the same package; comments, line numbers
and the location of the file do not matter.
"""

import contextlib
import datetime as dt
import hashlib
import importlib.metadata
import itertools
import platform
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from gbmrank.api import Metric, MetricList, Objective
from gbmrank.api.committees import Committee
from gbmrank.boosters.plan import Native
from gbmrank.boosters.supported import BACKENDS
from gbmrank.experiments.design import Design
from gbmrank.experiments.results import GIVEN, Queries, System
from gbmrank.experiments.sources import Source, scores_key
from gbmrank.experiments.splits import judged
from gbmrank.experiments.trial import regret_name
from gbmrank.registry.catalogue import LOSSES, METRICS, OBJECTIVES, UTILITIES, Registry
from gbmrank.registry.entry_points import Origin, class_name
from gbmrank.registry.guards import is_ours
from gbmrank.theory.verdicts.calibration import calibration_or_unknown
from gbmrank.types import FloatArray

_REGISTRIES: tuple[Registry[Any], ...] = (LOSSES, METRICS, OBJECTIVES, UTILITIES)
_LEVELS = 12  # label values that are counted separately
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type(...))
_MADE_BY_PYTHON = frozenset(
    (
        *("__doc__", "__module__", "__dict__", "__weakref__", "__firstlineno__"),
        "__static_attributes__",  # its order differs between processes
    )
)


def data_facts(source: Source, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return facts about the data, for the report."""
    labels, groups = source.data.labels, source.data.groups
    smallest, largest = source.label_ends()
    return {
        "rows": groups.n_rows,
        "queries": groups.n_queries,
        "features": int(source.X.shape[1]),
        "columns": source.described(),
        "label_counts": _label_counts(labels),
        "singletons": int((groups.sizes == 1).sum()),
        "without_relevant": int((largest <= 0).sum()),
        "all_labels_equal": int(((smallest == largest) & (groups.sizes > 1)).sum()),
        "longest": int(groups.sizes.max()),
        "duplicate_rows": _duplicates(source),
        **_further_columns(source),
        "notes": [*source.notes, *notes],
    }


def _further_columns(source: Source) -> dict[str, Any]:
    """Return facts about optional columns."""
    found: dict[str, Any] = {}
    data, origins = source.data, source.origins
    if source.categories:
        names = source.feature_names or [str(at) for at in range(source.X.shape[1])]
        found["categorical"] = {
            names[at]: f"{len(known.values)} categories{', ordered' if known.ordered else ''}"
            for at, known in sorted(source.categories.items())
        }
    if data.weight is not None:
        first = data.groups.spread(data.weight[data.groups.offsets[:-1]])
        per, also = ("query", " and validation") if (first == data.weight).all() else ("row", "")
        found["weights"] = (
            f"{origins['weight']}, one per {per}, {_range(data.weight)}; in training{also}; all "
            "test queries have equal weight"
        )
    if "position" in data.columns:
        shown = _range(data.columns["position"])
        found["positions"] = f"{origins['position']}, {shown}; no feature"
    if source.scores:
        found["given_scores"] = {name: origins[scores_key(name)] for name in source.scores}
    return found


def _range(values: FloatArray) -> str:
    known = values[~np.isnan(values)]
    missing = len(values) - len(known)
    ends = f"{known.min():g} to {known.max():g}" if len(known) else "no values"
    return ends + (f", missing in {missing} rows" if missing else "")


def column_notes(source: Source, design: Design) -> Iterator[str]:
    """Yield caveats about clicks, times and given scores."""
    if design.clicks is not None:
        yield design.clicks.sentence()
    if source.times is not None:
        first = source.n_queries - len(judged(source.scheme, design.folds))
        folds = "the one fold is" if design.folds == 1 else f"each of {design.folds} folds is"
        yield (
            f"split by time ({source.origins['time']}, the earliest of each query): {folds} tested "
            f"on queries that are later than all it was trained on; the first {first} of "
            f"{source.n_queries} queries are never tested"
        )
    for name in source.scores:
        where = source.origins[scores_key(name)]
        yield (
            f"{System(GIVEN, name)}: not trained here, taken from {where}; if its model was "
            "trained on these queries, its values are too good"
        )


def queries_of(source: Source, folds: int) -> Queries:
    """Return the test queries of all folds."""
    chosen = judged(source.scheme, folds)
    groups = source.data.groups
    relevant = np.add.reduceat((source.data.labels > 0).astype(np.int64), groups.offsets[:-1])
    return Queries(ids=source.ids[chosen], sizes=groups.sizes[chosen], relevant=relevant[chosen])


def verdicts(
    objectives: Mapping[str, Objective | Native | Committee],
    metrics: MetricList,
    regret_k: int | None,
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the calibration verdict of each objective and measure; regret is that of DCG.

    The verdict of a native objective is unknown.
    """
    judged_by: dict[str, Any] = {str(one): one for one in metrics}
    if regret_k is not None:
        judged_by[regret_name(regret_k)] = f"dcg@{regret_k}"
    found = {}
    shown = ("status", "sentence", "reference", "condition", "constant")
    for name, measure in itertools.product(objectives, judged_by):
        one = objectives[name]
        target = one if isinstance(one, Objective) else str(one)
        plain = calibration_or_unknown(target, judged_by[measure]).as_dict()
        found[name, measure] = {key: plain[key] for key in shown}
    return found


def conventions(one: Metric) -> dict[str, Any]:
    """Return the options of a metric that change its value."""
    return {field.name: _plain(getattr(one.measure, field.name)) for field in fields(one.measure)}


def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    found = {"python": platform.python_version()}
    for name in ("gbmrank", *BACKENDS, "numpy", "numba"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def environment(command: str) -> dict[str, Any]:
    """Return command, versions, platform and time of the comparison."""
    registered = (found for one in _REGISTRIES for found in one.entries.values())
    origins = {entry.origin for entries in registered for entry in entries}
    return {
        "command": command,
        "versions": versions(),
        "plugins": sorted(str(one) for one in origins if one.distribution != "gbmrank"),
        "platform": platform.platform(),
        "created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }


def fingerprints(parts: Any) -> dict[str, str]:
    """Return origin and code hash of every class outside gbmrank, by name."""
    found = {}
    for cls in _external(parts):
        origin = _origin_of(cls)
        where = origin if origin.version else "this process"
        found[class_name(cls)] = f"{where}, code {code_of(cls)[:12]}"
    return found


def needs_this_process(part: Any) -> bool:
    """Whether an objective or metric has parts that another process would not find.

    These are parts registered with a decorator, for example in a notebook.
    """
    # Only a plugin's distribution has a version; classes registered by a decorator have none.
    return any(not _origin_of(cls).version for cls in _external(part))


def code_of(cls: type) -> str:
    """Return a hash of the code of a class."""
    root = cls.__module__.partition(".")[0]
    texts = "\n".join(_described(cls, root, set()))
    return hashlib.sha256(texts.encode("utf-8", "replace")).hexdigest()


def _label_counts(labels: FloatArray) -> dict[str, int]:
    levels, counts = np.unique(labels, return_counts=True)
    if len(levels) <= _LEVELS:
        return dict(zip([f"{level:g}" for level in levels], counts.tolist(), strict=True))
    counts, ends = np.histogram(labels, bins=_LEVELS)
    names = [f"{low:.3g} to {high:.3g}" for low, high in itertools.pairwise(ends)]
    return dict(zip(names, counts.tolist(), strict=True))


def _duplicates(source: Source) -> int:
    """Count rows that repeat all features of another row of their query."""
    rows, groups = np.ascontiguousarray(source.X, dtype=np.float64), source.data.groups
    rng = np.random.default_rng(0)
    # Two random projections distinguish rows; equal rows have equal projections.
    factors = rng.standard_normal((rows.shape[1], 2))
    missing, above, below = rng.standard_normal(3)  # values that no feature has
    sums = np.nan_to_num(rows, nan=missing, posinf=above, neginf=below) @ factors
    query = groups.spread(np.arange(groups.n_queries))
    order = np.lexsort((sums[:, 1], sums[:, 0], query))
    same = (query[order][1:] == query[order][:-1]) & (sums[order][1:] == sums[order][:-1]).all(1)
    return int(same.sum())


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else str(value)


def _external(part: Any) -> Iterator[type]:
    """Yield the classes in an objective or a metric that are defined outside gbmrank."""
    if isinstance(part, MetricList | list | tuple):
        for one in part:
            yield from _external(one)
        return
    if isinstance(part, Objective | Metric):
        part = part.template if isinstance(part, Objective) else part.measure
    if not is_dataclass(part) or isinstance(part, type):
        return
    if not is_ours(type(part)):
        yield type(part)
    for field in fields(part):
        yield from _external(getattr(part, field.name))


def _origin_of(cls: type) -> Origin:
    """Return the plugin of a class; without a version it was registered in this process."""
    origins = [one.origin_of(cls) for one in _REGISTRIES]
    return next((one for one in origins if one.version), origins[0])


def _described(thing: Any, root: str, seen: set[int]) -> Iterator[str]:
    """Yield strings that change when the behaviour does."""
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
        yield from _described(base, root, seen)
    for name, value in sorted(vars(cls).items()):
        if name not in _MADE_BY_PYTHON:
            yield name
            yield from _described(value, root, seen)


def _of_function(function: types.FunctionType, root: str, seen: set[int]) -> Iterator[str]:
    yield from _of_code(function.__code__)
    named = list(_referenced(function.__globals__, _names(function.__code__), root, set()))
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty one
            named.append(cell.cell_contents)
    for one in (*named, function.__defaults__, function.__kwdefaults__):
        yield from _described(one, root, seen)


def _referenced(
    space: Mapping[str, Any], names: Sequence[str], root: str, seen: set[str]
) -> Iterator[Any]:
    """Yield the objects that names refer to, including ``tools.slope`` of the same package."""
    for name in names:
        value = space.get(name)
        yield value
        if isinstance(value, types.ModuleType) and value.__name__ not in seen:
            seen.add(value.__name__)
            if value.__name__.partition(".")[0] == root:
                yield from _referenced(vars(value), names, root, seen)


def _of_code(code: types.CodeType) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_varnames} {code.co_names}"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _of_code(constant)
        else:
            yield from _described(constant, "", set())


def _names(code: types.CodeType) -> list[str]:
    inner = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return [*code.co_names, *(name for one in inner for name in _names(one))]


def _of_value(value: Any, root: str, seen: set[int]) -> Iterator[str]:
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif isinstance(value, frozenset | set):
        yield f"{sorted(map(repr, value))}"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield repr(key)
            yield from _described(inner, root, seen)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _described(inner, root, seen)
    else:
        yield type(value).__qualname__
