"""Compiled plugin losses on disk: found again, never leaked, never tied to a module that left."""

import json

import pytest

from tests.ranking_tasks import run_python

LOSS = """
from gbmrank.numerics import sigmoid, softplus

def mild(z, k=2.0):
    s = sigmoid(k * (1.0 - z))
    return softplus(k * (1.0 - z)) / k, -s, k * s * (1.0 - s)
"""
START = """
import json, os, pathlib, sys, time
sys.path.insert(0, {folder!r})
import gbmrank, {module}
gbmrank.register_loss({module}.mild)
begin = time.perf_counter()
made = gbmrank.objective("pointwise", loss="mild", target="dcg")
grad, hess = made.gradients([2, 0, 1], [0.0, 1.0, 0.5])
taken = time.perf_counter() - begin
folder = pathlib.Path(os.environ["GBMRANK_CACHE_DIR"])
found = [path for path in folder.rglob("*") if path.is_file()]
files = {{str(path.relative_to(folder)): path.stat().st_mtime_ns for path in found}}
print(json.dumps([grad.tolist(), files, taken]))
"""


def start(folder, module, cache):
    code = START.format(folder=str(folder), module=module)
    return json.loads(run_python(code, GBMRANK_CACHE_DIR=str(cache)))


@pytest.mark.nightly
def test_the_second_start_compiles_nothing_unless_the_loss_has_moved(tmp_path):
    (tmp_path / "mild_a.py").write_text(LOSS)
    first = start(tmp_path, "mild_a", tmp_path / "cache")
    second = start(tmp_path, "mild_a", tmp_path / "cache")
    assert first[:2] == second[:2]  # the same numbers, the same files, none written again
    assert second[2] < 0.7 * first[2]
    # The compiler's files import the module a function was compiled from.
    (tmp_path / "mild_a.py").rename(tmp_path / "mild_b.py")
    assert start(tmp_path, "mild_b", tmp_path / "cache")[0] == first[0]
