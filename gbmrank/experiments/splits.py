"""Split queries into training, validation and test queries of each run.

Queries are split into random folds, by predefined splits, or by time: the queries are sorted
into blocks by time, and fold f is trained on the blocks up to its own and tested on the next one.
Queries of equal time are in one block, so training queries are always earlier than test queries.
"""

import datetime as dt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gbmrank.data.columns import find_missing
from gbmrank.data.readers.text import quoted, to_number
from gbmrank.errors import DataError, ParameterError
from gbmrank.types import IntArray

PARTS = ("train", "valid", "test")
"""Names of predefined splits, in the order of their numbers."""
_TRAIN, _VALID, _TEST = range(len(PARTS))
_FOLDS, _VALIDATION = 0, 1  # streams of random numbers


class Split(NamedTuple):
    """Numbers of the queries of each part, sorted."""

    train: IntArray
    valid: IntArray
    test: IntArray


class Scheme(NamedTuple):
    """Rule by which queries are split: predefined parts, times, or random folds."""

    n_queries: int
    parts: IntArray | None = None  # number in PARTS of each query
    times: npt.NDArray[Any] | None = None  # of each query; comparable, without missing ones


def check_split(scheme: Scheme, folds: int) -> None:
    """Raise when queries cannot be split so that every part has one."""
    n_queries, parts = scheme.n_queries, scheme.parts
    if parts is not None:
        if not (parts == _VALID).any() and (parts == _TRAIN).sum() < 2:
            raise DataError(
                "train has 1 query, but at least one more is needed for validation; give a valid "
                "part, or more queries"
            )
        return
    if scheme.times is not None:
        _blocks(scheme.times, folds)
        return
    if folds < 2:
        raise ParameterError(f"folds must be at least 2, got {folds}")
    if folds > n_queries or n_queries - -(-n_queries // folds) < 2:
        raise DataError(
            f"{n_queries} queries cannot be split into {folds} folds with queries left for "
            "training and validation; give more queries, or predefined splits"
        )


def cut(scheme: Scheme, *, folds: int, share: float, at: tuple[int, int]) -> Split:
    """Return the queries of one run.

    A fold is the test set; a share of the other queries, drawn with the seed, is the validation
    set. Predefined splits are kept; without ``valid`` a share of ``train`` is the validation set.
    With times, the training queries are those before the fold, and the latest of them are the
    validation set for every seed. All systems get the same queries. ``at`` is the seed and the
    fold.

    >>> cut(Scheme(6), folds=3, share=0.25, at=(0, 1)).test
    array([4, 5])
    >>> [part.tolist() for part in cut(
    ...     Scheme(6, times=np.array([3, 1, 2, 6, 5, 4])), folds=2, share=0.25, at=(0, 1)
    ... )]
    [[0, 1, 2], [5], [3, 4]]
    """
    seed, fold = at
    if scheme.parts is not None:
        test = np.flatnonzero(scheme.parts == _TEST)
        rest = np.flatnonzero(scheme.parts == _TRAIN)
        valid = np.flatnonzero(scheme.parts == _VALID)
        if len(valid):
            return Split(rest, valid, test)
    elif scheme.times is not None:
        block = _blocks(scheme.times, folds)
        rest, test = np.flatnonzero(block <= fold), np.flatnonzero(block == fold + 1)
    else:
        order = np.random.default_rng(_FOLDS).permutation(scheme.n_queries)
        number = np.empty(scheme.n_queries, dtype=np.int64)
        number[order] = np.arange(scheme.n_queries) * folds // scheme.n_queries
        rest, test = np.flatnonzero(number != fold), np.flatnonzero(number == fold)
    n_valid = min(max(round(share * len(rest)), 1), len(rest) - 1)
    if scheme.times is not None:
        times = np.sort(scheme.times[rest])
        if len(starts := _starts(times, 1)):  # else all have the same time
            begin = starts[np.argmin(np.abs(starts - (len(times) - n_valid)))]
            latest = scheme.times[rest] >= times[begin]
            return Split(rest[~latest], rest[latest], test)
    drawn = np.random.default_rng([seed, fold, _VALIDATION]).permutation(rest)
    return Split(np.sort(drawn[n_valid:]), np.sort(drawn[:n_valid]), test)


def judged(scheme: Scheme, folds: int) -> IntArray:
    """Return the numbers of all test queries."""
    if scheme.parts is not None:
        return np.flatnonzero(scheme.parts == _TEST)
    if scheme.times is not None:
        return np.flatnonzero(_blocks(scheme.times, folds) > 0)
    return np.arange(scheme.n_queries)


def time_table(times: npt.NDArray[Any], folds: int, share: float) -> list[dict[str, Any]]:
    """Return the number and time span of the queries in each part of each fold."""
    rows = []
    for fold in range(folds):
        split = cut(Scheme(len(times), times=times), folds=folds, share=share, at=(0, fold))
        row: dict[str, Any] = {"fold": fold + 1}
        for name, part in zip(PARTS, split, strict=True):
            own = times[part]
            ends = {"from": _shown(own.min()), "to": _shown(own.max())}
            row[name] = {"queries": len(part), **ends}
        rows.append(row)
    return rows


def read_times(values: npt.NDArray[Any], what: str) -> npt.NDArray[Any]:
    """Return times as float64 or datetime64, from numbers, dates or strings of either.

    >>> read_times(np.array(["2024-03-01", "2024-02-01T12:00:00+01:00"]), "time")
    array(['2024-03-01T00:00:00.000000', '2024-02-01T11:00:00.000000'],
          dtype='datetime64[us]')
    """
    if values.dtype.kind == "m":
        values = values.astype("m8[us]").astype(np.int64)
    missing = find_missing(values)
    if values.dtype.kind in "US":
        missing = np.array([not text.strip() for text in values.astype(np.str_)], dtype=bool)
    elif values.dtype.kind == "f":
        missing = ~np.isfinite(values)
    if missing.any():
        raise DataError(
            f"{what} is missing in {int(missing.sum())} rows, first in row "
            f"{int(np.argmax(missing))}; every row needs a time to be split by it"
        )
    if values.dtype.kind == "M":
        return values.astype("M8[us]")
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    texts, codes = np.unique(values.astype(np.str_), return_inverse=True)
    numbers = [to_number(text.strip()) for text in texts]
    if None not in numbers:
        return np.array(numbers, dtype=np.float64)[codes]
    return np.array([_moment(str(text), what) for text in texts], dtype="M8[us]")[codes]


def _moment(text: str, what: str) -> dt.datetime:
    try:
        found = dt.datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise DataError(
            f"{what} contains {quoted(text)}; times must be numbers or ISO 8601 dates, "
            "such as 2024-02-01 or 2024-02-01T12:00:00"
        ) from error
    return found if found.tzinfo is None else found.astimezone(dt.UTC).replace(tzinfo=None)


def _blocks(times: npt.NDArray[Any], folds: int) -> IntArray:
    """Return the block of each query: 0 is only for training, f + 1 is the test set of fold f.

    Blocks are as equal in size as possible; queries of equal time stay together.

    >>> _blocks(np.array([1, 1, 1, 1, 2, 3]), 2)
    array([0, 0, 0, 0, 1, 2])
    """
    n_queries = len(times)
    order = np.argsort(times, kind="stable")
    starts = _starts(times[order], 2)  # one query for training, one for validation
    if folds < 1 or len(starts) < folds:
        raise DataError(
            f"{n_queries} queries of {len(np.unique(times))} different times cannot be split by "
            f"time into {folds} folds; the first two queries are needed for training and "
            "validation, and each fold needs a later time: give fewer folds or finer times"
        )
    chosen, first = [], 0
    for fold in range(folds):
        last = len(starts) - (folds - fold - 1)
        wanted = n_queries * (fold + 1) / (folds + 1)
        first += int(np.argmin(np.abs(starts[first:last] - wanted))) + 1
        chosen.append(starts[first - 1])
    block = np.empty(n_queries, dtype=np.int64)
    block[order] = np.searchsorted(chosen, np.arange(n_queries), side="right")
    return block


def _starts(times: npt.NDArray[Any], least: int) -> IntArray:
    """Return the indices at which sorted times change, from ``least`` on."""
    found = np.flatnonzero(times[1:] != times[:-1]) + 1
    return found[found >= least]


def _shown(time: Any) -> str:
    """Return a time as text, without trailing zeros."""
    if isinstance(time, np.datetime64):
        return str(time).removesuffix(".000000").removesuffix("T00:00:00")
    return f"{time:.15g}"
