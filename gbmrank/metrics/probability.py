"""Metrics of probabilities: how far they are from what happens, over the rows of all queries.

They are not metrics of an order: an increasing map of the scores changes their values, a query has
no value of its own, and the raw scores of a booster are no probabilities.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple, final

import numpy as np

from gbmrank.data.bootstrap import pools
from gbmrank.data.columns import as_floats, read_number, read_whole
from gbmrank.data.queries import Groups
from gbmrank.errors import DataError, MetricError, ParameterError
from gbmrank.numerics import expit
from gbmrank.types import ArrayLike, FloatArray, IntArray

_TINY = 1e-15
_RESAMPLES = 500
_LINKS = ("none", "sigmoid")


class Bins(NamedTuple):
    """Bins of equal numbers of rows, in order of the probabilities.

    ``difference`` is the mean probability minus the share of relevant rows, ``variance`` that of
    the difference where the rows of a query depend on each other.
    """

    weight: FloatArray
    mean: FloatArray
    share: FloatArray
    difference: FloatArray
    variance: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilityMetric(ABC):
    """A metric of probabilities; smaller is better.

    Parameters
    ----------
    link : {"none", "sigmoid"}, default="none"
        What makes probabilities of the scores; ``"sigmoid"`` for log-odds.
    """

    link: str = "none"

    name: ClassVar[str]
    higher_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.link not in _LINKS:
            raise ParameterError(f"{self.name}: link is {' or '.join(_LINKS)}, got {self.link!r}")

    def score(
        self,
        labels: ArrayLike,
        probabilities: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        weight: ArrayLike | None = None,
    ) -> float:
        """Return the value over all rows.

        Parameters
        ----------
        labels : array-like of shape (n_rows,)
            1 for a relevant row, else 0.
        probabilities : array-like of shape (n_rows,)
            From 0 to 1; log-odds with ``link="sigmoid"``.
        qid : array-like of shape (n_rows,), optional
            One query id per row: rows of a query may depend on each other. Without it every row
            stands for itself.
        weight : array-like of shape (n_rows,), optional
            Weight of each row.
        """
        return self._value(*self._read(labels, probabilities, qid, weight))

    def interval(
        self,
        labels: ArrayLike,
        probabilities: ArrayLike,
        *,
        qid: ArrayLike,
        weight: ArrayLike | None = None,
        level: float = 0.95,
        seed: int = 0,
    ) -> tuple[float, float]:
        """Return a bootstrap interval over queries; columns as for :meth:`score`.

        Parameters
        ----------
        labels, probabilities, qid, weight : array-like of shape (n_rows,)
            As for :meth:`score`.
        level : float, default=0.95
            Confidence of the interval.
        seed : int, default=0
            Seed of the draws of queries.
        """
        y, p, query, w = self._read(labels, probabilities, qid, weight)
        tail = (1.0 - read_number(level, "level", 0.5, 1.0)) / 2.0
        rng = np.random.default_rng(read_whole(seed, "seed", 0))
        pool = pools(int(query.max()) + 1, rng)[query]
        size = int(pool.max()) + 1
        found: list[float] = []
        while len(found) < _RESAMPLES:
            times = np.bincount(rng.integers(size, size=size), minlength=size)[pool]
            if (drawn := w * times).any():  # else only rows without weight were drawn
                found.append(self._value(y, p, query, drawn))
        low, high = np.quantile(found, [tail, 1.0 - tail])
        return float(low), float(high)

    def per_query(self, labels: ArrayLike, probabilities: ArrayLike, **columns: object) -> None:
        """Raise: a query has no value of its own."""
        raise MetricError(
            f"{self.name} compares probabilities with what happens over many rows, so one query "
            "has no value. Use score, or interval for how sure it is"
        )

    def _read(
        self,
        labels: ArrayLike,
        probabilities: ArrayLike,
        qid: ArrayLike | None,
        weight: ArrayLike | None,
    ) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
        y, p = as_floats(labels, "labels"), as_floats(probabilities, "probabilities")
        if len(y) != len(p) or not len(y):
            raise DataError(
                f"{self.name} needs one probability per label, at least one; got {len(y)} labels "
                f"and {len(p)} probabilities"
            )
        if not np.isin(y, (0.0, 1.0)).all():
            raise DataError(
                f"{self.name} needs labels 0 and 1. For graded labels say which are relevant, such "
                "as labels >= 2"
            )
        if self.link == "sigmoid":
            p = expit(p)
        bad = np.flatnonzero(~((p >= 0.0) & (p <= 1.0)))
        if len(bad):
            raise DataError(
                f"{self.name} needs probabilities from 0 to 1, got {p[bad[0]]:g} in row {bad[0]}. "
                "Give predict_proba of a calibrated ranker, or link='sigmoid' for log-odds"
            )
        w = np.ones(len(y)) if weight is None else as_floats(weight, "weight")
        if len(w) != len(y) or not (w >= 0.0).all() or not w.sum() > 0.0:
            raise DataError(f"{self.name}: weight needs one number of at least 0 per row")
        if qid is None:
            return y, p, np.arange(len(y)), w
        groups = Groups.from_qid(qid, len(y))
        return y, p, groups.restore(groups.spread(np.arange(groups.n_queries))), w

    @abstractmethod
    def _value(self, y: FloatArray, p: FloatArray, query: IntArray, w: FloatArray) -> float:
        """Return the value of valid columns."""

    def __str__(self) -> str:
        given = [(one.name, getattr(self, one.name), one.default) for one in fields(self)]
        told = ", ".join(f"{name}={value}" for name, value, usual in given if value != usual)
        return f"{self.name}({told})" if told else self.name


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogLoss(ProbabilityMetric):
    """Mean of -log of the probability of what happened."""

    name: ClassVar[str] = "log_loss"

    def _value(self, y: FloatArray, p: FloatArray, query: IntArray, w: FloatArray) -> float:
        happened = np.clip(np.where(y == 1.0, p, 1.0 - p), _TINY, 1.0)
        return float(np.average(-np.log(happened), weights=w))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Brier(ProbabilityMetric):
    """Mean squared difference of probability and label."""

    name: ClassVar[str] = "brier"

    def _value(self, y: FloatArray, p: FloatArray, query: IntArray, w: FloatArray) -> float:
        return float(np.average((p - y) ** 2, weights=w))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCalibrationError(ProbabilityMetric):
    """Mean difference of probability and share of relevant rows, over bins, without its noise.

    A bin contributes ``sqrt(max(d^2 - v, 0))``: d is the difference, v the variance that rows of
    the same query give it. Without v, true probabilities would have an error too.

    Parameters
    ----------
    bins : int, default=15
        Bins of equal numbers of rows.
    """

    bins: int = 15
    name: ClassVar[str] = "ece"

    def __post_init__(self) -> None:
        super(ExpectedCalibrationError, self).__post_init__()
        read_whole(self.bins, "ece: bins", 1)

    def _value(self, y: FloatArray, p: FloatArray, query: IntArray, w: FloatArray) -> float:
        found = reliability_bins(y, p, query, w, self.bins)
        error = np.sqrt(np.maximum(found.difference**2 - found.variance, 0.0))
        return float(np.average(error, weights=found.weight))


PROBABILITY_METRICS = {one.name: one for one in (LogLoss, Brier, ExpectedCalibrationError)}


def reliability_bins(
    y: FloatArray, p: FloatArray, query: IntArray, w: FloatArray, bins: int
) -> Bins:
    """Return bins of equal weight; equal probabilities stay in one bin."""
    order = np.argsort(p, kind="stable")
    middle = np.cumsum(w[order]) - w[order] / 2.0
    place = np.minimum((middle / w.sum() * bins).astype(np.int64), bins - 1)
    first = np.concatenate([[True], p[order][1:] != p[order][:-1]])
    place = place[np.maximum.accumulate(np.where(first, np.arange(len(p)), 0))]
    at = np.empty(len(p), np.int64)
    at[order] = place
    total: FloatArray = np.bincount(at, w, bins).astype(np.float64)
    used = np.flatnonzero(total)
    mean, share = (np.bincount(at, w * one, bins)[used] / total[used] for one in (p, y))
    at = np.searchsorted(used, at)
    n_queries, count = int(query.max()) + 1, len(used)
    residual = w * (p - y - (mean - share)[at.clip(max=count - 1)])
    cell, inverse = np.unique(at * n_queries + query, return_inverse=True)
    sums = np.bincount(inverse, residual)
    variance = np.bincount(cell // n_queries, sums**2, count)[:count] / total[used] ** 2
    return Bins(total[used], mean, share, mean - share, variance)
