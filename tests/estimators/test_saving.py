"""A model file says what it is, and the boosters read it as ever."""

import json
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import gbmrank
from gbmrank import GBMRanker
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part
from gbmrank.boosters.plan import train
from gbmrank.errors import ConfigError, DataError
from gbmrank.estimators.model_file import Identity
from tests.ranking_tasks import make_task, run_python

TASK, OTHER = make_task(seed=0), make_task(seed=1)
FILES = [("lightgbm", "model.txt"), ("xgboost", "model.ubj"), ("xgboost", "model.json")]
NAMES = ["plain", "a b", "x[0]", "naïve", "last"]


def stopped(backend, **params):
    model = GBMRanker(
        backend=backend,
        n_estimators=40,
        early_stopping_rounds=4,
        learning_rate=np.float64(0.6),
        **params,
    )
    return model.fit(
        pd.DataFrame(TASK.x, columns=NAMES),
        TASK.y,
        qid=TASK.qid,
        eval_set=(pd.DataFrame(OTHER.x, columns=NAMES), OTHER.y),
        eval_qid=OTHER.qid + 1000,
    )


@pytest.mark.parametrize(("backend", "file"), FILES)
def test_a_saved_ranker_comes_back_whole(backend, file, tmp_path):
    model = stopped(backend, metric="ndcg@10, err@5", max_depth=3)
    model.save(tmp_path / file)
    assert [path.name for path in tmp_path.iterdir()] == [file]
    again = gbmrank.load(tmp_path / file)
    frame = pd.DataFrame(OTHER.x, columns=NAMES)
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert str(again.objective) == "pairwise(loss=logistic, target=ndcg@10)"
    assert again.metric == "ndcg@10, err@5"
    expected = {**model.get_params(), "metric": again.metric, "objective": again.objective}
    assert again.get_params() == expected
    assert again.best_iteration_ == model.best_iteration_
    assert again.feature_names_in_.tolist() == NAMES
    assert again.n_features_in_ == 5
    np.testing.assert_allclose(again.feature_importances_, model.feature_importances_, rtol=1e-5)
    score = model.score(frame, OTHER.y, qid=OTHER.qid)
    assert again.score(frame, OTHER.y, qid=OTHER.qid) == score
    again.save(tmp_path / f"second_{file}")
    twice = gbmrank.load(tmp_path / f"second_{file}")
    np.testing.assert_array_equal(twice.predict(frame), model.predict(frame))
    assert twice.get_params() == again.get_params()


def test_plain_lightgbm_reads_and_hands_on_what_we_wrote(tmp_path, capfd):
    model = stopped("lightgbm")
    model.save(tmp_path / "model.txt")
    capfd.readouterr()
    plain = lgb.Booster(model_file=str(tmp_path / "model.txt"))
    from_text = lgb.Booster(model_str=model.booster_.model_to_string())
    assert capfd.readouterr() == ("", "")
    for booster in (plain, from_text):
        frame = pd.DataFrame(OTHER.x, columns=NAMES)
        np.testing.assert_array_equal(booster.predict(OTHER.x), model.predict(frame))
        assert booster.num_trees() == model.best_iteration_ + 1
    plain.save_model(str(tmp_path / "handed_on.txt"))
    again = gbmrank.load(tmp_path / "handed_on.txt")
    assert again.get_params() == {**model.get_params(), "learning_rate": 0.6}
    longer = lgb.train(
        {"objective": "lambdarank", "verbosity": -1},
        lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes),
        3,
        init_model=plain,
    )
    assert longer.num_trees() == model.best_iteration_ + 4


def test_plain_xgboost_reads_what_we_wrote(tmp_path):
    model = stopped("xgboost")
    model.save(tmp_path / "model.json")
    plain = xgb.Booster(model_file=str(tmp_path / "model.json"))
    rows = xgb.DMatrix(OTHER.x, feature_names=model.booster_.feature_names)
    frame = pd.DataFrame(OTHER.x, columns=NAMES)
    np.testing.assert_array_equal(plain.predict(rows), model.predict(frame))
    kept = json.loads(plain.attr("gbmrank"))
    assert kept["objective"] == "pairwise(loss=logistic, target=ndcg@10)"
    assert kept["metric"] == "ndcg@10"
    assert kept["backend"] == "xgboost"
    assert kept["schema"] == 1
    assert kept["gbmrank"] == gbmrank.__version__
    assert kept["best_iteration"] == plain.num_boosted_rounds() - 1
    assert kept["params"]["learning_rate"] == 0.6


def test_files_are_enough_for_another_process(tmp_path):
    np.save(tmp_path / "x.npy", TASK.x)
    expected = []
    for backend, file in FILES:
        model = GBMRanker("ranknet", backend, n_estimators=3).fit(TASK.x, TASK.y, qid=TASK.qid)
        model.save(str(tmp_path / file))
        expected.append(model.predict(TASK.x).tobytes().hex())
    code = (
        "import numpy as np, gbmrank\n"
        f"x = np.load({str(tmp_path / 'x.npy')!r})\n"
        f"for file in {[str(tmp_path / file) for _, file in FILES]!r}:\n"
        "    print(gbmrank.load(file).predict(x).tobytes().hex())"
    )
    assert run_python(code).split() == expected


