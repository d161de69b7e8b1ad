"""The registry: look up, list and add losses, objectives, metrics and utilities.

One generic :class:`Registry` per kind. Built-ins come from tuples. Plugins come from entry
points, which are read when a name is first needed and imported when their own name is
requested. Listing names imports nothing.
"""

import difflib
import functools
import importlib.metadata
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar, final

from gbmrank.errors import (
    GbmrankWarning,
    PluginContractError,
    RegistrationError,
    UnknownNameError,
    warn,
)
from gbmrank.losses import BUILTIN_LOSSES, AbstractLoss
from gbmrank.losses.base import ScalarFunction, loss_class
from gbmrank.losses.convex import (
    BUILTIN_GENERATORS,
    BUILTIN_OUTERS,
    BUILTIN_REGULARISERS,
    AbstractGenerator,
    AbstractOuter,
    AbstractRegulariser,
)
from gbmrank.losses.utilities import BUILTIN_UTILITIES, AbstractUtility
from gbmrank.metrics import BUILTIN_METRICS, AbstractMetric
from gbmrank.objectives import BUILTIN_OBJECTIVES, CUT_PRESETS, PRESETS, AbstractObjective
from gbmrank.objectives.step_weights import BUILTIN_WEIGHTS, GainDiscount
from gbmrank.registry.entry_points import (
    Entry,
    Loader,
    Origin,
    check_class,
    class_name,
    installed,
    origin_of,
    project,
)
from gbmrank.registry.spec import Spec, parse

T = TypeVar("T")
_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {  # that other libraries use
    **dict.fromkeys(("hits", "hitrate", "hit_ratio"), ("hit_rate",)),
    **dict.fromkeys(("roc", "auroc", "ranking_auc"), ("auc",)),
}
_THIS_PROCESS = Origin("this process", "")
L = TypeVar("L", bound=type[AbstractLoss] | ScalarFunction)
U = TypeVar("U", bound=type[AbstractUtility])
C = TypeVar("C", bound=type[AbstractObjective])
M = TypeVar("M", bound=type[AbstractMetric])


