"""``metric_ledger``: how much of a metric each feature of a model earns."""

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from gbmrank.api.metrics import metric_list
from gbmrank.data.tables import frame_like
from gbmrank.errors import GroupError, MetricError, ParameterError
from gbmrank.explanations.contributions import Model
from gbmrank.types import FloatArray, is_whole

_SHOWN = 10
_DIGITS = 9  # of the largest score; equal partial sums would otherwise differ by rounding
NOTE = "This is what the model uses, not what you need: it does not predict retraining without one."


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """How much of a metric each feature earns.

    Attributes
    ----------
    metric : str
        The metric.
    features : list of str
        Names of the features.
    earned : array of shape (n_features,)
        What each feature earns; they sum to ``value - random``.
    errors : array of shape (n_features,)
        Standard errors, over the random orders.
    value : float
        The metric of the model.
    random : float
        The metric of a random order, in expectation.
    """

    metric: str
    features: list[str]
    earned: FloatArray
    errors: FloatArray
    value: float
    random: float
    _table: Any = field(repr=False)

    def table(self) -> Any:
        """Return a data frame of the same kind as the features, or a dict of columns for arrays.

        One row per feature, the one that earns most first.
        """
        order = np.argsort(-self.earned, kind="stable")
        names = [self.features[at] for at in order]
        columns = {"feature": names, "earned": self.earned[order], "error": self.errors[order]}
        return frame_like(self._table, columns)

    def __str__(self) -> str:
        order = np.argsort(-self.earned, kind="stable")
        shown, rest = order[:_SHOWN], order[_SHOWN:]
        rows = [(self.features[at], self.earned[at], f"  ({self.errors[at]:.4f})") for at in shown]
        if len(rest):
            rows.append((f"{len(rest)} other features", self.earned[rest].sum(), ""))
        rows = [("random order", self.random, ""), *rows, ("the model", self.value, "")]
        width = max(len(name) for name, _, _ in rows)
        lines = [f"{name:<{width}}  {value:8.4f}{error}" for name, value, error in rows]
        return "\n".join([f"what earns {self.metric} (standard error)", *lines, NOTE])


def metric_ledger(
    model: Any,
    X: Any,  # noqa: N803
    y: Any,
    *,
    qid: Any,
    metric: Any = "ndcg@10",
    orders: int = 25,
    seed: int = 0,
) -> Ledger:
    """Share a metric among the features of a model.

    The features are added one by one, in random orders; the items of a list are ranked by the sum
    of their contributions (:func:`gbmrank.explain`), and each feature earns the mean change of
    the metric. Without any feature all items tie, which is a random order.

    Parameters
    ----------
    model : GBMRanker, booster or scikit-learn model of a booster
        As in :func:`gbmrank.explain`.
    X : table of shape (n_rows, n_features)
        Features.
    y : array-like of shape (n_rows,)
        Labels.
    qid : array-like of shape (n_rows,)
        One query id per row, in any order.
    metric : Metric or str, default="ndcg@10"
        The metric; the first one of a list.
    orders : int, default=25
        Number of random orders, at least 2.
    seed : int, default=0
        Seed of the orders.

    Returns
    -------
    Ledger
        What each feature earns, with standard errors.
    """
    if not is_whole(orders) or orders < 2:
        raise ParameterError(f"orders must be a whole number of at least 2, got {orders!r}")
    if qid is None:
        raise GroupError("say which query each row of X belongs to: qid= (one id per row)")
    known, measure = Model.of(model), metric_list(metric)[0]
    parts, scores, _, _, _ = known.explained(X, qid)

    def value(ranked: FloatArray) -> float:
        return float(measure.score(y, ranked, qid=qid))

    total, none = value(scores), value(np.zeros(len(scores)))
    if not np.isfinite(total):
        raise MetricError(f"{measure} is undefined for every query of y, so nothing can be shared")
    used = np.flatnonzero(parts.any(axis=0))
    steps = np.zeros((orders, parts.shape[1]))
    random, unit = np.random.default_rng(seed), float(np.abs(parts).sum(axis=1).max()) or 1.0
    for order in steps:
        so_far, before = np.zeros(len(scores)), none
        added = random.permutation(used)
        for number, feature in enumerate(added, start=1):
            so_far += parts[:, feature]
            rounded = np.round(so_far / unit, _DIGITS)
            now = total if number == len(added) else value(rounded)
            order[feature], before = now - before, now
    errors = steps.std(axis=0, ddof=1) / np.sqrt(orders)
    names = known.names(X)
    return Ledger(str(measure), names, steps.mean(axis=0), errors, total, none, X)
