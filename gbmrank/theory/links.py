"""Links of proper composite losses: which probability a score stands for."""

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from gbmrank.errors import ParameterError
from gbmrank.numerics import expit, logit
from gbmrank.types import FloatArray

__all__ = ["LINKS", "Link", "LinkFunction", "LinkValues", "check_link", "find_link"]

LinkFunction: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""``v -> (q, q')``: the inverse link and its derivative, for arrays of scores."""

_DOUBLINGS, _HALVINGS = 40, 130


class LinkValues(NamedTuple):
    """Probabilities, what is left to one (without cancellation where known), derivatives."""

    q: FloatArray
    rest: FloatArray
    slope: FloatArray


@final
@dataclass(frozen=True, slots=True)
class Link:
    """An inverse link with its derivative.

    Parameters
    ----------
    name : str
        For messages.
    values : callable
        Scores to :class:`LinkValues`.
    closed_form : callable or None
        Probabilities to scores; solved for where there is none.
    """

    name: str
    values: Callable[[FloatArray], LinkValues]
    closed_form: Callable[[FloatArray], FloatArray] | None = None

    def scores(self, probabilities: FloatArray) -> FloatArray:
        """Return the scores that stand for probabilities."""
        given = np.asarray(probabilities, dtype=np.float64)
        return self.solve(given, 1.0 - given) if self.closed_form is None else (
            self.closed_form(given)
        )  # fmt: skip

    def solve(self, q: FloatArray, rest: FloatArray) -> FloatArray:
        """Return scores with these probabilities by bisection; ``rest`` is 1 - q."""
        upper = q > 0.5

        def above(v: FloatArray) -> Any:
            found = self.values(v)
            return np.where(upper, found.rest < rest, found.q > q)

        low, high = np.full(q.shape, -1.0), np.ones(q.shape)
        for _ in range(_DOUBLINGS):
            low, high = np.where(above(low), 2.0 * low, low), np.where(above(high), high, 2 * high)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            right = above(middle)
            low, high = np.where(right, low, middle), np.where(right, middle, high)
        ends = np.where(rest <= 0.0, np.inf, 0.5 * (low + high))
        return np.where(q <= 0.0, -np.inf, ends)


def find_link(given: "str | LinkFunction") -> Link:
    """Return a link by its name, or that of a function ``v -> (q, q')``.

    Raises
    ------
    ParameterError
        For an unknown name, with the nearest one, and for what is no function.

    Examples
    --------
    >>> find_link("probit").values(np.array([0.0])).q
    array([0.5])
    """
    if isinstance(given, str):
        if given not in LINKS:
            near = difflib.get_close_matches(given.lower(), LINKS, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ParameterError(
                f"no link is called {given!r}; {hint}There are {', '.join(LINKS)}; or give a "
                "function v -> (q, q')"
            )
        return LINKS[given]
    if not callable(given):
        raise ParameterError(
            f"link must be one of {', '.join(LINKS)} or a function v -> (q, q'), got {given!r}"
        )
    name = getattr(given, "__name__", type(given).__name__)
    return Link(name, _Measured(name, given))


def check_link(link: Link, low: float, high: float, nodes: FloatArray) -> LinkValues:
    """Return the values at nodes of what is increasing, inside (0, 1), with its derivative.

    Parameters
    ----------
    link : Link
        What is checked.
    low, high : float
        Scores that should stand for very small and very large probabilities.
    nodes : array of shape (n,)
        Increasing scores between them.

    Raises
    ------
    ParameterError
        Says what is wrong, and at which score.
    """
    margin = 0.01 * (high - low)
    _check_inside(link, np.array([low - margin, *nodes, high + margin]))
    found = link.values(nodes)
    falling = np.flatnonzero(~(np.diff(found.q) > 0.0) & ~(np.diff(found.rest) < 0.0))
    if len(falling):
        raise ParameterError(
            f"the link {link.name} must increase strictly; q(v) does not at v = "
            f"{nodes[falling[0]]:.6g}"
        )
    flat = np.flatnonzero(~((found.slope > 0.0) & np.isfinite(found.slope)))
    if len(flat):
        raise ParameterError(
            f"the derivative of the link {link.name} must be a positive number; it is "
            f"{found.slope[flat[0]]:g} at v = {nodes[flat[0]]:.6g}"
        )
    _check_derivative(link, nodes, found)
    return found


def _check_inside(link: Link, scores: FloatArray) -> None:
    q, rest, _ = link.values(scores)
    outside = np.flatnonzero(~((q > 0.0) & (rest > 0.0)))
    if len(outside):
        raise ParameterError(
            f"the link {link.name} must stay inside (0, 1) for every score; q(v) is "
            f"{q[outside[0]]:g} at v = {scores[outside[0]]:.6g}"
        )


def _check_derivative(link: Link, nodes: FloatArray, found: LinkValues) -> None:
    """Compare with differences; a kink spoils few of them."""
    width = np.diff(nodes)
    lower = found.q[1:] <= 0.5
    rise = np.where(lower, np.diff(found.q), -np.diff(found.rest)) / width
    mean = 0.5 * (found.slope[1:] + found.slope[:-1])
    wrong = np.abs(rise - mean) > 0.02 * np.maximum(rise, mean)
    if np.mean(wrong) > 0.02:
        at = int(np.argmax(wrong))
        raise ParameterError(
            f"the link {link.name} must return (q, q') with q' its derivative; near v = "
            f"{nodes[at]:.6g} it gives {mean[at]:.6g} where differences of q give {rise[at]:.6g}"
        )


@final
@dataclass(frozen=True, slots=True)
class _Measured:
    """The values of a user's function, with its shapes checked."""

    name: str
    function: LinkFunction

    def __call__(self, v: FloatArray) -> LinkValues:
        with np.errstate(all="ignore"):
            found: Any = self.function(v)
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise ParameterError(
                f"the link {self.name} must return two arrays, the probabilities q(v) and their "
                f"derivatives; got {type(found).__name__}"
            )
        q, slope = (np.asarray(one, dtype=np.float64) for one in found)
        if q.shape != v.shape or slope.shape != v.shape:
            raise ParameterError(
                f"the link {self.name} must return arrays of the shape of the scores, {v.shape}; "
                f"got {q.shape} and {slope.shape}"
            )
        return LinkValues(q, 1.0 - q, slope)


def _logit_values(v: FloatArray) -> LinkValues:
    q, rest = expit(v), expit(-v)
    return LinkValues(q, rest, q * rest)


def _probit_values(v: FloatArray) -> LinkValues:
    from scipy.special import ndtr

    return LinkValues(ndtr(v), ndtr(-v), np.exp(-0.5 * v * v) / math.sqrt(2.0 * math.pi))


def _probit_scores(p: FloatArray) -> FloatArray:
    from scipy.special import ndtri

    return np.asarray(ndtri(p))


def _cloglog_values(v: FloatArray) -> LinkValues:
    with np.errstate(over="ignore"):
        e = np.exp(v)
        return LinkValues(-np.expm1(-e), np.exp(-e), np.exp(v - e))


def _cloglog_scores(p: FloatArray) -> FloatArray:
    return np.log(-np.log1p(-p))


def _cauchit_values(v: FloatArray) -> LinkValues:
    q, rest = np.arctan2(1.0, -v) / math.pi, np.arctan2(1.0, v) / math.pi
    return LinkValues(q, rest, 1.0 / (math.pi * (1.0 + v * v)))


def _cauchit_scores(p: FloatArray) -> FloatArray:
    return np.tan(math.pi * (p - 0.5))


def _algebraic_values(v: FloatArray) -> LinkValues:
    root = np.sqrt(4.0 + v * v)
    small = 2.0 / (root * (root + np.abs(v)))
    large = 0.5 + 0.5 * np.abs(v) / root
    q, rest = np.where(v < 0.0, small, large), np.where(v < 0.0, large, small)
    return LinkValues(q, rest, 2.0 / root**3)


def _algebraic_scores(p: FloatArray) -> FloatArray:
    return (2.0 * p - 1.0) / np.sqrt(p * (1.0 - p))


LINKS: Mapping[str, Link] = MappingProxyType(
    {
        link.name: link
        for link in (
            Link("logit", _logit_values, logit),
            Link("probit", _probit_values, _probit_scores),
            Link("cloglog", _cloglog_values, _cloglog_scores),
            Link("cauchit", _cauchit_values, _cauchit_scores),
            Link("algebraic", _algebraic_values, _algebraic_scores),
        )
    }
)
"""Named links: inverse sigmoid, normal quantile, ``1 - exp(-exp v)``, Cauchy quantile, and
``1/2 + v / (2 sqrt(4 + v^2))``, which is that of the canonical boosting loss."""