@final
class Registry(Generic[T]):
    """Classes of one kind by name: final subclasses of ``base``.

    ``entry_points`` is called once, when first needed. ``presets`` maps names to the text of a
    composition; ``cut_presets`` has the text of those that differ with a cut-off ``{k}``.
    """

    def __init__(
        self,
        kind: str,
        base: Any,
        builtins: Iterable[type[T]],
        entry_points: Callable[[], Iterable[importlib.metadata.EntryPoint]] = tuple,
        presets: Mapping[str, str] = MappingProxyType({}),
        cut_presets: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.kind, self.base = kind, base
        self._read_entry_points = entry_points
        self._own: dict[str, Entry[T]] = {}
        self._aliases: dict[str, str] = {}
        self._plugins: dict[str, tuple[Entry[T], ...]] | None = None
        self._origins: dict[type, Origin] = {}  # of the plugin classes that were loaded
        self._presets, self._cut_presets = presets, cut_presets
        self._warned: set[str] = set()
        for cls in builtins:
            self._add(cls, _own_origin())

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._own, *self._presets, *self._found()}))

    def __contains__(self, name: str) -> bool:
        name = self._canonical(name)
        return name in self._own or name in self._presets or name in self._found()

    @property
    def entries(self) -> Mapping[str, tuple[Entry[T], ...]]:
        """Read-only view of the entries by name; several if distributions clash."""
        own = dict(self._own)
        for name, text in self._presets.items():
            load = functools.partial(self.get, parse(text).name)
            own[name] = Entry(name, self.kind, _own_origin(), load)
        merged: dict[str, tuple[Entry[T], ...]] = {name: (entry,) for name, entry in own.items()}
        for name, found in self._found().items():
            merged[name] = merged.get(name, ()) + found
        return MappingProxyType(dict(sorted(merged.items())))

    def get(self, name: str) -> type[T]:
        """Return the class registered under a name, loading its plugin if necessary.

        The name may be an alias. If several plugins offer it, it must be written
        ``distribution:name``; otherwise a RegistrationError is raised.
        """
        distribution, _, bare = name.rpartition(":")
        key = self._canonical(bare)
        if not distribution and key in self._own:
            return self._own[key].load()
        candidates = [
            entry
            for choice in dict.fromkeys((key, _lowered(bare)))
            for entry in self.entries.get(choice, ())
            if not distribution or project(entry.origin.distribution) == project(distribution)
        ]
        if len(candidates) > 1:
            choices = " or ".join(f"'{entry.origin.distribution}:{key}'" for entry in candidates)
            raise RegistrationError(
                f"the {self.kind} {key!r} is offered by "
                f"{' and '.join(str(entry.origin) for entry in candidates)}; use {choices}"
            )
        if not candidates:
            near = self.near(name)
            known = f"known: {', '.join(self)}"
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else known
            raise UnknownNameError(f"no {self.kind} is called {name!r}; {hint}")
        return candidates[0].load()

    def near(self, name: str) -> list[str]:
        """Return registered names similar to an unknown one, the most similar first.

        >>> METRICS.near("ndcg10"), METRICS.near("NDGC")
        (['ndcg@10'], ['ndcg'])
        """
        bare = _lowered(name.partition("@")[0].rpartition(":")[2])
        cut = re.fullmatch(r"(.*[a-z])_?(\d{1,9})", bare)
        known = cut is not None and cut[1] in self
        if cut and known and "k" in inspect.signature(self.get(cut[1])).parameters:
            return [f"{cut[1]}@{cut[2]}"]
        called = [other for other in _OTHER_NAMES.get(bare, ()) if other in self]
        if called:
            return called
        close = difflib.get_close_matches(name.lower(), [*self, *self._aliases], n=3, cutoff=0.5)
        swapped = [each for each in close if sorted(each) == sorted(bare)]
        return swapped or list(dict.fromkeys(close))

    def origin_of(self, cls: type) -> Origin:
        """Return the distribution a class was loaded from, or its module."""
        own = self._own.get(class_name(cls))
        if own is not None and own.load() is cls:
            return own.origin
        return self._origins.get(cls, Origin(cls.__module__, ""))

    def text_name(self, cls: type) -> str:
        """Return the name under which ``get`` finds a class, with its distribution on a clash."""
        name, origin = class_name(cls), self._origins.get(cls)
        if origin is None or len(self.entries.get(name, ())) < 2:
            return name
        return f"{origin.distribution}:{name}"

    def preset(self, name: str, k: object = None) -> Spec | None:
        """Return the composition of a preset, the one with a cut-off if k is one, or None."""
        distribution, _, bare = name.rpartition(":")
        if distribution and project(distribution) != "gbmrank":
            return None
        texts = self._presets if k is None else self._cut_presets
        text = texts.get(self._canonical(bare))
        return None if text is None else parse(text.format(k=k))

    def warn_if_shadowed(self, name: str) -> None:
        """Warn once if an installed plugin has the name of a preset; the preset wins."""
        key = self._canonical(name)
        offered = self._found().get(key, ())
        if offered and key not in self._warned:
            self._warned.add(key)
            origin = offered[0].origin
            warn(
                f"{key} is built into gbmrank, so the {self.kind} of that name of {origin} is not "
                f"used; write '{origin.distribution}:{key}' to use it, or uninstall the plugin",
                GbmrankWarning,
            )

    def register(self, cls: Any) -> Any:
        """Register a class (or the function of a loss) for this process; use as a decorator.

        Registering the same class again has no effect, and a class that is defined again, as when
        a notebook cell is run twice, replaces the first. Another class under a name in use
        raises a RegistrationError. So does the name of an installed plugin, since a saved model
        would load with the plugin's class. A plugin's own class is left to its entry point.
        """
        made = self._as_class(cls)
        check_class(self.kind, self.base, made, "this process")
        offered = [
            entry
            for name in (class_name(made), *getattr(made, "aliases", ()))
            for entry in self._found().get(_lowered(name), ())
        ]
        package = made.__module__.partition(".")[0]
        points = [entry.load.point for entry in offered if isinstance(entry.load, Loader)]
        if any(getattr(each, "module", "").partition(".")[0] == package for each in points):
            return cls
        name = self._canonical(class_name(made))
        own = self._own.get(name)
        builtin = name in self._presets or (own is not None and own.origin != _THIS_PROCESS)
        if offered and not builtin:
            origin = offered[0].origin
            raise RegistrationError(
                f"the {self.kind} name {offered[0].name!r} is taken by the plugin {origin}; choose "
                "another, or leave the plugin out: uninstall it, or set GBMRANK_PLUGINS to a list "
                f"without {origin.distribution} (0 for no plugins) before Python starts"
            )
        self._add(made, _THIS_PROCESS)
        return cls

    def refresh(self) -> None:
        """Forget which plugins were found; they are looked up again when needed."""
        self._plugins = None
        self._warned.clear()

    def _add(self, cls: type[T], origin: Origin) -> None:
        names = [_lowered(name) for name in (class_name(cls), *getattr(cls, "aliases", ()))]
        for name in names:
            if name in self._presets:
                raise RegistrationError(f"the {self.kind} name {name!r} is a preset of gbmrank")
            taken = self._own.get(self._aliases.get(name, name))
            if taken is not None and not _same_class(taken, cls):
                raise RegistrationError(
                    f"the {self.kind} name {name!r} is taken by {taken.origin}; choose another"
                )
        self._own[names[0]] = Entry(names[0], self.kind, origin, lambda: cls)
        self._aliases.update(dict.fromkeys(names[1:], names[0]))

    def _canonical(self, name: str) -> str:
        lowered = _lowered(name)
        return self._aliases.get(lowered, lowered)

    def _found(self) -> Mapping[str, tuple[Entry[T], ...]]:
        if self._plugins is None:
            grouped: dict[str, tuple[Entry[T], ...]] = {}
            for point in self._read_entry_points():
                entry = self._plugin_entry(point)
                name = _lowered(entry.name)
                grouped[name] = (*grouped.get(name, ()), entry)
            self._plugins = grouped
        return self._plugins

    def _plugin_entry(self, point: importlib.metadata.EntryPoint) -> Entry[T]:
        origin = origin_of(point.dist)

        def validated(given: Any) -> type[T]:
            loaded: type[T] = self._as_class(given, point.name)
            check_class(self.kind, self.base, loaded, str(origin))
            if class_name(loaded) != point.name:
                raise PluginContractError(
                    f"{origin} registers the {self.kind} {point.name!r}, but its class is named "
                    f"{class_name(loaded)!r}; make the names equal"
                )
            self._origins[loaded] = origin
            return loaded

        loader = Loader(self.kind, point, origin, validated)
        return Entry(point.name, self.kind, origin, loader)

    def _as_class(self, given: Any, name: str | None = None) -> Any:
        """Convert a plain function to a class if this kind allows functions (losses)."""
        if self.base is AbstractLoss and inspect.isfunction(given):
            return loss_class(given, name)
        return given


