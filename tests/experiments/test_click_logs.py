"""Comparisons on clicks: naive, debiased and native systems, judged by clicks or by the truth."""

import json
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import gbmrank
from gbmrank.cli import main
from gbmrank.clicks import PositionBias, offline_value, simulate_clicks
from gbmrank.data.demonstration import demo_data
from gbmrank.data.readers import FileOptions, Header
from gbmrank.experiments.click_logs import Clicks, read_log
from gbmrank.experiments.comparison import compare
from gbmrank.experiments.design import Design
from gbmrank.experiments.results import System
from gbmrank.experiments.sources import further_columns, read_source
from gbmrank.experiments.splits import Scheme, cut
from gbmrank.experiments.store import load_results

NAIVE = "pairwise(target=identity)"
BIAS = PositionBias.decaying(6)
FEATURES = ["x0", "x1", "x2"]


def clicked(sessions: int = 240) -> pd.DataFrame:
    """A log whose rows are in no order, with the relevance that visitors judged by."""
    data = demo_data(n_queries=60, seed=0)
    log = simulate_clicks(
        data.labels, data.X[:, 0], data.qid, sessions=sessions, k=6, bias=BIAS, temperature=1.0
    )
    table = pd.DataFrame(data.X[log.row][:, :3], columns=FEATURES)
    table = table.assign(
        session=log.session, click=log.clicks, position=log.position, relevance=log.relevance
    )
    return table.sample(frac=1.0, random_state=0).reset_index(drop=True)


LOG = clicked()
COLUMNS: dict[str, Any] = {"label": "click", "qid": "session", "position": "position"}
SMALL: dict[str, Any] = {
    "features": FEATURES,
    "folds": 2,
    "rounds": 4,
    "isolate": False,
    "metrics": "dcg@5",
    "early_stopping": None,
    "params": {"learning_rate": 0.3},
    "threads": 1,
}


def compared(*objectives, backends=("lightgbm",), log=LOG, **options):
    given = {**COLUMNS, **SMALL, "position_bias": BIAS, **options}
    return compare(log, objectives=list(objectives), backends=list(backends), **given)


def run_of(found, objective, fold=0):
    (run,) = (
        one for one in found.results.runs if (one.system.objective, one.fold) == (objective, fold)
    )
    assert run.error is None, run.error
    return run


def parts(fold=0):
    """The rows of a fold: to learn from, to validate on, to be judged by."""
    ids = LOG["session"].drop_duplicates().to_numpy()
    split = cut(Scheme(len(ids)), folds=2, share=0.2, at=(0, fold))
    place = {one: at for at, one in enumerate(ids)}
    order = LOG["session"].map(place)
    arranged = LOG.assign(order=order).sort_values("order", kind="stable")
    return [arranged[arranged["order"].isin(part)] for part in split]


def earned(test, scores):
    """What a ranking of the test rows would have earned, per session."""
    utility = BIAS.utilities(test["click"], test["position"])
    return gbmrank.metric("dcg(gain=linear)@5").per_query(utility, scores, qid=test["session"])


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("how", ["", "debiased:"])
def test_a_run_is_that_of_the_ranker_and_its_value_that_of_the_log(backend, how):
    found = compared(f"{how}{NAIVE}", backends=[backend], clip=0.3, rounds=8)
    run = run_of(found, f"{how}{NAIVE}")
    train, _, test = parts()
    given = {
        "": {},
        "debiased:": {"position": train["position"], "position_bias": BIAS, "clip": 0.3},
    }
    model = gbmrank.GBMRanker(NAIVE, backend, "dcg@5", run.best_round + 1, n_jobs=1, **run.params)
    model.fit(train[FEATURES], train["click"], qid=train["session"], **given[how])
    scores = model.predict(test[FEATURES])
    np.testing.assert_allclose(run.values["dcg@5"], earned(test, scores), rtol=1e-6)
    value = offline_value(
        "dcg@5", test["click"], test["position"], scores, test["session"], bias=BIAS
    )
    assert run.values["dcg@5"].mean() == pytest.approx(value.value)


