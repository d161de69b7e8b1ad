"""Explanations as tables, text, plots and pages; what is rejected; from the command line."""

import json

import lightgbm as lgb
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gbmrank
from gbmrank import GBMRanker
from gbmrank.errors import DataError, GbmrankWarning, GroupError, ParameterError
from tests.ranking_tasks import make_task

mpl.use("Agg")
TASK = make_task(seed=0)
NAMES = [f"f {at}" for at in range(TASK.x.shape[1])]
BACKENDS = ("lightgbm", "xgboost")


def fitted(backend="lightgbm", x=TASK.x, **options):
    return GBMRanker(backend=backend, n_estimators=5, **options).fit(x, TASK.y, qid=TASK.qid)


FRAMES = {
    pd.DataFrame: lambda: pd.DataFrame(TASK.x, columns=NAMES, index=np.arange(TASK.n) + 7),
    pl.DataFrame: lambda: pl.DataFrame(TASK.x, schema=NAMES),
    pa.Table: lambda: pa.table(dict(zip(NAMES, TASK.x.T, strict=True))),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_tables_are_frames_of_the_users_kind(kind):
    x = FRAMES[kind]()
    model = fitted("xgboost", x)
    listed = model.explain(x, qid=TASK.qid)
    table = listed.table()
    assert type(table) is type(x)
    assert list(getattr(table, "column_names", table.columns)) == NAMES
    np.testing.assert_array_equal(table["f 1"], listed.contributions[:, 1])
    if kind is pd.DataFrame:
        assert table.index.equals(x.index)
    pair = model.explain(x, qid=TASK.qid, pair=(0, 1))
    table = pair.table()
    assert type(table) is type(x)
    found = np.asarray(table["contribution"])
    assert np.all(np.diff(np.abs(found)) <= 0)
    assert found.sum() == pytest.approx(pair.contributions.sum())
    at = NAMES.index(str(table["feature"][0]))
    assert str(table["a"][0]) == f"{TASK.x[0, at]:.4g}"


def test_arrays_have_a_dict_of_columns():
    model = fitted()
    assert model.explain(TASK.x, pair=(0, 1)).table().keys() == {
        *("feature", "a", "b", "contribution")
    }
    assert list(model.explain(TASK.x).table()) == [f"f{at}" for at in range(TASK.x.shape[1])]


def test_equal_features_contribute_nothing():
    x = TASK.x.copy()
    x[1, 0] = x[0, 0]
    for backend in BACKENDS:
        assert fitted(backend).explain(x, pair=(0, 1)).contributions[0, 0] == 0.0


def test_text_and_bars_end_with_the_total():
    found = fitted().explain(TASK.x, pair=(0, 1))
    bars = found.bars(most=1)
    assert [bar.name for bar in bars[1:]] == [bars[1].name, "total"]
    assert "other features" in bars[1].name
    total = float((found.scores - found.references)[0])
    assert sum(bar.contribution for bar in bars[:-1]) == pytest.approx(total)
    assert bars[-1].contribution == pytest.approx(total)
    assert f"{total:+.4f}" in str(found).splitlines()[-1]
    assert " against " in bars[0].values
    with pytest.raises(ParameterError, match="row must be from 0 to 0"):
        found.bars(1)


def test_a_row_is_shown_beside_the_mean_of_its_list():
    x = TASK.x.copy()
    x[0, 2] = np.nan
    found = fitted(x=x).explain(x, qid=TASK.qid)
    values = {bar.name: bar.values for bar in found.bars(0, None)}
    mine = TASK.qid == TASK.qid[0]
    assert values["f1"] == f"{x[0, 1]:.4g} (list: {x[mine, 1].mean():.4g})"
    if "f2" in values:
        assert values["f2"].startswith("missing (list: ")
    best = int(np.argmax(found.scores - found.references))
    assert found.title().startswith(f"row {best} ")


def test_categories_are_shown_as_they_are():
    x = pd.DataFrame(TASK.x, columns=NAMES)
    x["f 0"] = pd.Categorical(np.where(x["f 0"] > 0, "blue & <b>", "red"))
    found = fitted(x=x, min_data_per_group=1).explain(x, qid=TASK.qid)
    row = int(np.argmax(np.abs(found.contributions[:, 0])))
    assert x["f 0"][row] in [bar.values for bar in found.bars(row, None)]
    page = found.to_html(row=row)
    assert "<b>" not in page


def test_a_plot_has_a_bar_per_feature_and_the_total_last():
    found = fitted().explain(TASK.x, pair=(0, 1))
    axes = found.plot()
    assert len(axes.patches) == len(found.bars())
    assert axes.patches[-1].get_width() == pytest.approx(found.bars()[-1].contribution)
    assert found.plot(ax=axes) is axes
    plt.close(axes.figure)


def test_a_page_is_written(tmp_path):
    found = fitted().explain(TASK.x, qid=TASK.qid)
    page = found.to_html(tmp_path / "why.html")
    assert (tmp_path / "why.html").read_text(encoding="utf-8") == page
    assert page.count("<rect") == len(found.bars())
    assert "http" not in page


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_are_those_of_the_model(backend):
    x = FRAMES[pd.DataFrame]()
    booster = fitted(backend, x).booster_
    with pytest.raises(DataError, match="expecting"):
        gbmrank.explain(booster, TASK.x[:, 1:])
    with pytest.raises(DataError, match="are not those of"):
        gbmrank.explain(booster, x.rename(columns={"f 0": "other"}))
    with pytest.warns(GbmrankWarning, match="have no names"):
        gbmrank.explain(booster, TASK.x)
    assert gbmrank.explain(booster, x).features == NAMES


def test_lists_are_tables_and_a_number_is_no_pair():
    model = fitted()
    found = model.explain(TASK.x.tolist(), pair=(0, 1))
    np.testing.assert_array_equal(
        found.contributions, model.explain(TASK.x, pair=(0, 1)).contributions
    )
    assert "against" in str(found)
    with pytest.raises(ParameterError, match="two different rows of X, numbers from 0"):
        model.explain(TASK.x, pair=3)


def test_a_wrong_sum_is_reported(monkeypatch):
    model = fitted()
    monkeypatch.setattr(
        type(model._fitted), "scores", lambda self, rows: np.arange(float(len(rows)))
    )
    with pytest.warns(GbmrankWarning, match="contributions of row .* sum to .* please report it"):
        model.explain(TASK.x)


def test_a_constant_model():
    constant = lgb.train(
        {"verbose": -1, "num_threads": 1, "min_gain_to_split": 1e9}, lgb.Dataset(TASK.x, TASK.y), 2
    )
    found = gbmrank.explain(constant, TASK.x, pair=(0, 1))
    assert not found.contributions.any()
    assert [bar.name for bar in found.bars()] == ["total"]


def test_the_ledger_sums_to_the_metric():
    x = FRAMES[pd.DataFrame]()
    model = fitted("xgboost", x)
    ledger = gbmrank.metric_ledger(model, x, TASK.y, qid=TASK.qid, orders=4)
    assert ledger.earned.sum() == pytest.approx(ledger.value - ledger.random)
    assert ledger.value == pytest.approx(model.score(x, TASK.y, qid=TASK.qid))
    flat = gbmrank.metric("ndcg@10").score(TASK.y, np.zeros(TASK.n), qid=TASK.qid)
    assert ledger.random == pytest.approx(flat)
    table = ledger.table()
    assert isinstance(table, pd.DataFrame)
    assert table["earned"].is_monotonic_decreasing
    assert "not what you need" in str(ledger)
    again = gbmrank.metric_ledger(model, x, TASK.y, qid=TASK.qid, orders=4)
    np.testing.assert_array_equal(again.earned, ledger.earned)


def test_the_ledger_is_the_shapley_value_of_the_metric():
    """With three features, the mean over all orders is known; random ones come near it."""
    from tests.oracles import shapley

    x, measure = TASK.x[:, :3], gbmrank.metric("ndcg@10")
    model = fitted(x=x)
    parts = model.explain(x, qid=TASK.qid).contributions

    def value(chosen):
        return measure.score(TASK.y, parts @ np.array(chosen, float), qid=TASK.qid)

    expected = shapley(value, 3)
    ledger = gbmrank.metric_ledger(model, x, TASK.y, qid=TASK.qid, orders=300)
    assert np.all(np.abs(ledger.earned - expected) < 5 * ledger.errors + 1e-9)
    assert ledger.errors.max() < 0.02


def test_ledgers_that_cannot_be_made():
    model = fitted()
    with pytest.raises(ParameterError, match="at least 2, got 1"):
        gbmrank.metric_ledger(model, TASK.x, TASK.y, qid=TASK.qid, orders=1)
    with pytest.raises(GroupError, match="one id per row"):
        gbmrank.metric_ledger(model, TASK.x, TASK.y, qid=None)


def letor(path):
    lines = [
        f"{label:g} qid:{query} " + " ".join(f"{at + 1}:{value!r}" for at, value in enumerate(row))
        for label, query, row in zip(TASK.y, TASK.qid, TASK.x.tolist(), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_command_line(backend, tmp_path, capsys):
    from gbmrank.cli import main

    model, data = fitted(backend), letor(tmp_path / "rows.txt")
    file = str(tmp_path / ("model.txt" if backend == "lightgbm" else "model.json"))
    model.booster_.save_model(file)  # one that gbmrank did not write
    assert main(["explain", file, data, "--query", "1", "--pair", "2", "1"]) == 0
    rows = np.flatnonzero(TASK.qid == 1)
    expected = model.explain(TASK.x, pair=(rows[1], rows[0]))
    text = capsys.readouterr().out
    assert f"{expected.contributions.sum():+.4f}" in text
    assert main(["explain", file, data, "--query", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["items"]) == len(rows)
    total = [sum(item["contributions"].values()) for item in found["items"]]
    scores = model.predict(TASK.x)[rows]
    np.testing.assert_allclose(total, scores - scores.mean(), atol=1e-5)
    page = tmp_path / "why.html"
    assert main(["explain", file, data, "--query", "1", "--html", str(page)]) == 0
    assert "<svg" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--query", "none"), "no query 'none'"),
        (("--query", "1", "--pair", "1", "1"), "two different items"),
        (("--query", "1", "--pair", "0", "1"), "from 1 to"),
    ],
)
def test_wrong_command_lines(options, message, tmp_path, capsys):
    from gbmrank.cli import main

    fitted().save(tmp_path / "model.txt")
    given = ["explain", str(tmp_path / "model.txt"), letor(tmp_path / "rows.txt"), *options]
    assert main(given) == 2
    assert message in capsys.readouterr().err
