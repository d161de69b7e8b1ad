"""What a new user gets wrong with GBMRanker: said before training, with what to do."""

import copy
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost as xgb
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_val_score

from gbmrank import GBMRanker, PairRanker
from gbmrank.boosters.lightgbm import parameters as lightgbm_names
from gbmrank.boosters.supported import booster_named
from gbmrank.errors import (
    ConfigError,
    DataError,
    GbmrankWarning,
    GroupError,
    MetricError,
    ParameterError,
    UnknownNameError,
    WeightError,
)
from tests.ranking_tasks import is_before, make_task

BACKENDS = ["lightgbm", "xgboost"]
TASK = make_task(seed=0)
IDS = np.array([f"query-{query}" for query in TASK.qid])
STATE = np.random.RandomState(0)
XGB = {"backend": "xgboost"}
BAGGED: dict[str, Any] = {"bagging_by_query": True, "bagging_fraction": 0.5, "bagging_freq": 1}
PAIRS = np.random.default_rng(0).normal(size=(20, 3 * TASK.x.shape[1])).astype(np.float32)
REPEAT = "np.repeat(np.arange(len(sizes)), sizes)"


def fit(params: dict[str, Any], **call: Any) -> GBMRanker:
    model = GBMRanker(**{"n_estimators": 3, **params})
    return model.fit(**{"X": TASK.x, "y": TASK.y, "qid": TASK.qid, **call})


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"learnin_rate": 0.1}, ConfigError, "'learnin_rate'; did you mean learning_rate?"),
        ({"learningrate": 0.3}, ConfigError, "'learningrate'; did you mean learning_rate?"),
        ({**XGB, "max_dept": 3}, ConfigError, "'max_dept'; did you mean max_depth?"),
        ({**XGB, "num_leaves": 3}, ConfigError, "'num_leaves'; did you mean max_leaves?"),
        ({**XGB, "min_sum_hessian": 3}, ConfigError, "did you mean min_child_weight?"),
        ({**XGB, "verbose": 1}, ConfigError, "'verbose'; did you mean verbosity?"),
        ({**XGB, "n_estimatros": 1}, ConfigError, "did you mean n_estimators?"),
        ({**XGB, "min_data_in_leaf": 1}, ConfigError, "'min_data_in_leaf'; leave it out"),
        ({**XGB, "bagging_fraction": 0.5}, ConfigError, "did you mean subsample?"),
        ({**XGB, "num_trees": 3}, ConfigError, "pass the number of rounds as n_estimators="),
        ({**XGB, "disable_default_eval_metric": 0}, ConfigError, "rmse, aborts the process"),
        ({**XGB, "missing": 0.0}, ConfigError, "missing values must be NaN"),
        ({**XGB, "enable_categorical": False}, ConfigError, "are always supported; leave it"),
        ({"callbacks": []}, ConfigError, "lightgbm has no parameter 'callbacks'; leave it out"),
        (
            {"seed": 5, "random_state": 3},
            ConfigError,
            "seed=5 and random_state=3 set the same parameter",
        ),
        ({"n_jobs": 1, "num_threads": 2}, ConfigError, "n_jobs=1 and num_threads=2 set the same"),
        ({"n_jobs": 1, "nthread": 2, "backend": "xgboost"}, ConfigError, "n_jobs=1 and nthread=2"),
        (
            {"objective": "native:lambdarank", "backend": "xgboost"},
            ConfigError,
            "native:lambdarank is an objective of lightgbm, but backend='xgboost'; xgboost has",
        ),
        (
            {"objective": "native:rank:ndgc", "backend": "xgboost"},
            UnknownNameError,
            "did you mean native:rank:ndcg?",
        ),
        ({"objective": "rank:ndcg"}, UnknownNameError, "did you mean native:rank:ndcg, the boo"),
        ({"objective": "rank_xendcg"}, UnknownNameError, "did you mean native:rank_xendcg"),
        ({"objective": 3}, ParameterError, "an objective must be text"),
        ({"metric": "map"}, DataError, "metric=map, the training set: labels must be 0/1"),
        ({"n_estimators": "10"}, ParameterError, "n_estimators must be a whole number"),
        ({"metric": []}, MetricError, "metric is empty; name at least one, such as ndcg@10"),
        ({"n_jobs": "2"}, ParameterError, "n_jobs must be a whole number or None, got '2'"),
        ({"n_jobs": 1.5}, ParameterError, "n_jobs must be a whole number or None, got 1.5"),
        ({"random_state": STATE}, ConfigError, "whole number, got a RandomState; draw one from"),
        ({"random_state": STATE, "backend": "xgboost"}, ConfigError, "got a RandomState"),
        ({"seed": np.random.default_rng(0)}, ConfigError, "whole number, got a Generator"),
        ({"seed": 2**31}, ConfigError, "a whole number from -2147483647 to 2147483647, got 2147"),
        ({**XGB, "seed": 2**40}, ConfigError, "got 1099511627776"),
        ({"random_state": 2**40}, ConfigError, "got 1099511627776"),
        ({"seed": True}, ConfigError, "got True"),
        ({**XGB, "seed": 1.5}, ConfigError, "got 1.5"),
        ({"seed": [1]}, ConfigError, "got [1]"),
        ({"n_jobs": 10**5}, ParameterError, "n_jobs=100000 is more than"),
        ({"num_threads": 10**5}, ParameterError, "num_threads=100000 is more than"),
        ({"backend": ["lightgbm"]}, ConfigError, "backend must be one of lightgbm, xgboost; got ["),
        ({"ignore_column": "0"}, ConfigError, "ignore_column='0' is for files"),
        ({"blacklist": "0"}, ConfigError, "blacklist='0' is for files"),
        ({"weight": "0"}, ConfigError, "weight='0' is for files"),
        ({"input_model": "m.txt"}, ConfigError, "has no effect here; leave it out"),
        ({"pred_early_stop": True}, ConfigError, "has no effect here; leave it out"),
        ({"forcedsplits_filename": "no.json"}, ConfigError, "'no.json': there is no such file"),
        ({"forced_splits": "no.json"}, ConfigError, "forced_splits='no.json': there is no such"),
        ({"forcedbins_filename": [{}]}, ConfigError, "=[{}]: there is no such file"),
        ({"objective": "native:"}, UnknownNameError, "'native:' is not an objective; lightgbm has"),
        ({"objective": "native:none"}, UnknownNameError, "'native:none' is not an objective"),
        ({**XGB, "objective": "native:"}, UnknownNameError, "is not an objective; xgboost has"),
        ({**BAGGED, "seed": -1}, ConfigError, "seed=-1: sampling queries needs a seed"),
        ({**BAGGED, "seed": None}, ConfigError, "seed=None: sampling queries needs a seed"),
        ({**BAGGED, "bagging_seed": -3}, ConfigError, "bagging_seed=-3: sampling queries needs"),
        ({**BAGGED, "bagging_seed": "x"}, ConfigError, "bagging_seed must be a whole number"),
        ({**BAGGED, "bagging_fraction": "x"}, ConfigError, "must be a number, got 'x'"),
        ({**BAGGED, "bagging_fraction": -0.5}, ConfigError, "must be above 0, got -0.5"),
        ({**BAGGED, "bagging_freq": 1.5}, ConfigError, "must be a whole number, got 1.5"),
        ({**BAGGED, "bagging_by_query": "yes"}, ConfigError, "must be True or False, or text"),
        ({"early_stopping_rounds": 0}, ParameterError, "early_stopping_rounds must be a whole"),
        ({"early_stopping_rounds": 3}, ConfigError, "pass eval_set= and eval_qid="),
    ],
)
def test_parameters_are_refused(params, error, message):
    with pytest.raises(error) as caught:
        fit(params)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["num_iterations", "early_stopping_round"])
