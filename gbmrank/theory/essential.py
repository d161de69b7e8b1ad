"""The essential loss of a ranking, and the chain from it to metrics and surrogates."""

import itertools
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from gbmrank.data import Groups, RankingData
from gbmrank.errors import ParameterError
from gbmrank.matrices import read_whole
from gbmrank.metrics import MAP, NDCG, AbstractMetric, Ranked
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.levels import Comparison
from gbmrank.objectives.listmle import ListMLE
from gbmrank.ranking import binarise, discounts, gains
from gbmrank.theory.parts import as_metric, as_objective
from gbmrank.theory.shapes import pair_shape
from gbmrank.types import ArrayLike, FloatArray
from gbmrank.utilities import ideal_dcg

__all__ = ["EssentialCheck", "essential_check", "essential_loss"]


@final
@dataclass(frozen=True, slots=True)
class EssentialCheck:
    """``1 - measure <= essential loss <= surrogate``, per query, all divided alike.

    Parameters
    ----------
    lost : array of shape (n_queries,)
        One minus the metric; NaN where it is undefined.
    essential : array of shape (n_queries,)
        Essential loss over the ideal DCG (over the number of relevant items for AP).
    surrogate : array of shape (n_queries,)
        The surrogate with the factor that makes it a bound.
    holds : bool
        Whether both inequalities hold in every query.
    """

    lost: FloatArray
    essential: FloatArray
    surrogate: FloatArray
    holds: bool


def essential_loss(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    group: ArrayLike | None = None,
    weights: str = "ndcg",
    k: int | None = None,
) -> FloatArray:
    r"""Return the essential loss of each query.

    .. math:: L_\beta = \sum_{p=1}^{n-1} \beta_p\, \mathbf 1[s_{o_p} \le \max\{s_j :
              y_j < y_{o_p}\}]

    with items o sorted by label, then by score: at every step, is the best remaining item
    recognised? An equal score is an error only against a lower label.

    Parameters
    ----------
    labels, scores : array-like of shape (n_rows,)
        Larger is better.
    group : array-like of shape (n_queries,), optional
        Rows per query; nothing means one query.
    weights : {"ndcg", "one"}, default="ndcg"
        ``(2^y - 1) / log2(1 + p)`` of the label at step p, or 1.
    k : int or None, default=None
        Last rank that counts in the weights ``"ndcg"``.

    References
    ----------
    Chen, Liu, Lan, Ma and Li, "Ranking measures and loss functions in learning to rank",
    NIPS 2009, sec. 3, with the tie rule that makes its Theorem 2 true.

    Examples
    --------
    >>> essential_loss([1, 1, 0], [1.0, 1.0, 0.0]), essential_loss([1, 0], [0.0, 0.0])
    (array([0.]), array([1.]))
    """
    if weights not in ("ndcg", "one"):
        raise ParameterError(f"weights must be ndcg or one, got {weights!r}")
    if k is not None:
        k = read_whole(k, "k", 1)
    data = RankingData.from_arrays(labels, group=group)
    return _essential(data, data.read_scores(scores), None if weights == "one" else (k,))


def essential_check(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    group: ArrayLike | None = None,
    objective: Any = "ranknet",
    metric: Any = "ndcg",
) -> EssentialCheck:
    """Check both inequalities on a model's scores.

    Parameters
    ----------
    labels, scores : array-like of shape (n_rows,)
        Larger is better.
    group : array-like of shape (n_queries,), optional
        Rows per query; nothing means one query.
    objective : object or text, default="ranknet"
        A comparison loss (convex, not increasing, ``phi(0) > 0``) or ListMLE, with or
        without the weights ``gain_discount``.
    metric : object or text, default="ndcg"
        ``ndcg@k``, or ``map`` (0/1 labels).

    Returns
    -------
    EssentialCheck
        Truthy parts per query; logistic losses are taken in base 2, as the bound needs.
    """
    data = RankingData.from_arrays(labels, group=group)
    column = data.read_scores(scores)
    measure, template = as_metric(metric), as_objective(objective)
    weights, scale = _weights(data, measure)
    lost = 1.0 - measure.bind(data).per_query(Ranked(column, data.groups))
    essential = _essential(data, column, weights) / scale
    surrogate = _surrogate(template, data, column, weights) / scale
    tolerance = 1e-9
    with np.errstate(invalid="ignore"):
        broken = (lost > essential + tolerance) | (essential > surrogate * (1.0 + 1e-9) + tolerance)
    return EssentialCheck(lost, essential, surrogate, not bool(np.any(broken)))


