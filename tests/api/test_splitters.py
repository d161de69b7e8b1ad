"""Splitters of scikit-learn that keep queries whole."""

import copy

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import gbmrank
from gbmrank import GBMRanker, QueryKFold, QueryTimeSplit
from gbmrank.errors import DataError, GroupError, LeakageWarning, ParameterError
from tests.ranking_tasks import make_task

TASK = make_task(seed=0, queries=40)
ORDER = np.random.default_rng(0).permutation(TASK.n)
X, Y, QID = TASK.x[ORDER], TASK.y[ORDER], TASK.qid[ORDER]


def test_folds_hold_whole_queries_and_every_row_once():
    seen = np.zeros(TASK.n, int)
    for train, test in QueryKFold(4).split(X, Y, qid=QID):
        assert not set(QID[train]) & set(QID[test])
        assert len(train) + len(test) == TASK.n
        seen[test] += 1
    assert (seen == 1).all()
    again = QueryKFold(4).split(X, groups=QID)  # as scikit-learn passes them without routing
    for one, other in zip(QueryKFold(4).split(X, qid=QID), again, strict=True):
        np.testing.assert_array_equal(one[1], other[1])


def test_time_is_split_between_queries_of_different_times():
    time = QID // 3  # three queries at a time
    splits = list(QueryTimeSplit(3).split(X, Y, qid=QID, time=time))
    assert len(splits) == 3
    for train, test in splits:
        assert time[train].max() < time[test].min()
    dates = np.datetime64("2024-01-01") + time
    for one, other in zip(splits, QueryTimeSplit(3).split(X, qid=QID, time=dates), strict=True):
        np.testing.assert_array_equal(one[0], other[0])
    with pytest.raises(DataError, match="2 different times cannot be cut into 4 parts"):
        list(QueryTimeSplit(3).split(X, qid=QID, time=QID > 20))


@pytest.mark.parametrize("splitter", [QueryKFold(3), QueryTimeSplit(3)])
def test_they_read_what_scikit_learn_routes(splitter):
    columns = {"qid": QID, **({"time": QID} if isinstance(splitter, QueryTimeSplit) else {})}
    model = GBMRanker(n_estimators=3, n_jobs=1)
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_val_score(model, X, Y, cv=splitter, params=columns)
        search = GridSearchCV(model, {"learning_rate": [0.1, 0.3]}, cv=splitter)
        search.fit(X, Y, **columns)
        assert clone(search).get_params()["cv"].n_splits == 3
    by_hand = []
    for train, test in splitter.split(X, Y, **columns):
        fitted = clone(model).fit(X[train], Y[train], qid=QID[train])
        by_hand.append(fitted.score(X[test], Y[test], qid=QID[test]))
    np.testing.assert_allclose(found, by_hand)
    assert search.best_params_["learning_rate"] in (0.1, 0.3)
    assert repr(copy.deepcopy(splitter)) == repr(splitter)


def test_what_cannot_be_split_is_told():
    with pytest.raises(GroupError, match=r"params=.*'qid'.*groups=qid"):
        list(QueryKFold(3).split(X, Y))
    with pytest.raises(GroupError, match="entries, but there are"):
        list(QueryKFold(3).split(X, Y, qid=QID[:5]))
    with pytest.raises(DataError, match="time of each row"):
        list(QueryTimeSplit(3).split(X, Y, qid=QID))
    for time in (
        [1.0, np.nan, 2.0],
        np.array(["2024-01-01", "NaT", "2024-01-02"], "datetime64[D]"),
    ):
        with pytest.raises(DataError, match="one number or date for each of the 3 rows"):
            list(QueryTimeSplit(2).split(qid=[0, 1, 2], time=time))
    with pytest.raises(ParameterError, match="n_splits"):
        QueryKFold(1)
    with pytest.raises(ParameterError, match="n_splits=1000, but there are only"):
        list(QueryKFold(1000).split(X, Y, qid=QID))


# --- queries on both sides ---------------------------------------------------------------------

