"""Parameters of an objective by path, as scikit-learn's searches set them."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from gbmrank.api import Objective, objective
from gbmrank.errors import ParameterError
from gbmrank.registry.composition import spec_of
from gbmrank.registry.spec import Spec


def parameters_of(target: Objective) -> dict[str, Any]:
    """Return all parameters of an objective by path; losses and targets as text.

    Examples
    --------
    >>> found = parameters_of(objective("pairwise", target="ndcg@10"))
    >>> found["loss"], found["loss__sigma"], found["target__k"]
    ('logistic', 1.0, 10)
    """
    return dict(_below(target.template))


def with_parameter(target: Objective, path: str, value: Any) -> Objective:
    """Return a copy of an objective with one parameter changed.

    Examples
    --------
    >>> with_parameter(objective("pairwise"), "loss__sigma", 2)
    gbmrank.objective('pairwise(loss=logistic(sigma=2), target=ndcg)')
    """
    name, _, rest = path.partition("__")
    if rest:
        part = getattr(target.template, name, None)
        if not _is_part(part):
            raise ParameterError(f"{target} has no parameter {name!r} with parameters of its own")
        value = _changed(spec_of(part), rest, value)
    return objective(target, **{name: value})


def _below(part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for field in fields(part):
        value, name = getattr(part, field.name), path + field.name
        if field.metadata.get("data"):
            continue  # rows of a data set, not a setting
        yield name, str(spec_of(value)) if _is_part(value) else value
        if _is_part(value):
            yield from _below(value, f"{name}__")


def _changed(spec: Spec, path: str, value: Any) -> Spec:
    name, _, rest = path.partition("__")
    params = dict(spec.params)
    if rest:
        inner = params.get(name)
        if not isinstance(inner, str | Spec):
            raise ParameterError(f"{spec} has no parameter {name!r} with parameters of its own")
        value = _changed(inner if isinstance(inner, Spec) else Spec(inner), rest, value)
    if name == "k":
        return replace(spec, k=value)
    return replace(spec, params=tuple({**params, name: value}.items()))


def _is_part(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)
