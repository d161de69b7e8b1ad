"""Rankings from pair values: what a score per item cannot say.

The functions take the matrix of one query and return its items, best first. ``orders`` decodes
many queries at once, in compiled threads. An order has to break ties, and does so by index:
items that the values do not tell apart come in the order of the matrix.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from gbmrank.errors import DataError, LimitError, ParameterError
from gbmrank.kernels import compiler, pool
from gbmrank.kernels.graph_layout import PairValues
from gbmrank.kernels.layout import Span
from gbmrank.matrices import check_symmetric, read_square, read_table, read_wholes
from gbmrank.types import ArrayLike, FloatArray, IntArray

__all__ = [
    "DECODERS",
    "diagonal",
    "exact_disagreement",
    "exact_map",
    "graph_order",
    "greedy_map",
    "map_value",
    "orders",
]

MOST_EXACT = 20  # items; a million sets
EXACT_AUTO = 12  # items up to which "auto" is exact
DECODERS = {
    "disagreement": ("auto", "graph", "graph_degree", "exact"),
    "map": ("auto", "diagonal", "exact", "greedy"),
}


def graph_order(values: ArrayLike, *, ties: str = "index") -> IntArray:
    """Order items by Algorithm 1 of Ramaswamy et al.

    Edges go from i to j with weight ``u[i, j] - u[j, i]`` where that is positive. While there is
    a cycle the lightest edge is deleted, by ascending (weight, i, j), also where it lies on no
    cycle; what is left is read in topological order. Right for every distribution whose
    expected difference graph has no cycle.

    Parameters
    ----------
    values : array-like of shape (n_items, n_items)
        ``values[i, j]`` is the weight of "i is preferred to j"; the diagonal is not read.
    ties : {"index", "degree"}, default="index"
        Which of the items that nothing precedes comes first: the smallest index, or the
        largest net degree and of equal ones the smallest index.

    Returns
    -------
    array of shape (n_items,)
        Items, best first.

    References
    ----------
    Ramaswamy, Agarwal and Tewari, "Convex calibrated surrogates for low-rank loss matrices with
    applications to subset ranking losses", NIPS 2013, sec. 6.

    Examples
    --------
    >>> graph_order([[0, 1, 0], [0, 0, 6], [0, 0, 0]])
    array([0, 1, 2])
    """
    if ties not in ("index", "degree"):
        raise ParameterError(f"ties must be index or degree, got {ties!r}")
    return _one(values, "graph" if ties == "index" else "graph_degree", "disagreement")


def exact_disagreement(values: ArrayLike) -> IntArray:
    """Order items so that the weight of contradicted preferences is smallest.

    Dynamic programming over sets, up to 20 items (seconds); above that use :func:`graph_order`.
    Of several best orders the one that has the smallest index first, then second, and so on.
    Parameters and result as for :func:`graph_order`.

    Examples
    --------
    >>> exact_disagreement([[0, 1, 0], [0, 0, 6], [2, 0, 0]])  # best to give up 0 over 1
    array([1, 2, 0])
    """
    return _one(values, "exact", "disagreement")


def exact_map(values: ArrayLike) -> IntArray:
    r"""Order items so that expected average precision is largest.

    .. math:: \sum_{i \ge j} u_{ij} / \max(\mathrm{rank}_i, \mathrm{rank}_j)

    Dynamic programming over sets, up to 20 items; above that use :func:`greedy_map`. Of several
    best orders the one that has the smallest index first, then second, and so on.

    Parameters
    ----------
    values : array-like of shape (n_items, n_items)
        Symmetric; the expectation of ``y_i y_j / number of relevant items``.

    Returns
    -------
    array of shape (n_items,)
        Items, best first.
    """
    return _one(values, "exact", "map")


def greedy_map(values: ArrayLike) -> IntArray:
    """Order items for average precision by the largest gain at each rank, then by moves.

    A heuristic for any number of items: no single item can be moved to a better place. Of equal
    gains the smallest index is taken, and an item moves only where that makes the sum larger.
    Parameters and result as for :func:`exact_map`.
    """
    return _one(values, "greedy", "map")


def diagonal(values: ArrayLike) -> IntArray:
    """Order items by the diagonal alone; ties keep the smaller index first.

    Right for average precision where reinforcement holds (:func:`gbmrank.theory.reinforces`).
    Parameters and result as for :func:`exact_map`.

    Examples
    --------
    >>> diagonal([[0.3, 0.1], [0.1, 0.5]])
    array([1, 0])
    """
    return _one(values, "diagonal", "map")


def map_value(values: ArrayLike, order: ArrayLike) -> float:
    """Return the sum that :func:`exact_map` makes largest, for any order of the items."""
    u, items = _matrix(values, symmetric=True), read_wholes(order, "order", 0)
    if not np.array_equal(np.sort(items), np.arange(len(u))):
        raise DataError(
            f"an order names each of the items 0 to {len(u) - 1} once, got {items.tolist()}"
        )
    seen = np.tril(u[np.ix_(items, items)])
    return float((seen.sum(axis=1) / np.arange(1.0, len(items) + 1.0)).sum())


def orders(
    values: FloatArray, sizes: Sequence[int] | IntArray, surrogate: str, decoder: str = "auto"
) -> IntArray:
    """Decode the matrices of many queries.

    Parameters
    ----------
    values : array of shape (sum of n_items^2,)
        The matrices of all queries, row by row, one after the other; symmetric for "map".
    sizes : sequence of int
        Items per query.
    surrogate : {"disagreement", "map"}
        What the values stand for.
    decoder : str, default="auto"
        One of ``DECODERS[surrogate]``. "auto" is exact up to 12 items; above that it is
        Algorithm 1, or the greedy heuristic for average precision.

    Returns
    -------
    array of shape (n_items in all queries,)
        Items of each query from 0, best first. Ties are broken by index, as each decoder says.
    """
    check_decoder(surrogate, decoder)
    sizes = read_wholes(sizes, "sizes", 1)
    check_exact(sizes, decoder)
    flat = check_values(values, sizes)
    if surrogate == "map":
        _check_symmetric(flat, sizes)
    out = np.empty(int(sizes.sum()), np.int64)
    for chosen, concrete in shares(sizes, surrogate, decoder):
        part = flat if chosen.all() else flat[np.repeat(chosen, sizes * sizes)]
        out[np.repeat(chosen, sizes)] = _decode(part, sizes[chosen], surrogate, concrete)
    return out


def _decode(flat: FloatArray, sizes: IntArray, surrogate: str, decoder: str) -> IntArray:
    """Return the items of each query from 0, best first."""
    longest = int(sizes.max(initial=0))
    pairs = _pair_values(flat, sizes)
    out = np.empty(int(sizes.sum()), np.int64)
    task, cost = _task(surrogate, decoder, pairs, out)
    chunks = pool.cut_into_chunks(cost(sizes.astype(np.float64)) + 100.0)
    pool.run_chunks(lambda first, last: task(Span(first, last, longest)), chunks)
    return out


def check_decoder(surrogate: str, decoder: str) -> None:
    """Raise ParameterError unless a decoder serves a surrogate."""
    if surrogate not in DECODERS:
        raise ParameterError(f"surrogate must be one of {', '.join(DECODERS)}; got {surrogate!r}")
    if decoder not in DECODERS[surrogate]:
        raise ParameterError(
            f"decoder must be one of {', '.join(DECODERS[surrogate])} for surrogate={surrogate}; "
            f"got {decoder!r}"
        )


def check_exact(sizes: IntArray, decoder: str, advice: str = "use decoder=auto") -> None:
    """Raise LimitError when the exact decoder is asked to decode a long query."""
    longest = int(sizes.max(initial=0))
    if decoder == "exact" and longest > MOST_EXACT:
        raise LimitError(
            f"the exact decoder goes through all sets of items, up to {MOST_EXACT} items; a query "
            f"has {longest}: {advice}"
        )


def check_values(values: FloatArray, sizes: IntArray) -> FloatArray:
    """Return pair values as one row of numbers; raise DataError unless all are there and finite."""
    flat = read_table(values, "pair values").reshape(-1)
    cells = int((sizes * sizes).sum())
    if len(flat) != cells:
        raise DataError(f"queries of these sizes have {cells} pair values, got {len(flat)}")
    return flat


def _check_symmetric(flat: FloatArray, sizes: IntArray) -> None:
    for n, end in zip(sizes.tolist(), np.cumsum(sizes * sizes).tolist(), strict=True):
        check_symmetric(flat[end - n * n : end].reshape(n, n), "pair values")


def shares(
    sizes: IntArray, surrogate: str, decoder: str
) -> Iterator[tuple[npt.NDArray[np.bool_], str]]:
    """Yield queries with the decoder that serves them: "auto" is exact on short ones."""
    fast = "graph_degree" if surrogate == "disagreement" else "greedy"
    short = sizes <= EXACT_AUTO
    whole = ((np.ones(len(sizes), np.bool_), decoder),)
    for chosen, name in ((short, "exact"), (~short, fast)) if decoder == "auto" else whole:
        if chosen.any():
            yield chosen, name


def _pair_values(flat: FloatArray, sizes: IntArray) -> PairValues:
    rows = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes * sizes)]).astype(np.int64)
    return PairValues(rows, offsets, flat if flat.flags.writeable else flat.copy())


def _task(
    surrogate: str, decoder: str, pairs: PairValues, out: IntArray
) -> tuple[Callable[[Span], None], Callable[[FloatArray], FloatArray]]:
    """Return the kernel that decodes a span of queries, and its cost by query size."""
    if decoder == "exact":
        exact = compiler.load("set_decode").exact_orders
        precision = surrogate == "map"
        return lambda span: exact(pairs, precision, span, out), lambda n: 2.0**n * n * n
    if surrogate == "disagreement":
        graph = compiler.load("graph_decode").graph_orders
        by_degree = decoder == "graph_degree"
        return lambda span: graph(pairs, by_degree, span, out), lambda n: 50.0 * n * n
    if decoder == "greedy":
        greedy = compiler.load("map_decode").greedy_orders
        return lambda span: greedy(pairs, True, span, out), lambda n: 200.0 * n * n
    return lambda span: _sort_diagonals(pairs, span, out), lambda n: 1000.0 + 50.0 * n


def _sort_diagonals(pairs: PairValues, span: Span, out: IntArray) -> None:
    for q in range(span.first, span.last):
        begin, end = pairs.rows[q : q + 2].tolist()
        u = pairs.values[pairs.offsets[q] : pairs.offsets[q + 1]]
        out[begin:end] = np.argsort(-u[:: end - begin + 1], kind="stable")


def _one(values: ArrayLike, decoder: str, surrogate: str) -> IntArray:
    matrix = _matrix(values, symmetric=surrogate == "map")
    other = "greedy_map" if surrogate == "map" else "graph_order"
    check_exact(np.array([len(matrix)]), decoder, f"use gbmrank.decoders.{other}")
    return orders(matrix.reshape(-1), [len(matrix)], surrogate, decoder)


def _matrix(values: ArrayLike, symmetric: bool) -> FloatArray:
    matrix = read_square(values, "pair values", symmetric=symmetric)
    if not len(matrix):
        raise DataError("pair values form a square matrix of at least one item, got none")
    return matrix
