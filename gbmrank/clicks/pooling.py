"""Pooled labels: what all sessions of a query say about an item, as one label."""

import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from gbmrank.boosters.supported import booster_named
from gbmrank.clicks.estimation import Impressions, cells_of, codes, estimate_bias, read_impressions
from gbmrank.clicks.relevance import cross_fitted, relevance_plan
from gbmrank.data.bootstrap import pools, sums_by
from gbmrank.data.columns import read_ids, read_whole
from gbmrank.data.position_bias import PositionBias, axes, follows_click
from gbmrank.data.schema import renamed
from gbmrank.data.tables import read_table, take_rows
from gbmrank.errors import DataError, GbmrankWarning, ParameterError, warn
from gbmrank.types import ArrayLike, BoolArray, FloatArray, IntArray

_FOLDS = 5
_LEVEL = 0.995  # of the test for a bias
_STRENGTHS = (0.05, 500.0)  # of the prior
_LEAST_RATIO = 0.05  # of the prior to the trend
_CAUTION = 4.0  # mean exposures
_ERRORS = 2.0  # standard errors of the gain in likelihood over queries
_CLIP = 0.2  # of single impressions, where labels cannot be pooled
_REPEATED, _COMPLETE = 0.5, 0.9  # shares of impressions
_CLICKS = 100


