"""Query sizes and query ids that do not describe the rows."""

import re
import warnings
from decimal import Decimal
from functools import partial
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost as xgb

import gbmrank
from gbmrank.errors import (
    DataError,
    GbmrankWarning,
    GroupError,
    LeakageWarning,
    ParameterError,
)
from gbmrank.experiments.sources import read_source
from tests.faults.interfaces import BACKENDS, OTHER, OTHER_QID, TASK, fit, ranker, train

BOTH = pytest.mark.parametrize("backend", BACKENDS)
RANKNET, NDCG = gbmrank.objective("ranknet"), gbmrank.metric("ndcg@5")


@pytest.mark.fault("a query of size 0", promise="`GroupError` with its index")
def test_a_query_without_rows():
    words = r"group size 0 at index 1: every query needs at least one row"
    with pytest.raises(GroupError, match=words):
        NDCG.score([1, 0, 1], [0.0, 1.0, 2.0], group=[2, 0, 1])
    sizes = [TASK.sizes[0], 0, *TASK.sizes[1:]]
    with pytest.raises(GroupError, match=words):
        train("lightgbm", RANKNET, lgb.Dataset(TASK.x, TASK.y, group=sizes))
    assert issubclass(GroupError, DataError)


@pytest.mark.fault(
    "a query of size 0 in an XGBoost data set",
    promise="`GroupError` with its index, as everywhere",
)
def test_a_query_without_rows_in_xgboost():
    rows = xgb.DMatrix(TASK.x, TASK.y)
    rows.set_group([TASK.sizes[0], 0, *TASK.sizes[1:]])
    with pytest.raises(GroupError, match="group size 0 at index 1"):
        train("xgboost", RANKNET, rows)


@pytest.mark.fault(
    "group sizes that do not sum to the number of rows", promise="`GroupError` with both numbers"
)
def test_sizes_that_do_not_sum_up():
    with pytest.raises(GroupError, match=r"sum to 5 in 2 queries, but there are 4 rows"):
        RANKNET.gradients([1, 0, 1, 0], np.zeros(4), group=[2, 3])


@pytest.mark.fault(
    "names of columns for labels or query ids in `fit`, as `DaskGBMRanker` takes them",
    promise="`DataError` with the columns to pass, before the features are read",
)
@pytest.mark.parametrize("kind", [gbmrank.GBMRanker, gbmrank.PairRanker, gbmrank.LowRankRanker])
@pytest.mark.parametrize("ids", [[1, 1, 2, 2], ["a", "a", "b", "b"]])
def test_names_of_columns(kind, ids):
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "grade": [0, 1, 1, 0], "search": ids})
    for y in ("grade", frame["grade"]):
        with pytest.raises(DataError, match=r"not column names: .*qid=df\['search'\]"):
            kind().fit(frame, y, qid="search")
    with pytest.raises(DataError, match=r"df\['grade'\]"):
        kind().fit(frame, "grade", qid=frame["search"])


@pytest.mark.fault(
    "query ids given as group sizes",
    promise="`GroupError`: it looks like query ids, use `qid=`",
)
@pytest.mark.parametrize("ids", [[7, 7, 8, 8], ["a", "a", "b", "b"]])
def test_ids_in_place_of_sizes(ids):
    with pytest.raises(GroupError, match=r"use qid="):
        RANKNET.gradients([1, 0, 1, 0], np.zeros(4), group=ids)