def test_early_stopping_goes_by_clicks_over_propensities():
    run = run_of(compared(NAIVE, clip=0.3), NAIVE)
    train, valid, _ = parts()
    model = gbmrank.GBMRanker(NAIVE, "lightgbm", "dcg@5", 4, n_jobs=1, **run.params)
    model.fit(train[FEATURES], train["click"], qid=train["session"])
    utility = BIAS.utilities(valid["click"], valid["position"], clip=0.3)
    value = gbmrank.metric("dcg(gain=linear)@5").score(
        utility, model.predict(valid[FEATURES]), qid=valid["session"]
    )
    assert run.history["dcg@5"][-1] == pytest.approx(value, rel=1e-6)


def test_lightgbm_is_given_positions():
    both = ("native:lambdarank", "debiased:native:lambdarank")
    found = compared(*both)
    train, _, test = parts()
    for name, position in zip(both, (None, train["position"]), strict=True):
        run = run_of(found, name)
        rows = lgb.Dataset(
            train[FEATURES].to_numpy(),
            train["click"],
            group=train.groupby("order").size(),
            position=position,
        )
        params = {**run.params, "objective": "lambdarank", "verbose": -1, "seed": 0}
        model = lgb.train({**params, "num_threads": 1}, rows, run.best_round + 1)
        scores = model.predict(test[FEATURES].to_numpy())
        np.testing.assert_allclose(run.values["dcg@5"], earned(test, scores))
    assert found.results.runs[0].history != found.results.runs[1].history


def test_xgboost_is_given_rows_in_the_order_shown():
    found = compared("debiased:native:rank:ndcg", backends=["xgboost"])
    run = run_of(found, "debiased:native:rank:ndcg")
    train, _, test = parts()
    train = train.sort_values(["order", "position"])
    rows = xgb.QuantileDMatrix(train[FEATURES].to_numpy(), train["click"], qid=train["order"])
    params = {**run.params, "objective": "rank:ndcg", "lambdarank_unbiased": True, "nthread": 1}
    model = xgb.train(params, rows, run.best_round + 1)
    scores = model.predict(xgb.DMatrix(test[FEATURES].to_numpy()))
    np.testing.assert_allclose(run.values["dcg@5"], earned(test, scores), rtol=1e-6)


def test_by_default_naive_debiased_and_native_systems_are_compared():
    given = {**COLUMNS, **SMALL, "metrics": None, "rounds": 2}
    found = compare(LOG, **given, backends=["lightgbm", "xgboost"])
    assert found.results.baseline == System("lightgbm", NAIVE)
    assert {one.objective for one in found.results.systems} == {
        NAIVE,
        f"debiased:{NAIVE}",
        "debiased:native:lambdarank",
        "debiased:native:rank:ndcg",
    }
    assert [one.name for one in found.results.measures] == ["dcg@10", "dcg@5", "dcg@1"]
    assert not found.results.failed
    (note,) = (one for one in found.notes if "estimates from clicks" in one)
    assert "estimated (em)" in note
    clicks = found.results.settings["clicks"]
    assert [one["method"] for one in (clicks["judge"], *clicks["learned"])] == ["em"] * 3
    assert clicks["learned"][0] != clicks["learned"][1]
    assert (f"debiased:{NAIVE}", "dcg@10") in found.results.verdicts
    assert (NAIVE, "dcg@10") not in found.results.verdicts


