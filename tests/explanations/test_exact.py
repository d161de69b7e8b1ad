"""Contributions are Shapley values: those of all coalitions, scored by the booster itself."""

import itertools
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xgboost as xgb

import gbmrank
from gbmrank import GBMRanker
from tests.oracles import shapley

WIDTH = 9
CLOSE = {"lightgbm": 1e-12, "xgboost": 1e-6}
BACKENDS = tuple(CLOSE)
PAIRS = ((0, 1), (7, 3), (20, 21), (40, 55))


def table(seed=0, rows=300, categories=True):
    """Nine columns: numbers on a grid with many zeros and gaps, and categories of text."""
    random = np.random.default_rng(seed)
    x = random.integers(-2, 3, size=(rows, WIDTH)) / 2.0
    x[random.random(x.shape) < 0.15] = np.nan
    frame = pd.DataFrame(x, columns=[f"number {at}" for at in range(WIDTH)])
    if categories:
        for name, levels in (("number 2", list("abcdefgh")), ("number 6", [30, 10, 20])):
            column = pd.Categorical(random.choice(levels, rows), categories=levels)
            frame[name] = column
            frame.loc[random.random(rows) < 0.1, name] = np.nan
    return frame


def labels(frame):
    codes = frame["number 2"].cat.codes if frame["number 2"].dtype == "category" else 0
    y = 2 * frame["number 0"].fillna(0.3) + codes % 3 + frame["number 1"].isna()
    return np.clip(np.round(y + frame["number 3"].fillna(0) * frame["number 4"].fillna(1)), 0, 4)


