"""Minimisation of risks of a few scores, and whether minima are attained.

Smooth risks are minimised by damped Newton steps, convex risks with kinks by the ellipsoid method,
which bounds the distance to the least value.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from gbmrank.errors import LimitError, NumericError
from gbmrank.types import FloatArray

Risk = Callable[[FloatArray], tuple[float, FloatArray]]
"""``scores -> (value, gradient)``."""

Tiers = tuple[tuple[int, ...], ...]
"""Items of one tier are in any order, above those of the next; a full order has one per tier."""

FAR = 30.0
"""Scores with a larger spread are considered divergent."""

_ROUNDS = 8000
_NEAR = 1e-12  # relative distance to the least value at which the search ends
_PROVEN = 1e-9  # relative distance that it must reach
_STEPS = 120
_MORE_STARTS = 6
_HOPS = 4
_FLAT = 1e-6  # slope that counts as zero, relative to the risk
_TIE = 1e-5  # scores closer than this are tied if that does not raise the risk
_FREE = 1e-11

MOST_WITH_KINKS = 5
"""Most items of a risk with kinks."""


def least_risk(
    risk: Risk, n: int, shift_invariant: bool, tiers: Tiers = (), lead: float = 0.0
) -> tuple[FloatArray, float]:
    """Minimise a convex risk of n scores, not far from 0, by the ellipsoid method.

    Every gradient cuts off the part that lies uphill, and the width of the ellipsoid along the
    gradient bounds how much lower the risk can be.
    """
    # Orthonormal directions: all of them, or those of mean zero.
    base = np.linalg.qr(np.eye(n)[:, 1:] - 1.0 / n)[0] if shift_invariant else np.eye(n)
    pairs = [(i, j) for above, below in itertools.pairwise(tiers) for i in above for j in below]
    rules = np.array([np.eye(n)[i] - np.eye(n)[j] for i, j in pairs])  # leads of upper items
    centre, root = np.zeros(base.shape[1]), np.eye(base.shape[1]) * FAR
    best, value, floor, found = np.inf, np.inf, -np.inf, np.zeros(n)
    for _ in range(_ROUNDS):
        scores = base @ centre
        broken, slope = _most_broken(rules, scores, lead)
        if not broken:
            value, slope = risk(scores)
            best, found = (value, scores) if value < best else (best, found)
        along = root.T @ (slope @ base)
        width, depth = float(np.linalg.norm(along)), broken or value - best
        if width <= depth or not broken:
            floor = max(floor, best - max(width - depth, 0.0))
        if not width > depth or _within(best, floor, _NEAR):
            break
        centre, root = _cut(centre, root, along / width, depth / width)
    if not _within(best, floor, _PROVEN):
        raise NumericError(
            f"the risk of {n} scores, which has kinks, was not minimised: {best:.6g} was reached, "
            f"and the proven lower bound is {floor:.6g}; is it convex?"
        )
    return found, best


@final
@dataclass(frozen=True, slots=True)
class Minimum:
    """The best scores found."""

    scores: FloatArray  #: centred if the risk is shift invariant
    value: float  #: the risk there
    attained: bool  #: false if the risk still falls while scores diverge, so that it has no minimum
    slope: float  #: largest entry of the gradient there


@final
@dataclass(frozen=True, slots=True)
class Nature:
    """Properties of a risk."""

    shift_invariant: bool
    smooth: bool = True  # differentiable
    convex: bool = True  # if not, several starts are tried, and moves of single scores
    whole: bool = False  # a sum of hinges max(1 - (s_i - s_j), 0), with a minimum at whole scores

    def starts(self, n: int) -> list[FloatArray]:
        """Return scores to start from: zero, and others if there may be several local minima."""
        rng = np.random.default_rng(n)
        more = [] if self.convex else list(rng.normal(0.0, 2.0, size=(_MORE_STARTS, n)))
        return [np.zeros(n), *more]


def minimise(risk: Risk, n: int, nature: Nature) -> Minimum:
    """Minimise a risk of n scores by damped Newton steps.

    The Hessian is computed from differences of gradients; if it is not positive definite, its
    diagonal is raised until it is. A sum of plain hinges is instead evaluated on a lattice of
    whole scores, where it has its corners; other convex risks with kinks are minimised by the
    ellipsoid method.
    """
    if not nature.smooth:
        _check_kinks(n, nature)
        return _on_lattice(risk, n) if nature.whole else _enclosed(risk, n, nature)
    found = [_descended(risk, start, nature.shift_invariant) for start in nature.starts(n)]
    best = min(found, key=lambda each: each.value)
    if not nature.convex:
        best = _hopped(risk, best, nature.shift_invariant)
    flat = best.slope <= _FLAT * (1.0 + abs(best.value))
    if not (best.attained or flat or _spread(best.scores) > FAR):
        raise NumericError(
            f"the risk of {n} scores was not minimised: after up to {_STEPS} steps from each of "
            f"{len(found)} starts its slope is still {best.slope:.3g} at {best.scores.round(3)}, "
            "and the scores do not diverge; is the gradient that of the loss?"
        )
    return best


def minimise_in_tiers(
    risk: Risk, tiers: Tiers, start: FloatArray, nature: Nature, lead: float = 0.0
) -> float:
    """Return the infimum of a risk over scores that do not contradict an order of tiers.

    Only the first and the last tier may have several items. Neighbours may tie, or must differ by
    ``lead`` (only for risks with kinks).
    """
    if not nature.smooth:
        _check_kinks(len(start), nature)
        if nature.whole and lead == 0.0:
            return _on_lattice(risk, len(start), tiers).value
        return least_risk(risk, len(start), nature.shift_invariant, tiers, lead)[1]
    starts = [start, *nature.starts(len(start))[1:]]
    return min(_descended_in_tiers(risk, tiers, each) for each in starts)


def _within(best: float, floor: float, tolerance: float) -> bool:
    return best < np.inf and best - floor <= tolerance * (1.0 + abs(best))


def _cut(
    centre: FloatArray, root: FloatArray, unit: FloatArray, depth: float
) -> tuple[FloatArray, FloatArray]:
    """Least ellipsoid ``centre + root @ ball`` beyond a cut at ``depth`` radii along ``-unit``."""
    d = len(centre)
    centre = centre - (1.0 + d * depth) / (d + 1.0) * (root @ unit)
    if d == 1:
        return centre, root * (0.5 * (1.0 - depth))
    flat = 1.0 - 2.0 * (1.0 + d * depth) / ((d + 1.0) * (1.0 + depth))
    wide = d * np.sqrt((1.0 - depth * depth) / (d * d - 1.0))
    return centre, wide * (root - (1.0 - np.sqrt(max(flat, 0.0))) * np.outer(root @ unit, unit))


def _most_broken(rules: FloatArray, scores: FloatArray, lead: float) -> tuple[float, FloatArray]:
    """Return the largest violation of the bounds and leads, 0 if none, and its gradient."""
    length = float(np.linalg.norm(scores))
    if length > FAR:
        return length - FAR, scores / length
    if len(rules) and (missing := lead - rules @ scores).max() > 0.0:
        return float(missing.max()), -rules[int(missing.argmax())]
    return 0.0, scores


def _hopped(risk: Risk, best: Minimum, shift_invariant: bool) -> Minimum:
    """Move single scores to where the risk is lower, and minimise from there."""
    for _ in range(_HOPS):
        scores, least = best.scores, best.value - 1e-10 * (1.0 + abs(best.value))
        for i, place in itertools.product(range(len(scores)), np.arange(-8.0, 8.5)):
            tried = scores.copy()
            tried[i] = place
            if (value := risk(tried)[0]) < least:
                scores, least = tried, value
        if scores is best.scores:
            break
        moved = _descended(risk, scores, shift_invariant)
        if not moved.value < best.value:
            break
        best = moved
    return best


def _descended(risk: Risk, scores: FloatArray, shift_invariant: bool) -> Minimum:
    damping = 1e-9
    value, grad = risk(scores)
    for _ in range(_STEPS):
        if float(np.abs(grad).max()) <= 1e-11 * (1.0 + abs(value)) or _spread(scores) > FAR:
            break
        step, damping, moved = _step(risk, (scores, value, grad), damping)
        if moved is None:
            break
        scores, (value, grad) = scores + step, moved
        if shift_invariant:
            scores = scores - scores.mean()
    flat = float(np.abs(grad).max()) <= _FLAT * (1.0 + abs(value))
    attained = _spread(scores) <= FAR and flat and not _running_off(risk, scores, grad)
    return Minimum(scores, value, attained, float(np.abs(grad).max()))


def _descended_in_tiers(risk: Risk, tiers: Tiers, start: FloatArray) -> float:
    from scipy.optimize import minimize

    cone, inside = _cone(tiers, start)

    def of_parts(x: FloatArray) -> tuple[float, FloatArray]:
        value, grad = risk(cone @ x)
        return value, grad @ cone

    bounds = [(-FAR, FAR)] + [(0.0, 2.0 * FAR)] * (len(inside) - 1)
    options = {"maxiter": 2000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-11}
    found = minimize(of_parts, inside, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return float(found.fun)


def _cone(tiers: Tiers, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return M and x with scores M x in the order: a level, then steps that are not negative."""
    first, *later = tiers
    level, one = float(start[list(first)].min()), np.eye(len(start))
    columns, x = [np.ones(len(start))], [level]
    if len(first) > 1:
        for i in first:
            columns.append(one[i])
            x.append(float(start[i]) - level)
    for place, tier in enumerate(later):
        for i in tier:
            below = [j for part in later[place:] for j in part]
            columns.append(-one[i] if len(tier) > 1 else -one[below].sum(axis=0))
            x.append(max(level - float(start[i]), 0.0))
        level -= x[-1]
    return np.stack(columns, axis=1), np.array(x)


