"""Parameters of an objective by path: ``loss``, ``loss__sigma``, ``target__k``."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from gbmrank.api import Objective, objective
from gbmrank.errors import ParameterError
from gbmrank.registry.composition import spec_of
from gbmrank.registry.spec import Spec

__all__ = ["parameters_of", "with_parameter"]


def parameters_of(target: Objective) -> dict[str, Any]:
    """Return all parameters by path; losses and targets as their text.

    Examples
    --------
    >>> found = parameters_of(objective("pairwise", target="ndcg@10"))
    >>> found["loss"], found["loss__sigma"], found["target__k"]
    ('logistic', 1.0, 10)
    """
    return _below(target.template)


def with_parameter(target: Objective, path: str, value: Any) -> Objective:
    """Return an objective with one other parameter.

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


def _below(part: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(part):
        value = getattr(part, field.name)
        if field.metadata.get("data"):
            continue  # rows of a data set, not a setting
        found[field.name] = str(spec_of(value)) if _is_part(value) else value
        if _is_part(value):
            found |= {f"{field.name}__{path}": each for path, each in _below(value).items()}
    return found


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
