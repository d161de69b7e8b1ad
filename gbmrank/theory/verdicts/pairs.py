"""Verdicts of pairs of a surrogate that is fitted by least squares and a decoder.

Squared error estimates the expectation of whatever it is fitted to; what that is worth depends on
how a ranking is decoded from it. The rankers ``PairRanker`` and ``LowRankRanker`` describe
themselves by a :class:`Decoded`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.errors import ParameterError
from gbmrank.kernels.decode.orders import EXACT_AUTO
from gbmrank.metrics import MAP, AbstractMetric, PairwiseDisagreement
from gbmrank.registry.composition import as_objective, text_of
from gbmrank.theory.noise import Answer, difference_graph, is_acyclic, sorts_preferences
from gbmrank.theory.verdicts.verdict import (
    AbstractCondition,
    MaxItems,
    Verdict,
    mean_graph,
    unknown,
)
from gbmrank.types import FloatArray

_R = "Ramaswamy et al. 2013"


@final
class Decoded(NamedTuple):
    """A least-squares surrogate and its decoder, for :func:`gbmrank.theory.calibration`.

    ``surrogate`` says what is fitted: ``disagreement`` (``A_ij - A_ji``), ``map``
    (``y_i y_j / P``), ``metric`` or ``losses`` (all numbers of a metric or a loss matrix), or
    ``f``, a value per item of a graph. ``metric`` is the metric of ``map`` and ``metric``; ``f`` is
    a function of a preference graph, shape (n, n), that returns n values, which are sorted.

    Examples
    --------
    >>> from gbmrank import theory
    >>> wins = Decoded("f", "sort", f=lambda graph: (graph > graph.T).sum(axis=1))
    >>> verdict = theory.calibration(wins, "pairwise_disagreement(normalize=false)", graphs=True)
    >>> verdict.status, verdict.condition.holds(theory.Distribution([[[0, 2], [0, 0]]], [1]))
    ('conditional', True)
    """

    surrogate: str
    decoder: str
    metric: AbstractMetric | None = None
    f: Callable[[FloatArray], FloatArray] | None = None


@final
@dataclass(frozen=True, slots=True)
class AcyclicPreferences(AbstractCondition):
    """The mean preference graph has no cycle once opposite preferences cancel: P_DAG.

    Ramaswamy, Agarwal and Tewari, NIPS 2013, Theorem 7.
    """

    up_to: int = 1  #: queries of up to this many items are decoded exactly, with or without cycles
    #: whether the metric divides graphs by their total weights. What is fitted are the original
    #: graphs; then their mean and the normalised one must prefer the same item of every pair
    normalize: bool = False

    def holds(self, where: Any) -> bool:
        """Test the mean graph of a distribution, or a matrix."""
        if isinstance(where, np.ndarray | list):
            return bool(is_acyclic(difference_graph(where)))
        raw = difference_graph(mean_graph(where, normalize=False))
        if not self.normalize:
            return len(raw) <= self.up_to or bool(is_acyclic(raw))
        normal = difference_graph(mean_graph(where, normalize=True))
        return bool(is_acyclic(raw)) and np.array_equal(raw > 0, normal > 0)

    def __str__(self) -> str:
        short = f"no query has more than {self.up_to} items, or " if self.up_to > 1 else ""
        both = " and is the same over total weights" if self.normalize else ""
        return f"{short}the mean preference of items has no cycle{both}"


@final
@dataclass(frozen=True, slots=True)
class SortsGraphs(AbstractCondition):
    """The expected f of graphs orders every pair like the mean preferences: P_f.

    Ramaswamy, Agarwal and Tewari, NIPS 2013, Theorem 6.
    """

    #: from a graph, shape (n, n), to n values
    f: Callable[[FloatArray], FloatArray] = field(compare=False)
    normalize: bool = False  #: whether graphs are divided by their total weights in the mean

    def holds(self, where: Any) -> bool:
        """Test a distribution of graphs."""
        mean = mean_graph(where, normalize=self.normalize)
        values = np.array([self.f(graph) for graph in where.labels], dtype=np.float64)
        if values.shape != where.labels.shape[:2]:
            raise ParameterError(
                f"f returns one value per item, {where.n_items}; got shape {values.shape[1:]}"
            )
        size = float(np.abs(values).max(initial=0.0))
        return bool(sorts_preferences(mean, where.probabilities @ values, size))

    def __str__(self) -> str:
        return "the expectation of f orders every pair of items as their mean preference does"


def decoded_calibration(
    pair: Decoded,
    measure: AbstractMetric | None,
    graphs: bool,
    of_objective: Callable[[Any, AbstractMetric], Verdict],
) -> Verdict:
    """Return the verdict of a pair; ``of_objective`` returns that of an objective on labels."""
    if measure is None:
        if pair.surrogate == "losses":
            return _exact("the decision of least expected loss is taken", f"{_R}, Thm 3")
        raise ParameterError("calibration needs a metric; only a loss matrix is judged without one")
    if measure.ties not in ("mean", "index"):
        return unknown(f"ties={measure.ties} rewards or punishes ties, which theory leaves out")
    if pair.surrogate == "disagreement" and graphs:
        return _of_graphs(pair, measure)
    if pair.surrogate == "disagreement":
        return _as_objective("query_rmse(target=identity)", measure, of_objective, "Thm 7")
    if pair.surrogate == "map" and not graphs:
        return _of_precision(pair, measure, of_objective)
    return _of_expectations(pair, measure)


def _of_expectations(pair: Decoded, measure: AbstractMetric) -> Verdict:
    if pair.f is not None and isinstance(measure, PairwiseDisagreement):
        condition = SortsGraphs(pair.f, measure.normalize)
        sentence = f"it sorts the expectation of f, which is best when {condition}"
        return Verdict("conditional", condition, None, f"{_R}, Thm 6", sentence)
    if pair.surrogate == "metric" and replace(pair.metric, empty=measure.empty) == measure:  # type: ignore[type-var]
        return _exact(
            f"the order of best expected {measure.name} is decoded from all numbers that it needs",
            f"{_R}, Thm 3",
        )
    goal = pair.surrogate if pair.metric is None else text_of(pair.metric)
    return unknown(f"no result about a surrogate of {goal} and {text_of(measure)}")


def _of_graphs(pair: Decoded, measure: AbstractMetric) -> Verdict:
    if not isinstance(measure, PairwiseDisagreement):
        return unknown(f"{measure.name} needs labels")
    if pair.decoder == "exact" and not measure.normalize:
        return _exact("the order of least expected disagreement is found", f"{_R}, Thm 3")
    exact = pair.decoder == "auto" and not measure.normalize
    condition = AcyclicPreferences(EXACT_AUTO if exact else 1, measure.normalize)
    sentence = f"the graph of mean preferences is decoded, which is best when {condition}"
    reference = f"{_R}, Thm 3 and Thm 7" if exact else f"{_R}, Thm 7"
    return Verdict("conditional", condition, None, reference, sentence)


def _of_precision(
    pair: Decoded, measure: AbstractMetric, of_objective: Callable[[Any, AbstractMetric], Verdict]
) -> Verdict:
    threshold = getattr(pair.metric, "threshold", None)
    if pair.decoder == "diagonal":
        option = "" if threshold is None else f"(threshold={threshold:g})"
        same = f"pointwise(loss=squared, target=map{option})"
        return _as_objective(same, measure, of_objective, "Thm 4")
    own = isinstance(measure, MAP) and measure.k is None and measure.threshold == threshold
    if not own or pair.decoder == "greedy":
        return unknown(f"no result about {measure.name} and the decoder {pair.decoder} of map")
    sentence = "the order of best expected average precision is found"
    if pair.decoder == "exact":
        return _exact(sentence, f"{_R}, Thm 3")
    condition = MaxItems(EXACT_AUTO)
    return Verdict("conditional", condition, None, f"{_R}, Thm 3", f"{sentence} when {condition}")


def _as_objective(
    text: str,
    measure: AbstractMetric,
    of_objective: Callable[[Any, AbstractMetric], Verdict],
    theorem: str,
) -> Verdict:
    """Return the verdict of an objective whose minimisers are in the order that is decoded."""
    found = of_objective(as_objective(text), measure)
    reference, sentence = f"{_R}, {theorem}; {found.reference}", f"as {text}: {found.sentence}"
    return replace(found, constant=None, reference=reference, sentence=sentence)


def _exact(what: str, reference: str) -> Verdict:
    same = Answer(True, reason="a regret is at most 2 max |beta| sqrt(excess), see LowRank.bound")
    sentence = f"{what}, on every distribution"
    return Verdict("calibrated", None, None, reference, sentence, uniform=same)
