"""Decoders: rankings from pair values, which one score per item cannot represent.

Most functions take the matrix of one query and return its items, best first. :func:`orders`
decodes many queries at once, in compiled threads. A ranking has to break ties, and does so by
index: items with equal values come in the order of the matrix. :func:`tied_places` returns a
place per item instead, which tied items share.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import check_symmetric, read_square, read_table, read_wholes
from gbmrank.errors import DataError, LimitError, ParameterError
from gbmrank.kernels.jit import compiler, threads
from gbmrank.kernels.layout import PairValues, Span
from gbmrank.types import ArrayLike, FloatArray, IntArray

_MOST_EXACT = 20  # items; a million sets
EXACT_AUTO = 12  # items up to which "auto" is exact
DECODERS = {
    "disagreement": ("auto", "graph", "graph_degree", "exact"),
    "map": ("auto", "diagonal", "exact", "greedy"),
}


def graph_order(values: ArrayLike, *, ties: str = "index") -> IntArray:
    """Order items by Algorithm 1 of Ramaswamy et al.

    Edges go from i to j with weight ``u[i, j] - u[j, i]`` if that is positive. While there is a
    cycle the lightest edge is deleted, by ascending (weight, i, j), even if it is not part of a
    cycle; the result is a topological order of the remaining edges. Optimal for every
    distribution whose expected difference graph has no cycle.

    Parameters
    ----------
    values : array-like of shape (n_items, n_items)
        ``values[i, j]`` is the weight of "i is preferred to j"; the diagonal is ignored.
    ties : {"index", "degree"}, default="index"
        Which of several items without a predecessor comes first: that with the smallest index,
        or with the largest net degree (and then the smallest index).

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
    """Order items so that the total weight of contradicted preferences is smallest.

    Dynamic programming over sets, for up to 20 items (seconds); use :func:`graph_order` for more.
    Of several best orders it returns the lexicographically smallest.

    Parameters
    ----------
    values : array-like of shape (n_items, n_items)
        ``values[i, j]`` is the weight of "i is preferred to j"; the diagonal is ignored.

    Returns
    -------
    array of shape (n_items,)
        Items, best first.

    Examples
    --------
    >>> exact_disagreement([[0, 1, 0], [0, 0, 6], [2, 0, 0]])  # best to give up 0 over 1
    array([1, 2, 0])
    """
    return _one(values, "exact", "disagreement")


def exact_map(values: ArrayLike) -> IntArray:
    r"""Order items so that expected average precision is largest.

    .. math:: \sum_{i \ge j} u_{ij} / \max(\mathrm{rank}_i, \mathrm{rank}_j)

    Dynamic programming over sets, for up to 20 items; use :func:`greedy_map` for more. Of several
    best orders it returns the lexicographically smallest.

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
    """Order items for average precision greedily, then improve the order by moving single items.

    A heuristic for any number of items: in the result no single item can be moved to a better
    place. Ties of the gain are broken by the smallest index, and an item is only moved if that
    increases the value.

    Parameters
    ----------
    values : array-like of shape (n_items, n_items)
        Symmetric; the expectation of ``y_i y_j / number of relevant items``.

    Returns
    -------
    array of shape (n_items,)
        Items, best first.
    """
    return _one(values, "greedy", "map")


def diagonal(values: ArrayLike) -> IntArray:
    """Order items by decreasing diagonal value; ties keep the smaller index first.

    Optimal for average precision if reinforcement holds (:func:`gbmrank.theory.reinforces`).

    Parameters
    ----------
    values : array-like of shape (n_items, n_items)
        Symmetric; the expectation of ``y_i y_j / number of relevant items``.

    Returns
    -------
    array of shape (n_items,)
        Items, best first.

    Examples
    --------
    >>> diagonal([[0.3, 0.1], [0.1, 0.5]])
    array([1, 0])
    """
    return _one(values, "diagonal", "map")


def map_value(values: ArrayLike, order: ArrayLike) -> float:
    """Return the expected average precision of an order, which :func:`exact_map` maximises.

    Parameters
    ----------
    values : array-like of shape (n_items, n_items)
        Symmetric; the expectation of ``y_i y_j / number of relevant items``.
    order : array-like of shape (n_items,)
        Items, best first.

    Returns
    -------
    float
        The value.
    """
    u, items = _matrix(values, symmetric=True), read_wholes(order, "order", 0)
    if not np.array_equal(np.sort(items), np.arange(len(u))):
        raise DataError(
            f"an order must contain each item from 0 to {len(u) - 1} once, got {items.tolist()}"
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
        Meaning of the values.
    decoder : str, default="auto"
        One of ``DECODERS[surrogate]``. "auto" is exact up to 12 items; above that it is
        Algorithm 1, or the greedy heuristic for average precision.

    Returns
    -------
    array of shape (n_items in all queries,)
        Items of each query from 0, best first. Ties are broken by index; see each decoder.
    """
    check_decoder(surrogate, decoder)
    sizes = read_wholes(sizes, "sizes", 1)
    _check_exact(sizes, decoder)
    flat = _check_values(values, sizes)
    if surrogate == "map":
        for matrix in query_matrices(flat, sizes):
            check_symmetric(matrix, "pair values")
    out = np.empty(int(sizes.sum()), np.int64)
    for chosen, concrete in _decoder_shares(sizes, surrogate, decoder):
        part = flat if chosen.all() else flat[np.repeat(chosen, sizes * sizes)]
        out[np.repeat(chosen, sizes)] = _decode(part, sizes[chosen], surrogate, concrete)
    return out


