"""Labels, rows and features that cannot be used."""

import itertools
import re

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

import gbmrank
from gbmrank.errors import DataError, GbmrankError, GbmrankWarning, LabelRangeError, WeightError
from tests.faults.interfaces import BACKENDS, OTHER, OTHER_QID, TASK, data_set, fit, ranker, train
from tests.ranking_tasks import Task

BOTH = pytest.mark.parametrize("backend", BACKENDS)


def with_labels(labels):
    return Task(TASK.x, np.asarray(labels), TASK.sizes)


@pytest.mark.fault(
    "a label is NaN or infinite", promise="`DataError` with the count, the first row and its query"
)
@BOTH
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_labels_that_are_not_finite(backend, bad):
    labels = TASK.y.copy()
    labels[[20, 25]] = bad
    query = int(TASK.qid[20])
    words = rf"2 of {TASK.n} labels are NaN or infinite; .* in row 20, query {query};"
    with pytest.raises(DataError, match=words):
        fit(backend, task=with_labels(labels))
    with pytest.raises(DataError, match=words):
        gbmrank.metric("ndcg").score(labels, TASK.y, qid=TASK.qid)
    mixed = np.random.default_rng(0).permutation(TASK.n)
    first = min(int(row) for row in np.flatnonzero(np.isin(mixed, [20, 25])))
    last = max(int(row) for row in np.flatnonzero(np.isin(mixed, [20, 25])))
    queries = TASK.qid[mixed]
    # Queries come in order of their first row, so the row that is named may be either one.
    at = min((first, last), key=lambda row: int(np.argmax(queries == queries[row])))
    assert not np.array_equal(np.sort(queries), queries)
    with pytest.raises(DataError, match=rf"in row {at}, query {queries[at]};"):
        ranker(backend).fit(TASK.x[mixed], labels[mixed], qid=queries)


@pytest.mark.fault(
    "a NaN label in the booster's own data set",
    promise="XGBoost rejects it; LightGBM has turned it into 0 before gbmrank is called: check "
    "labels, or use `GBMRanker`",
)
def test_labels_that_boosters_change():
    labels = TASK.y.copy()
    labels[TASK.y.argmax()] = np.nan
    stored = data_set("lightgbm", with_labels(labels)).construct().get_label()
    assert stored[TASK.y.argmax()] == 0.0
    with pytest.raises(xgb.core.XGBoostError, match="Label contains NaN"):
        data_set("xgboost", with_labels(labels))


@pytest.mark.fault(
    "a negative label",
    promise="`LabelRangeError` from objectives and metrics with gains; those that only compare "
    "labels take it",
)
@BOTH
def test_negative_labels(backend):
    shifted = with_labels(TASK.y - 2.0)
    with pytest.raises(LabelRangeError, match=r"got -2\b"):
        fit(backend, "pairwise(target=ndcg@10)", shifted)
    with pytest.raises(LabelRangeError, match="not negative"):
        train(backend, "pairwise(target=dcg)", data_set(backend, shifted))
    with pytest.raises(LabelRangeError, match="not negative"):
        gbmrank.metric("ndcg").score([-1, 0], [0.0, 1.0])
    same = fit(backend, "ranknet", metric="auc(threshold=1)").predict(TASK.x)
    compared = fit(backend, "ranknet", shifted, metric="auc(threshold=1)").predict(TASK.x)
    assert compared.tolist() == same.tolist()


@pytest.mark.fault(
    "a fractional label", promise="accepted: the gain is `2^y - 1` for every y that is not negative"
)
@BOTH
def test_fractional_labels(backend):
    gain = 2**1.5 - 1
    assert gbmrank.metric("dcg").score([1.5, 0], [1.0, 0.0]) == pytest.approx(gain, rel=1e-15)
    halves = with_labels(TASK.y / 2)
    scores = fit(backend, "pairwise(target=ndcg@10)", halves).predict(TASK.x)
    assert len(np.unique(scores)) > 3


@pytest.mark.fault(
    "a label above 31 with the gain `2^y - 1`",
    promise="`LabelRangeError` with the largest label; it suggests a linear gain or a table",
)
@BOTH
def test_labels_above_the_gain(backend):
    large = with_labels(TASK.y * 10)
    words = r"largest label is 40"
    for use in (fit, lambda b, o, t: train(b, o, data_set(b, t))):
        with pytest.raises(LabelRangeError, match=words) as caught:
            use(backend, "pairwise(target=ndcg@10)", large)
        assert "gain" in str(caught.value)
        assert "linear" in str(caught.value)
    linear = "pairwise(target=dcg(gain=linear))"
    fitted = fit(backend, linear, large, metric="ndcg(gain=linear)@10")
    assert fitted.score(TASK.x, large.y, qid=TASK.qid) > 0.5


