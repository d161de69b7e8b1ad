"""Entry points of plugins: read from metadata, loaded on demand, validated before use.

A plugin is a distribution with entry points in one of the groups ``gbmrank.losses``,
``gbmrank.objectives``, ``gbmrank.metrics`` and ``gbmrank.utilities``. Reading them imports
nothing. The module an entry point names may say for which version of the plugin contract
it was written, ``gbmrank_api = 1``; without it version 1 is meant. :func:`check_class` says
what a class must look like to be registered.
"""

import contextlib
import importlib.metadata
import inspect
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, Generic, Literal, TypeVar, final

from gbmrank.errors import GbmrankWarning, PluginContractError, PluginError, RegistrationError

__all__ = [
    "API_VERSION",
    "Entry",
    "Loader",
    "Origin",
    "Status",
    "check_class",
    "class_name",
    "installed",
    "project",
    "unreadable",
    "with_article",
]

T = TypeVar("T")
API_VERSION: Final = 1
"""Version of the contract between gbmrank and plugins, described in docs/plugins.md."""
_GROUPS: Final = ("gbmrank.losses", "gbmrank.objectives", "gbmrank.metrics", "gbmrank.utilities")
_warned: set[str] = set()
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
    """Whether an entry can be used, and if not, why.

    Parameters
    ----------
    state : {"ok", "broken", "not loaded"}
        A plugin that nobody asked for yet is not loaded.
    cause : BaseException or None
        What a broken plugin raised.
    """

    state: Literal["ok", "broken", "not loaded"]
    cause: BaseException | None = None

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
        """What is known of it without loading it."""
        return self.load.status if isinstance(self.load, Loader) else Status("ok")

    def try_load(self) -> Status:
        """Load it, whatever happens, and return its status."""
        try:
            self.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return Status("broken", error.__cause__ or error)
        return Status("ok")


@final
class Loader(Generic[T]):
    """Loads one entry point when called, once; a failure is kept as a status and tried again.

    Parameters
    ----------
    kind : str
        Singular noun for messages.
    point : EntryPoint
        What to load.
    validated : callable
        Makes a class of what was loaded and checks it; it may raise anything.
    """

    __slots__ = ("_loaded", "kind", "origin", "point", "status", "validated")

    def __init__(
        self,
        kind: str,
        point: importlib.metadata.EntryPoint,
        validated: Callable[[Any, Origin], type[T]],
    ) -> None:
        self.kind, self.point, self.validated = kind, point, validated
        self.origin = _origin(point.dist)
        self.status = Status("not loaded")
        self._loaded: type[T] | None = None

    def __call__(self) -> type[T]:
        """Return the class.

        Raises
        ------
        PluginError
            Naming the distribution; what the plugin raised is its cause.
        """
        if self._loaded is None:
            try:
                with _STDOUT_TO_STDERR:
                    loaded = self.point.load()
                _check_api(self.point, self.origin)
                self._loaded = self.validated(loaded, self.origin)
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
                    f"{error!r}; repair or uninstall {self.origin.distribution}"
                ) from error
            self.status = Status("ok")
        return self._loaded


