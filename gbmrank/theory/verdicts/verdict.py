"""Verdicts on an objective and a metric, as frozen data.

The condition of a verdict is an object that can be tested on data or on a distribution.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy as np

from gbmrank.data.columns import read_table
from gbmrank.data.queries import RankingData
from gbmrank.errors import ParameterError
from gbmrank.losses.gains import binarise
from gbmrank.theory.distributions import repeated
from gbmrank.theory.noise import (
    Answer,
    degree_condition,
    independence,
    net_degree,
    reinforces,
    sorts_preferences,
)
from gbmrank.types import ArrayLike, FloatArray

Status = Literal["calibrated", "conditional", "not calibrated", "unknown"]


@dataclass(frozen=True, slots=True)
class AbstractCondition(ABC):
    """Condition of a verdict; ``holds`` takes a Distribution, or data if possible."""

    @abstractmethod
    def holds(self, where: Any) -> bool:
        """Return whether the condition holds on a Distribution or on RankingData."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the condition in plain words."""


@final
@dataclass(frozen=True, slots=True)
class Constant:
    """The constant c of ``R* - R <= c C_phi(2) sqrt(L - L*)``."""

    text: str  #: its formula
    factor: float  #: number in front
    power: float = 0.0  #: power of the bound of the utilities in it
    #: quantity that is bounded: nothing, the utilities that the loss supports (eta), the largest
    #: expected utility, or their sum over a query
    of: Literal["none", "eta", "largest", "sum"] = "none"

    def value(self, bound: float = 1.0) -> float:
        """Return c for utilities bounded by this number.

        Examples
        --------
        >>> Constant("2 sqrt(max U)", 2.0, 0.5, "largest").value(4.0)
        4.0
        """
        return float(self.factor * bound**self.power)

    def __str__(self) -> str:
        return self.text


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether minimising an objective maximises a metric."""

    #: on every distribution; on those that meet ``condition``; not on every one, as
    #: ``counterexample`` shows; or no answer
    status: Status
    condition: AbstractCondition | None  #: the condition, an object with a test
    constant: Constant | None  #: the constant c of the regret bound, where one is known
    reference: str  #: where it is proven
    sentence: str  #: the verdict in plain words
    counterexample: Any = None  #: A distribution on which the minimiser ranks suboptimally
    #: whether one surrogate regret suffices for a given regret of the metric on all distributions
    #: (that meet the condition), with the reason in ``.reason``; None without calibration
    uniform: Answer | None = None

    def __bool__(self) -> bool:
        """Return whether the objective is calibrated on every distribution."""
        return self.status == "calibrated"

    def __str__(self) -> str:
        return f"{self.status}: {self.sentence} [{self.reference}]"

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data, for JSON."""
        return {
            "status": self.status,
            "condition": None if self.condition is None else str(self.condition),
            "constant": None if self.constant is None else str(self.constant),
            "reference": self.reference,
            "sentence": self.sentence,
            "uniform": None if self.uniform is None else self.uniform.reason,
            "counterexample": self.counterexample and self.counterexample.as_dict(),
        }


def unknown(sentence: str) -> Verdict:
    """Return the verdict that nothing is known, for this reason."""
    return Verdict("unknown", None, None, "none of the papers", sentence)


@final
@dataclass(frozen=True, slots=True)
class BinaryLabels(AbstractCondition):
    """All labels are 0 or 1."""

    def holds(self, where: Any) -> bool:
        """Test every label.

        Examples
        --------
        >>> BinaryLabels().holds(RankingData.from_arrays([0, 1, 2]))
        False
        """
        return bool(np.all(np.isin(where.labels, (0.0, 1.0))))

    def __str__(self) -> str:
        return "labels are 0 and 1"


@final
@dataclass(frozen=True, slots=True)
class MaxItems(AbstractCondition):
    """No query is longer than n items."""

    n: int  #: largest number of items

    def holds(self, where: Any) -> bool:
        """Test the longest query."""
        if isinstance(where, RankingData):
            return where.groups.longest <= self.n
        return int(where.labels.shape[1]) <= self.n

    def __str__(self) -> str:
        return f"no query has more than {self.n} items"


@final
@dataclass(frozen=True, slots=True)
class LabelsFrom(AbstractCondition):
    """No label is below a number."""

    low: float  #: the smallest label

    def holds(self, where: Any) -> bool:
        """Test every label."""
        return bool(np.all(where.labels >= self.low))

    def __str__(self) -> str:
        return f"no label is below {self.low:g}"


