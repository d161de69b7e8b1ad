"""Probabilities from scores that only order: a map of the score, its list and a level.

The order of a query is never reversed: within a list the map is increasing in the score.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from gbmrank.api import Objective
from gbmrank.data.columns import as_floats
from gbmrank.data.queries import Groups
from gbmrank.data.query_order import query_sums
from gbmrank.errors import ConfigError, DataError, GbmrankError, GbmrankWarning, warn
from gbmrank.estimators.base import places_within
from gbmrank.numerics import expit
from gbmrank.types import FloatArray

LEVEL = "pointwise(loss=logistic, target=identity, eta=1)"
"""Objective of the model that says how good the rows of a query are together."""
_STEPS, _PRECISION = 100, 1e-10
_RIDGE = 1e-6
_FEW = 100  # queries
_SHORTEST = 0.3  # of a list that is cut
_STEADIEST = 0.25  # of the variance that is left in a mean over members


@final
@dataclass(frozen=True, slots=True)
class ProbabilityMap:
    """A fitted map from scores to probabilities.

    ``q = sigmoid(a (z - mean z) + b mean z + c mean l + d)`` and
    ``p = sigmoid(alpha log q - beta log(1 - q) + gamma)``: z is the score, l that of the model of
    the level, means are over the candidates of a query.
    """

    a: float
    b: float
    c: float
    d: float
    alpha: float = 1.0
    beta: float = 1.0
    gamma: float = 0.0
    longest: int = 0  # list that it was fitted on

    @classmethod
    def fitted(
        cls,
        z: FloatArray,
        level: FloatArray | None,
        relevant: FloatArray,
        groups: Groups,
        seed: int,
        served: FloatArray | None = None,
    ) -> "ProbabilityMap":
        """Fit both steps by maximum likelihood, on whole lists and on lists cut at random.

        Columns are in query order. Without a level, it is the map a z + d. ``served`` are the
        scores of the model that serves: ``a`` is divided by :func:`_steadiness`.
        """
        if relevant.min() == relevant.max():
            raise DataError(
                "all labels of the rows that calibrate are "
                f"{'relevant' if relevant[0] else 'irrelevant'}, so there is no probability to "
                "learn. Give rows of both kinds, or another threshold="
            )
        if groups.n_queries < _FEW:
            warn(
                f"probabilities are calibrated on {groups.n_queries} queries; with fewer than "
                f"{_FEW} they may be off by several percent",
                GbmrankWarning,
            )
        if level is None:
            a, d = _logistic(np.column_stack([z, np.ones(len(z))]), relevant)
            made = cls(a, a, 0.0, d, longest=groups.longest)
        else:
            kept, cut = _cut(z, groups, np.random.default_rng(seed))
            parts = _columns(z, level, groups), _columns(z[kept], level[kept], cut)
            columns, labels = np.concatenate(parts), np.concatenate([relevant, relevant[kept]])
            a, b, c, d = _logistic(columns, labels)
            alpha, beta, gamma = _beta(*_logs(columns @ [a, b, c, d]), labels)
            steady = 1.0 if served is None else _steadiness(z, served, groups)
            made = cls(a / steady, b, c, d, alpha, beta, gamma, groups.longest)
        if not made.a > 0.0:
            raise DataError(
                "the rows that calibrate are less often relevant the higher they score, so no "
                "probability keeps the order. The ranker learned nothing, or labels are smaller "
                "for better rows"
            )
        return made

    def probabilities(self, z: FloatArray, level: FloatArray | None, groups: Groups) -> FloatArray:
        """Return the probability of each row; columns are in query order."""
        if groups.longest > max(2 * self.longest, 1):
            warn(
                f"the longest list has {groups.longest} rows, but probabilities were calibrated on "
                f"lists of up to {self.longest}; they may be too high",
                GbmrankWarning,
            )
        columns = _columns(z, np.zeros(len(z)) if level is None else level, groups)
        log_q, log_rest = _logs(columns @ [self.a, self.b, self.c, self.d])
        return np.asarray(expit(self.alpha * log_q - self.beta * log_rest + self.gamma))


def _logs(odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms of a probability and of the rest."""
    return -np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds)


def _columns(z: FloatArray, level: FloatArray, groups: Groups) -> FloatArray:
    means = [groups.spread(query_sums(one, groups) / groups.sizes) for one in (z, level)]
    return np.column_stack([z - means[0], *means, np.ones(len(z))])


def _steadiness(z: FloatArray, served: FloatArray, groups: Groups) -> float:
    """Return the share of the variance of a member's scores that the mean over members keeps.

    A member scores ``s + e``, its noise e; of K members the mean keeps var(s) + var(e) / K, and its
    slope is larger by the inverse of that share. The rows of z trained the other members, not
    the one that scores them: what those memorised is unrelated to z, so the slope of served scores
    on z is that share.
    """
    own, mean = (_columns(one, one, groups)[:, 0] for one in (z, served))
    share = float(own @ mean) / max(float(own @ own), 1e-300)
    return min(max(share, _STEADIEST), 1.0)


