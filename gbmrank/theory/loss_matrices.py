"""Low-rank factorisation of loss matrices, and its least-squares surrogate.

Any loss over finitely many outcomes and decisions is ``<alpha_y, beta_t> + c_y`` in as many
dimensions as its matrix has rank once every row is centred. Fitting u to alpha by squared error
and deciding for the least ``<u, beta_t>`` is calibrated on every distribution.
"""

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from gbmrank.data.columns import read_number, read_table, read_whole
from gbmrank.errors import DataError, LimitError, ParameterError
from gbmrank.metrics import AbstractMetric, PairwiseDisagreement
from gbmrank.registry.composition import as_metric, text_of
from gbmrank.theory.distributions import Distribution, all_orders
from gbmrank.types import ArrayLike, FloatArray, IntArray

MOST_ITEMS = 8
"""Longest list whose orders are enumerated."""

_MOST_WORK = 2e10  # rows x columns x the smaller of the two: about ten seconds
_SAME = 1e-8


class Rule(NamedTuple):
    """How to find the least ``<u, beta_t>``: ``cells @ u`` are costs of items at ranks.

    ``discount`` is set if costs are a value of the item times a discount of the rank.
    """

    name: str
    cells: FloatArray | None = None
    discount: FloatArray | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class LowRank:
    r"""A loss as inner products, with its surrogate and decoder; made by :func:`low_rank`.

    .. math:: L(y, t) = \langle \alpha_y, \beta_t \rangle + c_y
    """

    alpha: FloatArray  #: target of the surrogate for each outcome
    beta: FloatArray  #: orthonormal columns, unless factors were given
    decisions: IntArray  #: numbers of the columns, or orders: items, best first
    rule: Rule  #: how decisions are found
    #: singular values of the matrix with centred rows; the dimension is the number of those above
    #: the tolerance
    singular_values: FloatArray
    metric: AbstractMetric | None = None  #: the metric whose loss was factorised; None for a matrix

    @classmethod
    def of(cls, alpha: ArrayLike, beta: ArrayLike) -> "LowRank":
        """Return the surrogate of a loss whose factors are known.

        Parameters
        ----------
        alpha : array-like of shape (n_outcomes, dimension)
            A vector per outcome.
        beta : array-like of shape (n_decisions, dimension)
            A vector per decision.

        Examples
        --------
        >>> hamming = LowRank.of([[0, 0], [0, 1], [1, 1]], [[0, 0], [0, -2], [-2, -2]])
        >>> int(hamming.decode([0.2, 0.9]))
        2
        """
        a, b = read_table(alpha, "alpha"), read_table(beta, "beta")
        if a.ndim != 2 or b.ndim != 2 or a.shape[1:] != b.shape[1:] or not (a.size and b.size):
            raise DataError(
                "alpha has one row per outcome and beta one per decision, with as many columns; "
                f"got arrays of shapes {a.shape} and {b.shape}"
            )
        triangles = [np.linalg.qr(one)[1] for one in (a, b - b.mean(axis=0))]
        values = np.linalg.svd(triangles[0] @ triangles[1].T, compute_uv=False)
        return cls(a, b, np.arange(len(b)), Rule("enumeration"), values)

    @property
    def dimension(self) -> int:
        """Dimension of the surrogate: how many numbers have to be learned."""
        return int(self.beta.shape[1])

    @property
    def decoder(self) -> str:
        """Algorithm of :meth:`decode`.

        ``sort`` if a value per item suffices, ``assignment`` if a cost per item and rank does,
        else ``enumeration`` of all decisions.
        """
        return self.rule.name

    def targets(self, labels: ArrayLike) -> FloatArray:
        """Return alpha of label vectors or graphs, shape (m, dimension), of a metric's loss."""
        if self.metric is None:
            raise ParameterError("alpha of a loss matrix is that of its rows; see .alpha")
        rows = _centred(_metric_rows(self.metric, labels))
        if rows.shape[1] != len(self.beta):
            raise DataError(
                f"the orders are those of {self.decisions.shape[1]} items, got labels of shape "
                f"{np.shape(labels)}"
            )
        made = rows @ self.beta
        missed = np.abs(rows - made @ self.beta.T).max(axis=1, initial=0.0)
        wrong = np.flatnonzero(missed > _SAME * (1.0 + np.abs(rows).max(initial=0.0)))
        if len(wrong):
            raise DataError(
                f"labels {np.asarray(labels)[wrong[0]].tolist()} are not among the outcomes; give "
                "grades= with every grade that occurs"
            )
        return np.asarray(made, np.float64)

    def minimiser(self, distribution: Any) -> FloatArray:
        """Return the minimiser of the surrogate: the mean of alpha, shape (dimension,).

        Parameters
        ----------
        distribution : Distribution, or array-like of shape (n_outcomes,)
            A distribution of labels or graphs; for a loss matrix, the probabilities of its rows.
        """
        p, alpha = self._weighed(distribution)
        return np.asarray(p @ alpha, np.float64)

    def risk(self, distribution: Any, u: ArrayLike) -> float:
        """Return the expected squared error ``E |u - alpha|^2`` of u, shape (dimension,)."""
        p, alpha = self._weighed(distribution)
        return float(p @ ((self._read(u) - alpha) ** 2).sum(axis=1))

    def decode(self, u: ArrayLike) -> Any:
        """Return the decision of least ``<u, beta_t>``.

        Parameters
        ----------
        u : array-like of shape (dimension,) or (rows, dimension)
            Estimates of the mean of alpha.
        """
        given = self._read(u)
        made = self._decoded(np.atleast_2d(given))
        return made if given.ndim == 2 else made[0]

    def bound(self, excess: float) -> float:
        r"""Return the bound on the regret of the loss for an excess of the squared risk.

        .. math:: 2 \max_t |\beta_t| \sqrt{\text{excess}}

        Parameters
        ----------
        excess : float
            ``E |u - alpha|^2`` above its minimum, or its mean over queries.
        """
        given = read_number(excess, "excess", 0.0)
        longest = float(np.sqrt((self.beta**2).sum(axis=1).max(initial=0.0)))
        return 2.0 * longest * float(np.sqrt(given))

    def _read(self, u: ArrayLike) -> FloatArray:
        given = read_table(u, "u")
        if given.ndim not in (1, 2) or given.shape[-1] != self.dimension:
            raise DataError(
                f"u must have shape ({self.dimension},) or (rows, {self.dimension}); got "
                f"{given.shape}"
            )
        return given

    def _weighed(self, distribution: Any) -> tuple[FloatArray, FloatArray]:
        if isinstance(distribution, Distribution):
            return distribution.probabilities, self.targets(distribution.labels)
        p = read_table(distribution, "probabilities")
        if p.shape != (len(self.alpha),) or not np.all(p >= 0) or not p.sum() > 0:
            raise DataError(
                f"probabilities are one per outcome, {len(self.alpha)}, not negative and not all "
                f"zero; got an array of shape {p.shape}"
            )
        return p / p.sum(), self.alpha

    def _decoded(self, rows: FloatArray) -> IntArray:
        cells, discount = self.rule.cells, self.rule.discount
        if cells is None:
            losses = rows @ self.beta.T
            least = losses.min(axis=1) + 1e-12 * np.abs(losses).max(axis=1)
            return self.decisions[np.argmax(losses <= least[:, None], axis=1)]
        n = self.decisions.shape[1]
        costs = (rows @ cells.T).reshape(len(rows), n, n)
        if discount is not None:
            ranks = np.argsort(discount, kind="stable")
            order = np.empty((len(rows), n), np.int64)
            order[:, ranks] = np.argsort(-(costs @ discount), axis=1, kind="stable")
            return order
        from scipy.optimize import linear_sum_assignment

        ranks_of_items = [linear_sum_assignment(cost)[1] for cost in costs]
        return np.argsort(np.array(ranks_of_items).reshape(len(rows), n), axis=1)


