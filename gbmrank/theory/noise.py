"""Noise conditions on preferences, under which surrogates are consistent.

The functions on matrices take the expected graph of one query (or its estimate, the sum of
repeated judgments) and return yes, or no with a witness. Numbers that differ by less than 10^-12
of the largest weight count as tied, and a condition that needs them apart does not hold.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from gbmrank.data.columns import check_graphs, read_square, read_table
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.data.queries import Groups
from gbmrank.errors import DataError
from gbmrank.types import ArrayLike, FloatArray

_TOLERANCE = 1e-12
_JUDGES = 8


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a condition holds; if not, with the items that violate it."""

    holds: bool  #: the answer, also the truth value of the object
    witness: tuple[int, ...] | None = None  #: items that violate the condition; None if it holds
    reason: str = ""  #: the witness in words

    def __bool__(self) -> bool:
        return self.holds


def difference_graph(A: ArrayLike) -> FloatArray:  # noqa: N803
    """Return ``max(A_ij - A_ji, 0)``, the graph after opposite preferences cancel.

    Parameters
    ----------
    A : array-like of shape (n_items, n_items)
        ``A[i, j] >= 0`` is the weight of "i is preferred to j"; the diagonal is zero.

    Examples
    --------
    >>> difference_graph([[0, 3], [1, 0]])
    array([[0., 2.],
           [0., 0.]])
    """
    weights = _graph(A)
    lead = weights - weights.T
    lead[lead <= _TOLERANCE * _largest(weights)] = 0.0
    return lead


def net_degree(A: ArrayLike) -> FloatArray:  # noqa: N803
    """Return the net degree ``sum_j (A_ij - A_ji)`` of every item.

    Examples
    --------
    >>> net_degree([[0, 1, 0], [0, 0, 6], [0, 0, 0]])
    array([ 1.,  5., -6.])
    """
    weights = _graph(A)
    return np.asarray(weights.sum(axis=1) - weights.sum(axis=0), np.float64)


def is_acyclic(A: ArrayLike) -> Answer:  # noqa: N803
    """Return whether the graph A itself has no cycle; the witness is the cycle.

    The condition under which pair models are consistent (P_DAG) is
    ``is_acyclic(difference_graph(A))``.

    Examples
    --------
    >>> is_acyclic([[0, 1, 0], [0, 0, 1], [1, 0, 0]]).witness
    (0, 1, 2)
    """
    weights = _graph(A)
    if not len(weights):
        return _YES
    winner, loser = np.nonzero(weights)
    graphs = PreferenceGraphs.from_edges(winner, loser, group=[len(weights)])
    cycle = graphs.find_cycle()
    if cycle is None:
        return _YES
    path = " over ".join(map(str, [*cycle, cycle[0]]))
    return Answer(False, tuple(cycle), f"item {path} is a cycle")


def is_low_noise(A: ArrayLike) -> Answer:  # noqa: N803
    r"""Return whether preferences have low noise; the witness is a triple (i, j, k).

    .. math:: A_{ik} - A_{ki} \ge D_{ij} + D_{jk} \text{ for all edges } i \to j \to k
              \text{ of the difference graph } D

    Then the linear loss is consistent for pairwise disagreement (Duchi et al. 2010, Def. 8,
    Cor. 15). :math:`O(n^3)`.
    """
    weights = _graph(A)
    edges, lead = difference_graph(weights), weights - weights.T
    slack = 4.0 * _TOLERANCE * _largest(weights)
    for j in range(len(weights)):
        into, out = np.flatnonzero(edges[:, j]), np.flatnonzero(edges[j])
        through = edges[into, j][:, None] + edges[j, out][None, :]
        short = np.argwhere(lead[np.ix_(into, out)] < through - slack)
        if len(short):
            i, k = int(into[short[0, 0]]), int(out[short[0, 1]])
            reason = (
                f"{i} leads {k} by {lead[i, k]:g}, less than by way of {j}: "
                f"{edges[i, j]:g} + {edges[j, k]:g}"
            )
            return Answer(False, (i, j, k), reason)
    return _YES


