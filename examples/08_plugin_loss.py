"""A loss of your own: one function, compiled, checked, and judged by the theory.

Tempered logistic loss: like the logistic one near zero, but a pair that is hopelessly wrong
pulls less, so a few bad labels do less harm. Packages offer losses through entry points; a
notebook registers them as here.

Run it with ``python examples/08_plugin_loss.py``.
"""

import sys

import lightgbm as lgb
import numpy as np

import gbmrank
from gbmrank import testing
from gbmrank.demo_data import DemoData, demo_data
from gbmrank.numerics import sigmoid, softplus

QUERIES, ROUNDS = (60, 15) if "--fast" in sys.argv else (800, 120)


@gbmrank.register_loss
def tempered(z: float, half: float = 4.0) -> tuple[float, float, float]:
    """Logistic loss minus a logistic loss that sets in at ``-half``: bounded above."""
    p, far = sigmoid(-z), sigmoid(-z - half)
    value = softplus(-z) - softplus(-z - half)
    return value, far - p, p * (1.0 - p) - far * (1.0 - far)


def train(objective: gbmrank.Objective, rows: DemoData, labels: np.ndarray) -> lgb.Booster:
    """Train LightGBM on rows with these labels."""
    params = {"learning_rate": 0.05, "num_leaves": 15, "verbose": -1, "objective": objective}
    params |= gbmrank.booster_params(objective, "lightgbm")
    return lgb.train(params, lgb.Dataset(rows.X, labels, group=rows.sizes), ROUNDS)


print(testing.check_loss("tempered"))
verdict = gbmrank.theory.calibration("pairwise(loss=tempered, target=dcg)", "dcg@10")
print(f"\nthe theory: {verdict.status}. {verdict.sentence}\n")

data, test = demo_data(QUERIES, seed=0), demo_data(QUERIES, seed=1)
rng = np.random.default_rng(0)
spam = rng.random(len(data.labels)) < 0.1
noisy = np.where(spam, rng.integers(0, 5, len(data.labels)), data.labels)
print(f"{'lost DCG@10':<40} {'clean labels':>13} {'10% at random':>14}")
for loss in ("logistic", "tempered"):
    objective = gbmrank.objective("pairwise", loss=loss, target="dcg")
    lost = [
        test.regret(train(objective, data, labels).predict(test.X), k=10)
        for labels in (data.labels, noisy)
    ]
    print(f"{objective!s:<40} {lost[0]:>13.1%} {lost[1]:>14.1%}")
