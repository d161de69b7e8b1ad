"""Estimation of the position bias from click logs."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.boosters.plan import Plan
from gbmrank.clicks.relevance import cross_fitted, relevance_plan
from gbmrank.data.bootstrap import Draws, bootstrap_means, pools, sums_by, tails
from gbmrank.data.columns import read_ids
from gbmrank.data.position_bias import PositionBias, follows_click, read_clicks, read_positions
from gbmrank.data.tables import read_matrix
from gbmrank.errors import DataError, GbmrankWarning, GroupError, ParameterError, warn
from gbmrank.types import ArrayLike, BoolArray, FloatArray, IntArray

_METHODS = ("harvesting", "power", "randomised", "em")
_LAST_POSITION = 10_000  # larger numbers are probably ids
_UNSURE = 0.15  # standard error of a power that is too large to use it
_UNSEEN_CLICKS = 0.5  # assumed for a position without clicks
_FEW_QUERIES = 10  # fewer are not resampled
_FAR = 14.0  # ends of intervals of logarithms
_RIDGE = 1e-6  # on the logarithms, for separable clicks in harvesting
_FOLDS = 2
_PARTS = 10  # jackknife parts of the queries, for the intervals of EM
_CLOSE = 0.002  # relative change of the propensities at which EM ends
_SMALLEST_RELEVANCE = 1e-3
_CASCADE = -2.5  # z value below which clicks are fewer after a click


@final
@dataclass(frozen=True, slots=True, eq=False)
class Impressions:
    """Impressions, with numbers from 0 for positions, queries and query-item pairs."""

    clicks: FloatArray
    shown: FloatArray
    position: IntArray
    query: IntArray
    pair: IntArray | None
    features: Any
    n_positions: int

    def by_position(self, values: FloatArray) -> FloatArray:
        """Return sums by position."""
        return sums_by(self.position, values, self.n_positions)

    def only(self, rows: BoolArray) -> "Impressions":
        """Return some of the impressions."""
        names = ("clicks", "shown", "position", "query", "pair", "features")
        columns = {name: getattr(self, name) for name in names}
        known = {name: one[rows] for name, one in columns.items() if one is not None}
        return replace(self, **known)


class Cells(NamedTuple):
    """Impressions aggregated by query-item pair and position."""

    pair: IntArray  # from 0, without gaps
    position: IntArray
    clicks: FloatArray
    shown: FloatArray
    first: IntArray  # one row of the log of each pair


class _Estimate(NamedTuple):
    """Logarithms of propensities up to a constant, NaN where they are not identified.

    ``covariance`` is that of the known ones but the first, relative to the first, if clicks are
    independent. ``around`` has replicates, shape (draws, positions), or is None.
    """

    logs: FloatArray
    covariance: FloatArray
    around: FloatArray | None = None


def estimate_bias(
    clicks: ArrayLike,
    position: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    X: Any = None,  # noqa: N803
    method: str = "harvesting",
    item: ArrayLike | None = None,
    impressions: ArrayLike | None = None,
    session: ArrayLike | None = None,
    backend: str = "lightgbm",
    level: float = 0.95,
    resamples: int = 1000,
    pretest: bool = True,
    seed: int = 0,
    **booster_params: Any,
) -> PositionBias:
    r"""Estimate how often each position is examined.

    - ``"randomised"``: click rates by position, of lists in random order. It has the least
      variance, but users must be shown random lists.
    - ``"harvesting"``: query-item pairs that were shown at several positions, as happens when
      rankings change. Within a pair the relevance cancels: of its clicks, position k gets a
      share in proportion to :math:`\theta_k n_k` with :math:`n_k` impressions there. Maximises
      the conditional likelihood of these shares over all pairs.
    - ``"power"``: the same with :math:`\theta_k = k^{-b}`, one number, which needs fewer clicks.
      It counts as unknown if its standard error is above 0.15.
    - ``"em"``: expectation maximisation with a boosted model of relevance, cross-fitted over two
      halves of the queries. Needs features that explain the relevance as well as the logged
      ranking did, but no pair at two positions.

    Click rates by position of an ordinary log do not measure examination: good items are at the
    top. Propensities are identified up to a factor, so position 1 gets 1 (or the position that is
    examined most, if that is another one).

    Correcting with a noisy estimate is worse than not correcting if there is no bias. So all
    propensities are 1, with a warning, unless the clicks reject that all positions are examined
    equally: by a Wald test of the logarithms, or of their trend in the logarithm of the position,
    at the level of the intervals for both tests together. Intervals are those of the estimate in
    any case. The tests ignore the error of the relevance that ``"em"`` has learned, so with
    ``"em"`` they find a bias too often: prefer the other methods if there may be none.

    Parameters
    ----------
    clicks : array-like of shape (n_rows,)
        0 or 1, one row per item shown; with ``impressions`` the number of clicks.
    position : array-like of shape (n_rows,)
        Position at which it was shown, from 1.
    qid : array-like of shape (n_rows,), optional
        The query of each row, the same for all sessions of a query. Intervals treat queries as
        independent, or rows if it is not given.
    X : table of shape (n_rows, n_features), optional
        Features, for ``"em"``. Without ``item``, rows of a query with equal features are one item.
    method : {"harvesting", "power", "randomised", "em"}, default="harvesting"
        Method of estimation, see above.
    item : array-like of shape (n_rows,), optional
        Id of the item, within its query. Needed for harvesting, unless ``X`` is given.
    impressions : array-like of shape (n_rows,), optional
        How often the item was shown at that position, for aggregated rows.
    session : array-like of shape (n_rows,), optional
        The session of each row, one list that was shown. If there are clearly fewer clicks below a
        click of the session than elsewhere at these positions (2.5 standard errors), examination
        there is lower by the factor ``after_click``.
    backend : {"lightgbm", "xgboost"}, default="lightgbm"
        Booster of ``"em"``.
    level : float, default=0.95
        Level of the intervals: the bootstrap over queries, for ``"em"`` the jackknife over ten
        parts of the queries. With fewer than ten queries clicks are taken for independent, with a
        warning.
    resamples : int, default=1000
        Number of bootstrap draws; 0 gives no intervals, which is ten times faster for ``"em"``.
    pretest : bool, default=True
        Return propensities of 1 if the test does not reject them; False returns the estimate.
    seed : int, default=0
        Seed of bootstrap, folds and booster.
    **booster_params : object
        Parameters of the booster of ``"em"``, such as ``num_leaves``.

    Returns
    -------
    PositionBias
        Propensities with intervals.

    Raises
    ------
    DataError
        When nothing can be estimated: no clicks, or no pair at two positions.

    Warns
    -----
    GbmrankWarning
        For positions whose propensity is not identified: never shown, never clicked, or without
        pairs that connect them to the others; and if ``pretest`` sets all propensities to 1.

    References
    ----------
    Agarwal et al., "Estimating position bias without intrusive interventions", WSDM 2019
    (harvesting). Wang et al., "Position bias estimation for unbiased learning to rank in
    personal search", WSDM 2018 (regression EM).

    Examples
    --------
    >>> import numpy as np
    >>> from gbmrank.clicks import simulate_clicks
    >>> labels, scores = np.tile([4, 2, 1, 0], 50), np.zeros(200)
    >>> log = simulate_clicks(labels, scores, np.repeat(np.arange(50), 4), sessions=20_000)
    >>> bias = estimate_bias(log.clicks, log.position, qid=log.query, item=log.row)
    >>> bias.propensity.round(1)
    array([1. , 0.5, 0.3, 0.2])
    """
    if method not in _METHODS:
        raise ParameterError(f"method must be one of {', '.join(_METHODS)}; got {method!r}")
    log = read_impressions(clicks, position, impressions, qid, (item, X))
    draws = wanted = Draws.read(level, resamples, seed, fewest=0)
    if len(np.unique(log.query)) < _FEW_QUERIES:
        draws = draws._replace(resamples=0)
        if qid is not None and wanted.resamples:
            warn(
                f"qid has fewer than {_FEW_QUERIES} queries, too few to resample. The intervals "
                "take all clicks for independent, and are too narrow if they are not",
                GbmrankWarning,
            )
    factor = 1.0
    if session is not None:
        if impressions is not None:
            raise ParameterError(
                "session= needs one row per impression; leave out impressions= or session="
            )
        after = follows_click(log.clicks, log.position, codes(session, len(log.clicks), "session"))
        factor = after_click_test(log, after)[0]
        log = replace(log, shown=np.where(after, factor, 1.0))
    if method == "em":
        plan = relevance_plan(backend, seed, **booster_params)
        return _finished(log, (_em(log, draws, plan), factor), wanted, method, pretest)
    if booster_params:
        raise ParameterError(f"method={method!r} takes no {', '.join(booster_params)}")
    estimate = {"randomised": _randomised, "harvesting": _harvesting, "power": _power}[method]
    return _finished(log, (estimate(log, draws), factor), wanted, method, pretest)


def read_impressions(
    clicks: ArrayLike,
    position: ArrayLike,
    impressions: ArrayLike | None,
    qid: ArrayLike | None,
    shown: tuple[ArrayLike | None, Any],
) -> Impressions:
    """Validate the columns; ``shown`` are ids of items and features."""
    rate, (item, features) = read_clicks(clicks, impressions), shown
    count = len(rate)
    at = read_positions(position, count) - 1
    if not rate.any():
        raise DataError(f"there is no click in {count} rows, so nothing can be estimated")
    if at.max() >= _LAST_POSITION:
        raise DataError(
            f"position {at.max() + 1} is beyond {_LAST_POSITION}; positions are ranks of a list"
        )
    times = np.ones(count) if impressions is None else np.asarray(impressions, np.float64)
    query = np.arange(count) if qid is None else codes(qid, count, "qid")
    table = None if features is None else read_matrix(features)
    if table is not None and len(table) != count:
        raise DataError(f"X has {len(table)} rows, clicks has {count}")
    ids = pair = None
    if item is not None:
        ids = codes(item, count, "item")
    elif table is not None:  # rows with equal features are one item
        whole = np.ascontiguousarray(table + 0.0)  # 0.0 and -0.0 are equal
        cells = whole.view(f"V{whole.itemsize * whole.shape[1]}").ravel()
        ids = np.unique(cells, return_inverse=True)[1]
    if ids is not None:
        within = np.zeros(count, np.int64) if qid is None else query
        _, pair = np.unique(within * (ids.max() + 1) + ids, return_inverse=True)
    return Impressions(rate * times, times, at, query, pair, table, int(at.max()) + 1)


def after_click_test(log: Impressions, after: BoolArray) -> tuple[float, float]:
    """Return the factor of examination below a click of the session, and the z value behind it."""
    found, before = float(log.clicks[after].sum()), np.where(after, 0.0, 1.0)

    def expected(rows: FloatArray) -> float:
        rate = log.by_position(log.clicks * rows) / np.maximum(log.by_position(rows), 1.0)
        return max(float(rate[log.position[after]].sum()), 1e-9)

    usual = expected(np.ones(len(after)))
    z = (found - usual) / np.sqrt(usual)
    return min(1.0, (found + 5.0) / (expected(before) + 5.0)) if z < _CASCADE else 1.0, z


def codes(ids: ArrayLike, count: int, what: str) -> IntArray:
    """Return whole numbers from 0 for ids."""
    column = read_ids(ids, what)
    if len(column) != count:
        raise GroupError(f"{what} has {len(column)} entries, but there are {count} rows")
    return np.unique(column, return_inverse=True)[1]


def cells_of(log: Impressions) -> Cells:
    """Aggregate the impressions of each pair at each position."""
    if log.pair is None:
        raise DataError("give item=, an id of what was shown, or X=, its features")
    _, first, pair = np.unique(log.pair, return_index=True, return_inverse=True)
    keys, at = np.unique(pair * log.n_positions + log.position, return_inverse=True)
    pair, position = np.divmod(keys, log.n_positions)
    return Cells(pair, position, sums_by(at, log.clicks), sums_by(at, log.shown), first)


def _some_clicks(clicks: FloatArray) -> FloatArray:
    """Replace zero clicks at a position by half a click, since a propensity is not 0."""
    return np.where(clicks == 0.0, _UNSEEN_CLICKS, clicks)


def _click_rates(log: Impressions) -> _Estimate:
    """Return click rates by position, NaN where nothing was shown."""
    clicks, shown = log.by_position(log.clicks), log.by_position(log.shown)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(shown > 0, np.log(_some_clicks(clicks) / shown), np.nan)
    return _Estimate(logs, count_covariance(clicks, shown))


def _by_pool(pool: IntArray, position: IntArray, values: FloatArray, width: int) -> FloatArray:
    """Return sums by pool and position."""
    sums = sums_by(pool * width + position, values, int(pool.max() + 1) * width)
    return sums.reshape(-1, width)


def _randomised(log: Impressions, draws: Draws) -> _Estimate:
    """Return click rates, with replicates."""
    found = _click_rates(log)
    if not draws.resamples:
        return found
    pool = pools(int(log.query.max()) + 1, draws.rng)[log.query]
    columns = (log.clicks, log.shown)
    sums = [_by_pool(pool, log.position, each, log.n_positions) for each in columns]
    made = bootstrap_means(np.hstack(sums).T, draws.resamples, draws.rng)
    drawn, times = np.hsplit(made, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        around = np.log(_some_clicks(drawn * len(sums[0])) / (times * len(sums[0])))
    return found._replace(around=np.where(times > 0, around, np.nan))


def _harvesting(log: Impressions, draws: Draws) -> _Estimate:
    """Maximise the conditional likelihood in the logarithms, by Newton's method.

    Positions are those of the largest set that pairs connect to each other. Replicates are one
    step from the estimate, of drawn scores.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    cells = _informative(cells_of(log))
    total = sums_by(cells.pair, cells.clicks)
    shown = csr_matrix((cells.shown, (cells.pair, cells.position)), (len(total), log.n_positions))
    met = shown.T @ shown
    seen = met.diagonal() > 0
    _, part = connected_components(met, directed=False)
    known = np.flatnonzero((part == np.bincount(part, seen).argmax()) & seen)
    clicks = sums_by(cells.position, cells.clicks, log.n_positions)[known]
    found = np.zeros(len(known))
    for _ in range(100):
        shares = shown[:, known].multiply(np.exp(found)).tocsr()
        shares = shares.multiply(1.0 / np.maximum(shares.sum(axis=1), 1e-300)).tocsr()
        slope = _some_clicks(clicks) - shares.T @ total - _RIDGE * found
        curvature = np.diag(shares.T @ total + _RIDGE) - (shares.T.multiply(total) @ shares)
        curvature = np.asarray(curvature)[1:, 1:]
        step = np.linalg.solve(curvature, slope[1:])
        found[1:] += np.clip(step, -2.0, 2.0)
        if np.abs(step).max(initial=0.0) < 1e-9:
            break
    logs = np.full(log.n_positions, np.nan)
    logs[known] = found
    covariance = np.linalg.inv(curvature)
    if not draws.resamples:
        return _Estimate(logs, covariance)
    pool = pools(int(log.query.max()) + 1, draws.rng)[log.query[cells.first]]
    expected = shares.multiply(total[:, None]).tocoo()
    scores = _by_pool(pool[cells.pair], cells.position, cells.clicks, log.n_positions)[:, known]
    scores -= _by_pool(pool[expected.row], expected.col, expected.data, len(known))
    drawn = bootstrap_means(scores.T, draws.resamples, draws.rng) * len(scores)
    around = np.tile(logs, (draws.resamples, 1))
    around[:, known[1:]] += np.linalg.solve(curvature, drawn[:, 1:].T).T
    return _Estimate(logs, covariance, around)


