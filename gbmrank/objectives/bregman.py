"""Bregman objectives: the divergence between utilities and transformed scores."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from gbmrank.data.queries import RankingData
from gbmrank.data.query_order import query_sums
from gbmrank.errors import ParameterError
from gbmrank.kernels.jit import compiler
from gbmrank.kernels.layout import GradHess, ItemTerms, Span
from gbmrank.losses.convex import AbstractGenerator, Softmax, SoftmaxCE
from gbmrank.losses.utilities import AbstractUtility, NdcgUtility
from gbmrank.objectives.base import (
    AbstractBound,
    AbstractObjective,
    BoundSums,
    HessianTrait,
    constant_hessian,
    query_scale,
    row_scale,
)
from gbmrank.objectives.pointwise import (
    ItemColumns,
    bind_items,
    check_not_negative,
    check_range,
    read_eta,
    read_signs,
    read_utilities,
    with_options,
)
from gbmrank.types import FloatArray


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bregman(AbstractObjective):
    r"""Bregman divergence of the utilities from the scores under a link.

    .. math::
        L = B_\psi(u \,\|\, g(s)) = \psi(u) - \psi(g) - \langle \nabla\psi(g), u - g \rangle,
        \quad g = g(s)

    The best scores have ``g(s)`` equal to the expected utility.

    Parameters
    ----------
    loss : generator, default=softmax_ce
        ``squared``, ``softmax``, ``softmax_ce``, ``poisson``, ``binary_entropy`` or
        ``itakura_saito(eps=1e-3)``.
    eta : float or None, default=None
        Upper bound of the utility, for ``binary_entropy``; by default that of the target.
        ``eta`` and ``max_grade`` have no effect on the other generators.

    References
    ----------
    Calauzenes, Usunier and Gallinari, Machine Learning 93, 2013, sec. 3.3 and eq. 5.
    """

    loss: AbstractGenerator = field(
        default=SoftmaxCE(), metadata={"kind": "generator", "shown": True}
    )
    target: AbstractUtility = field(
        default=NdcgUtility(), metadata={"kind": "utility", "shown": True}
    )
    eta: float | None = None
    max_grade: float | None = None
    threshold: float | None = None

    name: ClassVar[str] = "bregman"
    formula: ClassVar[str] = "B_psi(u || g(s))"
    cost: ClassVar[str] = "O(n)"
    reference: ClassVar[str] = "Calauzenes et al. 2013, eq. 5"

    def __post_init__(self) -> None:
        super(Bregman, self).__post_init__()
        if self.eta is not None and not 0 < self.eta < float("inf"):
            raise ParameterError(f"bregman: eta must be above 0, got {self.eta}")
        with_options(self.target, self.max_grade, self.threshold)
        coupled = isinstance(self.loss, Softmax | SoftmaxCE)
        if self.loss.term is None and self.loss.of_query is None and not coupled:
            raise ParameterError(
                f"bregman: the generator {self.loss.name} has no formula. Give it term(s, v, eta) "
                "-> (value, first, second) of one item, or of_query(scores, utilities) -> (value, "
                "gradient)"
            )
        if self.loss.of_query is not None and self.hessian not in ("auto", "constant"):
            raise ParameterError(
                f"bregman: {self.loss.name} gives no second derivative; use hessian=auto, which is "
                "constant"
            )
        if self.hessian == "majorise" and not coupled:
            raise ParameterError(
                f"bregman: a bound of the Hessian is known for the softmax losses, not for "
                f"{self.loss.name}; use hessian=auto"
            )

    @property
    def shift_invariant(self) -> bool:  # type: ignore[override]
        """Whether the generator is: a softmax ignores a common shift."""
        return self.loss.shift_invariant

    @property
    def separable(self) -> bool:
        """Whether generator and target are, and no query is divided by its size."""
        items = self.loss.term is not None and self.target.per_item
        return items and self.normalize == "none"

    @property
    def hessian_trait(self) -> HessianTrait:
        """What the returned Hessian is."""
        if self.loss.of_query is not None:
            return "constant"
        if self.hessian in ("constant", "majorise"):
            return "constant" if self.hessian == "constant" else "bound"
        uses_expected = self.hessian in ("auto", "expected") and self.loss.expected is not None
        return "expected" if uses_expected else "exact"

    def bind(self, data: RankingData) -> AbstractBound:
        """Compute utilities."""
        data.query_weight()  # raises where the rows of a query differ
        target = with_options(self.target, self.max_grade, self.threshold)
        utilities = read_utilities(target, data)
        constant = constant_hessian(self.hessian, data)
        if self.loss.of_query is not None:
            return self._bind_queries(data, utilities)
        if self.loss.term is None:
            return self._bind_softmax(data, utilities, constant)
        scale = row_scale(data, self.normalize)
        eta = read_eta(self.name, self.eta, target, data) if self.loss.needs_eta else scale
        columns = ItemColumns(utilities, eta, scale)
        if self.loss.needs_eta:
            columns = columns._replace(utilities=read_signs(utilities, target, self.eta))
            check_range(self.name, columns, target, data)
        elif self.loss.name != "squared":
            self._check_not_negative(utilities, data)
        uses_expected = self.hessian_trait == "expected"
        term = type(self.loss).expected if uses_expected else type(self.loss).term
        return bind_items(data, columns, term, self.loss.params, constant)

    def _bind_queries(self, data: RankingData, utilities: FloatArray) -> AbstractBound:
        """Bind a function of whole queries; a query of undefined utilities costs nothing."""
        self._check_not_negative(utilities, data)
        bounds, scale = data.groups.offsets, query_scale(data, self.normalize)
        function, params = type(self.loss).of_query, self.loss.params

        def one(query: int, scores: FloatArray) -> Any:
            rows = slice(bounds[query], bounds[query + 1])
            if np.isnan(utilities[rows.start]):
                return rows, (0.0, 0.0)
            s, v = scores[rows], utilities[rows]
            s.flags.writeable = v.flags.writeable = False  # they are the caller's
            return rows, function(s, v, *params)

        def gradients(span: Span, scores: FloatArray, out: GradHess) -> None:
            for query in range(span.first, span.last):
                rows, found = one(query, scores)
                out.grad[rows] = scale[query] * np.asarray(found[1])

        def values(span: Span, scores: FloatArray, out: FloatArray) -> None:
            for query in range(span.first, span.last):
                out[query] = scale[query] * float(one(query, scores)[1][0])

        costs, constant = 20_000.0 + 200.0 * data.groups.sizes, constant_hessian("constant", data)
        return BoundSums(data.groups, costs, gradients, values, constant)

    def _bind_softmax(
        self, data: RankingData, utilities: FloatArray, constant: FloatArray | None
    ) -> AbstractBound:
        self._check_not_negative(utilities, data)
        scale = query_scale(data, self.normalize)
        totals = query_sums(np.nan_to_num(utilities, nan=0.0), data.groups)
        scale = np.where(totals > 0, scale, 0.0)
        divided = isinstance(self.loss, Softmax)
        shares = data.groups.spread(np.where(totals > 0, totals, 1.0)) if divided else 1.0
        utilities = np.nan_to_num(utilities, nan=0.0) / shares
        anchors = np.zeros(len(scale))
        items = ItemTerms(data.groups.offsets, utilities, anchors, scale, np.empty(0))
        majorise, kernels = self.hessian == "majorise", compiler.load("closed.lists")
        return BoundSums(
            data.groups,
            20.0 * data.groups.sizes + 20.0,
            lambda span, scores, out: kernels.softmax_gradients(items, span, scores, majorise, out),
            lambda span, scores, out: kernels.softmax_values(items, span, scores, divided, out),
            constant,
        )

    def _check_not_negative(self, utilities: FloatArray, data: RankingData) -> None:
        owner = f"bregman(loss={self.loss.name})"
        check_not_negative(owner, utilities, self.target, data, "loss=squared")
