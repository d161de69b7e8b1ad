"""Off-policy evaluation: the value of a new ranking, estimated from the log of another."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.api.metrics import metric as read_metric
from gbmrank.boosters.plan import Plan
from gbmrank.boosters.supported import booster_named
from gbmrank.clicks.relevance import cross_fitted, relevance_plan
from gbmrank.data.bootstrap import Draws, bootstrap_means, pools, sums_by, tails
from gbmrank.data.columns import as_floats, read_number
from gbmrank.data.position_bias import PositionBias, follows_click, read_clicks, read_positions
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.schema import renamed
from gbmrank.data.tables import read_table, take_rows
from gbmrank.errors import DataError, GbmrankWarning, MetricError, ParameterError, warn
from gbmrank.metrics import AbstractPositional
from gbmrank.types import ArrayLike, BoolArray, FloatArray, IntArray

_ESTIMATORS = ("ips", "ratio", "clipped", "doubly_robust")
_CLIPPING = ("clipped", "doubly_robust")
_CLICKS = "clicks"
_USUAL_CLIP = 0.1
_FOLDS, _LEARNED = 5, "cross-fitted"
_FEW_CLICKS = 30  # effective ones, below which an interval is not reliable
_UNLIKELY = 3.0  # standard errors


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineValue:
    r"""Estimated value of a ranking per session; made by :func:`offline_value`.

    An effective sample size is :math:`(\sum w)^2 / \sum w^2`: as many rows of equal weight have the
    same information.
    """

    value: float
    """The estimate, also ``float(result)``."""
    low: float
    high: float
    level: float
    """The true value should be between low and high with this probability."""
    metric: str
    estimator: str
    per: str
    """Unit of the value: session, or for a ratio relevant item or row shown."""
    n_sessions: int
    n_clicks: int
    effective_sample_size: float
    """Of the weights of all rows."""
    effective_clicks: float
    """Of clicks, with weights times discounts."""

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return (
            f"{self.metric} per {self.per}: {self.value:.4g} "
            f"({self.level:.0%} interval {self.low:.4g} to {self.high:.4g}), {self.estimator}\n"
            f"{self.n_sessions} sessions with {self.n_clicks} clicks "
            f"({self.effective_clicks:.0f} effective)"
        )


class _Terms(NamedTuple):
    """Per row: terms of the value and of the divisor of a ratio, and weight; in query order."""

    earned: FloatArray
    divisor: FloatArray
    weight: FloatArray
    counted: FloatArray  # weight times discount of a click, for the effective number of clicks


class _Log(NamedTuple):
    """Columns of the log in query order, and the place of each row in the new ranking."""

    groups: Groups
    session: IntArray  # numbers from 0
    clicks: FloatArray
    position: IntArray
    first: IntArray  # best rank of the items that tie with a row, from 0
    tied: IntArray  # their number


def offline_value(
    metric: Any,
    clicks: ArrayLike,
    position: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike,
    *,
    bias: PositionBias | None = None,
    propensity: ArrayLike | None = None,
    policy: ArrayLike | None = None,
    estimator: str = "ips",
    clip: float | None = None,
    relevance: ArrayLike | str | None = None,
    X: Any = None,  # noqa: N803
    backend: str = "lightgbm",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> OfflineValue:
    r"""Estimate the value of a new ranking from logged clicks on another one.

    With the position bias :math:`\theta`, utilities :math:`\hat u = c / \theta_k` and the discount
    d of the new rank, the value of a session is

    - ``"ips"``: :math:`\sum_i \hat u_i d_i`, unbiased;
    - ``"clipped"``: the same with :math:`\max(\theta, t)`, which has less variance and is biased
      downwards;
    - ``"ratio"``: :math:`\sum \hat u d / \sum \hat u` over all sessions, the mean discount per
      relevant item, which is not the metric itself but varies less;
    - ``"doubly_robust"``: :math:`\sum_i d_i [g_i + (c_i - \theta g_i) / \max(\theta, t)]` with a
      model g of relevance that makes up for clipping and reduces variance: with the right
      propensities it is unbiased if g is correct, or if no propensity is below t. It does not
      make up for wrong propensities: if the examination is :math:`\theta^*` instead, the term of
      an item is off by :math:`d_i \rho_i (\theta^* - \theta) / \max(\theta, t)`, however good g.

    If the logging policy recorded the probability of each action instead (``propensity=``), a row
    has the weight :math:`w = \pi / p`: the probability that the new policy shows this item at this
    position, over the logged one. Without ``policy``, :math:`\pi` is 1 if the new rank of a row is
    its position, and 0 otherwise.

    Only items that were shown can be evaluated: the new ranking reorders the rows of a session.

    Parameters
    ----------
    metric : metric or str
        ``"dcg@10"``, ``"precision@5"`` or any other sum of discount times click; ``"clicks"`` is
        the number of clicks (with ``bias``, of clicks on the new ranking, false ones included, if
        the bias has them, but for ``"ratio"``). NDCG and others that
        divide by the clicks of the session are rejected: they have no unbiased estimate.
    clicks : array-like of shape (n_rows,)
        0 or 1, one row per item shown.
    position : array-like of shape (n_rows,)
        Position at which it was shown, from 1.
    scores : array-like of shape (n_rows,) or None
        Scores of the new ranking, larger is first; ties get the mean of their discounts. None
        with ``policy``.
    qid : array-like of shape (n_rows,)
        The session of each row, that is one list that was shown.
    bias : PositionBias, optional
        Examination propensities by position, also below a click of the session (``after_click``)
        in the log. New ranks are valued as if no click came before.
    propensity : array-like of shape (n_rows,), optional
        The logged probability that the item was shown at its position, above 0 and at most 1.
        Give either this or ``bias``.
    policy : array-like of shape (n_rows,), optional
        With ``propensity``: the probability that the new policy shows the item at that position.
    estimator : {"ips", "ratio", "clipped", "doubly_robust"}, default="ips"
        The estimator, see above. With ``propensity``, a ratio is per row that the new policy shows.
    clip : float, optional
        For ``"clipped"`` and ``"doubly_robust"``: t, to which smaller propensities are raised;
        0.1 when not given.
    relevance : array-like of shape (n_rows,) or "cross-fitted", optional
        For ``"doubly_robust"``: the estimated probability of a click on each item once examined,
        from a model that was not trained on these clicks. ``"cross-fitted"`` learns it from the
        features ``X`` and the clicks of other sessions, in five parts.
    X : table of shape (n_rows, n_features), optional
        Features, for ``relevance="cross-fitted"``.
    backend : {"lightgbm", "xgboost"}, default="lightgbm"
        Booster of ``relevance="cross-fitted"``.
    level : float, default=0.95
        Level of the bootstrap interval over sessions. It covers the mean of the estimator: for
        ``"clipped"`` the value after clipping, which is too low, and for ``"ratio"`` the ratio of
        the sums. The true value is covered by ``"ips"``, and by ``"doubly_robust"`` if g is
        correct. Bias, propensities and relevance are treated as exact, learned or not.
    resamples : int, default=2000
        Number of bootstrap draws.
    seed : int, default=0
        Seed of the bootstrap.

    Returns
    -------
    OfflineValue
        The estimate with its interval and effective sample sizes; ``print`` shows them.

    Warns
    -----
    GbmrankWarning
        When the estimate is not reliable: there are fewer than 30 effective clicks, or the new
        policy shows items where the old one never did.

    References
    ----------
    Joachims, Swaminathan and Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM
    2017. Swaminathan and Joachims, "The self-normalized estimator for counterfactual learning",
    NIPS 2015. Oosterhuis, "Doubly robust estimation for correcting position bias in click feedback
    for unbiased learning to rank", TOIS 2023.

    Examples
    --------
    >>> from gbmrank.clicks import simulate_clicks
    >>> labels, qid = [0, 4, 1], [0, 0, 0]
    >>> log = simulate_clicks(labels, [3, 2, 1], qid, sessions=5000, noise=0, seed=1)
    >>> better = np.array(labels)[log.row]
    >>> bias = PositionBias.decaying(3)
    >>> print(offline_value("dcg", log.clicks, log.position, better, log.session, bias=bias))
    dcg per session: 1.045 (95% interval 1.018 to 1.074), ips
    5000 sessions with 2619 clicks (2619 effective)
    >>> 1.0 + (1 / 15) * 0.6309  # the truth
    1.0420...
    """
    if estimator not in _ESTIMATORS:
        raise ParameterError(
            f"estimator must be one of {', '.join(_ESTIMATORS)}; got {estimator!r}"
        )
    if (bias is None) == (propensity is None):
        raise ParameterError(
            "give bias= (a PositionBias) or propensity= (the logged probability of each row)"
        )
    _check_options(estimator, bias is None, clip, relevance, policy)
    if (X is None) == isinstance(relevance, str):
        raise ParameterError(f"X= and relevance={_LEARNED!r} go together; give both, or neither")
    least = 0.0
    if estimator in _CLIPPING:
        least = _USUAL_CLIP if clip is None else read_number(clip, "clip", 0.0, 1.0)
    log = _read(clicks, position, np.zeros(len(clicks)) if scores is None else scores, qid)
    if bias is not None:
        g = relevance if X is None else _cross_fitted(log, bias, X, relevance_plan(backend, seed))
        terms = _by_bias(log, bias, metric, least, g)
        if metric == _CLICKS and bias.false_clicks is not None and estimator != "ratio":
            terms = terms._replace(earned=terms.earned + _at_new_ranks(log, bias.false_clicks))
    else:
        terms = _by_action(log, metric, propensity, policy, least)
    draws = Draws.read(level, resamples, seed, fewest=1)
    unit = "session"
    if estimator == "ratio":
        unit = "row shown" if bias is None else "relevant item"
    return _valued(log, terms, (str(metric), estimator, unit), draws)


def _check_options(
    estimator: str, actions: bool, clip: object, relevance: object, policy: object
) -> None:
    """Raise for options that have no effect, and for missing ones."""
    robust = estimator == "doubly_robust"
    if robust and actions:
        raise ParameterError(
            "estimator='doubly_robust' needs the relevance of the items that the new policy shows, "
            "which a log of actions does not have; use bias=, or another estimator"
        )
    if robust == (relevance is None):
        raise ParameterError(
            "relevance= and estimator='doubly_robust' go together: relevance is the estimated "
            "probability of a click on each row once it is examined"
        )
    if clip is not None and estimator not in _CLIPPING:
        raise ParameterError(f"clip= is for estimator={' or '.join(_CLIPPING)}, got {estimator!r}")
    if policy is not None and not actions:
        raise ParameterError("policy= needs propensity=, the logged probability of each row")
    if isinstance(relevance, str) and relevance != _LEARNED:
        raise ParameterError(f"relevance is a column or {_LEARNED!r}, got {relevance!r}")


def _read(clicks: ArrayLike, position: ArrayLike, scores: ArrayLike, qid: ArrayLike) -> _Log:
    """Check the columns, and rank the rows of every session."""
    data = RankingData.from_arrays(read_clicks(clicks), qid=qid)
    groups, values = data.groups, data.read_scores(scores)
    if not groups.n_rows:
        raise DataError("there are no rows, so there is nothing to evaluate")
    at = read_positions(position, groups.n_rows)
    session = groups.spread(np.arange(groups.n_queries))
    order = np.lexsort((-values, session))
    ranked = values[order]
    begins = np.append(True, (ranked[1:] != ranked[:-1]) | (session[1:] != session[:-1]))
    starts = np.flatnonzero(begins)
    block = np.cumsum(begins) - 1
    first, tied = np.empty((2, len(order)), np.int64)
    first[order] = (starts - groups.offsets[session[starts]])[block]
    tied[order] = np.diff(np.append(starts, len(order)))[block]
    return _Log(groups, session, data.labels, groups.arrange(at), first, tied)


def _measure(metric: Any) -> tuple[AbstractPositional, float]:
    """Return a metric that is a sum of discounted clicks, and the gain of a click."""
    measure = getattr(read_metric(metric), "measure", None)
    if isinstance(measure, AbstractPositional) and measure.linear:
        none, one = measure.utilities(RankingData.from_arrays([0, 1])).tolist()
        if none == 0.0:
            return measure, one
    raise MetricError(
        f"{metric} is not a sum of discounted clicks, so it has no unbiased estimate from clicks "
        "over propensities. Use dcg@10, precision@10 or 'clicks'; estimator='ratio' divides "
        "by the number of relevant items, as NDCG does"
    )


def _by_length(
    metric: Any, size: IntArray, entries: Callable[[FloatArray, BoolArray], FloatArray]
) -> FloatArray:
    """Return discounts times the gain of a click, which depend on the length of a list."""
    measure, worth = _measure(metric)
    made = np.empty(len(size))
    for n in np.unique(size).tolist():
        rows = size == n
        made[rows] = worth * entries(measure.discounts(n), rows)
    return made


def _at_new_ranks(log: _Log, table: FloatArray, rows: Any = slice(None)) -> FloatArray:
    """Return the entry of a table at the new rank of each row: 0 past its end, means at ties."""
    padded = np.zeros(int(log.groups.sizes.max()))
    padded[: len(table)] = table[: len(padded)]
    sums = np.concatenate([[0.0], np.cumsum(padded)])
    first, tied = log.first[rows], log.tied[rows]
    return (sums[first + tied] - sums[first]) / tied


def _cross_fitted(log: _Log, bias: PositionBias, features: Any, plan: Plan) -> FloatArray:
    """Return the relevance of each row by models of other sessions, in the caller's order."""
    table = renamed(read_table(features, reads=booster_named(plan.backend).reads))
    groups, order = log.groups, log.groups.row_order
    if table.shape[0] != groups.n_rows:
        raise DataError(f"X has {table.shape[0]} rows, clicks has {groups.n_rows}")
    if groups.n_queries < _FOLDS:
        raise DataError(
            f'relevance="cross-fitted" needs {_FOLDS} sessions or more; the log has '
            f"{groups.n_queries}. Use estimator='ips'"
        )
    fold = pools(groups.n_queries, np.random.default_rng(plan.seed)) % _FOLDS
    table = table if order is None else take_rows(table, order)
    found = cross_fitted(plan, table, groups.spread(fold), (log.clicks, _theta(log, bias)))
    return np.asarray(groups.restore(np.clip(found, 0.0, 1.0)))


