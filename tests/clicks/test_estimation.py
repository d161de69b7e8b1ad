"""Estimates of the position bias, against the truth of simulated logs."""

import itertools
import json
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from gbmrank.clicks import PositionBias, estimate_bias, simulate_clicks
from gbmrank.errors import DataError, GbmrankWarning, GroupError, ParameterError
from tests.clicks.worlds import NO_BIAS, TRUTH, world
from tests.formulas import each

HEAT = {"randomised": np.inf, "harvesting": 0.5, "em": 0.0}  # of the ranking that is logged
LARGEST_ERROR = {"randomised": 0.10, "harvesting": 0.10, "em": 0.15}


def estimate(method, seed, resamples=500, truth=TRUTH, sessions=10_000, **options):
    made = world(seed, temperature=HEAT[method], bias=truth, sessions=sessions)
    log, features = made.log, made.shown if method == "em" else None
    return estimate_bias(
        log.clicks,
        log.position,
        qid=log.query,
        item=log.row,
        X=features,
        method=method,
        resamples=resamples,
        seed=seed,
        **options,
    )


def relative_error(bias):
    ratio = bias.propensity / bias.propensity[0] / TRUTH.propensity
    return float(np.abs(ratio[1:] - 1.0).mean())


def ends(bias):
    assert bias.low is not None
    return bias.low, bias.high


def covered(bias):
    """Whether each interval but the first one contains the truth."""
    low, high = ends(bias) / bias.propensity[0]
    return ((low <= TRUTH.propensity) & (TRUTH.propensity <= high))[1:]


@pytest.mark.parametrize("method", ["randomised", "harvesting"])
def test_propensities_are_found(method):
    found = [estimate(method, seed) for seed in range(4)]
    assert np.mean([relative_error(bias) for bias in found]) <= LARGEST_ERROR[method]
    assert np.mean([covered(bias) for bias in found]) >= 0.8
    assert all(bias.method == method and bias.propensity[0] == 1.0 for bias in found)


@pytest.mark.parametrize("backend", each(2, ["lightgbm", "xgboost"]))
def test_propensities_are_found_by_em(backend):
    pytest.importorskip(backend)
    bias = estimate("em", seed=0, resamples=0, backend=backend)
    assert relative_error(bias) <= LARGEST_ERROR["em"]
    assert bias.low is None


@pytest.mark.nightly
@pytest.mark.parametrize("method", list(HEAT))
def test_errors_and_coverage_over_20_seeds(method):
    """100,000 impressions each; a level of 95% within three standard errors of 180 intervals."""
    found = [estimate(method, seed) for seed in range(20)]
    errors, share = [relative_error(bias) for bias in found], np.mean([covered(b) for b in found])
    print(f"{method}: mean relative error {np.mean(errors):.3f}, coverage {share:.3f}")
    assert np.mean(errors) <= LARGEST_ERROR[method]
    assert share >= 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / 180)


@pytest.mark.parametrize("method", ["randomised", "harvesting"])
def test_a_bias_that_clicks_do_not_tell_from_none_is_none(method):
    options = {"truth": NO_BIAS, "sessions": 2000}
    with pytest.warns(GbmrankWarning, match="examined equally"):
        bias = estimate(method, 1, **options)
    plain = estimate(method, 1, **options, pretest=False)
    assert bias.propensity.tolist() == [1.0] * 10
    assert plain.propensity.min() < 1.0
    np.testing.assert_array_equal(ends(bias), ends(plain))  # of the estimate in any case
    assert estimate(method, 1, sessions=2000) == estimate(method, 1, sessions=2000, pretest=False)


@pytest.mark.nightly
@pytest.mark.parametrize(("method", "seeds"), [("randomised", 60), ("harvesting", 60), ("em", 3)])
def test_a_bias_is_found_where_there_is_one(method, seeds):
    """Without a bias it is found in 5% of the logs at most, within three standard errors.

    The test takes the relevance that EM has learned for known, so with EM it is found more often.
    """
    weak = PositionBias.decaying(10, power=0.3)
    shares = {}
    for name, truth in {"none": NO_BIAS, "weak": weak}.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GbmrankWarning)
            made = [estimate(method, seed, 0, truth) for seed in range(100, 100 + seeds)]
        shares[name] = np.mean([bias.propensity.min() < 1.0 for bias in made])
    none, some = shares["none"], shares["weak"]
    print(f"{method}: a bias is found in {none:.2f} of logs without, {some:.2f} with a weak one")
    if method != "em":
        assert shares["none"] <= 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / seeds)
    assert shares["weak"] == 1.0


