r"""Calibration functions of short lists, by optimisation: the least loss of a metric regret.

.. math:: \delta(\varepsilon) = \inf \{L_P(s) - L^*_P : R^*_P - R_P(s) \ge \varepsilon\}

over all distributions P of labels and all scores s. For scores sorted like an order o the loss
is at least ``g_o(P) = inf {L_P(s): s sorted like o}``, and the infimum without that condition is
``h(P)``. Both are infima of functions that are linear in P, hence concave.

*The certificate.* Losses and metrics depend on P through a few expectations; their range is a
polytope, which is split into simplices. On a simplex g is at least its interpolation from the
corners, and h at most ``L_P(t)`` for any scores t, here the minimisers at the corners and in the
middle. The difference is linear, so its least value where the regret is at least epsilon is found
at corners and edges. Simplices with the lowest bounds are halved until the bound is close to the
smallest value found, in stages of increasing accuracy, or until there are too many. ``g`` at a
corner is a convex problem: its value is lowered by what the slope allows within score differences
of up to 30.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from gbmrank.data.columns import read_number, read_table, read_whole
from gbmrank.data.queries import RankingData
from gbmrank.errors import DataError, LimitError, NumericError, ParameterError
from gbmrank.metrics import AbstractMetric
from gbmrank.objectives import AbstractBound, AbstractObjective
from gbmrank.registry.composition import as_metric, as_objective, text_of
from gbmrank.theory.distributions import (
    Distribution,
    all_orders,
    nature_of,
    repeated,
    repeated_graphs,
)
from gbmrank.theory.minimise import FAR
from gbmrank.theory.noise import is_low_noise
from gbmrank.theory.user_code import isolated
from gbmrank.theory.verdicts.verdict import Reinforcement
from gbmrank.types import ArrayLike, FloatArray, IntArray

_BATCHES = (16, 64, 256)  # rows of scores that are evaluated together
_BATCH = _BATCHES[-1]
_STEPS = 60
_MOST_ITEMS = 4
_MOST_DIMENSIONS = 4  # beyond, simplices are too many
_SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
_ROUNDS = 25
_TIGHT = (0.3, 0.05, 5e-4)  # relative gap between found and certified values, in stages
_ROUGH = 1e-4  # accuracy of minimisers in the middle of simplices, where any scores are valid


@final
@dataclass(frozen=True, slots=True, eq=False)
class CalibrationFunction:
    """Values of a calibration function; made by :func:`calibration_function`."""

    eps: FloatArray  #: metric regrets, ascending
    #: certified: no distribution and scores with at least that metric regret have less surrogate
    #: regret. Zeros if nothing is certified
    lower: FloatArray
    upper: FloatArray  #: the least surrogate regret that was found
    largest: float  #: the largest possible metric regret
    #: whether ``lower`` is certified; otherwise only ``upper`` is known, an estimate from above
    certified: bool
    cells: int  #: simplices that the certificate needed
    #: distributions at which ``upper`` was found
    worst: tuple[Distribution, ...] = field(repr=False)

    def __call__(self, eps: float) -> float:
        """Return the certified surrogate regret of a metric regret of at least ``eps``.

        It is the value at the next smaller computed regret, 0 below the first.
        """
        given = read_number(eps, "eps", 0.0)
        place = int(np.searchsorted(self.eps, given * (1.0 + 1e-12), side="right"))
        return float(self.lower[place - 1]) if place else 0.0

    def __str__(self) -> str:
        how = f"certified with {self.cells:,} simplices" if self.certified else "estimates"
        rows = [
            f"  {e:<10.4g}  {f'{low:.4g}' if self.certified else '-':<10}  {high:.4g}"
            for e, low, high in zip(self.eps, self.lower, self.upper, strict=True)
        ]
        head = f"  {'regret':<10}  {'at least':<10}  found"
        return "\n".join([f"surrogate regret of a metric regret, {how}:", head, *rows])

    def regret_bound(self, excess: float, *, estimate: bool = False) -> float:
        """Return the largest metric regret that a surrogate regret allows.

        It inverts the convex lower hull, so it holds for means over queries of this length.

        Parameters
        ----------
        excess : float
            Surrogate regret, in the objective's own units.
        estimate : bool, default=False
            Use the values found instead of the certified ones.
        """
        given = read_number(excess, "excess", 0.0)
        if not (self.certified or estimate):
            raise ParameterError(
                "these values are estimates and give no bound; estimate=True uses them anyway"
            )
        values = self.upper if estimate else self.lower
        known = np.isfinite(values)
        x = np.append(self.eps[known], self.largest)
        y = np.maximum.accumulate(np.append(0.0, values[known]))
        hull = _lower_hull(np.append(0.0, x), np.append(0.0, y))
        if given >= hull[-1, 1]:
            return self.largest
        return float(np.interp(given, hull[:, 1], hull[:, 0]))

    def constants(self, *, estimate: bool = False) -> FloatArray:
        """Return ``eps / sqrt(delta(eps))``: the c of a bound ``c sqrt(excess)``, per value.

        NaN where all orders are equally good.
        """
        values = self.upper if estimate else self.lower
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.eps / np.sqrt(values), np.float64)


@isolated
def calibration_function(  # noqa: PLR0913  (a question, and three options of the answer)
    objective: Any,
    metric: Any,
    items: int = 2,
    *,
    grades: ArrayLike = (0, 1),
    graphs: ArrayLike | None = None,
    eps: ArrayLike | None = None,
    cells: int = 20_000,
    restrict: str | None = None,
    report: Callable[[str], None] | None = None,
) -> CalibrationFunction:
    r"""Compute the least surrogate regret of a given metric regret, on short lists.

    It gives a regret bound for losses without a published constant, shows if a bound is not
    tight, and is zero if a loss is not calibrated.

    Parameters
    ----------
    objective : object or text
        An objective with a convex, differentiable loss.
    metric : object or text
        The metric; 0 for labels where it is undefined.
    items : int, default=2
        Length of the list, 2 to 4.
    grades : array-like, default=(0, 1)
        Labels; distributions are over all label vectors of these.
    graphs : array-like of shape (m, items, items), optional
        Instead of labels: distributions over these m graphs, for ``comparison`` and ``linear``
        without normalisation (``H_m`` of Duchi et al.).
    eps : array-like, optional
        Metric regrets; by default seven, up to the largest possible one.
    cells : int, default=20000
        Maximum number of simplices; more give larger certified values and take longer.
    restrict : {"low_noise", "reinforcing"}, optional
        Only distributions whose mean graph has low noise, or that have the reinforcement property,
        by random search: estimates, infinite where none was found with such a regret.
    report : callable, optional
        Called with lines of progress; ``print``, for example.

    Notes
    -----
    Two items take seconds and are certified to three digits, three items take up to half a minute.
    Four items take up to a minute: for regrets of at least two fifths of the largest one, certified
    values are within a few percent of those found; for smaller regrets they are lower, or 0, unless
    there are more ``cells``. Comparisons depend on more than 4 expectations from three items on, so
    their values are estimates, which take longer the more label vectors there are.

    References
    ----------
    Calauzenes, Usunier and Gallinari, Machine Learning 93, 2013, Thm 4.2 and Cor. 4.5. Duchi,
    Mackey and Jordan, "On the consistency of ranking algorithms", ICML 2010, Lemma 3.

    Examples
    --------
    >>> squared = calibration_function("pointwise(loss=squared, target=dcg)", "dcg@1", eps=[0.1])
    >>> bool(squared.certified), float(squared.constants().round(2)[0])
    (True, 1.41)
    """
    template, measure = as_objective(objective), as_metric(metric)
    nature = nature_of(template)
    if not (nature.smooth and nature.convex):
        raise ParameterError(
            f"{text_of(template)} has a kink or is not known to be convex; calibration functions "
            "are computed for convex losses that are differentiable"
        )
    outcomes = _outcomes(items, grades, graphs)
    problem = _Problem(template, measure, outcomes)
    wanted = _read_eps(eps, problem.largest)
    most = read_whole(cells, "cells", 1)
    if problem.largest == 0.0:
        return CalibrationFunction(wanted, wanted, wanted, 0.0, True, 0, ())
    say = report or (lambda _: None)
    allowed = _read_restriction(restrict, outcomes)
    certified = problem.points.shape[1] <= _MOST_DIMENSIONS and allowed is None
    if certified:  # other outcomes are mixtures of these
        outcomes = outcomes[_vertices(problem.points)]
        problem = _Problem(template, measure, outcomes)
    cones = problem.cones if allowed is None else all_orders(problem.n)
    parts = [_solved(_Corners(problem, order, allowed), wanted, most, say) for order in cones]
    lower, upper, found, used = zip(*parts, strict=True)
    best = np.argmin(upper, axis=0)
    worst = tuple(Distribution(outcomes, found[b][e]) for e, b in enumerate(best.tolist()))
    ends = np.min(lower, axis=0), np.min(upper, axis=0)
    return CalibrationFunction(wanted, *ends, problem.largest, certified, sum(used), worst)


def _outcomes(items: int, grades: ArrayLike, graphs: ArrayLike | None) -> FloatArray:
    if graphs is None:
        n = read_whole(items, "items", 2)
    else:
        table = read_table(graphs, "graphs")
        if table.ndim != 3 or table.shape[1] != table.shape[2] or not len(table):
            raise DataError(f"graphs have shape (m, n, n), got {table.shape}")
        n = table.shape[1]
    if n > _MOST_ITEMS:
        raise LimitError(
            f"calibration functions are computed for 2 to {_MOST_ITEMS} items, not {n}"
        )
    if graphs is not None:
        return table
    levels = np.unique(read_table(grades, "grades")).tolist()
    if len(levels) ** n > 1000:
        raise LimitError(
            f"{len(levels)} grades and {n} items make {len(levels) ** n:,} label vectors; at most "
            "1,000 are supported: give fewer grades"
        )
    return np.array(list(itertools.product(levels, repeat=n)))


def _read_restriction(
    name: str | None, outcomes: FloatArray
) -> Callable[[FloatArray], bool] | None:
    if name is None:
        return None
    if name == "low_noise":
        return lambda p: bool(is_low_noise(Distribution(outcomes, p).mean_graph()))
    if name == "reinforcing":
        return lambda p: Reinforcement().holds(Distribution(outcomes, p))
    raise ParameterError(f"restrict must be low_noise or reinforcing, got {name!r}")


def _read_eps(eps: ArrayLike | None, largest: float) -> FloatArray:
    if eps is None:
        return np.array(_SHARES) * largest
    given = np.unique(read_table(eps, "eps"))
    if not len(given) or not np.all((given > 0) & (given <= max(largest, 0.0) * (1 + 1e-12))):
        raise ParameterError(
            f"eps must be metric regrets above 0 and up to the largest one, {largest:g}; got "
            f"{given.tolist()}"
        )
    return given


class _Problem:
    """A loss and a metric on a finite set of outcomes.

    Attributes
    ----------
    values : array of shape (m, n!)
        The metric of every outcome and order, to be maximised.
    points : array of shape (m, k)
        Coordinates of outcomes: losses and metric are affine in their mean.
    cones : array of shape (c, n)
        Orders that scores may have; one if items are exchangeable.
    """

    def __init__(
        self, template: AbstractObjective, measure: AbstractMetric, outcomes: FloatArray
    ) -> None:
        self.outcomes, self.n = outcomes, outcomes.shape[1]
        self.shift = template.shift_invariant
        self._bounds = {times: _bound(template, outcomes, times) for times in _BATCHES}
        orders = all_orders(self.n)
        given = Distribution(outcomes, np.ones(len(outcomes)))
        ranks = np.argsort(orders, axis=1).astype(np.float64)
        values = np.nan_to_num(given.order_values(measure, -ranks), nan=0.0)
        self.values = values if measure.higher_is_better else -values
        self.largest = float(np.ptp(self.values, axis=1).max())
        self.points = self._coordinates()
        self.cones = orders[:1] if self._exchangeable() else orders

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the losses of rows of scores, shape (rows, m)."""
        return self._each(scores, lambda bound, flat: bound.losses(flat))[..., 0]

    def slopes(self, scores: FloatArray) -> FloatArray:
        """Return the gradients of rows of scores, shape (rows, m, n)."""
        return self._each(scores, lambda bound, flat: bound.gradients(flat)[0])

    def _each(
        self, scores: FloatArray, function: Callable[[AbstractBound, FloatArray], FloatArray]
    ) -> FloatArray:
        """Evaluate rows of scores with every outcome, in batches; shape (rows, m, values)."""
        m, count, parts = len(self.outcomes), len(scores), []
        size = next((one for one in _BATCHES if count <= one), _BATCHES[-1])
        for at in range(0, count, size):
            block = np.zeros((size, self.n))
            block[: count - at] = scores[at : at + size]
            flat = np.ascontiguousarray(np.tile(block.ravel(), m))
            found = function(self._bounds[size], flat).reshape(m, size, -1)
            parts.append(found.transpose(1, 0, 2)[: count - at])
        return np.concatenate(parts)

    def regrets(self, order: IntArray) -> FloatArray:
        """Return the gain of every other order over this one, shape (m, orders)."""
        own = self.values[:, np.flatnonzero((all_orders(self.n) == order).all(axis=1))[0]]
        gained = np.unique(np.round(self.values - own[:, None], 13), axis=1)
        return gained[:, np.abs(gained).max(axis=0) > 0.0]

    def _coordinates(self) -> FloatArray:
        drawn = np.random.default_rng(0).normal(scale=1.5, size=(8 * self.n * self.n, self.n))
        losses = self.losses(np.concatenate([np.zeros((1, self.n)), drawn])).T
        parts = [losses[:, 1:] - losses[:, :1], self.values - self.values.mean(1, keepdims=True)]
        scaled = [part / max(float(np.abs(part).max()), 1e-300) for part in parts]
        table = np.concatenate(scaled, axis=1)
        left, size, _ = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)
        kept = size > 1e-10 * max(float(size[0]), 1e-300)
        return np.asarray(left[:, kept] * size[kept], np.float64)

    def _exchangeable(self) -> bool:
        """Whether swapping two neighbours in labels and scores changes nothing."""
        if self.outcomes.ndim == 3:
            return False
        rows = {tuple(row): at for at, row in enumerate(self.outcomes.tolist())}
        scores = np.random.default_rng(1).normal(size=(1, self.n))
        losses = self.losses(scores)[0]
        for i in range(self.n - 1):
            swap = np.arange(self.n)
            swap[[i, i + 1]] = i + 1, i
            to = [rows.get(tuple(row), 0) for row in self.outcomes[:, swap].tolist()]
            if not np.allclose(self.losses(scores[:, swap])[0][to], losses, rtol=1e-9):
                return False
        return True


