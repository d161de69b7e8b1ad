"""Properties of scalar losses: declared and proven, or measured on a grid.

Built-in losses declare what is proven about them (``AbstractLoss.proven``), and so may yours;
the rest is measured, which can refute but not prove: ``proven`` of a shape says which it is. For a
loss of items: is the score that minimises ``q l1(s) + (1 - q) l-1(s)`` an increasing function of q,
and how much does a deviation from it cost? For a loss of pairs: is it convex and decreasing with
negative slope at zero, or is its link ``sigmoid(a d)``, so that all pairs agree on one minimiser?
For a generator of yours: do the scores that minimise it sort expected utilities?
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from gbmrank.errors import NumericError
from gbmrank.losses.base import PROVEN, AbstractLoss, AbstractParametric, ScalarFunction
from gbmrank.losses.convex import AbstractGenerator
from gbmrank.registry.catalogue import LOSSES
from gbmrank.registry.composition import build
from gbmrank.theory.minimise import Nature, Risk, minimise
from gbmrank.theory.user_code import sampled
from gbmrank.types import FloatArray

_GRID: FloatArray = np.linspace(-12.0, 12.0, 961)  # zero and +-1 are grid points
_FAR: FloatArray = np.array([1e1, 1e2, 1e3, 1e4, 1e5])
_NEAR = np.abs(_GRID) <= 6.0
_RATE_TOLERANCE = 1e-6
_OF_ITEMS = {"proper", "differentiable"}  # what is not about the loss of pairs alone


@final
@dataclass(frozen=True, slots=True)
class ItemShape:
    """Properties of a loss of items."""

    #: whether the best score increases with the probability of being useful, from one end of its
    #: range to the other
    proper: bool
    least_weight: float  #: infimum of the weight function w(c), the modulus of the regret
    rate: float | None  #: ``a`` when the link is ``sigmoid(a v)``
    bounded_curvature: bool  #: whether both partial losses have bounded second derivatives
    proven: bool = False  #: whether the loss declares it, and not a grid


@final
@dataclass(frozen=True, slots=True)
class PairShape:
    """Properties of a loss of pairs."""

    convex: bool  #: whether the loss has the property; "quadratic" means a parabola
    decreasing: bool
    bounded_below: bool
    quadratic: bool
    slope: float  #: derivative at zero
    rate: float | None  #: ``a`` when ``phi'(-d) / (phi'(-d) + phi'(d)) = sigmoid(a d)``
    least_weight: float  #: infimum of the weight function of the symmetric loss
    bounded_curvature: bool  #: whether the second derivative is bounded
    differentiable: bool = True  #: whether there is no kink
    proven: bool = False  #: whether the loss declares it, and not a grid

    @property
    def falls(self) -> bool:
        """Whether it never rises, has a lower bound, no kink, and falls at zero."""
        return self.decreasing and self.bounded_below and self.differentiable and self.slope < 0


def item_shape(loss: Any) -> ItemShape:
    """Measure a loss as a sum over items.

    Parameters
    ----------
    loss : AbstractLoss or str
        A loss with two partial losses.

    Examples
    --------
    >>> from gbmrank.losses import Logistic
    >>> item_shape(Logistic()).least_weight, item_shape("logistic").rate
    (4.0, 1.0)
    """
    chosen = build(LOSSES, loss)
    shape = _item_shape(chosen)
    if "proper" not in chosen.proven:
        return replace(shape, proper=shape.proper and chosen.differentiable)
    least = chosen.least_weights[0]
    weight = shape.least_weight if least is None else least
    return replace(shape, proper=True, least_weight=weight, rate=chosen.rate, proven=True)


def pair_shape(loss: Any) -> PairShape:
    """Measure a loss as a sum over pairs.

    Parameters
    ----------
    loss : AbstractLoss or str
        A loss with a margin form.

    Examples
    --------
    >>> from gbmrank.losses import Exponential
    >>> shape = pair_shape(Exponential())
    >>> shape.convex, shape.decreasing, shape.slope, shape.rate
    (True, True, -1.0, 2.0)
    """
    chosen = build(LOSSES, loss)
    shape = _pair_shape(chosen)
    if set(chosen.proven) <= _OF_ITEMS:
        return replace(shape, differentiable=chosen.differentiable)
    least, known = chosen.least_weights[1], set(chosen.proven)
    return replace(
        shape,
        convex="convex" in known,
        decreasing="decreasing" in known,
        bounded_below="bounded_below" in known,
        quadratic="parabola" in known,
        rate=chosen.rate,
        least_weight=shape.least_weight if least is None else least,
        bounded_curvature="bounded_curvature" in known,
        differentiable="differentiable" in known,
        proven=True,
    )


def contradictions(loss: Any) -> dict[str, str]:
    """Return what a loss declares as proven and a number contradicts, each with that number.

    Examples
    --------
    >>> contradictions("logistic(sigma=3)")
    {}
    """
    chosen = build(LOSSES, loss)
    claimed = set(chosen.proven)
    found = {name: f"known names are {', '.join(PROVEN)}" for name in claimed - set(PROVEN)}
    checks = [*(_against_items(chosen) if "proper" in claimed else ())]
    if not claimed <= _OF_ITEMS:
        checks += _against_pairs(chosen)
    for name, reason in checks:
        if reason and name in claimed | {"link_rate", "least_weights"}:
            found.setdefault(name, reason)
    return dict(sorted(found.items()))


def _against_items(loss: AbstractLoss) -> Iterator[tuple[str, str]]:
    a, b = (sampled(loss, each, _GRID)[:, 1] for each in loss.partials)
    shape = _item_shape(loss)
    yield "proper", _first("l1' is not below l-1'", b <= a)
    yield "proper", _first("the probability falls", np.diff(_shares(a, b)) < -1e-9)
    yield "proper", "" if shape.proper else "the probability does not go from 0 to 1"
    yield "differentiable", _kink(loss, *loss.partials)
    yield from _against_numbers(loss, 0, shape)


def _against_pairs(loss: AbstractLoss) -> Iterator[tuple[str, str]]:
    shape = _pair_shape(loss)
    _, slopes, bends = sampled(loss, loss.kappa, _GRID).T
    scale = float(np.abs(slopes).max())
    yield "convex", _first("the slope falls", np.diff(slopes) < -1e-12 * scale)
    yield "convex", _first("the second derivative is negative", bends < -1e-12 * scale)
    yield "decreasing", _first("the slope is positive", slopes > 0.0)
    yield "decreasing", "" if shape.decreasing else "the slope is positive at 10000"
    below = shape.bounded_below or not shape.decreasing
    yield "bounded_below", "" if below else "it still falls at 10000"
    far = _first("the second derivative keeps growing", bends > 4.0 * bends[_NEAR].max())
    yield "bounded_curvature", far
    yield "parabola", "" if shape.quadratic else "the second derivative is not the same everywhere"
    yield "differentiable", _kink(loss, loss.kappa)
    yield from _against_numbers(loss, 1, shape)


def _against_numbers(
    loss: AbstractLoss, which: int, shape: "ItemShape | PairShape"
) -> Iterator[tuple[str, str]]:
    """Compare a declared link and a declared infimum of w(c), which constants rest on."""
    least, rate = loss.least_weights[which], loss.rate
    if rate is not None and (shape.rate is None or abs(shape.rate / rate - 1.0) > 1e-4):
        measured = "no sigmoid(a v)" if shape.rate is None else f"sigmoid({shape.rate:g} v)"
        yield "link_rate", f"{rate:g} is declared, and the link is {measured}"
    if least is not None and shape.least_weight < least * (1.0 - 1e-6):
        yield "least_weights", f"{least:g} is declared, and w reaches {shape.least_weight:g}"


def _first(words: str, broken: Any) -> str:
    at = np.flatnonzero(broken)
    return f"{words} at {_GRID[at[0]]:g}" if len(at) else ""


def _kink(loss: AbstractLoss, *functions: ScalarFunction) -> str:
    """Return where a slope jumps: the half of an interval with the larger rise keeps it."""
    for function in functions:
        slopes = sampled(loss, function, _GRID)[:, 1]
        rises = np.pad(np.abs(np.diff(slopes)), 1, mode="edge")
        beside = rises[:-2] + rises[2:] + 1e-9 * (1.0 + np.abs(slopes[:-1]))
        steepest = [np.argsort(-each)[:8] for each in (rises[1:-1], rises[1:-1] / beside)]
        for at in np.concatenate(steepest).tolist():
            jump = _jump(loss, function, _GRID[at], _GRID[at + 1])
            if jump is not None:
                return f"the slope jumps at {jump:g}"
    return ""


def _jump(
    part: AbstractParametric, function: ScalarFunction, low: float, high: float
) -> float | None:
    """Return where a slope jumps between two numbers, or None."""

    def slope(z: float) -> float:
        return float(sampled(part, function, z)[1])

    below, above = slope(low), slope(high)
    most = 1e-6 * (1.0 + abs(below) + abs(above))
    while abs(above - below) > most:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return middle
        between = slope(middle)
        if abs(between - below) >= abs(above - between):
            high, above = middle, between
        else:
            low, below = middle, between
    return None


def decomposable_rate(loss: Any, tolerance: float = _RATE_TOLERANCE) -> float | None:
    """Return a when the link of a loss is ``sigmoid(a v)`` with a > 0, else None.

    Exactly these losses have a bipartite risk whose best pair score is a difference of
    scores for every distribution.

    Parameters
    ----------
    loss : AbstractLoss or str
        A loss with two partial losses.
    tolerance : float, default=1e-6
        Largest relative difference of a along the link.

    References
    ----------
    Menon and Williamson, "Bayes-optimal scorers for bipartite ranking", COLT 2014, Prop. 8.

    Examples
    --------
    >>> from gbmrank.losses import PClassification
    >>> decomposable_rate(PClassification(p=4)), decomposable_rate("squared_margin")
    (5.0, None)
    """
    chosen = build(LOSSES, loss)
    if "proper" in chosen.proven:
        return None if chosen.rate is None else float(chosen.rate)
    a, b = (sampled(chosen, each, _GRID)[:, 1] for each in chosen.partials)
    return _rate(a, b, tolerance)


@functools.lru_cache(maxsize=512)
def rises_without_jumps(part: AbstractParametric) -> bool:
    """Whether the slope of a convex function, of a regulariser, rises everywhere without a jump.

    Examples
    --------
    >>> from gbmrank.losses.convex import Cosh
    >>> rises_without_jumps(Cosh())
    True
    """
    function: Any = type(part).function  # type: ignore[attr-defined]
    grid, slopes = _GRID[::16], sampled(part, function, _GRID[::16])[:, 1]
    return bool(np.all(np.diff(slopes) > 0.0)) and all(
        _jump(part, function, *pair) is None for pair in itertools.pairwise(grid.tolist())
    )


def generates(generator: AbstractGenerator, eta: float | None) -> bool:
    """Whether a generator of yours sorts expected utilities, as far as a few numbers show."""
    top = 1.0 if eta is None else eta
    if generator.of_query is not None:
        return _generates_queries(generator, top)
    s = np.linspace(-8.0, 8.0, 161)
    slopes = np.stack([_terms(generator, s, v * top, top)[1] for v in (0.0, 0.5, 1.0)], axis=1)
    fall = slopes[:, 0] - slopes[:, 2]
    bent = np.abs(slopes[:, 0] - 2.0 * slopes[:, 1] + slopes[:, 2])
    with np.errstate(invalid="ignore", divide="ignore"):
        link = slopes[:, 0] / fall
    straight = np.all(bent <= 1e-9 * np.abs(slopes).max(axis=1))
    return bool(straight and np.all(fall > 0) and np.all(np.diff(link) >= 0) and np.ptp(link) > 0)


def _terms(generator: AbstractGenerator, s: FloatArray, v: Any, eta: float) -> FloatArray:
    """Return value and slope of a separable generator at scores, for utilities, shape (2, n)."""
    rows = [
        sampled(generator, lambda z, *p, u=u: generator.term(z, u, eta, *p), z)[:2]
        for z, u in zip(s, np.broadcast_to(v, s.shape).tolist(), strict=True)
    ]
    return np.array(rows).T


def _risk(generator: AbstractGenerator, utilities: FloatArray, eta: float) -> Risk:
    """Return the loss of one query as a function of scores, with its gradient."""

    def risk(scores: FloatArray) -> tuple[float, FloatArray]:
        if generator.of_query is None:
            values, slopes = _terms(generator, scores, utilities, eta)
            return float(values.sum()), slopes
        value, gradient = generator.of_query(scores, utilities, *generator.params)
        return float(value), np.asarray(gradient, dtype=np.float64)

    return risk


def _generates_queries(generator: AbstractGenerator, top: float) -> bool:
    """Whether gradients are affine in the utilities, and minimisers sorted like them."""
    rng = np.random.default_rng(0)
    for _ in range(12):
        s, (u, v) = rng.normal(size=3), top * rng.uniform(0.05, 1.0, (2, 3))
        each = [_risk(generator, w, top)(s)[1] for w in (u, v, 0.5 * (u + v))]
        if np.abs(each[0] + each[1] - 2.0 * each[2]).max() > 1e-9 * (1.0 + np.abs(each).max()):
            return False
        nature = Nature(shift_invariant=generator.shift_invariant)
        try:
            found = minimise(_risk(generator, u, top), 3, nature)
        except NumericError:
            return False
        if not found.attained or np.any(np.argsort(found.scores) != np.argsort(u)):
            return False
    return True


def modulus_contradiction(generator: AbstractGenerator) -> str:
    """Return two expected utilities whose tie costs less than ``mu (U_i - U_j)^2 / 4``, or ''."""
    nature, ties = Nature(shift_invariant=generator.shift_invariant), np.linspace(-8.0, 8.0, 161)
    for top, low, high in itertools.product((1.0, 4.0), (0.05, 0.4, 0.7), (0.6, 1.0)):
        if low >= high or generator.mu is None:
            continue
        risk = _risk(generator, np.array([high, low]) * top, top)
        try:
            least = minimise(risk, 2, nature).value
        except NumericError:
            continue
        cost = min(risk(np.array([t, t]))[0] for t in ties.tolist()) - least
        if cost < 0.25 * generator.mu * ((high - low) * top) ** 2 * (1.0 - 1e-6) - 1e-9:
            pair = f"{high * top:g} and {low * top:g}"
            return f"mu={generator.mu:g}, but a tie of the utilities {pair} costs only {cost:.6g}"
    return ""


@functools.lru_cache(maxsize=512)
def _item_shape(loss: AbstractLoss) -> ItemShape:
    (a, bend_a), (b, bend_b) = (sampled(loss, each, _GRID)[:, 1:].T for each in loss.partials)
    shares = _shares(a, b)
    ends = [
        _shares(*(sampled(loss, each, side)[:, 1] for each in loss.partials))
        for side in (-_FAR, _FAR)
    ]
    rising = bool(np.all(np.isfinite(shares)) and np.all(np.diff(shares) >= -1e-9))
    wide = bool(np.any(ends[0] < 1e-3) and np.any(ends[1] > 1.0 - 1e-3))

    def weight(v: float) -> float:
        (_, a_v, bend_a_v), (_, b_v, bend_b_v) = (sampled(loss, f, v) for f in loss.partials)
        return _weight(a_v, b_v, bend_a_v, bend_b_v)

    rough = [_weight(*row) for row in zip(a, b, bend_a, bend_b, strict=True)]
    return ItemShape(
        rising and wide and bool(np.all(b > a)),
        _refined_minimum(weight, rough),
        _rate(a, b, _RATE_TOLERANCE),
        loss.majorant is not None,
    )


@functools.lru_cache(maxsize=512)
def _pair_shape(loss: AbstractLoss) -> PairShape:
    slopes, bends = sampled(loss, loss.kappa, _GRID)[:, 1:].T
    scale = float(np.abs(slopes).max())
    tail = float(sampled(loss, loss.kappa, 1e4)[1])
    slope, mirrored = float(slopes[len(_GRID) // 2]), -slopes[::-1]

    def weight(d: float) -> float:
        (_, a, bend_a), (_, b, bend_b) = sampled(loss, loss.kappa, [d, -d])
        return _weight(a, -b, bend_a, bend_b)

    rows = zip(slopes, mirrored, bends, bends[::-1], strict=True)
    steps = np.diff(slopes)
    return PairShape(
        convex=bool(np.all(steps >= -1e-12 * scale) and np.all(bends >= -1e-12 * scale)),
        decreasing=bool(np.all(slopes <= 0.0) and tail <= 0.0),
        bounded_below=abs(tail) <= 1e-6 * max(abs(slope), 1e-300),
        quadratic=bool(np.ptp(bends) <= 1e-12 * scale and np.ptp(steps) <= 1e-9 * scale)
        and bends[0] > 0,
        slope=slope,
        rate=_rate(slopes, mirrored, _RATE_TOLERANCE),
        least_weight=_refined_minimum(weight, [_weight(*row) for row in rows]),
        bounded_curvature=bool(bends.max() <= 4.0 * bends[_NEAR].max()),
    )


def _shares(a: FloatArray, b: FloatArray) -> FloatArray:
    """Probability at which each score is best: b / (b - a)."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        scale = np.maximum(np.abs(a), np.abs(b))
        return (b / scale) / (b / scale - a / scale)