def test_pooled_click_rates_are_confounded():
    """Which is why there are other methods: good items stand at the top."""
    log = world(0).log
    with_rates = estimate_bias(log.clicks, log.position, method="randomised", resamples=0)
    assert relative_error(with_rates) > 0.2


def test_randomised_is_the_click_rate():
    clicks, position = [1, 1, 0, 1, 0, 0, 1, 0], [1, 1, 1, 1, 2, 2, 2, 2]
    bias = estimate_bias(clicks, position, method="randomised", pretest=False)
    np.testing.assert_allclose(bias.propensity, [1.0, (1 / 4) / (3 / 4)])
    options: dict[str, Any] = {"method": "randomised", "resamples": 0, "pretest": False}
    counts = estimate_bias([3, 1], [1, 2], impressions=[4, 4], **options)
    np.testing.assert_allclose(counts.propensity, bias.propensity)


def test_the_most_examined_position_need_not_be_the_first():
    bias = estimate_bias([10, 30], [1, 2], impressions=[40, 40], method="randomised", resamples=0)
    np.testing.assert_allclose(bias.propensity, [1 / 3, 1.0])


def slow_likelihood(logs, cells):
    """The logarithm of the conditional likelihood, pair by pair."""
    total = 0.0
    for _, found in itertools.groupby(sorted(cells), key=lambda row: row[0]):
        rows = list(found)
        scale = sum(np.exp(logs[k]) * shown for _, k, _, shown in rows)
        total += sum(
            clicks * np.log(np.exp(logs[k]) * shown / scale) for _, k, clicks, shown in rows
        )
    return total


def test_harvesting_maximises_the_conditional_likelihood():
    rng = np.random.default_rng(0)
    cells = [
        (pair, k, int(rng.integers(0, 4)), int(rng.integers(4, 9)))
        for pair in range(12)
        for k in rng.choice(4, size=2, replace=False).tolist()
    ]
    item, position, clicks, shown = (np.array(column) for column in zip(*cells, strict=True))
    bias = estimate_bias(
        *(clicks, position + 1),
        item=item,
        impressions=shown,
        method="harvesting",
        resamples=0,
        pretest=False,
    )
    best = minimize(
        lambda free: -slow_likelihood(np.concatenate([[0.0], free]), cells), np.zeros(3), tol=1e-12
    )
    expected = np.exp(np.concatenate([[0.0], best.x]))
    np.testing.assert_allclose(bias.propensity, expected / expected.max(), rtol=1e-4)


def test_items_are_told_apart_by_id_or_by_features():
    log = simulate_clicks([4, 2, 0], [0, 0, 0], [0, 0, 0], sessions=3000)
    features = np.array([[1.0, 0.0], [1.0, np.nan], [2.0, 0.0]])[log.row]
    found = [
        estimate_bias(log.clicks, log.position, qid=log.query, resamples=0, **given)
        for given in ({"item": log.row}, {"X": features}, {"item": np.array(list("abc"))[log.row]})
    ]
    for bias in found[1:]:
        np.testing.assert_allclose(bias.propensity, found[0].propensity, rtol=1e-9)


def test_a_seed_decides_the_intervals():
    log = world(0, sessions=2000, temperature=1.0).log
    made = [
        estimate_bias(log.clicks, log.position, qid=log.query, item=log.row, seed=seed)
        for seed in (1, 1, 2)
    ]
    assert made[0] == made[1] != made[2]
    wide = estimate_bias(log.clicks, log.position, qid=log.query, item=log.row, seed=1, level=0.99)
    widths = [np.diff(ends(bias), axis=0)[0, 1:] for bias in (wide, made[0])]
    assert np.all(widths[0] > widths[1])


def test_a_position_never_clicked_gets_a_warning_and_an_upper_end():
    with pytest.warns(GbmrankWarning, match="positions 3 were never clicked"):
        bias = estimate_bias(
            [50, 30, 0], [1, 2, 3], method="randomised", impressions=[100, 100, 100]
        )
    assert bias.propensity[2] == pytest.approx(0.01)
    low, high = ends(bias)
    assert low[2] == 0.0
    assert high[2] == pytest.approx(-np.log(0.05) / 50)  # three clicks beside fifty


def test_a_position_never_shown_is_interpolated_with_a_warning():
    with pytest.warns(GbmrankWarning, match="positions 2, 3 were never shown"):
        bias = estimate_bias([40, 10], [1, 4], method="randomised", impressions=[100, 100])
    np.testing.assert_allclose(bias.propensity, [1.0, 0.5, 0.25 ** (np.log(3) / np.log(4)), 0.25])
    assert [end[1] for end in ends(bias)] == [0.0, 1.0]


