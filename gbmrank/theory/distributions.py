"""Finite distributions of labels for one query: inner risks, minimisers, best rankings.

The labels may also be preference graphs.
"""

import functools
import itertools
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from gbmrank.data.columns import as_floats, check_graphs, read_table
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.data.queries import Groups, RankingData
from gbmrank.errors import DataError, LimitError, ParameterError
from gbmrank.losses import Hinge
from gbmrank.losses.base import AbstractLoss
from gbmrank.losses.convex import Expm1
from gbmrank.metrics import AbstractBoundMetric, AbstractMetric, PairwiseDisagreement, Ranked
from gbmrank.objectives import AbstractObjective, held_preferences
from gbmrank.objectives.base import Mix
from gbmrank.objectives.calibrated import SigmoidSoftmax
from gbmrank.objectives.levels import Bipartite, Comparison
from gbmrank.objectives.pairwise import Pairwise
from gbmrank.objectives.value_linear import Linear
from gbmrank.registry.composition import as_metric, as_objective
from gbmrank.registry.guards import is_ours
from gbmrank.theory.minimise import Minimum, Nature, Risk, minimise
from gbmrank.theory.user_code import sampled
from gbmrank.theory.views import view
from gbmrank.types import ArrayLike, FloatArray, IntArray

_MOST_ITEMS = 8
_ROWS_AT_ONCE = 2_000_000


def graph_risk(objective: AbstractObjective, graphs: FloatArray, p: FloatArray) -> Risk:
    """Return the expected loss of scores given graphs, shape (m, n, n), and probabilities.

    ``sum A_ij phi(s_i - s_j - h)`` for comparison with a margin h that is a number and
    ``-sum f_i s_i + nu sum r(s_i)`` for linear depend on the mean graph alone; with
    ``margin=weight`` every edge counts once, ``sum 1[A_ij > 0] phi(s_i - s_j - A_ij)``. No
    normalisation.
    """
    mean = np.einsum("m,mij->ij", p, graphs)
    if isinstance(objective, Comparison):
        loss = objective.loss
        if not isinstance(objective.margin, str):
            return pair_risk(loss, mean, objective.margin)
        graph, rows, columns = np.nonzero(graphs)
        margins = graphs[graph, rows, columns]
        return _edge_risk(loss, (rows, columns), p[graph], margins)
    if isinstance(objective, Linear):
        degrees, part, nu = (mean - mean.T).sum(axis=1), objective.regulariser, objective.nu

        def risk(scores: FloatArray) -> tuple[float, FloatArray]:
            terms = sampled(part, type(part).function, scores)
            value = float(-degrees @ scores + nu * terms[:, 0].sum())
            return value, nu * terms[:, 1] - degrees

        return risk
    raise ParameterError(
        f"{objective.name} is not defined on preference graphs; comparison and linear are"
    )


def pair_risk(loss: AbstractLoss, weights: FloatArray, margin: float = 0.0) -> Risk:
    """Return ``scores -> sum_ij w_ij phi(s_i - s_j - margin)`` with its gradient."""
    rows, columns = np.nonzero(weights)
    w = weights[rows, columns]
    return _edge_risk(loss, (rows, columns), w, np.full(len(w), margin))


def _edge_risk(
    loss: AbstractLoss, edges: tuple[IntArray, IntArray], w: FloatArray, margins: FloatArray
) -> Risk:
    rows, columns = edges

    def risk(scores: FloatArray) -> tuple[float, FloatArray]:
        table = sampled(loss, loss.kappa, scores[rows] - scores[columns] - margins)
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


@final
@dataclass(frozen=True, slots=True)
class Best:
    """The best orders of a metric on a distribution, and their value."""

    value: float  #: expected value of the best order
    #: every order with this value (only one if orders are not enumerated), best item first
    orders: tuple[tuple[int, ...], ...]
    scores: FloatArray  #: scores that are sorted like the first of them


