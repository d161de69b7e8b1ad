"""Which compositions run at every change, and on which worker.

Every pair of template and loss compiles kernels of its own. The pair templates share the
loss functions, so all losses run in ``pairwise`` and a few in the others; the rest of the
product is marked ``nightly``. Tests of one composition stay on one worker, so that its
kernels compile once.
"""

import re
from typing import Any

import pytest

EVERY_TIME = ("logistic", "exponential", "hinge", "asymmetric_a", "brier_sigmoid")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        if "tests/objectives" not in item.path.as_posix():
            continue
        callspec = getattr(item, "callspec", None)
        parameters = {} if callspec is None else callspec.params
        parts = [str(parameters[key]) for key in ("text", "spec", "loss") if key in parameters]
        if parts:
            name = parts[0].partition(", target")[0].partition(", hessian")[0]
            item.add_marker(pytest.mark.xdist_group(name=name))
            if _is_nightly(parts[0]):
                item.add_marker(pytest.mark.nightly)


def _is_nightly(text: str) -> bool:
    found = re.match(r"(comparison|bipartite|push)\(loss=(\w+)", text)
    return found is not None and found[2] not in EVERY_TIME
