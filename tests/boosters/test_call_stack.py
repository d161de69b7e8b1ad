"""What call_stack.py of each booster reads: the installed version still has it."""

import types
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import gbmrank
from gbmrank.boosters.lightgbm import call_stack as lightgbm_stack
from gbmrank.boosters.xgboost import call_stack as xgboost_stack
from gbmrank.errors import GbmrankWarning
from tests.ranking_tasks import make_task

TASK = make_task(seed=3, queries=12, longest=9)
OBJECTIVE = gbmrank.objective("pairwise")
NEW_NAMES = (
    "{booster} {version} has renamed what gbmrank reads of its running functions, so its trainings "
    "are no longer checked: mend gbmrank/boosters/{booster}/call_stack.py"
)


def broken(module):
    return NEW_NAMES.format(booster=module.__name__, version=module.__version__)


def looking(look, found):
    """An objective that looks at the call stack in every round, and keeps what it saw."""

    def gradient(scores, data):
        found.append(look())
        return OBJECTIVE(scores, data)

    return gradient


def train_lightgbm(objective, *, watch=False, **given):
    data = lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes)
    sets = {"valid_sets": [data], "feval": gbmrank.metric("ndcg")} if watch else {}
    params = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 2, "seed": 7, **given}
    return lgb.train({**params, "objective": objective}, data, 4, **sets)


def train_xgboost(objective):
    data = xgb.DMatrix(TASK.x, TASK.y)
    data.set_group(TASK.sizes)
    params = {"nthread": 1, "min_child_weight": 1e-3, "seed": 7}
    return xgb.train(params, data, 4, obj=objective)


def test_lightgbm_shows_the_model_that_waits_and_its_parameters():
    found: list[Any] = []
    train_lightgbm(looking(lightgbm_stack.current_training, found))
    assert None not in found, broken(lgb)
    assert len({id(one.model) for one in found}) == 1
    assert found[0].params()["seed"] == 7, broken(lgb)
    assert found[-1].splits() > 0, broken(lgb)


def test_lightgbm_shows_whether_its_data_set_has_positions():
    found: list[Any] = []
    stack: Any = lightgbm_stack
    train_lightgbm(looking(lambda: stack.current_training().positions(), found))
    assert set(found) == {False}, broken(lgb)


@pytest.mark.parametrize("watch", [False, True])
def test_lightgbm_shows_whether_it_evaluates_the_training_set(watch):
    found: list[Any] = []
    train_lightgbm(looking(lightgbm_stack.evaluates_training_set, found), watch=watch)
    assert set(found) == {watch}, broken(lgb)


def test_xgboost_shows_the_model_that_waits_and_its_parameters():
    found: list[Any] = []
    train_xgboost(looking(xgboost_stack.current_training, found))
    assert None not in found, broken(xgb)
    assert len({id(one.model) for one in found}) == 1
    assert found[0].params()["seed"] == 7, broken(xgb)
    assert found[-1].splits() > 0, broken(xgb)


def test_a_booster_of_xgboost_that_is_updated_by_hand_shows_the_parameters_of_its_trees():
    data = xgb.DMatrix(TASK.x, TASK.y)
    found: list[Any] = []
    booster = xgb.Booster({"nthread": 1, "max_depth": 5}, [data])
    booster.update(data, 0, fobj=looking(xgboost_stack.current_training, found))
    assert None not in found, broken(xgb)
    assert found[0].params()["max_depth"] == "5", broken(xgb)


@pytest.mark.parametrize("sizes", [[4, 4, 4], [6, 3, 3]])
def test_xgboost_shows_the_sizes_by_which_its_ranker_averages(sizes):
    found: list[Any] = []

    def score(labels, scores):
        found.append(np.array(xgboost_stack.averaged_sizes()).tolist())
        return 0.0

    x, y, qid = TASK.x[:12], np.tile([0, 1], 6), np.repeat(np.arange(3), sizes)
    model = xgb.XGBRanker(n_estimators=1, n_jobs=1, eval_metric=score)
    model.fit(x, y, qid=qid, eval_set=[(x, y)], eval_qid=[qid], verbose=False)
    assert found == [sizes] * 3, broken(xgb)


def rename(monkeypatch, stack):
    """Another version of the booster, in which all modules have new names."""
    for name in ("UPDATING", "TRAINING", "AVERAGING"):
        monkeypatch.setattr(stack, name, "renamed", raising=False)


def remove(monkeypatch, stack):
    """Another Python, which does not show its call stack."""
    monkeypatch.setattr(stack, "sys", types.SimpleNamespace(modules={"lightgbm": lgb}))


@pytest.mark.parametrize("block", [rename, remove])
@pytest.mark.parametrize(
    ("train", "stack"),
    [(train_lightgbm, lightgbm_stack), (train_xgboost, xgboost_stack)],
    ids=["lightgbm", "xgboost"],
)
def test_a_training_that_is_not_known_has_the_same_numbers(monkeypatch, block, train, stack):
    expected = scores_of(train(OBJECTIVE))
    found: list[Any] = []
    block(monkeypatch, stack)
    made = train(looking(stack.current_training, found))
    assert found == [None] * 4
    np.testing.assert_array_equal(scores_of(made), expected)


@pytest.mark.parametrize("block", [rename, remove])
def test_a_training_that_is_not_known_gets_no_warning(monkeypatch, block):
    with pytest.warns(GbmrankWarning, match="label_gain"):
        train_lightgbm(OBJECTIVE, label_gain="0,1,3,7,15")
    block(monkeypatch, lightgbm_stack)
    train_lightgbm(OBJECTIVE, label_gain="0,1,3,7,15")  # warnings are errors
    assert not lightgbm_stack.evaluates_training_set()
    block(monkeypatch, xgboost_stack)
    assert xgboost_stack.averaged_sizes() is None


def scores_of(model):
    rows = TASK.x if isinstance(model, lgb.Booster) else xgb.DMatrix(TASK.x)
    return model.predict(rows)


def test_no_other_file_looks_at_frames_of_boosters():
    house = Path(gbmrank.__file__).parent
    looks = {
        path.relative_to(house).as_posix()
        for path in house.rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in ("_getframe", "f_locals"))
    }
    assert looks == {
        "boosters/lightgbm/call_stack.py",
        "boosters/xgboost/call_stack.py",
        "errors.py",  # the line of the user that a warning is about
    }