@pytest.mark.fault(
    "labels of a small integer type",
    promise="widened first, so that nothing wraps around: the numbers are those of float64",
)
@given(
    st.lists(st.integers(0, 31), min_size=2, max_size=8),
    st.sampled_from(["uint8", "int8", "int16", "uint32", "int32", "int64", "float16", "float32"]),
)
def test_small_integer_labels(labels, kind):
    scores = np.arange(len(labels)) % 3
    typed = np.array(labels, dtype=kind)
    for name in ("pairwise(target=dcg)", "ranknet", "linear"):
        made = gbmrank.objective(name)
        wide = made.gradients(np.array(labels, float), scores.astype(float))[0]
        assert made.gradients(typed, scores.astype(np.uint8))[0].tolist() == wide.tolist()
    dcg = gbmrank.metric("dcg")
    assert dcg.score(typed, scores) == dcg.score(np.array(labels, float), scores)


@pytest.mark.fault(
    "a query with no relevant row, or with equal labels, or with one row",
    promise="no gradient from losses that compare labels; a metric is NaN for the query, and "
    "`empty=` decides what the mean does",
)
@pytest.mark.parametrize("labels", [[0, 0, 0], [2, 2, 2], [3], [0]])
def test_queries_without_a_preference(labels):
    scores = np.linspace(-1, 1, len(labels))
    for name in ("ranknet", "rankboost", "ranksvm", "w_ranknet"):
        grad, hess = gbmrank.objective(name).gradients(labels, scores)
        assert not grad.any()
        assert not hess.any()
    if not any(labels):  # no utility: nothing pulls
        grad, _ = gbmrank.objective("pairwise(target=ndcg)").gradients(labels, scores)
        assert not grad.any()
        both = ([*labels, 1, 0], [*scores, 2.0, 1.0])
        group = [len(labels), 2]
        assert np.isnan(gbmrank.metric("ndcg").per_query(*both, group=group)[0])
        means = [
            gbmrank.metric(f"ndcg(empty={rule})").score(*both, group=group)
            for rule in ("skip", "zero", "one")
        ]
        assert means == [1.0, 0.5, 1.0]


@pytest.mark.fault(
    "queries without a preference in a comparison", promise="counted, and shown in the report"
)
def test_queries_without_a_preference_are_counted(tmp_path):
    from gbmrank.experiments.provenance import data_facts
    from gbmrank.experiments.sources import read_source

    labels = [0, 0, 1, 1, 2, 1, 0]
    table = {"x": np.arange(7.0)[:, None], "y": labels, "qid": [1, 1, 2, 2, 3, 4, 4]}
    found = data_facts(read_source((table["x"], table["y"], table["qid"])))
    counts = [found[key] for key in ("without_relevant", "all_labels_equal", "singletons")]
    assert counts == [1, 2, 1]
    sizes, y = TASK.sizes, TASK.y.copy()
    starts = np.cumsum(sizes) - sizes
    for query in (2, 5, 11):
        y[starts[query] : starts[query] + sizes[query]] = 0.0
    x, y = np.concatenate([TASK.x, TASK.x[:2]]), np.append(y, [1.0, 2.0])
    data = (x, y, np.append(TASK.qid, [1001, 1002]))
    quick = {"folds": 2, "rounds": 2, "isolate": False, "metrics": "ndcg@3"}
    made = gbmrank.compare(data, objectives=["ranknet"], backends=["lightgbm"], **quick)
    made.to_html(tmp_path / "report.html")
    cells = re.findall(r">([^<>]+)</", (tmp_path / "report.html").read_text(encoding="utf-8"))
    told = dict(itertools.pairwise(cells))
    expected = data_facts(read_source(data))
    assert (expected["singletons"], expected["without_relevant"]) == (2, 3)
    assert told["Queries of one row"] == "2"
    assert told["Queries without a relevant row"] == "3"
    assert told["Queries with equal labels"] == str(expected["all_labels_equal"])


