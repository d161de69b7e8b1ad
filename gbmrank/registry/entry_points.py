"""Entry points of plugins: read from metadata, loaded on demand, validated before use.

A plugin is a distribution with entry points in one of the groups ``gbmrank.losses``,
``gbmrank.objectives``, ``gbmrank.metrics`` and ``gbmrank.utilities``. Reading them imports
nothing. The module of an entry point may declare the version of the plugin contract it was
written for, ``gbmrank_api = 1``; the default is version 1. :func:`check_class` validates a
class before it is registered.
"""

import contextlib
import importlib.metadata
import inspect
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, Generic, Literal, TypeVar, final

from gbmrank.errors import PluginContractError, PluginError, RegistrationError, waiting_for

T = TypeVar("T")
API_VERSION: Final = 1
"""Version of the contract between gbmrank and plugins, described in docs/plugins.md."""
_GROUPS: Final = ("gbmrank.losses", "gbmrank.objectives", "gbmrank.metrics", "gbmrank.utilities")
_LOADING = threading.RLock()
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SCALARS = ("phi", "positive", "negative")  # functions of a loss: (z, *parameters)


@final
@dataclass(frozen=True, slots=True)
class Origin:
    """The distribution an entry comes from."""

    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".strip()


@final
@dataclass(frozen=True, slots=True)
class Status:
    """Whether an entry can be used, and if not, why."""

    state: Literal["ok", "broken", "not loaded"]  # plugins are loaded on first use
    cause: BaseException | None = None  # what a broken plugin raised

    def __str__(self) -> str:
        if self.cause is None:
            return self.state
        text = f"{type(self.cause).__name__}: {self.cause}".splitlines()[0]
        return f"{self.state}: {text}"


