"""Templates filled with functions: on disk once, never mixed up, wherever they can be kept."""

import errno
import gc
import hashlib
import json
import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core import typed_passes, untyped_passes
from numba.core.errors import TypingError

from gbmrank.errors import GbmrankWarning
from gbmrank.kernels.jit import cache, compiler, decorators
from gbmrank.kernels.jit.decorators import entry
from gbmrank.kernels.scores import middle_and_range
from tests.ranking_tasks import run_python

START = """
import json, pathlib, os, gbmrank
obj = gbmrank.objective('pairwise(target=dcg)')
grad, hess = obj.gradients([2, 0, 1], [0.0, 1.0, 0.5])
value = obj.loss([2, 0, 1], [0.0, 1.0, 0.5])
obj(__import__('numpy').array([2.0, 0.0]), __import__('numpy').zeros(2))
folder = pathlib.Path(os.environ['GBMRANK_CACHE_DIR'])
files = {str(p.relative_to(folder)): p.stat().st_mtime_ns for p in folder.rglob('*') if p.is_file()}
print(json.dumps([grad.tolist(), hess.tolist(), value, files]))
"""


def test_the_second_start_compiles_nothing(tmp_path):
    first = json.loads(run_python(START, GBMRANK_CACHE_DIR=str(tmp_path)))
    second = json.loads(run_python(START, GBMRANK_CACHE_DIR=str(tmp_path)))
    assert second == first  # the same numbers, the same files, none written again
    names = [Path(name).suffix for name in first[3]]
    assert set(names) == {".kernel"}  # nothing half written, no source that could be run
    assert len(names) >= 3  # of the pairs and the callback


LOSS = """
import numpy as np

FACTOR = {factor}
TABLE = np.array([0.0] * 2_000 + [{entry}] + [0.0] * 2_000)

def helper(z):
    return {helper} * z

def phi(z):
    return FACTOR * helper(z) + TABLE[2_000] + {constant}, 0.0, 0.0
"""
PARTS = {"factor": 1.0, "entry": 2.0, "helper": 3.0, "constant": 4.0}


def parts_of(function):
    return b"".join(map(compiler._bytes_of, compiler._reached(function, set())))


def parts_with(**changes):
    module: dict = {}
    exec(LOSS.format(**{**PARTS, **changes}), module)  # noqa: S102  (as a plugin's module would)
    return parts_of(module["phi"])


def test_the_same_source_gives_the_same_file_in_every_process():
    code = LOSS.format(**PARTS) + (
        "import hashlib; from gbmrank.kernels.jit import compiler; "
        "parts = map(compiler._bytes_of, compiler._reached(phi, set())); "
        "print(hashlib.sha256(b''.join(parts)).hexdigest())"
    )
    here = hashlib.sha256(parts_with()).hexdigest()
    assert run_python(code, PYTHONHASHSEED="1") == here
    assert run_python(code, PYTHONHASHSEED="2") == here


@pytest.mark.parametrize("part", PARTS)
def test_everything_the_machine_code_depends_on_changes_the_file(part):
    assert parts_with() == parts_with()
    assert parts_with(**{part: 9.0}) != parts_with()


def make_loss(factor):
    def phi(z):
        return factor * z, factor, 0.0

    return phi


def file_of(phi):
    return compiler.load("test_template", phi=phi).__name__


DECORATED = "from gbmrank.kernels.jit.decorators import entry\n\n\n@entry\ndef value(z):\n"


@pytest.fixture
def template(tmp_path, monkeypatch):
    """A template of one line, in a folder of its own."""
    source = tmp_path / "sources"
    source.mkdir()
    (source / "test_template.py").write_text(DECORATED + "    return phi(z)[0]\n")
    (tmp_path / "numerics.py").write_text("")
    monkeypatch.setattr(compiler, "SOURCES", source)
    monkeypatch.setattr(cache, "_warned", False)
    monkeypatch.setenv("GBMRANK_CACHE_DIR", str(tmp_path / "cache"))
    cache.sources_digest.cache_clear()
    yield tmp_path
    cache.sources_digest.cache_clear()
    for key in [key for key in compiler._loaded if key[0] == "test_template"]:
        del compiler._loaded[key]


