"""A small search, the same for every objective."""

import importlib.util
import sys

import pytest

from gbmrank.boosters.supported import BACKENDS, booster_named
from gbmrank.demo_data import demo_data
from gbmrank.errors import MissingPackageError
from gbmrank.experiments.design import Design
from gbmrank.experiments.results import System
from gbmrank.experiments.sources import read_source
from gbmrank.experiments.trial import best_of, candidates, check_tuner, run_task

HAS_OPTUNA = importlib.util.find_spec("optuna") is not None


def drawn(backend="lightgbm", asked=None, budget=20, stream=(0, 0), tuner="random"):
    tried = candidates(backend, asked or {}, budget=budget, tuner=tuner, stream=stream)
    found: list[dict] = []

    def attempt(settings):
        found.append(settings)
        return 0.0, settings

    assert best_of(tried, attempt) == {}  # the first of equal ones
    return found


def test_the_budget_is_kept_and_begins_with_what_was_asked_for():
    found = drawn(budget=7)
    assert len(found) == 7
    assert found[0] == {}
    assert drawn(budget=1) == [{}]


def test_draws_are_the_same_for_every_objective_and_differ_by_fold():
    assert drawn() == drawn()
    assert drawn() != drawn(stream=(0, 1)) != drawn(stream=(1, 0))


@pytest.mark.parametrize("backend", BACKENDS)
def test_draws_stay_within_bounds(backend):
    space = booster_named(backend).tuning.space
    for settings in drawn(backend, budget=200)[1:]:
        assert settings.keys() == space.keys()
        for name, value in settings.items():
            bounds = space[name]
            assert bounds.low <= value <= bounds.high
            assert isinstance(value, int) == bounds.whole


def test_what_was_asked_for_is_not_searched():
    assert all("learning_rate" not in one for one in drawn(asked={"eta": 0.1}))
    assert all("num_leaves" not in one for one in drawn(asked={"num_leaves": 3}))


def test_the_best_is_kept():
    values = iter([1.0, 3.0, 2.0, 3.0])
    tried = candidates("xgboost", {}, budget=4, tuner="random", stream=(0, 0))
    seen = []

    def attempt(settings):
        seen.append(settings)
        return next(values), len(seen)

    assert best_of(tried, attempt) == 2


def test_a_tuned_run_is_no_worse_on_what_it_watches():
    source = read_source(demo_data(40, items=8))
    system = System("lightgbm", "pairwise")

    def run(tune):
        plan = Design(systems=(system,), metrics=("ndcg@5",), folds=2, rounds=10, tune=tune)
        return run_task(source, plan, plan.tasks[0])

    plain, tuned = run(0), run(4)
    best = [one.history["ndcg@5"][one.best_round] for one in (plain, tuned)]
    assert best[1] >= best[0]
    assert tuned.params != plain.params or best[0] == best[1]
    again = run(4)
    assert again.params == tuned.params
    assert again.history == tuned.history


def test_without_optuna_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)  # as if it were not installed
    with pytest.raises(MissingPackageError, match="pip install optuna"):
        check_tuner("optuna")


@pytest.mark.skipif(not HAS_OPTUNA, reason="optuna is not installed")
def test_optuna_draws_the_same_again():
    assert drawn(tuner="optuna", budget=5) == drawn(tuner="optuna", budget=5)
