"""Shared parts of the checks.

Subjects of checks with suitable data, numerical derivatives, small trainings in the boosters, and
the report.
"""

import functools
import importlib.util
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from gbmrank.api import Metric, Objective, booster_params, metric, objective
from gbmrank.boosters.base import Rows
from gbmrank.boosters.supported import booster_named
from gbmrank.data.queries import RankingData
from gbmrank.errors import DataError, GbmrankError, ParameterError
from gbmrank.losses import AbstractLoss
from gbmrank.losses.base import loss_class
from gbmrank.metrics import AbstractBoundMetric, AbstractMetric, Ranked
from gbmrank.objectives import AbstractBound, AbstractObjective
from gbmrank.registry.catalogue import LOSSES, METRICS, OBJECTIVES, Registry
from gbmrank.registry.composition import build
from gbmrank.registry.entry_points import with_article
from gbmrank.registry.spec import parse
from gbmrank.types import FloatArray, IntArray

SIZES = (5, 1, 4, 7, 3, 6, 2)
"""Rows per query of the data that objectives and metrics are checked on."""
_MARKS = {"passed": "ok", "failed": "FAILED", "skipped": "skipped", "expected": "expected"}
STEP = 4e-3
_WEIGHTS = ((1.0, 8.0), (-1.0, -8.0), (2.0, -1.0), (-2.0, 1.0))  # fourth-order differences
_GRADES = ((0.0, 1.0, 2.0, 3.0, 4.0), (0.0, 1.0))  # graded if supported, else binary
_TEMPLATES = ("comparison", "pairwise(target=dcg)", "pointwise(target=dcg)")
_ROUNDS = 15
_CONCORDANT = 0.7  # least share of concordant pairs; chance is one half
_KINDS: Mapping[str, tuple[type, Registry[Any]]] = {
    "loss": (AbstractLoss, LOSSES),
    "objective": (AbstractObjective, OBJECTIVES),
    "metric": (AbstractMetric, METRICS),
}

Outcome = Literal["passed", "failed", "skipped", "expected"]


class ConformanceError(GbmrankError, AssertionError):
    """A loss, an objective or a metric violates the contract of its kind."""


class SkipCheck(Exception):
    """A check does not apply; the message says why."""


@final
@dataclass(frozen=True, slots=True)
class Check:
    """One named check: a description of the requirement, and a function that raises if violated."""

    name: str
    about: str
    run: Callable[[Any], None]


@final
@dataclass(frozen=True, slots=True)
class Result:
    """Outcome of one check."""

    check: str
    outcome: Outcome
    message: str = ""

    def __str__(self) -> str:
        first, *rest = self.message.splitlines() or [""]
        text = f"{self.check:<24} {_MARKS[self.outcome]:<8} {first}".rstrip()
        return "\n".join([text, *(f"{'':<34}{line}" for line in rest)])


