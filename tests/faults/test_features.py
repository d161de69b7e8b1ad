"""Features that a booster would misread, or end the process with."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from gbmrank import PairRanker
from gbmrank.data.tables import read_table
from gbmrank.errors import DataError
from gbmrank.experiments.sources import read_source
from tests.faults.interfaces import BACKENDS, OTHER, OTHER_QID, TASK, fit, ranker
from tests.ranking_tasks import Task, is_before

BOTH = pytest.mark.parametrize("backend", BACKENDS)
DAYS = pd.date_range("2020-01-01", periods=TASK.n)
WORDS = [f"w{number % 4}" for number in range(TASK.n)]
NO_NUMBERS = {
    "pandas dates": pd.DataFrame({"a": TASK.x[:, 0], "z": DAYS}),
    "pandas spans": pd.DataFrame({"a": TASK.x[:, 0], "z": DAYS - DAYS[0]}),
    "pandas periods": pd.DataFrame({"a": TASK.x[:, 0], "z": DAYS.to_period("D")}),
    "pandas complex": pd.DataFrame({"a": TASK.x[:, 0], "z": TASK.x[:, 1] * 1j}),
    "polars dates": pl.DataFrame({"a": TASK.x[:, 0], "z": DAYS.to_numpy()}),
    "polars spans": pl.DataFrame({"a": TASK.x[:, 0], "z": [dt.timedelta(1)] * TASK.n}),
    "polars decimals": pl.DataFrame({"a": TASK.x[:, 0], "z": [decimal.Decimal(1)] * TASK.n}),
    "polars nulls": pl.DataFrame({"a": TASK.x[:, 0], "z": [None] * TASK.n}),
    "polars lists": pl.DataFrame({"a": TASK.x[:, 0], "z": [[1.0]] * TASK.n}),
    "arrow dates": pa.table({"a": TASK.x[:, 0], "z": pa.array(DAYS)}),
    "arrow lists": pa.table({"a": TASK.x[:, 0], "z": [[1.0]] * TASK.n}),
    "arrow decimals": pa.table({"a": TASK.x[:, 0], "z": [decimal.Decimal(1)] * TASK.n}),
    "arrow nulls": pa.table({"a": TASK.x[:, 0], "z": pa.nulls(TASK.n)}),
    "arrow numbers by number": pa.table(
        {"a": TASK.x[:, 0], "z": pa.array(TASK.qid).dictionary_encode()}
    ),
}
CATEGORIES = {
    "polars": pl.DataFrame({"z": pl.Series(WORDS, dtype=pl.Categorical), "a": TASK.x[:, 0]}),
    "enum": pl.DataFrame(
        {"z": pl.Series(WORDS, dtype=pl.Enum(sorted(set(WORDS)))), "a": TASK.x[:, 0]}
    ),
    "arrow": pa.table({"z": pa.array(WORDS).dictionary_encode(), "a": TASK.x[:, 0]}),
}


NO_POLARS = r"polars data frame, which needs LightGBM 4\.7"


@pytest.mark.fault(
    "a column of dates, spans of time, decimals, lists, complex numbers, or of nothing",
    promise="`DataError` that names the column and its type",
)
@BOTH
@pytest.mark.parametrize("what", NO_NUMBERS)
def test_columns_that_are_no_numbers(backend, what):
    words = r"the column 'z' of X has type .*, not numbers; encode it"
    if what.startswith("polars") and backend == "lightgbm" and is_before("lightgbm", 4, 7):
        words = NO_POLARS
    with pytest.raises(DataError, match=words):
        ranker(backend).fit(NO_NUMBERS[what], TASK.y, qid=TASK.qid)


@pytest.mark.fault(
    "categories of polars or pyarrow",
    promise="taken by XGBoost, which from 3.4 on asks for `polars.Enum` instead of "
    "`polars.Categorical`; for LightGBM `DataError` that names the column and what to do",
)
@pytest.mark.parametrize("what", CATEGORIES)
def test_categories_outside_pandas(what):
    table = CATEGORIES[what]
    words = r"the column 'z' of X has type .*, but LightGBM reads categories only from pandas"
    if what != "arrow" and is_before("lightgbm", 4, 7):
        words = NO_POLARS
    with pytest.raises(DataError, match=words):
        ranker("lightgbm").fit(table, TASK.y, qid=TASK.qid)
    frame = pd.DataFrame({"z": pd.Categorical(WORDS), "a": TASK.x[:, 0]})
    same = ranker("xgboost").fit(frame, TASK.y, qid=TASK.qid).predict(frame)
    if what == "polars" and not is_before("xgboost", 3, 4):
        with pytest.raises(ValueError, match=r"`polars\.Enum` instead\. Invalid column: z"):
            ranker("xgboost").fit(table, TASK.y, qid=TASK.qid)
    else:
        taken = ranker("xgboost").fit(table, TASK.y, qid=TASK.qid).predict(table)
        assert taken.tolist() == same.tolist()
    assert len(ranker("lightgbm").fit(frame, TASK.y, qid=TASK.qid).predict(frame)) == TASK.n
    plain = ranker("lightgbm").fit(TASK.x[:, :2], TASK.y, qid=TASK.qid)
    with pytest.raises(DataError, match=words):
        plain.predict(table)


@pytest.mark.fault(
    "numbers of a type that LightGBM does not read (half floats of polars and pyarrow, pyarrow's "
    "in pandas)",
    promise="`DataError` that names the column and the type to use; XGBoost takes them",
)
@pytest.mark.parametrize("kind", ["arrow", "pandas"])
def test_numbers_that_lightgbm_does_not_read(kind):
    half = pa.array(TASK.x[:, 0].astype(np.float16))
    table = pa.table({"z": half, "a": TASK.x[:, 1]})
    if kind == "pandas":
        table = pd.DataFrame({"z": TASK.x[:, 0]}).convert_dtypes(dtype_backend="pyarrow")
    with pytest.raises(DataError, match=r"the column 'z' of X has type .*; convert it to float64"):
        ranker("lightgbm").fit(table, TASK.y, qid=TASK.qid)
    assert len(ranker("xgboost").fit(table, TASK.y, qid=TASK.qid).predict(table)) == TASK.n


@pytest.mark.fault(
    "features in the byte order of another machine", promise="converted: the scores are the same"
)
@BOTH
@pytest.mark.parametrize("kind", [">f4", ">f8", ">i4", ">i2"])
def test_features_of_another_byte_order(backend, kind):
    turned = (TASK.x * 9).astype(kind)
    here = turned.astype(turned.dtype.newbyteorder("="))
    expected = fit(backend, task=Task(here, TASK.y, TASK.sizes)).predict(here).tolist()
    model = fit(backend, task=Task(turned, TASK.y, TASK.sizes))
    for table in (turned, here, pd.DataFrame(turned)):
        assert model.predict(table).tolist() == expected
    sparse = ranker(backend).fit(sp.csr_matrix(here), TASK.y, qid=TASK.qid)
    if kind != ">i2":  # scipy takes no matrix of these
        foreign = sp.csr_matrix(here)
        foreign.data = foreign.data.astype(kind)
        assert sparse.predict(foreign).tolist() == sparse.predict(sp.csr_matrix(here)).tolist()


def turned(csr):
    """Return the same matrix with the entries of each row from last to first."""
    at = np.lexsort((-csr.indices, np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))))
    return sp.csr_matrix((csr.data[at], csr.indices[at], csr.indptr), csr.shape)


def twice(csr):
    """Return the same matrix with each entry in two parts, one beside the other."""
    parts = np.column_stack([csr.data - 7.0, np.full(csr.nnz, 7.0)]).reshape(-1)
    return sp.csr_matrix((parts, np.repeat(csr.indices, 2), csr.indptr * 2), csr.shape)


SPARSE = {
    "unsorted": turned,
    "twice": twice,
    "array": lambda csr: sp.csr_array(twice(csr)),
    "by column": lambda csr: twice(csr).tocsc(),
    "coordinates": lambda csr: twice(csr).tocoo(),
}


@pytest.mark.fault(
    "sparse features whose columns are not in order within a row, or with entries that are there "
    "twice",
    promise="read as scipy does: put in order and added up, on a copy",
)
@BOTH
@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_features_in_another_form(backend, kind):
    made = SPARSE[kind]
    first, other = sp.csr_matrix(TASK.x + 1.0), sp.csr_matrix(OTHER.x + 1.0)  # no empty cell
    if kind == "unsorted":
        assert not made(first).has_sorted_indices
    found = []
    for form in (lambda csr: csr, made):
        x, z = form(first), form(other)
        before = x.copy().tocoo()
        model = ranker(backend).fit(
            x, TASK.y, qid=TASK.qid, eval_set=(z, OTHER.y), eval_qid=OTHER_QID
        )
        after = x.tocoo()
        for name in ("data", "row", "col"):
            assert np.array_equal(getattr(before, name), getattr(after, name))
        found.append(
            (
                model.predict(z).tolist(),
                model.rank(z, qid=OTHER_QID).tolist(),
                model.score(z, OTHER.y, qid=OTHER_QID),
                model.evals_result_,
            )
        )
    assert found[0] == found[1]


def test_sparse_features_in_order_are_not_copied():
    given = sp.csr_matrix(TASK.x)
    assert np.shares_memory(read_table(given).data, given.data)


@pytest.mark.fault("masked features", promise="missing values, as NaN is")
@BOTH
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int32])
def test_masked_features(backend, kind):
    values = (TASK.x * 9).astype(kind)
    masked = np.ma.masked_array(values, mask=values > 5)
    holes = np.where(values > 5, np.nan, values)
    expected = fit(backend, task=Task(holes, TASK.y, TASK.sizes)).predict(holes).tolist()
    assert fit(backend, task=Task(masked, TASK.y, TASK.sizes)).predict(masked).tolist() == expected
    compared = read_source((masked, TASK.y, TASK.qid)).X
    assert np.array_equal(compared, holes.astype(compared.dtype), equal_nan=True)


def arrow(values):
    return pa.Table.from_pandas(pd.DataFrame(values))


@pytest.mark.fault(
    "a feature that is infinite, or beyond the largest float32, in XGBoost",
    promise="`DataError` with the column and the row, and what to do; LightGBM takes it",
)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e39])
@pytest.mark.parametrize("frame", [np.array, sp.csr_matrix, pd.DataFrame, pl.DataFrame, arrow])
def test_infinite_features(bad, frame):
    values = TASK.x.copy()
    values[7, 2] = bad
    table = frame(values)
    column = repr({pl.DataFrame: "column_2", pd.DataFrame: "2", arrow: "2"}.get(frame, 2))
    words = "the column {} of {} is infinite, .* in row {}, .*; clip it, or set it to NaN"
    with pytest.raises(DataError, match=words.format(column, "the training set", 7)):
        ranker("xgboost").fit(table, TASK.y, qid=TASK.qid)
    with pytest.raises(DataError, match=words.format(column, "X", 7)):
        ranker("xgboost").fit(frame(TASK.x), TASK.y, qid=TASK.qid).predict(table)
    if frame in (pl.DataFrame, arrow) and is_before("lightgbm", 4, 7):
        pytest.skip("LightGBM 4.6 does not read polars, and pyarrow only with cffi")
    ranker("lightgbm").fit(table, TASK.y, qid=TASK.qid).predict(table)


def test_the_row_of_an_infinite_feature_is_the_one_that_was_given():
    values = OTHER.x.copy()
    values[7, 2] = np.inf
    order = np.random.default_rng(0).permutation(OTHER.n)
    row = int(np.flatnonzero(order == 7)[0])
    with pytest.raises(DataError, match=rf"the column 2 of valid_0 is infinite, .* row {row},"):
        ranker("xgboost").fit(
            TASK.x,
            TASK.y,
            qid=TASK.qid,
            eval_set=(values[order], OTHER.y[order]),
            eval_qid=OTHER_QID[order],
        )


@pytest.mark.fault("rows with different numbers of features", promise="`DataError`")
@pytest.mark.parametrize("made", [ranker("lightgbm"), ranker("xgboost"), PairRanker()])
def test_ragged_features(made):
    rows = [[1.0, 2.0], [3.0], [4.0, 5.0]]
    with pytest.raises(DataError, match="X must be a table of numbers with rows of equal length"):
        made.fit(rows, [1, 0, 1], qid=[0, 0, 0])


def test_masked_features_of_a_pair_ranker():
    hidden = np.ma.masked_array(TASK.x, np.arange(TASK.x.size).reshape(TASK.x.shape) % 5 == 0)
    first, second = (
        PairRanker(n_estimators=3).fit(x, TASK.y, qid=TASK.qid).predict(x, qid=TASK.qid)
        for x in (hidden, hidden.filled(np.nan))
    )
    np.testing.assert_array_equal(first, second)


WORDY = {
    "'z' of X is categorical; encode it": pd.DataFrame({"z": pd.Categorical(WORDS)}),
    "'z' of X must be one column of numbers, .*; encode it": pd.DataFrame({"z": WORDS}),
    "'z' of X is categorical; encode it as": CATEGORIES["polars"],
    "'z' of X is categorical; encode it as numbers": CATEGORIES["arrow"],
    "'z' of X must be one column of numbers": pa.table({"z": WORDS}),
    "X is sparse, .*; pass X.toarray": sp.csr_matrix(TASK.x),
}


@pytest.mark.fault(
    "text, categories or a sparse matrix for `PairRanker`; a sparse matrix for `compare`",
    promise="`DataError` with the column and what to do",
)
@pytest.mark.parametrize("words", WORDY)
def test_features_that_pairs_are_not_made_of(words):
    with pytest.raises(DataError, match=words):
        PairRanker().fit(WORDY[words], TASK.y, qid=TASK.qid)
    if "sparse" in words:
        with pytest.raises(DataError, match=words):
            read_source((WORDY[words], TASK.y, TASK.qid))


@pytest.mark.fault(
    "a feature of `PairRanker` that is infinite, or so large that a difference is",
    promise="`DataError` with the column and the row, and what to do",
)
@BOTH
@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e39, 2e38])
def test_infinite_features_of_a_pair_ranker(backend, bad):
    values = TASK.x.copy()
    values[7, 2] = bad
    model = PairRanker(backend=backend, n_estimators=3).fit(TASK.x, TASK.y, qid=TASK.qid)
    words = "the column {} of X is infinite, .* in row 7; clip it, or set it to NaN"
    with pytest.raises(DataError, match=words.format(2)):
        model.predict(values, qid=TASK.qid)
    with pytest.raises(DataError, match=words.format("'2'")):
        PairRanker(backend=backend).fit(pd.DataFrame(values), TASK.y, qid=TASK.qid)


@pytest.mark.parametrize(
    "form", [pd.DataFrame, pl.DataFrame, arrow, lambda x: pd.DataFrame(x).convert_dtypes()]
)
def test_frames_give_pair_rankers_the_same_numbers(form):
    values = np.where(TASK.x > 1.0, np.nan, TASK.x)
    first, second = (
        PairRanker(n_estimators=3).fit(x, TASK.y, qid=TASK.qid).predict(x, qid=TASK.qid)
        for x in (values, form(values))
    )
    np.testing.assert_array_equal(first, second)


@BOTH
def test_a_batch_of_arrow_is_a_table(backend):
    if backend == "lightgbm" and is_before("lightgbm", 4, 7):
        pytest.importorskip("cffi")
    table = arrow(TASK.x)
    (batch,) = table.to_batches()
    model = ranker(backend).fit(batch, TASK.y, qid=TASK.qid)
    assert model.predict(batch).tolist() == model.predict(table).tolist()
