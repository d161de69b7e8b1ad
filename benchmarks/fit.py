"""What ``GBMRanker.fit`` takes beyond ``lgb.train`` with the same objective and parameters.

Both build the data set from arrays. *Large* has the size of MSLR-WEB10K's training part of one in
three queries; *small* is so small that only what every fit pays is left.
"""

from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np

import gbmrank
from benchmarks.data import RankingSample, mslr_like
from benchmarks.settings import Settings
from benchmarks.timing import interleave, print_table

_OBJECTIVE = "pairwise(target=dcg)"
_SHARE, _FIXED = 0.02, 15.0  # of the time of a large fit; milliseconds of a small one


def run(settings: Settings) -> None:
    """Print both, and the overhead beside its limit."""
    gbmrank.set_num_threads(settings.threads)
    large = mslr_like(100 if settings.quick else 2000)
    for title, sample, rounds, repeats in (
        ("large", large, 50, settings.repeats(7)),
        ("small", mslr_like(10, n_features=20), 3, settings.repeats(30)),
    ):
        print(f"\n{title}: {sample}, {rounds} rounds")
        times = interleave(_variants(sample, rounds, settings.threads), repeats)
        ours, plain = times["GBMRanker.fit"], times["lgb.train"]
        beyond = 1e3 * (ours.median - plain.median)
        limit = f"{_FIXED:.0f} ms" if title == "small" else f"{_SHARE:.0%}"
        print_table(
            [f"{title}, ms", "min / median", "beyond, of the median", "at most"],
            [
                ["lgb.train", plain, "", ""],
                [
                    "GBMRanker.fit",
                    ours,
                    f"{beyond:.1f} ms, {beyond / plain.median / 1e3:.1%}",
                    limit,
                ],
            ],
        )


def _variants(sample: RankingSample, rounds: int, threads: int) -> dict[str, Callable[[], object]]:
    objective = gbmrank.objective(_OBJECTIVE)
    params: dict[str, Any] = {"num_threads": threads, "num_leaves": 31, "verbose": -1}
    own = gbmrank.booster_params(objective, "lightgbm") | params | {"objective": objective}
    qid = np.repeat(np.arange(len(sample.sizes)), sample.sizes)

    def plain() -> object:
        data = lgb.Dataset(sample.features, sample.labels, group=sample.sizes, params=params)
        return lgb.train(own, data, rounds)

    def ours() -> object:
        ranker = gbmrank.GBMRanker(objective=objective, n_estimators=rounds, **params)
        return ranker.fit(sample.features, sample.labels, qid=qid)

    return {"lgb.train": plain, "GBMRanker.fit": ours}