def _theta(log: _Log, bias: PositionBias) -> FloatArray:
    return bias.theta(log.position, follows_click(log.clicks, log.position, log.session))


def _by_bias(
    log: _Log, bias: PositionBias, metric: Any, least: float, relevance: ArrayLike | None
) -> _Terms:
    """Return terms with clicks over the examination of their positions.

    The discount of a row is that of its new rank, the mean over equal scores.
    """
    if metric == _CLICKS:
        discount = _at_new_ranks(log, bias.propensity)
    else:
        size = log.groups.spread(log.groups.sizes)
        discount = _by_length(metric, size, lambda table, rows: _at_new_ranks(log, table, rows))
    utility = bias.utilities(log.clicks, log.position, clip=least, session=log.session)
    theta = _theta(log, bias)
    weight = 1.0 / np.maximum(theta, least)
    earned = discount * utility
    if relevance is not None:
        g = _shares(relevance, log, "relevance", 0.0)
        earned = earned + discount * g * (1.0 - theta * weight)
    return _Terms(earned, utility, weight, weight * discount * log.clicks)


def _by_action(
    log: _Log, metric: Any, propensity: ArrayLike, policy: ArrayLike | None, least: float
) -> _Terms:
    """Return terms weighted by the probability of the action under the new policy over the old."""
    logged = _shares(propensity, log, "propensity", np.nextafter(0.0, 1.0))
    if policy is None:
        at = log.position - 1
        shows = ((at >= log.first) & (at < log.first + log.tied)) / log.tied
    else:
        shows = _shares(policy, log, "policy", 0.0)
    if not shows.any():
        raise DataError(
            "the new policy shows no item at its logged position, so the log has no information "
            "about it"
        )
    weight = shows / np.maximum(logged, least)
    discount = np.ones(log.groups.n_rows)
    if metric != _CLICKS:
        size = log.groups.spread(log.groups.sizes)
        if (log.position > size).any():  # rows of lists that are not logged as a whole
            size = np.full(len(size), log.position.max())
        discount = _by_length(metric, size, lambda table, rows: table[log.position[rows] - 1])
    _warn_of_support(weight if least == 0.0 else shows / logged)
    earned = weight * discount * log.clicks
    return _Terms(earned, weight, weight, earned)


