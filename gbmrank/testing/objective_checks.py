"""Checks of objectives."""

import pickle
from functools import partial
from typing import Any

import numpy as np

from gbmrank.api import objective
from gbmrank.boosters.supported import BACKENDS, booster_named
from gbmrank.data.queries import RankingData
from gbmrank.errors import GbmrankError, ParameterError
from gbmrank.kernels.jit import threads
from gbmrank.kernels.layout import GradHess
from gbmrank.objectives import AbstractBound
from gbmrank.testing.checks import (
    SIZES,
    Check,
    ObjectiveSubject,
    SkipCheck,
    by_place,
    fail_unless,
    hold_close,
    permuted_rows,
    query_slices,
    row_derivatives,
    scores_of,
    trains_in,
)
from gbmrank.types import FloatArray

_EXACT = 1e-10  # results that differ only by the order of sums
_SEEDS = 30


def _shapes(subject: ObjectiveSubject) -> None:
    bound, scores = subject.bound(subject.labels()), scores_of()
    grad, hess = np.full(len(scores), np.nan), np.full(len(scores), np.nan)
    bound.fill(scores, GradHess(grad, hess), single=False)
    fail_unless(not np.isnan(grad).any(), "fill() left rows of the gradient unwritten, or NaN")
    fail_unless(not np.isnan(hess).any(), "fill() left rows of the Hessian unwritten, or NaN")
    values = np.asarray(bound.losses(scores))
    fail_unless(
        values.shape == (len(SIZES),),
        f"losses() has shape {values.shape}; one value per query is ({len(SIZES)},)",
    )
    fail_unless(np.isfinite(values).all(), f"losses() is not finite: {values}")


def _gradient(subject: ObjectiveSubject) -> None:
    _hold_slopes(subject, subject.bound(subject.labels()), "gradient against differences")


def _hold_slopes(subject: ObjectiveSubject, bound: AbstractBound, what: str) -> None:
    """Fail unless gradients are the derivatives of the loss."""
    scores = scores_of()
    grad, _ = bound.gradients(scores)
    evaluate: Any = bound.losses
    if subject.objective.template.gradient == "frozen_weights":
        losses: Any = getattr(bound, "frozen_losses", None)
        fail_unless(
            losses is not None,
            'with the trait gradient = "frozen_weights" the bound objective needs '
            "frozen_losses(scores, at): its losses with the weights of other scores",
        )
        evaluate = lambda moved: losses(moved, scores)  # noqa: E731
    slopes, trusted = row_derivatives(evaluate, scores)
    fail_unless(trusted.mean() > 0.7, "the loss is not differentiable at most scores")
    scale = 1e-4 * np.abs(slopes).max(initial=1e-12)
    hold_close(f"{what} of the loss", grad[trusted], slopes[trusted], 1e-5, scale)


def _hessian(subject: ObjectiveSubject) -> None:
    bound, scores = subject.bound(subject.labels()), scores_of()
    grad, hess = bound.gradients(scores)
    template = subject.objective.template
    trait = template.hessian_trait
    if template.hessian != "exact":
        fail_unless((hess >= 0).all(), f"a Hessian is negative: {hess.min():g}")
    fail_unless(hess.any() or not grad.any(), "every Hessian is zero: boosters cannot take a step")
    if trait == "constant":
        hold_close("Hessian of the trait constant", hess, np.ones(len(hess)), 1e-12)
    if trait not in ("exact", "bound"):
        return
    if template.gradient == "frozen_weights":
        bends, trusted = _frozen_bends(bound, scores)
    else:
        bends, trusted = row_derivatives(lambda moved: bound.gradients(moved)[0], scores)
    fail_unless(
        trusted.mean() > 0.5,
        "the gradient has no derivative at most scores, so the Hessian cannot be compared: "
        "differences of two widths disagree (does it change from call to call?)",
    )
    scale = 1e-4 * np.abs(bends).max(initial=1e-12)
    hess, bends = hess[trusted], bends[trusted]
    if trait == "exact":
        what = "Hessian of the trait exact, against differences of the gradient"
        hold_close(what, hess, bends, 1e-4, scale)
    short = bends - hess - 1e-4 * scale
    fail_unless(
        (short <= 1e-6 * np.abs(bends)).all(),
        f"a Hessian of the trait bound lies {short.max(initial=0.0):g} below the curvature",
    )


