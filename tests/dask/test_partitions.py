"""Queries and partitions: what is refused, what is repaired, what may be empty."""

from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest

import gbmrank
from gbmrank.dask import predict, repartition_by_query, train
from gbmrank.dask.loading import Limit, moves, prepare
from gbmrank.errors import ConfigError, DataError, GroupError, LeakageWarning, LimitError
from tests.dask.tables import NAMES, arrays, frame
from tests.ranking_tasks import Task, make_task

TASK = make_task(seed=1, queries=40)
WHOLE = [0, 15, 40]
FEW: dict[str, Any] = {"rounds": 3, "backend": "xgboost", "params": {"max_depth": 3}}


@pytest.fixture(scope="module")
def expected(client):
    x, y, qid = arrays(TASK, WHOLE)
    return train(client, x, y, qid=qid, **FEW).scores(TASK.x)


def split_arrays():
    """Return columns cut in the middle of queries 9 and 24, one row before their end."""
    ends = np.cumsum(TASK.sizes)
    rows = tuple(np.diff([0, ends[9] - 1, ends[24] - 1, TASK.n]).tolist())
    return (
        da.from_array(TASK.x, chunks=(rows, -1)),
        da.from_array(TASK.y, chunks=(rows,)),
        da.from_array(TASK.qid, chunks=(rows,)),
    )


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_query_in_two_partitions_is_refused_by_its_id(client, backend):
    x, y, qid = split_arrays()
    message = r"2 queries are split .* 9 \(partitions 0, 1\), 24 \(partitions 1, 2\)"
    with pytest.raises(GroupError, match=message):
        train(client, x, y, qid=qid, backend=backend)


def test_repartitioning_repairs_arrays(client, expected):
    x, y, qid = repartition_by_query(*split_arrays()[:2], qid=split_arrays()[2])
    ends = np.cumsum(TASK.sizes)
    assert x.chunks[0] == y.chunks[0] == (ends[9], ends[24] - ends[9], TASK.n - ends[24])
    assert (x.compute() == TASK.x).all()
    assert train(client, x, y, qid=qid, **FEW).scores(TASK.x) == pytest.approx(expected, abs=1e-5)


@pytest.mark.nightly
def test_repartitioning_repairs_a_shuffled_frame_from_parquet(client, expected, tmp_path):
    import dask.dataframe as dd

    order = np.random.default_rng(0).permutation(TASK.n)
    table = frame(TASK, [0, 40]).compute().iloc[order]
    for number, piece in enumerate(np.array_split(np.arange(TASK.n), 3)):
        table.iloc[piece].to_parquet(tmp_path / f"{number}.parquet")
    stored = dd.read_parquet(tmp_path)
    with pytest.raises(GroupError, match="split over partitions"):
        train(client, stored, "label", qid="query", **FEW)
    whole = repartition_by_query(stored, qid="query")
    made = train(client, whole, "label", qid="query", **FEW)
    assert list(made.fitted.booster.feature_names) == NAMES
    local = pd.DataFrame(TASK.x, columns=NAMES)
    assert made.scores(local) == pytest.approx(expected, abs=1e-5)
    lazily = predict(made, whole[NAMES])
    assert isinstance(lazily, da.Array)
    assert np.sort(lazily.compute()) == pytest.approx(np.sort(made.scores(local)))


def test_repartitioning_keeps_a_frame_and_its_series_together(client):
    order = np.random.default_rng(0).permutation(TASK.n)
    mixed = Task(TASK.x[order], TASK.y[order], TASK.sizes)
    table = frame(mixed, [0, 11, 40])
    table["query"] = table["f0"] + 8 * table["f1"]
    x, y, qid = repartition_by_query(table[NAMES], table["label"], qid=table["query"])
    assert list(x.columns) == NAMES
    assert (qid.compute() == (x["f0"] + 8 * x["f1"]).compute()).all()
    assert y.compute().sum() == TASK.y.sum()
    ids = [set(part) for part in dask.compute(*qid.to_delayed(optimize_graph=False))]
    assert not ids[0] & ids[1]


