"""A committee is one model whose score is the mean of its members' standardised scores."""

import json
import logging
import pickle
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.base import clone

import gbmrank
from gbmrank import GBMRanker
from gbmrank.api.committees import Committee, ranking_objective
from gbmrank.boosters.base import Member
from gbmrank.boosters.plan import Native
from gbmrank.boosters.supported import booster_named
from gbmrank.cli import main
from gbmrank.errors import (
    ConfigError,
    DataError,
    GbmrankWarning,
    NoProgressWarning,
    NumericError,
    ParameterError,
    UnknownNameError,
)
from tests.formulas import each
from tests.ranking_tasks import make_task, run_python

TASK, OTHER = make_task(seed=0), make_task(seed=1)
TWO = "committee(pairwise(target=ndcg@10), query_rmse)"
FILES = {"lightgbm": "model.txt", "xgboost": "model.json"}
BACKENDS = tuple(FILES)
NATIVE = {"lightgbm": "native:lambdarank", "xgboost": "native:rank:ndcg"}


def fitted(objective, backend, x=TASK.x, **options):
    fit = {name: options.pop(name) for name in list(options) if name in FIT}
    model = GBMRanker(objective, backend, **{"n_estimators": 6, "max_depth": 3, **options})
    return model.fit(x, TASK.y, qid=TASK.qid, **fit)


FIT = ("sample_weight", "eval_set", "eval_qid", "verbose", "init_model", "callbacks")
VALID = {"eval_set": (OTHER.x, OTHER.y), "eval_qid": OTHER.qid + 1000}


