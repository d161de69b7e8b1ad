"""The machine and the versions that a table was made with."""

import os
import platform
from pathlib import Path

from benchmarks.settings import Settings
from studies.report import used_versions


def print_machine(settings: Settings) -> None:
    """Print what absolute times depend on."""
    print(used_versions())
    print(
        f"{_cpu_model()}, {len(os.sched_getaffinity(0))} processors, {settings.threads} threads "
        f"for everybody, OMP_WAIT_POLICY={os.environ.get('OMP_WAIT_POLICY', '(not set)')}, "
        f"load {os.getloadavg()[0]:.1f} before the start"
    )
    print("Variants take turns in one process. Read the ratios; times are of this machine alone.")
    print("Median far above min means that other programs were running.")
    if settings.quick:
        print("Smoke run on small data: it shows that the benchmarks work, and no figure counts.")


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