def _frozen_bends(bound: Any, scores: FloatArray) -> tuple[FloatArray, Any]:
    """Second differences of the loss with its weights held fixed."""

    def slope(moved: FloatArray) -> FloatArray:
        step, found = 1e-3, np.zeros(len(scores))
        for queries, rows in by_place():
            up, down = moved.copy(), moved.copy()
            up[rows] += step
            down[rows] -= step
            change = bound.frozen_losses(up, scores) - bound.frozen_losses(down, scores)
            found[rows] = change[queries] / (2.0 * step)
        return found

    return row_derivatives(slope, scores)


def _permutation(subject: ObjectiveSubject) -> None:
    _skip_if_randomised(subject)
    labels, scores, order = subject.labels(), scores_of(), permuted_rows()
    whole = subject.bound(labels).gradients(scores)
    again = subject.bound(labels[order]).gradients(scores[order])
    _hold_both("after a permutation of rows", again, whole, order)


def _skip_if_randomised(subject: ObjectiveSubject) -> None:
    if subject.objective.template.randomised:
        raise SkipCheck(
            "its random numbers depend on the order of rows; the check 'seeds' compares means"
        )


def _seeds(subject: ObjectiveSubject) -> None:
    template: Any = subject.objective.template
    if not template.randomised or not hasattr(template, "seed"):
        raise SkipCheck("it has no seed of random numbers")
    labels, order = subject.labels(), permuted_rows()
    for what, scores in (("", scores_of()), (" with ties", np.sign(scores_of()))):
        gaps, found = [], []
        for seed in range(_SEEDS):
            seeded = ObjectiveSubject(objective(subject.objective, seed=seed), subject.grades)
            found.append(seeded.bound(labels).gradients(scores)[0])
            gaps.append(seeded.bound(labels[order]).gradients(scores[order])[0] - found[-1][order])
        moved = np.std(found, axis=0).max() > 0.0
        fail_unless(moved or what, "another seed gives the same numbers")
        error = np.std(gaps, axis=0) / np.sqrt(_SEEDS) + 1e-9 * _size(np.array(found))
        fail_unless(
            (np.abs(np.mean(gaps, axis=0)) <= 6.0 * error).all(),
            f"the mean gradient over {_SEEDS} seeds{what} depends on the order of rows",
        )


def _query_independence(subject: ObjectiveSubject) -> None:
    labels, scores = subject.labels(), scores_of()
    whole = subject.bound(labels).gradients(scores)
    values = subject.bound(labels).losses(scores)
    for query, part in enumerate(query_slices()):
        alone = subject.bound(labels[part], [part.stop - part.start])
        what = f"of query {query} alone and among others"
        _hold_both(what, alone.gradients(scores[part].copy()), whole, part)
        value = alone.losses(scores[part].copy())
        hold_close(f"loss {what}", value, values[query : query + 1], _EXACT, _size(values))


def _weights(subject: ObjectiveSubject) -> None:
    labels, scores = subject.labels(), scores_of()
    weight = np.linspace(0.0, 3.0, len(SIZES))
    plain, weighted = subject.bound(labels), subject.bound(labels, weight=weight)
    rows = np.repeat(weight, SIZES)
    grad, hess = plain.gradients(scores)
    expected = (grad * rows, hess * rows)
    _hold_both("with weights of queries", weighted.gradients(scores), expected, slice(None))
    values, found = plain.losses(scores), weighted.losses(scores)
    hold_close("loss with weights of queries", found, values * weight, _EXACT, _size(values))
    if subject.objective.template.item_weights:
        items = subject.bound(labels, weight=np.linspace(0.5, 2.0, len(labels)))
        _hold_slopes(subject, items, "gradient with weights of items against differences")


def _clicks(subject: ObjectiveSubject) -> None:
    template, scores = subject.objective.template, scores_of()
    if not template.linear_in_utility:
        raise SkipCheck("it does not support a position bias")
    data = RankingData.from_arrays(np.arange(len(scores)) % 2, group=SIZES)

    def gradient(estimates: FloatArray) -> FloatArray:
        return template.bind(data.with_clicks(estimates)).gradients(scores)[0]

    one = np.linspace(-0.5, 3.0, len(scores))
    other = data.labels / np.linspace(0.3, 1.0, len(scores))
    try:
        ends = gradient(one), gradient(other)
    except ParameterError as error:
        raise SkipCheck(f"its target cannot be estimated from clicks: {error}") from error
    fail_unless(not np.array_equal(*ends), "estimates of relevance do not change the gradient")
    mean = gradient((one + other) / 2.0)
    what = "gradient at the mean of two estimates of relevance"
    hold_close(what, mean, (ends[0] + ends[1]) / 2.0, 1e-6, 1e-6 * _size(mean))


