"""The doctor for click logs: what it measures, what it advises, and its command."""

import json

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from gbmrank.cli import main
from gbmrank.clicks import PositionBias, diagnose, simulate_clicks
from gbmrank.errors import DataError
from tests.clicks.test_pooling import complete_log

mpl.use("Agg")


def table_of(log):
    return pd.DataFrame(
        {
            "clicks": log.clicks,
            "position": log.position,
            "query": [f"q{one}" for one in log.query],
            "item": [f"i{one}" for one in log.row],
            "session": [f"s{one}" for one in log.session],
        }
    )


def test_a_log_that_identifies_everything():
    _, _, log = complete_log()
    found = diagnose(log)
    assert (found.method, found.reason) == ("pooled", "")
    sizes = (found.n_sessions, found.n_impressions, found.n_clicks, found.n_queries, found.n_items)
    assert sizes == (3000, 30_000, log.clicks.sum(), 40, 400)
    assert found.complete == found.repeated == 1.0
    assert found.shown == [3000] * 10
    np.testing.assert_allclose(found.click_rate, np.bincount(log.position, log.clicks)[1:] / 3000)
    assert found.bias is not None
    power = -np.log(found.bias.propensity[-1]) / np.log(10)
    assert abs(power - 1.0) < 0.2
    assert f"1 / k^{power:.2f}" in str(found)
    assert 'position_bias="pooled"' in str(found)
    assert found.after_click == 1.0
    seen = pd.DataFrame({"row": log.row, "k": log.position})
    several = seen.groupby("row")["k"].nunique() > 1
    assert found.moved == several.sum()
    expected = several[log.row].to_numpy()[log.position == 1].mean()
    assert found.overlap[0] == pytest.approx(expected)


def test_effective_clicks_are_at_most_the_clicks():
    _, _, log = complete_log()
    found = diagnose(log)
    clicks = np.bincount(log.position, log.clicks)[1:]
    assert (np.array(found.effective_clicks) < 1.2 * clicks).all()
    assert found.effective_clicks[0] < 0.9 * clicks[0]
    assert diagnose(complete_log(sessions=6000)[2]).effective_clicks[0] > found.effective_clicks[0]


def test_a_cascade_is_found():
    rng = np.random.default_rng(0)
    rho = rng.uniform(0.05, 0.6, 400)
    log = simulate_clicks(
        rho, rng.normal(size=400), np.repeat(np.arange(40), 10), model="cascade",
        sessions=2000, temperature=1.0, max_grade=None,
    )  # fmt: skip
    found = diagnose(log)
    assert found.after_click < 0.05
    assert found.after_click_z < -10.0
    assert "After a click: items below are examined" in str(found)


def test_what_a_log_does_not_identify_is_not_corrected():
    rho, query = np.linspace(0.1, 0.9, 40), np.repeat(np.arange(4), 10)
    log = simulate_clicks(rho, -np.arange(40.0), query, sessions=400, max_grade=None)
    found = diagnose(log)
    assert found.method == "none"
    assert found.bias is None
    assert "Position bias: unknown" in str(found)
    assert "Labels should not be pooled: no item was shown at two positions" in str(found)
    assert "To measure the bias, swap neighbouring items" in str(found)
    assert found.plot().get_xlabel().startswith("position")


def test_without_a_bias_there_is_none():
    found = diagnose(complete_log(truth=PositionBias(np.ones(10)))[2])
    assert "Position bias: none that the clicks show" in str(found)
    assert found.method == "pooled"


def test_columns_have_names():
    _, _, log = complete_log(sessions=600)
    table = table_of(log)
    names = {"clicks": "click", "position": "rank", "qid": "search", "item": "sku", "session": "id"}
    renamed = table.set_axis(list(names.values()), axis=1)
    assert diagnose(renamed, **names).to_dict() == diagnose(table).to_dict()
    with pytest.raises(DataError, match="no column 'clicks'"):
        diagnose(renamed)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command(tmp_path, capsys, suffix):
    _, _, log = complete_log(sessions=600)
    table, path = table_of(log), tmp_path / f"log.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    picture = tmp_path / "log.png"
    assert main(["clicks", str(path), "--plot", str(picture)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "600 sessions of 40 queries, 6000 impressions of 400 items" in shown
    assert "effective clicks" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["clicks", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(diagnose(table).to_dict()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--item", "sku"], "no column 'sku'"),
        (["--session", "day"], "rows of two queries"),
    ],
)
def test_the_command_says_what_is_wrong(tmp_path, capsys, options, message):
    path = tmp_path / "log.csv"
    table_of(complete_log(sessions=600)[2]).assign(day="today").to_csv(path, index=False)
    assert main(["clicks", str(path), *options]) == 2
    assert message in capsys.readouterr().err


def test_an_empty_id_is_missing(tmp_path, capsys):
    path = tmp_path / "log.csv"
    table = table_of(complete_log(sessions=600)[2])
    table.loc[4, "item"] = ""
    table.to_csv(path, index=False)
    assert main(["clicks", str(path)]) == 2
    assert "item is missing in 1 rows, first in row 4" in capsys.readouterr().err