def check_decoder(surrogate: str, decoder: str) -> None:
    """Raise ParameterError unless a decoder supports a surrogate."""
    if surrogate not in DECODERS:
        raise ParameterError(f"surrogate must be one of {', '.join(DECODERS)}; got {surrogate!r}")
    if decoder not in DECODERS[surrogate]:
        raise ParameterError(
            f"decoder must be one of {', '.join(DECODERS[surrogate])} for surrogate={surrogate}; "
            f"got {decoder!r}"
        )


def query_matrices(values: FloatArray, sizes: IntArray) -> Iterator[FloatArray]:
    """Yield the matrix of every query; values are stored row by row, query after query."""
    begin = 0
    for n in sizes.tolist():
        yield values[begin : begin + n * n].reshape(n, n)
        begin += n * n


def tied_places(
    values: FloatArray, sizes: Sequence[int] | IntArray, surrogate: str, decoder: str = "auto"
) -> FloatArray:
    """Decode the matrices of many queries into a place per item, 0 for the best; ties share one.

    Items tie if their values do not distinguish them: the two values between them are equal, and
    so are those towards every third item or one that ties with it. They share the mean of their
    places, so the places do not depend on the order of the items in the matrix. Items that do not
    tie have different places: if a decoder has a choice, the item with the larger sorted values
    comes first (``graph_degree`` compares net degrees before). For ``diagonal``, items tie if
    their diagonal values are equal.

    For disagreement a group of ties is decoded as one item; no order that splits it is better.
    For average precision a split may be better: the group is then put at the first, the mean or
    the last of the decoded places, whichever is best. Parameters as for :func:`orders`.
    """
    check_decoder(surrogate, decoder)
    sizes = np.asarray(sizes, np.int64)
    _check_exact(sizes, decoder)
    matrices = list(query_matrices(_check_values(values, sizes), sizes))
    out = np.empty(int(sizes.sum()))
    for chosen, concrete in _decoder_shares(sizes, surrogate, decoder):
        those = [matrices[q] for q in np.flatnonzero(chosen).tolist()]
        if concrete == "diagonal":
            places = [_shared_places(_number(-u.diagonal()[None, :])) for u in those]
        else:
            groups = [_tie_groups(u, surrogate, concrete) for u in those]
            places = _decode_groups(groups, surrogate, concrete)
        out[np.repeat(chosen, sizes)] = np.concatenate(places)
    return out


def _check_exact(sizes: IntArray, decoder: str, advice: str = "use decoder=auto") -> None:
    """Raise LimitError if a query is too long for the exact decoder."""
    longest = int(sizes.max(initial=0))
    if decoder == "exact" and longest > _MOST_EXACT:
        raise LimitError(
            f"the exact decoder enumerates all sets of items, for up to {_MOST_EXACT} items; a "
            f"query has {longest}: {advice}"
        )


def _check_values(values: FloatArray, sizes: IntArray) -> FloatArray:
    """Return pair values as a flat array; raise DataError unless all are present and finite."""
    flat = read_table(values, "pair values").reshape(-1)
    cells = int((sizes * sizes).sum())
    if len(flat) != cells:
        raise DataError(f"queries of these sizes need {cells} pair values, got {len(flat)}")
    return flat