def low_rank(
    loss: Any,
    items: int | None = None,
    *,
    grades: ArrayLike = (0, 1),
    graphs: bool = False,
    tolerance: float = 1e-13,
) -> LowRank:
    r"""Factorise a loss: dimension, targets and decoder of its least-squares surrogate.

    The rank of the loss matrix with centred rows is the dimension (a constant per row changes no
    decision). The factors come from its singular value decomposition. If the decisions are
    orders, the decoder is a sort if possible, else an assignment of items to ranks, else an
    enumeration.

    Parameters
    ----------
    loss : array-like of shape (n_outcomes, n_decisions), or metric
        A loss matrix; or a metric (object or text), whose outcomes are all label vectors and
        whose decisions are all orders. Outcomes on which a metric is undefined cost nothing.
    items : int, optional
        Length of the lists of a metric, up to 8. With a matrix: its columns are the orders of
        this many items, in lexicographic order.
    grades : array-like, default=(0, 1)
        Labels of a metric's lists.
    graphs : bool, default=False
        Use preference graphs instead of labels (``pairwise_disagreement``): every graph is a
        sum of edges, so edges are the outcomes.
    tolerance : float, default=1e-13
        Singular values up to this share of the largest one count as zero.

    References
    ----------
    Ramaswamy, Agarwal and Tewari, "Convex calibrated surrogates for low-rank loss matrices with
    applications to subset ranking losses", NIPS 2013, Thm 3.

    Examples
    --------
    >>> dcg, err = low_rank("dcg", 4), low_rank("err", 4)
    >>> dcg.dimension, dcg.decoder, err.dimension, err.decoder
    (3, 'sort', 11, 'enumeration')
    >>> one = Distribution([[1, 1, 0, 0], [0, 0, 1, 1]], [0.5, 0.5])
    >>> err.decode(err.minimiser(one)).tolist()
    [0, 2, 1, 3]
    >>> low_rank([[0, 1, 2], [2, 1, 0]]).dimension
    1
    """
    share = read_number(tolerance, "tolerance", 0.0, 0.1)
    if isinstance(loss, str | AbstractMetric) or hasattr(loss, "measure"):
        measure = as_metric(loss)
        if items is None:
            text = text_of(measure)
            raise ParameterError(f"low_rank({text!r}) needs the number of items of a list: items=4")
        n = _whole_items(items)
        given = _edges(measure, n) if graphs else _label_vectors(grades, n)
        return factorise(measure, given, share)
    if isinstance(loss, np.ndarray) and loss.ndim == 2:
        check_work(*loss.shape)
    matrix = read_table(loss, "losses")
    if matrix.ndim != 2 or not matrix.size:
        raise DataError(
            "a loss matrix has one row per outcome and one column per decision; got an array of "
            f"shape {matrix.shape}"
        )
    if items is None:
        return _factors(matrix, np.arange(matrix.shape[1]), share)
    orders = all_orders(_whole_items(items))
    if len(orders) != matrix.shape[1]:
        raise DataError(
            f"{items} items have {len(orders)} orders, and the matrix has {matrix.shape[1]} "
            "columns; leave out items= where columns are not orders"
        )
    return _factors(matrix, orders, share)


