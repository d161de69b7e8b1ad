"""LightGBM's distributed training with an objective and metrics of gbmrank.

LightGBM has no communication between workers in Python and fails when they stop at different
rounds. So all rounds are trained, every round is evaluated afterwards on the workers, and the
model is truncated after the best one.
"""

import warnings
from collections import defaultdict
from typing import Any, final

import lightgbm as lgb
import numpy as np
import numpy.typing as npt

from gbmrank.api import MetricList
from gbmrank.api.metrics import bind_in_training
from gbmrank.boosters.base import Job, Trained
from gbmrank.boosters.lightgbm.network import free_network
from gbmrank.boosters.lightgbm.training import LightGBMFitted
from gbmrank.dask.loading import Loaded, Prepared
from gbmrank.dask.workers import Parcel, limit_threads
from gbmrank.distributed.summed_metrics import means, totals
from gbmrank.errors import DataError
from gbmrank.metrics import Ranked


@final
class _Objective:
    """Gradients of the rows of one worker; LightGBM counts these parameters."""

    def __init__(self, parcel: Parcel) -> None:
        self.parcel = parcel

    def __call__(
        self, labels: Any, scores: Any, weight: Any, group: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        limit_threads()
        return self.parcel.open()["objective"](labels, scores, weight, group)

    def __deepcopy__(self, memo: Any) -> "_Objective":
        return self


def train(client: Any, job: Job) -> Trained:
    """Train all rounds, then evaluate each and find the best one."""
    _check_categories(client, job.train)
    parcel = Parcel.pack({"objective": job.objective, "metrics": job.metrics})
    native = isinstance(job.objective, str)
    model = lgb.DaskLGBMRanker(
        client=client,
        **{
            "verbosity": -1,
            **job.params,
            "objective": job.objective if native else _Objective(parcel),
            "metric": "None",
            "n_estimators": job.rounds,
        },
    )
    weight = None if job.train.table.weight is None else job.train.column("weight")
    try:
        with warnings.catch_warnings():
            # LightGBM warns even about its own default.
            warnings.filterwarnings("ignore", "Parameter n_jobs will be ignored")
            model.fit(
                job.train.features,
                job.train.column("labels"),
                group=job.train.sizes(),
                sample_weight=weight,
            )
    except Exception:
        client.run(
            free_network, on_error="ignore"
        )  # a training that fails leaves its connections behind
        raise
    booster = model.booster_
    history, best = _judge(client, job, booster, parcel)
    kept = best + 1 if job.keep_best else booster.current_iteration()
    return Trained(LightGBMFitted(booster, kept), history, best)


def _check_categories(client: Any, loaded: Loaded) -> None:
    """Reject categorical columns that are all missing on a worker: LightGBM may crash there."""
    held: dict[str, list[frozenset[int]]] = defaultdict(list)
    places = client.who_has(loaded.parts)
    for part, summary in zip(loaded.parts, loaded.summaries, strict=True):
        for worker in places[part.key]:
            held[worker].append(summary.blank)
    for blanks in held.values():
        if missing := sorted(frozenset.intersection(*blanks)):
            raise DataError(
                f"the column {loaded.outline.columns[missing[0]]!r} of {loaded.table.name} holds "
                "categories, and on one of the workers they are missing in all rows, which may "
                "crash LightGBM. Make missing values a separate category, leave the column out, or "
                "spread its rows over all partitions"
            )


def _judge(
    client: Any, job: Job, booster: Any, parcel: Parcel
) -> tuple[dict[str, dict[str, list[float]]], int]:
    """Return the values of the rounds until early stopping, and the best round."""
    rounds = booster.current_iteration()
    if not job.valid or not rounds:
        return {}, rounds - 1
    text = client.scatter(booster.model_to_string(), broadcast=True)
    names = list(job.valid)
    tasks = [
        client.map(_staged_totals, one.parts, model=text, parcel=parcel, pure=False)
        for one in job.valid.values()
    ]
    summed = [np.sum(client.gather(futures), axis=0) for futures in tasks]
    monitor = job.monitor(lambda values, _: [("", value) for value in values])
    keys = [object() for _ in names]
    for name, key in zip(names, keys, strict=True):
        monitor.watch(name, key)
    for number in range(rounds):
        for key, sums in zip(keys, summed, strict=True):
            monitor(means(job.metrics.metrics, sums[number]), key)
        if monitor.end_round():
            break
    return monitor.history, monitor.best_round


def _staged_totals(part: Prepared, model: str, parcel: Parcel) -> npt.NDArray[np.float64]:
    """Return sums and weights after every round, shape (n_rounds, n_metrics, 2)."""
    limit_threads()
    metrics: MetricList = parcel.open()["metrics"]
    booster = lgb.Booster(model_str=model)
    data = part.to_data()
    bound = bind_in_training(metrics.metrics, data)
    scores = np.zeros(data.groups.n_rows)
    stages = []
    for number in range(booster.current_iteration()):
        scores = scores + booster.predict(
            part.features, raw_score=True, start_iteration=number, num_iteration=1
        )
        stages.append(totals(bound, Ranked(scores, data.groups)))
    return np.array(stages).reshape(-1, len(metrics), 2)
