"""Results as a comparison would write them, made up: nothing is trained."""

import numpy as np

from gbmrank.experiments.results import Measure, Queries, Results, Run, System

PAIRWISE = "pairwise(loss=logistic, target=ndcg@10)"
SYSTEMS = (
    (System("lightgbm", "native:lambdarank"), 0.0),
    (System("lightgbm", PAIRWISE), 0.011),
    (System("lightgbm", "pointwise(loss=squared, target=ndcg@10)"), 0.007),
    (System("lightgbm", "ranknet"), -0.001),
    (System("lightgbm", "listmle"), -0.018),
    (System("xgboost", "native:rank:ndcg"), -0.004),
    (System("xgboost", PAIRWISE), 0.010),
    (System("xgboost", "pnorm_push(p=8)"), -0.006),
)
MEASURES = (Measure("ndcg@10", True), Measure("map", True), Measure("regret", False))


def make_results(n_queries=600, folds=5, seeds=2, failing=True, seed=0):
    """Eight systems on two boosters, with planted differences."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(2 + rng.geometric(1 / 28, n_queries), 240)
    relevant = rng.binomial(sizes, 0.22)
    queries = Queries(
        ids=np.array([f"q{number:04d}" for number in range(n_queries)]),
        sizes=sizes,
        relevant=relevant,
    )
    systems = tuple(system for system, _ in SYSTEMS)
    easy = rng.beta(4, 2, n_queries)
    fold_of = rng.integers(folds, size=n_queries)
    runs = []
    for number, (system, lead) in enumerate(SYSTEMS):
        taste = 0.05 * rng.standard_normal(n_queries)
        for at in range(seeds):
            for fold in range(folds):
                inside = np.flatnonzero(fold_of == fold)
                if failing and number == 7:
                    runs.append(failed_run(system, at, fold))
                    continue
                base = easy[inside] + lead * (1.5 - sizes[inside] / 60) + taste[inside]
                base = base + 0.012 * rng.standard_normal(len(inside))
                runs.append(_run(system, (at, fold), inside, _judged(base, relevant[inside]), rng))
    return Results(
        title="Demonstration data",
        systems=systems,
        measures=MEASURES,
        queries=queries,
        runs=tuple(runs),
        baseline=systems[0],
        **about(systems, queries),
    )


def failed_run(system, seed, fold):
    empty = np.zeros(0)
    return Run(
        system=system,
        seed=seed,
        fold=fold,
        queries=np.zeros(0, np.int64),
        values={measure.name: empty for measure in MEASURES},
        tied=empty,
        history={},
        best_round=0,
        seconds=0.0,
        params={},
        error="NumericError: pnorm_push(p=8) gave a gradient that is not finite in round 41",
    )


def table_results(values, higher=True, name="ndcg@10", seeds=1):
    """Results from an array of shape (systems, queries) or (systems, seeds, queries)."""
    values = np.asarray(values, dtype=np.float64)
    cube = values if values.ndim == 3 else np.repeat(values[:, None], seeds, axis=1)
    n_systems, n_seeds, n_queries = cube.shape
    systems = tuple(System("lightgbm", f"objective_{i}") for i in range(n_systems))
    runs = tuple(
        Run(
            system=system,
            seed=seed,
            fold=0,
            queries=np.arange(n_queries),
            values={name: cube[i, seed]},
            tied=np.zeros(n_queries),
            history={name: [0.1, 0.2]},
            best_round=1,
            seconds=0.5,
            params={},
        )
        for i, system in enumerate(systems)
        for seed in range(n_seeds)
    )
    queries = Queries(
        ids=np.arange(n_queries).astype(str),
        sizes=np.full(n_queries, 5),
        relevant=np.ones(n_queries, np.int64),
    )
    return Results(
        title="Table",
        systems=systems,
        measures=(Measure(name, higher),),
        queries=queries,
        runs=runs,
        baseline=systems[0],
    )


def _judged(base, relevant):
    ndcg = np.where(relevant > 0, np.clip(base, 0.0, 1.0), np.nan)
    return {"ndcg@10": ndcg, "map": ndcg**1.4, "regret": 1.02 - np.nan_to_num(ndcg, nan=1.0)}


def _run(system, place, inside, values, rng):
    rounds = int(rng.integers(90, 180))
    level, speed = np.nanmean(values["ndcg@10"]), rng.uniform(12, 30)
    at = np.arange(rounds)
    drop = 0.00006 * np.maximum(at - rounds * 0.7, 0)
    curve = level - 0.15 * np.exp(-at / speed) - drop + 0.0008 * rng.standard_normal(rounds)
    pointwise = "pointwise" in system.objective
    tied = np.clip(rng.exponential(0.02 if pointwise else 0.004, len(inside)), 0, 1)
    tied[rng.random(len(inside)) < (0.02 if pointwise else 0.0)] = 1.0
    return Run(
        system=system,
        seed=place[0],
        fold=place[1],
        queries=inside,
        values=values,
        tied=tied,
        history={"ndcg@10": curve.tolist(), "map": (curve**1.4).tolist()},
        best_round=int(curve.argmax()),
        seconds=float(rng.uniform(0.8, 1.4) * (2.2 if "native" in system.objective else 1.7)),
        params={"learning_rate": 0.1, "num_leaves": 31, "min_data_in_leaf": 20},
        warnings=(
            "CalibrationWarning: ranknet is not calibrated for ndcg@10 on every distribution",
        )
        if system.objective == "ranknet"
        else (),
    )


def about(systems, queries):
    """Everything that is not a value."""
    verdicts = {}
    for system in systems:
        for measure in ("ndcg@10", "map", "regret"):
            status, sentence = _verdict(system.objective, measure)
            if status:
                verdicts[system.objective, measure] = {
                    "status": status,
                    "sentence": sentence,
                    "reference": "Ravikumar, Tewari and Yang, AISTATS 2011, Theorem 10",
                }
    return {
        "verdicts": verdicts,
        "audit": {
            "rows": int(queries.sizes.sum()),
            "queries": len(queries),
            "features": 20,
            "label_counts": {"0": 12000, "1": 3100, "2": 1400, "3": 400},
            "singletons": 3,
            "without_relevant": int((queries.relevant == 0).sum()),
            "all_labels_equal": 12,
            "longest": int(queries.sizes.max()),
            "duplicate_rows": 0,
            "notes": ["3 queries with one row say nothing about an order"],
        },
        "settings": {
            "folds": 5,
            "seeds": [0, 1],
            "rounds": 300,
            "early stopping": 30,
            "tuning budget": 0,
            "parameters": {"learning_rate": 0.1, "num_leaves": 31},
        },
        "conventions": {
            "ndcg@10": {"gain": "2^y - 1", "ties": "mean over orders", "empty": "left out"},
            "map": {"threshold": 1, "ties": "mean over orders", "empty": "left out"},
            "regret": {"ties": "mean over orders"},
        },
        "environment": {
            "command": "gbmrank compare --demo --objectives all --folds 5 --seeds 2",
            "versions": {
                "gbmrank": "0.1.0",
                "lightgbm": "4.7.0",
                "xgboost": "3.2.0",
                "numpy": "2.4.6",
                "python": "3.11.7",
            },
            "plugins": {"focal": "gbmrank-focal 0.1.0"},
            "platform": "Linux x86_64, 2 cores",
            "created": "2026-03-02 12:00 UTC",
        },
    }


def _verdict(objective, measure):
    if objective.startswith("native"):
        return "", ""
    if objective.startswith(("pairwise", "pointwise")):
        if measure == "map":
            return "unknown", f"Whether {objective} is calibrated for map is not known."
        return "calibrated", f"Minimising {objective} maximises {measure} on every distribution."
    if objective == "listmle":
        return "conditional", f"listmle is calibrated for {measure} where an order stands out."
    return "not calibrated", f"There is a distribution on which {objective} is wrong for {measure}."