def _step(
    risk: Risk, at: tuple[FloatArray, float, FloatArray], damping: float
) -> tuple[FloatArray, float, tuple[float, FloatArray] | None]:
    scores, value, grad = at
    bends = _bends(risk, scores, 1e-5)
    hessian = 0.5 * (bends + bends.T)
    scale = max(float(np.abs(hessian).max()), 1e-12)
    for _ in range(60):
        step = _newton(hessian + damping * scale * np.eye(len(scores)), grad)
        if step is not None:
            moved, fall = risk(scores + step), float(grad @ step)
            tiny = 1e-15 * (1.0 + abs(value))
            if fall <= 0 and moved[0] <= value + 1e-4 * fall + tiny and np.isfinite(moved[0]):
                return step, max(damping * 0.2, 1e-11), moved
        damping = max(damping * 10.0, 1e-8)
    return np.zeros_like(scores), damping, None


def _newton(hessian: FloatArray, grad: FloatArray) -> FloatArray | None:
    """Return the Newton step, limited to length 5; None if the Hessian is not positive definite."""
    try:
        root = np.linalg.cholesky(hessian)
        step: FloatArray = -np.linalg.solve(root.T, np.linalg.solve(root, grad)).astype(np.float64)
    except np.linalg.LinAlgError:
        return None
    longest = float(np.abs(step).max())
    if not np.isfinite(longest):
        return None
    return step if longest <= 5.0 else step * (5.0 / longest)