def test_templates_lie_in_folders_and_each_counts_for_the_cache(template):
    folder = template / "sources" / "inner"
    folder.mkdir()
    text = DECORATED + "    return 7.0 * z\n"
    (folder / "deep.py").write_text(text)
    cache.sources_digest.cache_clear()
    before = cache.sources_digest()
    assert compiler.load("inner.deep").value(2.0) == 14.0
    (folder / "deep.py").write_text(text.replace("7.0", "8.0"))
    cache.sources_digest.cache_clear()
    assert cache.sources_digest() != before
    compiler._loaded.pop(("inner.deep", ()))
    assert compiler.load("inner.deep").value(2.0) == 16.0
    compiler._loaded.pop(("inner.deep", ()))


def test_every_kernel_source_counts_for_the_cache():
    root = compiler.SOURCES
    assert (root.name, (root.parent / "numerics.py").is_file()) == ("kernels", True)
    assert compiler.template_path("linear.engine").is_file()


def test_a_template_without_decorators_has_no_plain_form(template):
    (template / "sources" / "bare.py").write_text("def value(z):\n    return z\n")
    with pytest.raises(ImportError, match="bare"):
        compiler._import_plain("bare", "bare_0", {})


def test_losses_with_the_same_code_and_other_constants_do_not_collide(template):
    two, three = make_loss(2.0), make_loss(3.0)
    first = compiler.load("test_template", phi=two)
    second = compiler.load("test_template", phi=three)
    assert first.__name__ != second.__name__
    assert (first.value(5.0), second.value(5.0)) == (10.0, 15.0)


def test_the_same_loss_defined_again_uses_the_same_file(template):
    assert file_of(make_loss(2.0)) == file_of(make_loss(2.0))


def test_the_same_function_is_loaded_once(template):
    phi = make_loss(2.0)
    assert compiler.load("test_template", phi=phi) is compiler.load("test_template", phi=phi)


def test_constants_of_other_modules_count(monkeypatch):
    def phi(z):
        return math.tau * z, 0.0, 0.0

    before = parts_of(phi)
    assert parts_of(phi) == before
    monkeypatch.setattr(math, "tau", 6.0)
    assert parts_of(phi) != before


SCALE = 1.0


def test_globals_used_by_functions_inside_count(monkeypatch):
    def outer(z):
        def inner(x):
            return SCALE * x

        return inner(z), 0.0, 0.0

    before = parts_of(outer)
    monkeypatch.setitem(outer.__globals__, "SCALE", 2.0)
    assert parts_of(outer) != before


def test_defaults_of_keyword_arguments_count():
    def make(factor):
        def phi(z, *, scale=factor):
            return scale * z, 0.0, 0.0

        return phi

    assert parts_of(make(1.0)) == parts_of(make(1.0))
    assert parts_of(make(1.0)) != parts_of(make(2.0))


def folder_of_version():
    folder = cache.cache_folder()
    assert folder is not None
    return folder


def started_anew(factor):
    """The value at 2 as another process would compute it: nothing in memory, all on disk."""
    for key in [key for key in compiler._loaded if key[0] == "test_template"]:
        del compiler._loaded[key]
    return compiler.load("test_template", phi=make_loss(factor)).value(2.0)


def kernel_file(template):
    (path,) = template.rglob("*.kernel")
    return path


def test_a_folder_that_cannot_be_written_keeps_kernels_in_memory(template, monkeypatch):
    blocked = template / "a_file"
    blocked.write_text("")
    monkeypatch.setenv("GBMRANK_CACHE_DIR", str(blocked))
    with pytest.warns(GbmrankWarning, match=r"a_file.*memory"):
        assert started_anew(7.0) == 14.0
    assert started_anew(8.0) == 16.0  # without another warning, which would be an error


