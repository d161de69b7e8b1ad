"""A ranker of several goals: one model per goal, mixed when it serves."""

import itertools
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from gbmrank.api import Objective, metric, objective
from gbmrank.api.committees import ranking_objective
from gbmrank.boosters.base import Fitted, Trained
from gbmrank.boosters.plan import squared_deviations
from gbmrank.boosters.supported import booster_named
from gbmrank.data.columns import as_floats, read_ids, read_number, read_whole
from gbmrank.data.files import write_whole
from gbmrank.data.queries import Groups, RankingData
from gbmrank.data.schema import Schema, safe_names
from gbmrank.data.tables import columns_by_name, read_table, take_rows
from gbmrank.errors import ConfigError, DataError, GbmrankError, GbmrankWarning, warn
from gbmrank.estimators.base import AbstractEstimator, named_sets, ranks_within, read_queries
from gbmrank.estimators.gbm_ranker import GBMRanker
from gbmrank.estimators.goal_front import Difference, Front, Setting
from gbmrank.estimators.model_file import Archive, Identity
from gbmrank.objectives.pointwise import read_utilities
from gbmrank.registry.composition import spec_of
from gbmrank.types import FloatArray, IntArray

_SETTINGS = 41  # of a dial, both ends included
FEWEST = 10
"""Least number of queries that level a dial, and of those that value it."""
_LATTICE = 60  # settings of a front of more than two goals, at most


class _Rows(NamedTuple):
    """Rows of a training or validation set, with one label column per goal."""

    features: Any
    columns: dict[str, FloatArray]
    ids: Any
    groups: Groups
    weight: FloatArray | None = None

    @classmethod
    def read(
        cls, goals: Sequence[str], features: Any, columns: Any, qid: Any, what: str
    ) -> "_Rows":
        """Validate a set; NaN labels are allowed, unless a column has nothing else."""
        n_rows = int(read_table(features, what).shape[0])
        groups = read_queries(qid, n_rows, what)
        given = columns if isinstance(columns, Mapping) else columns_by_name(columns)
        if given is None:
            raise DataError(
                f"{what}: labels must be a mapping or a data frame with one column per goal "
                f"({', '.join(goals)}), got {type(columns).__name__}"
            )
        found = {}
        for goal in goals:
            if goal not in given:
                raise DataError(
                    f"{what} has no labels for the goal {goal!r}; it has "
                    f"{', '.join(map(str, given))}"
                )
            labels = as_floats(given[goal], f"the labels of {goal}")
            if len(labels) != n_rows:
                raise DataError(
                    f"{what}: {goal} has {len(labels)} labels, but there are {n_rows} rows"
                )
            if np.isinf(labels).any():
                row = int(np.argmax(np.isinf(labels)))
                raise DataError(f"{what}: the label of {goal} in row {row} is infinite")
            if np.isnan(labels).all():
                raise DataError(f"{what}: all labels of {goal} are missing")
            found[goal] = labels
        return cls(features, found, read_ids(qid), groups)

    def taken(self, queries: Any) -> "_Rows":
        """Return the rows of the queries for which ``queries`` is True."""
        if queries.all():
            return self
        rows = np.flatnonzero(self.groups.restore(self.groups.spread(queries)))
        ids = self.ids[rows]
        return _Rows(
            take_rows(read_table(self.features), rows),
            {goal: labels[rows] for goal, labels in self.columns.items()},
            ids,
            Groups.from_qid(ids, len(rows)),
            None if self.weight is None else self.weight[rows],
        )

    def complete(self, goals: Sequence[str]) -> Any:
        """Return for each query whether all its labels of these goals are known."""
        missing = np.logical_or.reduce([np.isnan(self.columns[goal]) for goal in goals])
        return ~np.logical_or.reduceat(self.groups.arrange(missing), self.groups.offsets[:-1])

    def of(self, goal: str) -> "_Rows":
        """Return the queries with labels of a goal; negative labels are shifted to 0 and up."""
        rows = self.taken(self.complete([goal]))
        if not len(rows.ids):
            raise DataError(f"no query has all its labels of {goal}; each has a missing one")
        groups, labels = rows.groups, rows.groups.arrange(rows.columns[goal])
        lowest = np.minimum(np.minimum.reduceat(labels, groups.offsets[:-1]), 0.0)
        shifted = groups.restore(labels - groups.spread(lowest))
        return rows._replace(columns={**rows.columns, goal: shifted})