def _decoder_shares(
    sizes: IntArray, surrogate: str, decoder: str
) -> Iterator[tuple[npt.NDArray[np.bool_], str]]:
    """Yield queries with their decoder: "auto" is exact for short ones."""
    fast = "graph_degree" if surrogate == "disagreement" else "greedy"
    short = sizes <= EXACT_AUTO
    whole = ((np.ones(len(sizes), np.bool_), decoder),)
    for chosen, name in ((short, "exact"), (~short, fast)) if decoder == "auto" else whole:
        if chosen.any():
            yield chosen, name


def _decode(flat: FloatArray, sizes: IntArray, surrogate: str, decoder: str) -> IntArray:
    """Return the items of each query from 0, best first."""
    if decoder == "diagonal":
        kept = [np.argsort(-u.diagonal(), kind="stable") for u in query_matrices(flat, sizes)]
        return np.concatenate(kept)
    rows = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes * sizes)]).astype(np.int64)
    pairs = PairValues(rows, offsets, flat if flat.flags.writeable else flat.copy())
    out = np.empty(int(sizes.sum()), np.int64)
    task, cost = _task(surrogate, decoder, pairs, out)
    costs = cost(sizes.astype(np.float64)) + 100.0
    threads.run_spans(task, threads.cut_into_spans(costs, int(sizes.max(initial=0))))
    return out


def _task(
    surrogate: str, decoder: str, pairs: PairValues, out: IntArray
) -> tuple[Callable[[Span], None], Callable[[FloatArray], FloatArray]]:
    """Return the kernel that decodes a span of queries, and its cost by query size."""
    if decoder == "exact":
        exact = compiler.load("decode.search").exact_orders
        precision = surrogate == "map"
        return lambda span: exact(pairs, precision, span, out), lambda n: 2.0**n * n * n
    if surrogate == "disagreement":
        graph = compiler.load("decode.search").graph_orders
        by_degree = decoder == "graph_degree"
        return lambda span: graph(pairs, by_degree, span, out), lambda n: 50.0 * n * n
    greedy = compiler.load("decode.search").greedy_orders
    return lambda span: greedy(pairs, span, out), lambda n: 200.0 * n * n


def _one(values: ArrayLike, decoder: str, surrogate: str) -> IntArray:
    matrix = _matrix(values, symmetric=surrogate == "map")
    other = "greedy_map" if surrogate == "map" else "graph_order"
    _check_exact(np.array([len(matrix)]), decoder, f"use gbmrank.decoders.{other}")
    return orders(matrix.reshape(-1), [len(matrix)], surrogate, decoder)


def _matrix(values: ArrayLike, symmetric: bool) -> FloatArray:
    matrix = read_square(values, "pair values", symmetric=symmetric)
    if not len(matrix):
        raise DataError("pair values must form a square matrix of at least one item, got none")
    return matrix


class _TieGroups(NamedTuple):
    """Groups of tied items, numbered independently of item numbers."""

    of: IntArray  # the group of each item
    sizes: IntArray
    values: FloatArray  # between items of two groups, or two items of one
    own: FloatArray  # the diagonal value of the items of a group


def _tie_groups(u: FloatArray, surrogate: str, decoder: str) -> _TieGroups:
    """Return the tie groups of one query, in the order in which the decoder should choose."""
    sign = 1.0
    if surrogate == "disagreement":
        u, sign = u - u.T, -1.0
    own = u.diagonal()
    of = _refine(u, _number(-own[None, :]))
    sizes, first = np.bincount(of), np.unique(of, return_index=True)[1]
    between = _between(u, of, sizes, first)
    groups = _TieGroups(of, sizes, 0.5 * (between + sign * between.T), own[first])
    return _by_degree(groups) if decoder == "graph_degree" else groups


def _number(columns: FloatArray) -> IntArray:
    """Return the place of each item by ascending columns, the same for equal ones, from 0."""
    order = np.lexsort(columns[::-1])
    along = columns[:, order]
    number = np.empty(len(order), np.int64)
    number[order] = np.concatenate([[0], np.cumsum((along[:, 1:] != along[:, :-1]).any(axis=0))])
    return number