@final
@dataclass(frozen=True, slots=True)
class LabelsUpTo(AbstractCondition):
    """No label is above a number."""

    high: float  #: the largest label

    def holds(self, where: Any) -> bool:
        """Test every label."""
        return bool(np.all(where.labels <= self.high))

    def __str__(self) -> str:
        return f"no label is above {self.high:g}"


def _no_contradiction(where: Any) -> bool:  # noqa: ARG001
    return True


@final
@dataclass(frozen=True, slots=True)
class Assumed(AbstractCondition):
    """An assumption about user-defined parts that no proof covers."""

    words: str  #: the assumption
    #: tests a Distribution or RankingData; True if there is no contradiction. By default nothing
    #: contradicts it: a grid did not, and labels say nothing about a loss
    check: Callable[[Any], bool] = field(default=_no_contradiction, compare=False)

    def holds(self, where: Any) -> bool:
        """Return whether the check finds no contradiction."""
        return bool(self.check(where))

    def __str__(self) -> str:
        return self.words


@final
@dataclass(frozen=True, slots=True)
class AllOf(AbstractCondition):
    """Several conditions at once."""

    parts: tuple[AbstractCondition, ...]  #: at least two

    def holds(self, where: Any) -> bool:
        """Return whether every one holds."""
        return all(part.holds(where) for part in self.parts)

    def __str__(self) -> str:
        return ", and ".join(map(str, self.parts))


def all_of(*conditions: AbstractCondition | None) -> AbstractCondition | None:
    """Return one condition for several, of which some may be None."""
    there = tuple(each for each in conditions if each is not None)
    return AllOf(there) if len(there) > 1 else there[0] if there else None


@final
@dataclass(frozen=True, slots=True)
class IndependentLabels(AbstractCondition):
    """The labels of items, or their relevance, are independent within a query given the features.

    Menon and Williamson, "Bayes-optimal scorers for bipartite ranking", COLT 2014.
    """

    #: Labels of at least this are relevant; without one, labels are 0 and 1
    threshold: float | None = None
    #: largest difference from the product of the marginal probabilities
    tolerance: float = field(default=1e-12, compare=False)
    graded: bool = False  #: whether labels may be any numbers, and are independent themselves

    def holds(self, where: Any) -> bool:
        """Compare the joint probability of every label vector with the product."""
        labels, probabilities = _finite(where)
        if self.threshold is not None:
            labels = (labels >= self.threshold).astype(np.float64)
        elif not self.graded and not BinaryLabels().holds(where):
            return False
        vectors, index = np.unique(labels, axis=0, return_inverse=True)
        joint = np.bincount(index.ravel(), weights=probabilities)
        product = np.ones(len(vectors))
        for column in vectors.T:
            _, label = np.unique(column, return_inverse=True)
            product *= np.bincount(label, weights=joint)[label]
        missing = 1.0 - float(product.sum())
        return bool(np.abs(joint - product).max() <= self.tolerance and missing <= self.tolerance)

    def estimate(self, judgments: ArrayLike, *, group: ArrayLike | None = None) -> Answer:
        """Test it on repeated judgments; see :func:`gbmrank.theory.independence`.

        Parameters
        ----------
        judgments : array-like of shape (n_rows, n_judges)
            Labels by judge.
        group : array-like of shape (n_queries,), optional
            Rows per query; nothing means one query.
        """
        if not self.graded:
            return independence(judgments, group=group, threshold=self.threshold)
        steps = np.unique(read_table(judgments, "judgments"))[1:]
        answers = [
            independence(judgments, group=group, threshold=step, level=0.01 / len(steps))
            for step in steps.tolist()
        ]
        return next((one for one in answers if not one), Answer(True))

    def __str__(self) -> str:
        if self.graded:
            return "the labels of a query's items are independent given their features"
        if self.threshold is not None:
            return (
                f"labels of at least {self.threshold:g} come independently to a query's items, "
                "given their features"
            )
        return "the 0/1 labels of a query's items are independent given their features"


