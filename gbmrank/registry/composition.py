"""Build losses, utilities, objectives and metrics from specs, and convert them back to text.

:func:`build` makes an object from its text, :func:`spec_of` returns the spec of an object.
:class:`AbstractValue` wraps one as an immutable value, compared by content and printed as spec.
"""

import difflib
import functools
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from gbmrank.errors import ParameterError, UnknownNameError
from gbmrank.metrics import AbstractMetric
from gbmrank.metrics.positional import MetricUtility
from gbmrank.objectives import AbstractObjective
from gbmrank.registry.catalogue import (
    GENERATORS,
    LOSSES,
    METRICS,
    OBJECTIVES,
    OUTERS,
    REGULARISERS,
    UTILITIES,
    WEIGHTS,
    Registry,
)
from gbmrank.registry.entry_points import with_article
from gbmrank.registry.guards import is_ours, naming
from gbmrank.registry.spec import Spec, Value, parse

T = TypeVar("T")
P = TypeVar("P")
_NATIVE = "native:"
_REGISTRIES: Mapping[str, Registry[Any]] = types.MappingProxyType(
    {
        "loss": LOSSES,
        "utility": UTILITIES,
        "objective": OBJECTIVES,
        "metric": METRICS,
        "generator": GENERATORS,
        "outer": OUTERS,
        "regulariser": REGULARISERS,
        "weights": WEIGHTS,
    }
)
_EXAMPLES: Mapping[str, str] = types.MappingProxyType(
    {"objective": "pairwise(target=ndcg@10)", "metric": "ndcg@10", "loss": "logistic"}
)


def build(registry: Registry[T], value: object, **params: object) -> T:
    """Build an object from its text, its spec, or its class name and parameters.

    An instance is returned unchanged, or copied with other parameters. Where a utility is
    expected, a metric stands for its utility. A parameter in both the text and the arguments
    raises a ParameterError.
    """
    if isinstance(value, registry.base):
        own = {field.name: getattr(value, field.name) for field in fields(value)}
        return _construct(registry, type(value), {**own, **params}) if params else value
    if registry is UTILITIES and isinstance(value, AbstractMetric):
        return build(registry, _utility_of(value), **params)
    spec = parse(value) if isinstance(value, str) else value
    if not isinstance(spec, Spec):
        example = _EXAMPLES.get(registry.kind) or next(iter(registry))
        hint = "; gbmrank.register_loss takes your own loss" if registry is OBJECTIVES else ""
        raise ParameterError(
            f"{with_article(registry.kind)} must be text such as {example!r} or an object, got "
            f"{type(value).__name__}{hint}"
        )
    if registry is OBJECTIVES and spec.name.startswith(_NATIVE):
        bare = spec.name.removeprefix(_NATIVE)
        ours = f"; {bare} without native: is gbmrank's own" if bare in registry else ""
        raise UnknownNameError(
            f"{spec.name} is a booster's built-in objective, without a formula in gbmrank{ours}; "
            "train it with gbmrank.GBMRanker(objective=...), gbmrank.compare(objectives=[...]), or "
            f"pass {bare!r} to the booster itself"
        )
    given = _parameters(spec)
    twice = sorted(given.keys() & params.keys())
    if twice:
        raise ParameterError(f"{spec.name}: {twice[0]} is set in the text and as an argument")
    if registry is UTILITIES and spec.name not in registry and spec.name in METRICS:
        return build(registry, build(METRICS, spec, **params))
    given.update(params)
    preset = _preset(registry, spec.name, given)
    defaults = {} if preset is None else _parameters(preset)
    cls = registry.get(spec.name if preset is None else preset.name)
    return _construct(registry, cls, {**defaults, **given})


def _preset(registry: Registry[Any], name: str, given: dict[str, object]) -> Spec | None:
    """Return the composition of a preset; a cut-off that selects it is removed from ``given``."""
    preset = registry.preset(name)
    if preset is None:
        return None
    registry.warn_if_shadowed(name)
    if "k" in given and registry.preset(name, k=1) is not None:
        preset = registry.preset(name, given.pop("k"))
    return preset


def spec_of(item: object) -> Spec:
    """Return the canonical spec of an object: parameters that differ from their defaults.

    ``build`` of its text returns an equal object, unless a parameter is a function, of which the
    text only has the name.
    """
    if isinstance(item, MetricUtility):
        return spec_of(item.metric)
    params: list[tuple[str, Value]] = []
    args: tuple[Value, ...] = ()
    k = None
    cls: Any = type(item)
    for field in _own_first(cls):
        value, factory = getattr(item, field.name), field.default_factory
        default = field.default if factory is MISSING else factory()
        if field.metadata.get("data"):
            continue  # preferences belong to rows, not to the text
        if field.name == "k" and (value is None or isinstance(value, int)):
            k = value  # a cut-off; a loss may have a parameter of this name that is a number
        elif field.metadata.get("positional"):
            args = tuple(_as_value(part) for part in value)
        elif field.metadata.get("shown") or value != default:
            params.append((field.name, _as_value(value)))
    return Spec(_text_name(type(item)), tuple(params), k, args)