def _power(log: Impressions, draws: Draws) -> _Estimate:
    """Maximise the conditional likelihood in the power of the position."""
    cells = _informative(cells_of(log))
    x, total = np.log1p(cells.position), sums_by(cells.pair, cells.clicks)[cells.pair]
    power = 0.0
    for _ in range(100):
        weight = cells.shown * np.exp(-power * x)
        share = weight / sums_by(cells.pair, weight)[cells.pair]
        slope = (total * share - cells.clicks) * x
        mean = sums_by(cells.pair, share * x)[cells.pair]
        curvature = float((total * share * (x - mean) ** 2).sum()) + _RIDGE
        step = float(np.clip(slope.sum() / curvature, -0.5, 0.5))
        power += step
        if abs(step) < 1e-9:
            break
    places = np.log(np.arange(1.0, log.n_positions + 1.0))
    covariance = np.outer(places[1:], places[1:]) / curvature
    if not draws.resamples:
        return _Estimate(-power * places, covariance)
    pool = pools(int(log.query.max()) + 1, draws.rng)[log.query[cells.first]][cells.pair]
    sums = sums_by(pool, slope)
    drawn = power + bootstrap_means(sums[None], draws.resamples, draws.rng) * len(sums) / curvature
    return _Estimate(-power * places, covariance, -drawn * places)