@functools.lru_cache(512)
def _lowered(name: str) -> str:
    return name.lower().replace("-", "_")


def _same_class(taken: Entry[Any], cls: type) -> bool:
    known = taken.load()
    again = (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)
    return known is cls or (again and taken.origin == _THIS_PROCESS)


@functools.cache
def _own_origin() -> Origin:
    try:
        return Origin("gbmrank", importlib.metadata.version("gbmrank"))
    except importlib.metadata.PackageNotFoundError:
        return Origin("gbmrank", "unknown")


LOSSES: Registry[AbstractLoss] = Registry(
    "loss", AbstractLoss, BUILTIN_LOSSES, installed("gbmrank.losses")
)
UTILITIES: Registry[AbstractUtility] = Registry(
    "utility", AbstractUtility, BUILTIN_UTILITIES, installed("gbmrank.utilities")
)
OBJECTIVES: Registry[AbstractObjective] = Registry(
    "objective",
    AbstractObjective,
    BUILTIN_OBJECTIVES,
    installed("gbmrank.objectives"),
    PRESETS,
    CUT_PRESETS,
)
METRICS: Registry[AbstractMetric] = Registry(
    "metric", AbstractMetric, BUILTIN_METRICS, installed("gbmrank.metrics")
)
GENERATORS: Registry[AbstractGenerator] = Registry(
    "generator", AbstractGenerator, BUILTIN_GENERATORS
)
OUTERS: Registry[AbstractOuter] = Registry("outer function", AbstractOuter, BUILTIN_OUTERS)
REGULARISERS: Registry[AbstractRegulariser] = Registry(
    "regulariser", AbstractRegulariser, BUILTIN_REGULARISERS
)
WEIGHTS: Registry[GainDiscount] = Registry("kind of weights", GainDiscount, BUILTIN_WEIGHTS)