@functools.cache
def _own_first(cls: Any) -> tuple[Field[Any], ...]:
    """Return the fields of a class, those of its bases last."""
    bases = cls.__mro__[1:]
    inherited = {name for base in bases for name in getattr(base, "__dataclass_fields__", ())}
    return tuple(sorted(fields(cls), key=lambda field: field.name in inherited))


def as_objective(objective: Any) -> AbstractObjective:
    """Return the composition of an objective, which may also be a template or text."""
    return build(OBJECTIVES, getattr(objective, "template", objective))


def as_metric(metric: Any) -> AbstractMetric:
    """Return the measure of a metric, which may also be a measure or text."""
    bare = getattr(metric, "measure", metric)
    if isinstance(bare, list | tuple):
        raise ParameterError("theory takes one metric at a time; pick one of the list")
    return build(METRICS, bare)


def text_of(part: Any) -> str:
    """Return the canonical text of an objective or a metric.

    >>> text_of(as_objective("ranknet"))
    'comparison(loss=logistic)'
    """
    return str(spec_of(part))


def check_text(part: object) -> None:
    """Raise ParameterError for a parameter that is a function, which has no text form.

    A saved model or comparison would load with another function of that name, or not at all.
    """
    for field in fields(part):  # type: ignore[arg-type]
        value = () if field.metadata.get("data") else getattr(part, field.name)
        for one in value if isinstance(value, tuple) else (value,):
            if is_dataclass(one) and not isinstance(one, type):
                check_text(one)
            elif callable(one):
                raise ParameterError(
                    f"{type(part).name}: {field.name} is the function "  # type: ignore[attr-defined]
                    f"{getattr(one, '__name__', one)!s}, which models and comparisons cannot save "
                    "as text; use a table such as [1, 0.5, 0.25], or register your own class"
                )


def loss_text(objective: AbstractObjective) -> str:
    """Return the text of an objective without options that do not change its minimisers.

    These are the normalisation (a factor per query), the Hessian and the engine.

    >>> loss_text(as_objective("comparison(loss=logistic, normalize=pairs, engine=pairs)"))
    'comparison(loss=logistic)'
    """
    known = {field.name: field.default for field in fields(objective)}
    means = ("normalize", "hessian", "engine")
    same: dict[str, Any] = {name: known[name] for name in means if name in known}
    return text_of(replace(objective, **same))


def cut_off(part: Any) -> int | None:
    """Return the cut-off of a metric or a utility, or None when it has none."""
    known = {field.name for field in fields(part)}
    k = getattr(part, "k", None) if "k" in known else None
    return None if k is None else int(k)


class AbstractValue(Generic[P]):
    """An objective or metric as an immutable value.

    Copies, including deep copies, are the object itself: LightGBM deep-copies its
    parameters and scikit-learn clones its estimators, and the state bound to their data
    sets must not be lost.
    """

    __slots__ = ("__weakref__", "_part", "_text")
    _part: P
    _text: str  # once it is needed
    kind: ClassVar[str]

    def __init__(self, part: P) -> None:
        object.__setattr__(self, "_part", part)

    @property
    def spec(self) -> Spec:
        """Canonical spec; an object built from its text is equal."""
        return spec_of(self._part)

    @property
    def __name__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if not hasattr(self, "_text"):
            object.__setattr__(self, "_text", str(self.spec))
        return self._text

    def __repr__(self) -> str:
        return f"gbmrank.{self.kind}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._part == other._part

    def __hash__(self) -> int:
        return hash((type(self), self._part))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"this {self.kind} is frozen; make another with gbmrank.{self.kind}(...)"
        )

    def __copy__(self) -> "AbstractValue[P]":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "AbstractValue[P]":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._part,)


def _utility_of(metric: AbstractMetric) -> object:
    """Return the utility of a metric: its own, or one registered by its name, with its options."""
    held, graphs = metric.utility, getattr(metric, "preferences", None)
    if (
        graphs is None
        and metric.name in UTILITIES
        and (held is None or isinstance(held, MetricUtility))
    ):
        shared = {field.name for field in fields(UTILITIES.get(metric.name))}
        own = {field.name: getattr(metric, field.name) for field in fields(metric)}
        return build(UTILITIES, metric.name, **{key: own[key] for key in own if key in shared})
    if held is None:
        k = cut_off(metric)
        reason = metric.no_utility.format(k="" if k is None else f"@{k}")
        raise ParameterError(f"{metric.name} cannot be a target: {reason}")
    return held


def _parameters(spec: Spec) -> dict[str, object]:
    given: dict[str, object] = dict(spec.params)
    if spec.k is not None:
        if "k" in given:
            raise ParameterError(
                f"{spec.name}: the cut-off is set twice, as k={given['k']} and as @{spec.k}"
            )
        given["k"] = spec.k
    if spec.args:
        given[""] = spec.args  # arguments without a key go to the field that takes them
    return given