def _informative(cells: Cells) -> Cells:
    """Keep pairs that were clicked and shown at several positions; others have no information."""
    several = np.bincount(cells.pair) > 1
    if not several.any():
        raise DataError(
            "no query-item pair was shown at two positions, so harvesting has nothing to compare. "
            "Give the query as qid=, not the session; or use method='em' with features"
        )
    kept = several & (sums_by(cells.pair, cells.clicks) > 0)
    if not kept.any():
        raise DataError(
            f"none of the {several.sum()} query-item pairs that were shown at several positions "
            "was ever clicked; use a longer log, or method='em' with features"
        )
    rows, number = kept[cells.pair], np.cumsum(kept) - 1
    return Cells(
        number[cells.pair[rows]],
        cells.position[rows],
        cells.clicks[rows],
        cells.shown[rows],
        cells.first[kept],
    )


def _em(log: Impressions, draws: Draws, plan: Plan) -> _Estimate:
    """Return the fixed point of EM, and those of the jackknife over queries."""
    if log.features is None:
        raise DataError("method='em' needs X=, features that explain the relevance of an item")
    if len(np.unique(log.query)) < _FOLDS:
        raise DataError(
            f"method='em' learns the relevance of a query from others, so it needs {_FOLDS} "
            "queries; the log has one. Give qid=, or use method='harvesting' with item="
        )
    start = _click_rates(log)
    fold = pools(int(log.query.max()) + 1, draws.rng) % _FOLDS
    logs = _fixed_point(_Step.of(log, plan, fold), start.logs, cycles=4)
    if not draws.resamples:
        return start._replace(logs=logs)
    part = pools(len(fold), draws.rng)[log.query] % _PARTS
    kept = (_Step.of(log.only(part != left_out), plan, fold) for left_out in np.unique(part))
    around = np.array([_fixed_point(step, logs, cycles=1) for step in kept])
    return start._replace(logs=logs, around=around)


