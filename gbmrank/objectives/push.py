"""Push objectives: bipartite risks that concentrate on the top of the list."""

from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.data.query_order import rows_by_value
from gbmrank.errors import ParameterError
from gbmrank.kernels.jit import compiler
from gbmrank.kernels.layout import PushQueries
from gbmrank.losses import AbstractLoss, Exponential, Logistic
from gbmrank.losses.convex import AbstractOuter, Power
from gbmrank.losses.utilities import Form
from gbmrank.objectives.base import (
    AbstractBound,
    AbstractObjective,
    BoundSums,
    HessianTrait,
    check_choice,
    constant_hessian,
    query_scale,
)
from gbmrank.objectives.levels import binary_counts, check_pair_loss
from gbmrank.objectives.pair_sums import (
    PUSH,
    BoundPairs,
    check_engine,
    linear_accuracy,
    pair_curvature,
)

_ENGINES = ("auto", "pairs", "closed", "linear")
_P = 4.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Push(AbstractObjective):
    r"""Outer function of each irrelevant item's mean loss against the relevant items.

    .. math::
        L = \frac1N \sum_{y_j = 0} G\Bigl(\frac1P \sum_{y_i = 1} \kappa(s_i - s_j)\Bigr),
        \qquad G(x) = x^p

    An irrelevant item near the top has a large mean loss, and G penalises that more than
    proportionally. Zero for a query with only one class. Convex for p >= 1 and a convex loss
    (for every p > 0 with the exponential loss).

    Parameters
    ----------
    p : float, default=4
        Power of the p-norm push.
    g : outer function or None, default=None
        Another outer function: ``expm1``, or an instance of a subclass of
        ``gbmrank.extend.AbstractOuter``; ``power(p=3)`` is the same as ``p=3``.
    form : {"raw", "log"}, default="raw"
        ``"log"`` takes the logarithm of each query's loss, for the exponential loss: the same
        minimiser for one query, and no overflow.
    normalize : {"none", "items", "pairs"}, default="items"
        ``none`` and ``pairs`` are the formula above; ``items`` multiplies it by the number of
        items, so that the curvature of a row is of order one.

    References
    ----------
    Rudin, "The P-norm push", JMLR 10, 2009. Menon and Williamson, "Bayes-optimal scorers
    for bipartite ranking", COLT 2014, sec. 5.
    """

    loss: AbstractLoss = field(default=Logistic(), metadata={"kind": "loss", "shown": True})
    p: float = field(default=_P, metadata={"shown": True})
    g: AbstractOuter | None = field(default=None, metadata={"kind": "outer"})
    form: str = "raw"
    threshold: float | None = None
    normalize: str = "items"
    engine: str = "auto"

    name: ClassVar[str] = "push"
    formula: ClassVar[str] = "mean over others j of G(mean over relevant i of kappa(s_i - s_j))"
    cost: ClassVar[str] = "O(P N), O(n) for long queries"
    reference: ClassVar[str] = "Rudin 2009; Menon and Williamson 2014, sec. 5"
    shift_invariant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super(Push, self).__post_init__()
        self._settle_power()
        check_choice(self.name, "engine", self.engine, _ENGINES)
        check_choice(self.name, "form", self.form, ("raw", "log"))
        check_pair_loss(self.name, self.loss, self.hessian)
        if self.engine == "linear":
            check_engine(self.name, self.loss, self.hessian, self.engine)
        exponential = self.loss == Exponential() and self.g is None
        if not 0 < self.p < np.inf or (self.p < 1 and not exponential):
            raise ParameterError(
                "push: p must be at least 1 (above 0 for the exponential loss) and finite, got "
                f"{self.p}"
            )
        if self.form == "log" and not (exponential and self.hessian in ("auto", "exact")):
            raise ParameterError(
                "push: form=log is for the exponential loss, its p and its Hessian"
            )
        if self.form == "log" and self.engine not in ("auto", "closed"):
            raise ParameterError(
                f"push: form=log has a closed form only, and engine={self.engine} visits pairs; "
                "leave out engine, or use form=raw"
            )
        if self.engine == "closed" and not exponential:
            raise ParameterError("push: engine=closed is for the exponential loss and its p")
        if self.hessian == "majorise":
            raise ParameterError("push: no bound of the Hessian is known; use hessian=auto")

    def _settle_power(self) -> None:
        """Convert ``g=power(p)`` to ``p``; reject p together with another g, which ignores it."""
        if self.g is None:
            return
        if self.p != _P and self.p != getattr(self.g, "p", None):
            raise ParameterError(
                f"push: p={self.p:g} and g={self.g} are both given, and p is the power where "
                "there is no g; leave out one of them"
            )
        if isinstance(self.g, Power):
            object.__setattr__(self, "p", self.g.p)
            object.__setattr__(self, "g", None)

    @property
    def label_form(self) -> Form:
        """Relevant or not."""
        return Form("step", self.threshold)

    @property
    def hessian_trait(self) -> HessianTrait:
        """What the returned Hessian is."""
        return pair_curvature(self.name, self.loss, self.hessian).trait

    @property
    def accuracy(self) -> float | None:
        """Largest relative error of the linear-time engine."""
        if self._is_closed():
            return None
        return linear_accuracy(PUSH, self.loss, self.hessian, self.engine)

    def _is_closed(self) -> bool:
        """Whether sums over items suffice: the exponential loss with a power."""
        summed = self.loss == Exponential() and self.g is None
        return summed and self.hessian_trait != "expected" and self.engine in ("auto", "closed")

    def bind(self, data: RankingData) -> AbstractBound:
        """Put the relevant items of each query first."""
        binary, positives, negatives = binary_counts(data, self.threshold)
        scale = query_scale(data, "none") * np.where(positives * negatives > 0, 1.0, 0.0)
        if self.normalize == "items":
            scale = scale * data.groups.sizes
        order = rows_by_value(binary, data.groups)
        queries = PushQueries(data.groups.offsets, order, positives.astype(np.int64), scale)
        if self._is_closed():
            power, kernels = (self.p, self.form == "log"), compiler.load("closed.exponential")
            return BoundSums(
                data.groups,
                data.groups.sizes + 100.0,
                lambda span, scores, out: kernels.push_gradients(
                    queries, span, scores, *power, out
                ),
                lambda span, scores, out: kernels.push_values(queries, span, scores, *power, out),
                constant_hessian(self.hessian, data),
            )
        return BoundPairs(self, PUSH, data, queries, Power(self.p) if self.g is None else self.g)