def list_losses() -> list[Entry[AbstractLoss]]:
    """List the registered losses; imports no plugin.

    Returns
    -------
    list of Entry
        Each with ``name``, ``origin`` (distribution and version) and ``status``.
    """
    return _listed(LOSSES)


def list_utilities() -> list[Entry[AbstractUtility]]:
    """List the registered utilities; imports no plugin.

    Returns
    -------
    list of Entry
        Each with ``name``, ``origin`` (distribution and version) and ``status``.
    """
    return _listed(UTILITIES)


def list_objectives() -> list[Entry[AbstractObjective]]:
    """List the registered objectives; imports no plugin.

    Returns
    -------
    list of Entry
        Each with ``name``, ``origin`` (distribution and version) and ``status``.
    """
    return _listed(OBJECTIVES)


def list_metrics() -> list[Entry[AbstractMetric]]:
    """List the registered metrics; imports no plugin.

    Returns
    -------
    list of Entry
        Each with ``name``, ``origin`` (distribution and version) and ``status``.
    """
    return _listed(METRICS)


def register_loss(cls: L) -> L:
    """Register a loss for this process; use as a decorator.

    Parameters
    ----------
    cls : function or type
        A function ``(z, alpha=0.5, ...) -> (value, first, second)`` of the margin, which is
        compiled on first use, or a subclass of ``AbstractLoss``.

    Returns
    -------
    function or type
        The argument.

    Examples
    --------
    >>> import gbmrank
    >>> @gbmrank.register_loss
    ... def cauchy(z, c=1.0):
    ...     gap = 1.0 - z
    ...     q = c * c + gap * gap
    ...     bend = 2.0 * c * c * (c * c - 3.0 * gap * gap) / q**3
    ...     return gap * gap / q, -2.0 * c * c * gap / q**2, bend
    >>> grad, _ = gbmrank.objective("ranknet", loss="cauchy(c=2)").gradients([1, 0], [0.0, 0.0])
    >>> grad
    array([-0.32,  0.32])
    """
    LOSSES.register(cls)
    return cls


def register_utility(cls: U) -> U:
    """Register a utility class for this process; use as a decorator.

    Parameters
    ----------
    cls : type
        A subclass of ``gbmrank.extend.AbstractUtility``.

    Returns
    -------
    type
        The argument.
    """
    UTILITIES.register(cls)
    return cls


def register_objective(cls: C) -> C:
    """Register an objective class for this process; use as a decorator.

    Parameters
    ----------
    cls : type
        A subclass of ``gbmrank.extend.AbstractObjective``.

    Returns
    -------
    type
        The argument.
    """
    OBJECTIVES.register(cls)
    return cls


def register_metric(cls: M) -> M:
    """Register a metric class for this process; use as a decorator.

    Parameters
    ----------
    cls : type
        A subclass of ``gbmrank.extend.AbstractMetric``.

    Returns
    -------
    type
        The argument.
    """
    METRICS.register(cls)
    return cls


def _listed(registry: Registry[Any]) -> list[Entry[Any]]:
    return [entry for entries in registry.entries.values() for entry in entries]