def _fixed_point(step: "_Step", logs: FloatArray, cycles: int) -> FloatArray:
    """Iterate a step to its fixed point, extrapolating from two steps."""
    for _ in range(cycles):
        once = step(logs)
        twice = step(once)
        change = once - logs
        bend = twice - once - change
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = np.sqrt(np.nansum(change**2) / np.nansum(bend**2))
        ahead = float(np.clip(np.nan_to_num(ahead, nan=1.0), 1.0, 4.0))
        logs = logs + 2.0 * ahead * change + ahead**2 * bend
        if np.nanmax(np.abs(twice - once)) < _CLOSE:
            break
    return logs


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    r"""One update of the propensities, through a model of relevance.

    With :math:`P(c=1) = \theta_k g`, EM replaces a click that was not made by its expected
    relevance, which differs from g by :math:`w (c - \theta_k g)`, :math:`w = 1 / (1 - \theta_k g)`.
    Its fixed points are therefore those of

    .. math::
        E[w (c - \theta_k g) \mid \text{item}] = 0, \qquad
        E[w (c - \theta_k g) \mid \text{position}] = 0.

    EM converges slowly where positions are seldom examined. Here each condition is solved
    directly: the first by a booster, with squared error on clicks over the sum of the propensities
    of an item, weighted by that sum (w = 1, which changes the variance but not the mean); the
    second by iteration.
    """

    cells: Cells
    features: FloatArray
    fold: IntArray
    plan: Plan

    @classmethod
    def of(cls, log: Impressions, plan: Plan, fold: IntArray) -> "_Step":
        """Return the step of a log, given the fold of each query."""
        cells = cells_of(log)
        return cls(cells, log.features[cells.first], fold[log.query[cells.first]], plan)

    def __call__(self, logs: FloatArray) -> FloatArray:
        """Return the logarithms of the updated propensities; the largest is 0."""
        cells, theta = self.cells, np.exp(logs - np.nanmax(logs))
        weight = sums_by(cells.pair, theta[cells.position] * cells.shown)
        columns = sums_by(cells.pair, cells.clicks), weight
        made = cross_fitted(self.plan, self.features, self.fold, columns)
        g = np.clip(made, _SMALLEST_RELEVANCE, 1.0 - _SMALLEST_RELEVANCE)[cells.pair]
        for _ in range(10):
            w = 1.0 / (1.0 - theta[cells.position] * g)
            clicks = sums_by(cells.position, w * cells.clicks, len(theta))
            times = sums_by(cells.position, w * g * cells.shown, len(theta))
            with np.errstate(divide="ignore", invalid="ignore"):
                theta = np.minimum(_some_clicks(clicks) / times, 1.0)
        return np.log(np.where(times > 0, theta / np.nanmax(theta), np.nan))


