"""A ranker that scores rows: any objective, any metric, either booster."""

import copy
import importlib
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Self, final

import numpy as np

from gbmrank.api import Objective, objective
from gbmrank.api.committees import Committee, objectives_in, ranking_objective
from gbmrank.api.metrics import MetricList, any_preferences, metric_list
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Fitted, Member, Part, Trained
from gbmrank.boosters.plan import Native, Plan
from gbmrank.boosters.supported import booster_named
from gbmrank.clicks.pooling import PooledLabels
from gbmrank.data.columns import as_floats
from gbmrank.data.leakage import SeenQueries
from gbmrank.data.position_bias import PositionBias
from gbmrank.data.queries import Groups
from gbmrank.data.schema import Schema, check_names, renamed
from gbmrank.data.tables import read_table, split_column, take_rows
from gbmrank.errors import (
    CalibrationWarning,
    ConfigError,
    DataError,
    GbmrankError,
    NumericError,
    ParameterError,
)
from gbmrank.estimators.base import (
    AbstractEstimator,
    at_cutoffs,
    check_count,
    check_labels,
    eval_ids,
    ids_of_column,
    ids_of_sets,
    ids_of_sizes,
    named_sets,
    ranks_within,
    read_part,
    read_queries,
    read_valid,
    reject_column_names,
    reject_unknown,
    top_rows,
    warn_about_stopping,
)
from gbmrank.estimators.click_training import ClickTraining
from gbmrank.estimators.committee import member_plans, train
from gbmrank.estimators.crossfit import Fold, check_folds, fold_count, make_folds, pooled
from gbmrank.estimators.crossfit import train as crossfit
from gbmrank.estimators.display import shown
from gbmrank.estimators.distillation import (
    OBJECTIVE,
    ROUNDS,
    Distillation,
    centred,
    compared,
    lost_by,
    read_eval_set,
    rounds_of,
    shared_params,
    student_params,
)
from gbmrank.estimators.model_file import Identity, read_model, write_model
from gbmrank.estimators.objective_parameters import parameters_of, with_parameter
from gbmrank.estimators.probability_map import (
    LEVEL,
    ProbabilityMap,
    check_probabilities,
    level_path,
    relevance,
)
from gbmrank.objectives import held_preferences
from gbmrank.types import FloatArray, IntArray


def _booster_of(model: Any, columns: Schema) -> Any:
    """Return the booster of a model to continue: a ranker, a file or the booster itself."""
    if isinstance(model, GBMRanker):
        model._check_fitted("booster_")
        known = model._columns
        if known.count != columns.count:
            raise DataError(
                f"init_model was trained on {known.count} features, X has {columns.count}"
            )
        check_names("X", columns.names, known.names)
        return model.booster_
    if isinstance(model, str | os.PathLike):
        return read_model(Path(model), True)[0].booster
    return model


_FOLDS = 4  # of calibrate
_METRIC = "ndcg@10"
_ROUTED = "qid sample_weight position position_bias item session fold_groups splitter"
_NOT_ROUTED = (
    "clip eval_set eval_qid eval_sample_weight eval_position eval_names "
    "callbacks init_model verbose"
)
_OPTIONAL = (
    *("calibration_", "committee_", "position_bias_", "pooled_labels_"),
    *("oof_scores_", "oof_value_", "distillation_"),
)
_CALLED = {
    "rounds": "n_estimators",
    "early_stopping": "early_stopping_rounds",
    "threads": "n_jobs",
    "valid": "eval_set= and eval_qid=",
}


