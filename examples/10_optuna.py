"""Tuning with Optuna: objectives and booster parameters in one search.

Losses differ in scale, so a learning rate that suits one is wrong for another: tune them
together. Needs optuna (``pip install optuna``); without it a random search of the same space
is run.

Run it with ``python examples/10_optuna.py``.
"""

import sys
import warnings
from typing import Any

import lightgbm as lgb
import numpy as np

import gbmrank
from gbmrank.demo_data import demo_data

QUERIES, ROUNDS, TRIALS = (30, 5, 3) if "--fast" in sys.argv else (500, 150, 25)
OBJECTIVES = (
    "pairwise(target=ndcg@10)",
    "pointwise(loss=squared, target=ndcg@10)",
    "softmax",
    "ranknet",
)

data = demo_data(QUERIES, seed=0)
ndcg = gbmrank.metric("ndcg@10")
folds = gbmrank.query_folds(group=data.sizes, n_folds=3)


def value_of(objective: str, learning_rate: float, num_leaves: int) -> float:
    """Return the cross-validated NDCG@10."""
    made = gbmrank.objective(objective)
    params: dict[str, Any] = {"verbose": -1, "objective": made, "metric": "None"}
    params |= gbmrank.booster_params(made, "lightgbm")
    params |= {"learning_rate": learning_rate, "num_leaves": num_leaves}
    rows = lgb.Dataset(data.X, data.labels, group=data.sizes, free_raw_data=False)
    curves = lgb.cv(params, rows, ROUNDS, folds=folds, feval=ndcg)
    return float(max(curves[f"valid {ndcg.name_in('lightgbm')}-mean"]))


def random_search() -> list[tuple[float, dict[str, Any]]]:
    """Try parameters at random."""
    rng = np.random.default_rng(0)
    trials = []
    for _ in range(TRIALS):
        chosen: dict[str, Any] = {
            "objective": str(rng.choice(OBJECTIVES)),
            "learning_rate": float(np.exp(rng.uniform(np.log(0.01), np.log(0.5)))),
            "num_leaves": int(rng.integers(4, 64)),
        }
        trials.append((value_of(**chosen), chosen))
    return trials


def optuna_search() -> list[tuple[float, dict[str, Any]]]:
    """Let Optuna choose."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def trial_value(trial: Any) -> float:
        return value_of(
            trial.suggest_categorical("objective", OBJECTIVES),
            trial.suggest_float("learning_rate", 0.01, 0.5, log=True),
            trial.suggest_int("num_leaves", 4, 63),
        )

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.optimize(trial_value, n_trials=TRIALS)
    return [(trial.value, trial.params) for trial in study.trials]


try:
    found, how = optuna_search(), "Optuna"
except ImportError:
    found, how = random_search(), "random search (optuna is not installed)"
print(f"{TRIALS} trials by {how}, best first:\n")
print(f"{'NDCG@10':>8}  {'rate':>6}  {'leaves':>6}  objective")
for value, chosen in sorted(found, key=lambda each: -each[0])[:10]:
    rate, leaves = chosen["learning_rate"], chosen["num_leaves"]
    print(f"{value:>8.4f}  {rate:>6.3f}  {leaves:>6}  {chosen['objective']}")
