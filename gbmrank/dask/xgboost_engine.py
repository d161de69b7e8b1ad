"""XGBoost's distributed training with an objective and metrics of gbmrank.

Its Dask interface does not support weights with queries. They are passed as the lower bounds of
labels, a column of one number per row that XGBoost uses for survival models only.
"""

import json
from dataclasses import replace
from typing import Any, final

import numpy as np
import numpy.typing as npt
import xgboost as xgb
import xgboost.dask as dxgb
from xgboost import collective

from gbmrank.api import MetricList
from gbmrank.boosters.base import Job, Monitor, Trained
from gbmrank.boosters.bindings import BoosterColumns
from gbmrank.boosters.gradients import round_gradients
from gbmrank.boosters.xgboost.booster import XGBOOST
from gbmrank.boosters.xgboost.training import (
    XGBoostFitted,
    first_rounds,
    infinite_message,
    needs_all_values,
)
from gbmrank.dask.loading import Loaded, Prepared
from gbmrank.dask.workers import Parcel, limit_threads
from gbmrank.data.schema import safe_names
from gbmrank.data.tables import categorical_columns, column_names, first_infinite
from gbmrank.distributed.summed_metrics import report_in_training
from gbmrank.errors import DataError, GbmrankError

_CARRIER = "label_lower_bound"
_HISTORY = "gbmrank_history"


