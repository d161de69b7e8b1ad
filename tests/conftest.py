"""What every test shares."""

import os
import signal
import tempfile
from typing import Any

import pytest
from hypothesis import settings

from tests.formulas import FORMULAS

# Modules are searched for doctests, and importing this one switches the compiler off.
collect_ignore = ["plain_kernels.py"]

settings.register_profile("gbmrank", deadline=None, max_examples=24, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=200, derandomize=True)
settings.register_profile(  # make fuzz
    "fuzz",
    deadline=None,
    max_examples=int(os.environ.get("GBMRANK_FUZZ_EXAMPLES", "2000")),
    print_blob=True,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gbmrank"))

# Jobs in the background ignore SIGINT, and so would the processes that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Installed plugins have tests of their own.
os.environ.setdefault("GBMRANK_PLUGINS", "0")
# Two test workers with two booster threads each would spend their time waiting.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Kernels compiled by tests stay out of the user's cache, and are kept between runs.
os.environ.setdefault("GBMRANK_CACHE_DIR", f"{tempfile.gettempdir()}/gbmrank-tests-{os.getuid()}")


# Nearly all of their work is in processes that they start, so they can fill any gap.
SPREAD = ("tests/cli/test_streams.py", "tests/experiments/test_pool.py")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Mark formulas."""
    for item in items:
        if item.nodeid.startswith(FORMULAS) and item.get_closest_marker("compiled") is None:
            item.add_marker(pytest.mark.formula)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    """With ``--dist loadfile``: a file stays on one worker, which compiles and trains it once."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling

    made: Any = LoadScopeScheduling(config, log)
    made._split_scope = _worker_of
    return made


def _worker_of(nodeid: str) -> str:
    """Name what stays together."""
    file = nodeid.partition("::")[0]
    if file in SPREAD:
        return nodeid
    return "tests/dask" if file.startswith("tests/dask") else file  # one cluster


@pytest.fixture(autouse=True)
def default_threads():
    """Undo what a test does to the number of threads."""
    from gbmrank.kernels.jit import threads

    yield
    threads.set_num_threads(None)


@pytest.fixture(autouse=True)
def registered_names():
    """Undo what a test registers, so that no later message suggests its names."""
    from gbmrank.registry import LOSSES, METRICS, OBJECTIVES, UTILITIES

    tables: list[dict[str, Any]] = [
        table
        for registry in (LOSSES, UTILITIES, OBJECTIVES, METRICS)
        for table in (registry._own, registry._aliases)
    ]
    before = [dict(table) for table in tables]
    yield
    for table, content in zip(tables, before, strict=True):
        table.clear()
        table.update(content)