def test_only_names_of_the_estimator_are_said(name):
    with pytest.raises(ConfigError, match=r"n_estimators=$|early_stopping_rounds=$") as caught:
        fit({name: 3})
    assert "Plan" not in str(caught.value)


def test_names_of_the_wrapper_of_scikit_learn_are_known():
    """All that change a training; classes have no weight."""
    made = lgb.LGBMRanker().get_params()
    ours = {"objective", "n_estimators", "n_jobs"}
    booster_named("lightgbm").parameters.check_known(
        dict.fromkeys(made.keys() - ours - {"class_weight", "importance_type"})
    )
    fit({"random_state": 3, "colsample_bytree": 0.5, "bagging_by_query": False})
    fit({"importance_type": "gain"})
    with pytest.raises(ConfigError, match="no parameter 'class_weight'"):
        fit({"class_weight": "balanced"})
    with pytest.raises(ConfigError, match="did you mean num_leaves"):
        PairRanker(numleaves=3).fit(TASK.x, TASK.y, qid=TASK.qid)


NDCG = {"objective": "native:rank:ndcg"}
OF_XGBOOST: list[dict[str, Any]] = [
    {"max_depth": 3, "min_child_weight": 0.1, "max_delta_step": 1, "max_bin": 16, "eta": 0.1},
    {"gamma": 0.1, "lambda": 1, "alpha": 1, "subsample": 0.5, "sampling_method": "uniform"},
    {"min_split_loss": 0.1, "reg_lambda": 1, "reg_alpha": 1, "random_state": 3, "n_jobs": 1},
    {"colsample_bytree": 0.5, "colsample_bylevel": 0.5, "colsample_bynode": 0.5},
    {"tree_method": "hist", "max_cached_hist_node": 10, "device": "cpu", "nthread": 1},
    {"tree_method": "approx", "max_cat_to_onehot": 3, "max_cat_threshold": 8},
    {"tree_method": "exact", "refresh_leaf": True, "process_type": "default"},
    {"grow_policy": "lossguide", "max_leaves": 7, "num_parallel_tree": 2, "verbosity": 0},
    {"monotone_constraints": [1, 0, 0, 0, 0], "interaction_constraints": [[0, 1], [2, 3]]},
    {"multi_strategy": "one_output_per_tree", "seed_per_iteration": True, "base_score": 0.1},
    {"disable_default_eval_metric": 1, "validate_parameters": True, "learning_rate": 0.2},
    {
        "booster": "dart",
        "rate_drop": 0.1,
        "one_drop": 1,
        "skip_drop": 0.1,
        "sample_type": "uniform",
    },
    {"booster": "dart", "normalize_type": "forest"},
    {"booster": "gblinear", "updater": "shotgun", "feature_selector": "cyclic"},
    {"booster": "gblinear", "updater": "coord_descent", "feature_selector": "greedy", "top_k": 2},
    {"booster": "gblinear", "tolerance": 0.1},
    {"updater": "grow_quantile_histmaker", "verbosity": 0},
    {**NDCG, "lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": 4},
    {**NDCG, "lambdarank_normalization": False, "lambdarank_score_normalization": False},
    {**NDCG, "lambdarank_unbiased": True, "lambdarank_bias_norm": 1.0, "ndcg_exp_gain": False},
    {"objective": "native:reg:pseudohubererror", "huber_slope": 2.0},
    {"objective": "native:reg:tweedie", "tweedie_variance_power": 1.3},
    {"objective": "native:reg:quantileerror", "quantile_alpha": 0.5},
    {"bagging_by_query": True, "bagging_fraction": 0.5, "bagging_freq": 1, "bagging_seed": 3},
]