def project(distribution: str) -> str:
    """Return the name of a distribution without case and separators (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def installed(group: str) -> Callable[[], Iterable[importlib.metadata.EntryPoint]]:
    """Entry points of a group, filtered by ``GBMRANK_PLUGINS`` (0, or allowed distributions).

    A name in it that no installed distribution has gets a warning, once.
    """

    def read() -> Iterable[importlib.metadata.EntryPoint]:
        names = _allowed()
        if names is None:
            return _points(group)
        points = _points(group) if names else []
        chosen = [point for point in points if project(_origin(point.dist).distribution) in names]
        there = {project(_origin(point.dist).distribution) for point in chosen}
        for key in names.keys() - there - {""}:
            _warn_unless_installed(names[key])
        return chosen

    return read


def unreadable() -> list[tuple[Origin, Exception]]:
    """Return the allowed distributions of plugins whose entry points cannot be read, and why."""
    names, found = _allowed(), []
    for dist in _distributions():
        origin = _origin(dist)
        if names is not None and project(origin.distribution) not in names:
            continue
        try:
            list(dist.entry_points)
        except Exception as error:  # a file of somebody else
            text = _entry_text(dist)
            if any(f"[{group}]" in text for group in _GROUPS):
                found.append((origin, error))
    return found


def class_name(cls: type) -> str:
    """Return the name a class registers itself under, or an empty text."""
    return str(getattr(cls, "name", ""))


def with_article(noun: str) -> str:
    """Return a noun with its article, for messages.

    Examples
    --------
    >>> with_article("objective"), with_article("utility")
    ('an objective', 'a utility')
    """
    return f"an {noun}" if noun[0] in "aeio" else f"a {noun}"


def check_class(kind: str, base: type, cls: Any, origin: str) -> None:
    """Raise unless a class is a complete member of its kind.

    Parameters
    ----------
    kind : str
        Singular noun for messages.
    base : type
        Abstract class of the kind.
    cls : object
        What was given.
    origin : str
        Who gave it, for messages.

    Raises
    ------
    PluginContractError
        Not a subclass, not complete, or a function with another signature than it needs.
    RegistrationError
        A name that is not one.
    """
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise PluginContractError(
            f"{with_article(kind)} is a subclass of {base.__module__}.{base.__name__}; "
            f"{origin} gives {cls!r}"
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


@final
class _StdoutToStderr:
    """Print on the error stream while plugins load: the output of a command stays clean.

    ``contextlib.redirect_stdout`` would lose the stream where two threads load at the same time:
    the last one to end puts back what it found, the error stream.
    """

    def __init__(self) -> None:
        self._lock, self._loading = threading.Lock(), 0
        self._kept: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._loading:
                self._kept, sys.stdout = sys.stdout, sys.stderr
            self._loading += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._loading -= 1
            if not self._loading:
                sys.stdout, self._kept = self._kept, None


_STDOUT_TO_STDERR = _StdoutToStderr()


def _allowed() -> dict[str, str] | None:
    """Return the names in ``GBMRANK_PLUGINS`` by project; None where everything is allowed."""
    allowed = os.environ.get("GBMRANK_PLUGINS", "").strip()
    if allowed == "0":
        return {}
    names = {project(name.strip()): name.strip() for name in allowed.split(",")}
    return names if allowed else None


def _warn_unless_installed(name: str) -> None:
    """Say once that ``GBMRANK_PLUGINS`` names a distribution that is not there."""
    if name in _warned:
        return
    _warned.add(name)
    try:
        importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        warnings.warn(
            f"GBMRANK_PLUGINS allows {name!r}, and no distribution of that name is installed; "
            "0 is for no plugins, unset it for all",
            GbmrankWarning,
            stacklevel=2,
        )


def _entry_text(dist: importlib.metadata.Distribution) -> str:
    try:
        return dist.read_text("entry_points.txt") or ""
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "replace")


def _points(group: str) -> list[importlib.metadata.EntryPoint]:
    """Return the entry points of a group, past files that cannot be read."""
    try:
        return list(importlib.metadata.entry_points(group=group))
    except Exception:  # one bad file is enough
        found = []
        for dist in _distributions():
            with contextlib.suppress(Exception):
                found += [point for point in dist.entry_points if point.group == group]
        return found


def _distributions() -> Iterator[importlib.metadata.Distribution]:
    """Yield all distributions; of two with one name the first on the path counts."""
    seen = set()
    for dist in importlib.metadata.distributions():
        name = project(_origin(dist).distribution)
        if name not in seen:
            seen.add(name)
            yield dist


def _origin(dist: importlib.metadata.Distribution | None) -> Origin:
    """Return name and version; without metadata the folder stands for the name."""
    if dist is None:
        return Origin("unknown", "")
    name = version = None
    with contextlib.suppress(Exception):
        name, version = dist.name, dist.version
    folder = getattr(getattr(dist, "_path", None), "name", "unknown")
    return Origin(str(name or folder), str(version or "without version"))


def _check_api(point: importlib.metadata.EntryPoint, origin: Origin) -> None:
    """Raise PluginContractError when a plugin was written for another contract."""
    module = sys.modules.get(getattr(point, "module", ""))
    wanted = getattr(module, "gbmrank_api", API_VERSION)
    if wanted > API_VERSION:
        raise PluginContractError(
            f"{origin} is written for version {wanted} of the plugin contract and this gbmrank "
            f"has version {API_VERSION}; upgrade gbmrank, or install an older "
            f"{origin.distribution}"
        )


def _check_signatures(kind: str, cls: type, origin: str) -> None:
    parameters = [field.name for field in fields(cls)] if is_dataclass(cls) else []
    for name in _SCALARS:
        function = getattr(cls, name, None)
        if inspect.isfunction(function) and not _accepts(function, 1 + len(parameters)):
            raise PluginContractError(
                f"{_where(kind, cls, name, origin)}{inspect.signature(function)} must take the "
                f"margin and the parameters of the loss: {name}({', '.join(['z', *parameters])})"
            )
    bind = getattr(cls, "bind", None)
    if inspect.isfunction(bind) and not _accepts(bind, 2):
        raise PluginContractError(
            f"{_where(kind, cls, 'bind', origin)}{inspect.signature(bind)} must be bind(self, data)"
        )


def _accepts(function: Any, count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    return True


def _where(kind: str, cls: type, name: str, origin: str) -> str:
    return f"the {kind} {class_name(cls)!r} of {origin}: {cls.__qualname__}.{name}"
