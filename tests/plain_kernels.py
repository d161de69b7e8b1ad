"""Kernels without the compiler: ``pytest -p tests.plain_kernels``.

Coverage and mutants see the lines of a kernel only when Python runs them. Loaded as a plugin
before anything of gbmrank, this switches the compiler off, runs templates from their own
files instead of from copies, and stands in for the functions that have no Python form. Without
paths, the tests of :mod:`tests.formulas` run.
"""

import os
import sys
from types import ModuleType
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"

from gbmrank.kernels.jit import compiler, decorators
from gbmrank.kernels.linear import vectors
from gbmrank.kernels.linear.interpolation import ORDER
from tests.formulas import FORMULAS


def _evaluate_four(powers: Any, offset: int, place: float) -> tuple[float, ...]:
    rows = powers.reshape(-1)[offset : offset + 4 * ORDER].reshape(ORDER, 4)
    return tuple(float(sum(c * place**m for m, c in enumerate(rows[:, i]))) for i in range(4))


def _add_chebyshev(moments: Any, offset: int, weight: float, place: float) -> None:
    row, before, here = moments.reshape(-1), 1.0, place
    for m in range(ORDER):
        row[offset + m] += weight * before
        before, here = here, 2.0 * place * here - before


def _add_product(matrix: Any, start: int, row: Any, out: Any) -> None:
    square = matrix.reshape(-1)[start : start + ORDER * ORDER].reshape(ORDER, ORDER)
    source = row[0].reshape(-1)[row[1] : row[1] + ORDER]
    out[0].reshape(-1)[out[1] : out[1] + ORDER] += source @ square


def _fill(template: str, slots: dict[str, Any]) -> ModuleType:
    path = compiler.template_path(template)
    module = ModuleType(f"gbmrank.kernels._filled.{template.replace('.', '_')}_{len(sys.modules)}")
    vars(module).update(slots)
    sys.modules[module.__name__] = module
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))  # noqa: S102
    return module


vars(decorators)["columns"] = lambda arrays: arrays
vars(vectors)["evaluate_four"] = _evaluate_four
vars(vectors)["add_chebyshev"] = _add_chebyshev
vars(vectors)["add_product"] = _add_product
vars(compiler)["_import_filled"] = _fill
vars(compiler)["check_compiles"] = lambda function: None


def pytest_configure(config: Any) -> None:
    """Machine arithmetic overflows without a word."""
    config.addinivalue_line("filterwarnings", "ignore::RuntimeWarning")
    if config.args_source is config.ArgsSource.TESTPATHS:
        config.args[:] = FORMULAS
