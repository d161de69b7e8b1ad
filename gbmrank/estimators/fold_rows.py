"""Which rows each fold has: drawn at random, or given by a splitter; and whether folds leak."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gbmrank.data.columns import read_ids
from gbmrank.data.leakage import row_hashes
from gbmrank.data.queries import Groups
from gbmrank.errors import DataError, GbmrankWarning, LeakageWarning, ParameterError, warn
from gbmrank.types import BoolArray, IntArray, is_whole

_FEWEST, _FEW = 5, 40  # queries with something to learn: an error below the first, then a warning


class Fold(NamedTuple):
    """Rows to learn from, and rows on which the training stops; increasing, in query order."""

    learned: IntArray
    held_out: IntArray


def check_folds(folds: Any, pool: Any, fold_groups: Any, splitter: Any) -> None:
    """Raise ParameterError for a wrong number of folds, and for arguments that need one."""
    if pool and splitter is not None:
        raise ParameterError(
            "pool_eval_set=True and splitter= exclude each other: a splitter cuts the rows of X"
        )
    if folds is not None and (not is_whole(folds) or folds < 2):
        raise ParameterError(f"folds must be a whole number of at least 2 or None, got {folds!r}")
    named = {"fold_groups": fold_groups, "splitter": splitter, "pool_eval_set": pool or None}
    given = next((name for name, one in named.items() if one is not None), None)
    if folds is None and given is not None:
        raise ParameterError(f"{given}= needs folds=, the number of folds: GBMRanker(folds=4)")


def check_informative(informative: BoolArray, folds: int) -> None:
    """Raise DataError if too few queries can value a fold; warn if they are few."""
    count = int(np.count_nonzero(informative))
    what = "queries have rows of different labels (or preferences), from which folds are valued"
    if count < max(_FEWEST, folds):
        raise DataError(
            f"only {count} {what}; folds={folds} needs at least {max(_FEWEST, folds)}. Use fewer "
            "folds, or leave folds= out"
        )
    if count < _FEW:
        warn(
            f"only {count} {what}, so rounds are chosen by chance; below {_FEW}, prefer a fixed "
            "number of rounds without folds",
            GbmrankWarning,
        )


def drawn_folds(
    groups: Groups, informative: BoolArray, count: int, seed: int, fold_groups: Any = None
) -> list[Fold]:
    """Deal queries to folds at random; informative queries and rows are spread evenly.

    Queries of one group, in ``fold_groups`` with one entry per row, stay together.
    """
    key = np.arange(groups.n_queries)
    if fold_groups is not None:
        key = group_of_query(fold_groups, groups)
    n_keys = int(key.max()) + 1
    if n_keys < count:
        raise DataError(f"fold_groups has {n_keys} different values, but folds={count}")
    told = np.bincount(key, informative, n_keys)
    rows = np.bincount(key, groups.sizes, n_keys)
    shuffled = np.random.default_rng(seed).permutation(n_keys)
    if fold_groups is not None:  # large groups first, or they could not be spread
        shuffled = shuffled[np.lexsort((-rows[shuffled], -told[shuffled]))]
    queries, sizes, fold_of_key = np.zeros(count), np.zeros(count), np.empty(n_keys, np.int64)
    for one in shuffled.tolist():
        open_to = queries == queries.min() if told[one] else np.ones(count, np.bool_)
        at = int(np.argmin(np.where(open_to, sizes, np.inf)))
        fold_of_key[one] = at
        queries[at] += told[one]
        sizes[at] += rows[one]
    fold = groups.spread(fold_of_key[key])
    return [Fold(np.flatnonzero(fold != at), np.flatnonzero(fold == at)) for at in range(count)]


def given_folds(
    splitter: Any, rows: tuple[Any, Any, Any], groups: Groups, count: int
) -> list[Fold]:
    """Return the folds of a scikit-learn splitter, or of a list of (train rows, test rows).

    ``rows`` are features, labels and groups as the user gave them. Each row may be in the test
    part of one fold at most.
    """
    split = None if isinstance(splitter, str) else getattr(splitter, "split", None)
    if split is None and (isinstance(splitter, str) or not isinstance(splitter, Iterable)):
        raise ParameterError(
            "splitter= is a splitter of scikit-learn or a list of (train rows, test rows), got "
            f"{splitter!r}"
        )
    pairs: Iterable[Any] = splitter if split is None else split(*rows)
    place = np.arange(groups.n_rows)
    if groups.row_order is not None:
        place[groups.row_order] = np.arange(groups.n_rows)
    made: list[Fold] = []
    for number, pair in enumerate(pairs):
        parts = [
            np.unique(place[_row_numbers(part, groups.n_rows, number)])
            for part in (() if np.isscalar(pair) else pair)
        ]
        if len(parts) != 2 or not all(map(len, parts)) or len(np.intersect1d(parts[0], parts[1])):
            raise DataError(
                f"fold {number} of splitter= must be two separate parts with rows: (train, test)"
            )
        made.append(Fold(parts[0], parts[1]))
    if len(made) != count:
        raise ParameterError(f"splitter= yields {len(made)} folds, but folds={count}")
    if np.bincount(np.concatenate([one.held_out for one in made])).max() > 1:
        raise DataError("a row is in the test part of two folds; each may be in one at most")
    return made


def warn_of_leaks(features: Any, folds: Sequence[Fold], groups: Groups, fold_groups: Any) -> None:
    """Warn of queries and groups that folds cut, and of queries with a copy in another fold."""
    names = np.arange(groups.n_queries) if groups.ids is None else groups.ids
    query = groups.spread(np.arange(groups.n_queries))
    checked = {"query": query}
    if fold_groups is not None:
        checked["group of fold_groups="] = groups.arrange(
            np.unique(read_ids(fold_groups), return_inverse=True)[1]
        )
    for what, key in checked.items():
        cut = [np.intersect1d(key[one.learned], key[one.held_out]) for one in folds]
        both = functools.reduce(np.union1d, cut)
        if len(both):
            shown = f", such as {names[both[0]]!s}" if what == "query" else ""
            warn(
                f"{len(both)} values of {what} are in both parts of a fold{shown}, so oof_scores_ "
                "and oof_value_ are too optimistic; keep the rows of each together",
                LeakageWarning,
            )
    hashes = row_hashes(features, features.shape[1])
    first = groups.offsets[:-1]
    same = np.add.reduceat(hashes, first)  # whatever the order of the rows
    differ = np.maximum.reduceat(hashes, first) > np.minimum.reduceat(hashes, first)
    fold_of_row = np.full(groups.n_rows, -1)
    for at, one in enumerate(folds):
        fold_of_row[one.held_out] = at
    fold = fold_of_row[first]
    order = np.lexsort((fold, groups.sizes, same))
    here, there = order[:-1], order[1:]
    copied = (same[here] == same[there]) & (groups.sizes[here] == groups.sizes[there])
    copied &= differ[here] & (fold[here] != fold[there])
    if copied.any():
        at = int(np.argmax(copied))
        one, other = names[here[at]].item(), names[there[at]].item()
        warn(
            f"{int(copied.sum())} queries have the features of a query in another fold, such as "
            f"{one!r} and {other!r}, so oof_scores_ and oof_value_ are too optimistic; if they are "
            "copies, keep them together by fold_groups=",
            LeakageWarning,
        )


def group_of_query(fold_groups: Any, groups: Groups) -> IntArray:
    """Return the number of the group of each query; raise if rows of a query differ."""
    ids = read_ids(fold_groups)
    if len(ids) != groups.n_rows:
        raise DataError(f"fold_groups has {len(ids)} entries, but there are {groups.n_rows} rows")
    number = groups.arrange(np.unique(ids, return_inverse=True)[1])
    first = number[groups.offsets[:-1]]
    differs = np.flatnonzero(number != groups.spread(first))
    if len(differs):
        raise DataError(
            f"the rows of query {groups.query_of(int(differs[0]))!r} are in different groups of "
            "fold_groups=; a query must lie in one group"
        )
    return np.asarray(first, np.int64)


def _row_numbers(part: Any, n_rows: int, number: int) -> IntArray:
    rows = np.asarray(part)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or (rows >= n_rows).any() or (rows < 0).any():
        raise DataError(
            f"fold {number} of splitter= must be row numbers from 0 to {n_rows - 1}, as "
            "scikit-learn's splitters return them"
        )
    return rows.astype(np.int64)
