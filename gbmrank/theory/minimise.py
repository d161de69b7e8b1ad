"""Minima of smooth risks of a few scores, and whether they are attained."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from gbmrank.errors import LimitError
from gbmrank.types import FloatArray

__all__ = ["Minimum", "Nature", "Risk", "minimise", "minimise_in_order"]

Risk = Callable[[FloatArray], tuple[float, FloatArray]]
"""``scores -> (value, gradient)``."""

_FAR = 30.0  # scores that spread further are running off
_STEPS = 120
_MORE_STARTS = 6
_MOST_ON_LATTICE = 5


@final
@dataclass(frozen=True, slots=True)
class Minimum:
    """The best scores found.

    Parameters
    ----------
    scores : array of shape (n,)
        Centred when the risk does not see a common shift.
    value : float
        The risk there.
    attained : bool
        False when the risk still falls while scores run off: it has no minimum there.
    slope : float
        Largest entry of the gradient there.
    """

    scores: FloatArray
    value: float
    attained: bool
    slope: float


@final
@dataclass(frozen=True, slots=True)
class Nature:
    """What is known about a risk.

    Parameters
    ----------
    shift_invariant : bool
        Whether adding a constant to all scores changes nothing.
    smooth : bool, default=True
        Whether it is differentiable; if not, it is a hinge risk with corners at whole scores.
    convex : bool, default=True
        If not, several starting points are tried.
    """

    shift_invariant: bool
    smooth: bool = True
    convex: bool = True

    def starts(self, n: int) -> list[FloatArray]:
        """Return scores to start from: zero, and others where there may be several valleys."""
        rng = np.random.default_rng(n)
        more = [] if self.convex else list(rng.normal(0.0, 2.0, size=(_MORE_STARTS, n)))
        return [np.zeros(n), *more]


def minimise(risk: Risk, n: int, nature: Nature) -> Minimum:
    """Minimise a risk of n scores by damped Newton steps.

    The Hessian is taken from differences of gradients. A hinge risk is evaluated on a
    lattice of whole scores instead, where it has its corners.

    Parameters
    ----------
    risk : callable
        ``scores -> (value, gradient)``.
    n : int
        Number of scores.
    nature : Nature
        What is known about it.
    """
    if not nature.smooth:
        return _on_lattice(risk, n, None)
    found = [_descended(risk, start, nature.shift_invariant) for start in nature.starts(n)]
    return min(found, key=lambda each: each.value)


def _descended(risk: Risk, scores: FloatArray, shift_invariant: bool) -> Minimum:
    damping = 1e-9
    value, grad = risk(scores)
    for _ in range(_STEPS):
        if float(np.abs(grad).max()) <= 1e-11 * (1.0 + abs(value)) or _spread(scores) > _FAR:
            break
        step, damping, moved = _step(risk, (scores, value, grad), damping)
        if moved is None:
            break
        scores, (value, grad) = scores + step, moved
        if shift_invariant:
            scores = scores - scores.mean()
    flat = float(np.abs(grad).max()) <= 1e-6 * (1.0 + abs(value))
    attained = _spread(scores) <= _FAR and flat and not _running_off(risk, scores, grad)
    return Minimum(scores, value, attained, float(np.abs(grad).max()))


def minimise_in_order(
    risk: Risk, order: tuple[int, ...], start: FloatArray, nature: Nature
) -> float:
    """Return the infimum of a risk over scores that do not contradict an order.

    Parameters
    ----------
    risk : callable
        ``scores -> (value, gradient)``.
    order : tuple of int
        Items, best first; neighbours may tie.
    start : array of shape (n,)
        Scores to begin at; they are put into the order first.
    nature : Nature
        What is known about the risk.
    """
    if not nature.smooth:
        return _on_lattice(risk, len(order), order).value
    starts = [start, *nature.starts(len(order))[1:]]
    return min(_descended_in_order(risk, order, each) for each in starts)


def _descended_in_order(risk: Risk, order: tuple[int, ...], start: FloatArray) -> float:
    n = len(order)
    from scipy.optimize import minimize

    best_first = np.asarray(order)
    falls = np.concatenate([[start[best_first].mean()], -np.diff(start[best_first])])
    falls[1:] = np.maximum(falls[1:], 0.0)

    def of_falls(x: FloatArray) -> tuple[float, FloatArray]:
        scores = np.empty(n)
        scores[best_first] = x[0] - np.concatenate([[0.0], np.cumsum(x[1:])])
        value, grad = risk(scores)
        ordered = grad[best_first]
        tail = np.cumsum(ordered[::-1])[::-1]
        return value, np.concatenate([[tail[0]], -tail[1:]])

    bounds = [(-_FAR, _FAR)] + [(0.0, 2.0 * _FAR)] * (n - 1)
    options = {"maxiter": 2000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-11}
    found = minimize(of_falls, falls, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return float(found.fun)


def _step(
    risk: Risk, at: tuple[FloatArray, float, FloatArray], damping: float
) -> tuple[FloatArray, float, tuple[float, FloatArray] | None]:
    scores, value, grad = at
    hessian = _hessian(risk, scores)
    scale = max(float(np.abs(hessian).max()), 1e-12)
    for _ in range(60):
        damped = hessian + damping * scale * np.eye(len(scores))
        step: FloatArray = -np.linalg.solve(damped, grad).astype(np.float64)
        longest = float(np.abs(step).max())
        step = step if longest <= 5.0 else step * (5.0 / longest)
        moved, fall = risk(scores + step), float(grad @ step)
        tiny = 1e-15 * (1.0 + abs(value))
        if fall <= 0 and moved[0] <= value + 1e-4 * fall + tiny and np.isfinite(moved[0]):
            return step, max(damping * 0.2, 1e-11), moved
        damping = max(damping * 10.0, 1e-8)
    return np.zeros_like(scores), damping, None


def _running_off(risk: Risk, scores: FloatArray, grad: FloatArray) -> bool:
    """Return whether some score still wants to move, however flat the risk has become.

    In the tail of a loss slope and curvature vanish together, so their ratio does not.
    """
    width = 0.1
    for i, slope in enumerate(grad):
        ahead, behind = scores.copy(), scores.copy()
        ahead[i] += width
        behind[i] -= width
        curvature = (risk(ahead)[1][i] - risk(behind)[1][i]) / (2.0 * width)
        if abs(slope) > 1e-3 * curvature and slope != 0.0:
            return True
    return False


def _hessian(risk: Risk, scores: FloatArray) -> FloatArray:
    n, width = len(scores), 1e-5
    rows = np.empty((n, n))
    for i in range(n):
        ahead, behind = scores.copy(), scores.copy()
        ahead[i] += width
        behind[i] -= width
        rows[i] = (risk(ahead)[1] - risk(behind)[1]) / (2.0 * width)
    return 0.5 * (rows + rows.T)


def _spread(scores: FloatArray) -> float:
    return float(max(np.ptp(scores), np.abs(scores).max()))


def _on_lattice(risk: Risk, n: int, order: tuple[int, ...] | None) -> Minimum:
    """Best whole scores; corners of hinge risks are whole, with or without an order."""
    if n > _MOST_ON_LATTICE:
        raise LimitError(f"hinge risks are minimised for up to {_MOST_ON_LATTICE} items, got {n}")
    best: tuple[float, FloatArray] | None = None
    for steps in itertools.product(range(-n, n + 1), repeat=n - 1):
        scores = np.array([0.0, *steps])
        if order is not None and np.any(np.diff(scores[list(order)]) > 0):
            continue
        value = risk(scores)[0]
        if best is None or value < best[0] - 1e-12 * (1.0 + abs(value)):
            best = value, scores
    assert best is not None  # noqa: S101  (all scores equal fit every order)
    return Minimum(best[1] - best[1].mean(), best[0], True, 0.0)
