"""Small deterministic data sets, and metrics for tests alone."""

import importlib.metadata
import itertools
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

import gbmrank
from gbmrank.data import tables
from gbmrank.metrics import AbstractBoundMetric, AbstractMetric, Ranked

Array = npt.NDArray[Any]


def is_before(package: str, major: int, minor: int) -> bool:
    """Whether an installed package is older than a release."""
    return tables.is_before(importlib.metadata.version(package), (major, minor))


@dataclass(frozen=True)
class Task:
    """Rows of queries with a signal in the first columns."""

    x: Array
    y: Array
    sizes: Array

    @property
    def qid(self) -> Array:
        """One id per row."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    def rows(self, first: int, last: int) -> "Task":
        """Return queries ``first`` to ``last - 1``."""
        ends = np.concatenate([[0], np.cumsum(self.sizes)])
        chosen = slice(ends[first], ends[last])
        return Task(self.x[chosen], self.y[chosen], self.sizes[first:last])

    def repeated(self, times: Array) -> "Task":
        """Repeat whole queries."""
        queries = np.repeat(np.arange(len(self.sizes)), times).tolist()
        parts = [self.rows(q, q + 1) for q in queries]
        return Task(
            np.concatenate([part.x for part in parts]),
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.sizes for part in parts]),
        )


def make_task(
    seed: int = 0, queries: int = 40, longest: int = 14, features: int = 5, levels: int = 8
) -> Task:
    """Make features with few distinct values and grades 0 to 4 that depend on them."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, longest + 1, queries)
    x = rng.integers(0, levels, (sizes.sum(), features)).astype(np.float64)
    signal = (x[:, 0] + 0.5 * x[:, 1]) / levels + 0.3 * rng.normal(size=len(x))
    y = np.digitize(signal, [0.4, 0.7, 1.0, 1.3]).astype(np.float64)
    return Task(x, y, sizes)


def run_python(code: str, **environment: str) -> str:
    """Run code in a new interpreter and return what it prints; warnings are errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class _BoundAgreement(AbstractBoundMetric):
    """Correlation of labels and scores, or its negative; zero where it is undefined."""

    __slots__ = ("labels", "sign")

    def __init__(self, metric: AbstractMetric, data: gbmrank.RankingData) -> None:
        super().__init__(metric, data)
        self.labels = data.labels
        self.sign = 1.0 if metric.higher_is_better else -1.0

    def per_query(self, ranked: Ranked) -> Array:
        bounds = self.groups.offsets
        values = []
        for begin, end in itertools.pairwise(bounds):
            labels, scores = self.labels[begin:end], ranked.scores[begin:end]
            spread = labels.max() - labels.min()
            agree = float(np.corrcoef(labels, scores)[0, 1]) if spread and np.ptp(scores) else 0.0
            values.append(self.sign * agree)
        return np.array(values)


def agreement_metric(called: str, higher: bool) -> Any:
    """Register a correlation (or its negative) under a name, and return the metric."""

    class Agreement(AbstractMetric):
        name: ClassVar[str] = called
        higher_is_better: ClassVar[bool] = higher

        def bind(self, data: gbmrank.RankingData) -> AbstractBoundMetric:
            return _BoundAgreement(self, data)

    gbmrank.register_metric(Agreement)
    return gbmrank.metric(called)
