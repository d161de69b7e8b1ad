"""Softmax losses whose scores stand for probabilities or expected labels."""

from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.errors import ParameterError
from gbmrank.kernels.jit import compiler
from gbmrank.kernels.layout import ItemTerms
from gbmrank.losses.utilities import AbstractUtility, IdentityUtility
from gbmrank.numerics import expit
from gbmrank.objectives.base import (
    AbstractBound,
    AbstractObjective,
    BoundSums,
    HessianTrait,
    constant_hessian,
    query_scale,
)
from gbmrank.objectives.pointwise import (
    check_not_negative,
    read_signs,
    read_utilities,
    with_options,
)
from gbmrank.types import FloatArray


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SigmoidSoftmax(AbstractObjective):
    r"""Softmax over log-probabilities: listwise, and compatible with the logistic loss.

    .. math::
        L = -\sum_i u_i \log \frac{p_i}{\sum_j p_j}, \qquad p = \sigma(s)

    The best p are proportional to the expected utility. The loss alone leaves the factor open;
    the logistic loss settles it, and pulls towards the same point: ``rcr``, the sum of both, ranks
    like a softmax while ``inverse_link`` of its scores is the probability of relevance.

    Parameters
    ----------
    target : utility, default=identity
        What an item is worth; at least 0.
    hessian : {"auto", "exact", "expected", "constant"}, default="auto"
        ``auto`` means ``expected``, which leaves out a part of the diagonal that may be negative
        and whose mean is zero at the minimum.

    References
    ----------
    Bai, Jagerman, Qin, Yan, Kar, Lin, Wang, Bendersky and Najork, "Regression compatible listwise
    objectives for calibrated ranking with binary relevance", CIKM 2023.
    """

    target: AbstractUtility = field(
        default=IdentityUtility(), metadata={"kind": "utility", "shown": True}
    )
    threshold: float | None = None

    name: ClassVar[str] = "sigmoid_softmax"
    formula: ClassVar[str] = "-sum_i u_i log(p_i / sum_j p_j), p = sigmoid(s)"
    cost: ClassVar[str] = "O(n)"
    reference: ClassVar[str] = "Bai et al. 2023"

    def __post_init__(self) -> None:
        super(SigmoidSoftmax, self).__post_init__()
        object.__setattr__(self, "target", with_options(self.target, None, self.threshold))
        object.__setattr__(self, "threshold", None)
        if self.hessian == "majorise":
            raise ParameterError(
                "sigmoid_softmax: no bound of the Hessian is known; use hessian=auto"
            )

    @property
    def hessian_trait(self) -> HessianTrait:
        """What the returned Hessian is."""
        traits: dict[str, HessianTrait] = {"exact": "exact", "constant": "constant"}
        return traits.get(self.hessian, "expected")

    def bind(self, data: RankingData) -> AbstractBound:
        """Compute utilities."""
        kernels, exact = compiler.load("closed.lists"), self.hessian == "exact"
        items = _items(self, data, 0.0)
        return BoundSums(
            data.groups,
            30.0 * data.groups.sizes + 20.0,
            lambda span, scores, out: kernels.sigmoid_gradients(items, span, scores, exact, out),
            lambda span, scores, out: kernels.sigmoid_values(items, span, scores, out),
            constant_hessian(self.hessian, data),
        )

    def inverse_link(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities; right up to a factor, which the logistic loss settles."""
        return expit(scores)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedSoftmax(AbstractObjective):
    r"""Softmax with one more item in every query, whose score is always 0.

    .. math::
        L = -\sum_i u_i (s_i - \log Z) + u_0 \log Z, \qquad Z = 1 + \sum_j e^{s_j}

    Without the anchor :math:`u_0`, scores of a softmax have no zero. With it the best score is the
    logarithm of the expected utility over the anchor, so scores of different queries can be
    compared.

    Parameters
    ----------
    target : utility, default=identity
        What an item is worth; at least 0.
    anchor : float, default=1
        Utility of the item that is added to every query. An expected utility of this is
        score 0.
    hessian : {"auto", "exact", "majorise", "constant"}, default="auto"
        ``auto`` means ``exact``.

    References
    ----------
    Yan, Qin, Wang, Bendersky and Najork, "Scale calibration of deep ranking models", KDD 2022.
    """

    target: AbstractUtility = field(
        default=IdentityUtility(), metadata={"kind": "utility", "shown": True}
    )
    anchor: float = 1.0
    threshold: float | None = None

    name: ClassVar[str] = "calibrated_softmax"
    formula: ClassVar[str] = "-sum_i u_i (s_i - log Z) + anchor log Z, Z = 1 + sum_j e^s_j"
    cost: ClassVar[str] = "O(n)"
    reference: ClassVar[str] = "Yan et al. 2022"

    def __post_init__(self) -> None:
        super(CalibratedSoftmax, self).__post_init__()
        object.__setattr__(self, "target", with_options(self.target, None, self.threshold))
        object.__setattr__(self, "threshold", None)
        if not 0 < self.anchor < np.inf:
            raise ParameterError(
                f"calibrated_softmax: anchor must be above 0 and finite, got {self.anchor}"
            )
        if self.hessian == "expected":
            raise ParameterError("calibrated_softmax: hessian is exact, majorise or constant")

    @property
    def hessian_trait(self) -> HessianTrait:
        """What the returned Hessian is."""
        traits: dict[str, HessianTrait] = {"majorise": "bound", "constant": "constant"}
        return traits.get(self.hessian, "exact")

    def bind(self, data: RankingData) -> AbstractBound:
        """Compute utilities."""
        kernels, majorise = compiler.load("closed.lists"), self.hessian == "majorise"
        items = _items(self, data, self.anchor)
        return BoundSums(
            data.groups,
            20.0 * data.groups.sizes + 20.0,
            lambda span, scores, out: kernels.softmax_gradients(items, span, scores, majorise, out),
            lambda span, scores, out: kernels.softmax_values(items, span, scores, False, out),
            constant_hessian(self.hessian, data),
        )

    def inverse_link(self, scores: FloatArray) -> FloatArray:
        """Return the expected utility that a score stands for: for labels 0 and 1, the chance."""
        with np.errstate(over="ignore"):
            return self.anchor * np.exp(scores)


def _items(
    objective: SigmoidSoftmax | CalibratedSoftmax, data: RankingData, anchor: float
) -> ItemTerms:
    utilities = read_signs(read_utilities(objective.target, data), objective.target, 1.0)
    check_not_negative(objective.name, utilities, objective.target, data, "query_rmse")
    undefined = np.isnan(utilities[data.groups.offsets[:-1]])
    scale = np.where(undefined, 0.0, query_scale(data, objective.normalize))
    anchors = np.full(len(scale), anchor)
    return ItemTerms(
        data.groups.offsets, np.nan_to_num(utilities, nan=0.0), anchors, scale, np.empty(0)
    )
