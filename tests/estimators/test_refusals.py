"""What a new user gets wrong with GBMRanker: said before training, with what to do."""

from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_val_score

from gbmrank import GBMRanker, PairRanker
from gbmrank.backends import parameters
from gbmrank.errors import (
    ConfigError,
    DataError,
    GroupError,
    MetricError,
    ParameterError,
    UnknownNameError,
    WeightError,
)
from tests.ranking_tasks import make_task

BACKENDS = ["lightgbm", "xgboost"]
TASK = make_task(seed=0)
IDS = np.array([f"query-{query}" for query in TASK.qid])
STATE = np.random.RandomState(0)
BAGGED: dict[str, Any] = {"bagging_by_query": True, "bagging_fraction": 0.5, "bagging_freq": 1}
REPEAT = "np.repeat(np.arange(len(sizes)), sizes)"


def fit(params: dict[str, Any], **call: Any) -> GBMRanker:
    model = GBMRanker(**{"n_estimators": 3, **params})
    return model.fit(**{"X": TASK.x, "y": TASK.y, "qid": TASK.qid, **call})


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"learnin_rate": 0.1}, ConfigError, "'learnin_rate'; did you mean learning_rate?"),
        ({"learningrate": 0.3}, ConfigError, "'learningrate'; did you mean learning_rate?"),
        ({"callbacks": []}, ConfigError, "lightgbm has no parameter 'callbacks'; leave it out"),
        ({"seed": 5, "random_state": 3}, ConfigError, "seed=5 and random_state=3 are one setting"),
        ({"n_jobs": 1, "num_threads": 2}, ConfigError, "n_jobs=1 and num_threads=2 are one"),
        ({"n_jobs": 1, "nthread": 2, "backend": "xgboost"}, ConfigError, "n_jobs=1 and nthread=2"),
        (
            {"objective": "native:lambdarank", "backend": "xgboost"},
            ConfigError,
            "native:lambdarank belongs to lightgbm, and backend='xgboost'; xgboost has native:rank",
        ),
        (
            {"objective": "native:rank:ndgc", "backend": "xgboost"},
            UnknownNameError,
            "did you mean native:rank:ndcg?",
        ),
        ({"objective": "rank:ndcg"}, UnknownNameError, "did you mean native:rank:ndcg, the boo"),
        ({"objective": "rank_xendcg"}, UnknownNameError, "did you mean native:rank_xendcg"),
        ({"objective": 3}, ParameterError, "an objective is given as text"),
        ({"metric": "map"}, DataError, "metric=map, the training set: labels must be 0/1"),
        ({"n_estimators": "10"}, ParameterError, "n_estimators must be a whole number"),
        ({"metric": []}, MetricError, "metric is empty; name at least one, such as ndcg@10"),
        ({"n_jobs": "2"}, ParameterError, "n_jobs must be a whole number or None, got '2'"),
        ({"n_jobs": 1.5}, ParameterError, "n_jobs must be a whole number or None, got 1.5"),
        ({"random_state": STATE}, ConfigError, "whole number, got a RandomState; draw one from"),
        ({"random_state": STATE, "backend": "xgboost"}, ConfigError, "got a RandomState"),
        ({"seed": np.random.default_rng(0)}, ConfigError, "whole number, got a Generator"),
        ({**BAGGED, "seed": -1}, ConfigError, "seed=-1: queries are drawn with a whole number"),
        ({**BAGGED, "seed": None}, ConfigError, "seed=None: queries are drawn with a whole"),
        ({**BAGGED, "bagging_seed": -3}, ConfigError, "bagging_seed=-3: queries are drawn"),
        ({**BAGGED, "bagging_seed": "x"}, ConfigError, "bagging_seed must be a whole number"),
        ({**BAGGED, "bagging_fraction": "x"}, ConfigError, "must be a number, got 'x'"),
        ({**BAGGED, "bagging_fraction": -0.5}, ConfigError, "must be above 0, got -0.5"),
        ({**BAGGED, "bagging_freq": 1.5}, ConfigError, "must be a whole number, got 1.5"),
        ({**BAGGED, "bagging_by_query": "yes"}, ConfigError, "must be True or False, or a text"),
        ({"early_stopping_rounds": 0}, ParameterError, "early_stopping_rounds must be a whole"),
        ({"early_stopping_rounds": 3}, ConfigError, "to watch: give eval_set= and eval_qid="),
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
    """All that change a training; the other two say so."""
    made = lgb.LGBMRanker().get_params()
    ours = {"objective", "n_estimators", "n_jobs"}
    parameters.check_known("lightgbm", made.keys() - ours - {"class_weight", "importance_type"})
    fit({"random_state": 3, "colsample_bytree": 0.5, "bagging_by_query": False})
    with pytest.raises(ConfigError, match="no parameter 'importance_type'"):
        fit({"importance_type": "gain"})
    with pytest.raises(ConfigError, match="did you mean num_leaves"):
        PairRanker(numleaves=3).fit(TASK.x, TASK.y, qid=TASK.qid)


def test_without_the_table_of_lightgbm_nothing_is_checked(monkeypatch):
    monkeypatch.delattr(lgb.basic, "_ConfigAliases")
    parameters._mains_of_lightgbm.cache_clear()
    parameters.check_known("lightgbm", {"learnin_rate": 1})
    parameters._mains_of_lightgbm.cache_clear()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ({"group": TASK.sizes}, GroupError, f"no sizes (group=): qid={REPEAT}"),
        ({"eval_group": [TASK.sizes]}, GroupError, f"(eval_group=): eval_qid=[{REPEAT}]"),
        ({"qid": TASK.sizes}, GroupError, f"these look like sizes: qid={REPEAT}"),
        ({"colour": 1}, TypeError, "unexpected keyword argument 'colour'"),
        ({"eval_set": [(TASK.x, TASK.y)]}, GroupError, "each row of valid_0 belongs to: eval_qid="),
        (
            {"eval_set": (TASK.x, TASK.y), "eval_qid": TASK.qid[:5]},
            GroupError,
            "eval_qid of valid_0: qid has 5 entries, but there are",
        ),
        (
            {"eval_set": [(TASK.x, TASK.y)], "eval_qid": TASK.qid[:5]},
            DataError,
            "eval_qid has 5 entries for 1 evaluation sets; give a list with one array of ids per",
        ),
    ],
)
def test_rows_are_refused(call, error, message):
    with pytest.raises(error) as caught:
        fit({}, **call)
    assert message in str(caught.value)


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
        fit({"backend": backend}, qid=IDS, sample_weight=weight)


@pytest.mark.parametrize("backend", BACKENDS)
def test_columns_of_text_are_named(backend):
    frame = pd.DataFrame(TASK.x, columns=list("abcde")).assign(kind="x")
    with pytest.raises(DataError, match=r"'kind' of X holds .*: encode it, or make it a pandas"):
        fit({"backend": backend}, X=frame)
    for other in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        with pytest.raises(DataError, match=r"the column 'kind' of X holds .* encode it$"):
            fit({"backend": backend}, X=other)
    with pytest.raises(DataError, match="table of rows and columns"):
        fit({"backend": backend}, X=frame["kind"])
