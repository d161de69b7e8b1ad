"""From values of pairs to a place per row, which rows that cannot be told apart share."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gbmrank.decoders import check_decoder, check_exact, check_values, map_value, orders, shares
from gbmrank.types import FloatArray, IntArray

__all__ = ["cut_matrices", "mean_places"]


def cut_matrices(values: FloatArray, sizes: IntArray) -> Iterator[FloatArray]:
    """Yield the matrix of every query; values lie row by row, one query after the other."""
    begin = 0
    for n in sizes.tolist():
        yield values[begin : begin + n * n].reshape(n, n)
        begin += n * n


def mean_places(
    values: FloatArray, sizes: Sequence[int] | IntArray, surrogate: str, decoder: str = "auto"
) -> FloatArray:
    """Decode the matrices of many queries into a place per item, the same for look-alikes.

    Items look alike when their values do: towards each other, and towards every third item or
    one that looks like it. They share the mean of the places that they take together, so the
    places do not depend on the order of the items in the matrix. Items that do not look alike
    have different places: where a decoder has the choice, the item comes first whose sorted
    values are larger, with ``graph_degree`` after the net degree. To ``diagonal`` items look
    alike when their diagonal values are equal.

    For disagreement look-alikes are decoded as one; no order that parts them is better. For
    average precision one may be: then they meet at the first, the mean or the last of the
    places it gives them, whichever is best.

    Parameters are those of :func:`gbmrank.decoders.orders`; limits count items.

    Returns
    -------
    array of shape (n_items in all queries,)
        Places of the items, 0 for the best.

    Examples
    --------
    >>> from gbmrank.decoders import orders
    >>> values = np.array([[0.0, 0, 0], [0, 0, 0], [1, 1, 0]])  # 2 is preferred to 0 and to 1
    >>> orders(values.ravel(), [3], "disagreement")
    array([2, 0, 1])
    >>> mean_places(values.ravel(), [3], "disagreement")
    array([1.5, 1.5, 0. ])
    """
    check_decoder(surrogate, decoder)
    sizes = np.asarray(sizes, np.int64)
    check_exact(sizes, decoder)
    matrices = list(cut_matrices(check_values(values, sizes), sizes))
    out = np.empty(int(sizes.sum()))
    for chosen, concrete in shares(sizes, surrogate, decoder):
        those = [matrices[q] for q in np.flatnonzero(chosen).tolist()]
        if concrete == "diagonal":
            places = [_shared_places(_number(-u.diagonal()[None, :])) for u in those]
        else:
            places = _decode([_kinds(u, surrogate, concrete) for u in those], surrogate, concrete)
        out[np.repeat(chosen, sizes)] = np.concatenate(places)
    return out


class _Kinds(NamedTuple):
    """Items that look alike, as one: kinds are numbered without looking at item numbers."""

    of: IntArray  # the kind of each item
    sizes: IntArray
    values: FloatArray  # between items of two kinds, or two items of one
    own: FloatArray  # the diagonal value of items of a kind


def _kinds(u: FloatArray, surrogate: str, decoder: str) -> _Kinds:
    """Return the kinds of items of one query, ordered as the decoder wants ties broken."""
    sign = 1.0
    if surrogate == "disagreement":
        u, sign = u - u.T, -1.0
    own = u.diagonal()
    of = _refine(u, _number(-own[None, :]))
    sizes, first = np.bincount(of), np.unique(of, return_index=True)[1]
    between = _between(u, of, sizes, first)
    kinds = _Kinds(of, sizes, 0.5 * (between + sign * between.T), own[first])
    return _by_degree(kinds) if decoder == "graph_degree" else kinds


def _number(columns: FloatArray) -> IntArray:
    """Return the place of each item by ascending columns, the same for equal ones, from 0."""
    order = np.lexsort(columns[::-1])
    along = columns[:, order]
    number = np.empty(len(order), np.int64)
    number[order] = np.concatenate([[0], np.cumsum((along[:, 1:] != along[:, :-1]).any(axis=0))])
    return number


def _refine(u: FloatArray, of: IntArray) -> IntArray:
    """Split kinds until items of a kind have the same values towards every kind."""
    while True:
        order = np.lexsort((-u, np.broadcast_to(of, u.shape)))
        finer = _number(np.vstack([of, -np.take_along_axis(u, order, axis=1).T]))
        if finer.max() == of.max() or finer.max() == len(u) - 1:
            return finer
        of = finer


def _between(u: FloatArray, of: IntArray, sizes: IntArray, first: IntArray) -> FloatArray:
    """Return the mean value of an item of a kind towards the other items of every kind.

    Sums are taken over sorted values, and not at all where these are equal, so the last digit
    does not depend on the order of the items.
    """
    kinds = np.arange(len(sizes))
    rows = u[first]
    rows[kinds, first] = np.inf  # last of its kind
    order = np.lexsort((rows, np.broadcast_to(of, rows.shape)))
    rows = np.take_along_axis(rows, order, axis=1)
    rows[np.isinf(rows)] = 0.0
    begins = np.cumsum(sizes) - sizes
    count = sizes[None, :] - np.eye(len(sizes), dtype=np.int64)
    smallest = rows[:, begins]
    largest = rows[kinds[:, None], begins + np.maximum(count - 1, 0)]
    mean = np.add.reduceat(rows, begins, axis=1) / np.maximum(count, 1)
    return np.asarray(np.where(smallest == largest, smallest, mean))


def _by_degree(kinds: _Kinds) -> _Kinds:
    """Number kinds by descending net degree of their items."""
    order = np.argsort(-(kinds.values * kinds.sizes).sum(axis=1), kind="stable")
    number = np.argsort(order)
    values = kinds.values[np.ix_(order, order)]
    return _Kinds(number[kinds.of], kinds.sizes[order], values, kinds.own[order])


def _decode(several: list[_Kinds], surrogate: str, decoder: str) -> list[FloatArray]:
    """Return the places of the items of every query."""
    make = _matrix_of_items if surrogate == "map" else _matrix_of_kinds
    matrices = [make(kinds, decoder) for kinds in several]
    flat = np.concatenate([matrix.reshape(-1) for matrix in matrices])
    lengths = np.array([len(matrix) for matrix in matrices])
    by_index = "graph" if decoder == "graph_degree" else decoder  # numbered by net degree
    decoded = np.split(orders(flat, lengths, surrogate, by_index), np.cumsum(lengths)[:-1])
    if surrogate == "map":
        decoded = [_gather(*given) for given in zip(decoded, several, matrices, strict=True)]
    return [_shared_places(kinds.of, order) for kinds, order in zip(several, decoded, strict=True)]


def _matrix_of_kinds(kinds: _Kinds, decoder: str) -> FloatArray:
    """Return the values to decode kinds by; the exact decoder counts each pair of items."""
    if decoder == "exact":
        return kinds.values * np.outer(kinds.sizes, kinds.sizes)
    return kinds.values


def _matrix_of_items(kinds: _Kinds, _decoder: str) -> FloatArray:
    """Return the values to decode items by, kind by kind: precision counts ranks of items."""
    of = np.sort(kinds.of)
    matrix = kinds.values[np.ix_(of, of)]
    np.fill_diagonal(matrix, kinds.own[of])
    return matrix


def _gather(order: IntArray, kinds: _Kinds, matrix: FloatArray) -> IntArray:
    """Return an order of kinds from one of items that may part them, by average precision."""
    places, of = np.argsort(order), np.sort(kinds.of)
    begins = np.cumsum(kinds.sizes) - kinds.sizes
    first, last = np.minimum.reduceat(places, begins), np.maximum.reduceat(places, begins)
    if np.all(last - first == kinds.sizes - 1):
        return np.argsort(first)
    mean = np.add.reduceat(places, begins) / kinds.sizes
    ways = [np.argsort(key, kind="stable") for key in (mean, first, last)]
    return max(
        ways, key=lambda way: map_value(matrix, np.argsort(np.argsort(way)[of], kind="stable"))
    )


def _shared_places(of: IntArray, order: IntArray | None = None) -> FloatArray:
    """Return the mean of the places that items of a kind take when kinds come in an order."""
    sizes = np.bincount(of)
    order = np.arange(len(sizes)) if order is None else order
    places = np.empty(len(sizes))
    places[order] = np.cumsum(sizes[order]) - 0.5 * (sizes[order] + 1.0)
    return np.asarray(places[of])
