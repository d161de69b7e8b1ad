"""Features of partitions, which boosters would misread or take for others."""

from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import gbmrank
from gbmrank.dask import DaskGBMRanker, repartition_by_query
from gbmrank.errors import DataError, GbmrankWarning
from tests.dask.blocks import WORDS, pieces, rows_of, words
from tests.faults.test_features import SPARSE
from tests.ranking_tasks import Task, make_task

NIGHTLY = pytest.mark.nightly
# Features are read by the same code for both: each is tried with one booster at every change.
WITH_LIGHTGBM = pytest.mark.parametrize(
    "backend", ["lightgbm", pytest.param("xgboost", marks=NIGHTLY)]
)
WITH_XGBOOST = pytest.mark.parametrize(
    "backend", [pytest.param("lightgbm", marks=NIGHTLY), "xgboost"]
)
TASK = make_task(seed=3, queries=40)
OTHER = make_task(seed=4, queries=20)
PLAIN = words(TASK).assign(z=TASK.x[:, 0])
SMALL: dict[str, dict[str, Any]] = {
    "lightgbm": {
        "min_data_per_group": 2,
        "cat_smooth": 1,
        "cat_l2": 0,
        "min_data_in_leaf": 2,
        "num_leaves": 6,
    },
    "xgboost": {"max_cat_to_onehot": 1},
}


def fit(client, backend, parts, task=TASK, rounds=5, **more):
    """Train on partitions of a task."""
    x, y, qid = rows_of(task, parts)
    made = DaskGBMRanker("ranknet", backend, n_estimators=rounds, client=client, **SMALL[backend])
    return made.fit(x, y, qid=qid, **more)


def rejected(client, backend, parts, match):
    with pytest.raises(DataError, match=match):
        fit(client, backend, parts)


def same_model(client, backend, parts, plain, table):
    """Check that partitions give the model that plain ones give.

    Later trees of LightGBM depend on which worker has which rows.
    """
    rounds = 5 if backend == "xgboost" else 1
    expected = fit(client, backend, plain, rounds=rounds).predict(table)
    model = fit(client, backend, parts, rounds=rounds)
    assert np.ptp(expected) > 0.05
    assert model.predict(table) == pytest.approx(expected, abs=1e-4)
    return model


def recoded(frame, categories):
    return frame.assign(z=frame["z"].cat.set_categories(categories))


def ordered(model, table):
    """Whether categories are ranked by the labels of :func:`by_category`."""
    means = pd.Series(model.predict(table)).groupby(by_category(table)).mean()
    return len(means) == len(WORDS) and bool((np.diff(means) > 0).all())


def by_category(table):
    """Return labels that are the number of the category of each row."""
    return table["z"].astype(object).map({word: n for n, word in enumerate(WORDS)}).to_numpy(float)


@pytest.mark.fault(
    "categories in another order, or other ones, in some partitions",
    promise="known by their values: the model is that of the same categories everywhere",
)
@WITH_LIGHTGBM
@pytest.mark.parametrize("count", [2, pytest.param(4, marks=NIGHTLY)])
def test_categories_that_differ_between_partitions(client, backend, count):
    table = words(TASK)
    task = Task(TASK.x, by_category(table), TASK.sizes)
    plain = pieces(TASK, table, count)
    turned = [recoded(p, sorted(WORDS)) if i % 2 else p for i, p in enumerate(plain)]
    few = [p.assign(z=p["z"].astype(object).astype("category")) for p in plain]
    few[0] = few[0].assign(z=few[0]["z"].where(few[0]["z"] != "a").cat.remove_unused_categories())
    assert ordered(fit(client, backend, plain, task), table)
    for parts in (turned, few):
        assert not parts[0]["z"].cat.categories.equals(parts[1]["z"].cat.categories)
        assert ordered(fit(client, backend, parts, task), table)


