"""The three sentences on top of a comparison: what wins, what it costs, what is open."""

from dataclasses import replace

import numpy as np
import pytest

import gbmrank
from gbmrank.demo_data import demo_data
from gbmrank.estimators.committee import default_members
from gbmrank.experiments.comparison import Comparison
from gbmrank.experiments.report.page import render
from gbmrank.experiments.results import GIVEN, System
from gbmrank.experiments.statistics.estimates import analyse
from gbmrank.experiments.summary import verdict_of
from tests.experiments.make_results import PAIRWISE, make_results, table_results


def told(results):
    return verdict_of(results, analyse(results))


def runs_of(results, system):
    return [run for run in results.runs if run.system == system]


def test_the_winner_has_its_lead_its_costs_and_its_losses():
    results = make_results()
    found, system = told(results), System("xgboost", PAIRWISE)
    compared = analyse(results).measures[0].comparison(system)
    assert found is not None
    assert compared is not None
    assert found.wins.startswith("XGBoost pairwise(target=ndcg@10) wins on ndcg@10: 0.")
    base = analyse(results).measures[0].mean(results.baseline)
    shares = [100 * one / base for one in (compared.difference, *compared.interval)]
    assert all(f"{share:+.1f}%" in found.wins for share in shares)
    seconds = np.median([run.seconds for run in runs_of(results, system)])
    trees = np.median([run.best_round + 1 for run in runs_of(results, system)])
    assert f"{seconds:.2g} s of training and {trees:.0f} trees" in found.costs
    other = np.median([run.seconds for run in runs_of(results, results.baseline)])
    assert f"{seconds / other:.1f} and " in found.costs
    assert f"worse on {compared.losses:,} of {analyse(results).measures[0].n_queries:,}" in (
        found.costs
    )
    assert found.open.startswith("Not established: ")


def test_without_a_decided_lead_nothing_wins():
    rng = np.random.default_rng(0)
    found = told(table_results(rng.random((3, 40))))
    assert found.wins.startswith("No winner on ndcg@10: ")
    assert "wins" not in found.wins


def test_a_baseline_that_nothing_beats_has_the_best_mean():
    values = np.random.default_rng(0).random(60)
    found = told(table_results([values + 1.0, values, values]))
    assert "the baseline, has the best mean" in found.wins
    assert "2 of 2 are worse" in found.wins


def test_a_better_mean_that_is_not_established_is_said():
    rng = np.random.default_rng(0)
    base = rng.random(80)
    sure, wild = base + 0.1, base + 0.2 + 3.0 * rng.standard_normal(80)
    wild += 0.2 + base.mean() - wild.mean()
    found = told(table_results([base, sure, wild]))
    assert "objective_1 wins" in found.wins
    assert "objective_2 has a better mean, but no established lead" in found.wins


def test_an_existing_model_may_know_the_queries():
    results = table_results(np.random.default_rng(0).random((2, 40)) + np.array([[0.0], [0.5]]))
    given = System(GIVEN, "production")
    swapped = {results.systems[0]: given}
    results = replace(
        results,
        systems=(given, results.systems[1]),
        baseline=given,
        runs=tuple(
            replace(run, system=swapped.get(run.system, run.system)) for run in results.runs
        ),
    )
    found = told(results)
    assert "against production (given scores)" in found.wins
    assert "times" not in found.costs
    assert "how good production is on new queries: its model may have been trained on" in found.open


def test_the_report_and_the_table_begin_with_the_three_sentences():
    results = make_results(200)
    found = Comparison(results, analyse(results))
    page, text = render(results, found.analysis), found.table()
    assert text.startswith("\n".join(found.verdict))
    top, below = page.split('<section id="results">')
    assert all(line.split(" (")[0].split(", p")[0] in top for line in found.verdict)
    assert found.analysis.verdict.split(" (")[0] not in top
    assert found.analysis.verdict.split(" (")[0] in below


@pytest.mark.parametrize(
    ("metric", "first"),
    [
        ("ndcg@10", "yetirank"),
        ("dcg@10", "pairwise(loss=logistic, target=dcg@10)"),
        ("err@10", "swap(metric=err@10"),
    ],
)
def test_by_default_the_recommendation_meets_what_it_must_beat(metric, first):
    from gbmrank.experiments.systems import choose_systems, default_objectives

    texts = default_objectives(gbmrank.metric(metric))
    assert texts[0].startswith(first)
    for backend, own, plain in (
        ("lightgbm", "lambdarank", "regression"),
        ("xgboost", "rank:ndcg", "reg:squarederror"),
    ):
        systems = [one.objective for one in choose_systems(texts, [backend]).systems]
        models = len(default_members(gbmrank.metric(metric)))
        control = f"committee(native:{own}, seeds={models})"
        assert {"committee", control, f"native:{own}", f"native:{plain}"} <= set(systems)
    quick = default_objectives(gbmrank.metric(metric), quick=True)
    assert quick == [one for one in texts if not one.startswith("committee")]


def test_the_time_is_estimated_from_the_models_and_rounds(monkeypatch):
    from gbmrank.experiments import trial
    from gbmrank.experiments.preparation import Settings, prepare
    from gbmrank.experiments.sources import read_source
    from gbmrank.experiments.trial import seconds_needed

    source = read_source(demo_data(60))

    def seconds(rounds, *objectives):
        settings = Settings(objectives=objectives, backends=["lightgbm"], folds=2, rounds=rounds)
        design = prepare(source, settings).design
        return seconds_needed(source, design, design.tasks) - seconds_needed(source, design, ())

    assert seconds(10**6, "native:lambdarank") > 0.0
    # The seconds of a start and of a round, which two measurements would give differently.
    monkeypatch.setattr(trial, "_timed", lambda *_: (0.5, 0.001))
    one = seconds(10**6, "native:lambdarank")
    assert seconds(10**7, "native:lambdarank") > 2 * one
    assert seconds(10**7, "committee(native:lambdarank, seeds=9)") > 2 * one
