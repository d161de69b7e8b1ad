"""Bound state of the objectives that sum over the edges of preference graphs."""

from typing import final

import numpy as np

from gbmrank.data import Groups
from gbmrank.kernels import compiler, pool
from gbmrank.kernels.graph_layout import EdgeQueries
from gbmrank.kernels.layout import GradHess
from gbmrank.objectives.base import AbstractBound, run_queries, sum_queries
from gbmrank.objectives.engines import Curvature
from gbmrank.preferences import PreferenceGraphs
from gbmrank.types import FloatArray

__all__ = ["BoundEdges", "edge_queries"]


def edge_queries(graphs: PreferenceGraphs, margin: float | str, scale: FloatArray) -> EdgeQueries:
    """Return the edges of graphs as the kernels want them.

    Parameters
    ----------
    graphs : PreferenceGraphs
        Pairs that levels stand for are listed.
    margin : float or "weight"
        What the better item should lead by: a number, or the weight of the edge, which then
        counts once.
    scale : array of shape (n_queries,)
        Factor of each query.
    """
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


@final
class BoundEdges(AbstractBound):
    """Every edge of every query.

    Parameters
    ----------
    groups : Groups
        Query boundaries.
    queries : EdgeQueries
        The edges.
    curvature : Curvature
        The penalty of a margin, and what its second derivative is multiplied by.
    params : tuple of float
        Parameters of the penalty.
    constant : array of shape (n_rows,) or None
        Replaces the Hessian.
    """

    __slots__ = ("chunks", "constant", "factor", "kernels", "params", "queries")

    def __init__(
        self,
        groups: Groups,
        queries: EdgeQueries,
        curvature: Curvature,
        params: tuple[float, ...],
        constant: FloatArray | None,
    ) -> None:
        super().__init__(groups)
        self.queries, self.params, self.constant = queries, params, constant
        self.kernels = compiler.load("graph_sums", phi=curvature.phi)
        self.factor = curvature.factor
        self.chunks = pool.cut_into_chunks(10.0 * np.diff(queries.offsets) + groups.sizes + 20.0)

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Sum over edges, always in float64."""
        run_queries(
            lambda span: self.kernels.gradients(self.queries, span, scores, self.params, out),
            self.chunks,
            self.groups,
        )
        if self.constant is not None:
            out.hess[:] = self.constant
        elif self.factor != 1.0:
            np.multiply(out.hess, self.factor, out=out.hess)

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the loss of each query."""
        return sum_queries(
            lambda span, values: self.kernels.values(
                self.queries, span, scores, self.params, values
            ),
            self.chunks,
            self.groups,
        )
