"""From specs to losses, utilities, objectives and metrics, and back to text."""

import difflib
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

from gbmrank.errors import ParameterError
from gbmrank.registry import LOSSES, METRICS, OBJECTIVES, UTILITIES, Registry
from gbmrank.spec import Spec, Value, parse

__all__ = ["build", "spec_of"]

T = TypeVar("T")
_REGISTRIES: Mapping[str, Registry[Any]] = types.MappingProxyType(
    {"loss": LOSSES, "utility": UTILITIES, "objective": OBJECTIVES, "metric": METRICS}
)


def build(registry: Registry[T], value: object, **params: object) -> T:
    """Make an object from its text, its spec, or its class name and parameters.

    Parameters
    ----------
    registry : Registry
        Where names of this kind are looked up.
    value : str, Spec or an instance
        An instance is returned as it is.
    **params : object
        Further parameters; a parameter that the text gives too is an error.

    Raises
    ------
    ParameterError
        For a parameter that is unknown, given twice or of the wrong type.
    """
    if isinstance(value, registry.base) and not params:
        return value
    spec = parse(value) if isinstance(value, str) else value
    if not isinstance(spec, Spec):
        raise ParameterError(
            f"a {registry.kind} is given as text such as {next(iter(registry))!r} or as an object, "
            f"got {type(value).__name__}"
        )
    cls = registry.get(spec.name)
    given: dict[str, object] = dict(spec.params)
    if spec.k is not None:
        given["k"] = spec.k
    twice = sorted(given.keys() & params.keys())
    if twice:
        raise ParameterError(f"{spec.name}: {twice[0]} is given in the text and as an argument")
    if spec.args:
        raise ParameterError(f"{spec.name}: parameters are written key=value, got {spec.args[0]}")
    return _construct(cls, {**given, **params})


def spec_of(item: object) -> Spec:
    """Return the canonical spec of an object: what differs from the defaults, and what is shown.

    ``build`` of its text gives an equal object.
    """
    params: list[tuple[str, Value]] = []
    k = None
    for field in _own_fields_first(item):
        value = getattr(item, field.name)
        if field.name == "k":
            k = value
        elif field.metadata.get("shown") or value != _default(field):
            params.append((field.name, _as_value(value)))
    return Spec(type(item).name, tuple(params), k)  # type: ignore[attr-defined]


def _construct(cls: type[T], given: Mapping[str, object]) -> T:
    known = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(cls)
    name = cls.name  # type: ignore[attr-defined]
    arguments: dict[str, object] = {}
    for key, value in given.items():
        if key not in known:
            raise ParameterError(_unknown_parameter(name, key, list(known)))
        kind = known[key].metadata.get("kind")
        arguments[key] = (
            build(_REGISTRIES[kind], value)
            if kind is not None
            else _coerce(f"{name}: {key}", value, hints[key])
        )
    return cls(**arguments)


def _unknown_parameter(name: str, key: str, known: list[str]) -> str:
    if key == "k":
        return f"{name} takes no cut-off: leave out the '@'"
    near = difflib.get_close_matches(key, known, n=1)
    hint = (
        f"did you mean {near[0]}?" if near else f"its parameters are {', '.join(known) or 'none'}"
    )
    return f"{name} has no parameter {key!r}; {hint}"


def _coerce(what: str, value: object, hint: Any) -> object:
    """Turn lists into tuples and whole numbers into floats where a float is expected."""
    if isinstance(value, list):
        value = tuple(value)
    allowed = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    plain = tuple(typing.get_origin(option) or option for option in allowed)
    if isinstance(value, plain) and not (isinstance(value, bool) and bool not in plain):
        return value
    if float in plain and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return _coerce(what, value.item(), hint)
    expected = " or ".join("none" if option is type(None) else option.__name__ for option in plain)
    raise ParameterError(f"{what} must be {expected}, got {value!r}")


def _own_fields_first(item: object) -> list[Field[Any]]:
    inherited = {
        name
        for base in type(item).__mro__[1:]
        for name in getattr(base, "__dataclass_fields__", ())
    }
    return sorted(fields(item), key=lambda field: field.name in inherited)  # type: ignore[arg-type]


def _default(field: Field[Any]) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _as_value(value: object) -> Value:
    if isinstance(value, tuple):
        return tuple(_as_value(item) for item in value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    spec = spec_of(value)
    return spec.name if spec == Spec(spec.name) else spec
