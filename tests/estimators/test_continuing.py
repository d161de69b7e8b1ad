"""Callbacks of the boosters, continued models, what a training shows, and parameters by name."""

import math
import pickle
import re
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import sklearn.exceptions
import xgboost as xgb

import gbmrank
from gbmrank import GBMRanker, PairRanker
from gbmrank.errors import (
    ConfigError,
    DataError,
    GbmrankError,
    LeakageWarning,
    NotFittedError,
    ParameterError,
)
from tests.ranking_tasks import make_task, run_python

BACKENDS = ["lightgbm", "xgboost"]
TASK, OTHER = make_task(seed=0, queries=30), make_task(seed=1, queries=30)
ROWS: dict[str, Any] = {"X": TASK.x, "y": TASK.y, "qid": TASK.qid}
VALID: dict[str, Any] = {"eval_set": [(OTHER.x, OTHER.y)], "eval_qid": [OTHER.qid + 1000]}


def ranker(backend: str, rounds: int = 6, **params: Any) -> GBMRanker:
    small = {"min_data_in_leaf": 5} if backend == "lightgbm" else {"max_depth": 3}
    return GBMRanker(backend=backend, n_estimators=rounds, n_jobs=1, **{**small, **params})


class Seen(xgb.callback.TrainingCallback):  # type: ignore[misc]
    """Keeps what XGBoost hands to callbacks."""

    def __init__(self) -> None:
        self.log: dict[str, Any] = {}

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        self.log = {name: dict(values) for name, values in evals_log.items()}
        return False


def test_callbacks_of_lightgbm_see_the_names_of_sets_and_metrics():
    seen: dict[str, Any] = {}
    rates = lgb.reset_parameter(learning_rate=lambda number: 0.1 * 0.5**number)
    model = ranker("lightgbm", metric=["ndcg@10", "map(threshold=1)"])
    model.fit(**ROWS, **VALID, callbacks=[lgb.record_evaluation(seen), rates])
    assert list(seen["valid_0"]) == ["gbmrank_ndcg@10", "gbmrank_map_threshold_1"]
    assert seen["valid_0"]["gbmrank_ndcg@10"] == model.evals_result_["valid_0"]["ndcg@10"]
    plain = ranker("lightgbm").fit(**ROWS).predict(TASK.x)
    assert not np.array_equal(model.predict(TASK.x), plain)  # the rates did something