def _shares(values: ArrayLike, log: _Log, what: str, least: float) -> FloatArray:
    """Return a column of probabilities in query order."""
    column = as_floats(values, what)
    if len(column) != log.groups.n_rows:
        raise DataError(f"{what} has {len(column)} rows, clicks has {log.groups.n_rows}")
    wrong = np.flatnonzero(~((column >= least) & (column <= 1.0)))
    if len(wrong):
        row = int(wrong[0])
        words = "above 0 and at most 1" if least else "from 0 to 1"
        raise DataError(f"{what} must be {words}; got {column[row]:g} in row {row}")
    return np.asarray(log.groups.arrange(column))


def _warn_of_support(weight: FloatArray) -> None:
    """Warn if the mean weight is not 1, as it is if the log covers the new policy."""
    mean = float(weight.mean())
    error = float(weight.std()) / np.sqrt(len(weight))
    if abs(mean - 1.0) > _UNLIKELY * error + 1e-9:
        cause = "the new policy often shows items where the old one never did, which is not counted"
        if mean > 1.0:
            cause = "the logged propensities are too small, or those of the new policy too large"
        warn(f"the mean weight of the rows is {mean:.3g} instead of 1: {cause}", GbmrankWarning)


def _valued(log: _Log, terms: _Terms, names: tuple[str, str, str], draws: Draws) -> OfflineValue:
    """Average over sessions, with a bootstrap interval."""
    level, resamples, rng = draws
    count = log.groups.n_queries
    pool = pools(count, rng)
    over = sums_by(log.session, terms.divisor, count) if names[1] == "ratio" else np.ones(count)
    columns = (sums_by(log.session, terms.earned, count), over)
    table = np.array([sums_by(pool, column, 1) for column in columns])
    if columns[1].sum() <= 0.0:
        raise DataError(
            f"estimator='ratio' divides by the relevant items of the log, and its "
            f"{log.clicks.sum():.0f} clicks show none. Use a longer log, or estimator='ips'"
        )
    value = float(columns[0].sum() / columns[1].sum())
    earned, divisor = bootstrap_means(table, resamples, rng).T
    some = divisor > 0.0
    drawn = earned[some] / divisor[some] if some.any() else np.array([value])
    low, high = np.quantile(drawn, tails(level))
    clicked = terms.counted > 0.0
    if not clicked.any():  # fewer clicks than this have at least the chance 1 - level to be none
        high = -np.log(max(1.0 - level, 1e-9)) * terms.weight.max() / columns[1].sum()
    effective = _effective(terms.counted[clicked])
    if effective < _FEW_CLICKS:
        warn(
            f"the estimate rests on {clicked.sum()} clicks ({effective:.0f} effective), too few "
            "to be reliable. Use a longer log, estimator='clipped', or a ranking closer to the "
            "logged one",
            GbmrankWarning,
        )
    return OfflineValue(
        value=value,
        low=float(low),
        high=float(high),
        level=level,
        metric=names[0],
        estimator=names[1],
        per=names[2],
        n_sessions=count,
        n_clicks=int(log.clicks.sum()),
        effective_sample_size=_effective(terms.weight),
        effective_clicks=effective,
    )


def _effective(weight: FloatArray) -> float:
    """Return the effective sample size of weights.

    >>> _effective(np.array([1.0, 1.0])), _effective(np.array([1.0, 0.0]))
    (2.0, 1.0)
    """
    squares = float((weight**2).sum())
    return float(weight.sum()) ** 2 / squares if squares > 0.0 else 0.0