@pytest.mark.nightly
def test_a_partition_without_categories(client):
    table = words(TASK)
    plain = pieces(TASK, table)
    none = plain[1].assign(z=pd.Categorical([None] * len(plain[1])))
    same_model(client, "xgboost", [plain[0], none], [plain[0], recoded(none, WORDS)], table)
    empty = [p.assign(z=pd.Categorical([None] * len(p))) for p in plain]
    rejected(client, "xgboost", empty, "'z' of train has type category without any category")
    odd = pieces(TASK, words(TASK, [0.5, 1.5]))
    rejected(client, "xgboost", odd, "'z' of train has type category of float64, which XGBoost")


@pytest.mark.fault(
    "categories that are missing in all rows of a worker, in LightGBM",
    promise="`DataError` that names the column; LightGBM may end the worker",
)
def test_a_worker_without_categories(client):
    first, second = pieces(TASK, words(TASK))
    none = second.assign(z=pd.Categorical([None] * len(second), categories=WORDS))
    match = "'z' of train holds categories, and on one of the workers they are missing in all rows"
    rejected(client, "lightgbm", [first, none], match)
    filled = [p.assign(z=p["z"].cat.add_categories("none").fillna("none")) for p in (first, none)]
    assert np.ptp(fit(client, "lightgbm", filled).predict(first)) > 0


@WITH_XGBOOST
def test_ordered_categories_that_differ(client, backend):
    first, second = pieces(TASK, words(TASK))
    match = "'z' of train has ordered categories that differ between partitions"
    for other in (recoded(second, sorted(WORDS)), second):
        parts = [first.assign(z=first["z"].cat.as_ordered()), other]
        rejected(client, backend, parts, match)


DIFFERENT = {
    r"the columns of train, partition 1 are not those of partition 0: got a, z, b; expected z, a": (
        lambda p: p[["a", "z", "b"]]
    ),
    r"the columns of train, partition 1 are not those of partition 0: got z, q, b": (
        lambda p: p.rename(columns={"a": "q"})
    ),
    r"train, partition 1 has 4 columns, but partition 0 has 3; all": lambda p: p.assign(c=1.0),
    r"'z' of train, partition 1 is categorical, but in partition 0 it was numeric": (
        lambda p: p.assign(z=p["z"].astype("category"))
    ),
}
DIFFERENT_BLOCKS = {
    r"train, partition 1 has 4 columns, but partition 0 has 5": lambda a: a[:, :4],
    r"train, partition 1 has 6 columns, but partition 0 has 5": lambda a: np.column_stack([a, a])[
        :, :6
    ],
    r"train, partition 1 is sparse, but partition 0 is dense; .* or both dense": sp.csr_matrix,
}


@pytest.mark.fault(
    "partitions with other columns, in another order, of another kind, or dense beside sparse ones",
    promise="`DataError` that names the partition and what differs, before training",
)
@WITH_LIGHTGBM
def test_partitions_that_differ(client, backend):
    first, second = pieces(TASK, PLAIN)
    for match, change in DIFFERENT.items():
        rejected(client, backend, [first, change(second)], match)
    block, other = pieces(TASK, TASK.x)
    for match, change in DIFFERENT_BLOCKS.items():
        rejected(client, backend, [block, change(other)], match)


UNREAD = {
    r"'z' of train, partition 1 has type str.*, not numbers": lambda p: p.assign(z="w"),
    r"'z' of train, partition 1 has type datetime64.*, not numbers": (
        lambda p: p.assign(z=pd.Timestamp(0))
    ),
    r"'z' of train, partition 1 has type complex128, not numbers": lambda p: p.assign(z=1j),
    r"'z' of train, partition 1 has type float128, which the booster does not support": (
        lambda p: p.assign(z=p["z"].astype(np.longdouble))
    ),
}
UNREAD_BLOCKS = {
    r"train, partition 1 must contain numbers, got <U": lambda a: a.astype(str),
    r"train, partition 1 contains a non-numeric value: ": lambda a: np.full(
        a.shape, "w", dtype=object
    ),
    r"Complex data not supported: train, partition 1": lambda a: a + 0j,
}


