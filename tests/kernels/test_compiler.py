"""Templates filled with functions: on disk once, never mixed up, wherever they can be kept."""

import hashlib
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from gbmrank.kernels.jit import compiler
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
    assert names.count(".py") >= 2  # the pair template and the callback
    assert ".nbi" in names  # the compiler's index
    assert ".tmp" not in names


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
    return b"".join(compiler._code_parts(function, set()))


def parts_with(**changes):
    module: dict = {}
    exec(LOSS.format(**{**PARTS, **changes}), module)  # noqa: S102  (as a plugin's module would)
    return parts_of(module["phi"])


def test_the_same_source_gives_the_same_file_in_every_process():
    code = LOSS.format(**PARTS) + (
        "import hashlib; from gbmrank.kernels.jit import compiler; "
        "print(hashlib.sha256(b''.join(compiler._code_parts(phi, set()))).hexdigest())"
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
    return compiler.load("test_template", phi=phi).__file__


DECORATED = "from gbmrank.kernels.jit.decorators import entry\n\n\n@entry\ndef value(z):\n"


@pytest.fixture
def template(tmp_path, monkeypatch):
    """A template of one line, in a folder of its own."""
    source = tmp_path / "sources"
    source.mkdir()
    (source / "test_template.py").write_text(DECORATED + "    return phi(z)[0]\n")
    (tmp_path / "numerics.py").write_text("")
    monkeypatch.setattr(compiler, "_SOURCES", source)
    monkeypatch.setenv("GBMRANK_CACHE_DIR", str(tmp_path / "cache"))
    compiler._sources_digest.cache_clear()
    yield tmp_path
    compiler._sources_digest.cache_clear()
    for key in [key for key in compiler._loaded if key[0] == "test_template"]:
        del compiler._loaded[key]


def test_templates_lie_in_folders_and_each_counts_for_the_cache(template):
    folder = template / "sources" / "inner"
    folder.mkdir()
    text = DECORATED + "    return 7.0 * z\n"
    (folder / "deep.py").write_text(text)
    compiler._sources_digest.cache_clear()
    before = compiler._sources_digest()
    assert compiler.load("inner.deep").value(2.0) == 14.0
    (folder / "deep.py").write_text(text.replace("7.0", "8.0"))
    compiler._sources_digest.cache_clear()
    assert compiler._sources_digest() != before
    compiler._loaded.pop(("inner.deep", ()))
    assert compiler.load("inner.deep").value(2.0) == 16.0
    compiler._loaded.pop(("inner.deep", ()))


def test_every_kernel_source_counts_for_the_cache():
    root = compiler._SOURCES
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
    assert first.__file__ != second.__file__
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


def test_a_folder_that_cannot_be_written_falls_back_to_a_temporary_one(template, monkeypatch):
    blocked = template / "a_file"
    blocked.write_text("")
    monkeypatch.setenv("GBMRANK_CACHE_DIR", str(blocked))
    folder = compiler.cache_folder()
    assert blocked not in folder.parents
    assert os.access(folder, os.W_OK)
    assert compiler.cache_folder() == folder  # one per process, not one per kernel
    assert compiler.load("test_template", phi=make_loss(7.0)).value(2.0) == 14.0


def test_a_user_without_a_home_falls_back_to_a_temporary_folder(template, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("GBMRANK_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert os.access(compiler.cache_folder(), os.W_OK)


def test_the_cache_is_where_the_environment_says(template, monkeypatch):
    monkeypatch.delenv("GBMRANK_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(template / "xdg"))
    assert compiler.cache_folder().parent == template / "xdg" / "gbmrank"


def test_changed_kernel_sources_move_to_another_folder(template):
    before = compiler.cache_folder()
    compiler.template_path("test_template").write_text("# other\n")
    compiler._sources_digest.cache_clear()
    assert compiler.cache_folder() != before


def test_folders_of_old_versions_are_removed_after_a_month(template):
    parent = compiler.cache_folder().parent
    old, recent = parent / "kernels-old", parent / "kernels-recent"
    for folder in (old, recent):
        folder.mkdir()
    month_ago = os.stat(recent).st_mtime - 40 * 86_400
    os.utime(old, (month_ago, month_ago))
    compiler.load("test_template", phi=make_loss(11.0))
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
exec(source, {NAMESPACE})
import gbmrank
print(gbmrank.objective("pairwise", loss="pasted", target="dcg").gradients([1, 0], [0.0, 0.0]))
"""


@pytest.mark.parametrize("namespace", ['{"__name__": "pasted_from_nowhere"}', "{}"])
def test_code_without_a_module_is_compiled_anew_and_leaves_nothing(tmp_path, namespace):
    code = FROM_EXEC.replace("{NAMESPACE}", namespace)
    for _ in range(2):
        shown = run_python(code, GBMRANK_CACHE_DIR=str(tmp_path / "kernels"), TMPDIR=str(tmp_path))
        assert "-0.5" in shown
    assert not list(tmp_path.glob("gbmrank-kernels-*"))


def test_python_may_call_what_only_kernels_call():
    """There is no compiled way in: it once ended the process."""
    assert middle_and_range(np.array([1.0, 4.0, -2.0])) == (1.0, 6.0)
