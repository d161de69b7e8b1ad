"""What is checked, with the data it can be checked on."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gbmrank.api import Metric, Objective, metric, objective
from gbmrank.data.queries import RankingData
from gbmrank.errors import DataError, ParameterError
from gbmrank.losses import AbstractLoss
from gbmrank.losses.base import loss_class
from gbmrank.metrics import AbstractBoundMetric, AbstractMetric, Ranked
from gbmrank.objectives import AbstractBound, AbstractObjective
from gbmrank.registry.catalogue import LOSSES, METRICS, OBJECTIVES, Registry
from gbmrank.registry.composition import build
from gbmrank.registry.spec import parse
from gbmrank.testing.numbers import SIZES, query_slices
from gbmrank.testing.report import ConformanceError, SkipCheck
from gbmrank.types import FloatArray

__all__ = ["LossSubject", "MetricSubject", "ObjectiveSubject", "kind_of"]

_GRADES = ((0.0, 1.0, 2.0, 3.0, 4.0), (0.0, 1.0))  # graded if it takes them, else binary
_TEMPLATES = ("comparison", "pairwise(target=dcg)", "pointwise(target=dcg)")


@final
@dataclass(frozen=True)
class LossSubject:
    """A loss, and an objective that uses it."""

    loss: AbstractLoss

    @classmethod
    def read(cls, given: Any) -> "LossSubject":
        """Take a loss as an object, a class, a function or text."""
        if inspect.isfunction(given):
            given = loss_class(given)
        if isinstance(given, type) and issubclass(given, AbstractLoss):
            given = given()
        return cls(build(LOSSES, given))

    @functools.cached_property
    def objective(self) -> Objective:
        """The first template that takes the loss."""
        for template in _TEMPLATES:
            try:
                return objective(template, loss=self.loss)
            except ParameterError:
                continue
        raise ConformanceError(f"no template takes the loss {self.loss!r}")

    @functools.cached_property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """Scalar functions of the loss by name; a pair form that is refused is left out."""
        if self.loss.pair_form == "difference":
            raise SkipCheck("it compares scores with utilities and is no function of a margin")
        positive, negative = self.loss.partials
        found = {"positive": positive, "negative": negative}
        return {"kappa": self.loss.kappa, **found} if self.loss.pair_form == "margin" else found

    def __str__(self) -> str:
        return str(self.loss)


class _WithLabels:
    """Labels that a subject takes: grades if it can, else zeros and ones."""

    grades: tuple[float, ...]

    def labels(self, sizes: Any = SIZES, seed: int = 0) -> FloatArray:
        """Return labels of both ends in every query that is long enough."""
        rng = np.random.default_rng([5, seed])
        column = rng.choice(np.array(self.grades), int(np.sum(sizes)))
        for part in query_slices(sizes):
            if part.stop - part.start > 1:
                column[part.start : part.start + 2] = self.grades[-1], self.grades[0]
        return column


def _grades_for(bind: Callable[[RankingData], Any], given: Any) -> tuple[float, ...]:
    if given is not None:
        return tuple(float(grade) for grade in given)
    for grades in _GRADES:
        try:
            bind(RankingData.from_arrays(np.array(grades)))
        except (DataError, ParameterError):
            continue
        return grades
    return _GRADES[0]


@final
@dataclass(frozen=True)
class ObjectiveSubject(_WithLabels):
    """An objective with labels it takes."""

    objective: Objective
    grades: tuple[float, ...]

    @classmethod
    def read(cls, given: Any, grades: Any = None) -> "ObjectiveSubject":
        """Take an objective as an object, a class or text."""
        if isinstance(given, type) and issubclass(given, AbstractObjective):
            given = given()
        made = objective(given)
        return cls(made, _grades_for(made.template.bind, grades))

    def bound(self, labels: FloatArray, sizes: Any = SIZES, weight: Any = None) -> AbstractBound:
        """Bind the objective itself, without the guard around plugins."""
        data = RankingData.from_arrays(labels, group=sizes, weight=weight)
        return self.objective.template.bind(data)

    def __str__(self) -> str:
        return str(self.objective)


@final
@dataclass(frozen=True)
class MetricSubject(_WithLabels):
    """A metric with labels it takes."""

    metric: Metric
    grades: tuple[float, ...]

    @classmethod
    def read(cls, given: Any, grades: Any = None) -> "MetricSubject":
        """Take a metric as an object, a class or text."""
        if isinstance(given, type) and issubclass(given, AbstractMetric):
            given = given()
        made = given if isinstance(given, Metric) else metric(given)
        if not isinstance(made, Metric):
            raise ConformanceError(f"give one metric at a time, not {given!r}")
        return cls(made, _grades_for(made.measure.bind, grades))

    def bound(
        self, labels: FloatArray, sizes: Any = SIZES, weight: Any = None
    ) -> AbstractBoundMetric:
        """Bind the metric itself, without the guard around plugins."""
        data = RankingData.from_arrays(labels, group=sizes, weight=weight)
        return self.metric.measure.bind(data)

    def values(self, labels: FloatArray, scores: FloatArray, sizes: Any = SIZES) -> FloatArray:
        """Return one value per query."""
        bound = self.bound(labels, sizes)
        return bound.per_query(Ranked(scores.copy(), bound.groups))

    def __str__(self) -> str:
        return str(self.metric)


def kind_of(given: Any) -> str:
    """Return ``"loss"``, ``"objective"`` or ``"metric"``."""
    bases: dict[str, Any] = {
        "loss": AbstractLoss,
        "objective": AbstractObjective,
        "metric": AbstractMetric,
    }
    if isinstance(given, Objective | Metric):
        return given.kind
    if inspect.isfunction(given):
        return "loss"
    for kind, base in bases.items():
        if isinstance(given, base) or (isinstance(given, type) and issubclass(given, base)):
            return kind
    name = parse(str(given)).name
    bare = name.rpartition(":")[2]
    known: dict[str, Registry[Any]] = {
        "loss": LOSSES,
        "objective": OBJECTIVES,
        "metric": METRICS,
    }
    found = [kind for kind, registry in known.items() if bare in registry]
    if not found:
        raise ConformanceError(f"no loss, objective or metric is called {name!r}")
    if len(found) > 1:
        raise ConformanceError(f"{name!r} is a {' and a '.join(found)}; say kind={found[0]!r}")
    return found[0]