def count_covariance(clicks: FloatArray, shown: FloatArray) -> FloatArray:
    """Return the covariance of logarithms of click rates, relative to the first position shown.

    For the positions that were shown, except the first; shape (n_shown - 1, n_shown - 1).

    >>> count_covariance(np.array([25.0, 5.0, 0.0]), np.array([100.0, 100.0, 0.0])).round(2)
    array([[0.22]])
    """
    some = _some_clicks(clicks)[shown > 0]
    variance = np.maximum(1.0 / some - 1.0 / shown[shown > 0], 0.0)
    return np.diag(variance[1:]) + variance[0]


def differs_from_none(logs: FloatArray, covariance: FloatArray, level: float) -> bool:
    """Whether clicks reject that all positions are examined equally; NaN is unknown.

    Two Wald tests, each at half of the level: of all differences to the first known position, and
    of their slope in the logarithm of the position, which has more power if propensities decay.

    >>> differs_from_none(np.log([1.0, 0.5]), np.array([[0.01]]), 0.95)
    True
    >>> differs_from_none(np.log([1.0, 0.9]), np.array([[0.01]]), 0.95)
    False
    """
    from scipy.special import chdtrc

    known = np.flatnonzero(np.isfinite(logs))
    if len(known) < 2:
        return False
    change = logs[known[1:]] - logs[known[0]]
    place = np.log((known[1:] + 1.0) / (known[0] + 1.0))
    least = _RIDGE * np.eye(len(change))
    whitened, slope = np.linalg.solve(covariance + least, np.array([change, place]).T).T
    trend = float(place @ whitened) ** 2 / float(place @ slope)
    chances = chdtrc(len(change), float(change @ whitened)), chdtrc(1, trend)
    return bool(min(chances) < (1.0 - level) / 2.0)