@pytest.mark.fault(
    "features that are no numbers, or of a type that the booster does not read",
    promise="`DataError` that names the partition and the column, before training",
)
@WITH_XGBOOST
def test_features_that_are_not_read(client, backend):
    first, second = pieces(TASK, PLAIN)
    for match, change in UNREAD.items():
        if "float128" not in match or np.dtype(np.longdouble).name == "float128":
            rejected(client, backend, [first, change(second)], match)
    block, other = pieces(TASK, TASK.x)
    for match, change in UNREAD_BLOCKS.items():
        rejected(client, backend, [block, change(other)], match)
    if backend == "lightgbm":
        arrow = [p.convert_dtypes(dtype_backend="pyarrow") for p in (first, second)]
        rejected(client, backend, arrow, "'z' of train has type .*pyarrow.*; convert it to float64")


@pytest.mark.fault(
    "sparse features in XGBoost beside dense ones of the training, or the other way round",
    promise="`DataError` for evaluation sets; predictions fill zeros in, or reject them where they "
    "may have been missing",
)
def test_zeros_of_sparse_and_dense_features(client):
    plain = np.where(TASK.x > 0.3, TASK.x, 0.0)
    dense, sparse = pieces(TASK, plain), [sp.csr_matrix(p) for p in pieces(TASK, plain)]
    model, other = fit(client, "xgboost", dense), np.where(OTHER.x > 0.3, OTHER.x, 0.0)
    expected = model.predict(other)
    assert model.predict(sp.csr_matrix(other)).tolist() == expected.tolist()
    local = model.to_local().predict(sp.csr_matrix(other))
    assert local.tolist() == expected.tolist()
    x, y, qid = rows_of(OTHER, [sp.csr_matrix(p) for p in pieces(OTHER, other)], start=1000)
    with pytest.raises(DataError, match="valid_0 is sparse, but the training data is dense"):
        fit(client, "xgboost", dense, eval_set=[(x, y)], eval_qid=[qid])
    with pytest.raises(DataError, match="is dense and has zeros"):
        fit(client, "xgboost", sparse).predict(other)


@pytest.mark.fault(
    "masked features, features of another byte order, and sparse ones in any form",
    promise="read as on one machine: the model is that of plain features",
)
@WITH_LIGHTGBM
@pytest.mark.nightly
def test_features_in_other_forms(client, backend):
    values = TASK.x * 9 + 1  # no empty cell
    plain = pieces(TASK, values)
    same_model(client, backend, [p.astype(">f4") for p in plain], plain, values)
    same_model(client, backend, [p.astype(object) for p in plain], plain, values)
    foreign = [p.assign(z=p["z"].astype(">f8")) for p in pieces(TASK, PLAIN)]
    same_model(client, backend, foreign, pieces(TASK, PLAIN), PLAIN)
    masked = [np.ma.masked_array(p, p > 30) for p in plain]
    same_model(client, backend, masked, [p.filled(np.nan) for p in masked], values)
    sparse = [sp.csr_matrix(p) for p in plain]
    odd = [SPARSE["unsorted"](sparse[0]), SPARSE["coordinates"](sparse[1])]
    model = same_model(client, backend, odd, sparse, sparse[0])
    x, y, qid = rows_of(TASK, odd)
    expected = model.predict(sp.csr_matrix(values))
    assert model.predict(x).compute().tolist() == expected.tolist()
    score = gbmrank.metric("ndcg@10").score(TASK.y, expected, group=TASK.sizes)
    assert model.score(x, y, qid=qid) == pytest.approx(score, rel=1e-12)


@WITH_XGBOOST
@pytest.mark.nightly
def test_numbers_of_different_types(client, backend):
    plain = pieces(TASK, PLAIN, 4)
    changes = {1: {"a": "int64"}, 2: {"a": "Int64", "b": "float32"}, 3: {"z": "int8"}}
    mixed = [p.astype(changes.get(i, {})) for i, p in enumerate(plain)]
    same_model(client, backend, mixed, plain, PLAIN)
    flags = [p.assign(a=p["a"] > 2) for p in plain]
    some = [p if i % 2 else p.astype({"a": float}) for i, p in enumerate(flags)]
    same_model(client, backend, some, [p.astype({"a": float}) for p in flags], PLAIN)


