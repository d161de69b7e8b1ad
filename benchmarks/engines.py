"""Gradient and Hessian of many short queries, for each way to sum their pairs."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import gbmrank
from benchmarks import plugin_losses
from benchmarks.data import RankingSample, mslr_like
from benchmarks.settings import Settings
from benchmarks.timing import interleave, print_table

PEER = "numpy, query by query (logistic)"
LOGISTIC = "plugin_logistic", "logistic"


class Way(NamedTuple):
    """An objective with its engine, and whether float32 lanes are allowed."""

    spec: str
    single: bool = False

    def __str__(self) -> str:
        return self.spec + (" in float32" if self.single else "")


WAYS = (
    Way("pairwise(loss=logistic, engine=pairs)", single=True),
    Way("pairwise(loss=logistic, engine=pairs)"),
    Way("pairwise(loss=logistic, engine=linear)"),
    Way("comparison(loss=logistic, engine=pairs)", single=True),
    Way("comparison(loss=logistic, engine=pairs)"),
    Way("comparison(loss=plugin_logistic, engine=pairs)"),
    Way("pairwise(loss=plugin_logistic, engine=pairs)"),
    Way("pairwise(loss=plugin_logistic, engine=linear)"),
    Way("pairwise(loss=plugin_hinge, engine=pairs)"),
    Way("pairwise(loss=canonical_boosting, engine=pairs)"),
    Way("pairwise(loss=exponential, engine=pairs)"),
    Way("pairwise(loss=exponential, engine=closed)"),
    Way("pairwise(loss=squared)"),
    Way("pairwise(loss=hinge, engine=pairs)"),
    Way("pairwise(loss=hinge, engine=sorted)"),
    Way("pairwise(loss=squared_hinge, engine=pairs)"),
    Way("pairwise(loss=squared_hinge, engine=sorted)"),
)


def run(settings: Settings) -> list[str]:
    """Print times per pair and per row; return in words what a plugin's loss costs."""
    gbmrank.set_num_threads(settings.threads)
    plugin_losses.register()
    sample = mslr_like(100 if settings.quick else 2000, n_features=20)
    print(f"\n{sample}; labels bound; whole pairs are counted for every engine")
    data = gbmrank.RankingData.from_arrays(sample.labels, group=sample.sizes)
    variants: dict[str, Callable[[], object]] = {str(way): _call(way, data, sample) for way in WAYS}
    variants[PEER] = _numpy_call(sample)
    times = interleave(variants, settings.repeats(20))
    rows, peer = len(sample.labels), times[PEER].min
    print_table(
        ["gradient and Hessian", "ms, min / median", "ns per pair", "ns per row", "numpy over it"],
        [
            [
                name,
                taken,
                f"{1e9 * taken.min / sample.pairs:.2f}",
                f"{1e9 * taken.min / rows:.1f}",
                f"{peer / taken.min:.0f}",
            ]
            for name, taken in times.items()
        ],
    )
    own, built_in = (times[f"pairwise(loss={name}, engine=pairs)"].median for name in LOGISTIC)
    ratio = f"{own / built_in:.1f}"
    return [
        f"A loss of your own (the logistic one, as a plugin) takes {ratio} times as long per pair."
    ]


def _call(way: Way, data: gbmrank.RankingData, sample: RankingSample) -> Callable[[], object]:
    bound = gbmrank.objective(way.spec).bind(data)
    dtype = np.float32 if way.single else np.float64
    return lambda: bound.gradients(sample.scores, dtype, single=way.single)


def _numpy_call(sample: RankingSample) -> Callable[[], object]:
    """Return what one would write by hand: a table of pairs for each query."""
    ends = np.cumsum(sample.sizes)
    spans = [slice(end - size, end) for end, size in zip(ends, sample.sizes, strict=True)]
    gains = np.exp2(sample.labels.astype(np.float64)) - 1.0

    def call() -> None:
        grad, hess = np.empty(len(gains)), np.empty(len(gains))
        for span in spans:
            scores, gain = sample.scores[span], gains[span]
            lose = 1.0 / (1.0 + np.exp(scores[:, None] - scores[None, :]))
            bend = lose * (1.0 - lose)
            grad[span] = lose.T @ gain - gain * lose.sum(axis=1)
            hess[span] = bend @ gain + gain * bend.sum(axis=1) - 0.5 * gain

    return call
