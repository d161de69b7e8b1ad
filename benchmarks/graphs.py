"""Preference graphs: building them, one boosting round on a million edges, and decoding.

*Round*: 100,000 rows in 1,000 queries, 1,000,000 edges, 136 features, 31 leaves; against the
squared error round of the same booster on the same rows. Net degrees are computed once, so a
round of the linear loss does not see the edges; the comparison loss visits all of them. What
any objective written outside a booster costs is shown by arrays that were computed before.
"""

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import gbmrank
from benchmarks.settings import Settings
from benchmarks.timing import Times, interleave, print_table, ratio
from gbmrank import decoders

AT_MOST = 1.2
OBJECTIVES = ("linear", "comparison(loss=logistic)")


def run(settings: Settings) -> None:
    """Print times and the ratio that is promised."""
    gbmrank.set_num_threads(settings.threads)
    _print_building(settings)
    _print_rounds(settings)
    _print_decoding(settings)


def _edges(n_rows: int, size: int, n_edges: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    winner = rng.integers(0, n_rows, n_edges)
    step = rng.integers(1, size, n_edges)
    loser = winner - winner % size + (winner % size + step) % size
    return winner, loser, rng.random(n_edges)


def _print_building(settings: Settings) -> None:
    n_rows = 100_000 if settings.quick else 1_000_000
    sizes = np.full(n_rows // 100, 100)
    labels = np.random.default_rng(0).integers(0, 5, n_rows).astype(np.float64)
    edges = _edges(n_rows, 100, n_rows)
    make = gbmrank.PreferenceGraphs

    def from_labels() -> object:
        return make.from_labels(labels, group=sizes).net_degree()

    def from_unit_labels() -> object:
        return make.from_labels(labels, group=sizes, weights="unit").net_degree()

    def from_edges() -> object:
        return make.from_edges(*edges, group=sizes).net_degree()

    pairs = f"{n_rows:,} rows in {len(sizes):,} queries, {49.5 * n_rows / 1e6:.1f} million pairs"
    rows = []
    for name, call in (
        (f"from_labels, {pairs}", from_labels),
        ("from_labels(weights=unit), the same", from_unit_labels),
        (f"from_edges, {n_rows:,} edges", from_edges),
    ):
        call()
        start = time.perf_counter()
        call()
        seconds = time.perf_counter() - start
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows.append([name, f"{1e3 * seconds:.0f}", f"{peak / 1e6:.0f}"])
    print_table(["graphs and net degrees", "ms", "peak MB"], rows)


def _print_rounds(settings: Settings) -> None:
    n_rows, n_edges = (10_000, 100_000) if settings.quick else (100_000, 1_000_000)
    sizes = np.full(n_rows // 100, 100)
    graphs = gbmrank.PreferenceGraphs.from_edges(*_edges(n_rows, 100, n_edges), group=sizes)
    features = np.random.default_rng(1).standard_normal((n_rows, 136), dtype=np.float32)
    degree = graphs.net_degree().astype(np.float32)
    features[:, :20] += 0.1 * degree[:, None]
    print(f"\n{graphs}")
    variants = {
        **_lightgbm_rounds(features, degree, graphs, settings.threads),
        **_xgboost_rounds(features, degree, graphs, settings.threads),
    }
    times = interleave(variants, settings.repeats(30))
    print_table(
        ["ms per round", "min / median", "over squared error", "at most"],
        [
            [name, times[name], _ratio(times, name), AT_MOST if "linear" in name else ""]
            for name in times
        ],
    )


def _ratio(times: dict[str, Times], name: str) -> str:
    peer = f"{name.split(maxsplit=1)[0]} squared error"
    return "" if name == peer else ratio(times[name], times[peer])


def _objectives(graphs: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        name: gbmrank.objective(name, preferences=graphs) for name in OBJECTIVES
    }
    grad, hess = made["linear"].gradients(None, np.zeros(graphs.n_rows))
    arrays = grad.astype(np.float32), hess.astype(np.float32)
    return {"custom, precomputed arrays": lambda _scores, _data: arrays, **made}


def _lightgbm_rounds(
    features: Any, degree: Any, graphs: Any, threads: int
) -> dict[str, Callable[[], object]]:
    params = {"num_leaves": 31, "verbose": -1, "metric": "None", "num_threads": threads}
    params["force_row_wise"] = True  # else each booster chooses by a measurement of its own
    data = lgb.Dataset(features, degree, group=graphs.groups.sizes, params=params).construct()
    native = lgb.Booster(params | {"objective": "regression"}, data)
    rounds: dict[str, Callable[[], object]] = {"lightgbm squared error": native.update}
    for name, objective in _objectives(graphs).items():
        extra = gbmrank.booster_params("linear", "lightgbm") | {"objective": "none"}
        rounds[f"lightgbm {name}"] = _round(lgb.Booster(params | extra, data), objective)
    return rounds


def _round(booster: Any, objective: Any) -> Callable[[], object]:
    return lambda: booster.update(fobj=objective)


def _xgboost_rounds(
    features: Any, degree: Any, graphs: Any, threads: int
) -> dict[str, Callable[[], object]]:
    params: dict[str, Any] = {"max_leaves": 31, "max_depth": 0, "grow_policy": "lossguide"}
    params |= {"nthread": threads, "tree_method": "hist", "learning_rate": 0.1}
    data = xgb.QuantileDMatrix(features, degree, group=graphs.groups.sizes, nthread=threads)
    rounds: dict[str, Callable[[], object]] = {}
    native = xgb.Booster(params | {"objective": "reg:squarederror"}, [data])
    rounds["xgboost squared error"] = _xgboost_round(native, data, None)
    for name, objective in _objectives(graphs).items():
        booster = xgb.Booster(params | gbmrank.booster_params("linear", "xgboost"), [data])
        rounds[f"xgboost {name}"] = _xgboost_round(booster, data, objective)
    return rounds


def _xgboost_round(booster: Any, data: Any, objective: Any) -> Callable[[], object]:
    def step() -> None:
        booster.update(data, booster.num_boosted_rounds(), fobj=objective)

    return step


def _print_decoding(settings: Settings) -> None:
    queries = 50 if settings.quick else 1000
    rng = np.random.default_rng(0)
    values = rng.standard_normal((queries, 100, 100))
    symmetric = (values + values.transpose(0, 2, 1)).ravel()
    short = rng.standard_normal(queries * 144)
    calls: dict[str, Callable[[], object]] = {
        "100 items, graph decoder": lambda: decoders.orders(
            values.ravel(), [100] * queries, "disagreement", "graph"
        ),
        "100 items, greedy decoder of map": lambda: decoders.orders(
            symmetric, [100] * queries, "map", "greedy"
        ),
        "12 items, exact decoder": lambda: decoders.orders(
            short, [12] * queries, "disagreement", "exact"
        ),
    }
    times = interleave(calls, settings.repeats(3), warmup=1)
    print_table(
        [f"{queries} queries of", "ms, min / median"], [[name, times[name]] for name in times]
    )
