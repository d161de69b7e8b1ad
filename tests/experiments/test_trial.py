"""One run: what is measured is what the library measures."""

import itertools
import warnings

import numpy as np
import pytest

import gbmrank
from gbmrank.api.training_plans import training_plan
from gbmrank.boosters.base import Part
from gbmrank.boosters.plan import train
from gbmrank.data import Groups
from gbmrank.demo_data import demo_data
from gbmrank.experiments import trial
from gbmrank.experiments.design import Design, Task
from gbmrank.experiments.results import System
from gbmrank.experiments.sources import read_source
from gbmrank.experiments.trial import run_task, split_of, tied_pairs

DATA = demo_data(60, items=8)
SOURCE = read_source(DATA)


def design(system, **settings):
    usual = {"metrics": ("ndcg@3", "map(threshold=1, empty=zero)"), "folds": 3, "rounds": 6}
    return Design(systems=(system,), **{**usual, **settings})


def rows_of(queries):
    return np.flatnonzero(np.isin(DATA.qid, queries))


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("objective", ["pairwise", "native"])
def test_values_are_those_of_a_training_by_hand(backend, objective):
    native = {"lightgbm": "native:lambdarank", "xgboost": "native:rank:ndcg"}[backend]
    system = System(backend, native if objective == "native" else objective)
    plan = design(system, regret_k=3, early_stopping=2)
    task = Task(system, 5, 1)
    run = run_task(SOURCE, plan, task)
    assert run.error is None

    split = split_of(SOURCE, plan, task)
    parts = []
    for queries in split:
        rows = rows_of(queries)
        data = gbmrank.RankingData.from_arrays(DATA.labels[rows], qid=DATA.qid[rows])
        parts.append(Part(DATA.X[rows], data))
    trained = train(
        training_plan(
            objective=system.objective,
            metric=["ndcg@3", "map(threshold=1, empty=zero)"],
            backend=backend,
            rounds=6,
            early_stopping=2,
            params=plan.params_of(system),
            seed=5,
            threads=1,
        ),
        parts[0],
        {"valid": parts[1]},
    )
    rows = rows_of(split.test)
    scores = trained.scores(DATA.X[rows])
    labels, qid = DATA.labels[rows], DATA.qid[rows]
    np.testing.assert_array_equal(run.queries, split.test)
    expected = gbmrank.metric("ndcg@3").per_query(labels, scores, qid=qid)
    np.testing.assert_array_equal(run.values["ndcg@3"], expected)
    assert run.history == trained.history["valid"]
    assert run.best_round == trained.best_round
    mean = gbmrank.metric("map(threshold=1, empty=zero)").score(labels, scores, qid=qid)
    assert run.values[str(gbmrank.metric("map(threshold=1, empty=zero)"))].mean() == pytest.approx(
        mean, rel=1e-12
    )

    everything = np.zeros(len(DATA.labels))
    everything[rows] = scores
    reached = DATA.expected_dcg(everything, k=3)[split.test]
    best = DATA.expected_dcg(DATA.expected_gain, k=3)[split.test]
    np.testing.assert_allclose(run.values["regret@3"], 1.0 - reached / best, atol=1e-12)


def test_queries_without_a_value_are_filled_as_the_metric_says():
    x, qid = np.arange(12.0)[:, None], np.repeat(np.arange(6), 2)
    labels = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0])
    source = read_source((x, labels, qid))
    system = System("lightgbm", "pairwise")
    plan = design(system, metrics=("ndcg@3", "ndcg(empty=zero)@3", "ndcg(empty=one)@3"), folds=2)
    runs = [run_task(source, plan, task) for task in plan.tasks]
    for run in runs:
        empty = np.flatnonzero(run.queries == 4)
        assert np.isnan(run.values["ndcg@3"][empty]).all()
        assert (run.values["ndcg(empty=zero)@3"][empty] == 0).all()
        assert (run.values["ndcg(empty=one)@3"][empty] == 1).all()
    assert sum(4 in run.queries for run in runs) == 1