def test_a_user_without_a_home_keeps_kernels_in_memory(template, monkeypatch):
    monkeypatch.delenv("GBMRANK_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.warns(GbmrankWarning, match="home"):
        assert cache.cache_folder() is None


def test_a_full_disk_keeps_kernels_in_memory(template, monkeypatch):
    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(GbmrankWarning, match="No space left"):
        assert started_anew(7.0) == 14.0
    assert started_anew(8.0) == 16.0
    assert not [path for path in (template / "cache").rglob("*") if path.is_file()]


def test_a_kernel_of_another_process_is_found(template, monkeypatch):
    assert started_anew(7.0) == 14.0
    written = kernel_file(template).stat().st_mtime_ns
    monkeypatch.setattr(cache, "_write", None)  # nothing is compiled, so nothing is written
    assert started_anew(7.0) == 14.0
    assert kernel_file(template).stat().st_mtime_ns == written


@pytest.mark.parametrize("damage", ["flipped", "short", "empty", "another's"])
def test_a_damaged_kernel_is_compiled_and_written_again(template, damage):
    assert started_anew(7.0) == 14.0
    path = kernel_file(template)
    whole = path.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    other = whole
    if damage == "another's":
        path.unlink()
        assert started_anew(8.0) == 16.0
        other = kernel_file(template).read_bytes()
    path.write_bytes({"flipped": flipped, "short": whole[:-9], "empty": b""}.get(damage, other))
    with pytest.warns(GbmrankWarning, match="damaged"):
        assert started_anew(7.0) == 14.0
    assert started_anew(7.0) == 14.0  # without another warning


def make_foreign(path):
    os.chown(path, 12345, -1)


def make_writable(path):
    path.chmod(path.stat().st_mode | 0o020)


@pytest.mark.parametrize("whole_folder", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            make_foreign, marks=pytest.mark.skipif(os.geteuid() != 0, reason="root may give away")
        ),
        make_writable,
    ],
)
def test_nothing_is_executed_that_another_user_could_have_written(template, change, whole_folder):
    assert started_anew(7.0) == 14.0
    path = kernel_file(template)
    change(path.parent if whole_folder else path)
    with pytest.warns(GbmrankWarning, match="12345" if change is make_foreign else "other users"):
        assert cache._read(path.name) is None if whole_folder else started_anew(7.0) == 14.0


@pytest.mark.parametrize("mask", [0, 0o077, 0o777])
def test_the_folder_is_the_user_s_alone_whatever_the_umask(template, mask):
    (template / "cache").mkdir()
    before = os.umask(mask)
    try:
        assert started_anew(7.0) == 14.0
    finally:
        os.umask(before)
    path = kernel_file(template)
    assert path.stat().st_mode & 0o077 == 0
    assert [folder.stat().st_mode & 0o777 for folder in path.parents[:2]] == [0o700, 0o700]


def test_a_long_compilation_is_reported_once(caplog, capsys, monkeypatch):
    caplog.set_level("INFO", "gbmrank")
    monkeypatch.setattr(cache, "_pending", [])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    cache.report("one", 0.3)
    assert not caplog.records
    cache.report("two", 0.4)
    cache.report("three", 0.4)
    (record,) = caplog.records
    folder = str(cache.cache_folder())
    assert all(fact in record.message for fact in ("one, two", "0.7 s", folder, "gbmrank warm"))
    assert capsys.readouterr().err == f"{record.message}\n"
    monkeypatch.setenv("GBMRANK_QUIET", "1")
    cache.report("four", 0.4)
    assert len(caplog.records) == 2
    assert capsys.readouterr().err == ""