def test_callbacks_of_xgboost_see_the_names_of_sets_and_metrics():
    seen = Seen()
    model = ranker("xgboost", metric=["ndcg@10", "map(threshold=1)"])
    model.fit(**ROWS, **VALID, eval_names=["a-b:c d"], callbacks=[seen])
    names = ["pre_gbmrank_ndcg@10", "pre_gbmrank_map_threshold_1"]
    assert list(seen.log["a_b_c_d"]) == names  # XGBoost cuts at dashes, colons and blanks
    expected = model.evals_result_["a-b:c d"]["ndcg@10"]
    np.testing.assert_allclose(seen.log["a_b_c_d"][names[0]], expected, atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_callback_that_stops_decides_which_rounds_are_kept(backend):
    early = {
        "lightgbm": lambda: lgb.early_stopping(2, verbose=False),
        "xgboost": lambda: xgb.callback.EarlyStopping(rounds=2),
    }[backend]
    model = ranker(backend, 60, learning_rate=0.8).fit(**ROWS, **VALID, callbacks=[early()])
    values = model.evals_result_["valid_0"]["ndcg@10"]
    assert len(values) < 60
    assert model.best_iteration_ == len(values) - 3 == int(np.argmax(values))
    whole = ranker(backend, model.best_iteration_ + 1, learning_rate=0.8).fit(**ROWS)
    np.testing.assert_array_equal(model.predict(OTHER.x), whole.predict(OTHER.x))
    own = ranker(backend, 60, learning_rate=0.8, early_stopping_rounds=2).fit(**ROWS, **VALID)
    assert own.best_iteration_ == model.best_iteration_


@pytest.mark.parametrize(
    ("backend", "callback"), [("lightgbm", Seen()), ("xgboost", lgb.log_evaluation(1))]
)
def test_callbacks_of_the_other_booster_are_rejected(backend, callback):
    with pytest.raises(ConfigError, match=f"got a {type(callback).__name__}"):
        ranker(backend).fit(**ROWS, callbacks=[callback])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_continued_model_is_the_longer_one(backend, tmp_path):
    first, whole = ranker(backend, 3).fit(**ROWS), ranker(backend, 7).fit(**ROWS)
    path = tmp_path / {"lightgbm": "model.txt", "xgboost": "model.ubj"}[backend]
    first.save(path)
    before = first.predict(OTHER.x)
    for given in (first, path, str(path), first.booster_):
        model = ranker(backend, 4).fit(**ROWS, init_model=given)
        assert model.best_iteration_ == 6
        np.testing.assert_allclose(model.predict(OTHER.x), whole.predict(OTHER.x), atol=1e-6)
        assert not np.array_equal(model.predict(OTHER.x), before)
    np.testing.assert_array_equal(first.predict(OTHER.x), before)  # it is left alone
    model.save(path)
    np.testing.assert_array_equal(gbmrank.load(path).predict(OTHER.x), model.predict(OTHER.x))


@pytest.mark.parametrize("backend", BACKENDS)
def test_early_stopping_of_a_continued_model_counts_its_rounds(backend):
    options: dict[str, Any] = {"learning_rate": 0.8, "early_stopping_rounds": 2}
    first = ranker(backend, 2, learning_rate=0.8).fit(**ROWS)
    model = ranker(backend, 60, **options).fit(**ROWS, **VALID, init_model=first)
    values = model.evals_result_["valid_0"]["ndcg@10"]
    assert model.best_iteration_ == 2 + int(np.argmax(values))
    assert model.score(OTHER.x, OTHER.y, qid=OTHER.qid) == pytest.approx(max(values), abs=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_models_that_cannot_be_continued(backend):
    other = ranker({"lightgbm": "xgboost", "xgboost": "lightgbm"}[backend]).fit(**ROWS)
    narrow = ranker(backend).fit(TASK.x[:, :2], TASK.y, qid=TASK.qid)
    for given, error in [
        (other, ConfigError),
        (narrow, DataError),
        (ranker(backend), NotFittedError),
        (7, ConfigError),
    ]:
        with pytest.raises(error):
            ranker(backend).fit(**ROWS, init_model=given)


@pytest.mark.parametrize("backend", BACKENDS)
def test_lines_and_a_bar_show_the_metric(backend, capsys):
    model = ranker(backend, metric=["ndcg@10", "map(threshold=1)"]).fit(**ROWS, **VALID, verbose=3)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["[3]", "[6]"]
    values = model.evals_result_["valid_0"]
    assert f"valid_0: ndcg@10 {values['ndcg@10'][2]:.5f}, map(threshold=1) " in lines[0]
    ranker(backend).fit(**ROWS, **VALID, verbose=True)
    assert len(capsys.readouterr().out.splitlines()) == 6
    for silent in (False, 0, -1):
        ranker(backend).fit(**ROWS, **VALID, verbose=silent)
        assert not capsys.readouterr().out
    ranker(backend).fit(**ROWS, **VALID, verbose="bar")
    shown = capsys.readouterr().out
    assert "6/6" in shown
    assert re.search(r"ndcg@10 0\.\d{5}", shown)
    with pytest.raises(ParameterError, match="got 'loud'"):
        ranker(backend).fit(**ROWS, verbose="loud")


@pytest.mark.parametrize("given", [["shop"], "shop", "name:shop", [1], "1", ("shop",)])
def test_categorical_features_of_lightgbm_by_name(given):
    rng = np.random.default_rng(0)
    shop = rng.integers(0, 6, TASK.n)
    table = pd.DataFrame({"price": rng.normal(size=TASK.n), "shop": shop, "a b": TASK.x[:, 0]})
    labels = (shop % 2).astype(float)
    model = ranker("lightgbm", 2, categorical_feature=given).fit(table, labels, qid=TASK.qid)
    root = model.booster_.dump_model()["tree_info"][0]["tree_structure"]
    assert (root["split_feature"], root["decision_type"]) == (1, "==")
    assert model.score(table, labels, qid=TASK.qid) > 0.99


def test_categorical_features_that_are_not_there():
    with pytest.raises(ConfigError, match="categorical_feature names the column 'shop'"):
        ranker("lightgbm", categorical_feature=["shop"]).fit(**ROWS)
    with pytest.raises(ConfigError, match="did you mean feature_types"):
        ranker("xgboost", categorical_feature=["shop"]).fit(**ROWS)


def test_types_and_weights_of_features_in_xgboost():
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 6, TASK.n), rng.normal(size=TASK.n)])
    labels = table[:, 0] % 2
    model = ranker("xgboost", 2, feature_types=["c", "q"], max_cat_to_onehot=1)
    model.fit(table, labels, qid=TASK.qid)
    assert model.score(table, labels, qid=TASK.qid) == 1.0
    assert model.booster_.feature_types == ["c", "q"]
    weighed = ranker("xgboost", feature_weights=np.eye(TASK.x.shape[1])[1])
    weighed.set_params(colsample_bynode=0.2).fit(**ROWS)
    assert np.flatnonzero(weighed.feature_importances_).tolist() == [1]
    for params in ({"feature_weights": [1.0]}, {"feature_types": ["q"]}):
        with pytest.raises(ConfigError, match="has 1 entries, but the training set has 5 columns"):
            ranker("xgboost", **params).fit(**ROWS)


