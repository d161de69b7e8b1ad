"""Training with XGBoost."""

from typing import Any, final

import numpy as np

from gbmrank.backends.trainer import Job, Part
from gbmrank.errors import MissingBackendError, NumericError
from gbmrank.types import FloatArray

__all__ = ["XGBoostFitted", "train_xgboost"]


@final
class XGBoostFitted:
    """An XGBoost booster, cut after its best round."""

    backend = "xgboost"

    def __init__(self, booster: Any) -> None:
        self.booster = booster

    @property
    def n_rounds(self) -> int:
        """Number of trees that count."""
        return int(self.booster.num_boosted_rounds())

    def scores(self, features: Any) -> FloatArray:
        """Return one raw score per row."""
        xgb = _imported()
        raw = self.booster.predict(xgb.DMatrix(features), output_margin=True)
        return np.asarray(raw, np.float64)


def train_xgboost(job: Job) -> XGBoostFitted:
    """Train; on a gradient that is not finite the error carries the model so far."""
    xgb = _imported()
    native = isinstance(job.objective, str)
    params = {"disable_default_eval_metric": 1, "verbosity": 1, **job.params}
    if native:
        params["objective"] = job.objective
    train = _data_set(xgb, job.train, params)
    valid = {
        name: train if part is job.train else _data_set(xgb, part, params, reference=train)
        for name, part in job.valid.items()
    }
    for name, data in valid.items():
        job.monitor.watch(name, data)
    grown: list[Any] = []

    class AfterRound(xgb.callback.TrainingCallback):  # type: ignore[name-defined, misc]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            grown[:] = [model]
            return job.monitor.end_round()

    try:
        booster = xgb.train(
            params,
            train,
            job.rounds,
            obj=None if native else job.objective,
            evals=[(data, name) for name, data in valid.items()],
            custom_metric=job.monitor if valid else None,
            verbose_eval=False,
            callbacks=[AfterRound()],
        )
    except NumericError as error:
        error.model = XGBoostFitted(grown[0]) if grown else None
        raise
    best = job.monitor.best_round + 1
    return XGBoostFitted(booster[:best] if best else booster)


def _data_set(xgb: Any, part: Part, params: Any, reference: Any = None) -> Any:
    data = part.data
    columns = {
        "label": data.labels,
        "weight": data.query_weight(),
        "group": data.groups.sizes,
        "nthread": params.get("nthread", params.get("n_jobs")),
    }
    if params.get("tree_method", "hist") != "hist" or params.get("booster") == "gblinear":
        return xgb.DMatrix(part.features, **columns)
    binning = {"ref": reference} if reference is not None else {}
    return xgb.QuantileDMatrix(part.features, max_bin=params.get("max_bin"), **binning, **columns)


def _imported() -> Any:
    try:
        import xgboost
    except ImportError as error:
        raise MissingBackendError(
            "backend=xgboost needs xgboost: pip install 'gbmrank[xgboost]'"
        ) from error
    return xgboost
