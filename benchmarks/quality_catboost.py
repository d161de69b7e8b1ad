"""CatBoost's ranking losses on the folds of a comparison, where catboost is installed.

They are trained on the same queries, stopped on the same ones and judged by the same metrics
as everything else in the benchmark of quality.
"""

import importlib.util
import time
from dataclasses import replace
from typing import Any

import numpy as np

import gbmrank
from benchmarks.quality_sets import RankingSet
from gbmrank.boosters.plan import Part
from gbmrank.experiments.results import Results, Run, System
from gbmrank.experiments.sources import Source, read_source
from gbmrank.experiments.splits import cut, judged
from gbmrank.experiments.trial import part_of, tied_pairs

__all__ = ["BACKEND", "with_catboost"]

BACKEND = "catboost"
LOSSES = ("YetiRank", "PairLogit")


def with_catboost(data: RankingSet, results: Results, rounds: int, threads: int) -> Results:
    """Return results with CatBoost's runs added; as they are where it is not installed."""
    if importlib.util.find_spec(BACKEND) is None:
        print("CatBoost is left out: it is not installed")
        return results
    source = read_source((data.X, data.y, data.qid))
    systems = tuple(System(BACKEND, f"native:{loss}") for loss in LOSSES)
    runs = tuple(
        _run(source, results, system, fold, {"iterations": rounds, "thread_count": threads})
        for system in systems
        for fold in range(results.settings["folds"])
    )
    return replace(results, systems=(*results.systems, *systems), runs=(*results.runs, *runs))


def _run(
    source: Source, results: Results, system: System, fold: int, params: dict[str, Any]
) -> Run:
    """Train on one fold and judge; the same queries as every other system."""
    from catboost import CatBoost

    asked = results.settings
    seed = asked["seeds"][0]
    folds = asked["folds"]
    split = cut(source.scheme, folds=folds, share=asked["valid_share"], at=(seed, fold))
    learned, watched, test = (part_of(source, queries) for queries in split)
    model = CatBoost(
        {
            "loss_function": system.objective.removeprefix("native:"),
            "eval_metric": "NDCG:top=10;type=Exp",
            "learning_rate": asked["params"]["learning_rate"],
            "early_stopping_rounds": asked["early_stopping"],
            "use_best_model": True,
            "random_seed": seed,
            "allow_writing_files": False,
            "verbose": False,
            **params,
        }
    )
    start = time.perf_counter()
    model.fit(_pool(learned), eval_set=_pool(watched))
    seconds = time.perf_counter() - start
    scores = np.asarray(model.predict(test.features), np.float64)
    labels, groups = test.data.labels, test.data.groups
    values = {
        measure.name: gbmrank.metric(measure.name).per_query(labels, scores, group=groups.sizes)
        for measure in results.measures
    }
    return Run(
        system=system,
        seed=seed,
        fold=fold,
        queries=np.searchsorted(judged(source.scheme, folds), split.test),
        values=values,
        tied=tied_pairs(scores, groups),
        history={},
        best_round=int(model.tree_count_) - 1,
        seconds=seconds,
        params={},
    )


def _pool(part: Part) -> Any:
    from catboost import Pool

    return Pool(
        part.features,
        part.data.labels,
        group_id=part.data.groups.spread(np.arange(part.data.groups.n_queries)),
    )
