"""One distributed training of a ranker: any objective, any metric, either booster."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, final

import numpy as np

from gbmrank.api.metrics import any_preferences
from gbmrank.api.objectives import training_plan
from gbmrank.boosters.base import Booster, Fitted, Job, Trained
from gbmrank.boosters.doors import booster_named
from gbmrank.boosters.plan import Facts, Native, Plan, check_plan
from gbmrank.boosters.plan import train as run_plan
from gbmrank.boosters.settings import is_on, truncation_obstacle
from gbmrank.dask.loading import Loaded, Prepared, load
from gbmrank.dask.partitions import Table
from gbmrank.dask.scoring import DaskTrained
from gbmrank.dask.workers import Parcel, limit_threads, while_workers_live
from gbmrank.data.schema import Schema
from gbmrank.errors import ConfigError, GroupError, MissingBackendError, WeightError
from gbmrank.objectives import held_preferences

__all__ = ["train"]


def train(
    client: Any,
    X: Any,  # noqa: N803
    y: Any,
    *,
    qid: Any,
    objective: Any = "pairwise(loss=logistic, target=ndcg@10)",
    metric: Any = "ndcg@10",
    backend: str = "lightgbm",
    sample_weight: Any = None,
    eval_set: Sequence[tuple[Any, Any]] = (),
    eval_qid: Sequence[Any] = (),
    eval_sample_weight: Sequence[Any] | None = None,
    eval_names: Sequence[str] | None = None,
    rounds: int = 100,
    early_stopping: int | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    keep_best: bool = True,
) -> DaskTrained:
    """Train a ranker on a Dask cluster.

    The booster's own distributed training does the work; a query must lie in one partition
    (:func:`~gbmrank.dask.repartition_by_query`). Rows of a query need not be together
    within it. Partitions without rows are left out. Categories that differ between partitions
    are known by their values.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    X : dask array or dask frame
        Features: numbers (blocks may be sparse), or categories in a frame.
    y : dask array, dask series or str
        Labels, larger is better; a text names a column of ``X``.
    qid : dask array, dask series or str
        One query id per row, numbers or texts.
    objective : Objective or str, default="pairwise(loss=logistic, target=ndcg@10)"
        What is minimised; ``native:NAME`` is one of the booster's own.
    metric : Metric, MetricList or str, default="ndcg@10"
        What is evaluated on the validation sets; the first one decides about stopping.
    backend : {"lightgbm", "xgboost"}, default="lightgbm"
        The booster.
    sample_weight : dask array, dask series or str, optional
        One weight per row; where rows of a query differ, they are weights of items (see
        :meth:`Objective.gradients <gbmrank.Objective.gradients>`).
    eval_set : sequence of (X, y), default=()
        Validation sets; the last one decides about stopping.
    eval_qid, eval_sample_weight : sequence, optional
        Query ids and weights of each evaluation set.
    eval_names : sequence of str, optional
        ``valid_0`` and so on when not given.
    rounds : int, default=100
        Most trees to grow.
    early_stopping : int, optional
        Stop after so many rounds without improvement. XGBoost stops, on all workers at once;
        LightGBM trains all rounds, and the model is truncated as if it had stopped.
    params : mapping, optional
        Of the booster.
    seed : int, default=0
        Of the booster.
    keep_best : bool, default=True
        Truncate the model after its best round on the last validation set; False keeps all
        rounds.

    Returns
    -------
    DaskTrained
        With the booster, the history of the metrics, the best round, and the columns;
        :func:`gbmrank.dask.predict` scores rows with it.

    Raises
    ------
    DataError
        For features that the booster does not read or would misread, and for columns that are
        not the same in all partitions and sets.
    GroupError
        When a query lies in more than one partition; it names queries and partitions.
    WorkerLostError
        When a worker dies; there is no half result.
    """
    booster, engine = booster_named(backend), DaskEngine(client)
    plan = training_plan(
        objective,
        metric,
        backend=backend,
        rounds=rounds,
        early_stopping=early_stopping,
        params=params or {},
        seed=seed,
        keep_best=keep_best,
        names={"valid": "eval_set=, eval_qid="},
    )
    engine.check(plan, sample_weight is not None)
    check_plan(plan, validated=bool(eval_set))
    own = Table.read(X, y, qid, sample_weight, "train")
    sets = _eval_tables((eval_set, eval_qid, eval_sample_weight, eval_names))
    same = [pair[0] is X and pair[1] is y for pair in eval_set]
    data = while_workers_live(client, lambda: load(client, own, booster, booster.memory_factor))
    valid = {
        table.name: data
        if again
        else while_workers_live(client, partial(load, client, table, booster, known=data.outline))
        for table, again in zip(sets, same, strict=True)
    }
    columns = Schema.of(data.outline, booster.reads)
    trained = run_plan(replace(plan, columns=columns), data, valid, engine=engine)
    return DaskTrained(trained.fitted, trained.history, trained.best_round, columns)


@final
class DaskEngine:
    """Trains where the rows lie: on the workers of a cluster."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def check(self, plan: Plan, weighted: bool) -> None:
        """Raise for what cannot be done across workers, before anything is loaded."""
        target, booster = plan.objective, booster_named(plan.backend)
        given = booster.parameters.by_main_names(plan.params)
        if any_preferences(plan.metric) or (
            not isinstance(target, Native) and held_preferences(target.template)
        ):
            raise ConfigError(
                "preferences belong to rows on one machine, and here rows lie on several; give "
                "labels, or train on one machine"
            )
        if isinstance(target, Native) and weighted and not booster.weights_on_cluster:
            raise WeightError(
                f"{booster.title} on Dask takes no weights together with queries, so {target} "
                "cannot have them; use an objective of gbmrank"
            )
        obstacle = truncation_obstacle(given)
        if obstacle is not None:
            raise ConfigError(
                f"a model with {obstacle} cannot be truncated after a round; train on one machine"
            )
        if is_on(given, "bagging_by_query"):
            raise ConfigError(
                "bagging_by_query is done by gbmrank on one machine only, and LightGBM trains a "
                "wrong model with it; leave it out"
            )

    def facts(self, part: Loaded, name: str, ranks: bool = True) -> Facts:
        """Return what the summaries of the partitions say."""
        merged = [one.merged for one in part.summaries if one.merged is not None]
        return Facts(
            sum(part.rows),
            int(part.outline.shape[1]),
            np.concatenate([one.ids for one in part.summaries]),
            any(one.informative for one in part.summaries),
            max(one.largest_weight for one in part.summaries),
            merged[0] if merged else None,
        )

    def check_preferences(self, held: tuple[Any, ...], part: Loaded) -> None:
        """Do nothing: :meth:`check` rejects preferences."""

    def check_weights(self, booster: Booster, params: Mapping[str, Any], part: Loaded) -> None:
        """Do nothing: :meth:`check` knows what the booster takes."""

    def callback(
        self, target: Any, params: Mapping[str, Any], part: Loaded
    ) -> tuple[Any, dict[str, Any]]:
        """Return the objective as it is; queries cannot be drawn across workers."""
        used = {name: value for name, value in params.items() if name != "bagging_by_query"}
        return (target.name if isinstance(target, Native) else target), used

    def run(self, booster: Booster, job: Job) -> Trained:
        """Train, unless a worker is lost meanwhile."""
        for name in booster.parameters.of_data_set:
            if name in job.params:
                raise ConfigError(f"{name}= is for one machine: use GBMRanker, or leave it out")
        try:
            module = importlib.import_module(f"gbmrank.dask.{booster.name}_engine")
        except ImportError as error:
            raise MissingBackendError(
                f"backend={booster.name} on Dask needs {booster.name} ({error}): "
                f"pip install 'gbmrank[{booster.name},dask]'"
            ) from error
        trained: Trained = while_workers_live(self._client, lambda: module.train(self._client, job))
        return trained

    def all_tied(self, fitted: Fitted, part: Loaded) -> bool:
        """Whether the scores of every query are all equal."""
        if fitted.n_rounds == 0:
            return True
        parcel = self._client.scatter(Parcel.pack(fitted), broadcast=True)
        tied = self._client.map(_part_tied, part.parts, parcel=parcel, pure=False)
        return all(self._client.gather(tied))

    def curvature(self, target: Any, part: Loaded) -> float | None:
        """Unknown: rows lie on several machines."""
        return None


def _part_tied(part: Prepared, parcel: Parcel) -> bool:
    limit_threads()
    scores = parcel.open().scores(part.features)
    starts = np.concatenate([[0], np.cumsum(part.sizes)[:-1]])
    return bool(np.all(scores == np.repeat(scores[starts], part.sizes)))


def _eval_tables(given: tuple[Any, Any, Any, Any]) -> list[Table]:
    """Read the evaluation sets: pairs, ids, weights and names."""
    pairs, ids, weights, names = given
    if len(ids) != len(pairs):
        raise GroupError(
            f"{len(pairs)} evaluation sets, but query ids for {len(ids)}: give eval_qid= with one "
            "entry for each"
        )
    weights = [None] * len(pairs) if weights is None else weights
    names = [f"valid_{i}" for i in range(len(pairs))] if names is None else names
    if len(weights) != len(pairs) or len(names) != len(pairs) or len(set(names)) != len(names):
        raise ConfigError(
            f"{len(pairs)} evaluation sets need as many weights (or no weights) and different "
            f"names; got {len(weights)} weights and the names {list(names)}"
        )
    return [
        Table.read(pair[0], pair[1], qid, weight, name)
        for pair, qid, weight, name in zip(pairs, ids, weights, names, strict=True)
    ]
