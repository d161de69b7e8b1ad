"""Objectives computed by one compiled function per query, for plugins."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, final

import numpy as np

from gbmrank.data.columns import computed_column
from gbmrank.data.queries import RankingData
from gbmrank.errors import PluginContractError
from gbmrank.kernels.jit import compiler, threads
from gbmrank.kernels.layout import GradHess
from gbmrank.objectives.base import (
    AbstractBound,
    AbstractObjective,
    constant_hessian,
    query_scale,
    sum_queries,
)
from gbmrank.types import FloatArray

QueryFunction = Callable[..., float]


def bind_queries(
    objective: AbstractObjective,
    data: RankingData,
    query: QueryFunction,
    params: tuple[float, ...] = (),
    labels: FloatArray | None = None,
) -> "BoundQueries":
    """Bind an objective that one function computes query by query; the function is compiled.

    Parameters
    ----------
    objective : AbstractObjective
        Its ``normalize`` and ``hessian="constant"`` are applied here, and its traits ``gradient``
        and ``shift_invariant`` are used. The function of a shift-invariant objective gets the
        scores minus the first score of the query, so that scores far from zero lose no digits.
    data : RankingData
        Labels, groups, weights.
    query : callable
        ``query(labels, scores, grad, hess, *params) -> value``: adds the gradient and the
        Hessian diagonal of one query to arrays of zeros and returns its loss. With the trait
        ``gradient = "frozen_weights"``: ``query(labels, scores, at, grad, hess, *params)``,
        where weights that are treated as constants are computed from the scores ``at``.
    params : tuple of float
        Further arguments of the function.
    labels : array of shape (n_rows,), optional
        Values passed as labels, such as gains; by default the labels of the data.

    Returns
    -------
    AbstractBound
        The bound objective.
    """
    if objective.gradient != "frozen_weights":
        query = _adapted(query)
    given = data.labels if labels is None else labels
    column = np.array(computed_column(given, data.groups.n_rows, f"labels of {objective.name}"))
    column.flags.writeable = False
    return BoundQueries(objective, replace(data, labels=column), query, params)


@final
class BoundQueries(AbstractBound):
    """An objective computed by one call of a compiled function per query."""

    __slots__ = ("constant", "kernels", "params", "queries", "shift_invariant", "spans")

    def __init__(
        self,
        objective: AbstractObjective,
        data: RankingData,
        query: QueryFunction,
        params: tuple[float, ...],
    ) -> None:
        super().__init__(data.groups)
        self.kernels = _compiled(query)
        scale = query_scale(data, objective.normalize)
        self.queries = self.kernels.LabelQueries(data.groups.offsets, data.labels, scale)
        self.params = tuple(float(value) for value in params)
        self.constant = constant_hessian(objective.hessian, data)
        self.shift_invariant = objective.shift_invariant
        costs = 5.0 * data.groups.sizes.astype(np.float64) ** 2 + 100.0
        self.spans = threads.cut_into_spans(costs, data.groups.longest)

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Call the function for every query."""
        near = self._near_zero(scores)
        threads.run_spans(
            lambda span: self.kernels.query_gradients(self.queries, span, near, self.params, out),
            self.spans,
        )
        if self.constant is not None:
            out.hess[:] = self.constant

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the loss of each query."""
        return self.frozen_losses(scores, scores)

    def frozen_losses(self, scores: FloatArray, at: FloatArray) -> FloatArray:
        """Return the loss of each query with its weights taken at other scores."""
        near, there = self._near_zero(scores), self._near_zero(at)
        return sum_queries(
            lambda span, values: self.kernels.query_values(
                self.queries, span, near, there, self.params, values
            ),
            self.spans,
            self.groups,
        )

    def _near_zero(self, scores: FloatArray) -> FloatArray:
        """Return the scores to pass to the function, shifted if the objective allows it."""
        if not self.shift_invariant:
            return scores
        return scores - self.groups.spread(scores[self.groups.offsets[:-1]])


def _compiled(query: QueryFunction) -> Any:
    try:
        return compiler.load("closed.lists", query=query)
    except PluginContractError as error:
        # The compiler's message for a write to the labels does not say what is wrong.
        raise PluginContractError(
            f"{error}\nthe function of a query may only write to grad and hess; labels and scores "
            "are read-only: make a copy, such as labels.copy()"
        ) from error


@functools.cache
def _adapted(query: QueryFunction) -> QueryFunction:
    """Return the function with an additional, unused argument for the scores of weights."""

    def adapted(labels: Any, scores: Any, at: Any, grad: Any, hess: Any, *params: float) -> float:  # noqa: ARG001
        return query(labels, scores, grad, hess, *params)

    return adapted
