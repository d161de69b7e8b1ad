"""What utilities and metrics share: gains, discounts, binary labels."""

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gbmrank.data import LARGEST, Groups
from gbmrank.errors import DataError, LabelRangeError, ParameterError
from gbmrank.types import FloatArray

__all__ = [
    "Gain",
    "best_sums",
    "binarise",
    "check_gain",
    "check_rank_utility",
    "check_threshold",
    "discounts",
    "excess",
    "exp2_gains",
    "gains",
    "mid_ranks",
    "query_sums",
    "rows_by_value",
]

Gain: TypeAlias = str | tuple[float, ...]
"""``"exp2"`` (2^y - 1), ``"linear"`` (y), or a table indexed by integer labels."""

_LARGEST_EXP2_LABEL = 31
_ROWS_AT_ONCE = 1_000_000


def check_gain(gain: Gain) -> None:
    """Raise ParameterError unless ``gain`` is a known name or a table of gains."""
    if isinstance(gain, str):
        if gain not in ("exp2", "linear"):
            raise ParameterError(
                f"gain={gain!r} is not known; use 'exp2', 'linear' or a table such as [0, 1, 3, 7]"
            )
    elif len(gain) == 0 or not all(_is_gain(value) for value in gain):
        raise ParameterError(
            f"a gain table holds finite gains that are not negative, got {gain}; they are at most "
            f"{LARGEST:g}, beyond which sums overflow"
        )


def _is_gain(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= LARGEST


def check_threshold(owner: str, threshold: object) -> None:
    """Raise ParameterError for a threshold that no label, or every label, reaches."""
    if isinstance(threshold, float) and not math.isfinite(threshold):
        raise ParameterError(
            f"{owner}: threshold is the smallest label that is relevant, a finite number; got "
            f"{threshold}"
        )


def gains(labels: FloatArray, gain: Gain) -> FloatArray:
    """Return the gain of each label.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        Not negative; at most 31 for ``exp2``; indices for a table.
    gain : "exp2", "linear" or tuple of float
        How labels become gains.

    Raises
    ------
    LabelRangeError
        When a label is outside what the gain is defined for.

    Examples
    --------
    >>> gains(np.array([0.0, 1.0, 2.0]), "exp2")
    array([0., 1., 3.])
    """
    if not len(labels):
        return labels
    smallest, largest = float(labels.min()), float(labels.max())
    if smallest < 0:
        raise LabelRangeError(
            f"gain={gain!r} needs labels that are not negative, got {smallest:g}; shift them, "
            "or use target=identity or a pair loss that only compares labels"
        )
    if isinstance(gain, tuple):
        if largest >= len(gain) or np.any(labels != np.floor(labels)):
            raise LabelRangeError(
                f"the gain table has entries for labels 0..{len(gain) - 1}; the labels go up "
                f"to {largest:g} and must be whole numbers"
            )
        return np.asarray(gain, dtype=np.float64)[labels.astype(np.int64)]
    if gain == "linear":
        return labels
    if largest > _LARGEST_EXP2_LABEL:
        raise LabelRangeError(
            f"the largest label is {largest:g}, and gain='exp2' (2^y - 1) takes labels from 0 to "
            f"{_LARGEST_EXP2_LABEL}; use gain='linear', a gain table (LightGBM calls it "
            "label_gain), or rescale the labels"
        )
    return exp2_gains(labels)


def exp2_gains(labels: FloatArray) -> FloatArray:
    """Return ``2^y - 1``, to all digits for small labels too.

    Examples
    --------
    >>> exp2_gains(np.array([0.0, 1.0, 3.0]))
    array([0., 1., 7.])
    """
    return np.where(labels < 0.5, np.expm1(labels * math.log(2.0)), np.exp2(labels) - 1.0)


def excess(labels: FloatArray, neutral: float) -> FloatArray:
    """Return by how much labels exceed a neutral grade, zero where they do not."""
    return np.maximum(labels - neutral, 0.0)


def check_rank_utility(neutral: float, half_life: float) -> None:
    """Raise ParameterError unless these are parameters of the expected rank utility."""
    if not half_life > 1:
        raise ParameterError(f"eru: half_life must be above 1, got {half_life}")
    if not -LARGEST <= neutral <= LARGEST:
        raise ParameterError(
            f"eru: neutral must be a number between -{LARGEST:g} and {LARGEST:g}, got {neutral}"
        )


def discounts(n: int, k: int | None = None) -> FloatArray:
    """Return ``1 / log2(1 + rank)`` for ranks 1..n, zero beyond rank k.

    Examples
    --------
    >>> discounts(3, k=1)
    array([1., 0., 0.])
    """
    weights = 1.0 / np.log2(np.arange(2.0, n + 2.0))
    if k is not None:
        weights[k:] = 0.0
    return weights


def binarise(labels: FloatArray, threshold: float | None, groups: Groups) -> FloatArray:
    """Return labels as 0 and 1.

    Without a threshold the labels must be {0, 1} or {-1, +1}; with one, labels of at
    least the threshold are 1.

    Raises
    ------
    DataError
        For graded labels without a threshold; it names the first such row's query.
    """
    if threshold is not None:
        return (labels >= threshold).astype(np.float64)
    positive = labels == 1.0
    negative = (labels == 0.0) | (labels == -1.0)
    bad = np.flatnonzero(~(positive | negative))
    if not len(bad) and np.any(labels == 0.0):
        bad = np.flatnonzero(labels == -1.0)  # -1, 0 and 1 together are three grades
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f"labels must be 0/1 or -1/+1 here, got {labels[row]:g} in query "
            f"{groups.query_of(row)!r}; for graded labels say which count as relevant, for "
            "example threshold=1"
        )
    return positive.astype(np.float64)


