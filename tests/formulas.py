"""Which tests need no compiler: formulas on small data, against loops and differences.

A pair of template and loss compiles for seconds, and in plain Python a composition takes
milliseconds. So ``make test`` runs these files with kernels as plain Python (``pytest -p
tests.plain_kernels -m formula``), with every composition, and compiles what is marked
``compiled``. ``pytest`` alone and ``make nightly`` compile all.
"""

import os
from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["FORMULAS", "PLAIN", "each"]

FORMULAS = (
    "tests/losses",
    "tests/metrics",
    "tests/mutation/test_formulas.py",
    "tests/plugins/test_docs.py",
    "tests/plugins/test_scaffold.py",
    "tests/objectives",
    "tests/precision/test_gradients.py",
    "tests/properties",
    "tests/kernels/test_decoders.py",
    "tests/testing",
    "tests/theory",
)
PLAIN = os.environ.get("NUMBA_DISABLE_JIT") == "1"
"""Whether kernels run as plain Python in this process."""


def each(number: int, values: Iterable[Any], start: int = 0) -> list[Any]:
    """Return parameters: each so many of the values at every change, and the others at night."""
    return [
        value if place % number == start else pytest.param(value, marks=pytest.mark.nightly)
        for place, value in enumerate(values)
    ]


if __name__ == "__main__":
    print(*FORMULAS)
