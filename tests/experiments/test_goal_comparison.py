"""Fronts of several goals side by side: what GoalRanker says, on the splits of a comparison."""

from dataclasses import replace

import numpy as np
import pytest

from gbmrank import GoalRanker
from gbmrank.demo_data import demo_data
from gbmrank.errors import DataError
from gbmrank.experiments.goal_comparison import compare_goals
from gbmrank.experiments.preparation import Settings
from gbmrank.experiments.sources import further_columns, goal_key, read_source
from gbmrank.experiments.splits import PARTS

COLUMNS = {"relevance": "label", "margin": "margin"}
METRICS = {"relevance": "ndcg@10", "margin": "ndcg(gain=linear)@10"}


def parts():
    return {name: demo_data(60, 8, seed=seed, goals=2) for seed, name in enumerate(PARTS)}


def source_of(data, shift=0.0, missing=0, scores=None):
    """Return the source of given splits; the margins are shifted, and some of train missing."""
    margins = {name: np.array(one.margin, float) + shift for name, one in data.items()}
    margins["train"][:missing] = np.nan
    further = {
        goal_key("relevance"): {name: one.labels for name, one in data.items()},
        goal_key("margin"): margins,
        **further_columns(scores=scores),
    }
    arrays = {name: (one.X, one.labels, one.qid) for name, one in data.items()}
    return read_source(arrays, None, further)


def compared(source, out, backend="lightgbm", **given):
    settings = Settings(
        backends=[backend], rounds=10, threads=1, params={"learning_rate": 0.2}, out=out, **given
    )
    return compare_goals(source, settings, lambda _: None, columns=COLUMNS)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("shift", [0.0, -2.0])
def test_the_front_is_that_of_a_ranker_on_the_same_split(tmp_path, backend, shift):
    data = parts()
    found = compared(source_of(data, shift), tmp_path, backend)
    train, valid, test = (
        (one.X, {"relevance": one.labels, "margin": np.array(one.margin, float) + shift}, one.qid)
        for one in data.values()
    )
    ranker = GoalRanker(
        {goal: f"query_rmse(target={name})" for goal, name in METRICS.items()},
        backend=backend,
        n_estimators=10,
        early_stopping_rounds=30,
        learning_rate=0.2,
        n_jobs=1,
    ).fit(
        *train[:2],
        qid=train[2],
        eval_set=[valid[:2], test[:2]],
        eval_qid=[valid[2], test[2]],
    )
    front = ranker.front_
    np.testing.assert_allclose(found.front.values, front.values[::-4], atol=1e-6)
    np.testing.assert_allclose(found.front.weights, front.weights[::-4], atol=1e-12)
    assert found.front.metrics == front.metrics
    # Scores of that ranker as those of a model in production have the values of the setting.
    at = 0.5 if not np.isnan(front.at).any() else None
    scores = {"same": ranker.predict(test[0], at=at)}
    again = compared(source_of(data, shift, scores=scores), tmp_path / "again", backend)
    np.testing.assert_allclose(again.front.values[0], front.values[front.served], atol=1e-6)
    assert again.systems[0] == "same"
    assert again.front.served == 0


def test_seeds_are_averaged_by_query(tmp_path):
    source = source_of(parts())
    each = [compared(source, tmp_path / str(seed), seeds=(seed,)).front for seed in (0, 1)]
    both = compared(source, tmp_path / "both", seeds=(0, 1)).front
    mean = np.mean([one.per_query for one in each], axis=0)
    np.testing.assert_allclose(both.per_query, mean, atol=1e-12)


def test_missing_labels_leave_queries_out_of_that_goal(tmp_path):
    found = compared(source_of(parts(), missing=9), tmp_path)
    assert any("of 60 queries have a missing label of margin" in note for note in found.notes)
    with pytest.raises(DataError, match="labels of margin"):
        compared(source_of(parts(), shift=np.nan), tmp_path / "none")


def test_labels_of_goals_are_part_of_the_digest():
    data = parts()
    one, other = source_of(data), source_of(data, shift=1.0)
    assert one.X.shape[1] == data["train"].X.shape[1]
    assert one.digest() != other.digest()


def test_the_page_has_a_line_for_each_system_and_is_escaped(tmp_path):
    found = compared(source_of(parts(), scores={"<old>": parts()["test"].X[:, 0]}), tmp_path)
    page = replace(found, notes=("<script>",)).to_html()
    assert page.count("<polyline") == 2
    assert "<old>" not in page
    assert "<script>" not in page
    assert page.count("<tr>") == 1 + len(found.systems)
