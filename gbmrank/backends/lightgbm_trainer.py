"""Training with LightGBM."""

from typing import Any, final

import numpy as np

from gbmrank.backends.trainer import Job, Part
from gbmrank.errors import MissingBackendError, NumericError
from gbmrank.types import FloatArray

__all__ = ["LightGBMFitted", "train_lightgbm"]


@final
class LightGBMFitted:
    """A LightGBM booster that predicts up to its best round."""

    backend = "lightgbm"

    def __init__(self, booster: Any, n_rounds: int) -> None:
        self.booster = booster
        self._n_rounds = n_rounds

    @property
    def n_rounds(self) -> int:
        """Number of trees that count."""
        return self._n_rounds

    def scores(self, features: Any) -> FloatArray:
        """Return one raw score per row."""
        raw = self.booster.predict(features, raw_score=True, num_iteration=self._n_rounds)
        return np.asarray(raw, np.float64)


def train_lightgbm(job: Job) -> LightGBMFitted:
    """Train; on a gradient that is not finite the error carries the model so far."""
    lgb = _imported()
    params = {"verbosity": -1, **job.params, "objective": job.objective, "metric": "None"}
    train = _data_set(lgb, job.train, params)
    valid = {
        name: train if part is job.train else _data_set(lgb, part, params, reference=train)
        for name, part in job.valid.items()
    }
    for name, data in valid.items():
        job.monitor.watch(name, data)
    grown: list[Any] = []

    def after_round(env: Any) -> None:
        grown[:] = [env.model]
        if job.monitor.end_round():
            raise lgb.callback.EarlyStopException(job.monitor.best_round, [])

    after_round.order = 100  # type: ignore[attr-defined]  # after the values of the round
    try:
        booster = lgb.train(
            params,
            train,
            job.rounds,
            valid_sets=list(valid.values()),
            valid_names=list(valid),
            feval=job.monitor if valid else None,
            callbacks=[after_round],
        )
    except NumericError as error:
        error.model = LightGBMFitted(grown[0], grown[0].current_iteration()) if grown else None
        raise
    best = job.monitor.best_round + 1
    return LightGBMFitted(booster, best or booster.current_iteration())


def _data_set(lgb: Any, part: Part, params: Any, reference: Any = None) -> Any:
    data = part.data
    return lgb.Dataset(
        part.features,
        data.labels,
        group=data.groups.sizes,
        weight=data.weight,
        reference=reference,
        params={key: value for key, value in params.items() if key != "objective"},
        free_raw_data=False,
    )


def _imported() -> Any:
    try:
        import lightgbm
    except ImportError as error:
        raise MissingBackendError(
            "backend=lightgbm needs lightgbm: pip install 'gbmrank[lightgbm]'"
        ) from error
    return lightgbm
