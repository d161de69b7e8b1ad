"""A ranker of short lists by regression on a low-rank factorisation of a metric."""

import importlib
import itertools
import math
import os
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from gbmrank.api import metric
from gbmrank.boosters.base import Fitted
from gbmrank.boosters.settings import check_seed
from gbmrank.data.columns import read_whole
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.tables import column_names
from gbmrank.errors import ConfigError, DataError, LimitError, NoProgressWarning
from gbmrank.estimators.base import check_count, ranks_within, reject_column_names, reject_unknown
from gbmrank.estimators.decoded_ranker import AbstractDecodedRanker, Matrix, read_rows
from gbmrank.estimators.model_file import Archive
from gbmrank.types import ArrayLike, FloatArray, IntArray

_TABLES = ("alpha", "beta", "decisions", "singular_values")  # arrays of a LowRank


class _Lists(NamedTuple):
    """Queries of one length: their rows, shape (q, n), sorted by features."""

    rows: IntArray
    features: Matrix


class _Model(NamedTuple):
    """The regressors for lists of one length."""

    factors: Any  # theory.LowRank; theory is imported when it is used
    arrangements: IntArray
    regressors: list[Fitted | float]  # one per dimension; a number where the target is constant

    @property
    def fixed(self) -> bool:
        """Whether items keep their places, as decisions of a loss matrix need."""
        return bool(self.factors.decisions.ndim == 1)

    def estimate(self, features: Matrix) -> FloatArray:
        """Return estimates averaged over arrangements, each mapped back, shape (q, d)."""
        beta, orders, fixed = self.factors.beta, self.factors.decisions, self.fixed
        total = np.zeros((len(features), self.factors.dimension))
        for arrangement in self.arrangements:
            table = _joined(features[:, arrangement])
            made = np.column_stack(
                [
                    np.full(len(table), one) if isinstance(one, float) else one.scores(table)
                    for one in self.regressors
                ]
            )
            if fixed:
                return made
            turned = np.searchsorted(_codes(orders), _codes(arrangement[orders]))
            total += made @ (beta.T @ beta[turned])
        return total / len(self.arrangements)