def degree_condition(A: ArrayLike, f: ArrayLike | None = None) -> Answer:  # noqa: N803
    r"""Return whether sorting by f is optimal for pairwise disagreement; the witness is a pair.

    .. math:: A_{ik} > A_{ki} \Rightarrow f_i > f_k

    With net degrees, the linear loss is consistent exactly if this holds (Duchi et al.
    2010, Thm. 13). With the expectation of any other f(y), a squared loss fitted to f(y) is
    consistent if it holds: the distributions P_f of Ramaswamy et al. 2013, Thm. 6.

    Parameters
    ----------
    A : array-like of shape (n_items, n_items)
        The expected graph.
    f : array-like of shape (n_items,), optional
        Expected value to sort by; net degrees by default.

    Examples
    --------
    >>> chain = [[0, 1, 0], [0, 0, 6], [0, 0, 0]]
    >>> degree_condition(chain).reason
    '0 is preferred to 1, with a net degree of 1 against 5'
    >>> bool(degree_condition(chain, f=[2, 1, 0]))
    True
    """
    weights = _graph(A)
    if f is None:
        size = len(weights) * _largest(weights)
        return sorts_preferences(weights, net_degree(weights), size, "a net degree")
    rule = f"f has one finite number per item of the graph ({len(weights)})"
    values = read_table(f, f"{rule}; its entries")
    if values.shape != (len(weights),):
        raise DataError(f"{rule}; got an array of shape {values.shape}: {values}")
    return sorts_preferences(weights, values, _largest(values))


def sorts_preferences(
    weights: FloatArray, sorted_by: FloatArray, size: float, words: str = "an f"
) -> Answer:
    """Return whether a graph prefers no item to one that is not clearly behind it.

    ``size`` is the largest of the numbers that ``sorted_by`` was summed from: their rounding does
    not count as a difference.
    """
    behind = sorted_by[:, None] <= sorted_by[None, :] + _TOLERANCE * size
    wrong = np.argwhere((difference_graph(weights) > 0) & behind)
    if not len(wrong):
        return _YES
    i, k = wrong[0].tolist()
    reason = f"{i} is preferred to {k}, with {words} of {sorted_by[i]:g} against {sorted_by[k]:g}"
    return Answer(False, (i, k), reason)


def reinforces(U: ArrayLike) -> Answer:  # noqa: N803
    r"""Return whether U has the reinforcement property; the witness is a pair (i, j).

    .. math:: u_{ii} \ge u_{jj} \Rightarrow
              u_{ii} \ge u_{jj} + \sum_{g \notin \{i, j\}} (u_{jg} - u_{ig})_+

    Then sorting by the diagonal is optimal for average precision (Ramaswamy et al. 2013, Thm. 4).
    :math:`O(n^3)`.

    Parameters
    ----------
    U : array-like of shape (n_items, n_items)
        Symmetric; the expectation of ``y_i y_j / number of relevant items``.
    """
    u = read_square(U, "expectations", symmetric=True)
    diagonal, slack = np.diag(u), 4.0 * _TOLERANCE * len(u) * _largest(u)
    for i in range(len(u)):
        more = np.maximum(u - u[i], 0.0)  # row j: (u_jg - u_ig)+
        np.fill_diagonal(more, 0.0)
        more[:, i] = 0.0
        needed = diagonal + more.sum(axis=1)
        ahead = diagonal[i] >= diagonal - _TOLERANCE * _largest(u)
        wrong = np.flatnonzero(ahead & (diagonal[i] < needed - slack))
        if len(wrong):
            j = int(wrong[0])
            reason = f"{i} is at least as often relevant as {j}, which others reinforce more"
            return Answer(False, (i, j), reason)
    return _YES


