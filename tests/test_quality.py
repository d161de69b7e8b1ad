"""The benchmark of quality: systems, resuming, and what its page makes of runs."""

import math
import sys

import numpy as np
import pytest

from benchmarks import quality, quality_models, quality_page
from benchmarks.quality_page import Effect, pooled
from benchmarks.quality_sets import RankingSet
from gbmrank import GBMRanker
from tests.ranking_tasks import make_task

TASK = make_task(seed=0, queries=45)
SET = RankingSet("made", "made up", TASK.x.astype(np.float32), TASK.y, TASK.qid, 1, 4)


def test_random_effects_mean():
    """With tau^2 = 3e-4 the weights are 1/4e-4 each; by hand from DerSimonian and Laird."""
    mean = pooled([Effect(0.0, 0.01), Effect(0.0 + 2 * math.sqrt(2) * 0.01, 0.01)])
    assert mean.difference == pytest.approx(math.sqrt(2) * 0.01)
    assert mean.error == pytest.approx(math.sqrt((1e-4 + 3e-4) / 2))
    alike = pooled([Effect(0.01, 0.01), Effect(0.01, 0.02)])
    assert alike.error == pytest.approx((1e4 + 2.5e3) ** -0.5)


def test_a_committee_of_the_benchmark_is_that_of_the_ranker(monkeypatch):
    monkeypatch.setattr(quality_models, "NATIVE", {"lightgbm": (("native:lambdarank", 2),)})
    cell = quality_models.Cell("made", 0, 1, "lightgbm")
    run = quality_models.run_cell(SET, cell, 3, 4, 1)
    train, valid, test = quality_models.split(SET, 0, 1, 3)
    assert not set(SET.qid[test]) & set(SET.qid[np.concatenate([train, valid])])
    assert len(train) + len(valid) + len(test) == TASK.n
    bag = "committee(native:lambdarank, seeds=2)"
    model = GBMRanker(
        bag,
        n_estimators=4,
        early_stopping_rounds=4,
        n_jobs=1,
        **quality_models.PARAMS["lightgbm"],
    ).fit(
        SET.X[train],
        SET.y[train],
        qid=SET.qid[train],
        eval_set=(SET.X[valid], SET.y[valid]),
        eval_qid=SET.qid[valid],
    )
    expected = model.score(SET.X[test], SET.y[test], qid=SET.qid[test])
    values = np.array(run["values"]["ndcg@10"][bag], float)
    assert np.nanmean(values) == pytest.approx(expected, abs=1e-5)
    assert set(run["values"]) == {"ndcg@10", "err@10", "map"}
    assert "swap(metric=err@10)" in run["values"]["err@10"]


def line(backend, fold, values):
    systems = {name: values for name, _ in quality_models.NATIVE[backend]}
    systems |= {"committee": [value + 0.1 for value in values]} if backend != "catboost" else {}
    return {
        "set": "mq2008",
        "seed": 0,
        "fold": fold,
        "backend": backend,
        "queries": [f"{fold} {at}" for at in range(len(values))],
        "values": dict.fromkeys(quality_page.GOALS, systems),
        "about": "made up",
        "model_rounds": 4,
        "cpu": 1.0,
    }


def test_a_part_of_the_runs_gives_a_page_of_what_all_boosters_have(tmp_path):
    runs = [line(backend, 0, [0.1, 0.5, 0.4]) for backend in quality_models.PARAMS]
    runs.append(line("lightgbm", 1, [9.0, 9.0, 9.0]))  # the others are not done there
    quality_page.write_page(runs, tmp_path)
    page = (tmp_path / "quality.md").read_text()
    assert "LightGBM 2, XGBoost 1, CatBoost 1" in page
    assert "| committee | `lambdarank` | +0.1000 (+0.1000 to +0.1000)" in page
    assert page.index("gains 0.1000 NDCG@10 against LightGBM's `lambdarank`") < page.index("## ")
    assert page.index("minutes of CPU time") > page.index("## How it was run")
    first = [(tmp_path / f"quality.{kind}").read_bytes() for kind in ("md", "svg")]
    quality_page.rewrite_page(tmp_path)
    assert [(tmp_path / f"quality.{kind}").read_bytes() for kind in ("md", "svg")] == first
    assert "9.0000" not in page
    quality_page.write_page([{**run, "set": "ohsumed"} for run in runs], tmp_path)
    page = (tmp_path / "quality.md").read_text()
    assert "Held-out sets have not been run yet." in page
    assert "no runs yet" in page
    assert "nan" not in page


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(quality, "SETS", {"made": lambda folder: SET})
    monkeypatch.setattr(quality, "_hours", lambda *given: 0.0)
    monkeypatch.setattr(
        quality, "run_cell", lambda data, cell, *size: {**cell._asdict(), "cpu": 0.0}
    )
    options = ["--data", str(tmp_path), "--work", str(tmp_path), "--backends", "xgboost"]
    for seeds, waiting in ((1, "3 runs wait"), (2, "3 runs wait"), (2, "all runs are done")):
        monkeypatch.setattr(sys, "argv", ["quality", *options, "--seeds", str(seeds)])
        monkeypatch.setattr("os.getpid", lambda seeds=seeds: seeds)
        quality.main()
        assert waiting in capsys.readouterr().out
    with (tmp_path / "runs-2.jsonl").open("a") as out:
        out.write('{"set": "made", "se')  # a kill
    assert len(quality._done(tmp_path)) == 6