@pytest.mark.fault(
    "no query with two different labels in the whole training set",
    promise="`DataError` before training: there is nothing to learn; a fold or a callback alone "
    "goes on",
)
@BOTH
def test_nothing_to_learn(backend):
    flat = with_labels(np.repeat(np.arange(len(TASK.sizes)) % 3, TASK.sizes).astype(float))
    with pytest.raises(DataError, match=r"nothing to learn"):
        fit(backend, task=flat)
    with pytest.raises(DataError, match="nothing to learn: none of the 30 training queries"):
        gbmrank.compare((flat.x, flat.y, flat.qid), backends=[backend], isolate=False)
    rows = data_set(backend, flat)
    if backend == "lightgbm":
        rows.construct()
    grad, hess = gbmrank.objective("ranknet")(np.zeros(TASK.n), rows)
    assert not grad.any()
    assert (hess > 0).all()  # boosters divide by it


@pytest.mark.fault(
    "no rows, or no features",
    promise="`DataError` from the estimator; a callback without rows (an idle worker) answers "
    "with empty arrays",
)
@BOTH
def test_no_rows_and_no_features(backend):
    with pytest.raises(DataError, match=r"0 sample\(s\)"):
        ranker(backend).fit(np.zeros((0, 3)), [], qid=[])
    with pytest.raises(DataError, match=r"0 feature\(s\)"):
        ranker(backend).fit(np.zeros((4, 0)), [1, 0, 1, 0], qid=[1, 1, 2, 2])
    grad, hess = gbmrank.objective("ranknet")(np.zeros(0), np.zeros(0))
    assert grad.shape == hess.shape == (0,)
    empty = xgb.DMatrix(np.zeros((0, 3)))
    assert gbmrank.objective("ranknet")(np.zeros(0), empty)[0].shape == (0,)


@pytest.mark.fault(
    "a start (`init_score`, `base_margin`, `base_score`) that is NaN or infinite",
    promise="`DataError` with the row and its query, which points at the start",
)
@pytest.mark.parametrize(
    ("backend", "bad"), [("lightgbm", np.inf), ("xgboost", np.inf), ("xgboost", np.nan)]
)
def test_a_start_that_is_not_finite(backend, bad):
    start = np.zeros(TASK.n)
    start[7] = bad
    words = rf"score of row 7, query {TASK.qid[7]}, is .*init_score or base_margin"
    with pytest.raises(DataError, match=words):
        train(backend, "ranknet", data_set(backend, start=start))
    if backend == "xgboost":
        with pytest.raises(DataError, match="base_score must be a finite number"):
            fit(backend, base_score=bad)


@pytest.mark.fault(
    "NaN in `init_score` of a LightGBM data set",
    promise="LightGBM has turned it into 0 before gbmrank is called: check it yourself",
)
def test_a_start_that_lightgbm_changes():
    start = np.ones(TASK.n)
    start[7] = np.nan
    assert data_set("lightgbm", start=start).construct().get_init_score()[7] == 0.0


@pytest.mark.fault(
    "an infinite label in LightGBM's own data set",
    promise="`DataError` with the row and its query, also where LightGBM stores 1e38 for it",
)
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinite_labels_in_lightgbm(bad):
    labels = TASK.y.copy()
    labels[20] = bad
    words = rf"the label of row 20, query {TASK.qid[20]}, is infinite"
    with pytest.raises(DataError, match=words):
        train("lightgbm", "ranknet", data_set("lightgbm", with_labels(labels)))


@pytest.mark.fault(
    "labels of several columns in an XGBoost data set",
    promise="`DataError` with their shape: one label per row",
)
def test_labels_of_several_columns():
    rows = xgb.DMatrix(TASK.x, np.column_stack([TASK.y, TASK.y]), qid=TASK.qid)
    words = rf"one label per row, .* of shape \({TASK.n}, 2\)|but there are {2 * TASK.n} rows"
    with pytest.raises(GbmrankError, match=words):  # the second where XGBoost flattens them
        train("xgboost", "ranknet", rows)
    for labels in (np.array(1.0), np.zeros((0, 2)), np.zeros((3, 2))):
        with pytest.raises(GbmrankError, match="one label per row"):
            gbmrank.objective("ranknet")(labels, np.zeros(1))