def _running_off(risk: Risk, scores: FloatArray, grad: FloatArray) -> bool:
    """Whether a score diverges: in a tail, slope over curvature does not vanish."""
    curvatures = np.diagonal(_bends(risk, scores, 0.1))
    return bool(np.any((np.abs(grad) > 1e-3 * curvatures) & (grad != 0.0)))


def _bends(risk: Risk, scores: FloatArray, width: float) -> FloatArray:
    """Return central differences of the gradient, one row per score that is moved."""
    steps = width * np.eye(len(scores))
    rows = [risk(scores + step)[1] - risk(scores - step)[1] for step in steps]
    return np.array(rows) / (2.0 * width)


def _spread(scores: FloatArray) -> float:
    return float(max(np.ptp(scores), np.abs(scores).max()))


def _check_kinks(n: int, nature: Nature) -> None:
    if not nature.convex:
        raise LimitError(
            "the minimiser of a risk that has kinks and is not known to be convex is not "
            "computed; use a loss without kinks, or a convex one"
        )
    if n > MOST_WITH_KINKS:
        raise LimitError(
            f"risks with kinks are minimised for up to {MOST_WITH_KINKS} items, got {n}"
        )


def _enclosed(risk: Risk, n: int, nature: Nature) -> Minimum:
    scores, value = least_risk(risk, n, nature.shift_invariant)
    while scores.any() and risk(0.5 * scores)[0] <= value:  # one of many minima
        scores = 0.5 * scores
    tied = _tied(scores)
    if (tied_value := risk(tied)[0]) <= value + _FREE * (1.0 + abs(value)):
        scores, value = tied, tied_value
    falls = float(risk(1.1 * scores)[1] @ scores) < -1e-14 * (1.0 + abs(value))
    return Minimum(scores, value, float(np.linalg.norm(scores)) <= 0.99 * FAR and not falls, 0.0)


def _tied(scores: FloatArray) -> FloatArray:
    """Return scores with those that are nearly equal made equal."""
    order = np.argsort(scores, kind="stable")
    blocks = np.concatenate([[0], np.cumsum(np.diff(scores[order]) > _TIE)])
    tied = np.empty_like(scores)
    tied[order] = (np.bincount(blocks, scores[order]) / np.bincount(blocks))[blocks]
    return tied


def _on_lattice(risk: Risk, n: int, tiers: Tiers = ()) -> Minimum:
    """Best whole scores; corners of plain hinge risks are whole, with or without an order."""
    best, least = np.zeros(n), np.inf
    for steps in itertools.product(range(-n, n + 1), repeat=n - 1):
        scores = np.array([0.0, *steps])
        ends = [(scores[list(tier)].min(), scores[list(tier)].max()) for tier in tiers]
        if any(above[0] < below[1] for above, below in itertools.pairwise(ends)):
            continue
        value = risk(scores)[0]
        if value < least - 1e-12 * (1.0 + abs(value)):
            best, least = scores, value
    return Minimum(best - best.mean(), least, True, 0.0)
