"""Queries that were trained on are recognised in every kind of table."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from gbmrank.data.leakage import SeenQueries, row_hashes
from gbmrank.data.queries import Groups
from tests.ranking_tasks import make_task

TASK = make_task(seed=3, queries=60, longest=30)
GROUPS = Groups.from_qid(TASK.qid, TASK.n)
RNG = np.random.default_rng(5)
# The first feature is one of queries.
TABLE = np.c_[np.repeat(RNG.normal(size=60), TASK.sizes), RNG.normal(size=(TASK.n, 40))]
TABLE[::7, 3] = np.nan
SMALL = TABLE.astype(np.float32)
KINDS = {
    "columns first": np.asfortranarray,
    "float32": lambda table: table.astype(np.float32),
    "sparse": sp.csr_matrix,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
}


@pytest.mark.parametrize("kind", KINDS)
def test_queries_are_recognised_in_every_table(kind):
    table = KINDS[kind](SMALL.astype(np.float64))
    found = SeenQueries(SMALL, GROUPS).shared(table, GROUPS)
    assert found.complete.all()
    rows, groups = GROUPS.take(np.flatnonzero(np.arange(TASK.n) % 2))
    half = SeenQueries(KINDS[kind](SMALL[rows]), groups)
    assert half.shared(table, GROUPS).known.sum() == groups.n_queries
    other = KINDS[kind](RNG.normal(size=TABLE.shape))
    assert not half.shared(other, GROUPS).known.any()


def test_categories_are_left_out():
    frame = pd.DataFrame(SMALL)
    frame.insert(1, "kind", pd.Categorical(["a", "b"] * (TASK.n // 2) + ["a"] * (TASK.n % 2)))
    other = frame.assign(kind=pd.Categorical(["b"] * TASK.n))
    np.testing.assert_array_equal(row_hashes(frame), row_hashes(other))
    assert SeenQueries(frame, GROUPS).shared(other, GROUPS).complete.all()


def test_hashes_do_not_depend_on_how_many_rows_are_read():
    table = RNG.normal(size=(20_000, 5))
    np.testing.assert_array_equal(row_hashes(table)[9_000:9_100], row_hashes(table[9_000:9_100]))
    table[:, 0] = 0.0
    assert len(np.unique(row_hashes(table))) == 20_000
    np.testing.assert_array_equal(row_hashes(table), row_hashes(table * [-1.0, 1, 1, 1, 1]))
