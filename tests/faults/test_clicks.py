"""Clicks, positions and propensities that cannot be right."""

import numpy as np
import pandas as pd
import pytest

import gbmrank
from gbmrank.clicks import PositionBias
from gbmrank.errors import (
    ConfigError,
    DataError,
    GbmrankWarning,
    ParameterError,
    WeightError,
)

BIAS = PositionBias([0.9, 0.5, 0.25])


@pytest.mark.fault(
    "a position that is missing, fractional, below 1 or beyond what the bias knows",
    promise="`DataError` with row and value",
)
@pytest.mark.parametrize(
    ("position", "fact"),
    [
        ([1, None, 2], "nan at index 1"),
        ([1, np.nan, 2], "nan at index 1"),
        ([1, 2, 0], "0 at index 2"),
        ([-3, 2, 1], "-3 at index 0"),
        ([1, 1.5, 1], "1.5 at index 1"),
        ([1, 2, 4], "position 4 in row 2 is beyond 3"),
        (["a", "b", "c"], "positions must be one column of numbers"),
        ([1, 2], "position has 2 rows, clicks has 3"),
        (None, "position is missing"),
    ],
)
def test_wrong_positions_are_rejected(position, fact):
    with pytest.raises(DataError, match=fact):
        BIAS.utilities([1, 0, 0], position)


@pytest.mark.fault(
    "a propensity that is 0, negative, above 1 or NaN",
    promise="`DataError` with the position and the value",
)
@pytest.mark.parametrize("value", [0.0, -0.5, 1.01, np.nan, np.inf])
def test_wrong_propensities_are_rejected(value):
    with pytest.raises(DataError, match=f"{value:g} at position 2"):
        PositionBias([1.0, value])


@pytest.mark.parametrize(
    ("given", "fact"),
    [
        ({"propensity": []}, "empty"),
        ({"propensity": [0.6, 0.5], "false_clicks": [0.1]}, "1 entries for 2 positions"),
        ({"propensity": [0.6, 0.5], "false_clicks": [0.1, 0.6]}, "0.6 at position 2"),
        ({"propensity": [0.6, 0.5], "false_clicks": [-0.1, 0.1]}, "-0.1 at position 1"),
    ],
)
def test_wrong_columns_are_rejected(given, fact):
    with pytest.raises(DataError, match=fact):
        PositionBias(**given)


@pytest.mark.fault(
    "clicks that are not 0 or 1",
    promise="`DataError` with row and value; counts are taken with `impressions=`",
)
@pytest.mark.parametrize(
    ("clicks", "impressions", "fact"),
    [
        ([1, 2], None, "2 in row 1"),
        ([0.5, 1], None, "0.5 in row 0"),
        ([-1, 1], None, "-1 in row 0"),
        ([np.nan, 1], None, "nan in row 0"),
        ([1, 5], [1, 4], "5 in row 1"),
        ([1, 5], [1], "impressions has 1 rows"),
        ([1, 5], [0, 9], "got 0 at index 0"),
    ],
)
def test_wrong_clicks_are_rejected(clicks, impressions, fact):
    with pytest.raises(DataError, match=fact):
        BIAS.utilities(clicks, [1, 2], impressions=impressions)


@pytest.mark.fault(
    "a click over its propensity that overflows",
    promise="`WeightError` with the row; `clip=` is the remedy",
)
def test_a_utility_that_overflows_is_rejected():
    tiny = PositionBias([1.0, 1e-200])
    with pytest.raises(WeightError, match=r"row 1 .* clip"):
        tiny.utilities([1, 1], [1, 2])
    assert tiny.utilities([1, 1], [1, 2], clip=0.01)[1] == 100.0
    with pytest.raises(ParameterError, match="clip"):
        tiny.utilities([1, 1], [1, 2], clip=2.0)
    shown = {"position": LISTS["position"], "position_bias": PositionBias([1e-200, 0.5, 1.0])}
    with pytest.raises(WeightError, match=r"row 0 .* clip"):
        gbmrank.GBMRanker(NAIVE).fit(LISTS[["x"]], LISTS["click"], qid=LISTS["session"], **shown)


