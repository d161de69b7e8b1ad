"""Zeros of features, which XGBoost takes for missing where a sparse matrix stores none."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import gbmrank
from gbmrank.data import tables
from gbmrank.errors import DataError
from gbmrank.estimators.model_file import Identity
from tests.faults.interfaces import BACKENDS, ranker
from tests.ranking_tasks import is_before

BOTH = pytest.mark.parametrize("backend", BACKENDS)
QID = np.repeat(np.arange(40), 8)
FORMS = {
    "array": np.array,
    "float32": lambda x: x.astype(np.float32),
    "whole": lambda x: x.astype(np.int64),
    "list": lambda x: x.tolist(),
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": lambda x: pa.Table.from_pandas(pd.DataFrame(x)),
    "pandas, sparse": lambda x: pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(x)),
}


def features(seed):
    """Return numbers of both signs, half of them 0, and labels to which 0 and others matter."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, (len(QID), 4)) * rng.integers(0, 2, (len(QID), 4))
    return x.astype(float), np.clip(x[:, 0] + (x[:, 1] == 0) + 1.0, 0.0, 4.0)


X, Y = features(0)
OTHER, OTHER_Y = features(1)


def stored(x):
    """Return a sparse matrix that stores its zeros too."""
    rows, columns = np.indices(x.shape).reshape(2, -1)
    return sp.csr_matrix((x.ravel(), (rows, columns)), x.shape)


def fit(backend, x, valid=OTHER):
    return ranker(backend).fit(
        x, Y, qid=QID, eval_set=(valid, OTHER_Y), eval_qid=QID + 100, eval_names=["other"]
    )


def found(model, x):
    return (
        model.predict(x).tolist(),
        model.rank(x, qid=QID).tolist(),
        model.score(x, OTHER_Y, qid=QID),
    )


@pytest.mark.fault(
    "sparse features for a model of dense ones, or dense for one of sparse",
    promise="scored as in the form of the training: XGBoost would take zeros for missing that were "
    "numbers, or the other way round; also in evaluation sets, and in models that were saved "
    "and loaded",
)
@pytest.mark.filterwarnings("ignore:Sparse arrays from pandas are converted:UserWarning")
@BOTH
@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_features_makes_no_difference(backend, form, tmp_path):
    if form in ("polars", "pyarrow") and backend == "lightgbm" and is_before("lightgbm", 4, 7):
        pytest.skip("LightGBM 4.6 does not read polars, and pyarrow only with cffi")
    dense, sparse = FORMS[form](X), sp.csr_matrix(X)
    new, other = FORMS[form](OTHER), sp.csr_matrix(OTHER)
    file = tmp_path / ("model.txt" if backend == "lightgbm" else "model.ubj")
    for trained, same, turned in ((dense, new, other), (sparse, other, new)):
        model, watched = fit(backend, trained, same), fit(backend, trained, turned)
        assert model.evals_result_ == watched.evals_result_
        assert found(model, turned) == found(model, same)
        model.save(file)
        assert found(gbmrank.load(file), turned) == found(model, same)


def test_xgboost_itself_scores_them_differently():
    model = fit("xgboost", X)
    plain = model._fitted.scores(sp.csr_matrix(OTHER))
    assert plain.tolist() != model.predict(OTHER).tolist()
    assert fit("xgboost", sp.csr_matrix(X)).predict(OTHER).tolist() != model.predict(OTHER).tolist()


def test_a_sparse_matrix_with_every_cell_stored_is_dense():
    full = fit("xgboost", stored(X))
    expected = found(fit("xgboost", X), OTHER)
    for form in (np.array, stored, sp.csr_matrix):
        assert found(full, form(OTHER)) == expected


@pytest.mark.fault(
    "dense features with zeros for an XGBoost model of sparse ones where some zeros were stored",
    promise="`DataError`: a zero was missing where nothing was stored and a number where it was",
)
def test_zeros_that_were_numbers_and_missing(tmp_path):
    mixed = sp.csr_matrix(X)
    mixed.data[:5] = 0.0
    model = fit("xgboost", mixed, sp.csr_matrix(OTHER))
    model.save(tmp_path / "model.json")
    words = "{} is dense and has zeros.*; pass {} as a sparse matrix that stores the zeros"
    for one in (model, gbmrank.load(tmp_path / "model.json")):
        with pytest.raises(DataError, match=words.format("X", "X")):
            one.predict(OTHER)
        without = np.where(OTHER == 0, 7.0, OTHER)
        assert one.predict(without).tolist() == one.predict(sp.csr_matrix(without)).tolist()
    with pytest.raises(DataError, match=words.format("other", "other")):
        fit("xgboost", mixed)
    assert fit("lightgbm", mixed).predict(OTHER).shape == OTHER_Y.shape


def test_missing_values_stay_missing():
    holes = np.where(OTHER == -2, np.nan, OTHER)
    for form in (np.array, sp.csr_matrix):
        model = fit("xgboost", form(X), form(OTHER))
        assert found(model, sp.csr_matrix(holes)) == found(model, holes)
    assert found(fit("xgboost", X), sp.csr_matrix(holes)) != found(fit("xgboost", X), OTHER)


def test_few_rows_are_filled_up_at_once(monkeypatch):
    model = fit("xgboost", X)
    expected = model.predict(OTHER).tolist()
    monkeypatch.setattr(tables, "_CELLS_AT_ONCE", 4 * 7)
    parts = list(tables.parts_to_score(sp.csr_matrix(OTHER), "numbers", "X"))
    assert {part.shape[0] for part in parts} == {7, len(OTHER) % 7}
    assert model.predict(sp.csr_matrix(OTHER)).tolist() == expected
    bad = sp.csr_matrix(OTHER)
    bad.data[-1] = np.inf
    row = int(bad.tocoo().row[-1])
    with pytest.raises(DataError, match=rf"of X is infinite, .* in row {row},"):
        model.predict(bad)


def test_a_file_that_does_not_say_is_read_as_before(tmp_path):
    model = fit("xgboost", X)
    kept = json.loads(model.booster_.attr("gbmrank"))
    assert kept.pop("zeros") == "numbers"
    model._fitted.stamp(json.dumps(kept))
    model.save(tmp_path / "model.ubj")
    again = gbmrank.load(tmp_path / "model.ubj")
    assert Identity.from_text(json.dumps(kept), "x").columns.zeros is None
    assert again.predict(OTHER).tolist() == model.predict(OTHER).tolist()
    assert again.predict(sp.csr_matrix(OTHER)).tolist() != model.predict(OTHER).tolist()