def test_positions_without_a_pair_in_common_get_a_warning():
    clicks, shown = [8, 4, 6, 3], [10, 10, 10, 10]
    with pytest.warns(GbmrankWarning, match="positions 3, 4 share no clicked"):
        estimate_bias(clicks, [1, 2, 3, 4], item=[0, 0, 1, 1], impressions=shown, pretest=False)


def test_intervals_are_finite_where_the_first_positions_were_never_clicked():
    queries = np.repeat(np.arange(12), 4)
    with pytest.warns(GbmrankWarning, match="positions 1, 2, 3 were never clicked"):
        bias = estimate_bias([0, 0, 0, 1] * 12, [1, 2, 3, 4] * 12, qid=queries, method="randomised")
    low, high = ends(bias)
    assert low.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert high.tolist() == [pytest.approx(-np.log(0.05) / 12)] * 3 + [1.0]
    assert PositionBias.from_dict(json.loads(json.dumps(bias.to_dict(), allow_nan=False))) == bias


@pytest.mark.parametrize("method", ["randomised", "harvesting"])
def test_intervals_are_finite_where_clicks_are_rare(method):
    """Any of 30 small logs: positions without a click, in the log or only in a replicate."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        clicks = rng.random(120) < rng.choice([0.03, 0.2], size=120)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GbmrankWarning)
            bias = estimate_bias(
                clicks,
                rng.permuted(np.tile(np.arange(1, 5), (30, 1)), axis=1).ravel(),
                qid=np.repeat(np.arange(15), 8),
                item=np.tile(np.arange(4), 30),
                method=method,
                resamples=100,
            )
        low, high = ends(bias)
        assert np.isfinite(low).all()
        assert np.isfinite(high).all()
        assert (low <= high).all()


def test_intervals_of_few_queries_are_those_of_independent_clicks():
    clicks, position = [1] * 60 + [0] * 40 + [1] * 30 + [0] * 70, [1] * 100 + [2] * 100
    options: dict[str, Any] = {"method": "randomised", "pretest": False}
    with pytest.warns(GbmrankWarning, match="fewer than 10 queries"):
        bias = estimate_bias(clicks, position, qid=[7] * 200, **options)
    error = 1.959964 * np.sqrt(1 / 60 - 1 / 100 + 1 / 30 - 1 / 100)
    np.testing.assert_allclose(np.log(np.array(ends(bias))[:, 1] / 0.5), [-error, error], rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "error", "fact"),
    [
        ({"item": [0, 1, 2, 3]}, DataError, "two positions"),
        ({"item": [0, 0, 1, 2], "clicks": [0, 0, 1, 1]}, DataError, "ever clicked"),
        ({}, DataError, "item="),
        ({"method": "em", "item": [0, 0, 1, 1]}, DataError, "X="),
        ({"clicks": [0, 0, 0, 0]}, DataError, "no click in 4 rows"),
        ({"position": [1, 2, 3, 10_001]}, DataError, "10001"),
        ({"position": [1, 2, 3]}, DataError, "position has 3 rows"),
        ({"qid": [1, 2]}, GroupError, "qid has 2 entries"),
        ({"item": [1, 2]}, GroupError, "item has 2 entries"),
        ({"X": np.zeros((2, 1))}, DataError, "X has 2 rows"),
        ({"method": "rates"}, ParameterError, "rates"),
        ({"method": "randomised", "num_leaves": 7}, ParameterError, "num_leaves"),
        ({"method": "randomised", "level": 2}, ParameterError, "level"),
    ],
)
def test_logs_that_cannot_be_used_are_rejected(options, error, fact):
    given = {"clicks": [1, 0, 1, 0], "position": [1, 2, 1, 2], **options}
    with pytest.raises(error, match=fact):
        estimate_bias(given.pop("clicks"), given.pop("position"), **given)


def test_em_needs_two_queries():
    rows = [1, 0, 1, 0], [1, 2, 1, 2]
    with pytest.raises(DataError, match="needs 2 queries; the log has one"):
        estimate_bias(*rows, X=np.ones((4, 1)), qid=[1] * 4, method="em", resamples=0)


def test_the_estimate_is_a_bias_like_any_other():
    bias = estimate("harvesting", seed=1)
    assert PositionBias.from_dict(bias.to_dict()) == bias
    assert "harvesting" in str(bias)
