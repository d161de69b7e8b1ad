"""Positional form (u, phi, b) of metrics: utilities of items, discounts of ranks, an offset."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.data.columns import as_floats, read_number, read_table
from gbmrank.data.queries import RankingData
from gbmrank.data.query_order import query_sums, rows_by_value
from gbmrank.errors import ParameterError
from gbmrank.losses.utilities import DisagreementUtility, Form
from gbmrank.metrics import AbstractMetric, AbstractPositional, PairwiseDisagreement
from gbmrank.registry.composition import as_metric, cut_off
from gbmrank.types import ArrayLike, FloatArray


class Positional(NamedTuple):
    """Utilities of the items, discounts of the ranks, and the constant of one query."""

    utilities: FloatArray
    discounts: FloatArray
    offset: float


@final
@dataclass(frozen=True, slots=True)
class View:
    """The positional form of a metric, to be maximised."""

    utilities: Callable[[RankingData], FloatArray]  # u of every row, NaN where undefined
    discounts: Callable[[int], FloatArray]  # n -> phi(1), ..., phi(n), non-increasing
    offsets: Callable[[RankingData], FloatArray]  # b of every query
    form: Form  # u in symbols
    fall: str = "not rising"  # shape of the discounts: "constant", "not rising" or "unknown"
    sign: float = 1.0  # -1 for a measure that is minimised: its value is -(b + sum phi u)


def view(metric: AbstractMetric) -> View | None:
    """Return the positional form of a metric, or None if it has none.

    Cascades, average precision and reciprocal rank with cut-off 1 depend on the top item only,
    so they are positional. So is pairwise disagreement of labels: with
    ``A_ij = (y_i - y_j)_+`` a swap of neighbours changes it by the difference of their
    labels, which makes it a constant minus ``sum_k (n - k) y``.
    """
    if isinstance(metric, AbstractPositional):
        return View(metric.utilities, metric.discounts, metric.offsets, metric.form, metric.fall)
    if isinstance(metric, PairwiseDisagreement):
        return _disagreement(metric) if getattr(metric, "preferences", None) is None else None
    top = metric.top_form if cut_off(metric) == 1 else None
    if top is None:
        return None
    return View(
        top.values,
        lambda n: np.asarray(np.arange(n) == 0, dtype=np.float64),
        lambda data: np.zeros(data.groups.n_queries),
        top,
    )


def positional(metric: Any, labels: ArrayLike) -> Positional:
    """Return (u, phi, b) of a metric for the labels of one query.

    Parameters
    ----------
    metric : Metric, measure or str
        A metric of the positional family.
    labels : array-like of shape (n,)
        Labels of one query.

    Examples
    --------
    >>> u, phi, b = positional("auc", [1, 1, 0])
    >>> u, phi, b
    (array([0.5, 0.5, 0. ]), array([2., 1., 0.]), -0.5)
    """
    measure = as_metric(metric)
    seen = view(measure)
    if seen is None:
        raise ParameterError(
            f"{measure.name} is not a sum of utilities times discounts of ranks, so it has no "
            "(u, phi, b); dcg, ndcg, precision, recall, wta, auc, spearman and eru do"
        )
    data = RankingData.from_arrays(labels)
    values = np.array(seen.utilities(data))
    return Positional(values, seen.discounts(len(values)), float(seen.offsets(data)[0]))


def c_phi(phi: ArrayLike, p: float = 2.0) -> float:
    r"""Return the factor of the discounts in the regret bound.

    .. math:: C_\phi(p) = \Bigl(\sum_{i=1}^{\lfloor n/2 \rfloor}
              (\phi(i) - \phi(n + 1 - i))^p\Bigr)^{1/p}

    Parameters
    ----------
    phi : array-like of shape (n,)
        Discounts of the ranks 1..n.
    p : float, default=2
        At least 1.

    References
    ----------
    Calauzenes, Usunier and Gallinari, Machine Learning 93, 2013, eq. 9.

    Examples
    --------
    >>> round(c_phi(1 / np.log2(np.arange(2, 7))), 6)
    0.64502
    """
    power = read_number(p, "c_phi: p", 1.0, np.inf)
    table = read_table(as_floats(phi, "phi"), "phi")
    half = len(table) // 2
    gaps = np.abs(table[:half] - table[::-1][:half])
    largest = float(gaps.max(initial=0.0))
    if largest == 0.0 or np.isinf(power):
        return largest
    return largest * float(np.sum((gaps / largest) ** power) ** (1.0 / power))


def order_value(utilities: FloatArray, phi: FloatArray, scores: FloatArray) -> float:
    """Return ``sum phi u`` of the order by scores, averaged over the orderings of ties."""
    order = np.argsort(-scores, kind="stable")
    blocks = np.concatenate([[0], np.cumsum(np.diff(scores[order]) != 0.0)])
    sizes = np.bincount(blocks)
    mean_phi = np.bincount(blocks, weights=phi[: len(order)]) / sizes
    return float(mean_phi @ np.bincount(blocks, weights=utilities[order]))


def _disagreement(metric: PairwiseDisagreement) -> View:
    utility = DisagreementUtility(metric.normalize)

    def offsets(data: RankingData) -> FloatArray:
        """Minus the value of the best order, minus the utilities of its items."""
        values, place = utility.values(data), np.arange(data.groups.n_rows)
        place = place - data.groups.spread(data.groups.offsets[:-1])
        below = data.groups.spread(data.groups.sizes) - 1.0 - place
        return -query_sums(values[rows_by_value(values, data.groups)] * below, data.groups)

    return View(
        utility.values, lambda n: np.arange(n - 1.0, -1.0, -1.0), offsets, utility.form, sign=-1.0
    )