def factorise(metric: AbstractMetric, outcomes: FloatArray, tolerance: float = 1e-13) -> LowRank:
    """Factorise the loss of a metric on given label vectors (m, n) or graphs (m, n, n)."""
    n = outcomes.shape[1]
    orders = all_orders(_whole_items(n))
    check_work(len(outcomes), len(orders))
    return _factors(_metric_rows(metric, outcomes), orders, tolerance, metric)


def _factors(
    matrix: FloatArray, decisions: IntArray, tolerance: float, metric: AbstractMetric | None = None
) -> LowRank:
    check_work(*matrix.shape)
    rows = _centred(matrix)
    _, values, right = np.linalg.svd(rows, full_matrices=False)
    scale = max(float(np.abs(matrix).max()), float(values.max(initial=0.0)))
    beta = np.ascontiguousarray(right[values > tolerance * scale].T)
    rule = _rule(beta, decisions) if decisions.ndim == 2 else Rule("enumeration")
    return LowRank(rows @ beta, beta, decisions, rule, values, metric)


def _rule(beta: FloatArray, orders: IntArray) -> Rule:
    """Return the simplest decoder: values per item, costs per item and rank, or enumeration."""
    count, n = orders.shape
    table = (orders[:, None, :] == np.arange(n)[:, None]).reshape(count, n * n).astype(np.float64)
    cells = np.linalg.lstsq(table, beta, rcond=None)[0]
    if np.abs(table @ cells - beta).max(initial=0.0) > _SAME:
        return Rule("enumeration")
    costs = cells.reshape(n, n, -1)
    costs = costs - costs.mean(axis=0, keepdims=True)
    costs = costs - costs.mean(axis=1, keepdims=True)
    cells = costs.reshape(n * n, -1)
    by_rank = costs.transpose(0, 2, 1).reshape(-1, n)
    if not by_rank.size:
        return Rule("sort", cells, np.zeros(n))
    _, values, right = np.linalg.svd(by_rank, full_matrices=False)
    if values[1:].max(initial=0.0) > _SAME * max(values[0], _SAME):
        return Rule("assignment", cells)
    return Rule("sort", cells, np.round(right[0], 9))


