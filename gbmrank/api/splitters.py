"""Cross-validation splits that keep the rows of a query together."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, final

import numpy as np

from gbmrank.boosters.supported import booster_of
from gbmrank.data.columns import as_floats, one_column, read_ids, read_whole
from gbmrank.data.queries import Groups
from gbmrank.errors import DataError, GroupError, ParameterError, import_optional
from gbmrank.types import ArrayLike, IntArray, is_whole

Parts = Iterator[tuple[IntArray, IntArray]]


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


def _read_groups(data: Any, group: ArrayLike | None, qid: ArrayLike | None) -> Groups:
    if data is None and group is not None:
        total = float(as_floats(group, "group").sum())
        return Groups.read(int(total) if math.isfinite(total) else 0, group, qid)
    if data is None and qid is not None:
        return Groups.read(len(read_ids(qid)), None, qid)
    if data is None:
        raise GroupError("pass a data set, group= (sizes) or qid= (one id per row)")
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


def metadata_request(owner: object, wanted: Mapping[str, Mapping[str, bool | None]]) -> Any:
    """Return the columns that each method of an object requests, for scikit-learn."""
    missing = "routing metadata needs scikit-learn: pip install 'gbmrank[sklearn]'"
    made = import_optional("sklearn.utils.metadata_routing", missing).MetadataRequest(
        owner=type(owner).__name__
    )
    for method, names in wanted.items():
        for name, alias in names.items():
            getattr(made, method).add_request(param=name, alias=alias)
    return made


class AbstractQuerySplit:
    """Reads ``qid`` (and more) through scikit-learn's metadata routing, or else ``groups``."""

    _reads: ClassVar[tuple[str, ...]] = ("qid", "groups")
    n_splits: int

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, **_: Any) -> int:  # noqa: N803
        """Return the number of splits."""
        return self.n_splits

    def get_metadata_routing(self) -> Any:
        """Return the columns that ``split`` requests, for scikit-learn."""
        return metadata_request(self, {"split": dict.fromkeys(self._reads, True)})

    def _queries(self, X: Any, qid: Any, groups: Any) -> Groups:  # noqa: N803
        ids = groups if qid is None else qid
        if ids is None:
            raise GroupError(
                f"{type(self).__name__} needs one query id per row: params={{'qid': qid}} with "
                "sklearn.set_config(enable_metadata_routing=True), or groups=qid without it"
            )
        n_rows = len(one_column(ids)) if X is None else (getattr(X, "shape", None) or (len(X),))[0]
        return Groups.from_qid(ids, int(n_rows))


@final
class QueryKFold(AbstractQuerySplit):
    """K folds of whole queries, for ``cross_val_score``, ``GridSearchCV`` and others.

    Unlike ``GroupKFold`` it reads ``qid``, which :class:`GBMRanker <gbmrank.GBMRanker>` takes too,
    so ``cross_val_score(model, X, y, cv=QueryKFold(5), params={"qid": qid})`` is enough with
    scikit-learn's metadata routing. Without routing, pass the ids as ``groups=``.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, from 2 to the number of queries.
    seed : int or None, default=0
        Seed of the shuffle of queries; None keeps their order.

    Examples
    --------
    >>> X, qid = np.zeros((4, 1)), ["a", "b", "a", "c"]
    >>> [test.tolist() for _, test in QueryKFold(3, seed=None).split(X, qid=qid)]
    [[0, 2], [1], [3]]
    """

    def __init__(self, n_splits: int = 5, *, seed: int | None = 0) -> None:
        self.n_splits, self.seed = read_whole(n_splits, "n_splits", 2), seed

    def __repr__(self) -> str:
        return f"QueryKFold(n_splits={self.n_splits}, seed={self.seed})"

    def split(
        self,
        X: Any = None,  # noqa: N803
        y: Any = None,
        groups: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
    ) -> Parts:
        """Yield the row numbers of the training and the test part of each fold."""
        known = self._queries(X, qid, groups)
        if self.n_splits > known.n_queries:
            raise ParameterError(
                f"n_splits={self.n_splits}, but there are only {known.n_queries} queries"
            )
        ids = known.restore(known.spread(np.arange(known.n_queries)))
        yield from query_folds(qid=ids, n_folds=self.n_splits, seed=self.seed)


@final
class QueryTimeSplit(AbstractQuerySplit):
    """Train on earlier queries and test on later ones, several times.

    Queries are cut into ``n_splits + 1`` parts by time; split i trains on the first i parts and
    tests on the next one. Queries of the same time are in the same part, and a query is as late as
    its last row.

    Parameters
    ----------
    n_splits : int, default=5
        Number of splits, at least 1.

    Examples
    --------
    >>> qid, time = [7, 7, 8, 9], [3, 3, 1, 2]
    >>> for train, test in QueryTimeSplit(2).split(qid=qid, time=time):
    ...     print(train, test)
    [2] [3]
    [2 3] [0 1]
    """

    _reads = ("qid", "groups", "time")

    def __init__(self, n_splits: int = 5) -> None:
        self.n_splits = read_whole(n_splits, "n_splits", 1)

    def __repr__(self) -> str:
        return f"QueryTimeSplit(n_splits={self.n_splits})"

    def split(
        self,
        X: Any = None,  # noqa: N803
        y: Any = None,
        groups: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Parts:
        """Yield the row numbers of the training and the test part of each split.

        ``time`` is a number or a date for each row; larger is later.
        """
        known = self._queries(X, qid, groups)
        if time is None:
            raise DataError(
                "QueryTimeSplit needs the time of each row: params={'time': time, ...}, or "
                "splitter=list(QueryTimeSplit(...).split(qid=qid, time=time))"
            )
        column = one_column(time)
        if column.dtype.kind in "mM":
            column = np.where(np.isnat(column), np.nan, column.astype(np.int64))
        when = known.arrange(as_floats(column, "time"))
        if len(when) != known.n_rows or not np.isfinite(when).all():
            raise DataError(f"time needs one number or date for each of the {known.n_rows} rows")
        latest = np.maximum.reduceat(when, known.offsets[:-1])
        before = np.searchsorted(np.sort(latest), latest)  # equal times count the same
        part = before * (self.n_splits + 1) // known.n_queries
        if len(np.unique(part)) <= self.n_splits:
            raise DataError(
                f"{known.n_queries} queries at {len(np.unique(latest))} different times cannot be "
                f"cut into {self.n_splits + 1} parts; use fewer splits"
            )
        of_row = known.restore(known.spread(part))
        for each in range(1, self.n_splits + 1):
            yield np.flatnonzero(of_row < each), np.flatnonzero(of_row == each)