def _weight(a: float, b: float, bend_a: float, bend_b: float) -> float:
    """Weight function where l1' = a, l-1' = b: (b - a)^3 / (b a' - a b')."""
    across = b * bend_a - a * bend_b
    total = b - a
    if not across > 0.0 or not math.isfinite(total) or total > 1e80:
        return math.inf
    return float(total**3 / across)


def _rate(a: FloatArray, b: FloatArray, tolerance: float) -> float | None:
    """Return the common ratio of log(b / -a) to v over the grid, or None."""
    near = (np.abs(_GRID) >= 0.02) & (np.abs(_GRID) <= 6.0)
    if not (np.all(a[near] < 0.0) and np.all(b[near] > 0.0)):
        return None
    ratios = np.log(b[near] / -a[near]) / _GRID[near]
    middle = float(np.median(ratios))
    if middle <= 0.0 or float(np.abs(ratios - middle).max()) > tolerance * middle:
        return None
    return float(f"{middle:.9g}")


def _refined_minimum(function: Callable[[float], float], rough: list[float]) -> float:
    """Return the least value near the best grid point, by thirds."""
    best = int(np.argmin(rough))
    low, high = float(_GRID[max(best - 1, 0)]), float(_GRID[min(best + 1, len(_GRID) - 1)])
    least = rough[best]
    for _ in range(60):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        at_left, at_right = function(left), function(right)
        least = min(least, at_left, at_right)
        low, high = (low, right) if at_left <= at_right else (left, high)
    return float(f"{least:.12g}")  # without the noise of the last steps
