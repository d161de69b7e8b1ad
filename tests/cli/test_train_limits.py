"""Training from files in a process with a limit."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

resource = pytest.importorskip("resource", reason="limits of a process need a POSIX system")
MEMORY = 790_000_000
LIMITED = """
import resource, sys
resource.setrlimit(getattr(resource, sys.argv[1]), (int(sys.argv[2]),) * 2)
from gbmrank.cli import main
sys.exit(main(sys.argv[3:]))
"""


def limited(name, limit, *given):
    """Run ``gbmrank`` in a process with a limit."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX"), "1")
    return subprocess.run(
        [sys.executable, "-c", LIMITED, name, str(limit), *map(str, given)],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, **one},
    )


def memory_is_limited():
    """Whether a process that takes more than its limit fails."""
    code = f"import resource\nresource.setrlimit(resource.RLIMIT_DATA, ({MEMORY},) * 2)\n"
    more = f"bytearray({MEMORY})"
    done = subprocess.run([sys.executable, "-c", code + more], capture_output=True, check=False)
    return done.returncode != 0


def write_rows(folder, n_rows, width):
    """Write rows in parts, never all of them in memory; they are small on disk."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    folder.mkdir()
    names, part = [f"f{at}" for at in range(width)], 50_000
    for first in range(0, n_rows, part):
        rows = rng.integers(0, 200, (part, width)) / 8.0
        label = np.clip((rows[:, 0] + rows[:, 1]) // 12.0, 0, 4)
        qid = np.arange(first, first + part) // 50
        columns = {name: rows[:, at] for at, name in enumerate(names)}
        table = pa.table({"label": label, "qid": qid, **columns})
        pq.write_table(table, folder / f"{first:09}.parquet", row_group_size=10_000)
    return n_rows * (width + 2) * 8


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the data of a process")
def test_rows_three_times_as_large_as_the_memory(tmp_path):
    """Less than a third of the data would fit, and libraries take nearly half of the limit."""
    if not memory_is_limited():
        pytest.skip("the memory of a process cannot be limited here")
    assert write_rows(tmp_path / "rows", 3_000_000, 100) > 3 * MEMORY
    given = ["train", tmp_path / "rows", "--backend", "xgboost", "--rounds", 2, "--checkpoint", 1]
    given += ["--threads", 1, "--json", "--param=subsample=0.7"]
    out = tmp_path / "model.ubj"
    done = limited("RLIMIT_DATA", MEMORY, *given, "--out", out)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounds"] == 2
    assert out.exists()
