"""Minima of convex risks with kinks, with a proof of how near they are."""

import itertools
from collections.abc import Callable

import numpy as np

from gbmrank.errors import NumericError
from gbmrank.types import FloatArray

__all__ = ["FAR", "Risk", "Tiers", "least_risk"]

Risk = Callable[[FloatArray], tuple[float, FloatArray]]
"""``scores -> (value, gradient)``."""

Tiers = tuple[tuple[int, ...], ...]
"""Items of one tier are in any order, and above those of the next; a full order has one each."""

FAR = 30.0
"""Scores that spread further are running off."""

_ROUNDS = 8000
_NEAR = 1e-12  # of the least value, relative: there the search ends
_PROVEN = 1e-9  # what it has to reach


def least_risk(
    risk: Risk, n: int, shift_invariant: bool, tiers: Tiers = (), lead: float = 0.0
) -> tuple[FloatArray, float]:
    """Minimise a convex risk of n scores, not far from 0, by ellipsoids that hold the minimum.

    Every slope cuts off what lies uphill, and the width of the ellipsoid along the slope
    bounds how much lower the risk can be.

    Parameters
    ----------
    risk : callable
        ``scores -> (value, subgradient)``.
    n : int
        Number of scores.
    shift_invariant : bool
        Whether scores of mean zero are enough.
    tiers : tuple of tuple of int, default=()
        An order that scores have to follow, the best tier first.
    lead : float, default=0
        By how much each tier has to lead the next.

    Returns
    -------
    scores : array of shape (n,)
        The best ones found.
    value : float
        Their risk, at most ``1e-9 (1 + abs(value))`` above that of any scores whose root of
        the sum of squares is at most 30.

    Raises
    ------
    NumericError
        When that is not reached, as for a risk that is not convex.

    Examples
    --------
    >>> scores, value = least_risk(lambda s: (float(abs(s[0] - 2.0)), np.sign(s - 2.0)), 1, False)
    >>> round(float(scores[0]), 9), round(value, 9)
    (2.0, 0.0)
    """
    rules, base = _rules(tiers, n), _directions(n, shift_invariant)
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
            f"and all that is known is that it is not below {floor:.6g}; is it convex?"
        )
    return found, best


def _within(best: float, floor: float, tolerance: float) -> bool:
    return best < np.inf and best - floor <= tolerance * (1.0 + abs(best))


def _cut(
    centre: FloatArray, root: FloatArray, unit: FloatArray, depth: float
) -> tuple[FloatArray, FloatArray]:
    """Return the least ellipsoid that holds the points beyond a cut through this one.

    The ellipsoid is ``centre + root @ ball``; the cut is at ``depth`` radii along ``-unit``.
    """
    d = len(centre)
    centre = centre - (1.0 + d * depth) / (d + 1.0) * (root @ unit)
    if d == 1:
        return centre, root * (0.5 * (1.0 - depth))
    flat = 1.0 - 2.0 * (1.0 + d * depth) / ((d + 1.0) * (1.0 + depth))
    wide = d * np.sqrt((1.0 - depth * depth) / (d * d - 1.0))
    return centre, wide * (root - (1.0 - np.sqrt(max(flat, 0.0))) * np.outer(root @ unit, unit))


def _directions(n: int, shift_invariant: bool) -> FloatArray:
    """Return orthonormal directions, shape (n, d): all of them, or those of mean zero."""
    if not shift_invariant:
        return np.eye(n)
    return np.asarray(np.linalg.qr(np.eye(n)[:, 1:] - 1.0 / n)[0], dtype=np.float64)


def _most_broken(rules: FloatArray, scores: FloatArray, lead: float) -> tuple[float, FloatArray]:
    """Return by how much scores are too far out or miss a lead, 0 where not, and its slope."""
    length = float(np.linalg.norm(scores))
    if length > FAR:
        return length - FAR, scores / length
    missing = lead - rules @ scores
    if not len(rules) or not missing.max() > 0.0:
        return 0.0, scores
    return float(missing.max()), -rules[int(missing.argmax())]


def _rules(tiers: Tiers, n: int) -> FloatArray:
    """Return one row per pair of items of neighbouring tiers: what the upper one leads by."""
    pairs = [(i, j) for above, below in itertools.pairwise(tiers) for i in above for j in below]
    rules = np.zeros((len(pairs), n))
    for row, (i, j) in enumerate(pairs):
        rules[row, i], rules[row, j] = 1.0, -1.0
    return rules
