"""Equal data give equal bits, wherever the arrays lie."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.ranking_tasks import run_python

pytestmark = pytest.mark.nightly  # every kernel is compiled anew
BLOCKS = """
#include <stddef.h>
#include <stdint.h>
static uint64_t state = 0;
static int on = 0;
void vary_blocks(uint64_t seed) { state = seed * 0x9E3779B97F4A7C15ull + 1; on = seed != 0; }
static size_t extra(size_t n) {
    if (!on || n > (1u << 22)) return 0;
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return ((state >> 20) % 24) * 16;
}
extern void *__libc_malloc(size_t);
extern void *__libc_realloc(void *, size_t);
void *malloc(size_t n) { return __libc_malloc(n + extra(n)); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n + extra(n)); }
"""


def run_layouts(**environment):
    """Return what the program prints, however long it takes."""
    command = [sys.executable, "-m", "tests.kernels.layouts"]
    settings = {**os.environ, **environment}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def varied_blocks(tmp_path):
    """A library that varies the sizes of heap blocks, where it can be built; else nothing."""
    source, library = tmp_path / "blocks.c", tmp_path / "blocks.so"
    source.write_text(BLOCKS)
    compiler = shutil.which("cc")
    command = [str(compiler), "-shared", "-fPIC", "-O1", "-o", str(library), str(source)]
    if compiler is None or subprocess.run(command, check=False).returncode:
        return {}
    try:  # where the C library is another one, the program does not start
        run_python("import ctypes; ctypes.CDLL(None).vary_blocks", LD_PRELOAD=str(library))
    except AssertionError:
        return {}
    return {"LD_PRELOAD": str(library)}


def test_no_result_depends_on_where_arrays_lie(varied_blocks):
    assert run_layouts(LAYOUTS="40", **varied_blocks) == {}


def test_kernels_that_may_reorder_sums_do_not_choose_by_address(tmp_path):
    found = run_layouts(LAYOUTS="census", GBMRANK_CACHE_DIR=str(tmp_path))
    assert len(found) > 30  # of pairs, swaps and the callback, in two precisions
    assert {name: checks for name, checks in found.items() if checks} == {}
