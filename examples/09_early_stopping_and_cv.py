"""Early stopping and cross-validation: the right direction, whole queries, the same folds for all.

Run it with ``python examples/09_early_stopping_and_cv.py``.
"""

import sys

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import gbmrank
from gbmrank.demo_data import demo_data

QUERIES, ROUNDS, PATIENCE = (60, 30, 5) if "--fast" in sys.argv else (600, 300, 25)

data, valid = demo_data(QUERIES, seed=0), demo_data(QUERIES // 2, seed=2)
objective = gbmrank.objective("pairwise", target="ndcg@10")
err = gbmrank.metric("err@10")  # a name for which XGBoost would guess the wrong direction
params = {"learning_rate": 0.1, "num_leaves": 15, "verbose": -1, "objective": objective}
params |= gbmrank.booster_params(objective, "lightgbm")

rows = lgb.Dataset(data.X, data.labels, group=data.sizes, free_raw_data=False)
model = lgb.train(
    params,
    rows,
    ROUNDS,
    valid_sets=[lgb.Dataset(valid.X, valid.labels, group=valid.sizes, reference=rows)],
    feval=err,
    callbacks=[lgb.early_stopping(PATIENCE, verbose=False)],
)
print(f"LightGBM: the best round is {model.best_iteration}")

booster = xgb.train(
    {"learning_rate": 0.1, "max_depth": 4, **gbmrank.booster_params(objective, "xgboost")},
    xgb.DMatrix(data.X, data.labels, qid=data.qid),
    ROUNDS,
    obj=objective,
    custom_metric=err,
    evals=[(xgb.DMatrix(valid.X, valid.labels, qid=valid.qid), "valid")],
    early_stopping_rounds=PATIENCE,
    verbose_eval=False,
)
print(f"XGBoost: the best round is {booster.best_iteration + 1}")

print("\nlgb.cv with folds that keep queries whole (its own would cut them):")
rows = lgb.Dataset(data.X, data.labels, group=data.sizes, free_raw_data=False)
curves = lgb.cv(params, rows, ROUNDS // 3, folds=gbmrank.query_folds(rows, n_folds=5), feval=err)
mean = np.array(curves[f"valid {err.name_in('lightgbm')}-mean"])
spread = np.array(curves[f"valid {err.name_in('lightgbm')}-stdv"])
for done in range(0, len(mean), max(len(mean) // 5, 1)):
    print(f"  {done + 1:>4} rounds: {err} {mean[done]:.4f} +- {spread[done]:.4f}")