class Sessions(NamedTuple):
    """A validated log, with numbers from 0 for sessions, and whether rows are below a click."""

    log: Impressions
    session: IntArray
    pair: IntArray
    after: BoolArray


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledLabels:
    """One row per query and item, with a label that all its impressions decide.

    Made by :func:`pooled_labels`, with arrays of shape (n_items,). Where labels cannot be pooled,
    ``fallback`` says why, and there is one row per impression, with the session as its query and
    the click over its propensity as its label.
    """

    row: IntArray
    """A row of the log that shows the item."""
    qid: npt.NDArray[Any]
    """Its query."""
    label: FloatArray
    """The estimated relevance."""
    error: FloatArray
    """Standard deviation of the relevance around its label, if exposure is right."""
    exposure: FloatArray
    """Sum of the propensities of its impressions."""
    clicks: FloatArray
    """Number of clicks."""
    prior: FloatArray
    """Relevance without its own clicks: the trend of the logged position times the features."""
    weight: FloatArray
    """Number of sessions of its query."""
    strength: float
    """Exposure at which own clicks count as much as the prior."""
    bias: PositionBias
    """Examination by position."""
    fallback: str = ""
    """Why labels were not pooled; empty if they were."""
    features: Any = field(default=None, repr=False)
    """Features of the rows, for :meth:`fit`."""

    def __len__(self) -> int:
        return len(self.row)

    def __str__(self) -> str:
        if self.fallback:
            return f"labels of {len(self)} impressions, not pooled: {self.fallback}\n{self.bias}"
        return (
            f"pooled labels of {len(self)} items of {len(np.unique(self.qid))} queries, from "
            f"{self.clicks.sum():.0f} clicks\nlabels from {self.label.min():.3f} to "
            f"{self.label.max():.3f}, mean error {self.error.mean():.3f}; own clicks count as much "
            f"as the features at exposure {self.strength:.3g} (median: "
            f"{np.median(self.exposure):.3g})\n{self.bias}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain numbers and strings, suitable for JSON."""
        names = ("row", "qid", "label", "error", "exposure", "clicks", "prior", "weight")
        columns = {name: getattr(self, name).tolist() for name in names}
        rest = {"strength": self.strength, "fallback": self.fallback}
        return {**columns, **rest, "bias": self.bias.to_dict()}

    def plot(self, ax: Any = None) -> Any:
        """Plot labels against clicks over exposure on axes, or in a new figure; size: exposure."""
        ax = axes(ax)
        size = 60.0 * np.sqrt(self.exposure / self.exposure.max())
        own = self.clicks / self.exposure
        ax.scatter(own, self.label, s=size, alpha=0.4, color="#1d3c53", linewidths=0)
        ax.axline((0.0, 0.0), slope=1.0, color="#c98a5b", label="own clicks alone")
        ax.set(xlabel="clicks / exposure", ylabel="label", xlim=(-0.02, np.quantile(own, 0.99)))
        ax.legend(frameon=False)
        return ax

    def fit(self, ranker: Any, **given: Any) -> Any:
        """Train a ranker on these rows, with one weight per query; ``given`` goes to its ``fit``.

        Its loss must be linear in the labels, such as ``pairwise(target=identity)``. An item is one
        row, so leaves of 20 rows are large enough.
        """
        if self.features is None:
            raise ParameterError("there are no features; give X= to pooled_labels")
        return ranker.fit(
            self.features, self.label, qid=self.qid, sample_weight=self.weight, **given
        )


def pooled_labels(
    clicks: ArrayLike,
    position: ArrayLike,
    *,
    qid: ArrayLike,
    item: ArrayLike,
    session: ArrayLike,
    X: Any = None,  # noqa: N803
    bias: PositionBias | None = None,
    backend: str = "lightgbm",
    seed: int = 0,
) -> PooledLabels:
    r"""Estimate the relevance of each item from all its impressions and from its features.

    Clicks over propensities are unbiased labels of impressions, and noisy: most of them are 0. The
    label of an item pools its clicks C, relative to its exposure :math:`\Theta`, with a prior m:

    .. math::
        u = \frac{\kappa m + C}{\kappa + \Theta}, \qquad \Theta = \sum \theta_k\, g^h.

    - Examination is :math:`\theta_k = k^{-b}`, by ``estimate_bias(method="power")``, and lower by a
      factor g if an earlier item of the session was clicked (h = 1) and clicks show that.
      :math:`\theta = 1` unless they clearly reject it.
    - m is a power of the mean logged position, which has what the logging ranker knew (constant if
      clicks over exposure do not fall with it), times a boosted function of the features that is
      fitted to four fifths of the queries and applied to the others. The function is 1 without
      ``X``, and where it does not clearly predict the clicks of these other queries.
    - :math:`\kappa` maximises the likelihood of all clicks if relevance varies around m by a gamma
      distribution and clicks are Poisson: the better the features predict, the larger it is.

    With the true exposure :math:`\Theta^*` and relevance :math:`\rho`,

    .. math::
        u - \rho = \frac{\kappa (m - \rho) + (C - \rho \Theta^*) + \rho (\Theta^* - \Theta)}
        {\kappa + \Theta},

    and :math:`C - \rho \Theta^*` has mean 0, also where examination depends on earlier clicks. So
    labels are consistent as exposure grows where exposure is right, whatever m is; for exposure
    that is not random, the mean squared error is at most
    :math:`[\kappa^2 (m - \rho)^2 + \rho \Theta] / (\kappa + \Theta)^2`. They are not doubly robust:
    a wrong exposure stays.

    Labels are not pooled where that was worse than labels of impressions: if items are rarely seen
    again, if none changes its position, if sessions show only some of the items of a query, or
    with fewer than 100 clicks. Then there is one row per impression, with a warning that says why.

    Parameters
    ----------
    clicks : array-like of shape (n_rows,)
        0 or 1, one row per item shown.
    position : array-like of shape (n_rows,)
        Position at which it was shown, from 1.
    qid : array-like of shape (n_rows,)
        The query of each row, the same for all sessions of a query.
    item : array-like of shape (n_rows,)
        Id of the item, within its query.
    session : array-like of shape (n_rows,)
        The session of each row, that is one list that was shown.
    X : table of shape (n_rows, n_features), optional
        Features of the rows; an item has those of its first row.
    bias : PositionBias, optional
        Examination, if it is known.
    backend : {"lightgbm", "xgboost"}, default="lightgbm"
        Booster of the prior.
    seed : int, default=0
        Seed of folds and booster.

    Returns
    -------
    PooledLabels
        The rows; its ``fit`` trains a ranker on them.

    Raises
    ------
    DataError
        For a log without clicks, missing ids, a session with two queries, or one that shows two
        items at a position.

    Warns
    -----
    GbmrankWarning
        If labels are not pooled, or if all propensities are 1 because clicks do not reject it.

    Examples
    --------
    >>> from gbmrank.clicks import simulate_clicks
    >>> labels, qid = np.tile([4, 2, 1, 0], 50), np.repeat(np.arange(50), 4)
    >>> log = simulate_clicks(labels, np.zeros(200), qid, sessions=20_000, noise=0)
    >>> made = pooled_labels(
    ...     log.clicks, log.position, qid=log.query, item=log.row, session=log.session
    ... )
    >>> made.label[:4].round(1)
    array([0.9, 0.2, 0.1, 0. ])
    """
    seed = read_whole(seed, "seed", 0)
    if bias is not None and not isinstance(bias, PositionBias):
        raise ParameterError(
            f"bias must be a gbmrank.clicks.PositionBias, or None to estimate it; got {bias!r}"
        )
    seen = read_sessions(clicks, position, qid, item, session)
    table = None if X is None else read_table(X, reads=booster_named(backend).reads)
    if table is not None and table.shape[0] != len(seen.pair):
        raise DataError(f"X has {table.shape[0]} rows, clicks has {len(seen.pair)}")
    reason = why_not(seen, bias)
    if reason:
        warn(f"labels are not pooled: {reason}", GbmrankWarning)
        return _by_impression(seen, bias, reason, (session, table))
    if bias is None:
        bias = examination(seen, session=seen.session, method="power")
    log, (_, first) = seen.log, np.unique(seen.pair, return_index=True)
    exposure = sums_by(seen.pair, bias.theta(log.position + 1, seen.after))
    counted = sums_by(seen.pair, log.clicks)
    place = sums_by(seen.pair, np.asarray(log.position + 1.0, np.float64))
    prior = _trend(np.log(place / np.bincount(seen.pair)), counted, exposure)
    n_queries = int(log.query.max()) + 1
    if table is not None and n_queries > 1:
        fold = pools(n_queries, np.random.default_rng(seed)) % _FOLDS
        plan = relevance_plan(backend, seed, rounds=40, max_depth=2)
        usual = _CAUTION * exposure.mean()  # labels with less exposure tend to the trend
        columns = counted + usual * prior, (exposure + usual) * prior
        found = cross_fitted(
            plan, take_rows(renamed(table), first), fold[log.query[first]], columns
        )
        ratio = np.maximum(found, _LEAST_RATIO)
        gain = counted * np.log(ratio) - exposure * prior * (ratio - 1.0)
        gains = sums_by(log.query[first], gain)
        if gains.sum() > _ERRORS * np.sqrt((gains**2).sum()):
            prior = prior * ratio  # the features predict clicks of queries they were not fitted to
    strength = _strength(counted, exposure, prior)
    total = strength * prior + counted
    return PooledLabels(
        row=first,
        qid=read_ids(qid)[first],
        label=total / (strength + exposure),
        error=np.sqrt(total) / (strength + exposure),
        exposure=exposure,
        clicks=counted,
        prior=prior,
        weight=_per_query(seen)[log.query[first]],
        strength=strength,
        bias=bias,
        features=None if table is None else take_rows(table, first),
    )


def read_sessions(
    clicks: ArrayLike, position: ArrayLike, qid: ArrayLike, item: ArrayLike, session: ArrayLike
) -> Sessions:
    """Validate the columns of a log."""
    for name, column in {"qid": qid, "item": item, "session": session}.items():
        if column is None:
            raise DataError(f"{name}= is missing; give one id per row of the log")
    log = read_impressions(clicks, position, None, qid, (item, None))
    number = codes(session, len(log.clicks), "session")
    names = read_ids(session, "session")
    query = np.zeros(number.max() + 1, np.int64)
    query[number] = log.query
    mixed = np.flatnonzero(query[number] != log.query)
    if len(mixed):
        raise DataError(
            f"session {names[mixed[0]]!s} has rows of two queries. A session is one list that was "
            "shown, so give each list a session of its own"
        )
    place = number * log.n_positions + log.position
    order = np.argsort(place, kind="stable")
    twice = order[1:][np.diff(place[order]) == 0]
    if len(twice):
        raise DataError(
            f"session {names[twice[0]]!s} has two rows at position {log.position[twice[0]] + 1} "
            f"({len(twice)} such rows). Each list needs a session of its own, with one item per "
            "position"
        )
    assert log.pair is not None  # noqa: S101
    _, pair = np.unique(log.pair, return_inverse=True)
    return Sessions(log, number, pair, follows_click(log.clicks, log.position, number))


def examination(seen: Sessions, **options: Any) -> PositionBias:
    """Estimate the bias of a log; ``options`` are those of :func:`estimate_bias`."""
    log, given = seen.log, {"level": _LEVEL, "resamples": 0, **options}
    return estimate_bias(log.clicks, log.position + 1, qid=log.query, item=seen.pair, **given)


def why_not(seen: Sessions, bias: PositionBias | None = None) -> str:
    """Return why labels of this log should not be pooled; empty if they should."""
    clicks = seen.log.clicks.sum()
    if clicks < _CLICKS:
        return f"there are {clicks:.0f} clicks, fewer than {_CLICKS}"
    again = repeated(seen)
    if again < _REPEATED:
        return f"only {again:.0%} of the impressions show an item of a query that is seen again"
    if bias is None and not moved(seen):
        return "no item was shown at two positions, so examination is not identified"
    shown = complete(seen)
    if shown < _COMPLETE:
        return (
            f"a session shows {shown:.0%} of the items that are shown for its query, and the "
            "ranking decides which ones"
        )
    return ""


def repeated(seen: Sessions) -> float:
    """Return the share of impressions whose item was shown in another session of the query."""
    return float((np.bincount(seen.pair)[seen.pair] > 1).mean())


def moved(seen: Sessions) -> int:
    """Return how many items were shown at several positions."""
    return int((np.bincount(cells_of(seen.log).pair) > 1).sum())


def complete(seen: Sessions) -> float:
    """Return which share of the items that are shown for a query a session shows."""
    _, first = np.unique(seen.pair, return_index=True)
    items = np.bincount(seen.log.query[first])
    return float(len(seen.pair) / (items * _per_query(seen)).sum())


def _per_query(seen: Sessions) -> FloatArray:
    """Return the number of sessions of each query."""
    _, first = np.unique(seen.session, return_index=True)
    return np.bincount(seen.log.query[first]).astype(np.float64)


def _trend(place: FloatArray, clicks: FloatArray, exposure: FloatArray) -> FloatArray:
    """Return clicks over exposure as a falling power of the position, by Poisson regression."""
    x = (place - place.mean()) / max(float(place.std()), 1e-9)
    level, slope = np.log(clicks.sum() / exposure.sum()), 0.0
    for _ in range(50):
        mean = exposure * np.exp(level + slope * x)
        table = np.array([[mean.sum(), mean @ x], [mean @ x, mean @ x**2 + 1.0]])
        step = np.linalg.solve(table, [(clicks - mean).sum(), (clicks - mean) @ x - slope])
        level, slope = np.array([level, slope]) + np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-9:
            break
    if slope >= 0.0:
        return np.full(len(x), clicks.sum() / exposure.sum())
    return np.exp(level + slope * x)


def _strength(clicks: FloatArray, exposure: FloatArray, prior: FloatArray) -> float:
    """Return the strength of the prior, by the marginal likelihood of the clicks."""
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln

    def loss(log: float) -> float:
        k = np.exp(log)
        shape = k * prior
        likelihood = gammaln(shape + clicks) - gammaln(shape) - shape * np.log1p(exposure / k)
        return float((clicks * np.log(k + exposure) - likelihood).sum())

    ends = tuple(np.log(_STRENGTHS))
    return float(np.exp(minimize_scalar(loss, bounds=ends, options={"xatol": 0.01}).x))


def _by_impression(
    seen: Sessions, bias: PositionBias | None, reason: str, rest: tuple[Any, Any]
) -> PooledLabels:
    """Return clicks over propensities, which are all 1 if no item identifies them."""
    log, (session, features) = seen.log, rest
    at = log.position + 1
    if bias is None:
        with warnings.catch_warnings(action="ignore", category=GbmrankWarning):
            try:
                bias = examination(seen)
            except DataError:  # no clicked item at two positions
                bias = PositionBias(np.ones(log.n_positions), method="none")
    theta = np.maximum(bias.theta(at, seen.after), _CLIP)
    label = bias.utilities(log.clicks, at, clip=_CLIP, session=seen.session)
    ones = np.ones(len(at))
    return PooledLabels(
        row=np.arange(len(at)),
        qid=read_ids(session),
        label=label,
        error=np.sqrt(log.clicks) / theta,
        exposure=theta,
        clicks=log.clicks,
        prior=ones * label.mean(),
        weight=ones,
        strength=0.0,
        bias=bias,
        fallback=reason,
        features=features,
    )
