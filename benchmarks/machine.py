"""The machine and the versions that a table was made with."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.settings import Settings

_PACKAGES = ("gbmrank", "numpy", "numba", "lightgbm", "xgboost")


def print_machine(settings: Settings) -> None:
    """Print what absolute times depend on."""
    print(versions())
    print(
        f"{_cpu_model()}, {len(os.sched_getaffinity(0))} processors, {settings.threads} threads "
        f"for everybody, OMP_WAIT_POLICY={os.environ.get('OMP_WAIT_POLICY', '(not set)')}, "
        f"load {os.getloadavg()[0]:.1f} before the start"
    )
    print("Variants take turns in one process. Read the ratios; times are of this machine alone.")
    print("Median far above min means that other programs were running.")
    if settings.quick:
        print("Smoke run on small data: it shows that the benchmarks work, and no figure counts.")


def versions(*more: str) -> str:
    """Return the versions of what is measured, and of more packages, as one line."""
    packages = ", ".join(f"{name} {_version(name)}" for name in (*_PACKAGES, *more))
    return f"Python {platform.python_version()}, {packages}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