@pytest.mark.fault(
    "rows of a query that are not together",
    promise="sorted inside by arrays and estimators, with results in the order given",
)
@BOTH
def test_rows_in_any_order(backend):
    order = np.random.default_rng(0).permutation(TASK.n)
    grad, hess = RANKNET.gradients(TASK.y, TASK.x[:, 0], qid=TASK.qid)
    mixed = RANKNET.gradients(TASK.y[order], TASK.x[order, 0], qid=TASK.qid[order])
    np.testing.assert_allclose(mixed[0], grad[order], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(mixed[1], hess[order], rtol=1e-12)
    kept = fit(backend).predict(TASK.x)
    model = ranker(backend).fit(TASK.x[order], TASK.y[order], qid=TASK.qid[order])
    np.testing.assert_allclose(model.predict(TASK.x), kept, rtol=1e-5, atol=1e-6)
    value = model.score(TASK.x[order], TASK.y[order], qid=TASK.qid[order])
    assert value == pytest.approx(model.score(TASK.x, TASK.y, qid=TASK.qid), rel=1e-12)


@pytest.mark.fault(
    "unsorted query ids in the booster's own data set",
    promise="XGBoost rejects them; LightGBM takes sizes and knows no ids",
)
def test_unsorted_ids_in_the_data_sets_of_boosters():
    with pytest.raises(xgb.core.XGBoostError, match="sorted in non-decreasing order"):
        xgb.DMatrix(TASK.x, TASK.y, qid=TASK.qid[::-1])


@pytest.mark.fault("query ids that are text", promise="taken as they are, in any order")
@BOTH
def test_ids_of_text(backend):
    text = np.array([f"q{n % 7}-{n}" for n in TASK.qid])
    model = ranker(backend).fit(TASK.x, TASK.y, qid=text)
    assert model.predict(TASK.x).tolist() == fit(backend).predict(TASK.x).tolist()


@pytest.mark.fault(
    "a query id that is NaN or missing", promise="`GroupError` with the count and the first row"
)
@BOTH
@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
def test_ids_that_are_missing(backend, missing):
    ids = TASK.qid.astype(object)
    ids[[4, 9]] = missing
    with pytest.raises(GroupError, match=r"qid is missing in 2 rows, first in row 4"):
        ranker(backend).fit(TASK.x, TASK.y, qid=pd.Series(ids))


@pytest.mark.fault(
    "query ids of several types, such as 1 and `'1'`",
    promise="`GroupError`: as strings they would become one query",
)
@BOTH
def test_ids_of_mixed_types(backend):
    ids = TASK.qid.astype(object)
    ids[ids == ids[0]] = str(ids[-1])
    with pytest.raises(GroupError, match="convert the column to strings or to numbers"):
        ranker(backend).fit(TASK.x, TASK.y, qid=ids)


@pytest.mark.fault(
    "large whole numbers as ids in a list, of which numpy makes floats",
    promise="read digit by digit, also beside fractions",
)
@BOTH
def test_ids_of_many_digits(backend):
    ids = [7 if query == 0 else 2**63 + int(query) for query in TASK.qid]
    for mixed in (ids, [0.5 if one == 7 else one for one in ids]):
        assert len(NDCG.per_query(TASK.y, TASK.x[:, 0], qid=mixed)) == len(TASK.sizes)
    model = ranker(backend).fit(TASK.x, TASK.y, qid=ids)
    assert model.predict(TASK.x).tolist() == fit(backend).predict(TASK.x).tolist()
    pairs = gbmrank.PairRanker(backend=backend, n_estimators=3)
    expected = pairs.fit(TASK.x, TASK.y, qid=TASK.qid).rank(TASK.x, qid=TASK.qid)
    assert pairs.rank(TASK.x, qid=ids).tolist() == expected.tolist()
    found = read_source((TASK.x, TASK.y, ids))
    assert found.ids.tolist() == list(dict.fromkeys(map(str, ids)))


@pytest.mark.fault("an evaluation set without query ids", promise="`GroupError` that names the set")
@BOTH
def test_an_evaluation_set_without_ids(backend):
    sets = [(OTHER.x, OTHER.y), (OTHER.x, OTHER.y)]
    with pytest.raises(GroupError, match=r"row of late belongs to: eval_qid="):
        ranker(backend).fit(
            TASK.x,
            TASK.y,
            qid=TASK.qid,
            eval_set=sets,
            eval_qid=[OTHER_QID, None],
            eval_names=["early", "late"],
        )


@pytest.mark.fault(
    "a query in the training set and in an evaluation set",
    promise="`LeakageWarning` with the count and one id, at the line that calls `fit`",
)
@BOTH
def test_a_query_in_both_sets(backend):
    with pytest.warns(LeakageWarning, match=r"\b10 queries.*valid_0") as caught:
        ranker(backend).fit(
            TASK.x, TASK.y, qid=TASK.qid, eval_set=(TASK.x[FIRST], TASK.y[FIRST]), eval_qid=TEN
        )
    assert [one.filename for one in caught] == [__file__]


@pytest.mark.fault(
    "ids that start at 0 in the training set and in an evaluation set, and other rows",
    promise="nothing: these are other queries; ids that do not count are compared alone",
)
@BOTH
def test_other_queries_under_the_same_numbers(backend):
    made = ranker(backend)
    made.fit(TASK.x, TASK.y, qid=TASK.qid, eval_set=(OTHER.x, OTHER.y), eval_qid=OTHER.qid)
    users, own = (np.char.add("user", one.astype(str)) for one in (TASK.qid, OTHER.qid))
    with pytest.warns(LeakageWarning, match="such as 'user"):
        made.fit(TASK.x, TASK.y, qid=users, eval_set=(OTHER.x, OTHER.y), eval_qid=own)


FIRST = TASK.qid < 10
TEN = TASK.qid[FIRST]


@pytest.mark.fault(
    "a query in both sets under ids of different types, such as 0.0 and `'0'`",
    promise="`LeakageWarning` too; dates and bytes are compared with other types as texts",
)
@BOTH
def test_a_query_in_both_sets_under_other_types(backend):
    def watch(qid, eval_qid):
        rows = TASK.x[FIRST], TASK.y[FIRST]
        ranker(backend).fit(TASK.x, TASK.y, qid=qid, eval_set=rows, eval_qid=eval_qid)

    with pytest.warns(LeakageWarning, match=r"10 queries .* such as 0\.0"):
        watch(TASK.qid.astype(float), TEN.astype(str))
    days = np.datetime64("2020-01-01") + TASK.qid
    watch(days, TEN)
    watch(days, (TEN + 1000).astype(str))
    watch(np.array([b"\xff%d" % query for query in TASK.qid]), TEN.astype(str))


@pytest.mark.fault(
    "`lightgbm.cv` without `folds=`, or a subset that cuts queries",
    promise="one warning that names `gbmrank.query_folds`",
)
def test_subsets_that_cut_queries():
    params = {"objective": RANKNET, "metric": "None", "verbosity": -1, "num_threads": 1}
    words = r"only some rows of a query, .*folds=gbmrank\.query_folds\(dataset\)"

    def rows():
        return lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lgb.cv(params, rows(), 2, nfold=3, stratified=False, feval=NDCG)
    assert [re.search(words, str(one.message)) is None for one in caught] == [False]
    again = rows()
    for _ in range(2):  # a warning that is an error is no warning given
        with pytest.raises(GbmrankWarning, match=words):
            lgb.cv(params, again, 2, nfold=3, stratified=False, feval=NDCG)
    with pytest.warns(GbmrankWarning, match=words):
        lgb.cv({**params, "objective": "regression"}, rows(), 2, feval=NDCG, stratified=False)
    first = int(TASK.sizes[0])
    with pytest.warns(GbmrankWarning, match=words):
        lgb.train(params, rows().construct().subset(range(first + 1)), 2)
    lgb.train(params, rows().construct().subset(range(first)), 2)
    whole = rows().construct()
    lgb.cv(params, whole, 2, folds=gbmrank.query_folds(whole, n_folds=3), feval=NDCG)
    lgb.train(params, lgb.Dataset(TASK.x, TASK.y).construct().subset(range(first + 1)), 2)


@pytest.mark.fault(
    "a validation set without `group` (`qid` in XGBoost) beside a training set with queries",
    promise="one query, with a warning",
)
def test_a_validation_matrix_without_queries():
    rows, params = xgb.DMatrix(TASK.x, TASK.y, qid=TASK.qid), {"nthread": 1}
    words = f"its {OTHER.n} rows count as one query, while the training set has 30; .* or qid="

    def watch(valid, train=rows, **more):
        sets = [(train, "train"), (valid, "valid")]
        xgb.train(params, train, 2, evals=sets, custom_metric=NDCG, verbose_eval=False, **more)

    with pytest.warns(GbmrankWarning, match=words) as caught:
        watch(xgb.DMatrix(OTHER.x, OTHER.y), obj=RANKNET)
    assert len(caught) == 1
    with pytest.warns(GbmrankWarning, match=words):
        watch(xgb.DMatrix(OTHER.x, OTHER.y))
    watch(xgb.DMatrix(OTHER.x, OTHER.y, qid=OTHER.qid), obj=RANKNET)
    plain = xgb.DMatrix(TASK.x, TASK.y)
    watch(xgb.DMatrix(OTHER.x, OTHER.y), train=plain, obj=RANKNET)  # one query each, on purpose
    watch(xgb.DMatrix(OTHER.x, OTHER.y, qid=OTHER.qid), obj=RANKNET)
    narrow = xgb.DMatrix(OTHER.x[:, :1], OTHER.y)
    watch(narrow, train=narrow)  # of another task


@pytest.mark.fault(
    "a validation set without `group` (`qid` in XGBoost) beside a training set with queries",
    promise="one query, with a warning",
)
def test_a_validation_set_without_sizes():
    rows = lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes)
    params = {"objective": RANKNET, "metric": "None", "verbosity": -1, "num_threads": 1}

    def watch(valid):
        lgb.train(params, rows, 3, valid_sets=[valid, rows], feval=[NDCG, gbmrank.metric("dcg")])

    words = f"its {OTHER.n} rows count as one query, while the training set has 30; pass group="
    with pytest.warns(GbmrankWarning, match=words) as caught:
        watch(lgb.Dataset(OTHER.x, OTHER.y, reference=rows))
    assert len(caught) == 1
    watch(lgb.Dataset(OTHER.x, OTHER.y, group=OTHER.sizes, reference=rows))
    watch(lgb.Dataset(OTHER.x[:1], OTHER.y[:1] + 1.0, reference=rows))


