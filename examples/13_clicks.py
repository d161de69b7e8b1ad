"""Train on clicks: recover the position bias, and the ranking that it hides.

Visitors click what stands at the top. This shop shows first what earns most (a feature that says
nothing about what people want), and items that match a little less. A ranker that takes clicks for
labels learns to repeat that ranking. But items change places between sessions, which is enough to
estimate how often each position is examined; clicks over that are unbiased labels.

Run it with ``python examples/13_clicks.py``; a minute or two. It writes clicks.png.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
from typing import Any

import matplotlib.pyplot as plt

import gbmrank
from gbmrank.clicks import ClickLog, PositionBias, estimate_bias, offline_value, simulate_clicks
from gbmrank.demo_data import FEATURES, demo_data

FAST = "--fast" in sys.argv
SESSIONS = (500, 2000) if FAST else (500, 2000, 8000)
ROUNDS = 20 if FAST else 60

data = demo_data(n_queries=400, seed=0)
train, test = data.qid < 300, data.qid >= 300
margin, match = (data.X[:, FEATURES.index(name)] for name in ("noise_1", "match"))
truth = PositionBias.decaying(10)


def true_ndcg(log: ClickLog, labels: Any, **given: Any) -> float:
    """Train on a log, and judge by the true labels of other queries."""
    model = gbmrank.GBMRanker(
        "pairwise(target=identity)",
        n_estimators=ROUNDS,
        num_leaves=4,  # a click is a noisy label: small trees, large leaves
        min_child_samples=200,
    )
    model.fit(data.X[train][log.row], labels, qid=log.session, **given)
    scores = model.predict(data.X[test])
    return float(gbmrank.metric("ndcg@10").score(data.labels[test], scores, qid=data.qid[test]))


curves: dict[str, list[float]] = {"naive": [], "debiased": [], "oracle": []}
for sessions in SESSIONS:
    log = simulate_clicks(
        data.labels[train],
        (margin - 0.5 * match)[train],
        data.qid[train],
        sessions=sessions,
        bias=truth,
        temperature=0.3,  # items change places a little from session to session
    )
    bias = estimate_bias(log.clicks, log.position, qid=log.query, item=log.row)
    debiased = {"position": log.position, "position_bias": bias, "clip": 0.1}
    curves["naive"].append(true_ndcg(log, log.clicks))
    curves["debiased"].append(true_ndcg(log, log.clicks, **debiased))
    curves["oracle"].append(true_ndcg(log, log.relevance))
    values = ", ".join(f"{name} {column[-1]:.3f}" for name, column in curves.items())
    print(f"{sessions:6d} sessions, true NDCG@10: {values}")

print(f"\nThe last log: {log}\n\n{bias}\n")
match_of_log = match[train][log.row]
for name, scores in {"as shown": -log.position, "by match": match_of_log}.items():
    value = offline_value("clicks", log.clicks, log.position, scores, log.session, bias=bias)
    print(f"{name}: {value}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained")
bias.plot(left)
places = range(1, truth.n_positions + 1)
left.plot(places, truth.propensity, "o", color="black", markersize=4, label="truth")
left.set(title=f"Recovered bias, {SESSIONS[-1]} sessions", xticks=places)
left.legend(frameon=False)
for (name, column), style in zip(curves.items(), ("--", "-", ":"), strict=True):
    right.plot(SESSIONS, column, style, marker="o", markersize=4, label=name)
right.set(title="NDCG@10 of the true labels", xlabel="sessions", xscale="log")
right.set_xticks(SESSIONS, [f"{count:,}" for count in SESSIONS])
right.minorticks_off()
right.legend(frameon=False)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("clicks.png", dpi=150)
print("wrote clicks.png")
