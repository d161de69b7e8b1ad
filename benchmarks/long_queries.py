"""One long query: all pairs in time that grows with the number of rows, not of pairs."""

from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import gbmrank
from benchmarks.data import one_query
from benchmarks.settings import Settings
from benchmarks.timing import Times, interleave, print_table, ratio, speed

OURS = "pairwise(loss=logistic, target=dcg)"
_EXACT_UP_TO = 100_000
_NOT_RUN = "not run"


def run(settings: Settings) -> list[str]:
    """Print engines by length, rounds by length, and a round on a million rows.

    Return the result in words.
    """
    gbmrank.set_num_threads(settings.threads)
    longest = 10_000 if settings.quick else 1_000_000
    lengths = [n for n in (100, 300, 1000, 3000, 10_000, 100_000, 1_000_000) if n <= longest]
    print(f"\n{OURS}, one query, labels bound")
    engines = {n: _engines(n, settings) for n in lengths}
    _print_engines(engines)
    print("\nStump rounds (almost only gradient) on one query; labels are 0 and 1")
    _print_rounds([n for n in lengths if n >= 1000], settings)
    ours, binary = _whole_round(longest, settings)
    print(f"\nWhole rounds on {longest:,} x 20, 31 leaves: {ours} ms, native binary {binary} ms")
    print_table(
        ["promised", "measured", "limit"],
        [
            ["linear-time engine, 1,000,000 rows over 100,000", _growth(engines), "at most 12"],
            ["exact float64 over linear-time, 100,000 rows", _gain(engines), "at least 300"],
            [
                f"LightGBM whole round on {longest:,} x 20 over native binary",
                ratio(ours, binary),
                "at most 1.5",
            ],
        ],
    )
    most = max(n for n, times in engines.items() if "pairs False" in times)
    times = engines[most]
    gain = speed(times["linear False"], times["pairs False"])
    return [f"A query of {most:,} items in linear time has {gain} times the speed of all pairs."]


def _engines(n: int, settings: Settings) -> dict[str, Times]:
    sample = one_query(n)
    data = gbmrank.RankingData.from_arrays(sample.labels)
    variants: dict[str, Callable[[], object]] = {}
    for engine, single in (("linear", False), ("pairs", False), ("pairs", True)):
        if engine == "linear" or n <= _EXACT_UP_TO:
            bound = gbmrank.objective(OURS, engine=engine).bind(data)
            variants[f"{engine} {single}"] = _gradients(bound, sample.scores, single)
    slow = n > 10_000 and len(variants) > 1
    return interleave(variants, settings.repeats(3 if slow else 20), warmup=1)


def _gradients(bound: Any, scores: Any, single: bool) -> Callable[[], object]:
    dtype = np.float32 if single else np.float64
    return lambda: bound.gradients(scores, dtype, single=single)


def _print_engines(engines: dict[int, dict[str, Times]]) -> None:
    rows: list[list[object]] = []
    for n, times in engines.items():
        linear, exact = times["linear False"], times.get("pairs False")
        rows.append(
            [
                f"{n:,}",
                exact or _NOT_RUN,
                times.get("pairs True") or _NOT_RUN,
                linear,
                f"{1e9 * linear.min / n:.0f}",
                f"{exact.min / linear.min:.2f}" if exact else "",
            ]
        )
    head = ["exact float64, ms", "exact float32", "linear-time", "its ns per row", "exact over it"]
    print_table(["rows", *head], rows)


def _growth(engines: dict[int, dict[str, Times]]) -> str:
    if 1_000_000 not in engines:
        return _NOT_RUN
    return f"{engines[1_000_000]['linear False'].min / engines[100_000]['linear False'].min:.1f}"


def _gain(engines: dict[int, dict[str, Times]]) -> str:
    if 100_000 not in engines:
        return _NOT_RUN
    times = engines[100_000]
    return f"{times['pairs False'].min / times['linear False'].min:.0f}"


def _print_rounds(lengths: list[int], settings: Settings) -> None:
    results: dict[int, dict[str, object]] = {}
    for n in lengths:
        sample = one_query(n)
        labels = (sample.labels > 0).astype(np.float32)
        makers = _round_makers(sample.features, labels, sample.scores, settings.threads)
        variants, rejected = {}, {}
        for name, make in makers.items():
            try:
                variants[name] = make()
            except lgb.basic.LightGBMError:
                rejected[name] = "rejects"
        times = interleave(variants, settings.repeats(5 if n > 100_000 else 15))
        results[n] = {name: times.get(name) or rejected[name] for name in makers}
    print_table(
        ["ms per stump round", *(f"{n:,} rows" for n in results)],
        [[name, *(row[name] for row in results.values())] for name in results[lengths[0]]],
    )


def _round_makers(
    features: Any, labels: Any, scores: Any, threads: int
) -> dict[str, Callable[[], Callable[[], object]]]:
    stump = {"num_leaves": 2, "learning_rate": 1e-9, "num_threads": threads}
    shallow = {"max_depth": 1, "learning_rate": 1e-9, "nthread": threads}
    columns = {"label": labels, "group": [len(labels)]}
    quiet = {"verbose": -1}
    light = lgb.Dataset(features, init_score=scores, params=quiet, **columns).construct()
    extreme = xgb.QuantileDMatrix(features, base_margin=scores, nthread=threads, **columns)
    return {
        f"lightgbm {OURS}": lambda: _lightgbm_round(light, stump, OURS),
        "lightgbm binary": lambda: _lightgbm_round(light, stump, "binary"),
        "lightgbm lambdarank (truncated)": lambda: _lightgbm_round(light, stump, "lambdarank"),
        "lightgbm rank_xendcg": lambda: _lightgbm_round(light, stump, "rank_xendcg"),
        f"xgboost {OURS}": lambda: _xgboost_round(extreme, shallow, OURS),
        "xgboost binary:logistic": lambda: _xgboost_round(extreme, shallow, "binary:logistic"),
        "xgboost rank:pairwise (truncated)": lambda: _xgboost_round(
            extreme, shallow, "rank:pairwise"
        ),
    }


def _lightgbm_round(data: Any, params: dict[str, Any], objective: str) -> Callable[[], object]:
    params = {**params, "verbose": -1, "metric": "None"}
    if objective != OURS:
        return lgb.Booster(params | {"objective": objective}, data).update
    ours = gbmrank.objective(OURS)
    settings = gbmrank.booster_params(ours, "lightgbm")
    booster = lgb.Booster(params | settings | {"objective": "none"}, data)
    return lambda: booster.update(fobj=ours)


def _xgboost_round(data: Any, params: dict[str, Any], objective: str) -> Callable[[], object]:
    if objective != OURS:
        native = xgb.Booster(params | {"objective": objective}, [data])
        return lambda: native.update(data, native.num_boosted_rounds())
    ours = gbmrank.objective(OURS)
    booster = xgb.Booster(params | gbmrank.booster_params(ours, "xgboost"), [data])
    return lambda: booster.update(data, booster.num_boosted_rounds(), fobj=ours)


def _whole_round(n: int, settings: Settings) -> tuple[Times, Times]:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((n, 20), dtype=np.float32)
    labels = (features[:, :5].sum(axis=1) + 2 * rng.standard_normal(n) > 1).astype(np.float32)
    data = lgb.Dataset(features, labels, group=[n], params={"verbose": -1}).construct()
    params = {"num_leaves": 31, "num_threads": settings.threads}
    variants = {name: _lightgbm_round(data, params, name) for name in (OURS, "binary")}
    times = interleave(variants, settings.repeats(30))
    return times[OURS], times["binary"]
