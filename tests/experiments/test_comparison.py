"""``gbmrank.compare`` from data to tables."""

import json
import warnings

import numpy as np
import pytest

import gbmrank
from gbmrank.demo_data import demo_data
from gbmrank.errors import (
    ConfigError,
    DataError,
    LeakageWarning,
    MetricError,
    NoProgressWarning,
    ParameterError,
)
from gbmrank.experiments.store import load_results
from gbmrank.numerics import sigmoid, softplus
from tests.ranking_tasks import run_python

DATA = demo_data(60, items=8)
QUICK = {"folds": 2, "rounds": 5, "isolate": False, "metrics": "ndcg@3, map(threshold=1)"}
OURS = ["pairwise(target=dcg)", "ranknet"]


def compare(data=DATA, **options):
    return gbmrank.compare(data, **{**QUICK, "objectives": OURS, **options})


@pytest.fixture(scope="module")
def found():
    objectives = [*OURS, "native:lambdarank", "native:rank:map"]
    return compare(objectives=objectives, seeds=2, baseline="xgboost ranknet")


def test_a_misspelt_parameter_stops_before_the_first_run():
    with pytest.raises(ConfigError, match=r"did you mean num_leaves.*params go to every booster"):
        compare(params={"num_leavess": 7})
    with pytest.raises(ConfigError, match=r"lightgbm has no parameter 'grow_policy'.*params_for"):
        compare(params={"grow_policy": "lossguide"})


def test_every_query_is_judged_by_every_system_and_seed(found):
    table = found.results.values("ndcg@3")
    assert table.shape == (6, 2, 60)
    failed = [str(one) == "xgboost native:rank:map" for one in found.results.systems]
    assert np.isnan(table[failed]).all()
    good = table[np.logical_not(failed)]
    known = ~np.isnan(good)
    assert (known == known[0, 0]).all()  # undefined for the same queries in all systems
    relevant = found.results.queries.relevant > 0
    np.testing.assert_array_equal(known[0, 0], relevant)


def test_a_run_that_fails_is_reported_and_the_others_go_on(found):
    assert {str(run.system) for run in found.results.failed} == {"xgboost native:rank:map"}
    assert len(found.results.failed) == 4
    assert any("native:rank:map: 4 of 4 runs failed" in note for note in found.notes)
    assert "failed" in found.table()


def test_the_regret_of_demonstration_data_is_measured(found):
    measure = found.results.measures[-1]
    assert measure == ("regret@3", False)
    values = found.results.values("regret@3")
    assert np.nanmin(values) >= 0
    assert np.nanmax(values) < 1


def test_the_table_has_a_row_per_system_and_marks_the_baseline(found):
    text = found.table()
    assert str(found) == text
    for system in found.results.systems:
        assert str(system) in text
    assert "xgboost ranknet *" in text
    assert found.analysis.verdict in text


def test_verdicts_and_conventions_stand_beside_the_numbers(found):
    verdicts = found.results.verdicts
    assert verdicts["pairwise(target=dcg)", "regret@3"]["status"] == "calibrated"
    assert verdicts["ranknet", "regret@3"]["status"] == "not calibrated"
    assert verdicts["native:lambdarank", "ndcg@3"]["status"] == "unknown"
    assert found.results.conventions["ndcg@3"]["gain"] == "exp2"
    assert found.results.audit["queries"] == 60
    assert sum(found.results.audit["label_counts"].values()) == len(DATA.labels)
    assert "lightgbm" in found.results.environment["versions"]


def test_results_come_back_from_json(found, tmp_path):
    found.to_json(tmp_path / "results.json")
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["schema"] == "gbmrank.results/1"
    assert document["analysis"]["verdict"] == found.analysis.verdict
    back = load_results(tmp_path / "results.json")
    for measure in found.results.measures:
        np.testing.assert_array_equal(back.values(measure.name), found.results.values(measure.name))
    assert back.verdicts == found.results.verdicts
    assert back.settings == found.results.settings
    (tmp_path / "results.json").write_text('{"schema": "other"}')
    with pytest.raises(DataError, match="'other'"):
        load_results(tmp_path / "results.json")


