"""Proper composite losses from a weight function w(c) and a link: which cost ratios matter."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from typing import Any, ClassVar

import numpy as np

from gbmrank.errors import ParameterError
from gbmrank.losses.composite import AbstractCompositeLoss
from gbmrank.matrices import read_number
from gbmrank.registry import LOSSES
from gbmrank.theory.links import Link, LinkFunction, check_link, find_link
from gbmrank.theory.tables import Grid, expected_curvature, is_convex, tabulated
from gbmrank.types import FloatArray

__all__ = ["AbstractWeightLoss", "WeightFunction", "loss_from_weight"]

WeightFunction = Callable[[FloatArray], FloatArray]

_LOG_2 = math.log(2.0)
_DEPTH = 26  # tables end where q or 1 - q is 2^-26; beyond, 1 - q has too few digits for w(c)
_DEEPEST = 49  # 1 - 2^-49 is exact, so that w(c) can be asked there
_CELLS = 4000
_made: dict[Any, type["AbstractWeightLoss"]] = {}


@dataclass(frozen=True, slots=True)
class AbstractWeightLoss(AbstractCompositeLoss):
    """A composite loss whose partial losses are tables; see :func:`loss_from_weight`.

    It is pickled by its weight function and its link: plain pickle needs functions of a
    module, cloudpickle takes lambdas too.
    """

    recipe: ClassVar[tuple[Any, ...]]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, type(self).recipe


def loss_from_weight(
    weight: WeightFunction,
    *,
    rate: float = 1.0,
    link: str | LinkFunction = "logit",
    name: str = "weighted",
) -> AbstractCompositeLoss:
    r"""Build the strictly proper composite loss with a given weight function and link.

    With the inverse link q, of which the default is ``q(v) = sigmoid(rate v)``,

    .. math::
        \ell_1(v) = \int_{q(v)}^1 (1 - c) w(c)\, dc, \qquad
        \ell_{-1}(v) = \int_0^{q(v)} c\, w(c)\, dc, \\
        \ell_1'(v) = -(1 - q) w(q) q'(v), \qquad \ell_{-1}'(v) = q\, w(q) q'(v).

    Slopes are tabulated where q and 1 - q are above ``2^-26`` and interpolated by cubic
    splines (relative error about 1e-9 for smooth w); beyond, they go on as exponentials or
    powers. Value and derivatives belong to one another exactly. It works wherever a
    composite loss does: pointwise, bipartite, push, pairwise.

    The loss is registered under its name for this process, as by
    :func:`gbmrank.register_loss`; one that is made again under its name takes its place. It
    pickles where its functions do: those of a module do, lambdas need cloudpickle.

    Parameters
    ----------
    weight : callable
        w(c) for an array of c in (0, 1); positive, with finite integrals above: c w(c) near
        0 and (1 - c) w(c) near 1.
    rate : float, default=1
        Steepness: the link is taken at ``rate v``.
    link : {"logit", "probit", "cloglog", "cauchit", "algebraic"} or callable, default="logit"
        Which probability a score stands for; or a function ``v -> (q, q')`` of an array that
        returns the inverse link, which increases from 0 to 1, and its derivative.
    name : str, default="weighted"
        Shown in texts, and registered.

    Returns
    -------
    AbstractCompositeLoss
        An instance to give as ``loss=``.

    Raises
    ------
    ParameterError
        For what is no weight, no link, or an integral that diverges.
    RegistrationError
        For a name that is taken by another loss.

    References
    ----------
    Menon and Williamson, "Bayes-optimal scorers for bipartite ranking", COLT 2014, sec. 2.

    Examples
    --------
    >>> loss = loss_from_weight(lambda c: 1 / (c * (1 - c)))  # the logistic loss
    >>> value, slope, bend = loss.partials[0](0.0)
    >>> round(value, 6), round(slope, 6), round(bend, 6)
    (0.693147, -0.5, 0.25)
    >>> probit = loss_from_weight(lambda c: 1 / (c * (1 - c)), link="probit", name="probit")
    >>> probit.inverse_link(np.array([0.0, 1.96])).round(3)
    array([0.5  , 0.975])
    """
    made = _loss_class(weight, rate, link, name)
    LOSSES.register(made)
    return made()


def _restored(weight: WeightFunction, rate: float, link: Any, name: str) -> AbstractCompositeLoss:
    return _loss_class(weight, rate, link, name)()


def _loss_class(
    weight: WeightFunction, rate: float, given: str | LinkFunction, name: str
) -> type[AbstractWeightLoss]:
    if not callable(weight):
        raise ParameterError(
            f"loss_from_weight: weight must be a function c -> w(c) of arrays, got {weight!r}"
        )
    if not read_number(rate, "loss_from_weight: rate") > 0.0:
        raise ParameterError(f"loss_from_weight: rate must be above 0, got {rate}")
    link = find_link(given)
    grid = _grid(link)
    q, rest, slope = check_link(link, float(grid.nodes[0]), float(grid.nodes[-1]), grid.nodes)
    density = _weights_at(weight, q) * slope
    ends = _tail(weight, at_one=False), _tail(weight, at_one=True)
    grid, density = grid.scaled(1.0 / rate), density * rate
    # The same functions with the same tables are the same loss: so a pickled copy is equal.
    digest = hashlib.sha256(density.tobytes()).hexdigest()
    key = (_identity(weight), _identity(given), float(rate), name, digest)
    if key not in _made:
        positive = tabulated(grid, -rest * density, ends[1], vanishes_above=True)
        negative = tabulated(grid, q * density, ends[0], vanishes_above=False)
        recipe = (weight, float(rate), given, name)
        _made[key] = _class_of(
            recipe, link, (positive, negative), is_convex(grid, positive, negative)
        )
    return _made[key]


def _class_of(
    recipe: tuple[Any, ...], at: Link, partials: tuple[Any, Any], convex: bool
) -> type[AbstractWeightLoss]:
    weight, rate, _, name = recipe
    curvature = expected_curvature(*partials)

    def link(_: Any, probabilities: FloatArray) -> FloatArray:
        return at.scores(probabilities) / rate

    def inverse_link(_: Any, scores: FloatArray) -> FloatArray:
        return at.values(rate * np.asarray(scores, dtype=np.float64)).q

    def weight_function(_: Any, probabilities: FloatArray) -> FloatArray:
        return np.asarray(weight(probabilities), dtype=np.float64)

    traits = {
        "name": name,
        "formula": "l1' = -(1 - q) w(q) q', l-1' = q w(q) q'",
        "reference": "Menon and Williamson, COLT 2014, sec. 2; weight of the caller",
        "convex": convex,
        "positive": staticmethod(partials[0]),
        "negative": staticmethod(partials[1]),
        "recipe": recipe,
        "link": link,
        "inverse_link": inverse_link,
        "weight_function": weight_function,
        "expected_curvature": property(lambda _: curvature),
        "exact_curvature": convex,
    }
    made = make_dataclass(
        "WeightLoss", [], bases=(AbstractWeightLoss,), namespace=traits, frozen=True, slots=True
    )
    made.__module__ = "__main__"  # it belongs to this process, not to gbmrank
    return made


def _identity(function: Any) -> Any:
    """Return what tells functions apart: themselves, or where they are kept."""
    try:
        hash(function)
    except TypeError:
        return id(function)
    return function


def _grid(link: Link) -> Grid:
    """Return scores from q = 2^-26 to 1 - q = 2^-26, dense where q moves."""
    least = 2.0**-_DEPTH
    q = np.array([least, 0.5, 1.0 - least])
    low, centre, high = link.solve(q, np.array([1.0 - least, 0.5, least]))
    reached = link.values(np.array([low, centre, high]))
    found = np.array([reached.q[0], reached.q[1], reached.rest[2]])
    if not np.all(np.abs(found / np.array([least, 0.5, least]) - 1.0) < 0.5) or not low < high:
        raise ParameterError(
            f"the link {link.name} must increase from 0 to 1; q(v) is {reached.q[0]:g} at "
            f"v = {low:g} and {reached.q[2]:g} at v = {high:g}"
        )
    steep = 4.0 * float(reached.slope[1])
    if not 0.0 < steep < math.inf:
        raise ParameterError(
            f"the derivative of the link {link.name} must be a positive number; it is "
            f"{reached.slope[1]:g} at v = {centre:g}, where q = 1/2"
        )
    return Grid.between(float(low), float(high), float(centre), steep, _CELLS)


def _called(weight: WeightFunction, c: FloatArray) -> FloatArray:
    found = np.asarray(weight(c), dtype=np.float64)
    if found.shape not in ((), c.shape):
        raise ParameterError(
            f"loss_from_weight: w(c) must return one number per c, here {len(c)}, or one for all; "
            f"got an array of shape {found.shape}"
        )
    return found * np.ones(len(c))


def _weights_at(weight: WeightFunction, c: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        values = _called(weight, c)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if len(wrong):
        at = wrong[0]
        raise ParameterError(
            "loss_from_weight: w(c) must be finite and positive inside (0, 1), got "
            f"w({c[at]:.6g}) = {values[at]:g}"
        )
    return values


def _tail(weight: WeightFunction, *, at_one: bool) -> float:
    """Return the integral of c w(c) below 2^-26, or of (1 - c) w(c) above 1 - 2^-26.

    w is taken at powers of two, where 1 - c is exact, and as a power of c between them.

    Raises
    ------
    ParameterError
        When the integral diverges.
    """
    depth = np.arange(_DEPTH, _DEEPEST + 1)
    part: FloatArray = np.exp2(-depth.astype(np.float64))
    with np.errstate(all="ignore"):
        values = _called(weight, 1.0 - part if at_one else part)
        logs = np.log(values) - 2.0 * _LOG_2 * depth
        falls = -np.diff(logs) / _LOG_2
        early, late = float(falls[:4].mean()), float(falls[-4:].mean())
        pieces = -np.diff(np.exp(logs)) / falls
    pieces = np.where(np.abs(falls) < 1e-9, np.exp(logs[:-1]) * _LOG_2, pieces)
    order = late * (_DEEPEST - 2) * _LOG_2  # if it falls like a power of the logarithm of c
    slow = late < 0.8 * early
    if not late > 1e-4 or (slow and order <= 1.02):
        raise ParameterError(_diverges(late, at_one))
    last = float(np.exp(logs[-1]))
    beyond = last * _DEEPEST * _LOG_2 / (order - 1.0) if slow else last / late
    return float(pieces.sum()) + beyond


def _diverges(fall: float, at_one: bool) -> str:
    what, base, item = (
        ("(1 - c) w(c) diverges near c = 1", "(1 - c)", "useful")
        if at_one
        else ("c w(c) diverges near c = 0", "c", "useless")
    )
    order = 2.0 - fall
    grows = f"grows there like {base}^-{order:.3g}" if order > 1.99 else "grows there too fast"
    return (
        f"loss_from_weight: the integral of {what}, so {item} items would have an infinite "
        f"loss; w {grows}, and must grow clearly more slowly than {base}^-2"
    )
