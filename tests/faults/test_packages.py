"""Packages that are not installed, or too old."""

import pytest

from tests.faults.interfaces import BACKENDS
from tests.formulas import each
from tests.ranking_tasks import run_python

HIDDEN = """
import sys
for name in {hidden}:
    sys.modules[name] = None  # what importing it gives where it is not installed
import gbmrank
try:
    {use}
except ImportError as error:
    print(type(error).__name__, error)
"""
FIT = "gbmrank.GBMRanker('ranknet', {!r}).fit([[1.0], [2.0]], [0, 1], qid=[1, 1])"


@pytest.mark.fault(
    "a booster that is not installed", promise="`MissingBackendError` with the command to install"
)
@pytest.mark.parametrize("backend", each(2, BACKENDS))
def test_a_booster_that_is_not_there(backend):
    told = run_python(HIDDEN.format(hidden=[backend], use=FIT.format(backend)))
    assert told.startswith(f"MissingBackendError backend={backend} needs {backend}")
    assert told.endswith(f"pip install 'gbmrank[{backend}]'")


@pytest.mark.fault(
    "a booster that is too old", promise="`MissingBackendError` with both versions and the command"
)
@pytest.mark.parametrize(
    ("backend", "old", "least"), [("lightgbm", "4.5.0", "4.6"), ("xgboost", "3.0.5", "3.1")]
)
def test_a_booster_that_is_too_old(tmp_path, backend, old, least):
    (tmp_path / f"{backend}.py").write_text(f"__version__ = {old!r}\n")
    code = HIDDEN.format(hidden=[], use=FIT.format(backend))
    told = run_python(code, PYTHONPATH=str(tmp_path))
    assert told == (
        f"MissingBackendError backend={backend} needs {backend} {least} or later, but {old} is "
        f"installed: pip install '{backend}>={least}'"
    )


@pytest.mark.fault(
    "an optional package that is not installed",
    promise="`MissingPackageError` with the extra to install, when it is needed and not before",
)
def test_an_optional_package_that_is_not_there():
    hidden = ["dask", "distributed", "matplotlib", "pandas", "sklearn", "jinja2", "pyarrow"]
    told = run_python(HIDDEN.format(hidden=hidden, use="gbmrank.DaskGBMRanker"))
    assert told.startswith("MissingPackageError")
    assert "pip install 'gbmrank[" in told
