"""One objective, two boosters: the same object in both, learning curves side by side.

Writes ``03_both_boosters.png``. Run it with ``python examples/03_both_boosters.py``.
"""

import sys

import lightgbm as lgb
import matplotlib as mpl
import xgboost as xgb

mpl.use("Agg")
import matplotlib.pyplot as plt

import gbmrank
from gbmrank.demo_data import demo_data

QUERIES, ROUNDS = (60, 20) if "--fast" in sys.argv else (800, 200)

train, test = demo_data(QUERIES, seed=0), demo_data(QUERIES, seed=1)
objective = gbmrank.objective("pairwise(loss=logistic, target=ndcg@10)")
ndcg = gbmrank.metric("ndcg@10")

seen: dict[str, dict[str, list[float]]] = {}
data = lgb.Dataset(train.X, train.labels, group=train.sizes)
lgb.train(
    {
        "objective": objective,
        "learning_rate": 0.05,
        "num_leaves": 15,
        "verbose": -1,
        **gbmrank.booster_params(objective, "lightgbm"),
    },
    data,
    ROUNDS,
    valid_sets=[lgb.Dataset(test.X, test.labels, group=test.sizes, reference=data)],
    valid_names=["test"],
    feval=ndcg,
    callbacks=[lgb.record_evaluation(seen)],
)
curves = {"LightGBM": seen["test"][ndcg.name_in("lightgbm")]}

seen = {}
xgb.train(
    {"learning_rate": 0.05, "max_depth": 4, **gbmrank.booster_params(objective, "xgboost")},
    xgb.DMatrix(train.X, train.labels, qid=train.qid),
    ROUNDS,
    obj=objective,
    custom_metric=ndcg,
    evals=[(xgb.DMatrix(test.X, test.labels, qid=test.qid), "test")],
    evals_result=seen,
    verbose_eval=False,
)
curves["XGBoost"] = seen["test"][ndcg.name_in("xgboost")]

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, values in curves.items():
    best = max(range(len(values)), key=values.__getitem__)
    print(f"{name:<9} best {ndcg} {values[best]:.4f} after {best + 1} rounds")
    (line,) = axes.plot(range(1, len(values) + 1), values, label=name)
    axes.plot(best + 1, values[best], "o", color=line.get_color())
axes.set(xlabel="round", ylabel="NDCG@10 on test queries", title=str(objective))
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("03_both_boosters.png", dpi=120)
print("curves are in 03_both_boosters.png")