@pytest.mark.parametrize(("backend", "file"), FILES)
def test_models_of_others_and_of_the_future_are_refused(backend, file, tmp_path):
    data = gbmrank.RankingData.from_arrays(TASK.y, qid=TASK.qid)
    plan = training_plan(objective="ranknet", metric="ndcg", backend=backend, rounds=2)
    made = train(plan, Part(TASK.x, data)).fitted
    made.save(str(tmp_path / file))
    with pytest.raises(DataError, match=f"a model of {backend} that gbmrank did not save"):
        gbmrank.load(tmp_path / file)
    made.stamp(json.dumps({"schema": 3, "gbmrank": "9.0"}))
    made.save(str(tmp_path / file))
    with pytest.raises(DataError, match=r"gbmrank 9\.0 in form 3; .* upgrade"):
        gbmrank.load(tmp_path / file)
    for damaged in ("{", "[]", '{"schema": 1}', '{"schema": 1, "gbmrank": "0", "x": 1}'):
        made.stamp(damaged)
        made.save(str(tmp_path / file))
        with pytest.raises(DataError, match="damaged"):
            gbmrank.load(tmp_path / file)


def test_what_is_no_model_or_has_the_wrong_ending_is_refused(tmp_path):
    (tmp_path / "x.txt").write_text("hello")
    with pytest.raises(DataError, match="neither LightGBM nor XGBoost"):
        gbmrank.load(tmp_path / "x.txt")
    with pytest.raises(FileNotFoundError):
        gbmrank.load(tmp_path / "none.txt")
    for backend, name in (("lightgbm", "m.json"), ("xgboost", "m.txt"), ("xgboost", "m")):
        model = GBMRanker(backend=backend, n_estimators=2).fit(TASK.x, TASK.y, qid=TASK.qid)
        with pytest.raises(ConfigError, match="is saved as"):
            model.save(tmp_path / name)
        with pytest.raises(FileNotFoundError, match="no folder"):
            model.save(tmp_path / "none" / ("m.txt" if backend == "lightgbm" else "m.ubj"))
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("objective", "backend", "file"),
    [("native:lambdarank", "lightgbm", "m.txt"), ("native:rank:ndcg", "xgboost", "m.ubj")],
)
def test_native_objectives_are_saved_too(objective, backend, file, tmp_path):
    model = GBMRanker(objective, backend, n_estimators=3).fit(TASK.x, TASK.y, qid=TASK.qid)
    model.save(tmp_path / file)
    again = gbmrank.load(tmp_path / file)
    assert again.objective == objective
    np.testing.assert_array_equal(again.predict(TASK.x), model.predict(TASK.x))


def test_categories_survive(tmp_path):
    codes = pd.Categorical.from_codes((TASK.x[:, 0] * 5 % 8).astype(int), list("hgfedcba"))
    frame = pd.DataFrame({"kind": codes, "other": TASK.x[:, 1]})
    for backend, file in FILES[:2]:
        model = GBMRanker(backend=backend, n_estimators=4).fit(frame, TASK.y, qid=TASK.qid)
        model.save(tmp_path / file)
        again = gbmrank.load(tmp_path / file)
        np.testing.assert_array_equal(again.predict(frame[:9]), model.predict(frame)[:9])


def test_what_json_does_not_know_becomes_plain():
    made = Identity(
        backend="lightgbm",
        objective="ranknet",
        metric="map",
        best_iteration=2,
        n_features=3,
        params={"a": np.arange(2), "b": np.float32(0.5), "c": {1}},
    )
    again = Identity.from_text(made.to_text(), "x")
    assert again.params == {"a": [0, 1], "b": 0.5, "c": "{1}"}


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_contributions_add_up_to_the_scores(backend):
    model = GBMRanker(backend=backend, n_estimators=5).fit(TASK.x, TASK.y, qid=TASK.qid)
    if backend == "lightgbm":
        parts = model.booster_.predict(TASK.x, pred_contrib=True)
    else:
        parts = model.booster_.predict(xgb.DMatrix(TASK.x), pred_contribs=True)
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(TASK.x), atol=1e-5)


@pytest.mark.parametrize("holder", ["objective", "metric"])
def test_preferences_are_not_in_files_and_that_is_told(tmp_path, holder):
    x, qid = np.arange(12.0)[:, None], np.repeat([0, 1, 2], 4)
    graphs = gbmrank.PreferenceGraphs.from_labels(-x[:, 0], qid=qid)
    make = {"objective": gbmrank.objective, "metric": gbmrank.metric}[holder]
    name = {"objective": "ranknet", "metric": "pairwise_disagreement"}[holder]
    options: dict[str, Any] = {"n_estimators": 2, "min_data_in_leaf": 1, "n_jobs": 1}
    path = tmp_path / "model.txt"
    plain = gbmrank.GBMRanker(**options).fit(x, x[:, 0], qid=qid)
    plain.save(path)
    gbmrank.load(path)  # without a warning, which would be an error here
    model = gbmrank.GBMRanker(**{holder: make(name, preferences=graphs)}, **options)
    model.fit(x, x[:, 0], qid=qid).save(path)
    with pytest.warns(gbmrank.GbmrankWarning, match="use labels"):
        loaded = gbmrank.load(path)
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))
