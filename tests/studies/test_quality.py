"""The benchmark of quality: systems, resuming, and what its page makes of runs."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from gbmrank import GBMRanker
from studies.quality import experiment as quality
from studies.quality import models as quality_models
from studies.quality import page as quality_page
from studies.quality.page import Effect, pooled
from studies.report import Report
from studies.sets import RankingSet
from studies.study import Settings
from studies.tried import experiment as tried
from studies.tried import pool as tried_pool
from studies.tried.committees import WEIGHTS, combine, committee_values, committees
from studies.tried.tables import effect
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


def saved(document, folder):
    """Write the page of figures, and return it with its files."""
    found = quality_page.page(document)
    report = Report("quality", "", Settings(), found, 1.0, "Quality")
    names = [path.name for path in report.save(folder)]
    assert names == ["quality.md", "quality.json", "quality.svg", "index.md"]
    return [(folder / name).read_text(encoding="utf-8") for name in names[:3]]


def test_a_part_of_the_runs_gives_a_page_of_what_all_boosters_have(tmp_path):
    runs = [line(backend, 0, [0.1, 0.5, 0.4]) for backend in quality_models.PARAMS]
    runs.append(line("lightgbm", 1, [9.0, 9.0, 9.0]))  # the others are not done there
    first = saved(quality_page.document_of(runs), tmp_path)
    page = first[0]
    assert "LightGBM 2, XGBoost 1, CatBoost 1" in page
    assert "| committee | `lambdarank` | +0.1000 (+0.1000 to +0.1000)" in page
    assert page.index("gains 0.1000 NDCG@10 against LightGBM's `lambdarank`") < page.index("## ")
    assert page.index("minutes of CPU time") > page.index("## How it was run")
    assert "9.0000" not in page
    assert saved(json.loads(first[1]), tmp_path) == first
    page = saved({**json.loads(first[1]), "stamp": "earlier"}, tmp_path)[0]
    assert "stamped without a new run" in page
    page = saved(quality_page.document_of([{**run, "set": "ohsumed"} for run in runs]), tmp_path)[0]
    assert "Held-out sets have not been run yet." in page
    assert "no runs yet" in page
    assert "nan" not in page


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    def run_cell(data, cell, *size):
        systems = line(cell.backend, cell.fold, [0.1, 0.2])
        return {**systems, **cell._asdict(), "cpu": 0.0}

    monkeypatch.setattr(quality, "SETS", {"made": lambda folder: SET})
    monkeypatch.setattr(quality, "_hours", lambda *given: 0.0)
    monkeypatch.setattr(quality, "run_cell", run_cell)
    options = {"work": tmp_path, "backends": ("xgboost",), "sets": ("made",)}
    for seeds, waiting in ((1, "3 runs wait"), (2, "3 runs wait"), (2, "all runs are done")):
        monkeypatch.setattr("os.getpid", lambda seeds=seeds: seeds)
        said: list[str] = []
        given = {**options, "seeds": seeds}
        quality.run(Settings(data=tmp_path, options=given, report=said.append))
        assert waiting in said[0]
    with (tmp_path / "runs-2.jsonl").open("a") as out:
        out.write('{"set": "made", "se')  # a kill
    assert len(quality._done(tmp_path)) == 6
    estimate = {**options, "seeds": 3, "estimate": True}
    assert quality.run(Settings(data=tmp_path, options=estimate, report=said.append)) is None
    assert len(quality._done(tmp_path)) == 6


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_committee_of_kept_scores_is_that_of_the_ranker(monkeypatch, backend):
    monkeypatch.setattr(tried_pool, "ROUNDS", 4)
    cell = quality_models.Cell("made", 0, 1, backend)
    members = quality_models.members_of(SET, "ndcg@10")
    made = next(committees(members, "native:own"))
    assert made.name == "default"
    kept = {one: tried_pool.train(SET, cell, one, ["ndcg@10"]) for one in made.members}
    assert set(made.members) <= set(tried_pool.pool(SET, backend))
    train, valid, test = quality_models.split(SET, 0, 1, tried_pool.FOLDS)
    model = GBMRanker(
        "committee",
        metric="ndcg@10",
        backend=backend,
        n_estimators=4,
        early_stopping_rounds=4,
        n_jobs=1,
        **quality_models.PARAMS[backend],
    ).fit(
        SET.X[train],
        SET.y[train],
        qid=SET.qid[train],
        eval_set=(SET.X[valid], SET.y[valid]),
        eval_qid=SET.qid[valid],
    )
    expected = model.score(SET.X[test], SET.y[test], qid=SET.qid[test])
    values = committee_values(SET, cell, "ndcg@10", [made], kept.__getitem__)["default"]
    assert np.nanmean(values) == pytest.approx(expected, abs=1e-5)


def test_weights_by_validation_values():
    """The first member orders the validation rows perfectly, the second in reverse."""
    valid = tried_pool.parts_of(SET, 0, 0)[1].data
    known = [valid.labels, -valid.labels]
    unknown = [np.array([3.0, 0.0]), np.array([0.0, 3.0])]
    share = {rule: combine(rule, valid, "ndcg@10", (known, unknown))[1] / 3.0 for rule in WEIGHTS}
    assert share["equal weights"] == pytest.approx(0.5)
    assert 0.0 < share["weights in proportion to validation values"] < 0.5
    assert share["weights exp(100 x validation value)"] < 1e-6
    assert share["greedy selection on validation queries"] == 0.0
    assert share["best member on validation queries"] == 0.0
    assert share["best two members on validation queries"] == pytest.approx(0.5)


def test_committees_have_models_of_the_pool_and_no_model_twice():
    for backend in ("lightgbm", "xgboost"):
        own = tried_pool.native(backend)
        pool = set(tried_pool.pool(SET, backend))
        for goal in tried_pool.GOALS:
            for one in committees(quality_models.members_of(SET, goal), own):
                assert set(one.members) <= pool
                assert len(set(one.members)) == len(one.members)


def test_what_was_tried_is_kept_and_the_page_takes_complete_seeds(tmp_path, monkeypatch):
    queries = tried_pool.parts_of(SET, 0, 0)[2].data.groups.n_queries

    def scores(data, cell, member, goals):
        rows = [len(part.data.labels) for part in tried_pool.parts_of(data, cell.seed, cell.fold)]
        noise = np.random.default_rng(len(member.objective) + member.seed)
        sizes = {"valid": rows[1], "test": rows[2]}
        return {f"{part} {goal}": noise.random(sizes[part]) for part in sizes for goal in goals}

    def values(data, seed, fold):
        return {"LightGBM's": np.full(queries, 0.25), "other": np.linspace(0.2, 0.4, queries)}

    names = quality_page.DEVELOPMENT
    made = {name: lambda folder, name=name: replace(SET, name=name) for name in names}
    monkeypatch.setattr(tried, "SETS", made)
    for name, run in (("train", scores), ("leaves", values), ("tuned", values)):
        monkeypatch.setattr(tried, name, run)
    work = tmp_path / "work"
    given = {"work": work, "seeds": 1}
    for more in ({}, {}, {"finished": True}):
        page = tried.run(Settings(data=tmp_path, options={**given, **more}))
    text = "\n".join([*page.lines, *page.notes])
    assert "seeds with splits of their own: committees 1, objectives 1, leaves 1" in text
    assert "| OWN for swap | 4 |" in text
    assert "| other | 0.3000 | **+0.0500" in text
    assert "nan" not in text
    next(work.glob("objectives/*/*.npz")).unlink()
    page = tried.run(Settings(data=tmp_path, options={**given, "finished": True}))
    assert "objectives 0" in page.notes[1]


def test_a_difference_is_paired_over_defined_queries():
    one = effect(np.array([0.2, 0.4, np.nan]), np.array([0.1, 0.1, 0.3]))
    assert one.difference == pytest.approx(0.2)
    assert one.error == pytest.approx(0.1)
