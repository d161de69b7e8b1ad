"""Logs whose truth is known: demonstration data, a ranking of its features, simulated visitors."""

from typing import NamedTuple

import numpy as np

from gbmrank.clicks import ClickLog, PositionBias, simulate_clicks
from gbmrank.demo_data import demo_data

TRUTH = PositionBias.decaying(10)
NO_BIAS = PositionBias.decaying(10, power=0.0)


class World(NamedTuple):
    """Features of all items, and a log of what was shown of them."""

    features: np.ndarray
    log: ClickLog

    @property
    def shown(self) -> np.ndarray:
        """The features of the rows of the log."""
        return self.features[self.log.row]


def world(
    seed: int,
    sessions: int = 10_000,
    temperature: float = 0.0,
    queries: int = 1000,
    bias: PositionBias = TRUTH,
):
    """A ranking by two features and some noise that stays the same; its ten best are shown."""
    data = demo_data(n_queries=queries, seed=seed)
    noise = np.random.default_rng(seed + 1000).normal(size=len(data.qid))
    score = data.X[:, 0] + 0.5 * data.X[:, 1]
    score = (score - score.mean()) / score.std() + 0.3 * noise
    log = simulate_clicks(
        data.labels,
        score,
        data.qid,
        sessions=sessions,
        seed=seed,
        temperature=temperature,
        bias=bias,
    )
    return World(data.X, log)