@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning")  # dart and gblinear, from 3.4 on
@pytest.mark.filterwarnings("ignore::gbmrank.errors.NoProgressWarning")
@pytest.mark.parametrize("params", OF_XGBOOST, ids=str)
def test_parameters_of_xgboost_are_taken(params, capfd):
    fit({**XGB, **params})
    assert "not used" not in capfd.readouterr().err


def test_names_of_the_wrapper_of_xgboost_are_known():
    """All that change a training."""
    made = xgb.XGBRanker().get_params()
    ours = {"objective", "n_estimators", "n_jobs", "early_stopping_rounds", "callbacks"}
    others = {"missing", "enable_categorical", "feature_types", "feature_weights"}
    booster_named("xgboost").parameters.check_known(
        {k: made[k] for k in made.keys() - ours - others - {"importance_type"}}
    )


def test_checking_names_of_xgboost_leaves_no_trace(capfd):
    before = xgb.get_config()
    with pytest.raises(ConfigError, match="'nonsense'"):
        booster_named("xgboost").parameters.check_known({"nonsense": 1, "verbosity": 3})
    assert xgb.get_config() == before
    assert capfd.readouterr() == ("", "")


def test_a_parameter_of_xgboost_counts_as_known_where_it_is_used():
    check = booster_named("xgboost").parameters.check_known
    check({"booster": "gblinear", "updater": "coord_descent", "feature_selector": "cyclic"})
    with pytest.raises(ConfigError, match="no parameter 'feature_selector'"):
        check({"feature_selector": "cyclic"})
    check({"max_depth": -3})  # a wrong value is left to the training


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"eta": 0.1, "learning_rate": 0.2}, "eta and learning_rate are two names of one lightgbm"),
        ({**XGB, "eta": 0.1, "learning_rate": 0.2}, "are two names of one xgboost parameter"),
        (
            {"num_leaves": 4, "max_leaves": 8},
            "are two names of one lightgbm parameter; set only one",
        ),
        (
            {"seed": 3, "random_state": 4},
            "seed=3 and random_state=4 set the same parameter of lightgbm",
        ),
        ({**XGB, "seed": 3, "random_state": 4}, "seed=3 and random_state=4 set the same parameter"),
        ({"num_trees": 4}, "pass the number of rounds as n_estimators="),
        ({**XGB, "num_round": 4}, "pass the number of rounds as n_estimators="),
        ({"loss": "l1"}, "objective='l1' cannot"),
        ({"metrics": "auc"}, "metric='auc' cannot"),
        ({"n_iter_no_change": 3}, "nothing is evaluated during training"),
        ({**XGB, "eval_metric": "rmse"}, "nothing is evaluated during training"),
        ({**XGB, "max_dept": 3}, "xgboost has no parameter 'max_dept'; did you mean max_depth?"),
        ({"sigmoid": 2.0}, "has no effect with squared error"),
        ({**XGB, "lambdarank_unbiased": True}, "has no effect with squared error"),
        ({**XGB, "num_class": 3}, "one score per row"),
        ({"seed": -1}, "seed must be a whole number from 0 to 2147483647, got -1"),
        ({"seed": "-3"}, "seed must be a whole number from 0 to 2147483647, got -3"),
        ({"ignore_column": "0"}, "ignore_column='0' is for files"),
        ({"backend": ["xgboost"]}, "backend must be one of lightgbm, xgboost; got ['xgboost']"),
        ({"boosting": "nope"}, "LightGBM: Unknown boosting type nope"),
        ({**XGB, "booster": "nope"}, "Unknown gbm type nope"),
        ({"backend": "catboost"}, "backend must be one of lightgbm, xgboost; got 'catboost'"),
    ],
)
def test_parameters_of_a_pair_ranker_are_refused(params, message):
    with pytest.raises(ConfigError) as caught:
        PairRanker(**{"n_estimators": 3, **params}).fit(TASK.x, TASK.y, qid=TASK.qid)
    assert message in str(caught.value)
    assert "Stack trace" not in str(caught.value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_seed_under_another_name_reaches_the_booster_of_a_pair_ranker(backend):
    """The default seed would have won over it in LightGBM."""
    drawn = {
        "lightgbm": {"bagging_fraction": 0.5, "bagging_freq": 1},
        "xgboost": {"subsample": 0.5},
    }
    params: dict[str, Any] = {"backend": backend, "n_estimators": 3, **drawn[backend]}
    first, second, third = (
        PairRanker(**params, random_state=seed)
        .fit(TASK.x, TASK.y, qid=TASK.qid)
        .model_.predict(PAIRS)
        .tolist()
        for seed in (3, 4, 3)
    )
    assert first == third != second


def test_without_the_table_of_lightgbm_nothing_is_checked(monkeypatch):
    monkeypatch.delattr(lgb.basic, "_ConfigAliases")
    lightgbm_names._all_names.cache_clear()
    booster_named("lightgbm").parameters.check_known({"learnin_rate": 1})
    lightgbm_names._all_names.cache_clear()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            {"group": TASK.sizes},
            GroupError,
            "group= (rows per query) and qid= (ids) are both given",
        ),
        ({"eval_group": [TASK.sizes]}, DataError, "eval_group= is given without eval_set="),
        ({"qid": TASK.sizes}, GroupError, f"these look like sizes: qid={REPEAT}"),
        ({"colour": 1}, TypeError, "unexpected keyword argument 'colour'"),
        ({"eval_metric": "map"}, ParameterError, "GBMRanker(metric='ndcg@10')"),
        ({"eval_set": [(TASK.x, TASK.y)]}, GroupError, "each row of valid_0 belongs to: eval_qid="),
        (
            {"eval_set": (TASK.x, TASK.y), "eval_qid": TASK.qid[:5]},
            GroupError,
            "eval_qid of valid_0: qid has 5 entries, but there are",
        ),
        (
            {"eval_set": [(TASK.x, TASK.y)], "eval_qid": TASK.qid[:5]},
            DataError,
            "eval_qid has 5 entries for 1 evaluation sets",
        ),
        (
            {"eval_set": [TASK.x, TASK.y], "eval_qid": TASK.qid},
            DataError,
            "eval_set must be (X, y) or a list of (X, y)",
        ),
        (
            {"eval_set": {"valid": (TASK.x, TASK.y)}, "eval_qid": TASK.qid},
            DataError,
            "eval_set must be (X, y) or a list of (X, y)",
        ),
        (
            {"eval_set": iter([(TASK.x, TASK.y)]), "eval_qid": [TASK.qid]},
            DataError,
            "eval_set must be (X, y) or a list of (X, y)",
        ),
    ],
)
def test_rows_are_refused(call, error, message):
    with pytest.raises(error) as caught:
        fit({}, **call)
    assert message in str(caught.value)


