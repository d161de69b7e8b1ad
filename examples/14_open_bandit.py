"""What would the other policy have earned? Two policies of a shop, from the log of one.

The Open Bandit data has impressions of a fashion shop at three positions, logged by a random policy
and by Thompson sampling, with the chance of every action. The log of the random policy says what
the other one would earn, with a wide interval: a sample of 10,000 impressions has a few dozen
clicks. The log of the other policy itself tells whether the interval is honest.

Run it with ``python examples/14_open_bandit.py``. Reads obd/ in the folder named by GBMRANK_DATA; a
simulated shop of the same kind stands in for it elsewhere. It writes open_bandit.png.
"""

import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from gbmrank.clicks import OfflineValue, offline_value


class Policy(NamedTuple):
    """A log: what was shown where, whether it was clicked, and the chance that it was shown."""

    item: Any
    position: Any
    clicks: Any
    chance: Any


def read(path: Path) -> Policy:
    """Read a log of the Open Bandit sample."""
    import pandas as pd

    log = pd.read_csv(path, usecols=["item_id", "position", "click", "propensity_score"])
    return Policy(*(log[name].to_numpy() for name in log.columns[[0, 1, 2, 3]]))


def simulate(table: Any, rates: Any, seed: int) -> Policy:
    """Draw 10,000 impressions of a policy; ``table`` has the chance of items by position."""
    rng = np.random.default_rng(seed)
    position = rng.integers(1, 4, 10_000)
    drawn = [rng.choice(len(rates), p=table[at - 1]) for at in position]
    clicks = rng.random(len(drawn)) < rates[drawn]
    return Policy(np.array(drawn), position, clicks.astype(int), table[position - 1, drawn])


def logs() -> tuple[Policy, Policy]:
    """Return the logs of the random policy and of the other one."""
    folder = Path(os.environ.get("GBMRANK_DATA") or "nowhere") / "obd"
    if folder.is_dir():
        return read(folder / "random_all.csv.gz"), read(folder / "bts_all.csv.gz")
    rng = np.random.default_rng(0)
    rates = rng.gamma(2.0, 0.002, 80)
    better = np.tile(rates**2 / (rates**2).sum(), (3, 1))
    return simulate(np.full((3, 80), 1 / 80), rates, 1), simulate(better, rates, 2)


def value(log: Policy, policy: Any, estimator: str) -> OfflineValue:
    """Clicks per impression of a policy, from a log; every impression is a session."""
    rows = np.arange(len(log.clicks))
    return offline_value(
        "clicks",
        log.clicks,
        log.position,
        None,
        rows,
        propensity=log.chance,
        policy=policy,
        estimator=estimator,
    )


random, other = logs()
# How often the other policy shows an item at a position, by its own log.
counts = np.zeros((3, 80))
np.add.at(counts, (other.position - 1, other.item), 1.0)
shares = counts / counts.sum(axis=1, keepdims=True)
chance = shares[random.position - 1, random.item]

warnings.simplefilter("always")
found = {
    "random, from its own log": value(random, random.chance, "ips"),
    "other, from the random log (ips)": value(random, chance, "ips"),
    "other, from the random log (ratio)": value(random, chance, "ratio"),
    "other, from its own log": value(other, other.chance, "ips"),
}
for name, estimate in found.items():
    print(f"{name}: {estimate}\n")
assert found["random, from its own log"].value == random.clicks.mean()

figure, axes = plt.subplots(figsize=(7.5, 2.6), layout="constrained")
for row, estimate in enumerate(reversed(found.values())):
    axes.plot([estimate.low, estimate.high], [row, row], color="#7aa6c2", linewidth=5)
    axes.plot(estimate.value, row, "o", color="#1d3c53")
    note = f"  {estimate.effective_clicks:.0f} effective clicks"
    axes.annotate(note, (estimate.high, row), va="center", fontsize=8, color="0.3")
axes.set_yticks(range(len(found)), reversed(found))
axes.set(xlabel="clicks per impression, 95% interval", xlim=(0, None), ylim=(-0.6, 3.6))
axes.margins(x=0.35)
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("open_bandit.png", dpi=150)
print("wrote open_bandit.png")
