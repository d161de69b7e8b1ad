"""Swap objectives against LightGBM's `lambdarank`, in rounds that are almost only gradient.

Stump rounds as in :mod:`benchmarks.rounds`: realistic scores, one binary feature, two leaves.
"""

import lightgbm as lgb
import numpy as np

import gbmrank
from benchmarks.data import mslr_like
from benchmarks.settings import Settings
from benchmarks.timing import interleave, print_table, ratio, speed

NATIVE = "native lambdarank, truncated at 30"
PROMISES = {"lambdarank@30": 0.5, "yetirank": 1.5}
OTHERS = ("lambdarank", "ndcg_loss2pp@30", "swap(metric=err@10)", "query_rmse")


def run(settings: Settings) -> list[str]:
    """Print times of rounds and the ratios that are promised; return the result in words."""
    gbmrank.set_num_threads(settings.threads)
    sample = mslr_like(100 if settings.quick else 2000)
    print(f"\n{sample}")
    binary = (sample.scores > np.median(sample.scores)).astype(np.float32)[:, None]
    params = {"num_leaves": 2, "learning_rate": 1e-9, "verbose": -1, "metric": "None"}
    params |= {"num_threads": settings.threads}
    data = lgb.Dataset(
        binary, sample.labels, group=sample.sizes, init_score=sample.scores, params=params
    ).construct()
    variants = {NATIVE: lgb.Booster(params | {"objective": "lambdarank"}, data).update}
    for text in (*PROMISES, *OTHERS):
        made = gbmrank.objective(text)
        booster = lgb.Booster(
            params | gbmrank.booster_params(made, "lightgbm") | {"objective": "none"}, data
        )
        variants[text] = lambda booster=booster, made=made: booster.update(fobj=made)
    times = interleave(variants, settings.repeats(40))
    print_table(
        ["stump round", "ms, min / median", f"over {NATIVE}", "at most"],
        [
            [name, str(times[name]), ratio(times[name], times[NATIVE]), PROMISES.get(name, "")]
            for name in times
        ],
    )
    native = times[NATIVE]
    speeds = [speed(times[name], native) for name in PROMISES]
    said = (
        f"With the gradient only, gbmrank's `lambdarank@30` has {speeds[0]} times the speed of "
        f"LightGBM's own, `yetirank` {speeds[1]} times."
    )
    return [said]
