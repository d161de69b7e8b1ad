"""Checks of losses: scalar functions, their traits, and their compiled form."""

import itertools
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gbmrank.api import objective
from gbmrank.boosters.supported import BACKENDS
from gbmrank.errors import ParameterError
from gbmrank.registry.catalogue import LOSSES
from gbmrank.registry.composition import build, spec_of
from gbmrank.testing.checks import (
    SIZES,
    STEP,
    Check,
    LossSubject,
    ObjectiveSubject,
    SkipCheck,
    close,
    derivative,
    fail_unless,
    hold_close,
    scores_of,
)
from gbmrank.testing.objective_checks import OBJECTIVE_CHECKS
from gbmrank.theory.shapes import contradictions
from gbmrank.types import FloatArray

_TAILS = (-20.07, -14.06, -9.04, 9.02, 14.05, 20.03)
_MARGINS = np.concatenate([np.linspace(-6.03, 6.01, 61), _TAILS])
_ROUNDING = 64 * float(np.finfo(np.float64).eps)  # of a few operations on numbers of order one
_EXTREME = (-1e2, 1e2, -1e3, 1e3, -1e6, 1e6)
_PULLED = ("gradient", "hessian", "weights", "query_independence", "determinism")


def _rows(subject: LossSubject, margins: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    """Yield each function's name with value, first and second derivative at the margins."""
    for name, function in subject.functions.items():
        yield name, np.array([function(z, *subject.loss.params) for z in margins.tolist()])


def _hold_derivative(order: int, words: str, subject: LossSubject) -> None:
    for name, rows in _rows(subject, _MARGINS):

        def one(z: float, function: Callable[..., Any] = subject.functions[name]) -> Any:
            return function(z, *subject.loss.params)[order - 1]

        found = [derivative(one, z) for z in _MARGINS.tolist()]
        slopes, trusted = (np.array(column) for column in zip(*found, strict=True))
        # Rounding errors are relative to the value or to one, whichever is larger.
        noise = _ROUNDING * np.maximum(np.abs(rows[:, order - 1]), 1.0) / STEP
        wrong = np.flatnonzero(~close(rows[:, order], slopes, 1e-4, 1e4 * noise) & trusted)
        if len(wrong):
            at = wrong[0]
            raise AssertionError(
                f"{words} of {name} at {_MARGINS[at]:.2f} is {rows[at, order]:.8g}; differences "
                f"give {slopes[at]:.8g} ({len(wrong)} of {len(_MARGINS)} margins are wrong)"
            )


def _shape(subject: LossSubject) -> None:
    for name, function in subject.functions.items():
        values = function(0.25, *subject.loss.params)
        fail_unless(
            isinstance(values, tuple) and len(values) == 3,
            f"{name} must return (value, first derivative, second derivative); got {values!r}",
        )


_first_derivative = partial(_hold_derivative, 1, "the first derivative")
_second_derivative = partial(_hold_derivative, 2, "the second derivative")


def _direction(subject: LossSubject) -> None:
    """A pair, or a useful item, must be pulled up at zero."""
    name = "kappa" if "kappa" in subject.functions else "positive"
    slope = subject.functions[name](0.0, *subject.loss.params)[1]
    fail_unless(slope < 0, f"{name} has the slope {slope:g} at 0: it pulls good items down")


def _convexity(subject: LossSubject) -> None:
    if not subject.loss.convex:
        raise SkipCheck("it does not claim to be convex")
    for name, rows in _rows(subject, _MARGINS[: -len(_TAILS)]):
        middle = 0.5 * (rows[:-2, 0] + rows[2:, 0])
        sag = rows[1:-1, 0] - middle - _ROUNDING * np.maximum(np.abs(middle), 1.0)
        at = int(np.argmax(sag))
        fail_unless(sag[at] <= 0.0, f"{name} claims to be convex and is not near "
                    f"{_MARGINS[at + 1]:.2f}")  # fmt: skip
        fail_unless((rows[:, 2] >= -1e-9).all(), f"{name} is convex with a second derivative below "
                    f"zero, {rows[:, 2].min():g}")  # fmt: skip


def _smoothness(subject: LossSubject) -> None:
    if not subject.loss.differentiable:
        raise SkipCheck("it does not claim to be differentiable")
    z = np.linspace(-3.0, 3.0, 3001)
    columns = {1: ("slope", "differentiable = False and smooth = False")}
    if subject.loss.smooth:
        columns[2] = ("second derivative", "smooth = False")
    for name, rows in _rows(subject, z):
        for column, (words, advice) in columns.items():
            jumps = np.abs(np.diff(rows[:, column]))
            at = int(np.argmax(jumps))
            fail_unless(
                jumps[at] <= 0.1 * max(float(np.abs(rows[:, column]).max()), 1e-12),
                f"the {words} of {name} jumps by {jumps[at]:.3g} near {z[at]:.3f}; declare "
                + advice,
            )


def _proven(subject: LossSubject) -> None:
    if not subject.loss.proven:
        raise SkipCheck("it declares nothing as proven")
    wrong = contradictions(subject.loss)
    told = "; ".join(f"{name}: {reason}" for name, reason in wrong.items())
    fail_unless(not wrong, f"it declares as proven what is not so. {told}")
    fail_unless(
        bool(subject.loss.reference),
        "it declares properties as proven without a reference; set reference to where the proof is",
    )


def _majorant(subject: LossSubject) -> None:
    bound = subject.loss.majorant
    if bound is None:
        raise SkipCheck("it has no bound of the curvature")
    for name, rows in _rows(subject, _MARGINS):
        most = rows[:, 2].max()
        fail_unless(
            name == "kappa" or most <= bound * (1 + 1e-9),
            f"the curvature of {name} reaches {most:g}, above the majorant {bound:g}",
        )


def _link(subject: LossSubject) -> None:
    chances = np.linspace(0.05, 0.95, 19)
    try:
        scores = subject.loss.link(chances)
        back = subject.loss.inverse_link(scores)
    except ParameterError as error:
        raise SkipCheck("it has no link") from error
    hold_close("inverse_link of link", back, chances, 1e-8)
    params = subject.loss.params
    positive, negative = subject.functions["positive"], subject.functions["negative"]
    slopes = [
        c * positive(float(s), *params)[1] + (1 - c) * negative(float(s), *params)[1]
        for c, s in zip(chances, scores, strict=True)
    ]
    hold_close("slope of the conditional risk at the link", slopes, np.zeros(19), 1e-6, 1.0)


def _extremes(subject: LossSubject) -> None:
    for (name, function), z in itertools.product(subject.functions.items(), _EXTREME):
        try:
            values = function(z, *subject.loss.params)
        except (ArithmeticError, ValueError) as error:
            raise AssertionError(f"{name} fails at {z:g}: {error!r}") from error
        fail_unless(np.isfinite(values).all(), f"{name} at {z:g} is {values}")


def _compiled(subject: LossSubject) -> None:
    """The compiled sum over pairs against one in Python."""
    loss = subject.loss
    if loss.pair_form != "margin":
        raise SkipCheck("it has no margin form")
    made = objective("comparison", loss=loss, normalize="none", hessian="exact", engine="pairs")
    rng = np.random.default_rng(2)
    labels, scores = rng.integers(0, 3, 9).astype(float), rng.normal(size=9)
    grad, hess, value = np.zeros(9), np.zeros(9), 0.0
    for i in range(9):
        for j in range(9):
            if labels[i] > labels[j]:
                each, slope, bend = loss.kappa(float(scores[i] - scores[j]), *loss.params)
                value += each
                grad[[i, j]] += slope, -slope
                hess[[i, j]] += bend
    found = made.gradients(labels, scores)
    hold_close("compiled gradient against Python", found[0], grad, 1e-9, np.abs(grad).max())
    hold_close("compiled Hessian against Python", found[1], hess, 1e-9, np.abs(hess).max() + 1e-9)
    hold_close("compiled loss against Python", [made.loss(labels, scores)], [value], 1e-9)


def _linear_engine(subject: LossSubject) -> None:
    """The linear-time engine against visiting every pair."""
    loss = subject.loss
    if loss.pair_form != "margin":
        raise SkipCheck("it has no margin form")
    try:
        fast = objective("comparison", loss=loss, engine="linear")
    except ParameterError as error:
        raise SkipCheck(str(error)) from error
    slow = objective("comparison", loss=loss, engine="pairs")
    rng = np.random.default_rng(4)
    labels, scores = rng.integers(0, 2, 600).astype(float), 2.0 * rng.normal(size=600)
    found, expected = fast.gradients(labels, scores), slow.gradients(labels, scores)
    for what, one, two in zip(("gradient", "Hessian"), found, expected, strict=True):
        hold_close(f"{what} of the linear-time engine", one, two, 1e-7, np.abs(two).max())


def _pickling(subject: LossSubject) -> None:
    again = pickle.loads(pickle.dumps(subject.loss))  # noqa: S301  (made here)
    fail_unless(again == subject.loss, f"pickling turns {subject.loss} into {again}")


def _spec(subject: LossSubject) -> None:
    entries = LOSSES.entries.get(subject.loss.name, ())
    if not any(one.status.state == "ok" and one.load() is type(subject.loss) for one in entries):
        raise SkipCheck("it is not registered, so it has no text")
    text = str(spec_of(subject.loss))
    fail_unless(build(LOSSES, text) == subject.loss, f"its text {text!r} makes another loss")


def _through_objective(check: Check) -> Callable[[LossSubject], None]:
    """A check of objectives, run on an objective that uses the loss."""

    def run(subject: LossSubject) -> None:
        try:
            check.run(ObjectiveSubject.read(subject.objective))
        except AssertionError as error:
            raise AssertionError(f"{subject.objective}: {error}") from error

    return run


def _values(subject: LossSubject) -> None:
    made = ObjectiveSubject.read(subject.objective)
    values = made.bound(made.labels()).losses(scores_of())
    fail_unless(np.isfinite(values).all() and len(values) == len(SIZES), f"losses are {values}")


LOSS_CHECKS: tuple[Check, ...] = (
    Check("shape", "functions return value, first and second derivative", _shape),
    Check("first_derivative", "it is the derivative of the value", _first_derivative),
    Check("second_derivative", "it is the derivative of the first", _second_derivative),
    Check("direction", "at zero a good item is pulled up", _direction),
    Check("convexity", "where claimed, the loss is convex", _convexity),
    Check("smoothness", "where claimed, derivatives do not jump", _smoothness),
    Check("proven", "what is declared as proven is not contradicted", _proven),
    Check("majorant", "where given, it bounds the curvature", _majorant),
    Check("link", "where given, the link minimises the conditional risk", _link),
    Check("extremes", "margins up to a million give finite numbers", _extremes),
    Check("compiled", "the compiled sum over pairs is that of Python", _compiled),
    Check("linear_engine", "where it serves, linear time gives the same", _linear_engine),
    Check("values", "an objective with it has finite losses", _values),
    Check("pickling", "a pickled copy is equal", _pickling),
    Check("spec", "its text makes an equal object", _spec),
    *(
        Check(f"pairs_{check.name}", f"in an objective: {check.about}", _through_objective(check))
        for check in OBJECTIVE_CHECKS
        if check.name in _PULLED
    ),
    *(
        Check(check.name, check.about, _through_objective(check))
        for check in OBJECTIVE_CHECKS
        if check.name in BACKENDS
    ),
)