def _refine(u: FloatArray, of: IntArray) -> IntArray:
    """Split groups until items of a group have the same values towards every group."""
    while True:
        order = np.lexsort((-u, np.broadcast_to(of, u.shape)))
        finer = _number(np.vstack([of, -np.take_along_axis(u, order, axis=1).T]))
        if finer.max() == of.max() or finer.max() == len(u) - 1:
            return finer
        of = finer


def _between(u: FloatArray, of: IntArray, sizes: IntArray, first: IntArray) -> FloatArray:
    """Return the mean value of an item of a group towards the other items of every group.

    Sums are taken over sorted values, and skipped if these are equal, so that the last digit does
    not depend on the order of the items.
    """
    groups = np.arange(len(sizes))
    rows = u[first]
    rows[groups, first] = np.inf  # last of its group
    order = np.lexsort((rows, np.broadcast_to(of, rows.shape)))
    rows = np.take_along_axis(rows, order, axis=1)
    rows[np.isinf(rows)] = 0.0
    begins = np.cumsum(sizes) - sizes
    count = sizes[None, :] - np.eye(len(sizes), dtype=np.int64)
    smallest = rows[:, begins]
    largest = rows[groups[:, None], begins + np.maximum(count - 1, 0)]
    mean = np.add.reduceat(rows, begins, axis=1) / np.maximum(count, 1)
    return np.asarray(np.where(smallest == largest, smallest, mean))


def _by_degree(groups: _TieGroups) -> _TieGroups:
    """Number groups by descending net degree of their items."""
    order = np.argsort(-(groups.values * groups.sizes).sum(axis=1), kind="stable")
    number = np.argsort(order)
    values = groups.values[np.ix_(order, order)]
    return _TieGroups(number[groups.of], groups.sizes[order], values, groups.own[order])


def _decode_groups(several: list[_TieGroups], surrogate: str, decoder: str) -> list[FloatArray]:
    """Return the places of the items of every query."""
    make = _matrix_of_items if surrogate == "map" else _matrix_of_groups
    matrices = [make(groups, decoder) for groups in several]
    flat = np.concatenate([matrix.reshape(-1) for matrix in matrices])
    lengths = np.array([len(matrix) for matrix in matrices])
    by_index = "graph" if decoder == "graph_degree" else decoder  # numbered by net degree
    decoded = np.split(orders(flat, lengths, surrogate, by_index), np.cumsum(lengths)[:-1])
    if surrogate == "map":
        decoded = [_group_order(*given) for given in zip(decoded, several, matrices, strict=True)]
    return [
        _shared_places(groups.of, order) for groups, order in zip(several, decoded, strict=True)
    ]


def _matrix_of_groups(groups: _TieGroups, decoder: str) -> FloatArray:
    """Return the values to decode groups by; the exact decoder counts each pair of items."""
    if decoder == "exact":
        return groups.values * np.outer(groups.sizes, groups.sizes)
    return groups.values


def _matrix_of_items(groups: _TieGroups, _decoder: str) -> FloatArray:
    """Return the values to decode items by, group by group: precision counts ranks of items."""
    of = np.sort(groups.of)
    matrix = groups.values[np.ix_(of, of)]
    np.fill_diagonal(matrix, groups.own[of])
    return matrix


def _group_order(order: IntArray, groups: _TieGroups, matrix: FloatArray) -> IntArray:
    """Return an order of groups from an order of items that may split them."""
    places, of = np.argsort(order), np.sort(groups.of)
    begins = np.cumsum(groups.sizes) - groups.sizes
    first, last = np.minimum.reduceat(places, begins), np.maximum.reduceat(places, begins)
    if np.all(last - first == groups.sizes - 1):
        return np.argsort(first)
    mean = np.add.reduceat(places, begins) / groups.sizes
    ways = [np.argsort(key, kind="stable") for key in (mean, first, last)]
    return max(
        ways, key=lambda way: map_value(matrix, np.argsort(np.argsort(way)[of], kind="stable"))
    )


def _shared_places(of: IntArray, order: IntArray | None = None) -> FloatArray:
    """Return the mean of the places that items of a group take when groups come in an order."""
    sizes = np.bincount(of)
    order = np.arange(len(sizes)) if order is None else order
    places = np.empty(len(sizes))
    places[order] = np.cumsum(sizes[order]) - 0.5 * (sizes[order] + 1.0)
    return np.asarray(places[of])
