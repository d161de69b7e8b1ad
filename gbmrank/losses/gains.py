"""Labels as numbers that metrics and utilities count: gains, 0 and 1, and discounts of ranks."""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from gbmrank.data.columns import LARGEST, computed_column
from gbmrank.data.queries import Groups
from gbmrank.errors import DataError, LabelRangeError, ParameterError
from gbmrank.kernels.jit import compiler, threads
from gbmrank.kernels.layout import Span
from gbmrank.types import FloatArray

Gain: TypeAlias = str | tuple[float, ...] | Callable[[FloatArray], FloatArray]
"""``"exp2"`` (2^y - 1), ``"linear"`` (y), a table indexed by integer labels, or a function."""

_LARGEST_EXP2_LABEL = 31


def check_gain(gain: Gain) -> None:
    """Raise ParameterError unless ``gain`` is a known name, a table of gains or a function."""
    if callable(gain):
        return
    if isinstance(gain, str):
        if gain not in ("exp2", "linear"):
            raise ParameterError(
                f"gain={gain!r} is not known; use 'exp2', 'linear', a table such as [0, 1, 3, 7] "
                "or, in Python, a function of labels"
            )
    elif len(gain) == 0 or not all(0 <= value <= LARGEST for value in gain):
        raise ParameterError(
            f"a gain table holds finite gains that are not negative, got {gain}; they are at most "
            f"{LARGEST:g}, beyond which sums overflow"
        )


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
        Not negative; at most 31 for ``exp2``; indices for a table; anything a function accepts.
    gain : "exp2", "linear", tuple of float or callable
        How labels become gains. A function takes an array of labels and returns one gain per
        label, finite and not negative, that depends on no other label. A function has no text
        form, so objects made with it cannot be saved; those with a table or a registered utility
        can.

    Returns
    -------
    array of shape (n_rows,)
        The gains.

    Raises
    ------
    LabelRangeError
        If a label is outside the range the gain is defined for.
    ParameterError
        If a function returns invalid gains.

    Examples
    --------
    >>> gains(np.array([0.0, 1.0, 2.0]), "exp2")
    array([0., 1., 3.])
    """
    if not len(labels):
        return labels
    if callable(gain):
        return _called(gain, labels)
    smallest, largest = float(labels.min()), float(labels.max())
    if smallest < 0:
        raise LabelRangeError(
            f"gain={gain!r} needs labels that are not negative, got {smallest:g}; shift them, "
            "or use what only compares labels: the objective ranknet, the metric "
            "pairwise_disagreement"
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
            f"{_LARGEST_EXP2_LABEL}; use gain='linear' (a target says it as dcg(gain=linear)), a "
            "gain table (LightGBM calls it label_gain), or rescale the labels"
        )
    return exp2_gains(labels)


def _called(gain: Callable[[FloatArray], FloatArray], labels: FloatArray) -> FloatArray:
    """Call a gain function and validate the gains."""
    found = computed_column(gain(labels.copy()), len(labels), "what the function gain returns")
    bad = np.flatnonzero(~((found >= 0.0) & (found <= LARGEST)))
    if len(bad):
        at = int(bad[0])
        raise ParameterError(
            f"gain is a function with finite values from 0 to {LARGEST:g}, got {found[at]:g} for "
            f"the label {labels[at]:g}"
        )
    for at in {int(labels.argmin()), int(labels.argmax())}:
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = float(np.asarray(gain(labels[at : at + 1].copy())).reshape(-1)[0])
        if alone != found[at]:
            raise ParameterError(
                f"gain must map each label by itself, but it gives {alone:g} for the label "
                f"{labels[at]:g} alone and {found[at]:g} for it among {len(labels)}; use "
                "constants in place of what is read off the labels"
            )
    return found


def exp2_gains(labels: FloatArray) -> FloatArray:
    """Return ``2^y - 1``, accurate for small labels too."""
    if len(labels) and labels.min() >= 0.0 and labels.max() < 64.0:
        whole = labels.astype(np.uint8)
        if np.array_equal(whole, labels):
            return np.asarray((np.exp2(np.arange(64.0)) - 1.0)[whole])
    return np.where(labels < 0.5, np.expm1(labels * math.log(2.0)), np.exp2(labels) - 1.0)


def half_lives(n: int, half_life: float) -> FloatArray:
    """Return the discounts of ranks 1..n that halve every ``half_life - 1`` ranks."""
    return np.exp2(-np.arange(n) / (half_life - 1.0))


def discounts(n: int, k: int | None = None) -> FloatArray:
    """Return ``1 / log2(1 + rank)`` for ranks 1..n, zero beyond rank k.

    Parameters
    ----------
    n : int
        Number of ranks.
    k : int or None, default=None
        Cut-off; ``None`` for none.

    Returns
    -------
    array of shape (n,)
        The discounts of DCG.

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

    Parameters
    ----------
    labels : array of shape (n_rows,)
        Labels in query order.
    threshold : float or None
        Smallest label that is relevant.
    groups : Groups
        Queries, for the error message.

    Returns
    -------
    array of shape (n_rows,)
        1 for relevant items, else 0.

    Raises
    ------
    DataError
        For graded labels without a threshold; the message names the query of the first one.
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


def best_sums(values: FloatArray, discount: FloatArray, groups: Groups) -> FloatArray:
    """Return the largest sum of discount times value of each query, shape (n_queries,)."""
    kernels = compiler.load("ranking.measures")
    counted = discount[: int(np.flatnonzero(discount).max(initial=-1)) + 1]
    sums = np.empty(groups.n_queries)

    def task(span: Span) -> None:
        room = kernels.DIFFERENT + 1
        work = np.empty(room), np.empty(room, np.int64)
        kernels.best_sums(values, groups.offsets, counted, span, work, sums)

    threads.run_spans(task, threads.cut_into_spans(5.0 * groups.sizes))
    for q in np.flatnonzero(np.isnan(sums)):  # of many different values
        worth = np.sort(values[groups.offsets[q] : groups.offsets[q + 1]])[::-1][: len(counted)]
        sums[q] = np.dot(worth, counted[: len(worth)])
    return sums