@pytest.mark.fault(
    "positions of clicks in `DaskGBMRanker`, `PairRanker`, or with a committee or a booster's own "
    "objective",
    promise="`ParameterError` that says what to use instead",
)
@pytest.mark.parametrize("name", ["position", "position_bias", "clip", "eval_position"])
def test_positions_where_nobody_reads_them(name):
    given = {name: LISTS["position"]}
    for ranker in (gbmrank.DaskGBMRanker(), gbmrank.PairRanker()):
        with pytest.raises(ParameterError, match=rf"{name}=.*PositionBias.utilities"):
            ranker.fit(LISTS[["x"]], LISTS["click"], qid=LISTS["session"], **given)
    both = {"position": LISTS["position"], "position_bias": BIAS}
    for objective in ("committee", "native:lambdarank"):
        with pytest.raises(ParameterError, match=rf"{objective} .*pairwise\(target=identity\)"):
            gbmrank.GBMRanker(objective).fit(
                LISTS[["x"]], LISTS["click"], qid=LISTS["session"], **both
            )


@pytest.mark.fault(
    "an evaluation set of 0 and 1 without positions, in a training with positions",
    promise="one warning that early stopping follows the bias of clicks, and what to give",
)
def test_clicks_to_validate_on_without_positions():
    rows = LISTS[["x"]], LISTS["click"]
    model = gbmrank.GBMRanker(NAIVE, n_estimators=1, n_jobs=1, min_child_samples=1)
    with pytest.warns(GbmrankWarning, match=r"valid_0 .*early stopping.*eval_position="):
        model.fit(
            *rows,
            qid=LISTS["session"],
            position=LISTS["position"],
            position_bias=BIAS,
            eval_set=rows,
            eval_qid=LISTS["session"] + 10,
        )


NAIVE = "pairwise(target=identity)"
LISTS = pd.DataFrame(
    {
        "session": np.repeat(np.arange(6), 3),
        "x": np.arange(18.0),
        "click": np.tile([1, 0, 0], 6),
        "position": np.tile([1, 2, 3], 6),
        "relevance": np.tile([2.0, 0.0, 1.0], 6),
    }
)


@pytest.mark.fault(
    "`compare` on clicks: labels that are none, positions that cannot be, a metric that clicks "
    "give no estimate of, an objective that corrects nothing",
    promise="an error before the first training that names what to give",
)
@pytest.mark.parametrize(
    ("objective", "options", "error", "fact"),
    [
        (NAIVE, {"label": "relevance"}, DataError, "clicks are 0 or 1"),
        (NAIVE, {"position": LISTS["position"] - 1}, DataError, "0 at index"),
        (NAIVE, {"position_bias": PositionBias([1.0, 0.5])}, DataError, "beyond 2"),
        (NAIVE, {"position_bias": "ips"}, ConfigError, "'ips'"),
        (NAIVE, {"clip": 2.0}, ParameterError, "clip"),
        (NAIVE, {"metrics": "ndcg@5"}, ConfigError, "ndcg@5 .*dcg@10"),
        (NAIVE, {"metrics": "dcg@5, map"}, ConfigError, "map .*dcg@10"),
        (NAIVE, {"metrics": "ndcg@5", "truth": "relevance"}, ConfigError, "stopping"),
        (
            NAIVE,
            {"truth": LISTS["relevance"].where(LISTS.index > 0)},
            DataError,
            "1 rows .*no truth",
        ),
        (NAIVE, {"position": None}, ConfigError, "position_bias needs clicks"),
        (
            f"debiased:{NAIVE}",
            {"position": None, "position_bias": None},
            ConfigError,
            "none are given",
        ),
        ("debiased:ranknet", {}, ParameterError, "pairwise"),
        ("debiased:committee", {}, ConfigError, "debiased:committee is not supported"),
        ("debiased:native:rank_xendcg", {}, ConfigError, "debiased:native:lambdarank"),
    ],
)
def test_clicks_that_cannot_be_compared(objective, options, error, fact):
    with pytest.raises(error, match=fact):
        gbmrank.compare(
            LISTS,
            objectives=[objective],
            **{"label": "click", "qid": "session", "features": ["x"], "position": "position"}
            | {"position_bias": BIAS, "metrics": "dcg@3", "folds": 2, "isolate": False, **options},
        )
