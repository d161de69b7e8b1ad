"""Distributions on the path without an installer: a module and a folder of metadata."""

import hashlib
import importlib
import sys
import textwrap

import pytest

from gbmrank.registry import LOSSES, METRICS, OBJECTIVES, UTILITIES

REGISTRIES = (LOSSES, METRICS, OBJECTIVES, UTILITIES)


def forget_plugins():
    for registry in REGISTRIES:
        registry.refresh()


class Shelf:
    """A folder on the path that takes distributions."""

    def __init__(self, folder):
        self.folder, self.modules = folder, []

    def add(self, distribution, source, **groups):
        """Write a distribution; ``losses={"name": "attribute"}`` are its entry points.

        Its module is named by its text, so that kernels are compiled once for all tests.
        """
        digest = hashlib.sha256(source.encode()).hexdigest()[:12]
        module = f"fake_{distribution.replace('-', '_')}_{digest}"
        self.modules.append(module)
        (self.folder / f"{module}.py").write_text(textwrap.dedent(source))
        info = self.folder / f"{distribution.replace('-', '_')}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n"
        )
        lines = []
        for group, points in groups.items():
            lines.append(f"[gbmrank.{group}]")
            lines += [f"{name} = {module}:{attribute}" for name, attribute in points.items()]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        importlib.invalidate_caches()  # folders are listed once a second
        forget_plugins()
        return module


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """Put a shelf on the path, and forget all that was on it afterwards."""
    monkeypatch.delenv("GBMRANK_PLUGINS", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Shelf(tmp_path)
    yield made
    for module in made.modules:
        sys.modules.pop(module, None)
    monkeypatch.undo()
    forget_plugins()