@final
class GBMRanker(AbstractEstimator):
    r"""A boosted ranker in the style of scikit-learn.

    One class serves both boosters: objective, metric, queries, early stopping and model files are
    the same, so a grid search can include ``backend``. Parameters that are not listed below are
    passed to the booster.

    Rows of a query need not be adjacent: they are sorted internally, and results are in the order
    of the rows given. Features may be numpy arrays, scipy sparse matrices, or pandas, polars or
    pyarrow tables.

    Parameters
    ----------
    objective : Objective or str, default="pairwise(loss=logistic, target=ndcg@10)"
        What is minimised; ``native:lambdarank`` or ``native:rank:ndcg`` for the booster's own.
        Its parameters can be set one by one: ``objective__loss``, ``objective__loss__sigma``.
        ``"committee"`` trains four objectives that suit the metric and merges their models into
        one; ``"committee(a, b, weights=[2, 1], seeds=3)"`` sets objectives, weights and the
        number of seeds of each.
    backend : {"lightgbm", "xgboost"}, default="lightgbm"
        The booster.
    metric : Metric, MetricList, list or str, default="ndcg@10"
        Metrics that are reported; :meth:`score` and early stopping use the first one.
    n_estimators : int, default=100
        Number of boosting rounds.
    early_stopping_rounds : int or None, default=None
        Stop after this many rounds without improvement on the last evaluation set, or on the
        fold that is left out, and keep the rounds up to the best one. Metrics where lower is
        better are minimised.
    folds : int or None, default=None
        Cross-fitting: the queries are cut into this many folds, and one model is trained for each
        on all other folds; it stops on its own. They are merged into one model, as a committee
        is, whose objectives take turns. No row is lost to validation, and evaluation sets are
        only reported. A committee with early stopping and no evaluation set has 4 folds.
    pool_eval_set : bool, default=False
        With ``folds``, train on the rows of the evaluation sets too. Then no independent set is
        left, and ``oof_scores_`` has their rows after those of ``X``.
    seed : int, default=0
        Seed of the booster; ``random_state`` is accepted for it.
    n_jobs : int or None, default=None
        Threads of the booster, and upper limit for those of gbmrank; None leaves it to the
        booster.
    calibrate : {"cross-fit", "held-out"} or None, default=None
        Learn probabilities for :meth:`predict_proba`. ``"cross-fit"`` uses the scores of ``folds``
        (4 if not given) and one more model, pointwise logistic, for how good the whole list is.
        ``"held-out"`` fits a sigmoid of the score on the last evaluation set.
    threshold : float or None, default=None
        Labels of at least this are relevant for ``calibrate``; not needed for 0/1 labels.
    importance_type : str or None, default=None
        Kind of ``feature_importances_``: None for the share in the summed gain, or a kind of the
        booster, ``"gain"`` or ``"split"`` in LightGBM, ``"weight"`` and others in XGBoost.
    **booster_params : object
        Parameters of the booster, such as ``learning_rate``. Parameters that have no effect or
        do harm with a custom objective are rejected with the reason; ``bagging_by_query`` is
        implemented by gbmrank.

    Attributes
    ----------
    booster_ : lightgbm.Booster or xgboost.Booster
        The model.
    best_iteration_ : int
        Number of the best round, from 0; the last one without a validation set.
    evals_result_ : dict
        Value of each metric after every round, by evaluation set.
    feature_importances_ : array of shape (n_features,)
        Share of each feature in the summed gain of all splits, or what ``importance_type`` sets.
    committee_ : tuple of Member
        Objective, seed, rounds, weight, spread and validation values of each member of a
        committee, or of each fold. ``evals_result_`` then has one value per metric, that of the
        merged model.
    oof_scores_ : array of shape (n_rows,)
        With ``folds``: each row scored by the model that did not see it, divided by the spread of
        that model's scores within queries. NaN for rows that no fold holds out. Not saved.
    oof_value_ : float
        With ``folds``: mean of the first metric over queries, each scored by the model that did
        not see it. A fold that stops its model would overrate it, so each fold is valued at the
        number of rounds that the other folds choose.
    distillation_ : Distillation
        How a model made by :meth:`distil` differs from its teacher. Not saved.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, if the features had any.
    calibration_ : ProbabilityMap
        What ``calibrate`` learned.
    position_bias_ : PositionBias
        Bias that clicks were corrected by, if positions were given.
    pooled_labels_ : PooledLabels
        What ``position_bias="pooled"`` was trained on; not saved with the model.

    Examples
    --------
    >>> from gbmrank.data.demonstration import demo_data
    >>> data = demo_data(n_queries=100, seed=0)
    >>> model = GBMRanker(n_estimators=20).fit(data.X, data.labels, qid=data.qid)
    >>> model.score(data.X, data.labels, qid=data.qid) > 0.5
    True
    """

    _requests: ClassVar[Mapping[str, Mapping[str, bool | None]]] = {
        "fit": {**dict.fromkeys(_ROUTED.split(), True), **dict.fromkeys(_NOT_ROUTED.split())},
        "score": {"qid": True, "sample_weight": None},
    }

    _level: "GBMRanker | None" = None  # of calibrate="cross-fit"
    _seen: SeenQueries | None = None  # of the training set, in memory only
    _identity: Identity
    pooled_labels_: PooledLabels
    evals_result_: Mapping[str, Mapping[str, list[float]]]
    distillation_: Distillation

    def __init__(
        self,
        objective: Any = "pairwise(loss=logistic, target=ndcg@10)",
        backend: str = "lightgbm",
        metric: Any = _METRIC,
        n_estimators: int = 100,
        *,
        early_stopping_rounds: int | None = None,
        folds: int | None = None,
        pool_eval_set: bool = False,
        calibrate: str | None = None,
        threshold: float | None = None,
        seed: int = 0,
        n_jobs: int | None = None,
        importance_type: str | None = None,
        **booster_params: Any,
    ) -> None:
        self.objective, self.backend, self.metric = objective, backend, metric
        self.n_estimators, self.early_stopping_rounds = n_estimators, early_stopping_rounds
        self.folds, self.pool_eval_set = folds, pool_eval_set
        self.calibrate, self.threshold = calibrate, threshold
        self.seed, self.n_jobs, self.importance_type = seed, n_jobs, importance_type
        self._booster_params = booster_params

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        position: Any = None,
        position_bias: PositionBias | str | None = None,
        item: Any = None,
        session: Any = None,
        clip: float | None = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        eval_at: Any = None,
        eval_sample_weight: Any = None,
        eval_position: Any = None,
        eval_names: Sequence[str] | None = None,
        fold_groups: Any = None,
        splitter: Any = None,
        callbacks: Sequence[Any] | None = None,
        init_model: Any = None,
        verbose: bool | int | str = False,
        **unknown: Any,
    ) -> Self:
        """Train the ranker.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features.
        y : array-like of shape (n_rows,)
            Labels, larger is better.
        qid : array-like of shape (n_rows,)
            One query id per row, in any order. If neither it nor ``group`` is given, it is the
            column ``qid`` of a data frame, as in XGBRanker; other methods then leave it out too.
        group : array-like of shape (n_queries,), optional
            Rows per query instead of ``qid``, as LightGBM and XGBoost take them: the rows of a
            query are adjacent. scikit-learn's cross-validation needs ``qid``.
        sample_weight : array-like of shape (n_rows,) or (n_queries,), optional
            Weight of each query, queries in order of their first row. If the rows of a query
            differ, they are weights of items, as in
            :meth:`Objective.gradients <gbmrank.Objective.gradients>`; metrics ignore these.
        position : array-like of shape (n_rows,), optional
            Position at which each item was shown, from 1. Labels are then clicks, 0 or 1, and a
            click counts one over the propensity of its position. With
            ``pairwise(target=identity)``, ``pointwise``, ``query_rmse`` and ``linear`` the
            expected gradient is then that of relevance; other objectives reject positions.
        position_bias : PositionBias, "em" or "pooled", optional
            Examination propensity of each position. ``"em"`` estimates it before training
            (:func:`gbmrank.clicks.estimate_bias`). ``"pooled"`` also replaces the rows by one per
            query and item, labelled by all its clicks (:func:`gbmrank.clicks.pooled_labels`); then
            ``qid`` is the query of a session, and leaves of 20 rows are large enough. Attributes
            with one entry per row then have one per item of ``pooled_labels_``.
        item, session : array-like of shape (n_rows,), optional
            For ``"pooled"``: the item within its query, and the list in which it was shown.
        clip : float, optional
            Propensities below this are raised to it: less variance for some bias.
        eval_set : (X, y) or list of (X, y), optional
            Validation sets; early stopping uses the last one.
        eval_qid : array-like or list of array-like
            Query ids of each evaluation set.
        eval_group : array-like or list of array-like, optional
            Rows per query of each evaluation set, instead of ``eval_qid``.
        eval_at : int or list of int, optional
            Cut-offs at which metrics are evaluated instead of their own, as in ``LGBMRanker``.
        eval_sample_weight : array-like or list of array-like, optional
            Weights of each evaluation set; entries may be None.
        eval_position : array-like or list of array-like, optional
            Positions of each evaluation set whose labels are clicks; None for a set whose labels
            are not. Metrics then count a click as one over its propensity, and so estimate the
            value that the ranking would have had. Only sums over items are supported (``dcg``,
            ``precision``, ``rbp``, ...); ``ndcg`` is rejected.
        eval_names : list of str, optional
            Names of the evaluation sets; ``valid_0``, ``valid_1``, ... when not given.
        fold_groups : array-like of shape (n_rows,), optional
            With ``folds``, rows of equal values stay in one fold: the user or the session of a
            query, or a number that copies of a query share.
        splitter : splitter of scikit-learn or list of (train rows, test rows), optional
            With ``folds``, how rows are cut. For data in time, where a model should not learn from
            later queries: ``list(QueryTimeSplit(folds).split(qid=qid, time=time))``.
        callbacks : list, optional
            Callbacks of the booster, such as ``lightgbm.log_evaluation(10)`` or Optuna's pruning
            callback. They see the names of the evaluation sets, and metrics under
            :meth:`Metric.name_in <gbmrank.Metric.name_in>`. A callback that stops the training
            decides how many rounds are kept, unless ``early_stopping_rounds`` is set.
        init_model : GBMRanker, booster or path, optional
            A model to continue: ``n_estimators`` rounds are added to it.
        verbose : bool, int or "bar", default=False
            Print the metrics of the evaluation sets after every round, or every ``verbose``
            rounds; ``"bar"`` shows a progress bar with them.
        **unknown : object
            Not supported: any other argument raises.

        Returns
        -------
        GBMRanker
            The estimator itself.

        Raises
        ------
        DataError
            For invalid rows, labels, ids or weights, and for data without anything to learn.
        ConfigError
            For parameters that contradict each other or have no effect.
        NumericError
            When a gradient is not finite; ``error.model`` is a ranker of the previous rounds.
        """
        reject_unknown(unknown, "GBMRanker")
        reject_column_names("GBMRanker", y, qid)
        table, qid = ids_of_column(X, ids_of_sizes(group, qid, "group"))
        target, metrics = self._named()
        metrics = metrics if eval_at is None else at_cutoffs(metrics, eval_at)
        clicks = ClickTraining.read(target, y, position, position_bias, clip)
        clicks.check_ranker(self.calibrate, self.pool_eval_set)
        rows: tuple[Any, ...] = (table, y, qid, sample_weight)
        clicks, rows = clicks.prepared(rows, (item, session), self.backend, self.seed)
        fold_groups = clicks.groups_of_folds(fold_groups, qid)
        sets = ids_of_sets(
            named_sets(
                eval_set,
                eval_ids(eval_set, eval_group, eval_qid),
                eval_sample_weight,
                eval_names,
                eval_position,
            )
        )
        if sets and eval_position is None:
            clicks.warn_of_clicks(sets)
        columns, data, valid = self._rows(rows, sets, clicks, metrics)
        relevant = relevance(
            self.calibrate,
            self.threshold,
            y,
            sets,
            pooled=self.pool_eval_set,
        )
        wanted = _FOLDS if self.calibrate == "cross-fit" and self.folds is None else self.folds
        count = fold_count(wanted, target, metrics, self.early_stopping_rounds, valid)
        check_folds(count, self.pool_eval_set, fold_groups, splitter)
        self._check(target, metrics, data, {} if count else valid)
        plan = replace(
            self._plan(target, metrics, columns),
            callbacks=tuple(callbacks or ()),
            start=None if init_model is None else _booster_of(init_model, columns),
        )
        folds = None
        if count is not None:
            clicks.check_metrics(metrics)
            if self.pool_eval_set:
                data, fold_groups, valid = pooled(data, valid, fold_groups)
            given = *rows[:2], fold_groups, splitter
            folds = make_folds(count, self.seed, target, data, given)
        models = len(member_plans(plan, count)) if verbose else 0
        with shown(verbose, models * self.n_estimators) as report:
            trained = self._train(replace(plan, report=report), data, valid, folds)
        self._keep(trained, plan, clicks.bias)
        self._seen = SeenQueries(data.features, data.data.groups)
        vars(self).update({} if clicks.labels is None else {"pooled_labels_": clicks.labels})
        if trained.unseen is not None:
            self.oof_scores_ = data.data.groups.restore(trained.unseen.scores)
            self.oof_value_ = trained.unseen.value
        if relevant is not None:
            extra = {"fold_groups": fold_groups, "splitter": splitter}
            self._calibrate(rows, relevant, list(sets.values()), {**extra, "verbose": verbose})
        return self

    def _calibrate(
        self, rows: tuple[Any, ...], relevant: FloatArray, sets: list[Any], extra: dict[str, Any]
    ) -> None:
        """Fit the map to probabilities, and train the model of the level that it reads."""
        features, _, qid, weight = rows
        level = served = None
        if self.calibrate == "held-out":
            (features, _), qid, *_ = sets[-1]
            groups = read_queries(qid, len(relevant), "the evaluation set")
            z = self.predict(features)
        else:
            own = {"objective": LEVEL, "metric": _METRIC, "folds": self.folds or _FOLDS}
            rest = {"calibrate": None, "threshold": None, "importance_type": None}
            self._level = GBMRanker(**{**self.get_params(deep=False), **own, **rest})
            with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
                # The order of its scores is not used.
                self._level.fit(features, relevant, qid=qid, sample_weight=weight, **extra)
            groups = read_queries(qid, len(relevant))
            z, level = self.oof_scores_, groups.arrange(self._level.oof_scores_)
            served = groups.arrange(self.predict(features))
        known = groups.arrange(relevant)
        made = ProbabilityMap.fitted(groups.arrange(z), level, known, groups, self.seed, served)
        self.calibration_ = made
        self._restamp(calibration=asdict(made))

    def _restamp(self, **changed: Any) -> None:
        """Change what the model says about itself."""
        self._identity = replace(self._identity, **changed)
        self._fitted.stamp(self._identity.to_text())
        self.booster_ = self._fitted.booster

    @property
    def predict_proba(self) -> Callable[..., FloatArray]:
        """Return the probability that each row is relevant: ``predict_proba(X, qid=qid)``.

        With ``calibrate``, in the order of the scores within a query. Without, for objectives
        whose scores stand for probabilities, such as ``pointwise(loss=logistic)``.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features.
        qid : array-like of shape (n_rows,)
            One query id per row: the rows of a query are the candidates of one list. Not needed
            without ``calibrate``.

        Raises
        ------
        ConfigError
            If neither ``calibrate`` nor the objective gives probabilities; it is an AttributeError.
        """
        if self.calibrate is None:
            check_probabilities(self._named()[0])
        return self._predict_proba

    def _predict_proba(self, X: Any, *, qid: Any = None) -> FloatArray:  # noqa: N803
        scores = self.predict(X)
        made: ProbabilityMap | None = vars(self).get("calibration_")
        if made is None:
            return np.asarray(objective(self.objective).inverse_link(scores))
        table, qid = self._split(X, qid)
        groups = read_queries(qid, len(scores))
        level = None
        if made.c != 0.0:
            if self._level is None:
                raise ConfigError(
                    "the file of the level, which save wrote beside the model, was not there, so "
                    "there are no probabilities. Copy both files, or calibrate again"
                )
            level = groups.arrange(self._level.predict(table))
        found = made.probabilities(groups.arrange(scores), level, groups)
        return np.asarray(groups.restore(found))

    def _rows(
        self,
        given: tuple[Any, ...],
        sets: Mapping[str, tuple[Any, ...]],
        clicks: ClickTraining,
        metrics: MetricList,
    ) -> tuple[Schema, Part, dict[str, Part]]:
        """Read the training rows and the evaluation sets."""
        features, *rest = given
        reads = booster_named(self.backend).reads
        table = read_table(features, reads=reads)
        columns = Schema.of(table, reads)
        table = table if columns.names is None else renamed(table)
        data = clicks.with_positions(read_part(table, *rest))
        valid = {}
        for name, rows in sets.items():
            part = read_valid(name, rows, columns, reads)
            valid[name] = clicks.with_estimates(part, rows, metrics, name)
        return columns, data, valid

    def _check(
        self, target: Any, metrics: MetricList, data: Part, valid: Mapping[str, Part]
    ) -> None:
        """Check labels for the metrics; ``valid`` are the sets that may stop the training."""
        if valid or self.folds or self.metric != _METRIC:  # or the default metric is unused
            check_labels(metrics, valid or {"the training set": data})
        if self.early_stopping_rounds is not None:
            warn_about_stopping(target, metrics[0], valid)
        self._check_importance()

    def _train(
        self, plan: Plan, data: Part, valid: Mapping[str, Part], folds: list[Fold] | None
    ) -> Trained:
        """Train; the error for a gradient that is not finite has a ranker of the rounds so far."""
        try:
            return train(plan, data, valid) if folds is None else crossfit(plan, folds, data, valid)
        except NumericError as error:
            model: Any = error.model
            if model is not None:
                so_far = Trained(model, {}, model.n_rounds - 1)
                error.model = copy.copy(self)._keep(so_far, plan)
            raise

    @classmethod
    def from_trained(cls, trained: Trained, columns: Schema, **params: Any) -> "GBMRanker":
        """Make a ranker from a model that gbmrank trained with these parameters."""
        made = cls(**{**params, "backend": trained.fitted.backend})
        return made._keep(trained, made._plan(*made._named(), columns))

    def predict(self, X: Any) -> FloatArray:  # noqa: N803
        """Return one raw score per row; larger is ranked first.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features, with the columns of the training data.
        """
        self._check_fitted("booster_")
        return self._columns.scores(self._fitted, self._split(X)[0])

    def _split(self, table: Any, qid: Any = None) -> tuple[Any, Any]:
        """Return the features, and query ids: by default the column ``qid`` if it is no feature."""
        known = self._columns.names
        if known is None or "qid" in known:
            return table, qid
        features, ids = split_column(table, "qid")
        return features, ids if qid is None else qid

    def rank(self, X: Any, *, qid: Any = None) -> IntArray:  # noqa: N803
        """Return the rank of each row within its query, 1 for the best.

        Equal scores keep the order of the rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features.
        qid : array-like of shape (n_rows,), optional
            One query id per row, in any order; without it all rows are one query.
        """
        scores = self.predict(X)
        table, qid = self._split(X, qid)
        groups = read_queries(qid, len(scores), single=True)
        self._warn_if_seen(table, groups)
        return ranks_within(-groups.arrange(scores), groups)

    def top_k(self, X: Any, k: int, *, qid: Any = None) -> IntArray:  # noqa: N803
        """Return the row numbers of the k best rows of each query, best first.

        Queries are in order of their first row; a query with fewer than k rows returns all. The
        other parameters are those of :meth:`rank`.

        Examples
        --------
        >>> from gbmrank.data.demonstration import demo_data
        >>> data = demo_data(n_queries=100, seed=0)
        >>> model = GBMRanker(n_estimators=20).fit(data.X, data.labels, qid=data.qid)
        >>> best = model.top_k(data.X, 3, qid=data.qid)
        >>> data.qid[best][:6]
        array([0, 0, 0, 1, 1, 1])
        """
        ranks = self.rank(X, qid=qid)
        _, qid = self._split(X, qid)
        return top_rows(ranks, read_queries(qid, len(ranks), single=True), k)

    def score(
        self,
        X: Any,  # noqa: N803
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        **unknown: Any,
    ) -> float:
        """Return the mean of the first metric over queries, negated if lower is better.

        NaN, with a warning that says why, if no query counts.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features.
        y : array-like of shape (n_rows,)
            Labels; None for a metric of preferences.
        qid : array-like of shape (n_rows,)
            One query id per row; required.
        sample_weight : array-like of shape (n_rows,) or (n_queries,), optional
            Weight of each query in the mean.
        **unknown : object
            Not supported: any other argument raises; for ``group`` the error shows the ``qid``.

        Returns
        -------
        float
            Larger is better.
        """
        reject_unknown(unknown, "GBMRanker")
        scores = self.predict(X)
        table, qid = self._split(X, qid)
        self._warn_if_seen(table, read_queries(qid, len(scores)))
        measure = metric_list(self.metric)[0]
        if y is not None or not any_preferences([measure]):
            check_count(y, len(scores))
        value = float(measure.score(y, scores, qid=qid, weight=sample_weight))
        return value if measure.higher_is_better else -value

    def _warn_if_seen(self, X: Any, groups: Groups) -> None:  # noqa: N803
        """Warn if some of the queries were trained on, by a fit in this process."""
        if self._seen is not None and groups.ids is not None:
            table, order = renamed(read_table(X)), groups.row_order
            table = table if order is None else take_rows(table, order)
            self._seen.warn_if_shared(table, groups)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the hashes of the training rows."""
        return {name: value for name, value in vars(self).items() if name != "_seen"}

    def explain(
        self,
        X: Any,  # noqa: N803
        *,
        qid: Any = None,
        pair: Iterable[int] | None = None,
    ) -> Any:
        """Return what each feature contributes to scores: :func:`gbmrank.explain` of this model.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features.
        qid : array-like of shape (n_rows,), optional
            One query id per row, in any order; without it all rows are one list.
        pair : (int, int), optional
            Numbers of two rows: why the first scores more than the second. Otherwise each row
            is compared with the mean of its list.

        Returns
        -------
        Explanation
            The contributions, with ``table()``, ``plot()`` and ``to_html()``.
        """
        self._check_fitted("booster_")
        table, qid = self._split(X, qid)
        above = importlib.import_module("gbmrank.explanations")
        return above.explain(self, table, qid=qid, pair=pair)

    def distil(
        self,
        X: Any,  # noqa: N803
        *,
        qid: Any = None,
        n_estimators: int | None = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        **booster_params: Any,
    ) -> "GBMRanker":
        """Train one model, by default of a quarter of the trees, that ranks like this one.

        It learns the scores of this model by :func:`gbmrank.distil`. Leaves and constraints are
        those of this model.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features. No labels are needed, so rows of unlabelled queries may be added.
        qid : array-like of shape (n_rows,)
            One query id per row, in any order.
        n_estimators : int, optional
            Rounds of the student; by default a quarter of all trees.
        eval_set : (X, y), optional
            Labelled rows that neither model has seen: ``distillation_`` then says what is lost.
        eval_qid : array-like, optional
            Query ids of ``eval_set``.
        **booster_params : object
            Parameters of the student's trees, in place of the defaults.

        Returns
        -------
        GBMRanker
            The student. ``distillation_`` has correlation, agreement and loss.

        Examples
        --------
        >>> from gbmrank.data.demonstration import demo_data
        >>> data = demo_data(n_queries=100, seed=0)
        >>> model = GBMRanker(folds=4, n_estimators=20).fit(data.X, data.labels, qid=data.qid)
        >>> student = model.distil(data.X, qid=data.qid)
        >>> student.n_estimators, student.distillation_.correlation > 0.9
        (20, True)
        """
        self._check_fitted("booster_")
        seen = eval_set[0] if isinstance(eval_set, tuple | list) and len(eval_set) == 2 else None
        table, qid = self._split(X, qid)
        return distil(
            self.predict(table),
            table,
            qid=qid,
            backend=self.backend,
            n_estimators=rounds_of(self._fitted.n_rounds) if n_estimators is None else n_estimators,
            metric=self.metric,
            eval_set=eval_set,
            eval_qid=eval_qid,
            eval_scores=None if seen is None else self.predict(seen),
            seed=self.seed,
            n_jobs=self.n_jobs,
            **shared_params(self.backend, self._booster_params, booster_params),
        )

    def evals_result(self) -> Mapping[str, Mapping[str, list[float]]]:
        """Return ``evals_result_``, under the name that it has in XGBoost."""
        self._check_fitted("booster_")
        return self.evals_result_

    def get_booster(self) -> Any:
        """Return ``booster_``, under the name that it has in XGBoost."""
        self._check_fitted("booster_")
        return self.booster_

    @property
    def best_score_(self) -> dict[str, dict[str, float]]:
        """Value of each metric in the best round, by evaluation set."""
        self._check_fitted("booster_")
        return {
            name: {
                metric: column[min(self.best_iteration_, len(column) - 1)]
                for metric, column in found.items()
            }
            for name, found in self.evals_result_.items()
        }

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the summed gain of all splits, or what importance_type sets."""
        self._check_fitted("booster_")
        self._check_importance()
        found = self._fitted.importances(self.importance_type)
        return found / found.sum() if found.any() else found

    def _check_importance(self) -> None:
        allowed = booster_named(self.backend).importance_types
        if self.importance_type is not None and self.importance_type not in allowed:
            raise ParameterError(
                f"importance_type must be one of {', '.join(allowed)} or None with "
                f"backend={self.backend!r}, got {self.importance_type!r}"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model in the booster's own format; :func:`gbmrank.load` reads it back.

        The booster can also read the file without gbmrank. Preferences are not saved. With
        ``calibrate="cross-fit"`` the model of the level is written beside it: ``model.level.txt``
        for ``model.txt``.

        Parameters
        ----------
        path : str or path
            Ends in ``.txt`` for LightGBM, in ``.ubj`` or ``.json`` for XGBoost.
        """
        self._check_fitted("booster_")
        write_model(self._fitted, path)
        if self._level is not None:
            write_model(self._level._fitted, level_path(path))

    def to_booster(self) -> Any:
        """Return a copy of the booster for converters, such as those to ONNX and treelite.

        Converters read the name of the objective of a LightGBM model. The copy has lambdarank,
        which also predicts raw scores; do not train it further.

        Returns
        -------
        lightgbm.Booster or xgboost.Booster
            Its predictions are those of the ranker.
        """
        self._check_fitted("booster_")
        return self._fitted.for_converters()

    def _named(self) -> tuple[Objective | Native | Committee, MetricList]:
        """Return the objective and the metrics that the parameters name."""
        return ranking_objective(self.objective), metric_list(self.metric)

    def _plan(self, target: Any, metrics: MetricList, columns: Schema) -> Plan:
        return training_plan(
            objective=target,
            metric=metrics,
            backend=self.backend,
            rounds=self.n_estimators,
            early_stopping=self.early_stopping_rounds,
            params=self._booster_params,
            columns=columns,
            seed=self.seed,
            threads=self.n_jobs,
            keep_best=self.early_stopping_rounds is not None,
            names=_CALLED,
        )

    def _keep(self, trained: Trained, plan: Plan, bias: PositionBias | None = None) -> Self:
        columns, metrics = plan.columns or trained.fitted.columns, plan.metric
        fitted: Fitted = trained.fitted
        identity = Identity(
            backend=fitted.backend,
            objective=str(plan.objective),
            metric=str(metrics),
            best_iteration=trained.best_round,
            n_features=columns.count,
            feature_names=columns.names,
            categorical=columns.categorical,
            zeros=columns.zeros,
            preferences=any_preferences(metrics)
            or any(held_preferences(one.template) for one in objectives_in(plan.objective)),
            committee=[member._asdict() for member in trained.committee],
            position_bias=None if bias is None else bias.to_dict(),
            params={
                name: value
                for name, value in self.get_params(deep=False).items()
                if name not in ("objective", "metric", "backend")
            },
        )
        fitted.stamp(identity.to_text())
        return self._hold(fitted, identity, trained.history)

    def _hold(self, fitted: Fitted, identity: Identity, history: Any) -> Self:
        self._fitted, self.booster_ = fitted, fitted.booster
        self._identity, self._level = identity, None
        self.best_iteration_, self.evals_result_ = identity.best_iteration, history
        self.n_features_in_ = identity.n_features
        self._columns = identity.columns
        self._keep_names(identity.feature_names)
        for name in _OPTIONAL:
            vars(self).pop(name, None)
        if identity.calibration is not None:
            self.calibration_ = ProbabilityMap(**identity.calibration)
        if identity.position_bias is not None:
            self.position_bias_ = PositionBias.from_dict(identity.position_bias)
        if identity.committee:
            self.committee_ = tuple(Member(**member) for member in identity.committee)
        return self

    def _nested_params(self) -> dict[str, Any]:
        try:
            target = ranking_objective(self.objective)
        except GbmrankError:  # raised by fit
            return {}
        if not isinstance(target, Objective):
            return {}
        return {f"objective__{path}": each for path, each in parameters_of(target).items()}

    def _set_nested(self, outer: str, path: str, value: Any) -> None:
        target = ranking_objective(self.objective)
        if outer != "objective" or not isinstance(target, Objective):
            super()._set_nested(outer, path, value)
        else:
            self.objective = with_parameter(target, path, value)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags; only called by scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def distil(
    scores: Any,
    X: Any,  # noqa: N803
    *,
    qid: Any = None,
    backend: str = "lightgbm",
    n_estimators: int = ROUNDS,
    metric: Any = _METRIC,
    eval_set: Any = None,
    eval_qid: Any = None,
    eval_scores: Any = None,
    seed: int = 0,
    n_jobs: int | None = None,
    **booster_params: Any,
) -> GBMRanker:
    """Train one model that ranks like a teacher, from the teacher's scores alone.

    It minimises the squared error to the scores within queries (``query_rmse``), without early
    stopping. The learning rate is 4 / rounds but at least 0.1, 80% of the columns are drawn for
    each tree, and a leaf has at least 10 rows.

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        Scores of any teacher: CatBoost, a neural network, a mean of models.
    X : table of shape (n_rows, n_features)
        Features of the student. Rows need no labels.
    qid : array-like of shape (n_rows,)
        One query id per row, in any order.
    backend : {"lightgbm", "xgboost"}, default="lightgbm"
        Booster of the student.
    n_estimators : int, default=250
        Rounds of the student; a quarter of the teacher's trees is a good number.
    metric : Metric or str, default="ndcg@10"
        Metric of what is lost, and of the student.
    eval_set : (X, y), optional
        Labelled rows that neither model has seen.
    eval_qid, eval_scores : array-like, optional
        Query ids and teacher's scores of ``eval_set``.
    seed : int, default=0
        Seed of the booster.
    n_jobs : int or None, default=None
        Threads.
    **booster_params : object
        Parameters of the student's trees, in place of the defaults.

    Returns
    -------
    GBMRanker
        The student. ``distillation_`` has correlation, agreement and loss.

    Examples
    --------
    >>> from gbmrank.data.demonstration import demo_data
    >>> data = demo_data(n_queries=100, seed=0)
    >>> student = distil(data.X[:, 0] + data.X[:, 1], data.X, qid=data.qid, n_estimators=40)
    >>> student.distillation_.correlation > 0.9
    True
    """
    teacher, target, groups = centred(scores, qid)
    params = student_params(backend, n_estimators, booster_params)
    options = {"n_estimators": n_estimators, "seed": seed, "n_jobs": n_jobs, **params}
    # The labels of the student are scores, for which most metrics are undefined.
    metrics, student = metric_list(metric), GBMRanker(OBJECTIVE, backend, **options)
    student.fit(X, target, qid=qid).set_params(metric=metric)
    student._restamp(metric=str(metrics), preferences=any_preferences(metrics))
    found = compared(teacher, student.predict(X), groups)
    if eval_set is not None:
        features, labels = read_eval_set(eval_set, eval_scores)
        own = student.predict(features)
        read_queries(eval_qid, len(own), "eval_set")
        lost, interval = lost_by(
            metrics[0], labels, eval_qid, as_floats(eval_scores, "scores"), own
        )
        found = replace(found, lost=lost, interval=interval)
    student.distillation_ = found
    return student