@pytest.mark.fault(
    "query ids of more than 32 bits, or fractions, in an XGBoost data set",
    promise="XGBoost merges neighbouring queries before gbmrank is called; `GBMRanker` and "
    "`gbmrank.data_iterator` keep them apart, and so does `group=`",
)
@pytest.mark.parametrize("ids", [[7, 2**32 + 7], [0.25, 0.75]])
def test_ids_that_xgboost_merges(ids):
    qid, x, y = np.repeat(ids, 3), np.arange(6.0)[:, None], np.array([0, 1, 2, 2, 1, 0.0])

    def offsets(rows):
        return rows.get_uint_info("group_ptr").tolist()

    assert offsets(xgb.DMatrix(x, y, qid=qid)) == [0, 6]
    assert offsets(xgb.DMatrix(x, y, group=[3, 3])) == [0, 3, 6]
    batches = gbmrank.data_iterator(lambda: iter([{"data": x, "label": y, "qid": qid}]))
    assert offsets(xgb.QuantileDMatrix(batches)) == [0, 3, 6]


@pytest.mark.fault(
    "query ids that are equal and have different texts, such as two spellings of a decimal or one "
    "time in two zones",
    promise="one query; ids that differ and have one text are a `GroupError`",
)
def test_ids_that_are_equal_under_other_texts():
    ids = [Decimal("1"), Decimal("1.0"), Decimal(2), Decimal(2)]
    values = gbmrank.metric("ndcg").per_query([1, 0, 1, 0], [1, 2, 2, 1], qid=ids)
    assert values.tolist() == [1.0 / np.log2(3.0), 1.0]
    with pytest.raises(GroupError, match="qid mixes types"):
        gbmrank.metric("ndcg").per_query([1, 0, 1, 0], [1, 2, 3, 4], qid=[1.0, 1, 2, "2"])


