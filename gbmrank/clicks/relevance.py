"""Relevance as a function of features, learned from clicks and their exposure."""

import warnings
from typing import Any

import numpy as np

from gbmrank.boosters.base import Part
from gbmrank.boosters.plan import Native, Plan, train
from gbmrank.boosters.supported import booster_named
from gbmrank.data.queries import RankingData
from gbmrank.data.tables import take_rows
from gbmrank.errors import NoProgressWarning
from gbmrank.types import FloatArray, IntArray


def relevance_plan(backend: str, seed: int, rounds: int = 120, **params: Any) -> Plan:
    """Return a training with squared error.

    Little regularisation: noise averages out over items, but shrinkage does not.
    """
    return Plan(
        objective=Native(booster_named(backend).squared_error),
        metric=(),
        backend=backend,
        rounds=rounds,
        params={"learning_rate": 0.1, "max_depth": 3, **params},
        seed=seed,
        ranks=False,
    )


def cross_fitted(
    plan: Plan, features: Any, fold: IntArray, columns: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Return the relevance of each row by a model of the other folds.

    The model is of clicks over exposure, the columns, weighted by exposure.
    """
    clicks, exposure = columns
    made = np.empty(len(clicks))
    for number in np.unique(fold):
        others, mine = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        weight = exposure[others]
        data = RankingData.from_arrays(clicks[others] / weight, weight=weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoProgressWarning)  # then all are equally relevant
            trained = train(plan, Part(take_rows(features, others), data))
        made[mine] = trained.scores(take_rows(features, mine))
    return made