@pytest.mark.fault(
    "labels of a query that become equal in float32, in which boosters keep them",
    promise="a warning with two such labels, their share and what to do from `GBMRanker`, a note "
    "in `compare`; in the boosters' own APIs the labels are rounded before gbmrank sees them",
)
@BOTH
def test_labels_that_float32_merges(backend):
    moved = with_labels(TASK.y / 8.0 + 2.0**22)
    words = r"of the training set become equal, such as 4194304(\.\d+)? and 4194304\.\d+; subtract"
    with pytest.warns(GbmrankWarning, match=words):
        fit(backend, task=moved, metric="pairwise_disagreement")
    with pytest.warns(GbmrankWarning, match="valid_0"):
        ranker(backend, metric="pairwise_disagreement").fit(
            TASK.x,
            TASK.y,
            qid=TASK.qid,
            eval_set=(OTHER.x, OTHER.y / 8.0 + 2.0**22),
            eval_qid=OTHER_QID,
        )
    fit(backend, task=with_labels(TASK.y / 4.0 + 2.0**20), metric="pairwise_disagreement")
    fit(backend, task=with_labels(TASK.y + 0.1), metric="pairwise_disagreement")


@pytest.mark.fault(
    "whole numbers beyond 2^53, such as times in nanoseconds, as labels or scores",
    promise="`DataError` with the count and the first row where float64 does not have them; in "
    "text files they are read as float64",
)
def test_whole_numbers_with_too_many_digits():
    large = np.array([1700000000000000000, 1700000000000000100])
    words = "are whole numbers with more digits than float64 can represent"
    with pytest.raises(DataError, match=words):
        ranker("lightgbm").fit(TASK.x, TASK.y.astype(np.int64) + 2**53, qid=TASK.qid)
    with pytest.raises(DataError, match=f"1 of 2 scores {words}"):
        gbmrank.metric("auc").score([0, 1], large)
    with pytest.raises(DataError, match=f"1 of 2 labels {words}"):
        gbmrank.objective("ranknet").gradients(large, [0.0, 0.0])
    with pytest.raises(DataError, match=f"of {TASK.n} labels {words}"):
        gbmrank.compare((TASK.x, TASK.y.astype(np.int64) + 2**60, TASK.qid), isolate=False)
    assert gbmrank.metric("auc").score([0, 1], large - large[0]) == 1.0


@pytest.mark.fault(
    "a data set of a booster without labels",
    promise="`DataError` in XGBoost; in LightGBM, which stores zeros, a warning that says so, in "
    "training and in validation",
)
def test_data_sets_without_labels():
    with pytest.raises(DataError, match="the data set has no labels, but there are"):
        train("xgboost", "ranknet", xgb.DMatrix(TASK.x, qid=TASK.qid))
    words = f"all {TASK.n} labels of a data set are 0, .* default for missing labels"
    with pytest.warns(GbmrankWarning, match=words) as caught:
        train("lightgbm", "ranknet", lgb.Dataset(TASK.x, group=TASK.sizes))
    assert len(caught) == 1
    rows = data_set("lightgbm")
    blank = lgb.Dataset(OTHER.x, group=OTHER.sizes, reference=rows).construct()
    with pytest.warns(GbmrankWarning, match=f"all {OTHER.n} labels of a data set are 0"):
        gbmrank.metric("dcg@3")(np.zeros(OTHER.n), blank)
    zeros = (OTHER.x, np.zeros(OTHER.n))  # given, so that there is nothing to warn of
    ranker("lightgbm", metric="dcg@3").fit(
        TASK.x, TASK.y, qid=TASK.qid, eval_set=zeros, eval_qid=OTHER_QID
    )


@pytest.mark.fault(
    "labels or weights beyond 1e150",
    promise="`DataError` or `WeightError` with the first one: sums of them overflow",
)
def test_labels_and_weights_that_overflow():
    huge = [0, 1e308, 1e308]
    with pytest.raises(DataError, match=r"2 of 3 labels are beyond 1e\+150"):
        gbmrank.metric("pairwise_disagreement").score(huge, [1, 0.0, 2])
    with pytest.raises(DataError, match=r"2 of 3 labels are beyond 1e\+150"):
        gbmrank.objective("linear").gradients(huge, [0, 0.0, 0])
    with pytest.raises(WeightError, match=r"got 1e\+308 at index 0"):
        gbmrank.metric("dcg").score([1, 0, 1, 0], [1, 0, 1, 0], group=[2, 2], weight=[1e308, 1e308])


@pytest.mark.fault(
    "scores of another length than the labels, for an objective that is bound to them",
    promise="`DataError` with both lengths, before anything is read or written",
)
def test_scores_of_another_length_for_a_bound_objective():
    data = gbmrank.RankingData.from_arrays([1, 0, 2, 0])
    bound = gbmrank.objective("ranknet").bind(data)
    for call in (bound.gradients, bound.losses):
        with pytest.raises(DataError, match=r"\b3\b.*\b4 rows"):
            call(np.zeros(3))
