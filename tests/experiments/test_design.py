"""Settings as plain data."""

import json
import pickle
from dataclasses import fields

import pytest

from gbmrank.errors import ConfigError, GbmrankError, ParameterError, UnknownNameError
from gbmrank.experiments.design import Design, plain_seeds
from gbmrank.experiments.results import System

LGB, XGB = System("lightgbm", "ranknet"), System("xgboost", "ranknet")


def design(**settings):
    return Design(systems=(LGB, XGB), metrics=("ndcg@10",), **settings)


def test_the_nearest_parameters_win():
    plan = design(
        params={"learning_rate": 0.5, "max_depth": 1},
        params_for={
            "lightgbm ranknet": {"max_depth": 4},
            "ranknet": {"max_depth": 3, "subsample": 0.5},
            "lightgbm": {"max_depth": 2, "num_leaves": 9},
        },
    )
    assert plan.fixed_params(LGB) == {
        "learning_rate": 0.5,
        "max_depth": 4,
        "num_leaves": 9,
        "subsample": 0.5,
    }
    assert plan.fixed_params(XGB) == {"learning_rate": 0.5, "max_depth": 3, "subsample": 0.5}


def test_both_boosters_begin_with_one_learning_rate():
    assert design().params_of(LGB)["learning_rate"] == 0.1
    assert design().params_of(XGB)["learning_rate"] == 0.1
    assert "learning_rate" not in design(params={"eta": 0.3}).params_of(XGB)


def test_every_task_is_there_once():
    plan = design(folds=3, seeds=(4, 7))
    assert len(set(plan.tasks)) == len(plan.tasks) == 2 * 3 * 2


def test_plain_data_has_every_field():
    plan = design(folds=3, seeds=(4, 7), params={"a": [1, 2]}, params_for={"ranknet": {"b": "c"}})
    kept = json.loads(json.dumps(plan.to_json()))
    assert kept.keys() == {one.name for one in fields(Design)}
    assert (kept["seeds"], kept["params"], kept["params_for"]) == (
        [4, 7],
        {"a": [1, 2]},
        {"ranknet": {"b": "c"}},
    )


def test_workers_get_an_equal_design():
    plan = design(folds=3, seeds=(4, 7), params={"a": [1, 2]})
    assert pickle.loads(pickle.dumps(plan)) == plan  # noqa: S301  (made here)


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"folds": 0}, ParameterError, "folds.*from 1, got 0"),
        ({"rounds": 1.5}, ParameterError, "rounds.*got 1.5"),
        ({"early_stopping": 0}, ParameterError, "early_stopping.*got 0"),
        ({"tune": -1}, ParameterError, "tune.*got -1"),
        ({"tuner": "grid"}, ParameterError, "random, optuna; got 'grid'"),
        ({"params": {"a": float("nan")}}, ParameterError, "finite numbers"),
        ({"params": {"a": object()}}, ParameterError, "params must be .*'object'"),
        ({"params_for": {"ranknett": {}}}, UnknownNameError, "'ranknett', but there is 'lightgbm'"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, kind, words):
    with pytest.raises(kind, match=words) as caught:
        design(**settings)
    assert isinstance(caught.value, GbmrankError)


@pytest.mark.parametrize(
    ("seeds", "kind", "words"),
    [
        ((), ParameterError, "seeds is empty"),
        ((1, 1), ConfigError, "twice"),
        ((-1,), ParameterError, "from 0"),
        ((2**31,), ParameterError, "2147483648"),
    ],
)
def test_seeds_that_make_no_sense_are_refused(seeds, kind, words):
    with pytest.raises(kind, match=words):
        plain_seeds(seeds)
