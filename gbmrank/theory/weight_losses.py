"""Proper composite losses from a weight function w(c) over cost ratios, and a link.

A :class:`Link` maps scores to probabilities. The slopes of the partial losses are
tabulated on a :class:`Grid`; :func:`tabulated` makes a compilable function of them whose value
and derivatives are consistent.
"""

import difflib
import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, make_dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeAlias, final

import numpy as np

from gbmrank.data.columns import read_number
from gbmrank.errors import ParameterError
from gbmrank.losses.base import ScalarFunction
from gbmrank.losses.composite import AbstractCompositeLoss
from gbmrank.numerics import MAX_EXPONENT, expit, logit
from gbmrank.registry.catalogue import LOSSES
from gbmrank.types import FloatArray

LinkFunction: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""``v -> (q, q')``: the inverse link and its derivative, for arrays of scores."""

_DOUBLINGS, _HALVINGS = 40, 130
Tail = tuple[float, float, float, float, float]
"""Where it begins, value, slope, relative rate of the slope, and reach (0: exponential)."""

_STEEPEST = MAX_EXPONENT - 100.0  # leaves room for factors of an exponential
_FLAT = 1e-5  # a slope that changes less than this over the whole table is constant
WeightFunction = Callable[[FloatArray], FloatArray]

_LOG_2 = math.log(2.0)
_DEPTH = 26  # tables end where q or 1 - q is 2^-26; beyond, 1 - q has too few digits for w(c)
_DEEPEST = 49  # 1 - 2^-49 is exact, so w(c) can be evaluated there
_CELLS = 4000
_made: dict[Any, type["AbstractWeightLoss"]] = {}


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
    splines (relative error about 1e-9 for smooth w); beyond, they are extrapolated as exponentials
    or powers. Value and derivatives are exactly consistent. It works in all templates for
    composite losses: pointwise, bipartite, push, pairwise.

    The loss is registered under its name for this process, as by
    :func:`gbmrank.register_loss`; a new one replaces an earlier one of the same name. It can be
    pickled if its functions can: those of a module can, lambdas need cloudpickle.

    Parameters
    ----------
    weight : callable
        w(c) for an array of c in (0, 1); positive, with finite integrals above: c w(c) near
        0 and (1 - c) w(c) near 1.
    rate : float, default=1
        Steepness: the link is taken at ``rate v``.
    link : {"logit", "probit", "cloglog", "cauchit", "algebraic"} or callable, default="logit"
        Link between scores and probabilities; or a function ``v -> (q, q')`` of an array that
        returns the inverse link, which increases from 0 to 1, and its derivative.
    name : str, default="weighted"
        Name under which the loss is registered.

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


class LinkValues(NamedTuple):
    """Probabilities, their complements (without cancellation if possible), and derivatives."""

    q: FloatArray
    rest: FloatArray
    slope: FloatArray


@final
@dataclass(frozen=True, slots=True)
class Link:
    """An inverse link with its derivative."""

    name: str
    values: Callable[[FloatArray], LinkValues]
    closed_form: Callable[[FloatArray], FloatArray] | None = None

    def scores(self, probabilities: FloatArray) -> FloatArray:
        """Return the scores of probabilities."""
        given = np.asarray(probabilities, dtype=np.float64)
        if self.closed_form is None:
            return self.solve(given, 1.0 - given)
        return self.closed_form(given)

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
    """Return a link by its name, or that of a function ``v -> (q, q')``."""
    if isinstance(given, str):
        if given not in LINKS:
            near = difflib.get_close_matches(given.lower(), LINKS, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ParameterError(
                f"there is no link {given!r}; {hint}Links: {', '.join(LINKS)}; or give a "
                "function v -> (q, q')"
            )
        return LINKS[given]
    name = getattr(given, "__name__", type(given).__name__)
    return Link(name, _Measured(name, given))


def check_link(link: Link, low: float, high: float, nodes: FloatArray) -> LinkValues:
    """Validate that a link increases inside (0, 1), and return its values at nodes."""
    margin = 0.01 * (high - low)
    scores = np.array([low - margin, *nodes, high + margin])
    q, rest, _ = link.values(scores)
    outside = np.flatnonzero(~((q > 0.0) & (rest > 0.0)))
    if len(outside):
        raise ParameterError(
            f"the link {link.name} must stay inside (0, 1) for every score; q(v) is "
            f"{q[outside[0]]:g} at v = {scores[outside[0]]:.6g}"
        )
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
    # The derivative against differences of q; a kink affects few of them.
    width = np.diff(nodes)
    rise = np.where(found.q[1:] <= 0.5, np.diff(found.q), -np.diff(found.rest)) / width
    mean = 0.5 * (found.slope[1:] + found.slope[:-1])
    wrong = np.abs(rise - mean) > 0.02 * np.maximum(rise, mean)
    if np.mean(wrong) > 0.02:
        at = int(np.argmax(wrong))
        raise ParameterError(
            f"the link {link.name} must return (q, q') with q' its derivative; near v = "
            f"{nodes[at]:.6g} it gives {mean[at]:.6g} where differences of q give {rise[at]:.6g}"
        )
    return found


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


def _cauchit_values(v: FloatArray) -> LinkValues:
    q, rest = np.arctan2(1.0, -v) / math.pi, np.arctan2(1.0, v) / math.pi
    return LinkValues(q, rest, 1.0 / (math.pi * (1.0 + v * v)))


def _algebraic_values(v: FloatArray) -> LinkValues:
    root = np.sqrt(4.0 + v * v)
    small = 2.0 / (root * (root + np.abs(v)))
    large = 0.5 + 0.5 * np.abs(v) / root
    q, rest = np.where(v < 0.0, small, large), np.where(v < 0.0, large, small)
    return LinkValues(q, rest, 2.0 / root**3)


LINKS: Mapping[str, Link] = MappingProxyType(
    {
        link.name: link
        for link in (
            Link("logit", _logit_values, logit),
            Link("probit", _probit_values, _probit_scores),
            Link("cloglog", _cloglog_values, lambda p: np.log(-np.log1p(-p))),
            Link("cauchit", _cauchit_values, lambda p: np.tan(math.pi * (p - 0.5))),
            Link(
                "algebraic", _algebraic_values, lambda p: (2.0 * p - 1.0) / np.sqrt(p * (1.0 - p))
            ),
        )
    }
)
"""Named links: inverse sigmoid, normal quantile, ``1 - exp(-exp v)``, Cauchy quantile, and
``1/2 + v / (2 sqrt(4 + v^2))``, which is that of the canonical boosting loss."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Scores that are evenly spaced in ``asinh(steep (v - centre))``: dense near the centre."""

    nodes: FloatArray
    places: FloatArray
    centre: float
    steep: float

    @classmethod
    def between(cls, low: float, high: float, centre: float, steep: float, cells: int) -> "Grid":
        """Return a grid with a number of cells."""
        first, last = math.asinh((low - centre) * steep), math.asinh((high - centre) * steep)
        places = np.linspace(first, last, cells + 1)
        nodes = centre + np.sinh(places) / steep
        nodes[0], nodes[-1] = low, high
        return cls(nodes, places, centre, steep)

    def scaled(self, factor: float) -> "Grid":
        """Return the grid with all scores multiplied."""
        return Grid(self.nodes * factor, self.places, self.centre * factor, self.steep / factor)

    @property
    def stretch(self) -> FloatArray:
        """Derivative of the scores by their places."""
        return np.cosh(self.places) / self.steep


def tabulated(
    grid: Grid, slopes: FloatArray, tail: float, *, vanishes_above: bool
) -> ScalarFunction:
    """Return the function with these slopes that vanishes at one end."""
    from scipy.interpolate import CubicSpline

    nodes = grid.nodes
    bends = CubicSpline(grid.places, slopes)(grid.places, 1) / grid.stretch
    widths = np.diff(nodes)
    steps = widths * (slopes[1:] + slopes[:-1]) / 2.0 - widths**2 * np.diff(bends) / 12.0
    if vanishes_above:
        values = tail + np.append(np.cumsum(-steps[::-1])[::-1], 0.0)
    else:
        values = tail + np.append(0.0, np.cumsum(steps))
    below = _tail_of(grid, (values, slopes, bends), 0, vanishes=not vanishes_above)
    above = _tail_of(grid, (values, slopes, bends), -1, vanishes=vanishes_above)
    low, high = float(nodes[0]), float(nodes[-1])
    start, step = float(grid.places[0]), float(grid.places[1] - grid.places[0])
    centre, steep, last = grid.centre, grid.steep, len(nodes) - 2

    def partial(v: float) -> tuple[float, float, float]:
        if v <= low:
            return _beyond(v, below)
        if v >= high:
            return _beyond(v, above)
        place = (math.asinh((v - centre) * steep) - start) / step
        left = min(max(int(place), 0), last)
        width = float(nodes[left + 1] - nodes[left])
        return _between(
            (v - float(nodes[left])) / width,
            width,
            (float(values[left]), float(slopes[left]), float(bends[left])),
            (float(slopes[left + 1]), float(bends[left + 1])),
        )

    return partial


def is_convex(grid: Grid, positive: ScalarFunction, negative: ScalarFunction) -> bool:
    """Whether both functions are convex, up to the noise of the table."""
    inside = np.linspace(0.0, 1.0, 400) * 0.9 + 0.05
    probes = (inside * (len(grid.nodes) - 1)).astype(np.int64)
    for v, stretch in zip(grid.nodes[probes].tolist(), grid.stretch[probes], strict=True):
        for function in (positive, negative):
            _, slope, bend = function(v)
            if bend * stretch < -1e-5 * abs(slope):
                return False
    return True


@dataclass(frozen=True, slots=True)
class AbstractWeightLoss(AbstractCompositeLoss):
    """A composite loss whose partial losses are tables; see :func:`loss_from_weight`.

    It is pickled by its weight function and its link: plain pickle needs functions of a
    module, cloudpickle also supports lambdas.
    """

    recipe: ClassVar[tuple[Any, ...]]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, type(self).recipe


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


def _tail_of(
    grid: Grid, columns: tuple[FloatArray, FloatArray, FloatArray], end: int, *, vanishes: bool
) -> Tail:
    """Choose the extrapolation of slopes beyond an end: exponential, or a power of the distance."""
    values, slopes, bends = columns
    reach = float(grid.nodes[end]) - grid.centre
    inner = int(np.argmin(np.abs(grid.nodes - grid.centre - 0.8 * reach)))
    rates = [float(bends[at] / slopes[at]) for at in (inner, end)]
    orders = [rates[0] * float(grid.nodes[inner] - grid.centre), rates[1] * reach]
    power = _change(orders) < _change(rates)
    value, slope = float(values[end]), float(slopes[end])
    rate = 0.0 if abs(orders[1]) < _FLAT else rates[1]
    if vanishes:  # exactly, at infinity
        rate = slope / value - (1.0 / reach if power else 0.0)
    return float(grid.nodes[end]), value, slope, rate, reach if power else 0.0


def _change(pair: list[float]) -> float:
    return abs(pair[1] - pair[0]) / max(abs(pair[0]), abs(pair[1]), 1e-300)


def _beyond(v: float, tail: Tail) -> tuple[float, float, float]:
    """Slope ``slope exp(rate x)``, or ``slope (1 + u)^p``, with its integral and derivative."""
    end, value, slope, rate, reach = tail
    if reach == 0.0:
        x = v - end
        z = min(max(rate * x, -MAX_EXPONENT), _STEEPEST)
        grown = slope * math.exp(z)
        area = slope * x if abs(rate) < 1e-12 else slope * math.expm1(z) / rate
        return max(value + area, 0.0), grown, rate * grown
    u, p = (v - end) / reach, rate * reach
    far = math.log1p(u)
    z = min(max(p * far, -MAX_EXPONENT), _STEEPEST)
    grown = slope * math.exp(z)
    up = min(max((p + 1.0) * far, -MAX_EXPONENT), _STEEPEST)
    area = slope * reach * (far if abs(p + 1.0) < 1e-12 else math.expm1(up) / (p + 1.0))
    return max(value + area, 0.0), grown, p * grown / (reach * (1.0 + u))


def _between(
    t: float, width: float, left: tuple[float, float, float], right: tuple[float, float]
) -> tuple[float, float, float]:
    """Cubic Hermite interpolation of the slope, with its integral and derivative."""
    value, g0, b0 = left
    g1, b1 = right
    b0, b1 = b0 * width, b1 * width
    c2, c3 = 3.0 * (g1 - g0) - 2.0 * b0 - b1, 2.0 * (g0 - g1) + b0 + b1
    slope = g0 + t * (b0 + t * (c2 + t * c3))
    bend = (b0 + t * (2.0 * c2 + 3.0 * t * c3)) / width
    area = width * t * (g0 + t * (b0 / 2.0 + t * (c2 / 3.0 + t * c3 / 4.0)))
    return value + area, slope, bend


def _restored(weight: WeightFunction, rate: float, link: Any, name: str) -> AbstractCompositeLoss:
    return _loss_class(weight, rate, link, name)()


def _loss_class(
    weight: WeightFunction, rate: float, given: str | LinkFunction, name: str
) -> type[AbstractWeightLoss]:
    if not read_number(rate, "loss_from_weight: rate") > 0.0:
        raise ParameterError(f"loss_from_weight: rate must be above 0, got {rate}")
    link = find_link(given)
    grid = _grid(link)
    q, rest, slope = check_link(link, float(grid.nodes[0]), float(grid.nodes[-1]), grid.nodes)
    weights = _weights_at(weight, q)
    density = weights * slope
    ends = _tail(weight, at_one=False), _tail(weight, at_one=True)
    grid, density = grid.scaled(1.0 / rate), density * rate
    # The same functions with the same tables are the same loss: so a pickled copy is equal.
    digest = hashlib.sha256(density.tobytes()).hexdigest()
    key = (weight, given, float(rate), name, digest)
    if key not in _made:
        positive = tabulated(grid, -rest * density, ends[1], vanishes_above=True)
        negative = tabulated(grid, q * density, ends[0], vanishes_above=False)
        recipe, partials = (weight, float(rate), given, name), (positive, negative)
        least = _least_claimed(grid, partials, _least_of(weight, weights))
        _made[key] = _class_of(recipe, link, partials, is_convex(grid, *partials), least)
    return _made[key]


def _class_of(
    recipe: tuple[Any, ...], at: Link, partials: tuple[Any, Any], convex: bool, least: float | None
) -> type[AbstractWeightLoss]:
    weight, rate, _, name = recipe
    positive, negative = partials

    def curvature(v: float) -> float:
        """Second derivative of the conditional risk at the model's own probability."""
        _, a, bend_a = positive(v)
        _, b, bend_b = negative(v)
        return (b * bend_a - a * bend_b) / (b - a)

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
        "positive": staticmethod(positive),
        "negative": staticmethod(negative),
        "recipe": recipe,
        "link": link,
        "inverse_link": inverse_link,
        "weight_function": weight_function,
        "expected_curvature": property(lambda _: curvature),
        "proven": () if least is None else ("proper", "differentiable"),
        "link_rate": rate if at.name == "logit" and least is not None else None,
        "least_weights": property(lambda _: (least, None)),
        "exact_curvature": convex,
    }
    made = make_dataclass(
        "WeightLoss", [], bases=(AbstractWeightLoss,), namespace=traits, frozen=True, slots=True
    )
    made.__module__ = "__main__"  # it belongs to this process, not to gbmrank
    return made


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


def _least_claimed(grid: Grid, partials: tuple[Any, Any], least: float) -> float | None:
    """Return an infimum of the weight of the tabulated loss; None where w is too rough for it."""
    inner = grid.nodes[:-1] + np.outer([0.3, 0.7], np.diff(grid.nodes))
    at = np.sort(np.concatenate([grid.nodes, inner.ravel()]))
    (a, bend_a), (b, bend_b) = (np.array([f(v)[1:] for v in at.tolist()]).T for f in partials)
    across = b * bend_a - a * bend_b
    if not (np.all(b > a) and np.all(across > 0.0) and np.all(np.diff(b / (b - a)) >= -1e-10)):
        return None
    below = max(1.0 - float(((b - a) ** 3 / across).min()) / max(least, 1e-300), 0.0)
    if least > 0.0 and below >= 0.05:
        return None
    return least * (1.0 - 2.0 * below - 1e-5)  # the least value may lie between two probes


def _least_of(weight: WeightFunction, inside: FloatArray) -> float:
    """Return the infimum of w: the least value of the table, or 0 if it falls beyond its ends."""
    deep = np.exp2(-np.arange(float(_DEPTH), _DEEPEST + 1.0))
    with np.errstate(all="ignore"):
        beyond = np.concatenate([_called(weight, deep), _called(weight, 1.0 - deep)])
    least = float(inside.min())
    return least if beyond.min() >= least else 0.0


def _tail(weight: WeightFunction, *, at_one: bool) -> float:
    """Return the integral of c w(c) below 2^-26, or of (1 - c) w(c) above 1 - 2^-26.

    w is taken at powers of two, where 1 - c is exact, and as a power of c between them.
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
    base, item = ("(1 - c)", "useful") if at_one else ("c", "useless")
    order = 2.0 - fall
    grows = f"grows there like {base}^-{order:.3g}" if order > 1.99 else "grows there too fast"
    return (
        f"loss_from_weight: the integral of {base} w(c) diverges near c = {at_one:d}, so {item} "
        f"items would have an infinite loss; w {grows}, and must grow clearly more slowly than "
        f"{base}^-2"
    )
