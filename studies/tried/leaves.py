"""Two experiments of this study with LightGBM: leaves solved together, and tuned settings.

- *Leaves*: after each tree of ``pairwise(target=ndcg@10)`` all leaf values are solved at once by
  a Newton step with the whole Hessian of the pairs, not only its diagonal (scores are summed here;
  a model file would get the values by ``Booster.set_leaf_output``).
- *Tuned*: the same random settings for ``lambdarank``, ``pairwise(target=ndcg@10)`` and the
  committee; each takes the setting that is best on its validation queries.
"""

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import lightgbm as lgb
import numpy as np
import numpy.typing as npt

import gbmrank
from gbmrank.boosters.base import Part
from studies.quality.models import PARAMS, Scores
from studies.sets import RankingSet
from studies.tried.pool import CALIBRATED, ROUNDS, parts_of

METRIC = gbmrank.metric("ndcg@10")
RIDGES = (None, 0.01, 0.1, 1.0)  # of the mean curvature of a leaf; None: LightGBM's own leaves
SETTINGS = 10  # random settings of each system
SYSTEMS = ("native:lambdarank", CALIBRATED, "committee")


def leaves(data: RankingSet, seed: int, fold: int) -> dict[str, Scores]:
    """Return NDCG@10 per test query by ridge."""
    parts = parts_of(data, seed, fold)
    return {
        "LightGBM's leaves" if ridge is None else f"solved together, ridge {ridge}": _grown_by_hand(
            parts, ridge, seed
        )
        for ridge in RIDGES
    }


def _grown_by_hand(parts: Sequence[Part], ridge: float | None, seed: int) -> Scores:
    """Train round by round; return the test values of the best round on validation queries."""
    train, data = parts[0], parts[0].data
    exact = gbmrank.objective(CALIBRATED, hessian="exact")
    scores = np.zeros(len(data.labels))

    def gradients(_: Any, __: Any) -> Any:
        return gbmrank.objective(CALIBRATED).gradients(data.labels, scores, group=data.groups.sizes)

    params = {**PARAMS["lightgbm"], "objective": "none", "seed": seed, "num_threads": 1}
    rows = lgb.Dataset(train.features, data.labels, params={"verbose": -1})
    booster = lgb.Booster({**params, "verbose": -1}, rows)
    own = [np.zeros(len(part.data.labels)) for part in parts[1:]]
    best, chosen = -np.inf, own[1]
    for tree in range(ROUNDS):
        booster.update(fobj=gradients)
        leaf = _leaf(booster, train.features, tree)
        values = _leaf_values(booster, tree, int(leaf.max()) + 1)
        if ridge is not None:
            values = _solved(exact, data, scores, leaf, len(values), ridge)
        scores = scores + values[leaf]
        own = [
            old + values[_leaf(booster, part.features, tree)]
            for old, part in zip(own, parts[1:], strict=True)
        ]
        valid = parts[1].data
        value = METRIC.score(valid.labels, own[0], group=valid.groups.sizes)
        if value > best:
            best, chosen = value, own[1]
    return _judged(parts[2], chosen)


def _leaf(booster: Any, features: Any, tree: int) -> npt.NDArray[np.int64]:
    found = booster.predict(features, pred_leaf=True, start_iteration=tree, num_iteration=1)
    return np.asarray(found, np.int64).reshape(len(features))


def _leaf_values(booster: Any, tree: int, leaves: int) -> Scores:
    return np.array([booster.get_leaf_output(tree, leaf) for leaf in range(leaves)])


def _solved(exact: Any, data: Any, scores: Scores, leaf: Any, leaves: int, ridge: float) -> Scores:
    """Return the Newton step of all leaf values together, times the learning rate."""
    grad, hess = exact.gradients(data.labels, scores, group=data.groups.sizes)
    slope = np.bincount(leaf, grad, leaves)
    curvature = np.zeros((leaves, leaves))
    starts = data.groups.offsets
    for begin, end in itertools.pairwise(starts):
        rows = slice(begin, end)
        gain = np.exp2(data.labels[rows]) - 1.0
        chance = 1.0 / (1.0 + np.exp(np.clip(scores[rows][:, None] - scores[rows], -700, 700)))
        pairs = (gain[:, None] + gain) * chance * (1.0 - chance)
        np.fill_diagonal(pairs, 0.0)
        if pairs.sum() > 0.0:
            pairs *= hess[rows].sum() / pairs.sum()  # the scale of the objective for this query
            member = np.zeros((end - begin, leaves))
            member[np.arange(end - begin), leaf[rows]] = 1.0
            between = member.T @ pairs @ member
            curvature += np.diag(between.sum(axis=1)) - between
    size = ridge * max(np.trace(curvature) / leaves, 1e-12)
    step = -np.linalg.solve(curvature + size * np.eye(leaves), slope)
    return np.asarray(PARAMS["lightgbm"]["learning_rate"] * step)


def tuned(data: RankingSet, seed: int, fold: int) -> dict[str, Scores]:
    """Return NDCG@10 per test query of each system at its best setting, and at the common one."""
    found: dict[str, Scores] = {}
    parts = parts_of(data, seed, fold)
    for system in SYSTEMS:
        tried = [_fitted(system, parts, params, seed) for params in _settings(seed, fold)]
        at = int(np.argmax([value for value, _ in tried]))
        name = system.removeprefix("native:")
        found[f"{name}, as in the benchmark"] = tried[0][1]
        found[f"{name}, tuned"] = tried[at][1]
    return found


def _settings(seed: int, fold: int) -> list[dict[str, Any]]:
    """Return the setting of the benchmark, and random ones, the same for all systems."""
    rng = np.random.default_rng([seed, fold, 7])
    drawn = [
        {
            "num_leaves": int(rng.choice([4, 7, 15, 31, 63])),
            "min_data_in_leaf": int(rng.choice([5, 20, 50, 100])),
            "feature_fraction": float(rng.choice([0.3, 0.5, 0.8, 1.0])),
            "learning_rate": float(rng.choice([0.05, 0.1, 0.2])),
            "lambda_l2": float(rng.choice([0.0, 1.0, 10.0])),
        }
        for _ in range(SETTINGS - 1)
    ]
    return [dict(PARAMS["lightgbm"]), *({**PARAMS["lightgbm"], **one} for one in drawn)]


def _fitted(
    system: str, parts: Sequence[Part], params: dict[str, Any], seed: int
) -> tuple[float, Scores]:
    """Return the value on validation queries, and the values of the test queries."""
    model = gbmrank.GBMRanker(
        system,
        metric=METRIC,
        n_estimators=ROUNDS,
        early_stopping_rounds=20,
        seed=seed,
        n_jobs=1,
        **params,
    )
    train, valid, test = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(
            train.features,
            train.data.labels,
            qid=_ids(train),
            eval_set=[(valid.features, valid.data.labels)],
            eval_qid=[_ids(valid)],
        )
    judged = [_judged(part, model.predict(part.features)) for part in (valid, test)]
    return float(judged[0].mean()), judged[1]


def _ids(part: Part) -> Any:
    sizes = part.data.groups.sizes
    return np.repeat(np.arange(len(sizes)), sizes)


def _judged(part: Part, scores: Any) -> Scores:
    """Return the values of the queries that have one."""
    values = METRIC.per_query(part.data.labels, scores, group=part.data.groups.sizes)
    return values[np.isfinite(values)]