@final
@dataclass(frozen=True, slots=True)
class Reinforcement(AbstractCondition):
    """Reinforcement property of the mean of ``y_i y_j / P``.

    ``U_ii >= U_jj`` implies ``U_ii >= U_jj + sum_{g not in {i, j}} (U_jg - U_ig)_+``.


    Ramaswamy, Agarwal and Tewari, NIPS 2013, Theorem 4 and Corollary 5.
    """

    #: Labels of at least this are relevant; without one, labels are 0/1 or -1/+1
    threshold: float | None = None

    def holds(self, where: Any) -> bool:
        """Test the mean matrix of a distribution, or a matrix."""
        mean = where if isinstance(where, np.ndarray | list) else self.mean(where)
        return bool(reinforces(mean))

    def mean(self, where: Any) -> FloatArray:
        """Return the mean of ``y y' / P`` over a distribution of labels."""
        labels, probabilities = _finite(where)
        data = repeated(labels)
        relevant = binarise(data.labels, self.threshold, data.groups).reshape(labels.shape)
        positives = np.maximum(relevant.sum(axis=1), 1.0)
        return np.einsum("m,mi,mj->ij", probabilities / positives, relevant, relevant)

    def __str__(self) -> str:
        return "the distribution has the reinforcement property (Ramaswamy et al. 2013, Thm 4)"


@final
@dataclass(frozen=True, slots=True)
class DegreeCondition(AbstractCondition):
    """Net degrees order every pair like the mean preference graph.

    ``A_ij > A_ji`` implies ``f_i > f_j`` with ``f_i = sum_j (A_ij - A_ji)``, and the difference
    graph has no cycle. Low noise implies it; graphs made of labels always meet it.


    Duchi, Mackey and Jordan, ICML 2010, Theorem 13 and Lemma 14.
    """

    #: whether graphs are divided by their total weights in the mean, as in the normalised metric;
    #: net degrees are those of the original graphs
    normalize: bool = False

    def holds(self, where: Any) -> bool:
        """Test the mean graph of a distribution, or a matrix."""
        if isinstance(where, np.ndarray | list):
            return bool(degree_condition(where))
        raw = mean_graph(where, normalize=False)
        mean = mean_graph(where, normalize=self.normalize)
        size = len(raw) * float(np.abs(where.labels).max(initial=0.0))
        return bool(sorts_preferences(mean, net_degree(raw), size))

    def __str__(self) -> str:
        over = ", over total weights," if self.normalize else ""
        return f"net degrees order pairs as the mean preference graph{over} does"


@final
@dataclass(frozen=True, slots=True)
class SortsPreferences(AbstractCondition):
    """The expected f orders every pair like the mean preferences: the distributions P_f.

    Ramaswamy, Agarwal and Tewari, NIPS 2013, Theorem 6.

    Examples
    --------
    >>> from gbmrank import theory
    >>> squares = SortsPreferences(lambda data: data.labels**2)
    >>> squares.holds(theory.Distribution([[3, 0], [0, 2]], [0.5, 0.5]))
    True
    >>> squares.holds(theory.Distribution([[3, 0], [0, 2]], [0.35, 0.65]))
    False
    """

    #: the function f: from RankingData to one value per row
    f: Callable[[RankingData], FloatArray] = field(compare=False)
    #: whether preferences are divided by their total weight, as in the normalised metric
    normalize: bool = False

    def holds(self, where: Any) -> bool:
        """Test the mean preferences of a distribution of labels against the expected f."""
        labels, probabilities = _finite(where)
        values = np.nan_to_num(self.f(repeated(labels)).reshape(labels.shape), nan=0.0)
        mean = mean_graph(where, normalize=self.normalize)
        size = float(np.abs(values).max(initial=0.0))
        return bool(sorts_preferences(mean, probabilities @ values, size))

    def __str__(self) -> str:
        return "it orders every pair of items as their mean preference does"


def _finite(where: Any) -> tuple[FloatArray, FloatArray]:
    if not hasattr(where, "probabilities") or where.labels.ndim != 2:
        raise ParameterError(
            "this condition is about the distribution of labels given features, which data do not "
            "show; test it on a theory.Distribution of label vectors"
        )
    return np.asarray(where.labels), np.asarray(where.probabilities)


def mean_graph(where: Any, *, normalize: bool) -> FloatArray:
    """Return the mean graph of a distribution; raise for data, which do not show it."""
    if not hasattr(where, "mean_graph"):
        raise ParameterError("data do not show the mean graph; test it on a theory.Distribution")
    mean: FloatArray = where.mean_graph(normalize=normalize)
    return mean