def _metric_rows(metric: AbstractMetric, labels: ArrayLike) -> FloatArray:
    """Return the loss of every order, shape (m, n!); zeros where the metric is undefined."""
    table = read_table(labels, "labels")
    given = Distribution(table, np.ones(len(table) if table.ndim else 0))
    orders = all_orders(_whole_items(given.n_items))
    ranks = np.argsort(orders, axis=1).astype(np.float64)
    values = np.nan_to_num(given.order_values(metric, -ranks), nan=0.0)
    return -values if metric.higher_is_better else values


def _centred(rows: FloatArray) -> FloatArray:
    return np.asarray(rows - rows.mean(axis=1, keepdims=True), np.float64)


def _whole_items(items: int) -> int:
    n = read_whole(items, "items", 1)
    if n > MOST_ITEMS:
        raise LimitError(
            f"all orders of {n} items are too many; up to {MOST_ITEMS} items are enumerated. For "
            "longer lists use an objective with a score per item, or gbmrank.PairRanker"
        )
    return n


def _label_vectors(grades: ArrayLike, n: int) -> FloatArray:
    levels = np.unique(read_table(grades, "grades"))
    if not len(levels):
        raise DataError("grades are the labels that occur, such as (0, 1); got none")
    check_work(len(levels) ** n, len(all_orders(n)))
    return np.array(list(itertools.product(levels.tolist(), repeat=n)))


def _edges(measure: AbstractMetric, n: int) -> FloatArray:
    if not isinstance(measure, PairwiseDisagreement):
        raise ParameterError(
            f"{text_of(measure)} needs labels; pairwise_disagreement is the metric of graphs"
        )
    pairs = np.array(list(itertools.permutations(range(n), 2))).reshape(-1, 2)
    if not len(pairs):
        raise ParameterError("a preference graph has two items or more, got items=1")
    graphs = np.zeros((len(pairs), n, n))
    graphs[np.arange(len(pairs)), pairs[:, 0], pairs[:, 1]] = 1.0
    return graphs


def check_work(rows: int, columns: int) -> None:
    """Raise LimitError for a matrix that takes too long to factorise."""
    if rows * columns * min(rows, columns) > _MOST_WORK:
        raise LimitError(
            f"a loss matrix of {rows:,} outcomes and {columns:,} decisions is too large to "
            "factorise; leave out outcomes or decisions that do not occur, or use fewer grades"
        )