def _cut(z: FloatArray, groups: Groups, rng: np.random.Generator) -> tuple[Any, Groups]:
    """Return the best rows of every list, a random share of it, and their queries."""
    share = rng.uniform(_SHORTEST, 1.0, groups.n_queries)
    sizes = np.maximum(np.ceil(share * groups.sizes), 1.0).astype(np.int64)
    kept = np.flatnonzero(places_within(-z, groups) < groups.spread(sizes))
    return kept, Groups(np.concatenate([[0], np.cumsum(sizes)]))


def _logistic(columns: FloatArray, labels: FloatArray) -> list[float]:
    """Return the coefficients of a logistic regression, by damped Newton steps."""
    scale = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    x, at = columns / scale, np.zeros(columns.shape[1])

    def loss(point: FloatArray) -> float:
        odds = x @ point
        return float(np.mean(np.logaddexp(0.0, odds) - labels * odds) + _RIDGE * point @ point)

    value = loss(at)
    for _ in range(_STEPS):
        p = np.asarray(expit(x @ at))
        slope = x.T @ (p - labels) / len(x) + 2.0 * _RIDGE * at
        curve = (x * (p * (1.0 - p))[:, None]).T @ x / len(x)
        step = np.linalg.solve(curve + 2.0 * _RIDGE * np.eye(len(at)), slope)
        size = 1.0
        while (new := loss(at - size * step)) > value and size > 1e-6:
            size /= 2.0
        at, before, value = at - size * step, value, min(new, value)
        if before - value <= _PRECISION:
            break
    return [float(one) for one in at / scale]


def _beta(log_q: FloatArray, log_rest: FloatArray, labels: FloatArray) -> tuple[float, ...]:
    """Return alpha, beta and gamma; a negative slope becomes 0, and the others are fitted again."""
    both = np.column_stack([log_q, -log_rest, np.ones(len(log_q))])
    alpha, beta, gamma = _logistic(both, labels)
    if alpha < 0.0:
        return 0.0, *_logistic(both[:, 1:], labels)
    if beta < 0.0:
        alpha, gamma = _logistic(both[:, [0, 2]], labels)
        return alpha, 0.0, gamma
    return alpha, beta, gamma


def relevance(
    calibrate: str | None,
    threshold: float | None,
    y: Any,
    sets: Mapping[str, Any],
    *,
    pooled: bool,
) -> FloatArray | None:
    """Return which rows of those that calibrate are relevant; None without calibration.

    ``pooled`` are the rows with those of the evaluation sets.
    """
    if calibrate is None:
        if threshold is not None:
            raise ConfigError("threshold= says which labels are relevant for calibrate=; give both")
        return None
    problem = {
        "cross-fit": pooled
        and "'cross-fit' uses the rows of X; append those of eval_set to X instead of "
        "pool_eval_set=True",
        "held-out": not sets and "'held-out' needs eval_set= and eval_qid=",
    }.get(calibrate, f"is 'cross-fit', 'held-out' or None, got {calibrate!r}")
    if problem:
        raise ConfigError(f"calibrate={problem}" if problem[0] == "'" else f"calibrate {problem}")
    if calibrate == "held-out":
        y = list(sets.values())[-1][0][1]
    labels = as_floats(y, "y")
    if threshold is not None:
        return (labels >= threshold).astype(np.float64)
    if not np.isin(labels, (0.0, 1.0)).all():
        raise ConfigError(
            f"calibrate={calibrate!r} needs threshold= for graded labels: those of at least it are "
            "relevant, such as threshold=2"
        )
    return labels


class NoProbabilityError(ConfigError, AttributeError):
    """A ranker without probabilities, which thus has no ``predict_proba``."""


def check_probabilities(target: Any) -> None:
    """Raise unless the scores of an objective stand for probabilities."""
    if isinstance(target, Objective):
        with contextlib.suppress(GbmrankError):
            target.inverse_link(np.zeros(1))
            return
    raise NoProbabilityError(
        f"scores of {target} order the rows of a query and are no probabilities. Train with "
        "calibrate='cross-fit' (and threshold=2, for example, if labels are grades), or, with "
        "labels 0 and 1, with pointwise(loss=logistic, target=identity, eta=1)"
    )


def level_path(path: Any) -> Path:
    """Return where the model of the level is saved.

    >>> level_path("model.txt").name
    'model.level.txt'
    """
    whole = Path(path)
    return whole.with_name(f"{whole.stem}.level{whole.suffix}")
