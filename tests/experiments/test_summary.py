"""Notes under the table say what is true."""

from dataclasses import replace

from gbmrank.experiments import summary
from gbmrank.experiments.comparison import Comparison
from gbmrank.experiments.statistics.estimates import analyse
from tests.experiments.make_results import failed_run, make_results


def test_queries_without_a_run_are_not_called_undefined():
    results = make_results(60, folds=3, seeds=1)
    runs = [
        failed_run(run.system, run.seed, run.fold) if run.fold == 1 else run for run in results.runs
    ]
    lost = {int(query) for run in results.runs if run.fold == 1 for query in run.queries}
    kept = results.queries.relevant[[query not in lost for query in range(60)]]
    results = replace(results, runs=tuple(runs))
    told = summary.notes(results, analyse(results))
    assert f"{len(lost)} of 60 queries are not counted: every run that tests them failed" in told
    undefined = int((kept == 0).sum())
    said = [note for note in told if "is undefined for" in note]
    assert all(f"undefined for {undefined} of 60" in note for note in said)
    assert len(said) == (undefined > 0)


def test_the_table_is_plain_ascii():
    results = make_results(60, folds=2, seeds=1)
    assert str(Comparison(results, analyse(results))).isascii()
