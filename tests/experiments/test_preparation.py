"""Parameters that no run could use are found before the first training."""

import numpy as np
import pytest

import gbmrank
from gbmrank.demo_data import demo_data
from gbmrank.errors import ConfigError, DataError

DATA = demo_data(30, items=6)
QUICK = {"folds": 2, "rounds": 3, "isolate": False, "metrics": "ndcg@3"}


def compare(data=DATA, **options):
    return gbmrank.compare(data, **{**QUICK, "objectives": ["ranknet"], **options})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"params": {"learning_rate": 0.1, "eta": 0.2}}, "two names of one lightgbm parameter"),
        ({"params_for": {"lightgbm": {"boosting": "rf"}}}, "lightgbm ranknet: boosting='rf'"),
        ({"params_for": {"lightgbm": {"boosting": "dart"}}}, "early stopping does not work with"),
        ({"params_for": {"lightgbm": {"label_gain": [0, 1]}}}, "own objectives and has no effect"),
        ({"params_for": {"lightgbm": {"eval_at": 3}}}, "eval_at=3 cannot be a parameter"),
    ],
)
def test_parameters_that_no_run_could_use(options, words):
    with pytest.raises(ConfigError, match=words):
        compare(**options)


def test_parameters_that_work_are_not_refused():
    dart = {"lightgbm": {"boosting": "dart"}, "xgboost": {"booster": "dart"}}
    assert not compare(params_for=dart, early_stopping=None).results.failed
    assert not compare(params={"max_depth": 3}, seeds=2).results.failed


def test_a_small_bagging_fraction_is_not_refused():  # it leaves no row of two queries
    bagged = {"bagging_fraction": 0.05, "bagging_freq": 1, "min_data_in_leaf": 1}
    assert not compare(params_for={"lightgbm": bagged}).results.failed


@pytest.mark.filterwarnings("ignore:.*booster=gblinear. is deprecated:UserWarning")  # XGBoost 3.4
def test_linear_models_of_xgboost_are_not_refused():
    objectives = ["ranknet", "native:rank:pairwise"]
    options = {"params": {"booster": "gblinear"}, "early_stopping": None}
    found = compare(backends=["xgboost"], objectives=objectives, **options)
    assert not found.results.failed


def test_infinite_features_are_for_lightgbm_alone():
    features = DATA.X.copy()
    features[5, 2] = np.inf
    rows = (features, DATA.labels, DATA.qid)
    failed = compare(rows).results.failed
    assert {run.system.backend for run in failed} == {"xgboost"}
    assert "is infinite" in str(failed[0].error)


def part(queries, labels=DATA.labels):
    rows = np.isin(DATA.qid, np.unique(DATA.qid)[queries])
    return DATA.X[rows], labels[rows], DATA.qid[rows]


def test_given_parts_that_leave_nothing_to_watch():
    nothing = np.zeros_like(DATA.labels)
    train, test = part(slice(0, 10)), part(slice(20, 30))
    parts = {"train": train, "valid": part(slice(10, 20), nothing), "test": test}
    with pytest.raises(DataError, match=r"ndcg@3 is undefined for every query that validates"):
        compare(parts)
    with pytest.raises(DataError, match="train has 1 query"):
        compare({"train": part([3]), "test": test})