def _weights(
    data: RankingData, measure: AbstractMetric
) -> tuple[tuple[int | None] | None, FloatArray]:
    """Return the kind of step weights and what the metric is divided by."""
    if isinstance(measure, NDCG) and measure.gain == "exp2":
        ideal = ideal_dcg(gains(data.labels, "exp2"), data.groups, measure.k)
        return (measure.k,), np.where(ideal > 0, ideal, np.nan)
    if isinstance(measure, MAP) and measure.k is None:
        positives = np.add.reduceat(
            binarise(data.labels, measure.threshold, data.groups), data.groups.offsets[:-1]
        )
        return None, np.where(positives > 0, positives, np.nan)
    raise ParameterError("the essential loss bounds ndcg (gain=exp2) and map without a cut-off")


def _essential(
    data: RankingData, scores: FloatArray, weights: tuple[int | None] | None
) -> FloatArray:
    losses = np.zeros(data.groups.n_queries)
    for query, (begin, end) in enumerate(_spans(data.groups)):
        labels, column = data.labels[begin:end], scores[begin:end]
        order = np.lexsort((-column, -labels))
        y, s = labels[order], column[order]
        # Largest score among strictly lower labels: a suffix maximum past the level's end.
        after = np.append(np.maximum.accumulate(s[::-1])[::-1], -np.inf)
        level_end = np.searchsorted(-y, -y, side="right")
        errors = (s <= after[level_end])[:-1]
        losses[query] = float(_betas(y, weights)[:-1] @ errors)
    return losses


def _betas(ordered: FloatArray, weights: tuple[int | None] | None) -> FloatArray:
    if weights is None:
        return np.ones(len(ordered))
    return gains(ordered, "exp2") * discounts(len(ordered), weights[0])


def _surrogate(
    template: AbstractObjective,
    data: RankingData,
    scores: FloatArray,
    weights: tuple[int | None] | None,
) -> FloatArray:
    """Return the surrogate with the factor that makes it at least the essential loss."""
    if getattr(template, "preferences", None) is not None:
        raise ParameterError("the essential loss is one of labels; leave out preferences")
    margin = getattr(template, "margin", 0.0)
    if not isinstance(margin, str) and margin < 0.0:
        raise ParameterError(
            f"{template.name} with margin={margin:g} does not bound the essential loss; one from 0 "
            "on does"
        )
    factor = np.ones(data.groups.n_queries)
    weighted = getattr(template, "weights", "none") == "gain_discount"
    if weighted and weights != (None,):
        raise ParameterError("weights=gain_discount are those of ndcg without a cut-off")
    if not weighted:
        for query, (begin, end) in enumerate(_spans(data.groups)):
            ordered = -np.sort(-data.labels[begin:end])
            factor[query] = _betas(ordered, weights).max()
    if isinstance(template, ListMLE):
        factor = factor / np.log(2.0)
    elif isinstance(template, Comparison) and pair_shape(template.loss).decreasing:
        factor = factor / template.loss.kappa(0.0, *template.loss.params)[0]
    else:
        raise ParameterError(f"{template.name} is not known to bound the essential loss")
    plain = replace(template, normalize="none")
    return factor * plain.bind(RankingData(data.labels, data.groups)).losses(scores)


def _spans(groups: Groups) -> list[tuple[int, int]]:
    return list(itertools.pairwise(groups.offsets.tolist()))