RNG = np.random.default_rng(1)
USER = np.repeat(RNG.normal(size=(40, 2)), TASK.sizes, axis=0)[ORDER]  # features of a query
WHOLE = np.c_[USER, X]


def scored(train, test, ids=QID, table=WHOLE, others=None):
    model = GBMRanker(n_estimators=3, n_jobs=1).fit(table[train], Y[train], qid=ids[train])
    others = table if others is None else others
    assert model.rank(others[test], qid=ids[test]).min() == 1
    return model.score(others[test], Y[test], qid=ids[test])


def test_a_split_through_queries_warns_in_score_and_rank():
    for train, test in KFold(3, shuffle=True, random_state=0).split(WHOLE):
        model = GBMRanker(n_estimators=3).fit(WHOLE[train], Y[train], qid=QID[train])
        for call in (
            lambda: model.score(WHOLE[test], Y[test], qid=QID[test]),  # noqa: B023
            lambda: model.rank(WHOLE[test], qid=QID[test]),  # noqa: B023
            lambda: model.top_k(WHOLE[test], 2, qid=QID[test]),  # noqa: B023
        ):
            with pytest.warns(LeakageWarning, match=r"were trained on .*QueryKFold"):
                call()
    train, test = next(KFold(3, shuffle=True, random_state=0).split(WHOLE))
    with pytest.warns(LeakageWarning, match="other rows"):  # ids that number nothing
        scored(train, test, QID * 1009, X)


def test_some_queries_that_were_trained_on_warn():
    half = np.flatnonzero(QID < 20)
    with pytest.warns(LeakageWarning, match="20 of 40 queries were trained on"):
        scored(half, np.arange(TASK.n))


@pytest.mark.parametrize("kind", ["array", "sparse", "frame"])
def test_legitimate_scores_are_quiet(kind):
    make = {
        "array": np.asarray,
        "sparse": __import__("scipy.sparse", fromlist=["csr_matrix"]).csr_matrix,
        "frame": __import__("pandas").DataFrame,
    }[kind]
    other = make(
        np.c_[np.repeat(RNG.normal(size=(40, 2)), TASK.sizes, axis=0), RNG.normal(size=X.shape)]
    )
    table, labels = make(WHOLE), make_task(seed=0, queries=40).y
    model = GBMRanker(n_estimators=3).fit(table, Y, qid=QID)
    model.score(table, Y, qid=QID)  # the training set itself
    model.score(other, labels, qid=TASK.qid)  # another file, whose ids start at 0 too
    model.score(other, labels, qid=TASK.qid + 1)
    model.rank(other)  # one list
    mixed = np.arange(TASK.n)[QID < 20]
    few = table.iloc[mixed] if kind == "frame" else table[mixed]
    assert not np.isnan(model.score(few, Y[mixed], qid=QID[mixed]))
    assert "_seen" not in vars(copy.deepcopy(model))
    with pytest.warns(LeakageWarning):
        GBMRanker(n_estimators=3).fit(few, Y[mixed], qid=QID[mixed]).score(table, Y, qid=QID)


def test_fit_compares_rows_and_not_only_ids(tmp_path):
    other = np.c_[np.repeat(RNG.normal(size=(40, 2)), TASK.sizes, axis=0), RNG.normal(size=X.shape)]
    rows = {"X": WHOLE, "y": Y, "qid": QID}
    model = GBMRanker(n_estimators=3)
    model.fit(**rows, eval_set=(other, TASK.y), eval_qid=TASK.qid)  # ids restart in each file
    with pytest.warns(LeakageWarning, match="40 queries are in the training set and in valid_0"):
        model.fit(**rows, eval_set=(WHOLE, Y), eval_qid=QID)
    changed = np.where(QID[:, None] < 10, WHOLE, other[np.argsort(ORDER)[ORDER]])
    with pytest.warns(LeakageWarning, match="10 queries are in the training set and in valid_0"):
        model.fit(**rows, eval_set=(changed, Y), eval_qid=QID)
    model.save(tmp_path / "model.txt")
    gbmrank.load(tmp_path / "model.txt").score(changed, Y, qid=QID)  # nothing is in the file
