"""One distributed training of a ranker: any objective, any metric, either booster."""

import importlib
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gbmrank.api import MetricList, booster_params
from gbmrank.api.metrics import any_preferences, metric_list
from gbmrank.api.objectives import ranking_objective
from gbmrank.boosters.doors import backend_named
from gbmrank.boosters.plan import Native, Trained
from gbmrank.boosters.settings import (
    check_params,
    is_on,
    main_names,
    placed_constraints,
    what_forbids_cutting,
)
from gbmrank.dask.loading import DaskJob, Loaded, load
from gbmrank.dask.partitions import Table
from gbmrank.dask.scoring import DaskTrained
from gbmrank.dask.workers import watched
from gbmrank.data.columns import shared_ids
from gbmrank.data.schema import Schema
from gbmrank.errors import (
    ConfigError,
    DataError,
    GroupError,
    LeakageWarning,
    MissingBackendError,
    NoProgressWarning,
    ParameterError,
    WeightError,
)
from gbmrank.objectives import held_preferences

__all__ = ["train"]

# Memory the booster needs, in sizes of the rows: LightGBM joins the partitions of a worker
# into one table before it bins them, XGBoost bins one after the other.
_FACTORS = {"lightgbm": 2.5, "xgboost": 1.5}


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
        What is watched on the evaluation sets; the first one decides about stopping.
    backend : {"lightgbm", "xgboost"}, default="lightgbm"
        The booster.
    sample_weight : dask array, dask series or str, optional
        One weight per row; equal within a query, except for pointwise objectives.
    eval_set : sequence of (X, y), default=()
        Rows to judge on; the last set decides about stopping.
    eval_qid, eval_sample_weight : sequence, optional
        Query ids and weights of each evaluation set.
    eval_names : sequence of str, optional
        ``valid_0`` and so on when not given.
    rounds : int, default=100
        Most trees to grow.
    early_stopping : int, optional
        Stop after so many rounds without improvement. XGBoost stops, on all workers at once;
        LightGBM trains all rounds, and the model is cut as if it had stopped.
    params : mapping, optional
        Of the booster.
    seed : int, default=0
        Of the booster.
    keep_best : bool, default=True
        Cut the model after its best round on the last evaluation set; False keeps all rounds.

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
    if backend not in _FACTORS:
        raise ConfigError(f"backend must be one of {', '.join(_FACTORS)}; got {backend!r}")
    if rounds < 1:
        raise ParameterError(f"rounds must be at least 1, got {rounds}")
    if early_stopping is not None and not eval_set:
        raise ConfigError("early stopping needs an evaluation set to watch: eval_set=, eval_qid=")
    target, metrics = ranking_objective(objective), _checked_metrics(metric)
    _check_objective(target, backend, sample_weight)
    used = _params(target, backend, seed, params or {})
    trainer = _trainer(backend)
    own = Table.read(X, y, qid, sample_weight, "train")
    sets = _eval_tables((eval_set, eval_qid, eval_sample_weight, eval_names))
    same = [pair[0] is X and pair[1] is y for pair in eval_set]
    data = watched(client, lambda: load(client, own, backend, _FACTORS[backend]))
    valid = {
        table.name: data
        if again
        else watched(client, partial(load, client, table, backend, known=data.outline))
        for table, again in zip(sets, same, strict=True)
    }
    columns = Schema.of(data.outline, backend_named(backend).reads)
    _check_learnable(data)
    _warn_of_leakage(data, valid)
    job = DaskJob(
        train=data,
        valid=valid,
        objective=target.name if isinstance(target, Native) else target,
        metrics=metrics,
        params=placed_constraints(used, columns, backend),
        rounds=rounds,
        patience=early_stopping,
        keep_best=keep_best,
    )
    trained: Trained = watched(client, lambda: trainer(client, job))
    if trained.fitted.n_rounds == 0:
        warnings.warn(f"{target}: no tree was grown", NoProgressWarning, stacklevel=2)
    return DaskTrained(trained.fitted, trained.history, trained.best_round, columns)


def _trainer(backend: str) -> Any:
    try:
        module = importlib.import_module(f"gbmrank.dask.{backend}_engine")
    except ImportError as error:
        raise MissingBackendError(
            f"backend={backend} on Dask needs {backend} ({error}): "
            f"pip install 'gbmrank[{backend},dask]'"
        ) from error
    return getattr(module, f"train_on_{backend}")


def _params(target: Any, backend: str, seed: int, params: Mapping[str, Any]) -> dict[str, Any]:
    given = main_names(backend, params)
    own = not isinstance(target, Native)
    check_params(backend, given, str(target), own)
    obstacle = what_forbids_cutting(given)
    if obstacle is not None:
        raise ConfigError(f"a model with {obstacle} cannot be cut at a round; train on one machine")
    if is_on(given, "bagging_by_query"):
        raise ConfigError(
            "bagging_by_query is done by gbmrank on one machine only, and LightGBM trains a wrong "
            "model with it; leave it out"
        )
    needed = dict(booster_params(target, backend)) if own else {}
    return {**needed, "seed": seed, **given}


def _checked_metrics(given: Any) -> MetricList:
    metrics = metric_list(given)
    for item in metrics:
        if any_preferences([item]):
            raise ConfigError(f"{item}: preferences belong to rows on one machine; give labels")
    return metrics


def _check_objective(target: Any, backend: str, weight: Any) -> None:
    if isinstance(target, Native):
        if backend == "xgboost" and weight is not None:
            raise WeightError(
                f"XGBoost on Dask takes no weights together with queries, so {target} cannot have "
                "them; use an objective of gbmrank, which brings its own way for weights"
            )
    elif held_preferences(target.template):
        raise ConfigError(
            f"{target}: preferences belong to rows on one machine, and here rows lie on several; "
            "give labels, or train on one machine"
        )


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


def _check_learnable(data: Loaded) -> None:
    if not any(summary.informative for summary in data.summaries):
        raise DataError(
            "there is nothing to learn: no query of the training rows has labels that differ"
        )


def _warn_of_leakage(data: Loaded, valid: Mapping[str, Loaded]) -> None:
    known = np.concatenate([summary.ids for summary in data.summaries])
    for name, one in valid.items():
        if one is data:
            continue
        shared = shared_ids(known, np.concatenate([s.ids for s in one.summaries]))
        if shared:
            warnings.warn(
                f"{len(shared)} queries are in the training rows and in {name}, the first is "
                f"{shared[0]!r}; values on them are too good",
                LeakageWarning,
                stacklevel=3,
            )