@final
class LowRankRanker(AbstractDecodedRanker):
    r"""A ranker of short lists that is calibrated for any metric: regressions and a decoder.

    ERR, reciprocal rank or average precision cannot be maximised by sorting a score per item.
    On lists of up to 8 items every metric is a scalar product of a vector that depends on the
    labels and one that depends on the order (:func:`gbmrank.theory.low_rank`). This ranker
    estimates the first vector by least squares, one model per component and length of lists, and
    returns the order that is best for the estimates: the best one for every distribution, given
    enough data.

    Each row of the regressions is one list: the features of its items side by side. Training uses
    several arrangements of each list, and predictions are averaged over them.

    Parameters
    ----------
    metric : metric or str, default="err"
        Metric to optimise.
    backend : {"lightgbm", "xgboost"}, default="lightgbm"
        The booster.
    arrangements : int, default=24
        Maximum number of arrangements of a list; 24 are all of up to 4 items.
    loss_matrix : array-like of shape (n_outcomes, n_decisions), optional
        The loss of each decision for each outcome, instead of a metric. If there are n! decisions
        for lists of n items, they are the orders in lexicographic order.
    alpha, beta : array-like of shape (n_outcomes, d) and (n_decisions, d), optional
        Factors of such a matrix instead of the matrix: the loss is ``<alpha_y, beta_t>``, up to a
        constant per outcome.
    n_estimators : int, default=100
        Number of trees of each regression.
    seed : int, default=0
        Seed of the arrangements and of the booster.
    **booster_params : object
        Other parameters of the booster, such as ``learning_rate`` or ``num_leaves``.

    Attributes
    ----------
    factors_ : dict of int to LowRank
        Factorisation by length of lists; ``factors_[4].dimension`` is the number of regressions.
    n_features_in_ : int
        Number of features of an item.
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, if the features had any.

    References
    ----------
    Ramaswamy, Agarwal and Tewari, "Convex calibrated surrogates for low-rank loss matrices with
    applications to subset ranking losses", NIPS 2013, Thm 3.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(1200, 2))
    >>> y, qid = (x[:, 0] > 0).astype(int), np.repeat(np.arange(400), 3)
    >>> model = LowRankRanker("mrr", n_estimators=30, learning_rate=0.3).fit(x, y, qid=qid)
    >>> model.factors_[3].dimension, model.score(x, y, qid=qid) > 0.95
    (4, True)
    """

    _requests: ClassVar[Mapping[str, Mapping[str, bool | None]]] = {
        "fit": {"qid": True},
        "predict": {"qid": True},
        "score": {"qid": True, "sample_weight": None},
    }
    _row = "a list"
    _target = "the targets"

    def __init__(
        self,
        metric: Any = "err",
        backend: str = "lightgbm",
        *,
        arrangements: int = 24,
        loss_matrix: ArrayLike | None = None,
        alpha: ArrayLike | None = None,
        beta: ArrayLike | None = None,
        n_estimators: int = 100,
        seed: int = 0,
        **booster_params: Any,
    ) -> None:
        self.metric, self.backend, self.arrangements = metric, backend, arrangements
        self.loss_matrix, self.alpha, self.beta = loss_matrix, alpha, beta
        self.n_estimators, self.seed = n_estimators, seed
        self._booster_params = booster_params

    def fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: Any = None,
        *,
        qid: ArrayLike | None = None,
        **unknown: Any,
    ) -> Self:
        """Train one regression per dimension and length of lists.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features of items.
        y : array-like of shape (n_rows,)
            Labels that the metric accepts; larger is better. With a loss matrix, the row number
            of the query's outcome.
        qid : array-like of shape (n_rows,)
            One query id per row, in any order; at most 8 rows per query of a metric.
        **unknown : object
            Not supported: any other argument raises; for ``group`` the error shows the ``qid``.

        Returns
        -------
        LowRankRanker
            The estimator itself.
        """
        reject_unknown(unknown, "LowRankRanker")
        reject_column_names("LowRankRanker", y, qid)
        check_seed(self.seed, least=0)
        most = read_whole(self.arrangements, "arrangements", 1)
        x, groups = read_rows(X, qid)
        check_count(y, groups.n_rows)
        labels = np.asarray(groups.arrange(RankingData.from_arrays(y).labels), np.float64)
        known = self._known_factors()
        if known is None:
            models = self._of_metric(x, labels, groups, most)
        else:
            models = self._of_outcomes(x, labels, groups, known)
        if not any(one.factors.dimension for one in models.values()):
            what = "the loss of every outcome" if known else f"{metric(self.metric)}"
            raise DataError(
                f"there is nothing to learn: {what} is the same for every decision; give labels "
                "that differ within queries, or another loss"
            )
        return self._hold(models, x.shape[1], column_names(X))

    @property
    def _tables(self) -> tuple[Any, ...]:
        return self.loss_matrix, self.alpha, self.beta

    @property
    def _has_losses(self) -> bool:
        return any(table is not None for table in self._tables)

    def _known_factors(self) -> Any:
        """Return the factors of the loss matrix; None if there is a metric."""
        given = [table is not None for table in self._tables]
        if not self._has_losses:
            return None
        if given not in ([True, False, False], [False, True, True]):
            raise ConfigError("give loss_matrix=, or alpha= and beta= together, not some of both")
        matrix, alpha, beta = self._tables
        return _theory().low_rank(matrix) if given[0] else _theory().LowRank.of(alpha, beta)

    def _kind(self) -> tuple[Any, ...]:
        """Return what is learned, to notice a change of parameters."""
        tables = (None if table is None else np.array(table) for table in self._tables)
        return (None if self._has_losses else str(metric(self.metric)), *tables)

    def _of_metric(
        self, x: Matrix, labels: FloatArray, groups: Groups, most: int
    ) -> dict[int, _Model]:
        _check_short(groups)
        measure, models = metric(self.metric).measure, {}
        for n, lists in _by_length(x, groups).items():
            values = labels[lists.rows]
            factors = _theory().factorise(measure, _arrangements_of(values))
            shown = _drawn(n, most, self.seed)
            rows = np.arange(len(values))[:, None]
            drawn = _spread(shown, len(values), self.seed)
            table = np.concatenate([_joined(lists.features[rows, one]) for one in drawn])
            vectors = np.concatenate([values[rows, one] for one in drawn])
            distinct, place = np.unique(vectors, axis=0, return_inverse=True)
            targets = factors.targets(distinct)[place.reshape(-1)]
            models[n] = _Model(factors, shown, self._regressors(table, targets))
        return models

    def _of_outcomes(
        self, x: Matrix, labels: FloatArray, groups: Groups, factors: Any
    ) -> dict[int, _Model]:
        n = groups.longest
        if np.any(groups.sizes != n):
            raise DataError(
                f"with a loss matrix all queries have the same number of rows; got {n} and "
                f"{int(groups.sizes.min())}"
            )
        targets = factors.alpha[_outcomes(labels, groups, len(factors.alpha))]
        table = _joined(x.reshape(groups.n_queries, n, -1))
        return {n: _Model(factors, np.arange(n)[None], self._regressors(table, targets))}

    @property
    def decoded(self) -> Any:
        """What is fitted and how it is decoded, for :func:`gbmrank.theory.calibration`."""
        if self._has_losses:
            return _theory("verdicts.pairs").Decoded("losses", "exact")
        return _theory("verdicts.pairs").Decoded("metric", "exact", metric(self.metric).measure)

    def decide(self, X: ArrayLike, *, qid: ArrayLike | None = None) -> IntArray:  # noqa: N803
        """Return the decision of each query: the number of a column of the loss matrix.

        Queries are in order of their first row; the parameters are those of :meth:`rank`.

        Examples
        --------
        Missing class 1 costs ten times a false alarm:

        >>> import numpy as np
        >>> x = np.repeat([0.0, 1.0], 50)[:, None]
        >>> y = np.tile([0, 0, 0, 0, 1], 20) * (x[:, 0] > 0)  # one in five, where x = 1
        >>> costs = LowRankRanker(loss_matrix=[[0, 1], [10, 0]], n_estimators=30)
        >>> model = costs.fit(x, y, qid=np.arange(100))
        >>> model.decide([[0.0], [1.0]], qid=[0, 1])
        array([0, 1])
        """
        x, groups = self._read_new(X, qid)
        model = self._models.get(groups.longest)
        if model is None or not model.fixed:
            raise ConfigError("decisions have numbers with a loss matrix; rank() returns orders")
        features = x.reshape(groups.n_queries, groups.longest, -1)
        return np.asarray(model.factors.decode(model.estimate(features)), np.int64)

    def rank(self, X: ArrayLike, *, qid: ArrayLike | None = None) -> IntArray:  # noqa: N803
        """Return the rank of each row within its query, 1 for the best.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features of items.
        qid : array-like of shape (n_rows,)
            One query id per row, in any order; only query lengths seen in training.
        """
        x, groups = self._read_new(X, qid)
        return ranks_within(self._places(x, groups), groups)

    def predict(self, X: ArrayLike, *, qid: ArrayLike | None = None) -> FloatArray:  # noqa: N803
        """Return a score per row: the number of rows of its query that are ranked below it.

        Parameters are those of :meth:`rank`. Scores are comparable only within a query. They do
        not depend on the order of the rows, except that rows with equal features keep it.
        """
        return self._ranked_below(X, qid)

    def score(
        self,
        X: ArrayLike,  # noqa: N803
        y: Any = None,
        *,
        qid: ArrayLike | None = None,
        **unknown: Any,
    ) -> float:
        """Return the mean of the metric, negated if lower is better; see :meth:`fit`.

        With a loss matrix, minus the mean loss of the decisions (with ``alpha`` and ``beta``, of
        their scalar products).
        """
        reject_unknown(unknown, "LowRankRanker")
        if self._has_losses:
            decisions, groups = self.decide(X, qid=qid), read_rows(X, qid)[1]
            check_count(y, groups.n_rows)
            (factors,) = self.factors_.values()
            rows = _outcomes(np.asarray(groups.arrange(y)), groups, len(factors.alpha))
            if self.loss_matrix is not None:
                return -float(np.mean(np.asarray(self.loss_matrix)[rows, decisions]))
            return -float(np.mean(np.sum(factors.alpha[rows] * factors.beta[decisions], axis=1)))
        measure = metric(self.metric)
        value = float(measure.score(y, self.predict(X, qid=qid), qid=qid))
        return value if measure.higher_is_better else -value

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ranker as a zip archive; :func:`gbmrank.load` reads it back.

        The archive has the booster's own model files, tables in numpy's format, and JSON.

        Parameters
        ----------
        path : str or path
            Ends in ``.zip``.
        """
        self._check_learned()
        trained = [r for one in self._models.values() for r in one.regressors]
        backend = next((r.backend for r in trained if not isinstance(r, float)), self.backend)
        text = str(metric(self.metric))
        params = {**self.get_params(deep=False), "metric": text}
        known = "" if self._has_losses else text
        identity = self._identity_of(backend, self.n_estimators, metric=known, params=params)
        tables, models = {}, {}
        for n, (factors, shown, regressors) in self._models.items():
            made = {name: getattr(factors, name) for name in _TABLES} | factors.rule._asdict()
            made["arrangements"] = shown
            made["constants"] = np.array(
                [r if isinstance(r, float) else np.nan for r in regressors]
            )
            for name, table in made.items():
                if isinstance(table, np.ndarray):
                    tables[f"{n}/{name}"] = table
            for at, regressor in enumerate(regressors):
                if not isinstance(regressor, float):
                    models[f"{n}/{at}"] = regressor
        Archive(identity, tables, models).write(path)

    @classmethod
    def from_file(cls, archive: Archive) -> "LowRankRanker":
        """Return the ranker of an archive; :func:`gbmrank.load` calls it."""
        identity, tables, theory = archive.identity, archive.tables, _theory()
        made = cls(**identity.params)
        measure = metric(identity.metric).measure if identity.metric else None
        models: dict[int, _Model] = {}
        for n in sorted({int(name.partition("/")[0]) for name in tables}):
            own = {
                name.partition("/")[2]: table
                for name, table in tables.items()
                if name.startswith(f"{n}/")
            }
            cells, discount = own.get("cells"), own.get("discount")
            kind = "enumeration" if cells is None else "assignment" if discount is None else "sort"
            rule = theory.Rule(kind, cells, discount)
            known = {name: own[name] for name in _TABLES}
            factors = theory.LowRank(**known, rule=rule, metric=measure)
            regressors = [
                archive.models[f"{n}/{at}"] if np.isnan(constant) else float(constant)
                for at, constant in enumerate(own["constants"].tolist())
            ]
            models[n] = _Model(factors, own["arrangements"], regressors)
        return made._hold(models, identity.n_features, identity.feature_names)

    def _hold(self, models: dict[int, _Model], n_features: int, names: list[str] | None) -> Self:
        self._models, self.n_features_in_ = models, n_features
        self.factors_ = {n: one.factors for n, one in models.items()}
        self._learned = self._kind()
        self._keep_names(names)
        return self

    def _check_learned(self) -> None:
        self._check_fitted("factors_")
        if not all(map(np.array_equal, self._learned, self._kind())):
            raise ConfigError("metric or loss has changed since training; call fit again")

    def _regressors(self, table: Matrix, targets: FloatArray) -> list[Fitted | float]:
        made: list[Fitted | float] = []
        least = 1e-12 * np.abs(targets).max(initial=0.0)
        with warnings.catch_warnings(action="ignore", category=NoProgressWarning):
            for column in targets.T:  # a constant may be the best fit
                known = np.ptp(column) <= least
                made.append(float(column[0]) if known else self._regression(table, column))
        return made

    def _check_lengths(self, groups: Groups) -> None:
        fixed = any(model.fixed for model in self._models.values())
        if not fixed:
            _check_short(groups)
        new = sorted({int(n) for n in groups.sizes if n > 1 or fixed} - self._models.keys())
        if new:
            known = ", ".join(map(str, sorted(self._models)))
            raise DataError(
                f"the model was trained on lists of {known} items, but X has a query of {new[0]}; "
                "train on lists of that length too"
            )

    def _places(self, x: Matrix, groups: Groups) -> FloatArray:
        places = np.zeros(groups.n_rows)
        fixed = self._models.get(groups.longest)
        if fixed is not None and fixed.fixed:
            features = x.reshape(groups.n_queries, groups.longest, -1)
            decisions = fixed.factors.decode(fixed.estimate(features))
            count, orders = len(fixed.factors.beta), math.factorial(groups.longest)
            if count != orders:
                raise ConfigError(
                    f"the loss matrix has {count} decisions, and {groups.longest} items have "
                    f"{orders} orders, so decisions are no orders; decide() returns their numbers"
                )
            chosen = _permutations(groups.longest)[decisions]
            return np.argsort(chosen, axis=1).ravel().astype(np.float64)
        for n, (rows, features) in _by_length(x, groups).items():
            model = self._models[n]
            if not model.factors.dimension:
                places[rows] = 0.5 * (n - 1.0)
                continue
            orders = model.factors.decode(model.estimate(features))
            np.put_along_axis(
                made := np.empty((len(rows), n)), orders, np.arange(n, dtype=np.float64)[None], 1
            )
            places[rows] = made
        return places


def _theory(module: str = "loss_matrices") -> Any:
    return importlib.import_module(f"gbmrank.theory.{module}")  # scipy comes with its solvers


def _check_short(groups: Groups) -> None:
    longest, most = groups.longest, _theory().MOST_ITEMS
    if longest > most:
        raise LimitError(
            f"a query has {longest} rows, but all orders are enumerated for up to {most}; rerank "
            f"the best {most} of a gbmrank.GBMRanker, or use gbmrank.PairRanker"
        )


def _by_length(x: Matrix, groups: Groups) -> dict[int, _Lists]:
    """Return queries of two rows or more by their length, rows sorted by their features."""
    query = groups.spread(np.arange(groups.n_queries))
    order = np.lexsort((*x.T[::-1], query))
    found = {}
    for n in np.unique(groups.sizes[groups.sizes > 1]).tolist():
        begins = groups.offsets[:-1][groups.sizes == n]
        rows = order[begins[:, None] + np.arange(n)[None, :]]
        found[n] = _Lists(rows, x[rows])
    return found


def _outcomes(labels: FloatArray, groups: Groups, count: int) -> IntArray:
    """Return the outcome of each query, which is the same on all of its rows."""
    found = labels[groups.offsets[:-1]]
    known = np.isin(found, np.arange(count))
    if not np.array_equal(labels, groups.spread(found)) or not known.all():
        raise DataError(
            "with a loss matrix, y is the row number of the query's outcome, from 0 to "
            f"{count - 1}, the same on all rows of a query; got {np.unique(labels)[:5].tolist()}"
        )
    return np.asarray(found, np.int64)


def _permutations(n: int) -> IntArray:
    """Return all orders of n items, in lexicographic order."""
    return np.array(list(itertools.permutations(range(n))), np.int64)


def _joined(features: Matrix) -> npt.NDArray[np.float32]:
    return np.ascontiguousarray(features.reshape(len(features), -1), np.float32)


def _drawn(n: int, most: int, seed: int) -> IntArray:
    """Return arrangements of n items: all of them, or some with the given one among them."""
    orders = _permutations(n)
    if len(orders) <= most:
        return orders
    others = np.random.default_rng([seed, n]).choice(len(orders) - 1, most - 1, replace=False)
    return orders[np.concatenate([[0], 1 + np.sort(others)])]


def _spread(shown: IntArray, count: int, seed: int) -> IntArray:
    """Return arrangements of each of some lists, shape (arrangements, lists, n).

    The given one comes first; the others are drawn list by list. If every list occurred in all
    arrangements, no feature would have a gain at the root of a tree, and none would be split on.
    """
    rng = np.random.default_rng([seed, count])
    drawn = rng.integers(len(shown), size=(len(shown), count))
    drawn[0] = 0
    return shown[drawn]


def _arrangements_of(labels: FloatArray) -> FloatArray:
    """Return every arrangement of the label vectors that occur, once."""
    kinds = np.unique(np.sort(labels, axis=1), axis=0)
    n = labels.shape[1]
    repeats = [np.unique(kind, return_counts=True)[1].tolist() for kind in kinds]
    sizes = [math.factorial(n) // math.prod(map(math.factorial, each)) for each in repeats]
    _theory().check_work(sum(sizes), math.factorial(n))
    every = _permutations(n)
    return np.concatenate([np.unique(kind[every], axis=0) for kind in kinds])


def _codes(orders: IntArray) -> IntArray:
    """Return a number per order that grows as orders do lexicographically."""
    n = orders.shape[1]
    return np.asarray(orders @ n ** np.arange(n - 1, -1, -1), np.int64)