def _extremes(subject: ObjectiveSubject) -> None:
    labels = subject.labels()
    outlier = scores_of()
    outlier[::5] = 1e6
    for what, scores in (
        ("a thousand times larger", scores_of(spread=1e3)),
        ("a million times larger", scores_of(spread=1e6)),
        ("all but equal", scores_of(spread=1e-12)),
        ("with outliers of a million", outlier),
    ):
        try:
            grad, hess = subject.bound(labels).gradients(scores)
            values = subject.bound(labels).losses(scores)
        except GbmrankError:
            continue  # rejected with an error, which is allowed
        finite = np.isfinite(grad).all() and np.isfinite(hess).all() and np.isfinite(values).all()
        fail_unless(finite, f"scores {what} give numbers that are not finite")


def _ties(subject: ObjectiveSubject) -> None:
    _skip_if_randomised(subject)
    labels, order = subject.labels(), permuted_rows(seed=1)
    for what, scores in (
        ("all scores equal", np.zeros(len(labels))),
        ("two levels of scores", np.sign(scores_of())),
    ):
        bound = subject.bound(labels)
        other = subject.bound(labels[order])
        advice = f"with {what}: the order of rows decides between tied items"
        _hold_both(advice, other.gradients(scores[order]), bound.gradients(scores), order)
        values = other.losses(scores[order])
        hold_close(f"loss {advice}", values, bound.losses(scores), _EXACT, 1e-9)


def _singletons(subject: ObjectiveSubject) -> None:
    for label in (subject.grades[0], subject.grades[-1]):
        bound = subject.bound(np.full(3, label), [1, 1, 1])
        scores = np.array([0.3, -1.0, 40.0])
        grad, hess = bound.gradients(scores)
        finite = np.isfinite(np.concatenate([grad, hess, bound.losses(scores)])).all()
        fail_unless(finite, "queries of one row give numbers that are not finite")
        if subject.objective.template.shift_invariant:
            fail_unless(not grad.any(), "a query of one row has a gradient, yet it claims to be "
                        "shift invariant")  # fmt: skip


def _equal_labels(subject: ObjectiveSubject) -> None:
    for label in (subject.grades[0], subject.grades[-1]):
        bound = subject.bound(np.full(sum(SIZES), label))
        grad, hess = bound.gradients(scores_of())
        numbers = np.concatenate([grad, hess, bound.losses(scores_of())])
        fail_unless(np.isfinite(numbers).all(), "equal labels give numbers that are not finite")


def _inputs(subject: ObjectiveSubject) -> None:
    labels, scores = subject.labels(), scores_of()
    bound = subject.bound(labels)
    given = scores.copy()
    out = GradHess(np.empty(len(scores)), np.empty(len(scores)))
    bound.fill(given, out, single=False)
    fail_unless(np.array_equal(given, scores), "fill() changes the scores it is given")
    bound.losses(given)
    fail_unless(np.array_equal(given, scores), "losses() changes the scores it is given")
    for column in (labels, scores):
        column.flags.writeable = False
    subject.objective.gradients(labels, scores, group=SIZES)


def _determinism(subject: ObjectiveSubject) -> None:
    labels, scores = subject.labels(), scores_of()
    bound = subject.bound(labels)
    first = [*bound.gradients(scores), bound.losses(scores)]
    before = threads.get_num_threads()
    try:
        for what, count in (("a second call", before), ("one thread", 1), ("four threads", 4)):
            threads.set_num_threads(count)
            for ready in (bound, subject.bound(labels)):
                again = [*ready.gradients(scores), ready.losses(scores)]
                same = all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
                fail_unless(same, f"{what} gives other numbers")
    finally:
        threads.set_num_threads(None)


