"""Categories, weights, positions, times and given scores, with real boosters."""

import json
import pickle
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import gbmrank
from gbmrank.cli import main
from gbmrank.data.readers import FileOptions, Header
from gbmrank.errors import ConfigError, DataError, WeightError
from gbmrank.experiments.comparison import compare, compare_source
from gbmrank.experiments.design import Design, Task
from gbmrank.experiments.preparation import Settings, prepare
from gbmrank.experiments.results import GIVEN, System
from gbmrank.experiments.sources import further_columns, read_source
from gbmrank.experiments.splits import cut
from gbmrank.experiments.store import load_results
from gbmrank.experiments.trial import part_of, split_of

FEW: dict[str, Any] = {"min_data_in_leaf": 3, "min_data_per_group": 2, "cat_smooth": 1.0}
SMALL: dict[str, Any] = {"folds": 2, "rounds": 4, "isolate": False, "metrics": "ndcg@5"}
COLORS = {"red": 2.0, "green": 0.0, "blue": 1.0, "teal": -1.0}


def frame(n_queries: int = 40, n: int = 6) -> pd.DataFrame:
    """Return rows in no order, whose labels follow from a color and a number."""
    rng = np.random.default_rng(0)
    rows = n_queries * n
    color, number = rng.choice(list(COLORS), rows), rng.normal(size=rows)
    utility = np.array([COLORS[one] for one in color]) + number
    table = {
        "qid": np.repeat(np.arange(n_queries), n),
        "label": np.clip(np.round(utility), 0, 3),
        "color": pd.Categorical(color),
        "number": number,
        "noise": rng.normal(size=rows),
        "day": np.repeat(pd.date_range("2024-01-01", periods=n_queries // 2).repeat(2), n),
        "weight": np.repeat(rng.choice([0.1, 1.0, 5.0], n_queries), n),
        "rank": np.tile(np.arange(1, n + 1), n_queries),
        "old": number + 0.1 * rng.normal(size=rows),
    }
    return pd.DataFrame(table).sample(frac=1.0, random_state=0).reset_index(drop=True)


DATA = frame()
FEATURES = ["color", "number", "noise"]


def choose(features=None, categorical=()):
    """Return the options that choose columns."""
    return FileOptions(columns=Header(features=features, categorical=categorical))


def ranker_values(table: pd.DataFrame, run: Any, backend: str, weight: str | None = None):
    """Return NDCG@5 of the test queries from a GBMRanker on the same parts."""
    source = read_source(table, choose(FEATURES))
    split = cut(source.scheme, folds=2, share=0.2, at=(0, 0))
    parts = [table[table["qid"].isin(source.ids[part].astype(int))] for part in split]
    train, valid, test = parts
    model = gbmrank.GBMRanker(
        "pairwise", backend, "ndcg@5", 4, early_stopping_rounds=30, n_jobs=1, **run.params
    )
    model.fit(
        train[FEATURES],
        train["label"],
        qid=train["qid"],
        sample_weight=None if weight is None else train[weight],
        eval_set=[(valid[FEATURES], valid["label"])],
        eval_qid=[valid["qid"]],
        eval_sample_weight=None if weight is None else [valid[weight]],
    )
    scores = model.predict(test[FEATURES])
    found = gbmrank.metric("ndcg@5").per_query(test["label"], scores, qid=test["qid"])
    by_id = dict(zip(test["qid"].drop_duplicates(), found, strict=True))
    return [by_id[int(source.ids[query])] for query in split.test]


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_categories_and_weights_train_what_a_ranker_trains(backend, weight):
    found = compare(
        DATA,
        objectives=["pairwise"],
        backends=[backend],
        features=FEATURES,
        weight=weight,
        params=FEW if backend == "lightgbm" else None,
        threads=1,
        **SMALL,
    )
    run = next(run for run in found.results.runs if run.fold == 0)
    assert run.error is None
    expected = ranker_values(DATA, run, backend, weight)
    np.testing.assert_allclose(run.values["ndcg@5"], expected, rtol=1e-6)
    assert found.results.audit["categorical"] == {"color": "4 categories"}
    assert ("weights" in found.results.audit) == (weight is not None)


def test_categories_are_the_same_from_every_kind_of_table(tmp_path):
    plain = DATA[["qid", "label", *FEATURES]]
    plain.to_csv(tmp_path / "rows.csv", index=False)
    plain.to_parquet(tmp_path / "rows.parquet")
    half = len(plain) // 2
    for at, rows in enumerate((plain[:half], plain[half:])):
        only = rows.assign(color=rows["color"].astype(str))
        only.to_csv(tmp_path / f"{at}.csv", index=False)
    named = choose(categorical=["color"])
    read = [
        read_source(plain),
        read_source(pl.from_pandas(plain)),
        read_source((plain[FEATURES], plain["label"], plain["qid"])),
        read_source(plain.assign(color=plain["color"].astype(str)), named),
        read_source(tmp_path / "rows.csv", named),
        read_source(tmp_path / "rows.parquet"),
        read_source([tmp_path / "0.csv", tmp_path / "1.csv"], named),
    ]
    for source in read:
        np.testing.assert_array_equal(source.X, read[0].X)
        assert source.categories == {0: (tuple(sorted(COLORS)), False)}
    part = part_of(read[0], np.array([3, 1]))
    assert part.features["color"].tolist() == [
        color
        for query in (3, 1)
        for color in plain[plain["qid"] == int(read[0].ids[query])]["color"]
    ]


def test_categories_of_parts_are_put_together():
    def rows(colors):
        return pd.DataFrame(
            {"qid": [1, 1], "label": [0, 1], "number": [0.5, 1.5], "color": pd.Categorical(colors)}
        )

    source = read_source({"train": rows(["red", "blue"]), "test": rows(["teal", None])})
    assert source.categories[1].values == ("blue", "red", "teal")
    np.testing.assert_array_equal(source.X[:, 1], [1.0, 0.0, 2.0, np.nan])
    numbers = rows(["red", "blue"]).assign(color=[1.0, 2.0])
    with pytest.raises(DataError, match="color"):
        read_source({"train": numbers, "test": rows(["red", "blue"])})
    levels = pd.CategoricalDtype(["low", "high"], ordered=True)
    ordered = rows(["low", "high"]).assign(color=pd.Series(["high", "low"], dtype=levels))
    assert read_source(ordered).categories[1] == (("low", "high"), True)
    np.testing.assert_array_equal(read_source(ordered).X[:, 1], [1.0, 0.0])


def test_numbers_of_letor_files_can_be_categories(tmp_path):
    (tmp_path / "rows.txt").write_text("1 qid:1 1:7 2:0.5\n0 qid:1 1:3 2:0.1\n")
    source = read_source(tmp_path / "rows.txt", choose(categorical=["1"]))
    assert source.categories[0].values == ("3", "7")
    with pytest.raises(ConfigError, match="'9'"):
        read_source(tmp_path / "rows.txt", choose(categorical=["9"]))
    with pytest.raises(ConfigError, match="no names"):
        read_source(
            (np.ones((2, 1)), [0, 1], [1, 1]),
            choose(categorical=["a"]),
        )


def test_row_weights_are_for_objectives_that_weigh_items():
    weights = DATA.assign(weight=np.linspace(0.5, 2.0, len(DATA)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = compare(
            weights,
            objectives=["softmax", "pairwise", "cossock_zhang"],
            backends=["lightgbm"],
            weight="weight",
            features=["number"],
            **SMALL,
        )
    failed = {run.system.objective for run in found.results.failed}
    assert len(failed) == 1
    assert "softmax" in failed.pop()
    assert all("WeightError" in str(run.error) for run in found.results.failed)
    assert "one per row" in found.results.audit["weights"]


def test_weights_as_arrays_are_per_query_or_per_row():
    per_query = DATA.drop_duplicates("qid")["weight"].to_numpy()
    sources = [
        read_source(DATA, choose(["number"]), {"weight": given})
        for given in ("weight", per_query, DATA["weight"])
    ]
    for source in sources:
        np.testing.assert_array_equal(source.data.weight, sources[0].data.weight)
    assert len({source.digest() for source in sources}) == 1
    with pytest.raises(DataError, match="7 entries"):
        read_source(DATA, choose(["number"]), {"weight": np.ones(7)})
    with pytest.raises(WeightError, match="-1"):
        read_source(DATA, choose(["number"]), {"weight": -np.ones(40)})


def test_positions_reach_the_training_rows_and_the_workers():
    source = read_source(
        DATA, None, further_columns("weight", "rank", "day", {"production": "old"})
    )
    assert source.feature_names == tuple(FEATURES)
    part = part_of(source, np.array([5]))
    expected = DATA[DATA["qid"] == int(source.ids[5])]["rank"]
    assert part.data.columns["position"].tolist() == expected.tolist()
    design = Design(
        systems=(System("lightgbm", "pairwise"), System(GIVEN, "production")), metrics=("ndcg@5",)
    )
    again, same = pickle.loads(pickle.dumps((source, design)))  # noqa: S301  (made here)
    assert same == design
    assert again.categories == source.categories
    np.testing.assert_array_equal(again.times, source.times)
    np.testing.assert_array_equal(again.data.weight, source.data.weight)
    np.testing.assert_array_equal(again.scores["production"], source.scores["production"])
    for queries in split_of(source, design, design.tasks[0]):
        one, other = part_of(source, queries), part_of(again, queries)
        pd.testing.assert_frame_equal(one.features, other.features)
        np.testing.assert_array_equal(one.data.columns["position"], other.data.columns["position"])


def test_given_scores_are_judged_on_the_test_queries_of_all(tmp_path):
    np.savetxt(tmp_path / "old.txt", DATA["old"])
    plain = DATA[["qid", "label", "number", "noise"]]
    options: dict[str, Any] = {
        "objectives": ["ranknet"],
        "backends": ["lightgbm"],
        "params": FEW,
        **SMALL,
    }
    found = compare(plain, scores={"production": DATA["old"]}, seeds=2, **options)
    system = System(GIVEN, "production")
    assert found.results.baseline == system
    value = gbmrank.metric("ndcg@5").per_query(DATA["label"], DATA["old"], qid=DATA["qid"])
    measured = found.results.values("ndcg@5")[found.results.systems.index(system)]
    assert measured.shape == (2, 40)
    for seed in measured:
        np.testing.assert_allclose(seed, value)
    lines = str(found).splitlines()
    (row,) = (line for line in lines if line.startswith("production (given") and "  " in line)
    assert f"{np.nanmean(value):.4f}" in row
    from_file = compare(plain, scores={"production": tmp_path / "old.txt"}, **options)
    from_column = compare(
        DATA, features=["number", "noise"], scores={"production": "old"}, **options
    )
    for other in (from_file, from_column):
        np.testing.assert_allclose(
            other.results.values("ndcg@5"), found.results.values("ndcg@5")[:, :1]
        )


def test_given_scores_are_in_every_file_and_marked(tmp_path):
    options: dict[str, Any] = {
        "objectives": ["ranknet"],
        "backends": ["xgboost"],
        "params": None,
        **SMALL,
    }
    found = compare(
        DATA,
        features=["number"],
        scores={"production": "old"},
        baseline="ranknet",
        out=tmp_path / "out",
        **options,
    )
    assert found.results.baseline == System("xgboost", "ranknet")
    found.to_json(tmp_path / "all.json")
    found.to_html(tmp_path / "report.html")
    found.to_csv(tmp_path / "rows.csv")
    again = load_results(tmp_path / "all.json")
    assert System(GIVEN, "production") in again.systems
    analysis = json.loads((tmp_path / "all.json").read_text())["analysis"]
    assert analysis["measures"][0]["comparisons"][0]["system"]["backend"] == GIVEN
    page = (tmp_path / "report.html").read_text()
    assert "given scores" in page
    assert "if its model was trained on these queries, its values are too good" in page
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert (rows["backend"] == GIVEN).sum() == 40
    (tmp_path / "out" / "runs" / "x").mkdir()
    for kept in (tmp_path / "out" / "runs").glob("production*fold1*"):
        kept.unlink()
    resumed = compare(
        DATA,
        features=["number"],
        scores={"production": "old"},
        baseline="ranknet",
        out=tmp_path / "out",
        resume=True,
        **options,
    )
    np.testing.assert_array_equal(resumed.results.values("ndcg@5"), found.results.values("ndcg@5"))
    with pytest.raises(ConfigError, match="sha256"):
        compare(
            DATA,
            features=["number"],
            scores={"production": "noise"},
            baseline="ranknet",
            out=tmp_path / "out",
            resume=True,
            **options,
        )


def test_given_scores_of_splits_are_those_of_the_test_rows():
    train, test = DATA[DATA["qid"] < 30], DATA[DATA["qid"] >= 30]
    options: dict[str, Any] = {
        "objectives": ["ranknet"],
        "backends": ["lightgbm"],
        "params": FEW,
        **SMALL,
    }
    parts = {"train": train.drop(columns=["old", "weight"]), "test": test.drop(columns="weight")}
    by_column = compare(parts, features=["number"], scores={"production": "old"}, **options)
    by_array = compare(
        {"train": train, "test": test},
        features=["number"],
        scores={"production": test["old"]},
        weight={"train": train["weight"]},
        **options,
    )
    expected = gbmrank.metric("ndcg@5").per_query(test["label"], test["old"], qid=test["qid"])
    for found in (by_column, by_array):
        np.testing.assert_allclose(found.results.values("ndcg@5")[1, 0], expected)
    assert "weights" in by_array.results.audit


def test_scores_that_cannot_be_judged_are_rejected():
    missing = np.where(np.arange(len(DATA)) == 7, np.nan, DATA["old"])
    settings = Settings(objectives=["ranknet"], backends=["lightgbm"], folds=2)

    def prepared(**given):
        return prepare(
            read_source(DATA, choose(["number"]), further_columns(**given)),
            settings,
        )

    with pytest.raises(DataError, match="1 rows of test queries"):
        prepared(scores={"production": missing})
    with pytest.raises(ConfigError, match="'ranknet'"):
        prepared(scores={"ranknet": "old"})
    with pytest.raises(DataError, match="'old_score'"):
        prepared(scores={"production": "old_score"})
    with pytest.raises(ConfigError, match="list"):
        prepared(scores=[1.0, 2.0])
    with pytest.raises(DataError, match="3 entries"):
        prepared(scores={"production": [1.0, 2.0, 3.0]})
    with pytest.raises(ConfigError, match="there are no named columns in arrays"):
        read_source((np.ones((2, 1)), [0, 1], [1, 1]), None, {"scores:production": "old"})


def test_folds_by_time_are_trained_on_earlier_queries(tmp_path):
    options: dict[str, Any] = {
        "objectives": ["ranknet"],
        "backends": ["lightgbm"],
        "params": FEW,
        **SMALL,
    }
    out = tmp_path / "out"
    found = compare(
        DATA, features=["number"], time="day", scores={"production": "old"}, out=out, **options
    )
    folds = found.results.audit["split_by_time"]
    assert [fold["fold"] for fold in folds] == [1, 2]
    for fold in folds:
        assert fold["train"]["to"] < fold["valid"]["from"] <= fold["valid"]["to"]
        assert fold["valid"]["to"] < fold["test"]["from"]
    assert folds[1]["train"]["from"] == folds[0]["train"]["from"] == "2024-01-01"
    assert folds[1]["test"]["to"] == "2024-01-20"
    tested = {str(query) for query in found.results.queries.ids}
    day = dict(zip(DATA["qid"].astype(str), DATA["day"].dt.strftime("%Y-%m-%d"), strict=True))
    assert tested == {query for query in day if day[query] >= folds[0]["test"]["from"]}
    assert any("split by time (column 'day'" in note for note in found.notes)
    found.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Split by time" in page
    assert f"{folds[0]['test']['from']} to {folds[0]['test']['to']}" in page
    again = compare(
        DATA,
        features=["number"],
        time=DATA["day"],
        scores={"production": "old"},
        out=out,
        resume=True,
        **options,
    )
    np.testing.assert_array_equal(again.results.values("ndcg@5"), found.results.values("ndcg@5"))
    with pytest.raises(ConfigError, match="sha256"):
        compare(
            DATA,
            features=["number"],
            scores={"production": "old"},
            out=out,
            resume=True,
            **options,
        )


def test_queries_of_several_times_are_noted():
    times = np.where(DATA["qid"] == 3, np.arange(len(DATA)), DATA["qid"])
    source = read_source(DATA, choose(["number"]), {"time": times})
    at = source.ids.tolist().index("3")
    assert source.times is not None
    assert source.times[at] == np.flatnonzero(DATA["qid"] == 3)[0]
    assert any(note.startswith("1 queries have rows of several times") for note in source.notes)
    steady = read_source(DATA, choose(["number"]), {"time": "day"})
    assert not any("several times" in note for note in steady.notes)


def test_times_do_not_go_with_given_splits():
    with pytest.raises(ConfigError, match="time"):
        compare({"train": DATA, "test": DATA}, time="day", **SMALL)


@pytest.mark.nightly
def test_further_columns_work_in_processes_of_their_own():
    source = read_source(
        DATA,
        choose(FEATURES),
        further_columns("weight", None, "day", {"p": "old"}),
    )
    settings = Settings(
        objectives=["ranknet"],
        metrics="ndcg@5",
        backends=["lightgbm"],
        folds=1,
        rounds=3,
        params=FEW,
        jobs=1,
        threads=1,
    )
    there = compare_source(source, settings)
    here = compare_source(source, replace(settings, isolate=False))
    assert [run.error for run in there.results.runs] == [None, None]
    np.testing.assert_array_equal(there.results.values("ndcg@5"), here.results.values("ndcg@5"))
    assert Task(System("lightgbm", "ranknet"), 0, 0) in {
        Task(run.system, run.seed, run.fold) for run in there.results.runs
    }


def test_query_ids_of_files_keep_their_scores(tmp_path):
    half = len(DATA) // 2
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    plain = DATA[["qid", "label", "number"]]
    plain[:half].to_csv(paths[0], index=False)
    plain[half:].to_csv(paths[1], index=False)
    source = read_source(paths, None, {"scores:p": DATA["number"].to_numpy()})
    np.testing.assert_allclose(source.scores["p"], source.X[:, 0])  # queries are in both files


def test_the_command_takes_further_columns(tmp_path, capsys):
    plain = DATA.rename(columns={"weight": "traffic"}).drop(columns="rank")
    plain.to_csv(tmp_path / "rows.csv", index=False)
    np.savetxt(tmp_path / "old.txt", DATA["old"])
    command = ["compare", str(tmp_path / "rows.csv"), "--objectives", "ranknet", "--quiet"]
    command += ["--backends", "lightgbm", "--folds", "1", "--rounds", "3", "--in-process"]
    command += ["--metrics", "ndcg@5", "--out", str(tmp_path / "out"), "--json"]
    command += ["--categorical", "color", "--weight", "traffic"]
    command += ["--time", "day", "--scores", "production=column:old"]
    command += ["--scores", f"copy={tmp_path / 'old.txt'}"]
    assert main(command) == 0
    shown = json.loads(capsys.readouterr().out)
    means = {
        one["system"]["objective"]: one["mean"]
        for one in shown["analysis"]["measures"][0]["summaries"]
    }
    assert list(means) == ["ranknet", "production", "copy"]
    assert means["production"] == means["copy"]
    assert shown["analysis"]["baseline"] == {"backend": GIVEN, "objective": "production"}
    audit = load_results(tmp_path / "out" / "results.json").audit
    assert audit["features"] == 3
    assert audit["given_scores"]["production"] == "column 'old'"
    for wrong in ("production", "=x", "p=column:"):
        assert main([*command, "--force", "--scores", wrong]) == 2
        assert "NAME=FILE" in capsys.readouterr().err
    assert main([*command, "--force", "--scores", "copy=x"]) == 2
    assert "twice" in capsys.readouterr().err
