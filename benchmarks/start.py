"""What a program pays once: the import, and the first gradient call.

Every figure is of a fresh process. *Cold*: the folder of compiled kernels is empty, as after
installation. *Warm*: another process has filled it.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import gbmrank
from benchmarks.settings import Settings
from benchmarks.timing import print_table

__all__ = ["run"]

_IMPORT = """
import time
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
"""
_FIRST_CALL = """
import time
import numpy as np
labels, scores = np.array([1.0, 0.0, 2.0]), np.zeros(3)
many, zeros = np.arange(5000) % 3.0, np.zeros(5000)
start = time.perf_counter()
import gbmrank
{call}
print(time.perf_counter() - start)
"""
_CALLS = {
    "gradients() of pairwise": "gbmrank.objective('pairwise').gradients(labels, scores)",
    "gradients() of pairwise, a plugin's loss": (
        "from benchmarks import plugin_losses; plugin_losses.register(); "
        "gbmrank.objective('pairwise', loss='plugin_hinge').gradients(labels, scores)"
    ),
    "pairwise as a booster calls it": "gbmrank.objective('pairwise')(labels, scores)",
    "ranknet": "gbmrank.objective('ranknet')(labels, scores)",
    "ranksvm": "gbmrank.objective('ranksvm')(labels, scores)",
    "push": "gbmrank.objective('push', threshold=1)(labels, scores)",
    "pointwise": "gbmrank.objective('pointwise')(labels, scores)",
    "softmax": "gbmrank.objective('softmax')(labels, scores)",
    "pairwise, one query of 5,000": "gbmrank.objective('pairwise')(many, zeros)",
    "ranknet, one query of 5,000": "gbmrank.objective('ranknet')(many, zeros)",
    "push, one query of 5,000": "gbmrank.objective('push', threshold=1)(many, zeros)",
    "score() of ndcg@10": "gbmrank.metric('ndcg@10').score(labels, scores)",
}


def run(settings: Settings) -> None:
    """Print import times, then first calls."""
    repeats = settings.repeats(10)
    _print_imports(repeats)
    print_table(
        ["import and first call, s", "cold", "warm, min / median"],
        [
            [name, *_first_call(_FIRST_CALL.format(call=call), repeats)]
            for name, call in _CALLS.items()
        ],
    )


def _print_imports(repeats: int) -> None:
    modules = ("numpy", "gbmrank", "numba", "lightgbm", "xgboost")
    seconds: dict[str, list[float]] = {module: [] for module in modules}
    for _ in range(repeats):
        for module in modules:
            seconds[module].append(_in_process(_IMPORT.format(module=module), os.environ))
    base = min(seconds["numpy"])
    print_table(
        ["import, s", "min / median", "min over numpy"],
        [[name, _summary(taken), f"{min(taken) - base:.3f}"] for name, taken in seconds.items()],
    )


def _first_call(code: str, repeats: int) -> tuple[str, str]:
    with tempfile.TemporaryDirectory(prefix="gbmrank-bench-") as folder:
        environment = {**os.environ, "GBMRANK_CACHE_DIR": folder}
        cold = _in_process(code, environment)
        warm = [_in_process(code, environment) for _ in range(repeats)]
    return f"{cold:.2f}", _summary(warm)


def _summary(seconds: Iterable[float]) -> str:
    taken = list(seconds)
    return f"{min(taken):.3f} / {statistics.median(taken):.3f}"


def _in_process(code: str, environment: "os._Environ[str] | dict[str, str]") -> float:
    """Run code in a fresh Python where this gbmrank lies; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=dict(environment),
        cwd=Path(gbmrank.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)
