"""The study of low-rank surrogates: conditions, decoders, limits and samples."""

import itertools

import numpy as np
import pytest

from gbmrank import theory
from studies.ramaswamy2013 import experiment as study
from studies.ramaswamy2013 import low_rank
from studies.ramaswamy2013.low_rank import boosted_scores
from studies.study import Settings
from tests.formulas import each

TASKS = {task.name: task for task in low_rank.tasks()}


@pytest.fixture(scope="module")
def outcome():
    return study.run(Settings(small=True, threads=1, report=lambda line: None))


def numbers(cell: str) -> float:
    return float(cell.split(maxsplit=1)[0])


@pytest.mark.parametrize("name", each(3, TASKS))
def test_types_meet_their_condition_and_only_covered_surrogates_are_right(name):
    task = TASKS[name]
    types = low_rank.draw_types(task, 3, np.random.default_rng(5))
    assert len(types) == 3
    assert all(task.condition(one) for one in types)
    for surrogate in task.right:
        assert low_rank.limits(task, types, surrogate).max() < 1e-12
    for surrogate in task.wrong:
        assert low_rank.limits(task, types, surrogate).min() >= 0.01


def test_conditions_are_those_of_the_theorems():
    rng = np.random.default_rng(1)
    graph = low_rank.draw_types(TASKS["PD, in P_DAG, not in P_f"], 1, rng)[0].mean_graph()
    assert theory.is_acyclic(theory.difference_graph(graph))
    assert not theory.degree_condition(graph)
    graph = low_rank.draw_types(TASKS["PD, not in P_DAG"], 1, rng)[0].mean_graph()
    assert not theory.is_acyclic(theory.difference_graph(graph))
    graph = low_rank.draw_types(TASKS["PD, in P_f"], 1, rng)[0].mean_graph()
    assert theory.degree_condition(graph)
    assert graph.sum() == pytest.approx(1.0)


def test_each_graph_of_a_type_has_no_cycle():
    one = low_rank._graphs(np.random.default_rng(2))
    assert all(theory.is_acyclic(graph) for graph in one.labels)


def test_where_reinforcement_holds_labels_sort_like_their_shares():
    rng, seen = np.random.default_rng(4), 0
    for _ in range(400):
        labels = (rng.random((3, 4)) < 0.5).astype(float)
        labels[labels.sum(axis=1) == 0, 0] = 1.0
        chances = rng.dirichlet(np.ones(3))
        joint = np.einsum("m,mi,mj->ij", chances / labels.sum(axis=1), labels, labels)
        if not theory.reinforces(joint):
            continue
        seen += 1
        mean, share = chances @ labels, np.diag(joint)
        for i, j in itertools.permutations(range(4), 2):
            assert not (share[i] > share[j] + 1e-9 and mean[i] < mean[j] - 1e-9)
    assert seen > 20


@pytest.mark.parametrize("name", low_rank.SURROGATES)
def test_decoders_give_one_score_per_item_and_see_every_row(name):
    surrogate = low_rank.SURROGATES[name]
    rng = np.random.default_rng(0)
    graphs = "wins" in name or "degree" in name or "edges" in name
    one = (low_rank._graphs if graphs else low_rank._binary)(rng)
    fitted = surrogate.target(one.labels)
    together = surrogate.scores(fitted)
    assert together.shape == (4, low_rank.ITEMS)
    for row, alone in zip(together, fitted, strict=True):
        np.testing.assert_array_equal(surrogate.scores(alone[None, :])[0], row)


def test_the_exact_decoders_find_the_best_of_all_orders():
    rng = np.random.default_rng(6)
    for task, name in (("MAP, not in P_reinforce", "y y' / P, exact decoder"),
                       ("PD, not in P_DAG", "edges, exact decoder")):  # fmt: skip
        one = low_rank.draw_types(TASKS[task], 1, rng)[0]
        mean = one.probabilities @ low_rank.SURROGATES[name].target(one.labels)
        scores = low_rank.SURROGATES[name].scores(mean[None, :])[0]
        every = -np.array(list(itertools.permutations(range(low_rank.ITEMS))), dtype=float)
        values = one.expected_values(TASKS[task].metric, every)
        best = values.max() if task.startswith("MAP") else values.min()
        assert one.value(TASKS[task].metric, scores) == pytest.approx(best, abs=1e-12)


def test_more_queries_bring_covered_surrogates_to_zero_and_others_to_their_limit(outcome):
    for row in outcome.tables[0].rows:
        task, name, reason = row[:3]
        limit, first, last = float(row[3]), numbers(row[4]), numbers(row[6])
        assert (reason == "nothing") == (name in TASKS[task].wrong)
        if reason == "nothing":
            assert limit >= 0.01
            assert last > 0.005
        else:
            assert limit == 0.0
            assert last < 0.01
            assert last < first


def test_boosted_models_tell_types_apart():
    task = TASKS["PD, in P_DAG, not in P_f"]
    types = low_rank.draw_types(task, 3, np.random.default_rng(8))
    counts = [np.round(400 * one.probabilities).astype(int) for one in types]
    for name in ("edges, exact decoder", "net degree"):
        surrogate = low_rank.SURROGATES[name]
        scores = boosted_scores(surrogate, types, counts, threads=1)
        for one, drawn, row in zip(types, counts, scores, strict=True):
            mean = (drawn / drawn.sum()) @ surrogate.target(one.labels)
            fitted = surrogate.scores(mean[None, :])[0]
            lost = one.value(task.metric, row) - one.value(task.metric, fitted)
            assert lost == pytest.approx(0.0, abs=0.01)


def test_findings_name_every_task_and_the_plot_has_a_panel_for_each(outcome):
    figures = pytest.importorskip("matplotlib.figure")
    for name, sentence in zip(TASKS, outcome.findings, strict=False):
        assert sentence.startswith(name)
    figure = figures.Figure()
    outcome.figures["regret"](figure)
    assert [axes.get_title() for axes in figure.axes if axes.axison] == list(TASKS)
    names = [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]
    assert names == list(low_rank.SURROGATES)
