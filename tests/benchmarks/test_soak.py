"""Small versions of what ``make soak`` measures for minutes."""

import lightgbm as lgb
import numpy as np
import pytest

import gbmrank
from benchmarks import soak

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def check(lines):
    assert lines
    assert [line for line in lines if not line.good] == []


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    """Count what these tests keep, not what others of this process have kept before."""
    from gbmrank.boosters import bindings

    monkeypatch.setattr(bindings, "states", {})


def test_many_fits_keep_no_data_and_no_memory():
    check(soak.fits(20, 16.0))


def test_a_data_set_that_is_kept_is_counted():
    rows = lgb.Dataset(soak.DATA.X, soak.DATA.labels, group=soak.DATA.sizes).construct()
    before = soak.kept()
    gbmrank.objective("ranknet")(np.zeros(len(soak.DATA.labels)), rows)
    assert soak.kept() == before + 1
    del rows
    assert soak.kept() == before


def test_fits_in_threads_give_one_model():
    check(soak.side_by_side(4, 12))


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.nightly)])
def test_fits_in_processes_give_one_model(method):
    check(soak.processes(method, 2, 4))


@pytest.mark.nightly
def test_fits_in_joblib_give_one_model():
    check(soak.joblib_fits(2, 4))


@pytest.mark.parametrize("backend", soak.BACKENDS)
@pytest.mark.nightly
def test_many_rounds_keep_memory_flat(backend):
    check(soak.long_training(backend, 1_500, 20, 24.0))


@pytest.mark.nightly  # threads that other tests of the process left behind count too
def test_one_thread_is_one_thread():
    check(soak.thread_budget(1, 24_000))
    assert not all(line.good for line in soak.thread_budget(1, 120_000, given=2))  # it can fail


def test_a_line_above_its_bound_is_seen():
    assert not soak.Line("too much", 2.0, 1.0).good
