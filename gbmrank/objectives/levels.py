"""Objectives over pairs of unequal labels or over edges of graphs: comparison and bipartite."""

from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from gbmrank.data.preferences import PreferenceGraphs, preferences_for
from gbmrank.data.queries import RankingData
from gbmrank.data.query_order import query_sums, rows_by_value
from gbmrank.errors import LabelRangeError, ParameterError
from gbmrank.kernels.jit import compiler
from gbmrank.kernels.layout import EdgeQueries, LevelQueries
from gbmrank.losses import AbstractLoss, Logistic
from gbmrank.losses.gains import binarise
from gbmrank.losses.utilities import Form
from gbmrank.objectives.base import (
    AbstractBound,
    AbstractObjective,
    BoundSums,
    HessianTrait,
    constant_hessian,
    query_scale,
)
from gbmrank.objectives.pair_sums import (
    LEVELS,
    BoundPairs,
    check_engine,
    linear_accuracy,
    pair_curvature,
)
from gbmrank.objectives.step_weights import Weights, check_weights, step_weights, weights_form
from gbmrank.types import FloatArray, IntArray

_COUNTS_WINS = (
    "it counts how often an item wins a comparison, not what it is worth: an item that often wins "
    "narrowly beats one that is worth more"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(AbstractObjective):
    r"""Loss over all pairs of items with different labels.

    .. math::
        L = \sum_{y_i > y_j} w_i\, \varphi(s_i - s_j)

    RankNet (logistic), RankSVM (hinge) and RankBoost (exponential) are of this form. It
    only compares labels, so any real labels are allowed. It does not preserve the order of
    expected utilities: an item that often wins narrowly beats one that seldom wins by
    much. Zero for a query with one item or with equal labels.

    With preferences the sum runs over their edges, :math:`\sum_{i \to j} A_{ij}\,
    \varphi(s_i - s_j - h)`, and is not consistent for pairwise disagreement even under low
    noise (Duchi et al. 2010, Thms. 11 and 12).

    Item weights are supported: the weight of the preferred item multiplies a pair.

    Parameters
    ----------
    weights : "none", "gain_discount" or tuple of float, default="none"
        Factor of a pair: 1, or the gain of the better item times the discount of the best
        rank it can have, :math:`(2^{y_i} - 1) / \log_2(2 + \#\{y > y_i\})`. Other gains and
        discounts and a cut-off are options: ``gain_discount(gain=linear, k=10)``. A table has the
        factors of that rank, zero beyond its end.
    margin : float or "weight", default=0
        Margin h by which the better item should lead: a number, or ``"weight"`` for the weight
        of the edge (the difference of the labels), which then does not multiply the loss too.
        With a margin all pairs are listed in memory.

    References
    ----------
    Burges et al., "Learning to rank using gradient descent", ICML 2005. Weights: Chen, Liu,
    Lan, Ma and Li, "Ranking measures and loss functions in learning to rank", NIPS 2009.
    """

    loss: AbstractLoss = field(default=Logistic(), metadata={"kind": "loss", "shown": True})
    weights: Weights = field(default="none", metadata={"nested": "weights"})
    normalize: str = "items"
    engine: str = "auto"
    margin: float | str = 0.0
    preferences: PreferenceGraphs | None = field(default=None, metadata={"data": True})

    name: ClassVar[str] = "comparison"
    formula: ClassVar[str] = "sum over y_i > y_j of w_i phi(s_i - s_j)"
    cost: ClassVar[str] = "O(pairs), O(n) for long queries"
    reference: ClassVar[str] = "Burges et al. 2005; weights: Chen et al. 2009"
    shift_invariant: ClassVar[bool] = True
    item_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super(Comparison, self).__post_init__()
        check_weights(self.name, self.weights)
        _check_edges(self)
        check_pair_loss(self.name, self.loss, self.hessian)
        check_engine(self.name, self.loss, self.hessian, self.engine)

    @property
    def hessian_trait(self) -> HessianTrait:
        """What the returned Hessian is."""
        return pair_curvature(self.name, self.loss, self.hessian).trait

    @property
    def label_form(self) -> Form:
        """That of the gain among the weights, if there is one."""
        return weights_form(self.weights)

    @property
    def why_unsorted(self) -> str:
        """It counts comparisons."""
        if self.relevant_weight == 0.0:
            return (
                "its weights are zero for every pair of 0/1 labels, so it does not order such items"
            )
        return _COUNTS_WINS

    @property
    def relevant_weight(self) -> float:
        """Weight of every pair of a relevant and another item, where labels are 0 and 1."""
        try:
            first = step_weights(self.name, self.weights, np.ones(1), np.ones(1, np.int64))
        except LabelRangeError:  # a table of gains that ends before 1
            return 0.0
        return float(first[0])

    @property
    def accuracy(self) -> float | None:
        """Largest relative error of the linear-time engine; edges are visited one by one."""
        if self.preferences is not None or self.margin != 0.0:
            return None
        return linear_accuracy(LEVELS, self.loss, self.hessian, self.engine)

    def bind(self, data: RankingData) -> AbstractBound:
        """Sort each query by label, or list its edges."""
        data, items = data.split_weight()
        scale = query_scale(data, self.normalize)
        graphs = preferences_for(self.preferences, data)
        if graphs is None:
            graphs = PreferenceGraphs(data.groups, None, data.labels, self.margin == "weight")
        if graphs.levels is None or graphs.by_difference or self.margin != 0.0:
            edges = _edge_queries(graphs, self.margin, scale)
            if items is not None:
                edges = edges._replace(weight=edges.weight * items[edges.winner])
            return _bound_edges(self, data, edges)
        weights = np.ones(len(graphs.levels))
        order = rows_by_value(graphs.levels, data.groups)
        if self.weights != "none":
            levels = graphs.levels[order]
            weights = step_weights(self.name, self.weights, levels, _best_ranks(levels, data))
        if items is not None:
            weights = weights * items[order]
        columns = (graphs.levels[order], weights, scale)
        return BoundPairs(self, LEVELS, data, LevelQueries(data.groups.offsets, order, *columns))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bipartite(AbstractObjective):
    r"""Mean loss over all pairs of a relevant and an irrelevant item.

    .. math::
        L = \frac{1}{P N} \sum_{y_i = 1} \sum_{y_j = 0} \kappa(s_i - s_j), \qquad
        \kappa(d) = \tfrac12 [\ell_1(d) + \ell_{-1}(-d)]

    Zero for a query with only one class.

    Parameters
    ----------
    normalize : {"none", "items", "pairs"}, default="items"
        ``none`` and ``pairs`` are the formula above; ``items`` multiplies it by the number of
        items, so that the curvature of a row is of order one.

    References
    ----------
    Menon and Williamson, "Bayes-optimal scorers for bipartite ranking", COLT 2014.
    """

    loss: AbstractLoss = field(default=Logistic(), metadata={"kind": "loss", "shown": True})
    threshold: float | None = None
    normalize: str = "items"
    engine: str = "auto"

    name: ClassVar[str] = "bipartite"
    formula: ClassVar[str] = "mean over (relevant i, other j) of kappa(s_i - s_j)"
    cost: ClassVar[str] = "O(P N), O(n) for long queries"
    reference: ClassVar[str] = "Menon and Williamson 2014"
    shift_invariant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super(Bipartite, self).__post_init__()
        check_pair_loss(self.name, self.loss, self.hessian)
        check_engine(self.name, self.loss, self.hessian, self.engine)

    @property
    def label_form(self) -> Form:
        """Relevant or not."""
        return Form("step", self.threshold)

    @property
    def why_unsorted(self) -> str:
        """It counts comparisons."""
        return _COUNTS_WINS

    @property
    def hessian_trait(self) -> HessianTrait:
        """What the returned Hessian is."""
        return pair_curvature(self.name, self.loss, self.hessian).trait

    @property
    def accuracy(self) -> float | None:
        """Largest relative error of the linear-time engine."""
        return linear_accuracy(LEVELS, self.loss, self.hessian, self.engine)

    def bind(self, data: RankingData) -> AbstractBound:
        """Sort each query by relevance."""
        binary, positives, negatives = binary_counts(data, self.threshold)
        pairs = positives * negatives
        scale = query_scale(data, "none") / np.where(pairs > 0, pairs, np.inf)
        if self.normalize == "items":
            scale = scale * data.groups.sizes
        order = rows_by_value(binary, data.groups)
        columns = (binary[order], np.ones(len(binary)), scale)
        return BoundPairs(self, LEVELS, data, LevelQueries(data.groups.offsets, order, *columns))


def check_pair_loss(owner: str, loss: AbstractLoss, hessian: str) -> None:
    """Raise ParameterError unless a loss is a function of the margin alone."""
    advice = {"difference": "use squared_margin", "none": "use squared_hinge"}
    if loss.pair_form in advice:
        raise ParameterError(
            f"{owner}: the loss {loss.name} has no margin form here; {advice[loss.pair_form]}"
        )
    pair_curvature(owner, loss, hessian)


def binary_counts(
    data: RankingData, threshold: float | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return labels as 0 and 1, and the number of ones and zeros of each query."""
    binary = binarise(data.labels, threshold, data.groups)
    positives = query_sums(binary, data.groups)
    return binary, positives, data.groups.sizes - positives


def _check_edges(objective: Comparison) -> None:
    """Raise ParameterError for an invalid margin, or for options that edges do not support."""
    margin = objective.margin
    if margin != "weight" and not (isinstance(margin, int | float) and np.isfinite(margin)):
        raise ParameterError(
            f"comparison: margin must be a finite number or weight, got {margin!r}"
        )
    listed = objective.preferences is not None or margin != 0.0
    if listed and (objective.weights != "none" or objective.engine not in ("auto", "pairs")):
        raise ParameterError(
            "comparison: with preferences or a margin the edges are visited one by one, with their "
            "own weights; leave out weights= and engine="
        )


def _edge_queries(graphs: PreferenceGraphs, margin: float | str, scale: FloatArray) -> EdgeQueries:
    """List edges of graphs or pairs of levels; with ``margin="weight"`` a weight counts once."""
    edges = graphs.to_edges()
    weight, margins = np.array(edges.weight), np.empty(0)
    if margin == "weight":
        weight, margins = np.ones(len(weight)), weight
    elif margin != 0.0:
        margins = np.full(len(weight), float(margin))
    return EdgeQueries(
        rows=graphs.groups.offsets,
        offsets=np.array(edges.offsets),  # copies: kernels are compiled for arrays one may write to
        winner=np.array(edges.winner),
        loser=np.array(edges.loser),
        weight=weight,
        margin=margins,
        scale=scale,
    )


def _bound_edges(objective: Comparison, data: RankingData, edges: EdgeQueries) -> AbstractBound:
    """Bind every edge of every query, always in float64."""
    curvature = pair_curvature(objective.name, objective.loss, objective.hessian)
    params, kernels = objective.loss.params, compiler.load("pairs.sums", phi=curvature.phi)
    return BoundSums(
        data.groups,
        10.0 * np.diff(edges.offsets) + data.groups.sizes + 20.0,
        lambda span, scores, out: kernels.edge_gradients(edges, span, scores, params, out),
        lambda span, scores, out: kernels.edge_values(edges, span, scores, params, out),
        constant_hessian(objective.hessian, data),
        curvature.factor,
    )


def _best_ranks(labels: FloatArray, data: RankingData) -> IntArray:
    """Return the best rank each item can have, from 1; labels best first."""
    offsets = data.groups.offsets
    position = np.arange(len(labels)) - data.groups.spread(offsets[:-1])
    new_level = np.ones(len(labels), dtype=bool)
    new_level[1:] = labels[1:] != labels[:-1]
    new_level[offsets[:-1]] = True
    better = np.maximum.accumulate(np.where(new_level, np.arange(len(labels)), 0))
    return np.asarray(1 + position[better], np.int64)