def _bound(template: AbstractObjective, outcomes: FloatArray, times: int) -> AbstractBound:
    if outcomes.ndim == 3:
        if "preferences" not in type(template).__dataclass_fields__:
            raise ParameterError(
                f"{template.name} is not defined on preference graphs; comparison and linear are"
            )
        graphs = repeated_graphs(outcomes, times)
        held: Any = replace(template, preferences=graphs, normalize="none")  # type: ignore[call-arg]
        return held.bind(RankingData(np.zeros(graphs.n_rows), graphs.groups))
    return template.bind(repeated(outcomes, times))


def _least(
    problem: _Problem, mu: FloatArray, order: IntArray, held: bool, accuracy: float = 1e-8
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Minimise the risk of each row of probabilities by damped, projected Newton steps.

    Over scores that are held to an order, or over all. Returns scores, values, and how much lower
    the infimum may be within the box.
    """
    way = _cone(order, problem.shift)
    d = way.shape[1]
    low = np.zeros(d) if held else np.full(d, -FAR)
    low[0] = -FAR if not problem.shift else low[0]
    x, damping = np.zeros((len(mu), d)), np.full(len(mu), 1e-9)

    def risk(at: FloatArray, p: FloatArray) -> FloatArray:
        return np.asarray((p * problem.losses(at @ way.T)).sum(axis=1))

    def slope(at: FloatArray, p: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("bm,bmn->bn", p, problem.slopes(at @ way.T)) @ way)

    value, grad = risk(x, mu), slope(x, mu)
    for _ in range(_STEPS):
        gap = np.maximum(grad * (x - low), grad * (x - FAR)).sum(axis=1)
        todo = np.flatnonzero(gap > accuracy * (1.0 + np.abs(value)))
        todo = todo[damping[todo] < 1e12]
        if not len(todo):
            break
        step = _newton(slope, x[todo], grad[todo], mu[todo], (low, damping[todo]))
        tried = np.clip(x[todo] + step, low, FAR)
        new = risk(tried, mu[todo])
        fall = np.einsum("bd,bd->b", grad[todo], tried - x[todo])
        tiny = 1e-15 * (1.0 + np.abs(value[todo]))
        good = np.isfinite(new) & (fall <= 0) & (new <= value[todo] + 1e-4 * fall + tiny)
        took = todo[good]
        if len(took):
            x[took], value[took], grad[took] = tried[good], new[good], slope(tried[good], mu[took])
        damping[took] = np.maximum(damping[took] * 0.2, 1e-12)
        damping[todo[~good]] = np.maximum(damping[todo[~good]] * 10.0, 1e-4)
    gap = np.maximum(grad * (x - low), grad * (x - FAR)).sum(axis=1)
    return x @ way.T, value, gap


def _newton(
    slope: Callable[[FloatArray, FloatArray], FloatArray],
    x: FloatArray,
    grad: FloatArray,
    mu: FloatArray,
    limits: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Return a step of each row; coordinates that move to a nearby bound step separately."""
    (low, damping), d = limits, x.shape[1]
    width, hessian = 1e-5, np.empty((len(x), d, d))
    for i in range(d):
        ahead = x.copy()
        ahead[:, i] += width
        hessian[:, i] = (slope(ahead, mu) - grad) / width
    hessian = 0.5 * (hessian + hessian.transpose(0, 2, 1))
    moved = np.abs(x - np.clip(x - grad, low, FAR)).max(axis=1, keepdims=True)
    near = np.minimum(moved, 0.1)
    held = ((x - low <= near) & (grad > 0)) | ((FAR - x <= near) & (grad < 0))
    apart = (held[:, :, None] | held[:, None, :]) & ~np.eye(d, dtype=bool)
    hessian[apart] = 0.0
    scale = np.abs(hessian).max(axis=(1, 2))
    scale = np.maximum(scale, 1e-3 * np.abs(grad).max(axis=1) + 1e-12)  # a loss may be linear
    hessian[:, np.arange(d), np.arange(d)] += (damping * scale)[:, None]
    values, vectors = np.linalg.eigh(hessian)
    values = np.maximum(values, 1e-12 * scale[:, None])
    along = np.einsum("bij,bi->bj", vectors, -grad)
    step = np.einsum("bij,bj->bi", vectors, along / values)
    step = np.clip(step, low - x, FAR - x)
    longest = np.abs(step).max(axis=1, keepdims=True)
    return np.asarray(step * np.minimum(1.0, 5.0 / np.maximum(longest, 1e-300)), np.float64)


def _cone(order: IntArray, shift: bool) -> FloatArray:
    """Return M: scores M x are sorted like an order when all but a level are not negative."""
    way = (np.argsort(order)[:, None] < np.arange(len(order))).astype(np.float64)
    way[:, 0] = 1.0
    return way[:, 1:] if shift else way


class _Corners:
    """Distributions at which the two infima are known, for one order of scores."""

    def __init__(
        self, problem: _Problem, order: IntArray, allowed: Callable[[FloatArray], bool] | None
    ) -> None:
        m = len(problem.outcomes)
        self.problem, self.order, self.allowed = problem, order, allowed
        self.gains = problem.regrets(order)
        self.mu, self.at = np.empty((0, m)), np.empty((0, problem.points.shape[1]))
        self.least, self.found, self.free = np.empty(0), np.empty(0), np.empty(0)
        self.losses = np.empty((0, m))
        self.regret = np.empty((0, self.gains.shape[1]))

    def add(self, mu: FloatArray) -> IntArray:
        """Add distributions, shape (v, m), and return their numbers."""
        first = len(self.mu)
        if self.allowed is not None:
            mu = mu[[self.allowed(p) for p in mu]]
        if not len(mu):
            return np.arange(first, first)
        _, held, gap = _least(self.problem, mu, self.order, True)
        scores, free, most = _least(self.problem, mu, self.order, False)
        self.mu = np.concatenate([self.mu, mu])
        self.at = np.concatenate([self.at, mu @ self.problem.points])
        self.least = np.concatenate([self.least, held - gap])
        self.found = np.concatenate([self.found, held])
        self.free = np.concatenate([self.free, free - most])
        self.losses = np.concatenate([self.losses, self.problem.losses(scores)])
        self.regret = np.concatenate([self.regret, mu @ self.gains])
        return np.arange(first, len(self.mu))

    def upper(self, eps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the least surrogate regret found for each regret, and the distributions.

        Infinite where no distribution was found with such a regret.
        """
        if not len(self.mu):
            return np.full(len(eps), np.inf), np.tile(np.eye(self.mu.shape[1])[0], (len(eps), 1))
        cost = np.maximum(self.found - self.free, 0.0)
        worst = self.regret.max(axis=1)
        costs = np.where(worst >= eps[:, None] * (1 - 1e-9), cost, np.inf)
        best = costs.argmin(axis=1)
        return costs[np.arange(len(eps)), best], self.mu[best]

    def bounds(self, cells: IntArray, eps: FloatArray, most: FloatArray) -> FloatArray:
        """Return a lower bound for each simplex and regret, infinite if no regret is that large.

        Scores in the middle of a simplex improve it; they are skipped if it already exceeds
        ``most``.
        """
        mu, least = self.mu[cells], self.least[cells]
        lines = least[:, None, :] - np.einsum("cim,cjm->cji", mu, self.losses[cells])
        found = np.stack([_least_on(lines, self.regret[cells], e) for e in eps], axis=1)
        low = np.flatnonzero((found < most).any(axis=1))
        if len(low):
            scores = _least(self.problem, mu[low].mean(axis=1), self.order, False, _ROUGH)[0]
            losses = self.problem.losses(scores)
            line = (least[low] - np.einsum("cim,cm->ci", mu[low], losses))[:, None]
            made = [_least_on(line, self.regret[cells[low]], e) for e in eps]
            found[low] = np.maximum(found[low], np.stack(made, axis=1))
        return found

    def crossings(self, cells: IntArray, eps: float) -> FloatArray:
        """Return the distributions on edges of simplices where the regret is just eps."""
        found = []
        for cell in cells:
            for i, j in itertools.combinations(cell.tolist(), 2):
                top = self.regret[[i, j]].max(axis=1)
                if (top[0] >= eps) == (top[1] >= eps):
                    continue
                high, low = (i, j) if top[0] >= eps else (j, i)
                found.append(_crossing(self, self.mu[high], self.mu[low], eps))
        return np.array(found).reshape(-1, self.mu.shape[1])


def _least_on(lines: FloatArray, regret: FloatArray, eps: float) -> FloatArray:
    """Return the largest of the least values of lines where a regret is at least eps.

    Lines have shape (cells, lines, corners) and regrets (cells, corners, orders).
    """
    inside = regret >= eps * (1 - 1e-9)
    least = np.where(inside[:, None], lines[..., None], np.inf).min(axis=2)  # cell, line, order
    for i, j in itertools.permutations(range(regret.shape[1]), 2):
        cells, orders = np.nonzero(inside[:, i] & ~inside[:, j])
        high, low = regret[cells, i, orders], regret[cells, j, orders]
        share = ((eps - low) / (high - low))[:, None]
        edge = share * lines[cells, :, i] + (1 - share) * lines[cells, :, j]
        least[cells, :, orders] = np.minimum(least[cells, :, orders], edge)
    return np.asarray(np.maximum(least.min(axis=2).max(axis=1), 0.0), np.float64)


def _crossing(corners: _Corners, high: FloatArray, low: FloatArray, eps: float) -> FloatArray:
    """Go from a distribution of large regret towards another until the regret is eps."""
    a, b = high @ corners.gains, low @ corners.gains
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(a >= eps, (a - eps) / (a - b), -np.inf)
    share = float(np.clip(np.nanmax(np.where(a > b, shares, -np.inf)), 0.0, 1.0))
    return np.asarray(high + share * (low - high), np.float64)


def _solved(
    corners: _Corners, eps: FloatArray, most: int, report: Callable[[str], None]
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Return lower and upper values, the worst distributions and the simplices of one order."""
    problem = corners.problem
    if problem.points.shape[1] > _MOST_DIMENSIONS or corners.allowed is not None:
        return (np.zeros(len(eps)), *_searched(corners, eps, report), 0)
    cells = corners.add(np.eye(len(problem.points)))[_simplices(problem.points)]
    bounds = corners.bounds(cells, eps, np.full(len(eps), np.inf))
    halves: dict[tuple[int, int], int] = {}
    turns = list(itertools.product(_TIGHT, reversed(range(len(eps)))))
    for turn, (tight, e) in enumerate(turns):  # smaller regrets need smaller simplices
        while len(cells) < most * (turn + 1) // len(turns):
            wanted = corners.upper(eps)[0] * (1 - tight) - 1e-11
            ranked = np.argsort(bounds[:, e], kind="stable")[:_BATCH]
            chosen = ranked[bounds[ranked, e] < wanted[e]]
            if not len(chosen):
                break
            across = corners.crossings(cells[ranked[:8]], eps[e])
            if len(across):
                corners.add(across)
            new = _halved(corners, cells[chosen], halves)
            parents = np.concatenate([bounds[chosen], bounds[chosen]])
            made = np.maximum(corners.bounds(new, eps, wanted), parents)
            cells = np.concatenate([np.delete(cells, chosen, axis=0), new])
            bounds = np.concatenate([np.delete(bounds, chosen, axis=0), made])
            report(
                f"regret {eps[e]:.3g}: at least {bounds[:, e].min():.4g}, found "
                f"{corners.upper(eps)[0][e]:.4g}; {len(cells):,} of {most:,} simplices"
            )
    upper, worst = corners.upper(eps)
    lower = np.maximum.accumulate(bounds.min(axis=0))
    return np.minimum(lower, upper), upper, worst, len(cells)


def _halved(corners: _Corners, cells: IntArray, halves: dict[tuple[int, int], int]) -> IntArray:
    """Cut simplices in two at the middle of their longest edge."""
    at = corners.at[cells]
    lengths = np.linalg.norm(at[:, :, None] - at[:, None, :], axis=3)
    longest = lengths.reshape(len(cells), -1).argmax(axis=1)
    ends = np.stack(np.divmod(longest, cells.shape[1]), axis=1)
    edges = [tuple(sorted(cell[end].tolist())) for cell, end in zip(cells, ends, strict=True)]
    new = list({edge for edge in edges if edge not in halves})
    if new:
        middle = np.array([0.5 * (corners.mu[i] + corners.mu[j]) for i, j in new])
        halves.update(zip(new, corners.add(middle).tolist(), strict=True))
    made = np.concatenate([cells, cells])
    rows = np.arange(len(cells))
    numbers = np.array([halves[edge] for edge in edges])
    made[rows, ends[:, 0]] = numbers
    made[rows + len(cells), ends[:, 1]] = numbers
    return made


def _vertices(points: FloatArray) -> IntArray:
    """Return the numbers of the points that are corners of their convex hull."""
    if points.shape[1] == 1:
        return np.array([int(points.argmin()), int(points.argmax())])
    from scipy.spatial import ConvexHull

    return np.sort(ConvexHull(points).vertices).astype(np.int64)


def _simplices(points: FloatArray) -> IntArray:
    """Cut the convex hull of points into simplices with corners among them."""
    kept = _vertices(points)
    if points.shape[1] == 1:
        return kept[None]
    from scipy.spatial import ConvexHull, Delaunay

    cells = kept[Delaunay(points[kept]).simplices]
    edges = points[cells[:, 1:]] - points[cells[:, :1]]
    volume = np.abs(np.linalg.det(edges)).sum() / np.prod(np.arange(1, points.shape[1] + 1))
    whole = ConvexHull(points).volume
    if abs(volume - whole) > 1e-9 * whole:
        raise NumericError(
            f"the simplices cover a volume of {volume:.9g} and not {whole:.9g}; the outcomes "
            "are too close to a plane"
        )
    return np.asarray(cells, np.int64)


def _searched(
    corners: _Corners, eps: FloatArray, report: Callable[[str], None]
) -> tuple[FloatArray, FloatArray]:
    """Search at random: mix the best distributions with others until the regret is eps."""
    rng, m = np.random.default_rng(0), len(corners.problem.outcomes)
    corners.add(np.concatenate([np.eye(m), rng.dirichlet(np.full(m, 0.3), size=4 * _BATCH)]))
    for turn in range(_ROUNDS):
        least, best = corners.upper(eps)
        report(f"round {turn + 1} of {_ROUNDS}: regret {eps[0]:.3g} found for {least[0]:.4g}")
        tried = []
        for e, mu in zip(eps, best, strict=True):
            for _ in range(_BATCH // len(eps) + 1):
                other = rng.dirichlet(np.full(m, rng.choice([0.05, 0.3])))
                made = mu + rng.random() ** 4 * (other - mu)
                if (made @ corners.gains).max() >= e:
                    tried.append(_crossing(corners, made, rng.dirichlet(np.ones(m)), float(e)))
                    tried.append(made)
        if tried:
            corners.add(np.array(tried))
    return corners.upper(eps)


def _lower_hull(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the corners of the largest convex function below points with ascending x."""
    hull: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(hull) > 1:
            (x_0, y_0), (x_1, y_1) = hull[-2:]
            if (y_1 - y_0) * (point[0] - x_0) < (x_1 - x_0) * (point[1] - y_0):
                break
            hull.pop()  # on or above the line of its neighbours
        hull.append(point)
    return np.array(hull)