SCATTERED = np.random.default_rng(0).permutation(np.repeat(np.arange(200), 20))
PIECES = np.diff(np.flatnonzero(np.r_[True, SCATTERED[1:] != SCATTERED[:-1], True]))


@pytest.mark.fault(
    "rows shuffled before the sizes of their queries were counted",
    promise="a warning with the number of queries of one row, in every API that takes sizes",
)
@pytest.mark.parametrize("way", ["metric", "objective", "folds", "preferences", *BACKENDS])
def test_queries_in_pieces(way):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4000, 3)), rng.integers(0, 3, 4000)
    rows = {"lightgbm": lambda: lgb.Dataset(x, y, group=PIECES), "xgboost": lambda: _matrix(x, y)}
    calls: dict[str, Any] = {
        "metric": lambda: NDCG.score(y, x[:, 0], group=PIECES),
        "objective": lambda: RANKNET.gradients(y, x[:, 0], group=PIECES),
        "folds": lambda: gbmrank.query_folds(group=PIECES),
        "preferences": lambda: gbmrank.PreferenceGraphs.from_labels(y, group=PIECES),
        **{name: partial(train, name, RANKNET) for name in BACKENDS},
    }
    single = np.count_nonzero(PIECES == 1)
    with pytest.warns(GbmrankWarning, match=rf"{single} of {len(PIECES)} queries .* shuffled"):
        calls[way](*([rows[way]()] if way in rows else []))
    gbmrank.GBMRanker(n_estimators=1).fit(x, y, qid=SCATTERED)  # sorts the rows itself


