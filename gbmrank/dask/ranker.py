"""A ranker in the style of scikit-learn, trained on a Dask cluster."""

import copy
from collections.abc import Sequence
from typing import Any, final

from distributed import default_client

from gbmrank.api import MetricList
from gbmrank.api.metrics import metric_list
from gbmrank.boosters.base import Trained
from gbmrank.dask.distributed import train
from gbmrank.dask.partitions import Table
from gbmrank.dask.scoring import evaluate, predict
from gbmrank.errors import ConfigError
from gbmrank.estimators import GBMRanker
from gbmrank.estimators.base import AbstractEstimator, reject_unknown


@final
class DaskGBMRanker(AbstractEstimator):
    """A boosted ranker trained on a Dask cluster.

    Parameters
    ----------
    objective : Objective or str, default="pairwise(loss=logistic, target=ndcg@10)"
        What is minimised; ``native:NAME`` is an objective of the booster, ``"committee"`` merges
        models of several (:class:`gbmrank.GBMRanker`).
    backend : {"lightgbm", "xgboost"}, default="lightgbm"
        The booster.
    metric : Metric, MetricList or str, default="ndcg@10"
        Metrics on the evaluation sets; :meth:`score` and early stopping use the first one.
    n_estimators : int, default=100
        Maximum number of boosting rounds.
    early_stopping_rounds : int or None, default=None
        Stop after this many rounds without improvement on the last evaluation set.
    seed : int, default=0
        Seed of the booster.
    client : distributed.Client or None, default=None
        Client of the cluster; None uses the current one.
    **booster_params : object
        Any parameter of the booster.

    Attributes
    ----------
    booster_ : object
        The booster.
    best_iteration_ : int
        Number of the best round, from 0.
    evals_result_ : dict
        Value of each metric after every round, by evaluation set.
    committee_ : tuple of Member
        Members of a committee; empty for one objective.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, if the features had any.
    """

    def __init__(
        self,
        objective: Any = "pairwise(loss=logistic, target=ndcg@10)",
        backend: str = "lightgbm",
        metric: Any = "ndcg@10",
        n_estimators: int = 100,
        *,
        early_stopping_rounds: int | None = None,
        seed: int = 0,
        client: Any = None,
        **booster_params: Any,
    ) -> None:
        self.objective = objective
        self.backend = backend
        self.metric = metric
        self.n_estimators = n_estimators
        self.early_stopping_rounds = early_stopping_rounds
        self.seed = seed
        self.client = client
        self._booster_params = booster_params

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        eval_set: Sequence[tuple[Any, Any]] = (),
        eval_qid: Sequence[Any] = (),
        eval_sample_weight: Sequence[Any] | None = None,
        **unknown: Any,
    ) -> "DaskGBMRanker":
        """Train; the parameters are those of :func:`gbmrank.dask.train`."""
        for name in ("callbacks", "init_model", "verbose"):
            if name in unknown:
                raise ConfigError(f"{name}= is for one machine: use GBMRanker, or leave it out")
        reject_unknown(unknown, "DaskGBMRanker")
        self.trained_ = train(
            self._client(),
            X,
            y,
            qid=qid,
            objective=self.objective,
            metric=self.metric,
            backend=self.backend,
            sample_weight=sample_weight,
            eval_set=eval_set,
            eval_qid=eval_qid,
            eval_sample_weight=eval_sample_weight,
            rounds=self.n_estimators,
            early_stopping=self.early_stopping_rounds,
            params=self._booster_params,
            seed=self.seed,
            keep_best=self.early_stopping_rounds is not None,
        )
        self.n_features_in_ = self.trained_.columns.count
        self._keep_names(self.trained_.columns.names)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the connection to the cluster."""
        return {**self.__dict__, "client": None}

    @property
    def booster_(self) -> Any:
        """The booster."""
        self._check_fitted("trained_")
        return self.trained_.fitted.booster

    @property
    def best_iteration_(self) -> int:
        """Number of the best round, from 0."""
        self._check_fitted("trained_")
        return self.trained_.best_round

    @property
    def evals_result_(self) -> Any:
        """Value of each metric after every round, by evaluation set."""
        self._check_fitted("trained_")
        return self.trained_.history

    @property
    def committee_(self) -> Any:
        """Members of a committee; empty for one objective."""
        self._check_fitted("trained_")
        return self.trained_.committee

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return one raw score per row: a lazy dask array for a dask collection.

        Parameters
        ----------
        X : dask array, dask frame, or a table in memory
            Rows to score, with the columns of the training data.
        """
        self._check_fitted("trained_")
        return predict(self.trained_, X)

    def score(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> float:  # noqa: N803
        """Return the mean of the first metric over queries, negated if lower is better.

        It is computed on the workers: their sums and counts are added, and divided once.

        Parameters
        ----------
        X, y, qid, sample_weight : dask collections
            As for :meth:`fit`.
        """
        self._check_fitted("trained_")
        first = metric_list(self.metric)[0]
        table = Table.read(X, y, qid, sample_weight, "X")
        value = evaluate(self._client(), self.trained_, table, MetricList([first]))[0]
        return value if first.higher_is_better else -value

    def to_local(self) -> GBMRanker:
        """Return this model as a trained GBMRanker, which works without Dask.

        :meth:`gbmrank.GBMRanker.save` writes it, and :func:`gbmrank.load` reads it back.
        """
        self._check_fitted("trained_")
        found = self.trained_
        own = Trained(copy.copy(found.fitted), found.history, found.best_round, found.committee)
        params = {name: value for name, value in self.get_params().items() if name != "client"}
        return GBMRanker.from_trained(own, self.trained_.columns, **params)

    def _client(self) -> Any:
        if self.client is not None:
            return self.client
        try:
            return default_client()
        except ValueError as error:
            raise ConfigError(
                "no Dask client: create one with distributed.Client(address), or give client="
            ) from error
