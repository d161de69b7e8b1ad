"""A student learns the scores of a teacher and ranks like it."""

import json

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

import gbmrank
from gbmrank import GBMRanker
from gbmrank.cli import main
from gbmrank.errors import DataError, NotFittedError, ParameterError
from gbmrank.estimators.distillation import Distillation
from tests.ranking_tasks import make_task

TASK, OTHER = make_task(seed=0, queries=80), make_task(seed=1, queries=80)
FILES = {"lightgbm": "model.txt", "xgboost": "model.json"}
BOTH = pytest.mark.parametrize("backend", FILES)


def teacher_in(backend, x=TASK.x, **options):
    given = {"folds": 4, "n_estimators": 30, "max_depth": 4, "n_jobs": 1, **options}
    return GBMRanker(backend=backend, **given).fit(x, TASK.y, qid=TASK.qid)


@BOTH
def test_the_student_ranks_like_the_teacher_with_a_quarter_of_its_trees(backend, tmp_path):
    teacher = teacher_in(backend)
    valid = {"eval_set": (OTHER.x, OTHER.y), "eval_qid": OTHER.qid}
    student = teacher.distil(TASK.x, qid=TASK.qid, **valid)
    assert student.best_iteration_ + 1 == 30 == (teacher.best_iteration_ + 1) // 4
    assert student.get_params()["max_depth"] == 4
    found = student.distillation_
    assert found.correlation > 0.97
    assert found.agreement > 0.95
    own, theirs = (one.score(OTHER.x, OTHER.y, qid=OTHER.qid) for one in (student, teacher))
    assert found.lost == pytest.approx(theirs - own)
    assert found.interval[0] < found.lost < found.interval[1]
    assert "lost" in str(found)
    path = tmp_path / FILES[backend]
    student.save(path)
    again = gbmrank.load(path)
    np.testing.assert_array_equal(again.predict(OTHER.x), student.predict(OTHER.x))
    explained = again.explain(OTHER.x[:3])
    assert explained.contributions.sum(axis=1) == pytest.approx(
        explained.scores - explained.references, abs=1e-4
    )


@BOTH
def test_scores_of_any_teacher_are_learned_without_labels(backend):
    model = lgb.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1).fit(TASK.x, TASK.y)
    scores = model.predict(TASK.x)
    student = gbmrank.distil(scores, TASK.x, qid=TASK.qid, backend=backend, n_estimators=40)
    shifted = scores * 1e6 + 1e5 * TASK.qid  # neither scale nor level of a query matters
    other = gbmrank.distil(shifted, TASK.x, qid=TASK.qid, backend=backend, n_estimators=40)
    np.testing.assert_allclose(student.predict(TASK.x), other.predict(TASK.x), atol=1e-3)
    assert student.distillation_.correlation > 0.95
    assert student.distillation_.lost is None
    order = np.random.default_rng(0).permutation(TASK.n)
    mixed = gbmrank.distil(scores[order], TASK.x[order], qid=TASK.qid[order], backend=backend)
    assert mixed.distillation_.correlation > 0.95


@pytest.mark.parametrize("metric", ["ndcg@5", "map(threshold=1)"])
def test_the_student_has_the_metric_of_the_teacher(metric, tmp_path):
    student = teacher_in("lightgbm", metric=metric).distil(TASK.x, qid=TASK.qid)
    assert student.metric == metric
    student.save(tmp_path / "model.txt")
    assert gbmrank.load(tmp_path / "model.txt").metric == metric


def test_agreement_and_correlation_are_those_of_numpy():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=TASK.n)
    student = gbmrank.distil(scores, TASK.x, qid=TASK.qid, n_estimators=5)
    frame = pd.DataFrame({"q": TASK.qid, "a": scores, "b": student.predict(TASK.x)})
    apart = frame[["a", "b"]] - frame.groupby("q")[["a", "b"]].transform("mean")
    found = student.distillation_
    assert found.correlation == pytest.approx(np.corrcoef(apart["a"], apart["b"])[0, 1])
    worth = (11 - frame.groupby("q")["a"].rank(ascending=False)).clip(lower=0)
    metric = gbmrank.metric("ndcg@10", gain="linear")
    assert found.agreement == pytest.approx(metric.score(worth, frame["b"], qid=TASK.qid))