@pytest.mark.fault(
    "a feature that is infinite in XGBoost",
    promise="`DataError` with the set, the partition and the column; LightGBM takes it",
)
def test_infinite_features(client):
    first, second = pieces(TASK, PLAIN.rename(columns={"a": "a b"}))
    second = second.assign(**{"a b": second["a b"].where(second["a b"] > 3, np.inf)})
    words = "the column 'a b' of train, partition 1 is infinite, .*; clip it"
    rejected(client, "xgboost", [first, second], words)
    assert fit(client, "lightgbm", [first, second]).booster_.current_iteration() == 5


def calls(client, backend, model, parts, other):
    """Yield every way in which other partitions reach a model."""
    x, y, qid = rows_of(OTHER, other, start=1000)
    yield "X", lambda: model.predict(x).compute()
    yield "X", lambda: model.score(x, y, qid=qid)
    yield "valid_0", lambda: fit(client, backend, parts, eval_set=[(x, y)], eval_qid=[qid])


WRONG = {
    "the column 'z' of {} is numeric, but in the training data it was categorical": (
        lambda p: p.assign(z=p["z"].cat.codes)
    ),
    "the column 'z' of {} is numeric, but in the training data it was": (
        lambda p: p.assign(z=p["z"].cat.codes).to_numpy()
    ),
    "the columns of {} are not those of the training data: got a, z, b": lambda p: p[
        ["a", "z", "b"]
    ],
    "{} has 4 features, but the model is expecting 3": lambda p: p.assign(c=1.0),
}


@pytest.mark.fault(
    "evaluation sets, or rows to predict, with other columns than the training",
    promise="`DataError` as on one machine; for rows to predict when they are given, where the "
    "collection tells, else when they are computed",
)
@WITH_LIGHTGBM
def test_other_columns_than_those_of_the_training(client, backend):
    parts = pieces(TASK, words(TASK))
    model = fit(client, backend, parts)
    for words_, change in WRONG.items():
        other = [change(p) for p in pieces(OTHER, words(OTHER))]
        for what, call in calls(client, backend, model, parts, other):
            with pytest.raises(DataError, match=words_.format(what)):
                call()
        with pytest.raises(DataError, match=words_.format("X")):
            model.predict(rows_of(OTHER, other)[0])  # not computed
        with pytest.raises(DataError, match=words_.format("X")):
            model.predict(other[0])
    turned = pieces(OTHER, words(OTHER))
    lazy = model.predict(rows_of(OTHER, [turned[0], turned[1][["a", "z", "b"]]])[0])
    with pytest.raises(DataError, match="the columns of X, partition 1 are not those of the train"):
        lazy.compute()
    with pytest.raises(DataError, match="X must be a table of rows and columns"):
        model.predict(rows_of(OTHER, turned)[0]["a"])


@pytest.mark.fault(
    "rows to predict or to judge on whose categories are in another order, or new",
    promise="known by their values; new ones as on one machine",
)
@WITH_XGBOOST
@pytest.mark.nightly
def test_categories_that_are_not_those_of_the_training(client, backend):
    parts, table = pieces(TASK, words(TASK)), words(OTHER)
    plain, model = pieces(OTHER, table), fit(client, backend, parts)
    expected = model.predict(table)
    value = gbmrank.metric("ndcg@10").score(OTHER.y, expected, group=OTHER.sizes)
    other = [recoded(plain[0], sorted(WORDS)), plain[1]]
    found = [call() for _, call in calls(client, backend, model, parts, other)]
    assert found[0].tolist() == expected.tolist()
    assert found[1] == pytest.approx(value, rel=1e-12)
    assert found[2].evals_result_["valid_0"]["ndcg@10"][-1] == pytest.approx(value, rel=1e-12)
    new = [p.assign(z=p["z"].cat.rename_categories({"d": "new"})) for p in plain]
    for what, call in calls(client, backend, model, parts, new):
        if backend == "lightgbm":
            call()
        else:
            with pytest.raises(DataError, match=f"'z' of {what} has the category 'new', which the"):
                call()


