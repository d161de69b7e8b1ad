"""Distillation: one small model that ranks like a teacher, learned from the teacher's scores.

The student minimises the squared error to the scores within queries, which needs no labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gbmrank.api.metrics import Metric, metrics_callback
from gbmrank.boosters.settings import check_count
from gbmrank.boosters.supported import booster_named
from gbmrank.data.columns import as_floats
from gbmrank.data.queries import Groups, check_finite
from gbmrank.data.query_order import query_sums
from gbmrank.errors import DataError, ParameterError
from gbmrank.estimators.base import places_within, read_queries
from gbmrank.types import FloatArray

OBJECTIVE = "query_rmse"
ROUNDS = 250  # of a student whose teacher has no known number of trees
_SHARE = 4  # the student has a quarter of the teacher's trees
_DEPTH = 10  # of the agreement at the top
_LEAST_RATE, _TRAVEL = 0.1, 4.0  # learning rate: at least this, and this divided by the rounds
_NORMAL_95 = 1.959963984540054


@final
@dataclass(frozen=True, slots=True)
class Distillation:
    """How a student differs from its teacher.

    Parameters
    ----------
    correlation : float
        Correlation of the scores within queries, on the rows that the student learned from.
    agreement : float
        NDCG@10 of the student's order if the teacher's ten best rows are worth 10, 9, ..., 1.
    lost : float or None
        Mean of the metric over labelled queries, teacher minus student; above 0 is a loss.
    interval : tuple of float or None
        95% interval of ``lost``, over queries.
    """

    correlation: float
    agreement: float
    lost: float | None = None
    interval: tuple[float, float] | None = None

    def __str__(self) -> str:
        text = f"correlation {self.correlation:.3f} within queries, top 10 {self.agreement:.3f}"
        if self.lost is None or self.interval is None:
            return text
        low, high = self.interval
        return f"{text}, lost {self.lost:+.4f} ({low:+.4f} to {high:+.4f})"


def shared_params(
    backend: str, teacher: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the leaves and constraints of a teacher, and what is given in place of them."""
    booster = booster_named(backend)
    named = booster.parameters.by_main_names
    kept = {key: one for key, one in named(teacher).items() if key in booster.student.kept}
    return {**kept, **named(given)}


def student_params(backend: str, rounds: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a student's trees; they suit scores, which have no noise."""
    booster = booster_named(backend)
    check_count("n_estimators", rounds)
    rate = min(1.0, max(_LEAST_RATE, _TRAVEL / rounds))
    own = {"learning_rate": rate, **booster.student.set_to}
    return {**own, **booster.parameters.by_main_names(given)}


def rounds_of(trees: int) -> int:
    """Return the rounds of the student of a teacher with this many trees."""
    return max(1, round(trees / _SHARE))


def centred(scores: Any, qid: Any) -> tuple[FloatArray, FloatArray, Groups]:
    """Return a teacher's scores, and the same with mean 0 in each query and spread 1."""
    values = as_floats(scores, "scores", exact=True)
    groups = read_queries(qid, len(values))
    arranged = groups.arrange(values)
    check_finite(arranged, "score", groups)
    apart = _within(arranged, groups)
    spread = float(np.sqrt(np.mean(apart**2)))
    if not spread > 0.0:
        raise DataError("the scores of the teacher are equal within every query; nothing to learn")
    return values, np.asarray(groups.restore(apart / spread)), groups


def compared(teacher: FloatArray, student: FloatArray, groups: Groups) -> Distillation:
    """Return how two scores of the same rows agree."""
    theirs, own = (groups.arrange(one) for one in (teacher, student))
    a, b = _within(theirs, groups), _within(own, groups)
    size = float(np.sqrt((a**2).sum() * (b**2).sum()))
    correlation = float((a * b).sum() / size) if size > 0.0 else 0.0
    worth = np.maximum(_DEPTH - places_within(-theirs, groups), 0.0)
    top = metrics_callback(f"ndcg(gain=linear)@{_DEPTH}")[0]
    return Distillation(correlation, float(top.score(worth, own, group=groups.sizes)))


def lost_by(
    metric: Metric, labels: Any, qid: Any, teacher: FloatArray, student: FloatArray
) -> tuple[float, tuple[float, float]]:
    """Return the mean of teacher minus student over queries, and its 95% interval."""
    values = [metric.per_query(labels, one, qid=qid) for one in (teacher, student)]
    apart = (values[0] - values[1]) * (1.0 if metric.higher_is_better else -1.0)
    apart = apart[~np.isnan(apart)]
    if len(apart) < 2:
        raise DataError(f"{metric} is defined for {len(apart)} queries of eval_set; it needs 2")
    mean = float(apart.mean())
    half = _NORMAL_95 * float(apart.std(ddof=1)) / float(np.sqrt(len(apart)))
    return mean, (mean - half, mean + half)


def read_eval_set(eval_set: Any, eval_scores: Any) -> tuple[Any, Any]:
    """Return features and labels of the rows on which the loss is measured."""
    if not (isinstance(eval_set, tuple | list) and len(eval_set) == 2):
        raise ParameterError("eval_set must be (X, y): labelled rows that neither model has seen")
    if eval_scores is None:
        raise ParameterError("eval_set= needs eval_scores=, the teacher's scores of its rows")
    return eval_set[0], eval_set[1]


def _within(scores: FloatArray, groups: Groups) -> FloatArray:
    return np.asarray(scores - groups.spread(query_sums(scores, groups) / groups.sizes))
