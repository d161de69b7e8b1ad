"""First steps in LightGBM: an objective for NDCG@10, evaluated by NDCG@10, MAP and ERR.

Run it with ``python examples/01_lightgbm.py``.
"""

import sys

import lightgbm as lgb

import gbmrank
from gbmrank.demo_data import demo_data

QUERIES, ROUNDS = (60, 20) if "--fast" in sys.argv else (800, 120)

train, test = demo_data(QUERIES, seed=0), demo_data(QUERIES, seed=1)
objective = gbmrank.objective("pairwise", loss="logistic", target="ndcg@10")
metrics = gbmrank.metric("ndcg@10, map(threshold=1), err@10")  # one pass, one sort

print(f"objective: {objective}\n\nwhat LightGBM needs with it:")
print(gbmrank.booster_params(objective, "lightgbm"))

data = lgb.Dataset(train.X, train.labels, group=train.sizes)
model = lgb.train(
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
    feval=metrics,
    callbacks=[lgb.log_evaluation(max(ROUNDS // 4, 1))],
)

scores = model.predict(test.X)
print("\nthe same numbers without LightGBM:")
for name, value in metrics.score(test.labels, scores, group=test.sizes).items():
    print(f"  {name:<18} {value:.4f}")
print(f"\nshare of the best possible DCG@10 that is lost: {test.regret(scores, k=10):.1%}")
print(gbmrank.theory.calibration(objective, "ndcg@10").sentence)