@WITH_LIGHTGBM
def test_the_ranker_of_one_machine_knows_the_columns(client, backend, tmp_path):
    model = fit(client, backend, pieces(TASK, words(TASK).rename(columns={"a": "a b"})))
    assert list(model.feature_names_in_) == ["z", "a b", "b"]
    file = tmp_path / {"lightgbm": "m.txt", "xgboost": "m.ubj"}[backend]
    model.to_local().save(file)
    table = words(OTHER).rename(columns={"a": "a b"})
    for local in (model.to_local(), gbmrank.load(file)):
        assert local.predict(table).tolist() == model.predict(table).tolist()
        with pytest.raises(DataError, match="the column 'z' of X is numeric, but in the train"):
            local.predict(table.assign(z=1.0))
        with pytest.raises(DataError, match="the columns of X are not those of the training"):
            local.predict(table[["z", "b", "a b"]])


@WITH_XGBOOST
@pytest.mark.filterwarnings("ignore:the columns of X have no names")
def test_names_of_columns_are_those_of_the_user(client, backend):
    odd = PLAIN.set_axis(["a b", "a_b", "a b"], axis=1)
    assert len(np.unique(odd.columns)) == 2
    same_model(client, backend, pieces(TASK, odd), pieces(TASK, PLAIN), PLAIN.to_numpy())
    x, y, qid = rows_of(TASK, pieces(TASK, PLAIN.rename(columns={"a": "a b"})))
    made = DaskGBMRanker(
        "ranknet", backend, n_estimators=5, client=client, monotone_constraints={"a b": -1}
    ).fit(x, y, qid=qid)
    line = np.column_stack([np.full(9, 3.0), np.arange(9), np.full(9, 3.0)])
    assert (np.diff(made.predict(line)) <= 0).all()


@WITH_LIGHTGBM
@pytest.mark.nightly
def test_arrays_and_frames_as_sets_of_one_training(client, backend):
    blocks, frames = pieces(TASK, TASK.x), pieces(TASK, pd.DataFrame(TASK.x, columns=list("abcde")))
    for parts, other in ((blocks, pd.DataFrame(OTHER.x, columns=list("edcba"))), (frames, OTHER.x)):
        x, y, qid = rows_of(OTHER, pieces(OTHER, other), start=1000)
        with pytest.warns(GbmrankWarning, match="the columns of valid_0 .* matched by position"):
            model = fit(client, backend, parts, eval_set=[(x, y)], eval_qid=[qid])
        with pytest.warns(GbmrankWarning, match="the columns of X .* matched by position"):
            scores = model.predict(other)
        here = gbmrank.metric("ndcg@10").score(OTHER.y, scores, group=OTHER.sizes)
        value = model.evals_result_["valid_0"]["ndcg@10"][-1]
        assert value == pytest.approx(here, rel=1e-12)


@pytest.mark.fault(
    "categories in XGBoost, and a worker without rows of one of the sets",
    promise="`DataError` that names the set and into how many partitions to cut it",
)
@pytest.mark.parametrize(("train", "valid"), [(1, 2), (2, 1)])
def test_categories_and_workers_without_rows(client, train, valid):
    x, y, qid = rows_of(OTHER, pieces(OTHER, words(OTHER), valid), start=1000)
    few = "train" if train == 1 else "valid_0"
    with pytest.raises(DataError, match=f"{few} has no rows on some of the 2 .* into 2 or more"):
        fit(
            client,
            "xgboost",
            pieces(TASK, words(TASK), train),
            eval_set=[(x, y)],
            eval_qid=[qid],
        )


def test_repartitioning_keeps_masks_and_sparse_blocks(client):
    border = int(TASK.sizes[:20].sum()) - 1  # one row of a query lies behind it
    ids = da.from_array(TASK.qid, chunks=((border, TASK.n - border),))
    for form in (lambda a: np.ma.masked_array(a, a > 5), sp.csr_matrix):
        blocks = [form(TASK.x[:border]), form(TASK.x[border:])]
        made = [da.from_delayed(dask.delayed(block), block.shape, float) for block in blocks]
        x, _ = repartition_by_query(da.concatenate(made), qid=ids)
        first, second = dask.compute(*x.to_delayed().reshape(-1).tolist())
        assert first.shape[0] == border + 1
        assert first.sum() == form(TASK.x[: border + 1]).sum()
        assert second.sum() == form(TASK.x[border + 1 :]).sum()
