"""What was tried for quality and did not become a default: leaves solved together, tuning.

``python -m benchmarks.tried --data FOLDER --page docs/results/tried.md`` runs, on the two sets on
which choices are made (OHSUMED, MovieLens), with LightGBM:

- *leaves*: after each tree of ``pairwise(target=ndcg@10)`` all leaf values are solved at once by
  a Newton step with the whole Hessian of the pairs, not only its diagonal (scores are summed here;
  a model file would get the values by ``Booster.set_leaf_output``);
- *tuned*: the same random settings for ``lambdarank``, ``pairwise(target=ndcg@10)`` and the
  committee; each takes the setting that is best on its validation queries.
"""

import argparse
import itertools
import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import numpy.typing as npt

import gbmrank
from benchmarks.machine import versions
from benchmarks.quality_models import PARAMS, Scores, as_part, split
from benchmarks.quality_sets import SETS, RankingSet
from gbmrank.boosters.plan import Part

METRIC = gbmrank.metric("ndcg@10")
OURS = "pairwise(target=ndcg@10)"
FOLDS, ROUNDS = 3, 100
RIDGES = (None, 0.01, 0.1, 1.0)  # of the mean curvature of a leaf; None: LightGBM's own leaves
SETTINGS = 10  # random settings of each system
SYSTEMS = ("native:lambdarank", OURS, "committee")


def main() -> None:
    """Run both experiments and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tried", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("GBMRANK_DATA"))
    parser.add_argument("--page", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    began = time.process_time()
    sets = [SETS[name](Path(given.data)) for name in ("ohsumed", "movielens")]
    tables = [_table(*_leaves(data, given.seeds)) for data in sets]
    tables += [_table(*_tuned(data, given.seeds)) for data in sets]
    minutes = (time.process_time() - began) / 60.0
    seeds = "one seed" if given.seeds == 1 else f"{given.seeds} seeds"
    text = _page(tables, f"{seeds}, {minutes:.0f} minutes of CPU time. {versions()}.")
    print(text)
    if given.page is not None:
        given.page.write_text(text, encoding="utf-8")


Found = dict[str, Scores]


def _leaves(data: RankingSet, seeds: int) -> tuple[str, Found]:
    """Return NDCG@10 per test query by ridge."""
    found: dict[str, list[Scores]] = {}
    for seed, fold in np.ndindex(seeds, FOLDS):
        parts = [as_part(data, rows) for rows in split(data, seed, fold, FOLDS)]
        for ridge in RIDGES:
            name = "LightGBM's leaves" if ridge is None else f"solved together, ridge {ridge}"
            values = _grown_by_hand(parts, ridge, seed)
            found.setdefault(name, []).append(values)
            print(f"leaves {data.name} {seed} {fold} {name}: {values.mean():.4f}", flush=True)
    return f"Leaves, {data.name}", {name: np.concatenate(all_) for name, all_ in found.items()}


def _grown_by_hand(parts: Sequence[Part], ridge: float | None, seed: int) -> Scores:
    """Train round by round; return the test values of the best round on validation queries."""
    train, data = parts[0], parts[0].data
    exact = gbmrank.objective(OURS, hessian="exact")
    scores = np.zeros(len(data.labels))

    def gradients(_: Any, __: Any) -> Any:
        return gbmrank.objective(OURS).gradients(data.labels, scores, group=data.groups.sizes)

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


def _tuned(data: RankingSet, seeds: int) -> tuple[str, Found]:
    """Return NDCG@10 per test query of each system at its best setting, and at the common one."""
    found: dict[str, list[Scores]] = {}
    for seed, fold in np.ndindex(seeds, FOLDS):
        parts = [as_part(data, rows) for rows in split(data, seed, fold, FOLDS)]
        for system in SYSTEMS:
            tried = [_fitted(system, parts, params, seed) for params in _settings(seed, fold)]
            at = int(np.argmax([value for value, _ in tried]))
            name = system.removeprefix("native:")
            found.setdefault(f"{name}, as in the benchmark", []).append(tried[0][1])
            found.setdefault(f"{name}, tuned", []).append(tried[at][1])
            print(f"tuned {data.name} {seed} {fold} {name}: setting {at}", flush=True)
    return f"Tuned, {data.name}", {name: np.concatenate(all_) for name, all_ in found.items()}


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


def _table(title: str, found: Found) -> str:
    """Return a table of means and of differences to the first system, with standard errors."""
    first = next(iter(found.values()))
    lines = [f"## {title}", "", "| system | NDCG@10 | less the first |", "| --- | ---: | ---: |"]
    for name, values in found.items():
        gap = values - first
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        shown = "" if values is first else f"{gap.mean():+.4f} ± {error:.4f}"
        lines.append(f"| {name} | {values.mean():.4f} | {shown} |")
    return "\n".join(lines) + "\n"


def _page(tables: Sequence[str], how: str) -> str:
    intro = (
        "# Tried: leaves solved together, and tuning\n\n"
        f"`python -m benchmarks.tried --data DATA --page docs/results/tried.md`, {how}\n\n"
        "On the two sets on which choices are made, three folds by query, LightGBM. *Leaves*: "
        f"after each tree of `{OURS}` all leaf values are solved at once with the whole "
        "Hessian of the pairs; the ridge is in units of a leaf's mean curvature. *Tuned*: "
        f"{SETTINGS} settings, the same for all systems, and each takes the best on its validation "
        "queries. ± is one standard error of the paired difference over queries.\n\n"
    )
    return intro + "\n".join(tables)


if __name__ == "__main__":
    main()