def test_names_of_sets_may_come_from_anything_that_lists_them():
    sets = {"eval_set": (TASK.x, TASK.y), "eval_qid": TASK.qid + 1000}
    assert list(fit({}, **sets, eval_names=iter(["held out"])).evals_result_) == ["held out"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("threads", [np.int64(1), np.int32(1)])
def test_threads_may_be_numbers_of_numpy(backend, threads):
    model = fit({"backend": backend, "n_jobs": threads})
    assert model.predict(TASK.x).tolist() == fit({"backend": backend}).predict(TASK.x).tolist()
    PairRanker(backend=backend, n_estimators=3, n_jobs=threads).fit(TASK.x, TASK.y, qid=TASK.qid)


@pytest.mark.parametrize("backend", BACKENDS)
def test_labels_that_are_scored_are_one_per_row(backend):
    model = fit({"backend": backend})
    with pytest.raises(DataError, match=f"y has 5 entries, but X has {TASK.n} rows"):
        model.score(TASK.x, TASK.y[:5], qid=TASK.qid)
    with pytest.raises(DataError, match="y is None: give one label per row"):
        model.score(TASK.x, None, qid=TASK.qid)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_xgboost_says_comes_without_its_stack(backend):
    name = {"lightgbm": "boosting", "xgboost": "booster"}[backend]
    with pytest.raises(ConfigError, match=r"nope$"):
        fit({"backend": backend, name: "nope"})


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("labels", [TASK.y * 0 + 1, TASK.y])
def test_stopping_by_a_set_that_cannot_judge_says_so(backend, labels):
    qid = TASK.qid + 500 if labels is not TASK.y else np.arange(TASK.n) + 500  # of one row each
    watched = {"eval_set": [(TASK.x, TASK.y), (TASK.x, labels)], "eval_qid": [TASK.qid + 900, qid]}
    with pytest.warns(
        GbmrankWarning, match="labels do not differ within any query of valid_1"
    ) as caught:
        fit({"backend": backend, "early_stopping_rounds": 2}, **watched)
    assert len(caught) == 1
    fit({"backend": backend}, **watched)


def test_a_shallow_copy_has_parameters_of_its_own():
    for model in (GBMRanker(max_depth=5), PairRanker(max_depth=5)):
        copy.copy(model).set_params(max_depth=1, num_leaves=4)
        assert model.get_params()["max_depth"] == 5
        assert "num_leaves" not in model.get_params()


def test_sizes_are_refused_when_scoring_and_routing_goes_on():
    model = fit({})
    with pytest.raises(GroupError, match="takes one query id per row"):
        model.score(TASK.x, TASK.y, group=TASK.sizes)
    with config_context(enable_metadata_routing=True):
        assert set(model.get_metadata_routing().fit.requests) == set(GBMRanker._requests["fit"])
        scores = cross_val_score(
            model,
            TASK.x,
            TASK.y,
            params={"qid": TASK.qid, "groups": TASK.qid},
            cv=GroupKFold(2),
        )
    assert np.isfinite(scores).all()


def test_metrics_are_checked_on_what_they_are_asked_for():
    """Graded labels may teach where relevance is watched, and a default metric stops nothing."""
    relevant = (TASK.y > 0).astype(float)
    watched = {"eval_set": (TASK.x, relevant), "eval_qid": TASK.qid + 1000}
    assert "map" in fit({"metric": "map"}, **watched).evals_result_["valid_0"]
    with pytest.raises(DataError, match="metric=map, valid_0: labels must be"):
        fit({"metric": "ndcg@10, map"}, **{**watched, "eval_set": (TASK.x, TASK.y)})
    fit({"objective": "ranknet"}, y=TASK.y - 5.0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, TASK.n)
    fit({"objective": "cossock_zhang", "metric": "ndcg@5"}, sample_weight=weight)


@pytest.mark.parametrize("backend", BACKENDS)
def test_weights_that_differ_name_the_query(backend):
    weight = np.ones(TASK.n)
    weight[np.flatnonzero(TASK.qid == 19)[0]] = 2.0
    with pytest.raises(WeightError, match="the rows of query 'query-19' have different weights"):
        fit({"backend": backend, "objective": "softmax"}, qid=IDS, sample_weight=weight)


@pytest.mark.parametrize("backend", BACKENDS)
def test_columns_of_text_are_named(backend):
    frame = pd.DataFrame(TASK.x, columns=list("abcde")).assign(kind="x")
    with pytest.raises(DataError, match=r"'kind' of X has type .*; encode it, or make it a pandas"):
        fit({"backend": backend}, X=frame)
    others = [pa.Table.from_pandas(frame)]
    if backend == "xgboost" or not is_before("lightgbm", 4, 7):
        others.append(pl.from_pandas(frame))
    for other in others:
        with pytest.raises(DataError, match=r"the column 'kind' of X has type .* encode it$"):
            fit({"backend": backend}, X=other)
    with pytest.raises(DataError, match="table of rows and columns"):
        fit({"backend": backend}, X=frame["kind"])