def query_sums(values: FloatArray, groups: Groups) -> FloatArray:
    """Return the sum of each query's values, shape (n_queries,)."""
    if not groups.n_queries:
        return np.zeros(0)
    return np.add.reduceat(values, groups.offsets[:-1])


def best_sums(values: FloatArray, discount: FloatArray, groups: Groups) -> FloatArray:
    """Return the largest ``sum of discount * value`` of each query, shape (n_queries,).

    Parameters
    ----------
    values : array of shape (n_rows,)
        What each item is worth.
    discount : array of shape (longest query,)
        Non-increasing weights of the ranks.
    groups : Groups
        Query boundaries.

    Examples
    --------
    >>> best_sums(np.array([1.0, 3.0]), np.array([1.0, 0.5]), Groups.single(2))
    array([3.5])
    """
    sums = np.empty(groups.n_queries)
    for first, last in _runs(groups):
        part = groups.part(first, last)
        worth = values[groups.offsets[first] : groups.offsets[last]]
        worth = worth[rows_by_value(worth, part)]
        place = np.arange(part.n_rows) - part.spread(part.offsets[:-1])
        sums[first:last] = query_sums(worth * discount[place], part)
    return sums


def rows_by_value(values: FloatArray, groups: Groups) -> npt.NDArray[Any]:
    """Return the rows of each query, largest value first; ties keep the order of rows.

    Some queries are sorted at a time, so that little more memory is needed than is kept.

    Examples
    --------
    >>> rows_by_value(np.array([1.0, 3.0, 2.0]), Groups.from_sizes([2, 1], 3)).tolist()
    [1, 0, 2]
    """
    order = np.empty(len(values), np.int32 if len(values) < 2**31 else np.int64)
    for first, last in _runs(groups):
        begin, end = groups.offsets[first], groups.offsets[last]
        queries = np.repeat(np.arange(last - first), groups.sizes[first:last])
        order[begin:end] = np.lexsort((-values[begin:end], queries)) + begin
    return order


def _runs(groups: Groups) -> Iterator[tuple[int, int]]:
    """Yield runs of queries of about ``_ROWS_AT_ONCE`` rows, or of one query."""
    first = 0
    while first < groups.n_queries:
        reach = groups.offsets[first] + _ROWS_AT_ONCE
        last = int(np.searchsorted(groups.offsets, reach, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def mid_ranks(values: FloatArray, groups: Groups) -> FloatArray:
    """Return ranks within each query, 1 for the largest; equal values share the mean rank.

    Examples
    --------
    >>> mid_ranks(np.array([5.0, 7.0, 5.0]), Groups.single(3))
    array([2.5, 1. , 2.5])
    """
    order = rows_by_value(values, groups)
    ranked, owner = values[order], groups.spread(np.arange(groups.n_queries))
    new_block = np.ones(len(values), dtype=bool)
    new_block[1:] = (ranked[1:] != ranked[:-1]) | (owner[1:] != owner[:-1])
    block = np.cumsum(new_block) - 1
    first = np.flatnonzero(new_block)
    size = np.diff(np.append(first, len(values)))
    within = first - groups.offsets[owner[first]] if len(first) else first
    ranks = np.empty(len(values))
    ranks[order] = (within + (size + 1) / 2.0)[block]
    return ranks