def _finished(
    log: Impressions, estimate: tuple[_Estimate, float], draws: Draws, method: str, pretest: bool
) -> PositionBias:
    """Scale the propensities, add intervals, and warn about unidentified positions."""
    found, factor = estimate
    known, level = np.isfinite(found.logs), draws.level
    silent = known & (log.by_position(log.clicks) == 0.0) & (method != "power")
    first = int(np.flatnonzero(known & ~silent)[0])
    logs = found.logs - found.logs[first]
    scale = np.exp(-np.nanmax(logs))
    _warn(log, known, silent)
    places = np.log(np.arange(1.0, len(logs) + 1.0))
    theta = np.minimum(np.exp(np.interp(places, places[known], logs[known])) * scale, 1.0)
    given = theta
    reason = "" if differs_from_none(logs, found.covariance, level) else "do not reject"
    if not reason and method == "power" and found.covariance[-1, -1] > (_UNSURE * places[-1]) ** 2:
        reason = "are too few to say how far it is from true"
    if pretest and len(logs) > 1 and reason:
        given = np.ones(len(theta))
        warn(
            f"{log.clicks.sum():.0f} clicks {reason} that all positions are examined equally, "
            "so all propensities are 1; pretest=False returns the estimate anyway",
            GbmrankWarning,
        )
    if not draws.resamples:
        return PositionBias(given, after_click=factor, level=level, method=method)
    ends = np.clip(_ends(found, logs, first, level, jackknife=method == "em"), -_FAR, _FAR)
    low, high = scale * np.exp(ends)
    low, high = np.where(known, low, 0.0), np.where(known, high, 1.0)
    # Without a click: fewer clicks than this have at least the chance 1 - level to be none.
    most = theta * -np.log(max(1.0 - level, 1e-9)) / _UNSEEN_CLICKS
    low, high = np.where(silent, 0.0, low), np.where(silent, np.minimum(most, 1.0), high)
    return PositionBias(given, after_click=factor, low=low, high=high, level=level, method=method)