def misordered_by_convex(A: ArrayLike) -> tuple[int, int, int] | None:  # noqa: N803
    r"""Return items i, j, k of which every convex loss of comparisons puts k above j, or None.

    Preferences of three items, i over j, j over k and i over k (more often than k over i), with

    .. math:: A_{jk} < \min\Bigl(A_{ij}, \frac{A_{ij} A_{ki}}{A_{ij} + A_{ik}}\Bigr)

    For differentiable phi with ``phi'(0) < 0`` no minimiser of ``sum A phi(s_i - s_j)`` has
    :math:`s_j \ge s_k`. There ``A_ij phi'(d_ij) = A_jk phi'(d_jk)``, which is at least
    ``A_jk phi'(0)``. If :math:`d_{ik} < 0`, then :math:`d_{ij} < 0` and ``A_ij <= A_jk``;
    otherwise ``phi'(d_ik) >= phi'(d_ij)`` and ``A_ki phi'(-d_ik) = A_jk phi'(d_jk) +
    A_ik phi'(d_ik)`` give ``A_ki <= A_jk (1 + A_ik / A_ij)``.

    References
    ----------
    Duchi, Mackey and Jordan, ICML 2010, Lemma 10 (first condition), with a proof of our own.

    Examples
    --------
    >>> misordered_by_convex([[0, 0.5, 1.5], [0, 0, 0.1], [0.5, 0, 0]])
    (0, 1, 2)
    """
    a = _graph(A)
    if a.shape != (3, 3):
        raise DataError(f"the condition is about three items, got a graph of shape {a.shape}")
    for i, j, k in itertools.permutations(range(3)):
        if a[j, i] or a[k, j] or not (a[i, j] > 0 and a[j, k] > 0 and a[i, k] > a[k, i]):
            continue
        limit = min(a[i, j], a[i, j] * a[k, i] / (a[i, j] + a[i, k]))
        if a[j, k] < limit - 4.0 * _TOLERANCE * _largest(a):
            return i, j, k
    return None


def independence(
    judgments: ArrayLike,
    *,
    group: ArrayLike | None = None,
    threshold: float | None = None,
    level: float = 0.01,
) -> Answer:
    r"""Test on repeated judgments whether items of a query are relevant independently.

    For every pair of items of a query that judges disagree on, m times the squared correlation
    over the m judges is about chi-squared with one degree of freedom when the two are
    independent; the sum over pairs is compared with its distribution. If it holds, the judgments
    do not contradict independence, which is no proof of it; otherwise the witness is the most
    correlated pair of rows.

    Parameters
    ----------
    judgments : array-like of shape (n_rows, n_judges)
        Labels by judge, at least 8 of them: 0 and 1, or any with a ``threshold``.
    group : array-like of shape (n_queries,), optional
        Rows per query; nothing means one query.
    threshold : float or None, default=None
        Labels of at least this are relevant.
    level : float, default=0.01
        Probability of rejection if items are independent.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bool(independence(rng.random((3, 200)) < 0.4))
    True
    >>> coin = rng.random(200) < 0.5
    >>> independence([coin, coin, ~coin]).witness
    (0, 1)
    """
    from scipy.stats import chi2

    table = read_table(judgments, "judgments")
    if table.ndim == 2 and threshold is not None:
        table = (table >= threshold).astype(np.float64)
    if table.ndim != 2 or table.shape[1] < _JUDGES or not np.isin(table, (0.0, 1.0)).all():
        raise DataError(
            f"judgments are 0 or 1 (or labels, with threshold=), one row per item and one column "
            f"per judge, {_JUDGES} judges at least; got an array of shape {table.shape}"
        )
    offsets = Groups.read(len(table), group, None).offsets
    total, pairs, worst, at = 0.0, 0, 0.0, (0, 0)
    for begin, end in itertools.pairwise(offsets.tolist()):
        rows = np.arange(begin, end)
        rows = rows[np.ptp(table[rows], axis=1) > 0]
        if len(rows) < 2:
            continue
        squared = np.triu(np.corrcoef(table[rows]) ** 2, 1)
        total += table.shape[1] * squared.sum()
        pairs += len(rows) * (len(rows) - 1) // 2
        i, j = np.unravel_index(int(squared.argmax()), squared.shape)
        if squared[i, j] > worst:
            worst, at = float(squared[i, j]), (int(rows[i]), int(rows[j]))
    if pairs == 0 or chi2.sf(total, pairs) >= level:
        return _YES
    return Answer(False, at, f"rows {at[0]} and {at[1]} have a correlation of {worst**0.5:.2g}")


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoiseReport:
    """Per query, whether each condition holds for the summed judgments."""

    queries: Any  #: numbers of the queries with at least one edge; only these are tested
    #: by condition: ``low_noise``, ``degree``, ``acyclic``, and ``reinforcement`` if judgments
    #: were given; one answer per query
    answers: dict[str, list[Answer]]

    def share(self, condition: str) -> float:
        """Return the share of queries in which a condition holds."""
        return float(np.mean([bool(answer) for answer in self.answers[condition]]))

    def failures(self, condition: str) -> Iterator[tuple[int, Answer]]:
        """Yield the query number and the answer where a condition does not hold."""
        for query, answer in zip(self.queries.tolist(), self.answers[condition], strict=True):
            if not answer:
                yield query, answer

    def __str__(self) -> str:
        meaning = {
            "low_noise": "low noise holds: the linear loss is right",
            "degree": "the degree condition holds: sorting by net degree is right",
            "acyclic": "the difference graph has no cycle: a pair model is right",
            "reinforcement": "reinforcement holds: the diagonal is right for average precision",
        }
        return "\n".join(
            f"in {self.share(name):.0%} of your {len(self.queries)} queries {meaning[name]}"
            for name in self.answers
        )