def ranker(backend, x, y, **options):
    qid = np.repeat(np.arange(len(y) // 10), 10)
    model = GBMRanker(backend=backend, **{"n_estimators": 20, "seed": 1, **options})
    return model.fit(x, y, qid=qid)


def score(model, rows):
    return model.predict(rows)


def by_coalitions(predict, x, a, b):
    """Shapley values of the scores of all mixtures of two rows."""
    coalitions = list(itertools.product((False, True), repeat=WIDTH))
    rows = pd.concat([x.iloc[[a]]] * len(coalitions), ignore_index=True)
    for at in range(WIDTH):
        from_b = [not one[at] for one in coalitions]
        rows.loc[from_b, x.columns[at]] = x.iloc[b, at]
    rows = rows.astype(x.dtypes.to_dict())
    values = dict(zip(coalitions, predict(rows).astype(float), strict=True))
    return shapley(values.__getitem__, WIDTH)


def assert_exact(model, x, predict, close, pairs=PAIRS):
    largest = 0.0
    for a, b in pairs:
        found = gbmrank.explain(model, x, pair=(a, b))
        expected = by_coalitions(predict, x, a, b)
        largest = max(largest, np.abs(expected).max())
        scale = max(1.0, abs(found.scores[0]), abs(found.references[0]))  # sums are float32
        np.testing.assert_allclose(found.contributions[0], expected, rtol=0, atol=close * scale)
        back = gbmrank.explain(model, x, pair=(b, a)).contributions
        np.testing.assert_allclose(found.contributions, -back, rtol=0, atol=1e-14)
    assert largest > 0.01


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "dart": {"dart": True},
    "committee": {"objective": "committee(pairwise(target=ndcg@10), query_rmse)"},
    "deep": {"num_leaves": 60, "max_depth": 12, "learning_rate": 0.3},
}


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_pair_is_explained_as_by_all_coalitions(backend, kind):
    options = dict(OPTIONS[kind])
    if options.pop("dart", False):
        options |= {"boosting": "dart"} if backend == "lightgbm" else {"booster": "dart"}
        options |= {"drop_rate": 0.5} if backend == "lightgbm" else {"rate_drop": 0.5}
    if backend == "lightgbm":
        options |= {"min_data_in_leaf": 3, "min_data_per_group": 5, "cat_smooth": 1}
    elif kind == "deep":
        options = {"max_leaves": 60, "max_depth": 12, "learning_rate": 0.3}
    if backend == "xgboost":
        options |= {"max_cat_to_onehot": 4}
    x = table()
    model = ranker(backend, x, labels(x), **options)
    assert_exact(model, x, model.predict, CLOSE[backend])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_list_is_explained_by_the_mean_over_its_items(backend):
    x = table()
    model = ranker(backend, x, labels(x))
    qid = np.array([5, 3, 5, 5, 3, 3, 5])  # rows of a query are not adjacent
    found = model.explain(x.iloc[:7], qid=qid)
    for row in range(7):
        others = np.flatnonzero(qid == qid[row])
        pairs = [
            model.explain(x, pair=(row, other)).contributions[0] for other in others if other != row
        ]
        expected = np.sum(pairs, axis=0) / len(others)
        np.testing.assert_allclose(found.contributions[row], expected, rtol=0, atol=1e-12)
    sums = found.contributions.sum(axis=1)
    np.testing.assert_allclose(sums, found.scores - found.references, rtol=0, atol=CLOSE[backend])


@pytest.mark.parametrize("backend", BACKENDS)
def test_categories_in_another_order_are_those_of_training(backend):
    x = table()
    model = ranker(backend, x, labels(x))
    other = x.copy()
    for name in ("number 2", "number 6"):
        other[name] = other[name].cat.reorder_categories(list(other[name].cat.categories[::-1]))
    found = model.explain(other, pair=(0, 1))
    expected = model.explain(x, pair=(0, 1))
    np.testing.assert_array_equal(found.contributions, expected.contributions)


def foreign_lightgbm(x, y, by_code="auto", **params):
    data = lgb.Dataset(x, y, free_raw_data=False, categorical_feature=by_code)
    given = {"objective": "regression", "verbose": -1, "min_data_in_leaf": 3, "num_threads": 1}
    return lgb.train({**given, **params}, data, 20)


LIGHTGBM: dict[str, dict[str, Any]] = {
    "regression": {},
    "zeros are missing": {"zero_as_missing": True},
    "no branch for missing values": {"use_missing": False},
    "forest": {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
    "many categories": {"min_data_per_group": 1, "cat_smooth": 0.1, "max_cat_to_onehot": 1},
}


@pytest.mark.parametrize("kind", LIGHTGBM)
def test_lightgbm_models_of_any_origin(kind):
    x = table()
    booster = foreign_lightgbm(x, labels(x), **LIGHTGBM[kind])

    def predict(rows):
        return booster.predict(rows, raw_score=True)

    assert_exact(booster, x, predict, 1e-12)


@pytest.mark.parametrize("method", ["hist", "exact"])
def test_xgboost_models_of_any_origin(method):
    x = table(categories=method == "hist")
    rows = xgb.DMatrix(x, labels(x), enable_categorical=True)
    params = {"tree_method": method, "nthread": 1, "max_cat_to_onehot": 1, "num_parallel_tree": 2}
    booster = xgb.train(params, rows, 20)

    def predict(rows):
        return booster.predict(xgb.DMatrix(rows, enable_categorical=True), output_margin=True)

    assert_exact(booster, x, predict, 1e-6)


def test_codes_of_categories_without_a_data_frame():
    random = np.random.default_rng(0)
    codes = random.integers(0, 40, size=(400, WIDTH)).astype(np.float64)
    codes[random.random(codes.shape) < 0.1] = np.nan
    y = np.nan_to_num(codes[:, 0] % 3 + codes[:, 1] % 2 * (codes[:, 2] % 5), nan=1.0)
    kinds = ["c", "c", *"q" * (WIDTH - 2)]
    rows = xgb.DMatrix(codes, y, feature_types=kinds, enable_categorical=True)
    theirs = xgb.train({"nthread": 1, "max_cat_to_onehot": 2}, rows, 10)
    ours = foreign_lightgbm(codes, y, by_code=[0, 1], min_data_per_group=2, cat_smooth=1)
    x = pd.DataFrame(codes)
    for model, predict, close in (
        (
            theirs,
            lambda rows: theirs.predict(xgb.DMatrix(rows.to_numpy(), feature_types=kinds)),
            1e-6,
        ),
        (ours, lambda rows: ours.predict(rows.to_numpy()), 1e-12),
    ):
        for a, b in PAIRS:
            found = gbmrank.explain(model, codes, pair=(a, b)).contributions[0]
            expected = by_coalitions(predict, x, a, b)
            np.testing.assert_allclose(found, expected, rtol=0, atol=close * 10)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sparse_rows(backend):
    random = np.random.default_rng(0)
    values = random.normal(size=(200, WIDTH)) * (random.random((200, WIDTH)) < 0.5)
    x = sp.csr_matrix(values)
    model = ranker(backend, x, np.clip(np.round(values[:, 0] + values[:, 1]), 0, 4))
    frame = pd.DataFrame(values)

    def predict(rows):
        return model.predict(sp.csr_matrix(rows.to_numpy()))

    for a, b in PAIRS:
        found = model.explain(x, pair=(a, b)).contributions[0]
        expected = by_coalitions(predict, frame, a, b)
        np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE[backend])


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_rounds_that_predict_are_explained(backend):
    x, new = table(categories=False), table(1, categories=False)
    y, later = labels(x), labels(new)
    if backend == "lightgbm":
        stop = lgb.early_stopping(3, verbose=False)
        model = lgb.LGBMRanker(n_estimators=60, verbose=-1, n_jobs=1, min_child_samples=3)
        sizes = np.full(30, 10)
        model.fit(
            *(x.to_numpy(), y), group=sizes, eval_set=[(new.to_numpy(), later)], eval_group=[sizes],
            callbacks=[stop],
        )  # fmt: skip
        booster, best, grown = model.booster_, model.best_iteration_, model.booster_.num_trees()
        kept = [model, booster]
    else:
        model = xgb.XGBRanker(n_estimators=60, n_jobs=1, early_stopping_rounds=3)
        qid = np.repeat(np.arange(30), 10)
        model.fit(x, y, qid=qid, eval_set=[(new, later)], eval_qid=[qid], verbose=False)
        best, grown, kept = (
            model.best_iteration + 1,
            model.get_booster().num_boosted_rounds(),
            [model],
        )
    assert best <= grown
    for one in kept:
        found = gbmrank.explain(one, x if backend == "xgboost" else x.to_numpy(), pair=(0, 1))
        scores = model.predict(x if backend == "xgboost" else x.to_numpy())
        difference = float(scores[0]) - float(scores[1])
        assert found.contributions.sum() == pytest.approx(difference, abs=1e-5)


def test_results_depend_neither_on_threads_nor_on_the_size_of_blocks(monkeypatch):
    x = table(categories=False)
    model = ranker("lightgbm", x, labels(x))
    qid = np.repeat(np.arange(60), 5)
    expected = model.explain(x, qid=qid).contributions
    monkeypatch.setattr("gbmrank.explanations.contributions._CELLS_AT_ONCE", 100)
    monkeypatch.setattr("gbmrank.explanations.contributions._NANOSECONDS", 1e4)
    np.testing.assert_allclose(
        model.explain(x, qid=qid).contributions, expected, rtol=0, atol=1e-13
    )