def _ends(
    found: _Estimate, logs: FloatArray, first: int, level: float, jackknife: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals of the logarithms, relative to one position."""
    known = np.isfinite(logs)
    if found.around is None:
        from scipy.special import ndtri

        table = np.pad(found.covariance, (1, 0))
        at = int(known[:first].sum())
        variance = np.full(len(logs), np.nan)
        variance[known] = np.diag(table) + table[at, at] - 2.0 * table[at]
        margin = ndtri((1.0 + level) / 2.0) * np.sqrt(np.maximum(variance, 0.0))
        return logs - margin, logs + margin
    with np.errstate(invalid="ignore"):
        around = found.around - found.around[:, [first]]
    if jackknife:
        from scipy.stats import t

        parts = len(around)
        error = np.sqrt((parts - 1) / parts * ((around - around.mean(axis=0)) ** 2).sum(axis=0))
        margin = t.ppf((1.0 + level) / 2.0, parts - 1) * error
        return logs - margin, logs + margin
    ends = np.full((2, len(logs)), np.nan)
    ends[:, known] = np.nanquantile(around[:, known], tails(level), axis=0, method="inverted_cdf")
    return ends[0], ends[1]


def _warn(log: Impressions, known: BoolArray, silent: BoolArray) -> None:
    """Warn about positions that the log does not identify, and how they were filled in."""
    shown = log.by_position(log.shown) > 0
    cases = {
        "were never shown": ~known & ~shown,
        "share no clicked query-item pair with the others": ~known & shown,
    }
    for what, places in cases.items():
        if places.any():
            warn(
                f"positions {_listed(places)} {what}, so their propensities are not identified; "
                "they are interpolated between their neighbours",
                GbmrankWarning,
            )
    if silent.any():
        warn(
            f"positions {_listed(silent)} were never clicked; their propensities assume half a "
            "click, and only the upper ends of their intervals are meaningful",
            GbmrankWarning,
        )


def _listed(places: BoolArray) -> str:
    """Return positions as text.

    >>> _listed(np.array([False, True, True]))
    '2, 3'
    """
    numbers = np.flatnonzero(places) + 1
    return ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