@pytest.mark.nightly
def test_rows_of_a_query_need_not_be_together_within_a_partition(client, expected):
    ends = np.concatenate([[0], np.cumsum(TASK.sizes)])
    rng = np.random.default_rng(0)
    order = np.concatenate(
        [rng.permutation(np.arange(*ends[[a, b]])) for a, b in [(0, 15), (15, 40)]]
    )
    rows = (int(ends[15]), int(TASK.n - ends[15]))
    text = np.array([f"q{n % 7}-{n}" for n in TASK.qid])
    x = da.from_array(TASK.x[order], chunks=(rows, -1))
    y, qid = (da.from_array(c[order], chunks=(rows,)) for c in (TASK.y, text))
    assert train(client, x, y, qid=qid, **FEW).scores(TASK.x) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_partitions_without_rows_and_workers_without_partitions(client, backend):
    """One partition has no rows, and one worker has rows of the evaluation set alone."""
    options = {"backend": backend, "rounds": 3, "metric": "ndcg@3"}
    table = frame(TASK, [0, 0, 40])
    judged = frame(Task(TASK.x, TASK.y, TASK.sizes), [0, 0, 15, 40])
    judged["query"] = judged["query"] + 1000
    made = train(
        client,
        table,
        "label",
        qid="query",
        eval_set=[(judged, "label")],
        eval_qid=["query"],
        keep_best=False,
        **options,
    )
    scores = made.scores(pd.DataFrame(TASK.x, columns=NAMES))
    here = gbmrank.metric("ndcg@3").score(TASK.y, scores, group=TASK.sizes)
    assert made.history["valid_0"]["ndcg@3"][-1] == pytest.approx(here, rel=1e-12)
    assert np.ptp(scores) > 0


def test_large_partitions_are_refused_before_anything_is_computed(client):
    def never(block):
        raise AssertionError("this block was computed")

    x = da.zeros((10_000_000, 20), chunks=(5_000_000, -1)).map_blocks(never, dtype=float)
    column = da.zeros(10_000_000, chunks=5_000_000)
    with pytest.raises(LimitError, match=r"train, partition 0: 800.0 MB.*split it into 2 or more"):
        train(client, x, column, qid=column, backend="lightgbm")


def test_large_partitions_of_a_frame_are_refused_on_the_worker():
    table = pd.DataFrame(TASK.x, columns=NAMES)
    columns = table, TASK.y, TASK.qid, None
    size = TASK.x.nbytes
    assert len(prepare(columns, 3, "train", Limit(2.5 * size, 2.5)).labels) == TASK.n
    with pytest.raises(LimitError, match=r"train, partition 3: .* split it into 2 or more"):
        prepare(columns, 3, "train", Limit(2.5 * size - 1, 2.5))


def test_bad_columns_name_the_partition(client):
    x, y, qid = arrays(TASK, WHOLE)
    holed = y.map_blocks(
        lambda b, block_info=None: b * (np.nan if block_info[0]["chunk-location"] == (1,) else 1.0),
        dtype=float,
    )
    with pytest.raises(DataError, match=r"train, partition 1: .* labels are NaN"):
        train(client, x, holed, qid=qid)
    with pytest.raises(DataError, match="nothing to learn"):
        train(client, x, y * 0, qid=qid)
    with pytest.raises(GroupError, match="qid="):
        train(client, x, y, qid=None)
    with pytest.raises(ConfigError, match=r"dask.array or a dask.dataframe, got numpy.ndarray"):
        train(client, TASK.x, TASK.y, qid=TASK.qid)
    with pytest.raises(GroupError, match="1 evaluation sets, but query ids for 0"):
        train(client, x, y, qid=qid, eval_set=[(x, y)])
    with pytest.raises(DataError, match="labels='nothing' names a column"):
        train(client, frame(TASK, WHOLE), "nothing", qid="query")


def test_queries_in_training_and_evaluation_are_pointed_out(client):
    x, y, qid = arrays(TASK, WHOLE)
    again = arrays(TASK, [0, 40])
    with pytest.warns(LeakageWarning, match="40 queries .* in valid_0"):
        train(client, x, y, qid=qid, eval_set=[again[:2]], eval_qid=[again[2]], **FEW)


def test_moves_even_out_the_shares():
    rows = [5, 1, 1, 1, 1, 1, 40]
    moved = moves(["a"] * 7, rows, ["a", "b", "c"])
    share = dict.fromkeys("abc", 0)
    for i, n in enumerate(rows):
        share[moved.get(i, "a")] += n
    assert sorted(share.values()) == [5, 5, 40]
    assert moves(["a", "b"], [10, 10], ["a", "b"]) == {}
    assert moves(["a"], [10], ["a", "b"]) == {}
