"""Data that does not fit into memory: the boosters' own ways, with our objectives."""

import itertools

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import gbmrank
from gbmrank.boosters.xgboost.dataset import data_iterator
from gbmrank.errors import ConfigError, DataError, GroupError, WeightError
from tests.formulas import each
from tests.ranking_tasks import make_task

TASK = make_task(seed=0, queries=60)
OBJECTIVE, NDCG = gbmrank.objective("pairwise", target="ndcg@10"), gbmrank.metric("ndcg@10")
ENDS = np.concatenate([[0], np.cumsum(TASK.sizes)])
CUTS = [0, ENDS[7], ENDS[30], ENDS[31], TASK.n]  # rows where batches begin


def batches(cuts=CUTS, qid=None):
    ids = TASK.qid if qid is None else qid
    return [
        {"data": TASK.x[a:b], "label": TASK.y[a:b], "qid": ids[a:b]}
        for a, b in itertools.pairwise(cuts)
    ]


def trained(rows):
    params = {**gbmrank.booster_params(OBJECTIVE, "xgboost"), "nthread": 1}
    found: dict = {}
    booster = xgb.train(
        params,
        rows,
        10,
        obj=OBJECTIVE,
        custom_metric=NDCG,
        evals=[(rows, "train")],
        evals_result=found,
        verbose_eval=False,
    )
    return booster, found["train"][NDCG.name_in("xgboost")]


@pytest.mark.parametrize("kind", each(2, ["external", "quantile", "plain"]))
def test_batches_train_as_memory_does(kind, tmp_path):
    """Features have eight values, so that all sketches give the same bins."""
    rng = np.random.default_rng(0)
    names = np.array([f"q{number}" for number in rng.permutation(60)])[TASK.qid]
    cache = None if kind == "quantile" else str(tmp_path / "cache")
    source = data_iterator(lambda: iter(batches(qid=names)), cache)
    make = {
        "external": xgb.ExtMemQuantileDMatrix,
        "quantile": xgb.QuantileDMatrix,
        "plain": xgb.DMatrix,
    }[kind]
    rows = make(source)
    assert np.diff(rows.get_uint_info("group_ptr").astype(int)).tolist() == TASK.sizes.tolist()
    booster, values = trained(rows)
    memory, expected = trained(xgb.QuantileDMatrix(TASK.x, TASK.y, qid=TASK.qid))
    assert booster.get_dump() == memory.get_dump()
    assert values == expected
    assert values[-1] > 0.85


def test_ids_of_many_digits_in_lists_stay_apart():
    ids = [7 if query == 0 else 2**63 + int(query) for query in TASK.qid]
    rows = xgb.QuantileDMatrix(data_iterator(batches(qid=ids)))
    assert np.diff(rows.get_uint_info("group_ptr").astype(int)).tolist() == TASK.sizes.tolist()


def test_a_query_in_two_batches_is_noticed():
    """XGBoost alone makes two queries of it."""
    cut = [0, int(ENDS[7]) + 1, TASK.n]

    class Unchecked(xgb.DataIter):  # type: ignore[misc]  # untyped
        def __init__(self):
            super().__init__()
            self.left = iter(batches(cut))

        def next(self, input_data):
            batch = next(self.left, None)
            if batch is not None:
                input_data(**batch)
            return batch is not None

        def reset(self):
            self.left = iter(batches(cut))

    rows = xgb.QuantileDMatrix(Unchecked())
    assert len(rows.get_uint_info("group_ptr")) - 1 == len(TASK.sizes) + 1
    with pytest.raises(GroupError, match="query 7 is in batch 0 and again in batch 1"):
        xgb.QuantileDMatrix(data_iterator(batches(cut)))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"qid": None}, DataError, "batch 0 needs data, label and qid"),
        ({"label": None}, DataError, "batch 0 needs"),
        ({"qid": np.arange(3)}, GroupError, r"qid has shape \(3,\), label"),
        ({"qid": np.arange(TASK.n) % 2}, GroupError, "query 0 is in two places of batch 0"),
        ({"weight": np.ones(3)}, WeightError, "weight has 3 entries for 60 queries"),
        ({"data": TASK.x[:0], "label": [], "qid": []}, DataError, "batch 0 has no rows"),
    ],
)
def test_batches_that_do_not_say_enough_are_refused(change, error, message):
    (whole,) = batches([0, TASK.n])
    with pytest.raises(error, match=message):
        xgb.QuantileDMatrix(data_iterator([{**whole, **change}]))


@pytest.mark.parametrize("key", ["weight", "base_margin"])
@pytest.mark.parametrize("full", [0, 1])
def test_a_batch_that_lacks_what_another_has_is_refused(key, full):
    """XGBoost alone goes on with what the batch before gave."""
    both = batches([0, int(ENDS[30]), TASK.n])
    count = {"weight": 30, "base_margin": len(both[full]["label"])}[key]
    both[full][key] = np.ones(count)
    words = f"batch {1 - full} has no {key}, but batch {full} has one, .* in all batches or in none"
    with pytest.raises(DataError, match=words):
        xgb.QuantileDMatrix(data_iterator(both))
    both[1 - full][key] = np.ones(count if key == "weight" else len(both[1 - full]["label"]))
    assert xgb.QuantileDMatrix(data_iterator(both)).num_row() == TASK.n


def test_batches_that_are_none_are_refused():
    with pytest.raises(ConfigError, match=r"batches is a single batch; pass a list of batches"):
        data_iterator(batches()[0])
    with pytest.raises(DataError, match="batch 0 is a tuple; it must be a mapping"):
        xgb.QuantileDMatrix(data_iterator([(TASK.x, TASK.y)]))  # type: ignore[list-item]


def test_a_generator_is_refused():
    with pytest.raises(ConfigError, match="pass the generator function"):
        data_iterator(iter(batches()))


class Rows(lgb.Sequence):  # type: ignore[misc]  # untyped
    """Rows read a few at a time."""

    batch_size = 16

    def __init__(self, x):
        self.x = x

    def __getitem__(self, index):
        return self.x[index]

    def __len__(self):
        return len(self.x)


def lightgbm_trees(rows):
    params = {**gbmrank.booster_params(OBJECTIVE, "lightgbm"), "verbosity": -1, "num_threads": 1}
    booster = lgb.train({**params, "objective": OBJECTIVE}, rows, 10)
    text = booster.model_to_string()
    return text[text.index("Tree=0") : text.index("end of trees")]


def test_sequences_train_lightgbm_as_memory_does():
    expected = lightgbm_trees(lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes))
    parts = [Rows(TASK.x[:100]), Rows(TASK.x[100:])]
    assert lightgbm_trees(lgb.Dataset(parts, TASK.y, group=TASK.sizes)) == expected


def test_files_read_in_two_rounds_train_lightgbm_as_memory_does(tmp_path):
    path = tmp_path / "train.csv"
    np.savetxt(path, np.column_stack([TASK.y, TASK.x]), delimiter=",", fmt="%g")
    np.savetxt(f"{path}.query", TASK.sizes, fmt="%d")
    rows = lgb.Dataset(str(path), params={"two_round": True, "verbosity": -1})
    expected = lightgbm_trees(lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes))
    assert lightgbm_trees(rows) == expected
