"""One boosting round with full pairs against the boosters' own truncated ranking losses.

*Stump*: realistic scores (``init_score``, ``base_margin``), one binary feature, two leaves
and a learning rate near zero, so that the round is almost only gradient. *Whole*: 136
features and 31 leaves, from zero scores on; trees then have the shape each objective grows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import gbmrank
from benchmarks.data import RankingSample, mslr_like
from benchmarks.settings import Settings
from benchmarks.timing import Times, interleave, print_table, ratio, speed

OURS = "pairwise(loss=logistic, target=dcg)"
ALL_PAIRS = 100_000


@dataclass(frozen=True, slots=True)
class Harness:
    """How a round is set up."""

    title: str
    repeats: int
    stump: bool


def run(settings: Settings) -> list[str]:
    """Print times of rounds and the ratios that are promised; return the result in words."""
    gbmrank.set_num_threads(settings.threads)
    sample = mslr_like(100 if settings.quick else 2000)
    print(f"\n{sample}")
    stump = Harness("stump round", settings.repeats(40), stump=True)
    whole = Harness("whole round, 31 leaves", settings.repeats(20), stump=False)
    times = {harness: _measure(sample, harness, settings.threads) for harness in (stump, whole)}
    names = dict.fromkeys(name for result in times.values() for name in result)
    print_table(
        ["ms per round, min / median", *(harness.title for harness in times)],
        [[name, *(str(result.get(name, "")) for result in times.values())] for name in names],
    )
    promises = [
        (stump, "lightgbm", "lambdarank", 0.35),
        (stump, "xgboost", "rank:pairwise", 0.20),
        (whole, "lightgbm", "lambdarank", 1.00),
        (whole, "xgboost", "rank:pairwise", 0.75),
    ]
    print_table(
        [f"{OURS}, all pairs, over", "harness", "ratio of min / median", "at most"],
        [
            [f"{booster} {peer}", harness.title, _ratio(times[harness], booster, peer), limit]
            for harness, booster, peer, limit in promises
        ],
    )
    speeds = [
        speed(times[harness][f"{booster} {OURS}"], times[harness][f"{booster} {peer}"])
        for harness, booster, peer, _ in promises
    ]
    said = (
        f"A round over all pairs has {speeds[0]} times the speed of LightGBM's `lambdarank` "
        f"(truncated at 30) and {speeds[1]} times that of XGBoost's `rank:pairwise` when only the "
        f"gradient counts (two leaves); {speeds[2]} and {speeds[3]} times with 31 leaves."
    )
    return [said]


def _ratio(times: dict[str, Times], booster: str, peer: str) -> str:
    return ratio(times[f"{booster} {OURS}"], times[f"{booster} {peer}"])


def _measure(sample: RankingSample, harness: Harness, threads: int) -> dict[str, Times]:
    if harness.stump:
        binary = (sample.scores > np.median(sample.scores)).astype(np.float32)[:, None]
        sample = replace(sample, features=binary)
    ours = gbmrank.objective(OURS)
    grad, hess = ours.gradients(sample.labels, sample.scores, group=sample.sizes)
    arrays = grad.astype(np.float32), hess.astype(np.float32)

    def precomputed(_scores: Any, _data: Any) -> Any:
        return arrays

    custom = {"custom, precomputed arrays": precomputed, OURS: ours}
    variants = dict(_lightgbm_rounds(sample, harness, threads, custom))
    variants |= _xgboost_rounds(sample, harness, threads, custom)
    return interleave(variants, harness.repeats)


def _lightgbm_rounds(
    sample: RankingSample, harness: Harness, threads: int, custom: dict[str, Any]
) -> Iterator[tuple[str, Callable[[], object]]]:
    params = {"num_leaves": 31, "verbose": -1, "metric": "None", "num_threads": threads}
    if harness.stump:
        params |= {"num_leaves": 2, "learning_rate": 1e-9}
    data = lgb.Dataset(
        sample.features,
        sample.labels,
        group=sample.sizes,
        init_score=sample.scores if harness.stump else None,
        params=params,
    ).construct()
    native: dict[str, dict[str, Any]] = {"lambdarank": {}, "rank_xendcg": {}}
    if harness.stump:
        native["lambdarank, all pairs"] = {"lambdarank_truncation_level": ALL_PAIRS}
    for name, extra in native.items():
        booster = lgb.Booster(params | extra | {"objective": name.split(",")[0]}, data)
        yield f"lightgbm {name}", booster.update
    for name, objective in custom.items():
        settings = gbmrank.booster_params(OURS, "lightgbm")
        booster = lgb.Booster(params | settings | {"objective": "none"}, data)
        yield f"lightgbm {name}", _custom_lightgbm_round(booster, objective)


def _custom_lightgbm_round(booster: Any, objective: Any) -> Callable[[], object]:
    return lambda: booster.update(fobj=objective)


def _xgboost_rounds(
    sample: RankingSample, harness: Harness, threads: int, custom: dict[str, Any]
) -> Iterator[tuple[str, Callable[[], object]]]:
    params: dict[str, Any] = {"max_leaves": 31, "max_depth": 0, "grow_policy": "lossguide"}
    params |= {"nthread": threads, "tree_method": "hist", "learning_rate": 0.1}
    if harness.stump:
        params |= {"max_leaves": 2, "max_depth": 1, "learning_rate": 1e-9}
    data = xgb.QuantileDMatrix(
        sample.features,
        sample.labels,
        group=sample.sizes,
        base_margin=sample.scores if harness.stump else None,
        nthread=threads,
    )
    native: dict[str, dict[str, Any]] = {"rank:pairwise": {}, "rank:ndcg": {}}
    if harness.stump:
        native["rank:pairwise, all pairs"] = {"lambdarank_num_pair_per_sample": ALL_PAIRS}
    for name, extra in native.items():
        booster = xgb.Booster(params | extra | {"objective": name.split(",")[0]}, [data])
        yield f"xgboost {name}", _xgboost_round(booster, data, None)
    for name, objective in custom.items():
        booster = xgb.Booster(params | gbmrank.booster_params(OURS, "xgboost"), [data])
        yield f"xgboost {name}", _xgboost_round(booster, data, objective)


def _xgboost_round(booster: Any, data: Any, objective: Any) -> Callable[[], object]:
    def step() -> None:
        booster.update(data, booster.num_boosted_rounds(), fobj=objective)

    return step
