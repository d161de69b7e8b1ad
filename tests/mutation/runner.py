"""Run tests against a mutant, in a copy of the package and a process of its own.

The process is forked from one that has the heavy packages loaded and the compiler switched
off, so a mutant costs its tests and little more.
"""

import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.mutation.plan import SLOW

__all__ = ["Workspace", "preload"]

_COPIED = ("gbmrank", "tests", "pyproject.toml", "README.md")


def preload() -> None:
    """Import what every mutant needs and nothing of gbmrank."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    os.environ["GBMRANK_NUM_THREADS"] = "1"
    os.environ["GBMRANK_PLUGINS"] = "0"
    os.environ["HYPOTHESIS_PROFILE"] = "gbmrank"
    for package in ("numba.extending", "scipy.special", "pytest"):
        importlib.import_module(package)
    if any(name.split(".")[0] == "gbmrank" for name in sys.modules):
        raise SystemExit("gbmrank was imported before its mutants")


class Workspace:
    """A copy of the package and its tests in a temporary folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gbmrank-mutants-"))
        for name in _COPIED:
            if Path(name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(name, self.folder / name, ignore=ignored)
            else:
                shutil.copy(name, self.folder / name)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, tests: tuple[str, ...], deselected: tuple[str, ...], limit: float) -> str:
        """Return ``"passed"``, ``"failed"`` or ``"timeout"``."""
        arguments = ["-x", *tests, *(f"--deselect={name}" for name in deselected)]
        return self._forked(arguments, self.folder / "log", limit)

    def failing(self, tests: tuple[str, ...], limit: float) -> tuple[tuple[str, ...], float]:
        """Return the tests that fail in plain Python without a mutant, and the time of all."""
        begun = time.monotonic()
        log = self.folder / "log"
        slow = [f"--deselect={name}" for name in SLOW]
        ended = self._forked([*tests, *slow, "-rfE"], log, limit)
        words = [line.split() for line in log.read_text(errors="replace").splitlines()]
        names = [word[1] for word in words if len(word) > 1 and word[0] in ("FAILED", "ERROR")]
        if ended == "timeout":
            raise SystemExit(f"the tests {tests} take more than {limit:.0f} s without a mutant")
        seconds = time.monotonic() - begun
        broken = (*SLOW, *(name for name in names if "::" in name))
        if ended == "failed" and self.run(tests, broken, limit) != "passed":
            raise SystemExit(f"the tests {tests} fail without a mutant:\n{log.read_text()[-2000:]}")
        return broken, seconds

    def _forked(self, arguments: list[str], log: Path, limit: float) -> str:
        child = os.fork()
        if child == 0:
            _become_pytest(self.folder, arguments, log)
        return _wait(child, limit)


def _become_pytest(folder: Path, arguments: list[str], log: Path) -> None:
    code = 1
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        for name in [key for key in sys.modules if key.split(".")[0] == "tests"]:
            del sys.modules[name]
        sys.path.insert(0, str(folder))
        sys.dont_write_bytecode = True
        import pytest

        plugins = ["-p", "tests.plain_kernels", "-p", "no:cacheprovider"]
        code = int(pytest.main([*plugins, "--no-header", *arguments]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int, limit: float) -> str:
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "passed" if os.waitstatus_to_exitcode(status) == 0 else "failed"
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"