def mean_of_members(model, x=TASK.x, new=None, **options):
    """Train every member by itself and average; the oracle of the merged model."""
    new = x if new is None else new
    total = np.zeros(len(new))
    for member in model.committee_:
        alone = fitted(member.objective, model.backend, x, seed=member.seed, **options)
        assert alone.booster_.num_trees() if model.backend == "lightgbm" else True
        scores = alone.predict(x)
        means = np.add.reduceat(scores, np.cumsum([0, *TASK.sizes[:-1]])) / TASK.sizes
        spread = np.sqrt(np.mean((scores - np.repeat(means, TASK.sizes)) ** 2))
        assert member.spread == pytest.approx(spread, rel=1e-6)
        total += member.weight * alone.predict(new) / spread
    return total


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_file_gives_the_mean_of_the_members_without_gbmrank(backend, tmp_path):
    objective = f"committee(pairwise(target=ndcg@10), query_rmse, {NATIVE[backend]})"
    model = fitted(objective, backend)
    assert [one.weight for one in model.committee_] == [1 / 3] * 3
    expected = mean_of_members(model, new=OTHER.x)
    np.testing.assert_allclose(model.predict(OTHER.x), expected, rtol=0, atol=1e-6)
    model.save(tmp_path / FILES[backend])
    np.save(tmp_path / "x.npy", OTHER.x)
    scores = {
        "lightgbm": "lightgbm.Booster(model_file=file).predict(x, {})",
        "xgboost": "xgboost.Booster(model_file=file).predict(xgboost.DMatrix(x), {})",
    }[backend]
    plain = json.loads(
        run_python(
            "import json, sys, numpy as np\n"
            f"import {backend}\n"
            f"file, x = {str(tmp_path / FILES[backend])!r}, np.load({str(tmp_path / 'x.npy')!r})\n"
            f"scores = {scores.format('')}\n"
            f"shap = {scores.format('pred_contrib' + ('s' * (backend == 'xgboost')) + '=True')}\n"
            "assert not any(name.split('.')[0] == 'gbmrank' for name in sys.modules)\n"
            "print(json.dumps([scores.tolist(), shap.sum(axis=1).tolist()]))"
        )
    )
    np.testing.assert_allclose(plain[0], expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(plain[1], expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("backend", each(2, BACKENDS))
def test_the_default_members_suit_the_metric(backend):
    model = fitted("committee", backend, metric="err@5", n_estimators=2)
    names = [one.objective for one in model.committee_]
    assert names[0] == "pairwise(loss=logistic, target=ndcg@5)"
    assert names[1] == str(gbmrank.objective("yetirank"))
    assert names[2] == str(gbmrank.objective("query_rmse"))
    assert names[3] == str(gbmrank.objective("swap(metric=err@5)"))
    assert [one.seed for one in model.committee_] == [0, 1, 2, 3]
    assert model.booster_.num_trees() == 8 if backend == "lightgbm" else True


def test_a_metric_without_a_swap_gets_lambdarank():
    model = fitted("committee", "lightgbm", metric="ptop(threshold=1)", n_estimators=1)
    assert model.committee_[3].objective == str(gbmrank.objective("lambdarank"))


@pytest.mark.filterwarnings("ignore::gbmrank.errors.CalibrationWarning")  # of query_rmse alone
@pytest.mark.parametrize("backend", BACKENDS)
def test_members_stop_each_at_its_own_round(backend):
    stopping = {"n_estimators": 30, "early_stopping_rounds": 3, "learning_rate": 0.4}
    model = fitted(TWO, backend, metric="ndcg@10, err@5", **stopping, **VALID)
    rounds = []
    for member in model.committee_:
        alone = fitted(
            member.objective,
            backend,
            metric="ndcg@10, err@5",
            **stopping,
            **VALID,
            seed=member.seed,
        )
        rounds.append(alone.best_iteration_ + 1)
        for name in ("ndcg@10", "err@5"):
            expected = alone.evals_result_["valid_0"][name][alone.best_iteration_]
            assert member.values["valid_0"][name] == pytest.approx(expected)
    assert [one.rounds for one in model.committee_] == rounds
    assert max(rounds) < 30
    assert model.best_iteration_ == sum(rounds) - 1
    reached = model.evals_result_["valid_0"]["ndcg@10"]
    assert reached == [pytest.approx(model.score(OTHER.x, OTHER.y, qid=OTHER.qid))]


@pytest.mark.parametrize("backend", BACKENDS)
def test_weights_of_queries_reach_every_member(backend):
    weight = np.random.default_rng(0).integers(1, 5, len(TASK.sizes)).astype(float)
    model = fitted(TWO, backend, sample_weight=weight)
    expected = mean_of_members(model, sample_weight=weight)
    np.testing.assert_allclose(model.predict(TASK.x), expected, rtol=0, atol=1e-6)
    assert np.abs(model.predict(TASK.x) - fitted(TWO, backend).predict(TASK.x)).max() > 1e-3


@pytest.mark.filterwarnings("ignore::gbmrank.errors.CalibrationWarning")
@pytest.mark.parametrize("backend", BACKENDS)
def test_categories_and_missing_values(backend, tmp_path):
    x = TASK.x.copy()
    x[::7, 1] = np.nan
    frame = pd.DataFrame(x, columns=list("abcde"))
    frame["a"] = pd.Categorical([f"level {int(v)}" for v in x[:, 0]])
    stopping = {"n_estimators": 20, "early_stopping_rounds": 2}
    valid = {"eval_set": (frame, TASK.y), "eval_qid": TASK.qid + 1000}
    options = {**stopping, **valid, "min_data_per_group": 1} if backend == "lightgbm" else stopping
    model = fitted(TWO, backend, frame, **{**options, **valid})
    new = frame.iloc[::-1]
    expected = mean_of_members(model, frame, new, **{**options, **valid})
    np.testing.assert_allclose(model.predict(new), expected, rtol=0, atol=2e-6)
    model.save(tmp_path / FILES[backend])
    again = gbmrank.load(tmp_path / FILES[backend])
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert len(np.unique(model.predict(new))) > 10


def test_linear_leaves_are_scaled():
    x = TASK.x + np.random.default_rng(0).normal(size=TASK.x.shape)
    model = fitted(TWO, "lightgbm", x, linear_tree=True)
    assert "leaf_coeff=" in model.booster_.model_to_string()
    expected = mean_of_members(model, x, linear_tree=True)
    np.testing.assert_allclose(model.predict(x), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("backend", "objectives", "params"),
    [
        ("lightgbm", ("pairwise", "query_rmse"), {"boosting": "dart", "drop_rate": 0.5}),
        ("xgboost", ("pairwise", "query_rmse"), {"booster": "dart", "rate_drop": 0.5}),
        ("xgboost", ("pairwise", "query_rmse"), {"num_parallel_tree": 2, "subsample": 0.7}),
        (
            "lightgbm",
            ("native:lambdarank", "native:rank_xendcg"),
            {"boosting": "rf", "bagging_fraction": 0.6, "bagging_freq": 1},
        ),
        ("xgboost", ("native:binary:logistic", "query_rmse"), {"base_score": 0.3}),  # has a link
        ("xgboost", ("query_rmse", "native:reg:squarederror"), {"base_score": 0.75}),
    ],
)
def test_all_kinds_of_trees_are_merged(backend, objectives, params):
    labels = TASK.y > 2.0 if "binary" in objectives[0] else TASK.y
    models = [
        GBMRanker(one, backend, n_estimators=6, max_depth=3, **params).fit(
            TASK.x, labels, qid=TASK.qid
        )
        for one in objectives
    ]
    merged = booster_named(backend).merge([one._fitted for one in models], (2.0, -0.5), (0.5, 0.5))
    expected = 2.0 * models[0].predict(TASK.x) - 0.5 * models[1].predict(TASK.x)
    np.testing.assert_allclose(merged.scores(TASK.x), expected, rtol=0, atol=3e-6)
    assert merged.n_rounds == 12
    assert np.ptp(expected) > 0.1


@pytest.mark.filterwarnings("ignore:.*_log_callback")  # XGBoost 3.4 calls gblinear deprecated
@pytest.mark.filterwarnings("ignore:.*gblinear")
def test_linear_models_are_rejected():
    with pytest.raises(ConfigError, match="gblinear"):
        fitted(TWO, "xgboost", booster="gblinear", max_depth=None)


@pytest.mark.parametrize("backend", BACKENDS)
def test_importances_are_the_mean_of_the_members(backend):
    model = fitted("committee(pairwise, query_rmse, weights=[3, 1])", backend)
    alone = [fitted(one.objective, backend, seed=one.seed) for one in model.committee_]
    expected = 0.75 * alone[0].feature_importances_ + 0.25 * alone[1].feature_importances_
    np.testing.assert_allclose(model.feature_importances_, expected, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_committee_comes_back_from_its_file_and_its_pickle(backend, tmp_path):
    model = fitted("committee(pairwise, query_rmse, weights=[3, 1])", backend, metric="err@5")
    model.save(tmp_path / FILES[backend])
    again = gbmrank.load(tmp_path / FILES[backend])
    assert again.committee_ == model.committee_
    assert isinstance(again.committee_[0], Member)
    assert ranking_objective(again.objective) == ranking_objective(model.objective)
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301
    for one in (again, copied):
        np.testing.assert_array_equal(one.predict(OTHER.x), model.predict(OTHER.x))
    plain = clone(model)
    assert plain.get_params() == model.get_params()
    assert not hasattr(plain, "committee_")
    other = model.set_params(objective="query_rmse").fit(TASK.x, TASK.y, qid=TASK.qid)
    assert not hasattr(other, "committee_")


def test_converters_get_a_copy_that_predicts_the_same():
    ours = fitted("committee(native:lambdarank, query_rmse)", "lightgbm")
    copy = ours.to_booster()
    assert isinstance(copy, lgb.Booster)
    assert "\nobjective=lambdarank\n" in copy.model_to_string()
    np.testing.assert_array_equal(copy.predict(OTHER.x), ours.predict(OTHER.x))
    theirs = fitted("committee(native:rank:pairwise, query_rmse)", "xgboost")
    plain = theirs.to_booster()
    np.testing.assert_array_equal(plain.predict(xgb.DMatrix(OTHER.x)), theirs.predict(OTHER.x))


def test_seeds_make_models_where_rows_are_sampled():
    bag = "committee(native:lambdarank, seeds=3)"
    sampled = {"bagging_fraction": 0.5, "bagging_freq": 1}
    model = fitted(bag, "lightgbm", seed=5, **sampled)
    assert [one.seed for one in model.committee_] == [5, 6, 7]
    expected = mean_of_members(model, **sampled)
    np.testing.assert_allclose(model.predict(TASK.x), expected, rtol=0, atol=1e-6)
    same = fitted(bag, "lightgbm", random_state=5, **sampled)
    np.testing.assert_array_equal(same.predict(TASK.x), model.predict(TASK.x))
    with pytest.raises(ConfigError, match="seed=5 and random_state=6"):
        fitted(bag, "lightgbm", seed=5, random_state=6)


@pytest.mark.parametrize("member", ["native", "query_rmse"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_seeds_differ_where_nothing_in_training_is_random(backend, member):
    member = NATIVE[backend] if member == "native" else member
    bag = f"committee({member}, seeds=3)"
    sampled = booster_named(backend).parameters.sampled
    with pytest.warns(GbmrankWarning, match=f"{member}.* would give the same model.*=0.7"):
        model = fitted(bag, backend)
    alone = [fitted(member, backend, seed=seed, **sampled).predict(OTHER.x) for seed in range(3)]
    assert len({scores.tobytes() for scores in alone}) == 3
    expected = sum(each / one.spread / 3 for each, one in zip(alone, model.committee_, strict=True))
    np.testing.assert_allclose(model.predict(OTHER.x), expected, rtol=0, atol=1e-5)
    plain = fitted(member, backend).predict(OTHER.x)
    assert len({plain.tobytes(), fitted(member, backend, seed=1).predict(OTHER.x).tobytes()}) == 1


@pytest.mark.parametrize(
    ("backend", "member", "params"),
    [
        ("lightgbm", "query_rmse", {"colsample_bytree": 0.5}),
        ("lightgbm", "query_rmse", {"subsample": 0.5, "subsample_freq": 1}),
        ("lightgbm", "query_rmse", {"extra_trees": True}),
        ("lightgbm", "native:rank_xendcg", {}),
        ("xgboost", "query_rmse", {"colsample_bynode": 0.5}),
        ("xgboost", "native:rank:ndcg", {"subsample": 0.9}),
    ],
)
def test_a_training_that_is_random_is_left_alone(backend, member, params):
    fitted(f"committee({member}, seeds=2)", backend, **params)  # warnings are errors


def test_a_member_that_learned_nothing_does_not_count():
    with pytest.warns(NoProgressWarning):
        model = fitted("committee(query_rmse, pairwise)", "lightgbm", min_gain_to_split=20.0)
    assert [one.spread == 0.0 for one in model.committee_] == [False, True]
    np.testing.assert_allclose(
        model.predict(TASK.x),
        fitted("query_rmse", "lightgbm", min_gain_to_split=20.0).predict(TASK.x)
        / model.committee_[0].spread
        / 2,
        atol=1e-6,
    )


def test_the_cost_is_logged_before_the_training(caplog):
    caplog.set_level(logging.INFO, "gbmrank")
    fitted(TWO, "lightgbm", n_estimators=3)
    assert any("2 models" in line and "6 rounds" in line for line in caplog.messages)


def test_rounds_are_counted_through(capsys):
    fitted(TWO, "lightgbm", n_estimators=4, verbose=2, **VALID)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["[2]", "[4]", "[6]", "[8]"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("committee", Committee()),
        ("committee()", Committee()),
        ("committee(seeds=2)", Committee(seeds=2)),
        (
            " committee(native:rank:ndcg, yetirank, weights=[1, 0.5])",
            Committee((Native("rank:ndcg"), gbmrank.objective("yetirank")), (1, 0.5)),
        ),
    ],
)
def test_texts(text, found):
    assert ranking_objective(text) == found
    assert ranking_objective(str(found)) == found
    assert hash(ranking_objective(str(found))) == hash(found)


@pytest.mark.parametrize(
    ("text", "error", "fact"),
    [
        ("committee(rounds=3)", ParameterError, "rounds"),
        ("committee@10", ParameterError, "@"),
        ("committee(seeds=0)", ParameterError, "seeds"),
        ("committee(seeds=1.5)", ParameterError, "1.5"),
        ("committee(pairwise, weights=[1, 2])", ParameterError, "2 weights"),
        ("committee(pairwise, ranknet, weights=[1, -2])", ParameterError, "-2"),
        ("committee(pairwise, weights=2)", ParameterError, "2"),
        ("committee(pairwise, weights=[])", ParameterError, "weights"),
        ("committee(committee)", ParameterError, "committee"),
        ("committee(pairwize)", UnknownNameError, "pairwise"),
    ],
)
def test_texts_that_are_rejected(text, error, fact):
    with pytest.raises(error, match=fact):
        ranking_objective(text)


def test_what_a_committee_cannot_do_is_said():
    with pytest.raises(ParameterError, match="4 members"):
        fitted("committee(weights=[1, 2])", "lightgbm")
    with pytest.raises(ConfigError, match="init_model"):
        fitted(TWO, "lightgbm", init_model=fitted("pairwise", "lightgbm"))
    with pytest.raises(UnknownNameError, match="GBMRanker"):
        gbmrank.objective("committee")
    with pytest.raises(ConfigError, match="xgboost"):
        fitted("committee(query_rmse, native:rank:ndcg)", "lightgbm")
    with pytest.raises(ConfigError, match="lambdarank_norm"):
        fitted("committee(native:lambdarank, pairwise)", "lightgbm", lambdarank_norm=False)
    with pytest.raises(DataError, match="nothing to learn"):
        GBMRanker(TWO).fit(TASK.x, np.ones(TASK.n), qid=TASK.qid)


def test_a_failing_member_is_named():
    with pytest.raises(NumericError) as failed:
        fitted("committee(query_rmse, rankboost)", "lightgbm", learning_rate=1e6, n_estimators=40)
    assert failed.value.model is None
    assert any("query_rmse" in note for note in failed.value.__notes__)


def test_compare_takes_committees_and_bags(tmp_path):
    found = gbmrank.compare(
        (TASK.x, TASK.y, TASK.qid),
        objectives="committee(pairwise, query_rmse), committee(native:lambdarank, seeds=2)",
        metrics="ndcg@10, err@5",
        folds=2,
        rounds=4,
        params_for={
            "lightgbm": {"bagging_fraction": 0.7, "bagging_freq": 1},
            "xgboost": {"subsample": 0.7},
        },
        isolate=False,
    )
    systems = {str(one) for one in found.results.systems}
    assert "lightgbm committee(native:lambdarank, seeds=2)" in systems
    assert "xgboost committee(native:lambdarank, seeds=2)" not in systems
    assert "xgboost committee(pairwise, query_rmse)" in systems
    assert [run.error for run in found.results.runs] == [None] * len(found.results.runs)
    verdict = found.results.verdicts["committee(pairwise, query_rmse)", "ndcg@10"]
    assert verdict["status"] == "unknown"
    found.to_html(tmp_path / "report.html")
    assert "committee(pairwise, query_rmse)" in Path(tmp_path / "report.html").read_text()


def test_compare_rejects_what_no_booster_has():
    with pytest.raises(UnknownNameError, match="lambdarnk"):
        gbmrank.compare((TASK.x, TASK.y, TASK.qid), objectives=["committee(native:lambdarnk)"])


def test_the_command_line_says_where_a_committee_is_trained(capsys):
    assert main(["check", "committee"]) != 0
    assert "compare" in capsys.readouterr().err
    assert main(["info", "committee"]) == 0
    assert "pairwise(loss=logistic, target=ndcg@10)" in capsys.readouterr().out
    assert main(["info", "committee(yetirank, query_rmse, seeds=3)", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["members"]) == 2
    assert main(["info", "committee(rounds=3)"]) != 0
    capsys.readouterr()
    assert main(["list", "objectives"]) == 0
    assert "\ncommittee " in capsys.readouterr().out
    assert main(["advise", "err@10"]) == 0
    assert 'GBMRanker("committee", metric="err@10")' in capsys.readouterr().out
