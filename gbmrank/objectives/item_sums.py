"""Bound state of the objectives that sum over items, and the range their utilities need."""

from dataclasses import fields
from typing import NamedTuple, final

import numpy as np

from gbmrank.columns import computed_column
from gbmrank.data import Groups, RankingData
from gbmrank.errors import LabelRangeError, ParameterError, PluginContractError
from gbmrank.kernels import compiler, pool
from gbmrank.kernels.layout import GradHess, ItemTerms
from gbmrank.losses.base import ScalarFunction
from gbmrank.objectives.base import AbstractBound, run_queries, sum_queries
from gbmrank.types import FloatArray
from gbmrank.utilities import AbstractUtility, IdentityUtility

__all__ = [
    "BoundItems",
    "ItemColumns",
    "bind_items",
    "check_range",
    "read_eta",
    "read_signs",
    "read_utilities",
]


class ItemColumns(NamedTuple):
    """Utilities per row; the upper bound eta and the factor of each query."""

    utilities: FloatArray
    eta: FloatArray
    scale: FloatArray


def bind_items(
    data: RankingData,
    columns: ItemColumns,
    term: ScalarFunction,
    params: tuple[float, ...],
    constant: FloatArray | None,
) -> "BoundItems":
    """Bind a sum over items; rows may carry weights of their own."""
    weight = np.empty(0) if data.weight is None else data.weight
    undefined = np.isnan(columns.utilities[data.groups.offsets[:-1]])
    scale = np.where(undefined, 0.0, columns.scale)
    utilities = np.nan_to_num(columns.utilities, nan=0.0)
    items = ItemTerms(data.groups.offsets, utilities, columns.eta, scale, weight)
    return BoundItems(data.groups, items, (term, params), constant)


@final
class BoundItems(AbstractBound):
    """Every item by itself."""

    __slots__ = ("chunks", "constant", "items", "kernels", "params")

    def __init__(
        self,
        groups: Groups,
        items: ItemTerms,
        term: tuple[ScalarFunction, tuple[float, ...]],
        constant: FloatArray | None,
    ) -> None:
        super().__init__(groups)
        self.items, self.constant = items, constant
        self.kernels, self.params = compiler.load("items", term=term[0]), term[1]
        self.chunks = pool.cut_into_chunks(5.0 * groups.sizes + 20.0)

    def fill(self, scores: FloatArray, out: GradHess, *, single: bool) -> None:
        """Evaluate every item."""
        run_queries(
            lambda span: self.kernels.gradients(self.items, span, scores, self.params, out),
            self.chunks,
            self.groups,
        )
        if self.constant is not None:
            out.hess[:] = self.constant

    def losses(self, scores: FloatArray) -> FloatArray:
        """Return the loss of each query."""
        return sum_queries(
            lambda span, values: self.kernels.values(self.items, span, scores, self.params, values),
            self.chunks,
            self.groups,
        )


def read_eta(
    owner: str, eta: float | None, target: AbstractUtility, data: RankingData
) -> FloatArray:
    """Return the upper bound of utilities of each query: given, or the target's own."""
    if eta is not None:
        return np.full(data.groups.n_queries, eta)
    bounds = target.upper_bounds(data.groups.sizes)
    if bounds is None:
        raise ParameterError(
            f"{owner}: target={target.name} has no upper bound that is known in advance; give it "
            "as eta= (it must not be read off the data, or a fold would train another loss)"
        )
    return computed_column(bounds, data.groups.n_queries, f"upper_bounds of target={target.name}")


def read_utilities(target: AbstractUtility, data: RankingData) -> FloatArray:
    """Return the utility of every row; NaN in whole queries, where it is undefined.

    Raises
    ------
    PluginContractError
        When a target of others gives anything else.
    """
    groups = data.groups
    values = computed_column(target.values(data), groups.n_rows, f"values of target={target.name}")
    missing = np.isnan(values)
    bad = np.isinf(values) | (missing != groups.spread(missing[groups.offsets[:-1]]))
    if bad.any():
        row = int(np.argmax(bad))
        raise PluginContractError(
            f"values of target={target.name} are finite, or NaN in all rows of a query; got "
            f"{values[row]} in row {row} of query {groups.query_of(row)!r}"
        )
    return values


def read_signs(utilities: FloatArray, target: AbstractUtility, eta: float | None) -> FloatArray:
    """Return labels -1 and +1 as 0 and 1, where a label is a probability: identity, eta=1.

    Labels 0 and 1, and anything between, are returned as they are.
    """
    signs = eta == 1.0 and isinstance(target, IdentityUtility) and np.all(np.abs(utilities) == 1.0)
    return (utilities + 1.0) / 2.0 if signs else utilities


def check_range(
    owner: str, columns: ItemColumns, target: AbstractUtility, data: RankingData
) -> None:
    """Raise LabelRangeError unless every utility lies between 0 and eta."""
    utilities, bound = columns.utilities, data.groups.spread(columns.eta)
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero((utilities < 0) | (utilities > bound * (1.0 + 1e-12)))
    if len(bad):
        row = int(bad[0])
        raise LabelRangeError(
            f"{owner}: the utility {utilities[row]:g} of target={target.name} in query "
            f"{data.groups.query_of(row)!r} lies outside 0..eta={bound[row]:g}, where the loss is "
            f"bounded; {_range_advice(target, utilities[row] < 0, bound[row])}"
        )


def _range_advice(target: AbstractUtility, negative: bool, bound: float) -> str:
    if isinstance(target, IdentityUtility):
        binary = "give labels 0/1 or -1/+1, or " if bound == 1.0 else ""
        moved = "shift the labels" if negative else "raise eta"
        return f"{binary}say with threshold= which labels are relevant, or {moved}"
    if negative:
        return "shift the labels, or use loss=squared"
    graded = "max_grade" in {field.name for field in fields(target)}
    raised = "eta (or max_grade)" if graded else "eta"
    return f"raise {raised}, or rescale the labels"