@BOTH
def test_leaves_rate_and_constraints(backend):
    rising = [1, 0, 0, 0, 0]
    teacher = teacher_in(backend, monotone_constraints=rising, reg_lambda=3.0)
    student = teacher.distil(TASK.x, qid=TASK.qid, n_estimators=8)
    params = student.get_params()
    assert params["learning_rate"] == 0.5
    assert params["monotone_constraints"] == rising
    assert "reg_lambda" not in params
    grid = np.tile(TASK.x[:1], (8, 1))
    grid[:, 0] = np.arange(8)
    assert (np.diff(student.predict(grid)) >= -1e-9).all()
    own = teacher.distil(TASK.x, qid=TASK.qid, n_estimators=100, learning_rate=0.3, max_depth=2)
    assert own.get_params()["learning_rate"] == 0.3
    assert own.get_params()["max_depth"] == 2
    assert gbmrank.distil(TASK.y, TASK.x, qid=TASK.qid).get_params()["learning_rate"] == 0.1


def test_mistakes_are_explained():
    with pytest.raises(NotFittedError):
        GBMRanker().distil(TASK.x, qid=TASK.qid)
    with pytest.raises(gbmrank.GroupError, match="qid="):
        gbmrank.distil(TASK.y, TASK.x)
    with pytest.raises(DataError, match="equal within every query"):
        gbmrank.distil(TASK.qid, TASK.x, qid=TASK.qid)
    with pytest.raises(ParameterError, match="n_estimators must be a whole number"):
        gbmrank.distil(TASK.y, TASK.x, qid=TASK.qid, n_estimators=0)
    with pytest.raises(ParameterError, match="eval_scores="):
        gbmrank.distil(TASK.y, TASK.x, qid=TASK.qid, eval_set=(TASK.x, TASK.y))


def test_unlabelled_rows_may_be_added_and_reports_are_text():
    teacher = teacher_in("lightgbm")
    x, qid = np.concatenate([TASK.x, OTHER.x]), np.concatenate([TASK.qid, 1000 + OTHER.qid])
    assert teacher.distil(x, qid=qid).distillation_.correlation > 0.9
    assert str(Distillation(0.5, 0.25)) == "correlation 0.500 within queries, top 10 0.250"


def letor(path, task):
    lines = [
        f"{label:g} qid:{query} " + " ".join(f"{at + 1}:{value!r}" for at, value in enumerate(row))
        for label, query, row in zip(task.y, task.qid, task.x.tolist(), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@BOTH
def test_the_command_line(backend, tmp_path, capsys):
    teacher = teacher_in(backend)
    own, foreign = tmp_path / FILES[backend], tmp_path / f"foreign.{FILES[backend]}"
    teacher.save(own)
    teacher.booster_.save_model(foreign)
    out = tmp_path / f"small.{FILES[backend]}"
    rows, test = letor(tmp_path / "rows.txt", TASK), letor(tmp_path / "test.txt", OTHER)
    for model in (own, foreign):
        given = ["distil", str(model), rows, "--out", str(out), "--test", test, "--json"]
        assert main(given) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["trees"], found["trees_of_the_model"]) == (30, 120)
        assert found["correlation"] > 0.9
        assert found["interval"][0] < found["lost"] < found["interval"][1]
        assert gbmrank.load(out).score(OTHER.x, OTHER.y, qid=OTHER.qid) > 0.7
    assert main(["distil", str(own), rows, "--out", str(out), "--rounds", "5"]) == 0
    assert "5 trees instead of 120" in capsys.readouterr().out