@final
@dataclass(frozen=True, slots=True)
class Report:
    """Results of all checks of one subject; prints as a table."""

    kind: str
    subject: str
    results: tuple[Result, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the checks that failed unexpectedly."""
        return tuple(one.check for one in self.results if one.outcome == "failed")

    def raise_for_failures(self) -> "Report":
        """Return the report, or raise ConformanceError with its text if a check failed."""
        if self.failed:
            raise ConformanceError(str(self))
        return self

    def __str__(self) -> str:
        count = len(self.results)
        found = f"{len(self.failed)} of {count} checks failed" if self.failed else "ok"
        head = f"{self.kind} {self.subject}: {found}"
        return "\n".join([head, *(f"  {one}" for one in self.results)])


def fail_unless(condition: object, message: str) -> None:
    """Raise AssertionError with a message, even if Python runs with -O."""
    if not condition:
        raise AssertionError(message)


def query_slices(sizes: Any = SIZES) -> list[slice]:
    """Return the rows of each query."""
    ends = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


def scores_of(sizes: Any = SIZES, seed: int = 0, spread: float = 1.0) -> FloatArray:
    """Return scores that are all different."""
    rng = np.random.default_rng([17, seed])
    return spread * rng.normal(size=int(np.sum(sizes)))


def permuted_rows(sizes: Any = SIZES, seed: int = 0) -> IntArray:
    """Return an order of rows that shuffles every query within itself."""
    rng = np.random.default_rng([23, seed])
    parts = [part.start + rng.permutation(part.stop - part.start) for part in query_slices(sizes)]
    return np.concatenate(parts)


def derivative(function: Callable[[float], Any], at: float, step: float = STEP) -> Any:
    """Return the numerical derivative of a function, and a mask of where it is reliable."""
    return _differences(lambda by: np.asarray(function(at + by), dtype=np.float64), step)


def by_place() -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the first rows of the queries, then the second ones and so on, with their queries."""
    sizes = np.array(SIZES)
    starts = np.cumsum(sizes) - sizes
    for place in range(max(SIZES)):
        queries = np.flatnonzero(place < sizes)
        yield queries, starts[queries] + place


def row_derivatives(
    evaluate: Callable[[FloatArray], FloatArray], scores: FloatArray
) -> tuple[FloatArray, Any]:
    """Differentiate by every row, one position of every query at a time.

    The function maps scores to one number per query, or to one per row (then each is
    differentiated by its own score). Slopes are reliable where two step sizes agree, that is
    without a kink.
    """
    slopes, trusted = np.zeros(len(scores)), np.zeros(len(scores), dtype=bool)
    for queries, rows in by_place():

        def moved(by: float, rows: Any = rows, queries: Any = queries) -> FloatArray:
            shifted = scores.copy()
            shifted[rows] += by
            values = evaluate(shifted)
            return values[queries] if len(values) == len(SIZES) else values[rows]

        slopes[rows], trusted[rows] = _differences(moved, STEP)
    return slopes, trusted


def close(found: Any, expected: Any, tolerance: float, scale: Any = 1.0) -> Any:
    """Whether numbers agree up to a tolerance relative to them or to a scale."""
    size = np.maximum(np.maximum(np.abs(found), np.abs(expected)), scale)
    return np.abs(np.asarray(found) - expected) <= tolerance * size


def hold_close(what: str, found: Any, expected: Any, tolerance: float, scale: Any = 1e-12) -> None:
    """Raise AssertionError with the first place where two arrays differ."""
    found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    fail_unless(
        found.shape == expected.shape, f"{what}: shape {found.shape}, expected {expected.shape}"
    )
    same = close(found, expected, tolerance, scale) | (np.isnan(found) & np.isnan(expected))
    if not np.all(same):
        at = int(np.argmin(np.atleast_1d(same)))
        one, two = np.atleast_1d(found)[at], np.atleast_1d(expected)[at]
        raise AssertionError(f"{what}: {one:.10g} where {two:.10g} is expected (place {at})")


@final
@dataclass(frozen=True)
class LossSubject:
    """A loss, and an objective that uses it."""

    loss: AbstractLoss

    @classmethod
    def read(cls, given: Any) -> "LossSubject":
        """Read a loss from an object, a class, a function or text."""
        if inspect.isfunction(given):
            given = loss_class(given)
        if isinstance(given, type) and issubclass(given, AbstractLoss):
            given = given()
        return cls(build(LOSSES, given))

    @functools.cached_property
    def objective(self) -> Objective:
        """An objective of the first template that supports the loss."""
        for template in _TEMPLATES:
            try:
                return objective(template, loss=self.loss)
            except ParameterError:
                continue
        raise ConformanceError(f"no template supports the loss {self.loss!r}")

    @functools.cached_property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """Scalar functions of the loss by name; a pair form that is not supported is left out."""
        if self.loss.pair_form == "difference":
            raise SkipCheck("it compares scores with utilities and is not a function of a margin")
        positive, negative = self.loss.partials
        found = {"positive": positive, "negative": negative}
        return {"kappa": self.loss.kappa, **found} if self.loss.pair_form == "margin" else found

    def __str__(self) -> str:
        return str(self.loss)


class _WithLabels:
    """Labels that a subject supports: grades if possible, else zeros and ones."""

    grades: tuple[float, ...]

    def labels(self, sizes: Any = SIZES, seed: int = 0) -> FloatArray:
        """Return labels with the lowest and highest grade in every query that is long enough."""
        rng = np.random.default_rng([5, seed])
        column = rng.choice(np.array(self.grades), int(np.sum(sizes)))
        for part in query_slices(sizes):
            if part.stop - part.start > 1:
                column[part.start : part.start + 2] = self.grades[-1], self.grades[0]
        return column


@final
@dataclass(frozen=True)
class ObjectiveSubject(_WithLabels):
    """An objective with labels that it supports."""

    objective: Objective
    grades: tuple[float, ...]

    @classmethod
    def read(cls, given: Any, grades: Any = None) -> "ObjectiveSubject":
        """Read an objective from an object, a class or text."""
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
    """A metric with labels that it supports."""

    metric: Metric
    grades: tuple[float, ...]

    @classmethod
    def read(cls, given: Any, grades: Any = None) -> "MetricSubject":
        """Read a metric from an object, a class or text."""
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
    if isinstance(given, Objective | Metric):
        return given.kind
    if inspect.isfunction(given):
        return "loss"
    for kind, (base, _) in _KINDS.items():
        if isinstance(given, base) or (isinstance(given, type) and issubclass(given, base)):
            return kind
    name = parse(str(given)).name
    found = [kind for kind, (_, known) in _KINDS.items() if name.rpartition(":")[2] in known]
    if not found:
        raise ConformanceError(f"there is no loss, objective or metric {name!r}")
    if len(found) > 1:
        kinds = " and ".join(map(with_article, found))
        raise ConformanceError(f"{name!r} is {kinds}; give kind={found[0]!r}")
    return found[0]


def trains_in(backend: str, subject: "ObjectiveSubject") -> None:
    """Raise AssertionError unless a booster learns to order an easy task."""
    made, rows = subject.objective, _task(backend, subject.grades)
    params = booster_params(made, backend)
    scores = booster_named(backend).tuning.try_objective(made, params, rows, _ROUNDS)
    fail_unless(np.isfinite(scores).all(), f"{backend} predicts scores that are not finite")
    share = _concordance(rows, scores)
    fail_unless(
        share >= _CONCORDANT,
        f"after {_ROUNDS} rounds {backend} orders {share:.0%} of the pairs of an easy task; "
        f"at least {_CONCORDANT:.0%} is expected (wrong sign, or a Hessian far too large?)",
    )
    if made.template.gradient == "exact":
        before = made.loss(rows.labels, np.zeros(len(scores)), group=rows.sizes)
        after = made.loss(rows.labels, scores, group=rows.sizes)
        fail_unless(after < before, f"training in {backend} raises the loss: {before} to {after}")


def evaluates_in(backend: str, subject: "MetricSubject") -> None:
    """Raise AssertionError unless a booster reports the value of :meth:`Metric.score`."""
    rows = _task(backend, subject.grades)
    scores, shown = booster_named(backend).tuning.try_metric(subject.metric, rows)
    expected = subject.metric.score(rows.labels, scores.astype(np.float32), group=rows.sizes)
    fail_unless(
        np.isclose(shown, expected, rtol=1e-5, atol=1e-6),
        f"{backend} reports {shown} for its predictions, score() gives {expected}",
    )


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


def _differences(moved: Callable[[float], FloatArray], step: float) -> tuple[FloatArray, Any]:
    """Return differences, and where those of two widths agree."""
    wide, near = (
        np.asarray(sum(factor * moved(by * width) for by, factor in _WEIGHTS)) / (12.0 * width)
        for width in (step, 0.5 * step)
    )
    size = np.maximum(np.maximum(np.abs(wide), np.abs(near)), 1e-3 * np.abs(near).max(initial=0.0))
    return near, np.isfinite(wide) & (np.abs(wide - near) <= 1e-4 * size + 1e-12)


def _task(backend: str, grades: tuple[float, ...]) -> Rows:
    if importlib.util.find_spec(backend) is None:
        raise SkipCheck(f"{backend} is not installed")
    rng = np.random.default_rng(3)
    sizes = rng.integers(4, 12, 40)
    x = rng.normal(size=(int(sizes.sum()), 4))
    signal = x[:, 0] + 0.5 * x[:, 1]
    cuts = np.quantile(signal, np.linspace(0, 1, len(grades) + 1)[1:-1])
    return Rows(x, np.array(grades)[np.digitize(signal, cuts)], sizes)


def _concordance(rows: Rows, scores: FloatArray) -> float:
    right, total = 0.0, 0
    for part in query_slices(rows.sizes):
        y, s = rows.labels[part], scores[part]
        better = y[:, None] > y[None, :]
        lead = s[:, None] - s[None, :]
        right += float(((lead > 0) + 0.5 * (lead == 0))[better].sum())
        total += int(better.sum())
    return right / max(total, 1)
