"""How cost and memory grow on one machine: 1e5 to 1e7 rows.

Tables are printed as Markdown, as they stand in ``docs/growing.md``.
"""

import ctypes
import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import numpy.typing as npt
import xgboost as xgb

import gbmrank
from benchmarks.settings import Settings
from benchmarks.timing import Times, interleave, print_table
from gbmrank.boosters.bindings import state_of
from gbmrank.boosters.gradients import in_training
from gbmrank.boosters.supported import booster_of

OURS = "pairwise(loss=logistic, target=ndcg@10)"
NATIVE = {"lightgbm": "lambdarank", "xgboost": "rank:ndcg"}
FEATURES, PER_QUERY = 20, 100
MOST_BYTES, MOST_RATIO = 60, 1.2


@dataclass(frozen=True, slots=True)
class Rows:
    """Made-up rows: queries of 100 rows, 20 features."""

    features: npt.NDArray[np.float32]
    labels: npt.NDArray[np.float32]
    sizes: npt.NDArray[np.int64]


def run(settings: Settings) -> None:
    """Print time and memory per row."""
    gbmrank.set_num_threads(settings.threads)
    sizes = (20_000, 50_000) if settings.quick else (100_000, 1_000_000, 10_000_000)
    times, state = [], []
    for n_rows in sizes:
        rows = make_rows(n_rows)
        for booster in ("lightgbm", "xgboost"):
            data = _data_set(booster, rows, settings.threads)
            times.append(_time_row(booster, n_rows, data, settings))
            state.append(_state_row(booster, n_rows, data))
            del data
            gc.collect()
        del rows
    peer = f"{NATIVE['lightgbm']} / {NATIVE['xgboost']}"
    print_table(
        ["booster", "rows", "ours, ns per row and round", f"{peer}, ns", "ratio", "at most"], times
    )
    print_table(
        [
            "bytes per row of our own",
            "rows",
            "kept",
            "more during a call",
            "peak of the first call",
            "kept and call, of the process",
            "at most",
        ],
        state,
    )


def make_rows(n_rows: int, seed: int = 0) -> Rows:
    """Draw rows block by block, so that memory stays near that of the features."""
    rng = np.random.default_rng(seed)
    features = np.empty((n_rows, FEATURES), np.float32)
    labels = np.empty(n_rows, np.float32)
    for begin in range(0, n_rows, 1_000_000):
        block = rng.standard_normal((min(1_000_000, n_rows - begin), FEATURES), dtype=np.float32)
        signal = block[:, 0] + 0.5 * block[:, 1] + rng.standard_normal(len(block), np.float32)
        features[begin : begin + len(block)] = block
        labels[begin : begin + len(block)] = np.digitize(signal, [0.0, 1.3, 2.3, 3.3])
    return Rows(features, labels, np.full(n_rows // PER_QUERY, PER_QUERY))


def _data_set(booster: str, rows: Rows, threads: int) -> Any:
    if booster == "lightgbm":
        params = {"verbose": -1, "num_threads": threads}
        return lgb.Dataset(rows.features, rows.labels, group=rows.sizes, params=params).construct()
    return xgb.QuantileDMatrix(rows.features, rows.labels, group=rows.sizes, nthread=threads)


def _time_row(booster: str, n_rows: int, data: Any, settings: Settings) -> list[object]:
    step = {"lightgbm": _lightgbm_step, "xgboost": _xgboost_step}[booster]
    rounds = {name: step(data, name, settings.threads) for name in (OURS, NATIVE[booster])}
    times = interleave(rounds, settings.repeats(5 if n_rows > 2_000_000 else 15))
    ours, peer = times[OURS], times[NATIVE[booster]]
    ratio = f"{ours.min / peer.min:.2f} / {ours.median / peer.median:.2f}"
    return [booster, f"{n_rows:,}", _each(ours, n_rows), _each(peer, n_rows), ratio, MOST_RATIO]


def _each(times: Times, n_rows: int) -> str:
    return f"{1e9 * times.min / n_rows:.0f} / {1e9 * times.median / n_rows:.0f}"


def _lightgbm_step(data: Any, name: str, threads: int) -> Callable[[], object]:
    params = {"verbose": -1, "metric": "None", "num_leaves": 31, "num_threads": threads}
    if name != OURS:
        booster = lgb.Booster(params | {"objective": name}, data)
        return booster.update
    ours = gbmrank.objective(OURS)
    settings = gbmrank.booster_params(ours, "lightgbm")
    own = lgb.Booster(params | settings | {"objective": "none"}, data)
    return lambda: own.update(fobj=ours)


def _xgboost_step(data: Any, name: str, threads: int) -> Callable[[], object]:
    params: dict[str, Any] = {"max_leaves": 31, "max_depth": 0, "grow_policy": "lossguide"}
    params |= {"nthread": threads, "tree_method": "hist"}
    ours = gbmrank.objective(OURS) if name == OURS else None
    extra = gbmrank.booster_params(OURS, "xgboost") if name == OURS else {"objective": name}
    booster = xgb.Booster({**params, **extra}, [data])

    def step() -> None:
        booster.update(data, booster.num_boosted_rounds(), fobj=ours)

    return step


def _state_row(booster: str, n_rows: int, data: Any) -> list[object]:
    """Measure an objective that has not met this data set: what it keeps, and its peaks."""
    objective = gbmrank.objective(OURS, normalize="pairs")
    scores = np.zeros(n_rows, np.float64 if booster == "lightgbm" else np.float32)
    backend = booster_of(data)
    if backend is None:
        raise TypeError(f"not a data set of a booster: {type(data).__name__}")
    columns = backend.columns(data)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    objective(scores, data)
    kept, first = (value - before for value in tracemalloc.get_traced_memory())
    tracemalloc.reset_peak()
    objective(scores, data)
    later = tracemalloc.get_traced_memory()[1] - before - kept
    tracemalloc.stop()
    state, _ = state_of(data).bound_to(
        columns, objective, lambda data: in_training(objective.bind(data))
    )
    held = _held(state, set())
    process = _process_growth(lambda: objective(scores, data))
    return [
        booster,
        f"{n_rows:,}",
        f"{kept / n_rows:.1f} (arrays {held / n_rows:.1f})",
        f"{later / n_rows:.1f}",
        f"{first / n_rows:.1f}",
        f"{(kept / n_rows + process / n_rows):.1f}" if process is not None else "not known",
        MOST_BYTES,
    ]


def _held(value: Any, seen: set[int]) -> int:
    """Return the bytes of all arrays that an object leads to, each counted once."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        base = value if value.base is None else value.base
        if base is not value and id(base) in seen:
            return 0
        seen.add(id(base))
        return int(value.nbytes)
    if isinstance(value, dict):
        return sum(_held(item, seen) for item in value.values())
    if isinstance(value, list | tuple):
        return sum(_held(item, seen) for item in value)
    slots = [s for cls in type(value).__mro__ for s in getattr(cls, "__slots__", ())]
    names = [*slots, *getattr(value, "__dict__", {})]
    owned = type(value).__module__.startswith("gbmrank")
    return sum(_held(getattr(value, n, None), seen) for n in names) if owned else 0


def _process_growth(call: Callable[[], object]) -> int | None:
    """Return by how many bytes a call raises the process at its peak."""
    status, clear = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    try:
        ctypes.CDLL(None).malloc_trim(0)
        clear.write_text("5", encoding="ascii")
        before = _field(status, "VmRSS")
        call()
        return max(_field(status, "VmHWM") - before, 0)
    except (OSError, AttributeError):
        return None


def _field(status: Path, name: str) -> int:
    for line in status.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {name}")