def noise_report(graphs: PreferenceGraphs, *, judgments: ArrayLike | None = None) -> NoiseReport:
    """Estimate from repeated judgments in which queries the noise conditions hold.

    The sum of a query's judgments is the estimate of its expected graph. With few judgments per
    pair this estimate is noisy, and so are the shares.

    Parameters
    ----------
    graphs : PreferenceGraphs
        Sums of judgments: repeated edges, duels, or rankings of several judges.
    judgments : array-like of shape (n_rows, n_judges), optional
        Binary relevance by judge, in the rows of ``graphs``; adds the reinforcement condition.

    Examples
    --------
    >>> graphs = PreferenceGraphs.from_edges([0, 1], [1, 2], [1, 6], group=[3])
    >>> print(noise_report(graphs))
    in 0% of your 1 queries low noise holds: the linear loss is right
    in 0% of your 1 queries the degree condition holds: sorting by net degree is right
    in 100% of your 1 queries the difference graph has no cycle: a pair model is right
    """
    edges = graphs.to_edges()
    queries = np.flatnonzero(np.diff(edges.offsets))
    if not len(queries):
        raise DataError("no query has a preference, so there is nothing to estimate from")
    tables = [graphs.to_matrix(query) for query in queries.tolist()]
    answers = {
        "low_noise": [is_low_noise(weights) for weights in tables],
        "degree": [degree_condition(weights) for weights in tables],
        "acyclic": [is_acyclic(difference_graph(weights)) for weights in tables],
    }
    if judgments is not None:
        table = _binary(judgments, graphs)
        bounds = graphs.groups.offsets
        answers["reinforcement"] = [
            reinforces(_mean_precision_target(table[bounds[q] : bounds[q + 1]])) for q in queries
        ]
    return NoiseReport(queries, answers)


_YES = Answer(True)


def _mean_precision_target(relevant: FloatArray) -> FloatArray:
    """Mean over judges of ``y_i y_j / number of relevant items``; zero without any."""
    count = relevant.sum(axis=0)
    share = relevant / np.where(count > 0, count, 1.0)
    return np.asarray(share @ relevant.T / relevant.shape[1], np.float64)


def _binary(judgments: ArrayLike, graphs: PreferenceGraphs) -> FloatArray:
    table = read_table(judgments, "judgments")
    if table.ndim != 2 or len(table) != graphs.n_rows or not np.isin(table, (0.0, 1.0)).all():
        raise DataError(
            f"judgments are 0 or 1, one row per row of the data ({graphs.n_rows}) and one column "
            f"per judge; got an array of shape {table.shape}"
        )
    return np.asarray(graphs.groups.arrange(table), np.float64)


def _graph(A: ArrayLike) -> FloatArray:  # noqa: N803
    if isinstance(A, PreferenceGraphs):
        raise DataError(
            "this looks at the matrix of one query, got PreferenceGraphs; give "
            "graphs.to_matrix(query), or ask noise_report"
        )
    return check_graphs(read_square(A, "the weights of a graph"))


def _largest(weights: FloatArray) -> float:
    return float(np.abs(weights).max(initial=0.0))