def _matrix(x, y):
    rows = xgb.DMatrix(x, y)
    rows.set_group(PIECES)
    return rows


@pytest.mark.fault(
    "many rows without queries in a metric or objective of arrays",
    promise="one query, with a warning that shows how to say so",
)
@pytest.mark.parametrize("way", ["score", "per_query", "list", "gradients", "loss"])
def test_forgotten_queries(way):
    rng = np.random.default_rng(1)
    y, scores = rng.integers(0, 3, 1000), rng.normal(size=1000)
    several = gbmrank.metric("ndcg@5, err@5")
    call = {
        "score": NDCG.score,
        "per_query": NDCG.per_query,
        "list": several.score,
        "gradients": RANKNET.gradients,
        "loss": RANKNET.loss,
    }[way]
    with pytest.warns(GbmrankWarning, match=r"all 1000 rows count as one query.*group=\[1000\]"):
        call(y, scores)
    call(y, scores, group=[1000])
    call(y[:500], scores[:500])
    gbmrank.objective("pointwise(target=dcg, normalize=none)").loss(y, scores)  # a sum over rows


@pytest.mark.fault(
    "query ids that are lists, dictionaries or arrays",
    promise="`GroupError` with the first row and its entry",
)
@pytest.mark.parametrize(
    "ids", [pa.array([[1], [1], [1]]), pd.Series([[1]] * 3), [{}, {}, {}], pd.Series([{1}] * 3)]
)
def test_nested_query_ids(ids):
    with pytest.raises(GroupError, match="numbers or text, but row 0 holds"):
        NDCG.score([1, 0, 2], [1, 2, 3], qid=ids)


def test_the_matrix_of_a_query_needs_a_whole_number():
    graphs = gbmrank.PreferenceGraphs.from_edges([0], [1], group=[2])
    wrong: list[Any] = [0.0, "0", None]
    for query in wrong:
        with pytest.raises(ParameterError, match="whole number from 0 to 0"):
            graphs.to_matrix(query)