def _text_name(cls: type) -> str:
    """Return the name of a class, with its distribution if names clash."""
    if is_ours(cls):
        return str(cls.name)  # type: ignore[attr-defined]
    known = (each for each in _REGISTRIES.values() if issubclass(cls, each.base))
    return next(known).text_name(cls)


def _construct(registry: Registry[T], cls: Any, given: Mapping[str, object]) -> T:
    known, hints, usual, positional = _fields_of(cls)
    name = cls.name
    arguments: dict[str, object] = {}
    for key, value in {**usual, **given}.items():
        target = positional if key == "" else key
        if target is None:
            raise ParameterError(f"{name}: write parameters as key=value, got {value}")
        if target not in known:
            ranks = registry in (METRICS, UTILITIES, OBJECTIVES)
            raise ParameterError(_unknown_parameter(name, target, list(known), ranks))
        arguments[target] = _argument(f"{name}: {target}", value, known[target], hints[target])
    with naming(registry, cls, "cannot be constructed"):
        made: T = cls(**arguments)
        return made


@functools.cache
def _fields_of(cls: Any) -> tuple[dict[str, Field[Any]], dict[str, Any], dict[str, Any], Any]:
    """Return fields and type hints by name, usual values, and the field without a key."""
    known = {field.name: field for field in fields(cls)}
    usual = {key: each.metadata["usual"] for key, each in known.items() if "usual" in each.metadata}
    positional = next((key for key in known if known[key].metadata.get("positional")), None)
    return known, typing.get_type_hints(cls), usual, positional


def _argument(what: str, value: object, field: Field[Any], hint: Any) -> object:
    kind, nested = field.metadata.get("kind"), field.metadata.get("nested")
    if nested is not None:  # a word, a table, or a name with options
        options = isinstance(value, str) and not value.isidentifier()
        spec = parse(value) if options and isinstance(value, str) else value
        if isinstance(spec, Spec):
            return build(_REGISTRIES[nested], spec)
    if kind is None or (value is None and field.default is None):
        return _coerce(what, value, hint)
    if field.metadata.get("positional"):
        parts = value if isinstance(value, list | tuple) else (value,)
        return tuple(build(_REGISTRIES[kind], part) for part in parts)
    return build(_REGISTRIES[kind], value)


def _unknown_parameter(name: str, key: str, known: list[str], ranks: bool) -> str:
    if key == "target":
        return (
            f"{name} takes no target: it learns from the labels directly; pointwise, pairwise and "
            "bregman take a target"
        )
    if key == "k":
        inner = next((each for each in ("target", "metric") if each in known), None)
        if inner is not None:
            return f"{name} has no k; write {inner}='ndcg@10'"
        if ranks:
            return f"{name} takes no cut-off; leave it out"
    if name == "mix":
        return f"mix has no parameter {key!r}; write its parts out and set it there"
    near = difflib.get_close_matches(key, known, n=1)
    hint = (
        f"did you mean {near[0]}?"
        if near
        else f"its parameters are {', '.join(known)}"
        if known
        else "it takes none"
    )
    return f"{name} has no parameter {key!r}; {hint}"


def _coerce(what: str, value: object, hint: Any) -> object:
    """Turn lists into tuples and whole numbers into floats where a float is expected."""
    value = _plain(value)
    accepted, of_numbers = _types_of(hint)
    if accepted is None:
        return value  # Literal and the like: the class validates it
    if isinstance(value, tuple) and of_numbers:
        bad = [one for one in value if isinstance(one, bool) or not isinstance(one, int | float)]
        if bad:
            raise ParameterError(f"{what}: every entry must be a number, got {bad[0]!s}")
        return value
    if isinstance(value, accepted) and not (isinstance(value, bool) and bool not in accepted):
        return value
    if float in accepted and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if value is None and str in accepted:
        return "none"  # normalize=none means the string
    expected = " or ".join("none" if one is type(None) else one.__name__ for one in accepted)
    raise ParameterError(f"{what} must be {expected}, got {value!r}")


@functools.lru_cache(256)
def _types_of(hint: Any) -> tuple[tuple[type, ...] | None, bool]:
    """Return the classes of a type hint, None if there are others, and whether one has floats."""
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    allowed = typing.get_args(hint) if union else (hint,)
    accepted = tuple(typing.get_origin(option) or option for option in allowed)
    known = Any not in accepted and all(isinstance(option, type) for option in accepted)
    of_numbers = any(typing.get_args(one)[:1] == (float,) for one in allowed)
    return accepted if known else None, of_numbers


def _plain(value: Any) -> object:
    """Convert numpy numbers and arrays, and lists, to Python numbers and tuples."""
    if hasattr(value, "tolist") and not isinstance(value, type):
        value = value.tolist()
    return tuple(_plain(item) for item in value) if isinstance(value, list | tuple) else value


def _as_value(value: object) -> Value:
    if isinstance(value, tuple):
        return tuple(_as_value(item) for item in value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if not is_dataclass(value):
        return str(getattr(value, "__name__", type(value).__name__))  # a function has no text
    spec = spec_of(value)
    return spec.name if spec == Spec(spec.name) else spec
