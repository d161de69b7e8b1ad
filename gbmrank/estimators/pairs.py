"""Pairs of rows of a query: which ones, with which features and targets."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from gbmrank.backends.regressors import Rows
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.data.queries import Groups
from gbmrank.errors import DataError, ParameterError
from gbmrank.losses.utilities import query_sums
from gbmrank.types import FloatArray, IntArray

__all__ = [
    "PairFeatures",
    "Pairs",
    "check_features",
    "disagreement_rows",
    "ordered_pairs",
    "pair_features",
    "precision_rows",
    "sample_pairs",
    "with_itself",
]

Matrix: TypeAlias = npt.NDArray[Any]
PairFeatures: TypeAlias = str | Callable[[Matrix, Matrix], Matrix]
_FEATURES = ("concatenation", "difference")


class Pairs(NamedTuple):
    """Pairs of different rows of a query, in query order, with one over their probability."""

    first: IntArray
    second: IntArray
    weight: FloatArray


def sample_pairs(groups: Groups, budget: int | None, seed: int) -> Pairs:
    """Return every unordered pair once, or a sample of ``budget`` pairs of a longer query.

    The sample looks at the number of rows only, never at labels, so expectations stay what
    they are when a pair counts one over its probability.
    """
    rng = np.random.default_rng(seed)
    firsts, seconds, weights = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    for begin, n in zip(groups.offsets[:-1].tolist(), groups.sizes.tolist(), strict=True):
        total = n * (n - 1) // 2
        if budget is None or total <= budget:
            chosen, weight = np.arange(total), 1.0
        else:
            chosen = np.sort(rng.choice(total, budget, replace=False, shuffle=False))
            weight = total / budget
        second = ((1.0 + np.sqrt(1.0 + 8.0 * chosen)) / 2.0).astype(np.int64)
        second -= second * (second - 1) // 2 > chosen  # rounding of the square root
        second += second * (second + 1) // 2 <= chosen
        firsts.append(chosen - second * (second - 1) // 2 + begin)
        seconds.append(second + begin)
        weights.append(np.full(len(chosen), weight))
    return Pairs(np.concatenate(firsts), np.concatenate(seconds), np.concatenate(weights))


def ordered_pairs(groups: Groups, most: int) -> Iterator[tuple[int, int, IntArray, IntArray]]:
    """Yield runs of queries with all ordered pairs of their rows, a row with itself included.

    A run has about ``most`` pairs at most, or is one query.
    """
    cells = groups.sizes.astype(np.int64) ** 2
    first = 0
    while first < groups.n_queries:
        last = first + 1
        while last < groups.n_queries and cells[first : last + 1].sum() <= most:
            last += 1
        left, right = [], []
        for q in range(first, last):
            rows = np.arange(groups.offsets[q], groups.offsets[q + 1])
            left.append(np.repeat(rows, len(rows)))
            right.append(np.tile(rows, len(rows)))
        yield first, last, np.concatenate(left), np.concatenate(right)
        first = last


def check_features(features: PairFeatures, surrogate: str) -> None:
    """Raise ParameterError unless pair features are known and fit the surrogate."""
    if not callable(features) and features not in _FEATURES:
        raise ParameterError(
            f"features must be one of {', '.join(_FEATURES)} or a function of two arrays; "
            f"got {features!r}"
        )
    if features == "difference" and surrogate == "map":
        raise ParameterError(
            "surrogate=map needs to know both items, and their difference does not tell: use "
            "features=concatenation"
        )


def pair_features(
    x: Matrix, first: IntArray, second: IntArray, features: PairFeatures
) -> npt.NDArray[np.float32]:
    """Return the features of pairs of rows.

    ``difference`` is ``x_i - x_j``; ``concatenation`` is ``(x_i, x_j, x_i - x_j)``; a function
    receives the two blocks of rows.
    """
    left, right = x[first], x[second]
    if callable(features):
        return _checked(features(left, right), len(first))
    if features == "difference":
        return (left - right).astype(np.float32)
    return np.concatenate(
        [left, right, left - right], axis=1, dtype=np.float32, casting="same_kind"
    )


def _checked(given: Any, n_pairs: int) -> npt.NDArray[np.float32]:
    """Return what a function gave for pairs, one row each, of numbers and NaN."""
    try:
        with np.errstate(over="ignore"):
            made = np.asarray(given, np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"the pair features must be numbers: {error}") from error
    if made.ndim != 2 or len(made) != n_pairs or not made.shape[1]:
        raise DataError(
            f"the pair features of {n_pairs} pairs must have as many rows, of one number or more; "
            f"got an array of shape {made.shape}"
        )
    if np.isinf(made).any():
        raise DataError(
            "the pair features are infinite, or beyond the largest float32: clip them, or make "
            "them NaN, a missing value"
        )
    return made


def disagreement_rows(
    x: Matrix, graphs: PreferenceGraphs, pairs: Pairs, features: PairFeatures, seed: int
) -> Rows:
    """Return every pair, in one of its two orders, with the target ``A_ij - A_ji``.

    The order is drawn, and predictions are made antisymmetric afterwards. With both orders a
    feature of the query has a gain of exactly zero at the root of every tree, and LightGBM
    does not look at such a feature again further down.
    """
    turned = np.random.default_rng(seed).random(len(pairs.first)) < 0.5
    first = np.where(turned, pairs.second, pairs.first)
    second = np.where(turned, pairs.first, pairs.second)
    lead = graphs.weights(first, second) - graphs.weights(second, first)
    weight = None if np.all(pairs.weight == 1.0) else pairs.weight
    return Rows(pair_features(x, first, second, features), lead, weight)


def precision_rows(
    x: Matrix, relevant: FloatArray, groups: Groups, pairs: Pairs, features: PairFeatures
) -> Rows:
    """Return both orders of every pair, and every row with itself, with ``y_i y_j / P``."""
    count = query_sums(relevant, groups)
    share = relevant / groups.spread(np.where(count > 0, count, 1.0))
    own = np.arange(groups.n_rows)
    first = np.concatenate([pairs.first, pairs.second, own])
    second = np.concatenate([pairs.second, pairs.first, own])
    weight = np.concatenate([pairs.weight, pairs.weight, np.ones(len(own))])
    made = with_itself(pair_features(x, first, second, features), first, second)
    return Rows(made, share[first] * relevant[second], weight)


def with_itself(
    made: npt.NDArray[np.float32], first: IntArray, second: IntArray
) -> npt.NDArray[np.float32]:
    """Add a column that tells an item paired with itself from two items that look alike."""
    return np.column_stack([made, (first == second).astype(np.float32)])