def test_reports_and_tables_are_written(found, tmp_path):
    found.to_html(tmp_path / "report.html")
    found.to_csv(tmp_path / "per_query.csv")
    assert "ranknet" in (tmp_path / "report.html").read_text()
    assert len((tmp_path / "per_query.csv").read_text().splitlines()) > 60


def test_the_same_call_gives_the_same_numbers():
    one, other = compare(backends=["xgboost"]), compare(backends=["xgboost"])
    np.testing.assert_array_equal(one.results.values("ndcg@3"), other.results.values("ndcg@3"))


def test_resuming_gives_the_uninterrupted_result(tmp_path):
    whole = compare(out=tmp_path / "whole")
    part = compare(out=tmp_path / "part")
    runs = sorted((tmp_path / "part" / "runs").glob("*.json"))
    for path in runs[::2]:
        path.unlink()
    times = {path: path.stat().st_mtime_ns for path in runs[1::2]}
    again = compare(out=tmp_path / "part", resume=True)
    assert times == {path: path.stat().st_mtime_ns for path in runs[1::2]}  # not run again
    for measure in whole.results.measures:
        expected = whole.results.values(measure.name)
        for other in (part, again):
            np.testing.assert_array_equal(other.results.values(measure.name), expected)
    assert again.analysis.to_dict() == whole.analysis.to_dict()


def test_resuming_with_other_data_or_settings_is_refused(tmp_path):
    compare(out=tmp_path / "out", backends=["lightgbm"])
    with pytest.raises(ConfigError, match=r"design\.rounds was 5 and is 6"):
        compare(out=tmp_path / "out", backends=["lightgbm"], rounds=6, resume=True)
    with pytest.raises(ConfigError, match=r"data\.sha256"):
        compare(demo_data(60, items=8, seed=1), out=tmp_path / "out", resume=True)
    with pytest.raises(ConfigError, match="already contains a comparison"):
        compare(out=tmp_path / "out", backends=["lightgbm"])
    with pytest.raises(ConfigError, match="resume needs the folder"):
        compare(resume=True)


def test_losses_of_this_process_are_run_here():
    @gbmrank.register_loss
    def comparison_test_loss(z):
        """Logistic loss under another name."""
        p, q = sigmoid(-z), sigmoid(z)
        return softplus(-z), -p, p * q

    own = gbmrank.objective("comparison", loss="comparison_test_loss")
    found = compare(objectives=[own, "ranknet"], backends=["lightgbm"], isolate=True)
    table = found.results.values("ndcg@3")
    np.testing.assert_allclose(table[0], table[1])


def test_an_objective_that_raises_is_reported():
    # Bipartite losses need two kinds of labels; here there are five grades.
    found = compare(objectives=["bipartite", "ranknet"], backends=["lightgbm"])
    assert {run.system.objective for run in found.results.failed} == {"bipartite"}
    assert all("threshold" in str(run.error) for run in found.results.failed)


def test_a_baseline_that_fails_gives_way_unless_it_was_named():
    systems = {"objectives": ["ranknet", "native:rank:map"], "backends": ["xgboost"]}
    assert compare(**systems).results.baseline.objective == "ranknet"
    named = compare(**systems, baseline="native:rank:map")
    assert named.results.baseline.objective == "native:rank:map"
    assert named.analysis.measures[0].comparisons == ()


def test_given_splits_are_judged_on_their_test_part():
    train, test = demo_data(30, items=8), demo_data(20, items=8, seed=1)
    parts = {
        "train": (train.X, train.labels, train.qid),
        "test": (test.X, test.labels, test.qid),
    }
    found = compare(parts, backends=["lightgbm"], seeds=[3, 9])
    assert len(found.results.runs) == 2 * 2
    assert found.results.queries.ids.tolist() == [str(1_000_000 + i) for i in range(20)]
    assert found.results.queries.sizes.tolist() == test.sizes.tolist()