def test_the_cache_is_where_the_environment_says(template, monkeypatch):
    monkeypatch.delenv("GBMRANK_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(template / "xdg"))
    assert folder_of_version().parent == template / "xdg" / "gbmrank"


def test_changed_kernel_sources_move_to_another_folder(template):
    before = cache.cache_folder()
    compiler.template_path("test_template").write_text("# other\n")
    cache.sources_digest.cache_clear()
    assert cache.cache_folder() != before


def test_folders_of_old_versions_are_removed_after_a_month(template):
    parent = folder_of_version().parent
    old, recent = parent / "kernels-old", parent / "kernels-recent"
    for folder in (old, recent):
        folder.mkdir()
    month_ago = os.stat(recent).st_mtime - 40 * 86_400
    os.utime(old, (month_ago, month_ago))
    assert compiler.load("test_template", phi=make_loss(11.0)).value(2.0) == 22.0
    assert not old.exists()
    assert recent.exists()


FROM_EXEC = """
source = '''
import gbmrank
from gbmrank.numerics import softplus, sigmoid

@gbmrank.register_loss
def pasted(z):
    p = sigmoid(-z)
    return softplus(-z), -p, p * (1.0 - p)
'''
exec(source, {"__name__": "pasted_from_nowhere"})
exec(source.replace("pasted", "without_a_name"), {})
import gbmrank
for loss in ("pasted", "without_a_name", "logistic"):
    made = gbmrank.objective("pointwise", loss=loss, target="dcg")
    print(made.gradients([1, 0], [0.0, 0.0])[0].tolist())
"""


@pytest.mark.nightly
def test_code_without_a_module_is_compiled_anew_and_leaves_nothing(tmp_path):
    for _ in range(2):
        shown = run_python(
            FROM_EXEC, GBMRANK_CACHE_DIR=str(tmp_path / "kernels"), TMPDIR=str(tmp_path)
        ).splitlines()
        assert len(shown) == 3
        assert len(set(shown)) == 1
        assert len({path.name[:30] for path in tmp_path.rglob("closed_lists_*")}) == 1  # logistic


def test_python_may_call_what_kernels_call():
    assert middle_and_range(np.array([1.0, 4.0, -2.0])) == (1.0, 6.0)


NARROWEST = 8


def _until(n):
    width = NARROWEST  # a constant first, then a number that changes
    while width < n:
        width *= 2
    return width


def _half(values):
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    values = 0.5  # an array first, then a number
    return values * total


def _impossible(n):
    return n + "a text"


def test_a_name_may_have_two_types():
    assert entry(_until)(100) == _until(100) == 128
    assert entry(_half)(np.arange(5.0)) == _half(np.arange(5.0)) == 5.0


def test_a_failed_compilation_leaves_the_collector_on():
    with pytest.raises(TypingError, match="unicode"):
        entry(_impossible)(1)
    assert gc.isenabled()


def test_passes_that_are_left_out_are_numba_s():
    assert set(decorators.IDLE) < {*vars(typed_passes), *vars(untyped_passes)}


WITHOUT_PRIVATE = """
import builtins, json, warnings
real = builtins.__import__

def ours(name, space=None, *rest):
    if name.startswith("numba.core") and str((space or {}).get("__name__")).startswith("gbmrank"):
        raise ImportError(name)
    return real(name, space, *rest)

if BLOCKED:
    builtins.__import__ = ours
    warnings.simplefilter("ignore")
import numpy as np
import gbmrank
from gbmrank.kernels.jit import cache
rng = np.random.default_rng(0)
sizes = np.array([9, 30, 4])
labels, scores = rng.integers(0, 5, 43).astype(float), rng.normal(size=43)
found = {}
for text in ("pairwise", "pairwise(loss=squared_hinge)", "softmax", "lambdarank", "listmle"):
    made = gbmrank.objective(text)
    grad, hess = made.gradients(labels, scores, group=sizes)
    found[text] = [*grad, *hess, *made.loss(labels, scores, group=sizes, per_query=True)]
for text in ("ndcg@10", "err"):
    found[text] = list(gbmrank.metric(text).per_query(labels, scores.round(), group=sizes))
print(json.dumps([cache.CompileResult is None, found]))
"""


def test_results_need_nothing_private_of_numba(tmp_path):
    """Only the time of a first start does; what is fused may differ, and with it late digits."""
    (blocked, plain), (usual, ours) = (
        json.loads(
            run_python(f"BLOCKED = {block}\n{WITHOUT_PRIVATE}", GBMRANK_CACHE_DIR=str(tmp_path))
        )
        for block in (True, False)
    )
    assert (blocked, usual) == (True, False)
    for text, values in plain.items():
        np.testing.assert_allclose(values, ours[text], rtol=1e-12, atol=1e-13)
