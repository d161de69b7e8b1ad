"""Surrogates on the mean of a distribution of preference graphs, and graphs as queries."""

import numpy as np

from gbmrank.errors import ParameterError
from gbmrank.losses.base import ScalarFunction
from gbmrank.objectives import AbstractObjective
from gbmrank.objectives.levels import Comparison
from gbmrank.objectives.linear import Linear
from gbmrank.preferences import PreferenceGraphs
from gbmrank.theory.minimise import Risk
from gbmrank.types import FloatArray

__all__ = ["graph_risk", "pair_risk", "repeated_graphs"]


def graph_risk(objective: AbstractObjective, mean: FloatArray) -> Risk:
    """Return the expected loss of scores given the mean graph, shape (n, n).

    ``sum A_ij phi(s_i - s_j - h)`` for comparison with a margin h that is a number,
    ``-sum f_i s_i + nu sum r(s_i)`` for linear; no normalisation.
    """
    if isinstance(objective, Comparison):
        if isinstance(objective.margin, str):
            raise ParameterError("margin=weight depends on every graph, not on their mean alone")
        return pair_risk(objective.loss.kappa, objective.loss.params, mean, objective.margin)
    if isinstance(objective, Linear):
        return _linear_risk(objective, mean)
    raise ParameterError(
        f"{objective.name} is not defined on preference graphs; comparison and linear are"
    )


def pair_risk(
    phi: ScalarFunction, params: tuple[float, ...], weights: FloatArray, margin: float = 0.0
) -> Risk:
    """Return ``scores -> sum_ij w_ij phi(s_i - s_j - margin)`` with its gradient."""
    rows, columns = np.nonzero(weights)
    w = weights[rows, columns]

    def risk(scores: FloatArray) -> tuple[float, FloatArray]:
        terms = [phi(float(d), *params) for d in scores[rows] - scores[columns] - margin]
        table = np.array(terms, dtype=np.float64).reshape(-1, 3)
        slopes = w * table[:, 1]
        grad = np.zeros(len(scores))
        np.add.at(grad, rows, slopes)
        np.subtract.at(grad, columns, slopes)
        return float(w @ table[:, 0]), grad

    return risk


def repeated_graphs(weights: FloatArray, times: int) -> PreferenceGraphs:
    """Return graphs of shape (m, n, n) as queries, every one ``times`` in a row."""
    m, n = weights.shape[:2]
    graph, winner, loser = np.nonzero(np.repeat(weights, times, axis=0))
    weight = weights[graph // times, winner, loser]
    sizes = np.full(m * times, n, dtype=np.int64)
    return PreferenceGraphs.from_edges(n * graph + winner, n * graph + loser, weight, group=sizes)


def _linear_risk(objective: Linear, mean: FloatArray) -> Risk:
    degrees = (mean - mean.T).sum(axis=1)
    function, params = type(objective.regulariser).function, objective.regulariser.params

    def risk(scores: FloatArray) -> tuple[float, FloatArray]:
        terms = np.array([function(float(s), *params) for s in scores])
        value = float(-degrees @ scores + objective.nu * terms[:, 0].sum())
        return value, objective.nu * terms[:, 1] - degrees

    return risk