def _single_precision(subject: ObjectiveSubject) -> None:
    bound, scores = subject.bound(subject.labels()), scores_of()
    exact = bound.gradients(scores)
    single = bound.gradients(scores, np.float32, single=True)
    for what, one, two in zip(("gradient", "Hessian"), single, exact, strict=True):
        fail_unless(one.dtype == np.float32, f"the {what} asked for in float32 has {one.dtype}")
        hold_close(f"{what} in float32", one, two, 1e-3, 10.0 * _size(two))


def _pickling(subject: ObjectiveSubject) -> None:
    again = pickle.loads(pickle.dumps(subject.objective))  # noqa: S301  (made here)
    fail_unless(again == subject.objective, f"pickling turns it into {again}")
    fail_unless(hash(again) == hash(subject.objective), "its hash changes when it is pickled")


def _spec(subject: ObjectiveSubject) -> None:
    text = str(subject.objective)
    again = objective(text)
    fail_unless(again == subject.objective, f"its text {text!r} makes another: {again}")
    fail_unless(str(again) == text, f"its text {text!r} is read and printed as {again}")


def _shift_invariance(subject: ObjectiveSubject) -> None:
    if not subject.objective.template.shift_invariant:
        raise SkipCheck("it does not claim to be shift invariant")
    bound, scores = subject.bound(subject.labels()), scores_of()
    grad, _ = bound.gradients(scores)
    sums = np.add.reduceat(grad, [part.start for part in query_slices()])
    hold_close("sum of the gradient of each query", sums, np.zeros(len(sums)), 1e-9, _size(grad))
    if subject.objective.template.randomised:
        return  # other scores, other random numbers
    shift = np.repeat(np.arange(len(SIZES)) - 3.0, SIZES)
    moved = scores + shift
    hold_close("gradient after a shift", bound.gradients(moved)[0], grad, 1e-7, _size(grad))
    hold_close("loss after a shift", bound.losses(moved), bound.losses(scores), 1e-7, 1e-3)


def _calibration(subject: ObjectiveSubject) -> None:
    metrics = getattr(subject.objective.template, "calibrated_for", ())
    if not metrics:
        raise SkipCheck("it does not claim to be calibrated for a metric")
    from gbmrank.theory import falsify

    for metric in metrics:
        example = falsify(subject.objective, metric, budget=60, seed=0)
        fail_unless(example is None, f"it claims to be calibrated for {metric}: {example}")


def _hold_both(what: str, found: Any, whole: Any, rows: Any) -> None:
    """Compare gradient and Hessian with rows of a reference."""
    for name, one, other in zip(("gradient", "Hessian"), found, whole, strict=True):
        hold_close(f"{name} {what}", one, other[rows], _EXACT, _size(other))


def _size(values: FloatArray) -> float:
    return float(np.abs(values).max(initial=1e-12))


OBJECTIVE_CHECKS: tuple[Check, ...] = (
    Check("shapes", "fill() writes every row, losses() gives one value per query", _shapes),
    Check("gradient", "the gradient is the derivative of the loss", _gradient),
    Check("hessian", "the Hessian is what hessian_trait says, and not negative", _hessian),
    Check("permutation", "the order of rows does not matter", _permutation),
    Check("seeds", "the mean over seeds does not depend on the order of rows", _seeds),
    Check("query_independence", "a query depends on itself alone", _query_independence),
    Check("weights", "weights of queries multiply", _weights),
    Check("clicks", "where claimed, gradients are linear in estimates of relevance", _clicks),
    Check("extremes", "extreme scores give finite numbers or a clear error", _extremes),
    Check("ties", "tied scores are treated alike, whatever the order of rows", _ties),
    Check("singletons", "queries of one row are harmless", _singletons),
    Check("equal_labels", "queries of equal labels are harmless", _equal_labels),
    Check("inputs", "scores and labels are not changed, and may be read-only", _inputs),
    Check("determinism", "the same numbers again, with any number of threads", _determinism),
    Check("single_precision", "float32 gives the same up to its rounding", _single_precision),
    Check("pickling", "a pickled copy is equal", _pickling),
    Check("spec", "its text makes an equal object", _spec),
    Check("shift_invariance", "where claimed, a common shift changes nothing", _shift_invariance),
    Check("calibration", "where claimed, no counterexample is found", _calibration),
    *(
        Check(one, f"{booster_named(one).title} learns an order with it", partial(trains_in, one))
        for one in BACKENDS
    ),
)
