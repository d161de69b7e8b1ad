"""Boosted models of the low-rank surrogates, on queries whose type and item are the features."""

import warnings
from typing import Any

import numpy as np

from gbmrank import theory
from gbmrank.api import objective
from gbmrank.api.objectives import training_plan
from gbmrank.boosters.plan import Part, train
from gbmrank.data.preferences import PreferenceGraphs
from gbmrank.data.queries import Groups, RankingData
from gbmrank.errors import CalibrationWarning, NoProgressWarning
from gbmrank.estimators import PairRanker
from gbmrank.reproduce.low_rank_tasks import ITEMS, Surrogate
from gbmrank.types import FloatArray, IntArray

__all__ = ["boosted_scores"]

_BACKEND = "xgboost"  # LightGBM never splits on the type here, which has no gain at the root
_ROUNDS, _RATE, _DEPTH = 60, 0.3, 6


def boosted_scores(
    surrogate: Surrogate,
    types: list[theory.Distribution],
    counts: list[IntArray],
    threads: int | None = None,
) -> FloatArray:
    """Train XGBoost on sampled queries and return the scores of every type, shape (types, n).

    Parameters
    ----------
    surrogate : Surrogate
        With an objective, or with pair values: those are fitted by a :class:`PairRanker`.
    types : list of Distribution
        Where queries come from.
    counts : list of array
        How often each label of a type was drawn.
    threads : int, optional
        Of the booster.
    """
    labels = np.concatenate(
        [np.repeat(one.labels, drawn, axis=0) for one, drawn in zip(types, counts, strict=True)]
    )
    kind = np.repeat(np.arange(len(types)), [drawn.sum() for drawn in counts])
    x, rows = _features(kind), _features(np.arange(len(types)))
    params: dict[str, Any] = {"learning_rate": _RATE, "max_depth": _DEPTH}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # some are wrong on purpose
        warnings.simplefilter("ignore", NoProgressWarning)
        if surrogate.decoder is None:
            scores = _fit_scores(surrogate, (x, labels), rows, (params, threads))
        else:
            made = PairRanker(
                surrogate.pairs,
                _BACKEND,
                surrogate.decoder,
                n_estimators=_ROUNDS,
                **params,
                nthread=threads or 0,
            )
            made.fit(x, _supervision(labels), qid=np.repeat(np.arange(len(labels)), ITEMS))
            scores = made.predict(rows, qid=np.repeat(np.arange(len(types)), ITEMS))
    return scores.reshape(len(types), ITEMS)


def _fit_scores(
    surrogate: Surrogate,
    given: tuple[FloatArray, FloatArray],
    rows: FloatArray,
    options: tuple[dict[str, Any], int | None],
) -> FloatArray:
    x, labels = given
    seen = _supervision(labels)
    groups = Groups.from_sizes(np.full(len(labels), ITEMS), len(x))
    if isinstance(seen, PreferenceGraphs):
        target = objective(str(surrogate.objective), preferences=seen)
        data = RankingData(np.zeros(len(x)), groups, preferences=seen)
    else:
        target = objective(str(surrogate.objective))
        data = RankingData(seen, groups)
    plan = training_plan(
        objective=target,
        metric="ndcg",
        backend=_BACKEND,
        rounds=_ROUNDS,
        params=options[0],
        threads=options[1],
    )
    return train(plan, Part(x, data)).scores(rows)


def _features(kinds: IntArray) -> FloatArray:
    """Return the type and the number of each item."""
    items = np.tile(np.arange(ITEMS), len(kinds))
    return np.column_stack([np.repeat(kinds, ITEMS), items]).astype(np.float64)


def _supervision(labels: FloatArray) -> FloatArray | PreferenceGraphs:
    """Return labels as one column, or graphs as edges."""
    if labels.ndim == 2:
        return labels.ravel()
    query, winner, loser = np.nonzero(labels)
    return PreferenceGraphs.from_edges(
        query * ITEMS + winner,
        query * ITEMS + loser,
        labels[query, winner, loser],
        group=np.full(len(labels), ITEMS),
    )