@final
@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One registered class, loaded on demand."""

    name: str
    kind: str
    origin: Origin
    load: Callable[[], type[T]]

    @property
    def status(self) -> Status:
        """Status as far as it is known without loading the entry."""
        return self.load.status if isinstance(self.load, Loader) else Status("ok")

    def try_load(self) -> Status:
        """Load the entry and return its status instead of raising."""
        try:
            self.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return Status("broken", error.__cause__ or error)
        return Status("ok")


@final
@dataclass(slots=True, eq=False)
class Loader(Generic[T]):
    """Loads one entry point on the first call; a failure is kept as status and retried."""

    kind: str
    point: importlib.metadata.EntryPoint
    origin: Origin
    validated: Callable[[Any], type[T]]  # converts what is loaded to a class; may raise anything
    status: Status = Status("not loaded")
    _loaded: type[T] | None = None

    def __call__(self) -> type[T]:
        """Return the class, or raise a PluginError that names the distribution."""
        if self._loaded is None:
            try:
                # Keep a plugin's prints out of command output; locked, as redirection is global.
                with waiting_for(f"the {self.kind} {self.point.name!r} of {self.origin}"):
                    with _LOADING, contextlib.redirect_stdout(sys.stderr):
                        loaded = self.point.load()
                    _check_api(self.point, self.origin)
                    self._loaded = self.validated(loaded)
            except PluginError as error:
                self.status = Status("broken", error)
                if self.origin.distribution in str(error):
                    raise
                raise PluginContractError(f"{self.origin}: {error}") from error
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                self.status = Status("broken", error)
                raise PluginError(
                    f"the {self.kind} {self.point.name!r} of {self.origin} cannot be loaded: "
                    f"{error!r}; fix or uninstall {self.origin.distribution}"
                ) from error
            self.status = Status("ok")
        return self._loaded


def project(distribution: str) -> str:
    """Return the normalised name of a distribution (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def installed(group: str) -> Callable[[], Iterable[importlib.metadata.EntryPoint]]:
    """Entry points of a group, filtered by ``GBMRANK_PLUGINS`` (0, or allowed distributions)."""
    return lambda: [point for point in _points(group) if _is_allowed(origin_of(point.dist))]


def unreadable() -> list[tuple[Origin, Exception]]:
    """Return the allowed plugin distributions whose entry points cannot be read, with the error."""
    found = []
    for dist in _distributions():
        origin = origin_of(dist)
        if not _is_allowed(origin):
            continue
        try:
            list(dist.entry_points)
        except Exception as error:  # another package's file may be malformed in any way
            try:
                text = dist.read_text("entry_points.txt") or ""
            except UnicodeDecodeError as unreadable_text:
                text = unreadable_text.object.decode("utf-8", "replace")
            if any(f"[{group}]" in text for group in _GROUPS):
                found.append((origin, error))
    return found


def class_name(cls: type) -> str:
    """Return the name a class is registered under, or an empty string."""
    return str(getattr(cls, "name", ""))


def with_article(noun: str) -> str:
    """Return a noun with its article, for messages."""
    return f"an {noun}" if noun[0] in "aeio" else f"a {noun}"


def check_class(kind: str, base: type, cls: Any, origin: str) -> None:
    """Raise unless a class has the base, name, methods and signatures its kind requires."""
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise PluginContractError(
            f"{with_article(kind)} must be a subclass of {base.__module__}.{base.__name__}; "
            f"{origin} registers {cls!r}"
        )
    if not _NAME.fullmatch(class_name(cls)):
        raise RegistrationError(
            f"{cls.__name__}.name must be lower-case letters, digits and '_', starting with a "
            f"letter; got {class_name(cls)!r}"
        )
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
        raise PluginContractError(
            f"the {kind} {class_name(cls)!r} of {origin} is not complete; define {missing}"
        )
    _check_signatures(kind, cls, origin)


def _is_allowed(origin: Origin) -> bool:
    """Whether ``GBMRANK_PLUGINS`` allows a distribution; unset allows all, 0 allows none."""
    allowed = os.environ.get("GBMRANK_PLUGINS", "").strip()
    names = [project(name.strip()) for name in allowed.split(",")]
    return not allowed or (allowed != "0" and project(origin.distribution) in names)


def _points(group: str) -> list[importlib.metadata.EntryPoint]:
    """Return the entry points of a group, skipping files that cannot be read."""
    try:
        return list(importlib.metadata.entry_points(group=group))
    except Exception:  # one malformed file makes importlib fail for all
        found = []
        for dist in _distributions():
            with contextlib.suppress(Exception):
                found += [point for point in dist.entry_points if point.group == group]
        return found


def _distributions() -> Iterator[importlib.metadata.Distribution]:
    """Yield all distributions; of two with the same name, the first on the path."""
    seen = set()
    for dist in importlib.metadata.distributions():
        name = project(origin_of(dist).distribution)
        if name not in seen:
            seen.add(name)
            yield dist


def origin_of(dist: importlib.metadata.Distribution | None) -> Origin:
    """Return name and version; without metadata, the folder instead of the name."""
    if dist is None:
        return Origin("unknown", "")
    name = version = None
    with contextlib.suppress(Exception):
        name, version = dist.name, dist.version
    folder = getattr(getattr(dist, "_path", None), "name", "unknown")
    return Origin(str(name or folder), str(version or "without version"))


def _check_api(point: importlib.metadata.EntryPoint, origin: Origin) -> None:
    """Raise PluginContractError if a plugin needs another version of the contract."""
    module = sys.modules.get(getattr(point, "module", ""))
    wanted = getattr(module, "gbmrank_api", API_VERSION)
    if wanted > API_VERSION:
        raise PluginContractError(
            f"{origin} is written for version {wanted} of the plugin contract, but this gbmrank "
            f"has version {API_VERSION}; upgrade gbmrank, or install an older "
            f"{origin.distribution}"
        )


def _check_signatures(kind: str, cls: type, origin: str) -> None:
    parameters = [field.name for field in fields(cls)] if is_dataclass(cls) else []
    scalar = "must take the margin and the parameters of the loss: {}(%s)"
    wanted = dict.fromkeys(_SCALARS, (1 + len(parameters), scalar % ", ".join(["z", *parameters])))
    for name, (count, rule) in {**wanted, "bind": (2, "must be bind(self, data)")}.items():
        function = getattr(cls, name, None)
        if not inspect.isfunction(function):
            continue
        signature = inspect.signature(function)
        try:
            signature.bind(*range(count))
        except TypeError as error:
            raise PluginContractError(
                f"the {kind} {class_name(cls)!r} of {origin}: {cls.__qualname__}.{name}{signature} "
                f"{rule.format(name)}"
            ) from error
