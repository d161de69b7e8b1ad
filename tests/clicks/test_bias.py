"""Position bias: what a click is worth, its text, its picture, and what is rejected."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from gbmrank.clicks import PositionBias

BIAS = PositionBias([0.9, 0.5, 0.25])
TRUST = PositionBias([0.6, 0.4], false_clicks=[0.3, 0.1])


def test_a_click_is_divided_by_its_propensity():
    made = BIAS.utilities([1, 0, 1, 1], [1, 1, 3, 2])
    np.testing.assert_allclose(made, [1 / 0.9, 0.0, 4.0, 2.0], rtol=1e-15)
    assert made.dtype == np.float64
    np.testing.assert_array_equal(BIAS.theta([3, 1, 3]), [0.25, 0.9, 0.25])


def test_false_clicks_are_taken_off_first():
    made = TRUST.utilities([1, 0, 1, 0], [1, 1, 2, 2])
    np.testing.assert_allclose(made, [0.7 / 0.6, -0.3 / 0.6, 0.9 / 0.4, -0.1 / 0.4], rtol=1e-15)


@pytest.mark.parametrize("bias", [BIAS, TRUST])
@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
def test_the_mean_utility_is_the_relevance(bias, rho):
    """Exactly: the two outcomes of a click, weighed by their probabilities."""
    at = np.arange(1, bias.n_positions + 1)
    b = 0.0 if bias.false_clicks is None else bias.false_clicks
    chance = bias.propensity * rho + b
    one, none = bias.utilities(np.ones(len(at)), at), bias.utilities(np.zeros(len(at)), at)
    np.testing.assert_allclose(chance * one + (1 - chance) * none, rho, atol=1e-15)


def test_clipping_raises_small_propensities():
    made = BIAS.utilities([1, 1, 1], [1, 2, 3], clip=0.5)
    np.testing.assert_allclose(made, [1 / 0.9, 2.0, 2.0])


def test_counts_are_the_mean_over_their_impressions():
    several = BIAS.utilities([1, 0, 1, 1], [3, 3, 3, 3])
    counted = BIAS.utilities([3], [3], impressions=[4])
    assert counted[0] == pytest.approx(several.mean(), rel=1e-15)


def test_series_and_lists_give_the_same_numbers():
    clicks, position = [1, 0, 1], [1, 2, 3]
    expected = BIAS.utilities(clicks, position)
    frame = pd.DataFrame({"clicks": [True, False, True], "position": position})
    np.testing.assert_array_equal(BIAS.utilities(frame["clicks"], frame["position"]), expected)


def test_it_survives_json_and_pickle():
    bias = PositionBias([1.0, 1 / 3], low=[1.0, 0.2], high=[1.0, 0.4], level=0.9, method="em")
    for one in (bias, TRUST, BIAS):
        assert PositionBias.from_dict(json.loads(json.dumps(one.to_dict()))) == one
        assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301
    assert bias != PositionBias([1.0, 1 / 3])
    assert len({bias, TRUST, BIAS, PositionBias([0.9, 0.5, 0.25])}) == 3


def test_its_arrays_are_copies_that_cannot_be_changed():
    given = np.array([1.0, 0.5])
    bias = PositionBias(given)
    given[1] = 0.0
    assert bias.propensity[1] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        bias.propensity[1] = 1.0


def test_the_text_shows_every_position():
    bias = PositionBias([1.0, 0.5], low=[1.0, 0.4], high=[1.0, 0.65], method="harvesting")
    lines = str(bias).splitlines()
    assert "harvesting" in lines[0]
    assert "95%" in lines[1]
    assert lines[3].split()[:5] == ["2", "0.500", "0.400", "to", "0.650"]
    assert 2 * lines[3].count("#") == lines[2].count("#")
    assert "0.300" in str(TRUST)


def test_the_plot_has_a_bar_and_an_interval_per_position():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    ax = figure.add_subplot()
    bias = PositionBias([1.0, 0.5], low=[1.0, 0.4], high=[1.0, 0.65])
    assert bias.plot(ax) is ax
    assert [bar.get_height() for bar in ax.patches] == [1.0, 0.5]
    (segments,) = (one.get_segments() for one in ax.collections)
    np.testing.assert_allclose([part[:, 1] for part in segments], [[1.0, 1.0], [0.4, 0.65]])