def test_what_is_so_anyway_is_accepted():
    plain = ranker("xgboost").fit(**ROWS).predict(TASK.x)
    same = ranker("xgboost", missing=math.nan, enable_categorical=True).fit(**ROWS)
    np.testing.assert_array_equal(same.predict(TASK.x), plain)
    for params in ({"missing": 0.0}, {"enable_categorical": False}):
        with pytest.raises(ConfigError, match=next(iter(params))):
            ranker("xgboost", **params).fit(**ROWS)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_seed_may_be_text(backend):
    drawn = {"subsample_freq": 1} if backend == "lightgbm" else {}
    options: dict[str, Any] = {"subsample": 0.5, **drawn}
    text, number = (ranker(backend, seed=seed, **options).fit(**ROWS) for seed in ("3", 3))
    np.testing.assert_array_equal(text.predict(TASK.x), number.predict(TASK.x))
    assert not np.array_equal(
        number.predict(TASK.x), ranker(backend, seed=4, **options).fit(**ROWS).predict(TASK.x)
    )
    with pytest.raises(ConfigError, match="got 'three'"):
        ranker(backend, seed="three").fit(**ROWS)


@pytest.mark.parametrize(("backend", "kind"), [("lightgbm", "split"), ("xgboost", "weight")])
def test_the_kind_of_importance(backend, kind):
    model = ranker(backend, importance_type=kind).fit(**ROWS)
    found = model.feature_importances_
    count = (
        model.booster_.feature_importance("split").astype(float)
        if backend == "lightgbm"
        else np.array([model.booster_.get_score().get(f"f{i}", 0.0) for i in range(len(found))])
    )
    np.testing.assert_allclose(found, count / count.sum())
    gain = ranker(backend).fit(**ROWS).feature_importances_
    assert not np.allclose(found, gain)
    with pytest.raises(ParameterError, match=f"one of .*{kind}"):
        ranker(backend, importance_type="colour").fit(**ROWS)


def test_one_query_needs_no_ids():
    model = ranker("lightgbm").fit(**ROWS)
    rows = TASK.x[:5]
    np.testing.assert_array_equal(model.rank(rows), model.rank(rows, qid=[7] * 5))
    assert model.top_k(rows, 2).tolist() == np.argsort(-model.predict(rows))[:2].tolist()
    pairs = PairRanker(n_estimators=3).fit(**ROWS)
    np.testing.assert_array_equal(pairs.rank(rows), pairs.rank(rows, qid=[7] * 5))
    assert pairs.top_k(rows, 2).tolist() == np.argsort(pairs.rank(rows))[:2].tolist()


def test_the_best_rows_of_every_query():
    model, mixed = ranker("lightgbm").fit(**ROWS), np.random.default_rng(0).permutation(TASK.n)
    x, qid = TASK.x[mixed], TASK.qid[mixed]
    found = model.top_k(x, 3, qid=qid)
    scores, expected = model.predict(x), []
    for query in dict.fromkeys(qid.tolist()):
        rows = np.flatnonzero(qid == query)
        expected.extend(rows[np.argsort(-scores[rows], kind="stable")[:3]].tolist())
    assert found.tolist() == expected
    with pytest.raises(ParameterError, match=r"k must be .* got 0"):
        model.top_k(x, 0, qid=qid)


@pytest.mark.parametrize("model", [GBMRanker(), PairRanker()])
def test_what_is_not_trained_is_an_error_of_scikit_learn_too(model):
    for error in (sklearn.exceptions.NotFittedError, NotFittedError, GbmrankError, AttributeError):
        with pytest.raises(error, match="not trained yet"):
            model.rank(TASK.x, qid=TASK.qid)
    with pytest.raises(NotFittedError) as caught:
        model.rank(TASK.x, qid=TASK.qid)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  (made here)
    assert isinstance(again, NotFittedError)
    assert again.args == caught.value.args
    assert not hasattr(model, "feature_importances_")


def test_what_is_not_trained_without_scikit_learn():
    run_python(
        "import sys, gbmrank\n"
        "try:\n    gbmrank.GBMRanker().predict([[1.0]])\n"
        "except gbmrank.errors.NotFittedError as error:\n    assert 'fit' in str(error)\n"
        "else:\n    raise AssertionError\n"
        "assert 'sklearn' not in sys.modules\n"
    )


def test_the_training_set_beside_the_set_that_decides():
    own, other = (TASK.x, TASK.y), (OTHER.x, OTHER.y)
    ids = TASK.qid, OTHER.qid + 1000
    model = ranker("lightgbm", early_stopping_rounds=2)
    model.fit(**ROWS, eval_set=[own, other], eval_qid=list(ids))  # warnings are errors here
    with pytest.warns(LeakageWarning, match="valid_1"):
        model.fit(**ROWS, eval_set=[other, own], eval_qid=[ids[1], ids[0]])
    half = TASK.qid < 15
    with pytest.warns(LeakageWarning, match="valid_0"):
        model.fit(
            **ROWS,
            eval_set=[(TASK.x[half], TASK.y[half]), other],
            eval_qid=[TASK.qid[half], ids[1]],
        )