@final
class GoalRanker(AbstractEstimator):
    """A ranker of several goals on one dial: one model per goal, mixed when it serves.

    Each goal has a label column, an objective and a metric of its own. The score at a setting is
    the weighted sum of the models' scores, each divided by its spread within training queries.
    ``query_rmse`` learns the expected utility of an item up to a constant per query; if both
    models are exact, every such sum ranks best for the equally weighted sum of the DCG-like
    metrics. No training is needed to move the dial.

    Parameters
    ----------
    goals : mapping of str to Objective or str
        Name of each goal and the objective that is minimised for it; ``native:`` objectives too.
    middle : int, default=1
        Models between two goals, trained on evenly spaced mixtures of their utilities; scores are
        interpolated between neighbours. It needs objectives that differ in their target alone and
        are linear in it: ``query_rmse``, ``pairwise`` or ``pointwise``. Without effect for more
        than two goals.
    backend : {"lightgbm", "xgboost"}, default="lightgbm"
        The booster.
    metric : mapping of str to Metric or str, optional
        What each goal is valued by; by default the metric of the objective's target.
    n_estimators : int, default=100
        Boosting rounds of each model.
    early_stopping_rounds : int or None, default=None
        Stop each goal after this many rounds without improvement of its own metric.
    seed : int, default=0
        Seed of the booster, and of the halves of a validation set.
    n_jobs : int or None, default=None
        Threads.
    **booster_params : object
        Parameters of the booster.

    Attributes
    ----------
    rankers_ : dict
        The model of each goal, a GBMRanker.
    spreads_ : dict
        Spread of each goal's scores within training queries.
    front_ : Front
        Value of every goal at every measured setting; only with a validation set.

    Examples
    --------
    >>> from gbmrank.data.demonstration import demo_data
    >>> data = demo_data(100, goals=2)
    >>> goals = {
    ...     "relevance": "query_rmse(target=ndcg@10)",
    ...     "margin": "query_rmse(target=ndcg(gain=linear)@10)",
    ... }
    >>> ranker = GoalRanker(goals, n_estimators=20).fit(data.X, data.columns, qid=data.qid)
    >>> ranker.predict(data.X, weights={"relevance": 0.7, "margin": 0.3}).shape == data.qid.shape
    True
    """

    _requests: ClassVar[Mapping[str, Mapping[str, bool | None]]] = {
        "fit": {"qid": True, "sample_weight": None, "eval_set": None, "eval_qid": None}
    }

    rankers_: dict[str, GBMRanker]
    spreads_: dict[str, float]
    front_: Front

    def __init__(
        self,
        goals: Any,
        middle: int = 1,
        backend: str = "lightgbm",
        metric: Any = None,
        n_estimators: int = 100,
        *,
        early_stopping_rounds: int | None = None,
        seed: int = 0,
        n_jobs: int | None = None,
        **booster_params: Any,
    ) -> None:
        self.goals, self.middle, self.backend, self.metric = goals, middle, backend, metric
        self.n_estimators, self.early_stopping_rounds = n_estimators, early_stopping_rounds
        self.seed, self.n_jobs, self._booster_params = seed, n_jobs, booster_params

    def fit(
        self,
        X: Any,  # noqa: N803
        columns: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        verbose: bool | int | str = False,
    ) -> Self:
        """Train one model per goal, and the models between them.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features.
        columns : mapping or data frame
            One label column per goal, larger is better. A query with a missing label (NaN) is
            left out of that goal, with a warning. Where a query has negative labels, its smallest
            is subtracted.
        qid : array-like of shape (n_rows,)
            One query id per row, in any order.
        sample_weight : array-like of shape (n_rows,) or (n_queries,), optional
            Weight of each query or item, for all goals.
        eval_set : (X, columns) or list of two, optional
            Validation queries. One set is cut into halves by query: one stops the models and
            levels the dial, the other one values ``front_`` and serves ``pick``. Two sets are
            used for these in this order.
        eval_qid : array-like or list of two
            Query ids of the validation queries.
        verbose : bool, int or "bar", default=False
            As in :meth:`GBMRanker.fit <gbmrank.GBMRanker.fit>`, for each model.

        Returns
        -------
        GoalRanker
            The estimator itself.
        """
        goals, metrics = self._read_goals()
        rows = _Rows.read(list(goals), X, columns, qid, "the training set")
        if sample_weight is not None:
            data = RankingData.from_arrays(np.zeros(len(rows.ids)), qid=qid, weight=sample_weight)
            rows = rows._replace(weight=rows.groups.restore(np.asarray(data.weight)))
        tuned, valued = self._read_valid(list(goals), eval_set, eval_qid)
        between = self._between(goals)
        self.rankers_, spreads = {}, []
        for goal, target in goals.items():
            own = rows.of(goal)
            self._check_goal(goal, own, len(rows.groups.sizes))
            model = self._ranker(target, metrics[goal], self.early_stopping_rounds)
            valid = {}
            if tuned is not None:
                known = tuned.of(goal)
                valid = {"eval_set": (known.features, known.columns[goal]), "eval_qid": known.ids}
            elif self.early_stopping_rounds is not None:
                raise ConfigError("early_stopping_rounds= needs eval_set= and eval_qid=")
            self.rankers_[goal] = model.fit(
                own.features,
                own.columns[goal],
                qid=own.ids,
                sample_weight=own.weight,
                verbose=verbose,
                **valid,
            )
            spreads.append(self._spread(model, rows, goal))
        self._models = list(reversed(self.rankers_.values()))
        self._spreads = spreads[::-1]
        self._train_between(goals, between, rows, verbose)
        self._level(metrics, tuned)
        self._value(metrics, valued)
        return self._hold()

    def predict(
        self,
        X: Any,  # noqa: N803
        *,
        at: float | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> FloatArray:
        """Return one score per row at a setting; larger is ranked first.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features, with the columns of the training data.
        at : float, optional
            Place on the levelled dial: 1 is the first goal alone, 0 the second, 0.5 gives both
            the same share of what they can gain. The default if there is a dial.
        weights : mapping of str to float, optional
            Weight of each goal instead, at least 0; goals left out have weight 0. Even weights
            without a dial.
        """
        self._check_fitted("rankers_")
        factors = self._factors(self._weights(at, weights))
        parts = [
            factor * model.predict(X)
            for factor, model in zip(factors, self._models, strict=True)
            if factor
        ]
        return np.asarray(sum(parts[1:], parts[0]))

    def rank(
        self,
        X: Any,  # noqa: N803
        *,
        qid: Any = None,
        at: float | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> IntArray:
        """Return the rank of each row within its query at a setting, 1 for the best.

        ``qid`` has one query id per row, in any order; without it all rows are one query. The other
        parameters are those of :meth:`predict`.
        """
        scores = self.predict(X, at=at, weights=weights)
        groups = read_queries(qid, len(scores), single=True)
        return ranks_within(-groups.arrange(scores), groups)

    def pick(self, at_least: Mapping[str, float], confidence: float = 0.9) -> Setting:
        """Return the last setting that is shown to keep shares of what goals reach alone.

        Settings are walked from the first named goal alone to the other end, until the one-sided
        bound on the share no longer holds. The bound is paired over validation queries that
        neither stopped a model nor levelled the dial.

        Parameters
        ----------
        at_least : mapping of str to float
            Share of each goal, such as ``{"relevance": 0.98}``.
        confidence : float, default=0.9
            Confidence of the bound.

        Returns
        -------
        Setting
            ``at`` and ``weights`` for :meth:`predict`; ``print`` shows the answer in words.
        """
        self._check_fitted("rankers_")
        if "front_" not in vars(self):
            raise ConfigError(
                "pick values settings on validation queries, but fit got none. Give eval_set= and "
                "eval_qid= to fit"
            )
        return self.front_.pick(at_least, confidence)

    def ranker(
        self, *, at: float | None = None, weights: Mapping[str, float] | None = None
    ) -> GBMRanker:
        """Return one setting, given as in :meth:`predict`, as a GBMRanker with one merged model."""
        self._check_fitted("rankers_")
        shares = self._weights(at, weights)
        factors = self._factors(shares)
        used = [number for number, factor in enumerate(factors) if factor]
        share = [factors[number] * self._spreads[number] for number in used]
        fitted = booster_named(self.backend).merge(
            [self._models[number]._fitted for number in used],
            [factors[number] for number in used],
            [one / sum(share) for one in share],
        )
        model = self.rankers_[max(self.rankers_, key=lambda goal: shares[goal])]
        return _as_ranker(fitted, model._columns, model.objective, model.metric)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        at: float | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        """Write one setting, given as in :meth:`predict`, as one model file, or all with the dial.

        Parameters
        ----------
        path : str or path
            With a setting the model file, as in :meth:`GBMRanker.save <gbmrank.GBMRanker.save>`.
            Otherwise a folder, which gets one model file per goal and ``dial.json``: the factors
            of their scores at every place of the dial, for systems that add scores themselves.
        at, weights : optional
            The setting.
        """
        if at is not None or weights is not None:
            self.ranker(at=at, weights=weights).save(path)
            return
        self._check_fitted("rankers_")
        folder, suffix = Path(path), booster_named(self.backend).suffixes[0]
        folder.mkdir(parents=True, exist_ok=True)
        names = [re.sub(r"\W", "_", goal) for goal in reversed(self.rankers_)]
        names[1:1] = [f"between_{n + 1}" for n in range(len(self._models) - len(names))]
        names = safe_names(names)  # which makes them unique
        for name, model in zip(names, self._models, strict=True):
            model.save(folder / f"{name}{suffix}")
        goals = self.rankers_
        places: list[Any] = [(None, {goal: float(goal == one) for goal in goals}) for one in goals]
        if self._dial is not None:
            steps = np.linspace(0.0, 1.0, 21).tolist()
            places = [(round(t, 2), self._weights(t, None)) for t in steps]
        made = {
            "models": [f"{name}{suffix}" for name in names],
            "score": "sum of factor times score over the models",
            "settings": [
                {
                    "at": t,
                    "weights": each,
                    "factors": dict(zip(names, self._factors(each), strict=True)),
                }
                for t, each in places
            ],
        }
        write_whole(folder / "dial.json", json.dumps(made, indent=2).encode())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all models, the dial and the front to one file; :func:`gbmrank.load` reads it.

        Parameters
        ----------
        path : str or path
            Ends in ``.zip``.
        """
        self._check_fitted("rankers_")
        first = self._models[-1]
        params = self.get_params(deep=False)
        params["goals"] = {goal: str(one.objective) for goal, one in self.rankers_.items()}
        params["metric"] = {goal: str(one.metric) for goal, one in self.rankers_.items()}
        identity = Identity(
            backend=self.backend,
            objective="; ".join(params["goals"].values()),
            metric="; ".join(params["metric"].values()),
            best_iteration=first.best_iteration_,
            n_features=first.n_features_in_,
            feature_names=first._columns.names,
            categorical=first._columns.categorical,
            zeros=first._columns.zeros,
            params=params,
            ranker="GoalRanker",
        )
        tables = {"spreads": np.array(self._spreads)}
        if self._dial is not None:
            tables["dial"] = np.stack(self._dial)
        if "front_" in vars(self):
            front = self.front_
            tables |= {"at": front.at, "weights": front.weights, "per_query": front.per_query}
        models = {f"model_{n}": one._fitted for n, one in enumerate(self._models)}
        Archive(identity, tables, models).write(path)

    @classmethod
    def from_file(cls, archive: Archive) -> "GoalRanker":
        """Return the ranker of an archive; :func:`gbmrank.load` calls it."""
        identity, tables = archive.identity, archive.tables
        made = cls(**identity.params)
        goals, metrics = made._read_goals()
        named = [(goals[goal], metrics[goal]) for goal in reversed(goals)]
        named[1:1] = [named[0]] * (len(archive.models) - len(goals))
        made._models = [
            _as_ranker(archive.models[f"model_{number}"], identity.columns, target, measure)
            for number, (target, measure) in enumerate(named)
        ]
        made.rankers_ = dict(zip(goals, _ends(made._models, len(goals)), strict=True))
        made._spreads = tables["spreads"].tolist()
        dial = tables.get("dial")
        made._dial = None if dial is None else (dial[0], dial[1])
        made._no_dial = "it was saved without one"
        if "per_query" in tables:
            made._set_front(tables["at"], tables["weights"], tables["per_query"])
        return made._hold()

    def _read_goals(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the objective and the metric of each goal."""
        if not isinstance(self.goals, Mapping) or len(self.goals) < 2:
            raise ConfigError(
                "goals= maps two or more names to objectives, such as {'relevance': "
                f"'query_rmse(target=ndcg@10)', 'margin': ...}}; got {self.goals!r}"
            )
        goals = {str(name): ranking_objective(one) for name, one in self.goals.items()}
        given = {} if self.metric is None else self.metric
        if not isinstance(given, Mapping):
            raise ConfigError(f"metric= maps goals to metrics, got {self.metric!r}")
        unknown = [name for name in given if name not in goals]
        if unknown:
            raise ConfigError(
                f"metric= has no goal {unknown[0]!r}; the goals are {', '.join(goals)}"
            )
        return goals, {
            name: metric(given[name]) if name in given else _metric_of(one)
            for name, one in goals.items()
        }

    def _read_valid(self, goals: list[str], given: Any, qids: Any) -> tuple[Any, Any]:
        """Return the queries that level the dial, and those that value it."""
        sets = named_sets(given, qids, None, None)
        made = [
            _Rows.read(goals, features, columns, ids, name)
            for name, ((features, columns), ids, *_) in sets.items()
        ]
        if not made:
            return None, None
        if len(made) > 2:
            raise DataError(f"GoalRanker takes one or two evaluation sets, got {len(made)}")
        if len(made) == 1:
            order = np.random.default_rng(self.seed).permutation(made[0].groups.n_queries)
            first = order < len(order) // 2
            made = [made[0].taken(first), made[0].taken(~first)] if len(order) > 1 else made * 2
        fewest = min(rows.groups.n_queries for rows in made)
        if fewest < FEWEST:
            raise DataError(
                f"the dial is levelled and valued on separate validation queries, {fewest} of "
                f"them; each needs at least {FEWEST}. Give an eval_set= with more queries"
            )
        return made[0], made[1]

    def _between(self, goals: Mapping[str, Any]) -> Objective | None:
        """Return the objective of mixed utilities; None without models between the goals."""
        if not read_whole(self.middle, "middle", 0) or len(goals) > 2:
            return None
        plain = [
            objective(one, target="identity")
            for one in goals.values()
            if isinstance(one, Objective)
            and one.template.linear_in_utility
            and hasattr(one.template, "target")
        ]
        if len(plain) < len(goals) or len(set(map(str, plain))) > 1:
            named = " and ".join(map(str, goals.values()))
            raise ConfigError(
                f"middle={self.middle} trains on mixed utilities, which {named} do not allow. Give "
                "objectives that differ in their target alone (query_rmse, pairwise, pointwise), "
                "or set middle=0"
            )
        return plain[0]

    def _ranker(
        self, target: Any, measure: Any, patience: int | None, rounds: int | None = None
    ) -> GBMRanker:
        return GBMRanker(
            target,
            self.backend,
            measure,
            rounds or self.n_estimators,
            early_stopping_rounds=patience,
            seed=self.seed,
            n_jobs=self.n_jobs,
            **self._booster_params,
        )

    def _check_goal(self, goal: str, own: _Rows, queries: int) -> None:
        groups, labels = own.groups, own.groups.arrange(own.columns[goal])
        if np.array_equal(labels, groups.spread(labels[groups.offsets[:-1]])):
            raise DataError(
                f"the labels of {goal} are the same for all rows of every query, so there is no "
                "order to learn. Leave this goal out, or give labels that differ"
            )
        if groups.n_queries < queries:
            warn(
                f"{queries - groups.n_queries} of {queries} queries have a missing label of "
                f"{goal} and are left out of this goal",
                GbmrankWarning,
            )

    def _spread(self, model: GBMRanker, rows: _Rows, what: str) -> float:
        """Return the standard deviation of scores within queries."""
        found = _deviation(model.predict(rows.features), rows.groups)
        if not found > 0.0:
            raise DataError(
                f"the model of {what} gives all rows of a query the same score, so it cannot be "
                "mixed. Train more rounds, or check its features and labels"
            )
        return found

    def _train_between(
        self, goals: Mapping[str, Any], target: Objective | None, rows: _Rows, verbose: Any
    ) -> None:
        """Train on mixed utilities, each divided by its spread within queries."""
        if target is None:
            return
        rows = rows.taken(rows.complete(list(goals)))
        utilities = []
        for goal, one in goals.items():
            own = rows.of(goal)
            data = RankingData.from_arrays(own.columns[goal], qid=own.ids)
            values = own.groups.restore(np.nan_to_num(read_utilities(one.template.target, data)))
            utilities.append(values / _deviation(values, own.groups))
        rounds = [one._fitted.n_rounds for one in self._models]
        for number in range(1, self.middle + 1):
            share = number / (self.middle + 1)  # of the first goal
            kept = round(share * rounds[-1] + (1.0 - share) * rounds[0])
            model = self._ranker(target, "dcg(gain=linear)", None, max(kept, 1))
            model.fit(
                rows.features,
                share * utilities[0] + (1.0 - share) * utilities[1],
                qid=rows.ids,
                sample_weight=rows.weight,
                verbose=verbose,
            )
            self._models.insert(number, model)
            self._spreads.insert(number, self._spread(model, rows, "a mixture"))

    def _factors(self, weights: Mapping[str, float]) -> list[float]:
        """Return the factor of each model's score."""
        given = [weights[goal] for goal in reversed(self.rankers_)]
        shares = np.array(given)
        if len(self._models) > len(given):
            place = given[-1] * (len(self._models) - 1)  # of the first goal's weight
            shares = np.maximum(0.0, 1.0 - np.abs(np.arange(len(self._models)) - place))
        return [float(one) for one in shares / np.array(self._spreads)]

    def _weights(self, at: float | None, weights: Mapping[str, float] | None) -> dict[str, float]:
        """Return the weight of each goal; they sum to 1."""
        if at is not None and weights is not None:
            raise ConfigError("give at= or weights=, not both")
        if weights is not None:
            unknown = [goal for goal in weights if goal not in self.rankers_]
            if unknown:
                raise ConfigError(
                    f"there is no goal {unknown[0]!r}; the goals are {', '.join(self.rankers_)}"
                )
            found = {
                goal: read_number(weights.get(goal, 0.0), f"the weight of {goal}", 0.0)
                for goal in self.rankers_
            }
            total = sum(found.values())
            if not total > 0.0:
                raise ConfigError("all weights are 0; give at least one goal a weight above 0")
            return {goal: one / total for goal, one in found.items()}
        if self._dial is None:
            if at is not None:
                raise ConfigError(
                    f"there is no levelled dial: {self._no_dial}. Give weights= instead of at="
                )
            return dict.fromkeys(self.rankers_, 1.0 / len(self.rankers_))
        place = 0.5 if at is None else read_number(at, "at", 0.0, 1.0)
        first, second = self.rankers_
        share = float(np.interp(place, *self._dial))
        return {first: share, second: 1.0 - share}

    def _level(self, metrics: Mapping[str, Any], rows: _Rows | None) -> None:
        """Measure the dial: where each weight stands between the two goals alone."""
        self._dial: tuple[FloatArray, FloatArray] | None = None
        if len(self.rankers_) > 2:
            self._no_dial = "it is between two goals"
            return
        if rows is None:
            self._no_dial = "fit got no validation queries (eval_set=, eval_qid=)"
            return
        weights = np.linspace(0.0, 1.0, _SETTINGS)
        values = self._values(metrics, rows, np.column_stack([weights, 1.0 - weights]))
        reached = []
        for number, goal in enumerate(self.rankers_):
            own = values[:, number]
            alone, other = (own[-1], own[0]) if number == 0 else (own[0], own[-1])
            gain = Difference.of(alone - other)
            if not gain.is_clear:
                self._no_dial = (
                    f"the model of {goal} alone is not clearly better for {goal} than the other "
                    f"({gain} in {metrics[goal]})"
                )
                return
            reached.append(np.nanmean(own - other, axis=1) / gain.mean)
        place = np.maximum.accumulate((1.0 + reached[0] - reached[1]) / 2.0)
        place, kept = np.unique(np.clip(place, 0.0, 1.0), return_index=True)
        weights = weights[kept]
        weights[-1] = 1.0  # where others reach the end too, it is still the first goal alone
        self._dial = place, weights

    def _value(self, metrics: Mapping[str, Any], rows: _Rows | None) -> None:
        vars(self).pop("front_", None)
        if rows is None:
            return
        first = at = np.linspace(0.0, 1.0, _SETTINGS)
        if self._dial is not None:
            first = np.interp(at, *self._dial)
        several = len(self.rankers_) > 2
        weights = _lattice(len(self.rankers_)) if several else np.column_stack([first, 1.0 - first])
        if self._dial is None:
            at = np.full(len(weights), np.nan)
        self._set_front(at, weights, self._values(metrics, rows, weights))

    def _set_front(self, at: FloatArray, weights: FloatArray, per_query: FloatArray) -> None:
        even = np.abs(weights - 1.0 / weights.shape[1]).sum(axis=1)
        served = int(np.argmin(even if np.isnan(at).any() else np.abs(at - 0.5)))
        goals = tuple(self.rankers_)
        metrics = tuple(str(one.metric) for one in self.rankers_.values())
        self.front_ = Front(goals, metrics, at, weights, per_query, served)

    def _values(self, metrics: Mapping[str, Any], rows: _Rows, weights: FloatArray) -> FloatArray:
        """Return the values of each goal in each query; larger is better."""
        scores = np.stack([model.predict(rows.features) for model in self._models])
        made = np.full((len(weights), len(metrics), rows.groups.n_queries), np.nan)
        for number, (goal, measure) in enumerate(metrics.items()):
            known = rows.complete([goal])
            own = rows.of(goal)
            kept = np.flatnonzero(rows.groups.restore(rows.groups.spread(known)))
            sign = 1.0 if measure.higher_is_better else -1.0
            for at, each in enumerate(weights):
                shares = dict(zip(self.rankers_, each.tolist(), strict=True))
                mixed = np.array(self._factors(shares)) @ scores
                found = measure.per_query(own.columns[goal], mixed[kept], qid=own.ids)
                made[at, number, known] = sign * found
        if np.isnan(made).all(axis=2).any():
            raise DataError("a goal's metric is defined for no query of an evaluation set")
        return made

    def _hold(self) -> Self:
        self.spreads_ = dict(
            zip(self.rankers_, _ends(self._spreads, len(self.rankers_)), strict=True)
        )
        columns = self._models[-1]._columns
        self.n_features_in_ = columns.count
        self._keep_names(columns.names)
        return self


def _metric_of(target: Any) -> Any:
    """Return the metric of an objective's target: NDCG@10 for objectives without one."""
    found = getattr(target.template, "target", None) if isinstance(target, Objective) else None
    if found is None:
        return metric("ndcg@10")
    try:
        return metric(str(spec_of(found)))
    except GbmrankError:  # a utility that no metric has
        return metric("ndcg(gain=linear)@10")


def _as_ranker(fitted: Fitted, columns: Schema, target: Any, measure: Any) -> GBMRanker:
    trained = Trained(fitted, {}, fitted.n_rounds - 1)
    return GBMRanker.from_trained(trained, columns, objective=target, metric=measure)


def _ends(along: Sequence[Any], count: int) -> list[Any]:
    """Return what belongs to the goals, first goal first, of a list that runs the other way."""
    return [along[0], *along[1 + len(along) - count :]][::-1]


def _deviation(values: FloatArray, groups: Groups) -> float:
    """Return the standard deviation within queries."""
    return math.sqrt(squared_deviations(groups.arrange(values), groups.sizes) / groups.n_rows)


def _lattice(count: int) -> FloatArray:
    """Return evenly spaced weights of several goals."""
    steps = 2
    while math.comb(steps + count, count - 1) <= _LATTICE:
        steps += 1
    cells = itertools.product(range(steps + 1), repeat=count)
    return np.array([cell for cell in cells if sum(cell) == steps]) / steps
