"""Objectives that one function of a query computes: what plugins compose from."""

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
    run_queries,
    sum_queries,
)
from gbmrank.types import FloatArray

__all__ = ["bind_queries"]

QueryFunction = Callable[..., float]


def bind_queries(
    objective: AbstractObjective,
    data: RankingData,
    query: QueryFunction,
    params: tuple[float, ...] = (),
    labels: FloatArray | None = None,
) -> "BoundQueries":
    """Bind an objective whose query is computed by one function, which is compiled.

    Parameters
    ----------
    objective : AbstractObjective
        Gives ``normalize``, ``hessian`` (``"constant"`` is served here) and the traits
        ``gradient`` and ``shift_invariant``. The function of a shift-invariant objective gets
        scores less the first one of the query, so that scores far from zero lose no digits.
    data : RankingData
        Labels, groups, weights.
    query : callable
        ``query(labels, scores, grad, hess, *params) -> value``: adds the gradient and the
        Hessian diagonal of one query to arrays of zeros and returns its loss. With the trait
        ``gradient = "frozen_weights"``: ``query(labels, scores, at, grad, hess, *params)``,
        where what counts as constant is computed from the scores ``at``.
    params : tuple of float
        Further arguments of the function.
    labels : array of shape (n_rows,), optional
        What the function gets as labels, such as gains; those of the data when not given.
    """
    if objective.gradient != "frozen_weights":
        query = _adapted(query)
    given = data.labels if labels is None else labels
    column = np.array(computed_column(given, data.groups.n_rows, f"labels of {objective.name}"))
    column.flags.writeable = False
    return BoundQueries(objective, replace(data, labels=column), query, params)


@final
class BoundQueries(AbstractBound):
    """Every query by one call of a compiled function."""

    __slots__ = ("chunks", "constant", "kernels", "params", "queries", "shift_invariant")

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
        self.chunks = threads.cut_into_chunks(
            5.0 * data.groups.sizes.astype(np.float64) ** 2 + 100.0
        )

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Call the function for every query."""
        near = self._near_zero(scores)
        run_queries(
            lambda span: self.kernels.query_gradients(self.queries, span, near, self.params, out),
            self.chunks,
            self.groups,
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
            self.chunks,
            self.groups,
        )

    def _near_zero(self, scores: FloatArray) -> FloatArray:
        """Return scores as the function gets them; compiled code may add in any order."""
        if not self.shift_invariant:
            return scores
        return scores - self.groups.spread(scores[self.groups.offsets[:-1]])


def _compiled(query: QueryFunction) -> Any:
    try:
        return compiler.load("closed.lists", query=query)
    except PluginContractError as error:
        # The compiler's own words for a change of the labels tell nobody what is wrong.
        raise PluginContractError(
            f"{error}\na function of a query may change grad and hess alone; labels and scores "
            "are read-only: take a copy, such as labels.copy()"
        ) from error


@functools.cache
def _adapted(query: QueryFunction) -> QueryFunction:
    """Return the function with an argument for the scores of weights, which it has not."""

    def adapted(labels: Any, scores: Any, at: Any, grad: Any, hess: Any, *params: float) -> float:  # noqa: ARG001
        return query(labels, scores, grad, hess, *params)

    return adapted
