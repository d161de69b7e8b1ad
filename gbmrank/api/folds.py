"""Cross-validation folds that keep queries whole."""

import math
from typing import Any

import numpy as np

from gbmrank.boosters.supported import booster_of
from gbmrank.data.columns import as_floats, read_ids
from gbmrank.data.queries import Groups
from gbmrank.errors import GroupError, ParameterError
from gbmrank.types import ArrayLike, IntArray, is_whole


def query_folds(
    data: Any = None,
    *,
    group: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    n_folds: int = 5,
    seed: int | None = 0,
) -> list[tuple[IntArray, IntArray]]:
    """Split rows into cross-validation folds that keep queries whole.

    ``lightgbm.cv`` with a callable objective splits queries by default, and gbmrank then warns;
    pass ``folds=gbmrank.query_folds(dataset)``. ``xgboost.cv`` keeps queries whole by itself, and
    rejects folds for data with groups.

    Parameters
    ----------
    data : lightgbm.Dataset or xgboost.DMatrix, optional
        Data set with queries. A Dataset that reads its rows or its query sizes from a file is
        constructed to get them: pass parameters such as ``max_bin`` to the Dataset then, since
        ``lightgbm.cv`` can no longer change them.
    group : array-like of shape (n_queries,), optional
        Rows per query.
    qid : array-like of shape (n_rows,), optional
        One query id per row, in any order.
    n_folds : int, default=5
        Number of folds, from 2 to the number of queries.
    seed : int or None, default=0
        Seed of the shuffle; None keeps the order of the queries.

    Returns
    -------
    list of (train rows, test rows)
        Sorted row numbers; every row is in exactly one test part.

    Examples
    --------
    >>> [test.tolist() for _, test in query_folds(group=[2, 1], n_folds=2, seed=None)]
    [[0, 1], [2]]
    """
    groups = _read_groups(data, group, qid)
    if not is_whole(n_folds) or not 2 <= n_folds <= groups.n_queries:
        raise ParameterError(
            "n_folds must be a whole number from 2 to the number of queries "
            f"({groups.n_queries}), got {n_folds!r}"
        )
    if seed is not None and (not is_whole(seed) or seed < 0):
        raise ParameterError(f"seed must be a whole number of at least 0 or None, got {seed!r}")
    queries = np.arange(groups.n_queries)
    if seed is not None:
        queries = np.random.default_rng(seed).permutation(queries)
    fold_of_query = np.empty(groups.n_queries, dtype=np.int64)
    fold_of_query[queries] = np.arange(groups.n_queries) * n_folds // groups.n_queries
    fold = groups.restore(groups.spread(fold_of_query))
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


def _given_groups(group: ArrayLike | None, qid: ArrayLike | None) -> Groups:
    if group is None and qid is None:
        raise GroupError("pass a data set, group= (sizes) or qid= (one id per row)")
    if group is None:
        return Groups.read(len(read_ids(qid)), None, qid)
    total = float(as_floats(group, "group").sum())
    return Groups.read(int(total) if math.isfinite(total) else 0, group, qid)


def _read_groups(data: Any, group: ArrayLike | None, qid: ArrayLike | None) -> Groups:
    if data is None:
        return _given_groups(group, qid)
    booster = booster_of(data)
    if booster is None:
        raise GroupError(
            f"expected a lightgbm.Dataset or xgboost.DMatrix, got {type(data).__name__}"
        )
    if group is not None or qid is not None:
        raise GroupError("pass only one of a data set, group= and qid=")
    sizes = booster.group_sizes(data)
    if sizes is None:
        raise GroupError("this data set has no queries; pass group= when you create it")
    return Groups.read(int(np.sum(sizes)), sizes, None)