@final
@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """A finite distribution of the labels of one query.

    Parameters
    ----------
    labels : array-like of shape (m, n) or (m, n, n)
        Label vectors, or preference graphs (``A[i, j]``: weight of i before j).
    probabilities : array-like of shape (m,)
        Relative weights, not negative, on any scale (counts, for example); they are divided by
        their sum.

    Examples
    --------
    >>> d = Distribution([[0, 0, 1], [1, 0, 0], [1, 1, 0]], [0.2, 0.5, 0.3])
    >>> d.expected_utilities("precision@1")
    array([0.8, 0.3, 0.2])
    >>> d.best("precision@1").orders[0][0]
    0
    """

    labels: FloatArray
    probabilities: FloatArray

    def __init__(self, labels: ArrayLike, probabilities: ArrayLike) -> None:
        table = read_table(labels, "label vectors")
        weight = read_table(probabilities, "probabilities")
        square = table.ndim == 3 and table.shape[1] == table.shape[2]
        fits = weight.ndim == 1 and len(table.shape) and len(table) == len(weight)
        if not (table.ndim == 2 or square) or not fits or not table.size:
            raise DataError(
                "a distribution takes m label vectors of n items, or m graphs of n by n, and m "
                f"probabilities; got shapes {table.shape} and {weight.shape}"
            )
        if not np.all(weight >= 0) or not weight.sum() > 0:
            raise DataError(f"probabilities are not negative and not all zero, got {weight}")
        object.__setattr__(self, "labels", check_graphs(table) if square else table)
        object.__setattr__(self, "probabilities", weight / weight.sum())

    @property
    def n_items(self) -> int:
        """Number of items of the query."""
        return int(self.labels.shape[1])

    def inner_risk(self, objective: Any, scores: ArrayLike) -> float:
        """Return the expected loss of scores, shape (n,)."""
        return self.risk(objective)(self._scores(scores))[0]

    def minimiser(self, objective: Any) -> Minimum:
        """Return the scores that minimise the expected loss, and whether they exist."""
        template = as_objective(objective)
        return minimise(self.risk(template), self.n_items, nature_of(template))

    def risk(self, objective: Any) -> Risk:
        """Return the inner risk as a function ``scores -> (value, gradient)``."""
        template = as_objective(objective)
        if self.labels.ndim == 3:
            return _of_length(graph_risk(template, self.labels, self.probabilities), self.n_items)
        if held_preferences(template):
            raise _in_place_of_labels(template.name)
        bound = template.bind(self._data())
        count, p = len(self.probabilities), self.probabilities

        def risk(scores: FloatArray) -> tuple[float, FloatArray]:
            repeated = np.tile(scores, count)
            grad, _ = bound.gradients(repeated)
            return float(p @ bound.losses(repeated)), p @ grad.reshape(count, -1)

        return _of_length(risk, self.n_items)

    def value(self, metric: Any, scores: ArrayLike) -> float:
        """Return the expected value of a metric, averaged over the orderings of ties.

        Label vectors and graphs on which the metric is undefined are skipped, or count as its
        ``empty`` option says: by the same amount for all scores, so the best order does not
        depend on it. NaN if the metric is undefined on all of them.
        """
        return float(self.expected_values(as_metric(metric), self._scores(scores)[None])[0])

    def best(self, metric: Any) -> Best:
        """Return the best expected value and the orders that reach it.

        If the metric is undefined (NaN), all orders are equally good. All orders are enumerated
        for up to 8 items; for more items, positional metrics sort the expected utilities, and
        others are rejected.
        """
        measure, n = as_metric(metric), self.n_items
        if n > _MOST_ITEMS:
            if self.labels.ndim == 3 or view(measure) is None:
                raise LimitError(
                    f"the best order of {n} items for {measure.name} needs all orders; at most "
                    f"{_MOST_ITEMS} items are enumerated"
                )
            scores = self.expected_utilities(measure)
            order = tuple(np.argsort(-scores, kind="stable").tolist())
            return Best(self.value(measure, scores), (order,), scores)
        orders = all_orders(n)
        ranks = np.argsort(orders, axis=1)
        values = self.expected_values(measure, -ranks.astype(np.float64))
        top = values.max() if measure.higher_is_better else values.min()
        tolerance = 1e-12 * (1.0 + abs(float(top)))
        reached = np.flatnonzero(~(np.abs(values - top) > tolerance))  # all, where undefined
        chosen = tuple(map(tuple, orders[reached].tolist()))
        return Best(float(top), chosen, -ranks[reached[0]].astype(np.float64))

    def regret(self, metric: Any, scores: ArrayLike) -> float:
        """Return the regret of scores: the best value minus theirs; NaN if undefined."""
        measure = as_metric(metric)
        return abs(self.best(measure).value - self.value(measure, scores))

    def expected_utilities(self, metric: Any) -> FloatArray:
        """Return U = E u of a positional metric; label vectors where it is undefined count 0."""
        seen = view(as_metric(metric))
        if seen is None:
            raise ParameterError("only metrics of the positional family have utilities")
        values = seen.utilities(self._data()).reshape(len(self.labels), -1)
        return self.probabilities @ np.nan_to_num(values, nan=0.0)

    def mean_graph(self, *, normalize: bool = False) -> FloatArray:
        """Return the mean preference graph, shape (n, n); labels give ``(y_i - y_j)_+``.

        Normalised, every graph is divided by its total weight first.
        """
        graphs = self.labels
        if graphs.ndim == 2:
            graphs = np.maximum(graphs[:, :, None] - graphs[:, None, :], 0.0)
        if normalize:
            total = graphs.sum(axis=(1, 2), keepdims=True)
            graphs = graphs / np.where(total > 0, total, 1.0)
        return np.einsum("m,mij->ij", self.probabilities, graphs)

    def order_values(self, metric: Any, scores: ArrayLike) -> FloatArray:
        """Return a metric of every label vector under every row of scores, shape (m, rows)."""
        return self._values(as_metric(metric), self._score_rows(scores))

    def expected_values(self, metric: Any, scores: ArrayLike) -> FloatArray:
        """Return the expected value of a metric for every row of scores, shape (rows,)."""
        measure, p = as_metric(metric), self.probabilities
        values = self._values(measure, self._score_rows(scores))
        filled = {"zero": 0.0, "one": 1.0}.get(measure.empty)
        if filled is not None:
            return p @ np.where(np.isnan(values), filled, values)
        defined = ~np.isnan(values[:, 0])
        total = p[defined].sum()
        return p[defined] @ values[defined] / total if total > 0 else np.full(len(values.T), np.nan)

    def _scores(self, scores: ArrayLike) -> FloatArray:
        column = as_floats(scores, "scores")
        return self._score_rows(column[None])[0]

    def _score_rows(self, scores: ArrayLike) -> FloatArray:
        rows = read_table(scores, "scores")
        if rows.ndim != 2 or rows.shape[1] != self.n_items:
            given = rows.shape[1] if rows.ndim == 2 else f"an array of shape {rows.shape}"
            raise DataError(f"scores are one per item, {self.n_items}; got {given}")
        return rows

    def _data(self) -> RankingData:
        if self.labels.ndim == 3:
            raise ParameterError("utilities need label vectors; this is a distribution of graphs")
        return repeated(self.labels)

    def _values(self, measure: AbstractMetric, scores: FloatArray) -> FloatArray:
        """Return the value of each label vector under each row of scores, shape (m, rows)."""
        m, n = self.labels.shape[:2]
        at_once = max(_ROWS_AT_ONCE // (m * n), 1)
        parts = []
        for first in range(0, len(scores), at_once):
            block = scores[first : first + at_once]
            bound, groups = self._bound(measure, len(block))
            ranked = Ranked(np.ascontiguousarray(np.tile(block.ravel(), m)), groups)
            parts.append(bound.per_query(ranked).reshape(m, len(block)))
        return np.concatenate(parts, axis=1)

    def _bound(self, measure: AbstractMetric, times: int) -> tuple[AbstractBoundMetric, Groups]:
        if self.labels.ndim == 2:
            if getattr(measure, "preferences", None) is not None:
                raise _in_place_of_labels(measure.name)
            data = repeated(self.labels, times)
            return measure.bind(data), data.groups
        if not isinstance(measure, PairwiseDisagreement):
            raise ParameterError(
                f"{measure.name} needs labels; pairwise_disagreement is the metric of graphs"
            )
        graphs = repeated_graphs(self.labels, times)
        data = RankingData(np.zeros(graphs.n_rows), graphs.groups)
        return replace(measure, preferences=graphs).bind(data), data.groups


def nature_of(objective: AbstractObjective) -> Nature:
    """Return the properties of the inner risks of an objective, for all parts of a mix.

    Weights that depend on the ranking jump with it, so such a risk is neither smooth nor convex.
    """
    parts = _leaves(objective)
    fixed = all(part.gradient == "exact" for part in parts)
    losses = [getattr(part, "loss", None) for part in parts]
    return Nature(
        objective.shift_invariant,
        fixed and all(getattr(loss, "differentiable", True) for loss in losses),
        fixed and all(_is_convex(part) for part in parts),
        all(_sums_hinges(part) for part in parts),
    )


def _is_convex(template: AbstractObjective) -> bool:
    """Whether the loss is convex in the scores; of a plugin's template this is not known."""
    if not is_ours(type(template)) or isinstance(template, SigmoidSoftmax):
        return False
    outer = getattr(template, "g", None)
    return getattr(getattr(template, "loss", None), "convex", True) and outer in (None, Expm1())


@functools.lru_cache(maxsize=16)
def all_orders(n: int) -> IntArray:
    """Return every order of n items, shape (n!, n)."""
    return np.array(list(itertools.permutations(range(n))), dtype=np.int64)


def _in_place_of_labels(name: str) -> ParameterError:
    return ParameterError(
        f"{name} holds preferences of other rows, which would count in place of the labels; leave "
        "them out, or make a distribution of graphs"
    )


def _of_length(risk: Risk, n: int) -> Risk:
    """Return a risk that validates the number of scores, which kernels do not check."""

    def checked(scores: FloatArray) -> tuple[float, FloatArray]:
        column = scores if type(scores) is np.ndarray else as_floats(scores, "scores")
        if column.shape != (n,):
            raise DataError(f"scores are one per item, {n}; got an array of shape {column.shape}")
        return risk(column)

    return checked


def _leaves(objective: AbstractObjective) -> list[AbstractObjective]:
    if not isinstance(objective, Mix):
        return [objective]
    return [leaf for part in objective.parts for leaf in _leaves(part)]


def _sums_hinges(part: AbstractObjective) -> bool:
    if not isinstance(part, Comparison | Bipartite | Pairwise) or part.loss != Hinge():
        return False
    return not isinstance(part, Comparison) or part.margin == 0.0


def repeated(labels: FloatArray, times: int = 1) -> RankingData:
    """Return data in which every label vector is a query, ``times`` in a row."""
    m, n = labels.shape
    groups = Groups(np.arange(0, m * times * n + 1, n, dtype=np.int64))
    return RankingData(np.repeat(labels, times, axis=0).ravel(), groups)