def test_the_truth_judges_where_it_is_given(tmp_path):
    found = compared(NAIVE, f"debiased:{NAIVE}", truth="relevance", metrics="dcg@5, ndcg@5")
    train, _, test = parts()
    run = run_of(found, f"debiased:{NAIVE}")
    model = gbmrank.GBMRanker(NAIVE, "lightgbm", "dcg@5", run.best_round + 1, n_jobs=1)
    model.set_params(**run.params)
    model.fit(
        *(train[FEATURES], train["click"]),
        qid=train["session"],
        position=train["position"],
        position_bias=BIAS,
    )
    expected = gbmrank.metric("ndcg@5").per_query(
        test["relevance"], model.predict(test[FEATURES]), qid=test["session"]
    )
    np.testing.assert_allclose(run.values["ndcg@5"], expected)
    assert np.isnan(run.history["ndcg@5"]).all()  # clicks give no estimate of it
    assert any("judged by the truth (column 'relevance')" in one for one in found.notes)
    found.to_html(tmp_path / "report.html")
    assert "judged by the truth" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_scores_that_are_given_are_judged_by_the_log():
    found = compared(NAIVE, scores={"shown": -LOG["position"]})
    values = run_of(found, "shown").values["dcg@5"]
    _, _, test = parts()
    np.testing.assert_allclose(values, earned(test, -test["position"]))


def test_the_bias_of_a_fold_has_not_seen_its_test_queries():
    given = further_columns(position="position")
    columns = Header(label="click", qid="session", features=FEATURES)
    source = read_source(LOG, FileOptions(columns=columns), given)
    made, _ = read_log(source, 2, 0.2, None, None, "lightgbm")
    changed = source.data.labels.copy()
    test = cut(source.scheme, folds=2, share=0.2, at=(0, 0)).test
    rows = source.data.groups.spread(np.isin(np.arange(source.n_queries), test))
    changed[rows] = 1.0 - changed[rows]
    data = gbmrank.RankingData.from_arrays(
        changed, group=source.data.groups.sizes, columns=source.data.columns
    )
    other = type(source)(title="", X=source.X, data=data)
    again, _ = read_log(other, 2, 0.2, None, None, "lightgbm")
    assert made is not None
    assert again is not None
    assert again.learned[0] == made.learned[0]
    assert again.learned[1] != made.learned[1]
    assert again.judge != made.judge


def test_the_design_keeps_the_bias():
    clicks = Clicks(judge=BIAS, learned=(BIAS, PositionBias([1.0])), clip=0.1, truth="an array")
    design = Design(
        systems=(System("lightgbm", NAIVE),), metrics=("dcg@5",), folds=2, clicks=clicks
    )
    kept = json.loads(json.dumps(design.to_json()))["clicks"]
    assert PositionBias.from_dict(kept["judge"]) == BIAS
    assert [one["propensity"] for one in kept["learned"]] == [BIAS.propensity.tolist(), [1.0]]
    assert (kept["clip"], kept["truth"]) == (0.1, "an array")


def test_the_command_line(tmp_path, capsys):
    LOG.to_csv(tmp_path / "log.csv", index=False)
    np.savetxt(tmp_path / "bias.txt", BIAS.propensity)
    command = ["compare", str(tmp_path / "log.csv"), "--label-column", "click", "--qid-column"]
    command += ["session", "--position", "position", "--truth", "relevance", "--clip", "0.2"]
    command += ["--position-bias", str(tmp_path / "bias.txt"), "--backends", "lightgbm"]
    command += ["--objectives", f"{NAIVE}, debiased:native:lambdarank", "--folds", "2"]
    command += ["--rounds", "2", "--in-process", "--quiet", "--json", "--out", str(tmp_path / "o")]
    for name in FEATURES:
        command += ["--feature", name]
    assert main(command) == 0
    shown = json.loads(capsys.readouterr().out)
    assert not shown["failed"]
    assert any("judged by the truth" in one for one in shown["notes"])
    kept = load_results(tmp_path / "o" / "results.json")
    assert "judged by the truth" in kept.audit["judged_by"]
    assert kept.settings["clicks"]["clip"] == 0.2
    assert kept.settings["clicks"]["judge"]["propensity"] == pytest.approx(BIAS.propensity)


def test_a_prefix_is_no_position_bias(tmp_path, capsys):
    LOG.to_csv(tmp_path / "log.csv", index=False)
    command = ["compare", str(tmp_path / "log.csv"), "--position-bias", "debiased"]
    assert main([*command, "--out", str(tmp_path / "o")]) == 2
    message = capsys.readouterr().err
    assert "got 'debiased'. debiased: is a prefix of objectives" in message
