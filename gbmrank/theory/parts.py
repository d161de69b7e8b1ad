"""What users hand in (objects of the API, bare parts, or text) as bare parts."""

from dataclasses import fields, replace
from typing import Any

from gbmrank.composition import build, spec_of
from gbmrank.errors import ParameterError
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractObjective
from gbmrank.registry import METRICS, OBJECTIVES

__all__ = ["as_metric", "as_objective", "cut_off", "loss_text", "text_of"]


def as_objective(objective: Any) -> AbstractObjective:
    """Return the composition behind an objective, its template, or its text."""
    bare = getattr(objective, "template", objective)
    return build(OBJECTIVES, bare)


def as_metric(metric: Any) -> AbstractMetric:
    """Return the measure behind a metric, itself, or its text."""
    bare = getattr(metric, "measure", metric)
    if isinstance(bare, list | tuple):
        raise ParameterError("theory looks at one metric at a time; pick one of the list")
    return build(METRICS, bare)


def text_of(part: Any) -> str:
    """Return the canonical text of an objective or a metric.

    Examples
    --------
    >>> text_of(as_objective("ranknet"))
    'comparison(loss=logistic)'
    """
    return str(spec_of(part))


def loss_text(objective: AbstractObjective) -> str:
    """Return the text of an objective without what does not change its minimisers.

    Normalisation depends on the number of items alone; curvature and engine are means.

    Examples
    --------
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
