"""What a program pays once: the import, and the first gradient call.

Every figure is of a fresh process, in processor seconds of it (user and system), which other
programs disturb little. *Cold*: the folder of compiled kernels is empty, as after installation.
*Warm*: another process has filled it. What cold takes longer is what was compiled. Python may keep
bytecode, as it does for an installed package, whatever ``PYTHONDONTWRITEBYTECODE`` says here.
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

_CLOCK = """
import resource
def clock():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
"""
_IMPORT = """
start = clock()
import {module}
print(clock() - start)
"""
_FIRST_CALL = """
import numpy as np
labels, scores = np.array([1.0, 0.0, 2.0]), np.zeros(3)
many, zeros = np.arange(5000) % 3.0, np.zeros(5000)
start = clock()
import gbmrank
{call}
print(clock() - start)
"""
_TRAIN = """
import lightgbm as lgb
import numpy as np
rng = np.random.default_rng(0)
sizes = [20] * 50 + {long}
rows = sum(sizes)
data = lgb.Dataset(
    rng.normal(size=(rows, 5)), rng.integers(0, 4, rows), group=sizes, params={{"verbose": -1}}
).construct()
start = clock()
import gbmrank
{before}
params = {{"objective": gbmrank.objective({objective}), "verbose": -1, "num_threads": 1}}
lgb.train(params, data, 2, valid_sets=[data], feval={feval})
print(clock() - start)
"""
_METRIC = "gbmrank.metric('ndcg@10')"
_PLUGIN = "from benchmarks import plugin_losses; plugin_losses.register()"
_TRAININGS = {
    "pairwise and ndcg@10": (("[]", "", "'pairwise'", _METRIC), 2.0),
    "the same, one query of 5,000": (("[5000]", "", "'pairwise'", _METRIC), 3.5),
    "pairwise with a plugin's loss": (
        ("[]", _PLUGIN, "'pairwise', loss='plugin_hinge'", "None"),
        1.5,
    ),
    "ranknet and map": (("[]", "", "'ranknet'", "gbmrank.metric('map(threshold=1)')"), None),
    "lambdarank and ndcg@10": (("[]", "", "'lambdarank'", _METRIC), None),
    "yetirank and ndcg@10": (("[]", "", "'yetirank'", _METRIC), None),
    "swap(metric=err@10) and ndcg@10": (("[]", "", "'swap(metric=err@10)'", _METRIC), None),
}
_CALLS = {
    "gradients() of pairwise": "gbmrank.objective('pairwise').gradients(labels, scores)",
    "pairwise as a booster calls it": "gbmrank.objective('pairwise')(labels, scores)",
    "ranknet": "gbmrank.objective('ranknet')(labels, scores)",
    "ranksvm": "gbmrank.objective('ranksvm')(labels, scores)",
    "push": "gbmrank.objective('push', threshold=1)(labels, scores)",
    "pointwise": "gbmrank.objective('pointwise')(labels, scores)",
    "softmax": "gbmrank.objective('softmax')(labels, scores)",
    "ranknet, one query of 5,000": "gbmrank.objective('ranknet')(many, zeros)",
    "push, one query of 5,000": "gbmrank.objective('push', threshold=1)(many, zeros)",
    "score() of ndcg@10": "gbmrank.metric('ndcg@10').score(labels, scores)",
}
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
_WARM_LIMIT = 0.5  # seconds from the import of gbmrank to the first gradient, after LightGBM's


def run(settings: Settings) -> None:
    """Print import times, trainings with what is promised, then first calls."""
    repeats = settings.repeats(5)
    _print_imports(repeats)
    rows = [
        [name, *_cold_and_warm(_training(*parts), repeats), "" if limit is None else f"{limit:.1f}"]
        for name, (parts, limit) in _TRAININGS.items()
    ]
    head = ["cold", "warm, min / median", "cold beyond warm", "at most"]
    print_table(["first lightgbm.train, CPU s", *head], rows)
    after = "import lightgbm\n" + _FIRST_CALL.format(call=_CALLS["pairwise as a booster calls it"])
    _, warm, _ = _cold_and_warm(after, repeats)
    print_table(
        ["warm start after import lightgbm, CPU s", "min / median", "at most"],
        [["import gbmrank to the first gradient", warm, _WARM_LIMIT]],
    )
    if not settings.quick:
        print_table(
            ["import and first call, CPU s", *head[:3]],
            [
                [name, *_cold_and_warm(_FIRST_CALL.format(call=call), repeats)]
                for name, call in _CALLS.items()
            ],
        )


def _training(long: str, before: str, objective: str, feval: str) -> str:
    return _TRAIN.format(long=long, before=before, objective=objective, feval=feval)


def _print_imports(repeats: int) -> None:
    modules = ("numpy", "gbmrank", "numba", "lightgbm", "xgboost")
    seconds: dict[str, list[float]] = {module: [] for module in modules}
    for _ in range(repeats):
        for module in modules:
            seconds[module].append(_in_process(_IMPORT.format(module=module), os.environ))
    base = min(seconds["numpy"])
    print_table(
        ["import, CPU s", "min / median", "min over numpy"],
        [[name, _summary(taken), f"{min(taken) - base:.3f}"] for name, taken in seconds.items()],
    )


def _cold_and_warm(code: str, repeats: int) -> tuple[str, str, str]:
    """Return the least of a few cold starts, the warm ones, and the difference of the least."""
    cold, warm = [], []
    for _ in range(min(repeats, 3)):
        with tempfile.TemporaryDirectory(prefix="gbmrank-bench-") as folder:
            environment = {**os.environ, "GBMRANK_CACHE_DIR": folder}
            cold.append(_in_process(code, environment))
            warm += [_in_process(code, environment) for _ in range(max(repeats // 3, 1))]
    return f"{min(cold):.2f}", _summary(warm), f"{min(cold) - min(warm):.2f}"


def _summary(seconds: Iterable[float]) -> str:
    taken = list(seconds)
    return f"{min(taken):.3f} / {statistics.median(taken):.3f}"


def _in_process(code: str, environment: "os._Environ[str] | dict[str, str]") -> float:
    """Run code in a fresh Python where this gbmrank lies; return what it prints."""
    kept = {name: value for name, value in environment.items() if name != _NO_BYTECODE}
    done = subprocess.run(
        [sys.executable, "-c", _CLOCK + code],
        env=kept,
        cwd=Path(gbmrank.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])
