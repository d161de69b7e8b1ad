"""Columns of categories, where boosters take numbers for codes or fail on the categories."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import gbmrank
from gbmrank.errors import DataError
from tests.faults.interfaces import BACKENDS, OTHER, OTHER_QID, TASK, ranker

BOTH = pytest.mark.parametrize("backend", BACKENDS)
WORDS = np.array(list("dacb"))


def frame(task, categories=WORDS):
    codes = (np.abs(task.x[:, 0]) * 5 % len(categories)).astype(int)
    return pd.DataFrame(
        {"z": pd.Categorical.from_codes(codes, categories), "a": np.asarray(task.x[:, 1], float)}
    )


def coded(table):
    return table.assign(z=table["z"].cat.codes)


def calls(backend, train, other):
    """Yield every way in which a table reaches a model trained on another one."""
    model = ranker(backend).fit(train, TASK.y, qid=TASK.qid)
    yield "X", lambda: model.predict(other)
    yield "X", lambda: model.rank(other, qid=OTHER_QID)
    yield "X", lambda: model.score(other, OTHER.y, qid=OTHER_QID)
    watched: dict[str, Any] = {"eval_set": (other, OTHER.y), "eval_qid": OTHER_QID}
    yield "valid_0", lambda: ranker(backend).fit(train, TASK.y, qid=TASK.qid, **watched)


ODD = {
    "bool": [True, False],
    "float64": [0.5, 1.5, 2.5, 3.5],
    "Int64": pd.Index([3, 1, 2, 4], dtype="Int64"),
    "mixed-integer": [1, "1", 2, "2"],
    "interval": pd.interval_range(0, 4, 4),
    "datetime64": pd.date_range("2020-01-01", periods=4),
    "mixed": pd.Index([(1, 2), (1, 3), (2, 2), (4, 4)], tupleize_cols=False),
}
READ_BY_LIGHTGBM = ("bool", "float64", "Int64", "mixed-integer")


@pytest.mark.fault(
    "categories that are no texts or whole numbers: intervals, dates, tuples; in XGBoost also "
    "bool, fractions, and texts among numbers",
    promise="`DataError` that names the column and what they are; LightGBM takes the latter",
)
@BOTH
@pytest.mark.parametrize("what", ODD)
def test_categories_that_are_no_words(backend, what):
    table = frame(TASK, ODD[what])
    if backend == "lightgbm" and what in READ_BY_LIGHTGBM:
        assert len(ranker(backend).fit(table, TASK.y, qid=TASK.qid).predict(table)) == TASK.n
        return
    with pytest.raises(
        DataError, match=rf"the column 'z' of X has type category of {what}.*, which"
    ):
        ranker(backend).fit(table, TASK.y, qid=TASK.qid)


def test_a_column_of_categories_without_any():
    table = frame(TASK).assign(z=pd.Categorical([None] * TASK.n))
    ranker("lightgbm").fit(table, TASK.y, qid=TASK.qid)
    with pytest.raises(
        DataError, match="the column 'z' of X has type category without any category"
    ):
        ranker("xgboost").fit(table, TASK.y, qid=TASK.qid)


@pytest.mark.fault(
    "a column that held categories in the training and holds numbers now, or the other way round",
    promise="`DataError` that names the column, what it held and what it holds, also for models "
    "that were saved and loaded",
)
@BOTH
@pytest.mark.parametrize("form", [pd.DataFrame, pd.DataFrame.to_numpy])
def test_numbers_in_place_of_categories(backend, form):
    for what, call in calls(backend, frame(TASK), form(coded(frame(OTHER)))):
        words = f"the column 'z' of {what} is numeric, but in the training data it was categorical"
        with pytest.raises(DataError, match=words):
            call()
    for what, call in calls(backend, form(coded(frame(TASK))), frame(OTHER)):
        words = f"the column 'z' of {what} is categorical, but in the training data it was numeric"
        with pytest.raises(DataError, match=words):
            call()


@pytest.mark.parametrize(("backend", "file"), [("lightgbm", "m.txt"), ("xgboost", "m.ubj")])
def test_a_loaded_model_knows_its_categories(backend, file, tmp_path):
    ranker(backend).fit(frame(TASK), TASK.y, qid=TASK.qid).save(tmp_path / file)
    model = gbmrank.load(tmp_path / file)
    assert len(model.predict(frame(OTHER))) == OTHER.n
    with pytest.raises(DataError, match="the column 'z' of X is numeric, but in the training"):
        model.predict(coded(frame(OTHER)))


@pytest.mark.fault(
    "categories in another order than in the training, or only some of them",
    promise="known by their values, also after early stopping",
)
@BOTH
@pytest.mark.parametrize("stop", [None, 2])
def test_categories_in_another_order(backend, stop):
    watched: dict[str, Any] = {"eval_set": (frame(OTHER), OTHER.y), "eval_qid": OTHER_QID}
    made = ranker(backend, "pairwise(target=ndcg@10)", n_estimators=30, early_stopping_rounds=stop)
    model = made.fit(frame(TASK), TASK.y, qid=TASK.qid, **watched)
    assert stop is None or model.best_iteration_ < 29
    plain, turned = frame(OTHER), frame(OTHER)
    turned["z"] = turned["z"].cat.set_categories(sorted(WORDS))
    expected = model.predict(plain).tolist()
    assert model.predict(turned).tolist() == expected
    few = turned[turned["z"] != "a"]
    few = few.assign(z=few["z"].cat.remove_unused_categories())
    assert model.predict(few).tolist() == np.array(expected)[turned["z"] != "a"].tolist()


@pytest.mark.fault(
    "a category that the training did not have",
    promise="a missing value in LightGBM; in XGBoost `DataError` with the column and the category",
)
@BOTH
@pytest.mark.parametrize("words", [WORDS, np.array([40, 10, 30, 20])])
def test_categories_that_are_new(backend, words):
    new = 50 if words.dtype.kind == "i" else "new"
    other = frame(OTHER, words)
    other["z"] = other["z"].cat.rename_categories({words[0]: new})
    missing = other.assign(z=other["z"].cat.set_categories(words))
    for what, call in calls(backend, frame(TASK, words), other):
        if backend == "lightgbm":
            call()
        else:
            named = "a validation set" if what == "valid_0" else what
            match = f"the column 'z' of {named} has the category '{new}'"
            with pytest.raises(DataError, match=match):
                call()
    model = ranker(backend).fit(frame(TASK, words), TASK.y, qid=TASK.qid)
    scores = model.predict(missing).tolist()
    assert backend == "xgboost" or model.predict(other).tolist() == scores