@final
class _Objective:
    """Gradients of the rows of one worker."""

    def __init__(self, parcel: Parcel) -> None:
        self.parcel = parcel

    def __call__(self, preds: Any, data: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        columns = _columns(data)
        if not len(columns.labels):
            return np.empty(0, np.float32), np.empty(0, np.float32)
        limit_threads()
        objective = self.parcel.open()["objective"]
        return round_gradients(objective, columns, preds)


@final
class _Watch(xgb.callback.TrainingCallback):  # type: ignore[misc]
    """Callback that computes metrics over all workers after every round, and stops early.

    All workers see the same sums, so all stop at the same round. Workers cache functions, so the
    state of a training is created when it begins.
    """

    def __init__(self, parcel: Parcel, sets: tuple[str, ...], patience: int | None) -> None:
        super().__init__()
        self.parcel, self.sets, self.patience = parcel, sets, patience
        self.monitor: Any = None  # a Monitor while it trains
        self.seen: list[Any] = []

    def before_training(self, model: Any) -> Any:
        """Start with an empty history."""
        metrics: MetricList = self.parcel.open()["metrics"]
        self.seen = []
        self.monitor = Monitor(
            self._evaluate,
            [str(item) for item in metrics],
            metrics[0].higher_is_better,
            self.patience,
        )
        return model

    def metric(self, preds: Any, data: Any) -> Any:
        """Evaluate one data set after the other."""
        if not any(data is one for one in self.seen):
            self.monitor.watch(self.sets[len(self.seen)], data)
            self.seen.append(data)
        return self.monitor(preds, data)

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Count a round; return whether to stop."""
        return bool(self.monitor.end_round())

    def after_training(self, model: Any) -> Any:
        """Store the unrounded history and the best round of every worker in the model."""
        best = np.zeros(collective.get_world_size())
        best[collective.get_rank()] = self.monitor.best_round
        rounds = collective.allreduce(best, collective.Op.SUM).astype(int).tolist()
        kept = {"history": self.monitor.history, "best_rounds": rounds}
        model.set_attr(**{_HISTORY: json.dumps(kept)})
        self.monitor, self.seen = None, []
        return model

    def _evaluate(self, preds: Any, data: Any) -> list[tuple[Any, ...]]:
        metrics: MetricList = self.parcel.open()["metrics"]
        columns = _columns(data)
        limit_threads()
        own = columns if len(columns.labels) else None
        return report_in_training(metrics, XGBOOST, own, preds, _summed)


def train(client: Any, job: Job) -> Trained:
    """Train; the model is truncated after its best round."""
    native = isinstance(job.objective, str)
    params = {"disable_default_eval_metric": 1, "verbosity": 1, **job.params}
    if native:
        params["objective"] = job.objective
    parcel = Parcel.pack({"objective": job.objective, "metrics": job.metrics})
    names = _names(job)
    train = _matrix(client, job.train, params, names)
    valid = {
        name: train if one is job.train else _matrix(client, one, params, names, train)
        for name, one in job.valid.items()
    }
    watch = _Watch(parcel, tuple(valid), job.patience)
    try:
        answer = dxgb.train(
            client,
            params,
            train,
            num_boost_round=job.rounds,
            obj=None if native else _Objective(parcel),
            evals=[(one, name) for name, one in valid.items()],
            custom_metric=watch.metric if valid else None,
            verbose_eval=False,
            callbacks=[watch],
        )
    except xgb.core.XGBoostError as error:
        sets = [job.train, *job.valid.values()]
        for loaded in sets:
            _explain_infinite(client, loaded, error)
        _explain_absent(client, sets, error)
        raise
    return _trained(answer["booster"], job)


def _explain_infinite(client: Any, loaded: Loaded, error: Exception) -> None:
    """Raise an error that locates an infinite value, which XGBoost's own error does not."""
    given = column_names(loaded.outline) or []
    names = dict(zip(safe_names(given), given, strict=True))
    found = client.gather(client.map(_first_infinite, loaded.parts, pure=False))
    for number, column in zip(loaded.numbers, found, strict=True):
        if column is not None:
            what = f"{loaded.table.name}, partition {number}"
            raise DataError(infinite_message(names.get(column, column), what)) from error


def _explain_absent(client: Any, sets: list[Loaded], error: Exception) -> None:
    """Raise an error for workers that have rows of some sets only, and so no categories."""
    if not categorical_columns(sets[0].outline):
        return
    holders = {
        one.table.name: {w for at in client.who_has(one.parts).values() for w in at} for one in sets
    }
    workers = set.union(*holders.values())
    if few := [name for name, found in holders.items() if found != workers]:
        raise DataError(
            f"{few[0]} has no rows on some of the {len(workers)} workers with rows of other sets, "
            "and XGBoost reads categories only where every worker has rows of every set: "
            f"split {few[0]} into {len(workers)} or more partitions of whole queries"
        ) from error


def _first_infinite(part: Prepared) -> Any:
    found = first_infinite(part.features)
    return None if found is None else found[1]


def _names(job: Job) -> list[str] | None:
    """Return feature names for all sets: XGBoost needs them in all or in none."""
    if (known := column_names(job.train.outline)) is not None:
        return safe_names(known)
    width, others = job.train.outline.shape[1], job.valid.values()
    named = any(column_names(one.outline) is not None for one in others)
    return [f"f{number}" for number in range(width)] if named else None


def _trained(booster: Any, job: Job) -> Trained:
    kept = json.loads(booster.attr(_HISTORY))
    booster.set_attr(**{_HISTORY: None})
    rounds = set(kept["best_rounds"])
    if len(rounds) > 1:
        raise GbmrankError(
            f"the workers chose different best rounds: {kept['best_rounds']}; please report this"
        )
    if not job.valid:
        return Trained(XGBoostFitted(booster), {}, booster.num_boosted_rounds() - 1)
    best = rounds.pop()
    kept_rounds = first_rounds(booster, best + 1) if job.keep_best else booster
    return Trained(XGBoostFitted(kept_rounds), kept["history"], best)


def _matrix(
    client: Any, loaded: Loaded, params: Any, names: list[str] | None, reference: Any = None
) -> Any:
    columns = {"label": loaded.column("labels"), "qid": loaded.column("codes")}
    if names is not None:  # a worker without rows does not know them
        columns["feature_names"] = names
    if loaded.table.weight is not None:
        columns[_CARRIER] = loaded.column("weight")
    if needs_all_values(params):
        return dxgb.DaskDMatrix(client, loaded.features, enable_categorical=True, **columns)
    binning = {"ref": reference} if reference is not None else {}
    return dxgb.DaskQuantileDMatrix(
        client,
        loaded.features,
        max_bin=params.get("max_bin"),
        enable_categorical=True,
        **binning,
        **columns,
    )


def _columns(data: Any) -> BoosterColumns:
    columns = XGBOOST.columns(data)
    carried = data.get_float_info(_CARRIER)
    return replace(columns, weight=carried) if len(carried) else columns


def _summed(own: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.reshape(collective.allreduce(own.reshape(-1), collective.Op.SUM), own.shape)
