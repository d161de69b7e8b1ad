"""First steps in XGBoost: the same calls, and what ``rank:pairwise`` gets wrong on this data.

A third of the items are long shots: a large gain with a small probability. They lose most
comparisons, so a loss that asks who wins ranks them too low. XGBoost's ``rank:pairwise`` is
such a loss.

Run it with ``python examples/02_xgboost.py``.
"""

import sys

import numpy as np
import xgboost as xgb

import gbmrank
from gbmrank.demo_data import demo_data

QUERIES, ROUNDS = (60, 20) if "--fast" in sys.argv else (800, 120)

train, test = demo_data(QUERIES, seed=0), demo_data(QUERIES, seed=1)
rows, held_out = (xgb.DMatrix(d.X, d.labels, qid=d.qid) for d in (train, test))
objective = gbmrank.objective("pairwise", loss="logistic", target="dcg")
trees = {"learning_rate": 0.05, "max_depth": 4}

ours = xgb.train(
    {**trees, **gbmrank.booster_params(objective, "xgboost")},
    rows,
    ROUNDS,
    obj=objective,
    custom_metric=gbmrank.metric("ndcg@10"),
    evals=[(held_out, "test")],
    verbose_eval=max(ROUNDS // 4, 1),
)
native = xgb.train({**trees, "objective": "rank:pairwise"}, rows, ROUNDS)

print(f"\n{'objective':<40} {'lost DCG@10':>12} {'mean rank of hit-or-miss items':>32}")
for name, model in ((str(objective), ours), ("rank:pairwise", native)):
    scores = model.predict(held_out, output_margin=True)
    best_first = np.lexsort((-scores, test.qid))
    rank = np.empty(len(scores))
    rank[best_first] = np.concatenate([np.arange(1, size + 1) for size in test.sizes])
    risky = rank[test.hit_or_miss].mean()
    print(f"{name:<40} {test.regret(scores, k=10):>12.1%} {risky:>32.1f}")
print(f"\n{gbmrank.theory.calibration('ranknet', 'dcg').sentence}")
