"""Distributed training of a ranker: any objective, any metric, either booster."""

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, final

import numpy as np

from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Booster, Fitted, Job, Trained
from gbmrank.boosters.plan import Facts, Native, check_plan, is_tied, squared_deviations
from gbmrank.boosters.supported import booster_named
from gbmrank.dask.loading import Loaded, Prepared, load
from gbmrank.dask.partitions import Table
from gbmrank.dask.scoring import DaskTrained, values_on
from gbmrank.dask.workers import Parcel, limit_threads, while_workers_live
from gbmrank.data.schema import Schema
from gbmrank.distributed.rules import check_for_cluster
from gbmrank.errors import ConfigError, GroupError, MissingBackendError
from gbmrank.estimators.committee import member_plans
from gbmrank.estimators.committee import train as run_plan


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

    Uses the booster's own distributed training. A query must lie in one partition
    (:func:`~gbmrank.dask.repartition_by_query`); its rows need not be adjacent there. Partitions
    without rows are ignored. Categories that differ between partitions are matched by value.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    X : dask array or dask frame
        Features: numbers (blocks may be sparse), or categories in a frame.
    y : dask array, dask series or str
        Labels, larger is better; a string names a column of ``X``.
    qid : dask array, dask series or str
        One query id per row, numbers or strings; or the name of a column of ``X``.
    objective : Objective or str, default="pairwise(loss=logistic, target=ndcg@10)"
        What is minimised; ``native:NAME`` is an objective of the booster, ``committee`` merges
        models of several (:class:`gbmrank.GBMRanker`).
    metric : Metric, MetricList or str, default="ndcg@10"
        Metrics on the validation sets; early stopping uses the first one.
    backend : {"lightgbm", "xgboost"}, default="lightgbm"
        The booster.
    sample_weight : dask array, dask series or str, optional
        One weight per row; if the rows of a query differ, they are weights of items (see
        :meth:`Objective.gradients <gbmrank.Objective.gradients>`).
    eval_set : sequence of (X, y), default=()
        Validation sets; early stopping uses the last one.
    eval_qid, eval_sample_weight : sequence, optional
        Query ids and weights of each evaluation set.
    eval_names : sequence of str, optional
        Names of the evaluation sets; ``valid_0``, ``valid_1``, ... when not given.
    rounds : int, default=100
        Maximum number of boosting rounds.
    early_stopping : int, optional
        Stop after this many rounds without improvement. XGBoost stops on all workers at once;
        LightGBM trains all rounds, and the model is truncated as if it had stopped.
    params : mapping, optional
        Parameters of the booster.
    seed : int, default=0
        Seed of the booster.
    keep_best : bool, default=True
        Truncate the model after its best round on the last validation set; False keeps all
        rounds.

    Returns
    -------
    DaskTrained
        Booster, history of the metrics, best round and columns; :func:`gbmrank.dask.predict`
        scores rows with it.

    Raises
    ------
    DataError
        For features that the booster does not support, and for columns that are not the same in
        all partitions and sets.
    GroupError
        When a query lies in more than one partition; the message names queries and partitions.
    WorkerLostError
        When a worker dies; there is no partial result.
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
    for one in member_plans(plan):
        check_for_cluster(one, "Dask", weighted=sample_weight is not None)
        check_plan(one, validated=bool(eval_set))
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
    found = trained.fitted, trained.history, trained.best_round, columns
    return DaskTrained(*found, committee=trained.committee)


@final
class DaskEngine:
    """Engine that trains on the workers of a cluster."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def facts(self, part: Loaded, name: str, ranks: bool = True) -> Facts:
        """Return facts from the summaries of the partitions."""
        merged = [one.merged for one in part.summaries if one.merged is not None]
        return Facts(
            sum(part.rows),
            int(part.outline.shape[1]),
            np.concatenate([one.ids for one in part.summaries]),
            any(one.informative for one in part.summaries),
            max(one.largest_weight for one in part.summaries),
            merged[0] if merged else None,
        )

    def callback(
        self, target: Any, params: Mapping[str, Any], part: Loaded
    ) -> tuple[Any, dict[str, Any]]:
        """Return the objective unchanged; queries cannot be sampled across workers."""
        used = {name: value for name, value in params.items() if name != "bagging_by_query"}
        return (target.name if isinstance(target, Native) else target), used

    def run(self, booster: Booster, job: Job) -> Trained:
        """Train; raise WorkerLostError if a worker is lost."""
        try:
            module = importlib.import_module(f"gbmrank.dask.{booster.name}_engine")
        except ImportError as error:
            raise MissingBackendError(
                f"backend={booster.name} on Dask needs {booster.name} ({error}): "
                f"pip install 'gbmrank[{booster.name},dask]'"
            ) from error
        return while_workers_live(self._client, lambda: module.train(self._client, job))

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

    def spread(self, fitted: Fitted, part: Loaded) -> float:
        """Return the standard deviation of scores within queries, over all workers."""
        parcel = self._client.scatter(Parcel.pack(fitted), broadcast=True)
        found = self._client.map(_part_deviations, part.parts, parcel=parcel, pure=False)
        return math.sqrt(sum(self._client.gather(found)) / sum(part.rows))

    def values(self, fitted: Fitted, part: Loaded, metrics: Any) -> list[float]:
        """Return the value of each metric, from sums and counts of all workers."""
        return values_on(self._client, fitted, part, metrics)


def _part_tied(part: Prepared, parcel: Parcel) -> bool:
    limit_threads()
    return is_tied(parcel.open().scores(part.features), part.sizes)


def _part_deviations(part: Prepared, parcel: Parcel) -> float:
    limit_threads()
    return squared_deviations(parcel.open().scores(part.features), part.sizes)


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