def test_an_error_becomes_the_result_of_the_run():
    system = System("xgboost", "native:rank:map")
    plan = design(system)
    run = run_task(SOURCE, plan, plan.tasks[0])
    assert run.error is not None
    assert "map can only be used with binary labels" in run.error
    assert "\n" not in run.error
    assert "ranking_utils" not in run.error  # no place, no time: equal when it happens again
    assert len(run.queries) == len(run.tied) == 0
    assert run.params["learning_rate"] == 0.1


def test_a_constant_model_is_warned_about():
    system = System("lightgbm", "pairwise")
    plan = design(system, params={"min_data_in_leaf": 10**6})
    run = run_task(SOURCE, plan, plan.tasks[0])
    assert run.error is None
    assert (run.tied == 1.0).all()
    assert any("all scores of every test query are equal" in text for text in run.warnings)


def test_parameters_that_a_booster_does_not_know_are_heard_of():
    system = System("xgboost", "pairwise")
    plan = design(system, params={"num_leafs": 3})
    run = run_task(SOURCE, plan, plan.tasks[0])
    assert any("num_leafs" in text for text in run.warnings) or "num_leafs" in str(run.error)


def test_warnings_are_one_line_without_time_and_place(monkeypatch):
    def warned(*given):
        place = "[12:34:56] WARNING: /src/learner.cc:790: \n"
        warnings.warn(f'{place}Parameters: {{ "top_k" }}\nare not used.', UserWarning, stacklevel=1)
        return train(*given)

    monkeypatch.setattr(trial, "train", warned)
    plan = design(System("xgboost", "pairwise"))
    run = run_task(SOURCE, plan, plan.tasks[0])
    (text,) = [text for text in run.warnings if "top_k" in text]
    assert text == 'UserWarning: Parameters: { "top_k" } are not used.'


def test_compilation_is_over_before_the_clock_starts(monkeypatch):
    system = System("lightgbm", "comparison(loss=hinge)")
    plan = design(system)
    trained = []

    def counted(plan, part, *rest):
        trained.append((plan.rounds, part.data.groups.n_queries))
        return train(plan, part, *rest)

    monkeypatch.setattr(trial, "_compiled", set())
    monkeypatch.setattr(trial, "train", counted)
    for task in plan.tasks[:2]:
        assert run_task(SOURCE, plan, task).error is None
    assert trained == [(1, 2), (6, 32), (6, 32)]  # once in a process


def test_what_goes_wrong_in_the_warm_up_is_left_to_the_run(monkeypatch):
    def broken(plan, *rest):
        if plan.rounds == 1:
            raise RuntimeError("cold")
        return train(plan, *rest)

    monkeypatch.setattr(trial, "_compiled", set())
    monkeypatch.setattr(trial, "train", broken)
    plan = design(System("lightgbm", "pairwise"))
    run = run_task(SOURCE, plan, plan.tasks[0])
    assert run.error is None
    assert run.warnings == ()


def test_tied_pairs_are_counted_as_pairs():
    rng = np.random.default_rng(0)
    sizes = [1, 2, 5, 9]
    scores = rng.integers(0, 3, sum(sizes)).astype(float)
    groups = Groups.from_sizes(sizes, sum(sizes))
    expected = []
    for query in np.split(scores, np.cumsum(sizes)[:-1]):
        pairs = list(itertools.combinations(query, 2))
        expected.append(sum(a == b for a, b in pairs) / max(len(pairs), 1))
    np.testing.assert_allclose(tied_pairs(scores, groups), expected)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_further_metric_may_be_undefined_on_the_watched_queries(backend):
    labels = DATA.labels.copy()
    labels[labels > 3] = 3
    labels[0] = 4
    source = read_source((DATA.X, labels, DATA.qid))
    system = System(backend, "ranknet")
    plan = design(system, metrics=("ndcg@3", "map(threshold=4)"))
    runs = [run_task(source, plan, Task(system, 0, fold)) for fold in range(3)]
    assert [run.error for run in runs] == [None] * 3
    histories = [run.history["map(threshold=4)"] for run in runs]
    assert sum(np.isnan(one).all() for one in histories) >= 2
    assert [len(one) for one in histories] == [len(run.history["ndcg@3"]) for run in runs]
    values = np.concatenate([run.values["map(threshold=4)"] for run in runs])
    assert np.isfinite(values).sum() == 1