def test_queries_in_two_splits_are_warned_about():
    rows = (DATA.X, DATA.labels, DATA.qid)
    with pytest.warns(LeakageWarning, match="60 query ids, such as '0'"):
        compare({"train": rows, "test": rows}, backends=["lightgbm"], objectives=["ranknet"])


def test_constant_scores_are_warned_about():
    with pytest.warns(NoProgressWarning, match="lightgbm ranknet: all scores are equal in 2 runs"):
        found = compare(
            backends=["lightgbm"], objectives=["ranknet"], params={"min_data_in_leaf": 10**6}
        )
    assert any("constant scores in 2 of 2 runs" in note for note in found.notes)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"metrics": "ndcg@x"}, MetricError, "ndcg"),
        ({"metrics": "map"}, DataError, "threshold"),
        ({"folds": 1}, ParameterError, "folds must be at least 2"),
        ({"folds": 61}, DataError, "cannot be split"),
        ({"margin": -1.0}, ParameterError, "margin"),
        ({"jobs": 0}, ParameterError, "jobs must be a whole number from 1"),
        ({"params": {"metric": "auc"}}, ConfigError, "metric='auc'"),
        ({"objectives": ["ranknet", "ranknet"]}, ConfigError, "given twice"),
        ({"seeds": 0}, ConfigError, "from 1 to 1000, got 0"),
        ({"seeds": 20240101}, ConfigError, "to 1000, got 20240101; .*a list"),
        ({"seeds": []}, ParameterError, "seeds is empty"),
    ],
)
def test_mistakes_are_found_before_the_first_training(options, kind, words, tmp_path):
    with pytest.raises(kind, match=words):
        compare(out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_when_every_run_failed_the_table_says_so_first():
    found = compare(backends=["xgboost"], objectives=["native:rank:map"])
    first, *others = found.table().splitlines()
    assert first.startswith("every run failed; the first error is ")
    assert not any("undefined for" in line for line in others)


def test_nothing_to_learn_is_said_at_once():
    with pytest.raises(DataError, match="nothing to learn: none of the 60 training queries"):
        compare((DATA.X, np.ones(len(DATA.labels)), DATA.qid))


def test_a_target_that_is_defined_nowhere_is_refused():
    labels = np.where(DATA.labels > 1, -1.0, -2.0)
    with pytest.raises(DataError, match=r"undefined for every query|negative"):
        compare((DATA.X, labels, DATA.qid), metrics="ndcg@3")


def test_order_preserving_losses_win_on_the_demonstration():
    found = gbmrank.compare(
        demo_data(300, items=20),
        objectives=["pairwise(target=dcg@10)", "ranknet"],
        metrics="dcg@10",
        backends=["lightgbm"],
        folds=2,
        rounds=40,
        params={"num_leaves": 8},
        isolate=False,
        baseline="ranknet",
    )
    regret = found.analysis.measures[-1]
    pairwise, ranknet = regret.summaries
    assert pairwise.interval.high < 0.1 < 0.15 < ranknet.interval.low
    assert found.analysis.measures[0].comparisons[0].outcome == "better"


@pytest.mark.nightly
def test_comparing_works_from_a_script_without_a_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import gbmrank\n"
        "from gbmrank.demo_data import demo_data\n"
        "found = gbmrank.compare(demo_data(20, items=6), objectives=['native:lambdarank'],\n"
        "    folds=2, backends=['lightgbm'], rounds=3, jobs=1, threads=1)\n"
        "print(len(found.results.runs), len(found.results.failed))\n"
    )
    assert (
        run_python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')") == "2 0"
    )


def test_importing_the_function_brings_no_booster():
    loaded = run_python(
        "import sys, gbmrank; gbmrank.compare; print(sorted({'lightgbm', 'xgboost', 'rich', "
        "'matplotlib', 'pandas', 'numba'} & set(sys.modules)))"
    )
    assert loaded == "[]"


def test_no_warning_of_ours_escapes_a_good_comparison():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare(backends=["lightgbm"])
