"""One gradient call as a booster makes it: where its time goes, and its memory."""

import ctypes
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import gbmrank
from benchmarks.data import RankingSample, mslr_like, one_query
from benchmarks.settings import Settings
from benchmarks.timing import Times, interleave, print_table
from gbmrank.boosters.gradients import in_training, read_scores
from gbmrank.boosters.supported import booster_of
from gbmrank.kernels.jit import compiler

OURS = "pairwise(loss=logistic, target=dcg)"
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def run(settings: Settings) -> None:
    """Print the parts of a call in both boosters, then memory."""
    gbmrank.set_num_threads(settings.threads)
    sample = mslr_like(100 if settings.quick else 2000, n_features=20)
    objective = gbmrank.objective(OURS)
    print(f"\n{OURS} on {sample}")
    parts = {
        name: interleave(_parts(objective, scores, data), settings.repeats(100))
        for name, scores, data in _calls(sample)
    }
    print_table(
        ["ms per call, min / median", *parts],
        [[part, *(times[part] for times in parts.values())] for part in _first(parts)],
    )
    long = one_query(2_000 if settings.quick else 20_000)
    print_table(
        ["extra memory of one call, at the peak", "rows", "MB of arrays", "MB of the process"],
        [_memory(objective, "many queries", sample), _memory(objective, "one query", long)],
    )


def _first(parts: dict[str, dict[str, Times]]) -> dict[str, Times]:
    return next(iter(parts.values()))


def _calls(sample: RankingSample) -> tuple[tuple[str, Any, Any], ...]:
    """Return scores and data set as each booster passes them."""
    columns = {"label": sample.labels, "group": sample.sizes}
    light = lgb.Dataset(sample.features, params={"verbose": -1}, **columns).construct()
    extreme = xgb.QuantileDMatrix(sample.features, **columns)
    return (
        ("LightGBM", sample.scores, light),
        ("XGBoost", sample.scores.astype(np.float32), extreme),
    )


def _parts(objective: Any, preds: Any, data: Any) -> dict[str, Callable[[], object]]:
    backend = booster_of(data)
    if backend is None:
        raise TypeError(f"not a data set of a booster: {type(data).__name__}")
    columns = backend.columns(data)
    state = in_training(objective.bind(columns.to_data()))
    bound, tied = state.bound, state.tied_curvature
    scores = read_scores(preds, bound.groups)
    grad, hess = bound.gradients(scores, np.float32, single=True)
    finish = compiler.load("scores").finish
    return {
        "whole call": lambda: objective(preds, data),
        "- columns from the booster": lambda: backend.columns(data),
        "- fingerprint of the columns": columns.fingerprint,
        "- scores to float64, checked": lambda: read_scores(preds, bound.groups),
        "- all pairs, in float32": lambda: bound.gradients(scores, np.float32, single=True),
        "- floor and check": lambda: finish(grad, hess, bound.groups.offsets, tied, (1e-3, 1e-10)),
        "all pairs in float64": lambda: bound.gradients(scores),
        "labels bound to the data": lambda: objective.bind(columns.to_data()),
    }


def _memory(objective: Any, name: str, sample: RankingSample) -> list[object]:
    _, scores, data = _calls(sample)[0]
    objective(scores, data)
    tracemalloc.start()
    objective(scores, data)
    arrays = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return [
        name,
        f"{len(scores):,}",
        f"{arrays / 1e6:.1f}",
        _process_peak(lambda: objective(scores, data)),
    ]


def _process_peak(call: Callable[[], object]) -> str:
    """Return how far a call raises the memory of the process, buffers of kernels included."""
    try:
        ctypes.CDLL(None).malloc_trim(0)  # free memory that is kept would hide what a call takes
        _CLEAR.write_text("5", encoding="ascii")  # forget the peak so far
        before = _kilobytes("VmRSS")
    except (OSError, AttributeError):
        return "not known"
    call()
    return f"{max(_kilobytes('VmHWM') - before, 0) * 1024 / 1e6:.1f}"


def _kilobytes(field: str) -> int:
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise OSError(f"no {field} in {_STATUS}")
