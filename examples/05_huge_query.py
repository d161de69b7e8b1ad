"""AUC as one ranking of a whole data set: a query of a million rows, every pair counted.

Ads and fraud teams rank all rows at once. A pair loss over n rows has n^2 terms, so boosters
sample or reject; gbmrank sums them in linear time.

Run it with ``python examples/05_huge_query.py``.
"""

import sys
import time

import lightgbm as lgb
import numpy as np

import gbmrank

ROWS, ROUNDS = (20_000, 5) if "--fast" in sys.argv else (1_000_000, 30)

rng = np.random.default_rng(0)
x = rng.normal(size=(ROWS, 10)).astype(np.float32)
chance = 1 / (1 + np.exp(-(1.5 * x[:, 0] - x[:, 1] * x[:, 2] - 4)))
labels = (rng.random(ROWS) < chance).astype(np.float32)
positives = int(labels.sum())
pairs = positives * (ROWS - positives)
print(f"one query of {ROWS:,} rows, {positives:,} positive: {pairs:.2e} pairs of one and the other")

half = ROWS // 2
auc = gbmrank.metric("auc")
params = {"learning_rate": 0.2, "verbose": -1, "num_leaves": 31}
for objective in (gbmrank.objective("bipartite", loss="logistic"), "binary"):
    own = isinstance(objective, str)
    needs = {} if own else gbmrank.booster_params(objective, "lightgbm")
    data = lgb.Dataset(x[:half], labels[:half], group=None if own else [half])
    start = time.perf_counter()
    model = lgb.train({**params, "objective": objective, **needs}, data, ROUNDS)
    seconds = (time.perf_counter() - start) / ROUNDS
    value = auc.score(labels[half:], model.predict(x[half:], raw_score=True))
    print(f"{objective!s:<28} {seconds * 1000:8.0f} ms per round   test AUC {value:.4f}")
try:
    data = lgb.Dataset(x[:half], labels[:half].astype(int), group=[half])
    lgb.train({**params, "objective": "lambdarank"}, data, 1)
except lgb.basic.LightGBMError as error:
    print(f"lambdarank                   {error}")
