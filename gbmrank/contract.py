"""What a class must look like to be registered; checked before anything calls it."""

import inspect
import re
from dataclasses import fields, is_dataclass
from typing import Any

from gbmrank.errors import PluginContractError, RegistrationError

__all__ = ["check_class", "class_name", "with_article"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SCALARS = ("phi", "positive", "negative")  # functions of a loss: (z, *parameters)
_METHODS = {"bind": 1}  # arguments after self


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


def _check_signatures(kind: str, cls: type, origin: str) -> None:
    parameters = [field.name for field in fields(cls)] if is_dataclass(cls) else []
    for name in _SCALARS:
        function = getattr(cls, name, None)
        if inspect.isfunction(function) and not _accepts(function, 1 + len(parameters)):
            raise PluginContractError(
                f"{_where(kind, cls, name, origin)}{inspect.signature(function)} must take the "
                f"margin and the parameters of the loss: {name}({', '.join(['z', *parameters])})"
            )
    for name, count in _METHODS.items():
        method = getattr(cls, name, None)
        if inspect.isfunction(method) and not _accepts(method, 1 + count):
            raise PluginContractError(
                f"{_where(kind, cls, name, origin)}{inspect.signature(method)} must be "
                f"{name}(self, data)"
            )


def _accepts(function: Any, count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    return True


def _where(kind: str, cls: type, name: str, origin: str) -> str:
    return f"the {kind} {class_name(cls)!r} of {origin}: {cls.__qualname__}.{name}"
